"""Signs for the model in place of characters that nobody sees: `<U+202E>`, `<U+E0041 and 40 more>`.

The model reads what is there and cannot be told anything in secret: of a long run only the first character is
named. A text that it sends back for a file gets the characters again that stand in this file.
"""

import re
from typing import Any

from ybs.security.unicode import has_suspects, hidden_runs, replace_hidden, signs_of

#: Control characters get a sign as well, but for tab, newline, form feed and carriage return.
_CONTROLS = "[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f]"
_SIGN = r"<U\+[0-9A-F]{4,6}(?: and \d+ more)?>"


def marked(text: str) -> tuple[str, int]:
    """Return the text with signs in place of hidden characters, and how many those are."""
    if not has_suspects(text):
        return text, 0
    count = 0

    def sign(run: str) -> str:
        nonlocal count
        count += len(run)
        return "".join(piece for piece, _ in signs_of(run))

    return replace_hidden(text, sign, _CONTROLS), count


def unmarked(text: str, original: str) -> str:
    """Return a text for a file with the hidden characters that its signs stand for.

    `original` is the file's text. A sign stays as it is if the file has these very letters, or if more than
    one run of the file, or none, has this sign.
    """
    if "<U+" not in text or not has_suspects(original):
        return text
    known: dict[str, set[str]] = {}
    for run in hidden_runs(original, _CONTROLS):
        for name, characters in signs_of(run):
            known.setdefault(name, set()).add(characters)

    def characters_of(found: re.Match[str]) -> str:
        meant = known.get(found[0], ())
        return next(iter(meant)) if len(meant) == 1 and found[0] not in original else found[0]

    return re.sub(_SIGN, characters_of, text)


def unmarked_edit(old: str, new: str, original: str) -> tuple[str, str]:
    """Return both texts of an edit as `unmarked` does, unless the old one is in the file as it stands."""
    if "<U+" not in old or old in original:
        return old, new
    return unmarked(old, original), unmarked(new, original)


def marked_data(value: Any) -> tuple[Any, int]:
    """Do what `marked` does in every text of plain data, names of members too."""
    match value:
        case str():
            return marked(value)
        case list():
            items = [marked_data(item) for item in value]  # pyright: ignore[reportUnknownVariableType] - plain data
            return [item for item, _ in items], sum(count for _, count in items)
        case dict():
            pairs = [(marked(str(name)), marked_data(item)) for name, item in value.items()]  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType] - plain data
            total = sum(count + more for (_, count), (_, more) in pairs)
            return {name: item for (name, _), (item, _) in pairs}, total
        case _:
            return value, 0


def note_of(count: int) -> str:
    """Return a text that says that there are signs; nothing where there are none."""
    if not count:
        return ""
    what = "1 invisible character is" if count == 1 else f"{count:,} invisible characters are"
    return f"{what} shown as a sign such as <U+202E>"
