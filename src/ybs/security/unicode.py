"""Characters that act on a terminal or hide from the eye: which they are, and how they are made visible."""

import re
from collections.abc import Callable, Iterator
from functools import cache

from ybs.core.lazy import lazy

#: All that may have to be made visible. Most of the writing systems' own joiners are at home where they
#: stand; `_hidden` tells.
_SUSPECTS = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
#: What no ASCII text that is safe to show has more than: newline, tab, and what is printed.
_PLAIN = b"\t\n" + bytes(range(32, 127))
_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"
_SUSPECT = lazy(f"[{_CONTROLS}\ud800-\udfff{_SUSPECTS}]")
_GAP = lazy("[ \t\u00a0\u1680\u2000-\u200a\u202f\u205f\u2800\u3000]{40,}")
_EMPTY_LINES = lazy(r"\n(?:\s*\n){4,}")
#: Colours and other text attributes; they are dropped without a trace (ECMA-48, SGR).
_COLOUR = "\x1b\\[[0-9;:]*m"

_ALWAYS = (
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
#: Right-to-left letters; scripts whose letters join or not by a sign; scripts without spaces; pictures.
_RIGHT_TO_LEFT = "[\u0590-\u061b\u061d-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff]"
_JOINING = (
    "[\u0620-\u08ff\ufb50-\ufdff\ufe70-\ufefc\u0900-\u0dff\u0f00-\u109f\u1780-\u17b3\u17b6-\u180a"
    "\u1820-\u1aaf\u1b00-\u1cff\ua800-\uaaff\U00010a00-\U00011fff]"
)
_WITHOUT_SPACES = "[\u0e00-\u0eff\u0f00-\u109f\u1780-\u17b3\u17b6-\u17ff\u1980-\u1aaf]"
_PICTURE = (
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u27bf\u2900-\u297f\u2b00-\u2bff\u3030\u303d\u3297\u3299"
    "\U0001f000-\U0001fbff]"
)
_AFTER_PICTURE = f"(?<!{_PICTURE})(?<!\ufe0f)"
#: Not behind a right-to-left letter and at most four digits or signs.
_AFTER_OTHERS = "".join(f"(?<!{_RIGHT_TO_LEFT}[ -@]{{{count}}})" for count in range(5))
#: The flags of England, Scotland and Wales are spelled in tag characters
#: (https://www.unicode.org/reports/tr51/#valid-emoji-tag-sequences).
_FLAG = "\U0001f3f4\U000e0067\U000e0062(?:{})\U000e007f".format(
    "|".join("".join(chr(0xE0000 + ord(c)) for c in name) for name in ("eng", "sct", "wls"))
)
_OUT_OF_PLACE = "|".join(
    (
        f"[{_ALWAYS}]",
        f"(?<!{_JOINING})\u200c",
        f"(?<!{_JOINING}){_AFTER_PICTURE}\u200d",
        f"(?<!{_JOINING})\u200d(?!{_PICTURE})(?!\\Z)",
        f"(?<!{_WITHOUT_SPACES})\u200b|\u200b(?!{_WITHOUT_SPACES})",
        f"{_AFTER_OTHERS}[\u061c\u200e\u200f](?!{_RIGHT_TO_LEFT})",
        f"(?<!{_PICTURE})\ufe0e",
        f"(?<!{_PICTURE})(?<![0-9#*])\ufe0f|(?<=[0-9#*])\ufe0f(?!\u20e3)",
        "(?<![\u1820-\u18aa])[\u180b-\u180f]",
    )
)
#: Marks that stand above and below a letter; no writing needs more than a few on one.
_MARKS = (
    "[\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u06d6-\u06ed\u0e31-\u0e3a\u0e47-\u0e4e"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\u302a-\u302f\ua66f-\ua67d\ufe20-\ufe2f]"
)
MOST_MARKS = 16
#: A run of hidden characters up to this long is spelled out.
_MOST_SPELLED = 3


def printable(text: str) -> str:
    r"""Return the text with everything visible that could act on a terminal or hide from the eye.

    Newline and tab stay, `\r\n` becomes a newline, colours are dropped, ESC is shown as U+241B, a C1
    control as `\x9b`, other characters as `<U+202E>`, long runs by their first. Of a heap of accents on one letter the first ones stay.
    """
    if "\x1b" in text or "\r" in text:
        text = re.sub(_COLOUR, "", text).replace("\r\n", "\n")
    return unabridged(text)


def unabridged(text: str) -> str:
    """Return the text as `printable` does, but with a sign for every control character, those of colours and line ends too.

    What a person is asked to allow is shown so: a shell does not read `;` and `m` as the end of a colour.
    """
    if text.isascii() and not text.encode().translate(None, _PLAIN):
        return text
    if _SUSPECT().search(text) is not None:
        text = _unsafe().sub(_shown, text)
    return text if text.isascii() else _heap().sub(_lowered, text)


def shown_whole(text: str) -> str:
    """Return all of what a person is asked to allow, with long gaps counted: what stands behind one would be out of sight."""
    text = _GAP().sub(lambda gap: f" <{len(gap[0])} spaces> ", unabridged(text).strip("\n"))
    return _EMPTY_LINES().sub(lambda gap: f"\n<{gap[0].count(chr(10)) - 1} empty lines>\n", text)


def has_suspects(text: str) -> bool:
    """Return whether anything in the text may be hidden, or a control character; carriage return too."""
    if text.isascii():
        return bool(text.encode().translate(None, _PLAIN))
    return _SUSPECT().search(text) is not None


def hidden_characters(text: str) -> Iterator[str]:
    """Yield the name, such as `U+202E`, of each different character that a reader cannot see."""
    if not text.isascii() and _SUSPECT().search(text) is not None:
        for character in dict.fromkeys("".join(found[0] for found in hidden_runs(text))):
            yield f"U+{ord(character):04X}"


def hidden_runs(text: str, controls: str = "") -> Iterator[re.Match[str]]:
    """Find the runs of characters that a reader cannot see, with `controls` (a regular expression) among them."""
    return (found for found in _runs(controls).finditer(text) if found[1])


def replace_hidden(text: str, sign: Callable[[str], str], controls: str = "") -> str:
    """Put `sign` of each run in its place."""
    if text.isascii() and (not controls or text.isprintable()):
        return text
    return _runs(controls).sub(lambda found: sign(found[1]) if found[1] else found[0], text)


def signs_of(run: str) -> list[tuple[str, str]]:
    """Return the signs of a run of hidden characters, each with the characters that it stands for."""
    if len(run) <= _MOST_SPELLED:
        return [(f"<U+{ord(character):04X}>", character) for character in run]
    return [(f"<U+{ord(run[0]):04X} and {len(run) - 1} more>", run)]


@cache
def _runs(controls: str) -> re.Pattern[str]:
    one = f"{controls}|{_OUT_OF_PLACE}" if controls else _OUT_OF_PLACE
    return re.compile(f"{_FLAG}|((?:{one})+)")


@cache
def _unsafe() -> re.Pattern[str]:
    return re.compile(f"{_FLAG}|([{_CONTROLS}])|((?:[\ud800-\udfff]|{_OUT_OF_PLACE})+)")


@cache
def _heap() -> re.Pattern[str]:
    return re.compile(f"({_MARKS}{_MARKS}{{{MOST_MARKS - 1}}})({_MARKS}+)")


def _lowered(found: re.Match[str]) -> str:
    return f"{found[1]}<{len(found[2])} marks>"


def _shown(found: re.Match[str]) -> str:
    if not found[1]:
        return "".join(sign for sign, _ in signs_of(found[2])) if found[2] else found[0]
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)  # the picture of the control character
    if code == 0x7F:
        return "\u2421"
    return f"\\x{code:02x}"
