"""A working hour on a real terminal: 200 turns, each with a tool call and 2 kB of Markdown; memory and CPU stay flat."""

from typing import NamedTuple

from lab import Lab, Row
from typist import Typist, typing

TURNS = 200
#: The turns that stand for the beginning and for the end.
EARLY, LATE = slice(10, 40), slice(170, 200)
ALLOWED = ("--mode", "accept-edits", "--allow", "run_shell")


class Used(NamedTuple):
    """What one turn took, and the memory after it."""

    cpu_seconds: float
    memory_mb: float


def measure(lab: Lab, rounds: int) -> list[Row]:
    """Work through the turns once: a session that long needs no rounds."""
    with typing(lab, "turns", *ALLOWED) as typist:
        first_mb = typist.memory_mb()
        turns = [take_turn(typist, number) for number in range(1, TURNS + 1)]
        peak_mb = typist.memory_mb("VmHWM")
    check_work(lab)
    early, late = cpu(turns[EARLY]), cpu(turns[LATE])
    return [
        Row(f"peak memory in {TURNS} turns", peak_mb, "MB", 120),
        Row("memory at the first prompt", first_mb, "MB"),
        Row("memory after 20 turns", turns[19].memory_mb, "MB"),
        Row(f"memory after {TURNS} turns", turns[-1].memory_mb, "MB"),
        Row("CPU of turns 171-200 / turns 11-40", late / early, "x", 1.5),
        Row("CPU of turns 11-40", early * 1000, "ms"),
        Row("CPU of turns 171-200", late * 1000, "ms"),
    ]


def take_turn(typist: Typist, number: int) -> Used:
    """Ask, and read until the answer's mark is drawn and the turn has ended."""
    before = typist.cpu_seconds
    typist.type(f"go on with step {number}\r")
    typist.waits_for(f"This was turn {number}.".encode())
    typist.waits_for(b" out ")
    typist.rest(0.05)
    return Used(typist.cpu_seconds - before, typist.memory_mb())


def cpu(turns: list[Used]) -> float:
    """Return the mean: the kernel counts in steps of 10 ms, so a single turn says little."""
    return sum(turn.cpu_seconds for turn in turns) / len(turns)


def check_work(lab: Lab) -> None:
    """Stop where the turns did not do their work: their numbers would mean nothing."""
    last = TURNS - (TURNS - 2) % 3
    if f"VALUE = {last}\n" not in (lab.folder / "terminal-turns/src/app.py").read_text():
        raise SystemExit(f"src/app.py was not edited in turn {last}, so the numbers mean nothing")
