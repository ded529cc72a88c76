"""Key echo on a real terminal: from pressing a key to reading it back, at rest and while an answer streams."""

import time
from contextlib import contextmanager
from random import Random

from lab import Lab, Row, median
from typist import Typist, typing

PIECES_PER_SECOND = 300
KEYS = 200
#: Letters that stand nowhere else on the screen, so that an echo cannot be mistaken.
LETTERS = "абвгдежзийклмнопрстуфхцчшщъыьэюя"
#: Between two keys, in seconds: as fast as people type, and no beat that the redrawing could fall in with.
PAUSE = (0.02, 0.12)


def measure(lab: Lab, rounds: int) -> list[Row]:
    """Type in rounds, at rest and during a stream by turns."""
    each = -(-KEYS // rounds)
    at_rest: list[float] = []
    in_stream: list[float] = []
    work: list[float] = []
    random = Random(6)
    with typing(lab, f"stream-{PIECES_PER_SECOND}") as typist:
        typed(typist, random, 10)
        for _ in range(rounds):
            at_rest += typed(typist, random, each)
            with streaming(typist):
                begun_at, used = time.monotonic(), typist.cpu_seconds
                in_stream += typed(typist, random, each)
                work.append((typist.cpu_seconds - used) / (time.monotonic() - begun_at))
    rest, stream = percentile(at_rest, 95), percentile(in_stream, 95)
    return [
        Row(f"p95 with {PIECES_PER_SECOND} pieces a second / p95 at rest", stream / rest, "x", 3),
        Row("p95 in a stream", stream * 1000, "ms"),
        Row("p95 at rest", rest * 1000, "ms"),
        Row("median in a stream", percentile(in_stream, 50) * 1000, "ms"),
        Row("median at rest", percentile(at_rest, 50) * 1000, "ms"),
        Row("CPU of ybs in a stream", 100 * median(work), "%"),
        Row("slowest in a stream", max(in_stream) * 1000, "ms"),
    ]


@contextmanager
def streaming(typist: Typist):
    """Have an answer stream while the block runs."""
    typist.type("tell me more\r")
    typist.waits_for(b"Part")
    yield
    typist.type("\x1b")
    typist.waits_for(b"interrupted")
    typist.rest(0.5)


def typed(typist: Typist, random: Random, keys: int) -> list[float]:
    """Press so many keys, then empty the prompt; return how long each took to be seen."""
    seconds = []
    for number in range(keys):
        if number and number % len(LETTERS) == 0:
            empty(typist)
        typist.rest(random.uniform(*PAUSE))
        seconds.append(typist.echo_seconds(LETTERS[number % len(LETTERS)]))
    empty(typist)
    return seconds


def empty(typist: Typist) -> None:
    typist.type("\x15")  # Ctrl-U
    typist.rest(0.2)


def percentile(values: list[float], percent: int) -> float:
    """Return the value that so many of a hundred do not exceed."""
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)]
