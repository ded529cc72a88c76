"""Long text cut in the middle: head and tail are kept, and the cut says what is missing."""

from ybs.core.cutting import from_word, up_to_word

_ROOM = 200  # characters kept free for the note


def cut(text: str, limit: int, hint: str = "") -> str:
    """Return the text within `limit` characters; `hint` says how to get the rest.

    The cut falls on line ends where there are any nearby.
    """
    if len(text) <= limit:
        return text
    room = max(limit - _ROOM - len(hint), 0)
    end = room // 2
    head = up_to_line(text, end)
    tail = from_line(text, len(text) - (room - end))
    if not head.endswith("\n") and text.startswith("\n", len(head)):
        head += "\n"  # the one before the note is the text's own
    missing = text[len(head) : len(text) - len(tail)]
    note = note_of(len(missing), missing.count("\n"), hint)
    above = "" if not head or head.endswith("\n") else "\n"
    return f"{head}{above}{note}\n{tail}"[:limit]


def note_of(characters: int, lines: int, hint: str = "") -> str:
    """Describe what was left out."""
    in_lines = f" ({lines:,} lines)" if lines > 1 else ""
    return f"[... {characters:,} characters{in_lines} left out{'. ' + hint if hint else ''} ...]"


def up_to_line(text: str, end: int | None = None) -> str:
    """Return the text up to a place without a last line that is cut, where enough is left, else without the last word."""
    length = len(text) if end is None else end
    place = text.rfind("\n", 0, length) + 1
    return text[:place] if place > length // 2 else up_to_word(text, end)


def from_line(text: str, start: int | None = None) -> str:
    """Return the text from a place on without a first line that is cut, where enough is left, else without the first word."""
    first = start or 0
    place = text.find("\n", first) + 1
    return text[place:] if 0 < place - first < (len(text) - first) // 2 else from_word(text, start)
