"""The bound of a sub-agent: it tightens decisions and loosens none."""

from itertools import product
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as some
from msgspec import Raw

from hosts import this_host
from rows import every_row
from ybs.config.schema import Mode, SafetySettings
from ybs.core.messages import ToolCall
from ybs.core.ports import Answer, Effect, Preview, Question
from ybs.security.paths.roots import OutsideRoots, Roots
from ybs.security.policy.bound import Bound, BoundMode
from ybs.security.policy.case import Subject
from ybs.security.policy.confirm import Gate
from ybs.security.policy.policy import Allow, Ask, Decision, Deny, Policy
from ybs.trust.project_rules import ProjectRules

MODES: tuple[Mode, ...] = get_args(Mode)
BOUNDS: tuple[BoundMode, ...] = (*MODES, "read-only")
CALLS: tuple[tuple[str, Effect, Subject], ...] = (
    ("read_file", "read", Subject(paths=("a.txt",))),
    ("write_file", "write", Subject(paths=("a.txt",))),
    ("edit_file", "edit", Subject(paths=("a.txt",), is_seen=True)),
    ("delete_file", "delete", Subject(paths=("a.txt",))),
    ("run_shell", "execute", Subject(command="ls -l")),
    ("run_shell", "execute", Subject(command="touch a")),
    ("git", "delete", Subject(only_reads=True, is_plain=True)),
    ("weather", "execute", Subject()),
)
RULES = ("run_shell", "write_file", "run_shell(ls *)", "delete_file", "weather")
_RANK = {Deny: 0, Ask: 1, Allow: 2}


def judged(policy: Policy, bound: Bound | None, place: int) -> Decision:
    """Judge one of the calls."""
    name, effect, subject = CALLS[place]
    call = ToolCall(id="c", name=name, arguments=Raw(b"{}"))

    def judge(by: Policy) -> Decision:
        return by.decide(call, effect, Preview(title=""), subject)

    return judge(policy) if bound is None else bound.tightened(policy, judge, effect, subject)


def policy_of(mode: Mode, rules: tuple[str, ...] = (), ask: tuple[str, ...] = ()) -> Policy:
    """Make a policy with a whole sandbox."""
    return Policy(SafetySettings(mode=mode, ask=ask), allow=rules, find_sandbox=lambda: "full")


def rank(decision: Decision) -> tuple[int, bool]:
    """Return how much a decision allows; a command that is held to reading less than one that is not."""
    is_free = isinstance(decision, Allow) and decision.by != "reading"
    return _RANK[type(decision)], is_free


@given(
    mode=some.sampled_from(MODES),
    bound=some.sampled_from(BOUNDS),
    place=some.integers(0, len(CALLS) - 1),
    rules=some.sets(some.sampled_from(RULES)),
    ask=some.sets(some.sampled_from(RULES)),
)
def test_a_bound_never_allows_more_than_the_policy_and_never_more_than_its_own_mode(
    mode: Mode, bound: BoundMode, place: int, rules: set[str], ask: set[str]
) -> None:
    policy = policy_of(mode, tuple(sorted(rules)), tuple(sorted(ask)))
    decision = judged(policy, Bound(bound), place)
    assert rank(decision) <= rank(judged(policy, None, place))
    if bound != "read-only":
        assert rank(decision) <= rank(judged(policy.tried(mode=bound), None, place))


@pytest.mark.integration
@every_row("mode, bound", [*product(MODES, MODES)])
def test_of_the_mode_and_the_bound_the_stricter_one_decides(mode: Mode, bound: BoundMode) -> None:
    for place in range(len(CALLS)):
        alone = [rank(judged(policy_of(each), None, place)) for each in (mode, bound)]
        assert rank(judged(policy_of(mode), Bound(bound), place)) == min(alone), CALLS[place]


@every_row("mode, place", [(mode, place) for mode, place in product(MODES, range(len(CALLS)))])
def test_what_reads_only_changes_nothing_in_any_mode(mode: Mode, place: int) -> None:
    policy = policy_of(mode, RULES)
    policy.grant("run_shell(touch a)")
    decision = judged(policy, Bound("read-only"), place)
    name, effect, subject = CALLS[place]
    is_reading = effect == "read" or subject.only_reads
    is_held = decision == Allow("reading") and subject.command == "ls -l"
    if is_reading:
        assert decision == judged(policy, None, place), name
    else:
        assert is_held or isinstance(decision, Deny), name


def test_a_command_that_only_reads_is_held_to_it_although_a_rule_would_let_it_run_freely() -> None:
    policy = policy_of("bypass", ("run_shell",))
    assert judged(policy, None, 4) == Allow("mode")
    assert judged(policy, Bound("read-only"), 4) == Allow("reading")


def test_a_rule_that_is_kept_for_the_project_does_not_free_it_either(project: Path) -> None:
    ProjectRules(this_host(), project).add("allow", "run_shell(ls *)")
    kept = ProjectRules(this_host(), project)
    policy = Policy(SafetySettings(), project=kept, find_sandbox=lambda: "full")
    assert judged(policy, None, 4) == Allow("grant")
    assert judged(policy, Bound("read-only"), 4) == Allow("reading")


def each_command(mode: Mode = "ask", ask: tuple[str, ...] = ()) -> Policy:
    """Make a policy for settings that ask before each command."""
    safety = SafetySettings(mode=mode, ask=ask)
    return Policy(safety, find_sandbox=lambda: "full", asks_each_command=True)


@every_row("bound", [None, *BOUNDS])
async def test_where_each_command_is_asked_about_no_bound_lets_one_run_unasked(
    bound: BoundMode | None,
) -> None:
    asked: list[Question] = []

    async def yes(question: Question) -> Answer:
        asked.append(question)
        return Answer(is_allowed=True, is_outside=True, with_network=True)

    policy = each_command("plan" if bound is None else "ask")
    gate = Gate(policy, yes).within(None if bound is None else Bound(bound))
    name, effect, _ = CALLS[4]
    call = ToolCall(id="c", name=name, arguments=Raw(b"{}"))
    subject = Subject(command="ls -l", offers_network=True, offers_outside=True)
    decision = await gate.admit(call, effect, Preview(title=""), subject, lambda _: None)
    assert len(asked) == 1
    if bound in (None, "plan", "read-only"):
        assert decision == Allow("reading")
        assert (asked[0].outside, asked[0].offers_network) == ("", False)
        assert "each command; it can only read" in asked[0].reason
    else:
        assert decision == Allow("person", is_outside=True)


async def test_a_no_counts_there_and_a_grant_or_rule_needs_no_question() -> None:
    name, effect, subject = CALLS[4]
    call = ToolCall(id="c", name=name, arguments=Raw(b"{}"))
    gate = Gate(each_command("plan"))
    decision = await gate.admit(call, effect, Preview(title=""), subject, lambda _: None)
    assert isinstance(decision, Deny)
    for mode, bound in (("plan", None), ("ask", Bound("plan")), ("ask", Bound("read-only"))):
        policy = each_command(mode)
        assert isinstance(judged(policy, bound, 4), Ask)
        policy.grant("run_shell(ls *)")
        assert judged(policy, bound, 4) == Allow("reading")
        assert isinstance(judged(policy, bound, 5), Deny) is (bound != Bound("plan"))


def test_what_is_asked_about_because_of_writing_is_held_to_reading_where_nothing_may_be_written():
    safety = SafetySettings(require_confirmation=())
    policy = Policy(safety, find_sandbox=lambda: "held")
    name, effect, _ = CALLS[4]
    call = ToolCall(id="c", name=name, arguments=Raw(b"{}"))
    subject = Subject(command="for f in *; do eval $f; done")

    def judge(by: Policy) -> Decision:
        return by.decide(call, effect, Preview(title=""), subject)

    assert isinstance(judge(policy), Ask)
    assert Bound("read-only").tightened(policy, judge, effect, subject) == Allow("reading")


def test_a_mode_that_is_set_later_counts() -> None:
    policy, bound = policy_of("bypass"), Bound("auto")
    assert isinstance(judged(policy, bound, 1), Allow)
    policy.mode = "plan"
    assert isinstance(judged(policy, bound, 1), Deny)


async def test_a_gate_within_a_bound_asks_for_what_its_mode_asks_about_and_the_other_one_does_not():
    asked: list[str] = []

    async def yes(question: Question) -> Answer:
        asked.append(question.agent)
        return Answer(is_allowed=True)

    gate = Gate(policy_of("bypass"), yes)
    name, effect, subject = CALLS[1]
    call = ToolCall(id="c", name=name, arguments=Raw(b"{}"))
    bound = gate.within(Bound("ask")).of_agent("general-1")
    for each in (gate, bound):
        decision = await each.admit(call, effect, Preview(title=""), subject, lambda _: None)
        assert isinstance(decision, Allow)
    assert asked == ["general-1"]


async def test_a_gate_within_deny_asks_for_no_path_outside_of_the_project(tmp_path: Path) -> None:
    asked: list[str] = []

    async def yes(question: Question) -> Answer:
        asked.append(question.agent)
        return Answer(is_allowed=True)

    gate = Gate(policy_of("ask"), yes)
    roots = Roots(this_host(), tmp_path, ("./",), ())
    outside = OutsideRoots("outside", "/srv/a.txt", roots)
    call = ToolCall(id="c", name="read_file", arguments=Raw(b"{}"))
    with pytest.raises(OutsideRoots):
        await gate.within(Bound("deny")).admit_reading(call, outside, lambda _: None)
    assert asked == []
    with await gate.within(Bound("read-only")).admit_reading(call, outside, lambda _: None):
        assert asked == ["main"]
