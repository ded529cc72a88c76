"""Compares the router with other ways to choose a model, in made-up worlds: `python bench/router_simulator.py [--seeds N] [--decisions N]`."""

import os
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence

import msgspec
from router_worlds.report import Figures, Report, report

from ybs.cli.flags import whole_number
from ybs.core.wording import plural
from ybs.frontends.layout import in_columns

#: So many columns of the table stand beside each other.
_COLUMNS = 4
#: So many seeds times decisions are done before other processes have started.
_SHORT = 1_000


def main(words: Sequence[str] | None = None) -> int:
    """Simulate, and print mean regrets by policy and scenario; exit code 1 where a target is missed."""
    parser = ArgumentParser(description="Compare the router with other ways to choose a model.")
    add = parser.add_argument
    add("--seeds", type=whole_number, default=64, help="made-up worlds of each scenario")
    add("--decisions", type=whole_number, default=1_000, help="decisions in each world")
    add("--tuning", action="store_true", help="the worlds that settings are tuned with")
    add("--format", choices=("text", "json"), default="text")
    arguments = parser.parse_args(words)
    is_long = arguments.seeds * arguments.decisions > _SHORT
    found = report(
        arguments.seeds,
        arguments.decisions,
        is_tuning=arguments.tuning,
        processes=os.cpu_count() or 1 if is_long else 1,
        progress=_progress if sys.stderr.isatty() else None,
    )
    if arguments.format == "json":
        print(msgspec.json.encode(found).decode())
    else:
        print("\n".join(_lines(found)))
    return int(found.missed > 0)


def _progress(done: int, count: int) -> None:
    print(f"\r{done} of {count} worlds", end="\n" if done == count else "", file=sys.stderr)


def _lines(found: Report) -> Iterator[str]:
    yield (
        f"Cumulative regret, the mean of {plural(found.seeds, 'seed')} from {found.first_seed} on, "
        "± 95 % confidence (share of round-robin):"
    )
    for start in range(0, len(found.scenarios), _COLUMNS):
        yield ""
        yield from _table(found.scenarios[start : start + _COLUMNS])
    yield ""
    yield "Targets of the router:"
    rows = [
        (
            "met" if each.is_met else "MISSED",
            f"{each.scenario}, {each.decisions}",
            f"{each.value:.2f} of {each.against}",
            f"{'at most' if each.limit < 1 else 'below'} {each.limit:g}",
        )
        for each in found.targets
    ]
    yield from in_columns(rows)


def _table(columns: tuple[Figures, ...]) -> list[str]:
    head = ["", *(f"{each.scenario}, {each.decisions}" for each in columns)]
    rows = [
        [
            columns[0].policies[at].policy,
            *(
                f"{score.mean_regret:.1f} ±{score.ci95:.1f} ({score.of_round_robin:.2f})"
                for score in (each.policies[at] for each in columns)
            ),
        ]
        for at in range(len(columns[0].policies))
    ]
    return in_columns([head, *rows])


if __name__ == "__main__":
    raise SystemExit(main())
