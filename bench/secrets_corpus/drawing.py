"""Draws texts that fit a regular expression, as vectors of published formats are made from their shapes."""

import re
from functools import cache
from random import Random
from typing import Any

_MOST_REPEATS = 10  # beyond the least, where a pattern has no upper bound
_PRINTABLE = [chr(code) for code in range(33, 127)]


def draw(pattern: str, random: Random) -> str:
    """Return a text that the pattern matches as a whole."""
    return "".join(_each(_parsed(pattern), random))


@cache
def _parsed(pattern: str) -> Any:
    parser: Any = re._parser  # type: ignore[attr-defined]  # the only reader of patterns in the standard library
    return parser.parse(pattern)


def _each(tree: Any, random: Random) -> list[str]:
    return [_one(str(op), argument, random) for op, argument in tree]


def _one(op: str, argument: Any, random: Random) -> str:
    match op:
        case "LITERAL" | "AT":
            return chr(argument) if op == "LITERAL" else ""
        case "IN" | "ANY":
            return random.choice(_set(tuple(argument)) if op == "IN" else _PRINTABLE)
        case "MAX_REPEAT" | "MIN_REPEAT":
            least, most, body = argument
            count = random.randint(least, min(int(most), least + _MOST_REPEATS))
            return "".join("".join(_each(body, random)) for _ in range(count))
        case "SUBPATTERN":
            return "".join(_each(argument[-1], random))
        case "BRANCH":
            return "".join(_each(random.choice(argument[1]), random))
        case _:
            raise ValueError(f"cannot draw from {op}")


@cache
def _set(items: tuple[Any, ...]) -> list[str]:
    chars: list[str] = []
    for op, argument in items:
        match str(op):
            case "LITERAL":
                chars.append(chr(argument))
            case "RANGE":
                chars += [chr(code) for code in range(argument[0], argument[1] + 1)]
            case "CATEGORY":
                name = str(argument)
                chars += [
                    c
                    for c in _PRINTABLE
                    if c.isdigit() or ("WORD" in name and (c.isalnum() or c == "_"))
                ]
            case _:
                raise ValueError(f"cannot draw from a set with {op}")
    return chars
