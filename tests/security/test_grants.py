"""Semantic grants, rules that ask, the kinds of sandbox, and commands in other tools' arguments."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.json import encode
from msgspec.structs import replace

from rows import every_row
from ybs.config.schema import SafetySettings
from ybs.core.errors import ConfigError
from ybs.core.messages import ToolCall
from ybs.core.ports import Preview
from ybs.security.policy.case import Case, Subject
from ybs.security.policy.policy import Allow, Ask, Decision, Deny, Policy, Sandboxing


def run(policy: Policy, command: str, folder: str = "") -> Decision:
    return decided(policy, Subject(command=command, folder=folder))


def decided(policy: Policy, subject: Subject) -> Decision:
    call = ToolCall(id="1", name="run_shell")
    return policy.decide(call, "execute", Preview(title="Run"), subject)


def offered(policy: Policy, command: str, folder: str = "") -> str:
    decision = run(policy, command, folder)
    assert isinstance(decision, Ask)
    return decision.question.grant


def granted(command: str, folder: str = "") -> Policy:
    policy = Policy(SafetySettings())
    policy.grant(offered(policy, command, folder))
    return policy


def test_a_grant_is_shown_as_what_it_will_cover():
    policy = Policy(SafetySettings())
    assert offered(policy, "pytest -q tests") == "run_shell(pytest *)"
    assert offered(policy, "pytest", "sub") == "run_shell(pytest *) in sub"
    assert (
        offered(policy, "pytest; ruff check .") == "run_shell(pytest *) + run_shell(ruff check *)"
    )
    assert offered(policy, "pytest; ruff check .", "a") == "run_shell(pytest; ruff check .) in a"
    assert offered(policy, "git diff") == "run_shell(git diff *)"
    assert offered(policy, "make lint") == "run_shell(make lint)"
    assert offered(policy, "node index.js") == "run_shell(node index.js *)"
    assert offered(policy, "PYTHONPATH=. pytest -q") == "run_shell(PYTHONPATH=. pytest *)"
    assert offered(policy, "PYTHONPATH=. make a") == "run_shell(PYTHONPATH=. make a)"
    assert offered(policy, "cd app && python3 a.py") == "run_shell(python3 a.py *) in app"
    assert offered(policy, "pytest *") == ""
    assert offered(policy, "pytest *.py") == "run_shell(pytest *.py)"
    assert offered(policy, "pytest ./*") == "run_shell(pytest *)"
    assert offered(policy, "cat *.py | pytest") == "run_shell(pytest *)"


@every_row(
    ("given", "later"),
    [
        ("pytest", "pytest -x tests/test_a.py"),
        ("git commit -m x", "git commit --amend"),
        ("jq . a.json", "jq .b b.json"),
        ("pytest; ruff check .", "ruff check src; pytest -q"),
        ("pytest; git diff", "git diff; pytest -q"),
        ("pytest", "cd . && pytest | tail -5"),
        ("cd app && pytest", "cd './app/' && pytest | tail -5"),
        ("uv run pytest", "uv run pytest -q"),
        ("python3 test_app.py", "python3 test_app.py -v"),
        ("node index.js", "node index.js --force"),
        ("PYTHONPATH=. pytest -q", "PYTHONPATH=. pytest -x tests"),
        ("PYTHONPATH=. make a", "PYTHONPATH=. make a"),
        ("CI=1 python3 a.py", "CI=1 python3 a.py"),
    ],
)
def test_a_grant_covers_later_commands_of_its_kind(given: str, later: str):
    assert run(granted(given), later) == Allow("grant")


@every_row(
    ("given", "later"),
    [
        ("git status", "git status; x"),
        ("git status", "git status --x=$(y)"),
        ("git status", "git -c core.pager=x status"),
        ("git status", "git push"),
        ("git status", "git status | sh"),
        ("git status", "git status > x"),
        ("pytest", "pytest && rm -r x"),
        ("pytest", "pytest; sudo id"),
        ("pytest", "pytest -p evil"),
        ("pytest", "pytest ../other"),
        ("pytest", "cd .. && pytest"),
        ("pytest", "cd app && pytest"),
        ("pytest", "cd app; pytest"),
        ("pytest", "ls && cd app && pytest"),
        ("pytest", "pushd app && pytest"),
        ("pytest", "A=1 cd app && pytest"),
        ("cd app && pytest", "pytest"),
        ("cd app && pytest", "cd app; pytest"),
        ("cd app && pytest", "cd app && true || pytest"),
        ("cd app && pytest", "cd app && true \\'; pytest \\'"),
        ("cd app && pytest", "cd app && cd sub && pytest"),
        ("pytest", "PYTHONPATH=x pytest"),
        ("pytest", "A=1 pytest"),
        ("pytest", "env pytest"),
        ("pytest", "pytest &"),
        ("pytest", "(pytest)"),
        ("make a", "make b"),
        ("make", "make a"),
        ("npm run lint", "npm run deploy"),
        ("python3 test_app.py", "python3 test_b.py"),
        ("python3 test_app.py", "python3 test_app.py ../x"),
        ("python3 test_app.py", "python3 -i test_app.py"),
        ("python3 test_app.py", "cat x | python3 - test_app.py"),
        ("python3 test_app.py", "python3 test_app.py > x"),
        ("node index.js", "node index.js; rm -r x"),
        ("PYTHONPATH=. pytest", "PYTHONPATH=/evil pytest"),
        ("PYTHONPATH=. pytest", "PYTHONPATH=. pytest; PYTHONPATH=/evil pytest"),
        ("PYTHONPATH=. pytest", "PYTHONPATH=. PATH=. pytest"),
        ("PYTHONPATH=. pytest", "PYTHONPATH=. python3 -c x"),
    ],
)
def test_s13_a_grant_covers_nothing_else(given: str, later: str):
    assert not isinstance(run(granted(given), later), Allow)


def test_a_grant_is_bound_to_its_folder():
    assert isinstance(run(granted("pytest"), "pytest", "sub"), Ask)
    assert isinstance(run(granted("pytest", "sub"), "pytest"), Ask)
    assert run(granted("pytest", "sub"), "pytest -q", "sub") == Allow("grant")
    assert run(granted("pytest", "sub"), "cd sub && pytest -q") == Allow("grant")
    assert run(granted("cd b && pytest", "a"), "pytest", "a/b") == Allow("grant")
    assert isinstance(run(granted("pytest", "a"), "cd b && pytest", "a"), Ask)


@every_row("command", ["cd app; pytest", "pushd app && pytest", "cd app && cd sub && pytest"])
def test_a_line_that_moves_in_another_way_is_remembered_as_it_stands(command: str):
    assert offered(Policy(SafetySettings()), command) == f"run_shell({command})"
    assert run(granted(command), command) == Allow("grant")


def test_a_rule_for_a_command_means_the_projects_folder_unless_one_names_the_way():
    rules = ["run_shell(make *)", "write_file(cd *)"]
    assert run(Policy(SafetySettings(), allow=rules), "cd . && make") == Allow("grant")
    assert isinstance(run(Policy(SafetySettings(), allow=rules), "cd app && make"), Ask)
    rules.append("run_shell(cd *)")
    assert run(Policy(SafetySettings(), allow=rules), "cd app && make") == Allow("grant")


def test_beside_a_grant_what_only_reads_needs_none():
    policy = Policy(SafetySettings(), find_sandbox=lambda: "full")
    policy.grant("run_shell(pytest *)")
    assert run(policy, "pytest -q | tail -5") == Allow("grant")
    assert run(policy, "pytest -q | sort") == Allow("reading")
    assert run(policy, "ls | tail -5") == Allow("reading")
    assert isinstance(run(policy, "pytest -q | tail -5 > .x"), Ask)


def test_parts_may_be_covered_by_different_rules():
    policy = Policy(
        SafetySettings(allow=("run_shell(make *)",)), allow=["run_shell(go *)", "read_file(x)"]
    )
    policy.grant("run_shell(pytest *)")
    assert run(policy, "make a && go build && pytest") == Allow("grant")
    assert isinstance(run(policy, "make a && npm i"), Ask)
    assert isinstance(run(policy, "make a", "sub"), Ask)


@every_row(
    "command",
    [
        "python -c x",
        "python ../x.py",
        "sh -c 'make'",
        "env make",
        "xargs make",
        "find . -exec cat {} +",
        "git -C x push",
    ],
)
def test_nothing_is_offered_for_what_runs_anything(command: str):
    assert offered(Policy(SafetySettings()), command) == ""


@every_row(
    ("command", "why"),
    [
        ("rm -r x", "it may destroy something"),
        ("python manage.py flush", "it may destroy something"),
        ("export PAGER=x", "see the warning above"),
        ("PYTHONPATH=/x pytest", "see the warning above"),
        ("python3 -c 'print(1)'", "python3 can run anything"),
        ("env make", "env runs other programs"),
        ("git -C x push", "git is given options of its own"),
        ("pytest > x *", "as a rule it would allow more than this command"),
    ],
)
def test_where_there_is_no_always_the_question_says_why(command: str, why: str):
    asked = run(Policy(SafetySettings()), command)
    assert isinstance(asked, Ask)
    assert (asked.question.grant, asked.question.withheld) == ("", why)


def test_a_rule_that_asks_is_why_there_is_no_always():
    asked = run(Policy(SafetySettings(ask=("run_shell(make *)",))), "make a")
    assert isinstance(asked, Ask)
    assert asked.question.withheld == "your rule says to ask each time"


def test_a_pattern_covers_no_command_with_a_variable_that_says_how_programs_run():
    policy = Policy(SafetySettings(mode="auto", allow=("run_shell",)), find_sandbox=lambda: "off")
    assert isinstance(run(policy, "PYTHONPATH=/x pytest"), Ask)
    assert run(policy, "PYTHONPATH=. pytest") == Allow(
        "grant"
    )  # the project's own code, which it runs anyway


def test_a_rule_covers_no_hidden_option_that_it_does_not_name():
    for rule, command in (
        ("rg *", "rg --pre cat x"),
        ("tar *", "tar xf x --to-command=y"),
        ("make a *", "make a b"),
    ):
        assert isinstance(run(Policy(SafetySettings(allow=(f"run_shell({rule})",))), command), Ask)


def test_a_rule_that_asks_wins_over_all_that_allows():
    safety = SafetySettings(ask=("run_shell(git push *)", "read_file(.env)"), allow=("run_shell",))
    policy = Policy(safety, find_sandbox=lambda: "full")
    asked = run(policy, "git push origin")
    assert isinstance(asked, Ask)
    assert asked.reason == "the rule run_shell(git push *) in safety.ask says to ask"
    assert asked.question.warnings == (asked.reason,)
    assert asked.question.grant == ""
    policy.grant("run_shell(git push origin)")
    assert isinstance(run(policy, "git push origin"), Ask)
    assert isinstance(run(policy, "ls && git push"), Ask)
    assert run(policy, "git log") == Allow("grant")
    call, read = ToolCall(id="1", name="read_file"), Subject(paths=(".env",))
    assert isinstance(policy.decide(call, "read", Preview(title="x"), read), Ask)
    policy.mode = "deny"
    assert isinstance(run(policy, "git push"), Deny)
    policy.mode = "bypass"
    assert run(policy, "git push") == Allow()


def test_a_rule_of_the_configuration_denies_in_every_mode():
    policy = Policy(SafetySettings(deny=("run_shell(curl *)",), mode="bypass"))
    assert run(policy, "ls; curl x") == Deny(
        "The rule run_shell(curl *) of safety.deny forbids this call. "
        "Find another way, or ask the person."
    )


@every_row("key", ["allow", "ask", "deny"])
def test_a_broken_rule_of_the_configuration_is_an_error(key: str):
    with pytest.raises(ConfigError):
        Policy(SafetySettings(**{key: ("run_shell(",)}))


@every_row("sandbox", ["none", "reduced", "off"])
@every_row("mode", ["ask", "auto", "accept-edits"])
def test_without_a_full_sandbox_every_command_asks_and_says_so(sandbox: Sandboxing, mode: Any):
    if (sandbox, mode) == ("off", "auto"):
        return  # see below
    asked = run(Policy(SafetySettings(mode=mode), find_sandbox=lambda: sandbox), "ls")
    assert isinstance(asked, Ask)
    assert "every command is asked about" in asked.reason
    assert asked.question.warnings == ()


@every_row(
    ("command", "is_asked"),
    [
        ("ls", False),
        ("make && ./run.sh", False),
        ("npm install", False),
        ("rm -rf build", True),
        ("git push --force", True),
        ("echo x > ~/.bashrc", True),
        ("eval $X", True),
    ],
)
def test_in_auto_a_sandbox_that_the_person_turned_off_leaves_questions_about_what_destroys(
    command: str, is_asked: bool
):
    policy = Policy(SafetySettings(mode="auto"), find_sandbox=lambda: "off")
    assert isinstance(run(policy, command), Ask if is_asked else Allow)
    assert isinstance(
        run(Policy(SafetySettings(mode="auto")), command), Ask
    )  # none on this machine


def their(arguments: dict[str, Any], mode: Any = "ask") -> Decision:
    policy = Policy(SafetySettings(mode=mode), find_sandbox=lambda: "full", allow=["their_tool"])
    call = ToolCall(id="1", name="their_tool", arguments=Raw(encode(arguments)))
    return policy.decide(call, "execute", Preview(title="x"), Subject())


def test_s11_a_destructive_command_in_another_tools_arguments_asks():
    asked = their({"script": "ls && git push --force"}, "auto")
    assert isinstance(asked, Ask)
    assert asked.is_destructive
    assert asked.reason.startswith("git push")
    assert asked.question.grant == ""


def test_a_blocked_command_in_another_tools_arguments_is_refused():
    assert isinstance(their({"first": "sudo id"}, "bypass"), Deny)
    assert isinstance(their({"first": "sudo is a program"}), Deny)


def test_other_texts_in_another_tools_arguments_are_left_alone():
    assert their({"text": "Please remove the sudo hints.", "n": 1}) == Allow("grant")
    assert their({"query": "how to rm a file"}) == Allow("grant")


def test_what_another_tool_reads_is_not_searched_for_commands():
    policy = Policy(SafetySettings())
    call = ToolCall(id="1", name="their_tool", arguments=Raw(b'{"command":"rm -r x"}'))
    assert policy.decide(call, "read", Preview(title="x"), Subject()) == Allow()


def test_a_grant_for_a_file_covers_no_others_whose_names_make_up_its_own():
    def asked(policy: Policy, *paths: str) -> Decision:
        subject = Subject(paths=paths, detail="commit", is_plain=True)
        return policy.decide(ToolCall(id="1", name="git"), "delete", Preview(title="x"), subject)

    for said, later in (
        (("b, c",), ("b", "c")),
        (("a, b",), ("'a", "b'")),
        (("a", "b"), ("a, b",)),
    ):
        policy = Policy(SafetySettings())
        question = asked(policy, *said)
        assert isinstance(question, Ask)
        policy.grant(question.question.grant)
        assert isinstance(asked(policy, *said), Allow)
        assert isinstance(asked(policy, *later), Ask)


NETWORKED = Subject(command="npm ci", offers_network=True)


def test_a_grant_with_network_gives_it_and_covers_no_other_command():
    policy = Policy(SafetySettings(), find_sandbox=lambda: "full")
    asked = decided(policy, NETWORKED)
    assert isinstance(asked, Ask)
    assert asked.question.offers_network
    assert asked.question.grant == "run_shell(npm ci *)"
    assert asked.question.network_grant == "run_shell(npm ci *) with network"
    policy.grant(asked.question.network_grant)
    assert decided(policy, NETWORKED) == Allow("grant", with_network=True)
    assert isinstance(decided(policy, replace(NETWORKED, command="npm i")), Ask)


def test_a_grant_without_network_gives_none():
    policy = Policy(SafetySettings(), find_sandbox=lambda: "full")
    policy.grant("run_shell(npm ci *)")
    assert decided(policy, NETWORKED) == Allow("grant")


@every_row("command", ["rm -rf build", "python3 -c 1 > x"])
def test_where_nothing_is_remembered_the_network_is_not_either(command: str):
    policy = Policy(SafetySettings(), find_sandbox=lambda: "full")
    asked = decided(policy, replace(NETWORKED, command=command))
    assert isinstance(asked, Ask)
    assert asked.question.offers_network
    assert asked.question.network_grant == ""


def test_auto_with_a_grant_for_the_network_gives_it_unasked():
    policy = Policy(SafetySettings(mode="auto"), find_sandbox=lambda: "full")
    assert decided(policy, NETWORKED) == Allow()
    policy.grant("run_shell(npm ci *) with network")
    assert decided(policy, NETWORKED) == Allow("grant", with_network=True)


def test_always_in_a_folder_gives_no_network_whatever_the_folder_is_called():
    policy = Policy(SafetySettings(), find_sandbox=lambda: "full")
    built = Subject(command="./build.sh", folder="x with network", offers_network=True)
    asked = decided(policy, replace(built, in_background=True))
    assert isinstance(asked, Ask)
    assert asked.question.grant == "run_shell(./build.sh *) in 'x with network'"
    policy.grant(asked.question.grant)
    assert decided(policy, built) == Allow("grant")
    assert isinstance(decided(policy, replace(built, folder="x", network=True)), Ask)


#: Pieces of commands and of names that could read as another part of a grant.
_PIECES = st.lists(
    st.sampled_from(
        [*"ab '\"\\()*", " in ", " with network", "run_shell(", ") in a", ") in 'a'", " + "]
    ),
    max_size=6,
).map("".join)


@given(st.tuples(_PIECES, _PIECES, st.booleans()), st.tuples(_PIECES, _PIECES, st.booleans()))
@example(("a", "x with network", False), ("a", "x", True))
@example(("a", "b) in c", False), ("a) in 'b", "c", False))
@example(("a) in b", "", False), ("a", "b)", False))
def test_no_two_calls_have_one_grant(one: tuple[str, str, bool], two: tuple[str, str, bool]):
    def grants(command: str, folder: str, network: bool) -> list[str]:
        subject = Subject(command=command or "a", folder=folder, network=network)
        call = ToolCall(id="1", name="run_shell")
        return Case(call, "execute", Preview(title="Run"), subject, SafetySettings()).grants

    first, second = ((command or "a", *rest) for command, *rest in (one, two))
    assert (grants(*one) == grants(*two)) == (first == second)
