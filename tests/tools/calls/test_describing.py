"""What is said of a call when it begins."""

from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw

from hosts import this_host
from rows import every_row
from ybs.config.schema import SafetySettings
from ybs.core.events import ToolStarted
from ybs.security.paths.roots import Roots
from ybs.security.policy.confirm import Gate
from ybs.security.policy.policy import Policy
from ybs.testing import ScriptedToolbox
from ybs.tools.builtin.read_file import ReadFile
from ybs.tools.builtin.write_file import WriteFile
from ybs.tools.calls.describing import described, subject
from ybs.tools.composite import CompositeToolbox, DeferredToolbox
from ybs.tools.toolbox import LocalToolbox
from ybs.tools.workspace import Workspace


@every_row(
    ("arguments", "said"),
    [
        (b'{"command": "ls -la", "path": "x"}', "ls -la"),
        (b'{"path": "src/a.py"}', "src/a.py"),
        (b'{"pattern": "coupon", "path": "src"}', '"coupon" in src'),
        (b'{"pattern": "coupon"}', '"coupon"'),
        (b'{"command": "a\\nb"}', "a b"),
        (b'{"command": "\\u001b[2Jx"}', "␛[2Jx"),
        (b'{"id": "job-1", "wait": 5}', "job-1"),
        (b'{"action": "status"}', "status"),
        (b'{"action": "diff", "paths": ["a.py", "b.py"]}', "diff a.py b.py"),
        (b'{"action": "commit", "text": "Fix\\nit"}', "commit Fix it"),
        (b'{"action": 3, "path": "x"}', "x"),
        (b'{"id": "1"}', ""),
        (b'{"other": 1}', ""),
        (b"not json", ""),
        (b"[1]", ""),
    ],
)
def test_a_call_is_described_by_its_telling_argument(arguments: bytes, said: str) -> None:
    assert subject(arguments) == said


FILE_TOOLS = ("read_file", "edit_file", "run_shell", "git", "docs__search")


def told(folder: Path, name: str, **arguments: Any) -> tuple[str, str, tuple[str, ...]]:
    toolbox = ScriptedToolbox(dict.fromkeys(FILE_TOOLS, "done"), writers={"edit_file"})
    begun = ToolStarted(id="1", name=name, arguments=Raw(msgspec.json.encode(arguments)))
    event = described(begun, toolbox, Roots(this_host(), folder))
    assert (event.id, event.name) == ("1", name)
    return event.effect, event.title, event.paths


@every_row(
    ("name", "arguments", "said"),
    [
        ("read_file", {"path": "./src//a.py"}, ("read", "Read ./src//a.py", ("src/a.py",))),
        ("edit_file", {"path": "b", "old_text": "x"}, ("write", "Edit b", ("b",))),
        ("cat", {"path": "a"}, ("read", "Read a", ("a",))),  # another agent's name
        ("Edit-File", {"path": "a"}, ("write", "Edit a", ("a",))),
        (
            "git",
            {"action": "diff", "paths": ["a", "b", "a"]},
            ("read", "Git diff a b a", ("a", "b")),
        ),
        ("run_shell", {"command": "git\nstatus"}, ("read", "Run git status", ())),
        ("run_shell", {"command": "cat", "path": "a"}, ("read", "Run cat", ())),
        ("docs__search", {"query": "q", "path": "a"}, ("read", 'docs__search "q" in a', ())),
        ("unheard\x1b[2J", {}, ("", "unheard␛[2J", ())),  # no tool of that name
        ("read_file", {"path": "\0"}, ("read", "Read ␀", ())),
        ("read_file", {"path": 3}, ("read", "Read", ())),
        ("read_file", {"path": "a\\x0ab"}, ("read", "Read a\\x0ab", ("a\\x0ab",))),
        ("read_file", {"path": "/etc/hosts"}, ("read", "Read /etc/hosts", ("/etc/hosts",))),
    ],
)
def test_a_call_that_begins_has_an_effect_a_title_and_paths(
    tmp_path: Path, name: str, arguments: dict[str, Any], said: tuple[str, str, tuple[str, ...]]
) -> None:
    assert told(tmp_path, name, **arguments) == said


async def test_a_tool_that_is_not_offered_has_its_effect_all_the_same(
    tmp_path: Path,
) -> None:
    roots = Roots(this_host(), tmp_path)
    workspace = Workspace(roots)
    own = LocalToolbox((), Gate(Policy(SafetySettings())))
    own.offer([ReadFile(workspace), WriteFile(workspace)], unoffered=["write_file"])
    others = ScriptedToolbox({f"docs__{n}": "done" for n in range(9)}, writers={"docs__8"})
    both = CompositeToolbox([own, DeferredToolbox([others], most_chars=1)])
    assert [spec.name for spec in both.specs()] == ["read_file", "find_tool"]
    for name, effect in [
        ("write_file", "write"),
        ("Write", "write"),  # another agent's name
        ("docs__1", "read"),
        ("docs__8", "write"),
        ("find_tool", "read"),
        ("nothing", ""),
    ]:
        begun = ToolStarted(id="1", name=name, arguments=Raw(b"{}"))
        assert described(begun, both, roots).effect == effect, name


def test_a_title_is_one_line_of_bounded_length(tmp_path: Path) -> None:
    title = told(tmp_path, "run_shell", command="echo\n" * 100_000)[1]
    assert title.startswith("Run echo echo")
    assert len(title) <= 200
    assert "\n" not in title


def test_arguments_that_are_not_an_object_are_described_by_the_name(tmp_path: Path) -> None:
    toolbox = ScriptedToolbox({"read_file": "done"})
    for arguments in (b"[1]", b"{", b"null"):
        begun = ToolStarted(id="1", name="read_file", arguments=Raw(arguments))
        event = described(begun, toolbox, Roots(this_host(), tmp_path))
        assert (event.title, event.paths) == ("Read", ())
