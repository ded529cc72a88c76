"""The subcommands: their lines of help, and what each of them takes."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ybs.cli.flags import add_shared_options, whole_number
from ybs.cli.usage import fail, new_parser, refuse_unknown

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
#: What stands behind the action of these.
_NAMES = {"tools": "of install: one that comes with ybs", "skills": "of new: its name"}
#: Action of `sessions`: how many words it takes at least and at most (None: any number), and which.
SESSIONS_WORDS: dict[str, tuple[int, int | None, str]] = {
    "list": (0, 0, "[--all]"),
    "show": (1, 1, "NAME"),
    "export": (1, 2, "NAME [FILE] [--format md|json]"),
    "search": (1, None, "WORDS"),
    "delete": (1, None, "NAME ... [--yes]"),
}


def parse_subcommand(name: str, words: Sequence[str], arguments: "Namespace") -> "Namespace":
    """Read what stands behind a subcommand; session options are understood there too."""
    parser, actions = subcommand_parser(name)
    if name in ("sandbox", "mcp"):
        words, arguments.command = split_at_dashes(words)
    if name == "models" and words[:1] == ["install"]:  # what it was called before
        words = ["download", *(words[1:] or ["starter"])]
    # Intermixed: an option may stand between a tool's name and its arguments.
    arguments, unknown = parser.parse_known_intermixed_args(words, arguments)
    refuse_unknown(unknown, actions, after_prompt=None)
    check_own(name, arguments)
    arguments.format = arguments.format or "text"
    return arguments


def subcommand_parser(name: str) -> tuple["ArgumentParser", list["Action"]]:
    """Make the parser of a subcommand, and the list of its options."""
    summary, choices = SUBCOMMANDS[name]
    parser = new_parser(f"ybs {name}", summary, EPILOGS.get(name, ""))
    if choices:
        parser.add_argument("action", nargs="?", choices=choices, default=choices[0])
    actions = hidden(add_shared_options(parser))
    formats = ("text", "md", "json") if name == "sessions" else ("text", "json")
    form = parser.add_argument("--format", choices=formats, help="the form of what is printed")
    # `ybs version --json` is what other programs are asked for.
    alias = parser.add_argument("--json", dest="format", action="store_const", const="json")
    actions += [form, *hidden([alias]), *add_own(parser, name)]
    if name in ("doctor", "setup"):
        help_text = "the project's folder (default: this folder)"
        actions.append(
            parser.add_argument("--folder", dest="work_in", metavar="DIR", help=help_text)
        )
        actions += hidden([parser.add_argument("--using", default="")])  # by a chat: its model
    return parser, actions


def hidden(actions: list["Action"]) -> list["Action"]:
    """Leave options out of the help: a subcommand understands those of the chat, and shows its own."""
    from argparse import SUPPRESS

    for action in actions:
        action.help = SUPPRESS
    return actions


def add_own(parser: "ArgumentParser", name: str) -> list["Action"]:
    """Add what only this subcommand takes, and return its options."""
    add = parser.add_argument
    options: list[Action] = []
    match name:
        case "config":
            help_text = "also show where each value comes from"
            options = [add("--sources", action="store_true", help=help_text)]
            add(
                "key",
                nargs="?",
                metavar="KEY",
                help="of get, set and unset: a setting, as llm.model",
            )
            add("value", nargs="?", metavar="VALUE", help="of set: its value, as text or JSON")
        case "tools" | "skills":
            add("name", nargs="?", metavar="NAME", help=_NAMES[name])
        case "firewall":
            help_text = "files or folders to scan; - for standard input (default: this folder)"
            add("files", nargs="*", metavar="FILE", help=help_text)
        case "models":
            help_text = "of download (starter: a small one that runs anywhere; none: the best for this machine), use and remove (none: the starter model)"
            add("model_name", nargs="?", metavar="NAME", help=help_text)
            all_text = "of list: ask the providers elsewhere that have a key, too"
            options = [add("--all", action="store_true", help=all_text)]
        case "permissions":
            help_text = "of allow and deny: a rule, after project (as shipped) or user; of remove: its number"
            add("words", nargs="*", metavar="RULE", help=help_text)
        case "sandbox":
            options = [add("--network", action="store_true", help="with network access")]
        case _ if name in _OWN:
            options = _OWN[name](parser)
        case _:
            pass
    return options


def check_own(name: str, arguments: "Namespace") -> None:
    """Fail where something is missing that this subcommand needs."""
    if name == "sandbox" and not arguments.command:
        fail("the command is missing: ybs sandbox exec [--network] -- COMMAND ...")
    if name in _CHECKED:
        _CHECKED[name](arguments)
    if name == "tool" and not arguments.name:
        fail("the name of a tool is missing: ybs tool call NAME JSON")
    if name == "trust" and arguments.grant and arguments.action != "give":
        fail("--grant works only with `ybs trust give`")
    if name == "skills" and (arguments.action == "new") != bool(arguments.name):
        fail("`new`, and only that, takes a name: ybs skills new NAME")


def add_setup(parser: "ArgumentParser") -> list["Action"]:
    """Add what `setup` takes, and return its options."""
    parser.add_argument("what", nargs="?", choices=("model", "editor"), default="model")
    editors_text = f"of editor: {', '.join(EDITORS)} (default: all)"
    parser.add_argument("editors", nargs="*", metavar="EDITOR", help=editors_text)
    write_text = "of editor: write the settings, after showing them"
    return [parser.add_argument("--write", action="store_true", help=write_text)]


def check_setup(arguments: "Namespace") -> None:
    """Fail where `setup` is given what only `setup editor` takes, or an editor that is not known."""
    if arguments.what != "editor" and (arguments.editors or arguments.write):
        fail("only `ybs setup editor` takes editors and --write")
    if unknown := [each for each in arguments.editors if each not in EDITORS]:
        fail(f"there is no editor {unknown[0]!r} here; there are {', '.join(EDITORS)}")


def check_models(arguments: "Namespace") -> None:
    """Fail where an action of `models` has a name too many, or lacks the one that it needs."""
    action, name = arguments.action, arguments.model_name
    if action == "use" and not name:
        fail("the name of a model is missing: ybs models use NAME")
    if arguments.all and action != "list":
        fail(f"--all works only with `ybs models list`, not with {action}")
    if name and action not in ("download", "use", "remove"):
        fail(f"{name!r} is not understood here; ybs models {action} takes no name")


def check_config(arguments: "Namespace") -> None:
    """Fail where an action of `config` has too few words, or too many."""
    wanted = {"set": 2, "unset": 1, "get": 1}.get(arguments.action, 0)
    given = [word for word in (arguments.key, arguments.value) if word is not None]
    if len(given) < wanted:
        fail(f"something is missing: ybs config {arguments.action} KEY{' VALUE' * (wanted > 1)}")
    if len(given) > wanted:
        fail(
            f"{given[wanted]!r} is not understood here; only `get`, `set` and `unset` take a setting"
        )


def split_at_dashes(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words before `--` and those after it."""
    place = words.index("--") if "--" in words else len(words)
    return list(words[:place]), list(words[place + 1 :])


def add_router(parser: "ArgumentParser") -> list["Action"]:
    """Add what `router` takes, and return its options."""
    add = parser.add_argument
    add(
        "decision",
        nargs="?",
        default="",
        metavar="ID",
        help="of explain: a decision (default: the newest)",
    )
    return []


def check_router(arguments: "Namespace") -> None:
    """Fail where an action of `router` is given what only another one takes."""
    action, decision = arguments.action, arguments.decision
    if decision and action != "explain":
        fail(f"{decision!r} is not understood here; only `ybs router explain` takes a decision")


def add_call(parser: "ArgumentParser") -> list["Action"]:
    """Add what `tool call` takes, and return its options."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="one of `ybs tools list`")
    parser.add_argument(
        "json",
        nargs="?",
        metavar="JSON",
        help="its arguments as a JSON object; - or nothing: read from standard input",
    )
    help_text = "answer yes to the question whether it may run; what is forbidden stays forbidden"
    return [parser.add_argument("--yes", action="store_true", help=help_text)]


def add_sessions(parser: "ArgumentParser") -> list["Action"]:
    """Add what `sessions` takes, and return its options."""
    help_text = "NAME of show; NAME [FILE] of export; WORDS of search; NAME ... of delete"
    parser.add_argument("words", nargs="*", metavar="WORD", help=help_text)
    add = parser.add_argument
    return [
        add("--all", action="store_true", help="the sessions of all folders"),
        add("--yes", action="store_true", help="delete without asking"),
    ]


def add_learn(parser: "ArgumentParser") -> list["Action"]:
    """Add what `learn` takes, and return its options."""
    help_text = "the number of a recurring task, as `ybs learn` lists them"
    parser.add_argument("words", nargs="*", metavar="N", help=help_text)
    add = parser.add_argument
    return [
        add("--project", action="store_true", help="of accept: write it for this project"),
        add("--cron", action="store_true", help="of schedule: show a line for cron"),
        add("--gateway", action="store_true", help="of schedule: have `ybs gateway` run it"),
        add("--write", action="store_true", help="of schedule: write the systemd timer"),
        add("--all", action="store_true", help="of forget: all that was learned"),
        add("--yes", action="store_true", help="agree without being asked"),
    ]


def check_learn(arguments: "Namespace") -> None:
    """Fail where an action of `learn` lacks its number, or has one too many."""
    needed = 0 if arguments.action == "list" or arguments.all else 1
    if len(arguments.words) != needed:
        fail(
            f"`ybs learn {arguments.action}` takes "
            + ("the number of one task: ybs learn list shows them" if needed else "no number")
        )


def add_plugin(parser: "ArgumentParser") -> list["Action"]:
    """Add what `plugin` takes, and return its options."""
    help_text = (
        "of add: a folder or an address of git, and which plugin of several; of the others: NAME"
    )
    parser.add_argument("words", nargs="*", metavar="WORD", help=help_text)
    return [parser.add_argument("--yes", action="store_true", help="agree without being asked")]


def check_plugin(arguments: "Namespace") -> None:
    """Fail where an action of `plugin` has too few words, or too many."""
    action, words = arguments.action, arguments.words
    least, most = (0, 0) if action == "list" else (1, 2) if action == "add" else (1, 1)
    if len(words) < least:
        usage = "SOURCE [PLUGIN]" if action == "add" else "NAME"
        fail(f"something is missing: ybs plugin {action} {usage}")
    if len(words) > most:
        fail(f"{words[most]!r} is not understood here")


def add_mcp(parser: "ArgumentParser") -> list["Action"]:
    """Add what `mcp` takes, and return its options."""
    help_text = "of add: NAME and an address, or NAME -- COMMAND ARGUMENTS; of add-json: NAME and the entry; of import: a file; of the others: NAME"
    parser.add_argument("words", nargs="*", metavar="WORD", help=help_text)
    add = parser.add_argument
    access = ("none", "read", "write")
    tools_text = "of serve: only these tools, of `ybs tools list`, with commas between them"
    return [
        add(
            "--env",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="of add: a variable for the server",
        ),
        add(
            "--header",
            action="append",
            default=[],
            metavar="'NAME: VALUE'",
            help="of add: a header of its requests",
        ),
        add(
            "--project",
            choices=access,
            help="of add: what it may do with the project (default: read)",
        ),
        add(
            "--write",
            dest="writable",
            action="append",
            default=[],
            metavar="PATH",
            help="of add: a file or folder outside of the project that it may change",
        ),
        add("--no-network", action="store_true", help="of add: it gets no network"),
        add("--tools", default="", metavar="NAME,...", help=tools_text),
        add("--yes", action="store_true", help="agree without being asked"),
    ]


def check_mcp(arguments: "Namespace") -> None:
    """Fail where an action of `mcp` has too few words, or too many."""
    action, words = arguments.action, arguments.words
    least = {"add": 1, "add-json": 2, "trust": 1, "login": 1, "logout": 1, "remove": 1}.get(
        action, 0
    )
    most = {"list": 0, "serve": 0, "add": None, "add-json": 2, "import": None, "test": None}
    most = most.get(action, 1)
    if len(words) < least:
        usages = {"add": "NAME URL, or NAME -- COMMAND ARGUMENTS", "add-json": "NAME '{ENTRY}'"}
        usage = usages.get(action, "NAME")
        fail(f"something is missing: ybs mcp {action} {usage}")
    if most is not None and len(words) > most:
        fail(f"{words[most]!r} is not understood here")
    if arguments.command and action != "add":
        fail("only `ybs mcp add NAME` takes a command behind --")


def add_web(parser: "ArgumentParser") -> list["Action"]:
    """Add what `web` takes, and return its options."""
    port_text = "default: that of the browsers that are logged in, else a new one; 0: any"
    port = parser.add_argument("--port", type=int, metavar="N", help=port_text)
    return [port, *_add_page(parser)]


def _add_page(parser: "ArgumentParser") -> list["Action"]:
    """Add what says where the page is, and return its options."""
    add = parser.add_argument
    host_text = "the address of the page (default: %(default)s, this machine alone)"
    name_text = "a name by which browsers find the page, with --host (repeatable)"
    proxy_text = "the page's address at a proxy on this machine that encrypts"
    return [
        add("--host", default="127.0.0.1", metavar="ADDRESS", help=host_text),
        add("--name", action="append", default=[], metavar="HOST", help=name_text),
        add("--cert", metavar="FILE", help="the certificate for TLS, with its chain"),
        add("--key", metavar="FILE", help="its key"),
        add("--proxy", default="", metavar="URL", help=proxy_text),
    ]


def check_web(arguments: "Namespace") -> None:
    """Fail where the port is none."""
    serves = arguments.subcommand in ("serve", "gateway")
    name, port = ("--web", arguments.web) if serves else ("--port", arguments.port)
    if not 0 <= (port or 0) < 65_536:
        fail(f"{name} {port} is not a port; those are 1 to 65535")


def add_trust(parser: "ArgumentParser") -> list["Action"]:
    """Add what `trust` takes, and return its options."""
    text = "of give: an environment variable that the project's MCP servers may have (repeatable)"
    return [parser.add_argument("--grant", action="append", default=[], metavar="NAME", help=text)]


def add_serve(parser: "ArgumentParser") -> list["Action"]:
    """Add what `serve` takes, and return its options."""
    add = parser.add_argument
    socket_text = "where it listens, in a folder that is yours alone (default: ybs's own place)"
    web_text = "serve the page of `ybs web` on the same sessions, too; 0: at any port"
    tcp_text = "listen there too, on this machine alone unless ADDRESS says otherwise; clients need the token"
    return [
        add("--socket", metavar="PATH", help=socket_text),
        add("--tcp", metavar="[ADDRESS:]PORT", help=tcp_text),
        add("--web", type=int, metavar="PORT", help=web_text),
        *_add_page(parser),
        add("--schema", action="store_true", help="print the schema of the protocol, and end"),
    ]


def add_gateway(parser: "ArgumentParser") -> list["Action"]:
    """Add what `gateway` takes, and return its options."""
    words_text = "CODE of pair: who is let in (default: list who waits); FOLDER [SESSION ...] of export and import"
    parser.add_argument("words", nargs="*", metavar="WORD", help=words_text)
    web_text = "of start: serve the page of `ybs web` on the same sessions, too; 0: at any port"
    metrics_text = "of start: serve /metrics, /healthz and /readyz there, on this machine alone unless ADDRESS says otherwise"
    log_text = "of start: json writes the log as lines of JSON, to standard output as well"
    options = [
        parser.add_argument("--web", type=int, metavar="PORT", help=web_text),
        *_add_page(parser),
        parser.add_argument("--metrics", metavar="[ADDRESS:]PORT", help=metrics_text),
        parser.add_argument("--log-format", choices=("text", "json"), help=log_text),
    ]
    for role, text in (("owner", "who approves and chooses"), ("guest", "who only asks")):
        name, help_text = f"--{role}", f"of pair: let them in as {text}"
        add = parser.add_argument
        options.append(add(name, dest="role", action="store_const", const=role, help=help_text))
    return options


def check_gateway(arguments: "Namespace") -> None:
    """Fail where an action has words or options that it does not take."""
    action, count = arguments.action, len(arguments.words)
    if action in ("export", "import") and not count:
        fail(f"something is missing: ybs gateway {action} FOLDER [SESSION ...]")
    if count > {"pair": 1, "export": count, "import": count}.get(action, 0):
        fail(f"{arguments.words[-1]!r} is not understood here")
    if action != "pair" and arguments.role:
        fail("only `ybs gateway pair` takes a role")
    for name in ("web", "metrics", "log_format"):
        if action != "start" and getattr(arguments, name) is not None:
            fail(f"only `ybs gateway start` takes --{name.replace('_', '-')}")
    check_web(arguments)
    if arguments.role and not count:
        fail(f"--{arguments.role} needs a code: ybs gateway pair CODE")


def add_acp(parser: "ArgumentParser") -> list["Action"]:
    """Add what `acp` takes, and return its options."""
    text = "start the server of `ybs serve` where none runs: terminals and the page then share its sessions"
    return [parser.add_argument("--serve", action="store_true", help=text)]


def add_attach(parser: "ArgumentParser") -> list["Action"]:
    """Add what `attach` takes, and return its options."""
    help_text = (
        "its name, its title or its number in `ybs sessions` (default: the only one that runs)"
    )
    parser.add_argument("name", nargs="?", default="", metavar="SESSION", help=help_text)
    return []


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


#: What adds the options of the subcommands that have several.
_OWN: "dict[str, Callable[[ArgumentParser], list[Action]]]" = {
    "tool": add_call,
    "router": add_router,
    "sessions": add_sessions,
    "serve": add_serve,
    "acp": add_acp,
    "attach": add_attach,
    "gateway": add_gateway,
    "learn": add_learn,
    "map": add_map,
    "mcp": add_mcp,
    "plugin": add_plugin,
    "setup": add_setup,
    "trust": add_trust,
    "web": add_web,
}
#: What looks at the words of those that have several actions.
_CHECKED: "dict[str, Callable[[Namespace], None]]" = {
    "config": check_config,
    "gateway": check_gateway,
    "models": check_models,
    "router": check_router,
    "sessions": check_sessions,
    "learn": check_learn,
    "plugin": check_plugin,
    "mcp": check_mcp,
    "web": check_web,
    "serve": check_web,
    "setup": check_setup,
}
