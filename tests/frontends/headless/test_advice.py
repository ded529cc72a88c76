"""The advice in a refusal is followed, and the call is allowed; no advice of a chat is left."""

import ast
import re
import shlex
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from rows import every_row
from ybs.config.schema import Safety
from ybs.core.messages import ToolCall
from ybs.core.ports import Effect, Preview
from ybs.frontends.headless.advice import advice_for_scripts, refuse
from ybs.security.policy.confirm import Gate
from ybs.security.policy.policy import Allow, Deny, Policy, Subject
from ybs.testing import call

COMMANDS = Path(__file__).parents[3] / "src/ybs"


async def refused(policy: Policy, wanted: ToolCall, effect: Effect, subject: Subject) -> str:
    """Return what a run without a terminal says of a call; nothing where it is allowed."""
    gate = Gate(policy, refuse)
    preview = Preview(title="t")
    verdict = await gate.admit(wanted, effect, preview, subject, lambda _event: None)
    if isinstance(verdict, Deny):
        return verdict.reason
    assert isinstance(verdict, Allow)
    return ""


def followed(advice: str, safety: Safety) -> list[tuple[str, Policy]]:
    """Start again with each way that the advice names."""
    ways = advice.partition("with ")[2].split(" or ")
    policies: list[tuple[str, Policy]] = []
    for way in ways:
        words = shlex.split(way.partition(",")[0] if "--mode" in way else way)
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
    (SHELL, "execute", Subject(command="a |\n  b")),
    (SHELL, "execute", Subject(command="x  *")),
    (SHELL, "execute", Subject(command="for f in *; do rm $f; done")),
    (SHELL, "execute", Subject(command="make build", detail="in sub")),
    (SHELL, "execute", Subject(command="rm -rf build", detail="in sub")),
    (SHELL, "execute", Subject(command="make fetch", network=True)),
    (SHELL, "execute", Subject(command="rm -rf a", network=True)),
    (SHELL, "execute", Subject(command="make fetch", network=True, detail="in sub")),
    ("write_file", "write", Subject(paths=("src/a.py",))),
    ("write_file", "write", Subject(paths=("app/[id]/{x,y}.ts",))),
    ("write_file", "write", Subject(paths=("it's *.md",))),
    ("write_file", "write", Subject(paths=("/else/where",))),
    ("write_file", "write", Subject(paths=(".vscode/tasks.json",), runs_later=".vscode")),
    ("edit_file", "edit", Subject(paths=(".envrc",), runs_later=".envrc", is_seen=True)),
    ("write_file", "write", Subject(paths=("a/[x]/AGENTS.md",), runs_later="AGENTS.md")),
    ("delete_file", "delete", Subject(paths=("a.py",))),
    ("edit_file", "edit", Subject(paths=("a.py",))),
    ("git", "delete", Subject(paths=("a.py", "b.py"), detail="commit", is_plain=True)),
    ("git", "delete", Subject(paths=("a.py",), destroys="what was not committed", is_plain=True)),
    ("memorize", "write", Subject(is_own=True)),
    ("remember", "write", Subject()),
]


@every_row(("name", "effect", "subject"), CASES)
async def test_a_call_is_allowed_when_the_advice_is_followed(
    name: str, effect: Effect, subject: Subject
) -> None:
    wanted = call(name, x=1)
    safety = Safety()
    advice = await refused(Policy(safety, find_sandbox=lambda: "full"), wanted, effect, subject)
    assert "the person may allow it with " in advice
    ways = followed(advice, safety)
    assert ways
    for way, policy in ways:
        assert await refused(policy, wanted, effect, subject) == "", way
    if subject.command and not subject.detail and not subject.network:
        other = Subject(command=f"{subject.command}; curl x")
        assert await refused(ways[0][1], wanted, effect, other), "the rule is of this command alone"


async def test_where_a_rule_asks_the_advice_says_so_and_no_rule_is_named() -> None:
    safety = Safety(ask=("run_shell(git push *)",))
    subject = Subject(command="git push origin")
    advice = await refused(
        Policy(safety, find_sandbox=lambda: "full"), call(SHELL), "execute", subject
    )
    assert "the rule run_shell(git push *) in safety.ask asks" in advice
    assert "may take it out of the settings" in advice
    assert "--allow" not in advice
    assert "--mode bypass, which asks about nothing" in advice
    policy = Policy(Safety(mode="bypass", ask=safety.ask), find_sandbox=lambda: "full")
    assert await refused(policy, call(SHELL), "execute", subject) == ""


async def test_a_tool_that_no_rule_can_name_gets_only_what_is_true() -> None:
    advice = await refused(
        Policy(Safety(), find_sandbox=lambda: "full"), call("a tool"), "write", Subject()
    )
    assert "--allow" not in advice
    assert "--mode" in advice


@every_row(
    ("message", "said"),
    [
        ("Choose one: /model", "Choose one: --model NAME"),
        ("or choose another: /provider", "or choose another: --provider NAME"),
        ("Try another model with /model, or say", "Try another model with --model NAME, or say"),
        ("Begin anew with /clear, or", "Begin anew without --continue, or"),
        ("no session 'x'; /sessions lists them", "no session 'x'; `ybs sessions` lists them"),
        ("Masked: a key in a.py. /secrets lists it.", "Masked: a key in a.py."),
        ("ollama --model NAME (in a chat: /provider NAME MODEL).", "ollama --model NAME."),
        ("the path /srv/model/x and a/model", "the path /srv/model/x and a/model"),
    ],
)
def test_advice_of_a_chat_becomes_that_of_a_command_line(message: str, said: str) -> None:
    assert advice_for_scripts(message) == said


#: What is told in a chat alone: its frontends, what commands answer, and undo, which no run without a terminal has.
OF_A_CHAT = (
    "frontends/terminal/",
    "commands/",
    "session/past.py",
    "session/surroundings.py",
    "session/options.py",
)
OF_A_CHAT += tuple(f"frontends/headless/{name}.py" for name in ("advice", "command", "screen"))
OF_A_CHAT += ("cli.py",)
MAY_BE_NAMED = re.compile(
    r"/(?:model|provider|mode|new|clear|rewind|undo|compact|restore|sessions|resume|secrets|memories"
    r"|trust|help|tools)\b(?!/)"
)
NAMED = re.compile(r"(?<![\w/.~}`])" + MAY_BE_NAMED.pattern)


def test_no_message_of_a_turn_tells_a_script_to_type_a_command() -> None:
    told: list[str] = []
    for path in sorted(COMMANDS.rglob("*.py")):
        name = path.relative_to(COMMANDS).as_posix()
        source = path.read_text()
        if not name.startswith(OF_A_CHAT) and MAY_BE_NAMED.search(source):
            tree = ast.parse(source)
            told += [
                f"{name}: {node.value}"
                for node in ast.walk(tree)
                if isinstance(node, ast.Constant) and isinstance(node.value, str)
                if NAMED.search(node.value) and not _is_doc(tree, node)
            ]
    assert len(told) > 20, "the messages are found"
    wrong = [
        each
        for each in told
        if NAMED.search(advice_for_scripts(each).replace("/memories in a", ""))
    ]
    assert wrong == []


def _is_doc(tree: ast.Module, node: ast.Constant) -> bool:
    bodies = [
        each.body
        for each in ast.walk(tree)
        if hasattr(each, "body") and isinstance(each.body, list)
    ]
    return any(body and isinstance(body[0], ast.Expr) and body[0].value is node for body in bodies)
