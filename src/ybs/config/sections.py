"""Sections of the settings that other parts read by themselves: the network, providers and models of the person's own, sub-agents, the router."""

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct

NotEmpty: TypeAlias = Annotated[str, Meta(min_length=1)]
#: How many of something, and how much money; other settings have them too.
Most: TypeAlias = Annotated[int, Meta(ge=1, le=1_000_000_000)]
Usd: TypeAlias = Annotated[float, Meta(ge=0, le=1_000_000)]


class Network(Struct, frozen=True, kw_only=True):
    """How models, MCP servers and downloads of models that are not on this machine are reached."""

    proxy: NotEmpty | None = None
    """The address of an HTTP proxy, `http://HOST:PORT`. Unset: that of the environment (`HTTPS_PROXY`,
    `NO_PROXY`, …)."""
    ca_file: NotEmpty | None = None
    """A file with certificates (PEM) that are trusted beside the system's. `SSL_CERT_FILE` is honoured too,
    in their place."""

    def __repr__(self) -> str:
        # A proxy's password must not reach a log by way of a representation.
        return f"Network(ca_file={self.ca_file!r})"


Tokens: TypeAlias = Annotated[int, Meta(ge=1, le=100_000_000)]
Rate: TypeAlias = Annotated[float, Meta(ge=0, le=1_000_000)]
HeaderText: TypeAlias = Annotated[str, Meta(pattern=r"^[^\x00-\x1f\x7f]*$")]

#: What a CLI agent prints; `text` is the answer and nothing else.
CliOutput: TypeAlias = Literal["claude", "codex", "gemini", "pi", "text"]


class Endpoint(Struct, frozen=True, kw_only=True):
    """A provider of your own: any server that speaks a wire format which ybs knows."""

    endpoint: Annotated[str, Meta(min_length=1)]
    """Its address. A query (`?api-version=…`) goes with each request."""
    wire: Annotated[str, Meta(min_length=1)] = "openai"
    """The wire format that it speaks: openai (chat completions), openai-responses, anthropic, google,
    mistral, ollama, or one that an installed package brings."""
    api_key: str | None = None
    """Its key. Better: `api_key_env`."""
    api_key_env: str | None = None
    """The variable that holds its key."""
    model: str | None = None
    """The model used when none is named."""
    window: Tokens | None = None
    """Its context window, in tokens."""
    headers: dict[str, HeaderText] = {}
    """Headers sent with each request."""
    extra_body: dict[str, Any] = {}
    """Fields of the body of each request; objects are laid over ybs's own."""
    quirks: dict[str, Any] = {}
    """How the server differs from the format's norm."""

    def __repr__(self) -> str:
        # No key, header, field of the body or password in an address must reach a log by way of a representation.
        return f"Endpoint(wire={self.wire!r}, model={self.model!r})"


class CliAgent(Struct, frozen=True, kw_only=True):
    """A provider of your own that is a program: the command line of another agent, with its own login and its own tools off."""

    command: tuple[str, ...]
    """The program and its options. `{model}` is replaced by the model; `{system_file}` by the path of a file
    with the system prompt, which else stands before the conversation on its standard input."""
    output: CliOutput = "text"
    """What it prints."""
    model: str | None = None
    """The model used when none is named."""
    window: Tokens | None = None
    """Its context window, in tokens."""
    environment: tuple[str, ...] = ()
    """Variables that it may see besides the usual ones, such as `OPENAI_*`. It sees no others."""


class ModelEntry(Struct, frozen=True, kw_only=True):
    """What you state of a model. It goes before what its server tells and before what ybs knows."""

    window: Tokens | None = None
    """Its context window, in tokens."""
    max_output: Tokens | None = None
    """Its longest answer, in tokens."""
    input_price: Rate | None = None
    """What a million tokens of requests cost, in US dollars."""
    output_price: Rate | None = None
    """What a million tokens of answers cost, thinking included."""
    cached_price: Rate | None = None
    """The same, read from the provider's cache. Unset: as `input_price`."""
    cache_write_price: Rate | None = None
    """The same, written to that cache. Unset: as `input_price`."""
    sees_images: bool | None = None
    """Whether it sees pictures."""
    thinks: bool | None = None
    """Whether it can be told how hard to think."""
    accepts_temperature: bool | None = None
    """Whether it takes a temperature."""
    calls_tools: bool | None = None
    """Whether it calls tools; one that does not writes its calls as text."""


#: How an arm is picked.
PolicyName: TypeAlias = Literal["hierarchical", "discounted", "heuristic"]


class PoolLimits(Struct, frozen=True, kw_only=True):
    """What models that share a key or a server may use together, in all ybs processes of this account."""

    providers: tuple[str, ...] = ()
    """The providers that share it. Unset: the one that the pool is named for."""
    requests_per_minute: Most | None = None
    """Requests within any 60 seconds. Unset: no limit."""
    tokens_per_minute: Most | None = None
    """Tokens within any 60 seconds. Unset: no limit."""
    concurrency: Most | None = None
    """Requests at the same time. Unset: no limit."""
    usd_per_day: Usd | None = None
    """US dollars within one day (UTC). Unset: no limit."""


class CascadeSettings(Struct, frozen=True, kw_only=True):
    """What is done where the cheap model's work does not pass a check: a stronger one goes on."""

    check: str = ""
    """A command that fails where the work is not right, such as `make test`. It runs in the sandbox after a
    turn that changed files. Empty: no cascade."""
    timeout_seconds: Annotated[int, Meta(ge=1, le=600)] = 120
    """How long the command may take."""
    most: Annotated[int, Meta(ge=1, le=5)] = 1
    """How often a turn may go to a stronger model."""
    usd_per_success: Usd = 1.0
    """What a turn that succeeds is worth to you: a stronger model is asked only where its chance of success
    times this is more than its price."""


class RouterSettings(Struct, frozen=True, kw_only=True):
    """How a model is picked for each turn. `/model auto` and `--model auto` ask for it."""

    enabled: bool = False
    """Begin every session with the router where two models or more are there."""
    arms: tuple[str, ...] = ()
    """The models to pick from: `PROVIDER/MODEL`, or `PROVIDER` for its default. Unset: those of `llm`, of
    `llm.fallback` and of your own `providers`, and none that a project's settings choose."""
    policy: PolicyName = "hierarchical"
    """How an arm is picked: `hierarchical` and `discounted` learn from outcomes, `heuristic` goes by price,
    speed and what the catalog knows."""
    classifier: str = ""
    """The model that sorts requests into kinds of task, as `PROVIDER/MODEL`, such as a small one on this
    machine; where it fails or takes over 2 seconds, the words decide. Empty: the words decide."""
    pools: dict[str, PoolLimits] = {}
    """What models may use together, by the name of the provider or of your own."""
    cascade: CascadeSettings = CascadeSettings()
    seed: int | None = None
    """Makes choices repeatable. Unset: every session draws its own."""


#: Agents whose programs, logins and variables ybs knows.
AcpPreset: TypeAlias = Literal["claude", "codex", "gemini", "opencode"]


class AcpAgent(Struct, frozen=True, kw_only=True):
    """A kind of sub-agent that is another agent, a program that speaks the Agent Client Protocol."""

    preset: AcpPreset | None = None
    """An agent that ybs knows; of it the program, the login and the variables are those that stand nowhere
    else. Unset: the one of the kind's own name, if there is one."""
    command: tuple[str, ...] = ()
    """The program and its options, such as `["codex-acp"]`."""
    args: tuple[str, ...] = ()
    """More options."""
    model: str = ""
    """The model that it uses, by the agent's own name for it. Unset: the one that it has chosen."""
    env: dict[str, str] = {}
    """Variables that it is given."""
    environment: tuple[str, ...] = ()
    """Variables of yours that it may see, such as `OPENAI_*`. It sees no others."""
    login: tuple[str, ...] = ()
    """Files of your home folder that hold its login, which it may read and change."""
    read_only: bool = False
    """Only show it the project, instead of a copy to work in."""
    description: str = ""
    """What it is for, as the model is told."""
    sandbox: bool = True
    """Run it in ybs's sandbox. Without, it can do all that you can; what it asks for is still asked."""

    def __repr__(self) -> str:
        # A variable may hold a key, which must not reach a log by way of a representation.
        return f"AcpAgent(preset={self.preset!r}, command={self.command!r})"


class Agents(Struct, frozen=True, kw_only=True):
    """Agents that work for the one that you talk with: when they are offered, and what each may use."""

    offer: Literal["auto", "always", "never"] = "auto"
    """Tell the model of the tool `delegate`: `auto` in projects of over about 200 files and where there are
    kinds of agents of your own."""
    max_parallel: Annotated[int, Meta(ge=1, le=100)] = 10
    """How many work at the same time."""
    max_steps: Annotated[int, Meta(ge=1, le=1_000_000)] = 50
    """The most requests that one may send; they count as the turn's."""
    max_tokens: Most | None = None
    """The most tokens that one may use, read and written. Unset: no limit."""
    max_cost_usd: Usd | None = None
    """The most that one may cost. Unset: what the session may."""
    max_seconds: Annotated[float, Meta(gt=0, le=1_000_000)] | None = 900.0
    """The longest that one may work. Unset: as long as the turn may."""
    models: dict[str, NotEmpty] = {}
    """The models that kinds of agents have, by kind: `MODEL`, `PROVIDER` or `PROVIDER/MODEL`. What stands
    here may be further away than the session's own model."""
    acp: dict[str, AcpAgent] = {}
    """Kinds that are other agents (Agent Client Protocol), by name: `{}` stands for the preset of that name.
    Only in your own settings."""
