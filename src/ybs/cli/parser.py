"""The arguments of the command line: what is understood, and one line about what is not.

The first word that is not an option may be a subcommand; otherwise it is the prompt.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from ybs.cli.flags import (
    add_output,
    add_resuming,
    add_shared_options,
    fail,
    nearest,
    new_parser,
    refuse_unknown,
)

if TYPE_CHECKING:
    from argparse import Action, ArgumentParser, Namespace

EPILOG = """\
subcommands:
  config show|get|set|unset|schema|check   show, change and check the settings
  models list|download|use|remove|status|stop   the models on this machine, and their server
  router [stats]                what the router has learned and spent; also explain, reset
  sessions list|show|export|search|delete   list, read and delete saved sessions
  learn list|show|accept|...    what you ask for again and again, and a command for it
  tools list                    list the tools that the model can call
  skills list|check|new         list the skills, check them, or make one
  agents list|check             list the kinds of sub-agents, and check their files
  tool call NAME [JSON]         run one tool, without a model
  map [FOLDER]                  list the files and definitions that a query is about
  trust show|give|revoke        show what this project asks for, and trust it or not
  hooks list|check              list the hooks in force, and what is wrong with others
  plugin list|show|add|remove|...   list and add plugins; ybs plugin --help lists all
  mcp list|add|test|remove|serve|...   list and add MCP servers, or be one; ybs mcp --help lists all
  serve                         serve sessions at a socket to programs, and to `ybs attach`
  attach [SESSION]              show a session of the server on this terminal
  gateway                       let chats such as Telegram reach ybs
  acp                           serve an editor (Zed, JetBrains, Neovim, Emacs)
  permissions list|allow|deny|remove   list and change what needs no question and what is refused
  sandbox exec -- COMMAND       run one command in the sandbox
  firewall scan [FILE ...]      look for secrets in files
  web                           open sessions in a browser; prints a link that works once
  setup [editor]                choose the model, and save a key; set up your editor for ybs
  doctor                        check this machine, and say how to fix what does not work
  version                       print the version, with --format json more of it
  completion bash|zsh|fish|man  print shell completions, or the manual page
  `ybs SUBCOMMAND --help` shows the options of one; `ybs -- PROMPT` sends any text as a prompt.

exit codes:
  0 done   1 error   2 bad usage   3 bad configuration   4 provider failed   5 refused
  6 stopped by a limit   7 stopped by loop detection   75 temporary, try again
  129 terminal closed   130 interrupted   143 terminated
"""
#: Spelled out, it is what `--help` says: `ybs help`, `ybs help sessions`.
HELP = "help"


def parse(words: Sequence[str]) -> "Namespace":
    """Read the arguments. Raises SystemExit with one line about what is wrong, or 0 after --help."""
    parser, actions = chat_parser()
    words = with_resume_value(words)
    before, subcommand, after = split_at_subcommand(words, actions)
    refuse_habits(before, actions)
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
    check_background(arguments)
    if subcommand:
        if arguments.prompt is not None:
            fail(f"{subcommand} is a subcommand and stands alone; put a prompt in quotes")
        if arguments.output_schema is not None:
            fail("--output-schema works with --print, not with a subcommand")
        if arguments.newest or arguments.resume is not None:
            fail("--continue and --resume work in a chat and with --print, not with a subcommand")
        from ybs.cli.subcommands import parse_subcommand  # for these alone

        return parse_subcommand(subcommand, after, arguments)
    return arguments


def refuse_habits(words: Sequence[str], actions: Sequence["Action"]) -> None:
    """Fail at an option that other agents have, and say what ybs has instead."""
    known = {name for action in actions for name in action.option_strings}
    is_strange = any(word.startswith("-") and word.partition("=")[0] not in known for word in words)
    if not is_strange and "-p" not in words and "-c" not in words:
        return
    from ybs.cli.habits import continue_hint, option_hint, provider_hint  # few words need it

    hint = option_hint(words) if is_strange else ""
    if hint := hint or provider_hint(words) or continue_hint(words):
        fail(hint)


def show_help(topics: Sequence[str]) -> NoReturn:
    """Leave as `--help` does, for all of ybs or for the subcommand that is named."""
    from ybs.cli.subcommands import SUBCOMMANDS

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


def check_background(arguments: "Namespace") -> None:
    """Fail where --background has no prompt, or stands with what needs an answer here."""
    if not arguments.background:
        return
    if not arguments.prompt:
        fail("--background needs a prompt: what is to be done")
    others = {"--print": arguments.print, "--continue": arguments.newest, "--fork": arguments.fork}
    others |= {"--resume": arguments.resume is not None}
    for name, is_given in others.items():
        if is_given:
            fail(f"--background starts a session of its own; it cannot be combined with {name}")


def split_at_subcommand(
    words: Sequence[str], actions: Sequence["Action"]
) -> tuple[list[str], str, list[str]]:
    """Split the words around the first one that is not an option, when it names a subcommand."""
    with_value = {name for action in actions if action.nargs != 0 for name in action.option_strings}
    is_value = False
    for index, word in enumerate(words):
        if is_value:
            is_value = False
        elif word == "--":
            break
        elif word.startswith("-") and word != "-":
            is_value = word in with_value
        elif is_subcommand(word):
            return list(words[:index]), word, list(words[index + 1 :])
        else:
            break
    return list(words), "", []


def is_subcommand(word: str) -> bool:
    """Return whether a word names a subcommand; most prompts are more than a word."""
    if not word.isalpha():
        return False
    from ybs.cli.subcommands import SUBCOMMANDS

    return word in SUBCOMMANDS


def chat_parser() -> tuple["ArgumentParser", list["Action"]]:
    """Make the parser of `ybs [PROMPT]`, and the list of its options."""
    parser = new_parser(
        "ybs", "A coding agent for the terminal, for any LLM, local or remote.", EPILOG
    )
    parser.usage = "ybs [OPTIONS] [PROMPT]\n       ybs SUBCOMMAND [OPTIONS]"
    parser.add_argument(
        "prompt", nargs="?", metavar="PROMPT", help="what to do; without it, ybs opens a chat"
    )
    actions = [*add_resuming(parser), *add_shared_options(parser), *add_output(parser)]
    version = parser.add_argument("--version", action="version", version=version_line())
    return parser, [*actions, version]


def version_line() -> str:
    """Say name and version."""
    from ybs import __version__

    return f"ybs {__version__}"


def refuse_misspelled(prompt: str) -> None:
    """Fail at a prompt of one word that is nearly a subcommand: a slip should not cost a request."""
    if len(prompt) <= _LONGEST_HABIT and prompt.isalpha():
        from ybs.cli.habits import WORDS  # a prompt of one short word

        if hint := WORDS.get(prompt.lower()):
            fail(
                f"there is no subcommand {prompt!r}: {hint}. `ybs -- {prompt}` sends it as a prompt"
            )
    if len(prompt) > _LONGEST_SLIP:
        return
    from ybs.cli.subcommands import SUBCOMMANDS

    known = (*SUBCOMMANDS, HELP)
    if prompt[:1].isalpha() and (near := nearest(prompt.lower(), known, cutoff=_CUTOFF)):
        fail(f"there is no subcommand {prompt!r}; `ybs -- {prompt}` sends it as a prompt", near)


#: How much alike a prompt of one word and a subcommand are where the one is taken for a slip of the other.
_CUTOFF = 0.75
#: A prompt of twice the longest name is at most two thirds like it, so nothing is loaded to compare them.
_LONGEST_SLIP = 21
#: The words that other agents take for subcommands are no longer than this.
_LONGEST_HABIT = 8
