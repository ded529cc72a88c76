from time import process_time

import msgspec
import pytest
from msgspec import Raw
from raw_http import chunk

from rows import every_row
from ybs.core.events import PromptRead, TextStreamed, ThinkingStreamed
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
from ybs.providers.wire.mistral import MistralAdapter
from ybs.providers.wire.openai import OpenAIAdapter
from ybs.providers.wire.quirks import Quirks

ADAPTER = OpenAIAdapter()
PICTURE = Image(media_type="image/png", data=b"\x89PNG")
CALL = ToolCall(id="c1", name="read_file", arguments=Raw(b'{"path":"a"}'))
RESULT = ToolResult(call_id="c1", name="read_file", output="text of a")


def encode(*messages, system: str = "", tools=(), **options) -> dict:
    body = ADAPTER.encode(Request(system, messages, tools), RequestOptions(model="m", **options))
    return msgspec.json.decode(msgspec.json.encode(body))


def said(*messages, **quirks) -> list[dict]:
    return encode(*messages, quirks=Quirks(**quirks))["messages"]


def decode(*frames: dict, **quirks) -> tuple[AssistantMessage, list]:
    draft = Assembly("m", "openai", quirks=Quirks(**quirks))
    events = [event for frame in frames for event in ADAPTER.decode(frame, draft)]
    return draft.message(), events


async def test_llama_cpp_tells_how_much_of_the_prompt_it_has_read():
    frames = [
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": None}}],
         "prompt_progress": {"total": 900, "cache": 100, "processed": read, "time_ms": 7}}
        for read in (356, 900)
    ]  # fmt: skip
    last = {"choices": [{"delta": {"content": "hi"}, "finish_reason": "stop"}]}
    message, events = decode(*frames, {"prompt_progress": {"total": 0}}, last)
    read = [event for event in events if isinstance(event, PromptRead)]
    assert read == [PromptRead(read=356, total=900), PromptRead(read=900, total=900)]
    assert message.text == "hi"


# Requests


def test_the_smallest_request():
    assert encode(UserMessage.of("hi"), max_tokens=100) == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "max_tokens": 100,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_a_request_with_everything():
    tool = ToolSpec(name="t", description="d", parameters=Raw(b'{"type":"object"}'))
    quirks = Quirks(
        max_tokens_field="max_completion_tokens",
        system_role="developer",
        parallel_tool_calls=True,
        reasoning_effort="none",
        extra_body={"seed": 1},
    )
    body = encode(
        UserMessage.of("hi"),
        system="be brief",
        tools=[tool],
        temperature=0.5,
        stream=False,
        quirks=quirks,
    )
    assert body == {
        "model": "m",
        "messages": [
            {"role": "developer", "content": "be brief"},
            {"role": "user", "content": "hi"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {"name": "t", "description": "d", "parameters": {"type": "object"}},
            }
        ],
        "parallel_tool_calls": True,
        "reasoning_effort": "none",
        "max_completion_tokens": 4096,
        "temperature": 0.5,
        "stream": False,
        "seed": 1,
    }


def test_a_grammar_is_sent_where_there_is_one():
    assert encode(UserMessage.of("hi"), grammar='root ::= "a"')["grammar"] == 'root ::= "a"'
    assert "grammar" not in encode(UserMessage.of("hi"))


def test_what_the_server_does_not_want_is_not_sent():
    quirks = Quirks(
        max_tokens_field="",
        sends_stream_options=False,
        accepts_temperature=False,
        parallel_tool_calls=True,
        reasoning_effort="low",
    )
    body = encode(UserMessage.of("hi"), temperature=1.0, quirks=quirks)
    assert body.keys() == {"model", "messages", "stream"}


def test_a_call_and_its_result():
    assistant = AssistantMessage(content=(Text(text="Let me see."), CALL))
    assert said(assistant, RESULT) == [
        {
            "role": "assistant",
            "content": "Let me see.",
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "read_file", "arguments": '{"path":"a"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "text of a"},
    ]


def test_arguments_may_be_wanted_as_an_object_and_calls_with_more_fields():
    (message,) = said(
        AssistantMessage(content=(CALL,)), arguments_as_object=True, call_extra={"x": {"y": 1}}
    )
    (call,) = message["tool_calls"]
    assert call["function"]["arguments"] == {"path": "a"}
    assert call["x"] == {"y": 1}


def test_thinking_is_sent_back_only_where_it_is_wanted_and_only_its_own():
    message = AssistantMessage(
        content=(
            Thinking(text="mine", provider="openai"),
            Thinking(text="theirs", provider="anthropic", signature="s"),
            Text(text="hi"),
        )
    )
    assert said(message) == [{"role": "assistant", "content": "hi"}]
    assert said(message, reasoning_sent_as="reasoning_content") == [
        {"role": "assistant", "content": "hi", "reasoning_content": "mine"}
    ]


def test_an_answer_of_thinking_alone_is_left_out():
    alone = AssistantMessage(content=(Thinking(text="hm", provider="openai"),))
    assert said(UserMessage.of("a"), alone, UserMessage.of("b")) == [
        {"role": "user", "content": "a"},
        {"role": "user", "content": "b"},
    ]


def test_pictures_of_a_person_are_data_urls():
    assert said(UserMessage.of("see", PICTURE)) == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "see"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}},
            ],
        }
    ]


def test_pictures_of_tools_follow_the_last_result_of_the_message():
    calls = AssistantMessage(content=(CALL, ToolCall(id="c2", name="shot")))
    one = ToolResult(call_id="c1", name="read_file", output="a", images=(PICTURE,))
    two = ToolResult(call_id="c2", name="shot", output="b", images=(PICTURE,))
    messages = said(calls, one, two)
    assert [m["role"] for m in messages] == ["assistant", "tool", "tool", "user"]
    assert [p["type"] for p in messages[-1]["content"]] == ["text", "image_url", "image_url"]
    assert said(calls, one, two, UserMessage.of("so?"))[-2:] == [
        messages[-1],
        {"role": "user", "content": "so?"},
    ]


def test_a_model_without_eyes_gets_a_line_of_text():
    (message,) = said(UserMessage.of("see", PICTURE), sees_images=False)
    assert message["content"].startswith("see\n[A picture (image/png) was left out")


def test_ids_are_fitted_to_what_the_server_takes_and_stay_paired():
    call, result = AssistantMessage(content=(CALL,)), RESULT
    assistant, tool = said(call, result, call_id_chars=9)
    made = assistant["tool_calls"][0]["id"]
    assert made == tool["tool_call_id"]
    assert len(made) == 9
    assert made.isalnum()
    fitting = AssistantMessage(content=(ToolCall(id="abcDEF123", name="x"),))
    assert said(fitting, call_id_chars=9)[0]["tool_calls"][0]["id"] == "abcDEF123"


def test_an_id_that_is_too_long_for_openai_is_shortened():
    long = AssistantMessage(content=(ToolCall(id="toolu_" + "x" * 60, name="x"),))
    assert len(said(long)[0]["tool_calls"][0]["id"]) == 40


def test_an_assistant_message_is_put_between_result_and_user_where_wanted():
    messages = said(
        AssistantMessage(content=(CALL,)),
        RESULT,
        UserMessage.of("go on"),
        wants_assistant_after_tool=True,
    )
    assert [m["role"] for m in messages] == ["assistant", "tool", "assistant", "user"]


def test_user_messages_in_a_row_are_joined_where_wanted():
    texts = said(UserMessage.of("a"), UserMessage.of("b"), wants_alternating_roles=True)
    assert texts == [{"role": "user", "content": "a\n\nb"}]
    (mixed,) = said(UserMessage.of("a"), UserMessage.of("b", PICTURE), wants_alternating_roles=True)
    assert [part["type"] for part in mixed["content"]] == ["text", "text", "image_url"]


@pytest.mark.slow
@every_row("quirks", [{}, {"call_id_chars": 9}, {"reasoning_sent_as": "reasoning"}])
def test_the_official_types_take_the_messages(quirks):
    from openai.types.chat import ChatCompletionMessageParam
    from pydantic import TypeAdapter

    messages = said(
        UserMessage.of("see", PICTURE),
        AssistantMessage(content=(Thinking(text="hm", provider="openai"), CALL)),
        ToolResult(call_id="c1", name="read_file", output="a", images=(PICTURE,)),
        AssistantMessage(content=(Text(text="done"),)),
        **quirks,
    )
    for message in messages:
        TypeAdapter(ChatCompletionMessageParam).validate_python(message)


def test_mistral_gets_short_ids():
    body = encode(AssistantMessage(content=(CALL,)), RESULT, quirks=MistralAdapter.quirks)
    (call,) = body["messages"][0]["tool_calls"]
    assert len(call["id"]) == 9


def test_a_conversation_of_twice_the_length_takes_twice_the_time_to_encode():
    turn = (
        UserMessage.of("x" * 500),
        AssistantMessage(content=(Text(text="y" * 500), CALL)),
        ToolResult(call_id="c1", name="read_file", output="z" * 2000),
        AssistantMessage(content=(Text(text="y" * 500),)),
    )

    def seconds(times: int) -> float:
        request, options = Request("system", turn * times), RequestOptions(model="m")
        start = process_time()
        msgspec.json.encode(ADAPTER.encode(request, options))
        return process_time() - start

    assert min(seconds(200) for _ in range(5)) < 3 * min(seconds(100) for _ in range(5))


def test_the_key_is_a_bearer_token():
    assert ADAPTER.headers("k") == {"authorization": "Bearer k"}
    assert ADAPTER.headers(None) == {}


# Answers


STREAM = [
    chunk({"role": "assistant", "content": None}),
    chunk({"content": "Hel"}),
    chunk({"content": "lo"}),
    chunk({}, "stop"),
    {
        "choices": [],
        "usage": {
            "prompt_tokens": 9,
            "completion_tokens": 2,
            "total_tokens": 11,
            "prompt_tokens_details": {"cached_tokens": 4},
        },
    },
]


@pytest.mark.slow
def test_the_official_type_takes_the_frames():
    from openai.types.chat import ChatCompletionChunk

    for frame in STREAM:
        ChatCompletionChunk.model_validate(
            {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", **frame}
        )


def test_a_stream_of_text_with_usage_at_its_end():
    message, events = decode(*STREAM)
    assert events == [TextStreamed(text="Hel"), TextStreamed(text="lo")]
    assert message == AssistantMessage(
        content=(Text(text="Hello"),),
        model="m",
        usage=Usage(input_tokens=9, output_tokens=2, cached_tokens=4),
    )


def test_a_whole_answer_goes_through_the_same_code():
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "read_file", "arguments": '{"path":"a"}'},
    }
    message, _ = decode(
        {
            "choices": [
                {
                    "message": {"content": "Hi", "reasoning_content": "hm", "tool_calls": [call]},
                    "finish_reason": "stop",
                }
            ],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1},
        }
    )
    assert message.content == (Thinking(text="hm", provider="openai"), Text(text="Hi"), CALL)
    assert message.stop_reason == "tool_calls"


def test_a_whole_answer_without_a_reason_is_complete():
    draft = Assembly("m", "openai")
    list(ADAPTER.decode({"choices": [{"message": {"content": "Hi"}}]}, draft))
    assert draft.stop_reason == "end"


@every_row(
    ("reason", "expected"),
    [
        ("stop", "end"),
        ("length", "length"),
        ("tool_calls", "end"),  # although there is no call
        ("content_filter", "refusal"),
        ("eos", "end"),
        ("error", "failed"),
        ("abort", "failed"),
        ("network_error", "failed"),
        ("MALFORMED_FUNCTION_CALL", "failed"),  # a gateway that passes on Gemini's word
        ("MAX_TOKENS", "length"),
        ("guardrail_intervened", "refusal"),
    ],
)
def test_stop_reasons(reason: str, expected: str):
    assert decode(chunk({"content": "x"}, reason))[0].stop_reason == expected


@every_row("field", ["reasoning_content", "reasoning", "thinking"])
def test_thinking_under_any_of_its_names(field: str):
    message, events = decode(chunk({field: "hm"}), chunk({"content": "so"}))
    assert events[0] == ThinkingStreamed(text="hm")
    assert message.content == (Thinking(text="hm", provider="openai"), Text(text="so"))


def test_thinking_that_comes_under_two_names_is_taken_once():
    message, _ = decode(chunk({"reasoning_content": "hm", "reasoning": "hm"}))
    assert message.content == (Thinking(text="hm", provider="openai"),)


def test_content_as_a_list_of_parts():
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "so"},
        "!",
        None,
    ]
    message, _ = decode(chunk({"content": parts}))
    assert message.content == (Thinking(text="hm", provider="openai"), Text(text="so!"))


def test_a_refusal_is_text():
    assert decode(chunk({"refusal": "No."}, "stop"))[0].text == "No."


def test_calls_in_many_small_pieces():
    frames = [
        chunk(
            {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "read", "arguments": ""}}]}
        ),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"p"'}}]}),
        chunk(
            {
                "tool_calls": [
                    {"index": 1, "id": "b", "function": {"name": "list", "arguments": "{}"}}
                ]
            }
        ),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}]}),
        chunk({}, "tool_calls"),
    ]
    message, _ = decode(*frames)
    assert [(c.id, c.name, bytes(c.arguments)) for c in message.calls] == [
        ("a", "read", b'{"p":1}'),
        ("b", "list", b"{}"),
    ]
    assert message.stop_reason == "tool_calls"


@every_row(
    "call",
    [
        {"function": {"name": "read", "arguments": {"p": 1}}},  # an object, no id, no index
        {"id": "", "index": 0, "function": {"name": "read", "arguments": '{"p":1}'}},
        {"id": None, "index": None, "function": {"name": "read", "arguments": '{"p":1}'}},
        {"id": 7, "index": "0", "name": "read", "arguments": {"p": 1}},  # no envelope
    ],
)
def test_loose_calls(call: dict):
    message, _ = decode(chunk({"tool_calls": [call]}, "stop"))
    (made,) = message.calls
    assert (made.name, bytes(made.arguments)) == ("read", b'{"p":1}')
    assert made.id
    assert message.stop_reason == "tool_calls"


@every_row(
    "frame",
    [
        {},
        {"choices": []},
        {"choices": None},
        {"choices": "x"},
        {"choices": [None]},
        {"choices": [{}]},
        {"choices": [{"delta": None}]},
        {"choices": [{"delta": {"content": 5, "tool_calls": {"a": 1}}}]},
        {"choices": [{"delta": {"tool_calls": [None]}}]},
        {"usage": "none"},
    ],
)
def test_odd_frames_do_no_harm(frame: dict):
    message, _ = decode(frame, chunk({"content": "ok"}, "stop"))
    assert message.text == "ok"


@every_row(
    "frame",
    [
        {"usage": {"prompt_tokens": 12, "completion_tokens": 3, "prompt_cache_hit_tokens": 2}},
        {
            "x_groq": {
                "usage": {
                    "prompt_tokens": 12,
                    "completion_tokens": 3,
                    "prompt_tokens_details": {"cached_tokens": 2},
                }
            }
        },
        {"timings": {"prompt_n": 10, "cache_n": 2, "predicted_n": 3}},
        {
            "choices": [
                {
                    "usage": {
                        "prompt_tokens": 12,
                        "completion_tokens": 3,
                        "prompt_cache_hit_tokens": 2,
                    }
                }
            ]
        },
    ],
)
def test_usage_in_odd_places(frame: dict):
    assert decode(frame)[0].usage == Usage(input_tokens=12, output_tokens=3, cached_tokens=2)


def test_what_a_cache_held_is_a_part_of_the_input_even_where_it_is_counted_apart():
    frame = {"usage": {"prompt_tokens": 2, "completion_tokens": 3, "prompt_cache_hit_tokens": 10}}
    assert decode(frame)[0].usage == Usage(input_tokens=12, output_tokens=3, cached_tokens=10)


def test_usage_is_looked_for_where_the_quirks_say():
    frame = {"stats": {"prompt_tokens": 5}, "usage": {"prompt_tokens": 9}}
    assert decode(frame, usage_fields=("stats",))[0].usage == Usage(input_tokens=5)


def test_an_index_that_is_no_number_tells_no_calls_apart():
    begun = {"id": "c1", "index": "first", "function": {"name": "read", "arguments": '{"p":'}}
    ended = {"index": "second", "function": {"arguments": "1}"}}
    message, _ = decode(chunk({"tool_calls": [begun]}), chunk({"tool_calls": [ended]}, "stop"))
    (made,) = message.calls
    assert (made.name, bytes(made.arguments)) == ("read", b'{"p":1}')


@every_row(
    ("usage", "tokens"),
    [
        # what the format itself counts goes before what llama.cpp says of its own work
        ({"prompt_tokens": 20, "prompt_n": 10, "cache_n": 2, "completion_tokens": 3}, 20),
        ({"prompt_n": 10, "completion_tokens": 3}, 10),
        ({"completion_tokens": 3}, 0),
    ],
)
def test_the_input_is_what_was_counted_first(usage: dict, tokens: int):
    assert decode({"usage": usage})[0].usage.input_tokens == tokens


def test_a_function_call_as_it_was_before_tools():
    pieces = [{"name": "read", "arguments": ""}, {"arguments": '{"a"'}, {"arguments": ": 1}"}]
    message, _ = decode(
        *[chunk({"function_call": piece}) for piece in pieces], chunk({}, "function_call")
    )[:2]
    assert [(call.name, bytes(call.arguments)) for call in message.calls] == [("read", b'{"a": 1}')]
    assert message.stop_reason == "tool_calls"


def test_a_last_chunk_that_repeats_it_all_adds_nothing():
    call = {"index": 0, "id": "c1", "function": {"name": "read", "arguments": "{}"}}
    whole = {"content": "hi", "tool_calls": [call]}
    last = {"choices": [{"message": whole, "finish_reason": "tool_calls"}]}
    message = decode(chunk({"content": "hi"}), chunk({"tool_calls": [call]}), last)[0]
    assert (message.text, len(message.calls)) == ("hi", 1)
