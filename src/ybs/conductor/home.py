"""What the sub-agents of a session share with its main agent, and what they may ask of the session."""

from collections.abc import Callable, Iterable
from typing import Protocol

from msgspec import Struct

from ybs.agent.build import BuiltAgent
from ybs.agent.environment import ToolEnvironment
from ybs.agent.prompt_context import PromptContext
from ybs.core.call_ids import CallIds
from ybs.core.conversation import Conversation
from ybs.core.events import Event
from ybs.core.hooks import CallHook
from ybs.core.ports import Guard, Model, Tool, Toolbox


class TellOf(Protocol):
    """Takes the events of sub-agents: whose they are, and the call that started it."""

    def __call__(self, event: Event, /, *, agent: str, started_by: str) -> None:
        """Take an event."""
        ...


class Home(Struct, frozen=True, kw_only=True):
    """What sub-agents stand on. `main` returns the main agent of the moment, and `tell` takes what they tell.

    `hooks_in` makes the hooks of an agent that works in a copy of the project, `last_guards` the guards of an agent, by its name and kind, that stand behind all others, and `prepare` takes each agent that was built, before it begins.
    `own_model`, `tools` and `toolboxes` are those that a program has handed in. `taken` returns the names that agents have had.
    """

    environment: ToolEnvironment
    context: PromptContext
    conversation: Conversation
    call_ids: CallIds
    main: Callable[[], BuiltAgent]
    tell: TellOf
    hooks: tuple[CallHook, ...] = ()
    hooks_in: Callable[[ToolEnvironment], tuple[CallHook, ...]] = lambda _: ()
    last_guards: Callable[[str, str], tuple[Guard, ...]] = lambda name, kind: ()
    prepare: Callable[[BuiltAgent], None] = lambda _: None
    own_model: Model | None = None
    tools: tuple[Tool, ...] = ()
    toolboxes: tuple[Toolbox, ...] = ()
    spent_usd: Callable[[], float] = lambda: 0.0
    taken: Callable[[], Iterable[str]] = lambda: ()
