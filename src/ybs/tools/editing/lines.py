"""A file's lines made ready for search: where they begin, and which runs of them are alike."""

from itertools import accumulate

from ybs.tools.editing.spelling import key_of, plain

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
