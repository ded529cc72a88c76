"""Confirmation: one question at a time to the person, remembered for the session or the project where they say so."""

import asyncio
import os
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from ybs.config.schema import Mode
from ybs.core.envelope import MAIN
from ybs.core.errors import ConfigError, Refused
from ybs.core.events import ConfirmationAnswered, ConfirmationAsked, Emit, Noticed
from ybs.core.lazy import lazy
from ybs.core.messages import ToolCall
from ybs.core.ports import Answer, Confirm, Effect, Preview, Question
from ybs.core.remedies import Remedy
from ybs.security.paths.path_text import lies_in
from ybs.security.policy.case import Subject
from ybs.security.policy.policy import Allow, Ask, Decision, Deny, Policy

if TYPE_CHECKING:
    from ybs.security.paths.roots import OutsideRoots
    from ybs.security.policy.bound import Bound

#: Looser and looser; `bypass` is named where nothing else is of use.
_MODES: tuple[Mode, ...] = ("accept-edits", "auto")
_GLOB_SIGN = lazy(r"[*?\[\]{},\\]")
#: Judges a call by a policy.
Judge: TypeAlias = Callable[[Policy], Decision]
#: What was said about one call before the policy judges it.
Wish: TypeAlias = Literal["", "allow", "ask"]


class Unattended:
    """Answers where no person is, so that nothing is prepared for questions."""

    def __init__(self, confirm: Confirm) -> None:
        self._confirm = confirm

    async def __call__(self, question: Question) -> Answer:
        """Answer in the person's place."""
        return await self._confirm(question)


def is_attended(confirm: Confirm) -> bool:
    """Return whether a person may be behind the answers."""
    return not isinstance(confirm, Unattended)


@Unattended
async def nobody(question: Question) -> Answer:
    """Answer no: there is nobody to ask."""
    return Answer(
        is_allowed=False,
        reason=f"{question.call.name} needs a confirmation and nobody is there to give it",
        is_unattended=True,
    )


#: The call that runs here, by its id, and what was wished for it and why. Another call of that id runs elsewhere.
_wished: ContextVar[tuple[str, Wish, str]] = ContextVar("_wished", default=("", "", ""))


def _wish_for(call: ToolCall) -> tuple[Wish, str]:
    """Return what was wished for a call, and why; nothing for one that runs within another, as a sub-agent's does."""
    number, wish, why = _wished.get()
    return (wish, why) if number == call.id else ("", "")


class _Asking(Struct):
    """What the gates of a session have in common: whose turn it is to ask, the warning that was told."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    warned: str = ""


class Gate:
    """Stands before every call: it asks the policy, and the person where the policy says so.

    `confirm` asks the person; the questions name the agent whose call it is.
    """

    def __init__(
        self,
        policy: Policy,
        confirm: Confirm = nobody,
        *,
        agent: str = MAIN,
        bound: "Bound | None" = None,
        asking: _Asking | None = None,
    ) -> None:
        self.policy, self.confirm = policy, confirm
        self._agent, self._bound = agent, bound
        self._asking = asking or _Asking()

    def within(self, bound: "Bound | None") -> "Gate":
        """Return this gate for agents that may do less: the same policy, and still one question at a time."""
        return Gate(self.policy, self.confirm, agent=self._agent, bound=bound, asking=self._asking)

    def of_agent(self, name: str) -> "Gate":
        """Return this gate for another agent of the session: the same policy, and still one question at a time."""
        return Gate(self.policy, self.confirm, agent=name, bound=self._bound, asking=self._asking)

    def asking_through(self, confirm: Confirm) -> "Gate":
        """Return this gate with another way to the person; still one question at a time."""
        return Gate(self.policy, confirm, agent=self._agent, bound=self._bound, asking=self._asking)

    def by(self, policy: Policy) -> "Gate":
        """Return this gate with another policy; still one question at a time."""
        return Gate(policy, self.confirm, agent=self._agent, bound=self._bound, asking=self._asking)

    @contextmanager
    def wishing(self, call_id: str, wish: Wish, reason: str) -> Generator[None]:
        """Judge a call as though a rule for this tool allowed it, or asked about it, for that `reason`; an "allow" counts for no tool whose needs nobody was shown."""
        token = _wished.set((call_id, wish, reason))
        try:
            yield
        finally:
            _wished.reset(token)

    def _decided(self, call: ToolCall, effect: Effect, subject: Subject, judge: Judge) -> Decision:
        wish, _ = _wish_for(call)
        wish = "" if wish == "allow" and subject.is_unshown else wish
        rules = {each: [call.name] if each == wish else [] for each in ("allow", "ask")}
        policy = self.policy.tried(allow=rules["allow"], ask=rules["ask"]) if wish else self.policy
        if self._bound is None:
            return judge(policy)
        return self._bound.tightened(policy, judge, effect, subject)

    def allowed(
        self, call: ToolCall, effect: Effect, preview: Preview, subject: Subject, *, needs: str = ""
    ) -> Allow | None:
        """Return the permission if the call needs neither a question nor a notice, as most do; else None, and `admit` decides."""
        judge = _judge(call, effect, preview, subject, needs)
        decision = self._decided(call, effect, subject, judge)
        # The first decision may find a warning.
        is_told = self.policy.rules.warning == self._asking.warned
        return decision if isinstance(decision, Allow) and is_told else None

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

        def judging(subject: Subject) -> Judge:
            return _judge(call, effect, preview, subject, needs)

        decision = self._decided(call, effect, subject, judging(subject))
        self._warn(emit)
        if isinstance(decision, Ask):
            async with self._asking.turn:
                return await self._asked(call, effect, subject, judging, emit)
        return _told(decision, call, emit)

    async def _asked(
        self,
        call: ToolCall,
        effect: Effect,
        subject: Subject,
        judging: Callable[[Subject], Judge],
        emit: Emit,
    ) -> Allow | Deny:
        """Ask the person, unless the answer before has granted this call too; of the way out of the sandbox anew where the question is another one by then."""
        said, shown = None, ()
        while True:
            judge = judging(subject)
            decision = self._decided(call, effect, subject, judge)
            if not isinstance(decision, Ask):
                return _told(said if said and isinstance(decision, Allow) else decision, call, emit)
            question = decision.question
            if said is not None and question.warnings == shown:
                return said
            answer = await self._ask(self._completed(question, subject, judge), emit)
            if decision.is_held and isinstance(answer, Allow):
                return Allow("reading")
            if isinstance(answer, Deny) or not answer.is_outside:
                return answer
            # What it may load can have changed while the person read.
            said, shown = answer, question.warnings
            subject = replace(subject, looks=subject.looks + 1)

    def _completed(self, question: Question, subject: Subject, judge: Judge) -> Question:
        """Return the question with what is known here: what else helps, and why a hook wants it asked."""
        wish, why = _wish_for(question.call)
        warnings = question.warnings
        return replace(
            question,
            can_be_kept=bool(question.grant) and self.policy.rules.can_keep,
            remedies=_outside_remedies(subject)
            if question.outside == "needed"
            else _remedies(self.policy, question.call.name, subject, judge),
            warnings=(why, *warnings[1:]) if wish == "ask" else warnings,  # in place of the rule's
        )

    async def admit_reading(
        self, call: ToolCall, refused: "OutsideRoots", emit: Emit
    ) -> AbstractContextManager[None]:
        """Ask whether a path outside of the folders may be read, by this call within `with` what is returned. What is blocked was refused before.

        Raises Refused; as it was where nobody is there to be asked, or the mode asks nothing.
        """
        mode = self._bound.mode if self._bound is not None else ""
        if self.policy.mode in ("deny", "bypass") or mode == "deny":
            raise refused
        roots, path = refused.roots, refused.path
        folder, question = _reading(call, refused)
        async with self._asking.turn:
            answer = Answer(is_allowed=True)
            if not roots.may_read(path):
                answer = await self._answer(question, emit)
            if answer.is_unattended:
                raise refused
            if not answer.is_allowed:
                raise Refused(_refusal(answer))
            if _granted(answer, question):
                roots.add_reading(folder)
        return roots.reading_once(path)

    async def _ask(self, question: Question, emit: Emit) -> Allow | Deny:
        answer = await self._answer(question, emit)
        if not answer.is_allowed:
            return Deny(_refusal(answer))
        if grant := _granted(answer, question):
            is_kept = answer.is_for_project and question.can_be_kept
            await self._keep(grant, emit, is_kept=is_kept)
        if answer.asks_edits and question.offers_asking:
            self.policy.asks_before_edits = True
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
        warning = self.policy.rules.warning
        if warning and warning != self._asking.warned:
            emit(Noticed(level="warning", text=warning))
        self._asking.warned = warning


def _told(decision: Allow | Deny, call: ToolCall, emit: Emit) -> Allow | Deny:
    """Return what was decided without a question; a refusal is an event."""
    if isinstance(decision, Deny):
        emit(ConfirmationAnswered(id=call.id, is_allowed=False, reason=decision.reason))
    return decision


def _granted(answer: Answer, question: Question) -> str:
    """Return what an answer allows from now on; nothing where it was for this call alone."""
    is_lasting = answer.is_for_session or answer.is_for_project
    if not (answer.is_allowed and is_lasting) or answer.is_outside:
        return ""
    is_with = answer.with_network and question.offers_network
    return question.network_grant if is_with else question.grant


def _refusal(answer: Answer) -> str:
    return f"Refused: {answer.reason}" if answer.reason else "The person refused."


def _reading(call: ToolCall, refused: "OutsideRoots") -> tuple[str, Question]:
    """Return the folder of which "always" would allow all to be read, and the question."""
    path, home = refused.path, os.path.realpath(refused.roots.host.home)
    folder = path if os.path.isdir(path) else os.path.dirname(path)  # noqa: PTH112, PTH120
    title, is_wide = "Read outside of the folders that ybs works in", lies_in(home, folder)
    return folder, Question(
        call=call,
        effect="read",
        preview=Preview(title=title, body=path),
        grant="" if is_wide else f"reading in {folder}",
        withheld="it would allow reading too much" if is_wide else "",
    )


def _judge(call: ToolCall, effect: Effect, preview: Preview, subject: Subject, needs: str) -> Judge:
    return lambda policy: policy.decide(call, effect, preview, subject, needs=needs)


def _outside_remedies(subject: Subject) -> tuple[Remedy, ...]:
    return () if subject.why_asked() else (Remedy("allow_outside"),)


def _remedies(policy: Policy, name: str, subject: Subject, judge: Judge) -> tuple[Remedy, ...]:
    """Return what would let a call run, for who can only start again: the narrowest rule and the strictest mode. Each was tried."""

    def lets(mode: Mode | None = None, *rules: str, network: bool = False) -> bool:
        try:
            return isinstance(judge(policy.tried(mode=mode, allow=rules, network=network)), Allow)
        except ConfigError:  # what is called so cannot be named in a rule
            return False

    rules, found = [name], list[Remedy]()
    if subject.command:
        # A rule with a star means no single command, and one for all commands is no advice about one.
        rules = [f"{name}:{subject.command}", name] if "*" not in subject.command else []
    elif len(subject.paths) == 1:
        path = subject.paths[0]  # a rule that must be exact escapes nothing
        escaped = _GLOB_SIGN().sub(r"\\\g<0>", path)
        rules = [f"{name}:{escaped}", f"{name}:{path}", name]
    if rule := next((rule for rule in rules if lets(None, rule)), ""):
        found = [Remedy("allow_call", rule)]
    elif rule := next((r for r in rules if subject.network and lets(None, r, network=True)), ""):
        found = [Remedy("allow_call_with_network", rule)]
    found += [Remedy("choose_mode", mode) for mode in _MODES if lets(mode)][:1]
    return tuple(found) or (Remedy("choose_mode", "bypass"),)
