"""todo: a list of steps in one form, however it was written."""

from pathlib import Path

import pytest

from hosts import this_host
from rows import every_row
from ybs.core.errors import ToolError
from ybs.security.paths.roots import Roots
from ybs.tools.builtin.notes import MOST_STEPS, Steps, Todo, checklist
from ybs.tools.workspace import Workspace


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
        ("[ ] " + "x" * 200, "[ ] " + "x" * 160),
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
