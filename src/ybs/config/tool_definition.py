"""The definition of an external tool: from `--schema`, from a file beside it, or from the settings.

The file beside a program is read by `described_in` and `read_beside` alone. The question about trust, `ybs plugin add` and the session all go by
what these return, and the session takes it of a project from the review: what a person was shown is what the tool gets. What they cannot read makes
no tool.

The parameters are a JSON Schema, or the short flat form `{"query": {"type": "string", "required": true}}`.
"""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal, Protocol, TypeAlias

import msgspec
from msgspec import Raw, Struct

from ybs.config.document import open_regular
from ybs.config.parameters import fitting
from ybs.config.paths import sidecar_of
from ybs.config.schema import ExternalToolSettings, ToolNeeds
from ybs.config.tree import is_object
from ybs.core.decoding import from_json

#: A schema of a tool is sent with every request.
MOST_BYTES = 16_000
_MOST_DESCRIPTION = 1_000
#: What stands at the top of a JSON Schema, and hardly is the name of an argument.
_SCHEMA = ("properties", "$ref", "$schema", "additionalProperties")

#: Python code that describes its tools by `from ybs import tool`: it is run by ybs's own interpreter.
_MARK: Final = b"from ybs import"
#: Of a file of Python code, in which that may stand.
MOST_OF_CODE: Final = 200_000

InputForm: TypeAlias = Literal["stdin", "argv"]


class BadDefinition(Exception):
    """What a program says of itself is of no use; the text says why."""


class Definition(Struct, frozen=True, kw_only=True):
    """What is known of a tool before it is called. `input` is how it takes its arguments; 0 seconds mean as shipped."""

    name: str
    description: str
    parameters: Raw
    needs: ToolNeeds = ToolNeeds()
    input: InputForm = "stdin"
    timeout_seconds: int = 0
    #: Where it starts (`security/own_programs.py`).
    cwd: str = ""
    #: It is a project's, and the question about trust did not show its name and what it needs.
    is_unshown: bool = False


class _Said(Struct, frozen=True, kw_only=True):
    """The JSON object; what else stands in it does not matter."""

    name: str = ""
    description: str = ""
    parameters: dict[str, Any] = {}
    needs: ToolNeeds = ToolNeeds()
    input: InputForm | None = None
    timeout_seconds: int = 0
    cwd: str = ""


#: What the file beside a program says of it, or why that is of no use.
Described: TypeAlias = Definition | str


class SourceFile(Protocol):
    """A file of a project or of a plugin, as it was read."""

    @property
    def data(self) -> bytes:
        """Its bytes."""
        ...

    @property
    def is_executable(self) -> bool:
        """Whether it may be run."""
        ...


def described_in(files: Mapping[str, SourceFile]) -> dict[str, Described]:
    """Return what the files of a project or of a plugin say of the programs that they stand beside, by the program's path."""
    beside = ((path, sidecar_of(path, files.__contains__)) for path in files)
    return {
        path: _described(files[sidecar].data, path)
        for path, sidecar in beside
        if sidecar and may_be_tool(path, files[path])
    }


def read_beside(sidecar: Path, program: Path) -> Described:
    """Return what a file of the person's says of the program that it stands beside."""
    try:
        with open_regular(sidecar) as file:
            return _described(file.read(MOST_BYTES + 1), str(program))
    except OSError as error:
        return f"its description cannot be read: {error.strerror or error}"


def _described(data: bytes, program: str) -> Described:
    try:
        return defined(data, name=usual_name(program), usual="argv")
    except BadDefinition as error:
        return str(error)


def usual_name(program: str) -> str:
    """Return the name of a tool that says none itself."""
    return PurePosixPath(program).stem.replace("-", "_")


def may_be_tool(path: str, file: SourceFile) -> bool:
    """Return whether a file can be run, or is Python code that describes a tool."""
    return file.is_executable or is_python_tool(path, file.data)


def is_python_tool(name: str, data: bytes) -> bool:
    """Return whether a file is Python code that describes its tools by `from ybs import tool`."""
    lines = data[:MOST_OF_CODE].splitlines() if name.endswith(".py") else ()
    return any(line.startswith(_MARK) for line in lines)


def defined(text: bytes, *, name: str, usual: InputForm) -> Definition:
    """Read what a program or the file beside it says. `name` and `usual` stand in for what it does not say.

    Raises BadDefinition.
    """
    if len(text) > MOST_BYTES:
        raise BadDefinition(f"its description is longer than {MOST_BYTES:,} bytes")
    try:
        said = from_json(text, _Said)
    except msgspec.ValidationError as error:
        raise BadDefinition(f"its description does not fit: {error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadDefinition("its description is not a JSON object") from error
    return Definition(
        name=said.name or name,
        description=_cleaned(said.description),
        parameters=schema_of_parameters(said.parameters),
        needs=said.needs,
        input=said.input or usual,
        timeout_seconds=max(said.timeout_seconds, 0),
        cwd=said.cwd,
    )


def from_settings(entry: ExternalToolSettings, described: Definition | None) -> Definition:
    """Return the definition in an entry of `tools.external`; missing parts come from the program's own description."""
    own = described or Definition(
        name=entry.name, description="", parameters=Raw(b""), input="argv"
    )
    has_own = bool(entry.parameters) or described is None
    return Definition(
        name=entry.name,
        description=_cleaned(entry.description) or own.description,
        parameters=schema_of_parameters(entry.parameters) if has_own else own.parameters,
        needs=entry.needs if entry.needs != ToolNeeds() else own.needs,
        input=entry.input or own.input,
        timeout_seconds=entry.timeout_seconds or own.timeout_seconds,
        cwd=entry.cwd or own.cwd,
    )


def schema_of_parameters(parameters: dict[str, Any]) -> Raw:
    """Return the JSON Schema of parameters in either form. Raises BadDefinition."""
    is_schema = isinstance(parameters.get("type"), str) or not parameters.keys().isdisjoint(_SCHEMA)
    if not is_schema:
        parameters = _from_flat(parameters)
    return Raw(msgspec.json.encode({**fitting(parameters), "type": "object"}))


def _from_flat(parameters: dict[str, Any]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    required: list[str] = []
    for name, described in parameters.items():
        if not is_object(described):
            raise BadDefinition(f"the parameter {name!r} is not described by an object")
        properties[name] = {key: value for key, value in described.items() if key != "required"}
        required += [name] if described.get("required") is True else []
    return {"properties": properties, **({"required": required} if required else {})}


def _cleaned(description: str) -> str:
    """Return a description without control characters, and not longer than anybody needs."""
    text = description.strip()
    if not text.isprintable():
        text = "".join(each if each.isprintable() else " " for each in text)
    return text if len(text) <= _MOST_DESCRIPTION else text[: _MOST_DESCRIPTION - 1] + "…"
