"""A proxy and certificates of one's own, from the settings: a TLS server and a proxy on loopback."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path

import pytest
from raw_http import chunk, http, sse

from hosts import this_host
from ybs.config.schema import Config, Endpoint, Network
from ybs.core.errors import ConfigError, ProviderDown
from ybs.core.messages import UserMessage
from ybs.core.ports import Request
from ybs.providers.registry import create_model

NAME = "models.example.org"
HELLO = http(sse(chunk({"content": "Hello"}), chunk({}, "stop")))
ASK = Request("", [UserMessage.of("hi")])


@pytest.fixture
def own_ca(tmp_path: Path) -> tuple[Path, ssl.SSLContext]:
    """Make a CA, and what a server needs that has a certificate of it."""
    from own_ca import make_ca  # cryptography is slow to import

    return make_ca(tmp_path, NAME)


@asynccontextmanager
async def aclosing_writers(*writers: asyncio.StreamWriter) -> AsyncIterator[None]:
    """Close connections at the end; one that broke before is closed too."""
    with suppress(OSError, EOFError):
        try:
            yield
        finally:
            for writer in writers:
                writer.close()
            for writer in writers:
                await writer.wait_closed()


@asynccontextmanager
async def tunnel(context: ssl.SSLContext) -> AsyncIterator[tuple[str, list[str]]]:
    """Run a TLS server and, before it, a proxy that tunnels to it. Give the proxy's address and what it was asked for."""
    asked: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with aclosing_writers(writer):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(HELLO)
            await writer.drain()

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)
        writer.close()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readuntil(b"\r\n\r\n")).split(b"\r\n", 1)[0].decode())
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port_of(behind))
        async with aclosing_writers(writer, far_writer):
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            await asyncio.gather(copy(reader, far_writer), copy(far_reader, writer))

    behind = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    proxy = await asyncio.start_server(relay, "127.0.0.1", 0)
    async with behind, proxy:
        yield f"http://127.0.0.1:{port_of(proxy)}", asked


def port_of(server: asyncio.Server) -> int:
    return server.sockets[0].getsockname()[1]


def config_with(**network: str) -> Config:
    far = Endpoint(endpoint=f"https://{NAME}/v1", model="m")
    return Config(providers={"far": far}, network=Network(**network))


async def answer_of(config: Config) -> str:
    model = create_model(this_host(), config, provider="far")
    try:
        async with aclosing(model.stream(ASK)) as events:
            return "".join([getattr(each, "text", "") async for each in events])
    finally:
        await model.aclose()


@pytest.mark.integration
async def test_the_settings_name_the_proxy_and_the_certificates(own_ca):
    ca_file, context = own_ca
    async with tunnel(context) as (proxy, asked):
        assert "Hello" in await answer_of(config_with(proxy=proxy, ca_file=str(ca_file)))
    assert asked == [f"CONNECT {NAME}:443 HTTP/1.1"]


@pytest.mark.integration
async def test_those_of_the_environment_do_too(own_ca, monkeypatch):
    ca_file, context = own_ca
    async with tunnel(context) as (proxy, asked):
        monkeypatch.setenv("HTTPS_PROXY", proxy)
        monkeypatch.setenv("SSL_CERT_FILE", str(ca_file))
        assert "Hello" in await answer_of(config_with())
    assert len(asked) == 1


@pytest.mark.integration
async def test_a_certificate_that_nobody_trusts_is_refused(own_ca, tmp_path):
    async with tunnel(own_ca[1]) as (proxy, _):
        with pytest.raises(
            ProviderDown, match=r"cannot be reached safely \(TLS failed: "
        ) as caught:
            await answer_of(config_with(proxy=proxy))
        assert not caught.value.temporary
        assert "certificate" in str(caught.value)
        assert "network.ca_file" in caught.value.remedies[0].value
        (tmp_path / "empty.pem").write_text("no certificate")
        with pytest.raises(ProviderDown, match=r"network\.ca_file cannot be used: .*empty\.pem"):
            await answer_of(config_with(proxy=proxy, ca_file=str(tmp_path / "empty.pem")))


def test_what_cannot_be_a_route_is_said_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"network\.proxy: this is not an address"):
        create_model(this_host(), config_with(proxy="proxy:3128"), provider="far")
    with pytest.raises(ConfigError, match=r"network\.ca_file: there is no file"):
        create_model(this_host(), config_with(ca_file=str(tmp_path / "none.pem")), provider="far")
    secret = "hunter" + "2"
    assert secret not in repr(config_with(proxy=f"http://me:{secret}@p:1").network)
