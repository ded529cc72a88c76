"""The terminal at work: keys in, turns taken one after the other, events drawn above the prompt."""

import asyncio
import os
import signal
import sys
from collections import deque
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import TypeAlias

from prompt_toolkit.input import Input, create_input
from prompt_toolkit.key_binding import KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import Output

from ybs import __version__
from ybs.core.errors import YbsError
from ybs.core.ports import Answer, Question
from ybs.security.gate import drawn
from ybs.session.session import Outcome, Reply, Session
from ybs.ui.confirm import Choice, answer_text, choice_lines, question_text
from ybs.ui.input import MODES, Prompt
from ybs.ui.live import FRAMES_PER_SECOND, Live
from ybs.ui.output import GatedOutput
from ybs.ui.render import Canvas, Renderer
from ybs.ui.signs import Paint, fit_encoding, signs_for, wants_colour
from ybs.ui.status import State, start_line, toolbar

Clock: TypeAlias = Callable[[], float]
#: Takes one line of input.
Handle: TypeAlias = Callable[[str], Awaitable[Reply | Outcome]]
#: Within this time a second Ctrl-C leaves.
TWICE_SECONDS = 2.0
#: Rich is loaded this long after the prompt is drawn, while the person reads or types.
WARM_UP_SECONDS = 0.15
#: Signals that end the session, and the exit code each leads to.
SIGNALS = {signal.SIGTERM: 143, signal.SIGHUP: 129}
INTERRUPTED = 130


class Terminal:
    """Holds a session and a prompt; `clock` counts seconds."""

    def __init__(
        self,
        session: Session,
        *,
        put_in: Input | None = None,
        put_out: Output | None = None,
        clock: Clock = monotonic,
    ) -> None:
        self.session, self._clock = session, clock
        self._handle: Handle = session.handle
        self._output = put_out or quiet_output()
        colour = wants_colour(is_set=session.config.ui.color)
        paint, signs = Paint(has_colour=colour), signs_for(sys.stdout)
        self.canvas = Canvas(self._put, self._width, paint, signs)
        self.live = Live(paint, signs, clock)
        retries = session.config.agent.retry_attempts
        self.renderer = Renderer(self.canvas, self.live, session.config.ui, retries=retries)
        self.window = Prompt(
            self, put_in or create_input(), self._output, has_colour=colour, rule=signs.rule
        )
        self._choice: Choice | None = None
        self._one_question = asyncio.Lock()
        self._lines: deque[str] = deque()
        self._work: asyncio.Task[None] | None = None
        self._interrupted_at = -TWICE_SECONDS
        self._hint = ""
        self._state = State()

    async def run(self, prompt: str = "") -> int:
        """Talk until the person leaves; return the exit code."""
        self.session.confirm = self.ask
        self.session.subscribe(self.renderer)
        self.session.subscribe(lambda _event: self.window.app.invalidate())
        self._refresh()
        self._greet()
        app = self.window.app
        app.after_render += self._on_drawn
        loop = asyncio.get_running_loop()
        for number, code in SIGNALS.items():
            loop.add_signal_handler(number, self._exit, code)
        loop.call_later(WARM_UP_SECONDS, self._warm_up)
        if prompt:
            self._handle = self.session.send  # words for the model, whatever they begin with
            loop.call_soon(self.submit, prompt)
        try:
            return await app.run_async()
        finally:
            await self._abandon()

    # What the keys do

    def is_asking(self) -> bool:
        """Tell whether a question waits for a key."""
        return self._choice is not None and not self._choice.wants_reason

    def is_explaining(self) -> bool:
        """Tell whether the reason for a no is being typed."""
        return self._choice is not None and self._choice.wants_reason

    def is_busy(self) -> bool:
        """Tell whether a turn or a command runs."""
        return self._work is not None

    def submit(self, text: str) -> None:
        """Take a line of input now, or when the running turn has ended."""
        self._lines.append(text)
        self.live.queued = list(self._lines)
        if self._work is None:
            self._work = asyncio.create_task(self._work_off())

    def explain(self, text: str) -> None:
        """Take the reason for a no."""
        if self._choice is not None:
            self._choice.give_reason(text)

    def answer_key(self, event: KeyPressEvent) -> None:
        """Take a key while a question waits; what came too early goes on in the draft."""
        key, text = event.key_sequence[0].key, event.data
        choice, draft = self._choice, self.window.draft
        if choice is None:
            return
        if key in (Keys.ControlC, Keys.SIGINT):
            self.interrupt()
        elif key is Keys.Escape:
            choice.press("escape")
        elif key is Keys.BracketedPaste:
            draft.insert_text(text)
        elif event.key_processor.input_queue or choice.is_too_early():
            if draft.text and text.isprintable():
                draft.insert_text(text)
        else:
            choice.press(text)
            self.window.focus()

    def interrupt(self) -> None:
        """Take Ctrl-C: stop the turn and its question, empty the prompt, or leave the second time."""
        now = self._clock()
        is_second = now - self._interrupted_at < TWICE_SECONDS
        self._interrupted_at = now
        if is_second:
            self._exit(INTERRUPTED if self.is_busy() else 0)
        elif self.is_busy():
            self._stop_work()
            self._say_hint("stopping; Ctrl-C again leaves")
        elif self.window.draft.text:
            self.window.draft.reset()
            self._interrupted_at = -TWICE_SECONDS
        else:
            self._say_hint("press Ctrl-C again to leave")

    def stop(self) -> None:
        """Take Esc: answer no, or stop the running turn."""
        if self._choice is not None:
            self._choice.press("escape")
        else:
            self._stop_work()

    def leave(self) -> None:
        """Leave; the running turn ends with the session."""
        self._exit(0)

    def next_mode(self) -> None:
        """Go to the next of the usual modes."""
        place = MODES.index(self.session.mode) if self.session.mode in MODES else -1
        self.session.mode = MODES[(place + 1) % len(MODES)]
        self._refresh()

    # What stands on the screen

    def above(self) -> str:
        """Draw the passing lines, or the keys that answer a question."""
        width = self._width()
        if self._choice is not None:
            if self._choice.wants_reason:
                return ""
            lines = choice_lines(self._choice.question, width, self.canvas.paint, self.canvas.signs)
            return self._fit("\n".join(["", *lines]))
        rows = self._output.get_size().rows
        lines = self.live.lines(width - 1, max(1, rows - 6))
        if lines and self.renderer.is_gap_due:
            lines.insert(0, "")
        return self._fit("\n".join([*lines, ""]))

    def below(self) -> str:
        """Draw the bottom line."""
        return self._fit(toolbar(self._state, self._width() - 1, self.canvas.signs, self._hint))

    def prompt(self) -> str:
        """Draw the sign before the input."""
        if self.is_explaining():
            return self.canvas.paint.warn("because: ")
        sign = self.canvas.paint.accent(self.canvas.signs.prompt)
        return (self.canvas.paint.ground(sign) if self._state.incognito else sign) + " "

    async def ask(self, question: Question) -> Answer:
        """Ask the person; one question after the other."""
        async with self._one_question:
            self._take_typed_keys()
            self.renderer.flush()
            canvas, width = self.canvas, self._width() - 1
            text = question_text(question, self._state, width, canvas.paint, canvas.signs)
            self.renderer.put("question", text)
            self._choice = Choice(question, self._clock)
            self.window.reason.reset()
            self.window.app.invalidate()
            try:
                answer = await self._choice.answer
            finally:
                self._choice = None
                self.window.focus()
                self.window.app.invalidate()
            self.renderer.put("question", canvas.paint.dim(f"  {answer_text(answer, question)}"))
            return answer

    # The work

    async def _work_off(self) -> None:
        ticking = asyncio.create_task(self._tick())
        try:
            while self._lines:
                await self._take(self._lines.popleft())
        finally:
            ticking.cancel()
            self._work = None
            self._refresh()

    async def _take(self, line: str) -> None:
        self.live.queued = list(self._lines)
        self.renderer.echo(line)
        self.live.begin()
        try:
            handle, self._handle = self._handle, self.session.handle
            if line.startswith("!") and handle == self.session.handle:
                self.live.wait("running")
            done = await handle(line)
        except YbsError as error:
            self.renderer.note(str(error), "error")
            return
        finally:
            self.live.end()
            self._hint = ""
            self._refresh()
        if not isinstance(done, Reply):
            if done.finished.reason == "interrupted":
                self._give_back_lines()
            return
        if done.is_error:
            self.renderer.note(done.text, "error")
        elif done.text:
            self.renderer.say(done.text)
        if done.wants_quit:
            self._exit(0)

    def _stop_work(self) -> None:
        if not self.session.cancel() and self._work is not None:
            self._work.cancel()

    def _give_back_lines(self) -> None:
        """Put what waited behind a stopped turn into the prompt: it may no longer be wanted."""
        draft = self.window.draft
        draft.text = "\n".join(filter(None, [*self._lines, draft.text]))
        draft.cursor_position = len(draft.text)
        self._lines.clear()
        self.live.queued = []

    async def _abandon(self) -> None:
        """Stop the work before the session is closed."""
        if self._choice is not None:
            self._choice.press("escape")
        if (work := self._work) is not None:
            self._lines.clear()
            self._stop_work()
            await asyncio.wait((work,), timeout=5)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(1 / FRAMES_PER_SECOND)
            self.window.app.invalidate()

    # Small things

    def _greet(self) -> None:
        canvas = self.canvas
        first = start_line(__version__, self._state, self._width() - 1, canvas.paint, canvas.signs)
        self.renderer.put("text", f"{first}\n{canvas.paint.dim('/help for more')}")
        for warning in self.session.warnings:
            self.renderer.note(warning, "warning")

    def _refresh(self) -> None:
        status = self.session.status()
        self._state = State(
            provider=status.provider,
            model=status.model,
            mode=status.mode,
            sandbox=status.sandbox,
            folder=status.folder,
            branch=status.branch,
            context_percent=round(100 * status.context_tokens / max(1, status.window)),
            usage=status.usage,
            incognito=status.incognito,
        )
        self.window.app.invalidate()

    def _say_hint(self, text: str) -> None:
        self._hint = text
        asyncio.get_running_loop().call_later(TWICE_SECONDS, self._drop_hint)
        self.window.app.invalidate()

    def _drop_hint(self) -> None:
        self._hint = ""
        self.window.app.invalidate()

    def _on_drawn(self, _app: object) -> None:
        if self._choice is not None:
            self._choice.show()

    def _take_typed_keys(self) -> None:
        """Read what was typed up to now into the draft, before a question could be meant by it."""
        app = self.window.app
        app.key_processor.feed_multiple(app.input.read_keys())
        app.key_processor.process_keys()

    def _exit(self, code: int) -> None:
        if self.window.app.is_running and not self.window.app.is_done:
            self.window.app.exit(result=code)

    def _put(self, text: str) -> None:
        """Write lines above the prompt; it is drawn again afterwards."""
        app = self.window.app
        if app.is_running:
            app.follow_size()
            app.renderer.erase()
        self._output.write_raw(self._fit(text).replace("\n", "\r\n"))
        self._output.flush()
        app.invalidate()

    def _fit(self, text: str) -> str:
        return fit_encoding(drawn(text), self._output.encoding())

    def _width(self) -> int:
        return max(4, self._output.get_size().columns)

    def _warm_up(self) -> None:
        asyncio.get_running_loop().run_in_executor(None, _load_markdown)


def quiet_output() -> Output:
    """Make the output without asking the terminal where its cursor is; nothing here needs to know."""
    output = GatedOutput.from_pty(sys.stdout, term=os.environ.get("TERM"))
    output.enable_cpr = False
    return output


def _load_markdown() -> None:
    from importlib import import_module

    import_module("ybs.ui.markdown")  # rich takes a moment to load
