"""llama.cpp's server through its OpenAI, Responses and Anthropic endpoints, and Google's by LiteLLM in front of it. Run by `make test-real`."""

import asyncio
import os
import secrets
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, closing, suppress
from importlib.util import find_spec
from pathlib import Path
from threading import Thread

import msgspec
import pytest

from hosts import this_host
from ybs.config.host import Host
from ybs.config.schema import Config, Endpoint, LlmSettings
from ybs.core.events import AssistantSaid, TextStreamed
from ybs.core.messages import AssistantMessage, ToolResult, UserMessage
from ybs.core.ports import Request, ToolSpec
from ybs.providers.local import models, server
from ybs.providers.local.model import notes_of
from ybs.providers.local.template import ChatTemplate, templates_of
from ybs.providers.reachable import find_reachable
from ybs.providers.registry import create_model

#: Looked for now, before a test gets a HOME of its own.
STARTER = models.starter_path(this_host())
IS_THERE = models.starter_installed(this_host()) and find_spec("xllamacpp") is not None
YBS = str(Path(sys.executable).with_name("ybs"))
LITELLM = shutil.which("litellm")
WIRES = ("openai", "openai-responses", "anthropic")
READ = ToolSpec(
    name="read_file",
    description="Read a file.",
    parameters=msgspec.Raw(
        b'{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}'
    ),
)

pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        not IS_THERE,
        reason="the starter model is not installed: `ybs models download starter` fetches it",
    ),
]


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """Make a host with the installed model, and one server for all of these tests."""
    home = tmp_path_factory.mktemp("ybs")
    (home / "cache").mkdir()
    (home / "cache" / "models").symlink_to(STARTER.parent)
    environ = {**os.environ, "YBS_HOME": str(home)}
    yield Host.of(environ)
    subprocess.run([YBS, "models", "stop"], env=environ, capture_output=True, check=True)


def forwarded(path: str) -> int:
    """Return a port whose connections are handed on to the server's socket."""

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError), closing(writer):
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()

    async def hand_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_unix_connection(path)
        await asyncio.gather(copy(reader, back), copy(there, writer))

    listening = socket.create_server(("127.0.0.1", 0))

    async def serve() -> None:
        async with await asyncio.start_server(hand_on, sock=listening) as server_:
            await server_.serve_forever()

    Thread(target=lambda: asyncio.run(serve()), daemon=True).start()
    return int(listening.getsockname()[1])


async def config_at(host: Host, wire: str) -> Config:
    """Start the server, and return settings that name its endpoint of this format."""
    head = notes_of(host, STARTER).head
    first = next(templates_of(STARTER, head), ChatTemplate("own"))
    job = server.Wanted(
        model=str(STARTER), alias="starter", shape=head.shape, template=first.text, window=4096
    )
    running = await server.ensure(host, job, server.ServerLease(host), told=lambda _: None)
    own = Endpoint(
        endpoint=f"http://127.0.0.1:{forwarded(running.socket)}/v1",
        wire=wire,
        model="starter",
        api_key=running.key,
    )
    llm = LlmSettings(provider="own", max_tokens=128, temperature=0.0)
    return Config(llm=llm, providers={"own": own})


async def answer_of(host: Host, config: Config, request: Request) -> tuple[AssistantMessage, str]:
    """Return the message, and the text as it was streamed."""
    model = create_model(host, config)
    try:
        async with aclosing(model.stream(request)) as stream:
            events = [each async for each in stream]
    finally:
        await model.aclose()
    said = events[-1]
    assert isinstance(said, AssistantSaid)
    return said.message, "".join(e.text for e in events if isinstance(e, TextStreamed))


@pytest.mark.parametrize("wire", WIRES)
async def test_a_call_its_result_and_an_answer_pass_through(host: Host, wire: str) -> None:
    config = await config_at(host, wire)
    asked = UserMessage.of("Read the file README.md and say what the shop sells.")
    said, _ = await answer_of(host, config, Request("Be brief.", [asked], [READ]))
    (call,) = said.calls
    assert (call.name, b"README.md" in bytes(call.arguments)) == ("read_file", True)
    assert said.usage.input_tokens > 20
    assert said.usage.output_tokens > 5
    result = ToolResult(call_id=call.id, name="read_file", output="This shop sells umbrellas.")
    # Asked once more in words, and without tools: a model this small reads the file again as long as it can.
    again = UserMessage.of("What does the shop sell? Answer in one word.")
    request = Request("Be brief.", [asked, said, result, again])
    answer, shown = await answer_of(host, config, request)
    assert "umbrella" in answer.text.lower()
    assert shown == answer.text


@pytest.fixture
async def gemini(host: Host, tmp_path: Path) -> AsyncIterator[Config]:
    """Start LiteLLM's proxy, which speaks Google's format, and return settings that name it."""
    behind = (await config_at(host, "openai")).providers["own"]
    given = {"model": "openai/starter", "api_base": behind.endpoint, "api_key": behind.api_key}
    settings = tmp_path / "litellm.yaml"  # YAML has JSON in it
    listed = {"model_list": [{"model_name": "starter", "litellm_params": given}]}
    settings.write_bytes(msgspec.json.encode(listed))
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    words = [LITELLM or "", "--config", str(settings), "--host", "127.0.0.1", "--port", str(port)]
    key = f"sk-{secrets.token_hex(32)}"
    environ = {**os.environ, "LITELLM_MASTER_KEY": key}
    environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it asks a server for prices
    log = tmp_path / "litellm.log"
    with log.open("wb") as output:
        proxy = await asyncio.create_subprocess_exec(
            *words, env=environ, stdout=output, stderr=output
        )
    try:
        for _ in range(600):
            assert proxy.returncode is None, log.read_text()
            with suppress(OSError), closing(socket.create_connection(("127.0.0.1", port))):
                break
            await asyncio.sleep(0.2)
        own = Endpoint(
            endpoint=f"http://127.0.0.1:{port}", wire="google", model="starter", api_key=key
        )
        yield Config(
            llm=LlmSettings(provider="own", max_tokens=128, temperature=0.0), providers={"own": own}
        )
    finally:
        proxy.terminate()
        await proxy.wait()


@pytest.mark.skipif(
    LITELLM is None, reason="`litellm` is not in PATH: pip install 'litellm[proxy]'"
)
async def test_googles_format_passes_through_litellm(host: Host, gemini: Config) -> None:
    asked = UserMessage.of("Read the file README.md and say what the shop sells.")
    said, _ = await answer_of(host, gemini, Request("Be brief.", [asked], [READ]))
    (call,) = said.calls
    assert (call.name, b"README.md" in bytes(call.arguments)) == ("read_file", True)
    # Of tokens LiteLLM says nothing in a stream.
    result = ToolResult(call_id=call.id, name="read_file", output="This shop sells umbrellas.")
    again = UserMessage.of("What does the shop sell? Answer in one word.")
    answer, shown = await answer_of(
        host, gemini, Request("Be brief.", [asked, said, result, again])
    )
    assert "umbrella" in answer.text.lower()
    assert shown == answer.text


@pytest.mark.parametrize("wire", WIRES)
async def test_an_answer_stops_at_its_longest(host: Host, wire: str) -> None:
    config = await config_at(host, wire)
    short = msgspec.structs.replace(config, llm=msgspec.structs.replace(config.llm, max_tokens=8))
    said, _ = await answer_of(host, short, Request("", [UserMessage.of("Count from 1 to 99.")]))
    # llama.cpp says of every response in the format of Responses that it is completed.
    assert said.stop_reason == ("end" if wire == "openai-responses" else "length")
    assert said.usage.output_tokens == 8


async def test_it_is_reachable_and_tells_its_window(host: Host) -> None:
    config = await config_at(host, "openai")
    found = await find_reachable(host, config, everywhere=False)
    (own,) = [each for each in found if each.reach.provider == "own"]
    assert [(each.name, each.facts.window) for each in own.models] == [("starter", 4096)]
