"""Files of chats: those that come with a message, and the tool `send_file`, which sends one of the project to the chat.

Pictures that come go to the model; all else is saved in the chat's folder and named in the words. The person is asked each time one is sent.
"""

import asyncio
import hashlib
import os
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final

from msgspec import Meta, Raw, Struct

from ybs.core.errors import ToolError
from ybs.core.messages import Image
from ybs.core.ports import Effect, Preview, ToolOutput
from ybs.core.schema import schema_of
from ybs.core.threads import in_thread
from ybs.frontends.gateway.channel import Channel, ChannelError, Incoming, OutgoingFile
from ybs.security.paths.roots import Roots
from ybs.security.unicode import printable
from ybs.tools.reading.files import read_bytes
from ybs.tools.reading.images import image_of, media_type_of

#: Where files are saved. What agents read of their own accord, such as AGENTS.md, lies elsewhere.
FOLDER: Final = "received"
MOST_FILES: Final = 10
#: One file may have so many bytes, and all of a message together; more of a file than this is never fetched.
MOST_BYTES: Final = 20_000_000
MOST_BYTES_IN_ALL: Final = 50_000_000
_UNSAFE: Final = re.compile(r"[^\w.-]+")
_LONGEST_NAME: Final = 80
_MOST_OF_ONE_NAME: Final = 100
_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_LINK: Final = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


async def prepared(
    incoming: Incoming, channel: Channel, folder: Path
) -> tuple[str, tuple[Image, ...]]:
    """Return the words of a message with what came of its files, and its pictures. What could not be taken stands in the words too."""
    notes, images, left = list[str](), list[Image](), MOST_BYTES_IN_ALL
    prefix = safe_name(incoming.message)
    for number, file in enumerate(incoming.files):
        shown = safe_name(file.name)
        if number >= MOST_FILES:
            notes.append(
                f"{len(incoming.files) - number} more files were not taken: {MOST_FILES} at most"
            )
            break
        try:
            data = await channel.fetch(file, min(MOST_BYTES, left))
        except ChannelError as error:
            notes.append(
                f"a file {shown} could not be taken: {' '.join(printable(str(error)).split())}"
            )
            continue
        left -= len(data)
        if (kind := media_type_of(data)) and (image := _image(data, kind, shown)):
            images.append(image)
            continue
        try:
            name = await asyncio.to_thread(saved, folder, f"{prefix}-{shown}", data)
            notes.append(
                f"a file came with this message and is saved as {name} ({len(data):,} bytes)"
            )
        except OSError as error:
            notes.append(f"a file {shown} could not be saved: {error.strerror}")
    words = "\n\n".join(filter(None, (incoming.text, "\n".join(f"[{each}]" for each in notes))))
    return words, tuple(images)


def _image(data: bytes, kind: str, shown: str) -> Image | None:
    with suppress(ToolError):  # too large for a model, or damaged: it is a file like any other
        return image_of(data, len(data), kind, shown)[0]
    return None


def safe_name(name: str) -> str:
    """Return a name that leads nowhere else, is not hidden, and says nothing but itself."""
    base, dot, ending = name.rpartition("/")[2].rpartition(".")
    safe = _UNSAFE.sub("-", base if base else ending).strip("-.")[:_LONGEST_NAME] or "file"
    ending = _UNSAFE.sub("", ending)[:10]
    return f"{safe}.{ending}" if base and dot and ending else safe


def saved(folder: Path, name: str, data: bytes) -> str:
    """Save a file in a folder where a model may have left links, and return its path in it. Nothing is overwritten.

    The same content under the same name is saved once. Raises OSError.
    """
    top = os.open(folder, _FOLDER_FLAGS)
    try:
        with suppress(FileExistsError):
            os.mkdir(FOLDER, 0o700, dir_fd=top)
        inner = os.open(FOLDER, _FOLDER_FLAGS, dir_fd=top)
    finally:
        os.close(top)
    try:
        for number in range(1, _MOST_OF_ONE_NAME):
            tried = name if number == 1 else f"{number}-{name}"
            if _is_saved(inner, tried, data):
                return f"{FOLDER}/{tried}"
    finally:
        os.close(inner)
    raise OSError(0, f"there are too many files called {name}")


def _is_saved(folder: int, name: str, data: bytes) -> bool:
    """Write a file, unless the name is taken by another content."""
    try:
        handle = os.open(
            name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK, 0o600, dir_fd=folder
        )
    except FileExistsError:
        try:
            handle = os.open(name, os.O_RDONLY | _NO_LINK, dir_fd=folder)
        except OSError:  # a link
            return False
        with open(handle, "rb") as file:  # noqa: PTH123 - opened by descriptor
            return file.read(len(data) + 1) == data
    with open(handle, "wb") as file:  # noqa: PTH123 - opened by descriptor
        file.write(data)
    return True


# To the chat


class _Arguments(Struct, frozen=True, kw_only=True):
    """What send_file takes."""

    path: Annotated[str, Meta(description="the file, as read_file takes it")]


class SendFile:
    """Sends a file. `roots` are those of the session; `send` takes the file and an id that is the same for the same content."""

    name = "send_file"
    effect: Effect = "execute"  # it leaves the machine
    description = (
        "Send a file of the project to the chat, as an attachment, when the person asks for it."
    )
    arguments: ClassVar[type[Struct]] = _Arguments

    def __init__(
        self,
        roots: Callable[[], Roots],
        most_bytes: int,
        send: Callable[[OutgoingFile, str], Awaitable[None]],
    ) -> None:
        self._roots, self._most_bytes, self._send = roots, most_bytes, send
        self._shown: dict[_Arguments, object] = {}

    @property
    def parameters(self) -> Raw:
        """The JSON Schema of its arguments."""
        return schema_of(_Arguments)

    def preview(self, arguments: _Arguments) -> Preview:
        """Name the file."""
        path = self._roots().resolve(arguments.path)
        self._shown[arguments] = _mark(path)
        return Preview(title=f"Send {self._roots().show(path)} to the chat", paths=(str(path),))

    async def run(self, arguments: _Arguments, print_live: Any) -> ToolOutput:
        """Hand the file to the chat. Raises ToolError for one that cannot be read, is too large, or is another one than was asked about."""
        del print_live
        roots = self._roots()
        path = roots.resolve(arguments.path)
        shown = self._shown.pop(arguments, None) or _mark(path)
        data = await in_thread(lambda: _content(roots, path))
        if shown != _mark(path):
            changed = f"{roots.show(path)} changed in the meantime"
            raise ToolError(f"{changed}; it was not sent. Look at it again.")
        if not 0 < len(data) <= self._most_bytes:
            most = f"{self._most_bytes / 1_000_000:.0f} MB"
            raise ToolError(
                f"{roots.show(path)} is empty, or larger than the {most} that may be sent"
            )
        digest = hashlib.sha256(data).hexdigest()[:16]
        await self._send(OutgoingFile(name=path.name, data=data), digest)
        return ToolOutput(output=f"{roots.show(path)} is on its way to the chat.", summary="sent")


def _mark(path: Path) -> object:
    """Return what says that a path is the same file in the same state; None where there is none."""
    with suppress(OSError):
        status = path.lstat()
        return path, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
    return None


def _content(roots: Roots, path: Path) -> bytes:
    with roots.held(path) as place:
        return read_bytes(place, roots.show(path))[0]
