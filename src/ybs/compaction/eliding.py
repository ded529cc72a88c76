"""Elide without a model: old tool outputs, long arguments, pictures, thinking."""

from collections.abc import Callable, Sequence
from typing import Any, cast

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from ybs.core.messages import (
    AssistantMessage,
    AssistantPart,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    UserMessage,
    UserPart,
)

#: A shorter output is not worth a line in its place.
LEAST_CHARS = 600
#: Longer texts in the arguments of old calls are cut to this.
_ARGUMENT_CHARS, _ARGUMENT_HEAD = 400, 120
#: Stands for a path until there is one: sizes are reckoned with it.
_ANY_PATH = "/" + "p" * 89
_LONGEST_NAME = 100


class Promise(Struct, frozen=True):
    """A shorter result that stands for another until the whole text was written somewhere."""

    result: ToolResult
    text: str
    made: Callable[[str], ToolResult]


class Elider:
    """Makes shorter messages. What is written to disk for them is written at the end, for those that stay."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._promises: dict[int, Promise] = {}
        #: Messages of the person whose attachments, or output of a `!command`, were shortened.
        self._shortened: dict[int, UserMessage] = {}
        self._calls = {
            call.id: call
            for message in messages
            if isinstance(message, AssistantMessage)
            for call in message.calls
        }

    def shorter(self, message: Message) -> Message:
        """Return the message without what is long in it; the same one where nothing is."""
        match message:
            case ToolResult():
                return self._without_output(message)
            case AssistantMessage():
                return _changed(message, tuple(map(_short_part, message.content)))
            case UserMessage():
                short = _short_words(message)
                if short is not message:
                    self._shortened[id(short)] = short
                return short

    def cut(self, result: ToolResult, chars: int) -> ToolResult:
        """Return the result with so many characters of its output: the beginning and the end."""
        if len(result.output) <= chars:
            return result
        text = result.output

        def made(path: str) -> ToolResult:
            where = f"; all of it: {path}" if path else ""
            note = f"\n[… {len(text) - chars:,} characters left out{where} …]\n"
            head = chars * 3 // 5
            shown = text[:head] + note + (text[-(chars - head) :] if chars > head else "")
            return replace(result, output=shown, images=(), display=Raw(b"null"))

        return self._promise(text, made)

    def _without_output(self, result: ToolResult) -> ToolResult:
        if len(result.output) < LEAST_CHARS and not result.images:
            return result
        about = described(self._calls.get(result.call_id), result)

        def made(path: str) -> ToolResult:
            back = f"All of it: {path}" if path else "Call the tool again if it is needed."
            output = f"[Set aside to save room: {about} {back}]"
            return replace(result, output=output, images=(), display=Raw(b"null"))

        return self._promise(result.output, made)

    def _promise(self, text: str, made: Callable[[str], ToolResult]) -> ToolResult:
        result = made(_ANY_PATH)
        self._promises[id(result)] = Promise(result, text, made)
        return result

    def kept(
        self, messages: Sequence[Message], keep: Callable[[str], str]
    ) -> tuple[list[Message], int]:
        """Write down what the messages promise; return them with the true paths and without `changes`, and how many were shortened."""
        done: list[Message] = []
        count = 0
        for message in messages:
            promise = self._promises.get(id(message))
            if promise is not None:
                count += 1
                message = promise.made(keep(promise.text))
            count += id(message) in self._shortened
            if isinstance(message, ToolResult) and message.changes:
                message = replace(message, changes=())  # the transcript has them already
            done.append(message)
        return done, count


def described(call: ToolCall | None, result: ToolResult) -> str:
    """Return one sentence that says what an output was, and how large."""
    name = " ".join(filter(None, (result.name, subject_of(call) if call else "")))
    lines = result.output.count("\n") + 1
    size = f"{lines:,} lines, {len(result.output):,} characters"
    pictures = f", {len(result.images)} pictures" if result.images else ""
    said = one_line(result.summary, _LONGEST_NAME)
    if result.is_error:
        said = "an error: " + one_line(result.output, 200)
    return f"{name}, {size}{pictures}{f' ({said})' if said else ''}."


def subject_of(call: ToolCall) -> str:
    """Name what a call is about: its path, command or pattern."""
    given = arguments_of(call)
    for key in ("path", "file_path", "file", "command", "pattern", "query", "url"):
        if isinstance(value := given.get(key), str) and value:
            return one_line(value, _LONGEST_NAME)
    return ""


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """Decode a call's arguments."""
    try:
        given = msgspec.json.decode(call.arguments)
    except msgspec.DecodeError:
        return {}
    return cast("dict[str, Any]", given) if isinstance(given, dict) else {}


def one_line(text: str, most: int) -> str:
    """Return the beginning of a text as one line."""
    line = " ".join(text[: most * 4].split())
    return line if len(line) <= most else line[: most - 1] + "…"


def without_thinking(message: Message) -> Message | None:
    """Return the message without what was thought; None where nothing else is in it."""
    if not isinstance(message, AssistantMessage):
        return message
    content = tuple(part for part in message.content if not isinstance(part, Thinking))
    if len(content) == len(message.content):
        return message
    return replace(message, content=content) if content else None


def _changed(message: Any, content: tuple[Any, ...]) -> Any:
    is_same = all(new is old for new, old in zip(content, message.content, strict=True))
    return message if is_same else replace(message, content=content)


def _short_words(message: UserMessage) -> UserMessage:
    """Shorten what stands behind the person's words, and what a `!command` printed; never the words."""
    if message.origin in ("summary", "guard"):
        return message
    at = 0 if message.origin in ("shell", "context") else 1
    lines = 2 if message.origin == "shell" else 1  # a command stands in the second
    rest = (_short_attachment(part, lines) for part in message.content[at:])
    return _changed(message, (*message.content[:at], *rest))


def _short_attachment(part: UserPart, lines: int) -> UserPart:
    if not isinstance(part, Text):
        return Text(text=f"[A picture ({part.media_type}) was set aside to save room.]")
    if len(part.text) < LEAST_CHARS:
        return part
    name = one_line(" ".join(part.text.strip().split("\n")[:lines]), _LONGEST_NAME)
    return Text(text=f"\n[{name} … {len(part.text):,} characters were set aside to save room.]\n")


def _short_part(part: AssistantPart) -> AssistantPart:
    if not isinstance(part, ToolCall):
        return part
    invalid = part.invalid if len(part.invalid) <= _ARGUMENT_CHARS else _short(part.invalid)
    arguments = part.arguments
    if len(bytes(arguments)) > _ARGUMENT_CHARS:
        given = arguments_of(part)
        short = _short_value(given)
        arguments = arguments if short == given else Raw(msgspec.json.encode(short))
    if arguments is part.arguments and invalid is part.invalid:
        return part
    return replace(part, arguments=arguments, invalid=invalid)


def _short_value(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= _ARGUMENT_CHARS else _short(value)
    if isinstance(value, dict):
        known = cast("dict[str, Any]", value)
        return {key: _short_value(each) for key, each in known.items()}
    if isinstance(value, list):
        return [_short_value(each) for each in cast("list[Any]", value)]
    return value


def _short(text: str) -> str:
    return f"{text[:_ARGUMENT_HEAD]} [{len(text) - _ARGUMENT_HEAD:,} more characters were set aside to save room]"
