"""Characters that act on a terminal or hide from the eye: which they are, and how they are made visible."""

import re
from collections.abc import Callable, Iterator
from functools import cache, lru_cache

from ybs.core.lazy import lazy

#: What no ASCII text that is safe to show has more than: newline, tab, and what is printed.
_PLAIN = b"\t\n" + bytes(range(32, 127))
_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"
_CONTROL = lazy(f"[{_CONTROLS}]")
#: The commonest signs, which are seen wherever they stand: a text of these alone is done with at once.
_SEEN = (
    "\t\n -~\u00a0-\u00ac\u00ae-\u02ff\u0391-\u03a1\u03a3-\u0482\u048a-\u052f\u2010-\u2027\u2030-\u205e\u20a0-\u20c0"
    "\u2100-\u218b\u2190-\u2426\u2460-\u2b73\u3000-\u3029\u3041-\u3096\u309b-\u30ff\u4e00-\u9fff\uac00-\ud7a3"
    "\uff01-\uff9f\U0001f300-\U0001f64f"
)
_NOT_PLAIN = lazy(f"[^{_SEEN}]")
_SURROGATES = "[\ud800-\udfff]"
_GAP = lazy("[ \t\u00a0\u1680\u2000-\u200a\u202f\u205f\u2800\u3000]{40,}")
_EMPTY_LINES = lazy(r"\n(?:\s*\n){4,}")
#: Colours and other text attributes; they are dropped without a trace (ECMA-48, SGR).
_COLOUR = "\x1b\\[[0-9;:]*m"

#: What is never seen: most of Default_Ignorable_Code_Point (https://www.unicode.org/Public/16.0.0/ucd/DerivedCoreProperties.txt), ends of
#: lines and signs between lines, and a note without a head. The rest of that property may be at home where it stands.
_ALWAYS = (
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_IGNORABLE = lazy(f"[{_ALWAYS}\u061c\u180b-\u180f\u200b-\u200f\ufe0e\ufe0f]")
#: Vowels and ends of Korean syllables, which have no width behind their beginning.
_PARTS = lazy("[\u1161-\u11ff\ud7b0-\ud7ff]")
#: Signs that reach over the digits behind them (Prepended_Concatenation_Mark).
_REACHING = frozenset(
    map(chr, (*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD))
)
#: Where signs are new from year to year that are seen: currencies, pictures, Chinese.
_NEW = lazy("[\u20a0-\u20cf\U0001f000-\U0001fbff\U00020000-\U0003ffff]")
#: How the names of marks begin that go on any letter.
_ON_ANY = "COMBINING"
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
#: So many marks stand on one letter; no writing needs more than a few.
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
    if _NOT_PLAIN().search(text) is None:
        return text
    text = replace_hidden(_CONTROL().sub(_picture, text), _spelled, _SURROGATES)
    marks, _ = _odd_in(text)
    return _heap(marks).sub(_lowered, text) if marks else text


def shown_whole(text: str) -> str:
    """Return all of what a person is asked to allow, with long gaps counted: what stands behind one would be out of sight."""
    text = _GAP().sub(lambda gap: f" <{len(gap[0])} spaces> ", unabridged(text).strip("\n"))
    return _EMPTY_LINES().sub(lambda gap: f"\n<{gap[0].count(chr(10)) - 1} empty lines>\n", text)


def has_suspects(text: str) -> bool:
    """Return whether anything in the text is hidden, or a control character; carriage return too."""
    if text.isascii():
        return bool(text.encode().translate(None, _PLAIN))
    if _NOT_PLAIN().search(text) is None:
        return False
    return bool(_CONTROL().search(text) or next(_hidden_once(text, _SURROGATES), None))


def hidden_characters(text: str) -> Iterator[str]:
    """Yield the name, such as `U+202E`, of each different character that a reader cannot see."""
    for character in dict.fromkeys("".join(hidden_runs(text))):
        yield f"U+{ord(character):04X}"


def hidden_runs(text: str, controls: str = "") -> Iterator[str]:
    """Yield the runs of characters that a reader cannot see, with `controls` (a regular expression) among them."""
    return (text[start:end] for start, end in _hidden(text, controls))


def replace_hidden(text: str, sign: Callable[[str], str], controls: str = "") -> str:
    """Put `sign` of each run in its place."""
    pieces: list[str] = []
    done = 0
    for start, end in _hidden(text, controls):
        pieces += text[done:start], sign(text[start:end])
        done = end
    return "".join((*pieces, text[done:])) if pieces else text


def signs_of(run: str) -> list[tuple[str, str]]:
    """Return the signs of a run of hidden characters, each with the characters that it stands for."""
    if len(run) <= _MOST_SPELLED:
        return [(f"<U+{ord(character):04X}>", character) for character in run]
    return [(f"<U+{ord(run[0]):04X} and {len(run) - 1} more>", run)]


def _spelled(run: str) -> str:
    return "".join(sign for sign, _ in signs_of(run))


def _hidden(text: str, controls: str) -> list[tuple[int, int]]:
    """Return where the runs of hidden characters begin and end; what of `controls` is among them.

    A character that is at home behind a hidden one alone is hidden, too.
    """
    found, rest = list[tuple[int, int]](), text
    while more := list(_hidden_once(rest, controls)):
        found += more
        pieces, done = list[str](), 0
        for start, end in more:
            pieces += rest[done:start], "?" * (end - start)
            done = end
        rest = "".join((*pieces, rest[done:]))
    runs = list[tuple[int, int]]()
    for start, end in sorted(found):
        begun = runs.pop()[0] if runs and runs[-1][1] == start else start
        runs.append((begun, end))
    return runs


def _hidden_once(text: str, controls: str) -> Iterator[tuple[int, int]]:
    if text.isprintable() if text.isascii() else not controls and not _NOT_PLAIN().search(text):
        return
    marks, unknown = _odd_in(text)
    begun = done = 0
    for found in _finder(marks, unknown, controls).finditer(text):
        spans = [found.span()] if found[1] else []
        for start, end in spans or _out_of_place(text, *found.span(2), done):
            if start > done and begun < done:
                yield begun, done
            begun, done = begun if start == done else start, end
    if begun < done:
        yield begun, done


def _out_of_place(text: str, start: int, end: int, done: int) -> Iterator[tuple[int, int]]:
    """Yield where marks of a run are not behind a sign of their writing; what ends at `done` is hidden itself."""
    at = start
    while at > done and text[at - 1] in "\u200c\u200d":
        at -= 1
    before, run = text[at - 1 : at] if at > done else "", text[start:end]
    behind = text[end : end + 1] if not start or run[:1] in _REACHING else ""
    find = _strangers if end - start <= MOST_MARKS else _strangers.__wrapped__
    return ((start + place, start + place + 1) for place in find(before, run, behind))


@lru_cache(maxsize=4096)
def _strangers(before: str, run: str, behind: str) -> tuple[int, ...]:
    """Return which marks of a run do not belong to the signs around it."""
    home = {_writing_of(before), _writing_of(behind)}
    if before >= " ":
        home.add(_ON_ANY)
    return tuple(place for place, mark in enumerate(run) if _writing_of(mark) not in home)


def _odd_in(text: str) -> tuple[str, str]:
    """Return the marks that a text has and what this Python does not know, each once."""
    kinds = {each: kind for each in set(text) if (kind := _kind_of(each))}
    marks, unknown = (
        "".join(sorted(each for each, kind in kinds.items() if kind == wanted))
        for wanted in ("mark", "unknown")
    )
    return marks, unknown


@cache
def _kind_of(character: str) -> str:
    """Return "mark" for what has no width of its own, "unknown" for what this Python does not know; of both no ignorable ones."""
    from unicodedata import category  # plain texts do without

    if character.isascii() or _IGNORABLE().match(character):
        return ""
    kind = category(character)
    if kind in ("Mn", "Me", "Cf") or _PARTS().match(character):
        return "mark"
    return "unknown" if kind == "Cn" and not _NEW().match(character) else ""


@cache
def _writing_of(character: str) -> str:
    """Return the first word of a character's name, which is that of its writing."""
    from unicodedata import name

    words = name(character, "") if character else ""
    return re.split("[ -]", words.removeprefix("EXTENDED "), maxsplit=1)[0]


@lru_cache(maxsize=512)
def _finder(marks: str, unknown: str, controls: str) -> re.Pattern[str]:
    one = "|".join(filter(None, (controls, _OUT_OF_PLACE, unknown and f"[{unknown}]")))
    return re.compile(f"{_FLAG}|((?:{one})+)" + (f"|([{marks}]+)" if marks else "|((?!))"))


@lru_cache(maxsize=512)
def _heap(marks: str) -> re.Pattern[str]:
    return re.compile(f"([{marks}]{{{MOST_MARKS}}})([{marks}]+)")


def _lowered(found: re.Match[str]) -> str:
    return f"{found[1]}<{len(found[2])} marks>"


def _picture(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)  # the picture of the control character
    if code == 0x7F:
        return "\u2421"
    return f"\\x{code:02x}"
