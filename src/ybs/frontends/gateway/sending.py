"""The tool `send_file`, which sessions of chats have: it sends a file of the project to the chat. The person is asked each time."""

import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any, ClassVar

from msgspec import Meta, Raw, Struct

from ybs.core.errors import ToolError
from ybs.core.ports import Effect, Preview, ToolOutput
from ybs.core.schema import schema_of
from ybs.core.threads import in_thread
from ybs.frontends.gateway.channel import OutgoingFile
from ybs.security.paths.roots import Roots
from ybs.tools.reading.files import read_bytes


class Arguments(Struct, frozen=True, kw_only=True):
    """What send_file takes."""

    path: Annotated[str, Meta(description="the file, as read_file takes it")]


class SendFile:
    """Sends a file. `roots` are those of the session; `send` takes the file and an id that is the same for the same content."""

    name = "send_file"
    effect: Effect = "execute"  # it leaves the machine
    description = (
        "Send a file of the project to the chat, as an attachment, when the person asks for it."
    )
    arguments: ClassVar[type[Struct]] = Arguments

    def __init__(
        self,
        roots: Callable[[], Roots],
        most_bytes: int,
        send: Callable[[OutgoingFile, str], Awaitable[None]],
    ) -> None:
        self._roots, self._most_bytes, self._send = roots, most_bytes, send

    @property
    def parameters(self) -> Raw:
        """The JSON Schema of its arguments."""
        return schema_of(Arguments)

    def preview(self, arguments: Arguments) -> Preview:
        """Name the file."""
        path = self._roots().resolve(arguments.path)
        return Preview(title=f"Send {self._roots().show(path)} to the chat", paths=(str(path),))

    async def run(self, arguments: Arguments, print_live: Any) -> ToolOutput:
        """Hand the file to the chat. Raises ToolError for one that cannot be read or is too large."""
        del print_live
        roots = self._roots()
        path = roots.resolve(arguments.path)
        data = await in_thread(lambda: _content(roots, path))
        if not 0 < len(data) <= self._most_bytes:
            most = f"{self._most_bytes / 1_000_000:.0f} MB"
            raise ToolError(
                f"{roots.show(path)} is empty, or larger than the {most} that may be sent"
            )
        digest = hashlib.sha256(data).hexdigest()[:16]
        await self._send(OutgoingFile(name=path.name, data=data), digest)
        return ToolOutput(output=f"{roots.show(path)} is on its way to the chat.", summary="sent")


def _content(roots: Roots, path: Path) -> bytes:
    with roots.held(path) as place:
        return read_bytes(place, roots.show(path))[0]
