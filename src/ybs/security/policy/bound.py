"""What the kind of a sub-agent leaves of what the session's policy allows: `read-only`, or a mode."""

from collections.abc import Callable
from typing import Literal, TypeAlias

from ybs.config.schema import Mode
from ybs.core.ports import Effect
from ybs.security.policy.case import Subject
from ybs.security.policy.policy import Allow, Decision, Deny, Policy

#: A mode of the session, or `read-only`: reading, and commands that only read, which the sandbox holds to it.
BoundMode: TypeAlias = Mode | Literal["read-only"]
_ONLY_READS = (
    "You work read-only: this call could change something, and no answer of the person allows it. "
    "Go on without it, and say in your result what you would have done."
)


class Bound:
    """What the kind of a sub-agent leaves of what the session's policy allows; it tightens decisions, and loosens none.

    The policy is judged as it is at that moment: its mode may have changed.
    """

    def __init__(self, mode: BoundMode) -> None:
        self.mode: BoundMode = mode

    def tightened(
        self,
        policy: Policy,
        judge: Callable[[Policy], Decision],
        effect: Effect,
        subject: Subject,
    ) -> Decision:
        """Return the stricter one of what the policy decides and what the bound decides."""
        decision = judge(policy)
        if self.mode != "read-only":
            return min(decision, judge(policy.tried(mode=self.mode)), key=_looseness)
        if isinstance(decision, Deny) or effect == "read" or subject.only_reads:
            return decision
        # A grant or a loose mode would run the command as it stands; without them it is held to reading, or refused.
        held = judge(policy.tried(mode="plan", without_grants=True))
        if isinstance(held, Deny):
            return Deny(_ONLY_READS)
        # What is asked about because of writing needs no question here, and each command for which the settings say so still does.
        return Allow("reading") if isinstance(decision, Allow) else held


def _looseness(decision: Decision) -> int:
    if isinstance(decision, Allow):
        return 3 if decision.by == "reading" else 4
    return 0 if isinstance(decision, Deny) else 1 if decision.is_held else 2
