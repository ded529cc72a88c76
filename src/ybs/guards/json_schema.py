"""Checking a value against a JSON Schema: what does not fit, in words for the model that made it."""

import re
from collections.abc import Iterator
from typing import Any, Final, TypeAlias, cast

from ybs.core.errors import ConfigError

Json: TypeAlias = Any

#: A message repeats the value that does not fit; of a long one this many characters are told.
_MOST_CHARACTERS: Final = 300


class JsonSchema:
    """A schema that values are checked against. Raises ConfigError for one that cannot be used.

    Nothing is fetched: references lead to places within the schema. Its expressions are trusted, as it is the person's own.
    """

    def __init__(self, schema: Json) -> None:
        import jsonschema.validators  # loaded for those who ask for a form of the answer
        from jsonschema.exceptions import SchemaError
        from referencing import Registry
        from referencing.jsonschema import DRAFT202012

        self.root = schema
        kind: Any = jsonschema.validators.validator_for(
            schema, default=jsonschema.validators.Draft202012Validator
        )
        try:
            kind.check_schema(schema)
        except SchemaError as error:
            where = error.json_path.replace("$", "the schema", 1)
            raise ConfigError(f"{where} is not a JSON Schema: {_short(error.message)}") from error
        registry = Registry[Json]()
        self._validator: Any = kind(schema, registry=registry)
        resource = DRAFT202012.create_resource(schema)
        resolver = registry.with_resource("", resource).resolver("")
        for word, value in _keywords(schema):
            _understand(word, value, resolver)

    def problems(self, value: Json) -> list[str]:
        """Return what of a value does not fit, each with its place; nothing where all fits."""
        try:
            found: list[Any] = sorted(self._validator.iter_errors(value), key=lambda e: e.json_path)
        except RecursionError:
            return ["$ is nested too deeply"]
        return [f"{each.json_path}: {_short(each.message)}" for each in found]


def _keywords(schema: Json) -> Iterator[tuple[str, Json]]:
    """Yield the references and the expressions that stand anywhere in a schema."""
    if isinstance(schema, list):
        for each in cast("list[Json]", schema):
            yield from _keywords(each)
    elif isinstance(schema, dict):
        for word, value in cast("dict[str, Json]", schema).items():
            if isinstance(value, str):
                yield word, value
            elif word == "patternProperties" and isinstance(value, dict):
                yield from (("pattern", each) for each in cast("dict[str, Json]", value))
            yield from _keywords(value)


def _understand(word: str, value: str, resolver: Any) -> None:
    """Follow a reference, or read an expression. Raises ConfigError."""
    from referencing.exceptions import Unresolvable

    try:
        if word == "$ref":
            resolver.lookup(value)
        elif word == "pattern":
            re.compile(value)
    except Unresolvable as error:
        raise ConfigError(
            f"the schema refers to {value!r}, which is not in it; nothing is fetched."
        ) from error
    except re.error as error:
        raise ConfigError(f"the schema has a pattern that cannot be read: {error}") from error


def _short(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"
