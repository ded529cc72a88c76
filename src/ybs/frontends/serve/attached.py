"""A session of a server, as the terminal sees it: what it shows comes from there, and what the person types goes there."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Final, Self

from msgspec import Raw
from msgspec.structs import replace

from ybs.agent.environment import ToolEnvironment
from ybs.commands.command import SlashCommand
from ybs.config.schema import Mode
from ybs.core.decoding import from_json
from ybs.core.envelope import Envelope, Sink
from ybs.core.errors import YbsError
from ybs.core.events import (
    Noticed,
    StateChanged,
    TextStreamed,
    ThinkingStreamed,
    ToolFinished,
    TurnFinished,
    UserSaid,
)
from ybs.core.messages import ToolCall
from ybs.core.open_question import OpenQuestion
from ybs.core.ports import Confirm, Preview, Question
from ybs.core.time_limits import time_limit
from ybs.frontends.serve import protocol as wire
from ybs.frontends.serve.client import ServerClient, ServerGone, connect
from ybs.frontends.terminal.work import MENUS
from ybs.security.incognito import leave_no_dump
from ybs.session.inbox import InboxLine, Sender, order_of
from ybs.session.options import Options
from ybs.session.own_commands import OwnCommands, RunOwn
from ybs.session.reply import Outcome, Reply
from ybs.session.running_task import RunningTask
from ybs.session.settings import environment_of, load_settings, with_incognito
from ybs.session.status import Status, View
from ybs.transcripts.line import decoded

#: So long the session may take to say how a text may be kept.
ANSWER_SECONDS: Final = 3.0
#: So many turns are drawn of what was before.
MOST_TURNS: Final = 10
#: Commands that change what this terminal shows.
_OF_SCREEN: Final = ("/verbose", "/stream")
#: Pieces of an answer that is not whole.
_WRITTEN: Final = (TextStreamed, ThinkingStreamed)
#: After these the figures may be others.
_CHANGES_STATUS: Final = (StateChanged, ToolFinished, UserSaid, TurnFinished)


class AttachedInbox:
    """The inbox of the session, as the server tells of it."""

    def __init__(self, session: "AttachedSession") -> None:
        self._session = session
        self._told = wire.InboxTold(session="", now=None, steering=(), queued=(), beside=())
        #: The lines that this terminal has sent, by the numbers of their requests.
        self._mine: dict[int, InboxLine] = {}
        #: Those that were typed before the menu came that a line of this terminal opens: they may choose from it.
        self._ahead: deque[InboxLine] = deque()
        self._sender: Sender | None = None
        self.now: InboxLine | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a line is being worked on, or is on its way to open a menu."""
        return self.now is not None or bool(self._opening_menu)

    @property
    def _opening_menu(self) -> list[str]:
        return [line.text for line in self._mine.values() if line.text in MENUS]

    @property
    def has_more(self) -> bool:
        """Whether a line waits for the end of the running turn."""
        return bool(self._told.steering or self._told.queued)

    @property
    def steering(self) -> list[str]:
        """The words that the running turn has not read."""
        return [*self._told.steering]

    @property
    def queued(self) -> list[str]:
        """The lines that wait for its end."""
        return [*self._told.queued, *(line.text for line in self._ahead)]

    @property
    def in_order(self) -> list[str]:
        """The line that is being worked on, and those that wait behind it."""
        return [*([self.now.text] if self.now else []), *self.queued]

    @property
    def beside(self) -> list[str]:
        """The commands that run beside a turn."""
        return [*self._told.beside, *self._opening_menu]

    def hear(self, sender: Sender) -> None:
        """Tell a frontend of all lines, whoever sent them."""
        self._sender = sender
        if self._told.now is not None:
            self.now = InboxLine(text=self._told.now, sender=sender)

    def submit(self, line: InboxLine) -> None:
        """Take a line now: what the person's own shell runs, and what changes this screen, here."""
        if line.order and (work := self._session.work_here(line.text)) is not None:
            self._session.run_here(line, work)
        elif self._opening_menu and not line.is_choice:
            self._ahead.append(line)
            line.sender.changed()
        else:
            self._send(line, waits=False)

    def queue(self, line: InboxLine) -> None:
        """Take a line now, or when the running turn has ended."""
        self._send(line, waits=True)

    def _send(self, line: InboxLine, *, waits: bool) -> None:
        if self._session.has_gone:
            line.sender.give_back([line])
            return
        sending = self._session.sending(
            line.text, line.typed, is_for_model=line.is_for_model, waits=waits
        )
        if line.is_choice:
            sending = replace(sending, is_choice=True)
        self._mine[self._session.client.begin_request("send", sending)] = line

    async def result_of(
        self, text: str, *, typed: str | None = None, is_for_model: bool = False
    ) -> Reply | Outcome:
        """Take a line when it is its turn, and return what comes of it. Raises YbsError."""
        is_order = not is_for_model and bool(order_of(text, typed))
        if is_order and (work := self._session.work_here(text)) is not None:
            return await work
        sending = self._session.sending(text, typed, is_for_model=is_for_model, waits=True)
        sent = await self._session.client.call("send", sending, wire.Sent)
        return self._session.result_of(text, sent)

    def take_ahead(self) -> InboxLine | None:
        """Take the line that was typed before the menu came."""
        return self._ahead.popleft() if self._ahead else None

    def give_ahead(self, line: InboxLine) -> None:
        """Put back a line that was taken ahead."""
        self._ahead.appendleft(line)

    def recall(self) -> InboxLine | None:
        """Have the newest line that waits taken back; one of the server comes back as one that nobody has read."""
        if self._ahead:
            return self._ahead.pop()
        self._session.ask(self._recall())
        return None

    async def _recall(self) -> None:
        done = await self._session.call("take_back", wire.Done)
        if done.text and self._sender is not None:
            self._sender.give_back([InboxLine(text=done.text, sender=self._sender)])

    def stop(self) -> None:
        """Stop the running turn or command."""
        if not self._session.stop_own():
            self._session.ask(self._session.call("cancel", wire.Done))

    async def kept(self, text: str) -> str | None:
        """Ask the session how a text may be written down now; None also where it does not answer."""
        asking = wire.Keeping(session=self._session.id, text=text)
        with suppress(YbsError, TimeoutError):
            async with time_limit(ANSWER_SECONDS):
                return (await self._session.client.call("kept", asking, wire.Kept)).text
        return None

    async def abandon(self) -> None:
        """Leave everything as it is: it is the server's."""

    # What the server tells

    def hear_inbox(self, told: wire.InboxTold, *, is_first: bool = False) -> None:
        """Note what waits; where it `is_first` of a server, nobody has told that the line in work was taken."""
        self._told = told
        if self._sender is None:
            return
        if told.now is None:
            self.now = None
        elif self.now is None or self.now.text != told.now:
            self.now = InboxLine(text=told.now, sender=self._sender)
        if is_first and self.now is not None:
            self._sender.take(self.now, None)
        self._sender.changed()

    def hear_line(self, told: wire.LineTold) -> None:
        """Hand on what became of a line."""
        if self._sender is None:
            return
        number = told.request if isinstance(told.request, int) else 0
        line = self._mine.get(number) or InboxLine(text=told.text, sender=self._sender)
        match told.what:
            case "answered":
                self._session.ask(line.sender.done(line, reply_of(told.reply)))
            case "taken":
                is_now = self.now is not None and self.now.text == told.text
                if is_now:
                    self.now = line
                line.sender.take(line, told.kept)
            case "read":
                line.sender.read(told.text, told.kept)
            case "returned":
                line.sender.give_back([InboxLine(text=told.text, sender=line.sender)])

    async def hear_answer(self, number: int, sent: wire.Sent | YbsError) -> None:
        """Hand on what came of a line of this terminal."""
        line = self._mine.pop(number, None)
        if line is None:
            return
        if isinstance(sent, YbsError):
            await line.sender.done(line, sent)
        elif sent.outcome is not None or sent.reply is not None:
            await line.sender.done(line, self._session.result_of(line.text, sent))
        while self._ahead and not self._opening_menu:
            self._send(self._ahead.popleft(), waits=False)

    def lost(self) -> None:
        """Note that nothing runs any more, and give back what nobody has read."""
        now, mine = self.now, (*self._mine.values(), *self._ahead)
        self._mine.clear()
        self._ahead.clear()
        self.hear_inbox(wire.InboxTold(session="", now=None, steering=(), queued=(), beside=()))
        if self._sender is not None and (lines := [e for e in mine if e is not now]):
            self._sender.give_back(lines)


class AttachedSession:
    """A session of a server. It is there from `attach_to` on; whoever leaves it leaves it running."""

    stays = True
    #: What was wrong with the settings is told by the server.
    warnings: tuple[str, ...] = ()

    def __init__(
        self, client: ServerClient, options: Options, subscribed: wire.Subscribed, status: Status
    ) -> None:
        loaded = load_settings(options)
        self.client, self._options, self._loaded = client, options, loaded
        #: The project's folder, and the host and the settings of this terminal.
        self.folder, self.host, self.config = options.folder, options.host, loaded.config
        self.id, self._earlier = subscribed.session, subscribed.earlier
        self.inbox = AttachedInbox(self)
        self.view = View(streams=loaded.config.ui.stream_responses)
        self.commands = _ServerCommands(())
        #: What completes paths; no tool runs in it, and what may be written down is never asked here: the session says it.
        self.environment = self._environment(is_incognito=status.incognito)
        self._sinks: list[tuple[Sink, bool]] = []
        #: What was, to be drawn first, and behind it the beginning of an answer that is being written.
        self._before: list[Envelope] = []
        self._begun: list[Envelope] = []
        self._state, self._status = StateChanged(), status
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._running = RunningTask()
        self._own = OwnCommands(lambda: self.environment, self._running)
        self._confirm: Confirm | None = None
        self._keys = ""
        self._is_asking_status = False
        self.has_gone = self._is_back = False

    @classmethod
    async def attach_to(cls, client: ServerClient, name: str, options: Options) -> Self:
        """Subscribe to a session, and take in what was. Raises YbsError."""
        params = wire.Subscribing(session=name, lines=True)
        subscribed = await client.call("subscribe", params, wire.Subscribed)
        status = await client.call("status", wire.InSession(session=subscribed.session), Status)
        session = cls(client, options, subscribed, status)
        while (message := await client.told()) is not None and message.method != "inbox":
            if message.method == "event":
                envelope = session._envelope(message.params)
                is_begun = bool(session._begun) or isinstance(envelope.event, _WRITTEN)
                (session._begun if is_begun else session._before).append(envelope)
        facts = await session.call("commands", tuple[wire.CommandFacts, ...])
        session.commands = _ServerCommands(facts)
        if message is not None:
            session.inbox.hear_inbox(from_json(message.params, wire.InboxTold))
        return session

    def _environment(self, *, is_incognito: bool) -> ToolEnvironment:
        loaded = with_incognito(self._loaded, is_on=is_incognito)
        return environment_of(replace(self._options, before_incognito=leave_no_dump), loaded)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in (*self._tasks, *self._asking.values()):
            task.cancel()
        await self._running.end()
        await self.client.aclose()

    # What the terminal asks for

    @property
    def mode(self) -> Mode:
        """What is allowed without asking."""
        return self._status.mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        self._status = replace(self._status, mode=mode)
        self.ask(self.client.call("set_mode", wire.ModeChange(session=self.id, mode=mode)))

    @property
    def is_busy(self) -> bool:
        """Whether a turn is running."""
        return self._state.is_busy

    @property
    def is_ending(self) -> bool:
        """Whether a turn has finished and what it left behind is being kept."""
        return self.inbox.is_busy and not self._state.is_busy

    @property
    def resumed(self) -> Reply | None:
        """What was said and done: the last turns, and where the running one stands."""
        events = [each for each in self._before if not isinstance(each.event, StateChanged)]
        turns = [number for number, each in enumerate(events) if _is_persons(each)]
        cut = turns[-MOST_TURNS] if len(turns) > MOST_TURNS else 0
        shown = tuple(each.event if _is_persons(each) else each for each in events[cut:])
        if cut or self._earlier is None:
            return Reply(events=shown) if shown else None
        earlier = reply_of(self._earlier)
        return replace(earlier, text="", events=(*earlier.events, *shown))

    def status(self) -> Status:
        """Say where things stood when the server was asked last."""
        return self._status

    def attach(self, confirm: Confirm, *, keys: str = "", run_own: RunOwn | None = None) -> None:
        """Serve a frontend with a person before it, from now on."""
        self._confirm, self._keys = confirm, keys
        self._own.run_by(run_own)
        self.ask(self._hear())
        self._ask_questions(self._state.questions)

    def subscribe(self, sink: Sink, *, follows: bool = False) -> Callable[[], None]:
        """Have `sink` called with every event from now on."""
        entry = (sink, follows)
        self._sinks.append(entry)
        return lambda: self._sinks.remove(entry)

    @property
    def farewell(self) -> list[str]:
        """What is said when the person leaves: how to come back."""
        if self.has_gone:
            return []
        name = self._state.name or self.id
        goes_on = ", which goes on working" if self._state.is_busy else ""
        return [f"Left session {name}{goes_on}.", f"Come back with: ybs attach {name}"]

    async def prepare(self) -> None:
        """Do nothing: the server is ready."""

    def cancel(self) -> bool:
        """Stop the running turn or command."""
        self.inbox.stop()
        return self._state.is_busy

    # What the inbox asks for

    def ask(self, work: Any) -> None:
        """Do something beside. What the server refuses is told as a notice."""

        async def told() -> None:
            try:
                await work
            except ServerGone:
                pass  # who reads what it tells finds out, too
            except YbsError as error:
                self._tell(Noticed(level="error", text=str(error)))

        task = asyncio.create_task(told())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def call(self, method: str, kind: Any) -> Any:
        """Call a method that is about this session alone."""
        return await self.client.call(method, wire.InSession(session=self.id), kind)

    def sending(
        self, text: str, typed: str | None, *, is_for_model: bool, waits: bool
    ) -> wire.Sending:
        """Return what sends a line to the server, with what that has to know of this terminal."""
        is_share = not is_for_model and text.split()[:1] == ["/share"]
        return wire.Sending(
            session=self.id,
            text=text,
            typed=typed,
            is_for_model=is_for_model,
            waits=waits,
            ran=self._own.last if is_share else None,
        )

    def result_of(self, line: str, sent: wire.Sent) -> Reply | Outcome:
        """Return what came of a line; to the list of commands belong the keys of this terminal."""
        if sent.outcome is not None:
            return sent.outcome
        reply = reply_of(sent.reply)
        is_help = line.split() == ["/help"] and bool(self._keys)
        return replace(reply, notes=(*reply.notes, "", self._keys)) if is_help else reply

    def work_here(self, line: str) -> Awaitable[Reply] | None:
        """Return what does a line here: `!!command` in the person's own shell, or what they want to see of the work."""
        word, _, argument = line.partition(" ")
        if line.startswith("!!"):
            return self._own.run(line[2:].strip())
        if word not in _OF_SCREEN:
            return None
        from ybs.commands.table import named  # few change their screen

        here: Any = self  # these commands need its `view` alone
        return named()[word[1:]].run(here, argument.strip())

    def run_here(self, line: InboxLine, work: Awaitable[Reply]) -> None:
        """Do a line here, as the inbox of a session would."""

        async def run() -> None:
            line.sender.take(line, await self.inbox.kept(line.typed_part))
            try:
                done: Reply | YbsError = await work
            except YbsError as error:
                done = error
            await line.sender.done(line, done)

        self.ask(run())

    def stop_own(self) -> bool:
        """Stop the command of the person's own shell; return whether one runs."""
        return self._running.cancel()

    # What the server tells

    async def _hear(self) -> None:
        for each in self._begun:
            self._take(each)
        while not self.has_gone:
            message = await self.client.told()
            if message is None:
                await self._come_back()
                continue
            match message.method:
                case "event":
                    self._take(self._envelope(message.params))
                case "inbox":
                    told = from_json(message.params, wire.InboxTold)
                    self.inbox.hear_inbox(told, is_first=self._is_back)
                    self._is_back = False
                case "line":
                    self.inbox.hear_line(from_json(message.params, wire.LineTold))
                case "ended":
                    self._lose(from_json(message.params, wire.TellingEnded).message)
                case _:
                    await self._hear_answer(message)

    async def _come_back(self) -> None:
        """Have another server go on with the session: this one was killed."""
        name = self._state.name
        self._ask_questions(())
        self.inbox.lost()
        if not name:
            self._lose(str(ServerGone()))
            return
        self._tell(Noticed(level="warning", text=f"{ServerGone()} It is started again."))
        try:
            await self.client.aclose()
            self.client = await connect(self.host)
            options = replace(self._options, trust=None)  # the files may be others now
            opening = wire.for_server(options, wire.Resuming, name=name)
            self.id = (await self.client.call("resume", opening, wire.SessionEntry)).session
            params = wire.Subscribing(session=self.id, lines=True)
            await self.client.call("subscribe", params, wire.Subscribed)
        except YbsError as error:
            self._lose(str(error))
        self._is_back = True

    async def _hear_answer(self, message: Any) -> None:
        if message.error is not None:
            answer: wire.Sent | YbsError = YbsError(str(message.error["message"]))
        else:
            answer = from_json(message.result, wire.Sent)
        await self.inbox.hear_answer(message.id, answer)

    def _lose(self, why: str) -> None:
        self.has_gone = True
        self.inbox.lost()
        back = f" `ybs attach {self._state.name}` goes on with it." if self._state.name else ""
        self._tell(Noticed(level="error", text=f"{why}{back}"))

    def _envelope(self, params: Raw) -> Envelope:
        told = from_json(params, wire.EventTold)
        line = decoded(bytes(told.line))
        event = line.said if line is not None and line.said is not None else StateChanged()
        if isinstance(event, StateChanged) and line is not None and line.said is not None:
            self._state = event
        agent, by = (line.agent, line.started_by) if line is not None else ("", "")
        return Envelope(self.id, agent, event, by, told.number)

    def _take(self, envelope: Envelope) -> None:
        event = envelope.event
        if isinstance(event, StateChanged):
            changes = {name: getattr(event, name) for name in ("provider", "model", "title")}
            mode: Any = event.mode or self._status.mode
            self._status = replace(self._status, mode=mode, jobs=len(event.jobs), **changes)
            self._ask_questions(event.questions)
        for sink, follows in tuple(self._sinks):
            if follows or not isinstance(event, StateChanged):
                sink(envelope)
        if isinstance(event, _CHANGES_STATUS) and not self._is_asking_status:
            self._is_asking_status = True
            self.ask(self._ask_status())

    def _tell(self, event: Any) -> None:
        self._take(Envelope(self.id, "main", event))

    async def _ask_status(self) -> None:
        """Ask for the figures; whoever shows them is told when they are here."""
        self._is_asking_status = False
        before, self._status = self._status, await self.call("status", Status)
        if before.incognito != self._status.incognito:
            self.environment = self._environment(is_incognito=self._status.incognito)
        for sink, follows in tuple(self._sinks):
            if follows:
                sink(Envelope(self.id, "main", self._state))

    def _ask_questions(self, questions: Sequence[OpenQuestion]) -> None:
        """Ask what is open, and take from the screen what was answered elsewhere."""
        ids = {each.id for each in questions}
        for name in tuple(self._asking):
            if name not in ids:
                self._asking.pop(name).cancel()
        for each in questions:
            if each.id not in self._asking and self._confirm is not None:
                self._asking[each.id] = asyncio.create_task(self._answer(each, self._confirm))

    async def _answer(self, question: OpenQuestion, confirm: Confirm) -> None:
        answer = await confirm(_asked(question))
        fields = {name: getattr(answer, name) for name in answer.__struct_fields__}
        del fields["is_unattended"]
        params = wire.Answering(session=self.id, question=question.id, **fields)
        self.ask(self.client.call("answer", params))


class _ServerCommands:
    """The slash commands of the session, as the server lists them. They run there."""

    def __init__(self, facts: Sequence[wire.CommandFacts]) -> None:
        self._listed = [
            SlashCommand(
                each.names,
                each.arguments,
                each.summary,
                _elsewhere,
                choices=lambda _session, each=each: each.choices,
            )
            for each in facts
        ]

    def listed(self, session: object) -> Sequence[SlashCommand]:
        """Return all of them."""
        del session
        return self._listed

    def runs_beside(self, session: object, line: str) -> bool:
        """Return False: the server knows."""
        del session, line
        return False


async def _elsewhere(session: Any, argument: str) -> Reply:
    raise NotImplementedError  # the server runs commands; here they are only listed and completed


def reply_of(told: wire.ReplyTold | None) -> Reply:
    """Return a command's reply as the server told it, an empty one where it told none."""
    if told is None:
        return Reply()
    fields: dict[str, Any] = {name: getattr(told, name) for name in told.__struct_fields__}
    lines = (decoded(bytes(each)) for each in told.events)
    fields["events"] = tuple(
        line.said if line.agent == "main" else Envelope("", line.agent, line.said, line.started_by)
        for line in lines
        if line is not None and line.said is not None
    )
    return Reply(**fields)


def _asked(question: OpenQuestion) -> Question:
    """Return a question as a terminal asks it."""
    names = set(Question.__struct_fields__) & set(OpenQuestion.__struct_fields__)
    of_preview = {name: getattr(question, name) for name in ("title", "paths", "is_diff")}
    return Question(
        call=ToolCall(id=question.id, name=question.name, arguments=Raw(b"{}")),
        preview=Preview(body=question.preview, **of_preview),
        **{name: getattr(question, name) for name in names - {"preview"}},
    )


def _is_persons(envelope: Envelope) -> bool:
    event = envelope.event
    return envelope.is_main and isinstance(event, UserSaid) and event.origin == "person"
