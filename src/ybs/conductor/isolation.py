"""Isolation: each of several sub-agents that may write works in a copy of the project, which is merged at the end.

There is one mechanism, with git and without: a copy by content, made of the same look at the project that undo takes, so
that a sub-agent sees what the person sees, ignored and untracked files included, and nothing of it is written to the
person's repository. (A git worktree would have to be filled with all of that afterwards, and leaves records in `.git`.)
"""

import asyncio
from functools import partial
from pathlib import Path

from ybs.agent.environment import ToolEnvironment
from ybs.conductor.copying import Copied, Copying
from ybs.conductor.home import Place
from ybs.conductor.origin import Origin
from ybs.conductor.overlay import Overlay
from ybs.core.errors import ToolError, YbsError
from ybs.core.to_its_end import to_its_end
from ybs.security.sandbox.scratch import remove_folder
from ybs.tools.searching.walk import Deadline

_CANNOT = (
    "It cannot have a copy of the project to work in: {why}. Let only one task write at a time."
)


class Isolation:
    """Makes copies of the project that a main agent works in, one for each sub-agent."""

    def __init__(self, place: Place) -> None:
        self._environment = place.environment
        self._origin = Origin(place.environment, place.hooks)
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
        """Make the environment of a copy. What else the session may read can be read there, too."""
        original, origin = self._environment, self._origin
        environment = ToolEnvironment.of(
            folder, original.loaded, original.permissions, original=original
        )
        roots = original.roots
        linked = [Path(origin.path(path)) for path in copied.shown]
        others = [path for path in roots.folders if not roots.folder.is_relative_to(path)]
        for path in (*linked, *others, *roots.reading):
            environment.roots.add_reading(str(path))
            if not roots.holds_blocked(path):
                environment.sandbox.show(path)
        return environment
