"""Report the settings: values with their sources, problems, and the JSON Schema."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ybs.config import paths, schema, sections
from ybs.config.addresses import parts_of, shown_address
from ybs.config.document import (
    SettingsDocument,
    Unusable,
    complaint_of,
    dotted,
    open_document,
    visible,
)
from ybs.config.key_store import mask
from ybs.config.layers import Loaded
from ybs.config.schema import Config
from ybs.config.tree import KeyPath, Layer, ValueOrigin, find, flatten, is_list, is_object

SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"

#: Names of values that are never shown whole. `tokens` counts, `token` is a secret.
_SECRET_NAME = re.compile(
    r"(?i)api[_-]?key(?!_env)|token(?!s|_usage)|secret|passw|credential|authorization|cookie|private[_-]?key"
)
_SECRET_SECTION = {"headers", "env"}
_ADDRESS = re.compile(r"\w+://[^\s\"'`<>]+")


class SettingRow(Struct, frozen=True, kw_only=True):
    """One setting as it is shown. `value` is plain data with secrets masked."""

    key: str
    value: Any
    origin: ValueOrigin


def show(loaded: Loaded) -> list[SettingRow]:
    """List every setting with its value and where that came from, in the schema's order."""
    return [
        SettingRow(
            key=visible(key), value=_masked(value, key.split(".")), origin=loaded.origins[key]
        )
        for key, value in flatten(loaded.config).items()
    ]


def check(loaded: Loaded) -> tuple[str, ...]:
    """List everything that is wrong with the form of the settings; empty when nothing is."""
    return (
        *loaded.warnings,
        *_bad_addresses(loaded),
        *_readable_keys(loaded),
    )


def _bad_addresses(loaded: Loaded) -> Iterator[str]:
    for key, value in flatten(loaded.config).items():
        is_address = key == "llm.endpoint" or re.fullmatch(r"providers\..*\.endpoint", key)
        if not is_address or value is None or complaint_of(value):
            continue  # a marked one has its own warning
        try:
            parts_of(value, is_own=True)
        except ValueError as error:
            yield f"{visible(loaded.origins[key].source)}: {visible(key)}: the address {error}"


def _readable_keys(loaded: Loaded) -> Iterator[str]:
    sources = {
        loaded.origins[key].source.split(": profiles.")[0]
        for key, value in flatten(loaded.config).items()
        if key.endswith(".api_key") and value
    }
    for source in sorted(sources):
        path = Path(source)
        if path.is_file() and path.stat().st_mode & 0o044:
            yield f"{visible(source)}: contains a key and other users can read it; run: chmod 600 '{source}'"


def _masked(value: Any, path: Sequence[str]) -> Any:
    if isinstance(value, Struct):
        value = msgspec.to_builtins(value)
    if is_object(value):
        return {visible(name): _masked(each, [*path, name]) for name, each in value.items()}
    if isinstance(value, tuple) or is_list(value):
        return _masked_list(list(value), path)  # pyright: ignore[reportUnknownArgumentType] - a setting's list
    if not isinstance(value, str):
        return value
    if _SECRET_NAME.search(path[-1]) or _SECRET_SECTION.intersection(path[:-1]):
        return value and mask(value)
    return visible(mask_address(value), 2000)


def _masked_list(values: list[Any], path: Sequence[str]) -> list[Any]:
    """Mask what follows a flag such as `--token`, too."""
    shown: list[Any] = []
    before = ""
    for value in values:
        text = value if isinstance(value, str) else ""
        flag, equals, rest = text.partition("=")
        if equals and flag.startswith("-") and _SECRET_NAME.search(flag):
            shown.append(f"{visible(flag)}={mask(rest)}")
        elif before.startswith("-") and _SECRET_NAME.search(before):
            shown.append(mask(text))
        else:
            shown.append(_masked(value, path))
        before = text
    return shown


def mask_words(words: Sequence[str]) -> list[str]:
    """Return the words of a command with what follows a flag such as `--token`, and keys in addresses, masked."""
    return [str(each) for each in _masked_list([*words], ["args"])]


def mask_address(text: str) -> str:
    """Show of each address in a text where it leads: no login, and nothing behind its path."""
    return _ADDRESS.sub(lambda found: shown_address(found[0]) + "?…" * ("?" in found[0]), text)


def json_schema() -> dict[str, Any]:
    """Make the JSON Schema (draft 2020-12) of a configuration file, for editors and other programs."""
    made = msgspec.json.schema(Config)
    definitions: dict[str, Any] = made["$defs"]
    words = _field_words()
    for name, definition in definitions.items():
        definition["additionalProperties"] = False
        for field, text in words.get(name, {}).items():
            definition["properties"][field]["description"] = text
    root: Any = definitions.pop("Config")
    root["properties"] = {"$schema": {"type": "string"}, **root["properties"]}
    root["properties"]["profiles"]["additionalProperties"] = {"$ref": "#"}
    root["title"] = "Configuration of ybs"
    return {"$schema": SCHEMA_DIALECT, **root, "$defs": definitions}


def _field_words() -> dict[str, dict[str, str]]:
    """Return what stands below the fields of the settings, as their documentation, by section and field."""
    import ast  # only to show the schema
    from inspect import getsource
    from itertools import pairwise

    words: dict[str, dict[str, str]] = {}
    sources = map(getsource, (schema, sections))
    for section in (each for source in sources for each in ast.parse(source).body):
        if not isinstance(section, ast.ClassDef):
            continue
        fields = words.setdefault(section.name, {})
        for field, below in pairwise(section.body):
            match field, below:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    fields[name] = " ".join(text.split())
                case _:
                    pass
    return words


#: Layers whose values stand in files.
_IN_FILES = frozenset({"system", "user", "home", "project", "file", "profile"})
_PROFILE_SIGN = ": profiles."


class Location(Struct, frozen=True):
    """A place in the person's words, such as `/home/a/.ybs.json:3: safety.deny[0]`, and the layer that it is in."""

    text: str
    layer: Layer


def locate(loaded: Loaded, path: Sequence[str], entry: Any = None) -> Location:
    """Return where a setting was written; with `entry` where this entry of a list was."""
    key = ".".join(path)
    origin = loaded.origins.get(key)
    for layer, document in _documents(loaded, key):
        below = find(document.tree, document.prefix_names + tuple(path))
        if below is None:
            continue
        if entry is None:
            return Location(document.named(tuple(path)), layer)
        if is_list(below) and entry in below:
            return Location(document.named((*path, below.index(entry))), layer)
    if origin is not None and origin.layer == "project" and entry is not None:
        return Location(dotted(tuple(path)), "file")  # a project only adds: another file has it
    if origin is None or origin.layer == "default":
        return Location(dotted(tuple(path)), "default")
    source = "" if origin.layer == "option" else f"{visible(origin.source)}: "
    return Location(source + dotted(tuple(path)), origin.layer)


class _Opened(SettingsDocument):
    """A document with the names that lead to what is looked at in it."""

    @property
    def prefix_names(self) -> tuple[str, ...]:
        return tuple(str(step) for step in self.prefix)

    def named(self, path: KeyPath) -> str:
        """Name the file, the line and the key."""
        return f"{self.place(path)}: {dotted(self.prefix + path)}"


def _documents(loaded: Loaded, key: str) -> Iterator[tuple[Layer, _Opened]]:
    """Yield the files that may hold a setting, the one that it came from first."""
    origins = [loaded.origins[key]] if key in loaded.origins else []
    origins += list(loaded.origins.values())
    origins += [
        ValueOrigin("system", str(paths.SYSTEM_FILE)),
        ValueOrigin("user", str(loaded.host.user_config_file)),
        ValueOrigin("home", str(loaded.host.home_config_file)),
    ]
    for origin in dict.fromkeys(origins):
        if origin.layer not in _IN_FILES:
            continue
        file, _, profile = origin.source.partition(_PROFILE_SIGN)
        try:
            document = open_document(Path(file), "project" if origin.layer == "project" else "own")
        except Unusable:
            continue  # changed since it was read
        if document is not None:
            prefix = ("profiles", profile) if profile else ()
            opened = _Opened(document.source, document.text, prefix)
            yield origin.layer, opened.holding(document.tree)
