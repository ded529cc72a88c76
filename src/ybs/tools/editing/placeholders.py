"""Finds lines that stand for code which was left out, such as `// ... existing code ...`."""

import re
from collections import Counter
from functools import cache

from ybs.core.lazy import lazy

_MARKERS = r"(?://+|#+|--+|;+|%+|/\*+|\*+|<!--|\{/\*)"
_DOTS = r"(?:\.{3,}|\u2026)"
_THING = (
    r"(?:code|file|function|functions|class|classes|method|methods|implementation|body|content|contents|"
    r"lines?|logic|imports?|tests?|module|script|definitions?|fields?|properties|handlers?|routes?|cases?|"
    r"entries|items|block|section|document|text|stuff)"
)
_OF_WHAT = rf"(?:(?:the|this|your|that) )?(?:\w+ ){{0,2}}{_THING}"
_KEPT = (
    r"(?:here|unchanged|as (?:before|is|above)|(?:remains?|stays?|is|are)(?: the)?(?: same| unchanged| as \w+)|"
    r"the same|goes here|omitted(?: for brevity)?|below|above|continues?|follows?|not shown|no changes?)"
)
_WORDS = (
    rf"(?:(?:the )?rest(?: of {_OF_WHAT})?(?:,? {_KEPT})?"
    rf"|(?:(?:all|the|your|any) )*(?:existing|remaining|previous|unchanged|original|other|same) {_OF_WHAT}(?:,? {_KEPT})?"
    rf"|{_OF_WHAT} (?:unchanged|omitted|remains? .{{0,30}}|stays? .{{0,30}}|as before|goes here|not shown)"
    rf"(?: for brevity)?|unchanged|no changes?(?: here)?|same as (?:before|above)|omitted(?: for brevity)?|snip"
    rf"|keep (?:the )?(?:rest|existing|remaining).{{0,40}})"
)
_WITH_DOTS = r"(?:existing|remaining|previous|unchanged|original|other|more|same|rest|omitted|code|skipp?ed|snip)"
#: Every placeholder has one of these, in lower case.
_HINTS = (
    *(
        "...",
        "\u2026",
        "rest",
        "existing",
        "remain",
        "unchanged",
        "previous",
        "omitted",
        "same",
        "before",
    ),
    *("other", "change", "snip", "keep", "original", "goes here", "not shown"),
)
_BARE = lazy(rf"\s*{_DOTS}\s*")
_OPENING = (
    ":",
    '"""',
    "'''",
    ">>>",
    "...",
)  # a line after which `...` may be code: a body, a doctest


def _is_hinted_at(text: str) -> bool:
    lower = text.lower()
    return any(hint in lower for hint in _HINTS)


def placeholder_in(new: str, *, old: str, text: str) -> str:
    """Return the first line of the new text that stands for left-out code; empty if there is none.

    Lines that the old text holds as often, or the file anywhere, are the author's own.
    """
    if not _is_hinted_at(new):
        return ""
    kept = Counter(line.strip() for line in old.split("\n"))
    before = ""
    for line in new.split("\n"):
        bare = line.strip()
        if is_elision(line) and not _is_body(line, before):
            kept[bare] -= 1
            if kept[bare] < 0 and (_BARE().fullmatch(line) or not _holds(text, bare)):
                return bare
        before = bare or before
    return ""


def is_elision(line: str) -> bool:
    """Return whether a line stands for lines that were left out."""
    return len(line) <= 200 and _is_hinted_at(line) and bool(_line().fullmatch(line))


def _is_body(line: str, before: str) -> bool:
    return bool(_BARE().fullmatch(line)) and (
        before.endswith(_OPENING[:3]) or before.startswith(_OPENING[3:])
    )


def _holds(text: str, bare: str) -> bool:
    return bare in text and any(line.strip() == bare for line in text.split("\n"))


@cache
def _line() -> re.Pattern[str]:
    """Return what a whole line of this kind matches. It is slow to compile, and only text with such words needs it."""
    return re.compile(
        rf"\s*(?:"
        rf"{_MARKERS}\s*[\(\[<]?{_WORDS}[\)\]>]?[.:!]?"
        rf"|{_MARKERS}?\s*[\(\[<]?{_DOTS}\s*[\(\[<]?{_WORDS}\s*[\)\]>]?{_DOTS}?[\)\]>]?"
        rf"|{_MARKERS}?\s*[\(\[<]{_WORDS}[\)\]>]"
        rf"|{_MARKERS}?\s*[\(\[<]?{_WORDS}\s*{_DOTS}[\)\]>]?"
        rf"|{_MARKERS}?\s*{_DOTS}\s*[^\n]{{0,40}}\b{_WITH_DOTS}\b[^\n]{{0,40}}{_DOTS}"
        rf"|{_MARKERS}?\s*[\(\[<]?{_DOTS}[\)\]>]?"
        rf")\s*(?:\*+/\}}?|-->)?\s*",
        re.IGNORECASE,
    )
