"""Preferences: `preferences.json`, an object of plain values, as lines that a model reads."""

from typing import TypeAlias

import msgspec

from ybs.context.document_text import legible
from ybs.core.errors import ConfigError

_Plain: TypeAlias = str | int | float | bool | None


class Unfit(ConfigError):
    """The file holds no preferences; the text says why."""


def preferences_in(text: str, *, is_whole: bool) -> str:
    """Return a line `name: value` for each preference. Raises Unfit."""
    if not text.strip():
        return ""
    if not is_whole:
        raise Unfit("it is too large")
    try:
        values = msgspec.json.decode(text, type=dict[str, _Plain | list[_Plain]])
    except msgspec.ValidationError as error:
        raise Unfit(
            "it must be a JSON object of texts, numbers, true, false and lists of them"
        ) from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise Unfit(f"it is not valid JSON ({error})") from error
    return legible("\n".join(f"{_line(name)}: {_shown(value)}" for name, value in values.items()))


def _shown(value: _Plain | list[_Plain]) -> str:
    if isinstance(value, str):
        return _line(value)
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    return msgspec.json.encode(value).decode()


def _line(text: str) -> str:
    return " ".join(text.split())
