"""The text of a context document: decoded, made printable, without what a reader does not see, cut to a budget."""

import re

# Patterns are compiled where they are needed: most documents need none of them.
_ESCAPES = "\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|[ -/]*[0-~])"
_CONTROLS = "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]"
_LINE_ENDS = "\r\n?|[\x0b\x0c\x85\u2028\u2029]"
#: A comment that a line begins with and nothing ends: to a reader of the page the rest is not there.
_OPEN_COMMENT = r"(?sm)^ {0,3}<!--.*"
_IN_COMMENT = "[the rest stands in a comment that is never closed]"
_FRAME = r"(?i)<(?=[\s/]*(?:document|hook-context)\b)"
_EMPTY_LINES = r"\n(?:[ \t]*\n){2,}"
NOTE_TOKENS = 30  # what the last line of a cut text takes, about


def decoded(data: bytes) -> str:
    """Return the text of a file's beginning; an empty one for what is not text."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data[: len(data) // 2 * 2].decode("utf-16", "replace")
    if b"\0" in data:
        return ""
    text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    lost = text.count("\ufffd")
    if lost and lost * 4 > len(text) - len(text.encode("ascii", "ignore")):
        return data.decode("cp1252", "ignore")  # Latin-1, with what Windows adds
    return text


def without_hidden_characters(text: str) -> str:
    """Return the text without characters that act on a terminal or hide from the eye, its lines ended by newlines."""
    from ybs.security.unicode import (  # many sessions have no document
        has_suspects,
        printable,
        replace_hidden,
    )

    if has_suspects(text):
        text = re.sub(_LINE_ENDS, "\n", re.sub(_ESCAPES, "", text)).removesuffix("\n")
        text = replace_hidden(text, lambda _: "", _CONTROLS)
    return printable(text)


def without_comments(text: str) -> str:
    """Drop HTML comments, in code too: where Markdown is rendered they hide instructions from the person."""
    kept: list[str] = []
    at = 0
    # A pattern would look for the end of each beginning anew. `<!-->` is a whole comment.
    while (start := text.find("<!--", at)) >= 0 and (end := text.find("-->", start + 2)) >= 0:
        kept.append(text[at:start])
        at = end + 3
    rest = text[at:] if start < 0 else re.sub(_OPEN_COMMENT, _IN_COMMENT, text[at:])
    return "".join([*kept, rest])


def framed(text: str) -> str:
    """Return the text so that nothing in it can end or begin the frame around it: `<document ...>`, or `<hook-context>` of what hooks say."""
    return re.sub(_FRAME, "&lt;", text) if "<" in text else text


def tidied(text: str) -> str:
    """Make several empty lines one, and drop those at the ends."""
    if "\n\n\n" in text:
        text = re.sub(_EMPTY_LINES, "\n\n", text)
    return text.strip("\n").rstrip()


def tokens_of(text: str) -> int:
    """Estimate the tokens: about four bytes each, and three for what is not ASCII."""
    return -(-_weight(text) // 12)


def _weight(text: str) -> int:
    """Return the estimate in twelfths of a token, so that it adds up over lines."""
    if text.isascii():
        return 3 * len(text)
    plain = len(text.encode("ascii", "ignore"))
    return 4 * len(text.encode("utf-8", "replace")) - plain


def fair_parts(sizes: list[int], total: int) -> list[int]:
    """Share a budget out: who needs less than an equal part leaves the rest to the others."""
    parts = [0] * len(sizes)
    for left, index in zip(
        range(len(sizes), 0, -1), sorted(range(len(sizes)), key=sizes.__getitem__), strict=True
    ):
        parts[index] = min(sizes[index], total // left)
        total -= parts[index]
    return parts


def cut_to(text: str, tokens: int, *, keeps_end: bool = False) -> tuple[str, int]:
    """Return as many whole lines as the budget has room for beside a note, and how many are not whole or left out.

    Where the next line would take more than half of the room, its beginning is there too.
    """
    lines = text.split("\n")
    if keeps_end:
        lines.reverse()
    room = left = max(tokens - NOTE_TOKENS, 0) * 12
    kept: list[str] = []
    for line in lines:
        if (weight := _weight(line + "\n")) > left:
            break
        left -= weight
        kept.append(line)
    missing = len(lines) - len(kept)
    if missing and left > room // 2:
        kept.append(_beginning(lines[len(kept)], left))
    return "\n".join(reversed(kept) if keeps_end else kept).strip("\n"), missing


def _beginning(line: str, most: int) -> str:
    from ybs.core.cutting import up_to_word  # few lines are so long

    beginning = line
    while (weight := _weight(beginning)) > most:
        beginning = beginning[: min(len(beginning) - 1, len(beginning) * most // weight)]
    return up_to_word(line, len(beginning)).rstrip()
