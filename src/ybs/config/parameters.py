"""Parameters of tools that others wrote, as providers take them: one word that does not fit makes them refuse the whole request."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from ybs.config.tree import is_list, is_object

#: Choices, which providers also refuse at the root.
CHOICES: Final = ("anyOf", "oneOf", "allOf")
_TYPES: Final = ("object", "array", "string", "number", "integer", "boolean", "null")
_SCHEMA: Final = ("items", "additionalProperties", "not")
_NAMED: Final = ("properties", "$defs", "definitions", "patternProperties")
_SEVERAL: Final = (*CHOICES, "prefixItems")
_AMOUNTS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_COUNTS: Final = tuple(
    f"{end}{of}" for end in ("min", "max") for of in ("Length", "Items", "Properties")
)
_TEXTS: Final = ("description", "title", "format", "pattern")
_NOTHING: Final = object()
_DEEPEST: Final = 60


def fitting(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without the words whose values JSON Schema does not have, or that refer to what is not there.

    An array always has items, as providers want. What is nested too deeply may be anything.
    """
    return _fitting(schema, schema, _DEEPEST)


def _fitting(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> dict[str, Any]:
    if not depth:
        return {}
    fit_inner = partial(_fitting, root=root, depth=depth - 1)
    kept = {word: _value(word, value, root, fit_inner) for word, value in schema.items()}
    fit = {word: value for word, value in kept.items() if value is not _NOTHING}
    kinds = fit.get("type")
    if kinds == "array" or (is_list(kinds) and "array" in kinds):
        fit.setdefault("items", {})
    return fit


def _value(
    word: str,
    value: Any,
    root: Mapping[str, Any],
    fit: Callable[[Mapping[str, Any]], dict[str, Any]],
) -> Any:
    """Return the value of a word as JSON Schema has it; `_NOTHING` where it is of no use."""
    if word in _SCHEMA and is_object(value):
        return fit(value)
    if word in _NAMED and is_object(value):
        each = ((name, inner) for name, inner in value.items() if not is_list(inner))
        return {name: fit(inner) if is_object(inner) else {} for name, inner in each}
    if word in _SEVERAL and is_list(value):
        return [fit(inner) for inner in value if is_object(inner)] or _NOTHING
    if word == "required" and is_list(value):
        return list(dict.fromkeys(name for name in value if isinstance(name, str)))
    if word == "$ref":
        return value if is_object(target(value, root)) else _NOTHING
    is_valid = _VALID.get(word)
    return value if is_valid is None or is_valid(value) else _NOTHING


def _is_type(value: Any) -> bool:
    kinds: list[Any] = value if is_list(value) else [value]
    return bool(kinds) and all(kind in _TYPES for kind in kinds)


def _is_amount(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return _is_amount(value) and isinstance(value, int) and value >= 0


#: Whether a word may have a value, where that is not a schema or a list of them; words that are not known may have any.
_VALID: Final[Mapping[str, Callable[[Any], bool]]] = {
    "type": _is_type,
    "enum": lambda value: is_list(value) and bool(value),
    **dict.fromkeys(_AMOUNTS, _is_amount),
    **dict.fromkeys(_COUNTS, _is_count),
    **dict.fromkeys(_SCHEMA, lambda value: isinstance(value, bool)),
    **dict.fromkeys(_TEXTS, lambda value: isinstance(value, str)),
    **dict.fromkeys((*_NAMED, *_SEVERAL, "required"), lambda _: False),
}


def target(reference: Any, root: Any) -> Any:
    """Return the part of a document that a reference such as `#/a/b` means; None where there is none."""
    place, *steps = reference.split("/") if isinstance(reference, str) else ("",)
    found = root if place == "#" else None
    for step in steps:
        found = found.get(step.replace("~1", "/").replace("~0", "~")) if is_object(found) else None
    return found
