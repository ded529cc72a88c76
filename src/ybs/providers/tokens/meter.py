"""Sizes of texts, messages and requests in tokens, before what a provider reported corrects them."""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias, assert_never

from ybs.core.messages import (
    AssistantMessage,
    AssistantPart,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    UserMessage,
)
from ybs.core.ports import Request, ToolSpec
from ybs.providers.tokens.families import Family

#: Counts the tokens of a text.
Count: TypeAlias = Callable[[str], float]
#: Returns width and height of a picture, or None.
PictureSize: TypeAlias = Callable[[bytes], tuple[int, int] | None]
#: Messages that are remembered beyond those of the latest request.
_SPARE: Final = 32
#: A character of a proof stands for so many tokens of hidden thinking (base64 of four characters a token).
_PROOF: Final = 0.19


class Meter:
    """Measures with one way to count a text; a message is measured once, for messages never change."""

    def __init__(
        self, family: Family, count: Count, wire: str, picture_size: PictureSize | None
    ) -> None:
        self.count = count
        self._family, self._wire, self._picture_size = family, wire, picture_size
        self._known: dict[int, tuple[Message, float]] = {}
        #: The messages that were measured together last, and their size.
        self._summed: tuple[list[Message], float] = ([], 0.0)
        self._system = ("", 0.0)
        self._tools: tuple[Sequence[ToolSpec], float] = ((), 0.0)

    def request(self, request: Request) -> float:
        """Measure a whole request."""
        messages, known = request.messages, self._known
        is_whole = len(messages) > 1  # else one is weighed alone, of a conversation that goes on
        said = self._said_so_far(messages) if is_whole else sum(map(self.message, messages))
        if is_whole and len(known) > len(messages) + _SPARE:  # the others are gone
            self._known = {id(each): known[id(each)] for each in messages if id(each) in known}
        return self.system(request.system) + self.tools(request.tools) + said

    def _said_so_far(self, messages: Sequence[Message]) -> float:
        """Measure messages that mostly begin with those of the last time; only the new ones are looked at."""
        said, (known, size) = list(messages), self._summed
        count = len(known)
        if said[:count] != known:  # quick: nearly always they are the same objects
            count, size = 0, 0.0
        size += sum(map(self.message, said[count:]))
        self._summed = (said, size)
        return size

    def system(self, text: str) -> float:
        """Measure the system prompt."""
        if not text:
            return 0.0  # none is sent
        if text != self._system[0]:
            self._system = (text, self.count(text) + self._family.per_message)
        return self._system[1]

    def tools(self, specs: Sequence[ToolSpec]) -> float:
        """Measure what is told of the tools."""
        if not specs:
            return 0.0
        known, size = self._tools
        if len(known) != len(specs) or any(a is not b for a, b in zip(known, specs, strict=True)):
            size = sum(map(self._spec, specs)) + self._family.with_tools
            self._tools = (tuple(specs), size)
        return size

    def message(self, message: Message) -> float:
        """Measure a message with what stands around it."""
        found = self._known.get(id(message))
        if found is not None:
            return found[1]
        size = sum(self.parts(message)) + self._family.per_message
        self._known[id(message)] = (message, size)
        return size

    def parts(self, message: Message) -> list[float]:
        """Measure the parts of a message, one by one."""
        match message:
            case UserMessage():
                return [self._part(part) for part in message.content]
            case AssistantMessage():
                return [self._said(part) for part in message.content]
            case ToolResult():
                pictures = map(self._picture, message.images)
                return [self.count(message.output) + self._family.per_result, *pictures]
            case _:
                assert_never(message)

    def _part(self, part: Text | Image) -> float:
        return self.count(part.text) if isinstance(part, Text) else self._picture(part)

    def _said(self, part: AssistantPart) -> float:
        match part:
            case Text():
                return self.count(part.text)
            case Thinking():
                if part.provider != self._wire:
                    return 0.0  # it is not sent
                hidden = 0.0 if part.text else len(part.signature) * _PROOF
                return self.count(part.text) + hidden + len(part.redacted) * _PROOF
            case ToolCall():
                written = bytes(part.arguments).decode("utf-8", "replace")
                return self.count(part.name) + self.count(written) + self._family.per_call
            case _:
                assert_never(part)

    def _picture(self, image: Image) -> float:
        size = None if self._picture_size is None else self._picture_size(image.data)
        return self._family.picture_tokens(size)

    def _spec(self, spec: ToolSpec) -> float:
        schema = bytes(spec.parameters).decode("utf-8", "replace")
        return self.count(f"{spec.name} {spec.description}\n{schema}") + self._family.per_tool
