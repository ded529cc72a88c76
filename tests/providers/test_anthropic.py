"""The Anthropic adapter: requests out, events in."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Raw

from rows import every_row
from ybs.core.events import Event, TextStreamed, ThinkingStreamed, ToolCallStreamed
from ybs.core.messages import (
    AssistantMessage,
    AssistantPart,
    Image,
    Message,
    StopReason,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    UserMessage,
)
from ybs.core.ports import Request, ToolSpec
from ybs.providers.wire.adapter import Adapter, RequestOptions
from ybs.providers.wire.anthropic import AnthropicAdapter
from ybs.providers.wire.assemble import Assembly
from ybs.providers.wire.quirks import Quirks

ADAPTER: Adapter = AnthropicAdapter()
LOOK = ToolSpec(name="look", description="Look at it.", parameters=Raw(b'{"type":"object"}'))
SEE = ToolSpec(name="see", description="See it.", parameters=Raw(b'{"type":"object"}'))
HELLO = UserMessage.of("hello")
PICTURE = Image(media_type="image/png", data=b"\x89PNG")
CACHED = {"cache_control": {"type": "ephemeral"}}


def encode(
    *messages: Message, system: str = "", tools: Sequence[ToolSpec] = (), **options: Any
) -> dict[str, Any]:
    """Encode a request and read it back as the server would."""
    body = ADAPTER.encode(
        Request(system, messages, tools), RequestOptions(model="claude-x", **options)
    )
    return msgspec.json.decode(msgspec.json.encode(body))


def blocks(*messages: Message, **options: Any) -> list[Any]:
    """Encode messages and give their roles and blocks, breakpoints left out."""
    said = encode(*messages, **options)["messages"]
    for message in said:
        for block in message["content"]:
            block.pop("cache_control", None)
    return [(message["role"], message["content"]) for message in said]


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def said(*parts: AssistantPart) -> AssistantMessage:
    return AssistantMessage(content=parts)


def call(call_id: str, name: str = "look", arguments: bytes = b"{}") -> ToolCall:
    return ToolCall(id=call_id, name=name, arguments=Raw(arguments))


def result(call_id: str, output: str = "seen", **more: Any) -> ToolResult:
    return ToolResult(call_id=call_id, name="look", output=output, **more)


def test_the_smallest_request():
    assert encode(HELLO) == {
        "model": "claude-x",
        "max_tokens": 4096,
        "messages": [{"role": "user", "content": [text("hello") | CACHED]}],
        "stream": True,
    }


def test_system_tools_and_settings_stand_beside_the_messages():
    body = encode(
        HELLO, system="be brief", tools=[LOOK, SEE], temperature=0.5, max_tokens=9, stream=False
    )
    del body["messages"]
    assert body == {
        "model": "claude-x",
        "max_tokens": 9,
        "system": [text("be brief") | CACHED],
        "tools": [
            {"name": "look", "description": "Look at it.", "input_schema": {"type": "object"}},
            {"name": "see", "description": "See it.", "input_schema": {"type": "object"}} | CACHED,
        ],
        "temperature": 0.5,
        "stream": False,
    }


def test_a_temperature_is_not_sent_to_a_model_that_takes_none():
    body = encode(HELLO, temperature=0.5, quirks=Quirks(accepts_temperature=False))
    assert "temperature" not in body


def test_extra_fields_of_the_configuration_are_sent_as_they_are():
    thinking = {"thinking": {"type": "adaptive"}}
    assert encode(HELLO, quirks=Quirks(extra_body=thinking))["thinking"] == thinking["thinking"]


def test_tool_results_and_what_is_said_after_them_are_one_user_message_results_first():
    history = [
        HELLO,
        said(Text(text="I look."), call("a", arguments=b'{"at": [1]}'), call("b")),
        result("a"),
        result("b", "no such thing", is_error=True),
        UserMessage.of("hurry up", origin="guard"),
        UserMessage.of("please"),
    ]
    assert blocks(*history) == [
        ("user", [text("hello")]),
        (
            "assistant",
            [
                text("I look."),
                {"type": "tool_use", "id": "a", "name": "look", "input": {"at": [1]}},
                {"type": "tool_use", "id": "b", "name": "look", "input": {}},
            ],
        ),
        (
            "user",
            [
                {"type": "tool_result", "tool_use_id": "a", "content": "seen"},
                {
                    "type": "tool_result",
                    "tool_use_id": "b",
                    "content": "no such thing",
                    "is_error": True,
                },
                text("hurry up"),
                text("please"),
            ],
        ),
    ]


def test_broken_arguments_are_sent_back_as_an_empty_object():
    broken = ToolCall(id="a", name="look", invalid='{"at": ')
    assert blocks(HELLO, said(broken))[1][1][0]["input"] == {}


@every_row("empty", ["", " \n"])
def test_no_text_block_is_ever_empty(empty: str):
    history = [
        UserMessage.of(empty, PICTURE),
        said(Text(text=empty), call("a")),
        result("a", empty),
        said(Text(text=empty)),
        UserMessage.of(empty),
    ]
    (_, first), (_, second), (_, third) = blocks(*history, system=empty)
    assert [block["type"] for block in first] == ["image"]
    assert [block["type"] for block in second] == ["tool_use"]
    assert third == [
        {"type": "tool_result", "tool_use_id": "a", "content": "(no output)"},
        text("(empty message)"),
    ]
    assert "system" not in encode(*history, system=empty)


def test_pictures_are_base64_in_messages_and_in_results():
    picture = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw=="},
    }
    history = [
        UserMessage.of("what is it?", PICTURE),
        said(call("a")),
        result("a", images=(PICTURE,)),
    ]
    (_, first), _, (_, last) = blocks(*history)
    assert first == [text("what is it?"), picture]
    assert last[0]["content"] == [text("seen"), picture]


@every_row(
    ("image", "quirks"),
    [(Image(media_type="image/bmp", data=b"BM"), Quirks()), (PICTURE, Quirks(sees_images=False))],
)
def test_a_picture_that_cannot_be_sent_is_named_in_words(image: Image, quirks: Quirks):
    history = [UserMessage.of("look", image), said(call("a")), result("a", images=(image,))]
    (_, first), _, (_, last) = blocks(*history, quirks=quirks)
    for sent in (first, last[0]["content"]):
        assert [block["type"] for block in sent] == ["text", "text"]
        assert image.media_type in sent[1]["text"]


def test_own_thinking_goes_back_unchanged_and_in_its_place():
    history = [
        HELLO,
        said(
            Thinking(text="hm", signature="sig", provider="anthropic"),
            Thinking(signature="only", provider="anthropic"),
            Thinking(redacted="opaque", provider="anthropic"),
            call("a"),
        ),
    ]
    assert blocks(*history)[1][1][:3] == [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "thinking", "thinking": "", "signature": "only"},
        {"type": "redacted_thinking", "data": "opaque"},
    ]


@every_row(
    "foreign",
    [
        Thinking(text="hm", provider="openai"),
        Thinking(text="hm", signature="sig"),
        Thinking(text="without a proof", provider="anthropic"),
    ],
)
def test_thinking_of_another_maker_or_without_its_proof_is_left_out(foreign: Thinking):
    assert blocks(HELLO, said(foreign), UserMessage.of("go on")) == [
        ("user", [text("hello"), text("go on")])
    ]


def test_ids_and_names_of_other_providers_are_made_acceptable_the_same_way_everywhere():
    history = [HELLO, said(call("functions.look:0", "läs file")), result("functions.look:0")]
    _, (_, asked), (_, answered) = blocks(*history)
    assert asked[0]["id"] == answered[0]["tool_use_id"] == "functions_look_0"
    assert asked[0]["name"] == "l_s_file"
    assert len(blocks(HELLO, said(call("a", "x" * 200)))[1][1][0]["name"]) == 128


def test_there_are_never_more_than_four_breakpoints_and_the_last_ends_the_conversation():
    history: list[Message] = []
    for turn in range(5):
        history += [HELLO, said(call(f"a{turn}")), result(f"a{turn}")]
    body = encode(*history, system="s", tools=[LOOK])
    assert msgspec.json.encode(body).count(b"cache_control") == 4
    users = [message for message in body["messages"] if message["role"] == "user"]
    assert users[-1]["content"][-1]["cache_control"] == {"type": "ephemeral"}
    assert users[-2]["content"][-1]["cache_control"] == {"type": "ephemeral"}


def test_the_prefix_of_a_conversation_stays_the_same_and_its_old_end_keeps_a_breakpoint():
    history: list[Message] = [HELLO, said(call("a")), result("a")]
    before = encode(*history, system="s", tools=[LOOK])
    calls = [call(f"b{n}") for n in range(30)]
    results = [result(f"b{n}") for n in range(30)]
    after = encode(*history, said(*calls), *results, system="s", tools=[LOOK])
    assert (after["tools"], after["system"]) == (before["tools"], before["system"])
    assert after["messages"][2] == before["messages"][2]
    assert "cache_control" in after["messages"][2]["content"][-1]


def test_headers_have_the_version_and_the_key():
    assert ADAPTER.headers("k") == {"anthropic-version": "2023-06-01", "x-api-key": "k"}
    assert ADAPTER.headers(None) == {"anthropic-version": "2023-06-01"}


# What comes in


def decode(*frames: dict[str, Any]) -> tuple[list[Event], Assembly]:
    draft = Assembly("claude-x", "anthropic")
    events = [event for frame in frames for event in ADAPTER.decode(frame, draft)]
    return events, draft


def start(**usage: int) -> dict[str, Any]:
    return {"type": "message_start", "message": {"usage": usage}}


def begin(index: int, block: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, kind: str, **fields: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def stop(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def ending(reason: str, **usage: int) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}


END: dict[str, Any] = {"type": "message_stop"}


@every_row(
    "frame",
    [
        {},
        {"type": "ping"},
        {"type": "something_new", "index": 0},
        {"type": None},
        {"type": "message_start"},
        {"type": "message_start", "message": None},
        {"type": "content_block_start"},
        {"type": "content_block_start", "index": "x", "content_block": {"type": "new_block"}},
        {"type": "content_block_delta", "index": 0},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta"}},
        {"type": "content_block_stop", "index": 9},
        {"type": "message_delta", "delta": {"stop_reason": None}, "usage": None},
    ],
)
def test_unknown_or_empty_frames_are_passed_over(frame: dict[str, Any]):
    events, draft = decode(frame)
    assert (events, draft.stop_reason, draft.has_ended) == ([], None, False)
    assert draft.message().content == ()


def test_a_stream_of_thinking_text_and_two_calls():
    events, draft = decode(
        start(input_tokens=3, cache_read_input_tokens=20, cache_creation_input_tokens=4),
        {"type": "ping"},
        begin(0, {"type": "thinking", "thinking": "", "signature": ""}),
        delta(0, "thinking_delta", thinking="let me "),
        delta(0, "thinking_delta", thinking="see"),
        delta(0, "signature_delta", signature="sig"),
        stop(0),
        begin(1, {"type": "redacted_thinking", "data": "opaque"}),
        stop(1),
        begin(2, {"type": "text", "text": ""}),
        delta(2, "text_delta", text="I look."),
        stop(2),
        begin(3, {"type": "tool_use", "id": "t1", "name": "look", "input": {}}),
        delta(3, "input_json_delta", partial_json=""),
        delta(3, "input_json_delta", partial_json='{"at":'),
        delta(3, "input_json_delta", partial_json='"a"}'),
        stop(3),
        begin(4, {"type": "tool_use", "id": "t2", "name": "look", "input": {}}),
        stop(4),
        ending("tool_use", output_tokens=7),
        END,
    )
    assert events == [
        ThinkingStreamed(text="let me "),
        ThinkingStreamed(text="see"),
        TextStreamed(text="I look."),
        ToolCallStreamed(id="t1", name="look", text='{"at":'),
        ToolCallStreamed(id="t1", name="look", text='"a"}'),
    ]
    assert draft.has_ended
    assert draft.message() == AssistantMessage(
        content=(
            Thinking(text="let me see", signature="sig", provider="anthropic"),
            Thinking(redacted="opaque", provider="anthropic"),
            Text(text="I look."),
            ToolCall(id="t1", name="look", arguments=Raw(b'{"at":"a"}')),
            ToolCall(id="t2", name="look"),
        ),
        stop_reason="tool_calls",
        model="claude-x",
        usage=Usage(input_tokens=27, output_tokens=7, cached_tokens=20, cache_write_tokens=4),
    )


def test_blocks_of_one_kind_in_a_row_stay_apart():
    _, draft = decode(
        begin(0, {"type": "thinking"}),
        delta(0, "thinking_delta", thinking="one"),
        delta(0, "signature_delta", signature="1"),
        stop(0),
        begin(1, {"type": "thinking"}),
        delta(1, "signature_delta", signature="2"),
        stop(1),
        begin(2, {"type": "text", "text": "a"}),
        stop(2),
        begin(3, {"type": "text", "text": "b"}),
        stop(3),
    )
    assert draft.message().content == (
        Thinking(text="one", signature="1", provider="anthropic"),
        Thinking(signature="2", provider="anthropic"),
        Text(text="a"),
        Text(text="b"),
    )


def test_an_unknown_block_does_not_spoil_the_call_before_it():
    _, draft = decode(
        begin(0, {"type": "tool_use", "id": "c1", "name": "look", "input": {}}),
        delta(0, "input_json_delta", partial_json='{"a":1}'),
        stop(0),
        begin(1, {"type": "server_tool_use", "id": "s1", "name": "web"}),
        delta(1, "input_json_delta", partial_json='{"q":1}'),
        stop(1),
    )
    assert [(c.name, bytes(c.arguments), c.invalid) for c in draft.message().calls] == [
        ("look", b'{"a":1}', "")
    ]


def test_arguments_that_break_off_are_kept_as_they_came():
    _, draft = decode(
        begin(0, {"type": "tool_use", "id": "t1", "name": "look", "input": {}}),
        delta(0, "input_json_delta", partial_json='{"at": "'),
        ending("max_tokens", output_tokens=1),
    )
    message = draft.message()
    assert message.calls == (ToolCall(id="t1", name="look", invalid='{"at": "'),)
    assert message.stop_reason == "length"


def test_whole_arguments_at_the_start_of_a_block_are_taken_too():
    _, draft = decode(begin(0, {"type": "tool_use", "id": "t", "name": "look", "input": {"a": 1}}))
    assert draft.message().calls[0].arguments == Raw(b'{"a":1}')


def test_a_whole_message_is_read_like_a_stream():
    events, draft = decode(
        {
            "type": "message",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "sig"},
                {"type": "redacted_thinking", "data": "opaque"},
                {"type": "text", "text": "one"},
                {"type": "text", "text": "two"},
                {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": "a"}},
                {"type": "tool_use", "id": "t2", "name": "look", "input": {}},
                {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
            ],
            "stop_reason": "tool_use",
            "usage": {"input_tokens": 5, "output_tokens": 2, "cache_read_input_tokens": None},
        }
    )
    assert TextStreamed(text="one") in events
    assert draft.has_ended
    assert draft.message() == AssistantMessage(
        content=(
            Thinking(text="hm", signature="sig", provider="anthropic"),
            Thinking(redacted="opaque", provider="anthropic"),
            Text(text="one"),
            Text(text="two"),
            ToolCall(id="t1", name="look", arguments=Raw(b'{"at":"a"}')),
            ToolCall(id="t2", name="look"),
        ),
        stop_reason="tool_calls",
        model="claude-x",
        usage=Usage(input_tokens=5, output_tokens=2),
    )


@every_row(
    ("theirs", "ours"),
    [
        ("end_turn", "end"),
        ("stop_sequence", "end"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "refusal"),
        ("pause_turn", "failed"),
        ("a_new_reason", "failed"),
    ],
)
def test_every_stop_reason_has_a_meaning(theirs: str, ours: StopReason):
    _, draft = decode(begin(0, {"type": "text", "text": "hi"}), ending(theirs))
    assert draft.message().stop_reason == ours


@every_row(
    ("first", "last", "expected"),
    [
        # counts come twice, the second time all of them
        (
            {"input_tokens": 3, "cache_read_input_tokens": 20, "output_tokens": 1},
            {"input_tokens": 3, "cache_read_input_tokens": 20, "output_tokens": 9},
            Usage(input_tokens=23, output_tokens=9, cached_tokens=20),
        ),
        # the second time only the output
        (
            {"input_tokens": 3, "cache_creation_input_tokens": 5},
            {"output_tokens": 9},
            Usage(input_tokens=8, output_tokens=9, cache_write_tokens=5),
        ),
        # a proxy that knows nothing before the end
        (
            {"input_tokens": 0, "output_tokens": 0},
            {"input_tokens": 12, "output_tokens": 9},
            Usage(input_tokens=12, output_tokens=9),
        ),
        # a proxy that forgets at the end
        (
            {"input_tokens": 12, "output_tokens": 1},
            {"input_tokens": 0, "output_tokens": 9},
            Usage(input_tokens=12, output_tokens=9),
        ),
        ({}, {}, Usage()),
    ],
)
def test_usage_includes_the_cache_however_it_is_told(first, last, expected):
    _, draft = decode(start(**first), ending("end_turn", **last))
    assert draft.usage == expected
