"""Long text cut in the middle: head and tail are kept, and the cut says what is missing."""

_ROOM = 200  # characters kept free for the note


def cut(text: str, limit: int, hint: str = "", *, head_share: float = 0.5) -> str:
    """Return the text within `limit` characters; `hint` says how to get the rest.

    The cut falls on line ends where there are any nearby.
    """
    if len(text) <= limit:
        return text
    room = max(limit - _ROOM - len(hint), 0)
    head = text[: int(room * head_share)]
    tail = text[len(text) - (room - len(head)) :]
    head = up_to_line(head)
    tail = from_line(tail)
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


def up_to_line(head: str) -> str:
    """Return the text without a last line that is cut, where enough is left."""
    end = head.rfind("\n") + 1
    return head[:end] if end > len(head) // 2 else head


def from_line(tail: str) -> str:
    """Return the text without a first line that is cut, where enough is left."""
    start = tail.find("\n") + 1
    return tail[start:] if 0 < start < len(tail) // 2 else tail
