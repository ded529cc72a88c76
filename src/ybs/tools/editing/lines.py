"""A file's lines made ready for search: where they begin, and which runs of them are alike."""

import re
from itertools import accumulate

_ALIKE = {
    "'": "\u2018\u2019\u201a\u201b\u2032\u02bc\u00b4\uff07",
    '"': "\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb\uff02",
    "-": "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\uff0d",
    " ": "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000",
}
#: One character for one, so that a place in the plain text is the same place in the text.
_ONE_FOR_ONE = {
    **{0xFF01 + step: chr(0x21 + step) for step in range(0x5E)},  # full-width forms
    **{ord(fancy): plain for plain, all_fancy in _ALIKE.items() for fancy in all_fancy},
}
_ALL = {
    **_ONE_FOR_ONE,
    0x2026: "...",
    **dict.fromkeys((0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF), ""),
}
_WORDLIKE = re.compile(r"[^\W_]")
_FEWEST_SIGNS = 6  # what whole lines must have to be found by anything but themselves
_FEWEST_LETTERS = 3
_ENOUGH_LETTERS = 8  # what a part of a line must have, or a line that counts as added


def plain(text: str) -> str:
    """Return the text in plain punctuation and composed letters; its length may change."""
    if text.isascii():
        return text
    from unicodedata import normalize  # only a text beyond ASCII needs it

    return normalize("NFC", text.translate(_ALL))


def plain_in_place(text: str) -> str:
    """Return the text in plain punctuation, every character where it was."""
    return text if text.isascii() else text.translate(_ONE_FOR_ONE)


def key_of(line: str) -> str:
    """Return a line without white space, its punctuation as in ASCII."""
    return "".join(plain(line).split())


def spaced(line: str) -> str:
    """Return the line in plain punctuation with single spaces: equal where all words are."""
    return " ".join(plain(line).split())


def indent_of(line: str) -> str:
    """Return the white space that a line begins with."""
    return line[: len(line) - len(line.lstrip())]


def says_something(text: str) -> bool:
    """Return whether a text has a letter or a digit."""
    return _WORDLIKE.search(text) is not None


def says_enough(text: str) -> bool:
    """Return whether a text has enough letters and digits to be recognised anywhere."""
    return letters(text) >= _ENOUGH_LETTERS


def is_recognisable(text: str) -> bool:
    """Return whether whole lines hold enough to be recognised in another shape."""
    return letters(text) >= _FEWEST_LETTERS and len("".join(text.split())) >= _FEWEST_SIGNS


def letters(text: str) -> int:
    """Count the letters and digits."""
    return sum(1 for _ in _WORDLIKE.finditer(text))


_MOST_KINDS = 0x10F000  # each kind of line becomes one character
_MOST_PLACES = 1000


class Lines:
    """The lines of a text. `solid` lists the numbers, from 0, of those that are not blank.

    Runs are looked for among the solid lines, by what they hold apart from white space and the looks
    of punctuation, so every place is found that looks like the wanted one.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.all = text.split("\n")
        self.starts = [0, *accumulate(len(line) + 1 for line in self.all)]
        self.solid = [number for number, line in enumerate(self.all) if line and not line.isspace()]
        self._kinds: dict[str, int] = {}
        kinds = self._kinds
        keys = plain(text).split("\n")
        self._coded = "".join(
            chr(kinds.setdefault("".join(keys[number].split()), len(kinds)) % _MOST_KINDS)
            for number in self.solid
        )

    def coded(self, lines: list[str]) -> list[str]:
        """Return a sign for every line, an empty one where the text has no such line."""
        kinds = (self._kinds.get(key_of(line)) for line in lines)
        return ["" if kind is None else chr(kind % _MOST_KINDS) for kind in kinds]

    def runs(self, lines: list[str]) -> list[int]:
        """List where in `solid` a run like these solid lines begins; runs may overlap."""
        signs = self.coded(lines)
        return self.coded_runs("".join(signs)) if signs and all(signs) else []

    def coded_runs(self, wanted: str) -> list[int]:
        """List where in `solid` these signs begin."""
        places: list[int] = []
        place = self._coded.find(wanted)
        while place >= 0 and len(places) < _MOST_PLACES:
            places.append(place)
            place = self._coded.find(wanted, place + 1)
        return places

    def sign(self, place: int) -> str:
        """Return the sign of the solid line at this place, an empty one past the ends."""
        return self._coded[place] if 0 <= place < len(self._coded) else ""

    def blanks_before(self, number: int) -> int:
        """Count the blank lines directly before a line."""
        count = 0
        while number > count and not self.all[number - count - 1].strip():
            count += 1
        return count

    def blanks_after(self, number: int) -> int:
        """Count the blank lines after a line; what follows the last line end does not count."""
        last = len(self.all) - 1 if not self.all[-1] else len(self.all)
        stop = number + 1
        while stop < last and not self.all[stop].strip():
            stop += 1
        return stop - number - 1
