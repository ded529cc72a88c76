"""The options that the chat and every subcommand understand, and the numbers in them."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from argparse import Action, ArgumentParser

MODES = ("ask", "accept-edits", "auto", "plan", "deny", "bypass")


def add_shared_options(parser: "ArgumentParser") -> list["Action"]:
    """Add the options that the chat and every subcommand understand."""
    from pathlib import Path

    add = parser.add_argument
    help_text = "ollama, openai, anthropic, google, mistral, llamacpp or your own"
    prompt_text = "in place of the built-in prompt"
    return [
        add("-c", "--config", type=Path, metavar="FILE", help="one more configuration file"),
        add("--profile", metavar="NAME", help="a named set of settings of the configuration"),
        add("-m", "--model", metavar="NAME", help="the model"),
        add("-p", "--provider", metavar="NAME", help=help_text),
        add("--endpoint", metavar="URL", help="where the provider answers"),
        *add_permissions(parser),
        *add_limits(parser),
        add("--system-prompt-file", type=Path, metavar="FILE", help=prompt_text),
        add("--plain", action="store_true", help="whole sentences, no colour, nothing that moves"),
        add("-v", "--verbose", action="store_true", help="say more"),
    ]


def add_resuming(parser: "ArgumentParser") -> list["Action"]:
    """Add the options of a chat that goes on with a session."""
    add = parser.add_argument
    help_text = "go on with the newest session of this folder"
    resume_text = "go on with a session, by its number, name or beginning: one word, or --resume='TITLE'; alone: choose"
    return [
        add("--continue", dest="newest", action="store_true", help=help_text),
        add("--resume", nargs="?", const="", metavar="ID", help=resume_text),
        add("--fork", action="store_true", help="with one of these: go on in a copy"),
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

    help_text = "what is done without asking (default: ask)"
    return [
        parser.add_argument("--mode", choices=MODES, help=help_text),
        many("--allow", "RULE", "no question: TOOL[:PATTERN]"),
        many("--deny", "RULE", "never: TOOL[:PATTERN]"),
        many("--add-dir", "DIR", "one more folder", Path),
        switch("--no-sandbox", "run commands without the sandbox"),
        switch("--trust", "let this project's own files count, in this run only"),
        switch("--incognito", "write nothing about this session down"),
        switch("--dry-run", "show the first tool calls, run none"),
    ]


def add_limits(parser: "ArgumentParser") -> list["Action"]:
    """Add the options that end a turn."""
    add = parser.add_argument
    help_text = "requests to the model in one turn"
    return [
        add("--max-turns", type=whole_number, metavar="N", help=help_text),
        add("--max-cost", type=positive_number, metavar="USD", help="what a session may cost"),
        add("--timeout", type=positive_number, metavar="SECONDS", help="what a turn may take"),
    ]


def whole_number(text: str) -> int:
    """Read a whole number from 1 up."""
    from argparse import ArgumentTypeError

    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is not a whole number from 1 up")
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
