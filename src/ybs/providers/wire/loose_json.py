"""Reading JSON whose shape cannot be trusted: what is missing or of another type is empty, never an error."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final, cast

from ybs.core.lazy import lazy


def as_object(value: Any) -> dict[str, Any]:
    """Return the value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType] - JSON


def as_list(value: Any) -> list[Any]:
    """Return the value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType] - JSON


def as_text(value: Any) -> str:
    """Return the text of a string, of a content part or of a list of parts; empty for anything else."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(as_text(part) for part in as_list(value))
    return as_text(as_object(value).get("text", ""))


def thought_in(message: Mapping[str, Any], fields: Sequence[str]) -> str:
    """Return the text of the first of these fields that has one; empty where none has."""
    for field in fields:
        if field in message and (text := as_text(message[field])):
            return text
    return ""


def as_count(value: Any) -> int | None:
    """Return a number of tokens as a whole number that is not negative, or None."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return max(0, int(value)) if is_number and abs(value) < 1e15 else None


def at(value: Any, dotted: str) -> Any:
    """Return the value at a dotted path (`choices.0.usage`), or None."""
    for step in _steps(dotted):
        if type(value) is dict:  # what the decoder makes of an object
            value = cast("dict[str, Any]", value).get(step)
        elif isinstance(value, list) and step.isdigit():
            items = as_list(value)
            value = items[int(step)] if int(step) < len(items) else None
        else:
            return None
    return value


@cache
def _steps(dotted: str) -> tuple[str, ...]:
    return tuple(dotted.split("."))


def count_at(value: Any, *paths: str) -> int | None:
    """Return the first number of tokens found at the dotted paths, or None."""
    return next((n for path in paths if (n := as_count(at(value, path))) is not None), None)


#: A backslash and what it escapes.
_ESCAPE = lazy(r"\\(?:u[0-9a-fA-F]{4}|.|$)", re.S)
#: What has a backslash before it in regular expressions and no meaning of its own in JSON, nor in the strings of C, Python or
#: a shell, where `\e`, `\x41`, `\'` and `\$` are a character.
_REGULAR: Final = frozenset({f"\\{sign}" for sign in ".()[]{}+*?|^-dDsSwWBAZz"})
#: A word's border in those. JSON has a backspace for it, which nobody writes into a file.
_BORDER: Final = r"\b"


def doubled(text: str) -> str:
    r"""Return JSON with the backslashes of a regular expression escaped that a model left bare (`"\d+\.py"`); nothing where there are none, or where they can be read in two ways.

    A model that does not escape one may not have escaped the others: what JSON takes for a line end may be a backslash and an n.
    """
    found = set(re.findall(_ESCAPE(), text))
    if not found & _REGULAR or not found <= _REGULAR | {_BORDER, r"\""}:
        return ""
    return re.sub(_ESCAPE(), lambda sign: sign[0] if sign[0] == r"\"" else f"\\{sign[0]}", text)
