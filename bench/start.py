"""Start-up: what `ybs --version` costs, beside an interpreter that imports what any program of its kind needs."""

from lab import YBS, Lab, Row, interleave, median


def measure(lab: Lab, rounds: int) -> list[Row]:
    runs = interleave(
        rounds,
        version=lambda: lab.plain(YBS, "--version"),
        help=lambda: lab.plain(YBS, "--help"),
        imports=lambda: lab.python("import asyncio, json, argparse"),
        nothing=lambda: lab.python("pass"),
    )
    cpu = {
        name: median(ended.cpu_seconds for ended in ended_runs) for name, ended_runs in runs.items()
    }
    return [
        Row(
            "ybs --version, CPU / import asyncio, json, argparse",
            cpu["version"] / cpu["imports"],
            "x",
            1.6,
        ),
        Row("ybs --help, CPU / the same", cpu["help"] / cpu["imports"], "x"),
        Row("python -c pass, CPU / the same", cpu["nothing"] / cpu["imports"], "x"),
        Row("ybs --version, CPU", cpu["version"] * 1000, "ms"),
    ]
