"""A sub-agent's copy of the project: it works there as in the project, and what it changed is merged at the end."""

import asyncio
from pathlib import Path
from typing import TypeAlias

from ybs.agent.environment import ToolEnvironment
from ybs.checkpoints.states import Change, state_at
from ybs.conductor.admission import Admission, Named
from ybs.conductor.conflicts import Conflicts
from ybs.conductor.contents import look, path_in
from ybs.conductor.copying import Copied
from ybs.conductor.merged import Merged
from ybs.conductor.merging import changes_in, spread_clashes
from ybs.conductor.moving import moved_link
from ybs.conductor.origin import Origin
from ybs.conductor.taking_over import TakingOver
from ybs.core.errors import YbsError
from ybs.core.events import Emit
from ybs.core.messages import ToolCall
from ybs.core.to_its_end import to_its_end
from ybs.security.paths.names import shown_name
from ybs.security.sandbox.scratch import remove_folder
from ybs.tools.searching.walk import Deadline

#: The changes in a copy, and the ignored files that stay there.
Seen: TypeAlias = tuple[list[Change], list[str]]


class Overlay:
    """The copy, and the `environment` in which an agent works there. Its calls run with `hook` among their hooks."""

    def __init__(
        self,
        agent: str,
        origin: Origin,
        environment: ToolEnvironment,
        copied: Copied,
        *,
        is_foreign: bool = False,
    ) -> None:
        self.agent, self.environment = agent, environment
        self._origin, self._copied, self._is_foreign = origin, copied, is_foreign
        self.hook = Named(environment.roots)
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
            clashes = await admission.refused(changes, self._conflicts.compared, call, emit)
            spread_clashes([change.path for change in changes], clashes)
            taking_over = TakingOver(self._origin, changes, clashes)
            return await to_its_end(self._take_over(taking_over, changes, left, call))

    async def _take_over(
        self, taking_over: TakingOver, changes: list[Change], left: list[str], call: ToolCall
    ) -> Merged:
        await taking_over.do(call)
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
