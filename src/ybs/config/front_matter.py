"""Front matter: the YAML between two lines of `---` at the top of a skill, a command or a kind of sub-agents.

Much of what is published there is not valid YAML: descriptions hold `: `, quotes and whole `<example>` blocks. What the YAML reader refuses is read field
by field, and a field that it refuses is taken as it stands.
"""

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any, TypeAlias

from msgspec import Struct

from ybs.config.tree import is_list, is_object
from ybs.core.lazy import lazy

_END = lazy(r"^---[ \t]*$\n?", re.MULTILINE)
_FIELD = lazy(r"([A-Za-z][\w.-]*)[ \t]*:(?:[ \t]+(.*)|$)")
_TAG = lazy(r"<([A-Za-z][\w-]*)>")
_BLOCK = lazy(r"[|>][+\-\d]{0,2}[ \t]*\n")

#: Fields that other agents go by.
_MEANT = frozenset({
    *("agent", "allowed-tools", "arguments", "background", "context", "effort", "hooks"),
    *("initialPrompt", "isolation", "mcpServers", "memory", "model", "paths", "shell", "skills"),
})  # fmt: skip

#: What files that were written for Claude Code call its models, and its word for the main agent's: all mean the main agent's.
INHERITED = ("", "inherit", "sonnet", "opus", "haiku", "fable")

#: A text, or a list of texts; every scalar is text, so that `1.10` and `no` stay what they are. What is nested deeper is left out, or `…` in a list.
Value: TypeAlias = str | list[str]


class BadFrontMatter(Exception):
    """The front matter cannot be read; the text says why, as the end of a sentence that begins with the file."""


def split(text: str) -> tuple[str, str]:
    """Return the front matter, and the body below it. Raises BadFrontMatter."""
    first, _, rest = text.removeprefix("\ufeff").replace("\r\n", "\n").partition("\n")
    if first.rstrip() != "---":
        raise BadFrontMatter("does not begin with front matter between two lines of ---")
    end = _END().search(rest)
    if end is None:
        raise BadFrontMatter("has front matter without an end: the second line of --- is missing")
    return rest[: end.start()], rest[end.end() :]


def fields(head: str) -> dict[str, Value]:
    """Return the fields of front matter by their names. Raises BadFrontMatter."""
    pieces = list(_chunks(head.splitlines()))
    if pieces and all(
        map(_is_plain, pieces)
    ):  # most are, and need not wait for the YAML reader to load
        return {name: lines[0] for name, lines in pieces}
    whole = _yaml(head)
    if whole is not None:
        return whole
    if not pieces and head.strip():
        raise BadFrontMatter("has front matter without any line `name: value`")
    return {name: _field(name, lines) for name, lines in pieces}


def _chunks(lines: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the name of each field and the lines of its value. Lines within a tag, such as `<example>`, begin no field."""
    piece: tuple[str, list[str]] | None = None
    inside_until = -1
    for at, line in enumerate(lines):
        found = _FIELD().match(line) if at > inside_until else None
        if found is not None:
            if piece is not None:
                yield piece
            piece = found[1], [(found[2] or "").strip()]
        elif piece is not None:
            piece[1].append(line)
        inside_until = max(inside_until, _end_of_tag(lines, at))
    if piece is not None:
        yield piece


def _end_of_tag(lines: Sequence[str], at: int) -> int:
    """Return the line in which the last tag that a line opens is closed; -1 where there is none."""
    for found in reversed([*_TAG().finditer(lines[at])] if "<" in lines[at] else []):
        closing = f"</{found[1]}>"
        if closing not in lines[at][found.end() :]:
            return next((n for n in range(at + 1, len(lines)) if closing in lines[n]), -1)
    return -1


def _is_plain(piece: tuple[str, Sequence[str]]) -> bool:
    """Return whether the value is one line that YAML reads as it stands."""
    value, *below = piece[1]
    is_line = all(not line.strip() or line.startswith("#") for line in below)
    is_text = value[:1].isalnum() and value.isprintable() and not value.endswith(":")
    return is_line and is_text and ": " not in value and " #" not in value


def _field(name: str, lines: Sequence[str]) -> Value:
    text = "\n".join(lines)
    found = _yaml(f"{name}: {text}")
    if found is not None and found.keys() == {name}:
        return found[name]
    start = _BLOCK().match(text)
    return text[start.end() if start else 0 :].strip()


def _yaml(text: str) -> dict[str, Value] | None:
    """Return the fields of a YAML mapping; None where it is not one."""
    import yaml  # only what is not plain needs it

    try:
        # This loader knows no types and no tags: whatever it reads is a text, a list or a mapping.
        loaded: Any = yaml.load(text, Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader))  # noqa: S506
    except (yaml.YAMLError, RecursionError, ValueError):
        return None
    if not is_object(loaded):
        return None
    found = {str(name): _value(value) for name, value in loaded.items()}
    # Aliases could make a short text a very long one.
    return found if sum(map(_size, found.values())) <= len(text) else None


def _value(value: Any) -> Value:
    if is_list(value):
        return [each if isinstance(each, str) else "…" for each in value]
    if is_object(value):
        return [f"{name}: {each}" for name, each in value.items() if isinstance(each, str)]
    return value.strip() if isinstance(value, str) else ""


def _size(value: Value) -> int:
    return len(value) if isinstance(value, str) else sum(map(len, value))


def text_of(said: Mapping[str, Value], name: str) -> str:
    """Return a field as one text; a list is joined by commas."""
    value = said.get(name, "")
    return value.strip() if isinstance(value, str) else ", ".join(value)


def name_of(said: Mapping[str, Value], path: str) -> str:
    """Return the name of what a file defines: the one that it says, or its own, as one word."""
    return "-".join((text_of(said, "name") or PurePath(path).stem).lower().split())


def is_yes(said: Mapping[str, Value], name: str) -> bool:
    """Return whether a field is set to true."""
    return text_of(said, name).lower() in ("true", "yes", "on", "1")


class Fork(Struct, frozen=True, kw_only=True):
    """The sub-agent that is to do what a skill or a command says: its kind, and its model; empty as usual."""

    kind: str = ""
    model: str = ""


def fork_of(said: Mapping[str, Value]) -> Fork | None:
    """Return the sub-agent that `context: fork` asks for; None where the model itself is to follow the words."""
    if text_of(said, "context").lower() != "fork":
        return None
    return Fork(kind=text_of(said, "agent"), model=text_of(said, "model"))


def without_effect(said: Mapping[str, Value], used: Container[str] = ()) -> list[str]:
    """Return the fields that other agents go by and ybs does not; of an agent `used` are those that it goes by."""
    if fork_of(said) is not None:
        used = ("context", "agent", "model")
    return [name for name in said if name in _MEANT and name not in used]
