"""Check a third-party tool; it may violate the protocol."""

import re
from collections.abc import Collection
from typing import Any, get_args

from msgspec import Raw

from ybs.core.cutting import shortened
from ybs.core.errors import ToolError
from ybs.core.ports import Effect, Tool
from ybs.tools.calls.forms import schema_problem
from ybs.tools.calls.supervise import checked
from ybs.tools.calls.tool_names import known_by
from ybs.tools.registry import NAMES

#: What all providers take as the name of a tool.
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_EFFECTS = get_args(Effect)
_MOST_NAME = 80  # characters of a name in a notice


def problem_of(tool: Tool, taken: Collection[str]) -> str:
    """Return why a tool that is not built in cannot be used; nothing for one that can.

    A name of a built-in tool, or one that hooks or models know a tool of ybs's by, is refused in any case, and even where that tool is
    switched off: rules and the policy know it by its name, and an answer about it is for no other one.
    """
    try:
        name, reason = checked(lambda: (tool.name, _reason(tool, taken)), "what describes it")
    except ToolError as error:
        return f"A tool cannot be used: {error}"
    return (
        f"The tool {shortened(str(name), _MOST_NAME)!r} cannot be used: {reason}." if reason else ""
    )


def _reason(tool: Any, taken: Collection[str]) -> str:
    """Check a third-party tool; it may violate the protocol."""
    name: Any = tool.name
    if not (isinstance(name, str) and _NAME.fullmatch(name)):
        return "a name has letters, digits, `_` and `-`, at most 64"
    if name.casefold() in NAMES:
        return "ybs has one of this name, which stays; rename it"
    if meant := known_by(name):
        return f"hooks and models know {meant} by this name; rename it"
    if name in taken:
        return "there is another one of this name, which stays; rename one of them"
    return _reason_in(tool.description, tool.effect, tool.parameters)


def _reason_in(described: Any, effect: Any, parameters: Any) -> str:
    if not isinstance(described, str):
        return "its description is not a text"
    if effect not in _EFFECTS:
        return f"its effect is not one of {', '.join(_EFFECTS)}"
    if not isinstance(parameters, Raw):
        return "its parameters are not msgspec.Raw"
    problem = schema_problem(parameters)
    return f"its parameters are not the JSON Schema of an object: {problem}" if problem else ""
