"""set_thought: one line, nobody is asked."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from hosts import this_host
from rows import every_row
from ybs.config.schema import SafetySettings
from ybs.core.errors import ToolError
from ybs.core.messages import ToolCall, ToolResult
from ybs.security.paths.roots import Roots
from ybs.security.policy.confirm import Gate
from ybs.security.policy.policy import Policy
from ybs.tools.builtin.notes import LONGEST_THOUGHT, MOST_STEPS, SetThought, Steps, Todo, checklist
from ybs.tools.toolbox import LocalToolbox
from ybs.tools.workspace import Workspace


async def think(
    project: Any, *texts: str, name: str = "set_thought"
) -> tuple[list[str], ToolResult]:
    """Set thoughts one after the other in the strictest mode; return what was put, and the last result."""
    put: list[str] = []
    tool = SetThought(Workspace(Roots(this_host(), project)), put.append)
    toolbox = LocalToolbox([tool], Gate(Policy(SafetySettings(mode="plan"))))
    result = ToolResult(call_id="", name="", output="")
    for text in texts:
        arguments = Raw(msgspec.json.encode({"text": text}))
        call = ToolCall(id="1", name=name, arguments=arguments)
        assert toolbox.is_read_only(call)
        result = await toolbox.run(call, lambda _: None)
    return put, result


async def test_a_thought_is_one_legible_line_that_replaces_the_one_before(project: Any):
    put, result = await think(project, "first", "Mend  the\nparser\x1b[31m\u202e")
    assert put == ["first", "Mend the parser<U+202E>"]
    assert (result.output, result.summary) == ("Noted.", "Mend the parser<U+202E>")
    assert msgspec.json.decode(result.display)["thought"] == "Mend the parser<U+202E>"
    put, result = await think(project, "first", " \n")
    assert (put, result.output) == (["first", ""], "Cleared.")


async def test_a_long_thought_is_refused_and_the_one_before_stays(project: Any):
    put, result = await think(project, "first", "x" * (LONGEST_THOUGHT + 1))
    assert put == ["first"]
    assert result.is_error
    assert "one short sentence" in result.output


async def test_the_name_of_yips_tag_means_it(project: Any):
    put, result = await think(project, "first", name="THOUGHT")
    assert put == ["first"]
    assert not result.is_error


@every_row(
    "line, step",
    [
        ("[ ] read", "[ ] read"),
        ("- [x] read  it", "[x] read it"),
        ("* [X] read", "[x] read"),
        ("1. [>] read", "[>] read"),
        ("  2) [~] read", "[>] read"),
        ("[-] read", "[>] read"),
        ("[] read", "[ ] read"),
        ("read", "[ ] read"),
        ("☑ read", "[x] read"),
        ("☐ read", "[ ] read"),
        ("[?] read", "[ ] read"),
        ("[x] a\x1b[2J\u202eb", "[x] a␛[2J<U+202E>b"),
        ("[ ] " + "xy " * 60, "[ ] " + "xy " * 52 + "xy…"),
        ("", ""),
        ("- [ ]", ""),
    ],
)
def test_a_step_has_one_form(line: str, step: str):
    assert checklist(line) == step


async def test_the_list_replaces_the_one_before(project: Path):
    put: list[str] = []
    tool = Todo(Workspace(Roots(this_host(), project)), put.append)
    shown = await tool.run(Steps(steps="- [x] read\n\n- [>] change\n- [ ] test"), print)
    assert (shown.output, shown.summary) == ("Noted.", "1 of 3 done")
    cleared = await tool.run(Steps(steps=" "), print)
    assert (cleared.output, cleared.summary) == ("Cleared.", "cleared")
    assert put == ["[x] read\n[>] change\n[ ] test", ""]
    with pytest.raises(ToolError, match="Sum them up in 40 at most"):
        tool.preview(Steps(steps="step\n" * (MOST_STEPS + 1)))
