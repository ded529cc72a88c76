"""Reading a stream: each wire format's adapter beside a bare event source, 10 MB of it in memory, and the silence after a cancel."""

import asyncio
import tracemalloc
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from time import perf_counter, process_time
from typing import Any, Final

import httpx2
import msgspec
from lab import Lab, Row, interleave, median

from scripted import (
    AnthropicServer,
    GoogleServer,
    MistralServer,
    OllamaServer,
    OpenAIServer,
    ResponsesServer,
)
from scripted.response import Asked, respond
from scripted.wire import Wire
from ybs.core.events import Event, TextStreamed
from ybs.core.messages import UserMessage
from ybs.core.ports import Request
from ybs.providers.http.client import HttpClient
from ybs.providers.http.failures import Site
from ybs.providers.http.transport import HttpRequest
from ybs.providers.remote import RemoteModel, Retry
from ybs.providers.wire.adapter import RequestOptions
from ybs.providers.wires import adapter_of
from ybs.testing import answer

KINDS: Final = (
    *(OpenAIServer, ResponsesServer, AnthropicServer),
    *(GoogleServer, MistralServer, OllamaServer),
)
#: As a model streams: pieces of a few letters. A server's packets hold several at once.
PIECES: Final = 3_000
PIECES_A_CHUNK: Final = 4
ASK: Final = Request("", [UserMessage.of("hi")])
LARGE_BYTES: Final = 10_000_000


class Played:
    """A transport and its response in one: every request gets these chunks, and with `stalls` nothing after them."""

    def __init__(self, chunks: Sequence[bytes], *, stalls: bool = False) -> None:
        self.status = 200
        self.headers: Mapping[str, str] = {}
        self._chunks, self._stalls = chunks, stalls
        self.closed_at = 0.0

    async def warm_up(self) -> None:
        """Do nothing."""

    async def send(self, call: HttpRequest) -> "Played":
        """Answer any request."""
        del call
        return self

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the chunks."""
        for chunk in self._chunks:
            yield chunk
        if self._stalls:
            await asyncio.Event().wait()

    async def aclose(self) -> None:
        """Note when."""
        self.closed_at = perf_counter()


def stream_of(wire: Wire, pieces: int) -> list[bytes]:
    """Return the chunks of an answer in a wire format."""
    body = {"stream": True, "model": "m", "stream_options": {"include_usage": True}}
    script = answer("word, " * pieces, chunk_size=6)
    frames = [each for each in respond(wire, script, Asked(body, 1)).chunks if each]
    step = PIECES_A_CHUNK
    return [b"".join(frames[at : at + step]) for at in range(0, len(frames), step)]


def model_on(wire: Wire, transport: Played, *, max_tokens: int = 100_000) -> RemoteModel:
    adapter = adapter_of(wire.name)
    client = HttpClient(
        Site(provider="own", endpoint="http://127.0.0.1:9", host="h"), connections=transport
    )
    options = RequestOptions(
        model="m", quirks=adapter.quirks, max_tokens=max_tokens, window=max_tokens * 8
    )
    return RemoteModel(adapter, client, options, retry=Retry(attempts=0))


async def read_by_ybs(wire: Wire, chunks: Sequence[bytes]) -> Event:
    last: Event | None = None
    async with aclosing(model_on(wire, Played(chunks)).stream(ASK)) as events:
        async for event in events:
            last = event
    assert last is not None
    return last


async def read_bare(wire: Wire, chunks: Sequence[bytes]) -> int:
    """Read a stream with httpx2's event source, or its lines, and decode every value with msgspec."""

    async def content() -> AsyncGenerator[bytes, None]:
        for chunk in chunks:
            yield chunk

    response = httpx2.Response(
        200,
        headers={"content-type": wire.content_type},
        content=content(),
        request=httpx2.Request("POST", "http://127.0.0.1:9"),
    )
    decode, count = msgspec.json.decode, 0
    if adapter_of(wire.name).framing == "ndjson":
        async for line in response.aiter_lines():
            count += bool(decode(line))
        return count
    async for event in httpx2.EventSource(response):
        if event.data != "[DONE]":
            count += bool(decode(event.data))
    return count


def seconds(make: Callable[[], Awaitable[Any]]) -> float:
    """Return the CPU time, which other programs do not change."""

    async def run() -> float:
        began = process_time()
        await make()
        return process_time() - began

    return asyncio.run(run())


def peak_megabytes(wire: Wire) -> float:
    """Return what reading 10 MB takes beside the text itself, which is kept twice: in pieces and whole."""
    frames = stream_of(wire, PIECES)
    middle = frames[len(frames) // 2]
    chunks = [*frames[:3], *[middle] * (LARGE_BYTES // len(middle)), *frames[-3:]]
    tracemalloc.start()
    try:
        asyncio.run(drain(wire, chunks))
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


async def drain(wire: Wire, chunks: Sequence[bytes]) -> None:
    from ybs.core.errors import ModelError

    try:
        async with aclosing(model_on(wire, Played(chunks)).stream(ASK)) as events:
            async for _ in events:
                pass
    except ModelError:  # a whole response that does not fit what was repeated
        pass


async def silence_milliseconds(wire: Wire) -> float:
    """Return the time from a cancel to the end of the connection."""
    chunks = stream_of(wire, 50)
    played, begun = Played(chunks[:8], stalls=True), asyncio.Event()

    async def ask() -> None:
        async with aclosing(model_on(wire, played).stream(ASK)) as events:
            async for event in events:
                if isinstance(event, TextStreamed):
                    begun.set()

    task = asyncio.create_task(ask())
    await begun.wait()
    began = perf_counter()
    task.cancel()
    await asyncio.wait((task,))
    return (played.closed_at - began) * 1000


def measure(lab: Lab, rounds: int) -> list[Row]:
    del lab
    rows: list[Row] = []
    for kind in KINDS:
        wire = kind.wire
        chunks = stream_of(wire, PIECES)
        runs = interleave(
            rounds,
            ybs=lambda wire=wire, chunks=chunks: seconds(lambda: read_by_ybs(wire, chunks)),
            bare=lambda wire=wire, chunks=chunks: seconds(lambda: read_bare(wire, chunks)),
        )
        ybs, bare = median(runs["ybs"]), median(runs["bare"])
        rows.append(Row(f"{wire.name}: adapter / bare event source", ybs / bare, "x", 2.0))
        rows.append(Row(f"{wire.name}: a piece of an answer", ybs / PIECES * 1e6, "µs"))
    rows += [
        Row(f"{kind.wire.name}: 10 MB of stream, peak", peak_megabytes(kind.wire), "MB", 20.0)
        for kind in KINDS
    ]
    silences = [asyncio.run(silence_milliseconds(kind.wire)) for kind in KINDS for _ in range(9)]
    rows.append(Row("cancel to silence, the longest of all", max(silences), "ms", 100.0))
    return rows
