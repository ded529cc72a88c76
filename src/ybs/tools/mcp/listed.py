"""The offers of a server, as ybs keeps them: fit to be shown to a model, and named so that two servers cannot collide."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from ybs.config.parameters import CHOICES, fitting, target
from ybs.config.tree import is_list, is_object
from ybs.core.cutting import whole_words
from ybs.security.marks import marked, marked_data

#: A schema is sent with every request of a model.
MOST_SCHEMA: Final = 16_000
MOST_NAME: Final = 200
_MOST_DESCRIPTION = 1_200
_LONGEST_NAME = 64
_UNFIT = re.compile(r"[^A-Za-z0-9_-]")
#: Keys of a schema that tell a model nothing.
_DROPPED = ("$schema", "$id", "title")


class ListedTool(Struct, frozen=True, kw_only=True):
    """One tool of a server by its own name. `digest` stands for all that it says of itself; `is_reading` is its own claim."""

    name: str
    description: str
    parameters: Raw
    digest: str
    is_reading: bool = False

    @property
    def lines(self) -> list[str]:
        """The tool in lines, for a comparison."""
        schema = msgspec.json.format(bytes(self.parameters), indent=2).decode()
        return [*self.description.splitlines(), *schema.splitlines()]


class Resource(Struct, frozen=True, kw_only=True):
    """A resource by its address."""

    uri: str
    name: str = ""
    description: str = ""


class PromptArgument(Struct, frozen=True, kw_only=True):
    """What a prompt takes."""

    name: str
    is_required: bool = False


class ServerPrompt(Struct, frozen=True, kw_only=True):
    """A prompt by its name."""

    name: str
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()


class ServerOffer(Struct, frozen=True, kw_only=True):
    """All of a server's offer that is used. Its instructions are not: what it says of its tools is approved, and no other words reach a model unasked."""

    tools: tuple[ListedTool, ...] = ()
    resources: tuple[Resource, ...] = ()
    prompts: tuple[ServerPrompt, ...] = ()


def listed(name: str, description: str, schema: dict[str, Any], *, is_reading: bool) -> ListedTool:
    """Return a tool as it is kept: without hidden characters, in bounds. Raises ValueError for one that cannot be used."""
    from hashlib import sha256  # the start needs none

    said = msgspec.json.encode([name, description, schema], order="deterministic")
    flat = _flattened(fitting(schema))
    wanted = {key: each for key, each in flat.items() if key not in _DROPPED}
    if len(name) > MOST_NAME:
        raise ValueError(f"its name has more than {MOST_NAME} characters")
    is_small = len(msgspec.json.encode(wanted)) <= MOST_SCHEMA  # else nobody has the time to look
    fit: Any = marked_data(wanted)[0] if is_small else {}
    parameters = msgspec.json.encode({**fit, "type": "object"}, order=None)
    if not is_small or len(parameters) > MOST_SCHEMA:
        raise ValueError(f"its parameters take more than {MOST_SCHEMA:,} bytes")
    return ListedTool(
        name=name,
        description=cleaned(description),
        parameters=Raw(parameters),
        digest=sha256(said).hexdigest(),
        is_reading=is_reading,
    )


def _flattened(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without choices at its root: with the properties of all of them, and those required that each requires."""
    if not any(is_list(schema.get(word)) for word in CHOICES):
        return schema
    flat = {key: each for key, each in schema.items() if key not in CHOICES}
    own: Any = schema.get("properties")
    properties: dict[str, list[Any]] = (
        {name: [each] for name, each in own.items()} if is_object(own) else {}
    )
    required = _names_in(schema)
    for word in CHOICES:
        said: Any = schema.get(word)
        branches = (
            [_target(each, schema) for each in said if is_object(each)] if is_list(said) else []
        )
        needs = [_names_in(branch) for branch in branches]
        join = set[str].union if word == "allOf" else set[str].intersection
        required |= join(*needs) if needs else set()
        for branch in branches:
            theirs: Any = branch.get("properties")
            for name, each in theirs.items() if is_object(theirs) else ():
                kinds = properties.setdefault(name, [])
                kinds += [each] * (each not in kinds)
    flat["properties"] = {
        name: kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
        for name, kinds in properties.items()
    }
    flat["required"] = [name for name in properties if name in required]
    return flat


def _names_in(schema: Mapping[str, Any]) -> set[str]:
    required: Any = schema.get("required")
    return {each for each in required if isinstance(each, str)} if is_list(required) else set()


def _target(branch: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a branch says, also where it refers to a definition of the same schema."""
    found = target(branch.get("$ref"), schema)
    return found if is_object(found) else branch


def cleaned(text: str, most: int = _MOST_DESCRIPTION) -> str:
    """Return words of a server with signs in place of characters that nobody sees, and not longer than anybody needs."""
    text = text.strip()
    beginning = whole_words(text, most)
    shown = marked(beginning)[0]
    is_whole = len(beginning) == len(text) and len(shown) <= most
    return shown if is_whole else f"{whole_words(shown, most - 1).rstrip()}…"


def full_name(server: str, tool: str) -> str:
    """Return the name by which models call a tool: `mcp__SERVER__TOOL`, with what no provider takes replaced."""
    name = f"mcp__{server_part(server)}__{_UNFIT.sub('_', tool)}"
    if len(name) <= _LONGEST_NAME:
        return name
    from hashlib import sha256

    short = sha256(f"{server}\0{tool}".encode()).hexdigest()[:8]
    return f"{name[: _LONGEST_NAME - 9]}_{short}"


def server_part(server: str) -> str:
    """Return what stands for a server in the names of its tools: without `__`, so that a rule such as `mcp__time__*` means one server."""
    plain = re.sub("_+", "_", _UNFIT.sub("_", server)).strip("_")
    if plain and server.isascii():
        return plain
    from hashlib import sha256  # rare

    return f"{plain}_{sha256(server.encode()).hexdigest()[:6]}".lstrip("_")


def differences(old: ListedTool | None, new: ListedTool) -> Iterator[str]:
    """Yield the lines in which a tool has changed, as in a diff; of a new one all lines."""
    from difflib import unified_diff  # rare

    yield from unified_diff(
        old.lines if old else (), new.lines, "approved", "now", lineterm="", n=1
    )
