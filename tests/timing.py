"""CPU time of a piece of code against a limit that means the same on a slow machine and under coverage."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from time import process_time

#: What `_reference` takes on the machine that the limits were set on, in seconds.
_NOMINAL = 0.03
#: How much longer pure Python takes while coverage traces each of its lines.
_TRACED = 5


@contextmanager
def takes_at_most(seconds: float, what: object = "") -> Generator[None]:
    """Fail where the body takes more CPU time than `seconds`; `what` names the case. A slower machine has more."""
    started = process_time()
    yield
    spent = process_time() - started
    if spent > seconds:
        slower = max(1.0, _reference() / _NOMINAL) * (_TRACED if sys.gettrace() else 1)
        assert spent <= seconds * slower, f"{spent:.2f} s of {seconds * slower:.2f} s: {what!r:.80}"


def _reference() -> float:
    """Return what a known piece of work takes at this moment, in seconds of CPU time."""
    started = process_time()
    words = {str(number): number for number in range(60_000)}
    sum(words[str(number)] for number in range(60_000))
    return process_time() - started
