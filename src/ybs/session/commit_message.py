"""The message of a turn's commit, made of what became of which files."""

import os
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from ybs.checkpoints.states import Change
from ybs.core.wording import first_words, listed, plural

#: More lines than this are not in the message's body.
_MOST_LINES = 20
_MOST_NAMED = 3


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


def message_of(changes: Iterable[Change], columns: int) -> str:
    """Return the message: a title of so many columns at most and, for more than one file, a line for each."""
    acts = list(_acts(changes))
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
    first, *others = acts
    if not others:
        yield from (first.said(), first.said(first.name), Act(first.verb, first.name).said())
    is_same = len({act.verb for act in acts}) == 1 and not any(act.of or act.end for act in acts)
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


def _and(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _acts(changes: Iterable[Change]) -> Iterable[Act]:
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
            yield _act(change)


def _act(change: Change) -> Act:
    before, after, path = change.before, change.after, change.path
    if before.kind in ("absent", "folder"):
        return Act("Add", path)
    if after.kind in ("absent", "folder"):
        return Act("Remove", path)
    if not before.kind == after.kind == "file":
        return Act("Replace", path)
    if before.digest != after.digest:
        return Act("Change", path)
    is_more = after.mode & ~before.mode & 0o111
    return Act("Make", path, end="executable") if is_more else Act("Change the mode of", path)
