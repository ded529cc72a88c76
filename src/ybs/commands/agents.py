"""/agents: the sub-agents of the session, what one of them does, and how it is stopped."""

from collections.abc import Iterator, Sequence
from time import monotonic
from typing import TYPE_CHECKING

from msgspec import Struct

from ybs.core.envelope import MAIN
from ybs.core.wording import first_words, plural
from ybs.session.reply import Column, Reply, Row, Table
from ybs.session.session import Session

if TYPE_CHECKING:
    from ybs.conductor.budget import Used
    from ybs.conductor.conductor import Conductor
    from ybs.conductor.result import Progress

_COLUMNS = (
    Column(),
    Column("count", "steps"),
    Column("tokens", "tokens"),
    Column("seconds", "time"),
    Column("words"),
)
_NONE = "No sub-agent has worked in this session. The model starts them with the tool delegate: ask it to."
_LONGEST_TASK, _LONGEST_STATE = 60, 80
#: So many of an agent's calls are listed, the last ones.
MOST_CALLS = 40


class Shown(Struct, kw_only=True):
    """A sub-agent as it is listed. `state` is what it does now, or how it ended."""

    name: str
    task: str
    state: str
    used: "Used"
    seconds: float
    calls: Sequence[str]
    text: str
    is_working: bool = False


def agent_names(session: Session) -> Sequence[str]:
    """Return what may stand behind /agents."""
    working = [each.name for each in _all(session) if each.is_working]
    return [*(f"stop {name}" for name in working), *(each.name for each in _all(session))]


async def show_agents(session: Session, argument: str) -> Reply:
    """List the sub-agents, show what one has done, or stop one or all."""
    word, _, rest = argument.partition(" ")
    if word.lower() == "stop":
        return _stopped(session, rest.strip())
    every = _all(session)
    if argument:
        found = next((each for each in every if each.name == argument), None)
        return _about(found) if found is not None else _unknown(argument)
    if not every:
        return Reply(text=_NONE)
    is_working = any(each.is_working for each in every)
    notes = ["/agents NAME shows what one has done."]
    notes += ["/agents stop NAME stops one, /agents stop all of them."] * is_working
    return Reply(tables=(Table(_COLUMNS, tuple(map(_row, every))),), notes=tuple(notes))


def _row(each: Shown) -> Row:
    figures = (each.used.steps, each.used.tokens, each.seconds)
    about = f"{first_words(each.state, _LONGEST_STATE)} · {first_words(each.task, _LONGEST_TASK)}"
    return Row((each.name, *figures, about))


def _about(each: Shown) -> Reply:
    figures = (
        f"{plural(each.used.steps, 'step')}, {each.used.tokens:,} tokens, {each.seconds:.1f} s"
    )
    lines = [f"{each.name}: {each.state} ({figures})", f"Task: {each.task}"]
    if left_out := len(each.calls) - MOST_CALLS:
        lines += [f"{plural(left_out, 'call')} before these:"] if left_out > 0 else []
    lines += [f"  {call}" for call in each.calls[-MOST_CALLS:]]
    if each.text:
        lines += ["", each.text]
    return Reply(text="\n".join(lines))


def _stopped(session: Session, name: str) -> Reply:
    conductor = session.delegating.conductor
    count = conductor.stop(name) if conductor is not None else 0
    if not count:
        what = f"There is no sub-agent {name!r} that works." if name else "No sub-agent works."
        return Reply(text=f"{what} /agents lists them.", is_error=True)
    return Reply(
        text=f"Stopped {name or plural(count, 'sub-agent')}. What is done so far is the result."
    )


def _unknown(name: str) -> Reply:
    return Reply(text=f"There is no sub-agent {name!r}. /agents lists them.", is_error=True)


def _all(session: Session) -> list[Shown]:
    conductor = session.delegating.conductor
    return [*_earlier(session), *(_now(conductor) if conductor is not None else ())]


def _now(conductor: "Conductor") -> Iterator[Shown]:
    """Yield those that have ended, and those that work."""
    for report in conductor.reports:
        yield Shown(
            name=report.name,
            task=report.task,
            state=f"not done: {report.problem}" if report.problem else "done",
            used=report.used,
            seconds=report.seconds,
            calls=report.calls,
            text=report.text,
        )
    ended = {report.name for report in conductor.reports}
    for agent in conductor.working.values():
        if agent.name not in ended:
            yield Shown(
                name=agent.name,
                task=agent.task.task,
                state=agent.progress.doing,
                used=agent.used,
                seconds=monotonic() - agent.started_at,
                calls=agent.progress.calls,
                text=agent.progress.said,
                is_working=True,
            )


def _earlier(session: Session) -> Iterator[Shown]:
    """Yield those that worked before this session was taken up again."""
    from ybs.conductor.result import Progress  # few sessions have any

    found: dict[str, Progress] = {}
    for told in session.journal.earlier:
        if told.agent != MAIN:
            found.setdefault(told.agent, Progress()).add(told.event)
    for name, progress in found.items():
        yield Shown(
            name=name,
            task=progress.task,
            state=_end_of(progress),
            used=progress.used,
            seconds=progress.end.duration_seconds if progress.end else 0.0,
            calls=progress.calls,
            text=progress.said,
        )


def _end_of(progress: "Progress") -> str:
    end = progress.end
    if end is None:
        return "not done: ybs ended before it did"
    return "done" if end.reason == "done" else f"not done: {end.message or end.reason}"
