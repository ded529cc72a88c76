"""A part of a search pattern, written for each engine, with the text that it surely needs."""

import re
from collections.abc import Sequence

STRAY = "\udc80-\udcff"  # bytes that are not UTF-8, as Python carries them in text
_MOST_SEEDS = 12
_SHORTEST_SEED = 2
_FOLDED_TO_OTHERS = re.compile("[^\0-\x7f]|[kKsS]")  # letters that signs beyond ASCII are folded to


def escaped(character: str) -> str:
    """Return the character so that `re` takes it as it is, within a set or without."""
    if character.isalnum() or not character.isascii():
        return character
    return (
        f"\\x{ord(character):02x}" if character < " " or character == "\x7f" else f"\\{character}"
    )


def rust_character(character: str) -> str:
    """Return the character so that Rust takes it as it is, within a set or without."""
    if character.isascii() and character.isalnum():
        return character
    return f"\\x{{{ord(character):x}}}"


class Piece:
    """One part. `exact` is its text where it can only match that; of `seeds` each match holds one."""

    __slots__ = ("data", "exact", "is_anchor", "rust", "seeds", "text")

    def __init__(
        self,
        text: str,
        data: str = "",
        rust: str = "",
        *,
        exact: str | None = None,
        seeds: tuple[str, ...] = (),
        is_anchor: bool = False,
    ) -> None:
        self.text, self.data, self.rust = text, data or text, rust or text
        self.exact, self.is_anchor = exact, is_anchor
        self.seeds = seeds or ((exact,) if exact else ())

    @classmethod
    def literal(cls, character: str, *, folds: bool = False) -> "Piece":
        """Return a piece for the character itself, be the file in UTF-8 or Latin-1."""
        text = escaped(character)
        if character.isascii():
            return cls(text, text, rust_character(character), exact=character)
        cases = {character, character.lower(), character.upper()} if folds else {character}
        strays = "".join(
            sorted(chr(0xDC00 + ord(one)) for one in cases if len(one) == 1 and one <= "\xff")
        )
        if strays:
            text = f"[{text}{strays}]"
        return cls(text, "(?!)", rust_character(character))

    def wrapped(self, opening: str, closing: str) -> "Piece":
        """Put a group around it."""
        texts = (f"{opening}{text}{closing}" for text in (self.text, self.data, self.rust))
        return Piece(*texts, exact=self.exact, seeds=self.seeds)

    def repeated(self, sign: str, *, least: int, most: int | None) -> "Piece":
        """Repeat it."""
        exact = self.exact if least == most == 1 else None
        texts = (f"{text}{sign}" for text in (_grouped(self.text), _grouped(self.data), self.rust))
        return Piece(*texts, exact=exact, seeds=self.seeds if least else ())

    def best_seeds(self, *, folds: bool) -> tuple[str, ...]:
        """Return the seeds as a search uses them: none where one of them would be too short."""
        seeds = self.seeds
        if folds:
            parts = (_FOLDED_TO_OTHERS.split(seed) for seed in seeds)
            seeds = tuple(max(part, key=len).lower() for part in parts)
        return seeds if seeds and min(map(len, seeds)) >= _SHORTEST_SEED else ()


def _grouped(text: str) -> str:
    """Keep a guard before a set together with it when both are repeated."""
    return f"(?:{text})" if text.startswith("(?!") else text


#: `$` stands before the end of a line, which may be `\r\n`.
_END = Piece(r"(?=\r?$)", r"(?=\r?$)", r"(?:\r??$)", is_anchor=True)
_BEGIN = Piece("^", is_anchor=True)
ANCHORS = {
    "^": _BEGIN,
    "$": _END,
    ".": Piece(f"[^\\n{STRAY}]", r"[^\n]", "."),
    r"\A": _BEGIN,
    r"\z": _END,
    r"\Z": _END,
    r"\b": Piece(r"\b", is_anchor=True),
    r"\B": Piece(r"\B", is_anchor=True),
    r"\N": Piece(f"[^\\n{STRAY}]", r"[^\n]", "."),
}


def joined(pieces: Sequence[Piece]) -> Piece:
    """Put pieces one after the other."""
    if len(pieces) == 1:
        return pieces[0]
    exacts = [piece.exact for piece in pieces]
    candidates = [piece.seeds for piece in pieces if piece.seeds]
    run = ""
    for piece in (*pieces, None):
        if piece is not None and piece.exact is not None:
            run += piece.exact
        elif piece is None or not piece.is_anchor:
            candidates += [(run,)] if run else []
            run = ""
    return Piece(
        "".join(piece.text for piece in pieces),
        "".join(piece.data for piece in pieces),
        "".join(piece.rust for piece in pieces),
        exact="".join(filter(None, exacts)) if pieces and None not in exacts else None,
        seeds=max(candidates, key=_worth, default=()),
    )


def one_of(pieces: Sequence[Piece]) -> Piece:
    """Put pieces beside each other as alternatives."""
    if len(pieces) == 1:
        return pieces[0]
    seeds = tuple(dict.fromkeys(seed for piece in pieces for seed in piece.seeds))
    has_all = all(piece.seeds for piece in pieces) and len(seeds) <= _MOST_SEEDS
    texts = (
        "|".join(getattr(piece, kind) for piece in pieces) for kind in ("text", "data", "rust")
    )
    alternation = Piece(*texts, seeds=seeds if has_all else ())
    return alternation.wrapped("(?:", ")")


def _worth(seeds: tuple[str, ...]) -> tuple[int, int]:
    return min(map(len, seeds)), -len(seeds)
