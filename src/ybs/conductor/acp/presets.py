"""Other agents as kinds of sub-agents: those that ybs knows, and what the person's settings make of them. Nothing is started here.

Programs, logins and variables as of claude-agent-acp 0.101, codex-acp 2.6, Gemini CLI 0.61 and opencode 1.18.
"""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ybs.conductor.kinds import Kind
from ybs.config.host import Host
from ybs.config.presets import CLOUDS, CREDENTIALS
from ybs.config.sections import AcpAgent, AcpPreset
from ybs.core.errors import ConfigError
from ybs.providers.cli import CLAUDE
from ybs.security.launcher import persons_program

#: How the extra is installed that these kinds need.
NEEDS_EXTRA: Final = "it needs the package agent-client-protocol: `pip install 'ybs[acp]'`"
_WHERE: Final[Mapping[bool, str]] = {
    False: "in a copy of the project, whose changes are merged",
    True: "which it can only read",
}


class KnownAgent(Struct, frozen=True, kw_only=True):
    """An agent that ybs knows. Of its `commands` the first is used that is installed.

    `env` are variables that it is given. Where `reads_missing`, it reads a file before it makes it and takes each error for a failure, so that a file that is missing reads as empty.
    `methods` are those of its logins that it has to be told of, by the variable or the file that makes each one possible; `fix` installs it, and
    `login_fix` logs the person in.
    """

    title: str
    commands: tuple[tuple[str, ...], ...]
    fix: str
    login_fix: str
    environment: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    login: tuple[str, ...] = ()
    methods: Mapping[str, str] = {}
    reads_missing: bool = False


PRESETS: Final[Mapping[AcpPreset, KnownAgent]] = {
    "claude": KnownAgent(
        title="Claude Code",
        commands=(("claude-agent-acp",), ("claude-code-acp",)),
        fix="npm install -g @agentclientprotocol/claude-agent-acp",
        login_fix="start `claude` in a terminal and log in there, or set ANTHROPIC_API_KEY",
        environment=tuple(name for name in CLAUDE.environment if name != "CLAUDE_CONFIG_DIR"),
        login=("~/.claude/.credentials.json",),
    ),
    "codex": KnownAgent(
        title="Codex",
        commands=(("codex-acp",),),
        fix="npm install -g @agentclientprotocol/codex-acp",
        login_fix="run `codex login` in a terminal, or set OPENAI_API_KEY",
        environment=CREDENTIALS["agent codex"],
        env={
            "INITIAL_AGENT_MODE": "workspace-write"
        },  # else another model of its own answers what it asks
        login=("~/.codex/auth.json",),
        methods={"CODEX_API_KEY": "api-key", "OPENAI_API_KEY": "api-key"},
    ),
    "gemini": KnownAgent(
        title="Gemini CLI",
        commands=(("gemini", "--acp"),),
        fix="npm install -g @google/gemini-cli",
        login_fix="start `gemini` in a terminal and log in there, or set GEMINI_API_KEY",
        environment=(*CREDENTIALS["agent gemini"], *CLOUDS),
        login=("~/.gemini/oauth_creds.json", "~/.gemini/google_accounts.json"),
        methods={
            "GEMINI_API_KEY": "gemini-api-key",
            "GOOGLE_API_KEY": "vertex-ai",
            "~/.gemini/oauth_creds.json": "oauth-personal",
        },
        reads_missing=True,
    ),
    "opencode": KnownAgent(
        title="opencode",
        commands=(("opencode", "acp"),),
        fix="npm install -g opencode-ai",
        login_fix="run `opencode auth login` in a terminal",
        environment=CREDENTIALS["agent opencode"],
        login=("~/.local/share/opencode/auth.json",),
    ),
}
_BY_NAME: Final[Mapping[str, AcpPreset]] = {name: name for name in PRESETS}


def kind_of(name: str, agent: AcpAgent, place: str) -> Kind:
    """Return the kind that an entry of `agents.acp` makes. Raises ConfigError where it names no program."""
    known = agent.preset or _BY_NAME.get(name)
    if known is None and not agent.command:
        raise ConfigError(f"it has no `command`, and no `preset`, which are: {', '.join(PRESETS)}")
    if known is not None:
        preset = PRESETS[known]
        agent = replace(
            agent,
            preset=known,
            environment=(*preset.environment, *agent.environment),
            env={**preset.env, **agent.env},
            login=agent.login or preset.login,
        )
    described = f"{title_of(agent)}, another agent with a model of its own: does any task, {_WHERE[agent.read_only]}"
    return Kind(
        name=name,
        description=agent.description or described,
        prompt="Change nothing: the project can only be read." if agent.read_only else "",
        mode="read-only" if agent.read_only else None,
        place=place,
        is_own=True,
        acp=agent,
    )


def reads_missing(agent: AcpAgent) -> bool:
    """Return whether a file that is missing has to read as empty, so that the agent can make it."""
    return agent.preset is not None and PRESETS[agent.preset].reads_missing


def title_of(agent: AcpAgent) -> str:
    """Return the agent's name for people."""
    if agent.command:
        return agent.command[0].rpartition("/")[2]
    return "" if agent.preset is None else PRESETS[agent.preset].title


def command_of(agent: AcpAgent, host: Host) -> tuple[str, ...]:
    """Return the command, its program as a path of the person's own PATH. Raises ConfigError where it is not installed."""
    known = () if agent.preset is None else PRESETS[agent.preset].commands
    commands = (agent.command,) if agent.command else known
    for program, *options in commands:
        name = host.with_home(program)
        found = persons_program(name, environ=host.environ)
        if found is not None:
            return (found, *options, *map(host.with_home, agent.args))
    how = f"; install it with `{fix}`" if (fix := _installing(agent)) else ""
    raise ConfigError(f"the program {next(iter(commands))[0]} is not on your PATH{how}")


def fix_for(agent: AcpAgent) -> str:
    """Return the command that installs what is missing; empty where nobody knows."""
    if find_spec("acp") is None:
        return "pip install 'ybs[acp]'"
    return _installing(agent)


def _installing(agent: AcpAgent) -> str:
    return "" if agent.preset is None or agent.command else PRESETS[agent.preset].fix


def problem_with(agent: AcpAgent, host: Host) -> str:
    """Return why an agent cannot be used on this machine; empty where it can."""
    if find_spec("acp") is None:
        return NEEDS_EXTRA
    try:
        command_of(agent, host)
    except ConfigError as error:
        return str(error)
    return ""


def method_of(agent: AcpAgent, host: Host) -> str:
    """Return the login that the agent is told to use where it asks for one; empty where nothing says which."""
    if agent.preset is None:
        return ""
    variables = {**host.environ, **agent.env}
    for needed, method in PRESETS[agent.preset].methods.items():
        is_file = needed.startswith("~")
        if host.expand(needed, host.home).is_file() if is_file else variables.get(needed):
            return method
    return ""
