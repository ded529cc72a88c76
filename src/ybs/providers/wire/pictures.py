"""Pictures on their way to a model: as base64, or as a line of text for a model that sees none."""

from binascii import b2a_base64
from collections.abc import Sequence

from ybs.core.messages import Image, Message, Text, ToolResult


def base64_of(image: Image) -> str:
    """Return the picture's bytes as base64 without line ends."""
    return b2a_base64(image.data, newline=False).decode()


def caption_of(images: Sequence[Image]) -> str:
    """Return the words that stand before the pictures of tool results."""
    return "The picture" + ("s" if len(images) > 1 else "") + " from the tool results above:"


def pictures_before(messages: Sequence[Message], place: int) -> list[Image]:
    """Return the pictures of the tool results that stand right before that place."""
    images: list[Image] = []
    while place and isinstance(result := messages[place - 1], ToolResult):
        images[:0] = result.images
        place -= 1
    return images


def without_pictures(content: Sequence[Text | Image]) -> tuple[Text, ...]:
    """Put a line of text in the place of every picture."""
    return tuple(
        part
        if isinstance(part, Text)
        else Text(text=f"\n[A picture ({part.media_type}) was left out: this model sees none.]")
        for part in content
    )
