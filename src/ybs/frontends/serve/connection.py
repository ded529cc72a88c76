"""One client of the server: its requests, one after the other, and what it is told of the sessions that it subscribed to."""

import asyncio
import hmac
import os
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import replace

from ybs.core.decoding import decodable, from_json
from ybs.core.envelope import MAIN, Envelope
from ybs.core.errors import YbsError
from ybs.core.ports import Answer
from ybs.core.time_limits import time_limit
from ybs.core.version import VERSION as YBS_VERSION
from ybs.frontends.acp.command import serve_in
from ybs.frontends.headless.advice import told as advised
from ybs.frontends.json_rpc import LineReader
from ybs.frontends.serve import protocol as wire
from ybs.frontends.serve.sessions import HostedSession, HostedSessions, Watcher
from ybs.session.inbox import InboxLine, to_type
from ybs.session.options import Options
from ybs.session.reply import Outcome, Reply
from ybs.transcripts.line import json_of, told

#: So long a client has for its first message, and one that does not read for what is left to be written.
HELLO_SECONDS: Final = 10.0
_FLUSH_SECONDS: Final = 30.0
_CHUNK_BYTES: Final = 65_536
#: A client that leaves so much unread is told no more.
MOST_UNREAD_BYTES: Final = 16_000_000
#: So many lines of one client in one session may wait for what comes of them.
MOST_WAITING: Final = 1_000


class _Numbered(Struct):
    """What may be read of a message that makes no sense otherwise."""

    id: wire.RequestId | UnsetType = UNSET


_NUMBERED: Final = msgspec.json.Decoder(decodable(_Numbered))


class RequestRefused(Exception):
    """A request that is not carried out: the code and the words of its error."""

    def __init__(self, code: int, words: str = "", **data: Any) -> None:
        super().__init__(words or wire.ERRORS[code])
        self.code, self.data = code, data


class _Waiting(Struct, frozen=True, eq=False):
    """A line that nothing has come of: which, and the number of the request that it came with."""

    line: InboxLine
    number: wire.RequestId | UnsetType


class Seat(Watcher):
    """A client in a session, a `Watcher`: it is told what happens there, and what comes of its lines."""

    def __init__(self, client: "ClientConnection", held: HostedSession) -> None:
        self._client, self.held, self._inbox = client, held, held.session.inbox
        self._lines: list[_Waiting] = []
        self._leave: Callable[[], None] = lambda: None
        self.is_subscribed = self._hears_lines = False
        #: The number of the last event that was told.
        self.number = 0
        held.watchers.append(self)

    async def subscribe(self, after: int, *, lines: bool) -> None:
        """Be told of what was behind a number, as fast as the client reads it, and of what happens from now on."""
        self.unsubscribe()
        self.number = after
        while earlier := self.held.feed.earlier(self.number):
            for envelope in earlier:
                self._hear(envelope)
                await self._client.written()
        self.is_subscribed, self._hears_lines = True, lines
        self._leave = self.held.feed.follow(self._hear, self.number)
        self._inbox.hear(self)
        self.changed()

    def unsubscribe(self) -> bool:
        """Be told no more; return whether anything was."""
        self._leave()
        was, self.is_subscribed, self._hears_lines = self.is_subscribed, False, False
        self._leave = lambda: None
        return was

    def end(self) -> None:
        """Leave the session; the lines that were sent stay in it."""
        self.unsubscribe()
        self._inbox.forget(self)
        self.held.watchers.remove(self)

    def closed(self, message: str) -> None:
        """Tell that the session is closed."""
        self.end()
        session = self.held.session.id
        self._client.forget(session)
        self._client.tell(
            "ended", wire.TellingEnded(session=session, number=self.number, message=message)
        )

    def _hear(self, envelope: Envelope) -> None:
        self.number, line = envelope.number, Raw(_line_of(envelope))
        self._client.tell(
            "event", wire.EventTold(session=envelope.session, number=self.number, line=line)
        )

    # What the client sends

    def send(self, number: wire.RequestId | UnsetType, sending: wire.Sending) -> None:
        """Put a line into the inbox. Raises RequestRefused where too many wait."""
        if len(self._lines) >= MOST_WAITING:
            raise RequestRefused(wire.TOO_MANY)
        fields = {name: getattr(sending, name) for name in ("text", "typed", "is_choice")}
        line = InboxLine(sender=self, is_for_model=sending.is_for_model, **fields)
        self._lines.append(_Waiting(line, number))
        if sending.ran is not None:
            self.held.session.own_commands.note(sending.ran)
        (self._inbox.queue if sending.waits else self._inbox.submit)(line)

    def steer(self, text: str) -> bool:
        """Give words to the running turn; return whether there is one."""
        if is_busy := self.held.session.is_busy:
            self._inbox.submit(InboxLine(text=text, sender=self, is_for_model=True))
        return is_busy

    def stop(self) -> bool:
        """Stop what runs; return whether anything did."""
        was_busy = self._inbox.is_busy or self.held.session.is_busy
        self._inbox.stop()
        return was_busy

    def take_back(self) -> str:
        """Take the newest line that waits out of the queue, whoever sent it."""
        line = self._inbox.recall()
        return to_type([line]) if line is not None else ""

    # What the inbox tells

    def take(self, line: InboxLine, kept: str | None) -> None:
        """Tell that a line is taken."""
        number = next((each.number for each in self._lines if each.line is line), UNSET)
        self.hear_line(line.text, "taken", kept, number)

    async def done(self, line: InboxLine, result: Reply | Outcome | YbsError) -> None:
        """Answer the request that the line came with; where it holds words that no turn came to read, the requests of those."""
        if isinstance(result, Reply) and not self._hears_lines:
            result = result.without_terminal(line.text)
        came = [each for each in self._lines if each.line is line]
        for each in came or [e for e in self._lines if e.line.text in line.text.split("\n")]:
            self._settle(each, _failed(result) if isinstance(result, YbsError) else _sent(result))

    def read(self, text: str, kept: str | None) -> None:
        """Tell that the running turn has read words."""
        self.hear_line(text, "read", kept, self._settled(text, wire.Sent(was_read=True)))

    def give_back(self, lines: list[InboxLine]) -> None:
        """Tell that nobody has read these."""
        for line in lines:
            number = self._settled(line.text, wire.Sent(was_returned=True))
            self.hear_line(to_type([line]), "returned", number=number)

    def taken_back(self, line: InboxLine) -> None:
        """Answer the request that the line came with."""
        for each in [each for each in self._lines if each.line is line]:
            self._settle(each, wire.Sent(was_returned=True))

    def changed(self) -> None:
        """Tell what waits."""
        if self._hears_lines:
            inbox, now = self._inbox, self._inbox.now
            told = wire.InboxTold(
                session=self.held.session.id,
                now=now.text if now else None,
                steering=tuple(inbox.steering),
                queued=tuple(inbox.queued),
                beside=tuple(inbox.beside),
            )
            self._client.tell("inbox", told)

    def hear_line(
        self,
        text: str,
        what: Any,
        kept: str | None = None,
        number: wire.RequestId | UnsetType = UNSET,
        *,
        reply: wire.ReplyTold | None = None,
    ) -> None:
        """Tell of a line, where lines are asked for."""
        if self._hears_lines:
            session, request = self.held.session.id, None if number is UNSET else number
            told = wire.LineTold(
                session=session, text=text, what=what, request=request, reply=reply, kept=kept
            )
            self._client.tell("line", told)

    def hear_reply(self, line: InboxLine, reply: Reply) -> None:
        """Tell what a command of another frontend answered; a menu opens there alone."""
        self.hear_line(line.text, "answered", reply=_told(replace(reply, menu=None)))

    def _settled(self, text: str, sent: wire.Sent) -> wire.RequestId | UnsetType:
        """Answer the request of the oldest line with this text, and return its number."""
        oldest = next((each for each in self._lines if each.line.text == text), None)
        if oldest is not None:
            self._settle(oldest, sent)
        return oldest.number if oldest else UNSET

    def _settle(self, waiting: _Waiting, result: "wire.Sent | RequestRefused") -> None:
        self._lines.remove(waiting)
        self._client.answer(waiting.number, result)


class ClientConnection:
    """Reads requests and answers them until the client goes. Where there is a `token`, the client has to know it."""

    def __init__(
        self,
        sessions: HostedSessions,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        token: str,
    ) -> None:
        self._sessions, self._reader, self._writer, self._token = sessions, reader, writer, token
        self._seats: dict[str, Seat] = {}
        self._is_greeted = self._is_over = False
        #: The options of an editor, where one is at the other end.
        self._editor: Options | None = None

    async def run(self) -> None:
        """Serve the client."""
        hello = asyncio.get_running_loop().call_later(HELLO_SECONDS, self._end_ungreeted)
        lines, size = LineReader(wire.MOST_BYTES), 0
        try:
            while not self._is_over and (data := await self._reader.read(_CHUNK_BYTES)):
                size += len(data)
                if not self._is_greeted and size > wire.MOST_HELLO_BYTES:
                    self._end_ungreeted()
                for line in lines.feed(data):
                    if not self._is_over and (line is None or line.strip()):
                        await self._take(line)
                        await self.written()  # who does not read its answers is not read
            if self._editor is not None:
                await serve_in(self._sessions, self._editor, self._reader, self._writer)
        except OSError:
            pass  # it has gone
        finally:
            hello.cancel()
            await self._close()

    async def _close(self) -> None:
        for seat in self._seats.values():
            seat.end()
        self._is_over = True
        self._writer.close()
        try:
            async with time_limit(_FLUSH_SECONDS):
                await self._writer.wait_closed()
        except (OSError, TimeoutError):
            self._writer.transport.abort()

    def end(self, message: str) -> None:
        """Say why the client is told no more, and let it go."""
        number = max((seat.number for seat in self._seats.values()), default=0)
        self.tell("ended", wire.TellingEnded(session="", number=number, message=message))
        self._is_over = True
        self._reader.feed_eof()

    def _end_ungreeted(self) -> None:
        if not self._is_greeted and not self._is_over:
            self.answer(None, RequestRefused(wire.NOT_GREETED))
            self._is_over = True
            self._reader.feed_eof()

    def forget(self, session: str) -> None:
        """Forget a session that is closed."""
        del self._seats[session]

    # What is written

    def tell(self, method: str, params: Struct) -> None:
        """Tell the client something. Where it has left too much unread, it is told so as the last word."""
        self._write(b'{"jsonrpc":"2.0","method":"%s","params":%s}\n', method.encode(), params)

    def answer(self, number: wire.RequestId | UnsetType, result: Any) -> None:
        """Answer a request, unless it asked for no answer."""
        if number is UNSET:
            return
        key = json_of(number)
        if isinstance(result, RequestRefused):
            error = {"code": result.code, "message": str(result), "data": result.data}
            self._write(b'{"jsonrpc":"2.0","id":%s,"error":%s}\n', key, error)
        else:
            self._write(b'{"jsonrpc":"2.0","id":%s,"result":%s}\n', key, result)

    def _write(self, form: bytes, head: bytes, value: Any) -> None:
        if not self._is_over:
            self._writer.write(form % (head, json_of(value)))
            if self._writer.transport.get_write_buffer_size() > MOST_UNREAD_BYTES:
                asyncio.get_running_loop().call_soon(self._drop)

    def _drop(self) -> None:
        if not self._is_over:
            self.end(
                f"More than {MOST_UNREAD_BYTES:,} bytes waited to be read, so no more is told. Connect again, and subscribe "
                "behind the last number that you have."
            )

    async def written(self) -> None:
        """Wait until the client has read most of what it was told. Raises OSError when it has gone."""
        await self._writer.drain()

    # What is read

    async def _take(self, line: bytes | None) -> None:
        number: wire.RequestId | UnsetType = None
        try:
            with suppress(msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
                number = _NUMBERED.decode(line or b"").id
            request = _decoded(line, wire.RpcRequest, wire.INVALID_REQUEST)
            await self._serve(request)
        except RequestRefused as error:
            self.answer(number, error)
        except (YbsError, OSError) as error:
            self.answer(number, _failed(error))
        self._is_over = self._is_over or not self._is_greeted  # that was no greeting

    async def _serve(self, request: wire.RpcRequest) -> None:
        if request.method not in wire.METHODS:
            raise RequestRefused(wire.UNKNOWN_METHOD)
        if self._is_greeted is (request.method == "hello"):
            raise RequestRefused(wire.INVALID_REQUEST if self._is_greeted else wire.NOT_GREETED)
        kind = wire.METHODS[request.method][0]
        params: Any = _decoded(request.params, kind, wire.INVALID_PARAMS)
        if request.method == "send":
            self._seat(params).send(request.id, params)
        elif request.method == "subscribe":
            await self._subscribe(request, params)
        else:
            result = await getattr(self, f"_on_{request.method}")(params)
            self.answer(request.id, result)
            self._is_over = self._editor is not None  # nothing more is told in this protocol

    def _seat(self, params: wire.InSession) -> Seat:
        held = self._sessions.find(params.session)
        name = held.session.id
        if name not in self._seats:
            self._seats[name] = Seat(self, held)
        return self._seats[name]

    async def _subscribe(self, request: wire.RpcRequest, params: wire.Subscribing) -> None:
        seat = self._seat(params)
        earlier = seat.held.earlier if params.after == 0 else None
        result = wire.Subscribed(
            session=seat.held.session.id,
            number=seat.held.feed.number,
            earlier=_told(earlier) if earlier else None,
        )
        self.answer(request.id, result)
        await seat.subscribe(params.after, lines=params.lines)

    async def _on_hello(self, hello: wire.Hello) -> wire.Greeting:
        if self._token and not hmac.compare_digest(hello.token.encode(), self._token.encode()):
            raise RequestRefused(wire.NOT_GREETED, "The token is missing or wrong.")
        if hello.version != wire.VERSION:
            raise RequestRefused(wire.WRONG_VERSION, versions=[wire.VERSION])
        self._is_greeted = True
        return wire.Greeting(version=wire.VERSION, ybs=YBS_VERSION, pid=os.getpid())

    async def _on_open(self, params: wire.Opening) -> wire.SessionEntry:
        return self._sessions.open(params, is_fork=False).facts

    _on_resume = _on_open

    async def _on_fork(self, params: wire.Resuming) -> wire.SessionEntry:
        return self._sessions.open(params, is_fork=True).facts

    async def _on_list(self, params: wire.SessionQuery) -> tuple[wire.SessionEntry, ...]:
        return self._sessions.listed(params)

    async def _on_close(self, params: wire.InSession) -> wire.Done:
        await self._sessions.close(self._sessions.find(params.session), "It was closed.")
        return wire.Done(done=True)

    async def _on_steer(self, params: wire.SteeringWords) -> wire.Done:
        return wire.Done(done=self._seat(params).steer(params.text))

    async def _on_kept(self, params: wire.Keeping) -> wire.Kept:
        return wire.Kept(text=self._sessions.find(params.session).session.kept(params.text))

    async def _on_cancel(self, params: wire.InSession) -> wire.Done:
        return wire.Done(done=self._seat(params).stop())

    async def _on_take_back(self, params: wire.InSession) -> wire.Done:
        text = self._seat(params).take_back()
        return wire.Done(done=bool(text), text=text)

    async def _on_answer(self, params: wire.Answering) -> wire.Done:
        answer = msgspec.convert(params, decodable(Answer), from_attributes=True)
        questions = self._sessions.find(params.session).session.questions
        return wire.Done(done=questions.answer(params.question, answer))

    async def _on_set_mode(self, params: wire.ModeChange) -> wire.Done:
        self._sessions.find(params.session).session.mode = params.mode
        return wire.Done(done=True)

    async def _on_status(self, params: wire.InSession) -> Struct:
        return self._sessions.find(params.session).session.status()

    async def _on_commands(self, params: wire.InSession) -> list[wire.CommandFacts]:
        from ybs.commands.registry import commands_of  # few ask

        session = self._sessions.find(params.session).session
        return [
            wire.CommandFacts(
                names=each.names,
                arguments=each.arguments,
                summary=each.summary,
                choices=tuple(each.choices(session)) if each.choices else (),
            )
            for each in commands_of(session)
        ]

    async def _on_acp(self, params: wire.Opening) -> wire.Done:
        if find_spec("acp") is None:
            raise YbsError("The server runs without the extra `acp`.")
        self._editor = self._sessions.options_of(params)
        return wire.Done(done=True)

    async def _on_unsubscribe(self, params: wire.InSession) -> wire.Done:
        return wire.Done(done=self._seat(params).unsubscribe())


def _decoded(data: bytes | Raw | None, kind: type[Any], code: int) -> Any:
    if data is None:  # it was too long
        raise RequestRefused(code)
    try:
        return from_json(data, kind)
    except msgspec.ValidationError as error:
        raise RequestRefused(code, str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestRefused(wire.PARSE_ERROR) from error


def _failed(error: YbsError | OSError) -> RequestRefused:
    if isinstance(error, YbsError):
        return RequestRefused(wire.FAILED, advised(error), kind=type(error).__name__)
    return RequestRefused(
        wire.FAILED, f"{error.filename or 'The system'}: {error.strerror or error}"
    )


def _sent(result: Reply | Outcome) -> wire.Sent:
    if isinstance(result, Outcome):
        return wire.Sent(outcome=result)
    return wire.Sent(reply=_told(result))


def _told(reply: Reply) -> wire.ReplyTold:
    envelopes = (e if isinstance(e, Envelope) else Envelope("", MAIN, e) for e in reply.events)
    fields: dict[str, Any] = {n: getattr(reply, n) for n in wire.ReplyTold.__struct_fields__}
    fields["events"] = tuple(Raw(_line_of(each)) for each in envelopes)
    return wire.ReplyTold(**fields)


def _line_of(envelope: Envelope) -> bytes:
    origin = {"agent": envelope.agent, "started_by": envelope.started_by}
    return told(envelope.event, session=envelope.session, at=datetime.now(UTC), **origin)[:-1]
