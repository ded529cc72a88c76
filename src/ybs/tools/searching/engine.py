"""The search itself: `rg` walks and counts, and says where the first lines are; what may not be shown is taken out."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct, field

from ybs.core.errors import Refused, ToolError
from ybs.security.paths.roots import Roots
from ybs.tools.reading.document import wide_encoding
from ybs.tools.reading.marks import PROBE_BYTES
from ybs.tools.searching.choice import GlobChoice
from ybs.tools.searching.ignore import rules_at
from ybs.tools.searching.ripgrep import Counts, Places, Search
from ybs.tools.searching.walk import Deadline, Walk

LONGEST_PATTERN = 5_000
_LARGE_BYTES = 50_000_000  # a line of so much fits in the memory that `rg` may have
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY


class SearchResult(Struct):
    """What a search found: how many lines match in how many files, and where the first ones are.

    Files are named by their paths relative to the start. `skipped` ones could not be read, `large` ones have a line too
    long for memory, in `slow` ones the pattern was given up, `binary` ones match and have a NUL byte at their beginning.
    `unseen` says what was not looked at.
    """

    places: dict[str, Places] = field(default_factory=dict[str, Places])
    total: int = 0
    files: int = 0
    was_cut: bool = False
    skipped: list[str] = field(default_factory=list[str])
    large: list[str] = field(default_factory=list[str])
    slow: list[str] = field(default_factory=list[str])
    binary: list[str] = field(default_factory=list[str])
    unseen: str = ""


class Scope(Struct, kw_only=True):
    """Where to look, and for how many lines to return the place."""

    start: Path
    choice: GlobChoice
    most: int
    includes_ignored: bool = False


def options_of(pattern: str, *, ignore_case: bool = False) -> list[str]:
    """Return the options that give `rg` the pattern. Raises ToolError for one that it cannot take."""
    if len(pattern) > LONGEST_PATTERN:
        raise ToolError(
            f"The pattern has {len(pattern):,} characters; {LONGEST_PATTERN:,} are possible"
        )
    if "\n" in pattern:
        raise ToolError("A match lies within one line, so a pattern holds no line end")
    if "\0" in pattern:
        raise ToolError("The pattern holds a NUL, which no text has")
    return ["--ignore-case"] * ignore_case + ["--regexp", pattern]


def find_in_file(
    options: Sequence[str], path: Path, most: int, roots: Roots, deadline: Deadline
) -> SearchResult:
    """Search one file, which may be an ignored one. Raises ToolError."""
    beginning = _beginning(roots, path)
    wide = wide_encoding(beginning)
    if wide.startswith("utf-32"):
        return SearchResult(skipped=[path.name])
    is_text = _is_text(beginning) or bool(wide)
    if wide and not _is_text(beginning):
        options = [*options, "--encoding", wide.replace("utf-16-", "utf-16")]
    search = Search(roots, path.parent, deadline, options, shown=path)
    counts = search.within([path.name])
    if counts is None:
        return SearchResult(large=[path.name])
    return _found(search, counts, [*counts.files], most, lambda _: is_text)


def find(options: Sequence[str], scope: Scope, roots: Roots, deadline: Deadline) -> SearchResult:
    """Search the files of a folder. Raises ToolError."""
    start, large = scope.start, list[str]()
    search = Search(roots, start, deadline, options)
    has_own_rules = scope.includes_ignored or (start / ".git").exists()
    rules = [] if has_own_rules else rules_at(roots.folder, start).folders
    counts = None
    if len(rules) < 2:  # rules of a file that it is given hang on the folder it runs in
        rules_in = None if scope.includes_ignored else "".join(rules)
        counts = search.below(rules_in, scope.choice.endings)
    if counts is None:
        counts, large = _listed(search, scope, roots, deadline)
    named = [scope.choice.of(each) for each in (counts.files, counts.skipped, counts.slow)]
    if roots.holds_blocked(start):
        named = [[p for p in each if not roots.is_blocked(f"{start}/{p}")] for each in named]
    chosen, skipped, slow = named
    chosen = sorted(path for path in chosen if not roots.is_blocked_link(f"{start}/{path}"))
    found = _found(
        search, counts, chosen, scope.most, lambda path: _is_text(_beginning(roots, start / path))
    )
    found.skipped = sorted(path for path in skipped if not os.path.isdir(start / path))  # noqa: PTH112 - a path may be too long
    found.slow, found.large = sorted(slow), large
    return found


def _listed(
    search: Search, scope: Scope, roots: Roots, deadline: Deadline
) -> tuple[Counts, list[str]]:
    """Search the files that our own walk finds, and return those with a line too long for memory as well."""
    ignored = scope.includes_ignored
    walk = Walk(roots, scope.start, deadline=deadline, includes_ignored=ignored, has_links=False)
    paths, large = sorted(scope.choice.of(walk.paths())), list[str]()
    counts = search.within(paths)
    if counts is None:  # each large file for itself, so that one costs the others nothing
        large = [path for path in paths if _size(scope.start / path) > _LARGE_BYTES]
        others = frozenset(large)
        counts = search.within([path for path in paths if path not in others])
        if counts is None:
            raise ToolError(
                "The search broke off; narrow `path` or file_pattern, or use run_shell."
            )
        large = [path for path in large if search.within([path], counts) is None]
    counts.was_cut |= walk.was_cut
    return counts, large


def _found(
    search: Search,
    counts: Counts,
    paths: Sequence[str],
    most: int,
    is_text: Callable[[str], bool],
) -> SearchResult:
    """Return where the first matches are. Files are looked into until there are enough of them."""
    shown, binary, lines = list[str](), list[str](), 0
    for path in paths:
        if lines >= most:
            break
        if is_text(path):
            shown.append(path)
            lines += counts.files[path]
        else:
            binary.append(path)
    places = search.places(shown, most)
    return SearchResult(
        places=_bounded({path: places[path] for path in shown if path in places}, most),
        total=sum(counts.files[path] for path in paths)
        - sum(counts.files[path] for path in binary),
        files=len(paths) - len(binary),
        was_cut=counts.was_cut or search.deadline.is_over,
        skipped=counts.skipped,
        slow=counts.slow,
        binary=binary,
    )


def _beginning(roots: Roots, path: Path) -> bytes:
    try:
        with roots.held(path) as place:
            descriptor = place.open(_READ)
    except (OSError, Refused):
        return b""  # it is gone
    try:
        return os.read(descriptor, PROBE_BYTES)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _is_text(beginning: bytes) -> bool:
    """Return whether `rg` takes a file for text when it finds it by itself."""
    return b"\0" not in beginning or beginning.startswith((b"\xff\xfe", b"\xfe\xff"))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _bounded(places: dict[str, Places], most: int) -> dict[str, Places]:
    bounded: dict[str, Places] = {}
    for path, lines in places.items():
        if lines[:most]:
            bounded[path] = lines[:most]
        most = max(most - len(lines), 0)
    return bounded
