"""A prompt of the editor as a line of the session: its words, the files that it names, what it brings along, and pictures."""

import re
from base64 import b64decode
from binascii import Error as BadBase64
from collections.abc import Sequence
from itertools import pairwise
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
from ybs.security.paths.names import shown_name
from ybs.session.mentions import mention_of, named_in, paths_in

#: Lines of a file, behind its address: `#L5`, `#L5:10`, `#L5-L10`.
_LINES: Final = re.compile(r"L(\d+)(?:[:-]L?(\d+))?")


class BadPrompt(YbsError):
    """Something in a prompt cannot be used."""


class Prompted(Struct, frozen=True):
    """What a prompt says: `text` is all of it, `typed` its texts and the files that the person links to, which are `paths`.

    Others may have named what a link leads to, and wrote what a resource holds: no command and no `@path` in that counts. A text may be
    theirs, too: editors send what was pasted or selected, and a project's AGENTS.md. So of files outside only `linked`, how the links are
    written, are sure to be meant, and of several texts none is a command (`is_joined`), but where a person may have typed them
    around a link.
    """

    text: str
    typed: str
    images: tuple[Image, ...] = ()
    paths: tuple[Path, ...] = ()
    linked: tuple[str, ...] = ()
    is_joined: bool = False


def prompted(blocks: Sequence[Any]) -> Prompted:
    """Return what the blocks of a prompt say. Raises BadPrompt."""
    text, typed, brought = list[str](), list[str](), list[str]()
    images, paths, linked = list[Image](), list[Path](), set[str]()
    for block in blocks:
        match block:
            case TextContentBlock(text=words):
                typed.append(words)
                text.append(words)
            case ResourceContentBlock(uri=uri) if named := _named(uri, "".join(typed)):
                paths.append(path_of(uri) or Path())
                glued = typed and not typed[-1][-1:].isspace()  # behind a word an @ names nothing
                typed.append(" " * bool(glued) + named)
                text.append(typed[-1])
                linked |= paths_in(named_in(named))
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
    whole, said = "".join(text + brought), "".join(typed)
    is_joined = _is_joined(blocks)
    # Where it is no command after all, names that are quoted for a shell are not read as words.
    is_torn = said.startswith("!") and (is_joined or not whole.startswith(said))
    return Prompted(
        whole, "" if is_torn else said, tuple(images), tuple(paths), tuple(linked), is_joined
    )


def _is_joined(blocks: Sequence[Any]) -> bool:
    """Return whether texts follow each other, or one of several has a line end before a link.

    People type around a link in one line; a document that an editor sends beside their words has lines.
    """
    texts = [
        block.text if isinstance(block, TextContentBlock) else ""
        for block in blocks
        if isinstance(block, ResourceContentBlock)
        or (isinstance(block, TextContentBlock) and block.text.strip())
    ]
    last = max((number for number, text in enumerate(texts) if not text), default=0)
    has_lines = any("\n" in text for text in texts[:last])
    return any(map(all, pairwise(texts))) or (has_lines and sum(map(bool, texts)) > 1)


def _picture(text: str, shown: str = "The picture") -> Image:
    from ybs.tools.reading.images import image_of, media_type_of  # few prompts have any

    try:
        data = b64decode(text, validate=True)
    except (BadBase64, ValueError):
        raise BadPrompt(f"{shown} is not base64.") from None
    if not (kind := media_type_of(data)):
        raise BadPrompt(f"{shown[:200]} is not a PNG, JPEG, GIF or WebP picture.")
    return image_of(data, len(data), kind, shown[:200])[0]


def _named(uri: str, before: str) -> str:
    """Return how words name the file that a link leads to: it is attached by ybs, under its own rules.

    Nothing where it is not a file, or its name would be read as something else than this file: others may have chosen it.
    """
    if (path := path_of(uri)) is None:
        return ""
    if before.startswith("!"):
        from ybs.commands.filling import name_in_line  # few link a file in a shell line

        return name_in_line(str(path), before)
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
