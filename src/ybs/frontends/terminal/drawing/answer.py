"""Draws what the model says and thinks: each block when it is complete, the thinking in one line."""

from collections.abc import Iterable

from ybs.core.events import AssistantSaid, TextStreamed, ThinkingStreamed, ToolCallStreamed
from ybs.frontends.terminal.drawing.blocks import Block
from ybs.frontends.terminal.drawing.folds import Fold, Folds, KeptText
from ybs.frontends.terminal.drawing.page import Page
from ybs.frontends.terminal.drawing.prose import prose_lines
from ybs.frontends.terminal.words import dim_lines, duration, one_line, shorten, verb
from ybs.providers.wire.thoughts import is_closing, split_unopened
from ybs.session.status import View

#: Of one that holds calls: of any other the turn's own notice tells it.
CUT_OFF = "the answer was cut off in the middle of a tool call: it reached llm.max_tokens"
#: Below paragraphs that cannot be taken back from the screen.
WAS_THINKING = "that was thinking; the answer follows"
#: A tag comes in so many pieces at most.
_MOST_PIECES = 16


class AnswerDrawing:
    """Draws an answer on a page."""

    def __init__(self, page: Page, folds: Folds, view: View) -> None:
        self._page, self._live, self._folds, self._view = page, page.live, folds, view
        self._has_streamed = self._is_shown_live = self._has_broken_off = False
        self._thought = KeptText()
        self._thinking_since = 0.0
        self._streamed: list[str] = []
        self._has_drawn = False  # something of the answer at hand
        #: An answer of this model has ended its thinking with a tag that nothing opened: the next will, too.
        self._is_unopened = False
        #: What streams is not known to be the answer yet.
        self._is_open = False

    def draw(
        self, event: TextStreamed | ThinkingStreamed | ToolCallStreamed | AssistantSaid
    ) -> None:
        """Draw an event of an answer."""
        if isinstance(event, TextStreamed) and not self._has_streamed:
            self._begin_text()
        if not isinstance(event, ThinkingStreamed) and not self._is_open:
            self.end_thinking()
        match event:
            case TextStreamed():
                self._stream(event.text)
            case ThinkingStreamed():
                self._think(event.text)
            case ToolCallStreamed():
                self._live.count_delta(f"preparing a call of {verb(event.name)}", event.text)
            case AssistantSaid():
                self._end(event)

    def begin(self) -> None:
        """Draw what may be left of an answer that broke off without an end."""
        self.flush()
        self._has_streamed = self._has_broken_off = self._is_open = False

    def break_off(self) -> None:
        """Draw what is left of an answer that broke off and is asked for anew."""
        was_shown = self._has_streamed and self._is_shown_live and not self._is_open
        self.end_thinking()
        self.begin()
        self._has_broken_off = was_shown

    def flush(self) -> None:
        """Draw what is left of the open block."""
        self._draw_blocks(self._live.blocks.finish())

    def _begin_text(self) -> None:
        """Decide how the text of an answer is drawn: that does not change in its middle."""
        self._has_streamed, self._is_shown_live = True, self._view.streams
        self._is_open = self._is_unopened and self._is_shown_live and not self._thought
        self._streamed, self._has_drawn = [], False
        if not self._thought:
            self._thinking_since = self._live.clock()

    def _stream(self, text: str) -> None:
        if not self._is_shown_live:
            self._live.count_delta("answering", text)
            return
        self._streamed.append(text)
        recent = "".join(self._streamed[-_MOST_PIECES:])
        if is_closing(recent) and (found := split_unopened("".join(self._streamed))):
            self._end_unopened(*found)
        elif self._is_open:
            self._think(text)
        else:
            self._live.count_delta("answering", text)
            self._draw_blocks(self._live.blocks.feed(text))

    def _end_unopened(self, thought: str, answer: str) -> None:
        """Draw as thinking what streamed as the answer, up to a tag that nothing opened."""
        self._is_unopened, self._is_open = True, False
        self._streamed, self._thought = [], KeptText()
        self._live.blocks.drop()
        if self._has_drawn:
            self._page.note(WAS_THINKING)
            self._folds.add("thought", thought, "words")
        else:
            self._thought.add(thought)
            self.end_thinking()
        self._draw_blocks(self._live.blocks.feed(answer))

    def _end(self, event: AssistantSaid) -> None:
        if self._is_open:  # it has thought nothing this time, and what came is the answer
            self._thought = KeptText()
            self._live.end_thinking()
            self._is_open = self._is_unopened = self._has_streamed = False
        is_drawn = event.stop_reason == "cut_off" and self._has_broken_off
        if not is_drawn and not (self._has_streamed and self._is_shown_live):
            self._draw_blocks(self._live.blocks.feed(event.content))
        self._has_streamed = False
        self.flush()
        if event.stop_reason == "length" and event.message.calls:
            self._page.note(CUT_OFF, "warning")

    def _draw_blocks(self, blocks: Iterable[Block]) -> None:
        canvas = self._page.canvas
        for block in blocks:
            lines = prose_lines(block, canvas.width() - 1, canvas.paint)
            self._page.put("text", "\n".join(lines), goes_on=block.goes_on)
            self._has_drawn = True

    @property
    def thought_so_far(self) -> Fold | None:
        """What the model is thinking now, as far as it has come."""
        if not self._thought:
            return None
        return Fold(title="thinking", text=self._thought.text, kind="words")

    def _think(self, text: str) -> None:
        if not self._thought:
            self._thinking_since = self._live.clock()
        self._thought.add(text)
        self._live.think(text)

    def end_thinking(self) -> None:
        """Draw what was thought in one line; the whole of it in the verbose view."""
        self._live.end_thinking()
        if not self._thought:
            return
        thought, self._thought = self._thought, KeptText()
        seconds = self._live.clock() - self._thinking_since
        title = f"thought for {duration(seconds)}" if seconds >= 1 else "thought"
        canvas = self._page.canvas
        if not (words := one_line(thought.beginning)):
            return
        if self._view.is_verbose:
            lines = dim_lines(thought.text, canvas.width() - 3, canvas.paint)
            self._page.put("step", "\n".join([f"  {canvas.paint.dim(title)}", *lines]))
            return
        line = shorten(f"{title}: {words}", canvas.width() - 4, canvas.signs.more)
        if line != f"{title}: {thought.text.strip()}":
            self._folds.add(title, thought.text, "words")
        self._page.note(line)
