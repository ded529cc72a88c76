"""Strings that act on terminals, every event filled with them, and a look at what was written."""

import re
from collections.abc import Iterator
from typing import Any, Literal, cast, get_args, get_origin

import msgspec
from msgspec import Raw

from ybs.core.events import Event
from ybs.core.messages import Message, UserMessage

#: Each holds a number that no control sequence of ybs's own has.
ACTING = {
    "clipboard": "\x1b]52;c;NzMxMzcx\x07",
    "erase": "\x1b[73137J\x1b[2J",
    "cursor": "\x1b[73137A",
    "overwrite": "safe\rrm73137\b\b",
    "C1": "\x9b73137m\x9d0;t73137\x9c\x90q\x9c\x9f73137\x9c\x85",
    "DCS": "\x1bP+q73137\x1b\\",
    "APC": "\x1b_G73137\x1b\\\x1b^x\x1b\\",
    "link": "\x1b]8;;http://evil/73137\x1b\\here\x1b]8;;\x1b\\",
    "title": "\x1b]0;73137\x07\x1b]2;73137\x07",
    "reset": "\x1bc\x1b(0\x0e\x0f",
    "paste end": "\x1b[201~y\x1b[200~73137",
    "status": "\x1b[6n\x1b[c\x1b[>c\x1b[5n\x1bZ\x05\x1b[73137n",
    "concealed": "\x1b[8mhidden\x1b[28m\x1b[0;8m73137",
    "raw write": "\x01\x1b[73137A\x02",  # prompt_toolkit's mark of what it does not measure
    "bell, NUL, DEL": "\x07\x00\x7f\x0b\x0c",
    "bidi": "\u202e\u2066731\u2069\u200f",
    "half a character": "\ud800\udc80",
}
HOSTILE = " | ".join(ACTING.values())
#: What ybs and prompt_toolkit write: attributes, cursor movements, erasing, and the modes of a terminal.
OWN = re.compile(
    r"\x1b7\x1b\[(?:>4;1m\x1b\[>5u|<u\x1b\[>4m|B\x1b\[J)\x1b8"
    r"|\x1b\[(?!(?:\d+;)*8m)[0-9;]{0,12}m|\x1b\[\d{0,3}[ABCDGJK]|\x1b\[\d*;?\d*H|\x1b\[\?(?:1|7|12|25|2004)[hl]|\x1b\[\d? ?q"
    # The title of the window, which a hostile text does not end like this: it names the project's folder.
    r"|\x1b\[2[23];2t|\x1b\]2;[^\x00-\x1f\x7f-\x9f]{1,90} - project\x1b\\"
)
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def acting_in(raw: str, own: re.Pattern[str] | None = None) -> list[str]:
    """Find what acts on a terminal, each with what stands around it; `own` is allowed, and Windows line ends then."""
    if own is not None:
        raw = re.sub(r"\r+\n|\n?\r", "\n", own.sub("", raw))
    return [raw[max(0, at.start() - 20) : at.end() + 20] for at in _CONTROLS.finditer(raw)]


def hostile_events(text: str) -> Iterator[Event]:
    """Yield every kind of event with the text in every place that holds one."""
    data = dict.fromkeys(("command", "path", "diff", "stdout", "stderr", "error", text), text)
    raw = Raw(msgspec.json.encode(sound(data)))
    for kind in get_args(Event):
        for word in range(_choices(kind)):
            values: dict[str, Any] = {}
            for field in msgspec.structs.fields(kind):
                if (value := _value(field.type, text, raw, word)) is not None:
                    values[field.name] = value
            yield kind(**values)


def sound(data: Any) -> Any:
    """Return the data without half characters, which JSON cannot hold."""
    match data:
        case str():
            return data.encode("utf-8", "replace").decode()
        case dict():
            members = cast("dict[str, Any]", data)
            return {sound(name): sound(value) for name, value in members.items()}
        case _:
            return data


def _choices(kind: Any) -> int:
    fields = msgspec.structs.fields(kind)
    return max([2, *(len(get_args(f.type)) for f in fields if get_origin(f.type) is Literal)])


def _value(kind: Any, text: str, raw: Raw, word: int) -> Any:
    known: dict[Any, Any] = {
        str: text,
        bool: bool(word % 2),
        int: 1,
        float: 1,
        Raw: raw,
        tuple[str, ...]: (text,),
        tuple[Message, ...]: (UserMessage.of(text),),
    }
    if get_origin(kind) is Literal:
        words = get_args(kind)
        return words[word % len(words)]
    return {text: text} if get_origin(kind) is dict else known.get(kind)
