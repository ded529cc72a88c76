"""The advice in a refusal is followed, and the call is allowed."""

import shlex
import subprocess
from typing import Any

import pytest
from msgspec.structs import replace

from rows import every_row
from ybs.config.schema import SafetySettings
from ybs.core.messages import ToolCall
from ybs.core.ports import Effect, Preview, Question
from ybs.core.remedies import Remedy
from ybs.frontends.headless.advice import refuse
from ybs.security.policy.case import Subject
from ybs.security.policy.confirm import Gate
from ybs.security.policy.policy import Allow, Deny, Policy
from ybs.testing import call


async def refused(policy: Policy, wanted: ToolCall, effect: Effect, subject: Subject) -> str:
    """Return what a run without a terminal says of a call; nothing where it is allowed."""
    gate = Gate(policy, refuse)
    preview = Preview(title="t")
    verdict = await gate.admit(wanted, effect, preview, subject, lambda _event: None)
    if isinstance(verdict, Deny):
        return verdict.reason
    assert isinstance(verdict, Allow)
    return ""


def words_of(line: str) -> list[str]:
    """Return the words of a line as a shell reads it."""
    if "$'" not in line:
        return shlex.split(line)
    assert line.isprintable()
    say = ["bash", "-c", f"printf '%s\\0' {line}"]
    return subprocess.run(say, capture_output=True, text=True, check=True).stdout.split("\0")[:-1]


def followed(advice: str, safety: SafetySettings) -> list[tuple[str, Policy]]:
    """Start again with each way that the advice names."""
    ways = advice.partition("with ")[2].split(" or ")
    policies: list[tuple[str, Policy]] = []
    for way in ways:
        words = words_of(way.partition(",")[0] if "--mode" in way else way)
        changes: dict[str, Any] = {}
        if "YBS_SAFETY__SANDBOX_NETWORK=true" in words:
            changes["sandbox_network"] = True
        if words[0] == "--mode":
            changes["mode"] = words[1]
        allow = (words[1],) if words[0] == "--allow" else ()
        policy = Policy(replace(safety, **changes), allow=allow, find_sandbox=lambda: "full")
        policies.append((way, policy))
    return policies


SHELL = "run_shell"
CASES = [
    (SHELL, "execute", Subject(command="make build")),
    (SHELL, "execute", Subject(command="rm -rf build")),
    (SHELL, "execute", Subject(command="echo 'it''s'; rm -r x")),
    (SHELL, "execute", Subject(command="make a |\n  b")),
    (SHELL, "execute", Subject(command="touch  *")),
    (SHELL, "execute", Subject(command="for f in *; do rm x/$f; done")),
    (SHELL, "execute", Subject(command="make build", detail="in sub")),
    (SHELL, "execute", Subject(command="rm -rf build", detail="in sub")),
    (SHELL, "execute", Subject(command="make fetch", network=True)),
    (SHELL, "execute", Subject(command="rm -rf a", network=True)),
    (SHELL, "execute", Subject(command="make fetch", network=True, detail="in sub")),
    ("write_file", "write", Subject(paths=("src/a.py",))),
    ("write_file", "write", Subject(paths=("app/[id]/{x,y}.ts",))),
    ("write_file", "write", Subject(paths=("it's *.md",))),
    ("write_file", "write", Subject(paths=("/else/where",))),
    ("write_file", "write", Subject(paths=(".vscode/tasks.json",), autorun_part=".vscode")),
    ("edit_file", "edit", Subject(paths=(".envrc",), autorun_part=".envrc", is_seen=True)),
    ("write_file", "write", Subject(paths=("a/[x]/AGENTS.md",), autorun_part="AGENTS.md")),
    ("delete_file", "delete", Subject(paths=("a.py",))),
    ("edit_file", "edit", Subject(paths=("a.py",))),
    ("git", "delete", Subject(paths=("a.py", "b.py"), detail="commit", is_plain=True)),
    ("git", "delete", Subject(paths=("a.py",), destroys="what was not committed", is_plain=True)),
    ("memorize", "write", Subject(is_own=True)),
    ("remember", "write", Subject()),
]


@pytest.mark.integration
@every_row(("name", "effect", "subject"), CASES)
async def test_a_call_is_allowed_when_the_advice_is_followed(
    name: str, effect: Effect, subject: Subject
) -> None:
    wanted = call(name, x=1)
    safety = SafetySettings()
    advice = await refused(Policy(safety, find_sandbox=lambda: "full"), wanted, effect, subject)
    assert "allow it with " in advice
    ways = followed(advice, safety)
    assert ways
    for way, policy in ways:
        assert await refused(policy, wanted, effect, subject) == "", way
    if subject.command and not subject.detail and not subject.network:
        other = Subject(command=f"{subject.command}; curl x")
        rules = [policy for way, policy in ways if way.startswith("--allow")]
        assert bool(rules) is ("*" not in subject.command), "a rule with a star is a pattern"
        for policy in rules:
            assert await refused(policy, wanted, effect, other), "the rule is of this command alone"


async def test_where_a_rule_asks_the_advice_says_so_and_no_rule_is_named() -> None:
    safety = SafetySettings(ask=("run_shell(git push *)",))
    subject = Subject(command="git push origin")
    advice = await refused(
        Policy(safety, find_sandbox=lambda: "full"), call(SHELL), "execute", subject
    )
    assert "the rule run_shell(git push *) in safety.ask says to ask" in advice
    assert "can remove it from the settings" in advice
    assert "--allow" not in advice
    assert "--mode bypass, which never asks" in advice
    policy = Policy(SafetySettings(mode="bypass", ask=safety.ask), find_sandbox=lambda: "full")
    assert await refused(policy, call(SHELL), "execute", subject) == ""


async def test_a_tool_that_no_rule_can_name_gets_only_what_is_true() -> None:
    advice = await refused(
        Policy(SafetySettings(), find_sandbox=lambda: "full"), call("a tool"), "write", Subject()
    )
    assert "--allow" not in advice
    assert "--mode" in advice


async def test_what_is_no_option_is_said_as_what_it_is():
    question = Question(
        call=call("run_shell", command="git push"),
        effect="execute",
        preview=Preview(title="t"),
        remedies=(Remedy("allow_outside"),),
    )
    reason = (await refuse(question)).reason
    assert "; name such commands in safety.outside_sandbox" in reason
    assert "allow it with" not in reason
