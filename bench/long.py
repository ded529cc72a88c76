"""A long session: 120 turns of read and edit, to see whether a turn grows dearer with the session."""

from lab import Lab, Row, interleave, median

TURNS = 120


def measure(lab: Lab, rounds: int) -> list[Row]:
    runs = interleave(
        rounds,
        ybs=lambda: lab.ybs(f"turns{TURNS}"),
        floor=lambda: lab.floor(f"turns{TURNS}"),
        empty=lambda: lab.ybs("turns0"),
        hundred=lambda: lab.ybs("turns100"),
    )
    ybs, floor = runs["ybs"], runs["floor"]
    early, late = gap(ybs, 5, 15), gap(ybs, 90, 110)
    total = median(run.seconds_to_request(100) for run in ybs)
    floor_total = median(run.seconds_to_request(100) for run in floor)
    floor_first = median(run.first_request_seconds for run in floor)
    cpu = [median(run.ended.cpu_seconds for run in runs[name]) for name in ("hundred", "empty")]
    return [
        Row("CPU of ybs per turn", (cpu[0] - cpu[1]) * 1000 / 100, "ms", 3),
        Row("turns 90-110 / turns 5-15", late / early, "x", 1.3),
        Row("  of the bare loop", gap(floor, 90, 110) / gap(floor, 5, 15), "x"),
        Row(
            "100 turns / the bare loop's first request",
            total / floor_first,
            "x",
            25,
            "1.8 s where that takes 72 ms",
        ),
        Row("100 turns / the bare loop's 100 turns", total / floor_total, "x", 3.4),
        Row("100 turns", total * 1000, "ms"),
        Row("turns 5-15", early, "ms"),
        Row("turns 90-110", late, "ms"),
        Row("memory of all processes", median(run.ended.tree_mb for run in ybs), "MB", 35),
    ]


def gap(runs, first: int, last: int) -> float:
    """Return the middle of the times before turns `first` to `last`, in milliseconds."""
    return median(median(run.gaps_ms[first - 2 : last - 1]) for run in runs)
