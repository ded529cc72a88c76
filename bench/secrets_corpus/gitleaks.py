"""The test vectors of gitleaks, read at run time from a copy of its repository; none is kept here.

Its rules are Go sources with lists of texts that a rule must and must not find. The expressions in them are few
(texts, `+`, Sprintf, functions that draw), so a small reader does.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from subprocess import run
from typing import NamedTuple

from secrets_corpus.drawing import draw

RULES = "cmd/generate/config/rules"
_TOKEN = re.compile(
    r"\s+|//[^\n]*|/\*.*?\*/|`[^`]*`|\"(?:\\.|[^\"\\])*\"|[\w.]+|:=|\.\.\.|[-+{}()\[\],:=*&<>!|;'~^%?@#$\\/]",
    re.DOTALL,
)
_FRAMES = re.compile(r'^\t\t"[^"]*":\s*(`[^`]*`|"(?:\\.|[^"\\])*"),', re.MULTILINE)
_SIZES = {"Numeric": "[0-9]", "Hex": "[a-f0-9]", "AlphaNumeric": "[a-z0-9]", "AlphaNumericExtendedShort": "[a-z0-9_-]",
          "AlphaNumericExtended": r"[a-z0-9=_\-]", "AlphaNumericExtendedLong": r"[a-z0-9/=_+\-]"}  # fmt: skip


class Vector(NamedTuple):
    """A text of a rule's test: whether it holds a secret."""

    rule: str
    text: str
    is_secret: bool


class Unreadable(Exception):
    """An expression that this reader does not know."""


def sources(repository: Path) -> dict[str, str]:
    """Return the Go files by name, from a work tree or from a bare repository."""
    if (repository / RULES).is_dir():
        texts = {p.name: p.read_text("utf-8") for p in sorted((repository / RULES).glob("*.go"))}
        return texts | {
            "generate": (repository / "cmd/generate/config/utils/generate.go").read_text("utf-8")
        }
    listed = _git(repository, "ls-tree", "--name-only", "HEAD", f"{RULES}/").splitlines()
    texts = {
        name.rpartition("/")[2]: _git(repository, "show", f"HEAD:{name}")
        for name in listed
        if name.endswith(".go")
    }
    return texts | {
        "generate": _git(repository, "show", "HEAD:cmd/generate/config/utils/generate.go")
    }


def _git(repository: Path, *arguments: str) -> str:
    return run(
        ["git", "-C", str(repository), *arguments], capture_output=True, check=True
    ).stdout.decode()


def vectors(repository: Path, random: Random) -> Iterator[Vector]:
    """Yield every vector that can be read, in the order of the files."""
    texts = sources(repository)
    frames = [_literal(text) for text in _FRAMES.findall(texts.pop("generate"))]
    for name, text in texts.items():
        if name in ("stopwords.go", "config.tmpl"):
            continue
        for function in re.split(r"^func ", text, flags=re.MULTILINE)[1:]:
            yield from _of_rule(function, frames, random)


def _of_rule(function: str, frames: list[str], random: Random) -> Iterator[Vector]:
    named = re.search(r'RuleID:\s*"([^"]+)"', function)
    if not named or ("// validate" not in function and "utils.Validate" not in function):
        return
    reader = Reader(function, frames, random)
    for is_secret, names in ((True, ("tps",)), (False, ("fps",))):
        for variable in names:
            for text in reader.list_of(variable):
                yield Vector(named[1], text, is_secret)


class Reader:
    """Reads the lists of one function."""

    def __init__(self, function: str, frames: list[str], random: Random) -> None:
        self.function, self.frames, self.random = function, frames, random
        self.tokens: list[str] = []
        self.place = 0

    def list_of(self, variable: str) -> Iterator[str]:
        """Yield the texts that are put into the variable."""
        for found in re.finditer(rf"\b{variable} :?= ", self.function):
            self.tokens = [
                t
                for t in _TOKEN.findall(self.function[found.end() :])
                if not t.isspace() and not t.startswith(("//", "/*"))
            ]
            self.place = 0
            try:
                yield from self._list(variable)
            except (Unreadable, IndexError):
                continue

    def _take(self, *expected: str) -> str:
        token = self.tokens[self.place]
        if expected and token not in expected:
            raise Unreadable(token)
        self.place += 1
        return token

    def _list(self, variable: str) -> Iterator[str]:
        token = self._take()
        if token == "append":
            self._take("(")
            first = self._take()
            if first != variable:
                self.place -= 1
                yield from self._list(variable)
            yield from self._items(")")
        elif token == "utils.GenerateSampleSecrets":
            self._take("(")
            identifier = self._text()
            self._take(",")
            secret = self._text()
            self._take(")")
            yield from (framed(frame, identifier, secret) for frame in self.frames)
            if self.place < len(self.tokens) and self.tokens[self.place] == "...":
                self._take()
        elif token == "[":
            self._take("]"), self._take("string"), self._take("{")
            yield from self._items("}")
        elif token == "map":
            (
                self._take("["),
                self._take("string"),
                self._take("]"),
                self._take("string"),
                self._take("{"),
            )
            yield from self._items("}")
        else:
            raise Unreadable(token)

    def _items(self, closing: str) -> Iterator[str]:
        while self.tokens[self.place] != closing:
            if self.tokens[self.place] == ",":
                self.place += 1
                continue
            if self.tokens[self.place] in ("utils.GenerateSampleSecrets", "["):
                yield from self._list("")
                continue
            text = self._text()
            if self.tokens[self.place] == ":":  # a map of names of files
                self.place += 1
                text = self._text()
            yield text
        self.place += 1

    def _text(self) -> str:
        text = self._term()
        while self.tokens[self.place] == "+":
            self.place += 1
            text += self._term()
        return text

    def _term(self) -> str:
        token = self._take()
        if token[0] in '`"':
            return _literal(token)
        readers: dict[str, Callable[[], str]] = {
            "secrets.NewSecret": self._drawn, "newPlausibleSecret": self._plausible, "fmt.Sprintf": self._formatted,
            "utils.GenerateSampleSecret": self._sample, "utils.Hex8_4_4_4_12": self._uuid, "strings.ToUpper": self._upper,
        }  # fmt: skip
        if token in readers:
            self._take("(")
            return readers[token]()
        if token.startswith("utils.") and token[6:] in _SIZES:
            self._take("(")
            size = self._text()
            self._take(")")
            return f"{_SIZES[token[6:]]}{{{size}}}"
        return self.variable(token)

    def _drawn(self) -> str:
        pattern = self._text()
        self._take(")")
        return draw(pattern, self.random)

    def _plausible(self) -> str:
        pattern = self._text()
        self._take(")")
        while not re.search("[1-9]", text := draw(pattern, self.random)):
            pass
        return text

    def _upper(self) -> str:
        text = self._text()
        self._take(")")
        return text.upper()

    def _uuid(self) -> str:
        self._take(")")
        return "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"

    def _sample(self) -> str:
        identifier = self._text()
        self._take(",")
        secret = self._text()
        self._take(")")
        return f'{identifier}_api_token = "{secret}"'

    def _formatted(self) -> str:
        pieces = self._text().split("%s")
        text = pieces[0]
        for piece in pieces[1:]:
            self._take(",")
            text += self._text() + piece
        while self.tokens[self.place] == ",":
            self.place += 1
        self._take(")")
        return text

    def variable(self, name: str) -> str:
        """Return the value of a variable. Raises Unreadable."""
        found = re.search(rf"\b{re.escape(name)} :?= ", self.function)
        if not found:
            raise Unreadable(name)
        inner = Reader(self.function, self.frames, self.random)
        inner.tokens = [
            t
            for t in _TOKEN.findall(self.function[found.end() :])
            if not t.isspace() and not t.startswith("//")
        ]
        return inner._text()


def framed(frame: str, identifier: str, secret: str) -> str:
    """Put a secret into a frame, as it stands in files of one format."""
    return (
        frame.replace("{i}", identifier).replace("{I}", identifier.upper()).replace("{s}", secret)
    )


def _literal(token: str) -> str:
    if token[0] == "`":
        return token[1:-1]
    return re.sub(
        r"\\(.)", lambda m: {"n": "\n", "t": "\t", "r": "\r"}.get(m[1], m[1]), token[1:-1]
    )
