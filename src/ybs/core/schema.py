"""The JSON Schema of a Struct, as models are told what a tool takes."""

from functools import cache

import msgspec
from msgspec import Raw, Struct


@cache
def schema_of(arguments: type[Struct]) -> Raw:
    """Make the compact JSON Schema of a Struct of plain fields: no titles, no `$ref`.

    Defaults are kept, but for `false` and the empty text, which go without saying: each byte is in every request.
    """
    components = msgspec.json.schema_components([arguments], ref_template="{name}")[1]
    schema = components[arguments.__name__]
    for field in schema["properties"].values():
        if field.get("default") is False or field.get("default") == "":
            del field["default"]
    kept = {key: schema[key] for key in ("type", "properties", "required") if schema[key] != []}
    return Raw(msgspec.json.encode(kept))
