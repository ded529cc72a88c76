"""A sub-agent's copy of the project: it works there as in the project, and what it changed is merged at the end."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeAlias

from msgspec.structs import replace

from ybs.agent.environment import ToolEnvironment
from ybs.checkpoints.planning import Restoring
from ybs.checkpoints.states import Change, State, state_at
from ybs.conductor.admission import Admission, NamedFiles
from ybs.conductor.contents import Copied, look, moved_link, path_in, plain
from ybs.conductor.differences import MOST_COMPARED_BYTES, MOST_SHOWN_BYTES, Differences
from ybs.conductor.merging import (
    NEEDS_LINES,
    SAME_LINES,
    Clash,
    Conflict,
    Fate,
    Merged,
    changes_in,
    fate_of,
    spread_clashes,
    steps_to,
    with_lines,
)
from ybs.conductor.origin import ParentProject
from ybs.core.errors import YbsError
from ybs.core.events import Emit, Noticed
from ybs.core.messages import ToolCall
from ybs.core.to_its_end import to_its_end
from ybs.security.launcher import environ_away
from ybs.security.paths.names import shown_name
from ybs.security.sandbox.scratch import remove_folder
from ybs.tools.calls.hooks import after_change, before_change
from ybs.tools.searching.walk import Deadline

#: How often it begins again because something changed in the project meanwhile.
_TRIES = 3
#: Who it was, in what is told of files that other programs run.
_MERGE = "What a sub-agent did"


class TakingOver:
    """One sub-agent's `changes` on their way into the project; `clashes` are those that stay out, and why."""

    def __init__(
        self, origin: ParentProject, changes: Sequence[Change], clashes: Mapping[str, Clash]
    ) -> None:
        self._origin, self._changes, self._refused = origin, changes, clashes
        self.clashes = dict(clashes)
        #: What the person cannot take back, and why.
        self.notes: tuple[str, ...] = ()

    @property
    def done(self) -> list[Change]:
        """The changes that are in the project."""
        return [change for change in self._changes if change.path not in self.clashes]

    async def do(self, call: ToolCall) -> None:
        """Bring the changes to the project; `call` is the one that they belong to."""
        origin, hooks = self._origin, self._origin.hooks
        paths = [origin.path(each.path) for each in self.done]
        if not paths:
            return
        self.notes = await before_change(hooks, call, "write", paths)
        try:
            await self._write()
        finally:
            await after_change(hooks, call, "write", paths)

    async def _write(self) -> None:
        origin = self._origin
        for tries_left in reversed(range(_TRIES)):
            self.clashes = dict(self._refused)
            found = await asyncio.to_thread(origin.states, [each.path for each in self._changes])
            fates = await self._fates(found)
            steps = await asyncio.to_thread(
                steps_to, origin.roots, self._changes, fates, found, self.clashes
            )
            try:
                await asyncio.to_thread(Restoring(origin.roots, steps, origin.get).do)
            except (YbsError, OSError) as error:
                if not tries_left:
                    await self._give_up(fates, f"it could not be written: {error}")
            else:
                return

    async def _give_up(self, fates: Mapping[str, State], why: str) -> None:
        """Note what is not as it should be."""
        found = await asyncio.to_thread(self._origin.states, list(fates))
        for path, fate in fates.items():
            if path not in self.clashes and plain(found[path]) != plain(fate):
                self.clashes[path] = Clash(why)

    async def _fates(self, found: Mapping[str, State]) -> dict[str, State]:
        """Return what is to stand at each path, and note the clashes."""
        fates: dict[str, State] = {}
        for change in self.done:
            ours = plain(found[change.path])
            fate = fate_of(change, ours)
            if fate == NEEDS_LINES:
                fate = await self._with_lines(change, ours)
            if isinstance(fate, State):
                fates[change.path] = fate
            elif isinstance(fate, Clash):
                self.clashes[change.path] = fate
        return fates

    async def _with_lines(self, change: Change, ours: State) -> Fate:
        from ybs.git.three_way import merged_text  # few files were changed on both sides

        origin, states = self._origin, (ours, change.before, change.after)
        try:
            mine, base, its = (origin.get(state.digest) or b"" for state in states)
            folder = await asyncio.to_thread(origin.new_folder)
            try:
                host = origin.environment.host
                merged = await merged_text(
                    environ_away(host.environ),
                    folder,
                    mine,
                    base,
                    its,
                    has_sandbox=not origin.environment.sandbox.is_off,
                )
            finally:
                await asyncio.to_thread(remove_folder, str(folder))
        except (YbsError, OSError) as error:
            return Clash(f"both changed it, and their lines could not be merged: {error}")
        if merged is None:
            return SAME_LINES
        return with_lines(change, ours, origin.take(merged), len(merged))


#: The changes in a copy, and the ignored files that stay there.
Seen: TypeAlias = tuple[list[Change], list[str]]


class Overlay:
    """The copy, and the `environment` in which an agent works there. Its calls run with `hook` among their hooks."""

    def __init__(
        self,
        agent: str,
        origin: ParentProject,
        environment: ToolEnvironment,
        copied: Copied,
        *,
        is_foreign: bool = False,
    ) -> None:
        self.agent = agent
        self._origin, self._copied, self._is_foreign = origin, copied, is_foreign
        self.hook = NamedFiles(environment.roots, origin, copied.base, environment.gate.confirm)
        gate = environment.gate.asking_through(self.hook.confirm)
        self.environment = replace(environment, gate=gate)
        self._conflicts = Conflicts(origin, environment)
        self.is_closed = False

    @property
    def folder(self) -> Path:
        """The copy."""
        return self.environment.folder

    async def look(self) -> Seen:
        """Return what the sub-agent has changed so far. Raises YbsError and OSError."""
        return await self._origin.working(self._changed)

    async def has_changed(self) -> bool:
        """Return whether the sub-agent has changed anything, or whether that cannot be seen."""
        try:
            return any(await self.look())
        except (YbsError, OSError):
            return True

    def lines_in(self, seen: Seen) -> int:
        """Return how many lines were changed. Raises OSError."""
        return sum(self._conflicts.lines_changed(change) for change in seen[0])

    async def merge(self, call: ToolCall, emit: Emit, seen: Seen | None = None) -> Merged:
        """Bring what the sub-agent changed to the project, once it is done, or as it was `seen`; `call` is the one that started it.

        What both changed is merged line by line. What cannot be merged stays in the project as it is there, and the sub-agent's
        version is kept elsewhere. It may be done again: what is merged already is left as it is in the project by then.
        """
        async with self._origin.merging:
            await self.environment.aclose()  # nothing runs in the copy any more
            try:
                changes, left = seen or await self.look()
            except (YbsError, OSError) as error:
                return Merged(problem=_UNSEEN.format(error=error, copy=self.keep()))
            admission = Admission(
                self._origin,
                self.environment.roots,
                self.agent,
                self.hook,
                is_foreign=self._is_foreign,
            )
            clashes = await admission.refused(changes, self._conflicts.shown, call, emit)
            spread_clashes(changes, clashes)
            taking_over = TakingOver(self._origin, changes, clashes)
            return await to_its_end(self._take_over(taking_over, changes, left, call, emit))

    async def _take_over(
        self,
        taking_over: TakingOver,
        changes: list[Change],
        left: list[str],
        call: ToolCall,
        emit: Emit,
    ) -> Merged:
        await self._origin.environment.autorun_watch.around(
            partial(taking_over.do, call), emit, who=_MERGE
        )
        for note in taking_over.notes:  # the model reads them in the result
            emit(Noticed(level="warning", text=f"Of what {self.agent} did, {note}."))
        clashes = taking_over.clashes
        self._copied.base.update((change.path, change.after) for change in taking_over.done)
        conflicts = [
            await asyncio.to_thread(self._conflicts.of, change, clashes[change.path])
            for change in changes
            if change.path in clashes
        ]
        return Merged(
            paths=tuple(map(self._origin.shown, taking_over.done)),
            conflicts=tuple(conflicts),
            left=tuple(map(shown_name, left)),
            notes=taking_over.notes,
        )

    def keep(self) -> str:
        """Keep the copy as long as the session lives, and let tools read it; return where it is."""
        return self._conflicts.keep_copy()

    async def aclose(self) -> None:
        """End what runs in the copy, and remove it, unless something is there alone."""
        self.is_closed = True
        await self.environment.aclose()
        if not self._conflicts.need_copy:
            await asyncio.to_thread(remove_folder, str(self.folder.parent))

    def _changed(self, deadline: Deadline) -> Seen:
        inside = self.environment.roots
        above = self._origin.rules_above(self.folder)
        project = self._origin.roots.folder
        now = look(inside, self._origin.take, deadline, above=above)
        for path, state in now.states.items():
            now.states[path] = moved_link(state, self.folder, project)
        return changes_in(
            self._copied.base,
            now,
            lambda path: moved_link(
                state_at(inside, path_in(self.folder, path)), self.folder, project
            ),
            shown=self._copied.shown,
            named=self.hook.paths,
        )


_UNSEEN = (
    "none of its changes were merged, because its copy of the project could not be read ({error}); "
    "the copy stays in {copy} until the session ends"
)


class Conflicts:
    """Keeps what cannot be merged of the copy that `inside` is."""

    def __init__(self, origin: ParentProject, inside: ToolEnvironment) -> None:
        self._origin, self._inside = origin, inside
        self._told = Differences(origin.get, MOST_COMPARED_BYTES)
        self._asked = Differences(origin.get, MOST_SHOWN_BYTES)
        #: Whether something is in the copy alone, so that it stays as long as the session.
        self.need_copy = False

    def of(self, change: Change, clash: Clash) -> Conflict:
        """Return the conflict, with both versions kept. Raises OSError."""
        return Conflict(
            path=self._origin.shown(change),
            why=clash.why,
            kept=self._kept(change),
            diff=self._difference(change),
        )

    def _difference(self, change: Change) -> str:
        with suppress(YbsError, OSError):
            return self._compared(change, self._told)
        return ""  # there is no room to read the project's file

    def shown(self, change: Change) -> str:
        """Return all that the sub-agent's version is other than the project's, for who is asked about it. Raises YbsError and OSError."""
        same = "as it is in the project already" if change.after.size else "an empty file"
        return self._compared(change, self._asked) or same

    def _compared(self, change: Change, differences: Differences) -> str:
        ours = plain(self._origin.state(change.path))
        return differences.text(ours, change.after, self._origin.shown(change))

    def lines_changed(self, change: Change) -> int:
        """Return how many lines a change takes away and adds. Raises OSError."""
        return self._told.lines(change.before, change.after, change.path)

    def keep_copy(self) -> str:
        """Have the tools of the session read the copy from now on; return where it is."""
        folder, environment = self._inside.folder, self._origin.environment
        if not self.need_copy:
            self.need_copy = True
            environment.roots.add(folder, is_read_only=True)
            environment.sandbox.show(folder)
        return shown_name(str(folder))

    def _kept(self, change: Change) -> str:
        """Keep a file where long outputs are kept, a large one in the copy; return where it is, or what stands for it."""
        if change.after.kind == "link":
            return f"a link to {change.after.target}"
        if change.after.kind != "file":
            return "deleted" if change.after.kind == "absent" else ""
        if change.after.digest and self._origin.environment.incognito.may_write:
            with suppress(YbsError, OSError):
                return self._put_away(change.after)
        return f"{self.keep_copy()}/{shown_name(change.path)}"

    def _put_away(self, state: State) -> str:
        descriptor, path = self._origin.environment.workspace.shells.outputs.create()
        with open(descriptor, "wb") as file:  # noqa: PTH123 - opened by descriptor
            file.write(self._origin.get(state.digest) or b"")
        return str(path)
