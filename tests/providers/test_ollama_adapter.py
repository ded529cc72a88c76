import msgspec
import pytest
from msgspec import Raw

from rows import every_row
from ybs.core.events import Noticed, TextStreamed, ThinkingStreamed
from ybs.core.messages import (
    AssistantMessage,
    Image,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    UserMessage,
)
from ybs.core.ports import Request, ToolSpec
from ybs.providers.wire.adapter import RequestOptions
from ybs.providers.wire.assemble import Assembly
from ybs.providers.wire.ollama import PROVIDER, OllamaAdapter
from ybs.providers.wire.quirks import Quirks

ADAPTER = OllamaAdapter()
PICTURE = Image(media_type="image/png", data=b"\x89PNG")
CALL = ToolCall(id="c1", name="read_file", arguments=Raw(b'{"path":"a"}'))


def encode(
    *messages, system: str = "", tools=(), quirks: Quirks = PROVIDER.quirks, **options
) -> dict:
    request = Request(system, messages, tools)
    body = ADAPTER.encode(request, RequestOptions(model="m", quirks=quirks, **options))
    plain = msgspec.json.decode(msgspec.json.encode(body))
    from ollama._types import ChatRequest  # slow to import

    ChatRequest.model_validate(plain)
    return plain


def decode(*frames: dict) -> tuple[AssistantMessage, list, Assembly]:
    draft = Assembly("m", "ollama", quirks=PROVIDER.quirks)
    from ollama import ChatResponse  # slow to import

    for frame in frames:
        ChatResponse.model_validate({"model": "m", **frame})
    events = [event for frame in frames for event in ADAPTER.decode(frame, draft)]
    return draft.message(), events, draft


def line(*, done: bool = False, **message) -> dict:
    return {"message": {"role": "assistant", "content": "", **message}, "done": done}


@pytest.mark.integration
def test_a_request_says_how_large_the_window_is():
    tool = ToolSpec(name="t", description="d", parameters=Raw(b'{"type":"object","properties":{}}'))
    body = encode(
        UserMessage.of("hi"),
        system="be brief",
        tools=[tool],
        window=8192,
        max_tokens=512,
        temperature=0.0,
    )
    assert body == {
        "model": "m",
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "t",
                    "description": "d",
                    "parameters": {"type": "object", "properties": {}},
                },
            }
        ],
        "stream": True,
        "options": {"num_ctx": 8192, "num_predict": 512, "temperature": 0.0},
        "truncate": False,
        "shift": False,
    }


def test_how_long_the_model_is_kept_is_said_only_where_the_person_said_it():
    assert "keep_alive" not in encode(UserMessage.of("hi"))
    assert encode(UserMessage.of("hi"), keep_minutes=30)["keep_alive"] == "1800s"
    assert encode(UserMessage.of("hi"), keep_minutes=0.5)["keep_alive"] == "30s"


def answered(count: int, request_bytes: int, adapter: OllamaAdapter) -> list[Noticed]:
    """Return what is said of an answer to a request of so many bytes, of which so many tokens were read."""
    messages = (UserMessage.of("x" * request_bytes),)
    draft = Assembly("m", "ollama", quirks=PROVIDER.quirks, messages=messages)
    frame = {**line(done=True), "done_reason": "stop", "prompt_eval_count": count}
    return [event for event in adapter.decode(frame, draft) if isinstance(event, Noticed)]


@every_row(
    ("count", "request_bytes", "is_said"),
    [
        (2051, 30_000, True),  # half of 4,096: what Ollama 0.33 leaves of a longer request
        (4099, 40_000, True),
        (4096, 40_000, True),  # all of it: what older ones leave
        (8190, 90_000, True),
        (2051, 10_000, False),  # all of a request may have as few tokens
        (2500, 90_000, False),  # only the new part was counted
        (700, 90_000, False),
        (0, 90_000, False),
        (5, 10, False),
    ],
)
def test_a_request_that_the_server_cut_is_noticed(count: int, request_bytes: int, is_said: bool):
    said = answered(count, request_bytes, OllamaAdapter())
    assert [note.level for note in said] == ["warning"] * is_said
    assert all(f"read only {count:,} tokens" in note.text for note in said)


def test_a_cut_is_told_once():
    adapter = OllamaAdapter()
    assert len(answered(4096, 90_000, adapter)) == 1
    assert answered(4096, 90_000, adapter) == []


def test_what_is_not_wanted_is_not_sent_and_more_may_be():
    quirks = Quirks(accepts_temperature=False, extra_body={"think": False})
    body = encode(UserMessage.of("hi"), temperature=1.0, stream=False, quirks=quirks)
    assert "temperature" not in body["options"]
    assert (body["stream"], body["think"]) == (False, False)
    assert "tools" not in body


def test_a_call_goes_back_as_an_object_and_its_result_with_the_name():
    thinking = Thinking(text="hm", provider="ollama")
    foreign = Thinking(text="no", provider="anthropic")
    messages = encode(
        AssistantMessage(content=(thinking, foreign, Text(text="see"), CALL)),
        ToolResult(call_id="c1", name="read_file", output="text"),
    )["messages"]
    assert messages == [
        {
            "role": "assistant",
            "content": "see",
            "thinking": "hm",
            "tool_calls": [{"function": {"name": "read_file", "arguments": {"path": "a"}}}],
        },
        {"role": "tool", "content": "text", "tool_name": "read_file"},
    ]


def test_thinking_is_kept_back_where_it_is_not_wanted():
    message = AssistantMessage(content=(Thinking(text="hm", provider="ollama"), Text(text="a")))
    assert encode(message, quirks=Quirks())["messages"] == [{"role": "assistant", "content": "a"}]
    alone = AssistantMessage(content=(Thinking(text="hm", provider="ollama"),))
    assert encode(alone)["messages"] == []


def test_pictures_are_base64_beside_the_text():
    assert encode(UserMessage.of("see", PICTURE))["messages"] == [
        {"role": "user", "content": "see", "images": ["iVBORw=="]}
    ]
    (blind,) = encode(UserMessage.of("see", PICTURE), quirks=Quirks(sees_images=False))["messages"]
    assert "images" not in blind
    assert "left out" in blind["content"]


def test_pictures_of_tools_follow_in_a_user_message():
    result = ToolResult(call_id="c1", name="read_file", output="a", images=(PICTURE,))
    calls = AssistantMessage(content=(CALL,))
    last = {
        "role": "user",
        "content": "The picture from the tool results above:",
        "images": ["iVBORw=="],
    }
    assert encode(calls, result)["messages"][-1] == last
    assert encode(calls, result, UserMessage.of("so?"))["messages"][-2:] == [
        last,
        {"role": "user", "content": "so?"},
    ]


def test_a_stream_with_thinking_text_and_counts():
    message, events, draft = decode(
        line(thinking="hm"),
        line(content="Hel"),
        line(content="lo"),
        {**line(done=True), "done_reason": "stop", "prompt_eval_count": 9, "eval_count": 2},
    )
    assert events == [
        ThinkingStreamed(text="hm"),
        TextStreamed(text="Hel"),
        TextStreamed(text="lo"),
    ]
    assert message == AssistantMessage(
        content=(Thinking(text="hm", provider="ollama"), Text(text="Hello")),
        model="m",
        usage=Usage(input_tokens=9, output_tokens=2),
    )
    assert draft.has_ended


def test_several_calls_with_and_without_ids():
    message, _, _ = decode(
        line(
            tool_calls=[
                {"function": {"name": "read", "arguments": {"p": 1}}},
                {"function": {"name": "read", "arguments": {"p": 2}}},
            ]
        ),
        line(done=True, tool_calls=[{"id": "x", "function": {"name": "list", "arguments": {}}}]),
    )
    assert [(c.name, bytes(c.arguments)) for c in message.calls] == [
        ("read", b'{"p":1}'),
        ("read", b'{"p":2}'),
        ("list", b"{}"),
    ]
    assert message.calls[2].id == "x"
    assert message.stop_reason == "tool_calls"


@every_row(
    ("call", "arguments"),
    [
        ({"function": {"name": "read", "arguments": '{"p":1}'}}, b'{"p":1}'),
        ({"name": "read", "arguments": {"p": 1}}, b'{"p":1}'),
        ({"function": {"name": "read"}}, b"{}"),
        ({"function": {"name": "read", "arguments": None}}, b"{}"),
    ],
)
def test_loose_calls(call: dict, arguments: bytes):
    draft = Assembly("m", "ollama")
    list(ADAPTER.decode({"message": {"tool_calls": [call]}}, draft))
    (made,) = draft.message().calls
    assert (made.name, bytes(made.arguments)) == ("read", arguments)


@every_row(
    ("reason", "expected"),
    [("stop", "end"), ("length", "length"), (None, "end"), ("error", "failed")],
)
def test_stop_reasons(reason, expected):
    message, _, _ = decode(line(content="x"), {**line(done=True), "done_reason": reason})
    assert message.stop_reason == expected


@every_row("frame", [{}, {"message": None}, {"message": {"content": None, "tool_calls": {}}}])
def test_odd_frames_do_no_harm(frame: dict):
    draft = Assembly("m", "ollama")
    assert list(ADAPTER.decode(frame, draft)) == []
    assert draft.stop_reason is None


def test_the_key_is_a_bearer_token():
    assert ADAPTER.headers("k") == {"authorization": "Bearer k"}
    assert ADAPTER.headers(None) == {}
