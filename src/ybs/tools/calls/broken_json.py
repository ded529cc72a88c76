"""A call's arguments that are not valid JSON: repaired where the meaning is certain, and for reading also by guessing."""

import re
from collections.abc import Collection
from typing import Any

import msgspec

from ybs.tools.calls.bare_quotes import split_at_names

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
    mended = _SLIP.sub(lambda found: _MEANT.get(found[0], found[0]), rest)
    decoder = JSONDecoder(strict=False, object_pairs_hook=_without_repetition)
    try:
        given, end = decoder.raw_decode(mended)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    if _PART_OF_JSON.search(before) or _PART_OF_JSON.search(mended[end:]):
        raise ValueError("there is more JSON around the object, so a quote may be missing inside")
    return _sound(given)


def _sound(given: Any) -> Any:
    """Return what was read. Raises ValueError for what JSON cannot say: half characters, NaN, Infinity."""
    if msgspec.json.decode(msgspec.json.encode(given)) != given:
        raise ValueError("NaN and Infinity are not JSON")
    return given


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    given = dict(pairs)
    if len(given) < len(pairs):
        raise ValueError("a name occurs twice")
    return given
