"""One task, done by the model in a session of its own in a throwaway project, and measured."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from ybs.agent.small_models.read_ahead import looks_ahead
from ybs.core.envelope import Envelope
from ybs.core.errors import ModelError, ToolError
from ybs.core.events import AssistantSaid, EndReason, TurnFinished
from ybs.core.messages import ToolCall
from ybs.core.ports import Answer, Confirm, Question, Toolbox
from ybs.frontends.headless.bench.judging import problem_of, read_files
from ybs.frontends.headless.bench.tasks import Half, Task, write_project
from ybs.tools.toolbox import LocalToolbox

if TYPE_CHECKING:
    from ybs.session.options import Options
    from ybs.session.session import Session

#: A task may take so long, in seconds, unless --timeout says otherwise.
LONGEST_SECONDS: Final = 180.0
_CALM: Final = {
    "session.auto_save": False,
    "git.auto_commit": False,
    "safety.mode": "auto",
}


class Measured(Struct, frozen=True, kw_only=True):
    """What came of a task. `problem` is what is wrong, `ended` why the turn ended, `answer` what was said last.

    `calls` are the model's own; `looked_ahead` counts those that ybs made for it.
    """

    name: str
    kind: str
    half: Half
    problem: str
    ended: EndReason
    seconds: float
    steps: int
    calls: int
    valid_calls: int
    looked_ahead: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    model: str
    answer: str

    @property
    def is_solved(self) -> bool:
        """Whether the task was solved and the turn ended by itself."""
        return not self.problem


class Unanswered(ModelError):
    """The provider failed before the model said anything, so nothing was measured; `row` is what there is all the same."""

    def __init__(self, row: Measured, finished: TurnFinished) -> None:
        super().__init__(finished.message, remedies=finished.remedies)
        self.row, self.temporary = row, finished.is_temporary


async def run_task(
    task: Task, options: "Options", opener: Callable[["Options"], "Session"]
) -> Measured:
    """Have the task done and return what came of it.

    Raises Unanswered, and YbsError where no session can be opened.
    """
    with TemporaryDirectory(prefix="ybs-bench-") as name:
        folder = Path(name)
        write_project(task, folder)
        before = read_files(folder)
        session = opener(_options_for(options, folder))
        session.attach(consent_in(session))
        calls = _Calls(session)
        session.subscribe(calls.add)
        async with session:
            outcome = await session.send(task.words, typed="")
        finished = outcome.finished
        problem = problem_of(task, outcome.text, before, read_files(folder))
    if finished.reason != "done":
        problem = finished.message.partition("\n")[0] or f"the turn ended: {finished.reason}"
    row = Measured(
        name=task.name,
        kind=task.kind,
        half=task.half,
        problem=problem,
        ended=finished.reason,
        seconds=round(finished.duration_seconds, 3),
        steps=finished.steps,
        calls=calls.count,
        valid_calls=calls.valid,
        looked_ahead=calls.ahead,
        input_tokens=finished.usage.input_tokens,
        cached_tokens=finished.usage.cached_tokens,
        output_tokens=finished.usage.output_tokens,
        model=calls.model,
        answer=outcome.text,
    )
    if finished.reason == "error" and not calls.answers:
        raise Unanswered(row, finished)
    return row


def _options_for(options: "Options", folder: Path) -> "Options":
    """Return the options of a session in a folder: the person's model and limits, nothing kept, nobody asked."""
    limits = {"agent.max_seconds": LONGEST_SECONDS, **options.overrides}
    return replace(options, folder=folder, overrides={**limits, **_CALM}, loaded=None)


def consent_in(session: "Session") -> Confirm:
    """Return what answers in the person's place: yes, in a folder that is thrown away.

    Where there is no sandbox to keep them in there, commands are refused.
    """

    async def consent(question: Question) -> Answer:
        is_safe = question.effect != "execute" or session.environment.workspace.has_sandbox
        reason = "" if is_safe else "Nobody can be asked, and there is no sandbox."
        return Answer(is_allowed=is_safe, reason=reason, is_unattended=not is_safe)

    return consent


class _Calls:
    """Counts the calls that the model makes, and those that name a tool that exists with arguments that fit.

    Those that ybs makes for a small model are counted apart.
    """

    def __init__(self, session: "Session") -> None:
        self._session = session
        self.count = self.valid = self.ahead = self.answers = 0
        self.model = ""

    def add(self, envelope: Envelope) -> None:
        """Take an event."""
        if not isinstance(envelope.event, AssistantSaid):
            return
        message = envelope.event.message
        self.model = message.model
        if looks_ahead(message):
            self.ahead += len(message.calls)
            return
        self.answers += 1
        for call in message.calls:
            self.count += 1
            self.valid += is_valid(call, self._session.agent.toolbox)


def is_valid(call: ToolCall, toolbox: Toolbox) -> bool:
    """Return whether a call can be run as it was written."""
    if call.invalid:
        return False
    if not isinstance(toolbox, LocalToolbox):
        return call.name in {spec.name for spec in toolbox.specs()}
    try:
        toolbox.check(call)
    except ToolError:
        return False
    return True
