"""Hands drawn text to prompt_toolkit in few pieces: its own reader of attributes makes one of every character."""

import re
from functools import cache

from prompt_toolkit.formatted_text import StyleAndTextTuples

_ATTRIBUTES = re.compile("\x1b\\[([0-9;]*)m")
_NAMES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "gray")
_BRIGHT = tuple(f"bright{name}" for name in _NAMES[1:-1])
#: Attributes by their number (ECMA-48, SGR): the kind of attribute that it sets, and to what.
_SETS = {
    1: ("bold", "bold"),
    2: ("dim", "dim"),
    3: ("italic", "italic"),
    4: ("underline", "underline"),
    7: ("reverse", "reverse"),
    9: ("strike", "strike"),
    23: ("italic", ""),
    24: ("underline", ""),
    27: ("reverse", ""),
    29: ("strike", ""),
    39: ("front", ""),
    49: ("ground", ""),
    **{30 + place: ("front", f"ansi{name}") for place, name in enumerate(_NAMES)},
    **{40 + place: ("ground", f"bg:ansi{name}") for place, name in enumerate(_NAMES)},
    **{91 + place: ("front", f"ansi{name}") for place, name in enumerate(_BRIGHT)},
    **{101 + place: ("ground", f"bg:ansi{name}") for place, name in enumerate(_BRIGHT)},
    90: ("front", "ansibrightblack"),
    97: ("front", "ansiwhite"),
    100: ("ground", "bg:ansibrightblack"),
    107: ("ground", "bg:ansiwhite"),
}


def fragments(text: str) -> StyleAndTextTuples:
    """Turn text with attributes into runs of one style."""
    runs: StyleAndTextTuples = []
    style = ""
    for index, part in enumerate(_ATTRIBUTES.split(text)):
        if index % 2:
            style = _changed(style, part)
        elif part:
            runs.append((style, part))
    return runs


@cache
def _changed(style: str, numbers: str) -> str:
    state = {_kind_of(word): word for word in style.split()}
    for number in map(int, (numbers or "0").replace(";;", ";0;").strip(";").split(";")):
        if number == 0:
            state.clear()
        elif number == 22:
            state["bold"] = state["dim"] = ""
        elif number in _SETS:
            kind, word = _SETS[number]
            state[kind] = word
    return " ".join(filter(None, state.values()))


@cache
def _kind_of(word: str) -> str:
    return next(kind for kind, name in _SETS.values() if name == word)
