"""Words: what an identifier is made of, as stems that stand the same in a question and in the code."""

import re
from functools import lru_cache

#: Longer identifiers have parts, but no term of their own; much longer ones are data.
LONGEST, LONGEST_COMPOUND = 40, 100
#: A run of letters and digits at least this long may be a key.
_SHORTEST_KEY = 16

_PARTS = re.compile(r"[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*|[0-9]+")
_LETTERS = re.compile(r"[^\W\d_]+")
_CHANGES = re.compile(
    r"(?<=[0-9])(?=[A-Za-z])|(?<=[A-Za-z])(?=[0-9])|(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[a-z])"
)
_LONG_RUN = re.compile(r"[0-9A-Za-z]{16,}")
_DIGITS = re.compile(r"[0-9]+")
_KEY_START = re.compile(r"AKIA|ASIA|AIza|eyJ")
_HEX = re.compile(r"[0-9a-f]+|[0-9A-F]+")
#: Scripts that are written without spaces begin here.
_FIRST_IDEOGRAPH = "\u2e80"
_VOWEL = re.compile(r"[aeiouy]")
_STOP = frozenset(
    """
    a an and are as at be been but by can could did do does for from had has have how i if in into is it its may me
    my no not of on or our so than that the their them then there these they this those to too us was we were
    what when where which who why will with would you your
    self def end elif else return none null nil true false const let var func fn int str
    """.split()  # noqa: SIM905 - a list would be as long as it is wide
)


def stems_of(identifier: str) -> tuple[str, ...]:
    """Return the stems of an identifier or a word: its parts without stop words, then itself in small letters.

    The whole beside the parts (`read_file`) makes about a third more postings.
    Nothing comes back for what looks like a key or is too long to be a word.
    """
    if len(identifier) > LONGEST_COMPOUND or looks_like_key(identifier):
        return ()
    is_ascii = identifier.isascii()
    parts = (_PARTS if is_ascii else _LETTERS).findall(identifier)
    stems: list[str] = []
    for part in parts:
        low = part.lower()
        if len(low) > LONGEST or low in _STOP or low.isdigit():
            continue
        if not is_ascii and low[0] >= _FIRST_IDEOGRAPH:
            stems += _pairs(low)
        elif len(low) > 1:
            stems.append(stem(low))
            if low[-1] <= "9" and len(letters := low.rstrip("0123456789")) > 2:
                stems.append(stem(letters))
    if len(parts) > 1 and stems and len(identifier) <= LONGEST:
        stems.append(identifier.strip("_").lower())
    return tuple(dict.fromkeys(stems))


def _pairs(run: str) -> list[str]:
    """Return the pairs of signs in a run of a script that puts no spaces between words."""
    return [run[at : at + 2] for at in range(max(1, len(run) - 1))]


def looks_like_key(word: str) -> bool:
    """Return whether a word looks like a key or a hash: long, and letters and digits in no order."""
    return len(word) >= _SHORTEST_KEY and any(map(_is_key, word.split("_")))


def names_key(path: str) -> bool:
    """Return whether a word in a path looks like a key or a hash. A number may be a time."""
    return any(_is_key(run) and not run.isdigit() for run in _LONG_RUN.findall(path))


def _is_key(run: str) -> bool:
    size = len(run)
    if size < _SHORTEST_KEY:
        return False
    digits = _DIGITS.findall(run)
    if digits and (_HEX.fullmatch(run) or _KEY_START.match(run)):
        return True
    return len(_CHANGES.findall(run)) * 2 >= size or (len(digits) > 2 and len(digits) * 6 >= size)


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Cut the endings off an English word in small letters: `parsers`, `parsing` and `parsed` become `pars`."""
    if len(word) < 4 or not word.isascii():
        return word
    word = _singular(word)
    for ending, least in _ENDINGS:
        rest = word[: -len(ending)]
        if word.endswith(ending) and len(rest) >= least and _VOWEL.search(rest):
            word = rest
            if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "ls":
                word = word[:-1]
            break
    if len(word) > 3 and word[-1] == "e":
        return word[:-1]
    return word[:-1] + "i" if len(word) > 3 and word[-1] == "y" else word


#: Endings and how many letters must stay in front; the first that fits is cut.
_ENDINGS = (
    ("izations", 3), ("ization", 3), ("ations", 4), ("ation", 4), ("ators", 4), ("ator", 4), ("ating", 4),
    ("ated", 4), ("ate", 4), ("ingly", 3), ("ing", 3), ("ed", 3), ("ers", 4), ("er", 4), ("ors", 4), ("or", 4),
    ("ions", 4), ("ion", 4), ("ments", 4), ("ment", 4), ("ies", 3), ("izes", 3), ("ize", 3), ("able", 4),
)  # fmt: skip


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    return word[:-1] if word[-1] == "s" and word[-2] not in "suia" else word
