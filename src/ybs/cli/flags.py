"""The options that the chat and every subcommand understand, and the numbers in them."""

import sys
from collections.abc import Callable, Sequence
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


FORMATS = ("text", "json", "stream-json")
MODES = ("ask", "accept-edits", "auto", "plan", "deny", "bypass")


def add_shared_options(parser: "ArgumentParser") -> list["Action"]:
    """Add the options that the chat and every subcommand understand."""
    from pathlib import Path

    from ybs.config.presets import BUILT_IN, PRESETS

    add = parser.add_argument
    help_text = f"the provider to use: {', '.join((*BUILT_IN, *PRESETS))} or one of your own"
    prompt_text = "use this file instead of the built-in system prompt"
    return [
        add("-c", "--config", type=Path, metavar="FILE", help="read one more configuration file"),
        add("--profile", metavar="NAME", help="use the settings of this profile"),
        add("-m", "--model", metavar="NAME", help="the model to use"),
        add("-p", "--provider", metavar="NAME", help=help_text),
        add("--endpoint", metavar="URL", help="the address of the provider's server"),
        *add_permissions(parser),
        *add_limits(parser),
        add("--system-prompt-file", type=Path, metavar="FILE", help=prompt_text),
        add(
            "--plain",
            action="store_true",
            help="plain text for screen readers and logs: no colour, no animation",
        ),
        add("-v", "--verbose", action="store_true", help="show more detail"),
    ]


def add_resuming(parser: "ArgumentParser") -> list["Action"]:
    """Add the options of a chat that goes on with a session."""
    add = parser.add_argument
    background_text = "run the prompt in the server of `ybs serve`, and come back at once"
    help_text = "continue the newest session of this folder"
    resume_text = "continue a session, given by its number, its name or the beginning of its title (--resume='TITLE WITH SPACES'); without ID, choose from a list"
    return [
        add("--continue", dest="newest", action="store_true", help=help_text),
        add("--resume", nargs="?", const="", metavar="ID", help=resume_text),
        add("--background", action="store_true", help=background_text),
        add("--fork", action="store_true", help="with --continue or --resume: continue in a copy"),
    ]


def add_output(parser: "ArgumentParser") -> list["Action"]:
    """Add the options about what `--print` prints."""
    from pathlib import Path

    add = parser.add_argument
    schema_text = "with --print: the answer must be JSON that fits the JSON Schema in this file"
    return [
        add("--print", "-P", action="store_true", help="run once, print the answer and exit"),
        add(
            "--output-format",
            choices=FORMATS,
            default="text",
            help="the output of --print (default: text)",
        ),
        add("--output-schema", type=Path, metavar="FILE", help=schema_text),
    ]


def add_permissions(parser: "ArgumentParser") -> list["Action"]:
    """Add the options about what may be done."""
    from pathlib import Path

    def many(name: str, metavar: str, help_text: str, kind: Callable[[str], Any] = str) -> "Action":
        return parser.add_argument(
            name, action="append", default=[], type=kind, metavar=metavar, help=help_text
        )

    def switch(name: str, help_text: str) -> "Action":
        return parser.add_argument(name, action="store_true", help=help_text)

    help_text = "what may be done without asking (default: ask)"
    return [
        parser.add_argument("--mode", choices=MODES, help=help_text),
        many("--allow", "RULE", "allow without asking: TOOL[:PATTERN] (repeatable)"),
        many("--deny", "RULE", "always refuse: TOOL[:PATTERN] (repeatable)"),
        many("--add-dir", "DIR", "also work in this folder (repeatable)", Path),
        switch("--no-sandbox", "run commands without the sandbox"),
        switch("--trust", "trust this project's own settings and programs, for this run only"),
        switch("--incognito", "save nothing about this session"),
        switch("--dry-run", "show the first tool calls without running them"),
    ]


def add_limits(parser: "ArgumentParser") -> list["Action"]:
    """Add the options that end a turn."""
    add = parser.add_argument
    help_text = "stop a turn after N requests to the model"
    return [
        add("--max-turns", type=whole_number, metavar="N", help=help_text),
        add(
            "--max-cost",
            type=positive_number,
            metavar="USD",
            help="stop when the session has cost this much",
        ),
        add(
            "--timeout", type=positive_number, metavar="SECONDS", help="stop a turn after this time"
        ),
    ]


#: Python reads no numbers of some thousand digits; nobody means one of this many.
_MOST_DIGITS = 18


def whole_number(text: str) -> int:
    """Read a whole number from 1 up."""
    from argparse import ArgumentTypeError

    if not text.isdecimal() or len(text) > _MOST_DIGITS or int(text) < 1:
        raise ArgumentTypeError(f"{text[:40]!r} is not a whole number from 1 up")
    return int(text)


def positive_number(text: str) -> float:
    """Read a number above 0."""
    from argparse import ArgumentTypeError

    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise ArgumentTypeError(f"{text!r} is not a number above 0")
    return number
