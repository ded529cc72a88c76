"""Shell completions and the manual page, made of the parser itself, so that they say what is understood."""

from argparse import SUPPRESS
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from ybs.cli.parser import EPILOG, chat_parser
from ybs.cli.subcommands import SUBCOMMANDS, subcommand_parser

if TYPE_CHECKING:
    from argparse import Action

Form: TypeAlias = Literal["bash", "zsh", "fish", "man"]
#: Values of options with these names are files or folders.
_PATHS = ("FILE", "DIR", "FOLDER")


def completion(form: Form) -> str:
    """Return what a shell reads to complete `ybs`, or the manual page."""
    return {"bash": _bash, "zsh": _zsh, "fish": _fish, "man": _man}[form]()


def _options(name: str = "") -> "list[Action]":
    """Return the options of the chat, or those of a subcommand alone, that the help shows."""
    actions = subcommand_parser(name)[1] if name else chat_parser()[1]
    return [each for each in actions if each.option_strings and each.help != SUPPRESS]


def _choices(action: "Action") -> list[str]:
    return [str(each) for each in action.choices or ()]


def _help(action: "Action") -> str:
    return (action.help or "").replace("%%", "%")


def _takes_path(action: "Action") -> bool:
    return action.metavar in _PATHS


def _names(actions: "Sequence[Action]") -> str:
    return " ".join(name for each in actions for name in each.option_strings)


def _bash() -> str:
    chat = _options()
    everything = [*chat, *(each for name in SUBCOMMANDS for each in _options(name))]
    values = {
        "|".join(each.option_strings): f'compgen -W "{" ".join(_choices(each))}" -- "$cur"'
        for each in everything
        if each.choices
    }
    values |= {
        "|".join(each.option_strings): 'compgen -f -- "$cur"'
        for each in everything
        if _takes_path(each)
    }
    cases = "".join(
        f"        {names}) COMPREPLY=($({how})); return ;;\n" for names, how in values.items()
    )
    words = "".join(
        f'        {name}) words="{" ".join(actions)} {_names(_options(name))}" ;;\n'
        for name, (_, actions) in SUBCOMMANDS.items()
    )
    return f"""\
# Completions of ybs for bash: put this line into ~/.bashrc
#   eval "$(ybs completion bash)"
_ybs() {{
    local cur=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} word words sub=
    case $previous in
{cases}    esac
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case $word in {"|".join(SUBCOMMANDS)}) sub=$word; break ;; esac
    done
    case $sub in
{words}        *) words="{" ".join(SUBCOMMANDS)} {_names(chat)}" ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
}}
complete -o default -F _ybs ybs
"""


def _zsh() -> str:
    def spec(action: "Action") -> Iterator[str]:
        told = _help(action).translate(str.maketrans("[]:'`", '()-""'))
        value = ""
        if action.choices:
            value = f":value:({' '.join(_choices(action))})"
        elif _takes_path(action):
            value = ":path:_files"
        elif action.nargs != 0:
            value = ":value: "
        for name in action.option_strings:
            yield f"'*{name}[{told}]{value}'"

    def specs(actions: "Sequence[Action]") -> str:
        return " ".join(each for action in actions for each in spec(action))

    cases = "".join(
        f"    {name}) _arguments '*:action:({' '.join(actions)})' {specs(_options(name))} ;;\n"
        for name, (_, actions) in SUBCOMMANDS.items()
    )
    return f"""\
#compdef ybs
# Completions of ybs for zsh: ybs completion zsh > a file _ybs in a folder of $fpath
_ybs() {{
  local word sub=
  for word in ${{words[2,CURRENT-1]}}; do
    case $word in {"|".join(SUBCOMMANDS)}) sub=$word; break ;; esac
  done
  case $sub in
{cases}    *) _arguments '1:subcommand:({" ".join(SUBCOMMANDS)})' {specs(_options())} ;;
  esac
}}
compdef _ybs ybs
"""


def _fish() -> str:
    def quoted(text: str) -> str:
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

    def line(condition: str, action: "Action") -> str:
        parts = [f"complete -c ybs -n {quoted(condition)}"]
        parts += [
            f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
            for name in action.option_strings
        ]
        if action.choices:
            parts.append(f"-x -a {quoted(' '.join(_choices(action)))}")
        elif action.nargs != 0:
            parts.append("-r" if _takes_path(action) else "-x")
        return " ".join([*parts, f"-d {quoted(_help(action))}"])

    first = "__fish_use_subcommand"
    lines = [
        "# Completions of ybs for fish: ybs completion fish > ~/.config/fish/completions/ybs.fish"
    ]
    lines += [line(first, action) for action in _options()]
    for name, (summary, actions) in SUBCOMMANDS.items():
        behind = f"__fish_seen_subcommand_from {name}"
        lines.append(f"complete -c ybs -n {first} -a {name} -d {quoted(summary)}")
        if actions:
            lines.append(f"complete -c ybs -n {quoted(behind)} -f -a {quoted(' '.join(actions))}")
        lines += [line(behind, action) for action in _options(name)]
    return "\n".join(lines) + "\n"


def _man() -> str:
    from ybs import __version__

    codes = EPILOG.partition("exit codes:\n")[2]
    parts = [
        f'.TH YBS 1 "" "ybs {__version__}" "User Commands"',
        ".SH NAME\nybs \\- a coding agent for the terminal, for any LLM, local or remote",
        ".SH SYNOPSIS\n.B ybs\n[\\fIOPTIONS\\fR] [\\fIPROMPT\\fR]\n.br\n.B ybs\n\\fISUBCOMMAND\\fR [\\fIOPTIONS\\fR]",
        ".SH DESCRIPTION\nWithout a prompt, ybs opens a chat in the terminal. With \\fB\\-\\-print\\fR, or where standard "
        "input or output is not a terminal, it runs once and prints the answer.",
        ".SH OPTIONS",
        *map(_man_option, _options()),
        ".SH SUBCOMMANDS",
    ]
    for name, (summary, actions) in SUBCOMMANDS.items():
        choices = f" [{'|'.join(actions)}]" if actions else ""
        parts.append(f".TP\n\\fB{name}\\fR{_roff(choices)}\n{_roff(summary)}")
        parts += [_man_option(each, above=".RS\n.TP\n", below="\n.RE") for each in _options(name)]
    parts += [".SH EXIT STATUS\n.nf", _roff(codes.rstrip()), ".fi", ".SH FILES"]
    for place, what in (
        ("~/.config/ybs/config.json", "the settings"),
        ("~/.config/ybs/keys.json", "the keys that `ybs setup` saved"),
        ("~/.config/ybs/sessions", "the saved sessions"),
        (".ybs.json", "the settings of a project"),
    ):
        parts.append(f".TP\n.I {_roff(place)}\n{_roff(what)}")
    return "\n".join(parts) + "\n"


def _man_option(action: "Action", above: str = ".TP\n", below: str = "") -> str:
    names = ", ".join(f"\\fB{_roff(name)}\\fR" for name in action.option_strings)
    value = "|".join(_choices(action)) or (str(action.metavar or "") if action.nargs != 0 else "")
    shown = f" \\fI{_roff(value)}\\fR" if value else ""
    return f"{above}{names}{shown}\n{_roff(_help(action))}{below}"


def _roff(text: str) -> str:
    lines = text.replace("\\", "\\e").replace("-", "\\-").split("\n")
    return "\n".join("\\&" + line if line.startswith((".", "'")) else line for line in lines)
