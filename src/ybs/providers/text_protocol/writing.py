"""A request without functions: tools as signatures in the system prompt, calls and results as text.

A call is one fenced JSON block, which is how most small models write one by nature.
"""

from collections.abc import Iterator, Mapping, Sequence
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
from ybs.core.ports import Request, ToolSpec

HOW: Final = (
    "To call a tool, end your message with one block:\n"
    '```json\n{"name": <tool>, "arguments": {<name>: <value>}}\n```'
)
#: The examples take about 700 tokens: too many in a smaller window.
LEAST_WINDOW: Final = 6_000


class Writer:
    """Writes the requests of one conversation; what was written of a message stays as it is."""

    def __init__(self) -> None:
        self._written: Memo[Message, Message] = Memo()

    def written(self, request: Request, window: int) -> Request:
        """Return the request as text alone, with examples where their tools are on offer and the window has room."""
        offered = {tool.name for tool in request.tools}
        has_room = window >= LEAST_WINDOW and offered >= NAMES
        examples = EXAMPLES if has_room else EXAMPLES[:0]
        messages = self._written.each(request.messages, _message)
        system = f"{request.system}\n\n{tools_text(request.tools)}\n".lstrip("\n")
        return Request(system, [*examples, *messages], grammar=request.grammar)


def _message(message: Message) -> Message:
    match message:
        case AssistantMessage(calls=()) | UserMessage():
            return message
        case AssistantMessage():
            return replace(message, content=tuple(_as_texts(message.content)))
        case ToolResult():
            return result_text(message)


def tools_text(tools: Sequence[ToolSpec]) -> str:
    """Return the description of the tools for the model."""
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


def result_text(result: ToolResult) -> UserMessage:
    """Return a result as a message of the person's side."""
    text = f"Result of {result.name}:\n{result.output.strip()}"
    return UserMessage.of(text, *result.images, origin="context")


def _as_texts(parts: Sequence[AssistantPart]) -> Iterator[AssistantPart]:
    """Yield the parts of an answer with its calls as text; nothing stands before a call that stood alone."""
    has_text = False
    for part in parts:
        if isinstance(part, ToolCall):
            part = Text(text=f"\n{block(part)}" if has_text else block(part))
        has_text = has_text or isinstance(part, Text)
        yield part


#: The tools in it; where one of them is not on offer, nothing is shown.
NAMES: Final = frozenset({"read_file", "write_file", "edit_file", "delete_file", "run_shell"})


def _said(text: str) -> UserMessage:
    return UserMessage.of(text, origin="context")


def _answered(text: str) -> AssistantMessage:
    return AssistantMessage(content=(Text(text=text),))


def _called(name: str, **arguments: str) -> AssistantMessage:
    call = msgspec.json.encode({"name": name, "arguments": arguments}).decode()
    return _answered(f"```json\n{call}\n```")


def _result(name: str, text: str) -> UserMessage:
    return _said(f"Result of {name}:\n{text}")


EXAMPLES: Final[tuple[Message, ...]] = (
    _said("Whose house is it, according to plans/house.txt?"),
    _called("read_file", path="plans/house.txt"),
    _result("read_file", "1\troof: red\n2\tdoor: green"),
    _answered("plans/house.txt does not say whose it is. It only names the roof and the door."),
    _said("plans/house.txt: the roof shall be black."),
    _called("edit_file", path="plans/house.txt", old_text="roof: red", new_text="roof: black"),
    _result("edit_file", "Edited plans/house.txt: 1 replacement."),
    _answered("The roof is black now."),
    _said("A round window is to come in too, below the others."),
    _called(
        "edit_file",
        path="plans/house.txt",
        old_text="door: green",
        new_text="door: green\nwindow: round",
    ),
    _result("edit_file", "Edited plans/house.txt: 1 replacement."),
    _answered("A round window stands below the door."),
    _said("plans/pond.txt is still to come; frogs is all that it says."),
    _called("write_file", path="plans/pond.txt", content="frogs\n"),
    _result("write_file", "Created plans/pond.txt: 6 bytes written."),
    _answered("plans/pond.txt is there now."),
    _said("teapot-check reports a mistake in kettle.py."),
    _called("read_file", path="kettle.py"),
    _result("read_file", "1\tdef boils(degrees):\n2\t    return degrees >= 90"),
    _called(
        "edit_file",
        path="kettle.py",
        old_text="    return degrees >= 90",
        new_text="    return degrees >= 100",
    ),
    _result("edit_file", "Edited kettle.py: 1 replacement."),
    _called("run_shell", command="teapot-check kettle.py"),
    _result("run_shell", "fine\n[exit code 0]"),
    _answered("Water boils at 100 degrees, not at 90. teapot-check is content."),
    _said("plans/barn.txt can go."),
    _called("delete_file", path="plans/barn.txt"),
    _result("delete_file", "Deleted plans/barn.txt."),
    _answered("plans/barn.txt is deleted."),
    _said("Now to another project, with other files."),
    _answered("I start afresh and look before I act."),
    # What the model knows by itself takes no tool.
    _said("Say good night in Latin."),
    _answered("Bonam noctem."),
    _said("Which sea lies between Sweden and Finland?"),
    _answered("The Baltic Sea."),
)
