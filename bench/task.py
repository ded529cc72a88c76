"""A task of four turns: read, edit, shell, answer. Time, memory and the size of the prompt."""

from lab import Lab, Row, interleave, median


def measure(lab: Lab, rounds: int) -> list[Row]:
    runs = interleave(rounds, ybs=lambda: lab.ybs("task"), floor=lambda: lab.floor("task"))
    ybs, floor = runs["ybs"], runs["floor"]
    first = ybs[0].requests[0]
    wall = [median(run.ended.wall_seconds for run in group) for group in (ybs, floor)]
    cpu = [median(run.ended.cpu_seconds for run in group) for group in (ybs, floor)]
    return [
        Row("memory of all processes", median(run.ended.tree_mb for run in ybs), "MB", 35),
        Row("body of the first request", first["body_bytes"], "B", 5700),
        Row("  of it tool schemas", first["tools_bytes"], "B"),
        Row("  of it system prompt", first["system_chars"], "characters"),
        Row("  in tokens, about", first["body_bytes"] / 4, "tokens"),
        Row("requests", len(ybs[0].requests), "", 4),
        Row("whole task, wall / the bare loop's", wall[0] / wall[1], "x", 2.4),
        Row("whole task, CPU / the bare loop's", cpu[0] / cpu[1], "x"),
        Row("whole task, wall", wall[0] * 1000, "ms"),
        Row(
            "per turn, from answer to next request",
            median(median(run.gaps_ms) for run in ybs),
            "ms",
        ),
        Row("  of the bare loop", median(median(run.gaps_ms) for run in floor), "ms"),
        Row("from last answer to exit", median(seconds_to_exit(run) for run in ybs) * 1000, "ms"),
    ]


def seconds_to_exit(run) -> float:
    return run.ended.started_at + run.ended.wall_seconds - run.requests[-1]["answered"]
