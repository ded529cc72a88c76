"""The wiring: the only place that joins rooms of one floor into a session."""

from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from msgspec import Struct

from ybs.config.layers import Loaded, load
from ybs.config.schema import Config
from ybs.context.prompt import system_prompt
from ybs.core.errors import ConfigError, ToolError
from ybs.core.events import SessionStarted
from ybs.core.ports import Answer, Confirm, Guard, Model, Question, Toolbox
from ybs.guards.limits import Deadline, DryRun, Limits, TimedModel, TimedToolbox
from ybs.guards.loops import Loops
from ybs.guards.recovery import Recovery
from ybs.providers.registry import ProviderModel, create_model, find_provider, provider_names
from ybs.security.confirm import Gate, nobody
from ybs.security.paths import Roots
from ybs.security.policy import Policy
from ybs.session.session import Session
from ybs.tools.registry import builtin_tools
from ybs.tools.toolbox import LocalToolbox
from ybs.tools.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable


#: A model with a smaller window gets the short prompt, as one on this machine does.
SMALL_WINDOW = 16_384
NOTHING_CONFIGURED = (
    "No model is configured, and the starter model is not installed.\n"
    "Run `ybs setup` to choose one, or name one: ybs --provider ollama --model qwen3:14b"
)
#: Short names of options that are settings.
SETTINGS = {
    "provider": "llm.provider",
    "model": "llm.model",
    "endpoint": "llm.endpoint",
    "mode": "safety.mode",
    "max_turns": "agent.max_iterations",
    "max_cost": "agent.max_cost_usd",
    "timeout": "agent.max_seconds",
}


class NothingConfigured(ConfigError):
    """No provider is chosen and the starter model is not installed."""


class Options(Struct, frozen=True, kw_only=True):
    """What a front door may ask for. `overrides` maps dotted keys of the configuration to values."""

    folder: Path
    overrides: dict[str, Any] = {}
    config_file: Path | None = None
    profile: str | None = None
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    add_dirs: tuple[Path, ...] = ()
    dry_run: bool = False
    sandbox: bool = True
    system_prompt_file: Path | None = None

    @classmethod
    def of(cls, folder: Path, options: dict[str, Any]) -> Self:
        """Make options from keywords; those of `SETTINGS` become overrides."""
        rest = {name: value for name, value in options.items() if name not in SETTINGS}
        short = {SETTINGS[n]: v for n, v in options.items() if n in SETTINGS and v is not None}
        overrides: dict[str, Any] = {**rest.pop("overrides", {}), **short}
        return cls(folder=folder, overrides=overrides, **rest)


class Rooms:
    """Everything that a session is made of, joined. Only the model and the mode change later on."""

    def __init__(self, options: Options, loaded: Loaded) -> None:
        config = loaded.config
        self.loaded = loaded
        self.folder = options.folder.resolve()
        self.provider, self.model = open_model(config)
        roots = Roots(
            self.folder, config.safety.sandbox_allowed_paths, config.safety.sandbox_blocked_paths
        )
        for folder in options.add_dirs:
            roots.add(folder)
        self.workspace = Workspace(roots, max_output_chars=config.context.max_tool_output_chars)
        self.policy = Policy(config.safety, allow=options.allow, deny=options.deny)
        self.gate = Gate(self.policy)
        is_short = is_small(self.provider, self.model, config)
        self.toolbox = LocalToolbox(
            builtin_tools(config, self.workspace, is_short=is_short),
            self.gate,
            max_output_chars=config.context.max_tool_output_chars,
            is_short=is_short,
            dry_run=options.dry_run,
        )
        self.system_prompt = read_prompt(options) or system_prompt(
            self.folder, today=date.today(), is_short=is_short
        )
        self.confirm: Confirm = nobody
        self.gate.confirm = self._ask
        self.is_dry_run = options.dry_run
        bounds = config.agent
        self._deadline = Deadline(bounds.max_seconds) if bounds.max_seconds else None
        self.limits = Limits(max_steps=bounds.max_iterations, max_cost_usd=bounds.max_cost_usd)
        self.guards: list[Guard] = [
            self.limits,
            *([DryRun()] if options.dry_run else []),
            Loops(self.workspace.fingerprint),
            Recovery(),
        ]

    def begin_turn(self) -> tuple[Model, Toolbox]:
        """Return model and tools for a turn that begins now, under its time limit if there is one."""
        if self._deadline is None:
            return self.model, self.toolbox
        self._deadline.begin()
        return TimedModel(self.model, self._deadline), TimedToolbox(self.toolbox, self._deadline)

    async def _ask(self, question: Question) -> Answer:
        if self._deadline is None:
            return await self.confirm(question)
        with self._deadline.paused():
            return await self.confirm(question)

    @property
    def note(self) -> str:
        """What the person should know at the start; empty where there is nothing to say."""
        llm = self.loaded.config.llm
        if llm.provider or llm.endpoint:
            return ""
        return (
            f"No model is configured: using the starter model on this machine, {self.model.name}."
        )

    @property
    def session_started(self) -> SessionStarted:
        """The session's first event: its name, its folder, and what it begins with."""
        config = {"provider": self.provider, "model": self.model.name, "mode": self.policy.mode}
        return SessionStarted(
            session=f"session-{datetime.now():%Y%m%d-%H%M%S}",
            folder=str(self.folder),
            config={**config, "sandbox": "none"},
        )

    async def switch_model(self, *, provider: str | None, model: str | None) -> None:
        """Use another model from now on. Raises ConfigError or ModelError, and then nothing has changed."""
        name = provider or self.provider
        new = create_model(self.loaded.config, provider=name, model=model)
        old, self.provider, self.model = self.model, name, new
        await old.aclose()
        await new.detect_window()

    async def run_typed(self, command: str, print_live: "Callable[[str], None]") -> str:
        """Run a command that the person typed. Nobody is asked; blocked ones raise ToolError."""
        from ybs.session.shell import spoken
        from ybs.tools.run_shell import Arguments, RunShell

        if self.is_dry_run:
            raise ToolError("not executed (dry run)")
        if entry := self.policy.blocked(command):
            raise ToolError(f"it is blocked ({entry!r} in safety.blocked_commands)")
        settings = self.loaded.config.tools.builtin.get("run_shell")
        shell = RunShell(self.workspace, settings.timeout_seconds if settings else None)
        arguments = Arguments(command=command)
        shell.preview(arguments)
        return spoken(
            (await shell.run(arguments, print_live)).display, self.workspace.max_output_chars
        )

    def list_providers(self) -> list[str]:
        """List the providers, the one in use marked."""
        names = provider_names(self.loaded.config)
        return [f"{'*' if name == self.provider else ' '} {name}" for name in names]

    async def aclose(self) -> None:
        """Close connections."""
        await self.model.aclose()


def open_session(options: Options) -> Session:
    """Open a session. Raises ConfigError for what makes a start impossible."""
    if not options.folder.is_dir():
        raise ConfigError(f"{options.folder} is no folder. A session needs a project's folder.")
    loaded = load(
        folder=options.folder,
        overrides=options.overrides,
        config_file=options.config_file,
        profile=options.profile,
    )
    return Session(Rooms(options, loaded))


def open_model(config: Config) -> tuple[str, ProviderModel]:
    """Make the configured model; with nothing configured, the starter model if it is installed.

    Raises NothingConfigured when there is neither.
    """
    name = config.llm.provider or ("openai" if config.llm.endpoint else None)
    if name is None:
        from ybs.providers.llama_cpp.models import starter_installed

        if not starter_installed():
            raise NothingConfigured(NOTHING_CONFIGURED)
        name = "llamacpp"
    return name, create_model(config, provider=name)


def is_small(provider: str, model: Model, config: Config) -> bool:
    """Tell whether the model gets the short prompt: it runs on this machine, or its window is small.

    An OpenAI-compatible server on this machine may stand for anything, so its window decides.
    """
    runs_here = provider == "llamacpp" or find_provider(provider, config).wire == "ollama"
    return runs_here or model.window < SMALL_WINDOW


def read_prompt(options: Options) -> str:
    """Return the person's own system prompt, if one was named. Raises ConfigError if it cannot be read."""
    if options.system_prompt_file is None:
        return ""
    try:
        return options.system_prompt_file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--system-prompt-file {options.system_prompt_file}: {error}") from error
