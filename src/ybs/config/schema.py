"""Every setting with its meaning below it, its default and its bounds; docs and JSON Schema are made from these."""

from operator import attrgetter
from typing import Annotated, Any, Final, Literal, TypeAlias

from msgspec import Meta, Struct

from ybs.config.paths import PERSONS_SKILLS, PERSONS_TOOLS
from ybs.config.sections import (
    Agents,
    CliAgent,
    Endpoint,
    ModelEntry,
    Network,
    NotEmpty,
    RouterSettings,
    Tokens,
)


class ToolNeeds(Struct, frozen=True, kw_only=True):
    """What an external tool needs beside reading the project. The person is asked, and nothing else is there."""

    network: bool = False
    """The network."""
    project: Literal["read", "write"] = "read"
    """Whether it may change the project's files."""
    environment: tuple[str, ...] = ()
    """Names of your environment variables that it gets."""
    read: tuple[str, ...] = ()
    """Files and folders outside the project that it reads."""

    @property
    def words(self) -> str:
        """Return in a few words what it needs; nothing where it only reads the project."""
        needed = [
            *(["the network"] if self.network else []),
            *(["to change files"] if self.project == "write" else []),
            *([f"your {', '.join(self.environment)}"] if self.environment else []),
            *([f"to read {', '.join(self.read)}"] if self.read else []),
        ]
        return ", ".join(needed)


Minutes: TypeAlias = Annotated[float, Meta(gt=0, le=100_000)]


class LocalSettings(Struct, frozen=True, kw_only=True):
    """Models that run on this machine, in a server that ybs starts."""

    server: NotEmpty | None = None
    """The absolute path of llama.cpp's `llama-server`. Unset: that of the extra `local`, or the one in `PATH`
    where this machine has a graphics processor or the extra is not installed."""
    hub: NotEmpty = "https://huggingface.co"
    """Where models are downloaded from when you ask for one: a hub with the addresses of Hugging Face, or a
    mirror's pattern with `{file}`, and `{repository}` where it is needed."""
    keep_minutes: Minutes | None = None
    """How long a model stays in memory after its last use, in Ollama too. Unset: 15, and Ollama's own."""


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


class LlmSettings(Struct, frozen=True, kw_only=True):
    """Which model answers, and how it is asked."""

    provider: NotEmpty | None = None
    """A built-in provider, or one of your own from `providers`. Unset: chosen."""
    model: str | None = None
    """The model's name. Unset: the provider's default."""
    endpoint: NotEmpty | None = None
    """The provider's address. Unset: the provider's own."""
    api_key: str | None = None
    """The provider's key, read from your own files only. Better: a variable."""
    temperature: Degree | None = None
    """Randomness, sent where accepted. Unset: 0 for small models, else none."""
    max_tokens: Tokens = 8192
    """The longest answer, in tokens."""
    effort: Effort | None = None
    """How hard the model thinks: one of these, or tokens. Unset: as it likes."""
    timeout_seconds: Seconds = 120.0
    """How long the provider may be silent within an answer. Pings and empty pieces count as silence after ten
    minutes."""
    prompt: PromptForm = "auto"
    """The prompt and the tools: `short` for small models, `full`, or by the model's size, window and place."""
    fallback: tuple[str, ...] = ()
    """Models that are asked in this order where the chosen one cannot answer: `PROVIDER` or `PROVIDER/MODEL`."""
    fallback_elsewhere: bool = False
    """Let a fallback take a conversation with a model on this machine, or in this network, to one further
    away."""

    def __repr__(self) -> str:
        # The key must not reach a log by way of a representation.
        return f"Llm(provider={self.provider!r}, model={self.model!r})"


class ContextSettings(Struct, frozen=True, kw_only=True):
    """How much the model gets to see."""

    max_tokens: Tokens | None = None
    """The most of the model's window that is used. Unset: all of it, of a model of Ollama 32,768 tokens; more
    than that where this says so."""
    compaction_threshold: Share = 0.95
    """The share of the window at which older parts are compacted."""
    system_prompt_file: str | None = None
    """A file whose text takes the place of the built-in prompt. A relative path means one of the project, once you
    trust that."""
    repo_map_tokens: Count = 1024
    """The size of the map of the project; 0 leaves it out."""
    max_tool_output_chars: Positive = 10_000
    """A tool's output beyond this is cut in the middle. Where it is not set, a window over 33,000 tokens has
    room for more: up to 60,000."""


class AgentLimits(Struct, frozen=True, kw_only=True):
    """When work ends by itself, and how often a failed request is sent again."""

    max_iterations: Positive = 200
    """The most requests that one turn may send."""
    retry_attempts: Annotated[int, Meta(ge=0, le=20)] = 6
    """How often a failed request is sent again, and an answer that broke off asked for anew; about a minute
    in all."""
    retry_backoff_base_ms: Annotated[int, Meta(ge=0, le=60_000)] = 1000
    """The first pause before that, doubled each time."""
    max_cost_usd: Dollars | None = None
    """The most that one session may cost. Unset: no limit."""
    max_seconds: Seconds | None = None
    """The longest that one turn may take. Unset: no limit."""


class SafetySettings(Struct, frozen=True, kw_only=True):
    """What is allowed, what is asked about, and what is refused."""

    mode: Mode = "ask"
    """How much is done without asking."""
    sandbox_enabled: bool = True
    """Run commands in the sandbox. Only your own settings can turn it off, never a project's."""
    sandbox_network: bool = False
    """Let every command in the sandbox reach the network."""
    sandbox_allowed_paths: tuple[str, ...] = ("./",)
    """Folders that tools may work in."""
    sandbox_blocked_paths: tuple[str, ...] = ("~/.ssh", "~/.aws", "~/.config")
    """Files and folders that tools never touch. Commands can still read what git has of them (`git show`). A project adds
    places in it alone, and your own programs and those of plugins see them all the same."""
    require_confirmation: tuple[str, ...] = ("write_file", "run_shell", "delete_file")
    """Tools that ask first in mode `ask`. As shipped, `run_shell` stands for commands that want to change
    something; in your own settings for each command."""
    ask_before_edits: bool = False
    """In mode `ask`, ask before each edit, also of files that the model has read."""
    blocked_commands: tuple[str, ...] = ("rm -rf /", "sudo", "chmod 777")
    """Commands that are refused in every mode where they are recognised: a seat belt, not a security boundary."""
    safe_commands: tuple[str, ...] = (
        *("basename", "cat", "cd", "cmp", "comm", "cut", "df", "diff", "dirname", "du", "echo"),
        *("false", "file", "find", "grep", "head", "id", "ls", "md5sum", "nl", "printf", "pwd"),
        *("readlink", "realpath", "rg", "seq", "sha256sum", "sort", "stat", "tail", "tr", "true"),
        *("uname", "uniq", "wc", "which", "whoami"),
    )
    """Programs that the mode `deny` lets run, with the project read-only."""
    outside_sandbox: tuple[str, ...] = ()
    """Commands of `git`, `gh` and `glab` that run outside the sandbox, with your keys and without a question, such as
    `git push *` and `gh *`. Only your own settings can name them, and they count in projects that you trust."""
    allow: tuple[str, ...] = ()
    """Rules such as `run_shell(pytest *)`: what needs no question."""
    ask: tuple[str, ...] = ()
    """Rules for what is asked about, whatever allows it."""
    deny: tuple[str, ...] = ()
    """Rules for what is refused in every mode."""


class BuiltinToolSettings(Struct, frozen=True, kw_only=True):
    """One built-in tool."""

    enabled: bool = True
    """Offer the tool to the model."""
    timeout_seconds: WholeSeconds | None = None
    """How long a call may take. Unset: as shipped."""


class ExternalToolSettings(Struct, frozen=True, kw_only=True):
    """A program of yours that the model may call."""

    name: Annotated[str, Meta(min_length=1)]
    """The tool's name for the model."""
    path: Annotated[str, Meta(min_length=1)]
    """The program."""
    type: Literal["executable"] = "executable"
    """The kind of tool."""
    description: str = ""
    """What the model is told about it."""
    parameters: dict[str, Any] = {}
    """Its arguments: JSON Schema, or the short flat form."""
    input: Literal["stdin", "argv"] | None = None
    """How it gets its arguments. Unset: found out by its kind."""
    timeout_seconds: WholeSeconds | None = None
    """How long a call may take. Unset: as shipped."""
    needs: ToolNeeds = ToolNeeds()
    cwd: Literal["project", "apart"] | None = None
    """`project`: it starts in the project also where you do not trust that; `apart`: outside of it also where
    you do. Unset: outside of it until you do."""
    enabled: bool = True
    """Offer the tool to the model."""


class ToolsSettings(Struct, frozen=True, kw_only=True):
    """The tools that the model gets."""

    builtin: dict[str, BuiltinToolSettings] = {}
    """Built-in tools, by name."""
    external: tuple[ExternalToolSettings, ...] = ()
    """Programs of yours, as tools."""
    search_paths: tuple[str, ...] = (*PERSONS_TOOLS, "./tools", "./.ybs/tools")
    """Folders in which tools are looked for, those in the project once it is trusted; a project's settings name none."""


class SkillsSettings(Struct, frozen=True, kw_only=True):
    """The skills that the model gets."""

    search_paths: tuple[str, ...] = PERSONS_SKILLS
    """Folders of your own in which skills are looked for; a relative path means one of the project, once you trust
    that."""
    only: tuple[str, ...] = ()
    """The names of the skills to use; with none, all."""


class GitSettings(Struct, frozen=True, kw_only=True):
    """What ybs does with git by itself."""

    auto_commit: bool = True
    """Commit what a turn changed. Where you have not set it yourself, you are asked once per repository."""
    commit_message_prefix: OneLine = "[ybs]"
    """What such a commit's title begins with."""


class UiSettings(Struct, frozen=True, kw_only=True):
    """What the terminal shows."""

    color: bool = True
    """Use colour (also needs a terminal)."""
    show_token_usage: bool = True
    """Show the tokens used after a turn."""
    show_tool_calls: bool = True
    """Show each tool call."""
    stream_responses: bool = True
    """Show the answer as it comes."""
    answer_shell: bool = True
    """Have the model answer to the output of a !command at once; false keeps it for your next prompt."""
    editing_mode: Literal["emacs", "vi"] = "emacs"
    """Which editor's keys the prompt has."""
    notify: Literal["off", "bell", "desktop"] = "bell"
    """How ybs calls you when it waits for you, or when long work has ended."""
    terminal_title: bool = True
    """Show the session and whether ybs works or waits in the window's title."""
    history: bool = True
    """Keep what was typed, for each project (never in incognito)."""
    plain: bool = False
    """Whole sentences, no colour, nothing that moves."""


class SessionStoreSettings(Struct, frozen=True, kw_only=True):
    """Where sessions are kept, and for how long."""

    storage_path: Annotated[str, Meta(min_length=1)] = "~/.config/ybs/sessions"
    """The folder of the session files."""
    auto_save: bool = True
    """Write each message down as it comes."""
    max_sessions: Count = 100
    """Keep this many; the oldest go first. 0 keeps all."""
    retention_days: Count = 30
    """Delete what is older. 0 keeps it for ever."""


class ServeSettings(Struct, frozen=True, kw_only=True):
    """The server of `ybs serve`, which `ybs attach` and `ybs --background` start where none runs."""

    keep_minutes: Minutes | None = 30.0
    """End the server, and close its sessions, when no client was connected and nothing was at work for so
    long. `null`: never. A question that waits for you counts as work."""


class IncognitoSettings(Struct, frozen=True, kw_only=True):
    """Sessions of which nothing is written down."""

    enabled: bool = False
    """Begin every session incognito."""
    local_only: bool = False
    """In incognito, use only models that run on this machine. In chats, which cannot be incognito, always."""

    @property
    def only_here(self) -> bool:
        """Whether no model on another machine may be used."""
        return self.enabled and self.local_only


class NeverIncognito(IncognitoSettings, frozen=True, kw_only=True):
    """Those of a session that is written down whatever is said: `local_only` counts by itself."""

    @property
    def only_here(self) -> bool:
        """Whether no model on another machine may be used."""
        return self.local_only


class FirewallSettings(Struct, frozen=True, kw_only=True):
    """What is taken for a secret on its way to a model."""

    sensitivity: Literal["low", "normal", "high"] = "normal"
    """`low`: published formats of tokens, private keys, your own keys. `normal`: logins in addresses, headers
    and commands, and random values with a name such as `api_key`, too. `high`: words as passwords, too."""
    allow: tuple[str, ...] = ()
    """What is not a secret: the SHA-256 of a value, or a regular expression that matches all of it."""


class LearningSettings(Struct, frozen=True, kw_only=True):
    """Whether ybs notices what is asked for again and again. All of it stays on this machine, and no model is asked."""

    enabled: bool = True
    """Notice recurring requests in saved sessions, and offer a command for them, at most twice a week."""


#: A section whose feature reads it as it stands: `${NAME}` in it is not replaced here.
Section: TypeAlias = dict[str, Any]


class Clone(Struct, frozen=True, forbid_unknown_fields=True):
    """A project of a gateway that is cloned with git from an address."""

    clone: NotEmpty
    """What `git clone` takes."""


class GatewaySettings(Struct, frozen=True, kw_only=True):
    """Chats, of `ybs gateway`. A project's settings have no say in it."""

    channels: dict[str, Section] = {}
    """Chat platforms by name: `token`, `base_url` and what else the platform needs (`token_env` names the
    variable that has the token, and so on), `private` and `groups` (who may speak: pairing, allow, open,
    off), `allow` (ids of people or groups), `owners` (ids of people who approve). `type` names the
    platform where the name does not."""
    database: str = ""
    """The address of a PostgreSQL database, `postgresql://USER@HOST/NAME`, that gateways of several machines
    share; its password is looked for in `PGPASSWORD` and `~/.pgpass`. Empty: files of this machine."""
    projects: dict[str, str | Clone] = {}
    """Folders that the owner can bind a chat to, by name: `/project NAME`; or clones that ybs makes itself:
    `{"clone": ADDRESS}`."""
    turns_at_once: Positive = 64
    """So many turns run at once on a machine; the others wait."""
    idle_hours: Minutes | None = 24.0
    """A chat begins a new session after so many hours without a word. `null`: never."""
    per_minute: Positive = 12
    """So many messages of a person are taken in a minute."""
    usd_per_day: Dollars | None = None
    """So much may all chats together spend in a day (UTC). `null`: no limit."""

    def __repr__(self) -> str:
        return "Gateway()"  # the channels hold tokens


class Config(Struct, frozen=True, kw_only=True):
    """All settings."""

    version: str = "1.0"
    """The version of this format."""
    llm: LlmSettings = LlmSettings()
    local: LocalSettings = LocalSettings()
    network: Network = Network()
    context: ContextSettings = ContextSettings()
    agent: AgentLimits = AgentLimits()
    agents: Agents = Agents()
    safety: SafetySettings = SafetySettings()
    tools: ToolsSettings = ToolsSettings()
    skills: SkillsSettings = SkillsSettings()
    git: GitSettings = GitSettings()
    ui: UiSettings = UiSettings()
    session: SessionStoreSettings = SessionStoreSettings()
    serve: ServeSettings = ServeSettings()
    incognito: IncognitoSettings = IncognitoSettings()
    firewall: FirewallSettings = FirewallSettings()
    learning: LearningSettings = LearningSettings()
    gateway: GatewaySettings = GatewaySettings()
    providers: dict[str, Endpoint] = {}
    """Providers of your own, by name."""
    cli_agents: dict[str, CliAgent] = {}
    """Providers of your own that are programs, by name."""
    models: dict[str, ModelEntry] = {}
    """What you state of models, by name: `MODEL`, or `PROVIDER/MODEL` for one provider's."""
    profiles: Section = {}
    """Named sets of settings, one of which a start may choose."""
    router: RouterSettings = RouterSettings()
    mcpServers: Section = {}
    """MCP servers, by name."""
    hooks: Section = {}
    """Your commands at set moments, by event."""
    memory: Section = {}
    """What is remembered between sessions. Not there yet."""

    def __repr__(self) -> str:
        # Sections hold keys, headers and environments, which must not reach a log.
        return f"Config(llm={self.llm!r})"


#: Settings of features that are not there yet: they are accepted and have no effect.
PLANNED: Final = ("memory",)


def planned_in(config: Config) -> list[str]:
    """Return the keys of settings that are set although nothing reads them yet."""
    shipped = Config()
    return [key for key in PLANNED if attrgetter(key)(config) != attrgetter(key)(shipped)]
