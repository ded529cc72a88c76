"""A small scripted server on loopback, byte for byte: what a test says is what the client gets."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

#: A reply: bytes that are sent as they are (then the connection is closed), or a function that writes.
Reply = bytes | Callable[[asyncio.StreamWriter], Awaitable[None]]


class Asked:
    """A request as the server got it."""

    def __init__(self, head: str, body: bytes) -> None:
        first, *lines = head.strip().split("\r\n")
        self.method, self.path, _ = first.split(" ")
        self.headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines)}
        self.body: Any = json.loads(body) if body else None


class Scripted:
    """A server that gives its replies one after the other, and the last one for ever."""

    def __init__(self, replies: tuple[Reply, ...]) -> None:
        self._replies = list(replies)
        self.asked: list[Asked] = []
        self.connections = 0
        self._serving: list[asyncio.Task[None]] = []
        self.gone = asyncio.Event()  # set when a client closed its connection

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    async def stop(self) -> None:
        self._server.close()
        await asyncio.sleep(0)  # a connection that came at this moment is served, and so closed
        for serving in self._serving:
            serving.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        await self._server.wait_closed()

    def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._serving.append(asyncio.ensure_future(self._talk(reader, writer)))

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._answer(reader, writer):
                pass
        except (OSError, EOFError):
            self.gone.set()
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        asked = Asked(head, b"")
        body = await reader.readexactly(int(asked.headers.get("content-length", 0)))
        self.asked.append(Asked(head, body))
        reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        if not callable(reply):
            writer.write(reply)
            await writer.drain()
            return _stays_open(reply)
        waiting = asyncio.ensure_future(reader.read())  # notices a client that goes away
        waiting.add_done_callback(self._notice)
        try:
            await reply(writer)
        finally:
            waiting.cancel()
        return False

    def _notice(self, waiting: "asyncio.Future[bytes]") -> None:
        if not waiting.cancelled():
            waiting.exception()  # a reset is as good as an end
            self.gone.set()


def _stays_open(reply: bytes) -> bool:
    head, _, body = reply.lower().rpartition(b"\r\n\r\n")
    is_whole = b"content-length: %d" % len(body) in head.split(b"\r\n")
    return is_whole and b"connection: close" not in head


def http(
    body: bytes | str, *, status: str = "200 OK", type: str = "text/event-stream", **headers: str
) -> bytes:
    """Make a whole HTTP answer with a length."""
    data = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status}", f"content-type: {type}", f"content-length: {len(data)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + data


def unending(body: bytes | str, *, type: str = "text/event-stream") -> bytes:
    """Make an HTTP answer whose body ends where the connection does."""
    data = body.encode() if isinstance(body, str) else body
    return f"HTTP/1.1 200 OK\r\ncontent-type: {type}\r\n\r\n".encode() + data


def sse(*frames: Any, done: bool = True) -> bytes:
    """Make a stream of SSE frames."""
    lines = [b"data: " + json.dumps(frame).encode() for frame in frames]
    return b"\n\n".join([*lines, *([b"data: [DONE]"] if done else []), b""])


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None) -> dict[str, Any]:
    """Make a chunk of the OpenAI format."""
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
