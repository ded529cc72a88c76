"""The names of sessions: which may be one, and which session a word means."""

from collections.abc import Sequence
from typing import Final

from ybs.core.errors import YbsError
from ybs.core.remedies import Remedy
from ybs.security.unicode import has_suspects
from ybs.transcripts.saved import SUFFIX, Saved

PREFIX: Final = "session-"
_LIST: Final = Remedy("list_sessions")
_LONGEST: Final = 200


def checked(name: str) -> str:
    """Return the name of a session, without its file's ending, if it is one. Raises YbsError."""
    name = name.strip().removesuffix(SUFFIX)
    is_plain = "/" not in name and "\n" not in name and "\t" not in name and not has_suspects(name)
    if not name or name[0] in ".-" or not is_plain or len(name.encode()) > _LONGEST:
        raise YbsError(
            f"{name!r} cannot be the name of a session; use letters, digits, - and _ only"
        )
    return name


def is_number(word: str) -> bool:
    """Return whether a word is a number of the list."""
    return word.isascii() and word.isdecimal() and len(word) < 5


def found(word: str, sessions: Sequence[Saved]) -> Saved:
    """Return the session that a number of the list, a title or a unique beginning means. Raises YbsError."""
    if is_number(word):
        return _numbered(int(word), sessions)
    meant = [each for each in sessions if each.title.casefold() == word.casefold()]
    meant = meant or [each for each in sessions if _begins_with(each, word)]
    if word and len(meant) == 1:
        return meant[0]
    if word and meant:
        raise YbsError(_ambiguous(word, meant))
    raise _not_found(word, sessions)


def _numbered(number: int, sessions: Sequence[Saved]) -> Saved:
    if not 0 < number <= len(sessions):
        raise YbsError(
            f"there is no session number {number}; the list has {len(sessions)}", remedies=(_LIST,)
        )
    return sessions[number - 1]


def _begins_with(saved: Saved, word: str) -> bool:
    word = word.casefold()
    texts = (saved.name, saved.name.removeprefix(PREFIX), saved.title)
    return any(text.casefold().startswith(word) for text in texts)


def _ambiguous(word: str, meant: Sequence[Saved]) -> str:
    names = ", ".join(each.name for each in meant[:5])
    return f"{len(meant)} sessions match {word!r}: {names}{', …' if len(meant) > 5 else ''}"


def _not_found(word: str, sessions: Sequence[Saved]) -> YbsError:
    from difflib import get_close_matches  # it is slow to load

    names = {text: each.name for each in sessions for text in (each.title, each.name) if text}
    near = dict.fromkeys(names[text] for text in get_close_matches(word, names, 3, 0.5))
    what = f"there is no session {word!r}"
    if near:
        return YbsError(f"{what}; similar names: {', '.join(near)}")
    return YbsError(what, remedies=(_LIST,))
