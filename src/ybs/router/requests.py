"""What the router reads of a request: the words, its size, the tools and the pictures in it."""

from typing import Final

import msgspec

from ybs.core.messages import Image, Message, UserMessage
from ybs.core.ports import Request
from ybs.router.classifier import Features

#: A token has about so many bytes, reckoned so that an estimate is rather too large; a picture has so many tokens.
BYTES: Final = 3
_PICTURE: Final = 1_600


def features_of(request: Request, turns: int = 0) -> Features:
    """Read the features of a request: the last words of the person, its size, its tools and pictures."""
    said = [each for each in request.messages if isinstance(each, UserMessage)]
    person = [each for each in said if each.origin == "person"] or said
    return Features.of(
        person[-1].words if person else "",
        tokens=size_of(request),
        tools=names_in(request),
        image_count=pictures_in(request),
        turn=turns,
    )


def size_of(request: Request) -> int:
    """Return about how many tokens a request has, rather too many."""
    size = len(request.system.encode(errors="replace")) + sum(
        len(t.parameters) for t in request.tools
    )
    size += sum(len(tool.description) + len(tool.name) for tool in request.tools)
    pictures = pictures_in(request)
    return (size + sum(_bytes_of(each) for each in request.messages)) // BYTES + pictures * _PICTURE


def _bytes_of(message: Message) -> int:
    try:
        size = len(msgspec.json.encode(message))
    except UnicodeEncodeError:  # half a character, as a broken terminal sends it
        size = 4 * len(str(message))
    return size - sum(len(image.data) for image in _images(message))


def _images(message: Message) -> list[Image]:
    parts = message.content if isinstance(message, UserMessage) else getattr(message, "images", ())
    return [part for part in parts if isinstance(part, Image)]


def pictures_in(request: Request) -> int:
    """Return how many pictures are sent."""
    return sum(len(_images(message)) for message in request.messages)


def names_in(request: Request) -> tuple[str, ...]:
    """Return the names of the tools that are offered."""
    return tuple(tool.name for tool in request.tools)
