"""Limit the answers of a server at an address to whole messages of bounded size. Anything else becomes an error in ybs's words.

The SDK reads bodies of any size, and says of every failure that the server returned an error response.
"""

import asyncio
import ssl
from codecs import BOM_UTF8
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from http.client import responses
from importlib.metadata import version
from os import strerror
from socket import gaierror
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

import httpx2
import msgspec
from mcp_types import JSONRPCMessage

from ybs.config.addresses import is_loopback, origin_of
from ybs.config.tree import is_object
from ybs.core.errors import ToolError
from ybs.core.time_limits import time_limit, time_limit_at
from ybs.tools.mcp.listed import cleaned
from ybs.tools.mcp.repair import messages_of

#: One answer may have so many bytes, and one event of a stream as many.
MOST_BYTES: Final = 16_000_000
#: A stream of events may have so many bytes in all.
MOST_STREAMED: Final = 128_000_000
#: A stream that answers a request is closed so long after the request has run out of time.
_GRACE_SECONDS = 30.0
CONNECT_SECONDS: Final = 15.0
_SHORT_SECONDS = 30.0
_UNAUTHORIZED = 401  # the login answers it
#: What is said at the end of a session is not waited for.
_FAREWELL_SECONDS = 3.0
_SESSION = "mcp-session-id"
_EVENTS = "text/event-stream"
#: Fields of an event; "" begins a comment.
_HEAD: Final = (b"", b"id", b"retry", b"event")
_FIELDS: Final = (*_HEAD, b"data")
_INTERNAL_ERROR = -32603
PROGRAM: Final = f"ybs/{version('ybs')}"
_STATUSES: Final[Mapping[int, str]] = {
    401: "it does not accept the key in its headers",
    403: "it does not allow this",
    404: "there is no MCP server at this address",
    405: "there is no MCP server at this address",
    429: "it wants fewer requests",
}


class CheckedTransport(httpx2.AsyncBaseTransport):
    """Sends requests by another transport. `lost` is told why, when the server or its session is gone."""

    def __init__(
        self,
        inner: httpx2.AsyncBaseTransport,
        lost: Callable[[str], None],
        *,
        address: str,
        seconds: float,
        is_sse: bool = False,
    ) -> None:
        self._inner, self._lost, self._seconds = inner, lost, seconds
        self._is_sse = is_sse
        self._address = address
        #: Why nothing more is sent.
        self._gone = ""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request. Raises ToolError for one that must not be sent, and what httpx2 raises where no message is asked for."""
        check_target(str(request.url), self._address)
        is_message = request.method == "POST" and _EVENTS in request.headers.get("accept", "")
        if not is_message:
            return await self._other(request)
        if self._gone:
            return _refusal(502, self._gone)
        try:
            async with time_limit(self._seconds):
                response = await self._exchange(request)
        except (TimeoutError, _Unusable, httpx2.TransportError) as error:
            return self._failed(error)
        return response if _is_stream(response) else self._message(request, response)

    def _failed(self, error: Exception) -> httpx2.Response:
        match error:
            case TimeoutError():
                return _refusal(504, f"it did not answer within {self._seconds:g} s")
            case _Unusable():
                return _refusal(502, str(error))
            case httpx2.ConnectError():
                return self._give_up(f"it cannot be reached: {reason_of(error)}")
            case _:
                return self._give_up(f"the connection broke: {reason_of(error)}")

    async def _other(self, request: httpx2.Request) -> httpx2.Response:
        """Send what is not a message: a request of a login, or one that opens a stream of events or ends a session."""
        if self._gone:
            raise httpx2.ConnectError(self._gone)
        if _EVENTS in request.headers.get("accept", ""):
            return await self._listened(request) if self._is_sse else await self._exchange(request)
        short = _FAREWELL_SECONDS if request.method == "DELETE" else _SHORT_SECONDS
        limits = dict.fromkeys(("connect", "read", "write", "pool"), short)
        request.extensions = {**request.extensions, "timeout": limits}
        try:
            response = await self._exchange(request)
        except _Unusable as error:
            raise ToolError(f"{request.url.host} cannot be used: {error}") from error
        except httpx2.TransportError as error:
            raise ToolError(f"{request.url.host} cannot be reached: {reason_of(error)}") from error
        is_message = self._is_sse and request.headers.get("content-type") == "application/json"
        if is_message and response.status_code >= 400 and response.status_code != _UNAUTHORIZED:
            self._lost(_words_for(response.status_code, _decoded(response.content)))
        return response

    async def _listened(self, request: httpx2.Request) -> httpx2.Response:
        """Open the one stream on which a server of the older transport answers; without it, it is lost. Raises ToolError."""
        try:
            async with time_limit(self._seconds):
                response = await self._exchange(request)
        except (httpx2.TransportError, _Unusable, TimeoutError) as error:
            raise ToolError(f"it cannot be reached: {reason_of(error)}") from error
        if response.status_code >= 400 and response.status_code != _UNAUTHORIZED:
            raise ToolError(_words_for(response.status_code, _decoded(response.content)))
        if isinstance(response.stream, _BoundedStream):
            response.stream.ended = lambda: self._lost("it ended the stream of its answers")
        elif response.status_code == 200:
            raise ToolError("it did not answer with a stream of events: check its url")
        return response

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()

    async def _exchange(self, request: httpx2.Request) -> httpx2.Response:
        request.headers["accept-encoding"] = "identity"  # what is packed has no limit
        request.headers.setdefault("user-agent", PROGRAM)
        response = await self._inner.handle_async_request(request)
        if there := _leads_elsewhere(request.url, response):
            await response.aclose()
            raise _Unusable(f"Redirect to {there} not followed")
        if encoding := response.headers.get("content-encoding", ""):
            await response.aclose()
            raise _Unusable(f"it answered in the encoding {encoding}, which was not asked for")
        stream: Any = response.stream
        if not _is_stream(response):
            return await _whole(response, stream)
        is_answer = request.method == "POST" and not _listens(request)
        seconds = self._seconds + _GRACE_SECONDS if is_answer else None
        response.stream = _BoundedStream(stream, seconds)
        return response

    def _give_up(self, why: str) -> httpx2.Response:
        self._gone = why
        self._lost(why)
        return _refusal(502, why)

    def _message(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        """Return an answer that the SDK can take, else what is wrong with it in its place."""
        status, body = response.status_code, response.content
        if _SESSION in request.headers and _has_no_session(status, body):
            return self._give_up("it has forgotten the session")
        if 300 <= status < 400 or status in (202, 204):
            return response
        kind = response.headers.get("content-type", "").partition(";")[0].strip()
        message = _decoded(body)
        if is_object(message) and message.get("jsonrpc") == "2.0" and _is_whole(message):
            return response
        if b'"jsonrpc"' in body and (found := messages_of(body)):
            text = found[0].model_dump_json(by_alias=True, exclude_unset=True)
            return httpx2.Response(status, headers=_plain(response), content=text.encode())
        if status >= 400:
            challenge = response.headers.get("www-authenticate", "")
            return _refusal(status, _words_for(status, message), challenge)
        what = "nothing" if not body else cleaned(kind, 60) or "something"
        what = "JSON" if message is not None else what
        return _refusal(
            502, f"it answered with {what}, which is not a message of the protocol: check its url"
        )


def check_target(url: str, home: str) -> None:
    """Raise ToolError for an address, such as one of a login, to which the server at `home` must not lead.

    It is https, or of this machine where the server is of it too, or else of the server itself.
    """
    there, own = urlsplit(url), urlsplit(home)
    host = there.hostname or ""
    if is_loopback(host) and not is_loopback(own.hostname or ""):
        raise ToolError(f"it leads to {host}, which is this machine")
    if there.scheme == "https" or is_loopback(host):
        return
    if there.scheme != "http" or own.scheme != "http" or there.netloc != own.netloc:
        where = cleaned(f"{there.scheme}://{host}", 100)
        raise ToolError(f"it leads to {where}, where everybody on the way can read")


def _leads_elsewhere(asked: httpx2.URL, response: httpx2.Response) -> str:
    """Return the address to which a redirect leads, where that has another origin; nothing else."""
    to = response.headers.get("location", "") if 300 <= response.status_code < 400 else ""
    if not to:
        return ""
    try:
        address = urljoin(str(asked), to)
        there = origin_of(address)
    except ValueError:
        return "what is not an http address"
    path = cleaned(urlsplit(address).path, 300)  # what stands behind it may be secret
    return f"{there}{path}" if there != origin_of(str(asked)) else ""


class _Unusable(httpx2.StreamError):
    """An answer that is not read, or not to its end."""


class _BoundedStream(httpx2.AsyncByteStream):
    """Ends a stream that is too long, or that goes on for too long, and writes its events as the SDK reads them."""

    def __init__(self, inner: Any, seconds: float | None) -> None:
        self._inner = inner
        #: Called when the stream has ended.
        self.ended: Callable[[], None] = lambda: None
        self._ends = None if seconds is None else asyncio.get_running_loop().time() + seconds

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async with aclosing(self._events()) as events:
                async for event in events:
                    yield event
        finally:
            self.ended()

    async def _events(self) -> AsyncGenerator[bytes]:
        """Yield whole events. The last one that holds no message comes at the end, where an answer is waited for: a good one may follow it."""
        lines, size, bad = list[bytes](), 0, b""
        async with aclosing(self._blocks()) as blocks:
            async for block in blocks:
                for line in block.splitlines():
                    lines.append(line)
                    size += len(line)
                    if line and size <= MOST_BYTES:
                        continue
                    event = b"\n".join(lines) if line else _framed(lines)
                    if event:
                        yield event
                    elif any(lines):
                        bad = b"\n".join((*lines, b""))
                    lines, size = [], 0
        if bad and self._ends is not None:
            yield bad

    async def _blocks(self) -> AsyncGenerator[bytes]:
        """Yield whole lines, as many as there are, and at the end the empty line that some leave out."""
        held, length, last = list[bytes](), 0, b""
        async with aclosing(self._raw()) as pieces:
            async for piece in pieces:
                start = b"\n" if last.endswith(b"\r") else b"" if last else BOM_UTF8
                last, piece = piece, piece.removeprefix(start)
                end = max(piece.rfind(b"\n"), piece.rfind(b"\r")) + 1
                held.append(piece[:end] if end else piece)
                length += len(piece)
                if end or length > MOST_BYTES:
                    yield b"".join(held)
                    held, length = [piece[end:]] if end else [], len(piece) - end if end else 0
        yield b"".join((*held, b"\n\n"))

    async def _raw(self) -> AsyncGenerator[bytes]:
        length, pieces = 0, aiter(self._inner)
        while True:
            try:
                async with time_limit_at(self._ends):
                    piece = await anext(pieces, None)
            except TimeoutError:
                raise _Unusable("its answer did not end in time") from None
            if piece is None:
                return
            length += len(piece)
            if length > MOST_STREAMED:
                raise _Unusable(f"it sent more than {MOST_STREAMED:,} bytes")
            yield piece

    async def aclose(self) -> None:
        """Close the answer."""
        await self._inner.aclose()


def _framed(lines: Sequence[bytes]) -> bytes:
    """Return an event with one message in each `data`, whatever it is called; nothing where it holds something else."""
    fields = [line.partition(b":") for line in lines]
    head = [
        line for line, field in zip(lines, fields, strict=True) if field[0] in (b"id", b"retry")
    ]
    data = [value.removeprefix(b" ") for name, _, value in fields if name == b"data"]
    is_own = any(name == b"event" and value.strip() == b"endpoint" for name, _, value in fields)
    unknown_lines = [
        line for line, (name, *_) in zip(lines, fields, strict=True) if name not in _FIELDS
    ]
    if is_own or not (any(data) or unknown_lines):
        return b"\n".join((*lines, b"")) if any(lines) else b""
    written = [
        each.model_dump_json(by_alias=True, exclude_unset=True) for each in _read(lines, data)
    ]
    events = (b"data: " + text.encode() + b"\n\n" for text in written)
    return b"\n".join((*head, b"".join(events))) if written else b""


def _read(lines: Sequence[bytes], data: Sequence[bytes]) -> list[JSONRPCMessage]:
    """Return the messages in an event: in its data, in lines of which only the first is marked as data, or one in each."""
    marked = (line.removeprefix(b"data:") for line in lines if line.partition(b":")[0] not in _HEAD)
    raw = list(marked)
    whole = messages_of(b"\n".join(data)) or messages_of(b"\n".join(raw))
    return whole or [message for each in raw for message in messages_of(each)]


def _is_whole(message: Mapping[str, Any]) -> bool:
    """Return whether a message is of the form that the SDK reads."""
    error = message.get("error")
    is_error = (
        is_object(error)
        and isinstance(error.get("code"), int)
        and isinstance(error.get("message"), str)
    )
    return "method" in message or is_error or is_object(message.get("result"))


def _plain(response: httpx2.Response) -> httpx2.Headers:
    headers = httpx2.Headers(response.headers)
    headers["content-type"] = "application/json"
    headers.pop("content-length", None)
    return headers


async def _whole(response: httpx2.Response, stream: Any) -> httpx2.Response:
    """Return the answer with its body, which is not read beyond the limit. Raises _Unusable."""
    body = bytearray()
    try:
        async for piece in stream:
            body += piece
            if len(body) > MOST_BYTES:
                raise _Unusable(f"it answered with more than {MOST_BYTES:,} bytes")
    finally:
        await stream.aclose()
    return httpx2.Response(response.status_code, headers=response.headers, content=bytes(body))


def _is_stream(response: httpx2.Response) -> bool:
    return response.headers.get("content-type", "").lower().startswith(_EVENTS)


def _listens(request: httpx2.Request) -> bool:
    return request.headers.get("mcp-method", "") == "subscriptions/listen"


def _has_no_session(status: int, body: bytes) -> bool:
    """Return whether an answer says that the session is gone; many servers say so with another status than they should."""
    return status == 404 or (status == 400 and b"session" in body.lower())


def _refusal(status: int, words: str, challenge: str = "") -> httpx2.Response:
    """Return an error of the protocol, which the SDK hands to whoever waits for the answer."""
    error = {"code": _INTERNAL_ERROR, "message": words}
    headers = {"www-authenticate": challenge} if challenge else None
    body = {"jsonrpc": "2.0", "id": None, "error": error}
    return httpx2.Response(status, headers=headers, json=body)


def _decoded(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _words_for(status: int, said: Any) -> str:
    """Return the meaning of a status, with the server's own words if its answer has some."""
    words = _STATUSES.get(status, "it failed")
    fields: tuple[Any, ...] = ()
    if is_object(said):
        fields = (*map(said.get, ("error_description", "message", "detail", "error")),)
    own = next((cleaned(each, 200) for each in fields if isinstance(each, str) and each), "")
    return f"{words} ({status} {responses.get(status, '')}{f': {own}' if own else ''})"


def reason_of(error: BaseException) -> str:
    """Return why there is no connection: the words of the system or of TLS, which stand somewhere behind the error."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, BaseExceptionGroup):
            several: tuple[BaseException, ...] = cause.exceptions  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType] - of any kind
            return reason_of(several[0])
        match cause:
            case ssl.SSLCertVerificationError():
                return f"its certificate is not trusted ({cause.verify_message})"
            case gaierror():
                return "there is no such host"
            case OSError() if cause.errno:
                return strerror(cause.errno)
            case _:
                cause = cause.__cause__ or cause.__context__
    return cleaned(str(error), 200) or type(error).__name__
