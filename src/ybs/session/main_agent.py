"""The main agent of a conversation: what it stands on with its sub-agents, and the agent itself, built anew for another model."""

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from ybs.agent.build import AgentSpec, BuiltAgent
from ybs.agent.environment import ToolEnvironment
from ybs.agent.model_choice import is_small, may_turn_out_small, routed, size_of
from ybs.agent.prompt_context import PromptContext
from ybs.agent.toolbox import ToolSet, own_tools
from ybs.compaction.compaction import BeforeCompaction
from ybs.conductor.delegating import Delegating
from ybs.conductor.home import Workplace
from ybs.config.schema import PromptForm
from ybs.core.call_ids import CallIds
from ybs.core.conversation import Conversation
from ybs.core.envelope import MAIN
from ybs.core.events import Event
from ybs.core.messages import Usage
from ybs.core.ports import Confirm, Guard, Model
from ybs.guards.planning import Planning
from ybs.providers.registry import ProviderModel
from ybs.session.composer import Composer
from ybs.session.journal import Journal, Syncing
from ybs.session.options import Options, read_prompt
from ybs.session.recorder import TurnRecorder
from ybs.session.running_task import RunningTask
from ybs.session.warming import Warming
from ybs.small_models.unseen import HidingModel

if TYPE_CHECKING:
    from ybs.agent.hooks import TurnHook
    from ybs.agent.routed import RoutedTurns
    from ybs.guards.answer_form import AnswerForm
    from ybs.router.model import RoutedModel


class EmitOf(Protocol):
    """Takes the events of all agents; those of a sub-agent with its name and the call that started it."""

    def __call__(self, event: Event, /, *, agent: str = MAIN, started_by: str = "") -> None:
        """Take an event."""
        ...


class SessionPorts(Struct, frozen=True, kw_only=True):
    """What the parts of a session may ask of it: to tell something or where it stands, to ask the person, and to count (USD).

    `count` takes the first words of a turn, what it used, how many seconds it worked, and the model that answered last (empty: none has).
    """

    emit: EmitOf
    confirm: Confirm
    is_attended: Callable[[], bool]
    tell_state: Callable[[], None]
    spent_usd: Callable[[], float]
    count: Callable[[str, Usage, float, str], None]
    running: RunningTask


class MainAgent:
    """Holds the agent of the moment; for its sub-agents it is their `Home`. `words` are what the person says.

    Raises ConfigError for what makes a start impossible.
    """

    def __init__(
        self,
        options: Options,
        environment: ToolEnvironment,
        journal: Journal,
        words: Composer,
        ports: SessionPorts,
        model: tuple[str, ProviderModel],
    ) -> None:
        self._options, self._ports, self._words = options, ports, words
        self.environment, self.journal = environment, journal
        own_prompt = read_prompt(options, environment)
        pointed_to = options.commands.pointed_to if options.commands else ()
        self.context = PromptContext(
            environment, own_prompt=own_prompt, commands=pointed_to, is_shared=options.is_shared
        )
        self.conversation, self.call_ids = Conversation(own_prompt, []), CallIds()
        self._warming = Warming(has_sandbox=not environment.sandbox.is_off)
        self.recorder = TurnRecorder(environment, journal, self._warming)
        first = (options.editor,) if options.editor else ()
        self._hooks = (*first, self.recorder)
        self.place = Workplace(environment, self._hooks, options.tools, options.toolboxes)
        self.own_model: Model | None = options.model
        self.before_compaction: BeforeCompaction | None = (
            words.hooks.before_compaction if words.hooks else None
        )
        #: What starts sub-agents, and watches over them.
        self.delegating = Delegating(self, waits=options.is_one_shot)
        self._prompt_form: PromptForm | None = None
        self._fitting = asyncio.Lock()
        #: What picks the model of each turn, where one is picked.
        self.routed: RoutedTurns | None = None
        #: What the answer to each prompt has to be, where the program or the person said it.
        self.form = _form_of(options.output_schema)
        self.agent = self.build(*model)

    @property
    def spent_usd(self) -> float:
        """What the session has spent before this turn."""
        return self._ports.spent_usd()

    @property
    def earlier_names(self) -> Iterable[str]:
        """The names that sub-agents have had."""
        return (each.agent for each in self.journal.earlier)

    def tell(self, event: Event, /, *, agent: str, started_by: str) -> None:
        """Take an event of a sub-agent, and the call that started it."""
        self._ports.emit(event, agent=agent, started_by=started_by)

    def hook_guards(self, agent: str = "", kind: str = "") -> tuple[Guard, ...]:
        """Return what runs the person's hooks before the steps of an agent, by its name and kind."""
        if (hooks := self._words.hooks) is None:
            return ()
        from ybs.agent.user_hooks.hooks import HookGuard

        return (HookGuard(hooks, agent, kind),)

    @property
    def turn_hooks(self) -> "tuple[TurnHook, ...]":
        """What runs around a turn, in its order."""
        return (*self._hooks, *self.environment.checks, *([self.routed] if self.routed else []))

    def build(
        self, provider: str, model: ProviderModel, form: PromptForm | None = None
    ) -> BuiltAgent:
        """Build the agent for a model; the prompt context tells of that model from now on.

        `form` is that of the prompt, where it is not the one of the settings. Of a routed model it is built for the one in use.
        """
        self._prompt_form, self.provider = form, provider
        if (picking := routed(provider, model)) is not None:
            provider = picking.provider
        self.routed = self._turns_of(picking)
        is_short = is_small(self.environment.host, provider, model, self.environment.config, form)
        self.context.use(provider, model, is_short=is_short)
        support, endings = self._support_for_small(model) if is_short else (HidingModel, ())
        spec = AgentSpec(
            name=MAIN,
            provider=provider,
            model=model,
            conversation=self.conversation,
            call_ids=self.call_ids,
            context=self.context,
            around={
                "answer form": self._formed,
                "small models": support,
                "warming": self._warming.awaiting,
            },
            guards={
                "steering": [self._words.steering],
                "planning": [Planning(lambda: self.environment.policy.mode == "plan")],
                "sub-agents": [self.delegating],
                "small models": endings,
                "session": self._options.guards,
                "answer form": [self.form] if self.form else [],
                "cascade": self._cascade(picking),
                "user hooks": self.hook_guards(),
                "journal": [Syncing(self.journal)],
            },
            hooks=self.place.hooks,
            tools=ToolSet(
                own=tuple(own_tools(self.environment, self.context, self.delegating)),
                foreign=self.place.tools,
                is_short=is_short,
                unoffered=self.context.unoffered(is_short=is_short),
            ),
            toolboxes=self.place.toolboxes,
            spent_usd=self._ports.spent_usd,
            before_compaction=self.before_compaction,
        )
        return BuiltAgent(spec, self.environment, self._ports.emit)

    def _turns_of(self, model: "RoutedModel | None") -> "RoutedTurns | None":
        if model is None or (self.routed is not None and self.routed.model is model):
            return self.routed if model is not None else None
        from ybs.agent.routed import RoutedTurns  # few sessions route

        mask = self.environment.secrets.masked_words
        return RoutedTurns(model, self._next_tokens, self._rebuild, mask)

    def _cascade(self, model: "RoutedModel | None") -> tuple[Guard, ...]:
        settings = self.environment.config.router.cascade
        if model is None or not settings.check:
            return ()
        from ybs.agent.routed import cascade  # few have one

        return (cascade(model, settings, self.environment),)

    def _next_tokens(self) -> int:
        return self.agent.window.size_of(self.conversation.system, self.conversation.messages)

    async def _rebuild(self) -> None:
        """Build the agent for the model that was picked."""
        old = self.agent
        self.agent = self.build(self.provider, old.model, self._prompt_form)
        await old.toolbox.aclose()

    async def use(
        self, provider: str, model: ProviderModel, form: PromptForm | None = None
    ) -> None:
        """Go on with another model, and close the one before."""
        old, before = self.agent, self.routed
        self.agent = self.build(provider, model, form)
        if before is not None:
            await before.aclose()
        await old.toolbox.aclose()  # the agent for the new model opens its own
        await old.model.aclose()

    async def fit(self) -> None:
        """Ask the model's server how large the model is where nothing else says it, and build the agent that fits."""
        async with self._fitting:
            old, form, config = self.agent, self._prompt_form, self.environment.config
            host, provider, model = self.environment.host, old.provider, old.model
            if not may_turn_out_small(model, host, provider, config, form):
                return
            await model.ask_server()
            if is_small(host, provider, model, config, form):
                self.agent = self.build(provider, model, form)
                await old.toolbox.aclose()

    async def reload_tools(self) -> None:
        """Look for the person's own tools again, and have the agent offer them."""
        self.environment.forget_skills()
        await self.environment.external_tools.reload()
        await self._rebuild()

    def _formed(self, model: Model) -> Model:
        return self.form.around(model) if self.form else model

    def _support_for_small(
        self, model: Model
    ) -> tuple[Callable[[Model], Model], tuple[Guard, ...]]:
        """Return the wrapper of a small model, and its guards."""
        from ybs.small_models.support import supported  # for small models only

        return supported(
            self.context.brief,
            self.environment.roots,
            lambda call: self.agent.toolbox.is_read_only(call),
            billions=size_of(model),
        )

    async def aclose(self) -> None:
        """Close what the agent has opened, but its model."""
        if self.routed is not None:
            await self.routed.aclose()
        await self.agent.toolbox.aclose()
        await self.context.aclose()


def _form_of(schema: Any) -> "AnswerForm | None":
    if schema is None:
        return None
    from ybs.guards.answer_form import AnswerForm  # few ask for one
    from ybs.guards.json_schema import JsonSchema

    return AnswerForm(JsonSchema(schema))
