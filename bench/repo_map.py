"""How good the repo map is: commits of real repositories, asked by their messages at their parents.

`python bench/repo_map.py CLONE... [--half test|tune|all] [--commits N]` draws commits that touch 1 to 4 source files
from local clones, checks out the parent of each in a temporary folder, and asks for a map of 1,024 tokens. Beside it
stands plain BM25 that lists paths only. recall: the share of touched files in the map; MRR: 1 / the place of the first;
symbols: the share of changed functions and classes that are named beside their file. The map counts tokens as ybs
estimates them; with `VOCABULARIES` (see bench/tokens.py) they are counted by a real tokenizer too. It ends with 1 when
a floor is missed.
"""

import argparse
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from math import ceil
from pathlib import Path
from statistics import mean

from msgspec import Struct
from repo_map_cases import TUNED_ON, Clone, print_case
from repo_map_scores import (
    PlainSearch,
    blocks_of,
    fitting,
    interval,
    rank_of,
    recall_of,
    symbols_of,
)
from token_truth import tokenizers

from ybs.frontends.host import this_host
from ybs.git.client import Git
from ybs.providers.tokens import estimate
from ybs.repo_map.languages import language_of
from ybs.repo_map.repo_map import RepoMap

FLOORS = {"recall": 0.94, "MRR": 0.60, "symbols": 0.30}
AIMS = {"recall": 0.96, "MRR": 0.70, "symbols": 0.45}
#: Repositories of more source files are told apart.
LARGE = 500
#: How `ybs map` estimates where no model is chosen, and whose tokens are counted beside it.
FAMILY = "o200k"


class Score(Struct, frozen=True, kw_only=True):
    """One case: the measures of the map and of the plain search; `symbols` is -1 where no definition changed."""

    repository: str
    sources: int
    recall: float
    rank: float
    symbols: float
    plain_recall: float
    plain_rank: float
    estimated: int
    counted: int


def main() -> int:
    """Measure, print, and say whether the floors are kept."""
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    options.add_argument("clones", nargs="+", type=Path, help="local clones with their history")
    options.add_argument("--half", choices=("test", "tune", "all"), default="test")
    options.add_argument("--commits", type=int, default=16, help="of each clone (%(default)s)")
    options.add_argument("--tokens", type=int, default=1024)
    options.add_argument("--seed", type=int, default=8)
    options.add_argument("--jobs", type=int, default=2)
    options.add_argument("--cases", action="store_true", help="a line for each case")
    wish = options.parse_args()
    clones = [
        each.resolve()
        for each in wish.clones
        if wish.half == "all" or (each.resolve().name in TUNED_ON) == (wish.half == "tune")
    ]
    scores: list[Score] = []
    with ProcessPoolExecutor(wish.jobs) as jobs:
        for found in jobs.map(partial(_scores, wish=wish), clones):
            scores += found
            if found:
                print(_row(found[0].repository, found), flush=True)
    return _tell(scores) if scores else 2


def _scores(source: Path, wish: argparse.Namespace) -> list[Score]:
    with tempfile.TemporaryDirectory(prefix="ybs-bench-") as folder:
        return list(_measured(Clone(source, Path(folder)), Path(folder), wish))


def _measured(clone: Clone, folder: Path, wish: argparse.Namespace) -> Iterator[Score]:
    count = _counter()
    paths: list[str] = []
    made = RepoMap(
        clone.folder,
        cache=folder / "maps" / "cache",
        list_files=lambda: paths,
        git=Git(this_host().environ, clone.folder),
        count=lambda text: ceil(estimate(text)),
    )
    plain = PlainSearch(clone.folder)
    for case in clone.cases(wish.commits, wish.seed):
        paths[:] = clone.check_out(case.parent)
        sources = [path for path in paths if language_of(path)]
        if not set(case.touched) <= set(paths):
            continue  # the clone lacks some of its history
        made.prepare()
        answer = made.answer(case.message, wish.tokens)
        listed = blocks_of(answer.text)
        simple = plain.ranked(case.message, sources)
        beside = dict.fromkeys(fitting(simple, wish.tokens, count or estimate), "")
        score = Score(
            repository=clone.name,
            sources=len(sources),
            recall=recall_of(case.touched, listed),
            rank=rank_of(case.touched, answer.files),
            symbols=symbols_of(case.changed, listed) if case.changed else -1,
            plain_recall=recall_of(case.touched, beside),
            plain_rank=rank_of(case.touched, simple),
            estimated=answer.tokens,
            counted=round(count(answer.text)) if count else 0,
        )
        if wish.cases:
            print_case(
                clone.name, case, recall=score.recall, rank=score.rank, symbols=score.symbols
            )
        yield score
    made.close()


def _counter() -> Callable[[str], float] | None:
    found = next(each for family, _, each in tokenizers() if family == FAMILY)
    return None if isinstance(found, str) else found


def _tell(scores: Sequence[Score]) -> int:
    groups: dict[str, list[Score]] = defaultdict(list)
    for score in scores:
        groups[f"over {LARGE} sources" if score.sources > LARGE else f"up to {LARGE}"].append(score)
    print()
    for name, some in sorted(groups.items()):
        print(_row(name, some))
    print(_row("all", scores))
    counted = [score.counted for score in scores if score.counted]
    how = (
        f"{FAMILY}: {mean(counted):.0f} on average, at most {max(counted)}"
        if counted
        else "no real tokenizer here"
    )
    print(
        f"\ntokens as estimated: at most {max(score.estimated for score in scores)}; counted by {how}"
    )
    means = dict(zip(FLOORS, (mean(values) for values in _columns(scores)[:3]), strict=True))
    for name, value in means.items():
        verdict = "MISSED" if value < FLOORS[name] else "kept"
        print(f"{name:8} {value:.3f}  floor {FLOORS[name]:.2f} {verdict}, aim {AIMS[name]:.2f}")
    return int(any(value < FLOORS[name] for name, value in means.items()))


def _columns(scores: Iterable[Score]) -> tuple[list[float], ...]:
    scores = list(scores)
    return (
        [score.recall for score in scores],
        [score.rank for score in scores],
        [score.symbols for score in scores if score.symbols >= 0],
        [score.plain_recall for score in scores],
        [score.plain_rank for score in scores],
    )


def _row(name: str, scores: Sequence[Score]) -> str:
    names = ("recall", "MRR", "symbols", "BM25 recall", "MRR")
    shown = (f"{title} {_cell(each)}" for title, each in zip(names, _columns(scores), strict=True))
    return f"{name:22} n={len(scores):<4} {'  '.join(shown)}"


def _cell(values: Sequence[float]) -> str:
    if not values:
        return "-"
    low, high = interval(values)
    return f"{mean(values):.3f} [{low:.2f} {high:.2f}]"


if __name__ == "__main__":
    sys.exit(main())
