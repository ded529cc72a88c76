"""The signature of a definition: its head without the body, on one line that can be printed."""

import re
from typing import TYPE_CHECKING

from ybs.security.unicode import printable

if TYPE_CHECKING:
    from tree_sitter import Node

LONGEST_SIGNATURE = 200
_READ_BYTES = 1_000
_OF_ONE_LINE = ("constant", "macro")
#: So far back on its line are looked for the words in front of a definition: `export const`, `pub`.
_PREFIX_BYTES = 60
_PREFIX = re.compile(rb"\n?[ \t]*([\w \t<>]*)\Z")
#: Annotations, attributes and decorators in front.
_ANNOTATIONS = re.compile(
    r"(?:(?:@(?!interface\b)[\w.]++(?:\((?:[^()\"]|\"[^\"]*+\"|\([^()]*+\))*+\))?|#?\[\[?\w[^\[\]]*+\]\]?) )++"
)
#: Where the lines of a broken list were joined.
_SEAMS = re.compile(r"([(\[]) |,? ([)\]])")
#: A lifetime of Rust is not a quote: it stands behind & or <, or follows on another word.
_LONG_STRING = re.compile(r"\"[^\"]{40,}+\"|(?<![&<])'[^']{40,}+(?<![&<])(?<![+:,] )'|`[^`]{40,}+`")


def signature_of(source: bytes, node: "Node", kind: str) -> str:
    """Return the head of a definition in one line, without its body."""
    start = _start(source, node)
    body = _body(node)
    ends = (part.start_byte for part in (body, _comment(node)) if part is not None)
    head = source[start : min(node.end_byte, start + _READ_BYTES, *ends)]
    if kind in _OF_ONE_LINE:
        head = head.lstrip().partition(b"\n")[0].rstrip(b"\r\\ ")
    elif body is None and kind != "type":
        head = head.partition(b"{")[0].partition(b"\n\n")[0]
    line = _SEAMS.sub(r"\1\2", " ".join(head.decode("utf-8", "replace").split()))
    if kind == "type" and len(line) > LONGEST_SIGNATURE // 2:
        line = re.sub(r"\{.*", "{", line)
    line = _LONG_STRING.sub('"..."', _ANNOTATIONS.sub("", line, count=1)).rstrip(" {:;")
    return legible(line, LONGEST_SIGNATURE)


def legible(text: str, most: int) -> str:
    """Return a text that can be printed, cut to `most` characters."""
    text = text if text.isprintable() else printable(text).replace("\n", " ")
    return text if len(text) <= most else text[: most - 3].rstrip() + "..."


def _start(source: bytes, node: "Node") -> int:
    """Begin at the words in front of the definition, when nothing else stands on its line."""
    start = node.start_byte
    low = max(0, start - _PREFIX_BYTES)
    line = source.rfind(b"\n", low, start)
    if line < 0 and low:
        return start
    found = _PREFIX.match(source, max(line, 0), start)
    return found.start(1) if found else start


def _body(node: "Node") -> "Node | None":
    body = node.child_by_field_name("body") or node.child_by_field_name("accessors")
    if body is not None:
        return body
    for field in ("value", "right"):  # a function that is given to a name
        value = node.child_by_field_name(field)
        if value is not None and (body := value.child_by_field_name("body")) is not None:
            return body
    return None


def _comment(node: "Node") -> "Node | None":
    """Return the first comment that follows on the head."""
    for child in node.children[1:]:
        if child.type.endswith("comment"):
            return child
    return None
