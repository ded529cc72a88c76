"""What a door shows of a session: where things stand, and how much of the work the person sees."""

from typing import TYPE_CHECKING

from msgspec import Struct

from ybs.config.schema import Mode
from ybs.context.project import branch_of
from ybs.core.messages import Usage

if TYPE_CHECKING:
    from ybs.session.session import Session


class Status(Struct, frozen=True, kw_only=True):
    """What a status line shows. Token counts are the provider's own where it gave any."""

    provider: str
    model: str
    mode: Mode
    sandbox: str
    folder: str
    branch: str
    window: int
    context_tokens: int
    usage: Usage
    #: How many commands run in the background.
    jobs: int = 0
    incognito: bool = False
    #: The names of the context documents that count here.
    documents: tuple[str, ...] = ()


class View(Struct, kw_only=True):
    """What the person sees of the work, which commands change."""

    streams: bool
    is_verbose: bool = False


def status_of(session: "Session", running: Usage) -> Status:
    """Say where things stand; `running` is what the running turn has used."""
    rooms = session.rooms
    return Status(
        provider=rooms.provider,
        model=rooms.model.name,
        mode=session.mode,
        sandbox=rooms.sandbox.word,
        folder=str(rooms.folder),
        branch=branch_of(rooms.folder),
        window=rooms.model.window,
        context_tokens=session.counted_tokens or session.estimated_tokens(),
        usage=session.usage + running,
        jobs=len(rooms.workspace.shells.running_jobs),
        incognito=rooms.incognito.is_on,
        documents=rooms.surroundings.names,
    )
