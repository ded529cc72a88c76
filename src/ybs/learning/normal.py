"""Requests as words that can be compared: in lower case, without what varies, without the small words of any language."""

import re
from itertools import pairwise
from typing import Final

#: Only the beginning of a request says what it is about; the rest is often pasted.
_MOST_CHARS: Final = 400
_FENCED: Final = re.compile(r"```.*?(```|\Z)|^\s*>.*$", re.S | re.M)
_URL: Final = re.compile(r"\b\w+://\S+")
_VERSION: Final = re.compile(r"\bv?\d+(\.\d+)+\S*")
_PATH: Final = re.compile(r"(?<!\w)[\w.~-]*/[\w./~-]+|\b[\w-]+\.[a-z]{1,5}\b", re.I)
_NUMBER: Final = re.compile(r"#?\b\d+\b|\b[0-9a-f]{7,40}\b")
_WORD: Final = re.compile(r"[^\W\d_][\w'-]*")
#: Words that say nothing of the task, in the languages that are most used; rarity takes care of all others.
_SMALL_WORDS: Final = """
a an the of in on to for from by with and or is are was be it its this that these those my me i we you your our please can could would do does did so
then also again all any some new now up out into at as if need want have has what which there just only der die das den dem des ein eine einen einem
einer und oder ist sind war es ich wir du mein meine meinen bitte kann kannst noch mal auch alle für von mit zu zum zur im auf aus ins bei wie nur le
la les l un une de d et ou est sont il elle ce cet cette ces je tu nous mon ma mes s te plaît pour par avec sur dans qui que à au aux en el los las
una unos unas del y o son se lo mi mis por favor para con sin sobre al más
"""
_SMALL: Final = frozenset(_SMALL_WORDS.split())
#: Verbs that people use for the same thing.
_SAME: Final = {
    **dict.fromkeys(("repair", "solve", "resolve", "correct"), "fix"),
    **dict.fromkeys(("create", "make", "write", "generate", "build"), "add"),
    **dict.fromkeys(("upgrade", "bump", "refresh"), "update"),
    **dict.fromkeys(("execute", "start"), "run"),
    **dict.fromkeys(("summary", "summarize"), "summarise"),
}  # fmt: skip


def words_of(text: str) -> list[str]:
    """Return the words of a request that say something, each as its beginning; what varies (`<path>`, `<version>`, …) is left out."""
    text = _NUMBER.sub(
        " ", _VERSION.sub(" ", _URL.sub(" ", _FENCED.sub(" ", text[:4_000])[:_MOST_CHARS]))
    )
    text = _PATH.sub(_name, text)
    found = (str(_SAME.get(word, word)) for word in _WORD.findall(text.casefold()))
    return [_stem(word) for word in found if len(word) > 1 and word not in _SMALL]


def features(text: str) -> dict[str, float]:
    """Return a request as a vector: its words, their pairs, and their 4-grams, which forgive a misspelt word."""
    words = words_of(text)
    vector = dict.fromkeys(words, 1.0)
    for one, other in pairwise(words):
        vector[f"{one} {other}"] = 0.4
    for word in words:
        vector[f"_{word[:4]}"] = 0.5
        vector[f"_{word[-4:]}-"] = 0.5
    return vector


def is_word(feature: str) -> bool:
    """Say whether a feature is a word itself."""
    return feature[0] != "_" and " " not in feature


def _name(match: re.Match[str]) -> str:
    """Keep of a path only its last part's kind: files vary from one time to the next."""
    return (
        f" {match[0].rpartition('/')[2].rpartition('.')[0]} " if match[0].count("/") == 0 else " "
    )


def _stem(word: str) -> str:
    for end in ("ing", "ed", "es", "s", "en", "e"):
        if word.endswith(end) and len(word) - len(end) >= 4:
            return word.removesuffix(end)
    return word
