"""What the policy says about a command, in the words of the corpus."""

from msgspec.structs import replace

from security.corpus.cases import all_cases
from ybs.config.schema import Mode, SafetySettings
from ybs.core.messages import ToolCall
from ybs.core.ports import Preview
from ybs.security.policy.case import Subject
from ybs.security.policy.policy import Ask, Decision, Deny, Policy, Sandboxing


def decide(command: str, mode: Mode, sandbox: Sandboxing = "full") -> Decision:
    policy = Policy(replace(SafetySettings(), mode=mode), find_sandbox=lambda: sandbox)
    call = ToolCall(id="1", name="run_shell")
    return policy.decide(call, "execute", Preview(title="Run"), Subject(command=command))


def verdict_on(command: str) -> str:
    decision = decide(command, "ask")
    if isinstance(decision, Deny):
        return "deny"
    if isinstance(decision, Ask) and decision.is_destructive:
        return "destroys"
    if isinstance(decide(command, "auto", "off"), Ask):
        return "doubt"
    return "ask" if isinstance(decision, Ask) else "held"


def differences(family: str) -> list[str]:
    """Return the commands of the families whose names begin so, where verdict and corpus differ."""
    cases = [case for case in all_cases() if case[0].startswith(family)]
    assert cases
    return [
        f"{command[:80]!r} is {found}, not {wanted}"
        for _, wanted, command in cases
        if (found := verdict_on(command)) != wanted
    ]
