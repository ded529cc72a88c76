"""Masks what the ground floor's values are made of: texts, JSON, pictures. Ids and signatures stay as they are."""

from typing import Any, TypeVar, cast

from msgspec import Raw, Struct, structs

from ybs.core.messages import Image, Text, Thinking
from ybs.security.firewall.images import metadata, stripped
from ybs.security.firewall.masking import Firewall

_T = TypeVar("_T")
#: What a program made up and another compares or checks.
_OPAQUE = frozenset(("id", "call_id", "session"))


def masked(firewall: Firewall, value: _T, place: str = "") -> _T:
    """Return the value with placeholders in its texts; the same value where there is nothing to mask.

    Thinking stays as it came: it goes back to the one who thought it, and its signature covers every letter.
    """
    return cast("_T", _masked(firewall, value, place))


def _masked(firewall: Firewall, value: Any, place: str) -> Any:
    match value:
        case str() | dict():
            return firewall.mask_data(value, place)
        case Raw():
            return firewall.mask_json(value, place)
        case tuple():
            return _items(firewall, cast("tuple[Any, ...]", value), place)
        case Image():
            return _image(firewall, value, place)
        case Struct() if not isinstance(value, Thinking):
            return _fields(firewall, value, place)
        case _:
            return value


def _items(firewall: Firewall, items: tuple[Any, ...], place: str) -> tuple[Any, ...]:
    changed = tuple(_masked(firewall, item, place) for item in items)
    same = all(one is other for one, other in zip(changed, items, strict=True))
    return items if same else changed


def _fields(firewall: Firewall, value: Struct, place: str) -> Struct:
    changes: dict[str, Any] = {}
    for name in value.__struct_fields__:
        if name in _OPAQUE:
            continue
        old = getattr(value, name)
        new = _masked(firewall, old, place)
        if name == "images":
            new = tuple(image for image in new if isinstance(image, Image))
        if new is not old and new != old:
            changes[name] = new
    return structs.replace(value, **changes) if changes else value


def _image(firewall: Firewall, image: Image, place: str) -> Image | Text:
    """Return the picture without its metadata where a secret stands in that; a word in its place if need be."""
    is_clean = True
    for text in metadata(image.data):
        for start, end, kind in firewall.spans(text):
            secret = text[start:end].decode("latin-1")
            firewall.report.add(kind, place, firewall.vault.placeholder(kind, secret))
            is_clean = False
    if is_clean:
        return image
    data = stripped(image.data)
    if data is None:
        return Text(text="[a picture was left out: a secret stands in its metadata]")
    return structs.replace(image, data=data)
