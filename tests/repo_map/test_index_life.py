"""The life of an index: whatever happens to files and processes, it says what one made from nothing says."""

import random
import subprocess
import sys
from pathlib import Path

import pytest

from ybs.repo_map import index
from ybs.repo_map.index import Index

NAMES = [f"{folder}/file{number}.py" for folder in ("a", "b") for number in range(5)]
WORDS = "alpha beta gamma delta epsilon zeta".split()  # noqa: SIM905 - a list of words


def told(index: Index) -> object:
    """Return everything that an index says of some words."""
    rows = []
    for term in ("fil", "=alpha", *WORDS):
        files, weights = index.postings(term)
        assert len(files) == len(set(files)), f"{term} counts twice"
        rows.append(sorted(zip(files, weights, strict=True)))
    return index.paths, index.lengths, rows


class Life:
    """A project to which things happen, and two processes that share its cache."""

    def __init__(self, project: Path, cache: Path, seed: int) -> None:
        self.project, self.cache = project, cache
        self.chance = random.Random(seed)
        self.processes = [Index(project, cache), Index(project, cache)]
        self.branches: list[dict[str, str]] = []

    def text(self) -> str:
        return f"def {self.chance.choice(WORDS)}(): {' '.join(self.chance.choices(WORDS, k=3))}"

    def write(self, count: int) -> None:
        for name in self.chance.sample(NAMES, count):
            (self.project / name).parent.mkdir(exist_ok=True)
            (self.project / name).write_text(self.text())

    def remove(self) -> None:
        for name in self.chance.sample(NAMES, 3):
            (self.project / name).unlink(missing_ok=True)

    def rename(self) -> None:
        old, new = self.chance.sample(NAMES, 2)
        if (self.project / old).exists() and (self.project / new).parent.is_dir():
            (self.project / old).rename(self.project / new)

    def leave_branch(self) -> None:
        files = {name: (self.project / name) for name in NAMES}
        self.branches.append({name: p.read_text() for name, p in files.items() if p.exists()})

    def enter_branch(self) -> None:
        if self.branches:
            branch = self.chance.choice(self.branches)
            for name in NAMES:
                (self.project / name).unlink(missing_ok=True)
                if name in branch:
                    (self.project / name).parent.mkdir(exist_ok=True)
                    (self.project / name).write_text(branch[name])

    def restart(self) -> None:
        self.processes[0].close()
        self.processes = [self.processes[1], Index(self.project, self.cache)]

    def step(self) -> None:
        events = [lambda: self.write(1), lambda: self.write(5), self.remove, self.rename]
        events += [self.leave_branch, self.enter_branch, self.restart, lambda: None]
        self.chance.choice(events)()

    def check(self) -> None:
        here = [name for name in NAMES if (self.project / name).exists()]
        with Index(self.project, None) as fresh:
            fresh.refresh(here)
            right = told(fresh)
        for process in self.chance.sample(self.processes, self.chance.choice((1, 2))):
            process.refresh(here)
            assert told(process) == right


@pytest.mark.integration
@pytest.mark.parametrize("seed", [1, 2])
def test_whatever_happens_the_index_is_as_one_made_from_nothing(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(index, "FEW", 3)
    monkeypatch.setattr(index, "MOST_SEGMENTS", 2)
    monkeypatch.setattr(index, "MOST_WAITING", 3)
    monkeypatch.setattr(index, "MOST_POSTINGS", 300)
    life = Life(project, tmp_path / "maps" / "one.index", seed)
    for _ in range(25):
        life.step()
        life.check()
    for process in life.processes:
        process.close()


MEASURE = """
import resource, sys
from pathlib import Path
from ybs.repo_map import index
from ybs.repo_map.index import Index
index.stamp = lambda: "one"  # whoever edits this package now makes no difference
folder = Path(sys.argv[1])
paths = [f"{d}/{n}.py" for d in range(50) for n in range(1000)]
with Index(folder, Path(sys.argv[2])) as made:
    made.refresh(paths)
    print(len(made.paths), len(made.postings("alpha")[0]), end=" ")
used = resource.getrusage(resource.RUSAGE_SELF)
most_kb = used.ru_maxrss
if sys.platform == "linux":  # there it counts what the test's own process had when it forked
    most_kb = int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
print(most_kb // 1024, used.ru_utime + used.ru_stime)
"""


@pytest.mark.slow
@pytest.mark.scale
@pytest.mark.timeout(240)
def test_fifty_thousand_files_take_bounded_time_and_memory(project: Path, tmp_path: Path) -> None:
    for folder in range(50):
        (project / str(folder)).mkdir()
        first = project / str(folder) / "0.py"
        names = " ".join(f"name_{folder}_{number}" for number in range(300))
        first.write_text(f"alpha {names}")
        for number in range(1, 1_000):
            first.with_name(f"{number}.py").hardlink_to(first)
    command = [sys.executable, "-c", MEASURE, str(project), str(tmp_path / "maps" / "one.index")]
    for found in (index.MOST_READ, 2 * index.MOST_READ):
        ended = subprocess.run(command, capture_output=True, text=True, check=True)
        files, having, most_mb, seconds = map(float, ended.stdout.split())
        assert (files, having) == (50_000, found)
        assert most_mb < 200
        assert seconds < 100
