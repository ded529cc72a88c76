"""Confirmation: one question at a time to the person, remembered for the session or the project where they say so."""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec.structs import replace

from ybs.core.envelope import MAIN
from ybs.core.errors import ConfigError, Refused
from ybs.core.events import ConfirmationAnswered, ConfirmationAsked, Emit, Noticed
from ybs.core.messages import ToolCall
from ybs.core.ports import Answer, Confirm, Effect, Preview, Question
from ybs.core.remedies import Remedy
from ybs.security.policy.policy import Allow, Ask, Decision, Deny, Policy, Subject

if TYPE_CHECKING:
    from ybs.security.paths.roots import OutsideRoots
    from ybs.security.policy.bound import Bound
    from ybs.security.policy.outside import Reading

_UNATTENDED = "is_unattended"
#: What would allow what is to run outside the sandbox.
_FOR_OUTSIDE = (Remedy("allow_outside"),)
#: What was said about one call before the policy judges it.
Wish: TypeAlias = Literal["", "allow", "ask"]


def unattended(confirm: Confirm) -> Confirm:
    """Mark what answers where no person is, so that nothing is prepared for questions."""
    setattr(confirm, _UNATTENDED, True)
    return confirm


def is_attended(confirm: Confirm) -> bool:
    """Return whether a person may be behind the answers."""
    return not getattr(confirm, _UNATTENDED, False)


@unattended
async def nobody(question: Question) -> Answer:
    """Answer no: there is nobody to ask."""
    return Answer(
        is_allowed=False,
        reason=f"{question.call.name} needs a confirmation and nobody is there to give it",
        is_unattended=True,
    )


class Gate:
    """Stands before every call: it asks the policy, and the person where the policy says so.

    `confirm` asks the person and may be set at any time; the questions name the agent whose call it is.
    """

    def __init__(self, policy: Policy, confirm: Confirm = nobody) -> None:
        self.policy, self.confirm = policy, confirm
        self._agent = MAIN
        self._lock = asyncio.Lock()
        self._warned = ""
        self._wishes: dict[str, tuple[Wish, str]] = {}
        self._bound: Bound | None = None

    def within(self, bound: "Bound | None") -> "Gate":
        """Return this gate for agents that may do less: the same policy, and still one question at a time."""
        gate = copy(self)
        gate._bound = bound
        return gate

    @contextmanager
    def wishing(self, call_id: str, wish: Wish, reason: str) -> Generator[None]:
        """Judge a call as though a rule for this tool allowed it, or asked about it, for that `reason`."""
        if wish:
            self._wishes[call_id] = wish, reason
        try:
            yield
        finally:
            self._wishes.pop(call_id, None)

    def _policy_for(self, call: ToolCall) -> Policy:
        match self._wishes.get(call.id, ("", ""))[0]:
            case "allow":
                return self.policy.tried(allow=(call.name,))
            case "ask":
                return self.policy.tried(ask=(call.name,))
            case _:
                return self.policy

    def _within_bound(
        self, policy: Policy, judge: Callable[[Policy], Decision], effect: Effect, subject: Subject
    ) -> Decision:
        if self._bound is None:
            return judge(policy)
        return self._bound.tightened(policy, judge, effect, subject)

    def of_agent(self, name: str) -> "Gate":
        """Return this gate for another agent of the session: the same policy, and still one question at a time."""
        if name == self._agent:
            return self
        gate = copy(self)
        gate._agent = name
        return gate

    def by(self, policy: Policy) -> "Gate":
        """Return this gate with another policy; still one question at a time."""
        gate = copy(self)
        gate.policy = policy
        return gate

    def allowed(
        self, call: ToolCall, effect: Effect, preview: Preview, subject: Subject, *, needs: str = ""
    ) -> Allow | None:
        """Return the permission if the call needs neither a question nor a notice, as most do; else None, and `admit` decides."""
        decision = self._decided(call, effect, preview, subject, needs)
        is_told = self.policy.standing.warning == self._warned  # the first decision may find it
        return decision if isinstance(decision, Allow) and is_told else None

    def _decided(
        self, call: ToolCall, effect: Effect, preview: Preview, subject: Subject, needs: str
    ) -> Decision:
        def judge(policy: Policy) -> Decision:
            return policy.decide(call, effect, preview, subject, needs=needs)

        return self._within_bound(self._policy_for(call), judge, effect, subject)

    async def admit(
        self,
        call: ToolCall,
        effect: Effect,
        preview: Preview,
        subject: Subject,
        emit: Emit,
        *,
        needs: str = "",
    ) -> Allow | Deny:
        """Return whether the call may run; Deny holds the words for the model. `needs` is that of `Policy.decide`."""

        def allows(policy: Policy) -> bool:
            return isinstance(policy.decide(call, effect, preview, subject, needs=needs), Allow)

        def decide() -> Decision:
            return self._decided(call, effect, preview, subject, needs)

        def remedies() -> tuple[Remedy, ...]:
            from ybs.security.policy.remedy import Trial  # few calls are asked about

            return Trial(self.policy, call, subject, allows).remedies()

        decision = decide()
        self._warn(emit)
        if isinstance(decision, Ask):
            async with self._lock:
                decision = decide()  # the answer before may have granted this one too
                if isinstance(decision, Ask):
                    keeps = bool(decision.question.grant) and self.policy.standing.can_keep
                    question = replace(decision.question, can_be_kept=keeps)
                    ways = _FOR_OUTSIDE if question.outside == "needed" else remedies()
                    question = replace(question, remedies=ways)
                    if (wish := self._wishes.get(call.id)) and wish[0] == "ask":
                        warnings = (wish[1], *question.warnings[1:])  # in place of the rule's
                        question = replace(question, warnings=warnings)
                    return await self._ask(question, emit)
        if isinstance(decision, Deny):
            emit(ConfirmationAnswered(id=call.id, is_allowed=False, reason=decision.reason))
        return decision

    async def admit_reading(self, call: ToolCall, refused: "OutsideRoots", emit: Emit) -> "Reading":
        """Ask whether a path outside of the folders may be read, within `with` what is returned.

        Raises Refused; as it was where nobody is there to be asked, or the mode asks nothing.
        """
        mode = self._bound.mode if self._bound is not None else ""
        if self.policy.mode in ("deny", "bypass") or mode == "deny":
            raise refused
        from ybs.security.policy.outside import Reading  # few calls read outside

        reading = Reading(call, refused)
        async with self._lock:
            answer = Answer(is_allowed=True)
            if not reading.is_open:
                answer = await self._answer(reading.question, emit)
            if answer.is_unattended:
                raise refused
            if not answer.is_allowed:
                raise Refused(_refusal(answer))
            reading.open(is_lasting=answer.is_for_session)
        return reading

    async def _ask(self, question: Question, emit: Emit) -> Allow | Deny:
        answer = await self._answer(question, emit)
        if not answer.is_allowed:
            return Deny(_refusal(answer))
        if grant := _granted(answer, question):
            is_kept = answer.is_for_project and question.can_be_kept
            await self._keep(grant, emit, is_kept=is_kept)
        if answer.is_outside and question.outside:
            return Allow("person", is_outside=True)
        return Allow("person", with_network=answer.with_network and question.offers_network)

    async def _answer(self, question: Question, emit: Emit) -> Answer:
        question = replace(question, agent=self._agent)
        call = question.call
        emit(
            ConfirmationAsked(
                id=call.id,
                name=call.name,
                title=question.preview.title,
                preview=question.preview.body,
                warnings=question.warnings,
                grant=question.grant,
                reason=question.reason,
            )
        )
        answer = await self.confirm(question)
        emit(
            ConfirmationAnswered(
                id=call.id,
                is_allowed=answer.is_allowed,
                reason=answer.reason,
                grant=_granted(answer, question),
            )
        )
        return answer

    async def _keep(self, grant: str, emit: Emit, *, is_kept: bool) -> None:
        try:
            await asyncio.to_thread(self.policy.grant, grant, is_kept=is_kept)
        except (OSError, ConfigError) as error:
            text = f"This is allowed for this session only, because it could not be kept: {error}"
            emit(Noticed(level="warning", text=text))

    def _warn(self, emit: Emit) -> None:
        """Say once why what is kept for the project does not count."""
        warning = self.policy.standing.warning
        if warning and warning != self._warned:
            emit(Noticed(level="warning", text=warning))
        self._warned = warning


def _granted(answer: Answer, question: Question) -> str:
    """Return what an answer allows from now on; nothing where it was for this call alone."""
    is_lasting = answer.is_for_session or answer.is_for_project
    if not (answer.is_allowed and is_lasting) or answer.is_outside:
        return ""
    is_with = answer.with_network and question.offers_network
    return question.network_grant if is_with else question.grant


def _refusal(answer: Answer) -> str:
    return f"Refused: {answer.reason}" if answer.reason else "The person refused."
