"""The wiring: the only place that joins rooms of one floor into a session."""

from ybs.config.layers import Loaded
from ybs.core.conversation import Conversation
from ybs.core.events import Emit
from ybs.core.memo import Memo
from ybs.core.messages import Message
from ybs.core.ports import Answer, Confirm, Guard, Model, Question, Toolbox
from ybs.guards.calls import CallLimit
from ybs.guards.limits import Deadline, DryRun, Limits, TimedModel, TimedToolbox
from ybs.guards.loops import Loops
from ybs.guards.recovery import Recovery
from ybs.guards.steering import Steering
from ybs.providers.registry import ProviderModel, create_model
from ybs.security.legible import LegibleModel
from ybs.security.policy.confirm import nobody
from ybs.session.composer import Composer, attacher_in
from ybs.session.first_model import check_place, is_small, open_model
from ybs.session.journal import Syncing, journal_of, take_up
from ybs.session.options import Options, read_prompt, ready_settings, with_incognito
from ybs.session.session import Session
from ybs.session.upkeep import Upkeep
from ybs.session.window import Window
from ybs.session.workshop import Workshop


class Rooms(Workshop):
    """Everything that a session is made of, joined. Only the model and the mode change later on."""

    def __init__(
        self, options: Options, loaded: Loaded, opened: tuple[str, ProviderModel] | None = None
    ) -> None:
        config = loaded.config
        self.provider, self.model = opened or open_model(config)
        is_short = is_small(self.provider, self.model, config)
        self.upkeep = Upkeep(self, has_sandbox=options.sandbox)
        super().__init__(options, loaded, is_short=is_short, hooks=[self.upkeep])
        self._options = options
        check_place(self, self.provider, self.model)
        self.own_prompt = read_prompt(options)
        self.surroundings.begin(self)
        self.confirm: Confirm = nobody
        self.gate.confirm = self._ask
        self._legible: Memo[Message, Message] = Memo()
        bounds = config.agent
        self._deadline = Deadline(bounds.max_seconds) if bounds.max_seconds else None
        self._calls = CallLimit()
        self.limits = Limits(max_steps=bounds.max_iterations, max_cost_usd=bounds.max_cost_usd)
        self.journal = journal_of(self)
        self.before_typed = self.upkeep.before_typed
        self.window = Window(self)
        self.composer = Composer(lambda tell: attacher_in(self, tell))
        self.steering = Steering(self.composer.compose_meanwhile, self.composer.tell_news)
        self.guards: list[Guard] = [
            *([self._deadline] if self._deadline else []),
            self.limits,
            self._calls,
            *([DryRun()] if options.dry_run else []),
            self.steering,  # what a limit keeps from being read is given back; new words begin a loop anew
            self.surroundings,
            Loops(self.workspace.fingerprint),
            Recovery(),
            self.window.compaction,
            Syncing(self.journal),
        ]

    def begin_turn(self, conversation: Conversation, emit: Emit) -> tuple[Model, Toolbox]:
        """Return model and tools for a turn that begins now, behind the firewall, and under its time limit."""
        self.upkeep.begin_turn(emit)
        model: Model = LegibleModel(self._calls.bounding(self.upkeep.awaited), self._legible)
        toolbox: Toolbox = self.toolbox
        if self._deadline is not None:
            self._deadline.begin()
            model = TimedModel(model, self._deadline)
            toolbox = TimedToolbox(toolbox, self._deadline)
        asks = None if self.confirm is nobody else self._ask
        model, toolbox = self.secrets.guard(model, toolbox, asks)
        compaction = self.window.compaction
        aside = self.side_model
        compaction.model = TimedModel(aside, self._deadline) if self._deadline else aside
        return compaction.guarding(self.window.watching(model), conversation, emit), toolbox

    @property
    def side_model(self) -> Model:
        """The model behind the firewall, for requests that are no part of the conversation."""
        return self.secrets.aside(LegibleModel(self.model))

    async def _ask(self, question: Question) -> Answer:
        if self._deadline is None:
            return await self.confirm(question)
        with self._deadline.paused():
            return await self.confirm(question)

    async def switch_model(self, *, provider: str | None, model: str | None) -> None:
        """Use another model from now on. Raises ConfigError or ModelError, and then nothing has changed."""
        name = provider or self.provider
        new = create_model(self.loaded.config, provider=name, model=model)
        check_place(self, name, new)
        await new.detect_window()
        old, self.provider, self.model = self.model, name, new
        self.window.forget()
        self.surroundings.begin(self, is_short=is_small(name, new, self.loaded.config))
        self.offer_tools(is_short=self.surroundings.is_short)
        await old.aclose()

    async def renewed(self, *, is_incognito: bool) -> "Rooms":
        """Return the rooms of a new session with the same model, without grants and jobs. Raises ConfigError or ModelError."""
        loaded = with_incognito(self.loaded, is_on=is_incognito)
        model = create_model(loaded.config, provider=self.provider, model=self.model.name)
        rooms = Rooms(self._options, loaded, (self.provider, model))
        await model.detect_window()
        return rooms

    async def aclose(self) -> None:
        """End what runs in the background and close connections."""
        try:
            await super().aclose()
        finally:
            self.upkeep.close()
            await self.model.aclose()


def open_session(options: Options) -> Session:
    """Open a session. Raises ConfigError for what makes a start impossible."""
    rooms = Rooms(options, ready_settings(options))
    if options.resume is not None:
        take_up(rooms, options.resume, is_fork=options.fork)
    return Session(rooms, options.commands)
