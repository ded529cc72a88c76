"""The head of a SKILL.md: the part of YAML that such heads use, read line by line.

A YAML parser would refuse many real ones (`description: Use it when: …`), and what else YAML has (anchors, tags, merge keys) has no place in a head:
here all of that is plain text.
"""

import re
from collections.abc import Sequence
from typing import TypeAlias

from ybs.core.lazy import lazy

# Few heads need any of these, and compiling them takes longer than reading thirty skills.
_BLOCK = lazy(r"([|>])[+\-\d]{0,2}[ \t]*(?:#.*)?$")
_COMMENT = lazy(r"(?:^|[ \t]+)#(?:[ \t].*)?$")
_DOUBLE = lazy(r'"((?:[^"\\]|\\.)*)"')
_SINGLE = lazy(r"'((?:[^']|'')*)'")
_ESCAPE = lazy(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))")
_NEW_LINES = lazy(r"\n+")
_END = lazy(r"^---[ \t]*$\n?", re.MULTILINE)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "0": "", "a": "", "b": "", "e": "", "f": "", "v": ""}

#: A text, or a list of texts. Whatever is nested deeper is one text, which nobody reads.
Value: TypeAlias = str | list[str]


class BadHead(Exception):
    """The head cannot be read; the text says why, as the end of a sentence that begins with the file."""


def split(text: str) -> tuple[list[str], str]:
    """Return the lines of the head, and the body below it. Raises BadHead."""
    first, _, rest = text.removeprefix("\ufeff").replace("\r\n", "\n").partition("\n")
    if first.rstrip() != "---":
        raise BadHead("does not begin with a head between two lines of ---")
    end = _END().search(rest)
    if end is None:
        raise BadHead("has a head that does not end: the second line of --- is missing")
    return rest[: end.start()].splitlines(), rest[end.end() :]


def fields(lines: Sequence[str]) -> dict[str, Value]:
    """Return what the head says, by its keys. Raises BadHead."""
    found: dict[str, Value] = {}
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        key, colon, value = line.partition(":")
        if not colon or not _is_key(key.rstrip()) or value[:1] not in ("", " ", "\t"):
            raise BadHead(f"has a head whose line {at + 1} is not `key: value`")
        below = at
        while below < len(lines) and _belongs(lines[below]):
            below += 1
        found[key.rstrip()] = _value(value.strip(), lines[at:below])
        at = below
    return found


def _is_key(text: str) -> bool:
    return text[:1].isalpha() and text.replace("-", "_").replace(".", "_").isidentifier()


def _belongs(line: str) -> bool:
    """Return whether a line goes on with the value of the key above it."""
    return not line.strip() or line[0] in " \t" or _is_item(line)


def _is_item(line: str) -> bool:
    return line.rstrip() == "-" or line.startswith(("- ", "-\t"))


def _value(first: str, below: Sequence[str]) -> Value:
    if first[:1] in ("|", ">") and (block := _BLOCK().match(first)):
        return _block(below, folds=block[1] == ">")
    if not _without_comment(first):
        items = [line.strip() for line in below if line.strip()]
        if items and all(map(_is_item, items)):
            return [_scalar(item[1:]) for item in items]
    text = _folded([first, *below])
    if text.startswith("["):
        return [_scalar(each) for each in text.strip("[]").split(",") if each.strip()]
    return _scalar(text)


def _block(lines: Sequence[str], *, folds: bool) -> str:
    indents = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    least = min(indents, default=0)
    cut = [line[least:].rstrip() for line in lines]
    return (_folded(cut) if folds else "\n".join(cut)).strip()


def _folded(lines: Sequence[str]) -> str:
    """Join lines with spaces, where an empty one stands for a new line."""
    joined = "\n".join(line.strip() for line in lines)
    if "\n" in joined:
        joined = _NEW_LINES().sub(lambda gap: "\n" * (len(gap[0]) - 1) or " ", joined)
    return joined.strip()


def _scalar(text: str) -> str:
    text = text.strip()
    if text.startswith('"') and (double := _DOUBLE().match(text)):
        return _ESCAPE().sub(_unescaped, double[1])
    if text.startswith("'") and (single := _SINGLE().match(text)):
        return single[1].replace("''", "'")
    return _without_comment(text)


def _without_comment(text: str) -> str:
    return _COMMENT().sub("", text) if "#" in text else text


def _unescaped(found: "re.Match[str]") -> str:
    if code := found[1] or found[2] or found[3]:
        number = int(code, 16)
        return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else "\ufffd"
    return _ESCAPED.get(found[4], found[4])
