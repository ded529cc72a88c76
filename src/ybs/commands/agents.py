"""/agents: the sub-agents of the session, what one of them does, and how it is stopped."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from ybs.core.cutting import first_words
from ybs.core.envelope import MAIN
from ybs.core.wording import plural
from ybs.session.reply import Column, Reply, Row, Table
from ybs.session.session import Session

if TYPE_CHECKING:
    from ybs.conductor.conductor import Conductor
    from ybs.conductor.result import Progress, Report

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


class Shown(Struct, frozen=True):
    """A sub-agent as it is listed: how far it came, and what it does now; empty where it has ended."""

    report: "Report"
    doing: str = ""

    @property
    def state(self) -> str:
        """What it does now, or how it ended."""
        return self.doing or self.report.state


def agent_names(session: Session) -> Sequence[str]:
    """Return what may stand behind /agents."""
    every = _all(session)
    working = [each.report.name for each in every if each.doing]
    return [*(f"stop {name}" for name in working), *(each.report.name for each in every)]


async def show_agents(session: Session, argument: str) -> Reply:
    """List the sub-agents, show what one has done, or stop one or all."""
    word, _, rest = argument.partition(" ")
    if word.lower() == "stop":
        return _stopped(session, rest.strip())
    every = _all(session)
    if argument:
        found = next((each for each in every if each.report.name == argument), None)
        return _about(found) if found is not None else _unknown(argument)
    if not every:
        return Reply(text=_NONE)
    is_working = any(each.doing for each in every)
    notes = ["/agents NAME shows what one has done."]
    notes += ["/agents stop NAME stops one, /agents stop all of them."] * is_working
    return Reply(tables=(Table(_COLUMNS, tuple(map(_row, every))),), notes=tuple(notes))


def _row(each: Shown) -> Row:
    report = each.report
    figures = (report.used.steps, report.used.tokens, report.seconds)
    about = f"{first_words(each.state, _LONGEST_STATE)} · {first_words(report.task, _LONGEST_TASK)}"
    return Row((report.name, *figures, about))


def _about(each: Shown) -> Reply:
    report = each.report
    figures = f"{plural(report.used.steps, 'step')}, {report.used.tokens:,} tokens, {report.seconds:.1f} s"
    lines = [f"{report.name}: {each.state} ({figures})", f"Task: {report.task}"]
    if (left_out := len(report.calls) - MOST_CALLS) > 0:
        lines += [f"{plural(left_out, 'call')} before these:"]
    lines += [f"  {call}" for call in report.calls[-MOST_CALLS:]]
    if report.text:
        lines += ["", report.text]
    return Reply(text="\n".join(lines))


def _stopped(session: Session, name: str) -> Reply:
    conductor = session.parts.main.delegating.conductor
    count = conductor.stop(name) if conductor is not None else 0
    if not count:
        what = f"There is no sub-agent {name!r} that works." if name else "No sub-agent works."
        return Reply.error(f"{what} /agents lists them.")
    return Reply(
        text=f"Stopped {name or plural(count, 'sub-agent')}. What is done so far is the result."
    )


def _unknown(name: str) -> Reply:
    return Reply.error(f"There is no sub-agent {name!r}. /agents lists them.")


def _all(session: Session) -> list[Shown]:
    conductor = session.parts.main.delegating.conductor
    return [*_earlier(session), *(_now(conductor) if conductor is not None else ())]


def _now(conductor: "Conductor") -> Iterator[Shown]:
    """Yield those that have ended, and those that work."""
    yield from map(Shown, conductor.reports)
    ended = {report.name for report in conductor.reports}
    for agent in conductor.working.values():
        if agent.name not in ended:
            yield Shown(agent.report(), agent.progress.doing)


def _earlier(session: Session) -> Iterator[Shown]:
    """Yield those that worked before this session was taken up again."""
    from ybs.conductor.result import Progress, Report  # few sessions have any

    found: dict[str, Progress] = {}
    for told in session.journal.earlier:
        if told.agent != MAIN:
            found.setdefault(told.agent, Progress()).add(told.event)
    for name, progress in found.items():
        report = Report(
            name=name,
            kind="",
            task=progress.task,
            text=progress.said,
            problem=_problem_of(progress),
            used=progress.spent,
            seconds=progress.end.duration_seconds if progress.end else 0.0,
            calls=tuple(progress.calls),
        )
        yield Shown(report)


def _problem_of(progress: "Progress") -> str:
    end = progress.end
    if end is None:
        return "ybs ended before it did"
    return "" if end.reason == "done" else end.message or end.reason
