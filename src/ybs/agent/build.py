"""Build an agent: the one place that joins model, tools, guards and firewall. The main agent and every other is made here."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final, TypeAlias

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
from ybs.guards.limits import CallLimit, DryRun, Limits, TimedModel, TimedToolbox, TurnDeadline
from ybs.guards.loops import Loops
from ybs.guards.recovery import Recovery
from ybs.providers.registry import ProviderModel, shown_name
from ybs.security.firewall.model import FirewallModel
from ybs.security.visible_text import VisibleTextModel

#: What stands around a model, from the inside out; what an agent does not need is left out. Those between the two that mask may add text.
AROUND_MODEL: Final = {
    "last look": "sends placeholders instead of secrets in what those around it have added",
    "answer form": "asks for an answer that fits a JSON Schema",
    "small models": "shows what was looked up ahead, guides and ends the turns of small models; hides that from others",
    "warming": "loads what the next step needs while the model is waited for",
    "call limit": "leaves out calls beyond the most that one answer may make",
    "call ids": "gives each call an id of its own in the session",
    "visible text": "puts signs in place of characters that nobody sees",
    "deadline": "ends an answer when the time of the turn is over",
    "firewall": "sends placeholders instead of secrets",
    "window": "counts what requests take, and learns from answers",
    "compaction": "makes a request that was refused as too long smaller, and sends it again",
}
#: What looks at a turn before each step, in this order.
GUARDS: Final = {
    "deadline": "ends the turn when its time is over",
    "limits": "ends it after its steps or its money",
    "call limit": "says which calls were left out",
    "dry run": "ends it before the first call that would change something",
    "steering": "says what the person typed meanwhile",
    "context": "says again what the model should know of project and memory",
    "loops": "notices calls that repeat themselves",
    "recovery": "asks for an answer where none came",
    "planning": "reminds of the plan mode",
    "sub-agents": "brings the results of sub-agents",
    "small models": "ends the turns of small models",
    "budget": "keeps a sub-agent within its budget, and asks for its last word",
    "session": "what a program has handed to the session",
    "answer form": "asks the model to fix an answer that does not fit its JSON Schema",
    "cascade": "hands a failing turn to a stronger model",
    "compaction": "makes room before the window is full",
    "user hooks": "runs the person's own programs",
    "journal": "has the disk keep what was said",
}
Wrap: TypeAlias = Callable[[Model], Model]


class AgentSpec(Struct, frozen=True, kw_only=True):
    """What an agent is made of. Its `name` is unique in its session, and all agents of the session share `call_ids`.

    `around` the model and as `guards` stand, by the names of `AROUND_MODEL` and `GUARDS`, what not every agent has. `hooks` look before and after each change;
    `tools` and `toolboxes` are beside those of every agent. `spent_usd`: by the session before this turn. `before_compaction` may forbid one, after which `context` says again what counts.
    """

    name: str
    provider: str
    model: ProviderModel
    conversation: Conversation
    call_ids: CallIds
    context: PromptContext | None = None
    around: Mapping[str, Wrap] = {}
    guards: Mapping[str, Sequence[Guard]] = {}
    hooks: tuple[CallHook, ...] = ()
    tools: ToolSet = ToolSet()
    toolboxes: tuple[Toolbox, ...] = ()
    spent_usd: Callable[[], float] = lambda: 0.0
    before_compaction: BeforeCompaction | None = None


class BuiltAgent:
    """An agent, until its work is done or another model takes it over, and what its owner asks: the model, the tools, the window, the compaction."""

    def __init__(self, spec: AgentSpec, environment: ToolEnvironment, emit: Emit) -> None:
        config, name = environment.config, spec.name
        self.provider, self.model = spec.provider, spec.model
        self.firewall_model: FirewallModel  # it knows which words it did not let go
        self.server = shown_name(spec.provider, config)
        own = make_toolbox(environment, spec.tools, spec.hooks, name)
        self.toolbox = with_foreign(own, spec.toolboxes, environment, spec.hooks, name)
        self.window = Window(spec.provider, spec.model, self.toolbox.specs)
        #: The model behind the firewall, for requests that are not part of the conversation.
        self.side_model: Model = environment.secrets.side_model(VisibleTextModel(spec.model))
        self._deadline = TurnDeadline(most) if (most := config.agent.max_seconds) else None
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
        calls, deadline = CallLimit(), self._deadline
        tools = self.toolbox if deadline is None else TimedToolbox(self.toolbox, deadline)
        self._agent = Agent(
            self._model(spec, environment, calls, emit),
            environment.secrets.guarded(tools),
            describing(emit, self.toolbox, environment.roots),
            spec.conversation,
            self._guards(spec, environment, limits, calls),
        )

    def _model(
        self, spec: AgentSpec, environment: ToolEnvironment, calls: CallLimit, emit: Emit
    ) -> Model:
        def firewall(model: Model) -> Model:
            self.firewall_model = environment.secrets.before(model)
            return self.firewall_model

        around: dict[str, Wrap] = {
            "last look": environment.secrets.last_look,
            "call limit": calls.bounding,
            "call ids": lambda model: spec.call_ids.naming(model, spec.name),
            "visible text": VisibleTextModel,
            "deadline": self._timed,
            "firewall": firewall,
            "window": self.window.watching,
            "compaction": lambda model: self.compaction.guarding(model, spec.conversation, emit),
            **spec.around,
        }
        model: Model = spec.model
        for name in sorted(around, key=[*AROUND_MODEL].index):
            model = around[name](model)
        return model

    def _guards(
        self, spec: AgentSpec, environment: ToolEnvironment, limits: Limits, calls: CallLimit
    ) -> list[Guard]:
        guards: dict[str, Sequence[Guard]] = {
            "deadline": [self._deadline] if self._deadline else [],
            "limits": [limits],
            "call limit": [calls],
            "dry run": [DryRun()] if environment.permissions.is_dry_run else [],
            "context": [spec.context] if spec.context else [],
            "loops": [Loops(environment.workspace.fingerprint)],
            "recovery": [Recovery()],
            "compaction": [self.compaction],
            **spec.guards,
        }
        return [each for name in sorted(guards, key=[*GUARDS].index) for each in guards[name]]

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
