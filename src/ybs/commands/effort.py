"""/effort: how hard the model thinks, in this session."""

from typing import Final, get_args

import msgspec

from ybs.config.schema import Effort
from ybs.session.reply import Menu, MenuItem, Reply
from ybs.session.session import Session

LEVELS: Final[tuple[str, ...]] = get_args(get_args(Effort)[0])
AUTO: Final = "auto"
_MOST_DIGITS: Final = 7
#: What each choice means to a person.
_MEANING: Final = {
    AUTO: "as much as the model does by itself",
    "none": "answers at once, where the model can",
    "low": "quick and cheap",
    "high": "for hard problems: slower, and more tokens",
    "max": "as hard as the model can",
}


async def change_effort(session: Session, argument: str) -> Reply:
    """Offer the levels, or have the model think so hard from now on: LEVEL, a number of tokens, or auto."""
    current = session.config.llm.effort
    if not argument:
        return _offer(current)
    word = argument.lower()
    is_number = word.isascii() and word.isdecimal() and len(word) < _MOST_DIGITS
    if word != AUTO and word not in LEVELS and not is_number:
        text = f"There is no effort {argument!r}. Choose {AUTO}, {', '.join(LEVELS)}, or a number of tokens."
        return Reply(text=text, is_error=True)
    given = int(word) if is_number else word
    asked = None if word == AUTO else msgspec.convert(given, Effort)
    await session.use_effort(asked)
    return Reply(text=f"Effort: {_shown(asked)}")


def _shown(effort: Effort | None) -> str:
    if isinstance(effort, int):
        return f"at most {effort:,} tokens of thinking"
    level = effort or AUTO
    return f"{level} ({_MEANING[level]})" if level in _MEANING else level


def _offer(current: Effort | None) -> Reply:
    items = tuple(
        MenuItem(
            line=f"/effort {level}",
            label=level,
            detail=_MEANING.get(level, ""),
            is_current=level == (current or AUTO),
        )
        for level in (AUTO, *LEVELS)
    )
    menu = Menu(title="How hard should the model think?", items=items)
    return Reply(text=f"Effort: {_shown(current)}", menu=menu)
