"""`.gitignore` files: what git would leave out (https://git-scm.com/docs/gitignore).

Git compares bytes, so rules and names beyond ASCII are text of one character for each byte here.
"""

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from ybs.core.errors import ToolError
from ybs.core.lazy import lazy
from ybs.security.paths.opening import held
from ybs.tools.reading.files import read_bytes

MOST_STARS = 3  # in one part of a path: matching takes (length of the name) to their power
STARS = lazy(r"(?<!\\)\*{2,}")
_HIGHEST = 30  # folders above the project that are looked at for the repository's top
_PLAIN = lazy(r"[^*?\[\]\\/]+")
_SUFFIX = lazy(r"\*([^*?\[\]\\/]+)")
_MARK = "\ufeff".encode().decode("latin-1")
_TOKEN = lazy(
    r"(?P<deep>(?:^|(?<=/))\*\*(?:/|$))|(?P<group>\[[!^]?\]?(?:\[:[a-z]+:\]|\\.|[^\]\\])*\])|\\(?P<literal>.)|(?P<other>.)",
    re.DOTALL,
)
#: Within [ ]: a named class, or a character or range, each of which may stand behind a backslash.
_ITEM = lazy(r"\[:([a-z]+):\]|\\?(.)(?:-\\?(.))?", re.DOTALL)
_NAMES = {
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "alnum": "a-zA-Z0-9",
    "upper": "A-Z",
    "lower": "a-z",
    "space": " \\t-\\r",
    "blank": " \\t",
    "xdigit": "0-9a-fA-F",
    "punct": "!-.:-@\\[-`{-~",
}


class _Rule:
    """One line of a file."""

    def __init__(self, line: str) -> None:
        self.is_negated = line.startswith("!")
        line = line[self.is_negated :]
        self.is_for_folders = line.endswith("/")
        line = line.removesuffix("/")
        self.is_anchored = "/" in line
        self.glob = line.removeprefix("/")
        self.pattern = ("" if self.is_anchored else "(?:.*/)?") + _translated(self.glob)
        self.fits = re.compile(self.pattern, re.DOTALL).fullmatch


class _Matcher:
    """The rules of a file that are there for files, or for folders."""

    def __init__(self, rules: Sequence[_Rule]) -> None:
        self._rules = tuple(reversed(rules))
        self._has_order = any(rule.is_negated for rule in rules)
        names: set[str] = set()
        suffixes: list[str] = []
        rest: list[str] = []
        for rule in rules:
            suffix = _SUFFIX().fullmatch(rule.glob)
            if not rule.is_anchored and _PLAIN().fullmatch(rule.glob):
                names.add(rule.glob)
            elif not rule.is_anchored and suffix:
                suffixes.append(suffix[1])
            else:
                rest.append(rule.pattern)
        self._names, self._suffixes = frozenset(names), tuple(suffixes)
        self._rest = re.compile("|".join(rest), re.DOTALL).fullmatch if rest else None

    def verdict(self, prefix: str, name: str) -> bool | None:
        """Return whether the path is left out; None where no rule says anything."""
        if not (name in self._names or name.endswith(self._suffixes)) and (
            self._rest is None or not self._rest(prefix + name)
        ):
            return None
        if not self._has_order:
            return True
        path = prefix + name
        return next((not rule.is_negated for rule in self._rules if rule.fits(path)), None)


#: The folder of a file, what lies between it and the folder that its rules were moved to, and its rules for files and for folders.
_Layer = tuple[str, str, _Matcher, _Matcher]


class Ignore:
    """The rules of a folder and those above it. The nearest file that says something about a path wins."""

    def __init__(self, layers: "tuple[_Layer, ...]" = ()) -> None:
        self._layers = layers

    @property
    def is_empty(self) -> bool:
        """Whether there is no rule at all, here or above."""
        return not self._layers

    @property
    def folders(self) -> list[str]:
        """The folders whose files the rules stand in, the nearest first, each with a slash at its end."""
        return [folder for folder, *_ in self._layers]

    def within(self, folder: str) -> "Ignore":
        """Return these rules and the ones in the folder's own file, which come first."""
        rules = _rules_of(folder)
        if not rules:
            return self
        files = _Matcher([rule for rule in rules if not rule.is_for_folders])
        return Ignore(((f"{folder.rstrip('/')}/", "", files, _Matcher(rules)), *self._layers))

    def moved(self, folder: Path, copy: Path) -> "Ignore":
        """Return these rules, which stand above a folder, for a copy of that elsewhere."""
        place, here = f"{copy}/", f"{folder}/"
        return Ignore(
            tuple((place, here[len(each[0]) :], each[2], each[3]) for each in self._layers)
        )

    def kept(self, names: Sequence[str], folder: str, *, are_folders: bool) -> list[str]:
        """Return the names in the folder that are not ignored; folders above are not looked at."""
        here = f"{folder.rstrip('/')}/"
        verdicts = [
            ((all_rules if are_folders else files).verdict, below + here[len(layer) :])
            for layer, below, files, all_rules in self._layers
        ]
        if not "".join((here, *(prefix for _, prefix in verdicts), *names)).isascii():
            verdicts = [(verdict, _bytewise(prefix)) for verdict, prefix in verdicts]
            return [name for name in names if not _is_out(verdicts, _bytewise(name))]
        if len(verdicts) == 1:
            verdict, prefix = verdicts[0]
            return [name for name in names if not verdict(prefix, name)]
        return [name for name in names if not _is_out(verdicts, name)]


def _is_out(verdicts: Sequence[tuple[Callable[[str, str], bool | None], str]], name: str) -> bool:
    for verdict, prefix in verdicts:
        if (answer := verdict(prefix, name)) is not None:
            return answer
    return False


def _bytewise(name: str) -> str:
    return os.fsencode(name).decode("latin-1")


def ignore_above(folder: Path) -> Ignore:
    """Return the rules of the folders above, up to the top of the repository that `folder` lies in."""
    parents: list[Path] = []
    here = folder
    while not (here / ".git").exists():
        here = here.parent
        if here in parents[-1:] or len(parents) > _HIGHEST:
            return Ignore()
        parents.append(here)
    rules = Ignore()
    for parent in reversed(parents):
        rules = rules.within(str(parent))
    return rules


def rules_at(folder: Path, start: Path, above: Ignore | None = None) -> Ignore:
    """Return the rules from above that hold in `start`.

    `folder` is the project's, and `above` stands in for the rules above it; a repository within it has only its own rules; a start that is itself left out, as the person named it, has none from above.
    """
    top = folder if start.is_relative_to(folder) else start
    rules = ignore_above(top) if above is None else above
    here = top
    for part in start.relative_to(top).parts:
        if (here / ".git").exists():
            rules = Ignore()
        rules = rules.within(str(here))
        if not rules.kept([part], str(here), are_folders=True):
            return Ignore()
        here /= part
    return rules


def first_ignored(top: Path, folder: Path) -> Path | None:
    """Return the first folder on the way from `top`, a repository's, down to `folder` that git ignores."""
    rules, here = Ignore(), top
    for part in folder.relative_to(top).parts:
        rules = rules.within(str(here))
        if not rules.kept([part], str(here), are_folders=True):
            return here / part
        here /= part
    return None


def _rules_of(folder: str) -> list[_Rule]:
    path = Path(folder, ".gitignore")
    if not path.is_file():
        return []
    try:
        with held(path) as place:
            text = read_bytes(place, str(path))[0].decode("latin-1")
    except (OSError, ToolError):
        return []  # it may not be read, or is a link, which git does not follow either
    rules: list[_Rule] = []
    for line in text.removeprefix(_MARK).split("\n"):
        rule = _rule_of(line.removesuffix("\r"))
        if rule is not None:
            rules.append(rule)
    return rules


def _rule_of(line: str) -> _Rule | None:
    """Read a line; one that says nothing, makes no sense or would cost too much is passed over."""
    if line.startswith("#"):
        return None
    line = re.sub(r"(?<!\\) +$", "", line)
    line = _bounded(line)
    if not line.strip("!/ "):
        return None
    try:
        return _Rule(line)
    except re.error:
        return None


def _bounded(line: str) -> str:
    """Return the line with a bounded cost of matching, or nothing: hostile rules must not stop the walk."""
    parts = [part if part == "**" else STARS().sub("*", part) for part in line.split("/")]
    is_costly = parts.count("**") > MOST_STARS or any(
        part.count("*") > MOST_STARS for part in parts
    )
    return "" if is_costly else "/".join(parts)


def _translated(glob: str) -> str:
    """Write a glob as a regular expression for a path relative to the file's folder."""
    pieces: list[str] = []
    for token in _TOKEN().finditer(glob):
        deep, group, literal, other = token.group("deep", "group", "literal", "other")
        if deep:
            pieces.append("(?:[^/]+/)*" if deep.endswith("/") else ".+")
        elif group:
            pieces.append(_class(group[1:-1]))
        elif other == "[":
            raise re.error("a [ without its ] fits nothing")
        else:
            pieces.append({"*": "[^/]*", "?": "[^/]"}.get(other) or re.escape(other or literal))
    return "".join(pieces)


def _class(body: str) -> str:
    """Write a set, which fits one character. Raises re.error for a name that git does not know."""
    is_negated = body.startswith(("!", "^"))
    items: list[str] = []
    for item in _ITEM().finditer(body, int(is_negated)):
        name, first, last = item.groups()
        if name:
            if name not in _NAMES:
                raise re.error(f"[:{name}:] is not known")
            items.append(_NAMES[name])
        else:  # a range without order fits its first character
            items.append(
                re.escape(first) + (f"-{re.escape(last)}" if last and first < last else "")
            )
    return f"[^/{''.join(items)}]" if is_negated else f"(?!/)[{''.join(items)}]"
