"""Change the code in small ways, one at a time, and see whether a test notices.

    python scripts/mutate.py src/ybs/security/paths/roots.py [MORE ...] [--tests tests/security] [--most 40] [--seed 1]

Each change (a mutant) is tried in a copy of the package with only those tests that reach its line, by a coverage run made
first (`--keep FOLDER` keeps it for the next time). A change within a function is tried in a fork of one process that has loaded
the tests (mutant_swap.py), with the nearest quick tests; what these do not notice, and other changes, in a new process. `--quick`
ends after the first: where the machine is busy, it finds candidates in seconds.

A mutant that no test notices is printed with its line. Some are equivalent: the program does the same. Judge those
by hand: scripts/mutants_equivalent.txt holds them, a comment with the reason above; they do not count.
Exit status 1 where fewer than 95 % of the others were noticed. Run by hand; minutes for a module.
A changed program may remove files and end processes of others. The tests run in an empty folder; where the module is one that
removes or ends something, shut them off from the rest as well: in a container, or (as root)
`unshare --mount --pid --fork --mount-proc`, with what may not change mounted read-only.
"""

import argparse
import compileall
import filecmp
import importlib
import multiprocessing
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from mutant_swap import Swapper
from mutants import ROOT, Mutant, mutants_of

SOURCE = ROOT / "src"
EQUIVALENT = ROOT / "scripts" / "mutants_equivalent.txt"
FLOOR = 0.95
IMPORT = "import"  # stands for a line that the import of the module runs
NEAREST = 40  # so many tests are tried first; the others only where those notice nothing
SECONDS = 240
QUICK = ("-m", "not (real or slow)", "-n", "0", "-q", "--no-header", "--tb=no", "-rf")
QUICKEST = "not (integration or real or slow)"
PATIENT = ("--timeout=60", "-p", "no:cacheprovider")  # a busy machine is no reason to fail
LOADED = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"
FORKED = multiprocessing.get_context("fork")


class Bench:
    """A copy of the package, and what tests reach which line of the original."""

    def __init__(self, folder: Path, tests: Sequence[str]) -> None:
        self.source, self._tests = folder / "src", tests
        #: Where the tests run: a change may well have code remove the folder that it is in.
        self._empty = folder / "empty"
        self._database = folder / "coverage"
        self._reached: dict[Path, dict[int, list[str]]] = {}

    def look(self) -> None:
        """Run the tests once with coverage, each line with the tests that reach it. Raises SystemExit where one fails.

        A folder that holds what an earlier run saw is taken as it is, but for the package.
        """
        without = shutil.ignore_patterns("__pycache__")
        shutil.copytree(
            SOURCE, self.source, ignore=without, copy_function=_copy, dirs_exist_ok=True
        )
        compileall.compile_dir(self.source, quiet=2)
        self._empty.mkdir(exist_ok=True)
        if self._database.exists():
            return
        config = self._database.with_suffix(".ini")
        config.write_text(
            f"[run]\nsource = ybs\nbranch = false\ndata_file = {self._database}\nconcurrency = thread\n"
        )
        coverage = ("-m", "coverage", "run", f"--rcfile={config}", "-m", "pytest", "-p", "mutate")
        command = (sys.executable, *coverage, *QUICK, *PATIENT, *_absolute(self._tests))
        environ = {**os.environ, **self._environ}
        done = subprocess.run(
            command, cwd=self._empty, env=environ, capture_output=True, check=False
        )
        if done.returncode:
            self._database.unlink(missing_ok=True)
            raise SystemExit("the tests fail without any change:\n" + done.stdout.decode())

    def tests_of(self, mutant: Mutant) -> list[str]:
        """Return the tests that reach a line: those of the module's own test file, then those that reach little else."""
        file = mutant.file
        if file not in self._reached:
            self._reached[file] = self._lines_of(file)
        lines = self._reached[file]
        found = lines.get(mutant.line) or lines.get(mutant.statement, [])
        if found == [IMPORT]:
            found = list(dict.fromkeys(test for tests in lines.values() for test in tests))
            found = [test for test in found if test != IMPORT] or list(self._tests)  # only data
            # A test that only makes records reaches no line.
            found = [*self._own_files(file), *found]
        own = [test for test in found if f"/test_{file.stem}.py::" in test]
        others = [test for test in found if test not in own]
        return own + others

    def _own_files(self, file: Path) -> list[str]:
        """Return the module's own test files among the tests."""
        name = f"test_{file.stem}.py"
        places = [ROOT / test.partition("::")[0] for test in self._tests]
        found = [each for place in places for each in (place, *place.rglob(name))]
        return [str(each.relative_to(ROOT)) for each in found if each.name == name]

    def _lines_of(self, file: Path) -> dict[int, list[str]]:
        from coverage.numbits import numbits_to_nums

        copied = str(self.source / file.relative_to(SOURCE))
        sizes: Counter[str] = Counter()  # how much of the whole package a test reaches
        lines: dict[int, set[str]] = {}
        with sqlite3.connect(self._database) as database:
            rows = database.execute(
                "select context.context, numbits, file.path from line_bits "
                "join context on context.id = context_id join file on file.id = file_id"
            )
            for context, bits, path in rows.fetchall():
                test = context.partition("[")[0] or IMPORT  # a change may rename the rows
                sizes[test] += int.from_bytes(bits).bit_count()
                for number in numbits_to_nums(bits) if path == copied else ():
                    lines.setdefault(number, set()).add(test)
        return {
            line: sorted(found - {IMPORT} or found, key=lambda test: (sizes[test], test))
            for line, found in lines.items()
        }

    def tried_quickly(self, file: Path, mutants: Sequence[Mutant]) -> dict[Mutant, bool]:
        """Return which of a module's mutants the nearest tests notice, without loading the package for each.

        Those that are not changes within a function are left out.
        """
        changes = [(mutant.text, self.tests_of(mutant)[:NEAREST]) for mutant in mutants]
        found = self._database.with_suffix(".found")
        found.write_text("")
        tests = sorted({test for _, each in changes for test in each})
        name = ".".join(file.relative_to(SOURCE).with_suffix("").parts)
        swapper = Swapper(file, name, changes, found)
        if tests:
            self._run(tests, found.with_suffix(".out"), SECONDS * len(mutants), swapper)
        answers = dict(line.split() for line in found.read_text().splitlines())
        if "failed" in answers:
            raise SystemExit(f"a test of {file} fails without any change")
        return {mutants[int(place)]: answer == "noticed" for place, answer in answers.items()}

    def is_noticed(self, mutant: Mutant) -> bool:
        """Return whether a test fails with the change."""
        tests = self.tests_of(mutant)
        if not tests:
            return False
        file = self.source / mutant.file.relative_to(SOURCE)
        before, times = file.read_text(), file.stat()
        file.write_text(mutant.text)
        try:
            parts = (tests[:NEAREST], tests[NEAREST:])
            return any(self._fails(part, file) for part in parts if part)
        finally:
            file.write_text(before)
            os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))  # its compiled form holds

    def _fails(self, tests: Sequence[str], file: Path) -> bool:
        """Return whether one of the tests fails, in a process that has loaded pytest before, but nothing of the package."""
        output = self._database.with_suffix(".out")
        status = self._run(tests, output, SECONDS)
        if status is None:
            return True  # a test that does not end any more has noticed
        if b"ERROR: not found" in output.read_bytes() and self._imports(file):
            raise SystemExit("a test that was there is gone: begin with a new folder")
        return status not in (0, 5)  # 5: all were left out

    def _run(
        self, tests: Sequence[str], output: Path, seconds: int, *plugins: object
    ) -> int | None:
        """Return the status of pytest, or nothing where it did not end in time."""
        given = (self._environ, self._empty, _absolute(tests), output, plugins)
        run = FORKED.Process(target=_run_forked, args=given)
        run.start()
        run.join(seconds)
        if run.exitcode is None and run.pid is not None:
            os.killpg(run.pid, signal.SIGKILL)
            run.join()
            return None
        return run.exitcode

    def _imports(self, file: Path) -> bool:
        """Return whether a module can still be imported: where it cannot, pytest finds no test to run."""
        name = ".".join(file.relative_to(self.source).with_suffix("").parts)
        command = (sys.executable, "-c", f"import {name}")
        environ = {**os.environ, **self._environ}
        return not subprocess.run(command, env=environ, capture_output=True, check=False).returncode

    @property
    def _environ(self) -> dict[str, str]:
        return {
            "PYTHONPATH": f"{self.source}{os.pathsep}{Path(__file__).parent}",
            "PYTHONDONTWRITEBYTECODE": "1",
        }


def _copy(source: str, target: str) -> None:
    if not Path(target).exists() or not filecmp.cmp(source, target):
        shutil.copy2(source, target)


def load() -> None:
    """Load what every run of tests needs, once for all that are forked."""
    for name in (
        "pytest",
        "hypothesis",
        "msgspec",
        "pytest_asyncio.plugin",
        "pytest_timeout",
        "xdist",
    ):
        importlib.import_module(name)


def _absolute(tests: Sequence[str]) -> list[str]:
    """Return arguments for pytest that mean these tests in any folder."""
    return ["-c", str(ROOT / "pyproject.toml"), *(str(ROOT / test) for test in tests)]


def _run_forked(
    environ: Mapping[str, str],
    folder: Path,
    tests: Sequence[str],
    output: Path,
    plugins: Sequence[object] = (),
) -> None:
    """Run tests and exit with the status of pytest."""
    import pytest

    os.setpgrp()  # so that all can be ended together
    os.environ.update(environ)
    os.chdir(folder)
    sys.path[:0] = environ["PYTHONPATH"].split(os.pathsep)
    sys.dont_write_bytecode = True
    with output.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    own = ("--basetemp", str(output.with_suffix(".tmp")), "-W", LOADED, "-x")
    marks = ("-m", QUICKEST) if plugins else ()
    os._exit(pytest.main([*QUICK, *PATIENT, *own, *marks, *tests], plugins))


def pytest_runtest_logstart(nodeid: str) -> None:
    """Tell coverage which test begins: this file is a plugin of the run with coverage.

    Coverage could name the test by its function, but then what runs in another task or in a fixture has no name.
    """
    import coverage

    if running := coverage.Coverage.current():
        running.switch_context(nodeid)
        _forget_answers()


def _forget_answers() -> None:
    """Empty the caches of the package's functions: of all tests that rely on an answer, only the first would reach them."""
    modules = [vars(module) for name, module in sys.modules.items() if name.startswith("ybs.")]
    for value in [value for module in modules for value in module.values()]:
        clear = getattr(value, "cache_clear", None)
        if clear is not None and value.__module__.startswith("ybs."):
            clear()


def tests_beside(files: Sequence[Path]) -> list[str]:
    """Return the folders of tests that mirror these modules."""
    found: list[str] = []
    for file in files:
        folder = ROOT / "tests" / file.parent.relative_to(SOURCE / "ybs")
        while not folder.is_dir():
            folder = folder.parent
        found.append(str(folder.relative_to(ROOT)))
    return list(dict.fromkeys(found))


def main() -> int:
    """Try the mutants of the modules named and say which nobody noticed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("modules", nargs="+", type=Path)
    parser.add_argument(
        "--tests", nargs="*", default=None, help="default: the folders that mirror the modules"
    )
    parser.add_argument(
        "--most", type=int, default=0, help="at most so many mutants of a module, drawn by chance"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lines", type=int, nargs="*", default=(), help="only these lines")
    parser.add_argument("--keep", type=Path, help="keep the coverage here, and use what is there")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="only changes within functions, and only the nearest tests: what nobody notices is a candidate",
    )
    given = parser.parse_args()
    files = [path.resolve() for path in given.modules]
    equivalent = set(EQUIVALENT.read_text().splitlines())
    with tempfile.TemporaryDirectory() as scratch:
        folder = (given.keep or Path(scratch)).resolve()
        folder.mkdir(exist_ok=True)
        bench = Bench(folder, given.tests or tests_beside(files))
        bench.look()
        load()
        noticed = tried = 0
        for file in files:
            mutants = [
                each
                for each in mutants_of(file)
                if (not given.lines or each.line in given.lines) and each.name not in equivalent
            ]
            if 0 < given.most < len(mutants):
                mutants = random.Random(given.seed).sample(mutants, given.most)  # noqa: S311 - a sample
            more = judge(bench, file, mutants, is_quick=given.quick)
            noticed, tried = noticed + more[0], tried + more[1]
    share = noticed / tried if tried else 1.0
    print(f"{noticed} of {tried} noticed: {share:.1%}")
    return int(share < FLOOR)


def judge(
    bench: Bench, file: Path, mutants: Sequence[Mutant], *, is_quick: bool
) -> tuple[int, int]:
    """Try each mutant of a module; print those that nobody noticed; return how many somebody did, and of how many."""
    mutants = sorted(mutants, key=lambda each: each.line)
    quickly = bench.tried_quickly(file, mutants)
    if is_quick:
        mutants = list(quickly)
    survivors = 0
    for mutant in mutants:
        if not quickly.get(mutant) and (is_quick or not bench.is_noticed(mutant)):
            survivors += 1
            reach = "" if bench.tests_of(mutant) else "  (no test reaches it)"
            print(f"{mutant.line:5} {mutant.name}{reach}", flush=True)
    noticed = len(mutants) - survivors
    print(f"{file.relative_to(ROOT)}: {noticed} of {len(mutants)} noticed", flush=True)
    return noticed, len(mutants)


if __name__ == "__main__":
    raise SystemExit(main())
