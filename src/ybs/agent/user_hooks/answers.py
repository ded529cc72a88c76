"""What a hook's run means: by its exit code, by the JSON that it wrote, or by the text."""

from collections.abc import Iterable
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from ybs.agent.user_hooks.definitions import Hook
from ybs.config.tree import is_object
from ybs.security.own_programs import WHY_APART
from ybs.tools.external.program import ProgramResult
from ybs.tools.shell.terminal_text import as_seen

#: The exit code that blocks.
BLOCKS: Final = 2
#: What is told to the model of one hook, in characters.
MOST_CHARS: Final = 10_000
_MOST_NOTE = 500
_MOST_SAID = 240  # of its errors, so that the reason behind them is read too
#: Events whose plain text is told to the model, and those at which nothing can be held up any more.
_TELLING = ("SessionStart", "UserPromptSubmit")
_ONLY_TOLD = ("SessionStart", "SessionEnd", "Notification", "SubagentStart")
Permission: TypeAlias = Literal["", "allow", "ask", "deny"]


class HookAnswer(Struct, frozen=True, kw_only=True):
    """What one hook says, or several together.

    `blocked` is why what was about to happen is not to happen (None: it may). `permission` is about a call, `reason` is why.
    `arguments` replace those of the call. The model is told `context`, the person `notes`. `ending` ends the turn (None: it goes on).
    """

    blocked: str | None = None
    permission: Permission = ""
    reason: str = ""
    arguments: dict[str, Any] | None = None
    context: str = ""
    ending: str | None = None
    notes: tuple[str, ...] = ()


def read_answer(hook: Hook, ran: ProgramResult) -> HookAnswer:
    """Return what a run that ended by itself says."""
    if ran.exit_code == BLOCKS:
        why = ran.errors[:MOST_CHARS] or f"the hook {hook.shown} gives no reason"
        if hook.event in _ONLY_TOLD:
            return HookAnswer(notes=(_note(hook, why),))
        return HookAnswer(blocked=why)
    if ran.exit_code:
        said = f": {ran.errors}" if ran.errors else ""
        why = f" ({WHY_APART})" if ran.is_apart else ""
        return HookAnswer(notes=(_note(hook, f"failed with {ran.how}{said[:_MOST_SAID]}{why}"),))
    if ran.answer is None or not ran.answer.lstrip().startswith(b"{"):
        return HookAnswer(context=ran.text[:MOST_CHARS] if hook.event in _TELLING else "")
    # Some print first that they will take their time, and the answer in a line of its own.
    for piece in (ran.answer, *ran.answer.splitlines()):
        said = _object(piece)
        if said is not None and "async" not in said:
            return _of_object(hook, said)
    return HookAnswer(notes=(_note(hook, "answered with JSON that cannot be read"),))


def _object(data: bytes) -> dict[str, Any] | None:
    try:
        return msgspec.json.decode(data, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _of_object(hook: Hook, said: dict[str, Any]) -> HookAnswer:
    own: Any = said.get("hookSpecificOutput")
    specific: dict[str, Any] = own if is_object(own) else {}
    asked: Any = specific.get("decision")  # of PermissionRequest
    decision: dict[str, Any] = asked if is_object(asked) else {}
    why: Any = specific.get("permissionDecisionReason") or decision.get("message")
    reason = _text(why) or _text(said.get("reason"))
    permission = _permission(
        decision.get("behavior") or specific.get("permissionDecision") or said.get("decision")
    )
    if permission == "allow" and hook.source != "own":
        permission = ""  # what is not the person's own can only be stricter than they are
    blocked = None
    if (said.get("decision") == "block" or permission == "deny") and hook.event not in _ONLY_TOLD:
        blocked = reason or f"the hook {hook.shown} gives no reason"
    given = specific.get("updatedInput", decision.get("updatedInput"))
    ending = _text(said.get("stopReason")) if said.get("continue") is False else None
    if decision.get("interrupt") is True:
        ending = blocked
    message = _text(said.get("systemMessage"))[:_MOST_NOTE]
    return HookAnswer(
        blocked=blocked,
        permission=permission,
        reason=reason,
        arguments=given if is_object(given) else None,
        context=_text(specific.get("additionalContext")),
        ending=ending,
        notes=(message,) if message else (),
    )


def _permission(said: Any) -> Permission:
    """Return a decision about a call; the older words count, too."""
    match said:
        case "allow" | "approve":
            return "allow"
        case "deny" | "block":
            return "deny"
        case "ask" | "defer":
            return "ask"
        case _:
            return ""


def _text(value: Any) -> str:
    """Return a text of a hook's as a person would see it."""
    return as_seen(value).strip()[:MOST_CHARS] if isinstance(value, str) else ""


def _note(hook: Hook, what: str) -> str:
    return f"The hook {hook.shown}: {what}"[:_MOST_NOTE]


def failed(hook: Hook, why: str) -> HookAnswer:
    """Return the answer of a hook that could not be run to its end: nothing is held up, and the person hears of it."""
    return HookAnswer(notes=(_note(hook, why),))


def merged(answers: Iterable[HookAnswer]) -> HookAnswer:
    """Return what several hooks say together: a block beats everything, `ask` beats `allow`."""
    all_of = list(answers)
    blocks = [each.blocked for each in all_of if each.blocked is not None]
    by_permission = {each.permission: each for each in reversed(all_of)}
    strongest = next((by_permission[p] for p in ("ask", "allow") if p in by_permission), None)
    given = [each.arguments for each in all_of if each.arguments is not None]
    endings = [each.ending for each in all_of if each.ending is not None]
    return HookAnswer(
        blocked="\n".join(blocks) if blocks else None,
        permission="deny" if blocks else strongest.permission if strongest else "",
        reason=strongest.reason if strongest else "",
        arguments=given[-1] if given else None,
        context="\n".join(each.context for each in all_of if each.context),
        ending=endings[0] if endings else None,
        notes=tuple(note for each in all_of for note in each.notes),
    )
