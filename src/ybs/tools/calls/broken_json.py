"""A call's arguments that are not valid JSON: repaired where the meaning is certain, and for reading also by guessing."""

import re
from collections.abc import Collection
from typing import Any

import msgspec

REPAIRED = "the arguments were not valid JSON and were repaired"
UNESCAPED = rf"{REPAIRED}; write \" for a quote within a text"
_MOST_CHARS = 100_000  # more is not worth guessing at
#: Outside of strings: a comma before a closing bracket, or one of Python's words.
_SLIP = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])|\b(?:True|False|None)\b', re.DOTALL)
_MEANT = {",": "", "True": "true", "False": "false", "None": "null"}
_PART_OF_JSON = re.compile(r"[\"'{}\[\]\\]")


def repaired(text: str, names: Collection[str], *, is_careful: bool) -> tuple[Any, str]:
    """Read what was meant, and return it with a note for the model. Raises ValueError.

    `names` are all that the object may have; none where it may have any. `is_careful`: nothing is guessed.
    """
    try:
        return without_loss(text), REPAIRED
    except ValueError as error:
        problem = error
    try:
        return split_at_names(text, names), UNESCAPED
    except (ValueError, RecursionError):
        if is_careful:
            raise problem from None
    return guessed(text), REPAIRED


def guessed(text: str) -> Any:
    """Read what may have been meant. Raises ValueError where there is nothing to go by."""
    if len(text) > _MOST_CHARS:
        raise ValueError("too long to be repaired")
    from json_repair import loads  # slow to load, and rarely needed

    try:
        return _sound(loads(text))
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def without_loss(text: str) -> Any:
    """Read one JSON object with slips that leave no doubt about its meaning. Raises ValueError.

    They are raw line ends and tabs in strings, a comma too many, Python's words, and words or a code fence
    around the object.
    """
    from json import JSONDecoder  # rarely needed

    start = text.find("{")
    before, rest = text[: max(start, 0)], text[max(start, 0) :]
    repaired = _SLIP.sub(lambda found: _MEANT.get(found[0], found[0]), rest)
    decoder = JSONDecoder(strict=False, object_pairs_hook=_without_repetition)
    try:
        given, end = decoder.raw_decode(repaired)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    if _PART_OF_JSON.search(before) or _PART_OF_JSON.search(repaired[end:]):
        raise ValueError("there is more JSON around the object, so a quote may be missing inside")
    return _sound(given)


def _sound(given: Any) -> Any:
    """Return the value. Raises ValueError for half characters, NaN and Infinity, which JSON does not have."""
    if msgspec.json.decode(msgspec.json.encode(given)) != given:
        raise ValueError("NaN and Infinity are not JSON")
    return given


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    given = dict(pairs)
    if len(given) < len(pairs):
        raise ValueError("a name occurs twice")
    return given


#: A quote that can end a text, as a name follows, or an object's end and a name.
_MAY_END = re.compile(
    r'"\s*[,{}\[\]][\s,{}\[\]]*(?:"[^"\\\n]{1,60}"|\'[^\'\\\n]{1,60}\'|[\w.-]{1,60})\s*:'
)
#: An escape, or a quote that is not escaped.
_SIGN = re.compile(r'\\.|"', re.DOTALL)
#: The first quote in a text, where it is one that closes: the one that opens may be the one before the text.
_CLOSES = re.compile(r'(?:[^"]*[^"\s(\[{=,:+<>])?"(?=[\s:,;.)\]}+])')
_FENCED = re.compile(r"```\w*\s(.*)```", re.DOTALL)
_WORDS = {"True": True, "False": False, "None": None}


def split_at_names(text: str, names: Collection[str]) -> dict[str, Any]:
    """Read one JSON object with bare quotes in its texts; `names` are all that it may have. Raises ValueError.

    A closing brace too many is left out.
    """
    text = text.strip()
    if fenced := _FENCED.fullmatch(text):
        text = fenced[1].strip()
    keys = list(_key_pattern(names).finditer(text)) if names else []
    if not keys or keys[0].start() or not text.endswith("}"):
        raise ValueError("it is not bounded by braces, with a name at the beginning")
    found = [key[2] for key in keys]
    if len(set(found)) < len(found) or any(key[1] != "," for key in keys[1:]):
        raise ValueError("a name stands at more than one place")
    ends = [key.start() for key in keys[1:]]
    raw = [text[key.end() : end] for key, end in zip(keys, ends, strict=False)]
    last = text[keys[-1].end() : -1].rstrip()
    raw.append(last if last.startswith("{") else last.removesuffix("}"))
    raw = [each.strip() for each in raw]
    if any("\n" in each for each in raw) and any("\\" in each for each in raw):
        raise ValueError("line ends are not escaped, so that an escape may be the file's")
    return {name: _value(each) for name, each in zip(found, raw, strict=True)}


def _key_pattern(names: Collection[str]) -> re.Pattern[str]:
    """Return what finds the names where they can stand for an argument."""
    return re.compile(rf'([{{,])\s*"({"|".join(map(re.escape, names))})"\s*:')


def _value(raw: str) -> Any:
    if raw in _WORDS:
        return _WORDS[raw]
    return _text(raw) if raw.startswith('"') else msgspec.json.decode(raw)


def _text(raw: str) -> str:
    """Return a text between quotes, with its escapes decoded. Raises ValueError where it is not certain."""
    from json import loads  # rarely needed

    inside = raw[1:-1]
    signs = _SIGN.findall(inside)
    quotes = signs.count('"')
    ends = len(raw) > 1 and raw.endswith('"') and not _SIGN.sub("", inside).endswith("\\")
    if not ends:
        raise ValueError("a text does not end before the next name")
    if quotes:
        _check_quotes(inside, signs)
    escaped = _SIGN.sub(lambda sign: '\\"' if sign[0] == '"' else sign[0], inside)
    text: str = loads(f'"{escaped}"', strict=False)
    text.encode()  # half a character is not text
    if quotes and _MAY_END.search(raw, 1) and not _is_json(text):
        raise ValueError("a text may end sooner, before a name that is not the tool's")
    return text


def _check_quotes(inside: str, signs: Collection[str]) -> None:
    """Raise ValueError where bare quotes leave open what was meant."""
    if '\\"' in signs:
        raise ValueError("some quotes are escaped and some are not: the former may be the file's")
    if len([sign for sign in signs if sign == '"']) % 2 or _CLOSES.match(inside):
        raise ValueError("one quote may stand for two: the text's own and the end of it")


def _is_json(text: str) -> bool:
    """Return whether a text is JSON, or some lines of an object."""
    for each in (text, f"{{{text.strip().removesuffix(',')}}}"):
        try:
            if isinstance(msgspec.json.decode(each), (dict, list)):
                return True
        except (ValueError, RecursionError):
            continue
    return False
