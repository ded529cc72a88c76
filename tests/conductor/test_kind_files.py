"""Kinds of sub-agents in Markdown: whose count, what is read of them, and what is wrong with others."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from conductor_cast import Cast, delegated, opened, results
from hosts import this_host
from rows import every_row
from trusting import give_trust, put
from ybs.cli import main
from ybs.conductor.acp.presets import command_of, kind_of, method_of, problem_with
from ybs.conductor.budget import Budget
from ybs.conductor.kind_files import BadKind, read_kind, remarks_on
from ybs.config.sections import AcpAgent

OWN, THEIRS = ".config/ybs/agents", ".claude/agents"


def kind_file(name: str = "", *, head: str = "", words: str = "Do it.") -> str:
    """Return the text of a file."""
    return f"---\nname: {name}\ndescription: Does it.\n{head}---\n{words}\n"


def test_one_of_claude_codes_is_read_as_it_is() -> None:
    text = """\
---
name: code-reviewer
description: Reviews code. Use PROACTIVELY after changes: always.
tools: Read, Grep, Glob, Bash(git diff:*)
model: sonnet
permissionMode: plan
maxTurns: 12
color: blue
---

You are a reviewer.
"""
    kind = read_kind(text.encode(), "~/.claude/agents/x.md", is_own=True)
    assert kind.name == "code-reviewer"
    assert kind.description.endswith("after changes: always.")
    assert kind.tools == ("read_file", "search_files", "list_files", "run_shell")
    assert (kind.mode, kind.model, kind.prompt) == ("plan", "sonnet", "You are a reviewer.")
    assert kind.budget == Budget(steps=12)
    assert not kind.may_change
    (remark,) = remarks_on(text.encode())
    assert remark.startswith("Bash(git diff:*): the part in brackets is ignored")


def test_tools_that_are_disallowed_are_not_there() -> None:
    head = "disallowedTools: Write, Edit, mcp__x__y\n"
    text = kind_file("a", head=head).encode()
    only = read_kind(text, "a.md").only_tools(())
    assert only is not None
    assert [name in only for name in ("write_file", "edit_file", "mcp__x__y")] == [False] * 3
    assert [name in only for name in ("read_file", "mcp__x__z")] == [True] * 2
    both = read_kind(kind_file("a", head=f"tools: Read, Write\n{head}").encode(), "a.md")
    few = both.only_tools(("read_file", "write_file", "run_shell"))
    assert few is not None
    assert [name in few for name in ("read_file", "write_file", "run_shell")] == [
        True,
        False,
        False,
    ]
    assert read_kind(kind_file("a").encode(), "a.md").only_tools(()) is None


@every_row(
    "field, gone, kept, remarks",
    [
        ("mcp__github", ["mcp__github__create"], ["mcp__git__x", "run_shell"], 1),
        ("mcp__github__*", ["mcp__github__create"], ["mcp__git__x"], 1),
        ("*", ["run_shell", "mcp__github__create"], [], 0),
        ("all", ["run_shell", "write_file"], [], 0),
        ("edit_*, Write", ["edit_file", "write_file"], ["read_file"], 0),
        ("Bsh", [], ["run_shell"], 1),
    ],
)
def test_what_is_disallowed_is_read_as_a_rule_is(
    field: str, gone: list[str], kept: list[str], remarks: int
) -> None:
    text = kind_file("a", head=f"disallowedTools: '{field}'\n").encode()
    only = read_kind(text, "a.md").only_tools(())
    assert only is not None
    assert [name in only for name in (*gone, *kept)] == [False] * len(gone) + [True] * len(kept)
    assert len(remarks_on(text)) == remarks
    few = read_kind(text.replace(b"disallowedTools", b"tools"), "a.md").only_tools(())
    assert all(few is None or name in few for name in gone)


def test_all_that_a_kind_may_say() -> None:
    head = "tools:\n  - read_file\n  - own_tool\nmode: read-only\nmodel: ollama/qwen3:8b\nsteps: 5\ntokens: 20_000\ncost_usd: 0.5\nseconds: 60\nmystery: 1\n"
    text = kind_file("finder", head=head).encode()
    kind = read_kind(text, "finder.md")
    assert kind.budget == Budget(steps=5, tokens=20_000, cost_usd=0.5, seconds=60)
    assert (kind.tools, kind.mode) == (("read_file", "own_tool"), "read-only")
    assert kind.model == "ollama/qwen3:8b"
    unknown, strange = remarks_on(text)
    assert "mystery" in unknown
    assert "own_tool" in strange


@every_row(
    "text, why",
    [
        ("words", "does not begin with front matter"),
        (kind_file("No!"), "'no!' cannot be its name"),
        ("---\nname: a\n---\nwords", "it has no description"),
        (kind_file("a", words=""), "there are no words"),
        (kind_file("a", head="mode: wild\n"), "'wild' is not a mode"),
        (kind_file("a", head="steps: many\n"), "`steps` is 'many'"),
        (kind_file("a", head="seconds: -1\n"), "`seconds` is '-1'"),
    ],
)
def test_what_cannot_be_used_says_why(text: str, why: str) -> None:
    with pytest.raises(BadKind, match=why):
        read_kind(text.encode(), "a.md")


def test_a_name_with_capitals_and_spaces_is_that_of_a_kind() -> None:
    assert read_kind(kind_file("Code Reviewer").encode(), "a.md").name == "code-reviewer"


@every_row("tools", ["*", "", "all"])
def test_all_tools_may_be_meant(tools: str) -> None:
    assert read_kind(kind_file("a", head=f"tools: {tools}\n").encode(), "a.md").tools is None


def listed(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    """Return what `ybs agents` prints as JSON."""
    main(["agents", *words, "--json"])
    return json.loads(capsys.readouterr().out)


@pytest.mark.integration
def test_they_are_listed_and_checked(project, home, capsys):
    assert main(["agents"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["explore", "review", "test", "general"]
    assert "reads" in lines[0]
    put(home, f"{OWN}/explore.md", kind_file("explore", words="My own way."))
    put(home, f"{THEIRS}/mine.md", kind_file("mine", head="permissionMode: acceptEdits\n"))
    put(home, f"{THEIRS}/bad.md", "words")
    put(home, f"{OWN}/large.md", kind_file("large", words="x" * 100_001))
    put(project, f"{THEIRS}/theirs.md", kind_file("theirs"))
    names = {each["name"]: each for each in listed(capsys)}
    assert names["explore"]["place"] == f"~/{OWN}/explore.md"
    assert names["mine"]["mode"] == "accept-edits"
    assert "theirs" not in names
    checked = listed(capsys, "check")
    problems = {each["place"]: each["problem"] for each in checked["problems"]}
    assert problems[THEIRS] == "this project is not trusted"
    assert "does not begin with front matter" in problems[f"~/{THEIRS}/bad.md"]
    assert problems[f"~/{OWN}/large.md"] == "it has more than 100 kB"
    assert main(["agents", "check"]) == 1
    assert f"~/{THEIRS}/bad.md is not used: " in capsys.readouterr().err


@pytest.mark.integration
def test_one_that_is_a_pipe_is_not_waited_for(project, home, capsys):
    (home / OWN).mkdir(parents=True)
    os.mkfifo(home / OWN / "waits.md")
    (problem,) = listed(capsys, "check")["problems"]
    assert (problem["place"], problem["problem"]) == (
        f"~/{OWN}/waits.md",
        "it is not a regular file",
    )


@pytest.mark.integration
def test_those_of_a_project_count_once_it_is_trusted_and_take_no_name_of_another(
    project: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(home, f"{OWN}/mine.md", kind_file("mine"))
    put(project, ".ybs/agents/mine.md", kind_file("mine"))
    put(project, ".ybs/agents/review.md", kind_file("review"))
    put(project, f"{THEIRS}/plan.md", kind_file("Plan"))  # what skills call `explore`
    put(project, f"{THEIRS}/theirs.md", kind_file("theirs"))
    give_trust(project)
    assert {each["name"] for each in listed(capsys)} >= {"theirs", "mine", "review"}
    problems = {each["place"]: each["problem"] for each in listed(capsys, "check")["problems"]}
    assert problems[".ybs/agents/mine.md"].endswith("has the same name, and is used")
    assert problems[".ybs/agents/review.md"] == "review is built in, and that one is used"
    assert problems[f"{THEIRS}/plan.md"] == "plan is built in, and that one is used"


@pytest.mark.integration
async def test_a_kind_of_the_persons_own_is_offered_and_used(project: Path, home: Path) -> None:
    head = "tools: Read\nmode: read-only\nsteps: 3\n"
    put(home, f"{OWN}/namer.md", kind_file("namer", head=head, words="You name things."))
    cast = Cast([delegated({"task": "name", "kind": "namer"}), "done"], name=["Bob."])
    session, events = opened(project, cast.model, overrides={"agents.offer": "auto"})
    async with session:
        await session.send("go")
    (spec,) = [each for each in cast.requests["main"][0].tools if each.name == "delegate"]
    assert spec.description.endswith("Also:\n- namer: Does it.")
    (request,) = cast.requests["name"]
    assert request.system.endswith("You name things.")
    assert [each.name for each in request.tools] == ["read_file"]
    assert results(events)[0].output.startswith("[namer-1: done;")


@pytest.mark.integration
async def test_a_projects_kind_may_not_name_a_model_further_away(project: Path, home: Path) -> None:
    text = kind_file("spy", head="model: anthropic/claude-x\n")
    put(project, ".ybs/agents/spy.md", text)
    give_trust(project)
    cast = Cast([delegated({"task": "look", "kind": "spy"}), "done"])
    host = this_host()
    session, events = opened(project, cast.model, host=host, overrides={"providers": {}})
    async with session:
        await session.send("go")
    assert not results(events)[0].success


def settings(home: Path, **acp: Any) -> None:
    put(home, ".config/ybs/config.json", json.dumps({"agents": {"acp": acp}}))


@pytest.mark.integration
def test_other_agents_are_kinds_of_the_persons_settings(project, home, capsys):
    put(home, f"{OWN}/codex.md", kind_file("codex"))
    settings(
        home,
        codex={},
        reader={"preset": "claude", "read_only": True, "description": "Reads."},
        own={"command": ["my-agent", "--acp"]},
        nothing={},
        Wrong={"command": ["x"]},
    )
    names = {each["name"]: each for each in listed(capsys)}
    assert list(names)[4:] == ["codex", "reader", "own"]
    assert (names["codex"]["acp"], names["codex"]["may_change"]) == ("codex", True)
    assert (names["reader"]["mode"], names["reader"]["description"]) == ("read-only", "Reads.")
    assert names["own"]["acp"] == ["my-agent", "--acp"]
    problems = {each["place"]: each["problem"] for each in listed(capsys, "check")["problems"]}
    assert problems["agents.acp.nothing"].startswith("it has no `command`, and no `preset`")
    assert problems["agents.acp.Wrong"].startswith("its name may have lower-case letters")
    assert problems[f"~/{OWN}/codex.md"] == "agents.acp.codex has the same name, and is used"
    main(["agents"])
    assert "changes a copy" in capsys.readouterr().out


@pytest.mark.integration
def test_a_project_names_no_program_that_runs(project, home, capsys):
    entry = {"agents": {"acp": {"spy": {"command": ["./spy"]}, "codex": {"env": {"X": "1"}}}}}
    put(project, ".ybs.json", json.dumps(entry))
    put(project, f"{THEIRS}/theirs.md", kind_file("theirs", head="acp: codex\n"))
    assert "spy" not in {each["name"] for each in listed(capsys)}
    give_trust(project)
    main(["agents", "--json"])
    printed = capsys.readouterr()
    kinds = {each["name"]: each["acp"] for each in json.loads(printed.out)}
    assert "spy" not in kinds
    assert "codex" not in kinds
    assert kinds["theirs"] is None
    assert "agents.acp" in printed.err


def test_the_first_program_of_a_preset_that_is_there_is_used(project, home, tmp_path, monkeypatch):
    claude = kind_of("claude", AcpAgent(args=("--x",)), "").acp
    assert claude is not None
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    assert problem_with(claude, this_host()) == (
        "the program claude-agent-acp is not on your PATH; install it with "
        "`npm install -g @agentclientprotocol/claude-agent-acp`"
    )
    for name in ("claude-code-acp", "claude-agent-acp"):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
        assert command_of(claude, this_host()) == (str(folder / name), "--x")
    assert problem_with(claude, this_host()) == ""
    assert "CLAUDE_CONFIG_DIR" not in claude.environment
    assert "secret" not in repr(AcpAgent(command=("x",), env={"KEY": "secret"}))


def test_a_login_is_named_by_the_key_or_the_file_that_is_there(project, home, monkeypatch):
    gemini = kind_of("mine", AcpAgent(preset="gemini"), "").acp
    assert gemini is not None
    assert method_of(gemini, this_host()) == ""
    put(home, ".gemini/oauth_creds.json", "{}")
    assert method_of(gemini, this_host()) == "oauth-personal"
    monkeypatch.setenv("GEMINI_API_KEY", "k")
    assert method_of(gemini, this_host()) == "gemini-api-key"
    assert method_of(AcpAgent(command=("x",)), this_host()) == ""
