"""A request without functions: tools as signatures in the system prompt, calls and results as text.

A call is one fenced JSON block, which is how most small models write one by nature.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from ybs.core.memo import Memo
from ybs.core.messages import (
    AssistantMessage,
    AssistantPart,
    Message,
    Text,
    ToolCall,
    ToolResult,
    UserMessage,
)
from ybs.core.ports import Effect, Request, ToolSpec
from ybs.providers.text_protocol.examples import EXAMPLES, NAMES

HOW: Final = (
    "To call a tool, end your message with one block:\n"
    '```json\n{"name": <tool>, "arguments": {<name>: <value>}}\n```\n'
    "The result comes with the next message."
)
#: The examples take about 700 tokens: too many in a smaller window.
LEAST_WINDOW: Final = 6_000
#: Stand behind a result: what makes sense next.
READ: Final = "If this answers the question, answer it in words now. Else make the next call."
RAN: Final = "If this is all that was asked for, answer in words now. Else make the next call."
CHANGED: Final = "If nothing else was asked for, say so in words now."
FAILED: Final = "This failed. Read why. Take another way, or say in words what is in the way."
_NEXT: Final[dict[Effect, str]] = {
    "read": READ,
    "execute": RAN,
    "edit": CHANGED,
    "write": CHANGED,
    "delete": CHANGED,
}


class Writer:
    """Writes the requests of one conversation; what was written of a message stays as it is."""

    def __init__(self) -> None:
        self._written: Memo[Message, Message] = Memo()
        self._effects: Mapping[str, Effect] = {}

    def written(self, request: Request, window: int) -> Request:
        """Return the request as text alone, with examples where their tools are on offer and the window has room."""
        self._effects = {tool.name: tool.effect for tool in request.tools}
        has_room = window >= LEAST_WINDOW and self._effects.keys() >= NAMES
        examples = EXAMPLES if has_room else EXAMPLES[:0]
        messages = self._written.each(request.messages, self._message)
        system = f"{request.system}\n\n{tools_text(request.tools)}".lstrip("\n")
        return Request(system, [*examples, *messages])

    def _message(self, message: Message) -> Message:
        match message:
            case AssistantMessage(calls=()) | UserMessage():
                return message
            case AssistantMessage():
                return replace(message, content=tuple(map(_part, message.content)))
            case ToolResult():
                effect = self._effects.get(message.name, "read")
                return result_text(message, FAILED if message.is_error else _NEXT[effect])


def tools_text(tools: Sequence[ToolSpec]) -> str:
    """Return what the model is told of the tools."""
    lines = "\n".join(map(signature, tools))
    return f"Tools (? may be left out):\n{lines}\n\n{HOW}"


def signature(tool: ToolSpec) -> str:
    """Return a tool as a line, which takes a third of the tokens of its schema."""
    schema: dict[str, Any] = msgspec.json.decode(tool.parameters)
    required = schema.get("required", ())
    named = (
        f"{name}{'' if name in required else '?'}{_type(each)}"
        for name, each in schema.get("properties", {}).items()
    )
    return f"- {tool.name}({', '.join(named)}): {tool.description}"


def _type(schema: Mapping[str, Any]) -> str:
    """Return the type of an argument; text needs none."""
    if words := schema.get("enum"):
        return f": {'|'.join(map(str, words))}"
    kind = schema.get("type")
    if kind == "string":
        return ""
    is_plain = isinstance(kind, str) and kind not in ("array", "object")
    return f": {kind if is_plain else msgspec.json.encode(schema).decode()}"


def block(call: ToolCall) -> str:
    """Return a call as text."""
    arguments = call.invalid or bytes(call.arguments).decode(errors="replace")
    return f'```json\n{{"name": "{call.name}", "arguments": {arguments}}}\n```'


def result_text(result: ToolResult, then: str) -> UserMessage:
    """Return a result as a message of the person's side."""
    text = f"Result of {result.name}:\n{result.output.strip()}\n({then})"
    return UserMessage.of(text, *result.images, origin="context")


def _part(part: AssistantPart) -> AssistantPart:
    return Text(text=f"\n{block(part)}") if isinstance(part, ToolCall) else part
