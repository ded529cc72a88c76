"""A line that the person typed after its question could be read; what was typed ahead is not an answer."""

import sys
from collections.abc import Callable
from time import monotonic

from ybs.frontends.terminal.plain.line_input import forget_typed, is_followed
from ybs.frontends.terminal.questions.confirm import GUARD_SECONDS
from ybs.frontends.terminal.start.remarks import say
from ybs.security.gate import ask_line, put

_WORDS = {"y": True, "yes": True, "n": False, "no": False, "": False, "\x1b": False}


def ask_secret(question: str) -> str:
    """Ask for a line that is not shown while it is typed. Raises EOFError at the end of input."""
    from getpass import getpass  # few are asked for a key

    return ask_late(
        question, read=lambda shown: getpass(shown) if sys.stdin.isatty() else ask_line(shown)
    )


def ask_late(
    question: str, read: Callable[[str], str] = ask_line, clock: Callable[[], float] = monotonic
) -> str:
    """Ask until a line comes that was not typed ahead, nor pasted with others. Raises EOFError at the end of input."""
    if not sys.stdin.isatty():  # nobody types there
        return read(question)
    number = sys.stdin.fileno()
    while True:
        put(question, sys.stdout, end="")
        sys.stdout.flush()
        forget_typed(number)
        counts_from = clock() + GUARD_SECONDS
        line = read("")
        if clock() >= counts_from and not is_followed(number):
            return line
        say(
            "That was typed before the question was shown, so it was not taken. Please answer again."
        )


def says_yes(question: str, read: Callable[[str], str]) -> bool:
    """Ask until the answer is a yes or a no; Enter and Esc are a no. Raises EOFError at the end of input."""
    while (word := read(f"{question} [y/N] ").strip().lower()) not in _WORDS:
        say("Please type y or n; Enter alone is a no.")
    return _WORDS[word]
