"""The message of a turn's commit, made of what changed: names of files, and of functions and classes in them."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import PurePosixPath

from msgspec import Struct

from ybs.checkpoints.states import Change
from ybs.core.lazy import lazy
from ybs.core.wording import first_words, listed, plural
from ybs.session.definitions import changed_definitions

#: More lines than this are not in the message's body.
_MOST_LINES = 20
_MOST_NAMES = 2
_MOST_NAMED = 3
#: A larger file is named, not compared.
_MOST_BYTES = 200_000

_WORDS = {"added": ("Add", "to"), "removed": ("Remove", "from"), "changed": ("Change", "in")}
_TEST_FOLDERS = frozenset(("test", "tests", "__tests__", "spec", "specs"))
_TEST = lazy(r"^test_|_test\.|[._-]spec\.|\.test\.|Tests?\.")

Get = Callable[[str], bytes | None]


class Act(Struct, frozen=True):
    """What became of a file: the verb, its path, and what stands between the two and at the end."""

    verb: str
    path: str
    of: str = ""
    end: str = ""

    def said(self, path: str = "") -> str:
        """Say it, perhaps with a shorter path."""
        return " ".join(filter(None, (self.verb, self.of, path or self.path, self.end)))

    @property
    def name(self) -> str:
        """The file's name without its folder."""
        return os.path.basename(self.path)  # noqa: PTH119 - a text

    @property
    def is_of_test(self) -> bool:
        """Whether the file is one of tests, by its name or folder."""
        folders = PurePosixPath(self.path).parts[:-1]
        return not _TEST_FOLDERS.isdisjoint(folders) or _TEST().search(self.name) is not None


def message_of(changes: Iterable[Change], get: Get, columns: int) -> str:
    """Return the message: a title of so many columns at most and, for more than one file, a line for each."""
    acts = list(_acts(changes, get))
    if not acts:
        return "Change files"
    title = next((each for each in _titles(acts) if first_words(each, columns) == each), "")
    title = title or f"Change {plural(len(acts), 'file')}"
    if len(acts) == 1:
        return title
    lines = [f"- {act.said()}" for act in acts[:_MOST_LINES]]
    lines += [f"- and {len(acts) - _MOST_LINES:,} more"] * (len(acts) > _MOST_LINES)
    return "\n".join([title, "", *lines])


def _titles(acts: Sequence[Act]) -> Iterator[str]:
    """Yield titles, the longest first."""
    first, *others = sorted(acts, key=lambda act: act.is_of_test)
    its = _own_tests(first, others)
    if its or not others:
        for said in (first.said(), first.said(first.name), Act(first.verb, first.name).said()):
            yield f"{said}{its}"
    verbs = {act.verb for act in acts}
    is_same = len(verbs) == 1 and ("Change" in verbs or not any(act.of or act.end for act in acts))
    verb = first.verb if is_same else "Change"
    if len(acts) <= _MOST_NAMED:
        if is_same:
            yield f"{verb} {_and([act.path for act in acts])}"
            yield f"{verb} {_and([act.name for act in acts])}"
        elif len(acts) == 2:
            one, other = (act.said() for act in acts)
            yield f"{one}, {other[:1].lower()}{other[1:]}"
    files = plural(len(acts), "file")
    if folder := os.path.commonpath([os.path.dirname(act.path) for act in acts]):  # noqa: PTH120
        yield f"{verb} {files} in {folder}"
    tops = sorted({act.path.partition("/")[0] for act in acts})
    yield f"{verb} {files}: {listed(tops)}"


def _own_tests(act: Act, others: Sequence[Act]) -> str:
    """Return `and its test` where all other files are the tests of this one; else nothing."""
    stem = act.name.partition(".")[0]
    is_own = all(other.is_of_test and stem in other.name for other in others)
    if act.is_of_test or not others or not is_own:
        return ""
    return " and its test" if len(others) == 1 else " and its tests"


def _and(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _text(data: bytes | None) -> str:
    return (data or b"").decode(errors="replace")


def _acts(changes: Iterable[Change], get: Get) -> Iterable[Act]:
    known = [change for change in changes if {change.before.kind, change.after.kind} != {"folder"}]
    gone = {c.before.digest: c for c in known if c.after.kind == "absent" and c.before.digest}
    renamed: dict[str, Change] = {}
    for change in known:
        if change.before.kind == "absent" and change.after.digest in gone:
            renamed[change.path] = gone.pop(change.after.digest)
    old = {change.path for change in renamed.values()}
    for change in known:
        if change.path in renamed:
            yield Act("Rename", change.path, f"{renamed[change.path].path} to")
        elif change.path not in old:
            yield _act(change, get)


def _act(change: Change, get: Get) -> Act:
    before, after, path = change.before, change.after, change.path
    if before.kind in ("absent", "folder"):
        return Act("Add", path)
    if after.kind in ("absent", "folder"):
        return Act("Remove", path)
    if not before.kind == after.kind == "file":
        return Act("Replace", path)
    if before.digest != after.digest:
        return _edit(change, get)
    is_more = after.mode & ~before.mode & 0o111
    return Act("Make", path, end="executable") if is_more else Act("Change the mode of", path)


def _edit(change: Change, get: Get) -> Act:
    """Name the functions and classes that an edit is about, where they are few."""
    found: list[tuple[str, str]] = []
    if max(change.before.size, change.after.size) <= _MOST_BYTES:
        old, new = (_text(get(state.digest)) for state in (change.before, change.after))
        found = changed_definitions(old, new)
    if not 0 < len(found) <= _MOST_NAMES:
        return Act("Change", change.path)
    kinds = {kind for _, kind in found}
    verb, word = _WORDS[kinds.pop() if len(kinds) == 1 else "changed"]
    return Act(verb, change.path, f"{_and([name for name, _ in found])} {word}")
