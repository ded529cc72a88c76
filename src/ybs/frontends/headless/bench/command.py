"""Run the tasks, show each as it ends, and sum them up."""

import asyncio
from collections.abc import Callable, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from ybs.core.errors import YbsError
from ybs.core.wording import plural
from ybs.frontends.headless.bench.running import Measured, Unanswered, run_task
from ybs.frontends.headless.bench.tasks import Half, Task, load_tasks
from ybs.frontends.headless.output import tell, write, write_json

if TYPE_CHECKING:
    from ybs.session.options import Options
    from ybs.session.session import Session

_COLUMNS: Final = "{:<15} {:<11} {:<6} {:>7} {:>5} {:>7} {:>7} {:>6} {:>6}  {}"
_HEAD: Final = (
    *("task", "kind", "solved", "seconds", "steps", "in", "cached", "out", "calls"),
    "what is wrong",
)


def bench_tasks(
    options: "Options",
    *,
    half: Half | None,
    names: Sequence[str],
    is_json: bool,
    opener: "Callable[[Options], Session] | None" = None,
) -> int:
    """Measure the model that is chosen; return 0 however well it does. Raises YbsError.

    What was measured is summed up where it is interrupted, too, and where the provider no longer answers. `opener` opens the
    sessions (others in tests).
    """
    tasks = load_tasks(half, names)
    if opener is None:
        from ybs.commands.open import open_session as opener
    tell(f"{plural(len(tasks), 'task')}, each in a project of its own that is thrown away.")
    rows: list[Measured] = []
    try:
        asyncio.run(_run_all(tasks, options, opener, rows, show=None if is_json else _show))
    except (KeyboardInterrupt, YbsError):
        if rows:
            _sum_up(rows, is_json=is_json)
        raise
    _sum_up(rows, is_json=is_json)
    return 0


def _sum_up(rows: Sequence[Measured], *, is_json: bool) -> None:
    if is_json:
        write_json({**summary(rows), "tasks": rows})
    else:
        write(_total(rows))


async def _run_all(
    tasks: Sequence[Task],
    options: "Options",
    opener: "Callable[[Options], Session]",
    rows: list[Measured],
    show: Callable[[Measured], None] | None,
) -> None:
    """Add a row for each task. A provider that is not there says nothing about the model, so it ends the run."""
    for task in tasks:
        try:
            row = await run_task(task, options, opener)
        except Unanswered as error:
            if error.temporary or not rows:
                raise
            row = error.row
        if show is not None and not rows:
            write(_COLUMNS.format(*_HEAD))
        rows.append(row)
        if show is not None:
            show(row)


def _show(row: Measured) -> None:
    counts = (row.input_tokens, row.cached_tokens, row.output_tokens)
    calls = f"{row.valid_calls}/{row.calls}"
    solved = "yes" if row.is_solved else "no"
    cells = (row.name, row.kind, solved, f"{row.seconds:.1f}", row.steps, *counts, calls)
    write(_COLUMNS.format(*cells, row.problem).rstrip())


def summary(rows: Sequence[Measured]) -> dict[str, Any]:
    """Return the figures of all tasks together; shares are None where there is nothing to share."""
    calls = sum(row.calls for row in rows)
    return {
        "model": next((row.model for row in rows if row.model), ""),
        "count": len(rows),
        "solved": sum(row.is_solved for row in rows),
        "solved_share": _share(sum(row.is_solved for row in rows), len(rows)),
        "median_seconds": round(median(row.seconds for row in rows), 3) if rows else None,
        "input_tokens": sum(row.input_tokens for row in rows),
        "cached_tokens": sum(row.cached_tokens for row in rows),
        "output_tokens": sum(row.output_tokens for row in rows),
        "valid_calls_share": _share(sum(row.valid_calls for row in rows), calls),
        "stopped": sum(row.ended != "done" for row in rows),
    }


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def _total(rows: Sequence[Measured]) -> str:
    found = summary(rows)
    if not rows:
        return "No task was run."
    valid = found["valid_calls_share"]
    said = "no calls" if valid is None else f"{valid:.0%} of the calls valid"
    return (
        f"\n{found['model'] or 'The model'}: {found['solved']} of {found['count']} solved ({found['solved_share']:.0%}), "
        f"median {found['median_seconds']:.1f} s, {said}, {found['stopped']} stopped. Tokens: "
        f"{found['input_tokens']:,} in ({found['cached_tokens']:,} of them cached), {found['output_tokens']:,} out."
    )
