"""The subcommands as tables: their lines of help, the words and options that each takes, and which action takes what."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from ybs.cli.flags import add_shared_options, fail, new_parser, refuse_unknown, whole_number

if TYPE_CHECKING:
    from argparse import Action, ArgumentParser, Namespace

#: Subcommand: its line of help, its actions (the first is the default).
SUBCOMMANDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "config": (
        "show the settings in force or one of them, change one, print their JSON Schema, or check the files",
        ("show", "get", "set", "unset", "schema", "check"),
    ),
    "models": (
        "list the models that can be reached now; download, choose and remove those that run here, and stop their server",
        ("list", "download", "use", "remove", "status", "stop"),
    ),
    "router": (
        "show what the router has learned and spent, explain a decision, or forget them",
        ("stats", "explain", "reset"),
    ),
    "sessions": (
        "list, show, export, search or delete saved sessions",
        ("list", "show", "export", "search", "delete"),
    ),
    "learn": (
        "list what you ask for again and again, make a command of it, or put it on a schedule",
        ("list", "show", "why", "accept", "dismiss", "schedule", "forget"),
    ),
    "tools": (
        "list the tools that the model can call, ask your own ones anew what they do, or install a ready one",
        ("list", "check", "install"),
    ),
    "skills": (
        "list the skills, say what is wrong with those that cannot be used, or make one",
        ("list", "check", "new"),
    ),
    "agents": (
        "list the kinds of sub-agents, or say what is wrong with their files",
        ("list", "check"),
    ),
    "tool": ("run one tool without a model and print its result as JSON", ("call",)),
    "hooks": (
        "list the hooks in force here, and what is wrong with others; exit code 1 where something is",
        ("list", "check"),
    ),
    "plugin": (
        "list, add and remove plugins, which bring commands, skills, hooks and tools; add shows what one does and asks",
        ("list", "show", "add", "remove", "enable", "disable"),
    ),
    "mcp": (
        "list, add, test and remove MCP servers, take them over from other agents, approve changes, log in; serve ybs's own tools to another agent",
        (
            "list",
            "add",
            "add-json",
            "import",
            "test",
            "trust",
            "login",
            "logout",
            "remove",
            "serve",
        ),
    ),
    "gateway": (
        "let chats such as Telegram reach ybs on this machine; show its state, let people in, check it, copy sessions out of its database and into it",
        ("status", "start", "pair", "channels", "logs", "doctor", "export", "import"),
    ),
    "serve": ("serve sessions to programs and terminals at a socket, which only you can reach", ()),
    "attach": ("show a session of the server on this terminal; Ctrl-D leaves it running", ()),
    "acp": (
        "serve an editor on standard input and output (Agent Client Protocol); setup chooses the model, as `ybs setup`",
        ("serve", "setup"),
    ),
    "map": ("list the files and definitions of a project, the ones relevant to a query first", ()),
    "trust": (
        "show what this project asks for, trust exactly that, or revoke the trust",
        ("show", "give", "revoke"),
    ),
    "permissions": (
        "list what needs no question and what is refused, and change it",
        ("list", "allow", "deny", "remove"),
    ),
    "sandbox": ("run one command in the sandbox that the model's commands run in", ("exec",)),
    "firewall": ("look for secrets in files; exit code 1 where there are any", ("scan",)),
    "web": (
        "open sessions in a browser, and a board of what runs and what it costs; set the password for other machines",
        ("serve", "password"),
    ),
    "setup": (
        "choose the provider and the model; `setup editor` prints what an editor's settings need to have ybs",
        (),
    ),
    "version": ("print the version", ()),
    "completion": (
        "print the completions of a shell, or the manual page",
        ("bash", "zsh", "fish", "man"),
    ),
    "doctor": ("check this machine and say how to fix what does not work", ()),
}
#: What `ybs help NAME` says below the options: what a message points to, in short.
EPILOGS: dict[str, str] = {
    "hooks": """\
A hook is a command of yours that runs at a set moment. It stands in
~/.config/ybs/config.json, or in .ybs.json of a project that you trust, in the form of
Claude Code:

  {"hooks": {"PostToolUse": [{"matcher": "Edit|Write",
    "hooks": [{"type": "command", "command": "~/bin/check", "timeout": 10}]}]}}

Events: SessionStart, UserPromptSubmit, PreToolUse, PostToolUse, Notification, Stop,
SubagentStop, PreCompact, SessionEnd. A hook reads one JSON object on its standard
input. Exit code 2 blocks, and its standard error is the reason that the model reads.
""",
    "sandbox": """\
Commands of the model see the project and the system, write in the project alone, and
have no network. It takes bubblewrap (Linux, the whole sandbox), Landlock (Linux 5.13,
in part) or sandbox-exec (macOS). Without one of them commands are refused.

  install bubblewrap    sudo apt install bubblewrap, or your system's way
  in a container        user namespaces must be allowed by whoever started it
  on Ubuntu 24.04       sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0

In a chat, /sandbox shows and changes it; `ybs doctor` says what is missing here.
""",
    "mcp": """\
  ybs mcp add NAME -- COMMAND ...      a server that runs here
  ybs mcp add NAME https://...         a server elsewhere; `ybs mcp login NAME` logs in
  ybs mcp import                       the servers that other agents on this machine use
  ybs mcp test NAME                    starts it, and says what it offers

Servers stand in the section mcpServers of the settings, as other agents write them.
""",
    "web": """\
  ybs web                              for this machine alone; prints a link that works once
  ybs web --host 0.0.0.0 --name box.lan --cert box.pem --key box.key
  ybs web --proxy https://ybs.example.org   behind a proxy on this machine that encrypts

Whoever has logged in may do all that you may. The last line printed is the link. For other
machines there must be encryption and a password: `ybs web password` sets it.
""",
}
#: The editors that `ybs setup editor` knows.
EDITORS = ("zed", "jetbrains", "neovim", "emacs")
#: Where the page of `ybs web` is, and which folder is looked at.
_PAGE = """
--host ADDRESS            the address of the page (default: %(default)s, this machine alone)
--name HOST ...           a name by which browsers find the page, with --host (repeatable)
--cert FILE               the certificate for TLS, with its chain
--key FILE                its key
--proxy URL               the page's address at a proxy on this machine that encrypts
"""
_FOLDER = """
--folder DIR              the project's folder (default: this folder)
--using MODEL
"""
#: What each subcommand takes behind its action, as `--help` shows it: a word (`name [SHOWN]`) or an option, two spaces, and its help.
#: `...` may stand several times; what has no help is hidden.
ARGUMENTS: dict[str, str] = {
    "config": """
--sources                 also show where each value comes from
key [KEY]                 of get, set and unset: a setting, as llm.model
value [VALUE]             of set: its value, as text or JSON
""",
    "models": """
model_name [NAME]         of download (starter: a small one that runs anywhere; none: the best for this machine), use and remove (none: the starter model)
--all                     of list: ask the providers elsewhere that have a key, too
""",
    "router": """
decision [ID]             of explain: a decision (default: the newest)
""",
    "sessions": """
words [WORD ...]          NAME of show; NAME [FILE] of export; WORDS of search; NAME ... of delete
--all                     the sessions of all folders
--yes                     delete without asking
""",
    "learn": """
words [N ...]             the number of a recurring task, as `ybs learn` lists them
--project                 of accept: write it for this project
--cron                    of schedule: show a line for cron
--gateway                 of schedule: have `ybs gateway` run it
--write                   of schedule: write the systemd timer
--all                     of forget: all that was learned
--yes                     agree without being asked
""",
    "tools": """
name [NAME]               of install: one that comes with ybs
""",
    "skills": """
name [NAME]               of new: its name
""",
    "tool": """
name [NAME]               one of `ybs tools list`
json [JSON]               its arguments as a JSON object; - or nothing: read from standard input
--yes                     answer yes to the question whether it may run; what is forbidden stays forbidden
""",
    "plugin": """
words [WORD ...]          of add: a folder or an address of git, and which plugin of several; of the others: NAME
--yes                     agree without being asked
""",
    "mcp": """
words [WORD ...]          of add: NAME and an address, or NAME -- COMMAND ARGUMENTS; of add-json: NAME and the entry; of import: a file; of the others: NAME
--env NAME=VALUE ...      of add: a variable for the server
--header 'NAME: VALUE' ...  of add: a header of its requests
--project {none,read,write}  of add: what it may do with the project (default: read)
--write PATH ...          of add: a file or folder outside of the project that it may change
--no-network              of add: it gets no network
--tools NAME,...          of serve: only these tools, of `ybs tools list`, with commas between them
--yes                     agree without being asked
""",
    "gateway": f"""
words [WORD ...]          CODE of pair: who is let in (default: list who waits); FOLDER [SESSION ...] of export and import
--web PORT                of start: serve the page of `ybs web` on the same sessions, too; 0: at any port
{_PAGE}--metrics [ADDRESS:]PORT  of start: serve /metrics, /healthz and /readyz there, on this machine alone unless ADDRESS says otherwise
--log-format {{text,json}}  of start: json writes the log as lines of JSON, to standard output as well
--owner                   of pair: let them in as who approves and chooses
--guest                   of pair: let them in as who only asks
""",
    "serve": f"""
--socket PATH             where it listens, in a folder that is yours alone (default: ybs's own place)
--tcp [ADDRESS:]PORT      listen there too, on this machine alone unless ADDRESS says otherwise; clients need the token
--web PORT                serve the page of `ybs web` on the same sessions, too; 0: at any port
{_PAGE}--schema                  print the schema of the protocol, and end
""",
    "attach": """
name [SESSION]            its name, its title or its number in `ybs sessions` (default: the only one that runs)
""",
    "acp": """
--serve                   start the server of `ybs serve` where none runs: terminals and the page then share its sessions
""",
    "map": """
folder [FOLDER]           the project (default: this folder)
--query TEXT              what the map should be about; - reads it from standard input (default: an overview)
--tokens N                the size of the map (default: context.repo_map_tokens)
--no-cache                do not keep an index for the next run
--wait
""",
    "trust": """
digest [DIGEST]           of give: what `ybs trust show` printed; without it you are shown all of it and asked
--grant NAME ...          of give: an environment variable that the project's MCP servers may have (repeatable)
""",
    "permissions": """
words [RULE ...]          of allow and deny: a rule, after project (as shipped) or user; of remove: its number
""",
    "sandbox": """
--network                 with network access
""",
    "firewall": """
files [FILE ...]          files or folders to scan; - for standard input (default: this folder)
""",
    "web": f"""
--port N                  default: a new one, or with --cert that of the logins; 0: any
{_PAGE}""",
    "setup": f"""
what [{{model,editor}}]     what to set up
editors [EDITOR ...]      of editor: {", ".join(EDITORS)} (default: all)
--write                   of editor: write the settings, after showing them
{_FOLDER}""",
    "doctor": _FOLDER,
}
#: What else argparse is told of some of them.
_TOLD: dict[str, dict[str, Any]] = {
    "--web PORT": {"type": int},
    "--port N": {"type": int},
    "--host ADDRESS": {"default": "127.0.0.1"},
    "--tokens N": {"type": whole_number},
    "--write PATH ...": {"dest": "writable"},
    "--folder DIR": {"dest": "work_in"},
    "--owner": {"dest": "role", "action": "store_const", "const": "owner"},
    "--guest": {"dest": "role", "action": "store_const", "const": "guest"},
    "what [{model,editor}]": {"default": "model"},
    "--proxy URL": {"default": ""},
    "--tools NAME,...": {"default": ""},
    "--query TEXT": {"default": ""},
    "--using MODEL": {"default": ""},
    "name [SESSION]": {"default": ""},
}
#: How many words an action takes at least and at most (None: any number), and which; "" stands for all other actions.
_NONE, _NAME = (0, 0, ""), (1, 1, "NAME")
WORDS: dict[str, dict[str, tuple[int, int | None, str]]] = {
    "config": {"set": (2, 2, "KEY VALUE"), "unset": (1, 1, "KEY"), "get": (1, 1, "KEY")},
    "models": {"download": (0, 1, "[NAME]"), "use": _NAME, "remove": (0, 1, "[NAME]")},
    "router": {"explain": (0, 1, "[ID]")},
    "sessions": {
        "list": (0, 0, "[--all]"),
        "show": _NAME,
        "export": (1, 2, "NAME [FILE] [--format md|json]"),
        "search": (1, None, "WORDS"),
        "delete": (1, None, "NAME ... [--yes]"),
    },
    "learn": {"list": _NONE, "": (1, 1, "N, a number of `ybs learn list`")},
    "skills": {"new": _NAME},
    "tool": {"call": (1, 2, "NAME JSON")},
    "trust": {"give": (0, 1, "[DIGEST]")},
    "plugin": {"list": _NONE, "add": (1, 2, "SOURCE [PLUGIN]"), "": _NAME},
    "mcp": {
        "list": _NONE,
        "serve": _NONE,
        "add": (1, None, "NAME URL, or NAME -- COMMAND ARGUMENTS"),
        "add-json": (2, 2, "NAME '{ENTRY}'"),
        "import": (0, None, ""),
        "test": (0, None, ""),
        "": _NAME,
    },
    "gateway": {
        "pair": (0, 1, "[CODE]"),
        "export": (1, None, "FOLDER [SESSION ...]"),
        "import": (1, None, "FOLDER [SESSION ...]"),
    },
}
#: Where these words stand that are not in `words`.
_IN = {
    "config": ("key", "value"),
    "models": ("model_name",),
    "router": ("decision",),
    "skills": ("name",),
    "tool": ("name", "json"),
    "trust": ("digest",),
}
#: Options that only one action takes.
_ONLY_OF = {
    "models": {"--all": "list"},
    "trust": {"--grant": "give"},
    "gateway": {"--web": "start", "--metrics": "start", "--log-format": "start"},
}


def parse_subcommand(name: str, words: Sequence[str], arguments: "Namespace") -> "Namespace":
    """Read what stands behind a subcommand; session options are understood there too."""
    parser, actions = subcommand_parser(name)
    if name in ("sandbox", "mcp"):
        words, arguments.command = split_at_dashes(words)
    # Intermixed: an option may stand between a tool's name and its arguments.
    arguments, unknown = parser.parse_known_intermixed_args(words, arguments)
    refuse_unknown(unknown, actions, after_prompt=None)
    check_words(name, arguments)
    check_options(name, arguments)
    arguments.format = arguments.format or "text"
    return arguments


def split_at_dashes(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words before `--` and those after it."""
    place = words.index("--") if "--" in words else len(words)
    return list(words[:place]), list(words[place + 1 :])


def subcommand_parser(name: str) -> tuple["ArgumentParser", list["Action"]]:
    """Make the parser of a subcommand, and the list of its options."""
    from argparse import SUPPRESS

    summary, choices = SUBCOMMANDS[name]
    parser = new_parser(f"ybs {name}", summary, EPILOGS.get(name, ""))
    if choices:
        parser.add_argument("action", nargs="?", choices=choices, default=choices[0])
    actions = add_shared_options(parser)
    for action in actions:  # a subcommand understands those of the chat, and shows its own
        action.help = SUPPRESS
    formats = ("text", "md", "json") if name == "sessions" else ("text", "json")
    add = parser.add_argument
    actions.append(add("--format", choices=formats, help="the form of what is printed"))
    # `ybs version --json` is what other programs are asked for.
    actions.append(add("--json", dest="format", action="store_const", const="json", help=SUPPRESS))
    for line in filter(None, ARGUMENTS.get(name, "").splitlines()):
        said, _, text = line.partition("  ")
        told: dict[str, Any] = {"help": text.strip() or SUPPRESS, **argument_of(said)}
        actions.append(add(said.partition(" ")[0], **told))
    return parser, [action for action in actions if action.option_strings]


def argument_of(said: str) -> dict[str, Any]:
    """Return what argparse is told of a word or an option that is written so: `files [FILE ...]`, `--env NAME=VALUE ...`."""
    name, _, shown = said.partition(" ")
    if not shown:
        return {"action": "store_true", **_TOLD.get(said, {})}
    told: dict[str, Any] = {}
    if not name.startswith("-"):
        told["nargs"] = "*" if shown.endswith(" ...]") else "?"
        shown = shown.removeprefix("[").removesuffix("]")
    elif shown.endswith(" ..."):
        told |= {"action": "append", "default": []}
    shown = shown.removesuffix(" ...")
    is_choice = shown.startswith("{")
    told |= {"choices": shown[1:-1].split(",")} if is_choice else {"metavar": shown}
    return {**told, **_TOLD.get(said, {})}


def check_words(name: str, arguments: "Namespace") -> None:
    """Fail where an action has too few words, or too many."""
    if name not in WORDS:
        return
    action, known = arguments.action, WORDS[name]
    least, most, usage = known.get(action) or known.get("", _NONE)
    if name == "learn" and arguments.all:
        least, most, usage = _NONE
    found = [getattr(arguments, each) for each in _IN.get(name, ("words",))]
    several = (cast("list[Any]", each) if isinstance(each, list) else [each] for each in found)
    given = [str(word) for words in several for word in words if word is not None]
    if len(given) < least:
        fail(f"something is missing: ybs {name} {action} {usage}")
    if most is not None and len(given) > most:
        fail(f"{given[most]!r} is not understood here; ybs {name} {action} {usage}".rstrip())


def check_options(name: str, arguments: "Namespace") -> None:
    """Fail where an option stands with an action that does not take it, or lacks what it needs."""
    for option, action in _ONLY_OF.get(name, {}).items():
        given = getattr(arguments, option[2:].replace("-", "_"))
        if arguments.action != action and (given or given == 0) and given is not False:
            fail(f"{option} works only with `ybs {name} {action}`")
    if name == "sandbox" and not arguments.command:
        fail("the command is missing: ybs sandbox exec [--network] -- COMMAND ...")
    if name == "mcp" and arguments.command and arguments.action != "add":
        fail("only `ybs mcp add NAME` takes a command behind --")
    if name in _CHECKED:
        _CHECKED[name](arguments)


def check_gateway(arguments: "Namespace") -> None:
    """Fail where nobody is named who is let in, or the port is none."""
    role = arguments.role
    if role and not (arguments.action == "pair" and arguments.words):
        fail(f"--{role} works only with a code: ybs gateway pair CODE")
    check_port(arguments)


def check_port(arguments: "Namespace") -> None:
    """Fail where the port is none."""
    is_page = arguments.subcommand == "web"
    option, port = ("--port", arguments.port) if is_page else ("--web", arguments.web)
    if not 0 <= (port or 0) < 65_536:
        fail(f"{option} {port} is not a port; those are 1 to 65535")


def check_setup(arguments: "Namespace") -> None:
    """Fail where `setup` is given what only `setup editor` takes, or an editor that is not known."""
    if arguments.what != "editor" and (arguments.editors or arguments.write):
        fail("only `ybs setup editor` takes editors and --write")
    if unknown := [each for each in arguments.editors if each not in EDITORS]:
        fail(f"there is no editor {unknown[0]!r} here; there are {', '.join(EDITORS)}")


def settle_format(arguments: "Namespace") -> None:
    """Choose the format of an export by the name of its file. Fail for Markdown of anything else."""
    is_export, words = arguments.action == "export", arguments.words
    if not is_export and arguments.format == "md":
        fail("--format md works only with `ybs sessions export`")
    if is_export and arguments.format is None:
        is_data = len(words) > 1 and words[-1].lower().endswith((".json", ".jsonl"))
        arguments.format = "json" if is_data else "md"


#: What looks at what the tables above cannot say.
_CHECKED: "dict[str, Callable[[Namespace], None]]" = {
    "gateway": check_gateway,
    "serve": check_port,
    "sessions": settle_format,
    "setup": check_setup,
    "web": check_port,
}
