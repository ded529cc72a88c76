"""Where the first request's time goes: the modules that it imports, the dearest first."""

import re

from lab import Lab, Row

LINE = re.compile(r"import time: +(\d+) \| +(\d+) \| +(\S+)")


def measure(lab: Lab, rounds: int) -> list[Row]:
    """Take the cheapest of several runs per module: what is left is the module, not the machine."""
    best: dict[str, int] = {}
    for _ in range(rounds):
        for name, own in own_microseconds(lab).items():
            best[name] = min(own, best.get(name, own))
    groups: dict[str, int] = {}
    for name, own in best.items():
        root = name.split(".")[0]
        group = (
            ".".join(name.split(".")[:2])
            if root == "ybs"
            else root
            if root in OTHERS
            else "standard library"
        )
        groups[group] = groups.get(group, 0) + own
    rows = [Row(f"all {len(best)} modules", sum(best.values()) / 1000, "ms")]
    rows += [Row(f"  {name}", own / 1000, "ms") for name, own in by_cost(groups)]
    rows += [Row(f"    {name}", own / 1000, "ms") for name, own in by_cost(best)[:15]]
    return rows


OTHERS = {
    "httpx2",
    "httpcore2",
    "h11",
    "anyio",
    "msgspec",
    "idna",
    "truststore",
    "rich",
    "prompt_toolkit",
}


def by_cost(costs: dict[str, int]) -> list[tuple[str, int]]:
    return sorted(costs.items(), key=lambda item: -item[1])


def own_microseconds(lab: Lab) -> dict[str, int]:
    session = lab.ybs("turns0", PYTHONPROFILEIMPORTTIME="1")
    return {match[3]: int(match[1]) for match in LINE.finditer(session.ended.output)}
