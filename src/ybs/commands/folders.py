"""The command /add-dir: one more folder to work in, for the rest of the session."""

import asyncio
from pathlib import Path

from ybs.core.errors import Refused
from ybs.session.reply import Reply, Table
from ybs.session.session import Session


async def add_dir(session: Session, argument: str) -> Reply:
    """Let tools and commands work in one more folder, or list the folders."""
    if not argument:
        return Reply(tables=(folders_table(session),))
    return await asyncio.to_thread(_add, session, argument)


def folders_table(session: Session) -> Table:
    """List the folders that tools work in, and what they may read besides."""
    roots, short = session.environment.roots, session.host.short
    rows = [("works in", short(str(folder))) for folder in roots.folders]
    rows += [("may read", short(str(path))) for path in roots.reading]
    return Table.of(rows)


def _add(session: Session, argument: str) -> Reply:
    roots, short = session.environment.roots, session.host.short
    try:
        folder = session.host.expand(argument.strip("\"'"), session.folder).resolve()
    except (ValueError, RuntimeError):  # no name of a folder, or links in a circle
        return Reply(text=f"{argument} is not a folder.", is_error=True)
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        return Reply(text=f"{short(str(folder))} {what}.", is_error=True)
    if roots.is_blocked(str(folder)):
        text = (
            f"{short(str(folder))} cannot be added: keys, passwords or ybs's own files are there."
        )
        return Reply(text=text, is_error=True)
    if roots.holds(folder):
        return Reply(text=f"ybs works in {short(str(folder))} already.")
    roots.add(folder)
    session.host.work_in(folder)
    session.context.tell(f"The person lets you read and change files in {folder} from now on.")
    text = f"ybs works in {short(str(folder))} too, until this session ends."
    return Reply(
        text=text,
        notes=(*session.environment.secure_code([folder]), *_commands_there(session, folder)),
    )


def _commands_there(session: Session, folder: Path) -> tuple[str, ...]:
    """Open the folder for commands; say so where that cannot be done."""
    try:
        session.environment.sandbox.add_folder(folder)
    except Refused as error:
        return (f"Commands in the sandbox cannot write there: {error}",)
    return ()
