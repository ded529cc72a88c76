"""The terminal without cursor movements, colours or spinner: whole sentences, one line at a time.

For `TERM=dumb`, editors' shells and screen readers.
"""

import asyncio
import os
import signal
import sys
import termios
from collections.abc import Awaitable, Callable
from time import monotonic

from ybs import __version__
from ybs.core.errors import YbsError
from ybs.core.events import (
    AssistantSaid,
    Event,
    Noticed,
    RequestRetried,
    ToolFinished,
    ToolPrinted,
    ToolStarted,
    TurnFinished,
    UserSaid,
)
from ybs.core.ports import Answer, Question
from ybs.security.gate import put
from ybs.security.unicode import printable
from ybs.session.session import Outcome, Reply, Session
from ybs.ui.confirm import GUARD_SECONDS, NO_REASON, whole_body, wish
from ybs.ui.signs import ASCII, fit_encoding
from ybs.ui.steps import detail_lines
from ybs.ui.typed import FAILED, Typed, ending_of
from ybs.ui.words import (
    duration,
    fold,
    fold_table,
    one_line,
    reason_of,
    retry_words,
    short_folder,
    subject,
    usage_line,
)

#: Columns that sentences take; who reads a screen aloud does not care, and most screens have them.
WIDTH = 79
TWICE_SECONDS = 2.0
SIGNALS = {signal.SIGTERM: 143, signal.SIGHUP: 129}
INTERRUPTED = 130


class PlainTerminal:
    """Holds a session and reads lines; `clock` counts seconds."""

    def __init__(self, session: Session, *, clock: Callable[[], float] = monotonic) -> None:
        self.session, self._clock = session, clock
        self.lines = Lines(clock)
        self._about: dict[str, str] = {}
        self._typed = Typed("...")
        self._began_at = self._waited_seconds = 0.0
        self._interrupted_at = -TWICE_SECONDS
        self._code = 0
        self._main: asyncio.Task[int] | None = None

    async def run(self, prompt: str = "") -> int:
        """Talk until the person leaves; return the exit code."""
        self.session.confirm = self.ask
        self.session.subscribe(self._tell_event)
        self._main = asyncio.current_task()
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        for number, code in SIGNALS.items():
            loop.add_signal_handler(number, self._leave, code)
        status = self.session.status()
        self._tell(f"ybs {__version__}: {status.provider} {status.model}, mode {status.mode},")
        mark = "incognito, " if status.incognito else ""
        self._tell(f"{mark}{status.sandbox}, in {short_folder(status.folder)}. /help for more.")
        for warning in self.session.warnings:
            self._tell(fold_line(f"Warning: {warning}"))
        try:
            with self.lines:
                return await self._talk(prompt)
        except asyncio.CancelledError:
            return self._code

    async def ask(self, question: Question) -> Answer:
        """Ask the person for a word; lines typed before the question are not an answer."""
        status = self.session.status()
        self._tell(f"\nQuestion: {wish(question, status.folder, status.sandbox)}:")
        self._tell(whole_body(question))
        if question.reason:
            self._tell(f"Asked because {printable(question.reason)}.")
        for warning in question.warnings:
            self._tell(fold_line(f"Warning: {printable(warning)}"))
        if question.grant:
            self._tell(f"always would allow, in this session: {printable(question.grant)}")
        words = "yes, no, always" if question.grant else "yes, no"
        self._write(f"Answer {words} or no because ...: ")
        asked_at = self._clock()
        try:
            text = await self.lines.read_answer()
        finally:
            self._waited_seconds += self._clock() - asked_at
        return as_answer(text or "", may_always=bool(question.grant))

    async def _talk(self, prompt: str) -> int:
        if prompt:
            self._tell(f"> {printable(prompt)}")
            await self._take(self.session.send(prompt))  # never a command
        while True:
            self._write("\n> ")
            line = await self.lines.read()
            if line is None:
                self._tell("")
                return 0
            if line.strip() and await self._take(self.session.handle(line.strip())):
                return 0

    async def _take(self, turn: Awaitable[Reply | Outcome]) -> bool:
        self._began_at, self._waited_seconds = self._clock(), 0.0
        try:
            done = await turn
        except YbsError as error:
            self._tell(fold_line(f"Error: {error}"))
            return False
        if isinstance(done, Reply):
            if done.text:
                text = printable(f"Error: {done.text}" if done.is_error else done.text)
                self._tell("\n".join(fold_table(text, WIDTH)))
            return done.wants_quit
        return False

    def _tell_event(self, event: Event) -> None:
        if isinstance(event, ToolStarted):
            self._about[event.id] = subject(bytes(event.arguments))
        elif isinstance(event, ToolPrinted) and event.id not in self._about:
            self._write_lines(self._typed.feed(event.text))
        elif text := self._sentence(event):
            self._tell(text)

    def _sentence(self, event: Event) -> str:
        match event:
            case AssistantSaid(content=said):
                return f"\n{fold_prose(printable(said).strip())}\n" if said.strip() else ""
            case ToolFinished():
                return self._call_sentence(event)
            case RequestRetried() | Noticed():
                return self._note_sentence(event)
            case UserSaid(origin="shell"):
                return self._ending_sentence(event.content)
            case TurnFinished():
                return self._end_sentence(event)
            case _:
                return ""

    def _note_sentence(self, event: RequestRetried | Noticed) -> str:
        if isinstance(event, Noticed):
            return fold_line(f"{event.level.capitalize()}: {one_line(event.text)}")
        retries = self.session.config.agent.retry_attempts
        return fold_line(_sentence(retry_words(event, reason_of(event.message), retries)))

    def _call_sentence(self, event: ToolFinished) -> str:
        about = self._about.pop(event.id, "")
        if not self.session.config.ui.show_tool_calls:
            return ""
        state = "done" if event.success else "refused" if event.is_refused else "failed"
        said = one_line(event.summary)
        if about and said.startswith(about):
            said = said.removeprefix(about).strip(" :")
        call = f"{printable(event.name)} {about}".strip()
        end = f", {said}" if said and said != state else ""
        lines = [] if said == state else detail_lines(event, WIDTH - 2, ASCII)
        first = fold_line(f"{call}: {state}{end.removesuffix('.')}.")
        return "\n".join([first, *(f"  {line}" for line in lines)])

    def _ending_sentence(self, content: str) -> str:
        self._write_lines(self._typed.finish())
        ending, _ = ending_of(content)
        if not ending or content.startswith(FAILED):
            return fold_line(_sentence(ending))
        return _sentence(f"{ending}, after {duration(self._clock() - self._began_at)}")

    def _end_sentence(self, event: TurnFinished) -> str:
        self._write_lines(self._typed.finish())
        ends = {"done": "", "interrupted": "Stopped.", "error": f"Error: {event.message}"}
        sentences = [fold_line(printable(ends.get(event.reason, event.message)))]
        if self.session.config.ui.show_token_usage and event.usage.input_tokens:
            seconds = max(0.0, event.duration_seconds - self._waited_seconds)
            used = usage_line(event.usage, seconds, "").replace("  ", ", ")
            sentences.append(f"({used})")
        return "\n".join(filter(None, sentences))

    def _interrupt(self) -> None:
        now = self._clock()
        is_second = now - self._interrupted_at < TWICE_SECONDS
        self._interrupted_at = now
        if is_second:
            self._leave(INTERRUPTED if self.session.is_busy else 0)
        elif not self.session.cancel():
            self._write("\nPress Ctrl-C again to leave.\n> ")

    def _leave(self, code: int) -> None:
        self._code = code
        if self._main is not None:
            self._main.cancel()

    def _write_lines(self, lines: list[str]) -> None:
        if lines:
            self._tell("\n".join(lines))

    def _tell(self, text: str) -> None:
        self._write(text + "\n")

    def _write(self, text: str) -> None:
        put(fit_encoding(printable(text), sys.stdout.encoding), sys.stdout, end="")


def fold_line(text: str) -> str:
    """Break prose at the width of the plain screen."""
    return "\n".join(fold(text, WIDTH))


def fold_prose(markup: str) -> str:
    """Break the prose in Markdown; code stays as it is."""
    lines: list[str] = []
    is_code = False
    for line in markup.split("\n"):
        is_fence = line.lstrip().startswith(("```", "~~~"))
        is_code = is_code != is_fence
        lines.append(line if is_fence or is_code or line.startswith("    ") else fold_line(line))
    return "\n".join(lines)


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:].removesuffix('.')}." if words else ""


class Lines:
    """Lines of standard input, read without blocking; the terminal itself edits them."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._waiting: asyncio.Queue[tuple[float, str]] = asyncio.Queue()
        self._rest = b""
        self._number = sys.stdin.fileno()
        self._has_ended = False

    def __enter__(self) -> "Lines":
        asyncio.get_running_loop().add_reader(self._number, self._receive)
        return self

    def __exit__(self, *_error: object) -> None:
        asyncio.get_running_loop().remove_reader(self._number)

    async def read(self) -> str | None:
        """Wait for a line; None at the end of input."""
        return (await self._next())[1]

    async def read_answer(self) -> str | None:
        """Wait for a line that came after the question could be read. Earlier ones are dropped."""
        forget_typed(self._number)
        self._rest = b""
        while not self._waiting.empty():
            self._waiting.get_nowait()
        counts_from = self._clock() + GUARD_SECONDS
        while True:
            came_at, line = await self._next()
            if line is None or came_at >= counts_from:
                return line
            counts_from = came_at + GUARD_SECONDS

    async def _next(self) -> tuple[float, str | None]:
        if self._has_ended and self._waiting.empty():
            return self._clock(), None
        came_at, line = await self._waiting.get()
        return came_at, None if self._has_ended and not line else line

    def _receive(self) -> None:
        data = os.read(self._number, 4096)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._waiting.put_nowait((self._clock(), line.decode(errors="replace")))
        if not data:
            self._has_ended = True
            asyncio.get_running_loop().remove_reader(self._number)
            self._waiting.put_nowait((self._clock(), ""))  # wakes whoever waits


def forget_typed(number: int) -> None:
    """Drop what was typed and not read yet."""
    try:
        termios.tcflush(number, termios.TCIFLUSH)
    except termios.error:  # not a terminal
        return


def as_answer(text: str, *, may_always: bool) -> Answer:
    """Read an answer; everything that is not clearly a yes is a no."""
    words = text.strip()
    match words.lower():
        case "y" | "yes":
            return Answer(is_allowed=True)
        case "a" | "always" if may_always:
            return Answer(is_allowed=True, is_for_session=True)
        case _:
            reason = words.partition("because")[2].strip(" :,")
            return Answer(is_allowed=False, reason=reason or NO_REASON)
