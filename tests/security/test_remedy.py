"""What a question names as a way to let the call run: the narrowest rule that does, and the strictest mode that does."""

import pytest

from rows import every_row
from security.corpus.cases import all_cases
from security.corpus.judging import decide
from ybs.config.schema import SafetySettings
from ybs.core.messages import ToolCall
from ybs.core.ports import Answer, Effect, Preview, Question
from ybs.security.policy.case import Subject
from ybs.security.policy.confirm import Gate
from ybs.security.policy.policy import Allow, Ask, Policy, Sandboxing


async def remedies_of(name: str, effect: Effect, subject: Subject) -> list[tuple[str, str]]:
    """Return the remedies in the question about a call."""
    asked: list[Question] = []

    async def no(question: Question) -> Answer:
        asked.append(question)
        return Answer(is_allowed=False)

    gate = Gate(Policy(SafetySettings(mode="ask"), find_sandbox=lambda: "full"), no)
    call = ToolCall(id="1", name=name)
    await gate.admit(call, effect, Preview(title=""), subject, lambda _: None)
    (question,) = asked
    return [(each.kind, each.value) for each in question.remedies]


@every_row(
    ("name", "effect", "subject", "remedies"),
    [
        ("run_shell", "execute", Subject(command="make x"), [("allow_call", "run_shell:make x"), ("choose_mode", "auto")]),
        ("run_shell", "execute", Subject(command="rm -r x"), [("allow_call", "run_shell:rm -r x")]),
        ("run_shell", "execute", Subject(command="make x", network=True), [("allow_call_with_network", "run_shell:make x")]),
        ("write_file", "write", Subject(paths=("a.txt",)), [("allow_call", "write_file:a.txt"), ("choose_mode", "accept-edits")]),
        ("write_file", "write", Subject(paths=("a[1]*.txt",)), [("allow_call", "write_file:a\\[1\\]\\*.txt"), ("choose_mode", "accept-edits")]),
        ("move_file", "write", Subject(paths=("a", "b")), [("allow_call", "move_file"), ("choose_mode", "accept-edits")]),
        ("weather", "execute", Subject(), [("allow_call", "weather"), ("choose_mode", "auto")]),
        ("a tool", "execute", Subject(), [("choose_mode", "auto")]),
        ("a tool", "write", Subject(paths=("memories",), is_own=True), [("choose_mode", "bypass")]),
    ],
)  # fmt: skip
async def test_the_narrowest_rule_and_the_strictest_mode_are_named(name, effect, subject, remedies):
    assert await remedies_of(name, effect, subject) == remedies


@pytest.mark.integration
@every_row("sandbox", ["full", "held", "reduced", "none", "off"])
def test_in_auto_no_stricter_mode_is_named(sandbox: Sandboxing):
    for command in (command for _, _, command in all_cases()):
        auto, stricter = decide(command, "auto", sandbox), decide(command, "accept-edits", sandbox)
        assert not (isinstance(auto, Ask) and isinstance(stricter, Allow)), command
