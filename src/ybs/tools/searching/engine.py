"""The search itself: `rg` where it can do it as Python would, else Python in processes that can be killed."""

import marshal
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct, field

from ybs.core.errors import ToolError
from ybs.security.paths.roots import Roots
from ybs.tools.searching import ripgrep
from ybs.tools.searching.child import Output, outputs_of
from ybs.tools.searching.choice import GlobChoice
from ybs.tools.searching.dialect import Pattern
from ybs.tools.searching.ignore import rules_at
from ybs.tools.searching.walk import Deadline, Walk

_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); from ybs.tools.searching.scan import main; main()"
)
_FEW_FILES = 200  # for which a second process is not worth its start
_MOST_PROCESSES = 4
Places = list[tuple[int, int]]  # lines from 1, and bytes in them from 0


class Found(Struct):
    """What a search found: how many lines match in how many files, and where the first ones are.

    Files are told by their paths relative to the start. `skipped` ones were not read, `binary` ones were named
    and hold no text, `shortened` ones have lines too long for memory, `slow` ones took too long before their end.
    """

    places: dict[str, Places] = field(default_factory=dict[str, Places])
    total: int = 0
    files: int = 0
    was_cut: bool = False
    skipped: list[str] = field(default_factory=list[str])
    shortened: list[str] = field(default_factory=list[str])
    slow: list[str] = field(default_factory=list[str])
    binary: list[str] = field(default_factory=list[str])


class Scope(Struct, kw_only=True):
    """Where to look, and for how many lines to tell the place."""

    start: Path
    choice: GlobChoice
    most: int
    includes_ignored: bool = False


def find_in_file(pattern: Pattern, path: Path, most: int, deadline: Deadline) -> Found:
    """Search one file, which may be an ignored one. Raises ToolError."""
    if deadline.is_over:
        return Found(was_cut=True)
    return _scanned(pattern, path.parent, [path.name], most, deadline, is_named=True)


def find(pattern: Pattern, scope: Scope, roots: Roots, deadline: Deadline) -> Found:
    """Search the files of a folder. Raises ToolError."""
    if deadline.is_over:
        return Found(was_cut=True)
    rg = ripgrep.program(roots) if pattern.rg else ""
    if rg:
        found = _asked(rg, pattern, scope, roots, deadline)
        if found is not None:
            return found
    walk = Walk(
        roots,
        scope.start,
        deadline=deadline,
        includes_ignored=scope.includes_ignored,
        has_links=False,
    )
    paths = [
        path
        for path in sorted(scope.choice.of(walk.paths()))
        if not roots.is_blocked_link(f"{scope.start}/{path}")
    ]
    if deadline.is_over:
        return Found(was_cut=True)
    found = _scanned(pattern, scope.start, paths, scope.most, deadline)
    found.was_cut = found.was_cut or walk.was_cut
    found.binary = []  # nobody named them
    return found


def _asked(
    rg: str, pattern: Pattern, scope: Scope, roots: Roots, deadline: Deadline
) -> Found | None:
    """Let `rg` search; None where it cannot."""
    start = scope.start
    rules = None if scope.includes_ignored else rules_at(roots.folder, start).folders
    counted = ripgrep.counts(
        rg, pattern.rg, roots, start, deadline, rules_in=rules, endings=scope.choice.endings
    )
    if counted is None:
        return None
    paths = scope.choice.of(counted.files)
    skipped = scope.choice.of(counted.skipped)
    if roots.holds_blocked(start):
        paths = [path for path in paths if not roots.is_blocked(f"{start}/{path}")]
        skipped = [path for path in skipped if not roots.is_blocked(f"{start}/{path}")]
    paths = sorted(path for path in paths if not roots.is_blocked_link(f"{start}/{path}"))
    found = Found(
        total=sum(counted.files[path] for path in paths),
        files=len(paths),
        was_cut=counted.was_cut,
        skipped=sorted(path for path in skipped if not os.path.isdir(start / path)),  # noqa: PTH112 - a path may be too long
    )
    shown = _first(paths, counted.files, scope.most)
    try:
        places = ripgrep.places(
            rg, pattern.rg, roots, start, shown, most=scope.most, deadline=deadline
        )
    except OSError:
        return None
    found.places = _bounded({path: places[path] for path in shown if path in places}, scope.most)
    found.was_cut = found.was_cut or deadline.is_over
    return found


def _first(paths: Iterable[str], counts: dict[str, int], most: int) -> list[str]:
    """Return the first files that hold so many lines."""
    first: list[str] = []
    for path in paths:
        if most <= 0:
            break
        first.append(path)
        most -= counts[path]
    return first


def _bounded(places: dict[str, Places], most: int) -> dict[str, Places]:
    bounded: dict[str, Places] = {}
    for path, lines in places.items():
        if lines[:most]:
            bounded[path] = lines[:most]
        most = max(most - len(lines), 0)
    return bounded


def _scanned(
    pattern: Pattern,
    folder: Path,
    paths: Sequence[str],
    most: int,
    deadline: Deadline,
    *,
    is_named: bool = False,
) -> Found:
    """Let processes of Python search the files, in which every one takes its share."""
    count = 1 if len(paths) < _FEW_FILES else min(os.cpu_count() or 1, _MOST_PROCESSES)
    request = {
        "text": pattern.text,
        "data": pattern.data,
        "seeds": pattern.seeds,
        "folds": pattern.folds,
        "literal": pattern.is_literal,
        "wide": pattern.is_wide,
        "named": is_named,
        "most": most,
        "folder": str(folder).rstrip("/"),
        "step": count,
    }
    requests = [
        marshal.dumps({**request, "first": number, "paths": paths[number::count]})
        for number in range(count)
    ]
    python = [sys.executable, "-I", "-S", "-X", "utf8", "-W", "ignore", "-c", _START]
    command = [*python, str(Path(__file__).parents[3])]
    try:
        outputs = outputs_of(command, requests, folder=folder, deadline=deadline)
    except OSError as error:
        raise ToolError(f"The search could not be started: {error.strerror or error}") from error
    if any(output.code > 0 for output in outputs):
        raise ToolError(
            "The search ended by a mistake of its own; use run_shell with grep instead."
        )
    return _merged(outputs, paths, most)


def _merged(outputs: Sequence[Output], paths: Sequence[str], most: int) -> Found:
    found = Found(was_cut=any(output.code < 0 for output in outputs))
    others = {kind: getattr(found, kind) for kind in ("skipped", "shortened", "slow", "binary")}
    reports = [
        line.decode().split(" ")
        for output in outputs
        for line in output.text.split(b"\n")[:-1]  # the last one may be unfinished
    ]
    places: dict[str, Places] = {}
    for kind, number, *rest in sorted(reports, key=lambda report: int(report[1])):
        path = paths[int(number)]
        if kind != "hit":
            others[kind].append(path)
            continue
        found.files += 1
        found.total += int(rest[0])
        if len(places) < most and rest[1]:
            pairs = (place.split(":") for place in rest[1:])
            places[path] = [(int(line) + 1, int(byte)) for line, byte in pairs]
    found.places = _bounded(places, most)
    return found
