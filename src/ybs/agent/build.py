"""Build an agent: the one place that joins model, tools, guards and firewall. The main agent and every other is made here."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

from msgspec import Struct

from ybs.agent.environment import ToolEnvironment
from ybs.agent.prompt_context import PromptContext
from ybs.agent.toolbox import ToolSet, describing, make_toolbox, with_foreign
from ybs.agent.window import Window
from ybs.compaction.compaction import BeforeCompaction, Compaction
from ybs.core.agent import Agent
from ybs.core.call_ids import CallIds
from ybs.core.conversation import Conversation
from ybs.core.events import Emit, TurnFinished
from ybs.core.hooks import CallHook
from ybs.core.messages import ToolCall, UserMessage
from ybs.core.ports import Guard, Model, Toolbox
from ybs.guards.limits import CallLimit, Deadline, DryRun, Limits, TimedModel, TimedToolbox
from ybs.guards.loops import Loops
from ybs.guards.recovery import Recovery
from ybs.providers.registry import ProviderModel, shown_name
from ybs.security.legible import LegibleModel


class AgentSpec(Struct, frozen=True, kw_only=True):
    """What an agent is made of. Its `name` is unique in its session, and all agents of the session share `call_ids`.

    `first_guards` stand behind the limits and before the rest, `guards` before the compaction, `last_guards` behind all. `hooks` look
    before and after each change; `tools` and `toolboxes` are beside those of every agent. `spent_usd` is what the session has spent
    before this turn. Without `context` nothing is said again after a compaction. `wrap` puts something around the model, next to the
    provider; `before_compaction` may forbid one.
    """

    name: str
    provider: str
    model: ProviderModel
    conversation: Conversation
    call_ids: CallIds
    context: PromptContext | None = None
    first_guards: tuple[Guard, ...] = ()
    guards: tuple[Guard, ...] = ()
    last_guards: tuple[Guard, ...] = ()
    hooks: tuple[CallHook, ...] = ()
    tools: ToolSet = ToolSet()
    toolboxes: tuple[Toolbox, ...] = ()
    spent_usd: Callable[[], float] = lambda: 0.0
    wrap: Callable[[Model], Model] = lambda model: model
    before_compaction: BeforeCompaction | None = None


class BuiltAgent:
    """An agent, and what its owner asks: the model, the tools, the window and the compaction that keeps it from filling.

    It lives until its work is done; for another model another one is built.
    """

    def __init__(self, spec: AgentSpec, environment: ToolEnvironment, emit: Emit) -> None:
        config, name = environment.config, spec.name
        self.provider, self.model = spec.provider, spec.model
        self.server = shown_name(spec.provider, config)
        own = make_toolbox(environment, spec.tools, spec.hooks, name)
        self.toolbox = with_foreign(own, spec.toolboxes, environment, spec.hooks, name)
        self.window = Window(spec.provider, spec.model, self.toolbox.specs)
        #: The model behind the firewall, for requests that are not part of the conversation.
        self.side_model: Model = environment.secrets.aside(LegibleModel(spec.model))
        self._deadline = Deadline(config.agent.max_seconds) if config.agent.max_seconds else None
        limits = Limits(
            max_steps=config.agent.max_iterations,
            max_cost_usd=config.agent.max_cost_usd,
            spent_usd=spec.spent_usd,
        )
        self.compaction = Compaction(
            threshold=config.context.compaction_threshold,
            room=lambda: self.window.room,
            size=self.window.tokens,
            specs=self.toolbox.specs,
            keep_output=environment.keep_output,
            model=self._timed(self.side_model),
            limits=limits,
            mask=lambda message: environment.secrets.masked(message),
            rules=spec.context.rules if spec.context else lambda: "",
            before=spec.before_compaction,
        )
        calls = CallLimit()
        guards: list[Guard] = [
            *([self._deadline] if self._deadline else []),
            limits,
            calls,
            *([DryRun()] if environment.permissions.is_dry_run else []),
            *spec.first_guards,
            *([spec.context] if spec.context else []),
            Loops(environment.workspace.fingerprint),
            Recovery(),
            *spec.guards,
            self.compaction,
            *spec.last_guards,
        ]
        named = spec.call_ids.naming(calls.bounding(spec.wrap(spec.model)), spec.name)
        timed = self._timed(LegibleModel(named))
        #: The firewall before the model: it knows which words it did not let go.
        self.firewall_model, toolbox = environment.secrets.guard(timed, self._timed_tools())
        watched = self.window.watching(self.firewall_model)
        model = self.compaction.guarding(watched, spec.conversation, emit)
        tell = describing(emit, self.toolbox, environment.roots)
        self._agent = Agent(model, toolbox, tell, spec.conversation, guards)

    def _timed_tools(self) -> Toolbox:
        deadline = self._deadline
        return self.toolbox if deadline is None else TimedToolbox(self.toolbox, deadline)

    def _timed(self, model: Model) -> Model:
        return model if self._deadline is None else TimedModel(model, self._deadline)

    async def run(self, prompt: Awaitable[UserMessage]) -> TurnFinished:
        """Take one turn with the words that `prompt` gives; making them is part of its time."""
        with nullcontext() if self._deadline is None else self._deadline.running():
            return await self._agent.run(await prompt)

    async def answer(self, calls: Sequence[ToolCall]) -> None:
        """Run calls of the last answer that have no result; the others without one are answered as cancelled."""
        await self._agent.answer(calls)

    def paused(self) -> AbstractContextManager[None]:
        """Stop the clock of the turn, as long as the person is asked."""
        return nullcontext() if self._deadline is None else self._deadline.paused()
