"""Checking a value against a JSON Schema: what does not fit, in words for the model that made it.

https://json-schema.org/draft/2020-12/json-schema-validation. The schema is the person's own, so its expressions are trusted. `format`
says nothing that is checked, as the standard has it; a keyword that would have to be checked and is not is refused.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias, cast

from ybs.core.errors import ConfigError

Json: TypeAlias = Any
_Problems: TypeAlias = Iterator[str]

_UNCHECKED: Final = frozenset(
    {
        *("unevaluatedProperties", "unevaluatedItems", "dependentSchemas", "minContains"),
        *("maxContains", "$dynamicRef", "$recursiveRef", "dependencies"),
    }
)
#: Where schemas stand within a schema: one, a list of them, or a table of them.
_ONE: Final = ("items", "contains", "additionalProperties", "propertyNames", "not", "if", "then", "else")  # fmt: skip
_LISTS: Final = ("prefixItems", "allOf", "anyOf", "oneOf")
_TABLES: Final = ("properties", "patternProperties", "$defs", "definitions")
_DEEPEST: Final = 200
_NUMBER: Final = (int, float)
#: What the values of keywords have to be, where something else could not be checked.
_SHAPES: Final[Mapping[str, type | tuple[type, ...]]] = {
    **dict.fromkeys(("required", "enum", *_LISTS), list),
    **dict.fromkeys(_TABLES, dict),
    **dict.fromkeys(_ONE, (dict, bool)),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), int),
    **dict.fromkeys(("minProperties", "maxProperties"), int),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _NUMBER),
    "multipleOf": _NUMBER,
    "pattern": str,
    "type": (str, list),
    "dependentRequired": dict,
}


class JsonSchema:
    """A schema that values are checked against. Raises ConfigError for one that is not understood."""

    def __init__(self, schema: Json) -> None:
        self.root = schema
        self._understand(schema, "the schema")

    def problems(self, value: Json) -> list[str]:
        """Return what of a value does not fit, each with its place; nothing where all fits."""
        return list(self._check(self.root, value, "$", 0))

    def _understand(self, schema: Json, place: str) -> None:
        if isinstance(schema, bool):
            return
        if not isinstance(schema, dict):
            raise ConfigError(f"{place} is not a JSON Schema: it is {kind_of(schema)}.")
        rules = cast("dict[str, Json]", schema)
        if unknown := sorted(_UNCHECKED & rules.keys()):
            raise ConfigError(f"{place} has {unknown[0]!r}, which ybs does not check.")
        _check_shapes(rules, place)
        if "$ref" in rules:
            self._target(rules["$ref"], place)
        for name in ("pattern", *rules.get("patternProperties", ())):
            _compile(rules.get(name, "") if name == "pattern" else name, place)
        for name, inner in _inner_schemas(rules):
            self._understand(inner, f"{place}.{name}")

    def _target(self, reference: Json, place: str = "the schema") -> Json:
        """Return the schema that a reference points to. Raises ConfigError."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise ConfigError(
                f"{place} refers to {reference!r}: only references within the file (#/...) are followed."
            )
        found: Json = self.root
        for step in filter(None, reference[1:].split("/")):
            key = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, dict) or key not in found:
                raise ConfigError(f"{place} refers to {reference!r}, which is not there.")
            found = cast("dict[str, Json]", found)[key]
        return found

    def _check(self, schema: Json, value: Json, place: str, depth: int) -> _Problems:
        if isinstance(schema, bool):
            if not schema:
                yield f"{place} must not be there"
            return
        if depth > _DEEPEST:
            yield f"{place} is nested too deeply"
            return
        rules = cast("dict[str, Json]", schema)
        for name, check in _VALUE_CHECKS.items():
            if name in rules and (said := check(rules[name], value)):
                yield f"{place} {said}"
        yield from self._check_choices(rules, value, place, depth)
        if isinstance(value, dict):
            yield from self._check_object(rules, cast("dict[str, Json]", value), place, depth)
        elif isinstance(value, list):
            yield from self._check_list(rules, cast("list[Json]", value), place, depth)

    def _fits(self, schema: Json, value: Json, depth: int) -> bool:
        return next(self._check(schema, value, "", depth + 1), None) is None

    def _check_choices(
        self, rules: Mapping[str, Json], value: Json, place: str, depth: int
    ) -> _Problems:
        """Check what refers to other schemas for the same value."""
        if "$ref" in rules:
            yield from self._check(self._target(rules["$ref"]), value, place, depth + 1)
        for each in rules.get("allOf", ()):
            yield from self._check(each, value, place, depth + 1)
        any_of, one_of = rules.get("anyOf", ()), rules.get("oneOf", ())
        if any_of and not any(self._fits(each, value, depth) for each in any_of):
            yield f"{place} fits none of the {len(any_of)} choices of anyOf"
        if one_of and (count := sum(self._fits(each, value, depth) for each in one_of)) != 1:
            yield f"{place} fits {count} of the choices of oneOf, not exactly one"
        if "not" in rules and self._fits(rules["not"], value, depth):
            yield f"{place} fits what `not` excludes"
        if "if" in rules:
            branch = "then" if self._fits(rules["if"], value, depth) else "else"
            yield from self._check(rules.get(branch, True), value, place, depth + 1)

    def _check_object(
        self, rules: Mapping[str, Json], value: dict[str, Json], place: str, depth: int
    ) -> _Problems:
        for name in rules.get("required", ()):
            if name not in value:
                yield f"{place}.{name} is missing"
        for name, needed in rules.get("dependentRequired", {}).items():
            missing = [each for each in needed if name in value and each not in value]
            yield from (f"{place}.{each} is missing" for each in missing)
        known, patterns = rules.get("properties", {}), rules.get("patternProperties", {})
        for name, each in value.items():
            fitting = [known[name]] if name in known else []
            fitting += [inner for pattern, inner in patterns.items() if re.search(pattern, name)]
            for inner in fitting or [rules.get("additionalProperties", True)]:
                yield from self._check(inner, each, f"{place}.{name}", depth + 1)
            if not self._fits(rules.get("propertyNames", True), name, depth):
                yield f"{place} has the key {name!r}, which propertyNames does not allow"

    def _check_list(
        self, rules: Mapping[str, Json], value: list[Json], place: str, depth: int
    ) -> _Problems:
        first = rules.get("prefixItems", ())
        for number, each in enumerate(value):
            inner = first[number] if number < len(first) else rules.get("items", True)
            yield from self._check(inner, each, f"{place}[{number}]", depth + 1)
        contained = rules.get("contains", True)
        if "contains" in rules and not any(self._fits(contained, each, depth) for each in value):
            yield f"{place} has no item that fits `contains`"


def kind_of(value: Json) -> str:
    """Return what a JSON value is called, with its article."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "an array"
        case _:
            return "an object"


def _check_shapes(rules: Mapping[str, Json], place: str) -> None:
    """Raise ConfigError where a keyword has a value that nothing could be checked against."""
    for name, kinds in _SHAPES.items():
        if name in rules and not isinstance(rules[name], kinds):
            raise ConfigError(f"{place}.{name} cannot be {kind_of(rules[name])}.")


def _inner_schemas(rules: Mapping[str, Json]) -> Iterator[tuple[str, Json]]:
    for name in _ONE:
        if name in rules:
            yield name, rules[name]
    for name in _LISTS:
        yield from ((f"{name}[{place}]", each) for place, each in enumerate(rules.get(name, ())))
    for name in _TABLES:
        yield from ((f"{name}.{key}", each) for key, each in rules.get(name, {}).items())


def _compile(pattern: Json, place: str) -> None:
    try:
        re.compile(pattern)
    except (re.error, TypeError) as error:
        raise ConfigError(f"{place} has a pattern that cannot be read: {error}") from error


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _has_type(kind: str, value: Json) -> bool:
    if kind == "integer":
        return _is_number(value) and float(value).is_integer()
    types: dict[str, Any] = {
        "string": str, "boolean": bool, "array": list, "object": dict, "null": type(None)
    }  # fmt: skip
    return _is_number(value) if kind == "number" else isinstance(value, types.get(kind, ()))


def _same(one: Json, other: Json) -> bool:
    """Return whether two JSON values are equal; unlike in Python, true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        pairs = zip(cast("list[Json]", one), cast("list[Json]", other), strict=False)
        return len(one) == len(other) and all(_same(*pair) for pair in pairs)  # pyright: ignore[reportUnknownArgumentType] - JSON
    if isinstance(one, dict) and isinstance(other, dict):
        first, second = cast("dict[str, Json]", one), cast("dict[str, Json]", other)
        return first.keys() == second.keys() and all(_same(first[k], second[k]) for k in first)
    return one == other


def _type(rule: Json, value: Json) -> str:
    kinds = cast("list[str]", rule) if isinstance(rule, list) else [rule]
    if any(_has_type(kind, value) for kind in kinds):
        return ""
    return f"is {kind_of(value)}, not of type {' or '.join(kinds)}"


def _enum(rule: Json, value: Json) -> str:
    return "" if any(_same(each, value) for each in rule) else f"is not one of {rule}"


def _of_number(fits: Callable[[float, float], bool], words: str) -> Callable[[Json, Json], str]:
    return lambda rule, value: (
        f"is {words} {rule}" if _is_number(value) and not fits(value, rule) else ""
    )


def _of_size(kind: type, fits: Callable[[int, int], bool], words: str) -> Callable[[Json, Json], str]:  # fmt: skip
    return lambda rule, value: (
        words.format(rule) if isinstance(value, kind) and not fits(len(value), rule) else ""
    )


def _pattern(rule: Json, value: Json) -> str:
    is_wrong = isinstance(value, str) and not re.search(rule, value)
    return f"does not match the pattern {rule!r}" if is_wrong else ""


def _unique(rule: Json, value: Json) -> str:
    if not rule or not isinstance(value, list):
        return ""
    items = cast("list[Json]", value)
    twins = any(_same(a, b) for place, a in enumerate(items) for b in items[:place])
    return "has an item twice" if twins else ""


def _is_multiple(value: float, step: float) -> bool:
    return abs(value / step - round(value / step)) < 1e-9


#: What looks at the value alone, by its keyword; each returns what is wrong, or nothing.
_VALUE_CHECKS: Final[dict[str, Callable[[Json, Json], str]]] = {
    "type": _type,
    "enum": _enum,
    "const": lambda rule, value: "" if _same(rule, value) else f"is not {rule!r}",
    "minimum": _of_number(lambda value, least: value >= least, "below"),
    "maximum": _of_number(lambda value, most: value <= most, "above"),
    "exclusiveMinimum": _of_number(lambda value, least: value > least, "not above"),
    "exclusiveMaximum": _of_number(lambda value, most: value < most, "not below"),
    "multipleOf": _of_number(_is_multiple, "not a multiple of"),
    "minLength": _of_size(str, lambda size, least: size >= least, "is shorter than {} characters"),
    "maxLength": _of_size(str, lambda size, most: size <= most, "is longer than {} characters"),
    "pattern": _pattern,
    "minItems": _of_size(list, lambda size, least: size >= least, "has fewer than {} items"),
    "maxItems": _of_size(list, lambda size, most: size <= most, "has more than {} items"),
    "uniqueItems": _unique,
    "minProperties": _of_size(dict, lambda size, least: size >= least, "has fewer than {} keys"),
    "maxProperties": _of_size(dict, lambda size, most: size <= most, "has more than {} keys"),
}
