"""A command-line parser whose errors are one line and suggest the nearest word."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from argparse import Action, ArgumentParser


def new_parser(program: str, description: str, epilog: str = "") -> "ArgumentParser":
    """Make a parser whose errors are one line."""
    from argparse import ArgumentParser, RawDescriptionHelpFormatter
    from functools import partial

    class OneLineParser(ArgumentParser):
        def format_help(self) -> str:
            self.formatter_class = RawDescriptionHelpFormatter
            return super().format_help()

        def error(self, message: str) -> NoReturn:
            fail(message.removeprefix("argument "))

        def print_help(self, file: Any = None) -> None:
            (file or sys.stdout).write(self.format_help())  # argparse itself hides what goes wrong

    return OneLineParser(
        prog=program,
        description=description,
        epilog=epilog,
        allow_abbrev=False,
        # argparse makes one for each option that is added; without a width each would ask for the terminal's.
        formatter_class=partial(RawDescriptionHelpFormatter, width=80),
    )


def refuse_unknown(
    unknown: Sequence[str], actions: Sequence["Action"], *, after_prompt: str | None
) -> None:
    """Fail at the first word that means nothing, and name the option that is spelled most alike."""
    if not unknown:
        return
    word = unknown[0]
    if not word.startswith("-"):
        what = (
            "a second argument; put a prompt of several words in quotes"
            if after_prompt
            else "not understood here"
        )
        fail(f"{word!r} is {what}")
    names = [name for action in actions for name in action.option_strings]
    fail(f"there is no option {word.split('=')[0]}", nearest(word.split("=")[0], names))


def nearest(word: str, names: "Sequence[str] | dict[str, Any]", cutoff: float = 0.6) -> str:
    """Name the words spelled most alike, or nothing."""
    from difflib import get_close_matches  # only after a slip

    names = list(names)
    close = get_close_matches(word, names, 2, max(cutoff, 0.8))
    return " or ".join(close or get_close_matches(word, names, 1, cutoff))


def fail(message: str, near: str = "") -> NoReturn:
    """Leave with one line about bad usage, which the command line writes."""
    hint = f" Did you mean {near}?" if near else ""
    raise SystemExit(f"{message.rstrip('.')}.{hint} See ybs --help.")
