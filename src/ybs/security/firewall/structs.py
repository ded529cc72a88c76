"""Masks what the values of `core/` are made of: texts, JSON, pictures. Ids and signatures stay as they are."""

import zlib
from functools import cache, lru_cache
from typing import Any, TypeVar, cast

from msgspec import DecodeError, Raw, Struct, json, structs

from ybs.core.lazy import lazy
from ybs.core.messages import Image, Text, Thinking
from ybs.core.ports import Question
from ybs.security.firewall.leaves import joined
from ybs.security.firewall.masking import LONGEST_MEMBER, Firewall, member_text, written
from ybs.security.firewall.rules import FRAME_SIGNS, key_frame

_T = TypeVar("_T")
_QUESTION = "a question"
#: Most fields are of these, which hold no text.
_WORDLESS = frozenset((bool, float, int, type(None)))
#: What a program made up and another compares or checks.
_OPAQUE = frozenset(("id", "call_id", "session"))
#: Where a key was masked, or begins; where one ends; and a line of it.
_GAP = r"(?:\\+[nrt]|[^A-Za-z0-9+/\\]){0,60}"
_KEY_BEGINS = lazy(
    rf"\[ybs:secret:private-key#\d{{1,6}}\]{_GAP}[A-Za-z0-9+/]{{40}}|"
    rf"(?=.{{0,80}}?(?i:key)){key_frame(b'BEGIN').decode()}{_GAP}[A-Za-z0-9+/]{{32}}"
)
_KEY_ENDS = lazy(rf"(?=.{{0,80}}?(?i:key)){key_frame(b'END').decode()}")
_KEY_LINE = lazy(r"[A-Za-z0-9+/]{32}")
#: JSON below this length is remembered for a while, in bytes.
_SHORT = 4_096
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


def masked_question(firewall: Firewall, question: Question) -> Question:
    """Return a question with placeholders for the person's own secrets and published formats; of a diff, for all secrets but in what would be new."""
    preview = question.preview
    if preview.is_diff:
        body = _masked_diff(firewall, preview.body)
        question = structs.replace(question, preview=structs.replace(preview, body=body))
    return masked(firewall.asking(), question, _QUESTION)


def _masked_diff(firewall: Firewall, body: str) -> str:
    """Mask what a diff shows of a file as it is: its lines as one text, without their signs, and each alone."""
    lines = body.split("\n")
    old = [number for number, line in enumerate(lines) if line[:1] != "+"]
    texts = [line[1:] for line in lines]
    with firewall.unreported():
        firewall.mask_run(texts, old, _QUESTION, least=1)
        for number in old:
            lines[number] = firewall.mask(lines[number][:1] + texts[number], _QUESTION)
    return "\n".join(lines)


def is_clean(firewall: Firewall, value: Struct) -> bool:
    """Return whether there is nothing to mask in a value. False says only that each text has to be searched alone."""
    texts: list[str] = []
    return _gather(value, texts) and firewall.are_clean(texts)


def has_rest_of_key(value: object) -> bool:
    """Return whether a part of a private key may have been left beside its placeholder."""
    texts: list[str] = []
    _gather(value, texts)
    marked = (text for text in texts if "private-key#" in text or has_frame(text))
    return any(_KEY_BEGINS().search(text) or _has_tail(text) for text in marked)


def has_frame(text: str) -> bool:
    """Return whether something in the text is framed as keys are."""
    return any(sign.decode() in text for sign in FRAME_SIGNS)


def _has_tail(text: str) -> bool:
    return any(
        _KEY_LINE().search(text, max(0, match.start() - _TAIL), match.start())
        for match in _KEY_ENDS().finditer(text)
    )


def _gather(value: Any, texts: list[str]) -> bool:
    """Add the texts in a value; False where there is more to it than text."""
    match value:
        case str():
            _gather_text(value, texts)
        case tuple():
            return all(_gather(item, texts) for item in cast("tuple[Any, ...]", value))
        case Raw():
            return _gather_raw(bytes(value), texts)
        case Image():
            return False
        case Struct() if not isinstance(value, Thinking):
            return _gather_fields(value, texts)
        case dict():
            raw = written(cast("dict[str, Any]", value)).encode("utf-8", "surrogatepass")
            return _gather_raw(raw, texts)
        case _:
            pass
    return True


def _gather_fields(value: Struct, texts: list[str]) -> bool:
    for name in _fields_of(type(value)):
        item: object = getattr(value, name)
        if isinstance(item, str):
            if item:
                _gather_text(item, texts)
        elif type(item) not in _WORDLESS and not _gather(item, texts):
            return False
    return True


def _gather_text(text: str, texts: list[str]) -> None:
    texts.append(text)
    if not text[:1].isalnum() and (data := _json_in(text)) is not None:
        texts += joined(data)


@cache
def _fields_of(kind: type[Struct]) -> tuple[str, ...]:
    return tuple(name for name in kind.__struct_fields__ if name not in _OPAQUE)


def _gather_raw(raw: bytes, texts: list[str]) -> bool:
    found = (_texts_in if len(raw) < _SHORT else _texts_in.__wrapped__)(raw)
    texts += found or ()
    return found is not None


@lru_cache(
    maxsize=32
)  # a call comes by several times: as a message, when it begins, when it is written down
def _texts_in(raw: bytes) -> list[str] | None:
    """Return the texts in a piece of JSON; None where it is none."""
    try:
        data = json.decode(raw)
    except (DecodeError, UnicodeDecodeError):
        return None
    texts = [raw.decode("utf-8", "replace")]
    if b"\\" in raw:  # else it says what it reads
        _gather_data(data, texts, is_all=b"\\u" in raw or b"\\/" in raw)
    return texts + joined(data)


def _gather_data(data: Any, texts: list[str], *, is_all: bool) -> None:
    """Add the texts in plain data, or those that JSON writes with escapes; the name of a member is part of what says that a text is a secret."""
    match data:
        case str():
            if is_all or not _is_written_plainly(data):
                texts.append(data)
        case list():
            for item in cast("list[Any]", data):
                _gather_data(item, texts, is_all=is_all)
        case dict():
            for name, inner in cast("dict[str, Any]", data).items():
                is_read_along = isinstance(inner, str) and len(inner) <= LONGEST_MEMBER
                is_plain = not is_read_along or _is_written_plainly(inner)
                if is_all or not (is_plain and _is_written_plainly(name)):
                    texts.append(member_text(name, inner) if is_read_along else name)
                _gather_data(inner, texts, is_all=is_all)
        case _:
            pass


def _is_written_plainly(text: str) -> bool:
    return '"' not in text and "\\" not in text and text.isprintable()


def _masked(firewall: Firewall, value: Any, place: str) -> Any:
    match value:
        case str() | dict():
            return _plain(firewall, value, place)
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


def _plain(firewall: Firewall, value: Any, place: str) -> Any:
    """Return a text or plain data masked; a text that is JSON, as a tool prints it, also where a secret goes on in the next value."""
    if isinstance(value, str) and _json_in(value) is not None:
        raw = Raw(value.encode("utf-8", "surrogatepass"))
        clean = firewall.mask_json(raw, place)
        value = value if clean is raw else bytes(clean).decode()
    return firewall.mask_data(value, place)


def _json_in(text: str) -> Any:
    """Return the data that a text is; None where it is none."""
    whole = text.strip()
    if whole[:1] not in ("{", "[") or whole[-1:] not in ("}", "]"):
        return None
    try:
        return json.decode(whole)
    except (DecodeError, UnicodeError):
        return None


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


_PNG = b"\x89PNG\r\n\x1a\n"
#: Chunks that are the picture or say how its pixels are shown; all others may hold words.
_PNG_PLAIN = frozenset(
    (
        b"IHDR",
        b"PLTE",
        b"IDAT",
        b"IEND",
        b"tRNS",
        b"gAMA",
        b"cHRM",
        b"sRGB",
        b"pHYs",
        b"bKGD",
        b"sBIT",
    )
)
_JPEG = b"\xff\xd8"
_MARKER = lazy(rb"\xff+[\xc0-\xfe]")
#: Within a scan 0xFF is followed by 0 or the number of a restart.
_SCAN_ENDS = lazy(rb"\xff[^\x00\xd0-\xd7\xff]")
_SCAN, _END = 0xDA, 0xD9
_JPEG_TABLES = frozenset((*range(0xC0, 0xD0), *range(0xDA, 0xE0)))
#: JFIF and Adobe say how the colours are stored, in so many bytes.
_JPEG_NOTES = {0xE0: 16, 0xEE: 14}
_MOST_TEXT = 1_000_000

#: A part of a picture: its bytes, and the text in it where it is metadata.
Part = tuple[bytes, bytes | None]


def metadata(data: bytes) -> list[bytes]:
    """Return the texts in the picture's metadata; the whole picture where its format is another than PNG or JPEG."""
    parts = _parts(data)
    return [data] if parts is None else [text for _, text in parts if text is not None]


def stripped(data: bytes) -> bytes | None:
    """Return the picture without its metadata; None where that is not known how."""
    parts = _parts(data)
    return None if parts is None else b"".join(part for part, text in parts if text is None)


def _parts(data: bytes) -> list[Part] | None:
    if data.startswith(_PNG):
        return _png_parts(data)
    if data.startswith(_JPEG):
        return _jpeg_parts(data)
    return None


def _png_parts(data: bytes) -> list[Part] | None:
    """Return the chunks (https://www.w3.org/TR/png-3/#5Chunk-layout); None where something else is among them."""
    parts: list[Part] = [(_PNG, None)]
    place, kind = len(_PNG), b""
    while kind != b"IEND":
        end = place + 12 + int.from_bytes(data[place : place + 4])
        kind = data[place + 4 : place + 8]
        if end > len(data) or not (kind.isascii() and kind.isalpha()):
            return None
        text = None if kind in _PNG_PLAIN else _unpacked(data[place + 8 : end - 4])
        parts.append((data[place:end], text))
        place = end
    return [*parts, *_rest(data[place:])]


def _unpacked(body: bytes) -> bytes:
    """Return a chunk as it is, and what is compressed in it."""
    for mark in (b"x\x9c", b"x\x01", b"x\xda", b"x^"):
        _, found, rest = body.partition(mark)
        if found:
            try:
                return body + b"\n" + zlib.decompressobj().decompress(mark + rest, _MOST_TEXT)
            except zlib.error:
                continue
    return body


def _jpeg_parts(data: bytes) -> list[Part] | None:
    """Return the segments and the scans, which are the picture itself (ITU-T T.81, B.1); None without a scan."""
    parts: list[Part] = [(_JPEG, None)]
    place, has_scan = len(_JPEG), False
    while found := _MARKER().match(data, place):
        marker, start = data[found.end() - 1], found.end()
        end = start + (0 if marker == _END else int.from_bytes(data[start : start + 2]))
        if end > len(data):
            break
        is_text = marker not in _JPEG_TABLES and end - start > _JPEG_NOTES.get(marker, 0)
        parts.append((data[place:end], data[start:end] if is_text else None))
        place = end
        if marker == _END:
            break
        if marker == _SCAN:
            has_scan, ends = True, _SCAN_ENDS().search(data, place)
            place = ends.start() if ends else len(data)
            parts.append((data[end:place], None))
    return [*parts, *_rest(data[place:])] if has_scan else None


def _rest(data: bytes) -> list[Part]:
    """Return the bytes behind a picture that are not part of it."""
    return [(data, data)] if data else []
