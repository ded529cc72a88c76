"""Events of every kind, for tests: made up by hypothesis from the types of their fields."""

from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from hypothesis import strategies as st
from msgspec import Raw, Struct

from ybs.core.events import Event

KINDS: tuple[type[Any], ...] = get_args(Event)
_TEXTS = st.text(max_size=6) | st.sampled_from(
    ["", "\n", "\0\x1b[2J", "\u2028", "\\", '"}', "\U0001f600"]
)
_PLAIN = st.none() | st.booleans() | st.integers(-5, 2**60) | _TEXTS
_JSON = st.dictionaries(_TEXTS, _PLAIN | st.lists(_PLAIN, max_size=2), max_size=2)
_SIMPLE = {
    str: _TEXTS,
    bool: st.booleans(),
    int: st.integers(0, 2**53),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bytes: st.binary(max_size=6),
    Raw: _JSON.map(lambda value: Raw(msgspec.json.encode(value))),
    NoneType: st.none(),
}
_made: dict[type[Any], Any] = {}


def some(kind: Any) -> st.SearchStrategy[Any]:
    """Return values of a type that an event's field may have."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return st.sampled_from(inner)
    if origin in (Union, UnionType):
        return st.one_of(*map(some, inner))
    if origin is tuple:
        return st.lists(some(inner[0]), max_size=2).map(tuple)
    if origin is dict:
        return st.dictionaries(some(inner[0]), some(inner[1]), max_size=2)
    if isinstance(kind, type) and issubclass(kind, Struct):
        if kind not in _made:
            fields = {name: some(hint) for name, hint in get_type_hints(kind).items()}
            _made[kind] = st.builds(kind, **fields)
        return _made[kind]
    return _SIMPLE[kind]


#: One event of each kind.
one_of_each = st.tuples(*map(some, KINDS))
