"""One argument of another type than the schema's: converted where nothing has to be made up."""

from collections.abc import Iterator
from typing import Any, cast

import msgspec

_WORDS = {"yes": True, "on": True, "no": False, "off": False}


class Unfit(ValueError):
    """The value stands for nothing of that type."""


def converted(value: Any, kind: Any, *, is_careful: bool) -> Any:
    """Return the value as the type `kind` has it. Raises Unfit.

    `is_careful`: only where the text that was written is certain, as for a tool that writes it to a file.
    """
    for candidate in _candidates(value, kind, is_careful=is_careful):
        try:
            found = msgspec.convert(candidate, kind, strict=False)
            # What JSON cannot say (no number, too large a one) is not an argument.
            is_sound = msgspec.json.decode(msgspec.json.encode(found), type=kind) == found
        except (ValueError, OverflowError, RecursionError):
            continue
        is_sound = is_sound and _has_all(candidate, found)
        if is_sound and not (_is_text(value, found) and found not in _words_of(kind)):
            return found
    raise Unfit


def joined(command: Any) -> str:
    """Return a command that came as a list of words as the shell reads it; nothing for anything else."""
    match command:
        case [str(), str(), *_] if all(isinstance(word, str) for word in command):
            from shlex import join  # rarely needed

            return join(command)
        case _:
            return ""


def _candidates(value: Any, kind: Any, *, is_careful: bool) -> Iterator[Any]:
    """Yield possible conversions of the value, the most certain first."""
    match value:
        case str():
            yield from _of_text(value, kind)
        case bool() | int() | float():
            yield value  # 5.0 for 5
            if not is_careful:  # 1.10 or True may have been written
                yield msgspec.json.encode(value).decode()
        case [only]:
            yield value
            yield from (only, *_of_text(only, kind)) if isinstance(only, str) else (only,)
        case _:
            yield value
    if not isinstance(value, list) and not (isinstance(value, str) and _is_bracketed(value)):
        yield [value]


def _of_text(text: str, kind: Any) -> Iterator[Any]:
    """Yield possible values of a text: a number, a boolean, a word of the schema, JSON."""
    stripped = text.strip()
    if _is_bracketed(text) and (found := _json_in(stripped)) is not None:
        yield found
    yield stripped
    folded = stripped.casefold()
    if folded in _WORDS:
        yield _WORDS[folded]
    words = [word for word in _words_of(kind) if word.casefold() == folded]
    if len(words) == 1:
        yield words[0]


def _has_all(value: Any, found: Any) -> bool:
    """Return whether nothing was left out that the type does not name: a foreign tool may understand it."""
    match value, found:
        case dict(), dict():
            given, kept = cast("dict[str, Any]", value), cast("dict[str, Any]", found)
            return all(name in kept and _has_all(given[name], kept[name]) for name in given)
        case list(), list():
            return all(map(_has_all, cast("list[Any]", value), cast("list[Any]", found)))
        case _:
            return True


def _is_text(value: Any, found: Any) -> bool:
    """Return whether one text would become another: only a word of the schema may be spelled otherwise."""
    return isinstance(value, str) and isinstance(found, str)


def _is_bracketed(text: str) -> bool:
    return text.lstrip()[:1] in ("[", "{")


def _json_in(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return None


def _words_of(kind: Any) -> list[str]:
    """List the words that the type allows, where it is a choice of words."""
    from msgspec.inspect import LiteralType, UnionType, type_info  # only a wrong type needs it

    info = type_info(kind)
    choices = info.types if isinstance(info, UnionType) else (info,)
    values = [value for each in choices if isinstance(each, LiteralType) for value in each.values]
    return [value for value in values if isinstance(value, str)]
