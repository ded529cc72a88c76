"""Questions outside of a chat, in plain lines. What was typed before a question could be read is not an answer."""

import sys
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ybs.core.ports import Answer, Question
from ybs.frontends.host import this_host
from ybs.frontends.terminal.plain.line_input import InputLines, as_answer, forget_typed, is_followed
from ybs.frontends.terminal.questions.confirm import (
    GUARD_SECONDS,
    as_choice,
    marked_body,
    wish,
)
from ybs.frontends.terminal.signs import fit_encoding
from ybs.frontends.terminal.start.offers import Read
from ybs.frontends.tty import NARROW, columns, fit_width
from ybs.security.gate import ask_line, put
from ybs.security.unicode import unabridged
from ybs.session.questions import buttons_of

if TYPE_CHECKING:
    from ybs.config.host import Host
    from ybs.config.review import Review, VariableUse


_WIDEST_NAME = 30


def show(rows: Sequence[tuple[str, str]], begin: int = 1) -> None:
    """Print a numbered list: a name, and what is to be said of it."""
    widest = min(_WIDEST_NAME, max(len(name) for name, _ in rows))
    gap = "\n     " if columns() < NARROW else "  "
    for number, (name, detail) in enumerate(rows, begin):
        padded = name.ljust(widest) if gap == "  " and detail else name
        say(f"{number:>3}  {padded}" + (f"{gap}{detail}" if detail else ""))


def say(text: str) -> None:
    """Write lines, broken between words where the terminal is too narrow."""
    lines = "\n".join(fit_width(line) for line in text.split("\n"))
    put(fit_encoding(lines, sys.stdout.encoding or "ascii"), sys.stdout)


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


def ask_trust(
    host: "Host", review: "Review", read: Read = ask_late, *, named: Collection[str] = ()
) -> bool:
    """Show what the project wants and ask until the answer is a yes or a no. Write a yes down; variables that are `named` need no question.

    A no that is said is remembered until the files change. Raises OSError or ConfigError where a yes cannot be written.
    """
    from ybs.core.errors import ConfigError
    from ybs.trust.decision import give, refuse
    from ybs.trust.wording import lines_of

    verb = "has changed and asks for" if review.changes else "asks for"
    say(f"This project {verb} the following, which only you can allow:\n")
    for line in lines_of(review):
        say(f"  {line}")
    say(
        "\nTrust it only if you know where it comes from. Without trust, all of this is ignored, and"
    )
    say("your own MCP servers, hooks and tools start outside of it.")
    try:
        is_yes = says_yes("Trust exactly this?", read)
    except (EOFError, KeyboardInterrupt):
        say("")
        return False
    say("")
    if not is_yes:
        with suppress(OSError, ConfigError):  # asked again next time
            refuse(host, review)
            say("ybs asks again when these files change; /trust changes your mind.\n")
        return False
    give(host, review, [u for u in review.grantable if u.name in named or _grants(u, read)])
    return True


def _grants(use: "VariableUse", read: Read) -> bool:
    try:
        return says_yes(f"Your variable {use.words}. Give it?", read)
    except (EOFError, KeyboardInterrupt):
        return False


async def ask(question: Question, sandbox: str) -> Answer:
    """Ask whether one call may run, with `sandbox` around it; everything that is not clearly a yes is a no."""
    lines = [f"{wish(question, str(Path.cwd()), sandbox, this_host())}:"]
    lines.append(marked_body(question))
    lines += [f"Asked because {unabridged(question.reason)}."] if question.reason else []
    lines += [f"Warning: {unabridged(warning)}" for warning in question.warnings]
    how = "yes, no or no because ..."
    if question.choices is not None:
        lines += [f"{each.key}: {each.text}" for each in buttons_of(question, "")]
        how = "with a number or in your own words"
    text = "\n".join([*lines, f"Answer {how}: "])
    put(fit_encoding(unabridged(text), sys.stderr.encoding), sys.stderr, end="")
    with InputLines(monotonic) as typed:
        said = await typed.read_answer() or ""
    if question.choices is not None:
        return as_choice(said, question)
    return as_answer(said, replace(question, grant="", offers_network=False, outside=""))
