"""HTTP/1.1 over asyncio streams, for http:// endpoints without a proxy, and for servers at a Unix socket.

It does what a chat request needs and no more: no redirects, no cookies. It asks for no compression, and reads what comes all the same.
https://www.rfc-editor.org/rfc/rfc9112
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from ybs.config import private_socket
from ybs.config.addresses import loopback_hosts
from ybs.core.time_limits import time_limit
from ybs.providers.http.transport import CutOff, HttpRequest, Unreachable, reason_of

_CHUNK_BYTES: Final = 65_536
_HEAD_BYTES: Final = 65_536
_NO_BODY: Final = frozenset({204, 304})


class _Connection:
    """A pair of streams. `may_be_stale`: it was idle, so the server may have closed it meanwhile."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.may_be_stale = False

    @property
    def is_open(self) -> bool:
        return not (self.reader.at_eof() or self.writer.is_closing())

    def close(self) -> None:
        self.writer.transport.abort()


class PlainResponse:
    """An answer on its connection."""

    def __init__(
        self,
        transport: "PlainTransport",
        link: _Connection,
        status: int,
        headers: Mapping[str, str],
    ) -> None:
        self.status, self.headers = status, headers
        self._transport = transport
        self._link: _Connection | None = link
        self._unchunked = _Unchunked()

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body as it comes; the connection is kept for the next call where that is allowed."""
        if (link := self._link) is None:
            return
        try:
            encoding = self.headers.get("content-encoding", "").lower()
            unpack = _unpacker(encoding) if encoding not in ("", "identity") else None
            async with aclosing(self._body(link.reader)) as body:
                async for chunk in body:
                    yield unpack(chunk) if unpack is not None else chunk
            if self._may_stay_open():
                self._link = None
                self._transport.keep(link)
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
            raise CutOff(_what_broke(error)) from error
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        """Close the connection unless it was handed back."""
        if self._link is not None:
            self._link.close()
            self._link = None

    def _body(self, reader: asyncio.StreamReader) -> AsyncGenerator[bytes, None]:
        if self._is_chunked():
            return _read_chunked(reader, self._unchunked)
        length = self.headers.get("content-length")
        if self.status in _NO_BODY:
            length = "0"
        return _read_to_end(reader) if length is None else _read_exactly(reader, int(length))

    def _is_chunked(self) -> bool:
        return "chunked" in self.headers.get("transfer-encoding", "").lower()

    def _may_stay_open(self) -> bool:
        has_end = self._is_chunked() or "content-length" in self.headers
        has_more = bool(self._unchunked.rest)  # which nobody asked for
        return has_end and not has_more and self.headers.get("connection", "").lower() != "close"


class PlainTransport:
    """Connections to one http:// endpoint, or to the Unix socket of a server; idle ones are used again."""

    def __init__(
        self, endpoint: str, *, connect_seconds: float, unix_socket: Path | None = None
    ) -> None:
        parts = urlsplit(endpoint)
        self._host = parts.hostname or ""
        self._port = parts.port or 80
        self._host_header = parts.netloc.rpartition("@")[2]
        self._connect_seconds, self._unix_socket = connect_seconds, unix_socket
        self._idle: list[_Connection] = []
        self._warming = asyncio.Lock()

    async def warm_up(self) -> None:
        """Connect ahead of the first call, unless a connection is idle."""
        with suppress(Unreachable):
            async with self._warming:  # sessions may begin side by side
                self.keep(self._take_idle() or await self._connect())

    async def send(self, call: HttpRequest) -> PlainResponse:
        """Send a call; one that an idle connection fails to carry goes over a new one."""
        link = self._take_idle() or await self._connect()
        try:
            return await self._exchange(link, call)
        except CutOff:
            if not link.may_be_stale:
                raise
        return await self._exchange(await self._connect(), call)

    async def aclose(self) -> None:
        """Close the idle connections."""
        while self._idle:
            self._idle.pop().close()

    def keep(self, link: _Connection) -> None:
        """Keep a connection for the next call, and none that the server has closed meanwhile."""
        link.may_be_stale = True
        for each in [each for each in self._idle if not each.is_open]:
            self._idle.remove(each)
            each.close()
        self._idle.append(link)

    def _take_idle(self) -> _Connection | None:
        while self._idle:
            if (link := self._idle.pop()).is_open:
                return link
            link.close()
        return None

    async def _connect(self) -> _Connection:
        if self._unix_socket is not None:
            try:
                link = await asyncio.to_thread(
                    private_socket.connect, self._unix_socket, self._connect_seconds
                )
                return _Connection(*await asyncio.open_unix_connection(sock=link))
            except OSError as error:
                raise Unreachable(reason_of(error)) from error
        hosts = [self._host]
        if self._host == "localhost":
            hosts = await asyncio.to_thread(loopback_hosts, self._port)
        failure: Exception | None = None
        for host in hosts:
            try:
                async with time_limit(self._connect_seconds):
                    return _Connection(*await asyncio.open_connection(host, self._port))
            except UnicodeError as error:
                raise Unreachable("no such host name") from error
            except OSError as error:
                failure = failure or error
        raise Unreachable(reason_of(failure or OSError())) from failure

    async def _exchange(self, link: _Connection, call: HttpRequest) -> PlainResponse:
        try:
            link.writer.write(self._head(call) + call.body)
            with suppress(ConnectionError):  # a server may refuse a long body before its end
                await link.writer.drain()
            status, headers = await _read_head(link.reader)
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
            link.close()
            raise CutOff(_what_broke(error)) from error
        except BaseException:  # cancelled: the server must not go on
            link.close()
            raise
        return PlainResponse(self, link, status, headers)

    def _head(self, call: HttpRequest) -> bytes:
        parts = urlsplit(call.url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        headers = {"host": self._host_header, **call.headers}
        if call.body:
            headers["content-length"] = str(len(call.body))
        lines = [f"{call.method} {target} HTTP/1.1", *(f"{k}: {v}" for k, v in headers.items())]
        return "\r\n".join([*lines, "", ""]).encode("latin-1")


async def _read_head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    """Read a status line and headers, passing over 1xx answers."""
    while True:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").rstrip().split("\r\n")
        version, _, rest = first.partition(" ")
        if not version.startswith("HTTP/1."):
            raise ValueError("it does not speak HTTP")
        if (status := int(rest[:3])) < 200:
            continue
        headers: dict[str, str] = {}
        for line in lines:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        if version == "HTTP/1.0":
            headers.setdefault("connection", "close")
        return status, headers


async def _read_exactly(reader: asyncio.StreamReader, length: int) -> AsyncGenerator[bytes, None]:
    while length > 0:
        if not (chunk := await reader.read(min(length, _CHUNK_BYTES))):
            raise EOFError
        length -= len(chunk)
        yield chunk


async def _read_to_end(reader: asyncio.StreamReader) -> AsyncGenerator[bytes, None]:
    while chunk := await reader.read(_CHUNK_BYTES):
        yield chunk


async def _read_chunked(
    reader: asyncio.StreamReader, unchunked: "_Unchunked"
) -> AsyncGenerator[bytes, None]:
    """Yield what has come, however many chunks that are: each piece costs more than to take a chunk apart."""
    while not unchunked.is_over:
        if not (data := await reader.read(_CHUNK_BYTES)):
            raise EOFError
        if said := unchunked.feed(data):
            yield said


class _Unchunked:
    """Takes the sizes and line ends off a body in chunks (RFC 9112, 7.1). `rest`: what came and is not used yet."""

    def __init__(self) -> None:
        self.rest = b""
        self.is_over = False
        self._left = 0  # bytes of the chunk
        self._is_behind_chunk = self._is_behind_last = False

    def feed(self, data: bytes) -> bytes:
        """Return the decoded content of the chunks so far. Raises ValueError."""
        data, place = self.rest + data, 0
        said: list[bytes] = []
        while not self.is_over and place < len(data):
            if self._left:
                piece = data[place : place + self._left]
                said.append(piece)
                self._left -= len(piece)
                place += len(piece)
                self._is_behind_chunk = not self._left
            elif (end := data.find(b"\n", place)) >= 0:
                self._take_line(data[place:end])
                place = end + 1
            elif len(data) - place > _HEAD_BYTES:
                raise ValueError("a line without an end")
            else:
                break
        self.rest = data[place:]
        return b"".join(said)

    def _take_line(self, line: bytes) -> None:
        if self._is_behind_chunk:
            self._is_behind_chunk = False
        elif self._is_behind_last:  # trailers
            self.is_over = not line.strip()
        elif (size := int(line.split(b";")[0], 16)) < 0:
            raise ValueError("a chunk of less than nothing")
        else:
            self._left, self._is_behind_last = size, not size


def _unpacker(encoding: str) -> Callable[[bytes], bytes]:
    """Return a decompressor for an encoding that was not asked for. Raises CutOff for an unknown one."""
    from zlib import MAX_WBITS, decompressobj
    from zlib import error as ZlibError

    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise CutOff(f"it answers in the encoding {encoding}, which was not asked for")
    stream = decompressobj(MAX_WBITS | 32)  # of gzip or zlib, as its head says

    def unpack(chunk: bytes) -> bytes:
        try:
            return stream.decompress(chunk)
        except ZlibError as error:
            raise CutOff("its compressed answer is damaged") from error

    return unpack


def _what_broke(error: Exception) -> str:
    if isinstance(error, EOFError):
        return "the connection was closed"
    if isinstance(error, ConnectionError):
        return "the connection was reset"
    return "it does not speak proper HTTP"
