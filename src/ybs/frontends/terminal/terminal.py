"""The terminal at work: keys in, turns taken one after the other, events drawn above the prompt."""

import asyncio
import os
import signal
import sys
from asyncio import AbstractEventLoop
from collections.abc import Callable
from time import monotonic
from typing import Any, Final, Self, TypeAlias

from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input import Input, create_input
from prompt_toolkit.output import Output

from ybs import __version__
from ybs.commands.models import mode_text
from ybs.config.schema import Mode
from ybs.core.envelope import Envelope
from ybs.core.events import StateChanged, ToolFinished, TurnFinished, UserSaid
from ybs.frontends.layout import lines_of
from ybs.frontends.terminal.clipboard import copy
from ybs.frontends.terminal.drawing.live import LiveArea
from ybs.frontends.terminal.drawing.render import Canvas, Renderer
from ybs.frontends.terminal.mishaps import Mishaps
from ybs.frontends.terminal.output import DONE, LONG_SECONDS, GatedOutput, act, begin_line, call
from ybs.frontends.terminal.own_shell import own_runner
from ybs.frontends.terminal.programs import chosen_line, run_subcommand
from ybs.frontends.terminal.prompt.history import LineHistory
from ybs.frontends.terminal.prompt.input import Prompt
from ybs.frontends.terminal.prompt.keys import keys_text
from ybs.frontends.terminal.questions.asking import TerminalQuestions
from ybs.frontends.terminal.questions.picker import Picking
from ybs.frontends.terminal.resize import Scroll
from ybs.frontends.terminal.session import TerminalSession
from ybs.frontends.terminal.signs import Paint, fit_encoding, signs_for
from ybs.frontends.terminal.status import second_line, start_line, toolbar
from ybs.frontends.terminal.work import Work
from ybs.frontends.tty import has_colour
from ybs.security.gate import drawn
from ybs.session.reply import Reply

Clock: TypeAlias = Callable[[], float]
#: Within this time a second Ctrl-C leaves.
TWICE_SECONDS = 2.0
#: Who leaves again within this time has read that background jobs will be stopped.
WARNED_SECONDS = 30.0
#: Within this time a second Esc empties the prompt, or goes back to earlier.
ESCAPES_SECONDS = 0.5
#: The hints that a second Ctrl-C answers.
STOPPING, LEAVING = "interrupting; Ctrl-C again leaves ybs", "press Ctrl-C again to leave ybs"
#: Signals that end the session, and the exit code each leads to.
SIGNALS = {signal.SIGTERM: 143}
INTERRUPTED = 130
#: The modes that Shift-Tab goes through.
MODES: tuple[Mode, ...] = ("ask", "accept-edits", "plan", "auto")


class Terminal:
    """Holds a session and a prompt; `clock` counts seconds."""

    def __init__(
        self,
        session: TerminalSession,
        *,
        put_in: Input | None = None,
        put_out: Output | None = None,
        clock: Clock = monotonic,
        history: LineHistory | None = None,
    ) -> None:
        self.session, self._clock = session, clock
        self._output = put_out or quiet_output()
        colour = session.config.ui.color and has_colour()
        paint, signs = Paint(has_colour=colour), signs_for(sys.stdout)
        self.canvas = Canvas(self._put, self._width, paint, signs, self._height)
        self.live = LiveArea(paint, signs, clock)
        self.renderer = Renderer(self.canvas, self.live, session.config.ui, view=session.view)
        self.asking: TerminalQuestions = TerminalQuestions(self, clock)
        self.picking: Picking = Picking(self, clock)
        self.window: Prompt = Prompt(
            self,
            put_in or create_input(),
            self._output,
            has_colour=colour,
            rule=signs.rule,
            history=history,
        )
        self._is_vi = session.config.ui.editing_mode == "vi"
        if self._is_vi:
            self.window.use_vi()
        self._scroll = Scroll(self.window.app, self._write)
        self.work: Work = Work(session, self)
        self._interrupted_at, self._warned_at = -TWICE_SECONDS, -WARNED_SECONDS
        #: When Esc came last with nothing to stop, and what was typed then.
        self.escaped: tuple[float, str] = (-ESCAPES_SECONDS, "")
        self._hint = ""
        self._hiding: asyncio.TimerHandle | None = None

    async def run(self, prompt: str = "", command: str = "") -> int:
        """Talk until the person leaves; return the exit code."""
        run_own = own_runner(self.window, self._scroll.draw)
        self.session.attach(self.asking.ask, keys=keys_text(is_vi=self._is_vi), run_own=run_own)
        self.session.subscribe(self.renderer)
        self.session.subscribe(self._on_event, follows=True)
        self._refresh()
        self._greet()
        await self._go_on()
        app = self.window.app
        app.after_render += self._on_drawn
        loop = asyncio.get_running_loop()
        for number, code in SIGNALS.items():
            loop.add_signal_handler(number, self._exit, code)
        loop.add_signal_handler(signal.SIGHUP, hung_up, loop, self.work.submit, self._exit)
        mishaps = loop.get_exception_handler()
        loop.set_exception_handler(Mishaps(self.show_error, self._crash))
        warm_up = WarmUp(self.session, self.window, self._refresh, self.renderer.note).begin()
        if prompt:
            loop.call_soon(self.work.begin, prompt)
        elif command:
            loop.call_soon(self.work.submit, command)
        try:
            return await self.window.run()
        finally:
            warm_up.end()
            if not self.session.stays:
                self.asking.dismiss()
            await self.work.abandon()
            await self.window.draft.keep(self.work.kept)
            self._scroll.draw()
            loop.set_exception_handler(mishaps)

    async def _go_on(self) -> None:
        """Draw what was, of a session that goes on, and what it is at."""
        if (resumed := self.session.resumed) is not None:
            await self.show_reply(resumed)
        self.work.join()

    # What the keys do

    def is_waiting(self) -> bool:
        """Return whether a line waits for the running turn's next step or its end."""
        return bool(self.live.steering or self.live.queued)

    def recall(self) -> None:
        """Put the newest line that waits back into the prompt."""
        self.give_back(self.work.recall())

    def show_keys(self) -> None:
        """Draw the keys."""
        self.renderer.say(keys_text(is_vi=self._is_vi))

    def unfold(self) -> None:
        """Draw whole what was drawn shortened."""
        if not self.renderer.unfold():
            self.hint("there is nothing more to show")

    def interrupt(self) -> None:
        """Take Ctrl-C: stop the turn and its question, empty the prompt, or leave the second time."""
        now, draft = self._clock(), self.window.draft
        is_busy = self.work.is_busy and not self.session.is_ending
        is_told = self._hint in (STOPPING, LEAVING) and now - self._interrupted_at < TWICE_SECONDS
        self._interrupted_at = now
        if is_told and not draft.text:
            self._exit(INTERRUPTED if is_busy else 0)
        elif is_busy and not is_told:
            self.work.stop()
            self.hint(STOPPING)
        elif draft.text:
            draft.clear()
            self.hint(STOPPING if is_busy else "")
        else:
            self.hint(LEAVING)

    def escape(self) -> None:
        """Take an Esc that stops nothing: the second one empties the prompt or, where it is empty, goes back to earlier."""
        now, text = self._clock(), self.window.draft.text
        at, before = self.escaped
        is_second = now - at < ESCAPES_SECONDS and text == before
        self.escaped = (-ESCAPES_SECONDS if is_second else now, text)
        if not is_second or self.work.is_busy:
            return
        if self.window.draft.text:
            self.window.draft.clear()
        else:
            self.work.submit("/rewind")

    def stop(self) -> None:
        """Take Esc: go back from a reason to its question, or stop the running turn with its question."""
        if self.asking.is_explaining:
            self.asking.step_back()
        elif self.work.is_busy or not self.asking.is_open:
            self.work.stop()
        else:  # no turn asks
            self.asking.dismiss()

    def leave(self) -> None:
        """Leave; the running turn ends with the session. Where that stops background jobs, it is said first."""
        now, jobs = self._clock(), 0 if self.session.stays else self.session.status().jobs
        if jobs and now - self._warned_at >= WARNED_SECONDS:
            self._warned_at = now
            what = "1 background job" if jobs == 1 else f"{jobs} background jobs"
            self.renderer.note(
                f"Leaving stops {what}. Leave again to go; /jobs lists them.", "warning"
            )
        else:
            self._exit(0)

    def next_mode(self) -> None:
        """Go to the next of the usual modes."""
        place = MODES.index(self.session.mode) if self.session.mode in MODES else -1
        self.session.mode = MODES[(place + 1) % len(MODES)]
        self.hint(mode_text(self.session.status()))

    # What stands on the screen

    def above(self) -> str:
        """Draw the passing lines, or the keys that answer a question."""
        width = self._width()
        if self.asking.is_open:
            return self._fit("\n".join(self.asking.lines(width)))
        rows = self._output.get_size().rows - 6
        rows -= len(self._menu_lines()) if self.picking.is_open else 0
        lines = self.live.lines(width - 1, max(1, rows))
        if lines and self.renderer.is_gap_due:
            lines.insert(0, "")
        return self._fit("\n".join([*lines, ""]))

    def menu(self) -> str:
        """Draw the menu that stands in the place of the prompt."""
        return self._fit("\n".join(self._menu_lines()))

    def below(self) -> StyleAndTextTuples:
        """Draw the bottom line."""
        line = toolbar(self.state, self._width() - 1, self.canvas.signs, self._hint)
        return [(style, self._fit(text)) for style, text in line]

    def prompt(self) -> str:
        """Draw the sign before the input."""
        if self.asking.is_explaining:
            return self.canvas.paint.warn("because: ")
        sign = self.canvas.paint.accent(self.canvas.signs.prompt)
        return (self.canvas.paint.ground(sign) if self.state.incognito else sign) + " "

    # What the work shows

    def write_down(self, line: str, kept: str | None) -> None:
        """Have the history keep what the person sent, as the session says that it may be kept."""
        self.window.draft.lines.write_down(self.shorten(line), kept)

    def echo(self, line: str) -> None:
        """Draw what the person sent."""
        self.renderer.echo(self.shorten(line))

    def shorten(self, line: str) -> str:
        """Return the line as it is shown, without what was pasted."""
        return self.window.draft.pastes.shorten(line)

    def show_error(self, text: str) -> None:
        """Draw what went wrong."""
        self.renderer.fail(text, "step")

    async def show_reply(self, reply: Reply) -> None:
        """Draw a command's answer and do what it asks of the frontend."""
        self.renderer.end_typed()
        self.renderer.draw_again(reply.events)
        actions = reply.terminal
        if actions.program:
            await self._run_program(actions.program)
        else:
            self._show_words(reply)
        if reply.diff:
            self.renderer.draw_diff(reply.diff)
        if actions.clipboard:
            self.renderer.note(await copy(actions.clipboard, self._output))
        if actions.draft and not self.work.has_more:
            self.window.draft.offer(actions.draft)
        if actions.wants_quit:
            self.leave()

    def _show_words(self, reply: Reply) -> None:
        if reply.is_error:
            self.show_error(reply.text)
        elif reply.menu is not None and reply.menu.items and not reply.is_listed:
            self.picking.offer(reply.menu)
        elif lines := lines_of(reply, self._width() - 1):
            self.renderer.say("\n".join(lines))

    async def _run_program(self, name: str) -> None:
        """Run a subcommand of ybs on this terminal; a model that was chosen in it is used from now on."""
        async with self.window.away():
            self._scroll.draw()
            state = self.state
            using = ", ".join(filter(None, (state.model, state.shown_provider)))
            code = await run_subcommand(name, self.session, using=using)
        if name == "setup" and code == 0 and (line := chosen_line(self.session, state)):
            self.work.choose(line)

    def end_line(self) -> None:
        """Draw anew what a line of input may have changed."""
        self.picking.end_line()
        if self._hint != LEAVING:  # pressed when the turn was over and what it left was being kept
            self._hint = ""
        self._refresh()

    def give_back(self, text: str) -> None:
        """Put words into the prompt that nobody has read."""
        self.window.draft.give(text)

    def redraw(self) -> None:
        """Draw the passing lines again."""
        self.window.app.invalidate()

    def call(self, words: str) -> None:
        """Call the person, who may look elsewhere."""
        for sequence in call(self.session.config.ui.notify, words):
            act(self._output, sequence)

    # Small things

    def _on_event(self, envelope: Envelope) -> None:
        event = envelope.event
        if isinstance(event, StateChanged | ToolFinished | UserSaid):
            self._refresh()  # a tool may have changed the branch
        elif envelope.is_main and isinstance(event, TurnFinished):
            self._hint = ""  # what it leaves behind may take a moment to be kept
            is_news = event.reason != "interrupted" and event.duration_seconds >= LONG_SECONDS
            if is_news and not self.work.has_more:
                self.call(DONE)

    def _menu_lines(self) -> list[str]:
        return self.picking.lines(self._width() - 1, self._output.get_size().rows)

    def _greet(self) -> None:
        canvas = self.canvas
        host, width = self.session.host, self._width() - 1
        first = start_line(__version__, self.state, host, width, canvas.paint, canvas.signs)
        second = second_line(self.state, self._width() - 1, canvas.signs)
        begin_line(self._output)
        self.renderer.put("text", f"{first}\n{canvas.paint.dim(second)}")
        for warning in self.session.warnings:
            self.renderer.note(warning, "warning")

    def _refresh(self) -> None:
        self.state = self.session.status()
        self.window.app.invalidate()

    def hint(self, text: str) -> None:
        """Say something for a moment, in the bottom line."""
        self._hint = text
        if self._hiding is not None:
            self._hiding.cancel()
        self._hiding = asyncio.get_running_loop().call_later(TWICE_SECONDS, self._drop_hint)
        self.window.app.invalidate()

    def _drop_hint(self) -> None:
        self._hint = ""
        self.window.app.invalidate()

    def note_hidden(self) -> None:
        """Note that another program had the screen."""
        self.asking.note_hidden()
        self.picking.note_hidden()

    def _on_drawn(self, _app: object) -> None:
        self.asking.note_drawn()
        self.picking.note_drawn()

    def _exit(self, code: int) -> None:
        if self.window.app.is_running and not self.window.app.is_done:
            self.window.app.exit(result=code)

    def _crash(self, error: BaseException) -> bool:
        is_open = self.window.app.is_running and not self.window.app.is_done
        if is_open:
            self.window.app.exit(exception=error)
        return is_open

    def _put(self, text: str) -> None:
        self._scroll.put(text)

    def _write(self, text: str) -> None:
        self._output.write_raw(self._fit(text).replace("\n", "\r\n"))
        self._output.flush()

    def _fit(self, text: str) -> str:
        return fit_encoding(drawn(text), self._output.encoding())

    def _width(self) -> int:
        return max(4, self._output.get_size().columns)

    def _height(self) -> int:
        return self._output.get_size().rows


def quiet_output() -> Output:
    """Make the output without asking the terminal where its cursor is; nothing here needs to know."""
    output = GatedOutput.from_pty(sys.stdout, term=os.environ.get("TERM"))
    output.enable_cpr = False
    return output


#: The exit code of a program that ends by the signal.
GONE: Final = 129
#: When the terminal is asked again.
AGAIN_SECONDS = 1.0
RELOAD: Final = "/reload-tools"


def is_gone(terminal: int = 0) -> bool:
    """Return whether a terminal was closed, or is not the one that this process is run from."""
    try:
        os.tcgetpgrp(terminal)
    except OSError:
        return True
    return False


def hung_up(
    loop: AbstractEventLoop,
    submit: Callable[[str], object],
    leave: Callable[[int], object],
    look: Callable[[], bool] = is_gone,
) -> None:
    """Reload the tools where the terminal is still there, and leave where it is not, or is not any more a moment later."""

    def look_again() -> None:
        if look():
            leave(GONE)

    if look():
        leave(GONE)
        return
    submit(RELOAD)
    loop.call_later(AGAIN_SECONDS, look_again)


#: It begins this long after the prompt is drawn.
WARM_UP_SECONDS = 0.15
#: Recurring tasks are looked for this long after the rest, where no turn runs.
LEARN_SECONDS = 2.0


class WarmUp:
    """Loads what a first prompt will need; `refresh` draws what has become known, `say` a line about what recurs."""

    def __init__(
        self,
        session: TerminalSession,
        window: Prompt,
        refresh: Callable[[], None],
        say: Callable[[str], None],
    ) -> None:
        self._session, self._window, self._refresh, self._say = session, window, refresh, say
        self._timer: asyncio.TimerHandle | None = None
        self._preparing: asyncio.Task[None] | None = None

    def begin(self) -> Self:
        """Begin in a moment."""
        self._timer = asyncio.get_running_loop().call_later(WARM_UP_SECONDS, self._load)
        return self

    def end(self) -> None:
        """Stop what has not ended."""
        if self._timer is not None:
            self._timer.cancel()
        if self._preparing is not None:
            self._preparing.cancel()

    def _load(self) -> None:
        loading = asyncio.get_running_loop().run_in_executor(None, _import, "prompt.completion")
        loading.add_done_callback(self._complete)
        self._preparing = asyncio.create_task(self._session.prepare())
        self._preparing.add_done_callback(self._prepared)

    def _prepared(self, done: "asyncio.Task[None]") -> None:
        if not done.cancelled() and done.exception() is None and not self._session.is_busy:
            self._refresh()
            self._timer = asyncio.get_running_loop().call_later(LEARN_SECONDS, self._learn)

    def _learn(self) -> None:
        if not self._session.is_busy and not self._session.stays:  # else it is the server's
            learning = asyncio.get_running_loop().run_in_executor(
                None, recurring_line, self._session
            )
            learning.add_done_callback(self._offered)

    def _offered(self, done: "asyncio.Future[str]") -> None:
        is_read = not done.cancelled() and done.exception() is None
        if is_read and self._window.app.is_running and done.result():
            self._say(done.result())

    def _complete(self, _loaded: object) -> None:
        if self._window.app.is_running:
            self._window.complete(self._session)
            # rich takes a moment
            asyncio.get_running_loop().run_in_executor(None, _import, "drawing.markdown")


def recurring_line(session: Any) -> str:
    """Return a line about what recurs; empty where there is nothing, or where the person does not want it."""
    from ybs.commands.learn import learning_of
    from ybs.core.errors import YbsError

    is_wanted = session.config.learning.enabled and session.config.session.auto_save
    if not is_wanted or session.environment.incognito.is_on:
        return ""
    try:
        return learning_of(session).offer()
    except (OSError, YbsError):  # another ybs is at it, or the file is damaged: /learn says so
        return ""


def _import(part: str) -> None:
    from importlib import import_module

    import_module(f"ybs.frontends.terminal.{part}")
