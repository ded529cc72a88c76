"""CLI agents as providers: Claude Code, built in, and by configuration alone any other whose output ybs can read."""

from typing import TYPE_CHECKING, Final

from ybs.config.host import Host
from ybs.config.presets import CLOUDS, CREDENTIALS
from ybs.config.schema import Config
from ybs.config.sections import CliAgent
from ybs.providers.builtin import import_built_in
from ybs.providers.registry import Provider
from ybs.security.launcher import persons_program

if TYPE_CHECKING:
    from ybs.providers.cli.model import CliModel

#: Where the words go is not known of a program of the person's own: not to this machine, as far as can be seen.
ELSEWHERE: Final = "https://cli-agent.invalid"
#: Claude Code with everything of its own off: tools, settings, hooks, memory, MCP servers, skills.
CLAUDE: Final = CliAgent(
    command=(
        *("claude", "--print", "--verbose", "--include-partial-messages"),
        *("--input-format", "stream-json", "--output-format", "stream-json"),
        *("--tools", "", "--safe-mode", "--strict-mcp-config", "--setting-sources", ""),
        *(
            "--disable-slash-commands",
            "--system-prompt-file",
            "{system_file}",
            "--model",
            "{model}",
        ),
    ),
    output="claude",
    model="sonnet",
    window=200_000,
    environment=("CLAUDE_CONFIG_DIR", *CREDENTIALS["agent claude"], *CLOUDS),
)


def provider_of(
    name: str, agent: CliAgent, *, endpoint: str = ELSEWHERE, advice: str = ""
) -> Provider:
    """Return the provider that a program is; `advice` says how it is installed."""

    def make(host: Host, config: Config, model: str | None) -> "CliModel":
        model_type = import_built_in("cli.model:CliModel")  # not for a list of providers
        return model_type(host, config, name, agent, model or agent.model or "", advice)

    program = agent.command[0]
    return Provider(
        name=name,
        wire="anthropic",  # none that ybs speaks; models of Anthropic's server answer
        endpoint=endpoint,
        model=agent.model or program,
        needs_key=False,
        window=agent.window,
        start_advice=advice or f"install `{program}`",
        make=make,
        is_installed=lambda host: persons_program(program, environ=host.environ) is not None,
    )


PROVIDER: Final = provider_of(
    "claude-cli",
    CLAUDE,
    endpoint="https://api.anthropic.com",
    advice="install it with `npm install -g @anthropic-ai/claude-code`",
)
