"""Pictures on their way to a model: as base64, or as a line of text for a model that sees none."""

from binascii import b2a_base64
from collections.abc import Sequence

from msgspec.structs import replace

from ybs.core.memo import Memo, alike
from ybs.core.messages import Image, Message, Text, ToolResult, UserMessage
from ybs.core.ports import Request

_REFUSED = "\n[A picture ({type}) was left out: the server refused it.]"


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


def pictures_in(messages: Sequence[Message]) -> list[Image]:
    """Return all pictures in messages, those of tools first."""
    results = [each.images for each in messages if isinstance(each, ToolResult) and each.images]
    said = [each.content for each in messages if isinstance(each, UserMessage)]
    return [part for parts in (*results, *said) for part in parts if isinstance(part, Image)]


class RefusedPictures:
    """The pictures that a server refused, and leaves out of requests. Those that it took once are never suspected."""

    def __init__(self) -> None:
        self._refused: set[bytes] = set()
        self._suspected: set[bytes] = set()
        self._taken: set[bytes] = set()
        self._kept: Memo[Message, Message] = Memo()
        #: The messages of the last request that was answered.
        self._answered: list[Message] = []

    @property
    def are_all(self) -> bool:
        """Whether the server has refused pictures twice and never taken one: it takes none, as it seems."""
        return len(self._refused) > 1 and not self._taken

    def suspect(self, request: Request) -> bool:
        """Leave out, for now, what the server has not taken before; return whether that changes the request."""
        all_of_them = {_mark(image) for image in pictures_in(request.messages)} - self._refused
        new = (all_of_them - self._taken or all_of_them) - self._suspected
        self._suspected |= new
        self._kept = Memo()
        return bool(new)

    def settle(self, request: Request, *, is_good: bool) -> bool:
        """Note whether the request was answered; return whether pictures turned out to be refused by that."""
        suspected, self._suspected = self._suspected, set()
        if is_good:
            self._refused |= suspected
            new = request.messages[alike(self._answered, request.messages) :]
            self._taken |= {_mark(image) for image in pictures_in(new)} - self._refused
            self._answered = [*request.messages]
        elif suspected:
            self._kept = Memo()
        return is_good and bool(suspected)

    def without(self, request: Request) -> Request:
        """Return the request without those pictures, and a line of text in the place of each."""
        if not (self._refused or self._suspected):
            return request
        return replace(request, messages=self._kept.each(request.messages, self._clean))

    def _clean(self, message: Message) -> Message:
        if isinstance(message, ToolResult) and any(map(self._is_out, message.images)):
            images = tuple(each for each in message.images if not self._is_out(each))
            out = (each for each in message.images if self._is_out(each))
            notes = (_REFUSED.format(type=each.media_type) for each in out)
            return replace(message, images=images, output="".join([message.output, *notes]))
        if isinstance(message, UserMessage) and any(map(self._is_out, message.content)):
            return replace(message, content=tuple(map(self._clean_part, message.content)))
        return message

    def _clean_part(self, part: Text | Image) -> Text | Image:
        if isinstance(part, Image) and self._is_out(part):
            return Text(text=_REFUSED.format(type=part.media_type))
        return part

    def _is_out(self, part: Text | Image) -> bool:
        return isinstance(part, Image) and _mark(part) in self._refused | self._suspected


def _mark(image: Image) -> bytes:
    from hashlib import sha256  # with the first picture

    return sha256(image.data).digest()


def without_pictures(content: Sequence[Text | Image]) -> tuple[Text, ...]:
    """Put a line of text in the place of every picture."""
    return tuple(
        part
        if isinstance(part, Text)
        else Text(text=f"\n[A picture ({part.media_type}) was left out: this model sees none.]")
        for part in content
    )
