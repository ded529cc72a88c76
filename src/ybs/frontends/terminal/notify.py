"""Calls the person who looks elsewhere: once when a question waits, and once when long work has ended."""

import os
from collections.abc import Mapping
from typing import Literal, TypeAlias

How: TypeAlias = Literal["off", "bell", "desktop"]
#: A turn that took less than this has been watched.
LONG_SECONDS = 20.0
BELL = "\a"
WAITS, DONE = "ybs waits for you", "ybs is done"
#: Terminals that know OSC 777 (rxvt's) and not OSC 9 (iTerm2's); most of the others know OSC 9.
_OSC_777 = ("rxvt", "foot")


def call(how: How, words: str, environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Return the sequence that calls the person; tmux and screen pass on little but the bell."""
    if how == "off":
        return ()
    if how == "bell":
        return (BELL,)
    bell = (BELL,) if environ.get("TMUX") or environ.get("STY") else ()
    is_777 = "VTE_VERSION" in environ or environ.get("TERM", "").startswith(_OSC_777)
    kind = "777;notify;ybs;" if is_777 else "9;"
    return (passed_on(f"\x1b]{kind}{words}\x07", environ), *bell)


def passed_on(sequence: str, environ: Mapping[str, str] = os.environ) -> str:
    """Put a sequence into the envelope in which tmux or screen passes it on to its own terminal."""
    if environ.get("TMUX"):
        doubled = sequence.replace("\x1b", "\x1b\x1b")
        return f"\x1bPtmux;{doubled}\x1b\\"
    if environ.get("STY"):  # screen takes no more than 768 bytes at once
        pieces = (sequence[start : start + 700] for start in range(0, len(sequence), 700))
        return "".join(f"\x1bP{piece}\x1b\\" for piece in pieces)
    return sequence
