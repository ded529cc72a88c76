"""`ybs router simulate`: how the router compares with other ways to choose, in made-up worlds. It needs no model."""

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ybs.core.wording import plural
from ybs.frontends.headless.output import write, write_json
from ybs.frontends.layout import in_columns
from ybs.router.simulator.report import Figures, Report, report
from ybs.security.gate import put, put_over

if TYPE_CHECKING:
    from argparse import Namespace

#: So many columns of the table stand beside each other.
_COLUMNS = 4
#: So many seeds times decisions are done before other processes have started.
_SHORT = 1_000


def simulate(arguments: "Namespace") -> int:
    """Simulate, and print mean regrets by policy and scenario; exit code 1 where a target is missed."""
    # Its processes are Python's own to start: so they look for no module in the folder that they stand in.
    os.environ["PYTHONSAFEPATH"] = "1"
    is_long = arguments.seeds * arguments.decisions > _SHORT
    found = report(
        arguments.seeds,
        arguments.decisions,
        is_tuning=arguments.tuning,
        processes=os.cpu_count() or 1 if is_long else 1,
        progress=_progress if sys.stderr.isatty() else None,
    )
    if arguments.format == "json":
        write_json(found)
    else:
        write("\n".join(_lines(found)))
    return int(found.missed > 0)


def _progress(done: int, count: int) -> None:
    put_over(f"{done} of {count} worlds", sys.stderr)
    if done == count:
        put("", sys.stderr)


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
