"""The edit tool on real changes told wrong: right where the meaning is clear, refused where it is not.

`python bench/edit_matcher.py [REPOSITORY...] [--edits N] [--seed N] [--class NAME] [--show N] [--format json]` takes
git repositories, and this project's own history when none is given. It ends with 1 when a target is missed.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from difflib import unified_diff
from pathlib import Path
from tempfile import TemporaryDirectory

from edits.judging import Judged, Subject, Total, judge, percent, total_of
from edits.making import CLASSES, REFUSED, make_cases
from edits.mining import mine
from edits.subjects import Exact, Similar, Ybs
from lab import Lab, Row

OWN = Path(__file__).parent.parent
FEWEST_RIGHT, MOST_WRONG, MOST_MEDIAN_MS = 90, 0.3, 5


def main() -> int:
    options = _options()
    mined = mine(options.repositories or [OWN], max(1500, options.edits * 3), options.seed)
    if not mined:
        print("There are no edits in the histories.", file=sys.stderr)
        return 1
    cases = make_cases(mined, options.edits, options.seed, options.only)
    with TemporaryDirectory() as folder:
        subjects: list[Subject] = [Ybs(Path(folder).resolve())]
        if not options.alone:
            subjects += [Exact(), Similar()]
        verdicts = {subject.name: judge(subject, cases) for subject in subjects}
    if options.format == "json":
        print(json.dumps({name: _data(judged) for name, judged in verdicts.items()}, indent=1))
    else:
        _print(verdicts)
    shown = [one for one in verdicts["ybs"] if options.all or not one.is_good][: options.show]
    for one in shown:
        print("\n".join(told(one)), file=sys.stderr if options.format == "json" else sys.stdout)
    return 1 if missed(total_of(verdicts["ybs"])) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure the edit tool on edits told wrong.")
    add = parser.add_argument
    add("repositories", nargs="*", type=Path, metavar="REPOSITORY", help="with a history (this)")
    add("--edits", type=int, default=1000, metavar="N", help="how many (%(default)s)")
    add("--seed", type=int, default=1, metavar="N", help="another choice (%(default)s)")
    add("--class", dest="only", choices=CLASSES, metavar="NAME", help=f"of {', '.join(CLASSES)}")
    add("--show", type=int, default=0, metavar="N", help="print so many failures whole")
    add("--all", action="store_true", help="with --show: print good ones too")
    add("--alone", action="store_true", help="leave the simple matchers for comparison out")
    add("--format", choices=("text", "json"), default="text")
    return parser.parse_args()


def missed(total: Total) -> list[str]:
    """Name the targets that are missed."""
    targets = {
        f"right {total.right:.1f} %, at least {FEWEST_RIGHT} %": total.right >= FEWEST_RIGHT,
        f"wrong where it must refuse {total.wrong_traps}, none": not total.wrong_traps,
        f"wrong of all {total.wrong:.2f} %, at most {MOST_WRONG} %": total.wrong <= MOST_WRONG,
        f"median {total.median_ms:.2f} ms, at most {MOST_MEDIAN_MS} ms": total.median_ms
        <= MOST_MEDIAN_MS,
    }
    return [what for what, is_met in targets.items() if not is_met]


def _classes(judged: list[Judged]) -> Iterator[tuple[str, list[Judged]]]:
    for name in CLASSES:
        if found := [one for one in judged if one.case.name == name]:
            yield name, found


def _count(judged: list[Judged], verdict: str) -> int:
    return sum(one.verdict == verdict for one in judged)


def _data(judged: list[Judged]) -> dict[str, object]:
    total = total_of(judged)
    classes = {
        name: {verdict: _count(found, verdict) for verdict in ("right", "refused", "wrong")}
        for name, found in _classes(judged)
    }
    return {**asdict(total), "missed": missed(total), "classes": classes}


def _print(verdicts: dict[str, list[Judged]]) -> None:
    for subject, judged in verdicts.items():
        print(f"\n{subject:<20} {'n':>5} {'right %':>8} {'refused':>8} {'wrong':>6}")
        for name, found in _classes(judged):
            right = "" if name in REFUSED else f"{percent(_count(found, 'right'), len(found)):.1f}"
            refused, wrong = _count(found, "refused"), _count(found, "wrong")
            print(f"  {name:<18} {len(found):>5} {right:>8} {refused:>8} {wrong:>6}")
    print(
        f"\n{'':<10} {'right %':>8} {'wrong traps':>12} {'wrong %':>8} {'median ms':>10} {'p99 ms':>8}"
    )
    for subject, judged in verdicts.items():
        total = total_of(judged)
        print(
            f"{subject:<10} {total.right:>8.1f} {total.wrong_traps:>12} {total.wrong:>8.2f} "
            f"{total.median_ms:>10.2f} {total.p99_ms:>8.2f}"
        )
    misses = missed(total_of(verdicts["ybs"]))
    print("\n" + ("Missed: " + "; ".join(misses) if misses else "All targets met."))


def told(one: Judged) -> list[str]:
    """Return a case as lines to be read: what was asked for, what was wanted, what came of it."""
    case, outcome = one.case, one.outcome
    before = (case.disturbed or case.before).decode()
    lines = [f"\n===== {case.name}: {one.verdict} == {case.path} {case.origin}"]
    lines += [f"old {case.old!r}", f"new {case.new!r}", f"says {outcome.text[:300]!r}"]
    wanted = before if case.after is None else case.after.decode()
    pairs = [("before", before, "wanted", wanted)]
    if outcome.file != wanted.encode():
        pairs.append(("wanted", wanted, "made", outcome.file.decode(errors="replace")))
    for from_name, a, to_name, b in pairs:
        split = a.split("\n"), b.split("\n")
        lines += [
            repr(line)[1:-1] for line in unified_diff(*split, from_name, to_name, "", "", 3, "")
        ]
    return lines


def measure(lab: Lab, rounds: int) -> Iterator[Row]:
    """Measure on this project's own history."""
    mined = mine([OWN], 600, 1)
    cases = make_cases(mined, 300, 1)
    folder = lab.folder / "edits"
    folder.mkdir(exist_ok=True)
    total = total_of(judge(Ybs(folder.resolve()), cases))
    note = f"of {total.cases} edits"
    yield Row("not right of what can be repaired", 100 - total.right, "%", 100 - FEWEST_RIGHT, note)
    yield Row("wrong where it must refuse", total.wrong_traps, "edits", 0)
    yield Row("wrong of all", total.wrong, "%", MOST_WRONG)
    yield Row("finding the place, median", total.median_ms, "ms", MOST_MEDIAN_MS)
    yield Row("finding the place, 99th percentile", total.p99_ms, "ms")


if __name__ == "__main__":
    raise SystemExit(main())
