"""The output of a run without a terminal: text, one JSON object, or one JSON line per event."""

import os
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from select import select
from stat import S_ISCHR
from typing import Any, Literal, Protocol, TypeAlias, assert_never

import msgspec
from msgspec import Struct

from ybs.commands.figures import cost
from ybs.core import events
from ybs.core.envelope import MAIN, Envelope
from ybs.core.errors import YbsError
from ybs.core.events import Event
from ybs.core.messages import Usage
from ybs.core.wording import plural
from ybs.frontends.headless.advice import advised
from ybs.frontends.layout import clipped, in_columns
from ybs.frontends.tty import columns
from ybs.security.gate import ask_line, put, put_json, put_utf8
from ybs.transcripts.line import told

Format: TypeAlias = Literal["text", "json", "stream-json"]
#: What the line about the end of a tool call shows of what came of it, in characters.
MAX_SAID = 120


class Result(Struct, frozen=True, kw_only=True, tag="result"):
    """How a run ended. `message` says why, when it is not done; `session` names the session.

    `warnings` are what the person was told on the way, such as files that a command left and that run later. `structured_output` is the
    answer as a JSON value, where a schema was given and it fits.
    """

    result: str
    reason: str
    is_error: bool
    exit_code: int
    message: str = ""
    steps: int = 0
    usage: dict[str, int] = {}
    cost_usd: float | None = None
    cost_is_partial: bool = False
    duration_seconds: float = 0.0
    refusals: int = 0
    model: str = ""
    provider: str = ""
    session: str = ""
    warnings: tuple[str, ...] = ()
    structured_output: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class RunOutput(Protocol):
    """Takes the events of a run and, last, its result."""

    def event(self, envelope: Envelope) -> None:
        """Take an event."""
        ...

    def result(self, result: Result) -> None:
        """Take the end of the run."""
        ...


class Pipe:
    """Standard output, which whoever reads it may close at any time, or which may be a full disk.

    What `when_closed` was given is called once when that happens; from then on nothing is written. A reader that has gone
    is no trouble; everything else is told.
    """

    def __init__(self) -> None:
        self.is_closed = False
        self._on_close: Callable[[], object] = lambda: None

    def when_closed(self, act: Callable[[], object]) -> None:
        """Have this called, and nothing else, when it happens."""
        self._on_close = act

    def write_text(self, text: str) -> None:
        """Write plain text through the gate, and flush."""
        self._write(lambda: put_utf8(text, sys.stdout))

    def write_json(self, data: bytes) -> None:
        """Write JSON through the gate, and flush."""
        self._write(lambda: put_json(data, sys.stdout))

    def _write(self, write: Callable[[], None]) -> None:
        if self.is_closed:
            return
        try:
            write()
        except (OSError, ValueError) as error:  # ValueError: the stream object itself is closed
            self.is_closed = True
            if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
                tell(f"ybs: cannot write: {error.strerror}")
            self._on_close()


class TextOutput:
    """The answer on standard output; on standard error what the person has to know."""

    def __init__(self, pipe: Pipe, *, is_verbose: bool = False) -> None:
        self._pipe, self._is_verbose = pipe, is_verbose
        self._thinking: list[str] = []

    def event(self, envelope: Envelope) -> None:
        """Write a line for what matters; with `-v` for every step."""
        if isinstance(envelope.event, events.ThinkingStreamed):
            if envelope.is_main:
                self._thinking.append(envelope.event.text)
            return
        if self._is_verbose and envelope.is_main:
            self._tell_thinking()
        if text := text_of(envelope, is_verbose=self._is_verbose):
            tell(text)

    def result(self, result: Result) -> None:
        """Write the answer, and why the run ended if it is not done."""
        if result.result:
            self._pipe.write_text(result.result.rstrip("\n") + "\n")
        if result.message:
            tell(f"ybs: {result.message}")
        if self._is_verbose:
            tell(usage_line(result))

    def _tell_thinking(self) -> None:
        text = "".join(self._thinking).strip()
        self._thinking.clear()
        if text:
            tell(f"thinking: {text}")


class JsonOutput:
    """One JSON object at the end; warnings on standard error."""

    def __init__(self, pipe: Pipe, *, is_verbose: bool = False) -> None:
        self._pipe, self._is_verbose = pipe, is_verbose

    def event(self, envelope: Envelope) -> None:
        """Write a line for what matters; with `-v` for every step."""
        if text := text_of(envelope, is_verbose=self._is_verbose):
            tell(text)

    def result(self, result: Result) -> None:
        """Write the object."""
        self._pipe.write_json(msgspec.json.encode(result) + b"\n")


class StreamOutput:
    """One JSON line per event, with its session and its agent, written at once; the last one is the result."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe, self._session = pipe, ""

    def event(self, envelope: Envelope) -> None:
        """Write the event's line. Where the session stands is no event of the run: its parts are told by others."""
        if isinstance(envelope.event, events.SessionStarted):
            self._session = envelope.event.session
        if not isinstance(envelope.event, events.StateChanged):
            self._write(envelope.event, envelope.agent, envelope.started_by)

    def result(self, result: Result) -> None:
        """Write the result's line."""
        self._write(result)

    def _write(self, record: Event | Result, agent: str = MAIN, started_by: str = "") -> None:
        now, session = datetime.now(UTC), self._session
        line = told(record, session=session, at=now, agent=agent, started_by=started_by)
        self._pipe.write_json(line)


def make_output(output_format: Format, pipe: Pipe, *, is_verbose: bool) -> RunOutput:
    """Make the output that the person chose."""
    match output_format:
        case "text":
            return TextOutput(pipe, is_verbose=is_verbose)
        case "json":
            return JsonOutput(pipe, is_verbose=is_verbose)
        case "stream-json":
            return StreamOutput(pipe)


def text_of(envelope: Envelope, *, is_verbose: bool) -> str:
    """Return what a person reads of an event; each line of a sub-agent begins with its name."""
    text = line_of(envelope.event, is_verbose=is_verbose)
    if envelope.is_main or not text:
        return text
    return "\n".join(f"[{envelope.agent}] {line}" for line in text.split("\n"))


def line_of(event: Event, *, is_verbose: bool) -> str:
    """Return one line that says what the person has to know of an event, and more when asked for; else nothing."""
    match event:
        case events.Noticed(level="warning" | "error"):
            return f"{event.level}: {noticed(event)}"
        case events.RequestRetried():
            what = event.message.split("\n", 1)[0]  # the advice comes with the last failure
            return f"{what.removesuffix('.')}; trying again in {event.wait_seconds:.0f} s"
        case events.ToolFinished(is_refused=True):
            # Not folded: it may hold a rule that has to be typed as it stands.
            output = event.output.removeprefix("Refused: ")
            return f"refused: {event.name}: {advised(output, event.remedies, separator=' ')}"
        case _:
            return step_line(event) if is_verbose else ""


def noticed(event: events.Noticed) -> str:
    """Return a notice with what the person can do about it, in a line."""
    return advised(event.text, event.remedies, separator=" ")


def step_line(event: Event) -> str:
    """Return one line that says what the agent does."""
    match event:
        case events.Noticed():
            return noticed(event)
        case events.ToolStarted():
            arguments = bytes(event.arguments).decode(errors="replace")
            return f"> {event.name} {one_line(arguments, len(arguments))}"
        case events.ToolFinished():
            state = "done" if event.success else "failed"
            said = one_line(event.summary or event.output, MAX_SAID)
            first = f"  {event.name} {state} in {event.duration_seconds:.1f} s: {said}"
            output = event.output.strip("\n")
            is_said = " ".join(output.split()) == said
            lines = () if is_said or not output else output.split("\n")
            return "\n".join([first, *(f"    {line}".rstrip() for line in lines)])
        case (
            events.SessionStarted()
            | events.SystemPrompted()
            | events.UserSaid()
            | events.AssistantSaid()
            | events.RequestStarted()
            | events.RequestRetried()
            | events.PromptRead()
            | events.TextStreamed()
            | events.ThinkingStreamed()
            | events.ToolCallStreamed()
            | events.ToolPrinted()
            | events.ConfirmationAsked()
            | events.ConfirmationAnswered()
            | events.TurnFinished()
            | events.SessionEnded()
            | events.StateChanged()
            | events.Compacted()
            | events.Rewound()
            | events.Replaced()
            | events.Titled()
            | events.FilesChanged()
            | events.FilesRestored()
        ):
            return ""  # the answer, or of no use to a script
        case _:
            assert_never(event)


def one_line(text: str, max_chars: int = 300) -> str:
    """Fold white space and cut at the end."""
    folded = " ".join(text.split())
    return folded if len(folded) <= max_chars else folded[: max_chars - 3] + "..."


def usage_line(result: Result) -> str:
    """Return what the run used."""
    usage = Usage(**result.usage, cost_usd=result.cost_usd, cost_is_partial=result.cost_is_partial)
    parts = (
        plural(result.steps, "step"),
        f"{usage.input_tokens:,} tokens in",
        f"{usage.output_tokens:,} out",
        cost(usage),
        f"{result.duration_seconds:.1f} s",
    )
    return ", ".join(filter(None, parts))


def counts(usage: Usage) -> dict[str, int]:
    """List the token counts, zeros included, so that a script finds every key."""
    named: dict[str, Any] = msgspec.structs.asdict(usage)
    named.pop("cost_usd")
    named.pop("cost_is_partial")
    return named


def agrees(question: str, refusal: str = "") -> bool:
    """Ask the person for a yes. With a `refusal`, say that where there is no terminal to ask on."""
    if refusal and not (sys.stdin.isatty() and sys.stdout.isatty()):
        tell(f"ybs: {refusal}")
        return False
    try:
        return ask_line(question).strip().lower() in ("y", "yes")
    except EOFError:
        return False


def tell(line: str) -> None:
    """Write a line to standard error; a closed one is nobody's concern."""
    try:
        put(line, sys.stderr)
    except (OSError, ValueError):
        return


def warn(warnings: Sequence[str]) -> None:
    """Write warnings to standard error."""
    for warning in warnings:
        tell(f"ybs: {warning}")


def write(line: str) -> None:
    """Print a line, with nothing in it that acts on a terminal."""
    put(line, sys.stdout)


def write_json(data: Any) -> None:
    """Print indented JSON, with nothing in it that acts on a terminal."""
    put_json(msgspec.json.format(msgspec.json.encode(data), indent=2) + b"\n", sys.stdout)


#: A last column has so many characters on every terminal.
_NARROWEST = 20


def write_table(rows: Sequence[Sequence[str]]) -> None:
    """Print rows in columns; the last column is as long as it is."""
    for line in in_columns(rows):
        write(line)


def write_cut(rows: Sequence[Sequence[str]]) -> None:
    """Print rows in columns, a line for each: of the last column what fits the terminal."""
    before = max(map(len, in_columns([[*row[:-1], "|"] for row in rows])), default=1) - 1
    room = max(columns() - before, _NARROWEST)
    write_table([[*row[:-1], clipped(row[-1], room)] for row in rows])


#: What may be piped in. Larger input fits no model's window; it belongs in a file that tools can search.
MAX_BYTES = 1_000_000
#: After this long without a byte the person is told what ybs waits for.
PATIENCE_SECONDS = 3.0


class UsageError(YbsError):
    """The command was called in a way that makes no sense (exit code 2)."""


def whole_prompt(argument: str | None, piped: str) -> str:
    """Join the argument and the piped text. Raises UsageError when there is neither."""
    words = (argument or "").strip()
    if not words and not piped.strip():
        raise UsageError("there is no prompt: give one as an argument, or pipe one in")
    if not piped.strip():
        return words
    if not words:
        return piped.strip("\n")
    body = piped.rstrip("\n").replace("</stdin>", "&lt;/stdin>")
    return f"{words}\n\n<stdin>\n{body}\n</stdin>"


def read_piped() -> str:
    """Read what was piped in; a terminal is not read. Raises UsageError for binary or too much input."""
    try:
        number = sys.stdin.fileno()
        if S_ISCHR(os.fstat(number).st_mode):  # a terminal, or /dev/null
            return ""
    except (AttributeError, OSError, ValueError):  # no standard input at all
        return ""
    if not select([number], [], [], PATIENCE_SECONDS)[0]:
        tell("ybs: waiting for standard input to end (`< /dev/null` for none)")
    return decoded(_read_all(number))


def decoded(data: bytes) -> str:
    """Decode piped bytes. Raises UsageError when they are not text, or too many."""
    if len(data) > MAX_BYTES:
        raise UsageError(
            f"standard input is larger than {MAX_BYTES // 1000:,} kB; put it in a file and name the file"
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = f"byte {error.start:,}"
        raise UsageError(f"standard input is not UTF-8 text ({place}); convert it first") from None
    if "\0" in text:
        raise UsageError("standard input is binary; put it in a file and name the file")
    return text.replace("\r\n", "\n")


def _read_all(number: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while size <= MAX_BYTES and (piece := os.read(number, 65_536)):
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces)
