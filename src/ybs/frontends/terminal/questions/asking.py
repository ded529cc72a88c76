"""Questions on the terminal: one after the other, answered by a key."""

import asyncio
from collections.abc import Callable, Sequence

from prompt_toolkit.key_binding import KeyPressEvent
from prompt_toolkit.keys import Keys

from ybs.core.ports import Answer, Question
from ybs.frontends.terminal.desk import Desk
from ybs.frontends.terminal.drawing.steps import UNFOLD_KEY
from ybs.frontends.terminal.output import WAITS
from ybs.frontends.terminal.questions.confirm import (
    TYPE_ANSWER,
    PendingQuestion,
    answer_text,
    choice_lines,
    kept_words,
    question_text,
)
from ybs.frontends.terminal.words import one_line, shorten

TOO_EARLY = "that key was pressed before the question could be read: press it again"
MODE_WAITS = "answer the question first; a new mode applies to later calls only"
STOPS = "Esc stops the turn"
REASON_KEYS = "  Enter: say no with this reason   Esc: back"
ANSWER_KEYS = "  Enter: answer   Esc: back"
_ARROWS: dict[Keys | str, int] = {Keys.Up: -1, Keys.Left: -1, Keys.Down: 1, Keys.Right: 1}


def listed_keys(keys: Sequence[str]) -> str:
    """Name the keys that answer, for whoever pressed another one."""
    return f"{', '.join(keys)}, a number up to {len(keys)}, or the arrows and Enter"


class TerminalQuestions:
    """Asks the person; what else is asked meanwhile waits. `clock` counts seconds."""

    def __init__(self, front: Desk, clock: Callable[[], float]) -> None:
        self._front, self._clock = front, clock
        self._choice: PendingQuestion | None = None
        self._held = ""
        self._one = asyncio.Lock()
        self._open = self._answered = 0

    @property
    def is_open(self) -> bool:
        """Whether a question stands on the screen."""
        return self._choice is not None

    @property
    def is_choosing(self) -> bool:
        """Whether a question waits for a key."""
        return self._choice is not None and not self._choice.wants_reason

    @property
    def is_explaining(self) -> bool:
        """Whether the reason for a no is being typed."""
        return self._choice is not None and self._choice.wants_reason

    @property
    def is_holding(self) -> bool:
        """Whether a key waits whether another follows it at once."""
        return self._choice is not None and self._choice.is_holding

    async def ask(self, question: Question) -> Answer:
        """Ask when the questions before have been answered."""
        if not self._open:
            self._front.call(WAITS)
        self._open += 1
        try:
            async with self._one:
                return await self._ask(question)
        finally:
            self._open -= 1
            self._answered = self._answered + 1 if self._open else 0

    def lines(self, width: int) -> list[str]:
        """Draw the keys that answer the question, or end the reason."""
        if self._choice is None:
            return []
        canvas = self._front.canvas
        if self._choice.wants_reason:
            words = REASON_KEYS if self._choice.question.choices is None else ANSWER_KEYS
            keys = canvas.paint.dim(shorten(words, width, canvas.signs.more))
            return ["", keys, *kept_words(self._front.window.draft, width, canvas)]
        lines = choice_lines(
            self._choice.question,
            width,
            canvas.paint,
            canvas.signs,
            with_network=self._choice.with_network,
            place=self._choice.place,
        )
        if self._answered + self._open > 1:
            number = f"  ({self._answered + 1} of {self._answered + self._open})"
            lines.append(canvas.paint.dim(number))
        return ["", *lines, *kept_words(self._front.window.draft, width, canvas)]

    def note_drawn(self) -> None:
        """Note that what is open stands on the screen now."""
        if self._choice is not None:
            self._choice.show()

    def note_hidden(self) -> None:
        """Note that another program had the screen."""
        if self._choice is not None:
            self._choice.hide()

    def explain(self, text: str) -> None:
        """Take the reason for a no."""
        if self._choice is not None:
            self._choice.give_reason(text)

    def step_back(self) -> None:
        """Go from the reason back to the question."""
        if self._choice is not None:
            self._choice.ask_again()
            self._show()

    def dismiss(self) -> None:
        """Answer no, whatever is being typed."""
        if self._choice is not None:
            self._choice.refuse()

    def take_key(self, event: KeyPressEvent) -> None:
        """Take a key while a question waits; what came too early goes on in the draft."""
        key, text = event.key_sequence[0].key, event.data
        choice, draft = self._choice, self._front.window.draft
        if choice is None:
            return
        was_over, is_lone = choice.is_over, choice.is_over and not event.key_processor.input_queue
        choice.begin()  # every key begins the silence anew, so that no end of a burst is an answer
        if choice.is_holding:
            choice.let_go()
            self._keep(self._held, is_burst=text.isprintable())
        acts: dict[object, Callable[[], None]] = {
            Keys.ControlC: self._front.interrupt,
            Keys.SIGINT: self._front.interrupt,
            Keys.BackTab: lambda: self._front.hint(MODE_WAITS),
            Keys.ControlO: self._front.unfold,
            Keys.Escape: self._front.stop,
        }
        if act := acts.get(key):
            act()
        elif key in _ARROWS and was_over:
            choice.move(_ARROWS[key])
            self._show()
        elif choice.wants_words and was_over and (text.isprintable() or key is Keys.BracketedPaste):
            self._write(choice, one_line(text))
        elif key is Keys.BracketedPaste:
            draft.paste(text)
        elif is_lone:
            self._held = text
            choice.hold(lambda: self._press(choice, text))
        else:
            self._keep(text, is_burst=bool(event.key_processor.input_queue))

    def _write(self, choice: PendingQuestion, text: str) -> None:
        """Begin the answer in words with what was typed."""
        choice.ask_why()
        self._front.window.reason.insert_text(text)
        self._show()

    def _press(self, choice: PendingQuestion, text: str) -> None:
        """Take a key that came alone."""
        if choice is not self._choice:
            return
        if not choice.press(text):
            if choice.question.choices and text.isprintable():
                self._write(choice, text)  # neither is picked, so it is something else
                return
            keys = (
                TYPE_ANSWER if choice.wants_words else f"press {listed_keys(choice.keys)}; {STOPS}"
            )
            self._front.hint(keys)
        self._show()

    def _keep(self, text: str, *, is_burst: bool) -> None:
        """Let a key that is not an answer go on in what is being typed.

        Where nothing is and no other key came with it, say that it was not taken.
        """
        draft = self._front.window.draft
        text = "\n" if text == "\r" and is_burst else text
        if (draft.text or is_burst) and (text.isprintable() or text == "\n"):
            draft.insert_text(text, fire_event=False)
        else:
            self._front.hint(TOO_EARLY)

    async def _ask(self, question: Question) -> Answer:
        front, canvas = self._front, self._front.canvas
        self._take_typed_keys()
        front.renderer.flush()
        text = question_text(question, front.state, front.session.host, canvas)
        front.renderer.put("question", text)
        if UNFOLD_KEY in text:
            front.renderer.keep_whole(question.preview.title, question.preview.body)
        front.renderer.hold()
        choice = self._choice = PendingQuestion(question, self._clock)
        front.window.reason.reset()
        front.window.app.invalidate()
        try:
            answer = await choice.answer
        finally:
            self._choice = None
            self._show()
            if choice.answer.done() and not choice.answer.cancelled():
                said = answer_text(choice.answer.result(), question)
                front.renderer.put("question", canvas.paint.dim(f"  {said}"))
            front.renderer.release()
        return answer

    def _show(self) -> None:
        self._front.window.focus()
        self._front.window.app.invalidate()

    def _take_typed_keys(self) -> None:
        """Read what was typed up to now into the draft, before a question could be meant by it."""
        app = self._front.window.app
        if self._front.window.is_away:  # they are another program's
            return
        app.key_processor.feed_multiple(app.input.read_keys())
        app.key_processor.process_keys()
