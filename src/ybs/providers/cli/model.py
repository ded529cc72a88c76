"""CliModel: a Model behind the program of another agent, which answers with its own login and without its own tools."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, suppress
from fnmatch import fnmatchcase
from pathlib import Path
from shutil import rmtree
from subprocess import PIPE
from tempfile import NamedTemporaryFile, mkdtemp
from typing import Final

from msgspec.structs import replace

from ybs.config import private_file
from ybs.config.host import Host, worked_in
from ybs.config.schema import Config
from ybs.config.sections import CliAgent
from ybs.core.errors import AuthError, ConfigError, ModelError, ProviderDown, RateLimited
from ybs.core.events import AssistantSaid, Event, Noticed
from ybs.core.messages import AssistantMessage, Message
from ybs.core.ports import Request
from ybs.core.remedies import Remedy
from ybs.core.time_limits import time_limit
from ybs.providers.catalog import facts_of, window_of
from ybs.providers.cli import prompt
from ybs.providers.cli.formats import READERS, AnswerReader, Complaint
from ybs.providers.facts import stated
from ybs.providers.http import failures
from ybs.providers.http.failures import NotServed, Site, clean
from ybs.providers.registry import ProviderModel
from ybs.providers.text_calls import TextCalls
from ybs.providers.wire.assemble import Assembly
from ybs.security.launcher import environ_away, persons_program, start_in_loop
from ybs.security.loop_process import LoopProcess
from ybs.security.paths.steps import is_away
from ybs.security.sandbox.launch import Launch
from ybs.security.sandbox.scratch import HeldFolder

_CHUNK_BYTES: Final = 65_536
LONGEST_LINE_BYTES: Final = 16 * 1024 * 1024
#: So much of what it writes to its standard error is kept: the end.
_STDERR_BYTES: Final = 4_096
#: A program that has said its last word may close its files for so long, in seconds.
_ENDING_SECONDS: Final = 2.0


class TooLong(Exception):
    """A line is longer than any answer."""


class _Program:
    """One run of a program. `run` gives its lines; afterwards `stderr` and `exit_code` say how it went."""

    def __init__(self, argv: Sequence[str], folder: Path, environ: Mapping[str, str]) -> None:
        self._argv, self._folder, self._environ = argv, folder, environ
        self._process: LoopProcess | None = None
        self._stderr = bytearray()
        self.exit_code: int | None = None

    @property
    def stderr(self) -> str:
        """The end of what it wrote to its standard error."""
        return bytes(self._stderr).decode("utf-8", "replace").strip()

    async def run(self, words: bytes, *, silence_seconds: float) -> AsyncGenerator[bytes, None]:
        """Start it with `words` as its standard input and yield its lines, the last one with or without an end.

        Raises OSError where it cannot be started, TimeoutError where it is silent for so long, and TooLong. Closing the generator kills it and all that it started.
        """
        launch = Launch(self._argv, self._environ)
        process = self._process = await start_in_loop(
            launch, folder=self._folder, stdin=PIPE, stdout=PIPE, stderr=PIPE
        )
        process.give(words)
        listening = asyncio.create_task(self._listen())
        try:
            async with aclosing(self._lines(process.stdout, silence_seconds)) as lines:
                async for line in lines:
                    yield line
            await self.let_end()
        finally:
            await self._end(listening)

    async def _lines(
        self, stdout: asyncio.StreamReader | None, seconds: float
    ) -> AsyncGenerator[bytes, None]:
        assert stdout is not None  # noqa: S101 - a pipe was asked for
        rest = bytearray()
        while True:
            async with time_limit(seconds):
                chunk = await stdout.read(_CHUNK_BYTES)
            if not chunk:
                break
            rest += chunk
            if len(rest) > LONGEST_LINE_BYTES:
                raise TooLong
            if b"\n" in chunk:
                *lines, rest = rest.split(b"\n")
                for line in lines:
                    yield bytes(line)
        if rest:
            yield bytes(rest)

    async def _listen(self) -> None:
        assert self._process is not None  # noqa: S101 - started
        assert self._process.stderr is not None  # noqa: S101 - a pipe was asked for
        while chunk := await self._process.stderr.read(_CHUNK_BYTES):
            self._stderr = (self._stderr + chunk)[-_STDERR_BYTES:]

    async def let_end(self) -> None:
        """Give a program that has said its last word the time to write down what it keeps."""
        assert self._process is not None  # noqa: S101 - started
        with suppress(TimeoutError):
            async with time_limit(_ENDING_SECONDS):
                await self._process.wait()

    async def _end(self, listening: "asyncio.Task[None]") -> None:
        """Kill the whole group: what the program started must not go on after it."""
        assert self._process is not None  # noqa: S101 - started
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self.exit_code = await self._process.wait()
        # What it started and put into another group may hold the pipes: they are not waited for.
        await asyncio.wait([listening], timeout=0.1)
        listening.cancel()
        self._process.close()


#: What every program may see: where things are, how to show them, and how to reach the network.
_USUAL: Final = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_*", "TZ", "TMPDIR", "XDG_*", "TERM"),
    *("*_proxy", "*_PROXY", "SSL_CERT_*", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE"),
)
#: Else Claude Code asks its model for a title of the session before it answers, with all that was said, and puts the file
#: in the place of each `@path` in that, wherever it lies: the words of a page would send `~/.netrc`.
_QUIET: Final = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1",
}
#: A program that gives its answer in one piece may think about it for so long, in seconds.
_ONE_PIECE_SECONDS: Final = 600.0
_ALIASES: Final = ("haiku", "sonnet", "opus")
#: In what programs say where nobody is logged in.
_LOGIN_SIGNS: Final = (
    "authentication",
    "auth method",
    "/login",
    "not logged in",
    "api key",
    "401 unauthorized",
)
_CHANGE_PROVIDER: Final = Remedy("change_provider")


class CliModel(ProviderModel):
    """A model behind a program; tools are told and called as text.

    Each request is one run of the program, in an empty folder of its own. Claude Code keeps the conversation as a session,
    so that a request which only adds to it is sent as that; nothing is kept in incognito.
    """

    def __init__(
        self, host: Host, config: Config, provider: str, agent: CliAgent, model: str, advice: str
    ) -> None:
        self.provider, self._agent, self._model, self._advice = provider, agent, model, advice
        self._config, self._host, self._environ = config, host, _visible(host, agent)
        self._calls = TextCalls()
        self._folder: Path | None = None
        self._private = HeldFolder(host.scratch_folder, in_memory=config.incognito.enabled)
        self._resumable = _Resumable()
        self._keeps = agent.output == "claude" and not config.incognito.enabled
        self._has_told = False

    @property
    def name(self) -> str:
        """The model's name, or the program's where none is chosen."""
        return self._model or self._program

    @property
    def _program(self) -> str:
        return Path(self._agent.command[0]).name

    @property
    def _longest_silence(self) -> float:
        """The seconds for which the program may print nothing."""
        is_one_piece = self._agent.output in ("codex", "text")
        return max(self._config.llm.timeout_seconds, _ONE_PIECE_SECONDS if is_one_piece else 0)

    @property
    def window(self) -> int:
        """The tokens that a request and its answer may have together."""
        own = stated(self._config, self.provider, self.name).window
        window = own or self._agent.window or window_of(facts_of(self.name), is_local=False)
        return min(window, self._config.context.max_tokens or window)

    @property
    def max_tokens(self) -> int:
        """The part of the window that is kept free for an answer: a quarter of it at most."""
        return max(1, min(self._config.llm.max_tokens, self.window // 4))

    async def list_models(self) -> list[str]:
        """List the names that Claude Code has for the newest models; of other programs the one in use."""
        return list(_ALIASES) if self._agent.output == "claude" else [self.name]

    async def aclose(self) -> None:
        """Remove the folders."""
        self._private.remove()
        if self._folder is not None:
            rmtree(self._folder, ignore_errors=True)
            self._folder = None

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Have the program answer a request. See `core.ports.Model`."""
        if not self._has_told:
            self._has_told = True
            where = "runs outside the sandbox, in an empty folder of its own and with its own login"
            yield Noticed(level="info", text=f"{self._program} {where}.")
        kept = _Session()
        stream = self._answer(request, kept)
        if request.tools:
            stream = self._calls.read(stream, request)
        async with aclosing(stream) as events:
            async for event in events:
                if isinstance(event, AssistantSaid):
                    self._resumable.keep(kept.name, request, event.message)
                yield event

    async def _answer(self, request: Request, kept: "_Session") -> AsyncGenerator[Event, None]:
        """Answer, at first in the session that the program keeps of the conversation."""
        session, newer = self._resumable.rest_of(request) if self._keeps else ("", ())
        has_output = False
        if session:
            try:
                async with aclosing(self._exchange(request, newer, session, kept)) as events:
                    async for event in events:
                        has_output = True
                        yield event
                return
            except ModelError:
                if has_output or kept.name:
                    raise  # the session is there, so it was something else
        async with aclosing(self._exchange(request, request.messages, "", kept)) as events:
            async for event in events:
                yield event

    async def _exchange(
        self, request: Request, messages: Sequence[Message], session: str, kept: "_Session"
    ) -> AsyncGenerator[Event, None]:
        """Run the program once."""
        written = self._calls.written(request, self.window) if request.tools else request
        examples = written.messages[: len(written.messages) - len(request.messages)]
        if not session:
            messages = (*examples, *messages)
        reader = READERS[self._agent.output]()
        draft = Assembly(self.name, self.provider, max_tokens=self.max_tokens)
        place, private = self._folders()
        # A file and not a descriptor: launchers, as npm's, pass none on to the program that they start.
        with NamedTemporaryFile(dir=private, prefix="system-", suffix=".md") as system:
            system.write(written.system.encode(errors="replace"))
            system.flush()
            argv, takes_system = self._argv(system.name, session)
            environ = environ_away(self._environ)
            program = _Program(argv, place, environ)
            words = self._words("" if takes_system else written.system, messages)
            try:
                async with aclosing(self._read(program, words, reader, draft)) as events:
                    async for event in events:
                        yield event
            finally:
                kept.name = reader.session
        for event in draft.close_text():
            yield event
        message = draft.message()
        usage = replace(message.usage, cost_usd=reader.cost_usd)
        yield AssistantSaid.of(replace(message, usage=usage))

    async def _read(
        self,
        program: _Program,
        words: bytes,
        reader: AnswerReader,
        draft: Assembly,
    ) -> AsyncGenerator[Event, None]:
        """Read the program's lines into the draft. Raises ModelError where no whole answer came of it."""
        silence = self._longest_silence
        try:
            lines = program.run(words, silence_seconds=silence)
            async with aclosing(lines):
                async for line in lines:
                    for event in reader.read(line, draft):
                        yield event
                    if reader.is_over:
                        await program.let_end()
                        return
        except (OSError, Complaint, TooLong, ValueError) as error:
            if not draft.has_ended or isinstance(error, Complaint):
                raise self._error_of(error, silence, program) from error
        if program.exit_code == 0:
            reader.close(draft)
        if not draft.has_ended:
            raise self._failure(Complaint(reader.trouble), program)

    def _argv(self, file: str, session: str) -> tuple[list[str], bool]:
        """Return the command line, and whether the program reads the system prompt from `file`."""
        argv = [
            each.replace("{system_file}", file).replace("{model}", self._model)
            for each in self._agent.command
        ]
        found = persons_program(argv[0], environ=self._host.environ)
        argv[0] = found or argv[0]  # one without a path is not started
        if self._agent.output == "claude":
            argv += ["--resume", session] if session else []
            argv += [] if self._keeps else ["--no-session-persistence"]
        return argv, any("{system_file}" in each for each in self._agent.command)

    def _words(self, system: str, messages: Sequence[Message]) -> bytes:
        if self._agent.output == "claude":
            return prompt.as_json(messages)
        return prompt.as_text(system, messages).encode(errors="replace")

    def _folders(self) -> tuple[Path, str]:
        """Return where the program starts, and where what is written for it lies. Raises ProviderDown."""
        try:
            if self._folder is None:
                self._folder = Path(mkdtemp(dir=_made_folder(self._host)))
            return self._folder, self._private.path
        except (ConfigError, OSError) as error:
            raise ProviderDown(f"{self._program} has no folder to start in: {error}") from error

    def _absent(self, error: OSError) -> ModelError:
        if isinstance(error, FileNotFoundError | PermissionError):
            how = (
                self._advice
                or f"install `{self._program}`, or correct `cli_agents` in the settings"
            )
            return NotServed(
                f"The program {self._program} of {self.provider} is not installed.",
                remedies=(Remedy("do", how), _CHANGE_PROVIDER),
            )
        return ProviderDown(f"The program {self._program} cannot be started: {error}.")

    def _failure(self, complaint: Complaint, program: _Program) -> ModelError:
        """Say what went wrong in the program's own words, and what it wrote to its standard error."""
        said = clean(complaint.words or program.stderr)
        lower = f"{complaint.kind} {said}".lower()
        if any(sign in lower for sign in _LOGIN_SIGNS):
            advice = Remedy("do", f"start `{self._program}` in a terminal and log in there")
            return AuthError(f"{self._program} is not logged in: {said}", remedies=(advice,))
        if complaint.status:
            body = said.encode()
            return failures.of_status(self._site, complaint.status, {}, body)
        if "rate_limit" in lower or "usage limit" in lower or "quota" in lower:
            return RateLimited(f"{self._program} may not ask more now: {said}", remedies=(_CHANGE_PROVIDER,))  # fmt: skip
        if "billing" in lower or "credit balance" in lower:
            return NotServed(f"{self._program}: the account has no credit left: {said}", remedies=(_CHANGE_PROVIDER,))  # fmt: skip
        code = "" if program.exit_code in (0, None) else f" (exit code {program.exit_code})"
        return ProviderDown(
            f"{self._program} gave no whole answer{code}{f': {said}' if said else '.'}",
            remedies=(Remedy("try_again"), _CHANGE_PROVIDER),
        )

    def _error_of(self, error: Exception, seconds: float, program: _Program) -> ModelError:
        match error:
            case Complaint():
                return self._failure(error, program)
            case TimeoutError():
                why = f"nothing came for {seconds:g} s, so it was ended"
            case OSError():
                return self._absent(error)
            case TooLong():
                why = "a line of its answer is longer than 16 MB"
            case _:
                why = "a line of its answer is not whole"
        said = f" {clean(program.stderr)}" if program.stderr else ""
        return ProviderDown(
            f"{self._program} gave no whole answer: {why}.{said}",
            remedies=(Remedy("try_again"), _CHANGE_PROVIDER),
        )

    @property
    def _site(self) -> Site:
        return Site(
            provider=self.provider,
            endpoint=f"program://{self._program}",
            host=self._program,
            model=self.name,
            is_unnamed=True,
        )


class _Session:
    """The session in which the program answered one request; no name where it keeps none."""

    def __init__(self) -> None:
        self.name = ""


class _Resumable:
    """The session that the program keeps, and the conversation that stands in it."""

    def __init__(self) -> None:
        self._session = ""
        self._request: Request | None = None
        self._answer: AssistantMessage | None = None

    def keep(self, session: str, request: Request, answer: AssistantMessage) -> None:
        """Note that this answer to this request stands in the session."""
        self._request = Request(request.system, tuple(request.messages), tuple(request.tools))
        self._session, self._answer = session, answer

    def rest_of(self, request: Request) -> tuple[str, Sequence[Message]]:
        """Return the session and what is new to it; no session where the request does not go on from it."""
        before, answer = self._request, self._answer
        if not self._session or before is None or answer is None:
            return "", ()
        count = len(before.messages)
        same = (request.system, tuple(request.tools)) == (before.system, before.tools)
        said, *newer = request.messages[count:] or (None,)
        goes_on = same and newer and tuple(request.messages[:count]) == before.messages
        if not (goes_on and isinstance(said, AssistantMessage) and _is_same(said, answer)):
            return "", ()
        has_others = any(isinstance(each, AssistantMessage) for each in newer)
        return ("", ()) if has_others else (self._session, newer)


def _is_same(said: AssistantMessage, answer: AssistantMessage) -> bool:
    """Return whether a message of the conversation is that answer; the ids of its calls may be others."""
    asked = [call.question for call in said.calls]
    return said.text == answer.text and asked == [call.question for call in answer.calls]


def _visible(host: Host, agent: CliAgent) -> dict[str, str]:
    """Return the variables that the program may see."""
    patterns = (*_USUAL, *agent.environment)
    found = host.environ.items()
    seen = {name: value for name, value in found if any(fnmatchcase(name, p) for p in patterns)}
    return {**seen, **_QUIET} if agent.output == "claude" else seen


def _made_folder(host: Host) -> Path:
    """Make the folder below which each program starts in one of its own, and return it without links. Raises ConfigError and OSError.

    It lies in no project: programs look upward from where they start. It is not `/`, as for other programs of the person's: this one may read
    what lies in its folder unasked.
    """
    folder = host.state_folder / "start/cli"
    private_file.make_folder(folder)
    if not is_away(str(folder), worked_in):
        raise ConfigError(
            f"ybs's own folder {host.short(str(host.state_folder))} lies in a project, and a program that starts there "
            "would take code from it. Set YBS_HOME or XDG_STATE_HOME to another folder."
        )
    return folder.resolve()
