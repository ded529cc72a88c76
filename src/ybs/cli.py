"""The command line: arguments in, one front door or subcommand opened, an exit code out.

Everything heavy is imported after the arguments are known; `ybs --version` imports nothing at all.
"""

import sys
from collections.abc import Sequence
from errno import EBADF, EDQUOT, EFBIG, EIO, ENOSPC, EPIPE
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from argparse import Action, ArgumentParser, Namespace

    from ybs.session.wiring import Options

#: What the system says when a stream takes no more.
UNWRITABLE = (EBADF, EDQUOT, EFBIG, EIO, ENOSPC, EPIPE)
MODES = ("ask", "accept-edits", "auto", "plan", "deny", "bypass")
FORMATS = ("text", "json", "stream-json")
EPILOG = """\
subcommands:
  config show|schema|check      settings in force, where they come from, what is wrong with them
  models list|install|remove|status|stop   the starter model that runs on this machine
  tools list                    what the model can call
  setup                         choose a provider or the starter model
  doctor                        what was found on this machine
  `ybs SUBCOMMAND --help` says more; `ybs -- PROMPT` for a prompt that is a subcommand's name.

exit codes:
  0 done   1 error   2 bad usage   3 bad configuration   4 provider failed   5 a call was refused
  6 stopped by a limit   7 stopped by loop detection   75 temporary, try again
  129 terminal closed   130 interrupted   143 terminated
"""
#: Subcommand: its line of help, its actions (the first is the default).
SUBCOMMANDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "config": (
        "show the settings in force, print their JSON Schema, or check the files",
        ("show", "schema", "check"),
    ),
    "models": (
        "the starter model that runs on this machine",
        ("list", "install", "remove", "status", "stop"),
    ),
    "tools": ("what the model can call", ("list",)),
    "setup": ("choose a provider or the starter model", ()),
    "doctor": ("show what was found on this machine", ()),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    open_missing_streams()
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        code = answer(words)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except OSError as error:  # the disk is full, or nobody reads any more: `ybs ... | head`
        if error.filename is not None or error.errno not in UNWRITABLE:
            raise
        mute(1)
        if not isinstance(error, BrokenPipeError):
            complain(f"cannot write: {error.strerror}")
        return 1
    return code


def answer(words: Sequence[str]) -> int:
    """Say the version, or do what the words ask for; leave with a code, not an exception."""
    if words == ["--version"]:  # nothing is imported for this
        sys.stdout.write(version_line() + "\n")
        return 0
    try:
        return run(words)
    except SystemExit as leaving:  # argparse: --help and bad usage
        return leaving.code if isinstance(leaving.code, int) else 1


def run(words: Sequence[str]) -> int:
    """Read the arguments and open what they ask for."""
    from ybs.core.errors import YbsError

    try:
        arguments = parse(words)
        if arguments.subcommand == "setup":
            from ybs.ui.setup import set_up

            return 0 if set_up() else 1
        if arguments.subcommand:
            from ybs.headless.commands import run_subcommand

            return run_subcommand(arguments, session_options(arguments))
        return open_door(arguments)
    except YbsError as error:
        from ybs.headless.run import code_of

        complain(str(error))
        return code_of(error)


def open_door(arguments: "Namespace") -> int:
    """Open the terminal, or run once where there is none."""
    options = session_options(arguments)
    if arguments.print or not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        from ybs.headless.run import run_once

        return run_once(
            options,
            prompt=arguments.prompt,
            output_format=arguments.output_format,
            is_verbose=arguments.verbose or arguments.dry_run,  # the calls are the result
        )
    from ybs.ui.app import chat

    return chat(options, prompt=arguments.prompt or "")


def is_terminal(stream: Any) -> bool:
    """Tell whether a standard stream is there, open, and a terminal."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def open_missing_streams() -> None:
    """Put /dev/null in the place of standard streams that were closed before ybs began.

    In the order of their numbers, so that no file or connection gets the number of a closed one.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            from os import O_RDWR, devnull, fdopen
            from os import open as open_number

            setattr(sys, name, fdopen(open_number(devnull, O_RDWR), mode, encoding="utf-8"))


def complain(message: str) -> None:
    """Write a line to standard error; a full or closed one is nobody's concern."""
    try:
        sys.stderr.write(f"ybs: {message}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        mute(2)


def mute(stream: int) -> None:
    """Point a standard stream at nothing, so that Python's own flush at the end does not complain."""
    import os

    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream)
    os.close(nowhere)


def session_options(arguments: "Namespace") -> "Options":
    """Make the session's options of the arguments."""
    from pathlib import Path

    from ybs.session.wiring import Options

    settings = {
        "provider": arguments.provider,
        "model": arguments.model,
        "endpoint": arguments.endpoint,
        "mode": arguments.mode,
        "max_turns": arguments.max_turns,
        "max_cost": arguments.max_cost,
        "timeout": arguments.timeout,
    }
    rest: dict[str, Any] = {
        "config_file": arguments.config,
        "profile": arguments.profile,
        "allow": tuple(arguments.allow),
        "deny": tuple(arguments.deny),
        "add_dirs": tuple(arguments.add_dir),
        "dry_run": arguments.dry_run,
        "sandbox": not arguments.no_sandbox,
        "system_prompt_file": arguments.system_prompt_file,
    }
    return Options.of(Path.cwd(), settings | rest)


def parse(words: Sequence[str]) -> "Namespace":
    """Read the arguments. Raises SystemExit(2) after one line on standard error."""
    parser, actions = chat_parser()
    before, subcommand, after = split_at_subcommand(words, actions)
    arguments, unknown = parser.parse_known_args(before)
    refuse_unknown(unknown, actions, after_prompt=arguments.prompt)
    arguments.subcommand = subcommand
    if subcommand:
        if arguments.prompt is not None:
            fail(f"{subcommand} is a subcommand and stands alone; put a prompt in quotes")
        return parse_subcommand(subcommand, after, arguments)
    if arguments.prompt is not None and "--" not in words:
        refuse_misspelled(arguments.prompt)
    return arguments


def split_at_subcommand(
    words: Sequence[str], actions: Sequence["Action"]
) -> tuple[list[str], str, list[str]]:
    """Split the words around the first one that is no option, when it names a subcommand."""
    with_value = {name for action in actions if action.nargs != 0 for name in action.option_strings}
    is_value = False
    for index, word in enumerate(words):
        if is_value:
            is_value = False
        elif word == "--":
            break
        elif word.startswith("-") and word != "-":
            is_value = word in with_value
        elif word in SUBCOMMANDS:
            return list(words[:index]), word, list(words[index + 1 :])
        else:
            break
    return list(words), "", []


def parse_subcommand(name: str, words: Sequence[str], arguments: "Namespace") -> "Namespace":
    """Read what stands behind a subcommand; session options are understood there too."""
    summary, choices = SUBCOMMANDS[name]
    parser = new_parser(f"ybs {name}", summary)
    if choices:
        parser.add_argument("action", nargs="?", choices=choices, default=choices[0])
    actions = add_shared_options(parser)
    actions.append(parser.add_argument("--format", choices=("text", "json"), default="text"))
    if name == "config":
        help_text = "with where each value comes from"
        actions.append(parser.add_argument("--sources", action="store_true", help=help_text))
    arguments, unknown = parser.parse_known_args(words, arguments)
    refuse_unknown(unknown, actions, after_prompt=None)
    return arguments


def new_parser(program: str, description: str, epilog: str = "") -> "ArgumentParser":
    """Make a parser whose errors are one line."""
    from argparse import ArgumentParser, RawDescriptionHelpFormatter

    class OneLineParser(ArgumentParser):
        def error(self, message: str) -> NoReturn:
            fail(message.removeprefix("argument "))

        def print_help(self, file: Any = None) -> None:
            (file or sys.stdout).write(self.format_help())  # argparse itself hides what goes wrong

    return OneLineParser(
        prog=program,
        description=description,
        epilog=epilog,
        allow_abbrev=False,
        formatter_class=RawDescriptionHelpFormatter,
    )


def chat_parser() -> tuple["ArgumentParser", list["Action"]]:
    """Make the parser of `ybs [PROMPT]`, and the list of its options."""
    parser = new_parser(
        "ybs", "A coding agent for the terminal, for any LLM, local or remote.", EPILOG
    )
    parser.usage = "ybs [OPTIONS] [PROMPT]\n       ybs SUBCOMMAND [OPTIONS]"
    parser.add_argument(
        "prompt", nargs="?", metavar="PROMPT", help="what to do; asked for if left out"
    )
    actions = add_shared_options(parser)
    add = parser.add_argument
    actions += [
        add("--print", "-P", action="store_true", help="run once, print the answer and leave"),
        add(
            "--output-format",
            choices=FORMATS,
            default="text",
            help="of --print; text is the default",
        ),
        add("--version", action="version", version=version_line()),
    ]
    return parser, actions


def add_shared_options(parser: "ArgumentParser") -> list["Action"]:
    """Add the options that the chat and every subcommand understand."""
    from pathlib import Path

    add = parser.add_argument
    return [
        add("-c", "--config", type=Path, metavar="FILE", help="one more configuration file"),
        add("--profile", metavar="NAME", help="a named set of settings of the configuration"),
        add("-m", "--model", metavar="NAME", help="the model"),
        add(
            "-p",
            "--provider",
            metavar="NAME",
            help="ollama, openai, anthropic, google, mistral, llamacpp or your own",
        ),
        add("--endpoint", metavar="URL", help="where the provider answers"),
        add("--mode", choices=MODES, help="what is done without asking (default: ask)"),
        add(
            "--allow",
            action="append",
            default=[],
            metavar="RULE",
            help="no question: TOOL[:PATTERN]",
        ),
        add("--deny", action="append", default=[], metavar="RULE", help="never: TOOL[:PATTERN]"),
        add(
            "--add-dir",
            action="append",
            default=[],
            type=Path,
            metavar="DIR",
            help="one more folder",
        ),
        add("--no-sandbox", action="store_true", help="run commands without a cage"),
        add("--dry-run", action="store_true", help="show the first tool calls, run none"),
        add(
            "--max-turns", type=whole_number, metavar="N", help="requests to the model in one turn"
        ),
        add("--max-cost", type=positive_number, metavar="USD", help="what a session may cost"),
        add("--timeout", type=positive_number, metavar="SECONDS", help="what a turn may take"),
        add(
            "--system-prompt-file",
            type=Path,
            metavar="FILE",
            help="in place of the built-in prompt",
        ),
        add("-v", "--verbose", action="store_true", help="say more"),
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


def version_line() -> str:
    """Say name and version."""
    from ybs import __version__

    return f"ybs {__version__}"


def refuse_unknown(
    unknown: Sequence[str], actions: Sequence["Action"], *, after_prompt: str | None
) -> None:
    """Fail at the first word that means nothing, and name the option that is spelled most alike."""
    if not unknown:
        return
    word = unknown[0]
    if not word.startswith("-"):
        what = (
            "a second prompt; put the prompt in quotes" if after_prompt else "not understood here"
        )
        fail(f"{word!r} is {what}")
    names = [name for action in actions for name in action.option_strings]
    fail(f"there is no option {word.split('=')[0]}", nearest(word.split("=")[0], names))


def refuse_misspelled(prompt: str) -> None:
    """Fail at a prompt of one word that is nearly a subcommand: a slip should not cost a request."""
    if near := nearest(prompt, SUBCOMMANDS, cutoff=0.8):
        fail(f"there is no subcommand {prompt!r}; `ybs -- {prompt}` sends it as a prompt", near)


def nearest(word: str, names: "Sequence[str] | dict[str, Any]", cutoff: float = 0.6) -> str:
    """Name the words spelled most alike, or nothing."""
    from difflib import get_close_matches  # only after a slip

    names = list(names)
    close = get_close_matches(word, names, 2, max(cutoff, 0.8))
    return " or ".join(close or get_close_matches(word, names, 1, cutoff))


def fail(message: str, near: str = "") -> NoReturn:
    """Write one line about bad usage and leave with 2."""
    hint = f" Did you mean {near}?" if near else ""
    complain(f"{message.rstrip('.')}.{hint} See ybs --help.")
    raise SystemExit(2)
