"""The external tools of a session: found, asked what they do, and asked again when the person wants it."""

import asyncio
from collections.abc import Callable, Iterator, Sequence, Set
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from ybs.config import private_file
from ybs.config.document import visible
from ybs.config.review import PluginFolder, Review, VariableUse
from ybs.config.schema import ToolsSettings
from ybs.config.tool_definition import (
    BadDefinition,
    Definition,
    defined,
    from_settings,
    usual_name,
)
from ybs.core.cutting import shortened
from ybs.core.decoding import from_json
from ybs.core.errors import ConfigError, Refused, ToolError
from ybs.core.events import Emit, Noticed
from ybs.core.ports import Effect, Preview, ToolOutput, ToolSpec
from ybs.security.policy.case import Subject
from ybs.tools.external.finding import RANKS, ToolCandidate, candidates, names_of, own_names
from ybs.tools.external.program import Program, ProgramResult, ProgramRun, run
from ybs.tools.foreign import BehindChecks
from ybs.tools.toolbox import LocalToolbox
from ybs.tools.usable import problem_of
from ybs.tools.workspace import Workspace

DEFAULT_SECONDS = 60
MOST_SECONDS = 600


class ProgramTool:
    """A program as a tool. Where it declares no needs, and the sandbox holds it to that, it only reads."""

    def __init__(
        self, definition: Definition, program: Program, workspace: Workspace, review: Review | None
    ) -> None:
        self.definition, self.program = definition, program
        self.name, self.description = definition.name, definition.description
        self.parameters = definition.parameters
        self.seconds = min(definition.timeout_seconds or DEFAULT_SECONDS, MOST_SECONDS)
        self.longest_seconds = self.seconds + 15.0
        self._workspace, self._review = workspace, review

    @property
    def effect(self) -> Effect:
        """What it may do, by what it declares and by what holds it to that."""
        is_held = not self.definition.needs.words and self._workspace.shells.starter.holds_reading()
        return "read" if is_held else "execute"

    def preview(self, arguments: Any) -> Preview:
        """Show the program, its arguments and its needs."""
        self._workspace.shells.starter.check()
        shown = msgspec.json.format(msgspec.json.encode(arguments), indent=2).decode()
        needs = self.definition.needs.words
        lines = [shown] * (shown != "{}") + [f"It needs {needs}."] * bool(needs)
        return Preview(title=f"Run the tool {self.program.shown}", body="\n".join(lines))

    def subject(self, arguments: Any) -> Subject:
        """Give its needs: "always" stands for every call as long as they are these, and the program the same."""
        del arguments
        needs = self.definition.needs.words
        asks = f"it needs {needs}" if needs else ""
        detail, is_unshown = f"with {needs}" if needs else "", self.definition.is_unshown
        identity = str([self.program.in_project or self.program.path, self.definition.cwd])
        return Subject(
            is_alike=True, asks=asks, detail=detail, identity=identity, is_unshown=is_unshown
        )

    async def run(self, arguments: Any, print_live: Callable[[str], None]) -> ToolOutput:
        """Run the program. Raises ToolError where it fails, with what it said."""
        del print_live  # what it prints is its answer
        self._check_trust()
        given = msgspec.json.encode(arguments)
        words, data = self._passed(given)
        try:
            needs = self.definition.needs
            job = ProgramRun(
                program=self.program, words=words, given=data, needs=needs, seconds=self.seconds,
                cwd=self.definition.cwd,
            )  # fmt: skip
            ran = await run(job, self._workspace)
        except OSError as error:
            raise ToolError(
                f"{self.name} could not be started: {error.strerror or error}"
            ) from error
        return self._output(ran)

    def _passed(self, given: bytes) -> tuple[list[str], bytes]:
        if self.program.is_python:
            return [self.name], given
        return ([given.decode()], b"") if self.definition.input == "argv" else ([], given)

    def _check_trust(self) -> None:
        path = self.program.in_project
        if not path:
            return
        from ybs.trust.decision import is_folder_unchanged

        if self._review is None or not is_folder_unchanged(self._review, path):
            raise Refused(
                f"{path} is not the program that the person trusts, or a file beside it is another one, "
                "so it is not run until they trust the project again."
            )

    def _output(self, ran: ProgramResult) -> ToolOutput:
        if ran.timed_out:
            raise ToolError(_with(f"{self.name} was stopped after {self.seconds} s", ran))
        if ran.exit_code:
            raise ToolError(_with(f"{self.name} failed with {ran.how}", ran))
        answer = _answer_in(ran)
        if answer is None:
            return ToolOutput(output=ran.text or "It answered nothing.", summary=ran.how)
        if answer.get("success") is False:
            raise ToolError(_text_of(answer.get("error") or answer) or f"{self.name} failed.")
        said = {key: value for key, value in answer.items() if key != "success"}
        text = _text_of(said["result"] if said.keys() == {"result"} else said)
        return ToolOutput(output=text or "It answered nothing.", display=answer)


def _answer_in(ran: ProgramResult) -> dict[str, Any] | None:
    """Return the JSON object that a program wrote; None for anything else, which is read as text."""
    try:
        return None if ran.answer is None else msgspec.json.decode(ran.answer, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _text_of(value: Any) -> str:
    return value.strip() if isinstance(value, str) else msgspec.json.encode(value).decode()


def _with(what: str, ran: ProgramResult) -> str:
    """Add what a program said to what became of it."""
    said = [part for part in (ran.text, ran.errors and f"[stderr]\n{ran.errors}") if part]
    why = [f"({ran.why_apart})"] if ran.why_apart else []
    return "\n".join([f"{what}.", *said, *why])


#: Another one means that programs are asked anew.
VERSION = 3
_MOST_ENTRIES = 1_000


class Saying(Struct, frozen=True, kw_only=True):
    """What a program answered, or why that is of no use."""

    answer: bytes = b""
    problem: str = ""


class _Kept(Struct, frozen=True, kw_only=True):
    sayings: dict[str, Saying] = {}
    version: int = VERSION


class SchemaCache:
    """A file of ybs's cache; read once, written when something was added. Without a path it is in memory only."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._kept: _Kept | None = None
        self._has_news = False

    def get(self, key: str) -> Saying | None:
        """Return the cached definition of the program in this state."""
        return self._read().sayings.get(key)

    def put(self, key: str, saying: Saying) -> None:
        """Remember it."""
        self._read().sayings[key] = saying
        self._has_news = True

    def save(self) -> None:
        """Write what was added; a folder that cannot be written costs nothing but the next start's time."""
        if self._file is None or not self._has_news:
            return
        newest = _Kept(sayings=dict(list(self._read().sayings.items())[-_MOST_ENTRIES:]))
        try:
            private_file.replace(self._file, msgspec.json.encode(newest), waits=False)
        except (OSError, ConfigError):
            return
        self._has_news = False

    def _read(self) -> _Kept:
        if self._kept is None:
            try:
                data = private_file.read(self._file) if self._file is not None else None
                kept = from_json(data, _Kept) if data is not None else None
            except (OSError, ConfigError, msgspec.DecodeError, UnicodeDecodeError):
                kept = None
            self._kept = kept if kept is not None and kept.version == VERSION else _Kept()
        return self._kept


def key_of(path: Path) -> str:
    """Return what stands for a program as it is: nobody changes its content without changing what the system notes of it. Raises OSError."""
    status = path.stat()
    return f"{path} {status.st_size} {status.st_ctime_ns} {status.st_ino}"


#: How long a program may take to say what it does; it is asked once.
DESCRIBE_SECONDS = 5.0
#: How long the first request waits for those that were never asked.
PATIENCE_SECONDS = 1.0
#: Python code may describe several tools.
MOST_ANSWERED = 64_000
_AT_ONCE = 4


_NAME_OF = (
    "is the name of a tool of {}, which stays whether or not it can be used; rename one of them"
)


class UnusableProgram(Struct, frozen=True):
    """A program that cannot be used as a tool, and why. `is_expected`: it was meant to be one."""

    shown: str
    why: str
    is_expected: bool = True


class Catalogue:
    """Finds the programs and keeps what is known of them. `tools` and `unusable` grow while programs are asked.

    `review` is what the person decided about the project, `plugins` what they agreed to. `cache_file` is None where nothing may be written.
    """

    def __init__(
        self,
        tools: ToolsSettings,
        workspace: Workspace,
        review: Review | None,
        cache_file: Path | None,
        plugins: Sequence[PluginFolder] = (),
    ) -> None:
        self._settings, self._workspace, self._review = tools, workspace, review
        self._plugins = plugins
        self._cache = SchemaCache(cache_file)
        self.tools: Sequence[ProgramTool] = ()
        self.unusable: Sequence[UnusableProgram] = ()
        self._own_names: frozenset[str] = frozenset()
        self._asking: asyncio.Task[None] | None = None
        self._is_read = False

    @property
    def usable(self) -> list[ProgramTool]:
        """The tools without those that cannot be offered beside the others."""
        return [tool for tool, problem in self._checked() if not problem]

    @property
    def problems(self) -> list[UnusableProgram]:
        """All that cannot be used, and why."""
        unfit = [
            UnusableProgram(tool.program.shown, problem)
            for tool, problem in self._checked()
            if problem
        ]
        return [*self.unusable, *unfit]

    def _checked(self) -> Iterator[tuple[ProgramTool, str]]:
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
        for candidate in candidates(
            self._settings, self._workspace.roots, self._review, self._plugins
        ):
            each = _Found(candidate)
            try:
                each.read(self._cache, again=again)
            except OSError as error:
                each.saying = Saying(problem=f"it cannot be read: {error.strerror or error}")
            found.append(each)
        own = own_names(self._settings, self._workspace.roots)
        self._own_names = frozenset(own)
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
            job = ProgramRun(
                program=program, words=("--schema",), seconds=DESCRIBE_SECONDS,
                cwd=(entry and entry.cwd) or "",
            )  # fmt: skip
            ran = await run(job, self._workspace)
        except (ToolError, OSError) as error:
            return Saying(problem=str(error))
        problem = _problem_of(ran)
        return Saying(problem=problem) if problem else Saying(answer=ran.answer or b"")

    def _take(self, found: "list[_Found]") -> None:
        """Offer those that are known by now, in the order in which they were found; each name is that of who is first to have it, used or not."""
        tools, unusable = list[ProgramTool](), list[UnusableProgram]()
        taken = dict.fromkeys(self._own_names, RANKS[0])
        for each in found:
            candidate, said = each.candidate, list[ProgramTool]()
            shown, whose = candidate.program.shown, candidate.whose
            try:
                said = each.tools(self._workspace, self._review) if each.saying else []
            except BadDefinition as error:
                unusable.append(UnusableProgram(shown, str(error), candidate.is_expected))
            for name in {tool.name for tool in said} or each.names:
                taken.setdefault(name, whose)
            tools += [tool for tool in said if taken[tool.name] == whose]
            unusable += [
                UnusableProgram(shown, f"{tool.name!r} {_NAME_OF.format(taken[tool.name])}")
                for tool in said
                if taken[tool.name] != whose
            ]
        self.tools, self.unusable = tools, unusable


class _Found:
    """A candidate, and what is known of what it says."""

    def __init__(self, candidate: ToolCandidate) -> None:
        self.candidate, self.key = candidate, ""
        self.saying: Saying | None = None
        #: What its tools may be called, as far as can be told without running it.
        self.names: Set[str] = frozenset()

    def read(self, cache: SchemaCache, *, again: bool) -> None:
        """Take what it says from where that needs no run of it. Raises OSError."""
        candidate, entry = self.candidate, self.candidate.entry
        if candidate.whose != RANKS[-1]:
            self.names = frozenset(names_of(str(candidate.program.path)))
        if candidate.problem:
            self.saying = Saying(problem=candidate.problem)
            return
        if candidate.described is not None:
            self.saying = Saying()
            return
        self.key = key_of(candidate.program.path)
        if entry is not None and entry.description and entry.parameters:
            self.saying = Saying()  # the settings say all of it
            return
        known = cache.get(self.key)
        if known is not None and not (again and known.problem):
            self.saying = known

    def tools(self, workspace: Workspace, review: Review | None) -> list[ProgramTool]:
        """Return the tools that it is: one, or for Python code several. Raises BadDefinition."""
        entry, program = self.candidate.entry, self.candidate.program
        definitions = self._definitions()
        if entry is not None:
            definitions = [from_settings(entry, definitions[0] if definitions else None)]
        elif self.candidate.plugin:
            definitions = [replace(each, cwd="") for each in definitions]
        for each in definitions:
            if each.name.startswith("mcp__"):
                raise BadDefinition("a name that begins with mcp__ is one of a server's tool")
            if review and (why := review.why_withheld(self._uses(each, review))):
                raise BadDefinition(why)
        return [
            ProgramTool(
                replace(each, is_unshown=self._is_unshown(each)), program, workspace, review
            )
            for each in definitions
        ]

    def _definitions(self) -> list[Definition]:
        """Return what the file beside it says, or it itself. Raises BadDefinition."""
        candidate, saying = self.candidate, self.saying
        assert saying is not None  # noqa: S101 - it was read or asked before
        if candidate.problem or (saying.problem and candidate.entry is None):
            raise BadDefinition(saying.problem)
        if isinstance(candidate.described, str):
            raise BadDefinition(candidate.described)
        if candidate.described is not None:
            return [candidate.described]
        name = usual_name(str(candidate.program.path))
        pieces = _chunks(saying.answer) if saying.answer else []
        return [defined(piece, name=name, usual="stdin") for piece in pieces]

    def _is_unshown(self, definition: Definition) -> bool:
        """Return whether it is a project's, and the question about trust showed no tool of this name and these needs."""
        candidate, program, entry = self.candidate, self.candidate.program, self.candidate.entry
        if not program.is_projects or (entry is not None and entry.needs == definition.needs):
            return False
        # Of what stands beside a program elsewhere nothing was shown; an entry shows its name itself.
        shown = candidate.described if program.in_project else None
        if not isinstance(shown, Definition) or shown.needs != definition.needs:
            return True
        return entry is None and shown.name != definition.name

    def _uses(self, definition: Definition, review: Review) -> list[VariableUse]:
        """Return the variables that a project's program may have only by a grant; what the person's own settings give it needs none, but for keys."""
        program, entry, needs = self.candidate.program, self.candidate.entry, definition.needs
        if not program.is_projects:
            return []
        is_own = entry is not None and entry.needs == needs
        names = review.keys.intersection(needs.environment) if is_own else needs.environment
        place = visible(program.in_project or program.shown)
        return [VariableUse(name=name, server="", place=place) for name in names]


def _chunks(answer: bytes) -> list[bytes]:
    """Return the objects of an answer that is a list of them, or the answer."""
    try:
        return [bytes(each) for each in msgspec.json.decode(answer, type=list[Raw])]
    except (msgspec.DecodeError, RecursionError):
        return [answer]


def _problem_of(ran: ProgramResult) -> str:
    if ran.timed_out:
        return f"it did not answer --schema within {DESCRIBE_SECONDS:g} s"
    if ran.exit_code:
        said = (ran.errors or ran.text).splitlines()
        return f"it answers --schema with {ran.how}" + (
            f": {shortened(said[-1], 200)}" if said else ""
        )
    if ran.answer is None or len(ran.answer) > MOST_ANSWERED:
        return f"it answers --schema with more than {MOST_ANSWERED:,} bytes"
    if not ran.answer.strip():
        return "it answers --schema with nothing"
    return ""


class ExternalToolbox(BehindChecks):
    """The tools of a catalogue. `local` is empty and runs the calls; `is_short` offers them as to a small model."""

    def __init__(
        self, catalogue: Catalogue, local: LocalToolbox, *, is_short: bool = False
    ) -> None:
        super().__init__(local)
        self._catalogue, self._is_short = catalogue, is_short
        self._offered: Sequence[object] = ()
        self._told = set[str]()
        self._emit: Emit | None = None

    async def open(self, emit: Emit) -> None:
        """Find the tools, and say which of those that the person has put there cannot be used."""
        self._emit = emit
        await self._local.open(emit)
        await self._catalogue.load()
        self.specs()

    async def aclose(self) -> None:
        """Stop asking programs what they do."""
        self._emit = None
        await self._catalogue.aclose()

    def specs(self) -> Sequence[ToolSpec]:
        """Return the tools that are known by now."""
        tools = self._catalogue.tools
        if tools is not self._offered:
            self._offered = tools
            self._local.offer((), foreign=tools, is_short=self._is_short)
        self._tell()
        return self._local.specs()

    def _tell(self) -> None:
        if self._emit is None:
            return
        for each in self._catalogue.unusable:
            text = f"The tool {each.shown} cannot be used: {each.why}."
            if each.is_expected and text not in self._told:
                self._told.add(text)
                self._emit(Noticed(level="warning", text=text))
