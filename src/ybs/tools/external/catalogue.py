"""The external tools of a session: found, asked what they do, and asked again when the person wants it."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from ybs.config.review import Review
from ybs.config.schema import Tools
from ybs.core.errors import ToolError
from ybs.security.own_programs import IN_PROJECT
from ybs.tools.external.cache import Saying, SchemaCache
from ybs.tools.external.definition import BadDefinition, InputForm, defined, from_settings
from ybs.tools.external.finding import Candidate, candidates
from ybs.tools.external.program import Ran, Run, run
from ybs.tools.external.tool import ExternalTool
from ybs.tools.usable import problem_of
from ybs.tools.workspace import Workspace

#: How long a program may take to say what it does; it is asked once.
DESCRIBE_SECONDS = 5.0
#: How long the first request waits for those that were never asked.
PATIENCE_SECONDS = 1.0
#: Python code may describe several tools.
MOST_ANSWERED = 64_000
_AT_ONCE = 4


class Unusable(Struct, frozen=True):
    """A program that cannot be used as a tool, and why. `is_expected`: it was meant to be one."""

    shown: str
    why: str
    is_expected: bool = True


class Catalogue:
    """Finds the programs and keeps what is known of them. `tools` and `unusable` grow while programs are asked.

    `review` is what the person decided about the project. `cache_file` is None where nothing may be written.
    """

    def __init__(
        self, tools: Tools, workspace: Workspace, review: Review | None, cache_file: Path | None
    ) -> None:
        self._settings, self._workspace, self._review = tools, workspace, review
        self._cache = SchemaCache(cache_file)
        self.tools: Sequence[ExternalTool] = ()
        self.unusable: Sequence[Unusable] = ()
        self._asking: asyncio.Task[None] | None = None
        self._is_read = False

    @property
    def usable(self) -> list[ExternalTool]:
        """The tools without those that cannot be offered beside the others."""
        return [tool for tool, problem in self._judged() if not problem]

    @property
    def problems(self) -> list[Unusable]:
        """All that cannot be used, and why."""
        unfit = [
            Unusable(tool.program.shown, problem) for tool, problem in self._judged() if problem
        ]
        return [*self.unusable, *unfit]

    def _judged(self) -> Iterator[tuple[ExternalTool, str]]:
        taken = set[str]()
        for tool in self.tools:
            problem = problem_of(tool, taken)
            taken.add(tool.name)
            yield tool, problem

    async def load(self, patience_seconds: float = PATIENCE_SECONDS) -> None:
        """Find the tools, once. Programs that nobody has asked yet are asked now; the slow ones are not waited for."""
        if not self._is_read:
            self._is_read = True
            await self._find(again=False)
        if self._asking is not None:
            await asyncio.wait([self._asking], timeout=patience_seconds)

    async def reload(self) -> None:
        """Look again at everything, and ask those again that could not be used. What was there stays until it is done."""
        await self.aclose()
        self._is_read = True
        await self._find(again=True)
        if self._asking is not None:
            await self._asking

    async def aclose(self) -> None:
        """Stop asking."""
        if self._asking is not None:
            self._is_read = self._asking.done()
            self._asking.cancel()
            await asyncio.wait([self._asking])
            self._asking = None
            await asyncio.to_thread(
                self._cache.save
            )  # what was answered in time need not be asked again

    async def _find(self, *, again: bool) -> None:
        found = await asyncio.to_thread(self._looked_for, again=again)
        self._take(found)
        if unknown := [each for each in found if each.saying is None]:
            self._asking = asyncio.create_task(self._ask(found, unknown))

    def _looked_for(self, *, again: bool) -> "list[_Found]":
        """Return the candidates, with what is known of them without running anything."""
        found: list[_Found] = []
        for candidate in candidates(self._settings, self._workspace.roots, self._review):
            each = _Found(candidate)
            try:
                each.read(self._cache, again=again)
            except OSError as error:
                each.saying = Saying(problem=f"it cannot be read: {error.strerror or error}")
            found.append(each)
        return found

    async def _ask(self, found: "list[_Found]", unknown: "list[_Found]") -> None:
        room = asyncio.Semaphore(_AT_ONCE)

        async def ask(each: "_Found") -> None:
            async with room:
                each.saying = await self._answer_of(each)
            self._cache.put(each.key, each.saying)
            self._take(found)

        async with asyncio.TaskGroup() as tasks:
            for each in unknown:
                tasks.create_task(ask(each))
        await asyncio.to_thread(self._cache.save)

    async def _answer_of(self, found: "_Found") -> Saying:
        try:
            # It runs without network and with the project read-only: it may not know what it is asked.
            program = found.candidate.program
            entry = found.candidate.entry
            job = Run(
                program=program, words=("--schema",), seconds=DESCRIBE_SECONDS,
                in_project=entry is not None and entry.cwd == IN_PROJECT,
            )  # fmt: skip
            ran = await run(job, self._workspace)
        except (ToolError, OSError) as error:
            return Saying(problem=str(error))
        problem = _problem_of(ran)
        return Saying(problem=problem) if problem else Saying(answer=ran.answer or b"")

    def _take(self, found: "list[_Found]") -> None:
        """Offer those that are known by now, in the order in which they were found."""
        tools, unusable = list[ExternalTool](), list[Unusable]()
        for each in found:
            try:
                tools += each.tools(self._workspace, self._review) if each.saying else []
            except BadDefinition as error:
                candidate = each.candidate
                unusable.append(
                    Unusable(candidate.program.shown, str(error), candidate.is_expected)
                )
        self.tools, self.unusable = tools, unusable


class _Found:
    """A candidate, and what is known of what it says."""

    def __init__(self, candidate: Candidate) -> None:
        self.candidate, self.key = candidate, ""
        self.saying: Saying | None = None

    def read(self, cache: SchemaCache, *, again: bool) -> None:
        """Take what it says from where that needs no run of it. Raises OSError."""
        candidate, entry = self.candidate, self.candidate.entry
        if candidate.problem:
            self.saying = Saying(problem=candidate.problem)
            return
        if candidate.sidecar is not None:
            self.saying = Saying(answer=candidate.sidecar.read_bytes())
            return
        self.key = cache.key_of(candidate.program.path)
        if entry is not None and entry.description and entry.parameters:
            self.saying = Saying()  # the settings say all of it
            return
        known = cache.get(self.key)
        if known is not None and not (again and known.problem):
            self.saying = known

    def tools(self, workspace: Workspace, review: Review | None) -> list[ExternalTool]:
        """Return the tools that it is: one, or for Python code several. Raises BadDefinition."""
        candidate, entry, saying = self.candidate, self.candidate.entry, self.saying
        assert saying is not None  # noqa: S101 - it was read or asked before
        if candidate.problem or (saying.problem and entry is None):
            raise BadDefinition(saying.problem)
        program = candidate.program
        usual: InputForm = "argv" if candidate.sidecar is not None else "stdin"
        pieces = _pieces(saying.answer) if saying.answer else []
        definitions = [
            defined(piece, name=program.path.stem.replace("-", "_"), usual=usual)
            for piece in pieces
        ]
        if entry is not None:
            definitions = [from_settings(entry, definitions[0] if definitions else None)]
        elif program.path.is_relative_to(
            (workspace.roots.host.config_folder / "plugins").resolve()
        ):
            definitions = [replace(each, in_project=False) for each in definitions]
        return [ExternalTool(each, program, workspace, review) for each in definitions]


def _pieces(answer: bytes) -> list[bytes]:
    """Return the objects of an answer that is a list of them, or the answer."""
    try:
        return [bytes(each) for each in msgspec.json.decode(answer, type=list[Raw])]
    except (msgspec.DecodeError, RecursionError):
        return [answer]


def _problem_of(ran: Ran) -> str:
    if ran.timed_out:
        return f"it did not answer --schema within {DESCRIBE_SECONDS:g} s"
    if ran.exit_code:
        said = (ran.errors or ran.text).splitlines()
        return f"it answers --schema with {ran.how}" + (f": {said[-1][:200]}" if said else "")
    if ran.answer is None or len(ran.answer) > MOST_ANSWERED:
        return f"it answers --schema with more than {MOST_ANSWERED:,} bytes"
    if not ran.answer.strip():
        return "it answers --schema with nothing"
    return ""
