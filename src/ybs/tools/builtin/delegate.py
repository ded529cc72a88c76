"""delegate: tasks for sub-agents, which work side by side and answer with their results."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Protocol

from msgspec import Meta, Raw, Struct

from ybs.core.cutting import first_words
from ybs.core.errors import ToolError
from ybs.core.ports import Effect, Preview, ToolOutput
from ybs.core.wording import plural
from ybs.security.policy.case import Subject
from ybs.tools.builtin.base import BuiltInTool
from ybs.tools.calls.live import LiveOutput
from ybs.tools.workspace import Workspace

if TYPE_CHECKING:  # most sessions have no sub-agent
    from ybs.config.front_matter import Fork

MOST_TASKS: Final = 20
_LONGEST_TITLE = 80  # characters
#: Each byte is in every request, so what few tasks need stands in no schema; it is taken all the same.
_PARAMETERS: Final = Raw(
    b'{"type":"object","properties":{"tasks":{"type":"array","items":{"type":"object","properties":'
    b'{"task":{"type":"string"},"kind":{"type":"string"},"model":{"type":"string"},"background":{"type":"boolean"}},'
    b'"required":["task","kind"]}}},"required":["tasks"]}'
)


class Task(Struct, frozen=True, kw_only=True):
    """One task: what to do, the kind of sub-agent, what it should know, and what it may use at most.

    Of `tools`, `steps`, `tokens`, `cost_usd` and `seconds` what the kind and the parent have left is the most there is. So many models as
    `best_of` says do it side by side, and the check of the settings chooses whose work is taken over.
    """

    task: str
    kind: str = "general"
    context: str = ""
    tools: tuple[str, ...] = ()
    model: str = ""
    steps: Annotated[int, Meta(ge=1)] | None = None
    tokens: Annotated[int, Meta(ge=1)] | None = None
    cost_usd: Annotated[float, Meta(gt=0)] | None = None
    seconds: Annotated[float, Meta(gt=0)] | None = None
    background: bool = False
    best_of: int = 1


class PersonsTask(Task, frozen=True, kw_only=True):
    """A task of the person's own words, command or skill: they have named its model. The arguments of a call are never one."""


def task_of(words: str, fork: "Fork", *, is_own: bool) -> Task:
    """Return the task of a command or a skill that a sub-agent is to do; `is_own`: it is the person's own."""
    make = PersonsTask if is_own else Task
    return make(task=words, kind=fork.kind or "general", model=fork.model)


class DelegateArguments(Struct, frozen=True, kw_only=True):
    """What delegate takes."""

    tasks: tuple[Task, ...]


class Delegates(Protocol):
    """What starts sub-agents."""

    @property
    def own_kinds(self) -> str:
        """The kinds that are not built in, as the model is told of them; empty where there are none."""
        ...

    def kind_name(self, name: str) -> str:
        """Return the whole name of the kind that is meant; of an unknown one what was given."""
        ...

    async def delegate(self, tasks: Sequence[Task], call_id: str) -> ToolOutput:
        """Have sub-agents do the tasks of the call with this id. Raises ToolError where no task can be begun."""
        ...


class DelegateTool(BuiltInTool):
    """Hands the tasks on. What sub-agents do is judged call by call, so this itself changes nothing."""

    name: str = "delegate"
    effect: Effect = "read"
    arguments: ClassVar[type[Struct]] = DelegateArguments
    #: Each sub-agent has its own limits, which end it.
    longest_seconds: Final = 86_400.0

    def __init__(self, workspace: Workspace, agents: Delegates) -> None:
        super().__init__(workspace)
        self._agents = agents

    @property
    def description(self) -> str:
        """What it is for, and the kinds."""
        own = self._agents.own_kinds
        return f"{super().description} Also:\n{own}" if own else super().description

    @property
    def parameters(self) -> Raw:
        """What models are told of."""
        return _PARAMETERS

    def subject(self, arguments: DelegateArguments) -> Subject:
        """Name the kinds: a rule such as `delegate(test)` covers calls of this kind alone."""
        kinds = sorted({self._agents.kind_name(task.kind) for task in arguments.tasks})
        return Subject(is_plain=True, paths=tuple(kinds))

    def preview(self, arguments: DelegateArguments) -> Preview:
        """Show the tasks. Raises ToolError where there are none, or too many."""
        tasks = arguments.tasks
        if not 0 < len(tasks) <= MOST_TASKS or not all(task.task.strip() for task in tasks):
            raise ToolError(f"Give 1 to {MOST_TASKS} tasks, each with words that say what to do.")
        first = f"{tasks[0].kind}: {first_words(tasks[0].task, _LONGEST_TITLE)}"
        title = first if len(tasks) == 1 else f"{plural(len(tasks), 'task')} for sub-agents"
        return Preview(title=title, body="\n".join(f"{each.kind}: {each.task}" for each in tasks))

    async def run(
        self, arguments: DelegateArguments, print_live: Callable[[str], None]
    ) -> ToolOutput:
        """Have the tasks done. The events of sub-agents name the call that started them."""
        return await self._agents.delegate(arguments.tasks, call_of(print_live))


def call_of(print_live: Callable[[str], None]) -> str:
    """Return the id of the call that is run."""
    return print_live.call_id if isinstance(print_live, LiveOutput) else "call"
