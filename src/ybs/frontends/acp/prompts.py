"""A prompt of the editor as a line of the session: its words, the files that it names, what it brings along, and pictures."""

import re
from base64 import b64decode
from binascii import Error as BadBase64
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from acp.schema import (
    BlobResourceContents,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    TextContentBlock,
)
from msgspec import Struct

from ybs.core.errors import YbsError
from ybs.core.messages import Image
from ybs.session.mentions import mention_of

#: Lines of a file, behind its address: `#L5`, `#L5:10`, `#L5-L10`.
_LINES: Final = re.compile(r"L(\d+)(?:[:-]L?(\d+))?")


class BadPrompt(YbsError):
    """Something in a prompt cannot be used."""


class Prompted(Struct, frozen=True):
    """What a prompt says: `typed` is the person's part of `text`, in which files are looked for; `paths` are those it links to."""

    text: str
    typed: str
    images: tuple[Image, ...] = ()
    paths: tuple[Path, ...] = ()


def prompted(blocks: Sequence[Any]) -> Prompted:
    """Return what the blocks of a prompt say. Raises BadPrompt."""
    typed, brought = list[str](), list[str]()
    images, paths = list[Image](), list[Path]()
    for block in blocks:
        match block:
            case TextContentBlock(text=text):
                typed.append(text)
            case ImageContentBlock(data=data):
                images.append(_picture(data))
            case ResourceContentBlock(uri=uri, name=name):
                typed.append(_link(uri, name, paths))
            case EmbeddedResourceContentBlock(resource=BlobResourceContents() as held):
                images.append(_picture(held.blob, _name(held.uri)))
            case EmbeddedResourceContentBlock(resource=held):
                typed.append(_name(held.uri))
                brought.append(f"\n\n[{_name(held.uri)}]\n{held.text}")
            case _:
                raise BadPrompt("A prompt may hold text, links, resources and pictures.")
    words = "".join(typed)
    return Prompted(words + "".join(brought), words, tuple(images), tuple(paths))


def _picture(text: str, shown: str = "The picture") -> Image:
    from ybs.tools.reading.images import image_of, media_type_of  # few prompts have any

    try:
        data = b64decode(text, validate=True)
    except (BadBase64, ValueError):
        raise BadPrompt(f"{shown} is not base64.") from None
    if not (kind := media_type_of(data)):
        raise BadPrompt(f"{shown[:200]} is not a PNG, JPEG, GIF or WebP picture.")
    return image_of(data, len(data), kind, shown[:200])[0]


def _link(uri: str, name: str, paths: list[Path]) -> str:
    """Return how the words name what a link leads to: a file is attached by ybs, under its own rules."""
    if (path := path_of(uri)) is None:
        return f"{name} ({uri})"
    paths.append(path)
    lines = _LINES.fullmatch(urlsplit(uri).fragment)
    return mention_of(str(path)) + (f":{lines[1]}-{lines[2] or lines[1]}" if lines else "")


def path_of(uri: str) -> Path | None:
    """Return the file that an address names; None for any other address."""
    parts = urlsplit(uri)
    return Path(unquote(parts.path)) if parts.scheme == "file" and parts.path else None


def _name(uri: str) -> str:
    path = path_of(uri)
    fragment = urlsplit(uri).fragment
    return uri if path is None else f"{path}{f'#{fragment}' if fragment else ''}"
