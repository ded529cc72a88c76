"""Every setting with its meaning, its default and its bounds; docs and JSON Schema are made from these."""

from operator import attrgetter
from typing import Annotated, Any, Final, Literal, TypeAlias

from msgspec import Meta, Struct

from ybs.config.agents import Agents
from ybs.config.network import Network, NotEmpty
from ybs.config.own_providers import CliAgent, Endpoint, ModelEntry, Tokens
from ybs.config.router import Router


class ToolNeeds(Struct, frozen=True, kw_only=True):
    """What an external tool needs beside reading the project. The person is asked, and nothing else is there."""

    network: Annotated[bool, Meta(description="The network.")] = False
    project: Annotated[
        Literal["read", "write"], Meta(description="Whether it may change the project's files.")
    ] = "read"
    environment: Annotated[
        tuple[str, ...], Meta(description="Names of your environment variables that it gets.")
    ] = ()
    read: Annotated[
        tuple[str, ...], Meta(description="Files and folders outside the project that it reads.")
    ] = ()

    @property
    def words(self) -> str:
        """Say in a few words what it needs; nothing where it only reads the project."""
        needed = [
            *(["the network"] if self.network else []),
            *(["to change files"] if self.project == "write" else []),
            *([f"your {', '.join(self.environment)}"] if self.environment else []),
            *([f"to read {', '.join(self.read)}"] if self.read else []),
        ]
        return ", ".join(needed)


Minutes: TypeAlias = Annotated[float, Meta(gt=0, le=100_000)]


class Local(Struct, frozen=True, kw_only=True):
    """Models that run on this machine, in a server that ybs starts."""

    server: Annotated[
        NotEmpty | None,
        Meta(
            description="The absolute path of llama.cpp's `llama-server`. Unset: that of the extra `local`, or the one in "
            "`PATH` where this machine has a graphics processor or the extra is not installed."
        ),
    ] = None
    hub: Annotated[
        NotEmpty,
        Meta(
            description="Where models are downloaded from when you ask for one: a hub with the addresses of Hugging Face, "
            "or a mirror's pattern with `{file}`, and `{repository}` where it is needed."
        ),
    ] = "https://huggingface.co"
    keep_minutes: Annotated[
        Minutes | None,
        Meta(
            description="How long a model stays in memory after its last use, in Ollama too. Unset: 15, and Ollama's own."
        ),
    ] = None


#: Built-in defaults are the safe ones: a file, a variable or an option has to ask for more.
Mode: TypeAlias = Literal["ask", "accept-edits", "auto", "plan", "deny", "bypass"]
PromptForm: TypeAlias = Literal["auto", "short", "full"]

Count: TypeAlias = Annotated[int, Meta(ge=0, le=1_000_000)]
Positive: TypeAlias = Annotated[int, Meta(ge=1, le=1_000_000)]
Seconds: TypeAlias = Annotated[float, Meta(gt=0, le=1_000_000)]
WholeSeconds: TypeAlias = Annotated[int, Meta(ge=1, le=1_000_000)]
Dollars: TypeAlias = Annotated[float, Meta(ge=0, le=1_000_000)]
Degree: TypeAlias = Annotated[float, Meta(ge=0, le=2)]
Share: TypeAlias = Annotated[float, Meta(ge=0.1, le=1)]
#: How hard a model thinks: a level, or the most tokens that it may think.
Effort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | Count
OneLine: TypeAlias = Annotated[str, Meta(max_length=80, pattern=r"^[^\x00-\x1f\x7f]*$")]


class Llm(Struct, frozen=True, kw_only=True):
    """Which model answers, and how it is asked."""

    provider: Annotated[
        NotEmpty | None,
        Meta(
            description="A built-in provider, or one of your own from `providers`. Unset: chosen."
        ),
    ] = None
    model: Annotated[
        str | None, Meta(description="The model's name. Unset: the provider's default.")
    ] = None
    endpoint: Annotated[
        NotEmpty | None, Meta(description="The provider's address. Unset: the provider's own.")
    ] = None
    api_key: Annotated[
        str | None,
        Meta(description="The provider's key, read from your own files only. Better: a variable."),
    ] = None
    temperature: Annotated[
        Degree | None,
        Meta(description="Randomness, sent where accepted. Unset: 0 for small models, else none."),
    ] = None
    max_tokens: Annotated[Tokens, Meta(description="The longest answer, in tokens.")] = 8192
    effort: Annotated[
        Effort | None,
        Meta(description="How hard the model thinks: one of these, or tokens. Unset: as it likes."),
    ] = None
    timeout_seconds: Annotated[
        Seconds,
        Meta(
            description="How long the provider may be silent within an answer. Pings and empty pieces count as silence after ten minutes."
        ),
    ] = 120.0
    prompt: Annotated[
        PromptForm,
        Meta(
            description="The prompt and the tools: `short` for small models, `full`, or by the model's size, window and place."
        ),
    ] = "auto"
    fallback: Annotated[
        tuple[str, ...],
        Meta(
            description="Models that are asked in this order where the chosen one cannot answer: `PROVIDER` or `PROVIDER/MODEL`."
        ),
    ] = ()
    fallback_elsewhere: Annotated[
        bool,
        Meta(
            description="Let a fallback take a conversation with a model on this machine, or in this network, to one further away."
        ),
    ] = False

    def __repr__(self) -> str:
        # The key must not reach a log by way of a representation.
        return f"Llm(provider={self.provider!r}, model={self.model!r})"


class Context(Struct, frozen=True, kw_only=True):
    """How much the model gets to see."""

    max_tokens: Annotated[
        Tokens | None,
        Meta(
            description="The most of the model's window that is used. Unset: all of it, of a model of Ollama 32,768 tokens; more than that where this says so."
        ),
    ] = None
    compaction_threshold: Annotated[
        Share, Meta(description="The share of the window at which older parts are compacted.")
    ] = 0.95
    system_prompt_file: Annotated[
        str | None, Meta(description="A file whose text takes the place of the built-in prompt.")
    ] = None
    repo_map_tokens: Annotated[
        Count, Meta(description="The size of the map of the project; 0 leaves it out.")
    ] = 1024
    max_tool_output_chars: Annotated[
        Positive,
        Meta(
            description="A tool's output beyond this is cut in the middle. Where it is not set, a window over 33,000 tokens has room for more: up to 60,000."
        ),
    ] = 10_000


class AgentLimits(Struct, frozen=True, kw_only=True):
    """When work ends by itself, and how often a failed request is sent again."""

    max_iterations: Annotated[
        Positive, Meta(description="The most requests that one turn may send.")
    ] = 200
    retry_attempts: Annotated[
        Annotated[int, Meta(ge=0, le=20)],
        Meta(
            description="How often a failed request is sent again, and an answer that broke off asked for anew; about a minute in all."
        ),
    ] = 6
    retry_backoff_base_ms: Annotated[
        Annotated[int, Meta(ge=0, le=60_000)],
        Meta(description="The first pause before that, doubled each time."),
    ] = 1000
    max_cost_usd: Annotated[
        Dollars | None, Meta(description="The most that one session may cost. Unset: no limit.")
    ] = None
    max_seconds: Annotated[
        Seconds | None, Meta(description="The longest that one turn may take. Unset: no limit.")
    ] = None


class Safety(Struct, frozen=True, kw_only=True):
    """What is allowed, what is asked about, and what is refused."""

    mode: Annotated[Mode, Meta(description="How much is done without asking.")] = "ask"
    sandbox_enabled: Annotated[
        bool,
        Meta(
            description="Run commands in the sandbox. Only your own settings can turn it off, never a project's."
        ),
    ] = True
    sandbox_network: Annotated[
        bool, Meta(description="Let every command in the sandbox reach the network.")
    ] = False
    sandbox_allowed_paths: Annotated[
        tuple[str, ...], Meta(description="Folders that tools may work in.")
    ] = ("./",)
    sandbox_blocked_paths: Annotated[
        tuple[str, ...], Meta(description="Files and folders that tools never touch.")
    ] = ("~/.ssh", "~/.aws", "~/.config")
    require_confirmation: Annotated[
        tuple[str, ...],
        Meta(
            description="Tools that ask first in mode `ask`. As shipped, `run_shell` stands for commands that want to change something; in your own settings for each command."
        ),
    ] = ("write_file", "run_shell", "delete_file")
    ask_before_edits: Annotated[
        bool,
        Meta(
            description="In mode `ask`, ask before each edit, also of files that the model has read."
        ),
    ] = False
    blocked_commands: Annotated[
        tuple[str, ...],
        Meta(
            description="Commands that are refused in every mode where they are recognised: a seat belt, not a wall."
        ),
    ] = ("rm -rf /", "sudo", "chmod 777")
    safe_commands: Annotated[
        tuple[str, ...],
        Meta(description="Programs that the mode `deny` lets run, with the project read-only."),
    ] = (
        *("basename", "cat", "cd", "cmp", "comm", "cut", "df", "diff", "dirname", "du", "echo"),
        *("false", "file", "find", "grep", "head", "id", "ls", "md5sum", "nl", "printf", "pwd"),
        *("readlink", "realpath", "rg", "seq", "sha256sum", "sort", "stat", "tail", "tr", "true"),
        *("uname", "uniq", "wc", "which", "whoami"),
    )
    outside_sandbox: Annotated[
        tuple[str, ...],
        Meta(
            description="Commands that run outside the sandbox, with your keys and without a question, such as `git push *` and `gh *`. Only your own settings can name them, and they count in projects that you trust."
        ),
    ] = ()
    allow: Annotated[
        tuple[str, ...],
        Meta(description="Rules such as `run_shell(pytest *)`: what needs no question."),
    ] = ()
    ask: Annotated[
        tuple[str, ...], Meta(description="Rules for what is asked about, whatever allows it.")
    ] = ()
    deny: Annotated[
        tuple[str, ...], Meta(description="Rules for what is refused in every mode.")
    ] = ()


class BuiltinTool(Struct, frozen=True, kw_only=True):
    """One built-in tool."""

    enabled: Annotated[bool, Meta(description="Offer the tool to the model.")] = True
    timeout_seconds: Annotated[
        WholeSeconds | None, Meta(description="How long a call may take. Unset: as shipped.")
    ] = None


class ExternalTool(Struct, frozen=True, kw_only=True):
    """A program of yours that the model may call."""

    name: Annotated[str, Meta(description="The tool's name for the model.", min_length=1)]
    path: Annotated[str, Meta(description="The program.", min_length=1)]
    type: Annotated[Literal["executable"], Meta(description="The kind of tool.")] = "executable"
    description: Annotated[str, Meta(description="What the model is told about it.")] = ""
    parameters: Annotated[
        dict[str, Any], Meta(description="Its arguments: JSON Schema, or the short flat form.")
    ] = {}
    input: Annotated[
        Literal["stdin", "argv"] | None,
        Meta(description="How it gets its arguments. Unset: found out by its kind."),
    ] = None
    timeout_seconds: Annotated[
        WholeSeconds | None, Meta(description="How long a call may take. Unset: as shipped.")
    ] = None
    needs: ToolNeeds = ToolNeeds()
    cwd: Annotated[
        Literal["project"] | None,
        Meta(
            description="`project`: it starts in the project also where you do not trust that. Unset: in a folder of its own until you do."
        ),
    ] = None
    enabled: Annotated[bool, Meta(description="Offer the tool to the model.")] = True


class Tools(Struct, frozen=True, kw_only=True):
    """The tools that the model gets."""

    builtin: Annotated[dict[str, BuiltinTool], Meta(description="Built-in tools, by name.")] = {}
    external: Annotated[
        tuple[ExternalTool, ...], Meta(description="Programs of yours, as tools.")
    ] = ()
    search_paths: Annotated[
        tuple[str, ...],
        Meta(
            description="Folders in which tools are looked for; those of a project once it is trusted."
        ),
    ] = ("~/.config/ybs/tools", "~/.ybs/tools", "./tools", "./.ybs/tools")


class Skills(Struct, frozen=True, kw_only=True):
    """The skills that the model gets."""

    search_paths: Annotated[
        tuple[str, ...], Meta(description="Folders of your own in which skills are looked for.")
    ] = ("~/.config/ybs/skills", "~/.agents/skills", "~/.claude/skills")
    only: Annotated[
        tuple[str, ...], Meta(description="The names of the skills to use; with none, all.")
    ] = ()


class Git(Struct, frozen=True, kw_only=True):
    """What ybs does with git by itself."""

    auto_commit: Annotated[
        bool,
        Meta(
            description="Commit what a turn changed. Where you have not set it yourself, you are asked once per repository."
        ),
    ] = True
    commit_message_prefix: Annotated[
        OneLine, Meta(description="What such a commit's title begins with.")
    ] = "[ybs]"


class Ui(Struct, frozen=True, kw_only=True):
    """What the terminal shows."""

    color: Annotated[bool, Meta(description="Use colour (also needs a terminal).")] = True
    show_token_usage: Annotated[bool, Meta(description="Show the tokens used after a turn.")] = True
    show_tool_calls: Annotated[bool, Meta(description="Show each tool call.")] = True
    stream_responses: Annotated[bool, Meta(description="Show the answer as it comes.")] = True
    answer_shell: Annotated[
        bool,
        Meta(
            description="Have the model answer to the output of a !command at once; false keeps it for your next prompt."
        ),
    ] = True
    editing_mode: Annotated[
        Literal["emacs", "vi"], Meta(description="Which editor's keys the prompt has.")
    ] = "emacs"
    notify: Annotated[
        Literal["off", "bell", "desktop"],
        Meta(description="How ybs calls you when it waits for you, or when long work has ended."),
    ] = "bell"
    terminal_title: Annotated[
        bool,
        Meta(description="Show the session and whether ybs works or waits in the window's title."),
    ] = True
    history: Annotated[
        bool, Meta(description="Keep what was typed, for each project (never in incognito).")
    ] = True
    plain: Annotated[bool, Meta(description="Whole sentences, no colour, nothing that moves.")] = (
        False
    )


class SessionStore(Struct, frozen=True, kw_only=True):
    """Where sessions are kept, and for how long."""

    storage_path: Annotated[
        str, Meta(description="The folder of the session files.", min_length=1)
    ] = "~/.config/ybs/sessions"
    auto_save: Annotated[bool, Meta(description="Write each message down as it comes.")] = True
    max_sessions: Annotated[
        Count, Meta(description="Keep this many; the oldest go first. 0 keeps all.")
    ] = 100
    retention_days: Annotated[
        Count, Meta(description="Delete what is older. 0 keeps it for ever.")
    ] = 30


class Serve(Struct, frozen=True, kw_only=True):
    """The server of `ybs serve`, which `ybs attach` and `ybs --background` start where none runs."""

    keep_minutes: Annotated[
        Minutes | None,
        Meta(
            description="End the server, and close its sessions, when no client was connected and nothing was at work for so long. "
            "`null`: never. A question that waits for you counts as work."
        ),
    ] = 30.0


class Incognito(Struct, frozen=True, kw_only=True):
    """Sessions of which nothing is written down."""

    enabled: Annotated[bool, Meta(description="Begin every session incognito.")] = False
    local_only: Annotated[
        bool, Meta(description="In incognito, use only models that run on this machine.")
    ] = False


class Firewall(Struct, frozen=True, kw_only=True):
    """What is taken for a secret on its way to a model."""

    sensitivity: Annotated[
        Literal["low", "normal", "high"],
        Meta(
            description="`low`: published formats of tokens, private keys, your own keys. `normal`: logins in addresses, "
            "headers and commands, and random values with a name such as `api_key`, too. `high`: words as passwords, too."
        ),
    ] = "normal"
    allow: Annotated[
        tuple[str, ...],
        Meta(
            description="What is not a secret: the SHA-256 of a value, or a regular expression that matches all of it."
        ),
    ] = ()


class Learning(Struct, frozen=True, kw_only=True):
    """Whether ybs notices what is asked for again and again. All of it stays on this machine, and no model is asked."""

    enabled: Annotated[
        bool,
        Meta(
            description="Notice recurring requests in saved sessions, and offer a command for them, at most twice a week."
        ),
    ] = True


#: A section whose feature reads it as it stands: `${NAME}` in it is not replaced here.
Section: TypeAlias = dict[str, Any]


class Clone(Struct, frozen=True, forbid_unknown_fields=True):
    """A project of a gateway that is cloned with git from an address."""

    clone: Annotated[NotEmpty, Meta(description="What `git clone` takes.")]


class Gateway(Struct, frozen=True, kw_only=True):
    """Chats, of `ybs gateway`. A project's settings have no say in it."""

    channels: Annotated[
        dict[str, Section],
        Meta(
            description="Chat platforms by name: `token`, `base_url` and what else the platform needs (`token_env` names the variable that has the token, and so on), `private` and `groups` (who may "
            "speak: pairing, allow, open, off), `allow` (ids of people or groups), `owners` (ids of people who approve). "
            "`type` names the platform where the name does not."
        ),
    ] = {}
    database: Annotated[
        str,
        Meta(
            description="The address of a PostgreSQL database, `postgresql://USER@HOST/NAME`, that gateways of several machines share; its password is looked "
            "for in `PGPASSWORD` and `~/.pgpass`. Empty: files of this machine."
        ),
    ] = ""
    projects: Annotated[
        dict[str, str | Clone],
        Meta(
            description='Folders that the owner can bind a chat to, by name: `/project NAME`; or clones that ybs makes itself: `{"clone": ADDRESS}`.'
        ),
    ] = {}
    turns_at_once: Annotated[
        Positive, Meta(description="So many turns run at once on a machine; the others wait.")
    ] = 64
    idle_hours: Annotated[
        Minutes | None,
        Meta(
            description="A chat begins a new session after so many hours without a word. `null`: never."
        ),
    ] = 24.0
    per_minute: Annotated[
        Positive, Meta(description="So many messages of a person are taken in a minute.")
    ] = 12
    usd_per_day: Annotated[
        Dollars | None,
        Meta(description="So much may all chats together spend in a day (UTC). `null`: no limit."),
    ] = None

    def __repr__(self) -> str:
        return "Gateway()"  # the channels hold tokens


class Config(Struct, frozen=True, kw_only=True):
    """All settings."""

    version: Annotated[str, Meta(description="The version of this format.")] = "1.0"
    llm: Llm = Llm()
    local: Local = Local()
    network: Network = Network()
    context: Context = Context()
    agent: AgentLimits = AgentLimits()
    agents: Agents = Agents()
    safety: Safety = Safety()
    tools: Tools = Tools()
    skills: Skills = Skills()
    git: Git = Git()
    ui: Ui = Ui()
    session: SessionStore = SessionStore()
    serve: Serve = Serve()
    incognito: Incognito = Incognito()
    firewall: Firewall = Firewall()
    learning: Learning = Learning()
    gateway: Gateway = Gateway()
    providers: Annotated[
        dict[str, Endpoint], Meta(description="Providers of your own, by name.")
    ] = {}
    cli_agents: Annotated[
        dict[str, CliAgent], Meta(description="Providers of your own that are programs, by name.")
    ] = {}
    models: Annotated[
        dict[str, ModelEntry],
        Meta(
            description="What you state of models, by name: `MODEL`, or `PROVIDER/MODEL` for one provider's."
        ),
    ] = {}
    profiles: Annotated[
        Section, Meta(description="Named sets of settings, one of which a start may choose.")
    ] = {}
    router: Router = Router()
    mcpServers: Annotated[Section, Meta(description="MCP servers, by name.")] = {}
    hooks: Annotated[Section, Meta(description="Your commands at set moments, by event.")] = {}
    memory: Annotated[
        Section, Meta(description="What is remembered between sessions. Not there yet.")
    ] = {}

    def __repr__(self) -> str:
        # Sections hold keys, headers and environments, which must not reach a log.
        return f"Config(llm={self.llm!r})"


#: Settings of features that are not there yet: they are accepted and have no effect.
PLANNED: Final = ("memory",)


def planned_in(config: Config) -> list[str]:
    """Return the keys of settings that are set although nothing reads them yet."""
    shipped = Config()
    return [key for key in PLANNED if attrgetter(key)(config) != attrgetter(key)(shipped)]
