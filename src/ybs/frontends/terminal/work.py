"""The work of the terminal: what the inbox of its session tells, drawn."""

import asyncio
from collections.abc import Sequence

from ybs.commands.advice import told
from ybs.commands.command import as_meant
from ybs.commands.models import offer_plan
from ybs.core.errors import YbsError
from ybs.frontends.terminal.desk import Desk
from ybs.frontends.terminal.drawing.live import FRAMES_PER_SECOND
from ybs.frontends.terminal.session import TerminalSession
from ybs.session.inbox import InboxLine, Sender, to_type
from ybs.session.reply import Outcome, Reply

#: Lines that wait are shown up to this many.
MAX_SHOWN = 4
#: What these answer is a menu: keys that come fast are for that.
MENUS = ("/model", "/mode", "/provider", "/sessions", "/resume", "/rewind")


class Work(Sender):
    """Sends the lines of the terminal, and draws what becomes of them."""

    def __init__(self, session: TerminalSession, front: Desk) -> None:
        self._inbox, self._front = session.inbox, front
        self._ticking: asyncio.Task[None] | None = None
        self._inbox.hear(self)

    def join(self) -> None:
        """Draw that a line is being worked on, if one is: it was taken before this terminal came."""
        if self._inbox.now is not None:
            self._begin()
            self.changed()

    @property
    def is_busy(self) -> bool:
        """Whether a turn or a command runs."""
        return self._inbox.is_busy

    @property
    def is_opening_menu(self) -> bool:
        """Whether a command that opens a menu is at work or about to be: beside a turn, or alone."""
        lines = self._inbox.in_order
        is_next = len(lines) == 1 and lines[0] in MENUS
        return is_next or any(line in MENUS for line in self._inbox.beside)

    @property
    def has_more(self) -> bool:
        """Whether a line waits for the end of the running turn."""
        return self._inbox.has_more

    def begin(self, prompt: str) -> None:
        """Take the words that ybs was started with: for the model, whatever they begin with."""
        self._inbox.queue(InboxLine(text=prompt, sender=self, is_for_model=True))

    def submit(self, line: str) -> None:
        """Take a line now: a command at once if it can, words at the running turn's next step."""
        self._inbox.submit(self._line(line))

    def choose(self, line: str) -> None:
        """Take a line that was chosen from a menu. Nobody has typed it, so it is not given back."""
        self._inbox.submit(InboxLine(text=line, sender=self, is_choice=True))

    def queue(self, line: str) -> None:
        """Take a line now, or when the running turn has ended."""
        self._inbox.queue(self._line(line))

    def take_ahead(self) -> InboxLine | None:
        """Take the line that was typed while the command before it was at work, if one was."""
        return self._inbox.take_ahead()

    def give_ahead(self, line: InboxLine) -> None:
        """Put back a line that was taken ahead."""
        self._inbox.give_ahead(line)

    def recall(self) -> str:
        """Take back the newest line that waits; "" where none does."""
        line = self._inbox.recall()
        return to_type([line]) if line is not None else ""

    def stop(self) -> None:
        """Stop the running turn or command."""
        self._inbox.stop()

    async def kept(self, text: str) -> str | None:
        """Return how words that are not sent may be written down; None where the session keeps nothing."""
        return await self._inbox.kept(text)

    async def abandon(self) -> None:
        """Stop everything before the session is closed."""
        await self._inbox.abandon()

    def _line(self, text: str) -> InboxLine:
        """Return a line; what was pasted into it names no files."""
        text = as_meant(text)
        typed = self._front.shorten(text)
        return InboxLine(text=text, sender=self, typed=None if typed == text else typed)

    # What the inbox tells

    def take(self, line: InboxLine, kept: str | None) -> None:
        """Draw a line that is taken now."""
        from ybs.commands.registry import activity_of

        if line is self._inbox.now:
            self._begin()
        self._front.write_down(line.text, kept)
        if not _is_quiet(line):
            self._front.echo(line.text)
        activity = "running" if line.text.startswith("!") else activity_of(line.text)
        if activity and not line.is_for_model:
            self._front.live.wait(activity)

    async def done(self, line: InboxLine, result: Reply | Outcome | YbsError) -> None:
        """Draw what came of a line."""
        self._front.end_line()
        if isinstance(result, YbsError):
            self._front.show_error(told(result))
        elif isinstance(result, Reply):
            if _is_quiet(line) and result.menu is None:
                self._front.echo(line.text)
            await self._front.show_reply(result)
        elif result.plan and result.finished.reason == "done" and not self.has_more:
            await self._front.show_reply(offer_plan())

    def read(self, text: str, kept: str | None) -> None:
        """Draw words where the running turn has read them."""
        self._front.write_down(text, kept)
        self._front.echo(text)

    def give_back(self, lines: list[InboxLine]) -> None:
        """Put into the prompt what nobody has read."""
        self._front.give_back(to_type(lines))

    def changed(self) -> None:
        """Show what waits, and end what is drawn of a line that is done."""
        if self._inbox.now is None and self._ticking is not None:
            self._ticking.cancel()
            self._ticking = None
            self._front.live.end()
        if not self.is_busy:
            self._front.end_line()
        self._front.live.queue(self._shown(self._inbox.steering), self._shown(self._inbox.queued))
        self._front.redraw()

    def _shown(self, waiting: Sequence[str]) -> list[str]:
        """Give the newest of the lines that wait, and say how many there are before them."""
        more = len(waiting) - MAX_SHOWN
        lines = [self._front.shorten(line) for line in waiting[max(0, more) :]]
        return [f"{more} more", *lines] if more > 0 else lines

    def _begin(self) -> None:
        self._front.live.begin()
        if self._ticking is None:
            self._ticking = asyncio.create_task(self._tick())

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(1 / FRAMES_PER_SECOND)
            self._front.redraw()


def _is_quiet(line: InboxLine) -> bool:
    """Return whether a line is not drawn: Esc Esc asks for it, and what is chosen in the end is drawn."""
    return line.text.split()[:1] == ["/rewind"]
