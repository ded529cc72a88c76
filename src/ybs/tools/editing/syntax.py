"""Check whether a Python, JSON or TOML file can be parsed. Models make edits that break one."""

from collections.abc import Callable
from pathlib import PurePath
from typing import Final

from msgspec import Struct

from ybs.core.lazy import lazy

#: Longer texts are not looked at, in characters.
MOST_CHARS: Final = 200_000
#: What Python's parser says of what another version reads: an older one, or a newer one than ybs's own.
_OF_OTHER_VERSIONS: Final = ("f-string", "Missing parentheses in call", "multiple exception types")
_PLACE = lazy(r" \(at (?:line (\d+), column \d+|end of document)\)")
#: Escapes, in strings for the most part: the parser warns on the screen of those that mean nothing.
_ESCAPE = lazy(r"(\\[\\'\"\r\nN{}])|\\.")


class Flaw(Struct, frozen=True):
    """Why a text cannot be read, in the parser's words, and the line, counted from 1."""

    why: str
    line: int


def is_known(name: str) -> bool:
    """Return whether a file of this name can be looked at."""
    return PurePath(name).suffix in _KINDS


def flaw_in(name: str, text: str) -> Flaw | None:
    """Return why a file of this name and text cannot be read; None where it can, or where that is not known."""
    find = _KINDS.get(PurePath(name).suffix)
    return find(text) if find is not None and len(text) <= MOST_CHARS else None


def flaw_made(name: str, before: str, after: str) -> Flaw | None:
    """Return why a file cannot be read after a change; None where it could not be read before either."""
    flaw = flaw_in(name, after)
    return flaw if flaw is not None and flaw_in(name, before) is None else None


def _in_json(text: str) -> Flaw | None:
    import json

    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return Flaw(error.msg, error.lineno)
    except RecursionError:
        return Flaw("too deeply nested", 1)
    return None


def _in_toml(text: str) -> Flaw | None:
    import tomllib

    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        said = str(error)
        place = _PLACE().search(said)
        line = int(place[1]) if place and place[1] else text.count("\n") + 1
        return Flaw(_PLACE().sub("", said), line)
    except RecursionError:
        return Flaw("too deeply nested", 1)
    return None


def _in_python(text: str) -> Flaw | None:
    from ast import PyCF_ONLY_AST

    plain = _ESCAPE().sub(lambda escape: escape[1] or "xx", text)
    try:
        compile(plain, "", "exec", PyCF_ONLY_AST, dont_inherit=True)
    except TabError:  # the Python of old counts them otherwise
        return None
    except SyntaxError as error:
        is_elsewhere = error.msg.startswith(_OF_OTHER_VERSIONS)
        return None if is_elsewhere else Flaw(error.msg, error.lineno or 1)
    except (ValueError, RecursionError, MemoryError):  # a zero byte, or too deep to say
        return None
    return None


_KINDS: Final[dict[str, Callable[[str], Flaw | None]]] = {
    ".json": _in_json,
    ".py": _in_python,
    ".toml": _in_toml,
}
