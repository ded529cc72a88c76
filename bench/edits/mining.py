"""Real one-hunk changes from git histories, taken in turns from every repository and every kind of file."""

import subprocess
from collections.abc import Generator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from pathlib import Path, PurePosixPath
from random import Random
from types import TracebackType
from typing import Literal, NamedTuple, Self

from edits.language import is_code

Kind = Literal["keep", "cut", "add"]

_FEWEST_LINES, _MOST_LINES = 10, 5000
_MOST_CHANGED = 40
_MOST_KEPT_INSIDE = 6  # as many lines as `diff -U3` bridges
_LONGEST_LINE = 1000


class Op(NamedTuple):
    """One line of a change."""

    kind: Kind
    text: str


@dataclass(frozen=True)
class Edit:
    r"""One hunk of one file. Lines are what `split("\n")` gives, so that a final newline is an empty last line."""

    origin: str
    path: str
    before: list[str]
    after: list[str]
    start: int
    ops: list[Op]
    line_end: str = "\n"
    mark: str = ""

    @property
    def suffix(self) -> str:
        """What kind of file it is: its suffix or, without one, its name."""
        return suffix_of(self.path)

    @property
    def stop(self) -> int:
        """The line after the hunk, in the file as it was before."""
        return self.start + sum(op.kind != "add" for op in self.ops)


class _Row(NamedTuple):
    commit: str
    before: str
    after: str
    path: str


def suffix_of(path: str) -> str:
    """Return the suffix of a path, or its name when it has none."""
    name = PurePosixPath(path)
    return name.suffix or name.name


def git(repository: Path, *words: str) -> list[str]:
    """Return a git command that reads a repository and fetches nothing."""
    return ["git", "-C", str(repository), "-c", "protocol.allow=never", *words]


class _Blobs:
    """A running `git cat-file --batch`."""

    def __init__(self, repository: Path) -> None:
        self._process = subprocess.Popen(
            git(repository, "cat-file", "--batch"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.communicate()

    def read(self, name: str) -> bytes | None:
        """Return the content of a blob, or None when it is absent."""
        question, answer = self._process.stdin, self._process.stdout
        if question is None or answer is None:
            return None
        question.write(name.encode() + b"\n")
        question.flush()
        words = answer.readline().split()
        if len(words) != 3:
            return None
        data = answer.read(int(words[2]))
        answer.read(1)
        return data


def _history(repository: Path) -> list[_Row]:
    command = git(
        repository, "log", "--no-merges", "--no-renames", "--diff-filter=M", "--raw", "--no-abbrev"
    )
    done = subprocess.run([*command, "--format=%H"], capture_output=True, check=True)
    rows: list[_Row] = []
    commit = ""
    for line in done.stdout.decode(errors="replace").splitlines():
        if not line.startswith(":"):
            commit = line or commit
            continue
        about, _, path = line.partition("\t")
        modes_and_names = about.split()
        if not path.startswith('"') and modes_and_names[1].startswith("100"):
            rows.append(_Row(commit, modes_and_names[2], modes_and_names[3], path))
    return rows


def _lines_of(data: bytes) -> tuple[list[str], str, str] | None:
    """Return lines, line end and byte order mark; None where it is not plainly a text."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    text = text.removeprefix(mark)
    line_end = "\n"
    if "\r" in text:
        if text.count("\r\n") != text.count("\n"):
            return None
        text, line_end = text.replace("\r\n", "\n"), "\r\n"
    is_strange = "\r" in text or "\0" in text or "\ufeff" in text
    return None if is_strange else (text.split("\n"), line_end, mark)


def _ops_of(cut: list[str], add: list[str]) -> list[Op] | None:
    ops: list[Op] = []
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, cut, add, autojunk=False).get_opcodes():
        if tag == "equal":
            if i2 - i1 > _MOST_KEPT_INSIDE:
                return None
            ops += [Op("keep", text) for text in cut[i1:i2]]
        else:
            ops += [Op("cut", text) for text in cut[i1:i2]]
            ops += [Op("add", text) for text in add[j1:j2]]
    return ops


def edit_of(origin: str, path: str, before: bytes, after: bytes) -> Edit | None:
    """Return the change between two texts as one hunk; None where it is not one of the size wanted."""
    old, new = _lines_of(before), _lines_of(after)
    if old is None or new is None or old[1:] != new[1:]:
        return None
    a, b = old[0], new[0]
    if not _FEWEST_LINES <= len(a) <= _MOST_LINES or (a[-1] == "") != (b[-1] == ""):
        return None
    if max(map(len, a)) > _LONGEST_LINE or max(map(len, b)) > _LONGEST_LINE:
        return None
    shorter = min(len(a), len(b))
    start = next((i for i in range(shorter) if a[i] != b[i]), shorter)
    rest = shorter - start
    end = next((i for i in range(rest) if a[-1 - i] != b[-1 - i]), rest)
    cut, add = a[start : len(a) - end], b[start : len(b) - end]
    if not 1 <= max(len(cut), len(add)) <= _MOST_CHANGED:
        return None
    ops = _ops_of(cut, add)
    return None if ops is None else Edit(origin, path, a, b, start, ops, old[1], old[2])


def _stores(repository: Path, random: Random) -> list[list[_Row]]:
    """Return the rows of each language, and those of all other texts on one store, in turns there too."""
    kinds: dict[str, list[_Row]] = {}
    for row in _history(repository):
        kinds.setdefault(suffix_of(row.path), []).append(row)
    for rows in kinds.values():
        random.shuffle(rows)
    texts = [rows for suffix, rows in kinds.items() if not is_code(suffix)]
    store = [row for turn in zip_longest(*texts) for row in turn if row is not None]
    return [*(rows for suffix, rows in kinds.items() if is_code(suffix)), store[::-1]]


def _edits(repository: Path, seed: int) -> Generator[Edit]:
    stores = _stores(repository, Random(f"{seed}:mining"))
    with _Blobs(repository) as blobs:
        while stores:
            for store in list(stores):
                edit = None
                while edit is None and store:
                    row = store.pop()
                    before, after = blobs.read(row.before), blobs.read(row.after)
                    if before is not None and after is not None:
                        edit = edit_of(row.commit[:12], row.path, before, after)
                if edit is None:
                    stores.remove(store)
                else:
                    yield edit


def mine(repositories: list[Path], most: int, seed: int) -> list[Edit]:
    """Return at most so many edits, in turns from each repository and in it from each kind of file."""
    found: list[Edit] = []
    with ExitStack() as stack:
        sources = [stack.enter_context(closing(_edits(one, seed))) for one in repositories]
        while sources and len(found) < most:
            for source in list(sources):
                edit = next(source, None)
                if edit is None:
                    sources.remove(source)
                else:
                    found.append(edit)
    return found[:most]
