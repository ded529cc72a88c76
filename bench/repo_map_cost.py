"""The repo map: CPU time and memory of `ybs map` beside a plain BM25, cold, warm, and after one changed file.

`BENCH_FOLDER` names a project; without it a copy of this interpreter's packages is mapped, as a git repository where git
is there. The project is only read, but for one source file that gets a line and loses it again. `BENCH_QUERY` is what is
asked. CPU time and memory are of whole processes with their children; `bench/plain_bm25.py` is the yardstick.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

from lab import HERE, YBS, Lab, Row, interleave, median
from process import Ended, run

QUERY = "parse the query parameters of a request and check the headers of the connection"
MOST_COLD, MOST_WARM, MOST_MB = 4.0, 2.0, 200.0
MOST_COLD_ROUNDS = 3  # each takes seconds
_SUFFIXES = (".py", ".rb", ".ts", ".js", ".go", ".rs", ".java", ".c", ".php", ".cs")
_IGNORED = shutil.ignore_patterns("__pycache__", "*.so", "*.pyc")


def measure(lab: Lab, rounds: int) -> list[Row]:
    named = os.environ.get("BENCH_FOLDER")
    folder = Path(named).resolve() if named else copied(lab.folder / "packages")
    subject = Subject(lab, folder, os.environ.get("BENCH_QUERY") or QUERY)
    cold = interleave(
        min(rounds, MOST_COLD_ROUNDS),
        plain=subject.cold(subject.plain),
        map=subject.cold(subject.map),
    )
    rows = ratios("cold", cold, MOST_COLD)
    rows += ratios("warm", interleave(rounds, plain=subject.plain, map=subject.map), MOST_WARM)
    path = middle_source(folder)
    before = path.read_bytes()
    try:
        changed = interleave(
            rounds,
            plain=subject.changed(subject.plain, path),
            map=subject.changed(subject.map, path),
        )
    finally:
        path.write_bytes(before)
    return rows + ratios("one changed file", changed, MOST_WARM)


class Subject:
    """A project, what is asked of it, and the two programs that answer."""

    def __init__(self, lab: Lab, folder: Path, query: str) -> None:
        self.kept = lab.folder / "kept"
        self._lab, self._folder, self._query = lab, folder, query
        self._home = lab.folder / "home"

    def plain(self) -> Ended:
        """Run the yardstick."""
        self.kept.mkdir(exist_ok=True)
        plain = [sys.executable, str(HERE / "plain_bm25.py"), str(self._folder)]
        return self._run(*plain, str(self.kept / "plain.pickle"), self._query)

    def map(self) -> Ended:
        """Run `ybs map`."""
        options = ["--format", "json", "--tokens", "2000", "--query", self._query]
        return self._run(YBS, "map", *options, str(self._folder))

    def cold(self, call: Callable[[], Ended]) -> Callable[[], Ended]:
        """Return a call that finds nothing kept."""

        def run_cold() -> Ended:
            shutil.rmtree(self.kept, ignore_errors=True)
            return call()

        return run_cold

    def changed(self, call: Callable[[], Ended], path: Path) -> Callable[[], Ended]:
        """Return a call that finds one file with a line more than the last time."""

        def run_changed() -> Ended:
            with path.open("ab") as file:
                file.write(b"\n")
            return call()

        return run_changed

    def _run(self, *argv: str) -> Ended:
        environment = {**self._lab.environment, "YBS_HOME": str(self.kept / "ybs")}
        ended = run(list(argv), self._home, environment)
        if ended.code != 0:
            raise SystemExit(f"{' '.join(argv)} ended with {ended.code}:\n{ended.output}")
        return ended


def ratios(name: str, found: dict[str, list[Ended]], limit: float) -> list[Row]:
    plain, mapped = (median(one.cpu_seconds for one in found[who]) for who in ("plain", "map"))
    memory = max(one.peak_mb for one in found["map"])
    seconds = f"{mapped:.2f} s of CPU time against {plain:.2f} s"
    least = max(one.peak_mb for one in found["plain"])
    return [
        Row(f"{name}: CPU time / plain BM25", mapped / plain, "x", limit, seconds),
        Row(f"{name}: peak memory", memory, "MB", MOST_MB, f"plain BM25 {least:.0f} MB"),
    ]


def middle_source(folder: Path) -> Path:
    """Return a source file of usual size to change."""
    found = [
        path
        for path in folder.rglob("*")
        if path.suffix in _SUFFIXES and path.is_file() and not path.is_symlink()
    ]
    if not found:
        raise SystemExit(f"repo_map_cost: no source files in {folder}")
    return sorted(found, key=lambda path: (path.stat().st_size, path))[len(found) // 2]


def copied(folder: Path) -> Path:
    """Return a copy of this interpreter's packages, committed where git is there."""
    shutil.copytree(sysconfig.get_paths()["purelib"], folder, ignore=_IGNORED)
    if shutil.which("git"):
        who = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"]
        for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "start"]):
            subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True)
    return folder
