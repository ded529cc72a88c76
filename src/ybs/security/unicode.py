"""The output gate: text from models, tools and files, made safe to show in a terminal."""

import re
from collections.abc import Iterator

#: Colours and other text attributes; they are dropped without a trace (ECMA-48, SGR).
_COLOUR = re.compile("\x1b\\[[0-9;:]*m")
#: Characters without a shape of their own that change how others look, or hide among them. The joiners
#: U+200C and U+200D and the variation selectors stay: Persian, Hindi and emoji are written with them.
_HIDDEN_RANGES = (
    "\u00ad\u115f\u1160\u17b4\u17b5\u180e\u200b\u2028\u2029\u202a-\u202e\u2060-\u206f\u3164\ufeff"
    "\uffa0\ufff9-\ufffb\U000e0000-\U000e007f"
)
_HIDDEN = re.compile(f"[{_HIDDEN_RANGES}]")
#: Everything that must not reach a terminal as it is: also C0 (but newline and tab), DEL, C1 and lone
#: surrogates.
_UNSAFE = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff{_HIDDEN_RANGES}]")


def printable(text: str) -> str:
    r"""Return the text with everything visible that could act on a terminal or hide from the eye.

    Newline and tab stay, `\r\n` becomes a newline, colours are dropped, ESC is shown as U+241B, a C1
    control as `\x9b`, other characters as `<U+202E>`.
    """
    if _UNSAFE.search(text) is None:
        return text
    return _UNSAFE.sub(_shown, _COLOUR.sub("", text).replace("\r\n", "\n"))


def hidden_characters(text: str) -> Iterator[str]:
    """Yield the name, such as `U+202E`, of each different character that a reader cannot see."""
    for character in dict.fromkeys(_HIDDEN.findall(text)):
        yield f"U+{ord(character):04X}"


def _shown(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)  # the picture of the control character
    if code == 0x7F:
        return "\u2421"
    return f"\\x{code:02x}" if code < 0xA0 else f"<U+{code:04X}>"
