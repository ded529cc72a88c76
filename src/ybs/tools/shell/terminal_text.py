"""Output as a terminal would leave it: without colours and other controls, and without what was overwritten."""

import re

from ybs.core.lazy import lazy

_CONTROL = lazy(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor, clearing
    "|(?:\x1b[\\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\\\|\x9c)?"  # OSC, DCS, ...
    "|\x1b[ -/]+[0-~]"  # character sets
    "|\x1b[0-~]?"  # the rest, and a lonely escape
)
_OTHER = lazy("[\x00-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_ANY = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def as_seen(text: str) -> str:
    """Return the text as a person would see it. ECMA-48 names the sequences; time is linear in the length."""
    if _ANY.search(text) is None:
        return text
    text = _OTHER().sub("", _CONTROL().sub("", text))
    if "\r" not in text and "\b" not in text:
        return text
    return "\n".join(map(_line_as_seen, text.split("\n")))


def _line_as_seen(line: str) -> str:
    if "\r" in line:  # a progress bar: what stands last is what is seen
        line = line.rstrip("\r").rpartition("\r")[2]
    if "\b" not in line:
        return line
    kept: list[str] = []
    for character in line:
        if character != "\b":
            kept.append(character)
        elif kept:
            kept.pop()
    return "".join(kept)
