"""The work of the terminal: one line after the other, words for the running turn, and what waits behind it."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from itertools import islice
from typing import Protocol, TypeAlias

from ybs.commands.advice import told
from ybs.commands.plan import offer_plan
from ybs.core.envelope import Envelope
from ybs.core.errors import YbsError
from ybs.core.events import TurnFinished, UserSaid
from ybs.frontends.terminal.drawing.live import FRAMES_PER_SECOND, LiveArea
from ybs.frontends.terminal.mishaps import report
from ybs.session.reply import NotSent, Outcome, Reply
from ybs.session.session import Session

#: Takes one line of input.
Handle: TypeAlias = Callable[[str], Awaitable[Reply | Outcome]]

#: Lines that wait are shown up to this many.
MAX_SHOWN = 4
#: What these answer is a menu: keys that come fast are for that.
MENUS = ("/model", "/mode", "/provider", "/sessions", "/resume", "/rewind")


class WorkFrontend(Protocol):
    """What shows the work."""

    live: LiveArea

    def echo(self, line: str) -> None:
        """Draw what the person sent."""
        ...

    def shorten(self, line: str) -> str:
        """Return the line as it is shown, without what was pasted."""
        ...

    def show_error(self, text: str) -> None:
        """Draw what went wrong."""
        ...

    async def show_reply(self, reply: Reply) -> None:
        """Draw a command's answer and do what it asks of the frontend."""
        ...

    def end_line(self) -> None:
        """Draw anew what a line of input may have changed."""
        ...

    def give_back(self, lines: list[str]) -> None:
        """Put lines into the prompt that nobody has read."""
        ...

    def redraw(self) -> None:
        """Draw the passing lines again."""
        ...


class Work:
    """Takes lines of input. While a turn runs, words steer it or wait for its end."""

    def __init__(self, session: Session, front: WorkFrontend) -> None:
        self._session, self._front = session, front
        self._handle: Handle = session.handle
        self._lines: deque[str] = deque()
        self._steering: deque[str] = deque()
        self._chosen: set[str] = set()
        self._task: asyncio.Task[None] | None = None
        self._line = ""
        self._beside: dict[asyncio.Task[None], str] = {}

    @property
    def is_busy(self) -> bool:
        """Whether a turn or a command runs."""
        return self._task is not None

    @property
    def is_opening_menu(self) -> bool:
        """Whether a command that opens a menu is at work or about to be: beside a turn, or alone."""
        lines = [*filter(None, [self._line]), *self._lines]
        return (len(lines) == 1 and lines[0] in MENUS) or any(
            line in MENUS for line in self._beside.values()
        )

    @property
    def has_more(self) -> bool:
        """Whether a line waits for the end of the running turn."""
        return bool(self._lines or self._steering)

    def begin(self, prompt: str) -> None:
        """Take the words that ybs was started with: for the model, whatever they begin with."""
        self._handle = self._session.send
        self.queue(prompt)

    def submit(self, line: str) -> None:
        """Take a line now: a command at once if it can, words at the running turn's next step."""
        from ybs.commands.registry import runs_beside_a_turn

        if self.is_busy and runs_beside_a_turn(line, self._session):
            task = asyncio.create_task(self._take(line))
            self._beside[task] = line
            task.add_done_callback(self._beside.pop)
            task.add_done_callback(report)
            return
        # Words behind a command that waits are for what it leaves: /new, or another model.
        is_turned = any(_is_order(each) for each in (*self._lines, line))
        if self.is_busy and not is_turned and self._session.steer(line, typed=self._typed(line)):
            self._steering.append(line)
            self._show_waiting()
            return
        self.queue(line)

    def choose(self, line: str) -> None:
        """Take a line that was chosen from a menu. Nobody has typed it, so it is not given back."""
        self.submit(line)
        if line in self._lines:
            self._chosen.add(line)

    def take_ahead(self) -> str:
        """Take the line that was typed while the command before it was at work; "" where none was."""
        line = self._lines.popleft() if self._lines else ""
        self._show_waiting()
        return line

    def give_ahead(self, line: str) -> None:
        """Put back a line that was taken ahead."""
        self._lines.appendleft(line)
        self._show_waiting()

    def queue(self, line: str) -> None:
        """Take a line now, or when the running turn has ended."""
        self._lines.append(line)
        self._show_waiting()
        if self._task is None:
            self._task = asyncio.create_task(self._work_off())
            self._task.add_done_callback(report)

    def recall(self) -> str:
        """Take back the newest line that waits; "" where none does."""
        if self._lines:
            line = self._lines.pop()
            self._chosen.discard(line)
        elif (line := self._session.take_back()) and self._steering:
            self._steering.pop()
        self._show_waiting()
        return line

    def on_event(self, envelope: Envelope) -> None:
        """Show words for the running turn when it has read them; give back what waits when it was stopped."""
        if not envelope.is_main:
            return
        event = envelope.event
        if isinstance(event, TurnFinished) and event.reason != "done":
            self._give_back()  # what comes from now on is not for this turn any more
        if (
            isinstance(event, UserSaid)
            and event.origin == "person"
            and len(self._steering)
            > self._session.unread_count  # else these were the turn's first words
        ):
            self._front.echo(self._steering.popleft())
            self._show_waiting()

    def stop(self) -> None:
        """Stop the running turn or command."""
        if not self._session.cancel() and self._task is not None:
            self._task.cancel()

    async def abandon(self) -> None:
        """Stop everything before the session is closed."""
        for task in self._beside:
            task.cancel()
        if (task := self._task) is not None:
            self._lines.clear()
            self.stop()
            await asyncio.wait((task,), timeout=5)

    async def _work_off(self) -> None:
        ticking = asyncio.create_task(self._tick())
        try:
            while self._lines:
                self._line = line = self._lines.popleft()
                self._chosen.discard(line)
                self._show_waiting()
                self._front.live.begin()
                try:
                    await self._take(line)
                finally:
                    self._line = ""
                    self._front.live.end()
        finally:
            ticking.cancel()
            self._task = None
            if self.has_more:  # a command was stopped, or broke
                self._give_back()
            self._front.end_line()

    async def _take(self, line: str) -> None:
        # Esc Esc asks for it: what is chosen in the end is drawn, not the asking.
        is_quiet = line.split()[:1] == ["/rewind"]
        if not is_quiet:
            self._front.echo(line)
        try:
            done = await self._handle_line(line)
        except YbsError as error:
            self._front.show_error(told(error))
            if not self._session.is_busy:
                self._give_back_unread(unsent=line if isinstance(error, NotSent) else "")
            return
        finally:
            self._front.end_line()
        if isinstance(done, Reply):
            if is_quiet and done.menu is None:
                self._front.echo(line)
            await self._front.show_reply(done)
        elif done.finished.reason == "done":
            self._send_unread()
            if done.plan and not self.has_more:
                await self._front.show_reply(offer_plan())
        else:
            self._give_back_unread(unsent=done.unsent)

    async def _handle_line(self, line: str) -> Reply | Outcome:
        from ybs.commands.registry import activity_of, is_command

        handle, self._handle = self._handle, self._session.handle
        if handle == self._session.handle:
            if activity := "running" if line.startswith("!") else activity_of(line):
                self._front.live.wait(activity)
            elif not is_command(line) and (typed := self._typed(line)) is not None:
                return await self._session.send(line, typed=typed)
        return await handle(line)

    def _typed(self, line: str) -> str | None:
        """Return the line without what was pasted, which names no files; None where nothing was."""
        typed = self._front.shorten(line)
        return None if typed == line else typed

    def _send_unread(self) -> None:
        """Send what the turn did not come to read as the next line."""
        self._steering.clear()
        if words := self._session.unread():
            self._lines.appendleft("\n".join(words))

    def _give_back(self) -> None:
        """Put what was not sent and what waited behind a stopped turn into the prompt: it may no longer be wanted."""
        typed = [line for line in self._lines if line not in self._chosen]
        self._lines.clear()
        self._chosen.clear()
        self._give_back_unread(*typed)

    def _give_back_unread(self, *lines: str, unsent: str = "") -> None:
        """Put the words that no turn has read into the prompt, and lines behind them."""
        self._steering.clear()
        if waiting := [*filter(None, [unsent]), *self._session.unread(), *lines]:
            self._front.give_back(waiting)
        self._show_waiting()

    def _show_waiting(self) -> None:
        self._front.live.steering = self._shown(self._steering)
        self._front.live.queued = self._shown(self._lines)
        self._front.redraw()

    def _shown(self, waiting: deque[str]) -> list[str]:
        """Give the newest of the lines that wait, and say how many there are before them."""
        more = len(waiting) - MAX_SHOWN
        newest = islice(waiting, max(0, more), None)
        lines = [self._front.shorten(line) for line in newest]
        return [f"{more} more", *lines] if more > 0 else lines

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(1 / FRAMES_PER_SECOND)
            self._front.redraw()


def _is_order(line: str) -> bool:
    """Return whether a line is a command, and no words for the model."""
    from ybs.commands.registry import is_command

    return line.startswith("!") or is_command(line)
