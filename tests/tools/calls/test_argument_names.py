"""Arguments under other names, and wrapped once more."""

from typing import Any, ClassVar

import msgspec
import pytest
from msgspec import Raw, Struct

from rows import every_row
from ybs.core.errors import ToolError
from ybs.core.messages import ToolCall
from ybs.core.ports import Effect
from ybs.tools.builtin import run_shell, shell_job
from ybs.tools.calls.arguments import Decoded, decode


class Arguments(Struct, frozen=True):
    path: str
    old_text: str = ""
    working_dir: str = ""


class Reader:
    name: str = "read_it"
    effect: Effect = "read"
    arguments: ClassVar[type[Struct]] = Arguments


class Writer(Reader):
    effect: Effect = "write"


class Nothing(Struct, frozen=True):
    pass


class Idle(Reader):
    arguments: ClassVar[type[Struct]] = Nothing


BOTH: list[Any] = [Reader(), Writer()]


def decoded(value: Any, tool: Any) -> Decoded:
    return decode(tool, ToolCall(id="1", name="read_it", arguments=Raw(msgspec.json.encode(value))))


@every_row("tool", BOTH)
@every_row(
    ("name", "meant"),
    [
        ("Path", "path"),
        ("filePath", "path"),
        ("file-path", "path"),
        ("oldText", "old_text"),
        ("old_string", "old_text"),
        ("oldStr", "old_text"),
        ("cwd", "working_dir"),
    ],
)
def test_another_name_is_understood_and_said(name: str, meant: str, tool: Any):
    given = {"path": "a", name: "b"} if meant != "path" else {name: "b"}
    result = decoded(given, tool)
    assert getattr(result.value, meant) == "b"
    assert result.notes == (f"{name!r} was taken for {meant!r}",)


def test_commands_and_background_jobs_as_other_agents_write_them_are_understood():
    class Shell(Writer):
        arguments: ClassVar[type[Struct]] = run_shell.RunShellArguments

    class Jobs(Reader):
        arguments: ClassVar[type[Struct]] = shell_job.ShellJobArguments

    assert decoded({"command": "x", "run_in_background": True}, Shell()).value.background
    assert decoded({"command": ["echo", "a b"]}, Shell()).value.command == "echo 'a b'"
    for name in ("job_id", "bash_id", "shellId"):
        value = decoded({name: "job-1", "wait_seconds": 9}, Jobs()).value
        assert (value.id, value.wait) == ("job-1", 9)


@every_row("tool", BOTH)
@every_row(
    "sent",
    [
        {"arguments": {"path": "a"}},
        {"parameters": {"filePath": "a"}},
        {"read_it": {"path": "a"}},
        {"name": "read_it", "arguments": {"path": "a"}},
        {"type": "function", "name": "read_it", "arguments": '{"path": "a"}'},
        [{"path": "a"}],
        '{"path": "a"}',
    ],
)
def test_a_wrapping_is_taken_off_and_said(sent: Any, tool: Any):
    result = decoded(sent, tool)
    assert result.value == Arguments("a")
    assert result.notes


@every_row("tool", BOTH)
@every_row(
    "sent",
    [
        {"name": "other", "arguments": {"path": "a"}},
        {"arguments": {"path": "a"}, "args": {"path": "b"}},
        {"arguments": {"path": "a"}, "more": 1},
        {"arguments": "path"},
        {"arguments": ["a"]},
        [{"path": "a"}, {"path": "b"}],
        '"path"',
    ],
)
def test_an_unclear_wrapping_is_refused(sent: Any, tool: Any):
    with pytest.raises(ToolError, match="path"):
        decoded(sent, tool)


def test_an_argument_of_the_tool_is_no_wrapping():
    class Wrapper(Struct, frozen=True):
        arguments: dict[str, int]

    class Tool(Reader):
        arguments: ClassVar[type[Struct]] = Wrapper

    assert decoded({"arguments": {"a": 1}}, Tool()) == Decoded(Wrapper({"a": 1}))


@every_row("more", [{"append": True}, {"mode": "append"}, {"file": "b"}, {"encoding": "latin-1"}])
def test_an_unknown_argument_is_ignored_for_reading_and_refused_for_writing(more: dict[str, Any]):
    (name,) = more
    assert decoded({"path": "a"} | more, Reader()) == Decoded(
        Arguments("a"), (f"{name!r} is not an argument of read_it and was ignored",)
    )
    with pytest.raises(ToolError, match="nothing was done"):
        decoded({"path": "a"} | more, Writer())


@every_row(
    "more",
    [{"append": False}, {"mode": ""}, {"file": "a"}, {"explanation": "to see"}, {"options": {}}],
)
def test_what_says_nothing_may_be_left_out_for_writing_too(more: dict[str, Any]):
    result = decoded({"path": "a"} | more, Writer())
    assert result.value == Arguments("a")
    assert "ignored" in result.notes[0]


def test_two_names_for_one_argument_are_refused_for_writing():
    with pytest.raises(ToolError, match="nothing was done"):
        decoded({"file": "a", "filename": "b"}, Writer())


def test_a_problem_names_what_was_given():
    with pytest.raises(ToolError, match="Given: old_text"):
        decoded({"old_text": "a"}, Reader())
    with pytest.raises(ToolError, match=r'Given: \{"a":1\}$'):
        decoded({"path": {"a": 1}}, Reader())
    with pytest.raises(ToolError, match=r"Given: \{\"a\":\"xx…$"):
        decoded({"path": {"a": "xx " + "x" * 200}}, Reader())


def test_arguments_that_are_no_valid_json_after_all_are_repaired_or_refused():
    call = ToolCall(id="1", name="read_it", arguments=Raw(b'{"path": "a",}'))
    assert decode(BOTH[1], call).value == Arguments("a")
    call = ToolCall(id="1", name="read_it", arguments=Raw(b'{"path": "\xff"}'))
    assert len(decode(BOTH[0], call).value.path) == 1


def test_a_tool_without_arguments_takes_an_empty_object():
    assert decoded({}, Idle()) == Decoded(Nothing())
