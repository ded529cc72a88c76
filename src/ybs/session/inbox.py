"""The inbox of a session: what frontends send while something runs. Words steer the running turn; what has to wait is taken in order.

Any number of frontends send; each hears of its own lines. What nobody has read when a turn is stopped goes back to whoever sent it.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from ybs.core.envelope import Envelope, Sink
from ybs.core.errors import YbsError
from ybs.core.events import TurnFinished, UserSaid
from ybs.core.messages import Image
from ybs.session.injection import as_words, is_command
from ybs.session.reply import Commands, NotSent, Outcome, Reply
from ybs.session.running_task import Stopped


class Taking(Protocol):
    """What takes the lines: a session."""

    commands: Commands | None

    @property
    def is_busy(self) -> bool:
        """Whether a turn is running."""
        ...

    @property
    def unread_count(self) -> int:
        """How many words for the running turn it has not read."""
        ...

    def subscribe(self, sink: Sink) -> Callable[[], None]:
        """Have `sink` called with every event."""
        ...

    def steer(self, text: str, *, typed: str | None = None) -> bool:
        """Give words to the running turn; return whether one runs."""
        ...

    def take_back(self) -> str:
        """Return the newest words for it that it has not read, and forget them."""
        ...

    def unread(self) -> tuple[str, ...]:
        """Return all words that a turn did not read before it ended, and forget them."""
        ...

    def note_given_back(self, words: str, *, is_own: bool) -> None:
        """Note that unsent words go back into a prompt; `is_own`: the person typed them all."""
        ...

    def cancel(self) -> bool:
        """Stop the running turn or command; return whether there was one."""
        ...

    def kept(self, text: str) -> str | None:
        """Return a text as it may be written down outside of the session, without secrets; None in incognito, empty where it may be others'."""
        ...

    async def send(
        self,
        text: str,
        images: Sequence[Image] = (),
        *,
        typed: str | None = None,
        linked: Collection[str] | None = None,
    ) -> Outcome:
        """Take a turn with words for the model."""
        ...

    async def handle(self, line: str, images: Sequence[Image] = ()) -> Reply | Outcome:
        """Take a line: a command, or words for the model."""
        ...


class Sender:
    """A frontend, as the inbox sees it. Override what it wants to hear of.

    With a line that is taken or read comes `kept`, as `Taking.kept` says it of the typed part: nothing else of it may be written down.
    """

    @property
    def frontend(self) -> "Sender":
        """The frontend that it sends for: itself, unless it stands for one line alone."""
        return self

    def take(self, line: "InboxLine", kept: str | None) -> None:
        """Hear that a line is taken now."""

    async def done(self, line: "InboxLine", result: Reply | Outcome | YbsError) -> None:
        """Hear what came of it. The next line waits for this."""

    def read(self, text: str, kept: str | None) -> None:
        """Hear that the running turn has read words."""

    def give_back(self, lines: "list[InboxLine]") -> None:
        """Take back what nobody has read; `to_type` says how it stands in a prompt."""

    def taken_back(self, line: "InboxLine") -> None:
        """Hear that a line was taken back while it waited, by whichever frontend."""

    def hear_line(self, text: str, what: Literal["taken", "read"], kept: str | None) -> None:
        """Hear what became of a line that another frontend sent."""

    def hear_reply(self, line: "InboxLine", reply: Reply) -> None:
        """Hear what a command of another frontend answered, where it is for all."""

    def changed(self) -> None:
        """Hear that other lines wait than before, or another one is being worked on."""


class InboxLine(Struct, frozen=True, kw_only=True):
    """A line and who sent it.

    `typed` is the part in which named files are looked for (None: all), `linked` the paths of links in it (None: its frontend has none).
    `is_choice`: it was picked from a menu and is not given back. `is_for_model`: it is no command, whatever it begins with. `images` go with words that begin a turn, so those wait.
    """

    text: str
    sender: Sender
    typed: str | None = None
    linked: tuple[str, ...] | None = None
    is_choice: bool = False
    is_for_model: bool = False
    images: tuple[Image, ...] = ()

    @property
    def is_all_typed(self) -> bool:
        """Whether all of it is the person's own, and may be a command."""
        return self.typed is None and not self.is_for_model

    @property
    def typed_part(self) -> str:
        """What the person typed of it, as far as it is known."""
        return self.text if self.typed is None else self.typed

    @property
    def order(self) -> str:
        """How it begins as a command, as `order_of` says; empty for words."""
        return "" if self.is_for_model else order_of(self.text, self.typed)

    @property
    def brought(self) -> str:
        """The words that nobody typed, as far as they are known: what stands behind the typed part, or all of them."""
        return "" if self.typed is None else self.text.removeprefix(self.typed)


def order_of(text: str, typed: str | None = None) -> str:
    """Return how a command begins: `!`, `!!` or `/name`; empty for words, and where what nobody typed would say which."""
    begins = {_beginning(text), _beginning(text if typed is None else typed)}
    return begins.pop() if len(begins) == 1 else ""


def _beginning(text: str) -> str:
    if text.startswith("!"):
        return text[: 1 + text.startswith("!!")]
    return text.split(maxsplit=1)[0] if is_command(text) else ""


def to_type(lines: Sequence[InboxLine]) -> str:
    """Return the prompt text for lines that go back: only one that stands alone can be a command there."""
    text = "\n".join(line.text for line in lines)
    may_run = len(lines) == 1 and (lines[0].is_all_typed or lines[0].order)
    return text if may_run else as_words(text)


class _Waiting(Sender):
    """Somebody who waits for what comes of one line."""

    def __init__(self, frontend: Sender | None) -> None:
        self.result: asyncio.Future[Reply | Outcome | YbsError] = asyncio.Future()
        self._frontend, self._is_taken = frontend, False

    @property
    def frontend(self) -> Sender:
        """Whoever waits."""
        return self._frontend or self

    def take(self, line: InboxLine, kept: str | None) -> None:
        """Note that something comes of it, also where its words go back."""
        self._is_taken = True

    async def done(self, line: InboxLine, result: Reply | Outcome | YbsError) -> None:
        """Hand on what came of it."""
        if not self.result.done():
            self.result.set_result(result)

    def give_back(self, lines: list[InboxLine]) -> None:
        """Say that nobody has read it."""
        if not self._is_taken and not self.result.done():
            self.result.set_result(Stopped("Not sent: what ran before it was stopped."))


class Inbox:
    """Takes lines, one at a time. What breaks in that is told to the loop. `changed` is called when other lines wait."""

    def __init__(self, session: Taking, changed: Callable[[], None]) -> None:
        self._session, self._changed = session, changed
        self._is_listening = False
        self._lines: deque[InboxLine] = deque()
        self._steering: deque[InboxLine] = deque()
        self._beside: dict[asyncio.Task[None], InboxLine] = {}
        self._senders: list[Sender] = []
        self._task: asyncio.Task[None] | None = None
        #: The line that is being worked on.
        self.now: InboxLine | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a line is being worked on."""
        return self._task is not None

    @property
    def has_more(self) -> bool:
        """Whether a line waits for the end of the running turn."""
        return bool(self._lines or self._steering)

    @property
    def steering(self) -> list[str]:
        """The words that the running turn has not read, oldest first."""
        return [line.text for line in self._steering]

    @property
    def queued(self) -> list[str]:
        """The lines that wait for its end, oldest first."""
        return [line.text for line in self._lines]

    @property
    def waiting(self) -> tuple[str, ...]:
        """All lines that wait, in the order in which they will be taken."""
        return (*self.steering, *self.queued)

    @property
    def in_order(self) -> list[str]:
        """The line that is being worked on, and those that wait behind it."""
        return [*([self.now.text] if self.now else []), *self.queued]

    @property
    def beside(self) -> list[str]:
        """The commands that run beside a turn."""
        return [line.text for line in self._beside.values()]

    def submit(self, line: InboxLine) -> None:
        """Take a line now: a command at once if it can, words at the running turn's next step, all else behind what runs."""
        if self.is_busy and self._runs_beside(line):
            task = asyncio.create_task(self._take(line))
            self._beside[task] = line
            task.add_done_callback(self._beside.pop)
            task.add_done_callback(report)
            return
        # Words behind a command that waits are for what it leaves: /new, or another model.
        is_turned = any(map(self._is_order, (*self._lines, line)))
        is_steering = self.is_busy and not is_turned and not line.images
        if is_steering and self._session.steer(line.text, typed=line.typed):
            self._steering.append(line)
            self._tell(line.sender)
            return
        self.queue(line)

    def queue(self, line: InboxLine) -> None:
        """Take a line now, or when the running turn has ended."""
        if not self._is_listening:  # behind whoever draws
            self._is_listening = True
            self._session.subscribe(self._on_event)
        self._lines.append(line)
        self._tell(line.sender)
        if self._task is None:
            self._task = asyncio.create_task(self._work_off())
            self._task.add_done_callback(report)

    async def result_of(
        self,
        text: str,
        *,
        typed: str | None = None,
        linked: tuple[str, ...] | None = None,
        images: tuple[Image, ...] = (),
        is_for_model: bool = False,
        frontend: Sender | None = None,
    ) -> Reply | Outcome:
        """Take a line when it is its turn, and return what comes of it; cancelled, the line is taken back or stopped.

        A command that can runs beside the running turn. `frontend` is who sends it, where that hears of the lines of others.

        Raises the YbsError that came of it, and Stopped where it was given back.
        """
        waiting = _Waiting(frontend)
        line = InboxLine(
            text=text,
            sender=waiting,
            typed=typed,
            linked=linked,
            is_for_model=is_for_model,
            images=images,
        )
        (self.submit if self._runs_beside(line) else self.queue)(line)
        task = next((each for each, of in self._beside.items() if of is line), self._task)
        try:
            await asyncio.wait(
                (waiting.result, *([task] if task else [])), return_when="FIRST_COMPLETED"
            )
        except asyncio.CancelledError:
            if line in self._lines:
                self._lines.remove(line)
            elif self.now is line:
                self.stop()
            raise
        finally:
            self.forget(waiting)
        if task is not None and not waiting.result.done():
            task.result()  # raises what broke
            raise Stopped("Interrupted.")
        result = waiting.result.result()
        if isinstance(result, YbsError):
            raise result
        return result

    def take_ahead(self) -> InboxLine | None:
        """Take the line that waits first out of the queue, if one does."""
        line = self._lines.popleft() if self._lines else None
        self._tell()
        return line

    def give_ahead(self, line: InboxLine) -> None:
        """Put a line before all that wait."""
        self._lines.appendleft(line)
        self._tell(line.sender)

    def recall(self) -> InboxLine | None:
        """Take back the newest line that waits, if one does."""
        if self._lines:
            line = self._lines.pop()
        else:
            text = self._session.take_back()
            line = self._steered(text) if text else None
        if line is not None:
            line.sender.taken_back(line)
            self._note_back(line)
        self._tell()
        return line

    def hear(self, sender: Sender) -> None:
        """Tell a frontend what waits, though it has sent nothing."""
        if sender not in self._senders:
            self._senders.append(sender)

    def forget(self, sender: Sender) -> None:
        """Tell a frontend that is gone nothing more of what waits; what it sent stays."""
        if sender in self._senders:
            self._senders.remove(sender)

    def stop(self) -> None:
        """Stop the running turn or command."""
        if not self._session.cancel() and self._task is not None:
            self._task.cancel()

    async def kept(self, text: str) -> str | None:
        """Return how a text that is not sent may be written down now, as `Taking.kept`."""
        return self._session.kept(text)

    async def abandon(self) -> None:
        """Stop everything before the session is closed."""
        for task in self._beside:
            task.cancel()
        if (task := self._task) is not None:
            self._lines.clear()
            self.stop()
            await asyncio.wait((task,), timeout=5)

    def _runs_beside(self, line: InboxLine) -> bool:
        commands = self._session.commands
        if commands is None or not line.order:
            return False
        return commands.runs_beside(self._session, line.text)

    def _is_order(self, line: InboxLine) -> bool:
        """Return whether a line is a command, and no words for the model."""
        return line.order.startswith("!" if self._session.commands is None else ("!", "/"))

    async def _work_off(self) -> None:
        try:
            while self._lines:
                self.now = line = self._lines.popleft()
                self._tell()
                try:
                    await self._take(line)
                finally:
                    self.now = None
                    self._tell()
        finally:
            self._task = None
            if self.has_more:  # a command was stopped, or broke
                self._give_back()
            self._tell()

    async def _take(self, line: InboxLine) -> None:
        kept = self._kept(line)
        line.sender.take(line, kept)
        self._tell_others(line, "taken", kept)
        try:
            done = await self._sent(line)
        except YbsError as error:
            if not self._session.is_busy:
                self._give_back_unread(unsent=[line] if isinstance(error, NotSent) else [])
            await line.sender.done(line, error)
            return
        if isinstance(done, Outcome):
            if done.finished.reason == "done":
                self._send_unread(line.sender)
            elif done.unsent:
                self._give_back_unread(unsent=[InboxLine(text=done.unsent, sender=line.sender)])
            else:
                self._give_back_unread()
        if isinstance(done, Reply) and done.is_for_all:
            for each in self._others_than(line):
                each.hear_reply(line, done)
        await line.sender.done(line, done)

    async def _sent(self, line: InboxLine) -> Reply | Outcome:
        if line.is_for_model or (line.typed is not None and not self._is_order(line)):
            return await self._session.send(
                line.text, line.images, typed=line.typed, linked=line.linked
            )
        return await self._session.handle(line.text, line.images)

    def _on_event(self, envelope: Envelope) -> None:
        """Tell of words that the running turn has read; give back what waits when it was stopped."""
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
            line = self._steering.popleft()
            kept = self._kept(line)
            line.sender.read(line.text, kept)
            self._tell_others(line, "read", kept)
            self._tell()

    def _send_unread(self, sender: Sender) -> None:
        """Send what the turn did not come to read as the next line: words, as they were."""
        if unread := self._unread():
            typed = None
            if any(line.typed is not None for line in unread):
                typed = "\n".join(e.typed_part for e in unread)
            text = "\n".join(line.text for line in unread)
            self._lines.appendleft(
                InboxLine(text=text, sender=sender, typed=typed, is_for_model=True)
            )

    def _unread(self) -> list[InboxLine]:
        """Return the lines whose words no turn has read, oldest first, and forget them."""
        lines = [self._steered(text) for text in reversed(self._session.unread())]
        self._steering.clear()
        return lines[::-1]

    def _steered(self, text: str) -> InboxLine:
        """Return the newest line with words for the turn, and forget it; others than a frontend may have sent them."""
        if self._steering and self._steering[-1].text == text:
            return self._steering.pop()
        return InboxLine(text=text, sender=Sender(), is_for_model=True)

    def _give_back(self) -> None:
        """Give back what was not sent and what waited behind a stopped turn: it may no longer be wanted."""
        waiting = [line for line in self._lines if not line.is_choice]
        self._lines.clear()
        self._give_back_unread(behind=waiting)

    def _give_back_unread(
        self, *, unsent: "list[InboxLine] | None" = None, behind: "list[InboxLine] | None" = None
    ) -> None:
        """Give back the words that no turn has read, between lines before and behind them, each to its sender."""
        back = [*(unsent or []), *self._unread(), *(behind or [])]
        for line in back:
            self._note_back(line)
        for sender in {id(line.sender): line.sender for line in back}.values():
            sender.give_back([line for line in back if line.sender is sender])
        self._tell()

    def _note_back(self, line: InboxLine) -> None:
        is_own = line.typed_part == line.text and line.linked is None
        self._session.note_given_back(line.text, is_own=is_own)

    def _kept(self, line: InboxLine) -> str | None:
        return self._session.kept(line.typed_part)

    def _tell_others(
        self, line: InboxLine, what: Literal["taken", "read"], kept: str | None
    ) -> None:
        for each in self._others_than(line):
            each.hear_line(line.text, what, kept)

    def _others_than(self, line: InboxLine) -> list[Sender]:
        return [each for each in self._senders if each is not line.sender.frontend]

    def _tell(self, sender: Sender | None = None) -> None:
        if sender is not None:
            self.hear(sender)
        for each in self._senders:
            each.changed()
        self._changed()


def report(task: "asyncio.Task[None]") -> None:
    """Hand a task's error to the loop at once, not when the task is forgotten: a task's done callback."""
    if not task.cancelled() and (error := task.exception()) is not None:
        told = {"message": "a task failed", "exception": error}
        task.get_loop().call_exception_handler(told)
