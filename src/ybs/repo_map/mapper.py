"""Makes repo maps of one project, each in a process of its own that is started before it is needed."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from ybs.core.errors import ToolError
from ybs.core.folder_names import OTHERS
from ybs.repo_map.protocol import DEFAULT_TOKENS, MapAnswer, MapRequest
from ybs.repo_map.worker import MapChild, MapCrashed, MapFailed, command, environment

if TYPE_CHECKING:
    from collections.abc import Coroutine


_T = TypeVar("_T")

#: So long the tool waits, and so long a process may work when nobody waits for it.
TOOL_SECONDS, PATIENCE_SECONDS = 30.0, 300.0
#: A process that has answered may put its index away for so long.
_GRACE_SECONDS = 5.0
#: For a project with fewer files no process is started.
FEWEST_FILES = 8
_MOST_FOLDERS = 64


class Mapper:
    """Makes maps of one project, each in a process of its own. `tokens` is the size of each."""

    def __init__(
        self,
        job: MapRequest,
        tokens: int,
        *,
        environ: Mapping[str, str],
        command: Sequence[str] | None = None,
    ) -> None:
        self.job, self.tokens = job, tokens
        self._environ, self._command = environ, command
        #: Why there was no map the last time; empty where there was one.
        self.problem = ""
        self._prepared: MapChild | None = None
        self._children: set[MapChild] = set()
        self._tasks: set[asyncio.Task[object]] = set()
        self._closing = asyncio.Event()

    @property
    def is_ready(self) -> bool:
        """Whether a process has been prepared and is ready for the question."""
        return self._prepared is not None and self._prepared.is_ready

    @property
    def pids(self) -> frozenset[int]:
        """The numbers of the processes that there are."""
        return frozenset(child.pid for child in self._children)

    def prepare(self) -> None:
        """Start a process that waits for the question. Returns at once; a failure is told by `ask`."""
        if self._prepared is not None or self._closing.is_set():
            return
        try:
            started = MapChild(
                self._command or command(),
                environment(self._environ, os.fsdecode(self.job.folder)),
                self.job,
            )
        except MapFailed as error:
            self.problem = str(error)
            return
        self._children.add(started)
        self._prepared = started

    def begin(self, query: str) -> asyncio.Task[MapAnswer | None]:
        """Ask while other work goes on."""
        return self._do(self.ask(query, wait_seconds=PATIENCE_SECONDS))

    async def ask(
        self, query: str, tokens: int = 0, *, wait_seconds: float = TOOL_SECONDS
    ) -> MapAnswer | None:
        """Return the map for the words, or None, and then `problem` says why."""
        self.prepare()
        child, self._prepared = self._prepared, None
        if child is None:
            self.problem = self.problem or "the session has ended"
            return None
        grace_seconds = 0.0
        try:
            async with asyncio.timeout(wait_seconds):
                answer = await child.ask(query, tokens or self.tokens or DEFAULT_TOKENS)
        except MapCrashed as error:
            self.problem = str(error)
            if not self.job.parses:
                return None
            self.job = replace(self.job, parses=False)  # from now on
            return await self.ask(query, tokens, wait_seconds=wait_seconds)
        except (MapFailed, TimeoutError) as error:
            self.problem = str(error) or f"it took longer than {wait_seconds:g} s"
            return None
        else:
            self.problem, grace_seconds = "", _GRACE_SECONDS
            return answer
        finally:
            if not grace_seconds:
                child.kill()
            self._do(self._end(child, grace_seconds))

    async def text_for(self, query: str) -> str:
        """Return the text of the map for a query of the model. Raises ToolError."""
        answer = await self.ask(query)
        if answer is None:
            raise ToolError(
                f"There is no map: {self.problem}. Use list_files and search_files instead."
            )
        return answer.text or "There are no source files in the project yet."

    async def aclose(self) -> None:
        """End every process, and do not start one any more."""
        self._closing.set()
        if self._prepared is not None:
            self._do(self._end(self._prepared, 0))
            self._prepared = None
        for child in self._children:
            child.kill()
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _end(self, child: MapChild, grace_seconds: float) -> None:
        await child.end(grace_seconds=grace_seconds)
        self._children.discard(child)

    def _do(self, work: "Coroutine[Any, Any, _T]") -> "asyncio.Task[_T]":
        """Do something while other work goes on; `aclose` waits for it."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


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
