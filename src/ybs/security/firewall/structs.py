"""Masks what the values of `core/` are made of: texts, JSON, pictures. Ids and signatures stay as they are."""

from functools import cache
from typing import Any, TypeVar, cast

from msgspec import DecodeError, Raw, Struct, json, structs

from ybs.core.lazy import lazy
from ybs.core.messages import Image, Text, Thinking
from ybs.security.firewall.images import metadata, stripped
from ybs.security.firewall.leaves import joined
from ybs.security.firewall.masking import Firewall, member_text

_T = TypeVar("_T")
#: Most fields are of these, which hold no text.
_WORDLESS = frozenset((bool, float, int, type(None)))
#: What a program made up and another compares or checks.
_OPAQUE = frozenset(("id", "call_id", "session"))
#: Where a key was masked, or begins; where one ends; and a line of it.
_KEY_BEGINS = lazy(
    r"(?:\[ybs:secret:private-key#\d{1,6}\]|-----BEGIN[ A-Z0-9_-]{0,60}PRIVATE KEY(?: BLOCK)?-----)"
    r"[^A-Za-z0-9+/]{0,60}[A-Za-z0-9+/]{40}"
)
_KEY_ENDS = lazy(r"-----END[ A-Z0-9_-]{0,60}PRIVATE KEY")
_KEY_LINE = lazy(r"[A-Za-z0-9+/]{40}")
#: How far before the end of a key a line of it is looked for, in characters.
_TAIL = 160


def masked(firewall: Firewall, value: _T, place: str = "") -> _T:
    """Return the value with placeholders in its texts; the same value where there is nothing to mask.

    Thinking stays as it came: it goes back to the one who thought it, and its signature covers every letter.
    """
    while not (isinstance(value, Struct) and is_clean(firewall, value)):
        seen = _masked(firewall, value, place)
        if seen is value or not isinstance(value, Struct):
            return cast("_T", seen)
        value = cast("_T", seen)  # what one text taught may stand in one before it
    return value


def is_clean(firewall: Firewall, value: Struct) -> bool:
    """Return whether there is nothing to mask in a value. False says only that each text has to be searched alone."""
    texts: list[str] = []
    return _gather(value, texts) and firewall.are_clean(texts)


def has_rest_of_key(value: object) -> bool:
    """Return whether a part of a private key may have been left beside its placeholder."""
    texts: list[str] = []
    _gather(value, texts)
    return any(_KEY_BEGINS().search(text) or _has_tail(text) for text in texts)


def _has_tail(text: str) -> bool:
    return any(
        _KEY_LINE().search(text, max(0, match.start() - _TAIL), match.start())
        for match in _KEY_ENDS().finditer(text)
    )


def _gather(value: Any, texts: list[str]) -> bool:
    """Add the texts in a value; False where there is more to it than text."""
    match value:
        case str():
            texts.append(value)
        case tuple():
            return all(_gather(item, texts) for item in cast("tuple[Any, ...]", value))
        case Raw():
            return _gather_raw(bytes(value), texts)
        case Image():
            return False
        case Struct() if not isinstance(value, Thinking):
            return _gather_fields(value, texts)
        case dict():
            _gather_data(cast("dict[str, Any]", value), texts)
            texts += joined(cast("dict[str, Any]", value))
        case _:
            pass
    return True


def _gather_fields(value: Struct, texts: list[str]) -> bool:
    for name in _fields_of(type(value)):
        item: object = getattr(value, name)
        if isinstance(item, str):
            texts.append(item)
        elif type(item) not in _WORDLESS and not _gather(item, texts):
            return False
    return True


@cache
def _fields_of(kind: type[Struct]) -> tuple[str, ...]:
    return tuple(name for name in kind.__struct_fields__ if name not in _OPAQUE)


def _gather_raw(raw: bytes, texts: list[str]) -> bool:
    try:
        data = json.decode(raw)
    except (DecodeError, UnicodeDecodeError):
        return False
    if b"\\" in raw:
        _gather_data(data, texts)
    else:
        texts.append(raw.decode("utf-8", "replace"))  # it says what it reads
    texts += joined(data)
    return True


def _gather_data(data: Any, texts: list[str]) -> None:
    """Add the texts in plain data; the name of a member is part of what says that a text is a secret."""
    match data:
        case str():
            texts.append(data)
        case list():
            for item in cast("list[Any]", data):
                _gather_data(item, texts)
        case dict():
            for name, inner in cast("dict[str, Any]", data).items():
                texts.append(member_text(name, inner) if isinstance(inner, str) else name)
                _gather_data(inner, texts)
        case _:
            pass


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
