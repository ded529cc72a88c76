r"""A set of characters in a search pattern, such as `[^a-z\s]`, written for each engine."""

from ybs.tools.searching.pattern_piece import STRAY, Piece, escaped, rust_character

#: White space as Unicode says and Rust reads it, without the line end.
_SPACES = " \\t\\r\\f\\v"
_WIDE_SPACES = "\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
#: For each escape within a set: in text, in bytes, in Rust.
CLASS_ESCAPES = {
    "d": (r"\d", r"\d", r"\d"),
    "D": (r"\D", r"\D", r"\D"),
    "w": (r"\w", r"\w", r"\p{L}\p{N}_"),
    "W": (r"\W", r"\W", r"[^\p{L}\p{N}_]"),
    "s": (_SPACES + _WIDE_SPACES, _SPACES, r"\s"),
    "S": (r"\S\x1c-\x1f", r"\S", r"\S"),  # Python alone takes these four for space
    "h": (r" \t", r" \t", r" \t"),
}
_WIDE = frozenset("DWS")  # they match nearly everything
#: https://pubs.opengroup.org/onlinepubs/9799919799/basedefs/V1_chap09.html#tag_09_03_05
_NAMED = {
    "alpha": "azAZ",
    "digit": "09",
    "alnum": "azAZ09",
    "upper": "AZ",
    "lower": "az",
    "xdigit": "09AFaf",
    "word": "azAZ09__",
    "space": "\t\t\v\r  ",
    "blank": "  \t\t",
    "punct": "!/:@[`{~",
    "graph": "!~",
    "print": " ~",
    "cntrl": "\x01\t\v\x1f\x7f\x7f",
    "ascii": "\x01\t\v\x7f",
}


class CharacterClass:
    """The set while it is read. Line ends are dropped from it: a line holds none."""

    def __init__(self, *, is_negated: bool = False) -> None:
        self.is_negated = is_negated
        self._ranges: list[tuple[str, str]] = []
        self._escapes: list[str] = []
        self._has_line_end = False

    @property
    def is_ascii(self) -> bool:
        """Whether no character beyond ASCII is named."""
        return all(last.isascii() for _, last in self._ranges)

    @property
    def is_empty(self) -> bool:
        """Whether nothing can match."""
        return not self.is_negated and not self._ranges and not self._escapes

    def with_escape(self, letter: str) -> "CharacterClass":
        r"""Add what `\letter` stands for."""
        self._escapes.append(letter)
        return self

    def add(self, first: str, last: str) -> None:
        """Add a range."""
        if first == last == "\n":
            return
        self._ranges.append((first, last))

    def add_named(self, name: str) -> bool:
        """Add what `[:name:]` stands for; return whether there is such a one."""
        bounds = _NAMED.get(name, "")
        self._ranges += zip(bounds[::2], bounds[1::2], strict=True)
        return bool(bounds)

    def piece(self) -> Piece:
        """Write it for each engine."""
        return Piece(self._text(), self._data(), self._rust(), exact=self._only())

    def _only(self) -> str | None:
        is_one = len(self._ranges) == 1 and not self._escapes and not self.is_negated
        first, last = self._ranges[0] if is_one else ("", "-")
        return first if first == last and first.isascii() else None

    def _text(self) -> str:
        body = "".join(CLASS_ESCAPES[letter][0] for letter in self._escapes)
        body += "".join(_range(first, last) + _strays(first, last) for first, last in self._ranges)
        if self.is_negated:
            return f"[^{body}\\n{STRAY}]"
        return f"{self._guard(STRAY)}[{body}]"

    def _data(self) -> str:
        body = "".join(CLASS_ESCAPES[letter][1] for letter in self._escapes)
        body += "".join(
            _range(first, min(last, "\x7f")) for first, last in self._ranges if first.isascii()
        )
        if self.is_negated:
            return f"[^{body}\\n]"
        return f"{self._guard('')}[{body}]" if body else "(?!)"

    def _guard(self, stray: str) -> str:
        """Keep line ends and stray bytes out of a set that is not negated but holds negations."""
        if _WIDE.intersection(self._escapes):
            return f"(?![\\n{stray}])"
        return r"(?!\n)" if any(first < "\n" < last for first, last in self._ranges) else ""

    def _rust(self) -> str:
        body = "".join(CLASS_ESCAPES[letter][2] for letter in self._escapes)
        body += "".join(
            f"{rust_character(first)}-{rust_character(last)}" for first, last in self._ranges
        )
        if self.is_negated:
            return f"[^{body}\\n]"
        return f"[{body}]"


def _range(first: str, last: str) -> str:
    return escaped(first) if first == last else f"{escaped(first)}-{escaped(last)}"


def _strays(first: str, last: str) -> str:
    """Return the bytes that stand for these characters in a file in Latin-1."""
    low, high = max(ord(first), 0x80), min(ord(last), 0xFF)
    return f"{chr(0xDC00 + low)}-{chr(0xDC00 + high)}" if low <= high else ""
