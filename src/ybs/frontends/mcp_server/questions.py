"""Questions to the person behind another agent: MCP's elicitation, in both generations of the protocol.

Up to 2025-11-25 a server asks while a call runs. Since 2026-07-28 it cannot: the call ends with the question, and the client makes
it again with the answer.
"""

from collections.abc import Mapping
from hashlib import sha256
from secrets import token_urlsafe
from typing import Any, Final, Protocol

import mcp_types as types
import msgspec
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError
from msgspec import Struct
from msgspec.structs import replace
from pydantic import ValidationError

from ybs.core.messages import ToolCall
from ybs.core.ports import Answer, Confirm, Question
from ybs.frontends.headless.advice import refusal
from ybs.security.marks import marked
from ybs.tools.calls.cut import cut

YES: Final = "yes"
ALWAYS: Final = "always"
WITH_NETWORK: Final = "yes, with network"
NO: Final = "no"
_ANSWER: Final = "answer"
_INSIDE: Final = "A yes runs it in the sandbox. Outside, with your keys, runs only what safety.outside_sandbox of your settings names."
_PROGRAM: Final = "ybs mcp serve"
_MOST_SHOWN: Final = 10_000  # characters of what a call would do
#: So many questions may wait for a second call; the oldest is forgotten first.
_MOST_OPEN: Final = 100


class Mask(Protocol):
    """Masks the secrets in a text; `place` says where it stands."""

    def __call__(self, text: str, place: str) -> str:
        """Return the text without secrets."""
        ...


def can_ask(session: ServerSession) -> bool:
    """Return whether the client shows forms to the person."""
    capabilities = session.client_capabilities
    asks = capabilities.elicitation if capabilities is not None else None
    return asks is not None and (asks.form is not None or asks.url is None)


def form_of(question: Question, mask: Mask) -> types.ElicitRequestFormParams:
    """Return the form that the person is shown."""
    lines = [f"ybs asks: {question.preview.title}", cut(question.preview.body, _MOST_SHOWN)]
    lines += [f"Asked because {question.reason}."] if question.reason else []
    lines += [f"Warning: {each}" for each in question.warnings]
    field: dict[str, Any] = {"type": "string", "title": "Answer"}
    if question.choices is None:
        field |= {"title": "May ybs do this?", "enum": _choices(question)}
        if question.outside == "needed":
            lines.append(_INSIDE)
        if question.grant:
            lines.append(f'"{ALWAYS}" also allows {question.grant} until this server ends.')
    elif question.choices:
        field["enum"] = list(question.choices)
    text = mask("\n\n".join(filter(None, lines)), "a question")
    return types.ElicitRequestFormParams(
        message=marked(text)[0],
        requested_schema={"type": "object", "properties": {_ANSWER: field}, "required": [_ANSWER]},
    )


def _choices(question: Question) -> list[str]:
    more = ((ALWAYS, bool(question.grant)), (WITH_NETWORK, question.offers_network))
    return [YES, *(word for word, is_offered in more if is_offered), NO]


def answer_of(result: types.ElicitResult, question: Question) -> Answer:
    """Return the person's answer. Only one of the offered words allows a call."""
    if result.action != "accept":  # some clients do so by themselves, where nobody is there
        done = {"decline": "declined", "cancel": "closed"}[result.action]
        return refusal(
            question, f"the question was {done}, by the person or by the client", _PROGRAM
        )
    said = (result.content or {}).get(_ANSWER)
    if question.choices is not None:
        return Answer(
            is_allowed=isinstance(said, str), reason=said if isinstance(said, str) else ""
        )
    if said not in _choices(question) or said == NO:
        return Answer(is_allowed=False)
    return Answer(is_allowed=True, is_for_session=said == ALWAYS, with_network=said == WITH_NETWORK)


async def refuse(question: Question) -> Answer:
    """Refuse, since the client cannot ask the person, and say what would allow just this call."""
    return refusal(
        question, "the client cannot ask the person (it has no MCP elicitation)", _PROGRAM
    )


def asking_now(session: ServerSession, request: types.RequestId | None, mask: Mask) -> Confirm:
    """Return what asks while the call runs."""

    async def ask(question: Question) -> Answer:
        form = form_of(question, mask)
        try:
            result = await session.elicit_form(form.message, form.requested_schema, request)
        except (MCPError, ValidationError):
            reason = "the client did not ask the person, though it says that it can"
            return Answer(is_allowed=False, reason=reason, is_unattended=True)
        return answer_of(result, question)

    return ask


class _Round(Struct, frozen=True):
    """What is known of a call that ended with a question."""

    call: ToolCall
    answers: Mapping[str, Answer]
    question: Question


class LaterAnswers:
    """The questions that calls ended with, until the client makes these again with the answers."""

    def __init__(self, mask: Mask) -> None:
        self._mask = mask
        self._open: dict[str, _Round] = {}

    def asking(self, call: ToolCall, params: types.CallToolRequestParams) -> "AskingLater":
        """Return what asks about a call, and knows the answers that it comes with."""
        known = self._open.get(params.request_state or "")
        if known is None or not call.is_same_call(known.call):
            return AskingLater(call, {})
        given = (params.input_responses or {}).get(_ANSWER)
        if not isinstance(given, types.ElicitResult):
            return AskingLater(call, known.answers)
        del self._open[params.request_state or ""]  # an answer counts once
        answer = answer_of(given, known.question)
        return AskingLater(call, {**known.answers, _key(known.question): answer})

    def required(self, asking: "AskingLater", question: Question) -> types.InputRequiredResult:
        """Return what a call ends with in place of its result."""
        state = token_urlsafe(16)
        self._open[state] = _Round(asking.call, asking.answers, question)
        while len(self._open) > _MOST_OPEN:
            del self._open[next(iter(self._open))]
        request = types.ElicitRequest(params=form_of(question, self._mask))
        return types.InputRequiredResult(input_requests={_ANSWER: request}, request_state=state)


class AskingLater:
    """Asks about one call by ending it. `question` is the one that is open then."""

    def __init__(self, call: ToolCall, answers: Mapping[str, Answer]) -> None:
        self.call, self.answers = call, answers
        self.question: Question | None = None

    async def __call__(self, question: Question) -> Answer:
        """Return the answer that is known, or refuse for now. What is asked anew in other words is another question."""
        if (answer := self.answers.get(_key(question))) is not None:
            return answer
        self.question = self.question or question
        return Answer(is_allowed=False, reason="the person is asked first", is_unattended=True)


def _key(question: Question) -> str:
    same = replace(question, call=replace(question.call, id=""))
    return sha256(msgspec.json.encode(same)).hexdigest()
