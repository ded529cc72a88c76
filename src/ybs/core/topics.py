"""What words are about, as it may stand in files: for small models, for which it is looked up before they are asked."""

import re
from collections.abc import Iterable
from functools import cache
from typing import Final

from ybs.core.lazy import lazy
from ybs.core.wishes import wishes_answer, without_commands

#: Words that say how something is asked, not what is asked about.
_PLAIN: Final = """
about above after again all also and another answer anybody anyhow anyone anything anywhere before belong below between
both briefly called cause causes change changed changes class classes come comes constant constants contain contains
content contents could currently defined describe does each either enough entry ever every exactly exist exists explain
file files find first folder folders for from function functions gets give given goes have here hold holds into keep
keeps know last lie lies like line lines list listed lists live lives long look looking made make many mean meaning
means mention mentioned mentions method methods moment more morning most much name named names need needs new now number
occurrence occurrences old only other our over page pages part person place please point print printed prints project
purpose read really rename renamed replace replaced right same say says sentence sentences several shall short shortly
should show some somebody someone something somewhere stand stands still take takes tell than that the their them then
there these they thing think this those today under used uses using value variable variables wants well were what when
where whether which whole whose will with without word words work works would write written your
"""
_LINK: Final = lazy(r"[a-z]+://[\w./-]*\w")
_QUOTED: Final = lazy(r"[\"`'\u201c]([^\"`'\n\u201d]{2,60})[\"`'\u201d](?!\w)")
#: A name in a program: in capitals, or with an underscore, a capital or two dots within.
_NAME: Final = lazy(
    r"\b(?:[A-Za-z]\w*(?:\.\w+){2,}|[A-Z]{4,}|[A-Za-z]\w*_\w+|[A-Za-z]?[a-z]+[A-Z]\w+|[A-Z]+\d+)\b"
)
_PROPER: Final = lazy(r"(?<=[a-z,;] )[A-Z][a-z]{3,}\b")
_CONTENT: Final = lazy(r"\b[a-z]{4,}\b")
_SLASHED: Final = lazy(r"\S*/\S*")
_PLURAL: Final = lazy(r"(?<!s)s$|(?<=\w\w\w)(?:ies|es)$")
#: What is most, or a sum, has words that stand nowhere.
_OVERALL: Final = lazy(
    r"(?i)\b(?:\w+est|most|least|total|sum|average|mean|altogether|first|last|many|all|every|each)\b"
)


def topics_in(words: str, but: Iterable[str]) -> list[str]:
    """Return what the words are about, as it may stand in files: links, quotations, names in programs, or else other names.

    Where there are none, a question is about its words that say something, of which the longest say most. `but` are paths that are named.
    """
    words = without_commands(words)
    if links := re.findall(_LINK(), words):
        return list(dict.fromkeys(links))
    known = " ".join(but)
    if paths := "|".join(rf"(?<!\w){re.escape(path)}(?!\w)" for path in but):
        words = re.sub(paths, " ", words)
    for sort in (_QUOTED, _NAME):
        if found := re.findall(sort(), words):
            return list(dict.fromkeys(found))
    found = re.findall(_PROPER(), words)
    if not found and wishes_answer(words):
        question = re.sub(_SLASHED(), " ", words.partition("?")[0])
        plain = filter(is_topic, re.findall(_CONTENT(), question))
        found = sorted(plain, key=len, reverse=True)
    stems = dict.fromkeys(re.sub(_PLURAL(), "", word) for word in found)
    return [stem for stem in stems if stem not in known]


def names_in(words: str) -> list[str]:
    """Return the names in programs among the words, and the links."""
    words = without_commands(words)
    return re.findall(_LINK(), words) or re.findall(_NAME(), words)


def is_topic(word: str) -> bool:
    """Return whether a word says what something is about, rather than how it is asked."""
    return word.lower() not in _plain()


@cache
def _plain() -> frozenset[str]:
    return frozenset(_PLAIN.split())


def is_about_one(words: str) -> bool:
    """Return whether a question is about one thing, which then has to stand in the file, not about all or the most."""
    return wishes_answer(words) and not re.search(_OVERALL(), words)
