"""From the command to the first byte of its first request, beside a bare loop and the imports that both need."""

from lab import Lab, Row, interleave, median

#: No HTTP library: a server on loopback is asked in plain HTTP, which ybs speaks itself.
IMPORTS = "import asyncio, msgspec, argparse"


def measure(lab: Lab, rounds: int) -> list[Row]:
    runs = interleave(
        rounds,
        ybs=lambda: lab.ybs("turns0").first_request_seconds,
        floor=lambda: lab.floor("turns0").first_request_seconds,
        imports=lambda: lab.python(IMPORTS).wall_seconds,
    )
    ybs, floor, imports = (median(runs[name]) for name in ("ybs", "floor", "imports"))
    return [
        Row(f"first request / {IMPORTS}", ybs / imports, "x"),
        Row("first request / the bare loop's", ybs / floor, "x", 4.5),
        Row("first request", ybs * 1000, "ms"),
        Row("first request of the bare loop", floor * 1000, "ms"),
        Row("those imports alone", imports * 1000, "ms"),
    ]
