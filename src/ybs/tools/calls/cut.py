"""Long text cut in the middle: head and tail are kept, and the cut says what is missing.

No cut goes through a word: what is left of a password or token would not be known as one, and go unmasked.
"""

from ybs.core.lazy import lazy

_ROOM = 200  # characters kept free for the note
#: What is longer, such as data in base64, is no token or password.
LONGEST_WORD = 4_096
#: Scripts without spaces have no words here.
_WORD = lazy(r"[^\s\"'`,;<>(){}\[\]|\u2e80-\ud7ff\uff00-\uffef\U00020000-\U0003ffff]*")


def cut(text: str, limit: int, hint: str = "", *, head_share: float = 0.5) -> str:
    """Return the text within `limit` characters; `hint` says how to get the rest.

    The cut falls on line ends where there are any nearby.
    """
    if len(text) <= limit:
        return text
    room = max(limit - _ROOM - len(hint), 0)
    end = int(room * head_share)
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


def up_to_word(text: str, end: int | None = None) -> str:
    """Return the text up to a place without a word that is cut there. Where nothing is known of what follows, half stays."""
    if end is None:
        cut_off = _cut_word(text[: -LONGEST_WORD - 1 : -1], "")
        return text[: max(len(text) - cut_off, len(text) // 2)]
    return text[
        : end - _cut_word(text[:end][: -LONGEST_WORD - 1 : -1], text[end : end + LONGEST_WORD])
    ]


def from_word(text: str, start: int | None = None) -> str:
    """Return the text from a place on without a word that is cut there. Where nothing is known of what precedes, half stays."""
    if start is None:
        return text[min(_cut_word(text[:LONGEST_WORD], ""), len(text) // 2) :]
    before = text[:start][: -LONGEST_WORD - 1 : -1]
    return text[start + _cut_word(text[start : start + LONGEST_WORD], before) :]


def _cut_word(side: str, other: str) -> int:
    """Return how many characters beside a cut belong to a word that it goes through; both sides read away from the cut."""
    beside, beyond = _length(side), _length(other)
    is_cut = beyond > 0 or not other
    return beside if is_cut and beside + beyond < LONGEST_WORD else 0


def _length(text: str) -> int:
    """Return the length of the word that a text begins with."""
    found = _WORD().match(text, 0, LONGEST_WORD)
    return found.end() if found else 0


def first_words(text: str, limit: int) -> str:
    """Return the beginning of a text within `limit` characters."""
    return text if len(text) <= limit else up_to_word(text, limit)
