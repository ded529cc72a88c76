"""Warn the person about the autorun files that a command left, a merge, undo or redo, or whoever else was at work.

What is there is looked at before the first process starts that may write in the project (`Sandbox.start`), and whatever changed since the
last look is told at the next one: right after a command, and where a job, hook or server ran, before the next one, at the end of the turn and of
the session. What a file tool wrote, which was asked about, is not told, nor what the person does while nobody else is at work.
"""

import asyncio
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ybs.core.events import Emit, Noticed
from ybs.security.paths.autorun_changes import WatchedChange
from ybs.security.paths.path_text import lies_in
from ybs.security.paths.roots import Roots

if TYPE_CHECKING:
    from ybs.security.sandbox.sandbox import Sandbox

_Value = TypeVar("_Value")
#: Of the tools that name files those that write what was shown.
_WRITING = frozenset({"write_file", "edit_file", "delete_file"})
#: A notice names so many files.
MOST_NAMED = 200
#: Who it was: the command that just ended, or who was at work beside one in the background, or without one.
_COMMAND, _BESIDE_JOB = "A command", "A command in the background, or somebody else meanwhile,"
_OTHERS = "A hook, a server, or somebody else meanwhile,"
LEFT = (
    "{who} left files that other programs run by themselves, that PATH gives another program's name, or that later sessions are told: {names}. "
    "Look at them before you open this folder in an editor, enter it in a shell or commit."
)
MADE = (
    "{who} made or changed git repositories here: {names}. git runs what their hooks and config name; look at those "
    "before you use git there. Commands that begin from now on find them read-only; what runs in the background already can still change them."
)
UNSEEN = (
    "Not all folders of this project could be looked through ({names}): commands find these read-only for now, and what they left there is not named. "
    "The next command goes on looking; what nobody may list (`chmod u+rx`) stays so."
)


class AutorunWatch:
    """Looks before and after each command, and again where somebody else may have changed something."""

    def __init__(self, sandbox: "Sandbox", roots: Roots, has_jobs: Callable[[], bool]) -> None:
        self._sandbox, self._roots, self._has_jobs = sandbox, roots, has_jobs
        self._had_jobs = False
        self._known_starts = 0
        self._told_unseen: list[str] = []

    async def before(self, emit: Emit) -> None:
        """Look at what there is, and name what changed since the last look where a job, a hook or a server ran: the person's own work is theirs."""
        if self._had_others:
            await self._tell_news(emit, who=_BESIDE_JOB if self._had_job else _OTHERS)
        else:
            await self._look(emit)

    async def after(self, emit: Emit) -> None:
        """Name what appeared or changed since `before`."""
        await self._tell_news(emit, who=_COMMAND)

    async def around(
        self, work: Callable[[], Awaitable[_Value]], emit: Emit, *, who: str
    ) -> _Value:
        """Do what writes several files at once, and name the repositories that they make together. The files were judged one by one.

        Beside a job all are named: what it wrote meanwhile cannot be told from them.
        """
        await self.before(emit)
        try:
            return await work()
        finally:
            changes = await self._look(emit)
            told = [each for each in changes if each.is_repository or self._had_job]
            self._tell(told, emit, who=who)

    async def end_turn(self, emit: Emit) -> None:
        """Name what jobs, hooks and servers did since."""
        if self._had_others:
            await self.before(emit)

    @property
    def _had_job(self) -> bool:
        return self._had_jobs or self._has_jobs()

    @property
    def _had_others(self) -> bool:
        return self._had_job or self._sandbox.has_started_others(since=self._known_starts)

    def accept(self, tool: str, paths: Iterable[str]) -> None:
        """Take it that a file tool, whose change was judged, left files as they are: not beside a job, which may have written there since."""
        folder, files = self._roots.folder, self._sandbox.autorun_files
        if tool in _WRITING and not self._had_job:
            files.accept(os.path.realpath(folder / path) for path in paths)

    async def _tell_news(self, emit: Emit, *, who: str) -> None:
        self._known_starts = self._sandbox.started_others
        self._tell(await self._look(emit), emit, who=who)
        self._had_jobs = self._has_jobs()

    async def _look(self, emit: Emit) -> list[WatchedChange]:
        """Return what is new, and name each folder once that cannot be looked through."""
        files = self._sandbox.autorun_files
        changes = await asyncio.to_thread(lambda: files.look(self._sandbox.opened))
        told = self._told_unseen
        new = [each for each in files.unseen if not any(lies_in(each, one) for one in told)]
        if new:
            self._told_unseen += new
            emit(Noticed(level="warning", text=UNSEEN.format(names=self._named(new))))
        return changes

    def _tell(self, changes: Sequence[WatchedChange], emit: Emit, *, who: str) -> None:
        files = [change for change in changes if not change.is_repository]
        repositories = [change for change in changes if change.is_repository]
        for text, some in ((LEFT, files), (MADE, repositories)):
            if some:
                parts = (("new: ", True), ("changed: ", False))
                named = (
                    word + self._named(paths)
                    for word, is_new in parts
                    if (paths := [each.path for each in some if each.is_new is is_new])
                )
                emit(Noticed(level="warning", text=text.format(who=who, names="; ".join(named))))

    def _named(self, paths: Iterable[str]) -> str:
        """Return the paths as they are shown; of very many those that have the least of others of their name or in their folder."""
        shown = [self._roots.show(Path(path)) for path in paths]
        if len(shown) <= MOST_NAMED:
            return ", ".join(shown)
        count = Counter(part for each in shown for part in os.path.split(each))
        shown.sort(key=lambda each: max(count[part] for part in os.path.split(each)))
        return f"{', '.join(shown[:MOST_NAMED])} and {len(shown) - MOST_NAMED:,} more"
