"""The command that downloads a model: into ybs's folder, or into Ollama where that is in use."""

import asyncio
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ybs.commands.models import switch
from ybs.config.host import Host
from ybs.config.schema import Config
from ybs.core.errors import ConfigError
from ybs.core.events import Noticed
from ybs.providers.registry import chosen_name, chosen_provider, client_of
from ybs.session.reply import Menu, MenuItem, Reply
from ybs.session.session import Session

if TYPE_CHECKING:
    from ybs.providers.local.hardware import Machine

#: Progress is said each time another this many percent are there.
STEP_PERCENT = 10


def pulls(host: Host, config: Config, name: str, provider: str | None = None) -> bool:
    """Return whether a name is one that the Ollama in use is to download, and not a file for ybs's own server."""
    provider = provider or chosen_name(config)
    if not name or not provider or "://" in name or name.partition("#")[0].endswith(".gguf"):
        return False
    try:
        return chosen_provider(host, config, provider).wire == "ollama"
    except ConfigError:  # such as a model that a program handed in
        return False


async def download(session: Session, argument: str) -> Reply:
    """Offer the models that fit this machine, or download one and use it."""
    from ybs.providers.local import hub
    from ybs.providers.local.program import this_machine

    host, config, used = session.host, session.config, session.agent.provider
    progress = _Progress(session)
    if pulls(host, config, argument, used):
        from ybs.providers.wire.ollama import PATIENCE, pull

        server = chosen_provider(host, config, used)
        await pull(client_of(host, server, config, argument, patience=PATIENCE), argument, progress)
        return await switch(session, provider=None, model=argument)
    machine = await asyncio.to_thread(this_machine, host, config.local.server)
    if not argument:
        return _offer(machine)
    source = hub.find_source(host, argument, config.local.hub, machine)
    found = None if await hub.is_there(source) else await hub.install(source, progress)
    reply = await switch(session, provider="llamacpp", model=source.name)
    if found is None or found.is_checked:
        return reply
    return replace(reply, text=f"{reply.text}\n{unchecked(found.sha256)}")


def unchecked(sha256: str) -> str:
    """Return a text that says that nobody stated the checksum of a file, and which one it has."""
    return f"Nobody named its checksum before. Its SHA-256 is {sha256}"


def _offer(machine: "Machine") -> Reply:
    from ybs.providers.local import hub

    items = tuple(
        MenuItem(
            f"/download {each.full_name}",
            each.full_name,
            f"{each.shape.file_bytes / 1e9:.1f} GB; {reason}",
        )
        for each, reason in hub.fitting(machine)
    )
    title = f"Models for this machine ({machine.words})"
    hint = "/download OWNER/REPOSITORY/FILE.gguf takes any other file of the hub (local.hub)."
    return Reply(menu=Menu(title, items), notes=(hint,))


class _Progress:
    """Says now and then how far a download is."""

    def __init__(self, session: Session) -> None:
        self._session, self._said = session, ""

    def __call__(self, done: int, total: int, what: str) -> None:
        """Take a step."""
        percent = 100 * done // max(1, total) // STEP_PERCENT * STEP_PERCENT
        text = f"{what}: {percent}% of {total / 1e9:.1f} GB" if what == "fetching" else what
        if text != self._said:
            self._said = text
            self._session.emit(Noticed(level="info", text=text))
