"""The command /skill: lists the skills, and sends the instructions of one to the model."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ybs.commands.command import Owner, Run, SlashCommand
from ybs.core.errors import ToolError
from ybs.core.messages import UserMessage
from ybs.core.wording import plural
from ybs.session.reply import Reply, Table
from ybs.session.session import Session

if TYPE_CHECKING:
    from ybs.tools.builtin.delegate import Task

_MOST_DESCRIBED = 100
NONE = (
    "There are no skills. A skill is a folder with a SKILL.md in ~/.config/ybs/skills, or in the .agents/skills of a project that you trust; "
    "`ybs skills new NAME` makes one."
)


async def use_skill(session: Session, argument: str) -> Reply:
    """List the skills, or send the instructions of one to the model, with the words behind its name."""
    skills = await asyncio.to_thread(lambda: session.environment.skills)
    name, _, words = argument.partition(" ")
    if not name:
        return _list(session)
    skill = skills.find(name)
    if skill is None:
        known = ", ".join(skills.by_name) or "none"
        raise ToolError(f"There is no skill {name!r}. There are: {known}")
    most = 2 * session.environment.workspace.max_output_chars  # it was asked for on purpose
    text = await asyncio.to_thread(skill.instructions, words.strip(), most_chars=most)
    if not skill.in_project:
        session.environment.open_skill(skill.opened)
    if skill.fork is not None:
        from ybs.tools.builtin.delegate import task_of  # few ask for it

        task = task_of(text, skill.fork, is_own=skill.is_own)
        return Reply(shared=forked(session, f"/{skill.name} {words}".strip(), task))
    return Reply(shared=UserMessage.of(text))


def forked(session: Session, line: str, task: "Task") -> UserMessage:
    """Have a sub-agent do a task in the turn that begins with the message that is returned: the model reads the line, and what came of it."""
    session.parts.main.delegating.order(line, task)
    return UserMessage.of(line)


def _list(session: Session) -> Reply:
    from ybs.core.cutting import shortened

    skills = session.environment.skills
    rows = Table.of(
        (skill.name, shortened(skill.description, _MOST_DESCRIBED), session.host.short(skill.place))
        for skill in skills.by_name.values()
    )
    count = len(skills.unusable)
    why = f"{plural(count, 'skill')} cannot be used: `ybs skills check` says why."
    notes = (why,) if count else ()
    return Reply(tables=(rows,), notes=notes) if skills.by_name else Reply(text=NONE, notes=notes)


def skill_names(session: Session) -> Sequence[str]:
    """Return the names that may stand behind /skill."""
    return [*session.environment.skills.by_name] if session.environment.has_skills() else []


def skill_commands(session: Session) -> Iterator[SlashCommand]:
    """Yield a command for each skill that the person may use, with all its names."""
    if not session.environment.has_skills():
        return
    for skill in session.environment.skills.usable:
        short = skill.name.rpartition(":")[2]
        yield SlashCommand(
            names=tuple(dict.fromkeys((short, skill.name))),
            arguments=skill.hint or "[WORDS]",
            summary=skill.description,
            run=_using(skill.name),
            waits=True,
            owner=Owner.PROJECT
            if skill.in_project
            else Owner.PLUGIN
            if skill.plugin
            else Owner.PERSON,
        )


def _using(name: str) -> Run:
    async def run(session: Session, argument: str) -> Reply:
        return await use_skill(session, f"{name} {argument}".strip())

    return run
