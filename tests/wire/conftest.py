"""What all wire tests share: conversations to send and answers to receive.

The official SDKs are slow to import, so every test module imports its own inside the functions.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, aclosing
from typing import Any, NamedTuple, TypeAlias

import msgspec
import pytest

from scripted import ScriptedServer
from ybs.config.host import Host
from ybs.config.schema import AgentLimits, Config, Endpoint, LlmSettings
from ybs.core.events import AssistantSaid
from ybs.core.messages import (
    AssistantMessage,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    UserMessage,
)
from ybs.core.ports import Request, ToolSpec
from ybs.providers.builtin import WIRES
from ybs.providers.registry import create_model
from ybs.testing import ScriptedAnswer, answer, thought

PICTURE = Image(media_type="image/png", data=b"\x89PNG\r\n\x1a\n")
HELLO = UserMessage.of("hello")
TOOLS = tuple(
    ToolSpec(name=name, description=f"The tool {name}.", parameters=msgspec.Raw(schema))
    for name, schema in {
        "read_file": b'{"type":"object","properties":{"path":{"type":"string"},'
        b'"offset":{"anyOf":[{"type":"integer"},{"type":"null"}],"default":null}},'
        b'"required":["path"]}',
        "list_files": b'{"type":"object","properties":{},"required":[]}',
    }.items()
)


def read(call_id: str, path: str) -> ToolCall:
    arguments = msgspec.Raw(msgspec.json.encode({"path": path}))
    return ToolCall(id=call_id, name="read_file", arguments=arguments)


def result(call_id: str, output: str, *images: Image, is_error: bool = False) -> ToolResult:
    return ToolResult(
        call_id=call_id, name="read_file", output=output, images=images, is_error=is_error
    )


def thinking(provider: str) -> tuple[Thinking, ...]:
    if provider == "openai-responses":
        return (Thinking(text="let me see", signature="rs_1:c2ln", provider=provider),)
    if provider == "google":
        return (Thinking(text="let me see", signature="c2ln", provider=provider),)
    if provider != "anthropic":
        return (Thinking(text="let me see", provider=provider),)
    return (
        Thinking(text="let me see", signature="c2ln", provider=provider),
        Thinking(redacted="b3BhcXVl", provider=provider),
    )


def said(*parts: Text | Thinking | ToolCall) -> AssistantMessage:
    return AssistantMessage(content=parts)


def histories() -> dict[str, Sequence[Message]]:
    two = said(Text(text="I read both."), read("call_1", "a.py"), read("call_2", "b.py"))
    broken = ToolCall(id="call_1", name="read_file", invalid='{"path": ')
    everyone = [part for name in WIRES for part in thinking(name)]
    return {
        "plain": [HELLO],
        "chat": [HELLO, said(Text(text="Hi.")), UserMessage.of("again"), UserMessage.of("please")],
        "image": [UserMessage.of("what is it?", PICTURE, PICTURE)],
        "parallel tools": [HELLO, two, result("call_1", "one"), result("call_2", "two")],
        "tool image": [HELLO, two, result("call_1", "", PICTURE), result("call_2", "x", PICTURE)],
        "tool errors": [HELLO, said(broken), result("call_1", "no JSON", is_error=True), HELLO],
        "empty outputs": [HELLO, two, result("call_1", ""), result("call_2", ""), HELLO],
        "thinking": [HELLO, said(*everyone, read("call_1", "a")), result("call_1", "one")],
        "unicode": [
            UserMessage.of("ünï 🦀 \x07 \u2028"),
            said(read("call_1", "ü/🦀")),
            result("call_1", "\ufeffé\x00"),
        ],
    }


@pytest.fixture(params=histories())
def conversation(request: pytest.FixtureRequest) -> Request:
    """Give a request with tools, one for each kind of history."""
    return Request("You are brief.", histories()[request.param], TOOLS)


ANSWERS: dict[str, ScriptedAnswer] = {
    "text": answer("Hello there, how are you?"),
    "empty": answer(),
    "cut short": answer("Once upon a", stop_reason="length"),
    "unicode": answer("ünïcödé 🦀 \u2028 \n\n", chunk_size=1),
    "call": answer(read("call_1", "a.py")),
    "everything": answer(
        thought("let me see", signature="c2ln"),
        "I read both.",
        read("call_1", 'ü "quoted".py'),
        read("call_2", "b.py"),
        ToolCall(id="call_3", name="list_files"),
        usage=Usage(input_tokens=100, output_tokens=20),
    ),
}


@pytest.fixture(params=ANSWERS)
def scripted(request: pytest.FixtureRequest) -> ScriptedAnswer:
    """Give an answer to play, one of each kind."""
    return ANSWERS[request.param]


class Said(NamedTuple):
    """What a client understood of an answer."""

    text: str
    thinking: str
    calls: list[tuple[str, str, Any]]
    stop: str
    tokens: tuple[int, int]

    @classmethod
    def of(cls, message: AssistantMessage) -> "Said":
        thoughts = (part.text for part in message.content if isinstance(part, Thinking))
        return cls(
            text=message.text,
            thinking="".join(thoughts),
            calls=[(c.id, c.name, msgspec.json.decode(c.arguments)) for c in message.calls],
            stop=message.stop_reason,
            tokens=(message.usage.input_tokens, message.usage.output_tokens),
        )


@pytest.fixture
def said_type() -> type[Said]:
    return Said


#: Asks a server through ybs's own adapter.
Ask: TypeAlias = Callable[..., Awaitable[AssistantMessage]]


@pytest.fixture
async def ask() -> AsyncIterator[Ask]:
    """Give a function that sends a request through ybs and returns the message."""
    async with AsyncExitStack() as stack:

        async def ask(
            server: ScriptedServer, request: Request | None = None, *, key: str = ""
        ) -> AssistantMessage:
            own = Endpoint(endpoint=server.url, wire=server.wire.name, api_key=key or None)
            config = Config(
                llm=LlmSettings(provider="own", model="m"),
                providers={"own": own},
                agent=AgentLimits(retry_attempts=0),
            )
            model = create_model(Host.of({}), config)
            stack.push_async_callback(model.aclose)
            async with aclosing(model.stream(request or Request("", [HELLO]))) as events:
                *_, last = [event async for event in events]
            assert isinstance(last, AssistantSaid)
            return last.message

        yield ask
