"""Measures ybs and prints ratios: `python bench/run.py [NAME...] [--rounds N]`. Exit status 1 where a limit is missed.

Every ratio compares medians of runs that took turns with each other, so that it means the same on a busy machine.
The absolute numbers are only there to be read beside each other.
"""

import argparse
import os
import sys
from importlib import import_module
from pathlib import Path

from lab import Lab, Row

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))  # for its scripted servers

NAMES = (
    "start",
    "terminal_start",
    "first_request",
    "extensions",
    "mcp_cost",
    "adapters",
    "https_request",
    "surroundings",
    "task",
    "long",
    "shell",
    "dependencies",
    "imports",
    "edit_matcher",
    "search",
    "listing",
    "repo_map_cost",
    "checkpoints",
    "completion",
    "policy",
    "sandbox",
    "firewall",
    "router_choice",
    "compaction",
    "sub_agents",
    "local_start",
    "transcript",
    "terminal_stream",
    "terminal_echo",
    "terminal_memory",
    "sessions",
)


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure ybs.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)} (all)")
    parser.add_argument("--rounds", type=int, default=9, help="how often each is run (%(default)s)")
    options = parser.parse_args()
    if unknown := set(options.names) - set(NAMES):
        parser.error(f"unknown: {', '.join(sorted(unknown))} (there are {', '.join(NAMES)})")
    missed = 0
    for name in options.names or NAMES:
        module = import_module(name)
        print(f"\n{name}: {module.__doc__.splitlines()[0]}", flush=True)
        with Lab() as lab:  # what one measure leaves behind is not for the next
            for row in module.measure(lab, options.rounds):
                print(line_of(row), flush=True)
                missed += is_missed(row)
    load = os.getloadavg()[0]
    print(
        f"\n{missed} of the limits missed. Python {sys.version.split()[0]}, {options.rounds} rounds, load {load:.1f}."
    )
    return min(missed, 1)


def is_missed(row: Row) -> bool:
    return row.limit is not None and not row.value <= row.limit  # what is no number misses it too


def line_of(row: Row) -> str:
    digits = 2 if row.unit in ("x", "ms") else 0
    limit = (
        ""
        if row.limit is None
        else f"at most {row.limit:g}" + ("  MISSED" if is_missed(row) else "")
    )
    return f"  {row.what:<62} {row.value:>9.{digits}f} {row.unit:<10} {limit} {row.note}".rstrip()


if __name__ == "__main__":
    raise SystemExit(main())
