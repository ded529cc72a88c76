"""The text protocol of models without functions: tools as signatures in the system prompt, calls and results as text, and calls in the dialects that local models write by nature."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from ybs.core.lazy import lazy
from ybs.core.memo import Memo
from ybs.core.messages import (
    AssistantMessage,
    AssistantPart,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    UserMessage,
)
from ybs.core.ports import Request, ToolSpec
from ybs.providers.wire.loose_json import doubled

#: A call's name and its arguments, or the text of arguments that are not JSON.
_Found: TypeAlias = tuple[str, dict[str, Any] | str]
_NAME_KEYS: Final = ("name", "tool", "function", "tool_name")
_ARGUMENT_KEYS: Final = ("arguments", "parameters", "args", "input", "tool_input")

_FENCE = lazy(
    r"^[ \t]*(`{3,}|~{3,})[ \t]*([\w-]*)[^\n]*\n(.*?)(?:^[ \t]*\1[ \t]*$|\Z)", re.M | re.S
)
_HERMES = lazy(r"<tool_call>\s*(.*?)\s*(?:</tool_call>|\Z)", re.S)
_MISTRAL = lazy(r"\[TOOL_CALLS\]\s*(.*)\Z", re.S)
_XML = lazy(r"<function=([\w.-]+)>\s*(.*?)\s*(?:</function>|\Z)", re.S)
_XML_PARAMETER = lazy(r"<parameter=([\w.-]+)>\n?(.*?)\n?(?:</parameter>|(?=<parameter=)|\Z)", re.S)
_BARE = lazy(r"(?:<\|python_tag\|>)?\s*(\{.*\})\s*(?:<\|eom_id\|>)?\s*\Z", re.S)
_EDIT = lazy(
    r"^[`*# \t]*([\w./-]+)[`*:]*[ \t]*\n(?:```\w*\n)?<{5,9} SEARCH\n(.*?)\n?={5,9}\n(.*?)\n?>{5,9} REPLACE(?:\n```)?",
    re.M | re.S,
)
_TAG = lazy(r"\{(ACTION|THOUGHT|UPDATE_IDENTITY|INVOKE_SKILL):((?:[^{}]|\{[^{}]*\})*)\}", re.S)
_NAMED = lazy(r'"(?:name|tool|function|tool_name)"\s*:\s*"([\w.-]+)"')
#: The arguments to the end, without the brace that closes the call; a single one at the end closes the arguments.
_ARGUMENTS = lazy(
    r'"(?:arguments|parameters|args|input|tool_input)"\s*:\s*'
    r"(\{.*\}(?=\s*\}\s*\Z)|\{.*\}(?=\s*\Z)|.*?)\s*\}?\s*\Z",
    re.S,
)
#: What the tags of Yips call its tools, and the argument that stands behind the colon.
_TAGS: Final = {
    "ls": ("list_files", "path"),
    "list_files": ("list_files", "path"),
    "read_file": ("read_file", "path"),
    "grep": ("search_files", "pattern"),
    "search_files": ("search_files", "pattern"),
    "run_shell": ("run_shell", "command"),
    "run_command": ("run_shell", "command"),
    "delete_file": ("delete_file", "path"),
}
#: What its skills are here; any other one is a skill of that name.
_SKILLS: Final = {
    "SEARCH": ("web_search", "query"),
    "FETCH": ("web_fetch", "url"),
    "MEMORIZE": ("memorize", "text"),
    "VT": ("run_shell", "command"),
}
#: Where the rest of an answer may be a call: until it is whole nothing of it is shown.
MARKS: Final = (
    "```",
    "~~~",
    "<tool_call>",
    "[TOOL_CALLS]",
    "<function=",
    "<|python_tag|>",
    "<<<<<<<",
    "{",
)


class _Span(Struct, frozen=True):
    """A part of the text, and the calls that it is: none where it is a fence with something else in it."""

    start: int
    end: int
    found: tuple[_Found, ...]


_Reader: TypeAlias = Callable[[str, Collection[str]], Iterator[_Span]]


def with_calls(
    message: AssistantMessage, names: Collection[str], results: Collection[str] = ()
) -> AssistantMessage:
    """Return a message with the calls that are written in its text as calls; `names` are the tools on offer.

    What stands in one of the `results` of tools is quoted, such as a file that is shown: it stays text.
    """
    text = message.text
    spans = [] if message.calls else spans_in(text, names)
    spans = [each for each in spans if not _is_quoted(text[each.start : each.end], results)]
    if not spans:
        return message
    rest, at = list[str](), 0
    for span in spans:
        rest.append(text[at : span.start])
        at = span.end
    said = "".join([*rest, text[at:]]).strip()
    found = [each for span in spans for each in span.found]
    calls = [_call(each, number) for number, each in enumerate(found, 1)]
    thoughts = [part for part in message.content if isinstance(part, Thinking)]
    content: list[AssistantPart] = [*thoughts, *([Text(text=said)] if said else []), *calls]
    return replace(message, content=tuple(content), stop_reason="tool_calls")


def _is_quoted(part: str, results: Collection[str]) -> bool:
    """Return whether a part of an answer stands in the result of a tool, with or without its fence."""
    bare = "\n".join(
        line for line in part.splitlines() if not line.lstrip().startswith(("```", "~~~"))
    ).strip()
    return any(bare in result for result in results)


def spans_in(text: str, names: Collection[str]) -> list[_Span]:
    """Find the parts of a text that are calls, in their order. What stands within another part does not count."""
    taken: list[_Span] = []
    for reader in _READERS:
        for span in reader(text, names):
            if all(span.end <= each.start or each.end <= span.start for each in taken):
                taken.append(span)
    return sorted((span for span in taken if span.found), key=lambda span: span.start)


def _fenced(text: str, names: Collection[str]) -> Iterator[_Span]:
    for match in _FENCE().finditer(text):
        inside = match[3]
        found = _hermes_in(inside, names) or _xml_in(inside, names) or _json_calls(inside, names)
        is_call = match[2].lower() in ("", "json", "tool_call", "tool_code", "tool", "xml")
        yield _Span(match.start(), match.end(), found if is_call else ())


def _hermes_in(text: str, names: Collection[str]) -> tuple[_Found, ...]:
    return tuple(each for span in _hermes(text, names) for each in span.found)


def _hermes(text: str, names: Collection[str]) -> Iterator[_Span]:
    for match in _HERMES().finditer(text):
        found = _json_calls(match[1], names) or _xml_in(match[1], names)
        yield _Span(match.start(), match.end(), found)


def _mistral(text: str, names: Collection[str]) -> Iterator[_Span]:
    if match := _MISTRAL().search(text):
        yield _Span(match.start(), match.end(), _json_calls(match[1], names))


def _bare(text: str, names: Collection[str]) -> Iterator[_Span]:
    if match := _BARE().match(text):
        yield _Span(match.start(), match.end(), _json_calls(match[1], names))


def _xml(text: str, names: Collection[str]) -> Iterator[_Span]:
    for match in _XML().finditer(text):
        given: dict[str, Any] = dict(_XML_PARAMETER().findall(match[2]))
        yield _Span(match.start(), match.end(), ((match[1], given),) * (match[1] in names))


def _xml_in(text: str, names: Collection[str]) -> tuple[_Found, ...]:
    return tuple(each for span in _xml(text, names) for each in span.found)


def _edits(text: str, names: Collection[str]) -> Iterator[_Span]:
    for match in _EDIT().finditer(text):
        given = {"path": match[1], "old_text": match[2], "new_text": match[3]}
        found = (
            ("edit_file", given)
            if match[2]
            else ("write_file", {"path": match[1], "content": match[3]})
        )
        yield _Span(match.start(), match.end(), (found,) * (found[0] in names))


def _tags(text: str, names: Collection[str]) -> Iterator[_Span]:
    for match in _TAG().finditer(text):
        yield _Span(match.start(), match.end(), tuple(_tagged(match[1], match[2], names)))


def _tagged(kind: str, said: str, names: Collection[str]) -> Iterator[_Found]:
    if kind == "THOUGHT":
        kind, said = "ACTION", f"set_thought:{said}"
    if kind == "UPDATE_IDENTITY":
        kind, said = "ACTION", f"update_identity:{said}"
    tool, _, rest = said.partition(":")
    found: _Found
    if kind == "INVOKE_SKILL":
        name, argument = _SKILLS.get(tool, ("skill", "name"))
        found = (name, {argument: rest if tool in _SKILLS else tool})
    elif tool == "write_file":
        path, _, content = rest.partition(":")
        found = (tool, {"path": path, "content": content})
    elif tool == "create_plan":
        found = ("todo", {"steps": rest.partition(":")[2]})
    elif tool in ("git", "sed"):
        found = ("run_shell", {"command": f"{tool} {rest}"})
    else:
        name, argument = _TAGS.get(tool, (tool, "text"))
        found = (name, {argument: rest} if rest else {})
    if found[0] in names:
        yield found


#: The most certain first.
_READERS: Final[tuple[_Reader, ...]] = (_edits, _fenced, _hermes, _mistral, _xml, _tags, _bare)


def _json_calls(text: str, names: Collection[str]) -> tuple[_Found, ...]:
    """Return the calls that a JSON object, a list of them, or several lines of them are."""
    try:
        value = msgspec.json.decode(text)
    except (ValueError, RecursionError):
        if escaped := doubled(text):
            return _json_calls(escaped, names)
        return _broken_calls(text, names)
    given = cast("list[Any]", value) if isinstance(value, list) else [value]
    found = [_call_of(each) for each in given]
    return tuple(each for each in found if each and each[0] in names) if all(found) else ()


def _broken_calls(text: str, names: Collection[str]) -> tuple[_Found, ...]:
    """Return the calls of several objects, or of one that is not quite JSON: its arguments are repaired by the toolbox."""
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > 1 and all(
        line.lstrip().startswith('{"') and line.rstrip().endswith("}") for line in lines
    ):
        found = [each for line in lines for each in _json_calls(line, names)]
        if len(found) == len(lines):
            return tuple(found)
    named, arguments = _NAMED().search(text), _ARGUMENTS().search(text)
    if named is None or arguments is None or named[1] not in names:
        return ()
    return ((named[1], arguments[1]),)


def _call_of(value: Any) -> _Found | None:
    """Return the call that a JSON object is: a name, arguments, and nothing else of weight."""
    if not isinstance(value, dict):
        return None
    given = cast("dict[str, Any]", value)
    inner = given.get("function")
    if isinstance(inner, dict):
        return _call_of(inner)
    name = next((given[key] for key in _NAME_KEYS if isinstance(given.get(key), str)), None)
    arguments = next((given[key] for key in _ARGUMENT_KEYS if key in given), None)
    if name is None or not isinstance(arguments, (dict, str)):
        return None
    return name, cast("dict[str, Any] | str", arguments)


def _call(found: _Found, number: int) -> ToolCall:
    name, given = found
    call_id = f"text_{number}"
    if isinstance(given, str):
        return ToolCall(id=call_id, name=name, invalid=given)
    return ToolCall(id=call_id, name=name, arguments=Raw(msgspec.json.encode(given)))


class Held:
    """The text of an answer as it may be shown while it comes: what may be the beginning of a call is kept back."""

    def __init__(self) -> None:
        self._text = ""
        self._shown = self._looked_at = 0
        #: Whether it says the same over and over, and never ends.
        self.is_endless = False

    @property
    def shown(self) -> str:
        """What was shown of it."""
        return self._text[: self._shown]

    def add(self, piece: str) -> str:
        """Take a piece and return what may be shown now."""
        self._text += piece
        if len(self._text) - self._looked_at > EVERY_CHARS:
            self._looked_at = len(self._text)
            self.is_endless = repeats_itself(self._text)
        marks = [at for mark in MARKS if (at := self._text.find(mark, self._shown)) >= 0]
        end = min(marks, default=len(self._text) - self._partial())
        shown, self._shown = self._text[self._shown : end], max(end, self._shown)
        return shown

    def _partial(self) -> int:
        """Return how many characters at the end may begin a mark."""
        longest = min(max(map(len, MARKS)) - 1, len(self._text))
        return next(
            (n for n in range(longest, 0, -1) if any(m.startswith(self._text[-n:]) for m in MARKS)),
            0,
        )

    def rest(self, said: str) -> str:
        """Return the part of the whole text, `said`, that was not shown."""
        if said == self._text:
            return said[self._shown :]
        shown = self._text[: self._shown].strip()
        return said[len(shown) :] if said.startswith(shown) else ""


_DIGITS = re.compile(r"\d+")
#: So often, and so many characters of it, before it counts: people ask for twenty lines of one kind too.
FEWEST_TIMES: Final = 25
FEWEST_CHARS: Final = 600
_LONGEST_UNIT = 160
_PROBE = 48
#: How much more text comes before it is looked at again.
EVERY_CHARS: Final = 300


def repeats_itself(text: str) -> bool:
    """Return whether the end of a text says one thing over and over."""
    end = _DIGITS.sub("0", text[-(FEWEST_TIMES + 1) * _LONGEST_UNIT :])
    probe = end[-_PROBE:]
    before = end.rfind(probe, 0, len(end) - 1)
    unit = len(end) - _PROBE - before
    if before < 0 or unit > _LONGEST_UNIT:
        return False
    span = max(unit * FEWEST_TIMES, FEWEST_CHARS)
    return len(end) >= span + unit and end[-span:] == end[-span - unit : -unit]


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
