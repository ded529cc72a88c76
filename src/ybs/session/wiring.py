"""The wiring: the only place that joins rooms of one floor into a session."""

from datetime import date, datetime
from threading import Lock
from typing import TYPE_CHECKING

from ybs.config.layers import Loaded
from ybs.config.schema import Config
from ybs.context.prompt import system_prompt
from ybs.core.errors import ConfigError
from ybs.core.events import Emit, SessionStarted
from ybs.core.ports import Answer, Confirm, Guard, Model, Question, Toolbox
from ybs.guards.limits import Deadline, DryRun, Limits, TimedModel, TimedToolbox
from ybs.guards.loops import Loops
from ybs.guards.recovery import Recovery
from ybs.guards.steering import Steering
from ybs.providers.registry import ProviderModel, chosen_name, create_model, find_provider
from ybs.security.confirm import nobody
from ybs.security.legible import LegibleModel
from ybs.session.composer import Composer
from ybs.session.options import Options, load_settings, read_prompt, with_incognito
from ybs.session.session import Session
from ybs.session.workshop import Workshop

if TYPE_CHECKING:
    from ybs.session.attachments import Attacher
    from ybs.session.secrets import Secrets

#: A model with a smaller window gets the short prompt, as one on this machine does.
SMALL_WINDOW = 16_384
NOTHING_CONFIGURED = (
    "No model is configured, and the starter model is not installed.\n"
    "Run `ybs setup` to choose one, or name one: ybs --provider ollama --model qwen3:14b"
)


class NothingConfigured(ConfigError):
    """No provider is chosen and the starter model is not installed."""


class Rooms(Workshop):
    """Everything that a session is made of, joined. Only the model and the mode change later on."""

    def __init__(
        self, options: Options, loaded: Loaded, opened: tuple[str, ProviderModel] | None = None
    ) -> None:
        config = loaded.config
        self.provider, self.model = opened or open_model(config)
        is_short = is_small(self.provider, self.model, config)
        super().__init__(options, loaded, is_short=is_short)
        self._options = options
        self._check_place(self.provider, self.model)
        self.system_prompt = read_prompt(options) or system_prompt(
            self.folder, today=date.today(), is_short=is_short
        )
        self.confirm: Confirm = nobody
        self.gate.confirm = self._ask
        self._secrets: Secrets | None = None
        self._making_secrets = Lock()
        bounds = config.agent
        self._deadline = Deadline(bounds.max_seconds) if bounds.max_seconds else None
        self.limits = Limits(max_steps=bounds.max_iterations, max_cost_usd=bounds.max_cost_usd)
        self.composer = Composer(self._attacher)
        self.steering = Steering(self.composer.compose_meanwhile, self.composer.tell_news)
        self.guards: list[Guard] = [
            self.limits,
            *([DryRun()] if options.dry_run else []),
            self.steering,  # what a limit keeps from being read is given back; new words begin a loop anew
            Loops(self.workspace.fingerprint),
            Recovery(),
        ]

    def _attacher(self, tell: Emit) -> "Attacher":
        from ybs.session.attachments import Attacher  # few words name a file

        return Attacher(self.workspace, self.policy, self.secrets.firewall, tell)

    def begin_turn(self) -> tuple[Model, Toolbox]:
        """Return model and tools for a turn that begins now, behind the firewall, and under its time limit."""
        model: Model = LegibleModel(self.model)
        toolbox: Toolbox = self.toolbox
        if self._deadline is not None:
            self._deadline.begin()
            model = TimedModel(model, self._deadline)
            toolbox = TimedToolbox(toolbox, self._deadline)
        return self.secrets.guard(model, toolbox, None if self.confirm is nobody else self._ask)

    @property
    def secrets(self) -> "Secrets":
        """The firewall, one for the session. It is loaded with the first turn, or by the thread that writes history."""
        with self._making_secrets:
            if self._secrets is None:
                from ybs.session.secrets import Secrets

                self._secrets = Secrets(self.loaded.config, self.workspace.roots)
            return self._secrets

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
            config={
                **config,
                "sandbox": "off" if self.sandbox.without else "on",
                "incognito": "on" if self.incognito.is_on else "off",
            },
        )

    async def switch_model(self, *, provider: str | None, model: str | None) -> None:
        """Use another model from now on. Raises ConfigError or ModelError, and then nothing has changed."""
        name = provider or self.provider
        new = create_model(self.loaded.config, provider=name, model=model)
        self._check_place(name, new)
        old, self.provider, self.model = self.model, name, new
        await old.aclose()
        await new.detect_window()

    async def renewed(self, *, is_incognito: bool) -> "Rooms":
        """Return the rooms of a new session with the same model: no grant, read file or job is carried over.

        Raises ConfigError or ModelError, and then nothing has changed.
        """
        loaded = with_incognito(self.loaded, is_on=is_incognito)
        model = create_model(loaded.config, provider=self.provider, model=self.model.name)
        rooms = Rooms(self._options, loaded, (self.provider, model))
        await model.detect_window()
        return rooms

    def _check_place(self, provider: str, model: Model) -> None:
        if self.incognito.is_on and self.incognito.local_only:
            from ybs.providers.whereabouts import runs_here  # few sessions ask

            is_here = runs_here(provider, model.name, self.loaded.config)
            self.incognito.check_model(provider, model.name, is_here=is_here)

    async def aclose(self) -> None:
        """End what runs in the background and close connections."""
        try:
            await super().aclose()
        finally:
            await self.model.aclose()


def open_session(options: Options) -> Session:
    """Open a session. Raises ConfigError for what makes a start impossible."""
    return Session(Rooms(options, load_settings(options)))


def open_model(config: Config) -> tuple[str, ProviderModel]:
    """Make the configured model; with nothing configured, the starter model if it is installed.

    Raises NothingConfigured when there is neither.
    """
    name = chosen_name(config)
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
