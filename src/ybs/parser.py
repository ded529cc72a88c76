"""The arguments of the command line: what is understood, and one line about what is not.

The first word that is no option may be a subcommand; otherwise it is the prompt.
"""

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from argparse import Action, ArgumentParser, Namespace

MODES = ("ask", "accept-edits", "auto", "plan", "deny", "bypass")
FORMATS = ("text", "json", "stream-json")
EPILOG = """\
subcommands:
  config show|schema|check      settings in force, where they come from, what is wrong with them
  models list|install|remove|status|stop   the starter model that runs on this machine
  tools list                    what the model can call
  tool call NAME [JSON]         run one tool, without a model
  trust show|give|revoke        what this project's own files may do
  sandbox exec -- COMMAND       run one command in the sandbox
  firewall scan [FILE ...]      look for secrets in files
  setup                         choose the model that answers
  doctor                        what works here, what does not, and what mends it
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
    "tool": ("run one tool without a model and print its result as JSON", ("call",)),
    "trust": (
        "see what a project wants, trust exactly that, or take it back",
        ("show", "give", "revoke"),
    ),
    "sandbox": ("run one command in the sandbox that the model's commands run in", ("exec",)),
    "firewall": ("look for secrets in files; exit code 1 where there are any", ("scan",)),
    "setup": ("choose the model that answers", ()),
    "doctor": ("say what works here, what does not, and what mends it", ()),
}


def parse(words: Sequence[str]) -> "Namespace":
    """Read the arguments. Raises SystemExit with one line about what is wrong, or 0 after --help."""
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
    if name == "tool":
        actions.append(add_call(parser))
    if name == "firewall":
        help_text = "files or folders; - for standard input (this folder)"
        parser.add_argument("files", nargs="*", metavar="FILE", help=help_text)
    if name == "sandbox":
        help_text = "with the network open"
        actions.append(parser.add_argument("--network", action="store_true", help=help_text))
        words, arguments.command = split_at_dashes(words)
    # Intermixed: an option may stand between a tool's name and its arguments.
    arguments, unknown = parser.parse_known_intermixed_args(words, arguments)
    refuse_unknown(unknown, actions, after_prompt=None)
    if name == "sandbox" and not arguments.command:
        fail("the command is missing: ybs sandbox exec [--network] -- COMMAND ...")
    if name == "tool" and not arguments.name:
        fail("the name of a tool is missing: ybs tool call NAME JSON")
    return arguments


def split_at_dashes(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words before `--` and those after it."""
    place = words.index("--") if "--" in words else len(words)
    return list(words[:place]), list(words[place + 1 :])


def add_call(parser: "ArgumentParser") -> "Action":
    """Add what `tool call` takes, and return its option."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="one of `ybs tools list`")
    parser.add_argument(
        "json",
        nargs="?",
        metavar="JSON",
        help="its arguments, one object; - or left out: read from standard input",
    )
    return parser.add_argument(
        "--yes", action="store_true", help="allow what would be asked; what is forbidden stays so"
    )


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


def add_permissions(parser: "ArgumentParser") -> list["Action"]:
    """Add the options about what may be done."""
    from pathlib import Path

    def many(
        name: str, metavar: str, help_text: str, kind: "Callable[[str], Any]" = str
    ) -> "Action":
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
    """Leave with one line about bad usage, which the command line writes."""
    hint = f" Did you mean {near}?" if near else ""
    raise SystemExit(f"{message.rstrip('.')}.{hint} See ybs --help.")
