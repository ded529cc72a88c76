"""The `rg` program, if a trusted one is there: one run of it walks a folder and counts the lines that match.

https://github.com/BurntSushi/ripgrep/blob/master/GUIDE.md
"""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ybs.core.errors import Refused
from ybs.security.paths.roots import Roots
from ybs.tools.searching.child import Output, output_of
from ybs.tools.searching.walk import Deadline

#: It looks at what a walk of ours looks at: hidden files too, `.gitignore` files, and no other ignore files.
_WALK = (
    *("--count", "--with-filename", "--null", "--hidden", "--glob", "!.git", "--no-require-git"),
    *("--no-ignore-dot", "--no-ignore-global", "--no-ignore-exclude", "--no-ignore-parent"),
)
_PLACES = ("--line-number", "--column", "--with-filename", "--null", "--no-heading")
_ALWAYS = ("--no-config", "--no-mmap", "--color", "never", "--no-follow")
_COUNT = re.compile(r"([^\0]+)\0(\d+)\n")  # a name may hold line ends
#: A match of nothing at the end of a file without a last line end has no column.
_PLACE = re.compile(rb"([^\0]+)\0(\d+):(?:(\d+):)?[^\n]*\n")
_TAIL_BYTES = 1_000_000  # a longer last line is shown from somewhere within
_UNREADABLE = re.compile(rb"(?:rg: )?(.+): .* \(os error \d+\)")
_BATCH_CHARS = 100_000  # of paths on one command line
_NAME_ENDING = re.compile(r"[\w.-]+", re.ASCII)


class Counts:
    """The matching lines of each file, by its path relative to the start; `skipped` could not be read."""

    __slots__ = ("files", "skipped", "was_cut")

    def __init__(self, files: dict[str, int], skipped: Sequence[str], *, was_cut: bool) -> None:
        self.files, self.skipped, self.was_cut = files, skipped, was_cut


def program(roots: Roots) -> str:
    """Return the absolute path of `rg`, or nothing. One that the project could have made does not count."""
    for folder in roots.host.environ.get("PATH", "").split(os.pathsep):
        if not folder.startswith("/"):
            continue
        path = Path(folder, "rg")
        places = (path, Path(os.path.realpath(path)))
        is_trusted = not any(
            place.is_relative_to(root) for place in places for root in roots.folders
        )
        if is_trusted and path.is_file() and os.access(path, os.X_OK):
            return str(path)
    return ""


def counts(  # noqa: PLR0913 - each is named
    rg: str,
    pattern: str,
    roots: Roots,
    start: Path,
    deadline: Deadline,
    *,
    rules_in: Sequence[str] | None = (),
    endings: Sequence[str] | None = None,
) -> Counts | None:
    """Count the matching lines of every file in a folder.

    `rules_in` are the folders above whose `.gitignore` holds here, None where ignored files count as well.
    `endings` are ends of names that a file must have one of. Returns None where `rg` cannot do it.
    """
    options = [*_ALWAYS, *_WALK, *_kinds(endings)]
    folder, here = str(start), "./"
    if rules_in is None:
        options.append("--no-ignore")
    elif len(rules_in) > 1:
        return None  # rules of a file given to it hang on the folder it runs in
    elif rules_in:
        folder = rules_in[0]
        here = f"./{str(start)[len(folder) :]}/"
        options += ["--ignore-file", f"{folder}.gitignore"]
    try:
        words = [rg, *options, "--regexp", pattern, "--", here]
        output = _output(words, roots, start, folder, deadline)
    except OSError:
        return None
    if output.code < 0 and not deadline.is_over:
        return None  # it was stuck, at a pipe named `.gitignore`, say
    return _read(output, here)


def places(  # noqa: PLR0913 - each is another thing
    rg: str,
    pattern: str,
    roots: Roots,
    start: Path,
    paths: Sequence[str],
    *,
    most: int,
    deadline: Deadline,
) -> dict[str, list[tuple[int, int]]]:
    """Return the lines that match in each of the files, at most so many in one, each with the byte where.

    Lines count from 1, bytes from 0. Raises OSError.
    """
    found: dict[str, list[tuple[int, int]]] = {}
    # Lines themselves may be of any length: they are left out, and read where they are.
    options = [*_ALWAYS, *_PLACES, "--max-columns", "1", "--max-count", str(most)]
    for batch in _batches(paths):
        words = [rg, *options, "--regexp", pattern, "--", *(f"./{path}" for path in batch)]
        output = _output(words, roots, start, str(start), deadline)
        for name, line, column in _PLACE.findall(output.text):
            path = os.fsdecode(name)[2:]
            byte = int(column) - 1 if column else _length_of_last_line(roots, start / path)
            found.setdefault(path, []).append((int(line), byte))
    return found


def _output(
    words: Sequence[str], roots: Roots, start: Path, folder: str, deadline: Deadline
) -> Output:
    """Run it so that it sees the start and the rules above it, and nothing else. Raises OSError.

    It opens by path, and a command that still runs can put a link in the place of a folder at any moment.
    """
    from ybs.security.sandbox.confined import launch_reader
    from ybs.security.sandbox.view import View  # not before the first search

    shown = (str(start), *filter(os.path.isfile, [f"{folder}.gitignore"]))
    hidden = tuple(roots.blocked_in(str(start)))
    view = View(folder=folder, git_folders=(), shown=shown, hidden=hidden)
    launch = launch_reader(words, {}, view)
    if launch is None:
        raise OSError("there is nothing to hold it")
    try:
        return output_of(words, folder=folder, deadline=deadline, launch=launch)
    finally:
        for descriptor in launch.descriptors:
            os.close(descriptor)


def _length_of_last_line(roots: Roots, path: Path) -> int:
    try:
        with roots.held(path) as place:
            descriptor = place.open(os.O_RDONLY | os.O_NONBLOCK)
    except (OSError, Refused):
        return 0  # it is gone, and so is the line
    try:
        size = os.fstat(descriptor).st_size
        tail = os.pread(descriptor, _TAIL_BYTES, max(size - _TAIL_BYTES, 0))
    finally:
        os.close(descriptor)
    return len(tail) - tail.rfind(b"\n") - 1


def _kinds(endings: Sequence[str] | None) -> Iterator[str]:
    if endings and all(_NAME_ENDING.fullmatch(ending) for ending in endings):
        for ending in endings:
            yield from ("--type-add", f"ybs:*{ending}")
        yield from ("--type", "ybs")


def _read(output: Output, here: str) -> Counts | None:
    messages = output.errors.splitlines()
    skipped = [match[1] for line in messages if (match := _UNREADABLE.fullmatch(line))]
    if output.code not in (0, 1) and output.code >= 0 and len(skipped) < max(len(messages), 1):
        return None  # a pattern it does not know, or an old version
    was_cut = output.code < 0
    length = len(here)
    found = _COUNT.findall(os.fsdecode(output.text))
    files = {path[length:]: int(count) for path, count in found}
    names = [os.fsdecode(path)[length:] for path in skipped]
    return Counts(files, names, was_cut=was_cut)


def _batches(paths: Sequence[str]) -> Iterator[Sequence[str]]:
    start = size = 0
    for place, path in enumerate(paths):
        size += len(path) + 1
        if size > _BATCH_CHARS:
            yield paths[start : place + 1]
            start, size = place + 1, 0
    if start < len(paths):
        yield paths[start:]
