"""Confirmation: one question at a time to the person, remembered for the session or the project where they say so."""

import asyncio

from msgspec.structs import replace

from ybs.core.errors import ConfigError
from ybs.core.events import ConfirmationAnswered, ConfirmationAsked, Emit, Noticed
from ybs.core.messages import ToolCall
from ybs.core.ports import Answer, Confirm, Effect, Preview, Question
from ybs.core.remedies import Remedy
from ybs.security.policy.policy import Allow, Ask, Decision, Deny, Policy, Subject


async def nobody(question: Question) -> Answer:
    """Answer no: there is nobody to ask."""
    return Answer(
        is_allowed=False,
        reason=f"{question.call.name} needs a confirmation and nobody is there to give it",
        is_unattended=True,
    )


class Gate:
    """Stands before every call: it asks the policy, and the person where the policy says so.

    `confirm` asks the person and may be set at any time.
    """

    def __init__(self, policy: Policy, confirm: Confirm = nobody) -> None:
        self.policy, self.confirm = policy, confirm
        self._lock = asyncio.Lock()
        self._warned = ""

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

        def decide() -> Decision:
            return self.policy.decide(call, effect, preview, subject, needs=needs)

        def remedies() -> tuple[Remedy, ...]:
            from ybs.security.policy.remedy import Trial  # only for a question

            def judge(policy: Policy) -> bool:
                return isinstance(policy.decide(call, effect, preview, subject, needs=needs), Allow)

            return Trial(self.policy, call, subject, judge).remedies()

        decision = decide()
        self._warn(emit)
        if isinstance(decision, Ask):
            async with self._lock:
                decision = decide()  # the answer before may have granted this one too
                if isinstance(decision, Ask):
                    keeps = bool(decision.question.grant) and self.policy.standing.can_keep
                    question = replace(decision.question, remedies=remedies(), can_be_kept=keeps)
                    return await self._ask(question, emit)
        if isinstance(decision, Deny):
            emit(ConfirmationAnswered(id=call.id, is_allowed=False, reason=decision.reason))
        return decision

    async def _ask(self, question: Question, emit: Emit) -> Allow | Deny:
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
        with_network = answer.with_network and question.offers_network
        is_lasting = answer.is_for_session or answer.is_for_project
        grant = question.network_grant if with_network else question.grant
        grant = grant if answer.is_allowed and is_lasting else ""
        if grant:
            await self._keep(grant, emit, is_kept=answer.is_for_project and question.can_be_kept)
        emit(
            ConfirmationAnswered(
                id=call.id, is_allowed=answer.is_allowed, reason=answer.reason, grant=grant
            )
        )
        if answer.is_allowed:
            return Allow("person", with_network=with_network)
        return Deny(f"Refused: {answer.reason}" if answer.reason else "The person refused.")

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
