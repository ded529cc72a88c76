"""Types that JSON is decoded to, made ready for use in several threads.

At the first use of a Struct msgspec looks at its fields, which runs Python code. Another thread that comes to the same class meanwhile
finds it half done, and the process ends with a segmentation fault (msgspec 0.22). So it looks at one class at a time, here.
"""

from threading import RLock
from typing import Any, TypeVar, overload

from msgspec import DecodeError, Raw, json

T = TypeVar("T")
_building = RLock()
_ready = set[Any]()


@overload
def decodable(kind: type[T]) -> type[T]: ...
@overload
def decodable(kind: Any) -> Any: ...  # a union
def decodable(kind: Any) -> Any:
    """Return the type, which any thread may decode to or convert to from now on. It is remembered, so it is not one made at run time.

    Raises TypeError where msgspec cannot decode to it.
    """
    if kind not in _ready:
        build(kind)
        _ready.add(kind)
    return kind


def build(kind: Any) -> None:
    """Make a type ready that is made at run time. Raises TypeError, and ValueError, where msgspec cannot decode to it."""
    with _building:
        json.Decoder(kind)


def from_json(data: bytes | str | Raw, kind: type[T]) -> T:
    """Read JSON as a type. Raises msgspec.DecodeError, and ValidationError where it is of another type."""
    return json.decode(data, type=decodable(kind))


def object_in(data: bytes | Raw) -> dict[str, Any] | None:
    """Return the object that is written there as JSON; None for anything else."""
    try:
        return json.decode(data, type=dict[str, Any])
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None
