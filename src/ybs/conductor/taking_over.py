"""Write what a sub-agent changed into the project: by the doors of the file tools, so that an undo takes it back."""

import asyncio
from collections.abc import Mapping, Sequence

from ybs.checkpoints.restore import Restoring
from ybs.checkpoints.states import Change, State
from ybs.conductor.contents import plain
from ybs.conductor.merging import (
    NEEDS_LINES,
    SAME_LINES,
    Clash,
    Fate,
    fate_of,
    steps_to,
    with_lines,
)
from ybs.conductor.origin import Origin
from ybs.core.errors import YbsError
from ybs.core.messages import ToolCall
from ybs.security.launcher import environ_away
from ybs.security.sandbox.scratch import remove_folder
from ybs.tools.calls.hooks import after_change, before_change

#: How often it begins again because something changed in the project meanwhile.
_TRIES = 3


class TakingOver:
    """One sub-agent's `changes` on their way into the project; `clashes` are those that stay out, and why."""

    def __init__(
        self, origin: Origin, changes: Sequence[Change], clashes: Mapping[str, Clash]
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
        hooks, paths = self._origin.hooks, [self._origin.shown(each) for each in self.done]
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
            steps = await asyncio.to_thread(steps_to, origin.roots, fates, found, self.clashes)
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
                    environ_away(host.environ, host.roots),
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
