"""The head of a SKILL.md: the part of YAML that such heads use, read line by line.

A YAML parser would refuse many real ones (`description: Use it when: …`), and what else YAML has (anchors, tags, merge keys) has no place in a head:
here all of that is plain text.
"""

import re
from collections.abc import Sequence
from typing import TypeAlias

_KEY = re.compile(r"([A-Za-z_][\w.-]*)[ \t]*:(?:[ \t]+(.*))?$")
_BLOCK = re.compile(r"([|>])[+\-\d]{0,2}[ \t]*(?:#.*)?$")
_COMMENT = re.compile(r"(?:^|[ \t]+)#(?:[ \t].*)?$")
_DOUBLE = re.compile(r'"((?:[^"\\]|\\.)*)"')
_SINGLE = re.compile(r"'((?:[^']|'')*)'")
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "0": "", "a": "", "b": "", "e": "", "f": "", "v": ""}
_ITEM = re.compile(r"-(?:[ \t]+(.*))?$")

#: A text, or a list of texts. Whatever is nested deeper is one text, which nobody reads.
Value: TypeAlias = str | list[str]


class BadHead(Exception):
    """The head cannot be read; the text says why, as the end of a sentence that begins with the file."""


def split(text: str) -> tuple[list[str], str]:
    """Return the lines of the head, and the body below it. Raises BadHead."""
    first, _, rest = text.removeprefix("\ufeff").replace("\r\n", "\n").partition("\n")
    if first.rstrip() != "---":
        raise BadHead("does not begin with a head between two lines of ---")
    end = re.search(r"^---[ \t]*$\n?", rest, re.MULTILINE)
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
        key = _KEY.match(line)
        if key is None:
            raise BadHead(f"has a head whose line {at + 1} is not `key: value`")
        below = at
        while below < len(lines) and _belongs(lines[below]):
            below += 1
        found[key[1]] = _value((key[2] or "").strip(), lines[at:below])
        at = below
    return found


def _belongs(line: str) -> bool:
    """Return whether a line goes on with the value of the key above it."""
    return not line.strip() or line[0] in " \t" or _ITEM.match(line) is not None


def _value(first: str, below: Sequence[str]) -> Value:
    block = _BLOCK.match(first)
    if block:
        return _block(below, folds=block[1] == ">")
    if not _COMMENT.sub("", first):
        items = [_ITEM.match(line.strip()) for line in below if line.strip()]
        if items and all(items):
            return [_scalar(item[1] or "") for item in items if item]
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
    return re.sub(r"\n+", lambda gap: "\n" * (len(gap[0]) - 1) or " ", joined).strip()


def _scalar(text: str) -> str:
    text = text.strip()
    if double := _DOUBLE.match(text):
        return _ESCAPE.sub(_unescaped, double[1])
    if single := _SINGLE.match(text):
        return single[1].replace("''", "'")
    return _COMMENT.sub("", text)


def _unescaped(found: "re.Match[str]") -> str:
    if code := found[1] or found[2] or found[3]:
        number = int(code, 16)
        return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else "\ufffd"
    return _ESCAPED.get(found[4], found[4])
