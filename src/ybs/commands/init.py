"""The command /init: a first AGENTS.md from what the project's own files and its map show."""

import asyncio
from typing import TYPE_CHECKING

from ybs.core.errors import ToolError
from ybs.core.wording import listed, plural
from ybs.session.reply import Reply
from ybs.session.session import Session

if TYPE_CHECKING:
    from ybs.context.detect import Project

NAME = "AGENTS.md"
#: Files that say the same; with one of them there is nothing to write.
_SAME = ("agents.md", "claude.md")
USAGE = "Usage: /init writes a first AGENTS.md, /init show only shows it"
_MOST_FILES, _SECONDS = 50_000, 5.0


async def init(session: Session, argument: str) -> Reply:
    """Write a first AGENTS.md. One that is there is the person's work: it is never touched."""
    if argument.lower() not in ("", "show"):
        return Reply(text=USAGE, is_error=True)
    if argument:
        return Reply(text=(await _text(session))[0].rstrip())
    if name := await asyncio.to_thread(_there, session):
        text = f"{name} exists already, and /init does not overwrite it. /init show shows what it would write."
        return Reply(text=text, is_error=True)
    return await session.running.working(_write(session), f"{NAME} is being written.")


async def _write(session: Session) -> Reply:
    text, project = await _text(session)
    if session.environment.permissions.is_dry_run:
        return Reply(text=f"{NAME} was not written, because this is a dry run.")
    await _make(session, text)
    lines = [
        f"Wrote {NAME}, {plural(text.count(chr(10)), 'line')}: {_found(project)}.",
        "Read it through and add your own rules under Rules. To undo this, delete the file.",
        "It applies from the next session on; /new starts one.",
    ]
    return Reply(text="\n".join(lines))


def _found(project: "Project") -> str:
    kinds = [kind.label for part in project.parts for kind in part.kinds]
    return listed(dict.fromkeys(kinds)) if kinds else "no known kind of project was found"


async def _text(session: Session) -> "tuple[str, Project]":
    from ybs.context.conventions import conventions
    from ybs.context.detect import detect
    from ybs.context.first_agents import first_agents_file

    folder = session.folder
    project = await asyncio.to_thread(detect, folder)
    try:
        map_text = await session.context.map_text("")
    except ToolError:  # no map: the rest can be told without it
        map_text = ""
    files = await asyncio.to_thread(_files, session)
    style = await asyncio.to_thread(conventions, folder)
    text = first_agents_file(project, map_text, project.name, files=files, conventions=style)
    return text, project


def _files(session: Session) -> list[str]:
    from ybs.tools.searching.walk import Deadline, Walk

    deadline = Deadline(_SECONDS)
    walk = Walk(session.environment.roots, session.folder, deadline=deadline)
    return [entry.path for entry in walk.files(_MOST_FILES)]


def _there(session: Session) -> str:
    """Return the name of the file that says already what AGENTS.md is for; "" where there is none."""
    names = sorted(path.name for path in session.folder.iterdir())
    return next((name for name in names if name.lower() in _SAME), "")


async def _make(session: Session, text: str) -> None:
    """Write the file as write_file does, unless there is one by now. Raises ToolError."""
    from ybs.tools.builtin.write_file import Arguments, WriteFile
    from ybs.tools.editing.changes import FileEdit

    class WriteNew(WriteFile):
        def change(self, arguments: Arguments) -> FileEdit:
            change = super().change(arguments)
            if change.before is not None:
                raise ToolError(f"{NAME} exists already; nothing was written")
            return change

    await WriteNew(session.environment.workspace).run(
        Arguments(path=NAME, content=text), lambda _: None
    )
