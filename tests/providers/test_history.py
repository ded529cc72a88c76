"""That a conversation is encoded once, however long it gets, and always to what a new adapter would make of it."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from random import Random
from typing import Any

import msgspec
import pytest
from raw_http import chunk, sse

from rows import every_row
from ybs.core.messages import (
    AssistantMessage,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    UserMessage,
)
from ybs.core.ports import Request
from ybs.providers.builtin import WIRES
from ybs.providers.http.client import HttpClient
from ybs.providers.http.failures import Site
from ybs.providers.http.transport import HttpRequest
from ybs.providers.remote import RemoteModel
from ybs.providers.wire.adapter import Adapter, EncodedHistory, RequestOptions, Said
from ybs.providers.wire.openai import OpenAIAdapter
from ybs.providers.wire.quirks import Quirks
from ybs.providers.wires import adapter_of

ADAPTERS = tuple(type(adapter_of(name)) for name in WIRES)
QUIRKS = (
    Quirks(),
    Quirks(sees_images=False),
    Quirks(wants_alternating_roles=True, system_role="user"),
    Quirks(wants_assistant_after_tool=True, call_id_chars=9, reasoning_sent_as="reasoning"),
)
PICTURE = Image(media_type="image/png", data=b"\x89PNG")


def some_message(random: Random) -> Message:
    """Make a message that some wire format has a rule of its own for."""
    call = ToolCall(id="c1", name="t")
    result = ToolResult(call_id="c1", name="t", output="out")
    messages: list[Callable[[], Message]] = [
        lambda: UserMessage.of(f"words {random.random()}"),
        lambda: UserMessage.of("", PICTURE),
        lambda: AssistantMessage(content=(Text(text="so"), call)),
        lambda: AssistantMessage(content=(Text(text="done"),)),
        lambda: AssistantMessage(content=(Thinking(text="hm", provider="openai"),)),
        lambda: msgspec.structs.replace(result),
        lambda: msgspec.structs.replace(result, images=(PICTURE, PICTURE)),
    ]
    return random.choice(messages)()


@pytest.mark.integration
@every_row("kind", ADAPTERS)
def test_what_is_remembered_changes_no_body(kind: type[Adapter]) -> None:
    random, adapter = Random(7), kind()
    messages: list[Message] = []
    earlier: list[tuple[Any, bytes]] = []
    quirks, system = QUIRKS[0], "s"
    for _ in range(600):
        match random.randrange(12):
            case 0:
                del messages[random.randrange(len(messages) + 1) :]  # undone, or cleared
            case 1 if messages:
                messages[random.randrange(len(messages))] = some_message(random)  # masked otherwise
            case 2:
                quirks = random.choice(QUIRKS)
            case 3:
                system = random.choice(("", "s", "another"))
            case _:
                messages.append(some_message(random))
        request, options = Request(system, messages), RequestOptions(model="m", quirks=quirks)
        body = adapter.encode(request, options)
        written = msgspec.json.encode(body)
        assert written == msgspec.json.encode(kind().encode(request, options))
        earlier.append((body, written))
    assert all(msgspec.json.encode(body) == written for body, written in earlier[-50:])


def test_only_what_is_new_is_added() -> None:
    added: list[int] = []

    def add(said: Said, _messages: Any, place: int) -> None:
        added.append(place)
        said.append({"n": place})

    history, messages = EncodedHistory(), [UserMessage.of(str(number)) for number in range(4)]
    first = history.said(messages[:2], add, first=[{"n": "s"}])
    assert history.said(messages, add, first=[{"n": "s"}])[:3] == first
    assert added == [0, 1, 2, 3]
    history.said(messages[1:], add, first=[])
    assert added[4:] == [0, 1, 2]
    history.said(messages[1:], add, first=[], terms="other")
    assert added[7:] == [0, 1, 2]


class Wire:
    """A transport that answers every call alike and keeps the bodies."""

    status, headers = 200, {"content-type": "text/event-stream"}

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    async def warm_up(self) -> None: ...

    async def send(self, call: HttpRequest) -> "Wire":
        self.bodies.append(call.body)
        return self

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        yield sse(chunk({"content": "ok"}), chunk({}, "stop"))

    async def aclose(self) -> None: ...


async def test_a_message_is_written_once_in_a_session_of_many_turns(monkeypatch):
    written: list[Any] = []

    def encode_json(data: Any) -> bytes:
        written.append(data)
        return msgspec.json.encode(data)

    monkeypatch.setattr("ybs.providers.remote.encode_json", encode_json)
    wire, options = Wire(), RequestOptions(model="m")
    site = Site(provider="p", endpoint="http://127.0.0.1:1", host="h:1", model="m")
    model = RemoteModel(OpenAIAdapter(), HttpClient(site, connections=wire), options)
    messages: list[Message] = []
    for turn in range(30):
        messages.append(UserMessage.of(f"go on with {turn}"))
        async with aclosing(model.stream(Request("system", messages))) as events:
            async for _ in events:
                pass
        messages.append(AssistantMessage(content=(Text(text="ok"),)))
    assert len(written) == 60  # the system prompt, 30 prompts, 29 answers
    body = OpenAIAdapter().encode(Request("system", messages[:-1]), options)
    sent = msgspec.json.decode(wire.bodies[-1])
    assert sent["messages"] == msgspec.json.decode(msgspec.json.encode(body["messages"]))
