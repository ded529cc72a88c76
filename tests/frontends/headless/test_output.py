"""Text, JSON and JSON lines."""

import errno
import io
import sys
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from rows import every_row
from ybs.core.envelope import MAIN, Envelope
from ybs.core.events import (
    Event,
    Noticed,
    RequestRetried,
    SessionStarted,
    TextStreamed,
    ThinkingStreamed,
    ToolFinished,
    ToolStarted,
)
from ybs.core.messages import Usage
from ybs.frontends.headless.output import (
    Pipe,
    Result,
    counts,
    line_of,
    make_output,
    one_line,
    usage_line,
)

RESULT = Result(
    result="The answer",
    reason="done",
    is_error=False,
    exit_code=0,
    steps=2,
    usage=counts(Usage(input_tokens=1200, output_tokens=34)),
    cost_usd=0.0021,
    duration_seconds=1.5,
    model="m",
    provider="p",
    session="s",
)
CALL = ToolStarted(id="1", name="run_shell", arguments=Raw(b'{"command":"ls"}'))
DONE = ToolFinished(
    id="1", name="run_shell", success=True, output="out", summary="3 files", duration_seconds=0.2
)
REFUSED = ToolFinished(
    id="1", name="run_shell", success=False, is_refused=True, output="Refused: nobody\ncan  confirm"
)


class BrokenStdout:
    """A standard output whose reader has gone."""

    @property
    def buffer(self) -> "BrokenStdout":
        return self

    def write(self, _data: bytes) -> int:
        raise BrokenPipeError

    def flush(self) -> None: ...


def test_text_is_the_answer_and_nothing_else_on_standard_output(capfdbinary, monkeypatch):
    out, err = io.BytesIO(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out))
    monkeypatch.setattr(sys, "stderr", err)
    output = make_output("text", Pipe(), is_verbose=False)
    for event in (CALL, TextStreamed(text="The"), DONE, Noticed(level="info", text="hm")):
        output.event(told(event))
    output.result(RESULT)
    assert out.getvalue() == b"The answer\n"
    assert err.getvalue() == ""


def told(event: Event, agent: str = MAIN) -> Envelope:
    return Envelope("s", agent, event)


def run_text(
    monkeypatch: pytest.MonkeyPatch, *events: Event, is_verbose: bool, result: Result = RESULT
) -> tuple[str, str]:
    out, err = io.BytesIO(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out))
    monkeypatch.setattr(sys, "stderr", err)
    output = make_output("text", Pipe(), is_verbose=is_verbose)
    for event in events:
        output.event(told(event))
    output.result(result)
    return out.getvalue().decode(), err.getvalue()


def test_verbose_tells_every_step_on_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    thinking = (ThinkingStreamed(text="let me "), ThinkingStreamed(text="see"))
    _, err = run_text(
        monkeypatch, *thinking, CALL, DONE, Noticed(level="info", text="hm"), is_verbose=True
    )
    assert err.split("\n") == [
        "thinking: let me see",
        '> run_shell {"command":"ls"}',
        "  run_shell done in 0.2 s: 3 files",
        "    out",
        "hm",
        "2 steps, 1,200 tokens in, 34 out, $0.0021, 1.5 s",
        "",
    ]


def test_what_the_person_has_to_know_is_told_in_any_case(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = Result(result="", reason="error", is_error=True, exit_code=4, message="no key")
    events = (
        Noticed(level="warning", text="careful\x1b[2J"),
        RequestRetried(attempt=2, wait_seconds=4.2, message="busy\nTry again"),
        REFUSED,
    )
    out, err = run_text(monkeypatch, *events, is_verbose=False, result=failed)
    assert out == ""
    assert err.split("\n") == [
        "warning: careful␛[2J",
        "busy; trying again in 4 s",
        "refused: run_shell: nobody",
        "can  confirm",
        "ybs: no key",
        "",
    ]


def test_the_answer_cannot_act_on_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    nasty = msgspec.structs.replace(RESULT, result="a\x1b]0;t\x07b\u202e")
    assert run_text(monkeypatch, is_verbose=False, result=nasty)[0] == "a␛]0;t␇b<U+202E>\n"


def test_json_is_one_object_with_every_key(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out))
    output = make_output("json", Pipe(), is_verbose=False)
    output.event(told(CALL))
    output.result(RESULT)
    assert msgspec.json.decode(out.getvalue()) == {
        "type": "result",
        "result": "The answer",
        "reason": "done",
        "is_error": False,
        "exit_code": 0,
        "message": "",
        "steps": 2,
        "usage": {
            "input_tokens": 1200,
            "output_tokens": 34,
            "cached_tokens": 0,
            "cache_write_tokens": 0,
        },
        "cost_usd": 0.0021,
        "cost_is_partial": False,
        "duration_seconds": 1.5,
        "refusals": 0,
        "model": "m",
        "provider": "p",
        "session": "s",
        "warnings": [],
    }


def test_json_still_tells_warnings_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    make_output("json", Pipe(), is_verbose=False).event(
        told(Noticed(level="warning", text="careful"))
    )
    assert capsys.readouterr().err == "warning: careful\n"


def test_stream_json_is_a_line_per_event_with_time_version_and_type(monkeypatch):
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out))
    output = make_output("stream-json", Pipe(), is_verbose=False)
    output.event(told(CALL))
    output.event(told(TextStreamed(text="a\u2028b\nc")))
    output.result(RESULT)
    raw = out.getvalue().split(b"\n")
    assert raw.pop() == b""
    lines: list[dict[str, Any]] = [msgspec.json.decode(line) for line in raw]
    assert [line["type"] for line in lines] == ["tool_call", "text_delta", "result"]
    assert {line["v"] for line in lines} == {1}
    assert all(line["timestamp"].endswith("Z") and "T" in line["timestamp"] for line in lines)
    assert lines[0]["arguments"] == {"command": "ls"}


def test_stream_json_names_session_and_agent_in_every_line_once(monkeypatch):
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out))
    output = make_output("stream-json", Pipe(), is_verbose=False)
    output.event(told(SessionStarted(session="s", folder="/p")))
    output.event(told(CALL))
    output.event(told(DONE, 'explore "1"'))
    output.result(RESULT)
    raw = out.getvalue().splitlines()
    assert [line.count(b'"session":') for line in raw] == [1, 1, 1, 1]
    lines: list[dict[str, Any]] = [msgspec.json.decode(line) for line in raw]
    assert {line["session"] for line in lines} == {"s"}
    assert [line["agent"] for line in lines] == ["main", "main", 'explore "1"', "main"]


def test_lines_about_a_sub_agent_begin_with_its_name(monkeypatch, capsys):
    output = make_output("text", Pipe(), is_verbose=True)
    output.event(told(ThinkingStreamed(text="mine")))
    for event in (ThinkingStreamed(text="not mine"), CALL, DONE):
        output.event(told(event, "explore"))
    output.event(told(CALL))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("[explore] > run_shell")
    assert lines[1].startswith("[explore]   run_shell done")
    assert lines[-2:] == ["thinking: mine", lines[0].removeprefix("[explore] ")]


def test_a_closed_reader_ends_the_writing_quietly_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", BrokenStdout())
    pipe = Pipe()
    calls: list[int] = []
    pipe.when_closed(lambda: calls.append(1))
    pipe.write_text("x")
    pipe.write_json(b"1")
    assert pipe.is_closed
    assert calls == [1]


def test_a_closed_standard_error_is_nobodys_concern(monkeypatch: pytest.MonkeyPatch) -> None:
    err = io.StringIO()
    err.close()
    monkeypatch.setattr(sys, "stderr", err)
    make_output("text", Pipe(), is_verbose=False).event(told(Noticed(level="error", text="x")))


@every_row("is_verbose", [True, False])
def test_pieces_of_the_answer_are_no_lines(is_verbose: bool) -> None:
    assert line_of(TextStreamed(text="x"), is_verbose=is_verbose) == ""


def test_the_whole_of_a_call_is_told_however_long_it_is() -> None:
    words = " ".join(["word"] * 100)
    call = ToolStarted(id="1", name="x", arguments=Raw(msgspec.json.encode({"a": words})))
    assert line_of(call, is_verbose=True) == f'> x {{"a":"{words}"}}'
    lines = "\n".join(f"line {number}" for number in range(100))
    read = ToolFinished(id="1", name="x", success=True, output=f"{lines}\n", summary="100 lines")
    told = line_of(read, is_verbose=True).split("\n")
    assert told == ["  x done in 0.0 s: 100 lines", *(f"    line {n}" for n in range(100))]


def test_a_failed_step_says_so() -> None:
    failed = ToolFinished(id="1", name="x", success=False, output="a\n  b", duration_seconds=2)
    assert line_of(failed, is_verbose=True) == "  x failed in 2.0 s: a b"


def test_a_line_is_folded_and_cut() -> None:
    assert one_line("a \n b\t c") == "a b c"
    assert one_line("x" * 20, 10) == "xxxxxxx..."


def test_one_step_is_no_steps_and_what_costs_nothing_has_no_price() -> None:
    free = msgspec.structs.replace(RESULT, steps=1, cost_usd=0.0)
    assert usage_line(free) == "1 step, 1,200 tokens in, 34 out, 1.5 s"


class FullStdout(BrokenStdout):
    """A standard output on a disk without space."""

    def write(self, _data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_told_once(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdout", FullStdout())
    pipe = Pipe()
    pipe.write_text("x")
    pipe.write_json(b"1")
    assert pipe.is_closed
    assert capsys.readouterr().err == "ybs: cannot write: No space left on device\n"
