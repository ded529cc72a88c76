"""Draws the events of a session: each finished thing once, as lines that scroll away; the rest in `Live`."""

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, TypeAlias, assert_never

from msgspec import Struct
from msgspec.structs import replace

from ybs.config.schema import Ui
from ybs.core.events import (
    AssistantSaid,
    ConfirmationAnswered,
    ConfirmationAsked,
    Event,
    Noticed,
    RequestRetried,
    RequestStarted,
    SessionEnded,
    SessionStarted,
    SystemPrompted,
    TextStreamed,
    ThinkingStreamed,
    ToolCallStreamed,
    ToolFinished,
    ToolPrinted,
    ToolStarted,
    TurnFinished,
    UserSaid,
)
from ybs.security.unicode import printable
from ybs.ui.blocks import Blocks
from ybs.ui.live import MAX_OUTPUT, Live, RunningCall
from ybs.ui.prose import prose_lines
from ybs.ui.signs import Paint, Signs
from ybs.ui.steps import detail, diff, diff_of, step_line
from ybs.ui.typed import FAILED, Typed, ending_of
from ybs.ui.words import (
    duration,
    fold,
    fold_table,
    one_line,
    reason_of,
    retry_words,
    shorten,
    subject,
    usage_line,
    verb,
)

Kind: TypeAlias = Literal["", "prompt", "text", "step", "question"]
CUT_SHORT = {
    "length": "the answer was cut off at the longest that is allowed (llm.max_tokens)",
    "refusal": "the model declined to answer",
}


class Canvas(Struct):
    """Where things are drawn: `put` takes whole lines, `width` tells the columns there are now."""

    put: Callable[[str], None]
    width: Callable[[], int]
    paint: Paint
    signs: Signs


class Renderer:
    """A sink of events. Blank lines stand between things of different kinds."""

    def __init__(self, canvas: Canvas, live: Live, settings: Ui, *, retries: int = 0) -> None:
        self._canvas, self._live, self._settings = canvas, live, settings
        self._retries, self._retry_reason = retries, ""
        self._blocks = Blocks()
        self._last: Kind = ""
        self._asked: set[str] = set()
        self._has_streamed = False
        self._typed = Typed(canvas.signs.more)
        self._thinking_since = 0.0

    def __call__(self, event: Event) -> None:
        """Draw an event."""
        match event:
            case TextStreamed() | ThinkingStreamed() | ToolCallStreamed() | AssistantSaid():
                self._draw_answer(event)
            case ToolStarted() | ToolPrinted() | ToolFinished():
                self._draw_call(event)
            case RequestStarted() | RequestRetried() | Noticed() | TurnFinished():
                self._draw_progress(event)
            case UserSaid():
                self._end_typed(event)
            case ConfirmationAsked() | ConfirmationAnswered():
                self._pause_call(event)
            case SessionStarted() | SystemPrompted() | SessionEnded():
                pass
            case _:
                assert_never(event)

    @property
    def is_gap_due(self) -> bool:
        """Tell whether passing lines should stand apart from what was drawn last."""
        is_apart = self._last in ("text", "prompt", "question")
        return is_apart or bool(self._last and self._live.open_block)

    def put(self, kind: Kind, text: str) -> None:
        """Draw lines, with a blank line before them where they are something else, or stand alone."""
        if self._last and (kind != self._last or kind in ("text", "question")):
            text = "\n" + text
        self._last = kind
        self._canvas.put(text + "\n")

    def note(self, text: str, level: Literal["info", "warning", "error"] = "info") -> None:
        """Draw a line from ybs itself: dim, or with a sign when it matters."""
        paint, signs = self._canvas.paint, self._canvas.signs
        first, *rest = fold(printable(text).strip(), self._canvas.width() - 3)
        match level:
            case "info":
                start, draw = "  ", paint.dim
            case "warning":
                start, draw = f"{paint.warn('!')} ", str
            case "error":
                start, draw = f"{paint.bad(signs.failed)} ", str
        self.put("step", "\n".join([start + draw(first), *(f"  {draw(line)}" for line in rest)]))

    def say(self, text: str) -> None:
        """Draw the plain lines of a command's answer."""
        lines = fold_table(printable(text).strip("\n"), self._canvas.width() - 1)
        self.put("text", "\n".join(lines))

    def echo(self, text: str) -> None:
        """Draw what the person sent."""
        paint, signs = self._canvas.paint, self._canvas.signs
        first, *rest = printable(text).strip("\n").split("\n")
        lines = [f"{paint.accent(signs.prompt)} {first}", *(f"  {line}" for line in rest)]
        self.put("prompt", "\n".join(lines))

    def flush(self) -> None:
        """Draw what is left of the open block."""
        self._draw_blocks(self._blocks.finish())
        self._live.open_block = ""

    def _draw_answer(
        self, event: TextStreamed | ThinkingStreamed | ToolCallStreamed | AssistantSaid
    ) -> None:
        if not isinstance(event, ThinkingStreamed):
            self._end_thinking()
        match event:
            case TextStreamed():
                self._stream(event.text)
            case ThinkingStreamed():
                self._think(event.text)
            case ToolCallStreamed():
                self._live.activity = f"writing a call of {verb(event.name)}"
                self._live.streamed_characters += len(event.text)
            case AssistantSaid():
                self._end_answer(event)

    def _stream(self, text: str) -> None:
        self._has_streamed = True
        self._live.activity = "answering"
        if self._settings.stream_responses:
            self._draw_blocks(self._blocks.feed(text))
            self._live.open_block = self._blocks.rest

    def _end_answer(self, event: AssistantSaid) -> None:
        if not self._has_streamed or not self._settings.stream_responses:
            self._draw_blocks(self._blocks.feed(event.content))
        self._has_streamed = False
        self.flush()
        if reason := CUT_SHORT.get(event.stop_reason):
            self.note(reason, "warning")

    def _draw_blocks(self, blocks: Iterable[str]) -> None:
        for block in blocks:
            lines = prose_lines(block, self._canvas.width() - 1, self._canvas.paint)
            self.put("text", "\n".join(lines))

    def _think(self, text: str) -> None:
        if not self._live.thinking:
            self._thinking_since = self._live.clock()
        self._live.activity = "thinking"
        self._live.thinking += text

    def _end_thinking(self) -> None:
        thought, self._live.thinking = one_line(self._live.thinking), ""
        if thought:
            seconds = self._live.clock() - self._thinking_since
            took = f" for {duration(seconds)}" if seconds >= 1 else ""
            width = self._canvas.width() - 4
            self.note(shorten(f"thought{took}: {thought}", width, self._canvas.signs.more))

    def _draw_call(self, event: ToolStarted | ToolPrinted | ToolFinished) -> None:
        match event:
            case ToolStarted():
                about = subject(bytes(event.arguments))
                now = self._live.clock()
                self._live.calls[event.id] = RunningCall(event.name, about, now)
            case ToolPrinted() if event.id in self._live.calls:
                self._live.add_output(event.id, event.text)
            case ToolPrinted():
                self._print_typed(self._typed.feed(event.text))
            case ToolFinished():
                self._end_call(event)

    def _print_typed(self, lines: list[str]) -> None:
        """Draw lines of a command that the person typed; its last ones pass by until it has ended."""
        if lines:
            self.put("step", "\n".join(f"  {line}".rstrip() for line in lines))
        self._live.printed = self._typed.passing(MAX_OUTPUT)

    def _end_typed(self, event: UserSaid) -> None:
        self._print_typed(self._typed.finish())
        if event.origin == "guard":
            self.note(f"reminded the model: {event.content}")
        elif event.origin == "shell":
            self._say_ending(event.content)

    def _say_ending(self, content: str) -> None:
        ending, is_good = ending_of(content)
        if ending and not content.startswith(FAILED):
            took = duration(self._live.worked_seconds)
            ending = f"{ending} {self._canvas.signs.dot} {took}"
        if ending:
            self.note(ending, "info" if is_good else "error")

    def _pause_call(self, event: ConfirmationAsked | ConfirmationAnswered) -> None:
        if isinstance(event, ConfirmationAsked):
            self._asked.add(event.id)
            self._live.pause(event.id)
        else:
            self._live.resume(event.id)

    def _end_call(self, event: ToolFinished) -> None:
        call = self._live.calls.pop(event.id, None)
        if not self._settings.show_tool_calls:
            return
        call = call or RunningCall(event.name, "", 0.0)
        seconds = max(0.0, event.duration_seconds - call.waited_seconds)
        event = replace(event, duration_seconds=seconds)
        self.put("step", "\n".join(self._call_lines(event, call)))

    def _call_lines(self, event: ToolFinished, call: RunningCall) -> Iterator[str]:
        canvas, width = self._canvas, self._canvas.width() - 1
        paint, signs = canvas.paint, canvas.signs
        yield step_line(event, call.about, width, paint, signs)
        was_asked = event.id in self._asked
        is_known = event.is_refused and was_asked
        if not is_known and (said := detail(event, width, paint, signs, call.tail)):
            yield said
        if event.success and not was_asked and (changed := diff_of(event)):
            yield diff(changed, width, paint)

    def _draw_progress(
        self, event: RequestStarted | RequestRetried | Noticed | TurnFinished
    ) -> None:
        match event:
            case RequestStarted():
                self._retry_reason = ""
                self._live.wait(f"waiting for {one_line(event.model)}")
            case RequestRetried():
                self._tell_retry(event)
            case Noticed():
                self.note(event.text, event.level)
            case TurnFinished():
                self._end_turn(event)

    def _tell_retry(self, event: RequestRetried) -> None:
        """Say why a request is sent again, once for each reason; how often is told in passing."""
        reason = reason_of(event.message)
        words = retry_words(event, reason, self._retries)
        self._live.wait(words)
        if reason != self._retry_reason:
            self._retry_reason = reason
            self.note(words)

    def _end_turn(self, event: TurnFinished) -> None:
        self._end_thinking()
        self.flush()
        self._print_typed(self._typed.finish())
        seconds = max(0.0, event.duration_seconds - self._live.waited_seconds)
        self._live.end()
        match event.reason:
            case "done":
                pass
            case "interrupted":
                self.note(event.message or "stopped by you", "warning")
            case "error":
                self.note(event.message, "error")
            case "limit" | "loop" | "dry_run":
                self.note(event.message or event.reason, "warning")
        if self._settings.show_token_usage and event.usage.input_tokens:
            used = usage_line(event.usage, seconds, self._canvas.signs.dot)
            self.put("text", f"  {self._canvas.paint.dim(used)}")
