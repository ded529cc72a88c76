"""Long text cut in the middle: head and tail are kept, and the cut says what is missing.

No cut goes through a word: what is left of a password or token would not be known as one, and go unmasked.
"""

from ybs.core.lazy import lazy

_ROOM = 200  # characters kept free for the note
_LONGEST_WORD = 300  # of what is longer, such as data in base64, no more than that is left out
_WORD = r"[^\s\"'`,;<>(){}\[\]|]*"
_FIRST_WORD, _LAST_WORD = lazy(r"\A" + _WORD), lazy(_WORD + r"\Z")


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
    """Return the text without a last line that is cut, where enough is left, else without the last word."""
    end = head.rfind("\n") + 1
    return head[:end] if end > len(head) // 2 else up_to_word(head)


def from_line(tail: str) -> str:
    """Return the text without a first line that is cut, where enough is left, else without the first word."""
    start = tail.find("\n") + 1
    return tail[start:] if 0 < start < len(tail) // 2 else from_word(tail)


def up_to_word(head: str) -> str:
    """Return the text without its last word, which may be cut; at least half of the text stays."""
    place = max(len(head) - _LONGEST_WORD, len(head) // 2)
    return head[:place] + _LAST_WORD().sub("", head[place:], count=1)


def from_word(tail: str) -> str:
    """Return the text without its first word, which may be cut; at least half of the text stays."""
    place = min(_LONGEST_WORD, len(tail) // 2)
    return _FIRST_WORD().sub("", tail[:place], count=1) + tail[place:]


def first_words(text: str, limit: int) -> str:
    """Return the beginning of a text within `limit` characters."""
    return text if len(text) <= limit else up_to_word(text[:limit])
