"""The arguments of the command line: what is understood, and one line about what is not.

The first word that is no option may be a subcommand; otherwise it is the prompt.
"""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from ybs.flags import add_resuming, add_shared_options, whole_number

if TYPE_CHECKING:
    from argparse import Action, ArgumentParser, Namespace

FORMATS = ("text", "json", "stream-json")
EPILOG = """\
subcommands:
  config show|schema|check      settings in force, where they come from, what is wrong with them
  models list|install|remove|status|stop   the starter model that runs on this machine
  sessions list|show|export|search|delete   what was said and done before
  tools list                    what the model can call
  tool call NAME [JSON]         run one tool, without a model
  map [FOLDER]                  files and names of the project, for a query
  trust show|give|revoke        what this project's own files may do
  sandbox exec -- COMMAND       run one command in the sandbox
  firewall scan [FILE ...]      look for secrets in files
  setup                         choose the model that answers
  doctor                        what works here, what does not, and what mends it
  `ybs SUBCOMMAND --help` says more; `ybs -- PROMPT` sends a prompt as it stands, whatever it looks like.

exit codes:
  0 done   1 error   2 bad usage   3 bad configuration   4 provider failed   5 refused
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
        "manage the starter model, which runs on this machine",
        ("list", "install", "remove", "status", "stop"),
    ),
    "sessions": (
        "list, show, export, search or delete saved sessions",
        ("list", "show", "export", "search", "delete"),
    ),
    "tools": ("list the tools that the model can call", ("list",)),
    "tool": ("run one tool without a model and print its result as JSON", ("call",)),
    "map": ("list the files and definitions of a project, the ones relevant to a query first", ()),
    "trust": (
        "show what this project asks for, trust exactly that, or revoke the trust",
        ("show", "give", "revoke"),
    ),
    "sandbox": ("run one command in the sandbox that the model's commands run in", ("exec",)),
    "firewall": ("look for secrets in files; exit code 1 where there are any", ("scan",)),
    "setup": ("choose the provider and the model", ()),
    "doctor": ("check this machine and say how to fix what does not work", ()),
}
#: Spelled out, it is what `--help` says: `ybs help`, `ybs help sessions`.
HELP = "help"


#: Action of `sessions`: how many words it takes at least and at most (None: any number), and which.
SESSIONS_WORDS: dict[str, tuple[int, int | None, str]] = {
    "list": (0, 0, "[--all]"),
    "show": (1, 1, "NAME"),
    "export": (1, 2, "NAME [FILE] [--format md|json]"),
    "search": (1, None, "WORDS"),
    "delete": (1, None, "NAME ... [--yes]"),
}


def parse(words: Sequence[str]) -> "Namespace":
    """Read the arguments. Raises SystemExit with one line about what is wrong, or 0 after --help."""
    parser, actions = chat_parser()
    words = with_resume_value(words)
    before, subcommand, after = split_at_subcommand(words, actions)
    arguments, unknown = parser.parse_known_args(before)
    arguments.is_sent = "--" in words
    prompt: str | None = arguments.prompt
    if prompt is not None and not arguments.is_sent:
        if prompt.lower() == HELP:
            show_help([*unknown, *([subcommand] * bool(subcommand))])
        refuse_misspelled(prompt)
    refuse_unknown(unknown, actions, after_prompt=arguments.prompt)
    arguments.subcommand = subcommand
    check_resuming(arguments)
    if subcommand:
        if arguments.prompt is not None:
            fail(f"{subcommand} is a subcommand and stands alone; put a prompt in quotes")
        if arguments.newest or arguments.resume is not None:
            fail("--continue and --resume work in a chat and with --print, not with a subcommand")
        return parse_subcommand(subcommand, after, arguments)
    return arguments


def show_help(topics: Sequence[str]) -> NoReturn:
    """Leave as `--help` does, for all of ybs or for the subcommand that is named."""
    if topics and topics[0] not in SUBCOMMANDS:
        fail(f"there is no subcommand {topics[0]!r}", nearest(topics[0], SUBCOMMANDS))
    parse([*topics[:1], "--help"])
    raise SystemExit(0)  # not reached: the parser leaves


def with_resume_value(words: Sequence[str]) -> list[str]:
    """Tie the value of each `--resume` to it: the next word, unless that is an option or has white space in it.

    So a prompt of several words is never taken for a session's name, nor a name for a prompt.
    """
    tied: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        if word == "--":
            return [*tied, word, *left]
        if word == "--resume":
            is_named = bool(left) and not left[0].startswith("-") and len(left[0].split()) == 1
            word = f"--resume={left.pop(0) if is_named else ''}"
        tied.append(word)
    return tied


def check_resuming(arguments: "Namespace") -> None:
    """Fail where the words about going on with a session do not go together."""
    is_named = bool(arguments.resume)
    if arguments.newest and arguments.resume is not None:
        fail(
            "--continue and --resume cannot be combined: --continue takes the newest session, --resume the one you name"
        )
    if arguments.fork and not (arguments.newest or is_named):
        fail("--fork needs a session to copy: --continue --fork, or --resume ID --fork")
    if arguments.resume == "" and arguments.prompt is not None:
        fail(
            "--resume with a prompt needs a session: a number or name from `ybs sessions`, or a title "
            "as in --resume='TITLE'. --continue takes the newest session"
        )


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
    formats = ("text", "md", "json") if name == "sessions" else ("text", "json")
    actions += [parser.add_argument("--format", choices=formats), *add_own(parser, name)]
    if name == "sandbox":
        words, arguments.command = split_at_dashes(words)
    # Intermixed: an option may stand between a tool's name and its arguments.
    arguments, unknown = parser.parse_known_intermixed_args(words, arguments)
    refuse_unknown(unknown, actions, after_prompt=None)
    check_own(name, arguments)
    arguments.format = arguments.format or "text"
    return arguments


def add_own(parser: "ArgumentParser", name: str) -> list["Action"]:
    """Add what only this subcommand takes, and return its options."""
    add = parser.add_argument
    options: list[Action] = []
    match name:
        case "config":
            help_text = "also show where each value comes from"
            options = [add("--sources", action="store_true", help=help_text)]
        case "tool":
            options = [add_call(parser)]
        case "sessions":
            options = add_sessions(parser)
        case "firewall":
            help_text = "files or folders to scan; - for standard input (default: this folder)"
            add("files", nargs="*", metavar="FILE", help=help_text)
        case "map":
            options = add_map(parser)
        case "sandbox":
            options = [add("--network", action="store_true", help="with network access")]
        case _:
            pass
    return options


def check_own(name: str, arguments: "Namespace") -> None:
    """Fail where something is missing that this subcommand needs."""
    if name == "sandbox" and not arguments.command:
        fail("the command is missing: ybs sandbox exec [--network] -- COMMAND ...")
    if name == "tool" and not arguments.name:
        fail("the name of a tool is missing: ybs tool call NAME JSON")
    if name == "sessions":
        check_sessions(arguments)


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
        help="its arguments as a JSON object; - or nothing: read from standard input",
    )
    return parser.add_argument(
        "--yes",
        action="store_true",
        help="answer yes to the question whether it may run; what is forbidden stays forbidden",
    )


def add_sessions(parser: "ArgumentParser") -> list["Action"]:
    """Add what `sessions` takes, and return its options."""
    help_text = "NAME of show; NAME [FILE] of export; WORDS of search; NAME ... of delete"
    parser.add_argument("words", nargs="*", metavar="WORD", help=help_text)
    add = parser.add_argument
    return [
        add("--all", action="store_true", help="the sessions of all folders"),
        add("--yes", action="store_true", help="delete without asking"),
    ]


def add_map(parser: "ArgumentParser") -> list["Action"]:
    """Add what `map` takes, and return its options."""
    from argparse import SUPPRESS

    add = parser.add_argument
    add("folder", nargs="?", metavar="FOLDER", help="the project (default: this folder)")
    query_text = (
        "what the map should be about; - reads it from standard input (default: an overview)"
    )
    return [
        add("--query", default="", metavar="TEXT", help=query_text),
        add(
            "--tokens",
            type=whole_number,
            metavar="N",
            help="the size of the map (default: context.repo_map_tokens)",
        ),
        add("--no-cache", action="store_true", help="do not keep an index for the next run"),
        add("--wait", action="store_true", help=SUPPRESS),  # a session's process: `headless/map.py`
    ]


def check_sessions(arguments: "Namespace") -> None:
    """Fail where an action of `sessions` has too few words, or too many, and settle the format of an export."""
    action, count = arguments.action, len(arguments.words)
    least, most, usage = SESSIONS_WORDS[action]
    if count < least:
        fail(f"something is missing: ybs sessions {action} {usage}")
    if most is not None and count > most:
        fail(
            f"{arguments.words[most]!r} is not understood here; ybs sessions {action} {usage}".rstrip()
        )
    if action != "export" and arguments.format == "md":
        fail("--format md works only with `ybs sessions export`")
    if action == "export" and arguments.format is None:
        is_data = arguments.words[-1].lower().endswith((".json", ".jsonl")) and count == most
        arguments.format = "json" if is_data else "md"


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


def chat_parser() -> tuple["ArgumentParser", list["Action"]]:
    """Make the parser of `ybs [PROMPT]`, and the list of its options."""
    parser = new_parser(
        "ybs", "A coding agent for the terminal, for any LLM, local or remote.", EPILOG
    )
    parser.usage = "ybs [OPTIONS] [PROMPT]\n       ybs SUBCOMMAND [OPTIONS]"
    parser.add_argument(
        "prompt", nargs="?", metavar="PROMPT", help="what to do; without it, ybs opens a chat"
    )
    actions = [*add_resuming(parser), *add_shared_options(parser)]
    add = parser.add_argument
    actions += [
        add("--print", "-P", action="store_true", help="run once, print the answer and exit"),
        add(
            "--output-format",
            choices=FORMATS,
            default="text",
            help="the output of --print (default: text)",
        ),
        add("--version", action="version", version=version_line()),
    ]
    return parser, actions


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
            "a second argument; put a prompt of several words in quotes"
            if after_prompt
            else "not understood here"
        )
        fail(f"{word!r} is {what}")
    names = [name for action in actions for name in action.option_strings]
    fail(f"there is no option {word.split('=')[0]}", nearest(word.split("=")[0], names))


def refuse_misspelled(prompt: str) -> None:
    """Fail at a prompt of one word that is nearly a subcommand: a slip should not cost a request."""
    known = (*SUBCOMMANDS, HELP)
    if len(prompt) >= 2 * max(map(len, known)):
        return  # it is at most two thirds alike, so difflib is not loaded for it
    if prompt[:1].isalpha() and (near := nearest(prompt.lower(), known, cutoff=_CUTOFF)):
        fail(f"there is no subcommand {prompt!r}; `ybs -- {prompt}` sends it as a prompt", near)


#: How much alike a prompt of one word and a subcommand are where the one is taken for a slip of the other.
_CUTOFF = 0.75


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
