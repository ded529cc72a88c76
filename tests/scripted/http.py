"""As much of HTTP/1.1 as a scripted server needs: read a request, write a response, keep the line open."""

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import msgspec
from msgspec import Struct

from scripted.response import Response


class RecordedRequest(Struct):
    """A request as it came. Header names are lower-case; `body` is None where it was not JSON.

    `was_dropped`: the client closed the connection before the answer was out.
    """

    method: str
    path: str
    headers: dict[str, str]
    body: Any = None
    raw: bytes = b""
    was_dropped: bool = False
    query: str = ""


class Connection(asyncio.StreamReaderProtocol):
    """A client's connection: two streams, and `left`, set as soon as the client hangs up."""

    def __init__(self, accept: Callable[["Connection", asyncio.StreamWriter], None]) -> None:
        self.left = asyncio.Event()
        self.reader = asyncio.StreamReader()
        super().__init__(self.reader, lambda _, writer: accept(self, writer))

    def eof_received(self) -> bool | None:
        """Note that the client will send no more."""
        self.left.set()
        return super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that the connection is gone."""
        self.left.set()
        super().connection_lost(exc)


async def read_request(reader: asyncio.StreamReader) -> RecordedRequest | None:
    """Read the next request of a connection; None when the client has closed it."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.rstrip("\r\n").split("\r\n")
        method, target, _ = first.split(" ", 2)
        pairs = (line.split(":", 1) for line in lines)
        headers = {name.strip().lower(): value.strip() for name, value in pairs}
        raw = await reader.readexactly(int(headers.get("content-length", "0")))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    path, _, query = target.partition("?")
    return RecordedRequest(
        method=method, path=path, query=query, headers=headers, body=_json(raw), raw=raw
    )


async def write_response(
    writer: asyncio.StreamWriter, response: Response, go_on: asyncio.Event, left: asyncio.Event
) -> None:
    """Send a response; where it pauses, wait to go on. Raises ConnectionError when the client left."""
    writer.write(_head(response))
    for number, chunk in enumerate(response.chunks):
        if response.pauses_after == number:
            await writer.drain()
            await _first_of(go_on, left)
            if left.is_set():
                raise ConnectionResetError("the client hung up")
        size = b"%x\r\n" % len(chunk)
        writer.write(size + chunk + b"\r\n" if response.is_chunked else chunk)
        await writer.drain()
    if response.is_chunked and not response.is_broken:
        writer.write(b"0\r\n\r\n")
    await writer.drain()


async def _first_of(*events: asyncio.Event) -> None:
    waits = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


def _json(raw: bytes) -> Any:
    try:
        return msgspec.json.decode(raw) if raw else None
    except msgspec.DecodeError:
        return None


def _head(response: Response) -> bytes:
    try:
        phrase = HTTPStatus(response.status).phrase
    except ValueError:  # such as Anthropic's 529
        phrase = "Unknown"
    length = {"content-length": str(sum(map(len, response.chunks)))}
    framing = {"transfer-encoding": "chunked"} if response.is_chunked else length
    lines = [f"HTTP/1.1 {response.status} {phrase}"]
    lines += [f"{name}: {value}" for name, value in (response.headers | framing).items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
