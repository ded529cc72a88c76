"""Whether what a small model has written can be read."""

import os
from pathlib import Path

import pytest
from msgspec import Raw

from hosts import this_host
from rows import every_row
from ybs.core.messages import AssistantMessage, ToolCall, ToolResult, UserMessage
from ybs.core.ports import Request, ToolSpec
from ybs.security.paths.roots import Roots
from ybs.small_models.support import MOST_BYTES, SharedPrefix, problem_in
from ybs.testing import ScriptedModel


@pytest.mark.integration
@every_row(
    "name, text, problem",
    [
        ("a.json", '{"a": 1}', ""),
        ("a.json", '{"a": 1\n "b": 2}', "a.json cannot be read: Expecting ',' delimiter"),
        ("a.json", "[" * 100_000, "a.json cannot be read: "),
        ("a.toml", "a = 1\n", ""),
        ("a.toml", "a = \n", "a.toml cannot be read: Invalid value"),
        ("a.txt", "def f(:\n", ""),
        ("a.json", " " * (MOST_BYTES + 1), ""),
        ("b.json", None, ""),
        ("a.py", "def f():\n    return 1\n", ""),
        (
            "a.py",
            "def f(): return 1\n    return 2\n",
            "a.py cannot be read: unexpected indent in line 2.",
        ),
    ],
)
def test_what_cannot_be_read_is_named_with_the_reason(name, text, problem, project):
    if text is not None:
        (project / name).write_text(text)
    found = problem_in(name, Roots(this_host(), project))
    assert found.startswith(problem)
    assert bool(found) == bool(problem)


def test_a_file_elsewhere_is_not_read_and_a_pipe_not_waited_for(project: Path, tmp_path: Path):
    (tmp_path / "out.json").write_text("{")
    (project / "link.json").symlink_to(tmp_path / "out.json")
    os.mkfifo(project / "pipe.json")
    roots = Roots(this_host(), project)
    for name in ("link.json", str(tmp_path / "out.json"), "../out.json"):
        assert problem_in(name, roots) == ""
    assert problem_in("pipe.json", roots).startswith("pipe.json cannot be read: Expecting value")


@pytest.mark.integration
async def test_the_problem_stands_behind_the_result_of_the_change():
    async def sent(arguments: bytes) -> str:
        call = ToolCall(id="1", name="write_file", arguments=Raw(arguments))
        said = AssistantMessage(content=(call,), stop_reason="tool_calls")
        result = ToolResult(call_id="1", name="write_file", output="Written.")
        tool = ToolSpec(name="write_file", description="", parameters=Raw(b"{}"), effect="write")
        inner = ScriptedModel(["Done."])
        model = SharedPrefix(
            inner, "Rules", lambda _words: "", problem=lambda path: f"{path}!" if path else ""
        )
        request = Request("Rules", [UserMessage.of("Make a.json."), said, result], [tool])
        async for _event in model.stream(request):
            pass
        last = inner.requests[0].messages[-1]
        assert isinstance(last, ToolResult)
        return last.output

    assert await sent(b'{"path":"a.json"}') == "Written.\n(a.json! Fix it.)"
    assert "Mend" not in await sent(b"[]")
