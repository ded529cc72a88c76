"""The rules in force: where each comes from, what the project's kept ones do, and how they are taken back."""

from pathlib import Path

import pytest

from hosts import this_host
from ybs.config.schema import Mode, SafetySettings
from ybs.core.events import ConfirmationAnswered, Event, Noticed
from ybs.core.messages import ToolCall
from ybs.core.ports import Answer, Preview, Question
from ybs.security.policy.case import Subject
from ybs.security.policy.confirm import Gate
from ybs.security.policy.policy import Allow, Ask, Decision, Deny, Policy
from ybs.security.policy.rules import PolicyRule, PolicyRules
from ybs.trust.project_rules import ProjectRules


def run(policy: Policy, command: str) -> Decision:
    call, subject = ToolCall(id="1", name="run_shell"), Subject(command=command)
    return policy.decide(call, "execute", Preview(title="Run"), subject)


def test_every_rule_is_listed_with_its_origin(project: Path):
    safety = SafetySettings(
        allow=("read_file",), ask=("run_shell(git *)",), deny=("run_shell(curl *)",)
    )
    ProjectRules(this_host(), project).add("grants", "run_shell(pytest *)")
    standing = PolicyRules(
        safety,
        allow=["run_shell(make)"],
        deny=["write_file"],
        project=ProjectRules(this_host(), project),
    )
    standing.add(PolicyRule("always", "run_shell(ls)", "session"))
    assert [(rule.kind, rule.text, rule.origin) for rule in standing.listed] == [
        ("always", "run_shell(ls)", "session"),
        ("always", "run_shell(pytest *)", "project"),
        ("allow", "run_shell(make)", "start"),
        ("deny", "write_file", "start"),
        ("allow", "read_file", "settings"),
        ("ask", "run_shell(git *)", "settings"),
        ("deny", "run_shell(curl *)", "settings"),
    ]


def test_what_was_always_allowed_in_the_project_is_allowed_in_the_next_session(project: Path):
    first = Policy(SafetySettings(), project=ProjectRules(this_host(), project))
    first.grant("run_shell(pytest *) + run_shell(ruff check *)", is_kept=True)
    later = Policy(SafetySettings(), project=ProjectRules(this_host(), project))
    assert run(later, "pytest -x; ruff check .") == Allow("grant")
    assert isinstance(run(later, "pytest; rm -r x"), Ask)
    assert isinstance(run(Policy(SafetySettings()), "pytest"), Ask)


def test_a_rule_that_is_taken_back_counts_no_more(project: Path):
    policy = Policy(SafetySettings(), project=ProjectRules(this_host(), project))
    policy.grant("run_shell(make)", is_kept=True)
    of_the_session = PolicyRule("always", "run_shell(make)", "session")
    policy.rules.add(of_the_session)
    policy.rules.remove(of_the_session)
    for each in (policy, Policy(SafetySettings(), project=ProjectRules(this_host(), project))):
        assert run(each, "make") == Allow("grant")  # the kept one
    policy.rules.remove(policy.rules.listed[0])
    for each in (policy, Policy(SafetySettings(), project=ProjectRules(this_host(), project))):
        assert isinstance(run(each, "make"), Ask)


def test_what_is_denied_in_the_project_is_refused(project: Path):
    ProjectRules(this_host(), project).add("deny", "run_shell(curl *)")
    policy = Policy(SafetySettings(mode="bypass"), project=ProjectRules(this_host(), project))
    assert run(policy, "curl x") == Deny(
        "The rule run_shell(curl *) kept for this project forbids this call. "
        "Find another way, or ask the person."
    )


def test_a_kept_rule_that_makes_no_sense_is_left_out_with_a_warning(project: Path):
    ProjectRules(this_host(), project).add("allow", "run_shell(")
    ProjectRules(this_host(), project).add("allow", "run_shell(make)")
    policy = Policy(SafetySettings(), project=ProjectRules(this_host(), project))
    assert run(policy, "make") == Allow("grant")
    assert "A rule that is kept for this project is ignored" in policy.rules.warning


class Person:
    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.questions: list[Question] = []

    async def __call__(self, question: Question) -> Answer:
        self.questions.append(question)
        return self.answer


KEEP = Answer(is_allowed=True, is_for_project=True)


async def ask(project: ProjectRules | None, command: str) -> tuple[Policy, Person, list[Event]]:
    person, events = Person(KEEP), list[Event]()
    policy = Policy(SafetySettings(), project=project)
    call, preview = ToolCall(id="1", name="run_shell"), Preview(title="Run", body=command)
    subject = Subject(command=command)
    await Gate(policy, person).admit(call, "execute", preview, subject, events.append)
    return policy, person, events


async def test_always_in_this_project_is_offered_and_kept(project: Path):
    policy, person, events = await ask(ProjectRules(this_host(), project), "make")
    assert person.questions[0].can_be_kept
    assert [rule.origin for rule in policy.rules.listed] == ["project"]
    assert events[-1] == ConfirmationAnswered(id="1", is_allowed=True, grant="run_shell(make)")
    assert ProjectRules(this_host(), project).record.grants == ("run_shell(make)",)


async def test_what_destroys_is_never_kept(project: Path):
    policy, person, _ = await ask(ProjectRules(this_host(), project), "rm -r x")
    assert not person.questions[0].can_be_kept
    assert policy.rules.listed == []


async def test_in_an_incognito_session_it_is_not_offered_and_counts_for_the_session(project: Path):
    policy, person, _ = await ask(ProjectRules(this_host(), project, may_write=False), "make")
    assert not person.questions[0].can_be_kept
    assert [rule.origin for rule in policy.rules.listed] == ["session"]


async def test_what_cannot_be_kept_counts_for_the_session_and_is_said(project: Path):
    ProjectRules(this_host(), project).add("allow", "x")
    (file,) = (this_host().state_folder / "permissions").iterdir()
    rules = ProjectRules(this_host(), project)
    assert rules.record.allow == ("x",)
    file.write_text("{")
    policy, _, events = await ask(rules, "make")
    (notice,) = [event.text for event in events if isinstance(event, Noticed)]
    assert notice.startswith("This is allowed for this session only, because")
    assert run(policy, "make") == Allow("grant")
    assert file.read_text() == "{"


@pytest.mark.parametrize("mode", ["ask", "auto", "bypass", "plan", "deny"])
@pytest.mark.parametrize("kept", ["{", '"run_shell("'])
def test_where_rules_that_deny_may_be_missing_nothing_is_allowed_unasked(
    project: Path, mode: Mode, kept: str
):
    ProjectRules(this_host(), project).add("deny", "run_shell(git push *)")
    (file,) = (this_host().state_folder / "permissions").iterdir()
    whole = file.read_text()
    file.write_text(kept if kept == "{" else whole.replace('"run_shell(git push *)"', kept))
    safety, rules = SafetySettings(mode=mode), ProjectRules(this_host(), project)
    policy = Policy(safety, project=rules, find_sandbox=lambda: "full")
    decision = run(policy, "git status")
    if mode in ("plan", "deny"):
        assert isinstance(decision, Deny)
    else:
        assert isinstance(decision, Ask)
        assert "ignored" in " ".join(decision.question.warnings)
        assert not decision.question.grant
    call, subject = ToolCall(id="1", name="read_file"), Subject(paths=("a",))
    read = policy.decide(call, "read", Preview(title="Read a"), subject)
    assert isinstance(read, Deny if mode == "deny" else Ask)
    file.unlink()
    if kept == "{":  # a file that could not be read is read again
        again = policy.decide(call, "read", Preview(title="Read a"), subject)
        assert again == Allow()
        assert policy.rules.warning == ""


async def test_the_first_call_that_is_allowed_unasked_already_says_that_kept_rules_are_ignored(
    project: Path,
):
    ProjectRules(this_host(), project).add("allow", "run_shell(")
    gate = Gate(Policy(SafetySettings(), project=ProjectRules(this_host(), project)))
    call, events = ToolCall(id="1", name="read_file"), list[Event]()
    judged = call, "read", Preview(title="Read a"), Subject(paths=("a",))
    assert gate.allowed(*judged) is None
    assert isinstance(await gate.admit(*judged, events.append), Allow)
    assert [event.level for event in events if isinstance(event, Noticed)] == ["warning"]
    assert isinstance(gate.allowed(*judged), Allow)
