"""Scripts: short forms, ids, pieces and JSON."""

import msgspec
import pytest
from msgspec import Raw

from scripted import (
    Entry,
    Frames,
    HttpError,
    Interrupted,
    Joined,
    Recut,
    StreamingRefused,
    Whole,
    html_page,
    read_script,
)
from ybs.core.messages import AssistantMessage, Text, Thinking, ToolCall, Usage
from ybs.testing import (
    ScriptedAnswer,
    answer,
    broken_call,
    call,
    thought,
)
from ybs.testing.script import as_answer


def test_a_misspelt_entry_is_refused_and_the_place_is_named():
    with pytest.raises(msgspec.ValidationError, match=r"unknown field `stat` - at `\$\[1\]`"):
        read_script(b'["hi", {"type": "http_error", "stat": 500}]')
    with pytest.raises(msgspec.ValidationError, match="'htp_error'"):
        read_script(b'[{"type": "htp_error"}]')


def test_calls_get_ids_by_answer_and_place_and_keep_those_that_they_have():
    mine = ToolCall(id="mine", name="look")
    message = answer("hi", call("look"), mine, broken_call("look", "{")).message("m", 7)
    assert [c.id for c in message.calls] == ["call_7_1", "mine", "call_7_3"]
    assert (message.stop_reason, message.model) == ("tool_calls", "m")


def test_an_answer_without_calls_ends_unless_it_says_why_else():
    assert answer("hi").message("m").stop_reason == "end"
    assert answer("hi", stop_reason="length").message("m").stop_reason == "length"


def test_text_is_cut_into_pieces_that_make_it_up_again():
    assert answer(chunk_size=3).chunks("grüße!") == ["grü", "ße!"]
    assert answer().chunks("") == []


def test_short_forms_stand_for_whole_answers():
    assert as_answer("hi") == answer("hi")
    assert as_answer(call("look", a=1)) == answer(call("look", a=1))
    said = AssistantMessage(
        content=(Text(text="hi"),), stop_reason="length", usage=Usage(input_tokens=1)
    )
    assert as_answer(said).message("", 1) == said


def test_builders_make_the_parts():
    assert call("look", a=1, name="x").arguments == Raw(b'{"a":1,"name":"x"}')
    assert thought("hm", signature="s", provider="p") == Thinking(
        text="hm", signature="s", provider="p"
    )
    page = html_page(503)
    assert (page.status, page.headers) == (503, {"content-type": "text/html"})


def test_every_kind_of_entry_survives_a_json_file():
    script: list[Entry] = [
        "plain",
        call("look", path="a.py"),
        answer(thought("hm"), "text", broken_call("look", "{"), chunk_size=3),
        HttpError(status=429, kind="rate_limit_error", headers={"retry-after": "2"}),
        html_page(),
        Interrupted(how="stall", after_frames=3, answer=answer("a", call("look"))),
        Recut(answer="grüße", at=(1, 2)),
        Joined(answer="two"),
        Whole(answer=call("look")),
        StreamingRefused(),
        Frames.of({"a": 1}, [], is_ended=False),
    ]
    assert read_script(msgspec.json.encode(script)) == script


def test_a_script_is_written_by_hand_like_this():
    script = read_script(b"""[
        {"type": "tool_call", "id": "c1", "name": "read_file", "arguments": {"path": "a.py"}},
        {"type": "answer", "parts": [{"type": "text", "text": "It is empty."}]}
    ]""")
    call, said = script
    assert isinstance(call, ToolCall)
    assert bytes(call.arguments) == b'{"path": "a.py"}'
    assert said == ScriptedAnswer(parts=(Text(text="It is empty."),))
