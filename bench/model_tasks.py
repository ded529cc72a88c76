"""Has the chosen model do small tasks, each in a project of its own: `python bench/model_tasks.py [--only NAME] [OPTION ...]`.

A task is solved where the answer and the files are right, nothing else was changed, and the turn ended by itself.
"""

import asyncio
import re
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ybs.cli import complain, session_options
from ybs.cli.parser import parse
from ybs.commands.open import open_session
from ybs.core.envelope import Envelope
from ybs.core.errors import ModelError, ToolError, YbsError
from ybs.core.events import AssistantSaid, EndReason, TurnFinished
from ybs.core.messages import ToolCall
from ybs.core.ports import Answer, Confirm, Question, Toolbox
from ybs.core.wording import plural
from ybs.frontends.headless.output import tell, write, write_json
from ybs.frontends.headless.run import code_of
from ybs.session.options import Options
from ybs.session.session import Session
from ybs.small_models.read_ahead import looks_ahead
from ybs.tools.toolbox import LocalToolbox

Half: TypeAlias = Literal["tuning", "held"]
GUIDE: Final = "AGENTS.md"


class Many(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Files that are made by the hundred: `{n}` in path and text is the number of each, from 1."""

    path: str
    text: str
    count: int

    def files(self) -> dict[str, str]:
        """Return the files. The texts hold braces of their own, so only `{n}` is replaced in them."""
        numbers = range(1, self.count + 1)
        return {self.path.format(n=n): self.text.replace("{n}", str(n)) for n in numbers}


class Task(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One task: the project, the words, and what must be true afterwards. Everything else must be as it was.

    `answer` are regular expressions that all occur in the answer, whatever the case; the answer to an impossible task
    has to say no. `after` are the texts of files afterwards, `like` regular expressions that fit the whole of them,
    `gone` files that are no longer there. `has_guide`: there is an AGENTS.md of 2 KB.
    """

    name: str
    kind: str
    half: Half
    words: str
    files: dict[str, str]
    many: Many | None = None
    has_guide: bool = False
    answer: tuple[str, ...] = ()
    after: dict[str, str] = {}
    like: dict[str, str] = {}
    gone: tuple[str, ...] = ()

    @property
    def changed(self) -> set[str]:
        """The paths that may differ afterwards."""
        return {*self.after, *self.like, *self.gone}


class _Page(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `model_tasks.toml` holds."""

    guide: str
    task: tuple[Task, ...]


def load_tasks(half: Half | None = None, names: Sequence[str] = ()) -> list[Task]:
    """Return the tasks of one half or of both, or those with these names. Raises YbsError for an unknown name."""
    known = {task.name: task for task in _page().task}
    if unknown := [name for name in names if name not in known]:
        raise YbsError(f"There is no task {unknown[0]!r}. The tasks are: {', '.join(known)}.")
    chosen = [known[name] for name in dict.fromkeys(names)] or list(known.values())
    return [task for task in chosen if half is None or task.half == half]


def write_project(task: Task, folder: Path) -> None:
    """Write the files of a task into an empty folder."""
    made = task.many.files() if task.many else {}
    guide = {GUIDE: _page().guide.lstrip("\n")} if task.has_guide else {}
    for name, text in {**made, **guide, **task.files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def _page() -> _Page:
    data = Path(__file__).with_name("model_tasks.toml").read_bytes()
    return msgspec.toml.decode(data, type=_Page)


#: The files of a project by their paths.
Files: TypeAlias = dict[str, bytes]

_SAYS_NO: Final = r"n['\u2019]t\b|\b(?:no|not|none|nothing|cannot|missing|unable|unknown)\b"
#: What Python leaves behind when it runs something.
_CACHES: Final = "__pycache__"


def read_files(folder: Path) -> Files:
    """Read every file below a folder, links as what they point to; caches of Python are left out."""
    paths = (path for path in folder.rglob("*") if _CACHES not in path.parts)
    return {
        path.relative_to(folder).as_posix(): str(path.readlink()).encode()
        if path.is_symlink()
        else path.read_bytes()
        for path in paths
        if path.is_symlink() or path.is_file()
    }


def problem_of(task: Task, answer: str, before: Files, after: Files) -> str:
    """Return what is wrong with the outcome, in a few words; nothing where the task was solved."""
    names = sorted({*before, *after} - task.changed)
    if strange := [name for name in names if before.get(name) != after.get(name)]:
        return f"it also changed {', '.join(strange[:3])}"
    for name in sorted(task.changed):
        if problem := _problem_of_file(task, name, after.get(name)):
            return problem
    wanted = (_SAYS_NO,) if task.kind == "impossible" else task.answer
    missing = [each for each in wanted if not re.search(each, answer, re.IGNORECASE)]
    return "the answer is wrong" if missing else ""


def _problem_of_file(task: Task, name: str, data: bytes | None) -> str:
    """Return what is wrong with a file; how it ends, with a line break or without, does not matter."""
    if name in task.gone:
        return "" if data is None else f"{name} is still there"
    if data is None:
        return f"{name} is not there"
    text = data.decode("utf-8", "replace").rstrip()
    if name in task.after:
        is_right = text == task.after[name].rstrip()
    else:
        is_right = re.fullmatch(task.like[name], text) is not None
    return "" if is_right else f"{name} is not as it should be"


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


async def run_task(task: Task, options: Options, opener: Callable[[Options], Session]) -> Measured:
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


def _options_for(options: Options, folder: Path) -> Options:
    """Return the options of a session in a folder: the person's model and limits, nothing kept, nobody asked."""
    limits = {"agent.max_seconds": LONGEST_SECONDS, **options.overrides}
    return replace(options, folder=folder, overrides={**limits, **_CALM}, loaded=None)


def consent_in(session: Session) -> Confirm:
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

    def __init__(self, session: Session) -> None:
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


_COLUMNS: Final = "{:<15} {:<11} {:<6} {:>7} {:>5} {:>7} {:>7} {:>6} {:>6}  {}"
_HEAD: Final = (
    *("task", "kind", "solved", "seconds", "steps", "in", "cached", "out", "calls"),
    "what is wrong",
)


def bench_tasks(
    options: Options,
    *,
    half: Half | None,
    names: Sequence[str],
    is_json: bool,
    opener: Callable[[Options], Session] = open_session,
) -> int:
    """Measure the model that is chosen; return 0 however well it does. Raises YbsError.

    What was measured is summed up where it is interrupted, too, and where the provider no longer answers. `opener` opens the
    sessions (others in tests).
    """
    tasks = load_tasks(half, names)
    tell(f"{plural(len(tasks), 'task')}, each in a project of its own that is thrown away.")
    rows: list[Measured] = []
    try:
        asyncio.run(_run_all(tasks, options, opener, rows, show=None if is_json else _show))
    except (KeyboardInterrupt, YbsError):
        if rows:
            _sum_up(rows, is_json=is_json)
        raise
    _sum_up(rows, is_json=is_json)
    return 0


def _sum_up(rows: Sequence[Measured], *, is_json: bool) -> None:
    if is_json:
        write_json({**summary(rows), "tasks": rows})
    else:
        write(_total(rows))


async def _run_all(
    tasks: Sequence[Task],
    options: Options,
    opener: Callable[[Options], Session],
    rows: list[Measured],
    show: Callable[[Measured], None] | None,
) -> None:
    """Add a row for each task. A provider that is not there says nothing about the model, so it ends the run."""
    for task in tasks:
        try:
            row = await run_task(task, options, opener)
        except Unanswered as error:
            if error.temporary or not rows:
                raise
            row = error.row
        if show is not None and not rows:
            write(_COLUMNS.format(*_HEAD))
        rows.append(row)
        if show is not None:
            show(row)


def _show(row: Measured) -> None:
    counts = (row.input_tokens, row.cached_tokens, row.output_tokens)
    calls = f"{row.valid_calls}/{row.calls}"
    solved = "yes" if row.is_solved else "no"
    cells = (row.name, row.kind, solved, f"{row.seconds:.1f}", row.steps, *counts, calls)
    write(_COLUMNS.format(*cells, row.problem).rstrip())


def summary(rows: Sequence[Measured]) -> dict[str, Any]:
    """Return the figures of all tasks together; shares are None where there is nothing to share."""
    calls = sum(row.calls for row in rows)
    return {
        "model": next((row.model for row in rows if row.model), ""),
        "count": len(rows),
        "solved": sum(row.is_solved for row in rows),
        "solved_share": _share(sum(row.is_solved for row in rows), len(rows)),
        "median_seconds": round(median(row.seconds for row in rows), 3) if rows else None,
        "input_tokens": sum(row.input_tokens for row in rows),
        "cached_tokens": sum(row.cached_tokens for row in rows),
        "output_tokens": sum(row.output_tokens for row in rows),
        "valid_calls_share": _share(sum(row.valid_calls for row in rows), calls),
        "stopped": sum(row.ended != "done" for row in rows),
    }


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def _total(rows: Sequence[Measured]) -> str:
    found = summary(rows)
    if not rows:
        return "No task was run."
    valid = found["valid_calls_share"]
    said = "no calls" if valid is None else f"{valid:.0%} of the calls valid"
    return (
        f"\n{found['model'] or 'The model'}: {found['solved']} of {found['count']} solved ({found['solved_share']:.0%}), "
        f"median {found['median_seconds']:.1f} s, {said}, {found['stopped']} stopped. Tokens: "
        f"{found['input_tokens']:,} in ({found['cached_tokens']:,} of them cached), {found['output_tokens']:,} out."
    )


def main(words: Sequence[str] | None = None) -> int:
    """Read the arguments, run the tasks, and return ybs's exit code."""
    parser = ArgumentParser(description="Measure a model; all else are options of ybs.")
    parser.add_argument(
        "--half", choices=("tuning", "held"), help="the half for tuning, or the one held back"
    )
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="repeatable")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    own, rest = parser.parse_known_args(words)
    try:
        options = session_options(parse(["--print", *rest, "--", "tasks"]))
        return bench_tasks(options, half=own.half, names=own.only, is_json=own.format == "json")
    except YbsError as error:
        complain(str(error))
        return code_of(error)


if __name__ == "__main__":
    raise SystemExit(main())
