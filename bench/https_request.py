"""A first request over TLS, in a process of its own: ybs beside a bare httpx2 client, with all imports and the handshake."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab import Lab, Row, interleave, median
from own_ca import make_ca

ANSWER = b'data: {"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n"
YBS = """
import asyncio, os
from ybs.config.host import Host
from ybs.config.schema import Config, Endpoint, Network
from ybs.core.messages import UserMessage
from ybs.core.ports import Request
from ybs.providers.registry import create_model
own = {{"own": Endpoint(endpoint="{url}", model="m")}}
async def main():
    config = Config(providers=own, network=Network(ca_file="{ca_file}"))
    model = create_model(Host.of(os.environ), config, provider="own")
    async for event in model.stream(Request("", [UserMessage.of("hi")])):
        pass
    await model.aclose()
asyncio.run(main())
"""
BARE = """
import asyncio, httpx2
async def main():
    certificates = httpx2.create_ssl_context()
    certificates.load_verify_locations("{ca_file}")
    async with httpx2.AsyncClient(verify=certificates) as client:
        async with client.stream("POST", "{url}/chat/completions", json={{"model": "m"}}) as response:
            assert [line async for line in response.aiter_lines()]
asyncio.run(main())
"""


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer one request."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(HEAD % len(ANSWER) + ANSWER)
    await writer.drain()
    writer.close()


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, Path]]:
    """Run a TLS server in a thread. Give its address and the file of its CA."""
    ca_file, context = make_ca(folder, "localhost")
    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(asyncio.start_server(answer, "localhost", 0, ssl=context))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield f"https://localhost:{server.sockets[0].getsockname()[1]}", ca_file
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def measure(lab: Lab, rounds: int) -> list[Row]:
    with served(lab.folder) as (url, ca_file):
        runs = interleave(
            rounds,
            ybs=lambda: lab.python(YBS.format(url=url, ca_file=ca_file)),
            bare=lambda: lab.python(BARE.format(url=url, ca_file=ca_file)),
        )
    cpu = {name: median(each.cpu_seconds for each in ended) for name, ended in runs.items()}
    return [
        Row("first https request, CPU / a bare client's", cpu["ybs"] / cpu["bare"], "x", 1.5),
        Row("first https request, CPU", cpu["ybs"] * 1000, "ms"),
        Row("the bare client's, CPU", cpu["bare"] * 1000, "ms"),
    ]
