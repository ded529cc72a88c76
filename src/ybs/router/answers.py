"""Answers: how long those of each arm typically are and take, by kind of task; running estimates, in which old answers fade."""

from collections.abc import Collection
from typing import Final

from msgspec import Struct

from ybs.router.database import Connection

#: Each answer counts for so much of the estimate, the first ones for more: until then it is their mean.
NEWEST_SHARE: Final = 0.1
#: The row of an arm for all kinds together.
ALL: Final = ""


class Answer(Struct, frozen=True, kw_only=True):
    """One whole answer of an arm at a kind of task: so many tokens, in so many seconds."""

    arm: str
    kind: str
    tokens: int
    seconds: float


class Typical(Struct, frozen=True, kw_only=True):
    """What an answer is expected to be; 0: not known."""

    tokens: float = 0.0
    seconds: float = 0.0


def note(at: Connection, answer: Answer) -> None:
    """Move the estimates of an arm towards an answer: that of its kind, and that for all kinds."""
    step = "max(?, 1.0 / (count + 1))"
    for kind in {answer.kind, ALL}:
        at.execute(
            "INSERT INTO answers (arm, kind, count, tokens, seconds) VALUES (?, ?, 1, ?, ?) "  # noqa: S608 - no values in it
            "ON CONFLICT (arm, kind) DO UPDATE SET count = count + 1, "
            f"tokens = tokens + {step} * (excluded.tokens - tokens), "
            f"seconds = seconds + {step} * (excluded.seconds - seconds)",
            (answer.arm, kind, answer.tokens, answer.seconds, NEWEST_SHARE, NEWEST_SHARE),
        )


def typical(at: Connection, arms: Collection[str], kind: str) -> dict[str, Typical]:
    """Return what is expected of each arm at a kind of task.

    Of an arm that has not answered at this kind it is what it does at all others. Of one that has never answered it is as many
    tokens as the others have in the mean, since it must not look cheaper or dearer only because it is new.
    """
    query = "SELECT arm, kind, tokens, seconds FROM answers WHERE kind IN (?, ?)"
    rows = {(row[0], row[1]): row[2:] for row in at.execute(query, (kind, ALL))}
    known = {
        arm: Typical(tokens=found[0], seconds=found[1])
        for arm in arms
        if (found := rows.get((arm, kind)) or rows.get((arm, ALL)))
    }
    mean = sum(each.tokens for each in known.values()) / max(len(known), 1)
    return {arm: known.get(arm, Typical(tokens=mean)) for arm in arms}
