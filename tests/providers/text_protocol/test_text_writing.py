"""Requests as text: tools, calls and results."""

import msgspec
from msgspec import Raw

from ybs.core.messages import AssistantMessage, Text, ToolCall, ToolResult, UserMessage
from ybs.core.ports import Request, ToolSpec
from ybs.providers.text_protocol import EXAMPLES, HOW, NAMES, Writer, signature, with_calls

SCHEMA = Raw(
    b'{"type":"object","properties":{"path":{"type":"string"},"limit":{"type":"integer"},'
    b'"kind":{"enum":["a","b"]},"tags":{"type":"array","items":{"type":"string"}}},"required":["path"]}'
)


def spec(name: str, effect: str = "read") -> ToolSpec:
    return ToolSpec(name=name, description="Do it.", parameters=SCHEMA, effect=effect)  # pyright: ignore[reportArgumentType] - a row of words


def test_a_tool_is_a_line():
    assert signature(spec("look")) == (
        '- look(path, limit?: integer, kind?: a|b, tags?: {"type":"array","items":{"type":"string"}}): Do it.'
    )


def test_calls_and_results_are_text():
    asked = UserMessage.of("Look.")
    call = ToolCall(id="1", name="look", arguments=Raw(b'{"path":"a"}'))
    said = AssistantMessage(content=(Text(text="Yes."), call))
    results = [
        ToolResult(call_id="1", name="look", output="seen\n"),
        ToolResult(call_id="3", name="look", output="no such file", is_error=True),
    ]
    tools = [spec("look"), spec("change", "edit")]
    written = Writer().written(Request("Be brief.", [asked, said, *results], tools), 8192)
    assert written.tools == ()
    assert written.system.startswith("Be brief.\n\nTools (? may be left out):\n- look(path")
    assert written.system.endswith(f"{HOW}\n")
    assert [getattr(m, "text", "") for m in written.messages] == [
        "Look.",
        'Yes.\n```json\n{"name": "look", "arguments": {"path":"a"}}\n```',
        "Result of look:\nseen",
        "Result of look:\nno such file",
    ]


def test_nothing_stands_before_a_call_that_stood_alone():
    answer = AssistantMessage(
        content=(Text(text='```json\n{"name": "look", "arguments": {"path":"a"}}\n```'),)
    )
    read = with_calls(answer, {"look"})
    (written,) = Writer().written(Request("", [read], [spec("look")]), 8192).messages
    assert (len(read.calls), written.text) == (1, answer.text)


def test_what_was_written_stays_the_same_object_as_the_conversation_grows():
    writer, tools = Writer(), [spec("look")]
    result = ToolResult(call_id="1", name="look", output="seen")
    one = writer.written(Request("", [result], tools), 8192)
    two = writer.written(Request("", [result, UserMessage.of("more")], tools), 8192)
    assert one.messages[0] is two.messages[0]


def test_examples_stand_first_where_their_tools_are_on_offer():
    tools = [spec(name) for name in sorted(NAMES)]
    asked = UserMessage.of("Look.")
    request = Request("", [asked], tools)
    assert list(Writer().written(request, 8192).messages) == [*EXAMPLES, asked]
    assert list(Writer().written(request, 4096).messages) == [asked]
    request = Request("", [asked], tools[1:])
    assert list(Writer().written(request, 8192).messages) == [asked]


def test_the_calls_of_the_examples_are_calls():
    answers = [m for m in EXAMPLES if isinstance(m, AssistantMessage)]
    read = [with_calls(m, NAMES) for m in answers]
    called = {call.name for message in read for call in message.calls}
    assert called == NAMES
    assert all(bool(m.calls) != bool(m.text) for m in read)


def test_people_and_models_take_turns_in_the_examples():
    kinds = [type(message) for message in EXAMPLES]
    assert kinds == [UserMessage, AssistantMessage] * (len(kinds) // 2)
    assert len(msgspec.json.encode(EXAMPLES)) < 5_000
