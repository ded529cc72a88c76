"""The files that come with a message: pictures go to the model, all else is saved in the chat's folder and named in the words."""

import asyncio
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Final

from ybs.core.errors import ToolError
from ybs.core.messages import Image
from ybs.frontends.gateway.channel import Channel, ChannelError, Incoming
from ybs.security.unicode import printable
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
