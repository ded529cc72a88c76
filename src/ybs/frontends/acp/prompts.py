"""A prompt of the editor as a line of the session: its words, the files that it names, what it brings along, and pictures."""

import re
from base64 import b64decode
from binascii import Error as BadBase64
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
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
from ybs.security.paths.names import shown_name
from ybs.session.mentions import mention_of

#: Lines of a file, behind its address: `#L5`, `#L5:10`, `#L5-L10`.
_LINES: Final = re.compile(r"L(\d+)(?:[:-]L?(\d+))?")


class BadPrompt(YbsError):
    """Something in a prompt cannot be used."""


class Prompted(Struct, frozen=True):
    """What a prompt says: `text` is all of it, `typed` what the person wrote and the files that they link to, which are `paths`.

    Others may have named what a link leads to, and wrote what a resource holds: no command and no `@path` in that counts.
    """

    text: str
    typed: str
    images: tuple[Image, ...] = ()
    paths: tuple[Path, ...] = ()


def prompted(blocks: Sequence[Any]) -> Prompted:
    """Return what the blocks of a prompt say. Raises BadPrompt, and Refused where a name has no place in a command."""
    text, typed, brought = list[str | Path](), list[str | Path](), list[str]()
    images, paths = list[Image](), list[Path]()
    for block in blocks:
        match block:
            case TextContentBlock(text=words):
                typed.append(words)
                text.append(words)
            case ResourceContentBlock(uri=uri) if (path := path_of(uri)) and (
                named := path if _is_command(typed) else _named(path, uri)
            ):
                paths.append(path)
                glued = typed and not str(typed[-1])[-1:].isspace()  # there an @ names nothing
                typed += [" " * bool(glued), named]
                text += typed[-2:]
            case ResourceContentBlock(uri=uri, name=name):
                text.append(f"{name} ({uri})")
            case ImageContentBlock(data=data):
                images.append(_picture(data))
            case EmbeddedResourceContentBlock(resource=BlobResourceContents() as held):
                images.append(_picture(held.blob, _name(held.uri)))
            case EmbeddedResourceContentBlock(resource=held):
                text.append(f"[{_name(held.uri)}]")
                brought.append(f"\n\n[{_name(held.uri)}]\n{held.text}")
            case _:
                raise BadPrompt("A prompt may hold text, links, resources and pictures.")
    said, whole = _lines(typed, text)
    return Prompted("".join([whole, *brought]), said, tuple(images), tuple(paths))


def _lines(typed: list[str | Path], text: list[str | Path]) -> tuple[str, str]:
    """Return what was typed, and all of the text. Raises Refused.

    What others brought into the middle of a command leaves none: its names, quoted for a shell, are not read as words.
    """
    if not _is_command(typed):
        return "".join(map(str, typed)), "".join(map(str, text))
    if text[: len(typed)] != typed:
        return "", "".join(quote(str(each)) if isinstance(each, Path) else each for each in text)
    said = _command(typed)
    return said, "".join([said, *map(str, text[len(typed) :])])


def _is_command(typed: Sequence[str | Path]) -> bool:
    return "".join(map(str, typed)).startswith("!")


def _command(typed: Sequence[str | Path]) -> str:
    """Return the person's command with each file in it as one word, wherever it stands. Raises Refused."""
    from ybs.commands.filling import Value, filled  # few prompts are commands

    first, *rest = [Value(str(each)) if isinstance(each, Path) else each for each in typed if each]
    return "!" + filled([str(first)[1:], *rest])


def _picture(text: str, shown: str = "The picture") -> Image:
    from ybs.tools.reading.images import image_of, media_type_of  # few prompts have any

    try:
        data = b64decode(text, validate=True)
    except (BadBase64, ValueError):
        raise BadPrompt(f"{shown} is not base64.") from None
    if not (kind := media_type_of(data)):
        raise BadPrompt(f"{shown[:200]} is not a PNG, JPEG, GIF or WebP picture.")
    return image_of(data, len(data), kind, shown[:200])[0]


def _named(path: Path, uri: str) -> str:
    """Return how words name the file that a link leads to: it is attached by ybs, under its own rules.

    Nothing where its name would be read as something else than this file: others may have chosen it.
    """
    found = _LINES.fullmatch(urlsplit(uri).fragment)
    lines = f":{found[1]}-{found[2] or found[1]}" if found else ""
    mention = mention_of(shown_name(str(path)))
    return mention and mention + lines


def path_of(uri: str) -> Path | None:
    """Return the file that an address names; None for any other address."""
    parts = urlsplit(uri)
    return Path(unquote(parts.path)) if parts.scheme == "file" and parts.path else None


def _name(uri: str) -> str:
    path = path_of(uri)
    fragment = urlsplit(uri).fragment
    return uri if path is None else f"{path}{f'#{fragment}' if fragment else ''}"
