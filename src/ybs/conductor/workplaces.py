"""The workplaces of sub-agents: the project itself, or a copy for each of several that may change it."""

import asyncio
import os
from collections.abc import Iterable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

from msgspec import Raw
from msgspec.structs import replace

from ybs.agent.environment import ToolEnvironment
from ybs.checkpoints.states import WHY_ELSEWHERE
from ybs.conductor.contents import Copied, Copying, moved_text
from ybs.conductor.home import Home, Workplace
from ybs.conductor.merging import Merged
from ybs.conductor.models import ChosenModel
from ybs.conductor.origin import ParentProject
from ybs.conductor.overlay import Overlay, Seen
from ybs.conductor.result import Report, problem_of
from ybs.conductor.sub_agent import SubAgent
from ybs.core.envelope import MAIN
from ybs.core.errors import ToolError, YbsError
from ybs.core.events import Emit, Event, Noticed
from ybs.core.messages import ToolCall
from ybs.core.to_its_end import to_its_end
from ybs.core.wording import listed
from ybs.security.paths.path_text import lies_in
from ybs.security.sandbox.scratch import remove_folder
from ybs.tools.searching.walk import Deadline
from ybs.tools.workspace import FindLost

_NOT_MERGED = "Its changes were not merged."
_UNMERGED = "not all of its changes were merged ({error}); its copy of the project stays in {copy} until the session ends"


class Workplaces:
    """Gives each sub-agent a place. Those that may change the project itself work one after the other, and nothing is merged meanwhile."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._changing = asyncio.Lock()
        self._isolation: Isolation | None = None

    async def run(self, agent: SubAgent, chosen: ChosenModel | None, emit: Emit) -> Report:
        """Run a sub-agent in the project."""
        async with AsyncExitStack() as stack:
            if agent.kind.may_change:
                await stack.enter_async_context(self._changing)
            return await agent.run(self._home, self._home.place, chosen, emit)

    async def run_in_copy(
        self, agent: SubAgent, chosen: ChosenModel | None, emit: Emit, call_id: str
    ) -> Report:
        """Run a sub-agent in a copy of the project, and merge what it has changed, unless it was stopped."""
        try:
            overlay = await self.copy_for(agent)
        except YbsError as error:
            if agent.kind.acp is not None:  # what it does by itself could not be undone
                return agent.report(str(error))
            report = await self.run(agent, chosen, emit)
            report.notes += (f"{error} It worked directly in the project.",)
            return report
        try:
            report = await self.run_in(overlay, agent, chosen, emit)
            return await self.merged(agent, report, overlay, call_id)
        finally:
            await overlay.aclose()

    async def copy_for(self, agent: SubAgent) -> Overlay:
        """Make a copy of the project for a sub-agent; who asks closes it. Raises ToolError where there is no room."""
        if self._isolation is None:
            self._isolation = Isolation(self._home.place)
        return await self._isolation.open(agent.name, is_foreign=agent.kind.acp is not None)

    async def run_in(
        self, overlay: Overlay, agent: SubAgent, chosen: ChosenModel | None, emit: Emit
    ) -> Report:
        """Run a sub-agent in its copy; nothing is merged. Tools that are not built in know the project and not the copy."""
        place = Workplace(overlay.environment, (overlay.hook,))
        return await agent.run(self._home, place, chosen, emit)

    async def merged(
        self,
        agent: SubAgent,
        report: Report,
        overlay: Overlay,
        call_id: str,
        seen: Seen | None = None,
    ) -> Report:
        """Merge what a sub-agent has changed, or what was `seen` of that, and return its report."""

        def tell(event: Event) -> None:
            self._home.tell(event, agent=MAIN, started_by="")

        text = moved_text(report.text, overlay.folder, self._home.place.environment.folder)
        if agent.is_stopped:
            notes = (_NOT_MERGED,) if report.files or await overlay.has_changed() else ()
            return replace(report, text=text, files=(), notes=notes)
        call = ToolCall(id=call_id, name="delegate", arguments=Raw(b"{}"))
        try:
            async with self._changing:  # a command of another one may be at work, or asked about
                merged = await overlay.merge(call, tell, seen)
        except Exception as error:  # neither its work nor that of the others must be lost with it
            why = _UNMERGED.format(error=problem_of(error), copy=overlay.keep())
            merged = Merged(problem=why)
        if merged.conflicts or merged.problem:
            paths = listed(conflict.path for conflict in merged.conflicts)
            why = f"not merged into the project: {paths}" if paths else merged.problem
            tell(Noticed(level="warning", text=f"{agent.name}: {why}"))
        notes = (merged.text,) if merged.text else ()
        problem = "; ".join(filter(None, (report.problem, merged.problem)))
        return replace(
            report, text=text, files=(), notes=notes, problem=problem, merged=merged.paths
        )

    async def aclose(self) -> None:
        """Remove all copies."""
        if self._isolation is not None:
            await self._isolation.aclose()


_CANNOT = (
    "It cannot have a copy of the project to work in: {why}. Let only one task write at a time."
)


class Isolation:
    """Makes copies of the project that a main agent works in, one for each sub-agent."""

    def __init__(self, place: Workplace) -> None:
        self._environment = place.environment
        self._origin = ParentProject(place.environment, place.hooks)
        self._overlays: list[Overlay] = []

    async def open(self, agent: str, *, is_foreign: bool = False) -> Overlay:
        """Make a copy for an agent of this name; an `is_foreign` one changes files by itself, unasked. Raises ToolError where the project is too large, or the disk too small."""
        try:
            top = await asyncio.to_thread(self._origin.new_folder)
            try:
                environment, copied = await self._origin.working(partial(self._copied, top))
            except BaseException:
                await to_its_end(asyncio.to_thread(remove_folder, str(top)))
                raise
        except OSError as error:
            raise ToolError(_CANNOT.format(why=error.strerror or error)) from error
        except YbsError as error:
            raise ToolError(_CANNOT.format(why=error)) from error
        overlay = Overlay(agent, self._origin, environment, copied, is_foreign=is_foreign)
        self._overlays = [*(each for each in self._overlays if not each.is_closed), overlay]
        return overlay

    async def aclose(self) -> None:
        """Remove all copies, and end what still runs in one."""
        for overlay in self._overlays:
            await overlay.aclose()
        await asyncio.to_thread(self._origin.close)

    def _copied(self, top: Path, deadline: Deadline) -> tuple[ToolEnvironment, Copied]:
        origin = self._origin
        contents = origin.look(deadline)
        folder = top / (origin.roots.folder.name or "project")
        folder.mkdir(mode=0o700)
        has_links = not self._environment.sandbox.is_off
        copying = Copying(origin.roots, contents, folder, origin.get, has_links=has_links)
        copied = copying.do(deadline)
        return self._environment_in(folder, copied), copied

    def _environment_in(self, folder: Path, copied: Copied) -> ToolEnvironment:
        """Make the environment of a copy. What else the session may read can be read there, too; commands see what they see in the project."""
        original, origin = self._environment, self._origin
        environment = ToolEnvironment.of(
            folder, original.loaded, original.permissions, original=original
        )
        environment.workspace.ask_for_losses(_in_project(original, folder))
        roots = original.roots
        linked = [Path(origin.path(path)) for path in copied.shown]
        others = [path for path in roots.folders if not roots.folder.is_relative_to(path)]
        for path in (*linked, *others, *roots.reading):
            environment.roots.add_reading(str(path))
        for path in (*linked, *others):
            if not roots.holds_blocked(path):
                environment.sandbox.show(path)
        return environment


def _in_project(original: ToolEnvironment, copy: Path) -> FindLost:
    """Return what says of paths in a copy what undo would not bring back once they are merged: a merge names its paths."""

    def first_lost(paths: Iterable[str], *, is_named: bool = False) -> tuple[str, str]:
        del is_named
        top, there = str(original.folder), dict[str, str]()
        for each in paths:
            if lies_in(each, str(copy)):
                there[top + each[len(str(copy)) :]] = each
            elif os.path.lexists(each):
                return each, f"it {WHY_ELSEWHERE}"
        path, why = original.workspace.first_lost(there, is_named=True)
        return there.get(path, ""), why

    return first_lost
