"""The interface of the main agent to its sub-agents: shared parts, and requests to the session."""

from collections.abc import Iterable
from typing import Protocol

from msgspec import Struct

from ybs.agent.build import BuiltAgent
from ybs.agent.environment import ToolEnvironment
from ybs.agent.prompt_context import PromptContext
from ybs.compaction.compaction import BeforeCompaction
from ybs.core.call_ids import CallIds
from ybs.core.conversation import Conversation
from ybs.core.events import Event
from ybs.core.hooks import CallHook
from ybs.core.ports import Guard, Model, Tool, Toolbox


class Workplace(Struct, frozen=True):
    """Where an agent works: the project or a copy of it, what looks before and after each change there, and its tools that are not built in."""

    environment: ToolEnvironment
    hooks: tuple[CallHook, ...] = ()
    tools: tuple[Tool, ...] = ()
    toolboxes: tuple[Toolbox, ...] = ()


class Home(Protocol):
    """The main agent, as its sub-agents see it. `own_model` is one that a program has handed in."""

    place: Workplace
    context: PromptContext
    conversation: Conversation
    call_ids: CallIds
    own_model: Model | None
    before_compaction: BeforeCompaction | None

    @property
    def agent(self) -> BuiltAgent:
        """The main agent of the moment."""
        ...

    @property
    def spent_usd(self) -> float:
        """What the session has spent before this turn."""
        ...

    @property
    def earlier_names(self) -> Iterable[str]:
        """The names that sub-agents have had."""
        ...

    def tell(self, event: Event, /, *, agent: str, started_by: str) -> None:
        """Take an event of a sub-agent, and the call that started it."""
        ...

    def hook_guards(self, agent: str = "", kind: str = "") -> tuple[Guard, ...]:
        """Return what runs the person's hooks before the steps of an agent, by its name and kind."""
        ...
