"""What a run without a terminal tells the person to do: options where a chat has commands, and what allows a refused call."""

import re

from ybs.core.ports import Answer, Question

_IN_A_CHAT = re.compile(r" \(in a chat: [^)]*\)| /secrets lists it\.")
_COMMAND = re.compile(r"(?<![\w/.~`])/(?:clear|memories|model|provider|sessions)\b(?!/)")
#: A slash command, and what does the same on a command line.
_INSTEAD = {
    "/memories": "/memories in a chat",
    "/model": "--model NAME",
    "/provider": "--provider NAME",
    "/sessions": "`ybs sessions`",
}
_IN_USE = ".jsonl is in use by another ybs; close that one first"
_IN_USE_HERE = ".jsonl is open in another ybs; close that one, or go on in a copy of it: --fork"


def advice_for_scripts(message: str) -> str:
    """Turn the advice of a chat into that of a command line."""
    message = _IN_A_CHAT.sub("", message).replace(_IN_USE, _IN_USE_HERE)
    message = message.replace("with /clear", "without --continue")
    return _COMMAND.sub(lambda found: _INSTEAD.get(found[0], found[0]), message)


async def refuse(question: Question) -> Answer:
    """Refuse, since nobody can be asked, and say what would allow just this call."""
    ways = question.remedies
    if not ways:
        return Answer(is_allowed=False, reason="nobody can confirm this here", is_unattended=True)
    by_rule = next((each for each in question.warnings if " in safety.ask asks" in each), "")
    if by_rule:
        reason = f"nobody can confirm this here, and {by_rule}; the person may take it out of the settings, or start with "
    else:
        reason = "nobody can confirm this here; the person may allow it with "
    return Answer(is_allowed=False, reason=reason + " or ".join(ways), is_unattended=True)
