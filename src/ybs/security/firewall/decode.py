"""Undoes encodings and disguises: escapes, hidden characters, other forms of letters, base64, hex.

A kind is undone only where a cheap look says that it may be there. What comes out is a view, and may be undone again.
"""

import re
from binascii import a2b_base64, unhexlify
from collections.abc import Callable, Iterator
from functools import lru_cache

from ybs.core.lazy import lazy
from ybs.security.firewall.views import SEPARATOR, TextView, substituted, view_of

#: The kinds that are undone.
ESCAPED, HIDDEN, LINES = "escapes", "hidden characters", "lines"
PACKED, HEXED, WIDE = "base64", "hex", "zeros"
#: A part of the data and what it says: start, end, decoded.
DecodedSpan = tuple[int, int, bytes]

#: Shorter base64 and hex is not decoded, in characters.
LEAST_BASE64, LEAST_HEX = 26, 32
_MOST_SHIFTED = 4_096
#: Decoded bytes are text where so many in a row can be printed.
_LEAST_TEXT = 12
_ALNUM = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_HEX = b"0123456789abcdefABCDEF"


def _table(*classes: tuple[bytes, bytes]) -> bytes:
    """Make a table for `translate`: each byte of a class becomes its sign, all others a `!`."""
    signs = bytearray(b"!" * 256)
    for members, sign in classes:
        for code in members:
            signs[code] = sign[0]
    return bytes(signs)


_IS_BASE64 = _table((_ALNUM + b"+/-_", b"a"))
_IS_HEX = _table((_HEX, b"a"), (b" :-,;", b" "))
_IS_PRINTED = _table((bytes(range(32, 127)), b"a"))
_STANDARD = bytes.maketrans(b"-_", b"+/")
#: With what each group of four begins in the base64 of ASCII text: A (a zero byte), I to Z, a to f.
_OF_TEXT = b"AIJKLMNOPQRSTUVWXYZabcdef"
#: What read_file, search_files, `cat -n`, `grep -n` and `grep -Hn` put before a line: its number, or its file and number.
_NUMBER = rb"(?>(?:(?:[\w./@+-]{1,200}:| {0,8})[0-9]{1,7}(?:[:-]?\t|:))?)"  # Python 3.11.2 has a fault in what `?+` says
#: What `diff` puts before a line that was removed; not an option, and not a rule of several.
_REMOVED = lazy(rb"\n-(?!-|\w[ =])")
#: The same in the diff of a merge, with a sign for each parent.
_REMOVED_IN_MERGE = lazy(rb"\n(?= {0,7}-)[ -]{2,8}(?=\w)")
#: What `grep -nA` puts before a line: its number, and its file before that. Behind a line beside a match stands a `-`.
_BESIDE = lazy(rb"\n((?:[\w./@+-]{1,200}?[:-])??)([0-9]{1,7})[:-]")
#: Escapes, and a line end between two. Each kind begins with a sign of its own, which is quick to look for.
_NEXT = rb"(?:\\?\r?\n" + _NUMBER + rb"[ \t]{0,40}(?=%|\\[xuU0-7]|&))?"
#: A colour whose escape is written out, behind its backslash.
_WRITTEN_COLOUR = rb"(?:x1[bB]|u001[bB]|u\{1[bB]\}|033|e)\[[0-9;?]{0,30}[A-Za-z]"
_ESCAPES = {
    b"%": lazy(rb"%(?:[0-9a-fA-F]{2}|u[0-9a-fA-F]{4})" + _NEXT),
    b"\\": lazy(
        rb"\\{1,4}(?:"
        + _WRITTEN_COLOUR
        + rb"|/|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|u\{[0-9a-fA-F]{1,6}\}|U000[0-9a-fA-F]{5}|[0-3]?[0-7]{2})"
        + _NEXT
    ),
    b"&": lazy(
        rb"&(?:#(?:[xX]0{0,6}[0-9a-fA-F]{1,5}|0{0,6}[0-9]{1,6});?|[A-Za-z][0-9A-Za-z]{1,31};)"
        + _NEXT
    ),
}
#: Characters that tools and terminals leave out: controls, and a return that ends no line.
_CONTROL = rb"\x01(?!\n)|[\x02-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]|\r(?!\n)"
_CONTROLS = lazy(_CONTROL)
#: Those, and colours; in UTF-8 what has no width, and ASCII in full width or as mathematical signs; and what tools show in its place
#: (`security/marks.py`).
_HIDDEN = lazy(
    _CONTROL
    + rb"|\x1b(?:\[[0-9;?]{0,30}[A-Za-z]|\][^\x07\x1b\n]{0,200}(?:\x07|\x1b\\)|[ -/]*[0-~])|\xc2[\x80-\x9f]|<U\+(?:001B>(?:\[[0-9;?]{0,30}[A-Za-z]|\][^<\n]{0,200}<U\+(?:0007>|001B>\\)|[ -/]*[0-~])|[0-9A-F]{4,6}(?: and [0-9]{1,9} more)?>)"
    rb"|\xc2\xad|\xcd\x8f|\xd8\x9c|\xe1\x85[\x9f\xa0]|\xe1\x9e[\xb4\xb5]|\xe1\xa0[\x8b-\x8f]"
    rb"|\xe2\x80[\x8b-\x8f\xa8-\xae]|\xe2\x81[\xa0-\xaf]|\xe3\x85\xa4|\xef\xb8[\x80-\x8f]|\xef\xbb\xbf|\xef\xbe\xa0|\xef\xbf[\xb0-\xbb]"
    rb"|\xf3\xa0[\x80-\x87][\x80-\xbf]|\xef\xbc[\x81-\xbf]|\xef\xbd[\x80-\x9e]|\xf0\x9d[\x90-\x9f][\x80-\xbf]"
)
#: A line end within a word, before and behind a long part of it; JSON writes it out, and `cat -A` puts a `$` before it.
_END = (
    rb"[ \t\r=\\$]{0,3}(?:(?<=\\)r\\{1,2})?(?:\n|(?<=\\)n)"
    + _NUMBER
    + rb"[ \t>#|*+<]{0,90}(?:(?://|;|--)[ \t]{1,90})?"
)
_LINE_END = lazy(_END)
_END_BEFORE = lazy(rb"[0-9A-Za-z_+/.-]" + _END + rb"[0-9A-Za-z_+/.-]{0,20}\Z")
_END_AFTER = lazy(rb"[0-9A-Za-z_+/.-]{0,20}" + _END + rb"(?=[0-9A-Za-z_+/.-])")
_NEARBY = 110
#: How much of a line end stands before its `\n`, with the letter before that, in bytes at most.
_BEFORE_END = 8
#: What may stand between a word and the end of its line, or its beginning: each as bytes of one.
_AFTER_WORDS = frozenset(bytes((code,)) for code in b" \t\r\n=\\$+/.>#|*<")
_LETTERS = frozenset(bytes((code,)) for code in b"abcdefghijklmnopqrstuvwxyz:,;(){}[]")
#: A line that is one word, of so many bytes at most.
_ONE_WORD = lazy(rb"(?:\A|[\n\t:])[0-9A-Za-z_./~:-]{4,}\Z")
_LONGEST_WORD = 40
#: How long the hexadecimal digits of hashes are: no part of a token, and there are lists of them.
_DIGESTS = (32, 40, 56, 64, 96, 128)
#: What is in the hex and the base64 of hidden characters and of full width.
_HIDDEN_BASE64 = lazy(rb"4oC|OKA|igI|77[0-9a-z]|vv[XYZ]|\+\+")
_HIDDEN_HEX = lazy(rb"(?i:e280|efb[cd]|c2ad|efbbbf)")
_HEXED = lazy(rb"[0-9a-fA-F]{%d,}+" % LEAST_HEX)
_SPACED_HEX = lazy(
    rb"(?<![0-9A-Za-z])(?>(?:(?:0x)?[0-9a-fA-F]{2}[ :,;-]{1,2}){11,})(?:(?:0x)?[0-9a-fA-F]{2})?"
)
_NOT_HEX = lazy(rb"0x|[^0-9a-fA-F]")


def with_other_marks(data: bytes) -> bytes:
    """Return the text with other marks of lines, as long, for those of `diff` and `grep -A` that could be a part of the word behind them."""
    if b"-" not in data:
        return data
    text = bytearray(b"\n" + data)
    for match in _REMOVED().finditer(text):
        if text[text.rfind(b"\n", 0, match.start()) + 1] in b"-+ @\n":
            text[match.end() - 1] = 32
    for match in _REMOVED_IN_MERGE().finditer(text) if b"@@@" in data else ():
        text[match.start() : match.end()] = match[0].replace(b"-", b" ")
    last = None
    for match in _BESIDE().finditer(text):
        if last is not None and _is_next(text, last, match):
            for end in (last.end(1), last.end(), match.end(1), match.end()):
                text[end - 1 : end] = text[end - 1 : end].replace(b"-", b":")
        last = match
    return bytes(text[1:])


def _is_next(text: bytearray, one: re.Match[bytes], other: re.Match[bytes]) -> bool:
    """Return whether the other mark is that of the next line in the same file."""
    is_counted = one[1][:-1] == other[1][:-1] and int(other[2]) - int(one[2]) == 1
    return is_counted and text.find(b"\n", one.end()) == other.start()


def lines_of(data: bytes) -> tuple[str, ...]:
    """Return what the lines of a token say, without the marks that stand between them; nothing of one that is in one line."""
    parts = _LINE_END().split(data) if b"\n" in data else ()
    return tuple(part.decode("utf-8", "replace") for part in parts)


def views(
    data: bytes,
    cores: list[tuple[int, int]],
    last: str = "",
    is_kept: Callable[[bytes], bool] = lambda _text: False,
) -> Iterator[TextView]:
    """Yield the data with each kind of encoding undone: `last` is the kind that was undone before, `is_kept` says of a text that it counts in any case."""
    if last != LINES:
        yield from _substituted(data, last, is_kept)
    if last != LINES:
        yield substituted(LINES, data, line_ends(data, cores), _nothing)
    for layer, found in ((PACKED, [*packed(data)]), (HEXED, [*hexed(data)])):
        if found:
            yield view_of(layer, found)
    if b"\0" in data:
        yield view_of(WIDE, wide(data))


def _substituted(data: bytes, last: str, is_kept: Callable[[bytes], bool]) -> Iterator[TextView]:
    found = [m for sign, each in _ESCAPES.items() if sign in data for m in each().finditer(data)]
    if found:
        yield substituted(ESCAPED, data, _ordered(found), _unescaped, is_kept)
    is_plain = data.isascii() and b"\x1b" not in data and b"<U+" not in data
    if last != HIDDEN and not (is_plain and _CONTROLS().search(data) is None):
        yield substituted(HIDDEN, data, _HIDDEN().finditer(data), _shown, is_kept)


def _ordered(matches: list[re.Match[bytes]]) -> Iterator[re.Match[bytes]]:
    return iter(sorted(matches, key=lambda match: match.start()))


def _nothing(_match: re.Match[bytes]) -> bytes:
    return b""


def _unescaped(match: re.Match[bytes]) -> bytes:
    sign, whole = match[0][:1], match[0].partition(b"\n")[0].rstrip(b"\\\r\t ;")
    said = whole.lstrip(b"%\\&#")
    if b"[" in said:
        return b""
    if said == b"/":
        return said
    if sign == b"&":
        if whole[1:2] != b"#":
            return _named(said)
        number = int(said[1:], 16) if said[:1] in b"xX" else int(said)
    elif said[:1] in b"uU":
        number = int(said[1:].strip(b"{}"), 16)
    elif sign == b"%" or said[:1] == b"x":
        return bytes((int(said.lstrip(b"x"), 16),))
    else:
        return bytes((int(said, 8),))
    said = chr(number).encode("utf-8", "surrogatepass") if number < 0x110000 else b""
    return said if said.isascii() else _HIDDEN().sub(_shown, said)


def _named(name: bytes) -> bytes:
    """Return what HTML means by a name; the name as it stands where HTML has none such."""
    from html.entities import html5  # few texts have one

    said = html5.get(f"{name.decode()};")
    return b"&%b;" % name if said is None else _HIDDEN().sub(_shown, said.encode())


def _shown(match: re.Match[bytes]) -> bytes:
    return _plain_form(match[0])


@lru_cache(maxsize=512)
def _plain_form(sign: bytes) -> bytes:
    if sign[:2] in (b"\xef\xbc", b"\xef\xbd") or sign[:1] == b"\xf0":
        from unicodedata import normalize  # it loads a table, and few texts have such signs

        return normalize("NFKC", sign.decode()).encode()
    return b""


def line_ends(data: bytes, cores: list[tuple[int, int]]) -> Iterator[re.Match[bytes]]:
    """Yield the line ends that may stand within a token: beside a long word with a digit or a capital in it."""
    if b"\n" not in data and b"\\n" not in data:
        return
    done = 0
    for start, end in cores:
        if end - start in _DIGESTS and not data[start:end].translate(None, _HEX):
            continue
        match = _end_before(data, start, done)
        if match is not None:
            done = match.end()
            yield match
        if data[end : end + 1] not in _AFTER_WORDS or data.startswith(SEPARATOR, end):
            continue
        if after := _END_AFTER().match(data, end):
            done = after.end()
            yield from _LINE_END().finditer(data, end, done)


def _end_before(data: bytes, start: int, done: int) -> re.Match[bytes] | None:
    """Return the line end that stands within a token before the word at `start`, if there is one behind `done`."""
    first = start + data.startswith(b"\\n", start - 1)  # written out, it looks like a letter
    if first == start and not _may_begin_a_line(data, start):
        return None
    least = max(done, first - _NEARBY)
    place = max(data.rfind(b"\n", least, first), data.rfind(b"\\n", least, first))
    if place < 0:
        return None
    before = _END_BEFORE().search(data, max(least, place - _BEFORE_END), first)
    match = _LINE_END().match(data, before.start() + 1) if before else None
    return None if not (before and match) or _is_apart(data, before.start(), match) else match


def goes_on_at(data: bytes, cores: list[tuple[int, int]]) -> Iterator[int]:
    """Yield the places of line ends that may stand within a token or an encoded word."""
    for match in line_ends(data, cores):
        if b"\n" in match[0]:
            yield data.index(b"\n", match.start())
    for sign, pattern in _ESCAPES.items():
        for match in pattern().finditer(data) if sign in data else ():
            if b"\n" in match[0]:
                yield data.index(b"\n", match.start())


def _is_apart(data: bytes, place: int, end: re.Match[bytes]) -> bool:
    """Return whether two numbered lines are separate text rather than one wrapped token.

    `place` is the last letter of the first line, `end` what stands between the two.
    """
    if end[0][-1:] not in (b"\t", b":"):
        return False
    line = data[data.rfind(b"\n", max(0, place - _NEARBY), place) + 1 : place + 1]
    return _ends_a_text(data, place) or not line.strip(b" 0123456789-")


def _may_begin_a_line(data: bytes, start: int) -> bool:
    """Return whether no word stands right before the place; most do not begin a line, but may begin a text."""
    if data[max(0, start - len(SEPARATOR)) : start] == SEPARATOR:
        return False
    sign, before = data[start - 1 : start], data[start - 2 : start - 1]
    if sign + before == b"\t:":
        return data[start - 3 : start - 2].isdigit()  # the number of a line
    if sign == b":":
        return before.isdigit()
    return sign in _AFTER_WORDS and not _ends_a_text(data, start - 2)


def _ends_a_text(data: bytes, place: int) -> bool:
    """Return whether the last letter of a line ends a sentence, and not a line that is one word, as `github_pat`."""
    is_letter = data[place : place + 1] in _LETTERS
    return is_letter and not _ONE_WORD().search(data, max(0, place - _LONGEST_WORD), place + 1)


def packed(data: bytes) -> Iterator[DecodedSpan]:
    """Yield decoded base64; bytes that are not text are left out, as pictures and programs are."""
    mapped = data.translate(_IS_BASE64)
    run = b"a" * LEAST_BASE64
    start = mapped.find(run)
    while start >= 0:
        end = mapped.find(b"!", start)
        end = len(data) if end < 0 else end
        word = data[start:end]
        if _may_be_base64(word) and (decoded := _text_in(word.translate(_STANDARD))):
            tail = data[end : end + 2]
            yield start, end + len(tail) - len(tail.lstrip(b"=")), decoded
        start = mapped.find(run, end)


def _may_be_base64(word: bytes) -> bool:
    return not (word.islower() or word.isupper()) and bool(word.translate(None, _HEX))


def _text_in(word: bytes) -> bytes:
    head = word[:_MOST_SHIFTED]
    is_hidden = _HIDDEN_BASE64().search(head) is not None
    # The run may begin with what is not part of it, as a path does.
    for shift in range(4):
        is_shown = is_hidden and (not shift or len(word) == len(head))
        if not (is_shown or _may_be_text(head[shift:])):
            continue
        rest = (len(word) - shift) % 4
        whole = word[shift : len(word) - rest]
        if rest > 1:
            whole += word[len(word) - rest :] + b"=" * (4 - rest)
        if decoded := text_of(a2b_base64(whole)):
            return decoded
    return b""


def _may_be_text(word: bytes) -> bool:
    """Return whether the base64 is of text: of ASCII for the most part, or of UTF-8 from its first byte on."""
    begins = word[::4]
    if 2 * len(begins.translate(None, _OF_TEXT)) <= len(begins):
        return True
    return _is_utf8(a2b_base64(word[: len(word) // 4 * 4]))


def _is_utf8(data: bytes) -> bool:
    """Return whether the bytes are UTF-8, but for a character that is cut off at their end."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return True


def text_of(decoded: bytes) -> bytes:
    """Return the bytes where there is text in them, without the zeros of UTF-16; else nothing."""
    plain = decoded.replace(b"\0", b"")
    if b"a" * _LEAST_TEXT in plain.translate(_IS_PRINTED):
        return plain
    try:
        plain.decode()
    except UnicodeDecodeError:
        return b""
    return plain


def hexed(data: bytes) -> Iterator[DecodedSpan]:
    """Yield decoded hexadecimal digits, in one run or with separators between the bytes."""
    mapped = data.translate(_IS_HEX)
    if b"a" * LEAST_HEX in mapped:
        for match in _HEXED().finditer(data):
            # A digit before the first byte may not be part of it.
            if decoded := _text_in_hex(match[0]) or _text_in_hex(match[0][1:]):
                yield *match.span(), decoded
    if b"aa aa aa aa aa aa " in mapped or data.count(b"0x") > 10:
        for match in _SPACED_HEX().finditer(data):
            if decoded := text_of(unhexlify(_NOT_HEX().sub(b"", match[0]))):
                yield match.start(), match.start() + len(match[0].rstrip(b" :,;-")), decoded


def _text_in_hex(word: bytes) -> bytes:
    firsts = word[::2]  # a byte of ASCII begins with 2 to 7
    is_ascii = 2 * len(firsts.translate(None, b"234567")) <= len(firsts)
    decoded = unhexlify(word[: len(word) // 2 * 2])
    if not (is_ascii or _HIDDEN_HEX().search(word, 0, _MOST_SHIFTED) or _is_utf8(decoded)):
        return b""
    return text_of(decoded)


def wide(data: bytes) -> Iterator[DecodedSpan]:
    """Yield the lines with zero bytes in them without these, as UTF-16 reads."""
    place = 0
    for line in data.split(b"\n"):
        if b"\0" in line:
            yield place, place + len(line), line.replace(b"\0", b"")
        place += len(line) + 1
