"""A tool made of a typed Python function: `from ybs import tool`.

    @tool
    def count_words(path: str, longest: int = 10) -> str:
        '''Count the words of a file.'''

The arguments and their JSON Schema are those of the function; an `Annotated[str, "…"]` describes one. What it returns is read by the model,
and an exception is an error that the model reads.
"""

import inspect
from collections.abc import Callable, Sequence
from inspect import Parameter
from typing import Annotated, Any, get_args, get_origin, get_type_hints, overload

import msgspec
from msgspec import Meta, Raw, Struct

from ybs.core.decoding import decodable, from_json
from ybs.core.errors import ToolError
from ybs.core.ports import Effect, ToolOutput


class FunctionTool:
    """A function as a tool. It can be called as before."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str = "",
        effect: Effect = "execute",
        needs: dict[str, Any] | None = None,
        cwd: str = "",
    ) -> None:
        """Read the function's types and words. Raises TypeError where an argument has no type."""
        self._function, self._needs, self._cwd = function, needs or {}, cwd
        self.name = name or function.__name__
        self.description = inspect.getdoc(function) or ""
        self.effect: Effect = effect
        self._arguments = msgspec.defstruct(
            "Arguments", _fields_of(function), frozen=True, kw_only=True, forbid_unknown_fields=True
        )
        self.parameters = _schema_of(self._arguments)

    def __call__(self, *args: Any, **given: Any) -> Any:
        """Call the function."""
        return self._function(*args, **given)

    async def run(self, arguments: Any, print_live: Callable[[str], None]) -> ToolOutput:
        """Call the function, in a thread unless it is a coroutine's. Raises ToolError for what the model should read."""
        import asyncio

        del print_live
        try:
            given = _given(msgspec.convert(arguments, decodable(self._arguments)))
            if inspect.iscoroutinefunction(self._function):
                value = await self._function(**given)
            else:
                value = await asyncio.to_thread(self._function, **given)
        except ToolError:
            raise
        except Exception as error:
            raise ToolError(f"{self.name} failed: {type(error).__name__}: {error}") from error
        return ToolOutput(output=_text_of(value))

    def described(self) -> dict[str, Any]:
        """Say what the tool is, as an external tool does."""
        return {
            "name": self.name,
            "description": self.description,
            "parameters": msgspec.json.decode(self.parameters),
            "needs": self._needs,
            "cwd": self._cwd,
        }

    def answer(self, arguments: bytes) -> dict[str, Any]:
        """Call the function with arguments in JSON, and answer as an external tool does."""
        import asyncio

        try:
            given = _given(from_json(arguments, self._arguments))
            value = self._function(**given)
            if inspect.iscoroutine(value):
                value = asyncio.run(value)
            return {"success": True, "result": _text_of(value)}
        except Exception as error:  # somebody else's code: it may do anything
            return {"success": False, "error": f"{type(error).__name__}: {error}"}


@overload
def tool(function: Callable[..., Any], /) -> FunctionTool: ...
@overload
def tool(
    *,
    name: str = "",
    effect: Effect = "execute",
    needs: dict[str, Any] | None = None,
    cwd: str = "",
) -> Callable[[Callable[..., Any]], FunctionTool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str = "",
    effect: Effect = "execute",
    needs: dict[str, Any] | None = None,
    cwd: str = "",
) -> FunctionTool | Callable[[Callable[..., Any]], FunctionTool]:
    """Make a tool of a typed function. Raises TypeError where an argument has no type.

    `effect` is the most that it does where it is handed to a session; `needs` is what it needs in a file of its own (`network`,
    `project`, `environment`, `read`). With `cwd="project"` a file of its own starts in the project also where that is not
    trusted, with `"apart"` outside of it also where it is.
    """

    def made(of: Callable[..., Any]) -> FunctionTool:
        return FunctionTool(of, name=name, effect=effect, needs=needs, cwd=cwd)

    return made if function is None else made(function)


def _fields_of(function: Callable[..., Any]) -> Sequence[Any]:
    hints = get_type_hints(function, include_extras=True)
    fields: list[Any] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (
            Parameter.VAR_POSITIONAL,
            Parameter.VAR_KEYWORD,
            Parameter.POSITIONAL_ONLY,
        ):
            raise TypeError(
                f"{function.__name__} cannot be a tool: {parameter} cannot be passed by name"
            )
        if name not in hints:
            raise TypeError(
                f"{function.__name__} cannot be a tool: its argument {name} has no type"
            )
        kind = _with_words(hints[name])
        default = parameter.default
        if default is Parameter.empty:
            fields.append((name, kind))
        elif (
            isinstance(default, list | dict | set) and default
        ):  # Structs take empty ones as they are
            fields.append((name, kind, msgspec.field(default_factory=default.copy)))
        else:
            fields.append((name, kind, default))
    return fields


def _schema_of(arguments: type[Struct]) -> Raw:
    (schema,), others = msgspec.json.schema_components([arguments], ref_template="#/$defs/{name}")
    schema = others.pop(str(schema["$ref"]).rpartition("/")[2])
    schema.pop("title", None)
    return Raw(msgspec.json.encode({**schema, "$defs": others} if others else schema))


def _with_words(kind: Any) -> Any:
    """Make a text beside a type its description."""
    if get_origin(kind) is not Annotated:
        return kind
    inner, *beside = get_args(kind)
    meant = tuple(Meta(description=each) if isinstance(each, str) else each for each in beside)
    return Annotated[(inner, *meant)]


def _given(arguments: Any) -> dict[str, Any]:
    return {name: getattr(arguments, name) for name in arguments.__struct_fields__}


def _text_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else msgspec.json.encode(value).decode()
