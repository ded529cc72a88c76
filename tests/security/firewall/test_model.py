"""What a model gets to see: X03 and X06, and that only what is new is looked at."""

import zlib
from collections.abc import AsyncGenerator
from typing import Any, Literal

import pytest
from msgspec import Raw
from msgspec.structs import replace

from ybs.core.agent import Agent
from ybs.core.conversation import Conversation
from ybs.core.events import Event, Noticed
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
from ybs.core.ports import Request, ToolSpec
from ybs.core.wrapper import ModelWrapper
from ybs.security.firewall.masking import Firewall
from ybs.security.firewall.model import Decision, Discovery, FirewallModel, SecretFound
from ybs.testing import RecordedEvents, ScriptedModel, ScriptedToolbox


class Person:
    """Answers with one decision and remembers what it was asked."""

    def __init__(self, decision: Decision) -> None:
        self.decision: Decision = decision
        self.asked: list[Discovery] = []

    async def __call__(self, discovery: Discovery) -> Decision:
        self.asked.append(discovery)
        return self.decision


async def sent(model: FirewallModel, request: Request) -> Request:
    assert isinstance(model._model, ScriptedModel)
    async for _ in model.stream(request):
        pass
    return model._model.requests[-1]


def model_of(firewall: Firewall, ask: Any = None) -> FirewallModel:
    return FirewallModel(ScriptedModel(["ok"] * 9), firewall, ask)


async def test_x03_every_part_of_a_request_is_masked(firewall: Firewall, token: str) -> None:
    escaped = Raw(f'{{"path": "\\u0067{token[1:]}.txt"}}'.encode())
    call = ToolCall(id="1", name="read_file", arguments=escaped, invalid=f"x {token}")
    spec = ToolSpec(
        name="t", description=f"Use {token}", parameters=Raw(f'{{"default": "{token}"}}'.encode())
    )
    messages: list[Message] = [
        UserMessage.of(f"look at {token}"),
        UserMessage.of(f"do {token}", origin="shell"),
        UserMessage.of("nothing here", origin="guard"),
        AssistantMessage(content=(Text(text=f"origin https://{token}@host/x.git"), call)),
        ToolResult(
            call_id="1",
            name="read_file",
            output=f"a\n{token}\nb",
            display=Raw(f'["{token}"]'.encode()),
        ),
    ]
    model = model_of(firewall)
    request = await sent(model, Request(f"system {token}", messages, [spec]))
    assert token not in repr(request).replace("\\", "")
    assert request.system == "system [ybs:secret:github-token#1]"
    assert request.messages[2] is messages[2]
    assert (model.name, model.window) == ("scripted", 32_768)
    places = {row.place for row in firewall.report.rows}
    assert places == {
        "the system prompt", "the description of t", "your message", "a command's output", "the model's answer", "the result of read_file",
    }  # fmt: skip


async def test_thinking_goes_back_as_it_came(firewall: Firewall, token: str) -> None:
    thought = Thinking(text=token, signature=token, provider="x")
    message = AssistantMessage(content=(thought, Text(text="so")))
    assert (await sent(model_of(firewall), Request("", [message]))).messages[0] is message


@pytest.fixture
def searched(firewall: Firewall, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note the texts that the engine searches."""
    texts: list[str] = []
    spans = firewall.spans
    monkeypatch.setattr(
        firewall,
        "spans",
        lambda data: texts.extend(data.decode().split("\n")) or spans(data),
    )
    return texts


async def test_only_new_text_is_looked_at(
    firewall: Firewall, token: str, searched: list[str]
) -> None:
    spec = ToolSpec(name="t", description="A tool.", parameters=Raw(b"{}"))
    messages: list[Message] = [UserMessage.of(f"one {token}")]
    model = model_of(firewall)
    first = await sent(model, Request("a system prompt", messages, [spec]))
    searched.clear()
    messages.append(AssistantMessage(content=(Text(text="the second"),)))
    second = await sent(model, Request("a system prompt", messages, [spec]))
    assert searched == ["the second"]
    assert second.messages[0] is first.messages[0]
    assert [*second.tools] == [*first.tools] == [spec]
    assert second.tools[0] is first.tools[0]
    assert second.system == "a system prompt"


async def test_where_nobody_can_be_asked_a_private_key_is_masked(
    firewall: Firewall, key: str
) -> None:
    request = await sent(model_of(firewall), Request("", [UserMessage.of(f"see\n{key}\nthere")]))
    assert request.messages[0] == UserMessage.of("see\n[ybs:secret:private-key#1]\nthere")


@pytest.mark.parametrize("origin", ["person", "shell"])
@pytest.mark.parametrize("person", [None, Person("mask")])
async def test_a_key_that_cannot_be_masked_whole_stops_the_request(
    firewall: Firewall, key: str, person: Person | None, origin: Literal["person", "shell"]
) -> None:
    lines = key.splitlines()[:-1]  # cut off before its end
    odd = "\n".join([*lines[:4], *(f"{{{line}}}" for line in lines[4:])])
    model = model_of(firewall, person)
    with pytest.raises(SecretFound, match="a part of it cannot be masked for certain") as failure:
        await sent(model, Request("", [UserMessage.of(odd, origin=origin)]))
    assert lines[5] not in str(failure.value)
    assert isinstance(model._model, ScriptedModel)
    assert model._model.requests == []
    assert model.refused is not None


@pytest.mark.parametrize("is_beginning", [True, False])
async def test_a_key_that_stands_apart_from_its_frame_stops_the_request(
    firewall: Firewall, key: str, *, is_beginning: bool
) -> None:
    lines = key.splitlines()
    body = "\n".join(lines[1:-1])
    words = f"{lines[0]}\n***\n{body}" if is_beginning else f"{body}\n(see above)\n{lines[-1]}"
    model = model_of(firewall)
    with pytest.raises(SecretFound, match="a part of it cannot be masked for certain"):
        await sent(model, Request("", [UserMessage.of(f"Look at this:\n{words}")]))
    assert isinstance(model._model, ScriptedModel)
    assert model._model.requests == []


async def test_a_private_key_is_asked_about_and_never_sent(firewall: Firewall, key: str) -> None:
    person = Person("mask")
    model = model_of(firewall, person)
    request = await sent(model, Request("", [UserMessage.of(key, origin="shell")]))
    assert request.messages[0] == UserMessage.of("[ybs:secret:private-key#1]", origin="shell")
    assert not person.asked[0].can_send
    person.decision = "send"
    with pytest.raises(SecretFound):
        await sent(model, Request(key, []))


async def test_x06_what_the_person_said_is_asked_about(firewall: Firewall, token: str) -> None:
    person = Person("mask")
    request = Request("", [UserMessage.of(f"use {token}")])
    assert token not in repr(await sent(model_of(firewall, person), request))
    assert person.asked[0].question == "There is a secret in your message: github-token."
    assert person.asked[0].can_send
    person.decision = "stop"
    with pytest.raises(SecretFound):
        await sent(model_of(firewall, person), request)
    person.decision = "send"
    for _ in range(2):
        assert list((await sent(model_of(firewall, person), request)).messages) == request.messages
    assert len(person.asked) == 3


async def test_a_tool_with_a_secret_in_its_name_is_left_out_and_named_once(
    firewall: Firewall, token: str
) -> None:
    names = (f"mcp__s__{token}", "mcp__s__echo")
    specs = [ToolSpec(name=each, description="", parameters=Raw(b"{}")) for each in names]
    model = model_of(firewall)
    told: list[Noticed] = []
    for _ in range(2):
        request = Request("", [UserMessage.of("hi")], specs)
        told += [each async for each in model.stream(request) if isinstance(each, Noticed)]
    (news,) = told
    assert news.text.startswith("The tool mcp__s__[ybs:secret:")
    assert token not in news.text
    assert isinstance(model._model, ScriptedModel)
    for request in model._model.requests:
        assert [each.name for each in request.tools] == ["mcp__s__echo"]


async def test_a_secret_in_the_name_of_a_call_stops_the_request(
    firewall: Firewall, token: str
) -> None:
    call = AssistantMessage(content=(ToolCall(id="1", name=token),))
    with pytest.raises(SecretFound, match="name of a tool"):
        await sent(model_of(firewall), Request("", [call]))


async def test_what_was_answered_is_not_asked_again(
    firewall: Firewall, token: str, key: str
) -> None:
    person = Person("mask")
    model = model_of(firewall, person)
    said, more = UserMessage.of(token), UserMessage.of(key)
    person.decision = "mask"
    await sent(model, Request("", [said]))
    person.decision = "stop"
    for _ in range(2):
        with pytest.raises(SecretFound):
            await sent(model, Request("", [said, more]))
    assert [one.secrets[0].kind for one in person.asked] == [
        "github-token",
        "private-key",
        "private-key",
    ]


async def test_a_turn_ends_with_the_reason(firewall: Firewall, key: str) -> None:
    model = model_of(firewall, Person("stop"))
    agent = Agent(model, ScriptedToolbox(), RecordedEvents(), Conversation())
    finished = await agent.run(UserMessage.of(key))
    assert finished.reason == "error"
    assert finished.message.startswith("Not sent.")


def chunk(kind: bytes, body: bytes) -> bytes:
    return len(body).to_bytes(4) + kind + body + zlib.crc32(kind + body).to_bytes(4)


def png(*chunks: bytes) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks) + chunk(b"IDAT", b"pixels") + chunk(b"IEND", b"")


def jpeg(*segments: tuple[int, bytes]) -> bytes:
    parts = b"".join(
        bytes((0xFF, kind)) + (len(body) + 2).to_bytes(2) + body for kind, body in segments
    )
    return b"\xff\xd8" + parts + b"\xff\xda\x00\x02scan\xff\xd9"


async def test_x03_a_secret_in_a_pictures_text_is_taken_out(firewall: Firewall, token: str) -> None:
    secret = token.encode()
    plain = png()
    pictures = {
        png(chunk(b"tEXt", b"Comment\0" + secret)): plain,
        png(chunk(b"zTXt", b"Comment\0\0" + zlib.compress(secret))): plain,
        png(chunk(b"iTXt", b"x\x9c not packed " + secret)): plain,
        png() + secret: plain,
        jpeg((0xE0, b"JFIF"), (0xEE, b"Adobe"), (0xFE, secret)): jpeg((0xE0, b"JFIF"), (0xEE, b"Adobe")),
        jpeg((0xE1, b"Exif" + secret)): jpeg(),
        png(chunk(b"prVt", secret)): plain,
        png(chunk(b"iCCP", b"n\0\0" + zlib.compress(b"profile") + secret)): plain,
        jpeg() + b"\nTOKEN=" + secret: jpeg(),
        jpeg()[:-2] + b"\xff\x00\xff\xd0\xff\xfe\x00\x60" + secret.ljust(94) + b"\xff\xd9":
            jpeg()[:-2] + b"\xff\x00\xff\xd0\xff\xd9",
        jpeg((0xE0, b"JFIF\0" + secret)): jpeg(),
        jpeg()[:-2] + b"\xff\xfe\xff\xff" + secret: jpeg()[:-2],
        jpeg()[:-2]: None,
        png(chunk(b"tEXt", b"Comment\0fine")): None,
    }  # fmt: skip
    for data, cleaned in pictures.items():
        image = Image(media_type="image/x", data=data)
        (message,) = (
            await sent(model_of(firewall), Request("", [UserMessage.of("see", image)]))
        ).messages
        assert isinstance(message, UserMessage)
        (_, shown) = message.content
        assert isinstance(shown, Image)
        assert shown.data == (cleaned or data)


@pytest.mark.parametrize(
    "begin",
    [
        b"GIF89a\x01",
        png()[:29] + b"\0\0\0\x01AWS ",  # a name that is none
        png()[:29] + b"\0\1\0\0tEXt",  # longer than the file
        png()[:-12] + b"\0\1\0\0IEND",
        b"\xff\xd8\xff\xc0\x00\x04ab",  # no scan
        b"\xff\xd8\xff\xc0\xff\xff",
    ],
    ids=("another format", "no chunk", "too long a chunk", "too long an end", "no scan", "cut off"),
)
async def test_what_is_no_picture_that_can_be_cleaned_is_left_out(
    firewall: Firewall, token: str, begin: bytes
) -> None:
    image = Image(media_type="image/x", data=begin + b" " + token.encode() + b" IEND\xff\xd9")
    (message,) = (
        await sent(model_of(firewall), Request("", [UserMessage.of("see", image)]))
    ).messages
    assert isinstance(message, UserMessage)
    assert message.text.endswith("[a picture was left out: a secret stands in its metadata]")
    result = ToolResult(call_id="1", name="t", output="", images=(image,))
    (message,) = (await sent(model_of(firewall), Request("", [result]))).messages
    assert isinstance(message, ToolResult)
    assert message.images == ()


async def test_no_text_is_searched_twice_and_what_is_gone_from_a_conversation_is_let_go(
    firewall: Firewall, searched: list[str]
) -> None:
    model = model_of(firewall)
    said = [UserMessage.of(f"{letter} number of words") for letter in "abc"]
    for messages in (said[:2], said, said, [said[0]], said[:2]):  # "b" comes back
        assert [*(await sent(model, Request("", messages))).messages] == messages
    assert [text for text in searched if "words" in text] == [each.words for each in said]
    assert len(model._messages) == 2


async def test_what_is_learned_later_is_masked_in_what_was_said_before(firewall: Firewall) -> None:
    value = "correct" + "7horse8battery"
    model = model_of(firewall)
    first = UserMessage.of(f"it is {value} there")
    assert (await sent(model, Request("", [first]))).messages[0] == first
    later = UserMessage.of(f'db_password = "{value}"')
    both = (await sent(model, Request("", [first, later]))).messages
    mark = "[ybs:secret:assigned-secret#1]"
    assert [each.words for each in both] == [f"it is {mark} there", f'db_password = "{mark}"']
    again = (await sent(model, Request("", [first, later]))).messages
    assert [*again] == [*both]


async def test_tools_that_stay_are_told_of_as_before_and_changed_ones_anew(
    firewall: Firewall, token: str
) -> None:
    model = model_of(firewall)
    one, two = (
        ToolSpec(name=name, description=text, parameters=Raw(b"{}"))
        for name, text in (("a", f"has {token}"), ("b", "plain"))
    )
    for tools in ([one], [one], [one, two], [two], [two, one], []):
        told = (await sent(model, Request("", [UserMessage.of("hi")], tools))).tools
        assert [each.name for each in told] == [each.name for each in tools]
        assert token not in repr(told)


async def test_what_is_learned_later_is_masked_in_tools_and_in_the_form_of_the_answer(
    firewall: Firewall, searched: list[str]
) -> None:
    value, mark = "correct" + "7horse8battery", "[ybs:secret:assigned-secret#1]"
    made = Raw(f'{{"default":"{value}"}}'.encode())
    texts = {"deploy": f"by {value}", "mcp__" + value: "named so", "plain": "plain"}
    tools = [ToolSpec(name=k, description=text, parameters=made) for k, text in texts.items()]
    messages: list[Message] = [UserMessage.of("hi")]
    model = model_of(firewall)
    first = await sent(model, Request("", messages, tools, made, f'root ::= "{value}"'))
    assert [*first.tools] == tools
    messages.append(ToolResult(call_id="1", name="t", output=f'db_password = "{value}"'))
    for _ in range(2):
        then = await sent(model, Request("", messages, tools, made, f'root ::= "{value}"'))
        assert [each.name for each in then.tools] == ["deploy", "plain"]
        assert then.tools[0].description == f"by {mark}"
        assert value not in repr(then)
        assert (then.answer_schema, then.grammar) == (
            Raw(f'{{"default":"{mark}"}}'.encode()),
            f'root ::= "{mark}"',
        )
        searched.clear()
    messages.append(UserMessage.of("only this is new"))
    await sent(model, Request("", messages, tools, made, f'root ::= "{value}"'))
    assert searched == ["only this is new"]


class Adding(ModelWrapper):
    """A model that is sent one more message of the person's."""

    text = "and more"

    def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        messages = [*request.messages, UserMessage.of(self.text)]
        return self._model.stream(replace(request, messages=messages))


async def test_a_second_firewall_within_searches_what_was_added_alone(
    firewall: Firewall, searched: list[str], token: str
) -> None:
    asked, sent_to = Person("stop"), ScriptedModel(["ok"] * 2)
    adding = Adding(FirewallModel(sent_to, firewall, person="what was added"))
    model = FirewallModel(adding, firewall, asked)
    request = Request("a system prompt", [UserMessage.of("said by them")])
    async for _ in model.stream(request):
        pass
    assert searched == ["a system prompt", "said by them", "and more"]
    adding.text = f"added {token}"
    async for _ in model.stream(request):
        pass
    added = sent_to.requests[-1].messages[-1]
    assert isinstance(added, UserMessage)
    assert added.words == "added [ybs:secret:github-token#1]"
    assert [row.place for row in firewall.report.rows] == ["what was added"]
    assert asked.asked == []


async def test_a_message_between_earlier_ones_is_masked(firewall: Firewall, token: str) -> None:
    model = model_of(firewall)
    first, last = UserMessage.of("one"), UserMessage.of("two")
    new = ToolResult(call_id="1", name="t", output=token)
    await sent(model, Request("", [first, last]))
    for messages in ([first, new, last], [new, first, last], [last, new]):
        told = (await sent(model, Request("", messages))).messages
        assert token not in repr(told)
        assert [each for each in told if isinstance(each, UserMessage)] == [
            each for each in messages if isinstance(each, UserMessage)
        ]
