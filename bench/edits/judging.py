"""The judge: what a tool made of a case, and what that is worth."""

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Protocol

from edits.cases import Case

Verdict = Literal["right", "refused", "wrong"]


@dataclass(frozen=True)
class Outcome:
    """What a tool did: its word, the file after it, and the CPU time of finding the change."""

    is_error: bool
    text: str
    file: bytes
    seconds: float


@dataclass(frozen=True)
class Judged:
    """A case with its outcome and the verdict on it."""

    case: Case
    outcome: Outcome
    verdict: Verdict

    @property
    def is_good(self) -> bool:
        """Whether it is what should happen."""
        return self.verdict == ("refused" if self.case.after is None else "right")


class Subject(Protocol):
    """An edit tool."""

    name: str

    def edit(self, case: Case) -> Outcome:
        """Let the tool try the case."""
        ...


def verdict_of(case: Case, outcome: Outcome) -> Verdict:
    """Judge. A file touched by a refusal is wrong, and so is a success that changed nothing."""
    found = case.disturbed or case.before
    if outcome.is_error:
        return "refused" if outcome.file == found else "wrong"
    return "right" if case.after is not None and outcome.file == case.after else "wrong"


def judge(subject: Subject, cases: Iterable[Case]) -> list[Judged]:
    """Return the verdict on each case."""
    judged: list[Judged] = []
    for case in cases:
        outcome = subject.edit(case)
        judged.append(Judged(case, outcome, verdict_of(case, outcome)))
    return judged


def percent(part: int, whole: int) -> float:
    """Return a share in percent; 0 of nothing."""
    return 100 * part / whole if whole else 0.0


@dataclass(frozen=True)
class Total:
    """The numbers that the project's measures name. Percent and milliseconds."""

    cases: int
    right: float  # of the repairable, in percent
    wrong_traps: int
    wrong: float  # of all, in percent
    median_ms: float
    p99_ms: float


def total_of(judged: list[Judged]) -> Total:
    """Add up."""
    repairable = [one for one in judged if one.case.after is not None]
    traps = [one for one in judged if one.case.after is None]
    times = sorted(one.outcome.seconds * 1000 for one in judged) or [0.0]
    return Total(
        cases=len(judged),
        right=percent(sum(one.is_good for one in repairable), len(repairable)),
        wrong_traps=sum(one.verdict == "wrong" for one in traps),
        wrong=percent(sum(one.verdict == "wrong" for one in judged), len(judged)),
        median_ms=statistics.median(times),
        p99_ms=times[min(len(times) - 1, int(len(times) * 0.99))],
    )
