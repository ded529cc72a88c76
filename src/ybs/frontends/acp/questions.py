"""A question of the session to the person at the editor: as a request for permission, or as a form where the editor shows forms."""

from typing import Any, Final

from acp import RequestError, helpers, schema
from pydantic import ValidationError

from ybs.core.envelope import MAIN
from ybs.core.open_question import OpenQuestion
from ybs.core.ports import Answer
from ybs.frontends.markdown import fenced
from ybs.security.unicode import printable
from ybs.session.questions import NO, choices_of

#: What an editor raises that cannot do what it was asked, answers in another form, or has gone.
FAILURES: Final = (RequestError, ValidationError, ConnectionError)
_KINDS: Final[dict[str, schema.PermissionOptionKind]] = {
    "once": "allow_once",
    "always": "allow_always",
    "no": "reject_once",
}
_NOBODY: Final = Answer(
    is_allowed=False, reason="the editor could not ask the person", is_unattended=True
)
_PICKED, _OWN = "answer", "own_words"


async def asked(client: Any, session_id: str, question: OpenQuestion, *, has_forms: bool) -> Answer:
    """Ask the person by the editor, and return the answer; an editor that cannot ask is nobody. Raises ConnectionError where it has gone."""
    try:
        if question.choices is not None and has_forms:
            return await _by_form(client, session_id, question, question.choices)
        if question.choices == ():  # there is nothing to pick, and no place for words
            return _NOBODY
        return await _by_permission(client, session_id, question)
    except (RequestError, ValidationError):
        return _NOBODY


async def _by_permission(client: Any, session_id: str, question: OpenQuestion) -> Answer:
    choices = {str(number): choice for number, choice in enumerate(choices_of(question))}
    options = [
        schema.PermissionOption(option_id=key, name=printable(each.label), kind=_KINDS[each.kind])
        for key, each in choices.items()
    ]
    title = question.preview if question.choices is not None else question.title
    who = "" if question.agent in ("", MAIN) else f"{question.agent}: "
    text = helpers.tool_content(helpers.text_block(_text_of(question)))
    call = helpers.update_tool_call(
        question.id.partition("/")[0], title=printable(who + title), content=[text]
    )
    outcome = (await client.request_permission(session_id, call, options)).outcome
    chosen = choices.get(getattr(outcome, "option_id", ""))
    return chosen.answer if chosen is not None else NO


def _text_of(question: OpenQuestion) -> str:
    """Return what the person reads before they answer."""
    language = "diff" if question.preview.startswith("--- ") else ""
    body = fenced(printable(question.preview), language) if question.preview else ""
    lines = [] if question.choices is not None else [body]
    lines += [f"Asked because {printable(question.reason)}."] if question.reason else []
    lines += [f"**Warning: {printable(each)}**" for each in question.warnings]
    return "\n\n".join(filter(None, lines)) or printable(question.title)


async def _by_form(
    client: Any, session_id: str, question: OpenQuestion, choices: tuple[str, ...]
) -> Answer:
    field = schema.ElicitationStringPropertySchema
    known = {str(number): choice for number, choice in enumerate(choices)}
    fields: dict[str, Any] = {}
    if known:
        picks = [schema.EnumOption(const=key, title=printable(each)) for key, each in known.items()]
        fields[_PICKED] = field(type="string", title="Answer", one_of=picks)
    title = "Or in your own words" if known else "Answer"
    fields[_OWN] = field(type="string", title=title)
    form = schema.ElicitationSchema(properties=fields, required=[] if known else [_OWN])
    mode = schema.ElicitationFormSessionMode(session_id=session_id, requested_schema=form)
    reply = await client.create_elicitation(printable(question.preview), mode)
    said: dict[str, Any] = (reply.content if reply.action == "accept" else None) or {}
    words = str(said.get(_OWN) or "").strip() or known.get(str(said.get(_PICKED)), "")
    return Answer(is_allowed=True, reason=words) if words else NO
