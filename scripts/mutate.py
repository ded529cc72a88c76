"""Change the code in small ways, one at a time, and see whether a test notices.

    python scripts/mutate.py src/ybs/security/paths/roots.py [MORE ...] [--tests tests/security] [--most 40] [--seed 1]

Each change (a mutant) is tried in a copy of the package with only those tests that reach its line, by a coverage run made
first. A mutant that no test notices is printed with its line. Some are equivalent: the program does the same. Judge those
by hand: scripts/mutants_equivalent.txt holds them, a comment with the reason above; they do not count.
Exit status 1 where fewer than 95 % of the others were noticed. Run by hand; minutes for a module.
"""

import argparse
import ast
import copy
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
EQUIVALENT = ROOT / "scripts" / "mutants_equivalent.txt"
FLOOR = 0.95
IMPORT = "import"  # stands for a line that the import of the module runs
MOST_TESTS = 25  # a mutant that the nearest ones do not notice, further ones seldom do
SECONDS = 90

SWAPPED: Mapping[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change: where, what, and the whole text of the file with it."""

    file: Path
    line: int
    change: str
    text: str

    @property
    def name(self) -> str:
        """How the list of equivalent ones names it: by the words of the line, for its number changes."""
        words = self.file.read_text().splitlines()[max(self.line - 1, 0)].strip()
        return f"{self.file.relative_to(ROOT)}: {self.change}: {words}"


def mutants_of(file: Path) -> Iterator[Mutant]:
    """Yield every mutant of a module."""
    tree = ast.parse(file.read_text())
    notes = _annotations(tree)
    for number in range(sum(1 for _ in ast.walk(tree))):
        if number in notes:
            continue
        changed = copy.deepcopy(tree)
        node = next(each for at, each in enumerate(ast.walk(changed)) if at == number)
        for change in _changes(node):
            yield Mutant(file, getattr(node, "lineno", 0), change, ast.unparse(changed))


def _annotations(tree: ast.AST) -> set[int]:
    """Return the numbers of the nodes that only say what type something has, and of docstrings."""
    typing = {
        id(below)
        for node in ast.walk(tree)
        for field in ("annotation", "returns")
        if isinstance(note := getattr(node, field, None), ast.AST)
        for below in ast.walk(note)
    }
    return {number for number, node in enumerate(ast.walk(tree)) if id(node) in typing}


def _changes(node: ast.AST) -> Iterator[str]:
    """Change the node in place, once for each way, and say how."""
    yield from _other_operators(node)
    yield from _other_branches(node)
    yield from _other_values(node)


def _other_operators(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Compare(ops=[old]) if type(old) in SWAPPED:
            new = SWAPPED[type(old)]()
            node.ops = [new]  # pyright: ignore[reportAttributeAccessIssue] - an operator for another
        case ast.BoolOp(op=old) | ast.BinOp(op=old) if type(old) in SWAPPED:
            new = SWAPPED[type(old)]()
            node.op = new  # pyright: ignore[reportAttributeAccessIssue] - likewise
        case _:
            return
    yield f"{type(old).__name__} -> {type(new).__name__}"


def _other_branches(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.If(test=test) | ast.IfExp(test=test):
            for value in (True, False):
                node.test = ast.copy_location(ast.Constant(value), test)
                yield f"if {value}"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            node.operand = ast.UnaryOp(ast.Not(), operand)
            yield "not not"
        case _:
            return


def _other_values(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Constant(value=bool() as value):
            node.value = not value
            yield f"{value} -> {not value}"
        case ast.Constant(value=int() as value):
            node.value = value + 1
            yield f"{value} -> {value + 1}"
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            node.value = ast.copy_location(ast.Constant(None), value)
            yield "return None"
        case ast.Expr(value=ast.Call(func=ast.Name(id="assert_never"))):
            return  # the type checker reads it, nobody runs it
        case ast.Expr(value=ast.Call() | ast.Await()):
            node.value = ast.copy_location(ast.Constant(None), node.value)
            yield "call left out"
        case ast.AugAssign():
            node.value = ast.copy_location(ast.Constant(0), node.value)
            yield "not added"
        case _:
            return


class Bench:
    """A copy of the package, and what tests reach which line of the original."""

    def __init__(self, folder: Path, tests: Sequence[str]) -> None:
        self.source, self._tests = folder / "src", tests
        shutil.copytree(SOURCE, self.source, ignore=shutil.ignore_patterns("__pycache__"))
        self._database = folder / "coverage"
        self._reached: dict[Path, dict[int, list[str]]] = {}

    def look(self) -> None:
        """Run the tests once with coverage, each line with the tests that reach it. Raises SystemExit where one fails."""
        config = self._database.with_suffix(".ini")
        config.write_text(
            f"[run]\nsource = ybs\nbranch = false\ndata_file = {self._database}\n"
            "dynamic_context = test_function\nconcurrency = thread\n"
        )
        words = ("-m", "coverage", "run", f"--rcfile={config}", "-m", "pytest")
        if self._pytest(words, self._tests, 1_800):
            raise SystemExit("the tests fail without any change")

    def tests_of(self, file: Path, line: int) -> list[str]:
        """Return the tests that reach a line, those that reach the fewest lines first; all for one run by the import."""
        if file not in self._reached:
            self._reached[file] = self._lines_of(file)
        found = self._reached[file].get(line, [])
        return list(self._tests) if IMPORT in found else found[:MOST_TESTS]

    def _lines_of(self, file: Path) -> dict[int, list[str]]:
        from coverage.numbits import numbits_to_nums

        copied = str(self.source / file.relative_to(SOURCE))
        sizes: dict[str, int] = {}
        lines: dict[int, set[str]] = {}
        with sqlite3.connect(self._database) as database:
            rows = database.execute(
                "select context.context, numbits from line_bits join context on context.id = context_id "
                "join file on file.id = file_id where file.path = ?",
                (copied,),
            )
            for context, bits in rows.fetchall():
                if test := _node_of(context) if context else IMPORT:
                    numbers = numbits_to_nums(bits)
                    sizes[test] = sizes.get(test, 0) + len(numbers)
                    for number in numbers:
                        lines.setdefault(number, set()).add(test)
        return {
            line: sorted(found - {IMPORT} or found, key=lambda test: (sizes[test], test))
            for line, found in lines.items()
        }

    def is_noticed(self, mutant: Mutant) -> bool:
        """Return whether a test fails with the change."""
        tests = self.tests_of(mutant.file, mutant.line)
        if not tests:
            return False
        file = self.source / mutant.file.relative_to(SOURCE)
        before = file.read_text()
        file.write_text(mutant.text)
        try:
            return bool(self._pytest(("-m", "pytest", "-x"), tests, SECONDS))
        finally:
            file.write_text(before)

    def _pytest(self, words: Sequence[str], tests: Sequence[str], seconds: float) -> int:
        command = (
            sys.executable,
            *words,
            "-n",
            "0",
            "-q",
            "--no-header",
            "-p",
            "no:cacheprovider",
            *tests,
        )
        environ = {**os.environ, "PYTHONPATH": str(self.source), "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            done = subprocess.run(
                command, cwd=ROOT, env=environ, capture_output=True, timeout=seconds, check=False
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return 1  # a test that does not end any more has noticed
        return done.returncode


def _node_of(context: str) -> str:
    """Return pytest's name of the test that coverage calls `tests.core.test_agent.test_words`."""
    module, _, function = context.rpartition(".")
    path = ROOT / (module.replace(".", "/") + ".py")
    return f"{path.relative_to(ROOT)}::{function}" if function and path.is_file() else ""


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
        "--most", type=int, default=0, help="at most so many mutants, drawn by chance"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--line", type=int, default=0, help="only this line")
    given = parser.parse_args()
    files = [path.resolve() for path in given.modules]
    equivalent = set(EQUIVALENT.read_text().splitlines())
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder).resolve(), given.tests or tests_beside(files))
        bench.look()
        mutants = [
            each for file in files for each in mutants_of(file) if given.line in (0, each.line)
        ]
        mutants = [each for each in mutants if each.name not in equivalent]
        if given.most and given.most < len(mutants):
            mutants = random.Random(given.seed).sample(mutants, given.most)  # noqa: S311 - a sample
        return judge(bench, mutants)


def judge(bench: Bench, mutants: Sequence[Mutant]) -> int:
    """Try each mutant; print those that nobody noticed, and the share of the others."""
    survivors = 0
    for mutant in sorted(mutants, key=lambda each: (str(each.file), each.line)):
        if not bench.is_noticed(mutant):
            survivors += 1
            reach = "" if bench.tests_of(mutant.file, mutant.line) else "  (no test reaches it)"
            print(f"{mutant.line:5} {mutant.name}{reach}", flush=True)
    share = 1 - survivors / len(mutants) if mutants else 1.0
    print(f"{len(mutants) - survivors} of {len(mutants)} noticed: {share:.1%}")
    return int(share < FLOOR)


if __name__ == "__main__":
    raise SystemExit(main())
