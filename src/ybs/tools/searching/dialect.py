r"""The one dialect of search patterns, read once and written for three engines: `rg`, and `re` on text and on bytes.

It is what Rust's `regex` and Python's `re` have in common, with `\<` and `\>`, lookaround, backreferences and
possessive repeats besides, which `rg` is not asked for. A line is the text between two `\n`; nothing matches
across lines. `.`, classes and their negations match characters of UTF-8 only, never a stray byte.
https://docs.rs/regex/latest/regex/#syntax, https://docs.python.org/3/library/re.html#regular-expression-syntax
"""

import re

from ybs.core.errors import ToolError
from ybs.tools.searching.pattern_class import CLASS_ESCAPES, CharacterClass
from ybs.tools.searching.pattern_piece import ANCHORS, Piece, joined, one_of

LONGEST_PATTERN = 5_000
_DEEPEST = 50  # groups in groups
_MOST_REPEATS = 1_000
_COUNT = re.compile(r"\{(\d+)(?:(,)(\d*))?\}|\{(),(\d+)\}")
_GROUP = re.compile(
    r"\?(?:P?<(?![=!])(\w+)>|P=(\w+)\)|([:>=!]|<=|<!)|#[^)]*\)|([a-zA-Z]*)(-[a-zA-Z]+)?([:)]))"
)
_CODE = re.compile(
    r"x([0-9A-Fa-f]{2})|x\{([0-9A-Fa-f]{1,6})\}|u([0-9A-Fa-f]{4})|u\{([0-9A-Fa-f]{1,6})\}|U([0-9A-Fa-f]{8})"
)
_CONTROLS = {"t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a", "e": "\x1b"}
_NEEDS_PYTHON = {"<": r"\b(?=\w)", ">": r"\b(?<=\w)"}
#: `^` behind something or `$` before something: `rg` does not find every empty line with these.
_INNER_ANCHOR = re.compile(r"[^(|:\[](?:\(\?[i-]*:)*\^|\$\)+[^)|]")
_HARMLESS = frozenset("imsu")  # a line is matched by itself, so that m and s change nothing


class Pattern:
    """A pattern in the words of each engine. `rg` is empty where only Python can do it."""

    def __init__(self, piece: Piece, *, needs_python: bool, is_wide: bool, folds: bool) -> None:
        self.text, self.data = piece.text, piece.data
        self.rg = "" if needs_python or _INNER_ANCHOR.search(piece.rust) else piece.rust
        #: Text of which every matching line holds one, in small letters where `folds`.
        self.seeds = piece.best_seeds(folds=folds)
        self.folds = folds
        self.is_wide = is_wide  # it names characters beyond ASCII
        self.is_literal = piece.exact is not None and not folds


def pattern_of(text: str, *, ignore_case: bool = False) -> Pattern:
    """Read a pattern. Raises ToolError, in words, for one that is outside the dialect."""
    if len(text) > LONGEST_PATTERN:
        raise ToolError(
            f"The pattern has {len(text):,} characters; {LONGEST_PATTERN:,} are possible"
        )
    parser = _Parser(text)
    parser.folds = parser.any_folds = ignore_case
    piece = parser.whole()
    if ignore_case:
        piece = piece.wrapped("(?i:", ")")
    pattern = Pattern(
        piece,
        needs_python=parser.needs_python or parser.is_wide,
        is_wide=parser.is_wide,
        folds=parser.any_folds,
    )
    try:
        re.compile(pattern.text)
        re.compile(pattern.data.encode())
    except (re.error, OverflowError, RecursionError) as error:
        raise parser.refusal(getattr(error, "msg", str(error))) from error
    return pattern


class _Parser:
    """Reads a pattern from left to right."""

    def __init__(self, text: str) -> None:
        self._text, self._at, self._depth = text, 0, 0
        self.folds = self.any_folds = self.needs_python = self.is_wide = False
        self._refers = bool(re.search(r"\\[1-9]|\(\?P=", text))

    def refusal(self, problem: str) -> ToolError:
        """Say what is wrong with the pattern."""
        return ToolError(
            f"The pattern {self._text!r} is not a regular expression here: {problem}. "
            "Characters such as ( [ { . * + ? stand for themselves behind a backslash."
        )

    def whole(self) -> Piece:
        """Read it to its end."""
        piece = self._choice()
        if self._at < len(self._text):
            raise self.refusal(f"a ) without its ( at character {self._at + 1}")
        return piece

    def _peek(self, length: int = 1) -> str:
        return self._text[self._at : self._at + length]

    def _choice(self) -> Piece:
        outside = self.folds
        branches: list[Piece] = []
        while True:
            carried = self.folds != outside  # by a flag within an earlier branch
            branch = self._sequence()
            branches.append(branch.wrapped(_flag(on=not outside), ")") if carried else branch)
            if self._peek() != "|":
                break
            self._at += 1
        self.folds = outside
        return one_of(branches)

    def _sequence(self) -> Piece:
        pieces: list[Piece] = []
        while (character := self._peek()) and character not in "|)":
            was = self.folds
            piece = self._atom()
            if piece is not None:
                pieces.append(self._repeated(piece))
            elif self.folds != was:
                pieces.append(self._sequence().wrapped(_flag(on=self.folds), ")"))
        return joined(pieces)

    def _atom(self) -> Piece | None:
        """Read one item; None for what is only a flag or a remark."""
        character = self._peek()
        self._at += 1
        if character == "\\":
            return self._escape()
        if character == "[":
            return self._class().piece()
        if character == "(":
            return self._group()
        if character in "*+?" or (character == "{" and _COUNT.match(self._text, self._at - 1)):
            raise self.refusal(f"nothing to repeat before the {character} at character {self._at}")
        return ANCHORS.get(character) or self._literal(character)

    def _literal(self, character: str) -> Piece:
        if character == "\n":
            raise self.refusal("a match lies within one line, so it holds no line end")
        if character == "\0":
            raise self.refusal("text holds no NUL")
        self.is_wide |= not character.isascii()
        return Piece.literal(character, folds=self.folds)

    def _escape(self) -> Piece:
        character = self._peek()
        if code := _CODE.match(self._text, self._at):
            return self._literal(self._coded(code))
        self._at += 1
        if character in CLASS_ESCAPES:
            return CharacterClass().with_escape(character).piece()
        if known := ANCHORS.get("\\" + character):
            return known
        if character in _NEEDS_PYTHON:
            self.needs_python = True
            return Piece(_NEEDS_PYTHON[character], is_anchor=True)
        if "1" <= character <= "9":
            return self._reference()
        return self._literal(self._plain(character))

    def _plain(self, character: str) -> str:
        """Return the character that an escape stands for."""
        if character in _CONTROLS:
            return _CONTROLS[character]
        if character == "n":
            raise self.refusal(
                r"a match lies within one line, so \n never matches (use context_lines to see more)"
            )
        if not character:
            raise self.refusal("it ends with a single backslash")
        if character.isalnum():
            hint = r"; letters are \w or [a-z]" if character in "pP" else ""
            raise self.refusal(rf"\{character} is not known{hint}")
        return character

    def _coded(self, code: re.Match[str]) -> str:
        self._at = code.end()
        number = int(next(group for group in code.groups() if group), 16)
        if number > 0x10FFFF or 0xD800 <= number < 0xE000:
            raise self.refusal(f"there is no character {number:x}")
        return chr(number)

    def _reference(self) -> Piece:
        start = self._at - 1
        while self._peek().isdigit():
            self._at += 1
        self.needs_python = True
        return Piece(f"(?:\\{self._text[start : self._at]})")

    def _class(self) -> CharacterClass:
        start = self._at
        found = CharacterClass(is_negated=self._peek() == "^")
        self._at += found.is_negated
        is_first = True
        while is_first or self._peek() != "]":
            if not self._peek():
                raise self.refusal(f"the [ at character {start} has no ]")
            is_first = False
            self._class_item(found)
        self._at += 1
        if found.is_empty:
            raise self.refusal(r"a match lies within one line, so [\n] never matches")
        self.is_wide |= not found.is_ascii
        return found

    def _class_item(self, found: CharacterClass) -> None:
        if self._peek(2) == "[:" and (end := self._text.find(":]", self._at)) > 0:
            name = self._text[self._at + 2 : end]
            if name.isalpha():
                if not found.add_named(name):
                    raise self.refusal(f"[:{name}:] is not known")
                self._at = end + 2
                return
        first = self._class_character(found)
        if self._peek() != "-" or self._peek(2) in ("-]", "-"):
            if first is not None:
                found.add(first, first)
            return
        self._at += 1
        last = self._class_character(found)
        if first is None or last is None or first > last:
            raise self.refusal("a range in [ ] that has no order")
        found.add(first, last)

    def _class_character(self, found: CharacterClass) -> str | None:
        character = self._peek()
        self._at += 1
        if character != "\\":
            return character
        if code := _CODE.match(self._text, self._at):
            return self._coded(code)
        character = self._peek()
        self._at += 1
        if character in CLASS_ESCAPES and character:
            found.with_escape(character)
            return None
        if character in ("n", "b"):
            return "\n" if character == "n" else "\b"
        return self._plain(character)

    def _group(self) -> Piece | None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self.refusal(f"more than {_DEEPEST} groups in groups")
        start = self._at
        try:
            if self._peek() != "?":
                return self._closed("(" if self._refers else "(?:", start)
            return self._special(start)
        finally:
            self._depth -= 1

    def _special(self, start: int) -> Piece | None:
        found = _GROUP.match(self._text, self._at)
        if found is None:
            raise self.refusal(f"a group that begins with ({self._peek(3)} is not known")
        self._at = found.end()
        name, reference, kind = found[1], found[2], found[3]
        if name:
            return self._closed(f"(?P<{name}>" if self._refers else "(?:", start)
        if reference or (kind and kind != ":"):
            self.needs_python = True
            return Piece(f"(?P={reference})") if reference else self._looked_around(kind, start)
        if kind:
            return self._closed("(?:", start)
        return None if found[6] is None else self._flags(found, start)

    def _looked_around(self, kind: str, start: int) -> Piece:
        piece = self._closed(f"(?{kind}", start)
        return Piece(piece.text, piece.data, seeds=piece.seeds if kind == ">" else ())

    def _flags(self, found: re.Match[str], start: int) -> Piece | None:
        on, off = found[4] or "", (found[5] or "-")[1:]
        if unknown := set(on + off) - _HARMLESS or ({"u"} & set(off)):
            raise self.refusal(f"the flag {min(unknown)} is not known; i is")
        was = self.folds
        if "i" in on + off:
            self.folds = "i" in on
        self.any_folds |= self.folds
        if found[6] == ")":
            return None
        piece = self._closed(_flag(on=self.folds), start)
        self.folds = was
        return piece

    def _closed(self, opening: str, start: int) -> Piece:
        piece = self._choice()
        if self._peek() != ")":
            raise self.refusal(f"the ( at character {start} has no )")
        self._at += 1
        return piece.wrapped(opening, ")")

    def _repeated(self, piece: Piece) -> Piece:
        least, most, sign = self._times()
        if not sign:
            return piece
        if piece.is_anchor:
            raise self.refusal(f"nothing to repeat before the {sign}")
        if self._peek() == "+":
            self.needs_python = True
        if (lazy := self._peek()) and lazy in "?+":
            sign += lazy
            self._at += 1
        if self._peek() and (self._peek() in "*+?" or _COUNT.match(self._text, self._at)):
            raise self.refusal(f"two repeats at character {self._at + 1}")
        return piece.repeated(sign, least=least, most=most)

    def _times(self) -> tuple[int, int | None, str]:
        """Read `*`, `+`, `?` or `{2,5}`; without one the sign is empty."""
        simple: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        sign = self._peek()
        if sign in simple:
            self._at += 1
            return (*simple[sign], sign)
        found = _COUNT.match(self._text, self._at)
        if found is None:
            return 1, 1, ""
        self._at = found.end()
        least = int(found[1] or 0)
        given = found[3] if found[2] else found[5] or found[1]
        most = int(given) if given else None
        if max(least, most or 0) > _MOST_REPEATS or (most is not None and most < least):
            raise self.refusal(f"{found[0]} repeats too often, or has no order")
        return least, most, f"{{{least},{'' if most is None else most}}}"


def _flag(*, on: bool) -> str:
    return "(?i:" if on else "(?-i:"
