"""Settings as a tree whose leaves remember where they came from, and how trees are laid over each other."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeAlias, TypeGuard

from msgspec import Struct

#: Where a value came from, the weakest first.
Layer: TypeAlias = Literal[
    "default", "system", "user", "home", "project", "file", "profile", "environment", "option"
]


#: The way to a value: names of keys, and indexes in lists.
KeyPath: TypeAlias = tuple[str | int, ...]

#: No setting is nested deeper.
DEEPEST = 40


class ValueOrigin(Struct, frozen=True):
    """Where a value came from: the layer, and the file, variable or option in it."""

    layer: Layer
    source: str = ""


DEFAULT = ValueOrigin("default")


class Leaf:
    """A value with its origin. Lists are leaves: they replace each other whole."""

    __slots__ = ("origin", "value")

    def __init__(self, value: Any, origin: ValueOrigin) -> None:
        self.value, self.origin = value, origin


#: Objects hold objects and leaves.
Tree: TypeAlias = dict[str, Any]


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """Return whether a value is a JSON object."""
    return isinstance(value, dict)


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """Return whether a value is a JSON list."""
    return isinstance(value, list)


def label(values: Mapping[str, Any], origin: ValueOrigin) -> Tree:
    """Make a tree of plain values, all of one origin."""
    return {
        name: label(value, origin) if is_object(value) else Leaf(value, origin)
        for name, value in values.items()
    }


def merge(under: Tree, over: Tree) -> Tree:
    """Lay one tree over another: objects are merged, everything else is replaced."""
    merged = dict(under)
    for name, value in over.items():
        below = merged.get(name)
        merged[name] = merge(below, value) if is_object(below) and is_object(value) else value
    return merged


def values_of(tree: Tree) -> dict[str, Any]:
    """Return the plain values of a tree."""
    return {
        name: values_of(value) if is_object(value) else value.value for name, value in tree.items()
    }


def leaves_of(tree: Tree, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Leaf]]:
    """Yield every leaf with the way to it."""
    for name, value in tree.items():
        if is_object(value):
            yield from leaves_of(value, (*path, name))
        else:
            yield (*path, name), value


def find(tree: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    """Return the leaf or the object at the end of a way, or None."""
    found: Any = tree
    for step in path:
        found = found.get(step) if is_object(found) else None
    return found


def put(tree: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    """Set the value at the end of a way, making the objects on it."""
    for step in path[:-1]:
        below = tree.get(step)
        if not is_object(below):
            below = tree[step] = {}
        tree = below
    tree[path[-1]] = value


def flatten(settings: Struct, before: str = "") -> dict[str, Any]:
    """Return every single value by its dotted key. Lists, and sections without entries, are values."""
    flat: dict[str, Any] = {}
    for name in settings.__struct_fields__:
        flat.update(_flatten_value(getattr(settings, name), before + name))
    return flat


def _flatten_value(value: Any, key: str) -> dict[str, Any]:
    if isinstance(value, Struct):
        return flatten(value, key + ".")
    if not is_object(value) or not value:
        return {key: value}
    flat: dict[str, Any] = {}
    for name, each in value.items():
        flat.update(_flatten_value(each, f"{key}.{name}"))
    return flat
