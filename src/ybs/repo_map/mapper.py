"""Makes repo maps of one project in a process that is started before it is needed, for all sessions of the project."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from ybs.core.errors import ToolError
from ybs.core.folder_names import OTHERS
from ybs.core.leases import Lease, Leases
from ybs.core.time_limits import time_limit
from ybs.repo_map.protocol import DEFAULT_TOKENS, MapAnswer, MapRequest
from ybs.repo_map.worker import MapChild, MapCrashed, MapFailed, command, environment

#: So long the tool waits, and so long a process may work when nobody waits for it.
TOOL_SECONDS, PATIENCE_SECONDS = 30.0, 300.0
#: A process that has answered may put its index away for so long.
_GRACE_SECONDS = 5.0
#: For a project with fewer files no process is started.
FEWEST_FILES = 8
_MOST_FOLDERS = 64


class Mapper:
    """Makes maps of one project for a session. `tokens` is the size of each.

    The process is shared with other sessions that take theirs from the same `leases` and have the same job.
    """

    def __init__(
        self,
        job: MapRequest,
        tokens: int,
        *,
        environ: Mapping[str, str],
        command: Sequence[str] = (),
        leases: Leases | None = None,
    ) -> None:
        self.job, self.tokens = job, tokens
        self._environ, self._command = environ, tuple(command)
        self._leases = Leases() if leases is None else leases
        #: Why there was no map the last time; empty where there was one.
        self.problem = ""
        self._lease: Lease[_Process] | None = None
        self._tasks: set[asyncio.Task[MapAnswer | None]] = set()
        self._is_closed = False

    @property
    def is_ready(self) -> bool:
        """Whether a process has been prepared and is ready for the question."""
        return self._lease is not None and self._lease.thing.is_ready

    @property
    def pids(self) -> frozenset[int]:
        """The numbers of the processes that there are."""
        return self._lease.thing.pids if self._lease is not None else frozenset()

    def resize(self, tokens: int) -> None:
        """Make maps of another size from now on."""
        self.tokens = tokens

    def prepare(self) -> None:
        """Start a process that waits for the question. Returns at once; a failure is told by `ask`."""
        if not self._is_closed:
            with suppress(MapFailed):
                self._process.expected.add(self)
                self._process.prepare()

    @property
    def _process(self) -> "_Process":
        if self._lease is None or self._lease.is_stale:
            job, environ, command = self.job, self._environ, self._command
            make = partial(_Process, job, environ=environ, command=command)
            self._lease = self._leases.take((Mapper, job, command), make)
        return self._lease.thing

    def begin(self, query: str) -> "asyncio.Task[MapAnswer | None]":
        """Ask while other work goes on."""
        task = asyncio.ensure_future(self.ask(query, wait_seconds=PATIENCE_SECONDS))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def ask(
        self, query: str, tokens: int = 0, *, wait_seconds: float = TOOL_SECONDS
    ) -> MapAnswer | None:
        """Return the map for the words, or None, and then `problem` says why."""
        if self._is_closed:
            self.problem = "the session has ended"
            return None
        try:
            self._process.expected.discard(self)
            async with time_limit(wait_seconds):
                answer = await self._process.ask(query, tokens or self.tokens or DEFAULT_TOKENS)
        except (MapFailed, TimeoutError) as error:
            self.problem = str(error) or f"it took longer than {wait_seconds:g} s"
            return None
        self.problem = ""
        return answer

    async def text_for(self, query: str) -> str:
        """Return the text of the map for a query of the model. Raises ToolError."""
        answer = await self.ask(query)
        if answer is None:
            raise ToolError(
                f"There is no map: {self.problem}. Use list_files and search_files instead."
            )
        return answer.text or "There are no source files in the project yet."

    async def aclose(self) -> None:
        """Ask no more; the last session ends every process."""
        self._is_closed = True
        for task in self._tasks:
            task.cancel()
        while self._tasks:
            await asyncio.wait(self._tasks)
        if self._lease is not None:
            self._lease.thing.expected.discard(self)
            if self._lease.release():
                await self._lease.thing.aclose()


class _Process:
    """The process that maps one project, one question after the other, as long as any waits or is expected; a new one for those that come later."""

    def __init__(
        self, job: MapRequest, *, environ: Mapping[str, str], command: Sequence[str]
    ) -> None:
        self._job, self._environ, self._command = job, environ, command
        self._current: MapChild | None = None
        self._children: set[MapChild] = set()
        self._ends: set[asyncio.Task[None]] = set()
        self._one_at_a_time, self._waiting = asyncio.Lock(), 0
        #: Those that had it prepared, and have not asked yet.
        self.expected: set[Mapper] = set()

    @property
    def is_ready(self) -> bool:
        is_free = not self._one_at_a_time.locked()
        return self._current is not None and is_free and self._current.is_ready

    @property
    def pids(self) -> frozenset[int]:
        return frozenset(child.pid for child in self._children)

    def prepare(self) -> MapChild:
        """Return the process, which is started where there is none. Raises MapFailed."""
        if self._current is None:
            words = self._command or command()
            self._current = MapChild(words, environment(self._environ), self._job)
            self._children.add(self._current)
        return self._current

    async def ask(self, query: str, tokens: int) -> MapAnswer:
        """Wait for one's turn, and for the answer. Raises MapFailed."""
        self._waiting += 1
        try:
            async with self._one_at_a_time:
                try:
                    return await self._answer(query, tokens)
                except MapCrashed:
                    if not self._job.parses:
                        raise
                    self._job = replace(self._job, parses=False)  # from now on
                    return await self._answer(query, tokens)
        finally:
            self._waiting -= 1

    async def _answer(self, query: str, tokens: int) -> MapAnswer:
        child, grace_seconds = self.prepare(), 0.0
        try:
            answer = await child.ask(query, tokens)
            grace_seconds = _GRACE_SECONDS
            return answer
        finally:
            if not (grace_seconds and (self._waiting > 1 or self.expected)):
                self._let_go(child, grace_seconds)

    def _let_go(self, child: MapChild, grace_seconds: float) -> None:
        self._current = None
        if not grace_seconds:
            child.kill()
        task = asyncio.ensure_future(self._end(child, grace_seconds))
        self._ends.add(task)
        task.add_done_callback(self._ends.discard)

    async def _end(self, child: MapChild, grace_seconds: float) -> None:
        await child.end(grace_seconds=grace_seconds)
        self._children.discard(child)

    async def aclose(self) -> None:
        """End every process."""
        if self._current is not None:
            self._let_go(self._current, 0)
        for child in self._children:
            child.kill()
        while self._ends:
            await asyncio.wait(self._ends)


def is_small(folder: Path) -> bool:
    """Return whether one listing shows all files of a folder, so that no process need be started to map them.

    Hidden files do not count, nor do folders of dependencies and builds. The walk ends as soon as it is known.
    """
    waiting, files, folders = [str(folder)], 0, 0
    while waiting:
        below, count = _listed(waiting.pop())
        waiting += below
        files, folders = files + count, folders + 1
        if files >= FEWEST_FILES or folders + len(waiting) > _MOST_FOLDERS:
            return False
    return True


def _listed(folder: str) -> tuple[list[str], int]:
    """Return the folders in a folder that may hold sources, and how many files are in it."""
    try:
        with os.scandir(folder) as entries:
            shown = [each for each in entries if not each.name.startswith(".")]
    except OSError:
        return [], 0
    folders = [each for each in shown if each.is_dir(follow_symlinks=False)]
    below = [each.path for each in folders if each.name not in OTHERS]
    return below, len(shown) - len(folders)
