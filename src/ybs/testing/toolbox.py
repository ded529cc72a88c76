"""ScriptedToolbox, FakeTool, RecordedHook and ScriptedConfirm: the tools' side of a test, without tools or a person."""

import inspect
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import ClassVar, TypeAlias

from msgspec import Raw, Struct
from msgspec.structs import replace

from ybs.core.errors import Refused, ToolError
from ybs.core.events import Emit
from ybs.core.hooks import CallHook
from ybs.core.messages import ToolCall, ToolResult
from ybs.core.ports import Answer, Effect, Preview, Question, Toolbox, ToolOutput, ToolSpec
from ybs.core.schema import schema_of
from ybs.testing.script import ScriptOver

#: What a scripted tool answers: a text, a whole result (its id is filled in), or an error.
Outcome: TypeAlias = str | ToolResult | ToolError
#: An outcome, or a function of the call and the emit sink; it may be a coroutine that waits.
Behaviour: TypeAlias = Outcome | Callable[[ToolCall, Emit], Outcome | Awaitable[Outcome]]


class ScriptedToolbox(Toolbox):
    """A Toolbox of made-up tools: each name has its behaviour. `calls` holds the calls it got, in order.

    A tool is read-only unless its name is in `writers`. An unknown tool is an error that the model reads.
    """

    def __init__(
        self, tools: Mapping[str, Behaviour] | None = None, *, writers: Collection[str] = ()
    ) -> None:
        self._tools, self._writers = dict(tools or {}), frozenset(writers)
        self.calls: list[ToolCall] = []

    def specs(self) -> Sequence[ToolSpec]:
        """List the tools in the order given."""
        parameters = Raw(b'{"type":"object","properties":{}}')
        return [
            ToolSpec(
                name=name,
                description=f"A scripted {name}.",
                parameters=parameters,
                effect="write" if name in self._writers else "read",
            )
            for name in self._tools
        ]

    def is_read_only(self, call: ToolCall) -> bool:
        """Return whether the tool was not named as a writer."""
        return call.name not in self._writers

    async def run(self, call: ToolCall, emit: Emit) -> ToolResult:
        """Play the tool's behaviour."""
        self.calls.append(call)
        behaviour = self._tools.get(call.name, ToolError(f"there is no tool {call.name!r}"))
        try:
            outcome = await _outcome_of(behaviour, call, emit)
        except ToolError as error:
            outcome = error
        match outcome:
            case str():
                return ToolResult(call_id=call.id, name=call.name, output=outcome)
            case ToolResult():
                return replace(outcome, call_id=call.id)
            case ToolError():
                return ToolResult(
                    call_id=call.id,
                    name=call.name,
                    output=str(outcome),
                    is_error=True,
                    is_refused=isinstance(outcome, Refused),
                )


async def _outcome_of(behaviour: Behaviour, call: ToolCall, emit: Emit) -> Outcome:
    if not callable(behaviour):
        return behaviour
    outcome = behaviour(call, emit)
    return await outcome if inspect.isawaitable(outcome) else outcome


class FakeArguments(Struct, frozen=True, kw_only=True):
    """The arguments of FakeTool: one text."""

    text: str = ""


class FakeTool:
    """A Tool that does nothing but remember its runs. Subclass it for another name or effect."""

    name: str = "fake"
    effect: Effect = "read"
    arguments: ClassVar[type[Struct]] = FakeArguments

    def __init__(self, output: ToolOutput | ToolError | None = None) -> None:
        self._output = output or ToolOutput(output="done")
        self.runs: list[Struct] = []

    @property
    def parameters(self) -> Raw:
        """The JSON Schema of its arguments."""
        return schema_of(self.arguments)

    @property
    def description(self) -> str:
        """What the model is told."""
        return f"A fake tool called {self.name}."

    def preview(self, arguments: Struct) -> Preview:
        """Say what the call would do."""
        return Preview(title=f"{self.name} {arguments}")

    async def run(self, arguments: Struct, print_live: Callable[[str], None]) -> ToolOutput:
        """Remember the call, print a line and give the output, or raise the error."""
        self.runs.append(arguments)
        print_live(f"{self.name} runs\n")
        if isinstance(self._output, ToolError):
            raise self._output
        return self._output


class RecordedHook(CallHook):
    """A hook around calls that records what it was told: the effect and the paths, before and after.

    `error` is raised each time, after recording.
    """

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.before: list[tuple[Effect, tuple[str, ...]]] = []
        self.after: list[tuple[Effect, tuple[str, ...]]] = []

    async def before_change(self, call: ToolCall, effect: Effect, paths: Sequence[str]) -> None:
        """Record what is about to change."""
        self._record(self.before, effect, paths)

    async def after_change(self, call: ToolCall, effect: Effect, paths: Sequence[str]) -> None:
        """Record what has changed."""
        self._record(self.after, effect, paths)

    def _record(
        self, told: list[tuple[Effect, tuple[str, ...]]], effect: Effect, paths: Sequence[str]
    ) -> None:
        told.append((effect, tuple(paths)))
        if self.error is not None:
            raise self.error


class ScriptedConfirm:
    """A Confirm that plays answers: True, False, or a whole Answer. `questions` holds what was asked."""

    def __init__(self, answers: Iterable[bool | Answer] = ()) -> None:
        self._answers = list(answers)
        self.questions: list[Question] = []

    async def __call__(self, question: Question) -> Answer:
        """Answer the next question. Raises ScriptOver when there is no answer left."""
        self.questions.append(question)
        if len(self.questions) > len(self._answers):
            raise ScriptOver(f"nobody was to be asked again, but: {question.preview.title}")
        said = self._answers[len(self.questions) - 1]
        return said if isinstance(said, Answer) else Answer(is_allowed=said)
