"""Approved tools of MCP servers. A tool that is new or has changed is not used until it is approved.

The pins are also why tools can be offered before their server runs.
"""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from ybs.config import private_file
from ybs.core.decoding import from_json
from ybs.core.errors import ConfigError
from ybs.tools.mcp.listed import ListedTool, ServerOffer
from ybs.tools.mcp.settings import Server

_MOST_BYTES = 32_000_000


class Pinned(Struct, frozen=True, kw_only=True):
    """What is known of a server. `identity` stands for what it is: another command or address makes another server of it.

    `withdrawn` are tools that it no longer lists: one that comes back has to be as it was approved.
    """

    identity: str
    offer: ServerOffer
    withdrawn: tuple[ListedTool, ...] = ()


class ReviewedTools(Struct, frozen=True):
    """The tools of a server that may be used, and those that wait for approval: as approved (None: new), and as they are."""

    usable: tuple[ListedTool, ...]
    changed: tuple[tuple[ListedTool | None, ListedTool], ...] = ()


class _Kept(Struct, frozen=True, kw_only=True):
    version: Literal[1] = 1
    servers: dict[str, Pinned] = {}


class Pins:
    """A file of ybs's state. Without a path, or where nothing may be written, what is new is kept in memory.

    `folder` is the project: its servers are not those of another one.
    """

    def __init__(self, file: Path | None, folder: Path, *, may_write: bool = True) -> None:
        self._file, self._folder, self._may_write = file, folder, may_write
        self._kept: dict[str, Pinned] | None = None
        self._problem = ""  # why the file cannot be read

    def of(self, server: Server) -> Pinned | None:
        """Return what is known of a server, if it still is the one that it was."""
        return self._read().get(self._name(server))

    def judge(self, server: Server, tools: Sequence[ListedTool]) -> ReviewedTools:
        """Compare what a server says now with what was approved. Of a server that was never seen all is approved; where the file cannot be read, nothing."""
        known = self.of(server)
        if known is None:
            new = tuple((None, tool) for tool in tools)
            return ReviewedTools((), new) if self._problem else ReviewedTools(tuple(tools))
        approved = {tool.name: tool for tool in (*known.withdrawn, *known.offer.tools)}
        usable, changed = list[ListedTool](), list[tuple[ListedTool | None, ListedTool]]()
        for tool in tools:
            old = approved.get(tool.name)
            if old is not None and old.digest == tool.digest:
                usable.append(old)
            else:
                changed.append((old, tool))
        return ReviewedTools(tuple(usable), tuple(changed))

    def approve(self, server: Server, offer: ServerOffer) -> None:
        """Keep what a server offers as what it may offer. Raises ConfigError, also where the file cannot be read, and OSError."""
        if (known := self.of(server)) is not None and known.offer == offer:
            return
        self._look_again()
        known, names = self.of(server), {tool.name for tool in offer.tools}
        if self._problem:
            raise ConfigError(self._problem)
        before = () if known is None else (*known.withdrawn, *known.offer.tools)
        withdrawn = {tool.name: tool for tool in before if tool.name not in names}
        pinned = Pinned(
            identity=identity_of(server), offer=offer, withdrawn=tuple(withdrawn.values())
        )
        self._write({**self._read(), self._name(server): pinned})

    def forget(self, server: Server) -> None:
        """Forget a server. Raises ConfigError and OSError."""
        self._look_again()
        kept = dict(self._read())
        if kept.pop(self._name(server), None) is not None:
            self._write(kept)

    def _look_again(self) -> None:
        """Read the file anew: another ybs may have written it meanwhile."""
        if self._file is not None and self._may_write:
            self._kept = None

    def _write(self, kept: dict[str, Pinned]) -> None:
        self._kept = kept
        if self._file is not None and self._may_write:
            data = msgspec.json.encode(_Kept(servers=kept))
            if len(data) > _MOST_BYTES:  # nobody could read it again, and every server would be new
                raise ConfigError(f"{self._file} would become larger than {_MOST_BYTES:,} bytes")
            private_file.replace(self._file, data, waits=False)

    def _name(self, server: Server) -> str:
        of = f"{server.name}@{self._folder}" if server.is_projects else server.name
        return f"{of} {identity_of(server)}"  # what a profile says beside it is another

    def _read(self) -> dict[str, Pinned]:
        if self._kept is None:
            servers, problem = dict[str, Pinned](), ""
            try:
                data = self._file and private_file.read(self._file, most_bytes=_MOST_BYTES)
                servers = from_json(data, _Kept).servers if data else {}
            except (OSError, ConfigError, msgspec.DecodeError, UnicodeDecodeError) as error:
                problem = f"{self._file}, which says what was approved, cannot be read: {error}. Delete it, and approve anew what you want."
            self._problem, self._kept = problem, servers
        return self._kept


def identity_of(server: Server) -> str:
    """Return what stands for what a server is: its command or address, without what it is given."""
    said = msgspec.json.encode([server.command, server.args, server.url])
    return sha256(said).hexdigest()[:32]
