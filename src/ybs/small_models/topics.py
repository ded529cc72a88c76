"""Extract the topics of a request as words to look for in files, before a small model is asked."""

import re
from collections.abc import Iterable
from functools import cache
from typing import Final

from ybs.core.lazy import lazy
from ybs.small_models.intents import wants_change
from ybs.small_models.mentions import files_in, without_commands

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
#: Words that say what is to be done, and to what sort of thing.
_DOING: Final = """
all and any are but can could did ever for had has her his how its let may new nor not now off one our out own see she sure the
too two was way who why yes yet you
add added adding adds anymore append bigger broken bump cannot check clean code comment comments config correct count crash
crashes create cut delete different document documentation does doesn done drop edit empty ending ends error errors extra
fail failing fails feature fix fixed gone guys hello help implement include included increase insert just kindly left less
lower maybe mend missing move nobody none note okay over pass passes please problem program project put raise remove removed
repair repo repository reset returns run running script seems sentence set shorten simple someone sort spelled spelling start stop
support switch swap test tests text thank thanks throw throws time translate true turn typo update updated version want
wanted wants wrong yesterday
"""
_LINK: Final = lazy(r"(?<![a-z])[a-z]+://[\w./-]*\w")
_QUOTED: Final = lazy(r"[\"`'\u201c]([^\"`'\n\u201d]{2,60})[\"`'\u201d](?!\w)")
#: A name in a program: in capitals, or with an underscore, a capital or two dots within, or an at sign before it.
_NAME: Final = lazy(
    r"(?<![\w.])@[A-Za-z]\w+|\b(?:[A-Za-z]\w*(?:\.\w+){2,}|[A-Z]{4,}|[A-Za-z]\w*_\w+|[A-Za-z]?[a-z]+[A-Z]\w+|[A-Z]+\d+)\b"
)
_PROPER: Final = lazy(r"(?<=[a-z,;] )[A-Z][a-z]{3,}\b")
_CONTENT: Final = lazy(r"\b[a-z]{4,}\b")
_SAYING: Final = lazy(r"(?i)\b[a-z]{3,}\b")
_SLASHED: Final = lazy(r"\S*/\S*")
_PLURAL: Final = lazy(r"(?<=[sxz])es$|(?<=[cs]h)es$|(?<=\w\w\w)ies$|(?<![suai])s$")
#: So many words are looked for at once.
MOST_TERMS: Final = 16
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
    if not found and not wants_change(words):
        question = re.sub(_SLASHED(), " ", words.partition("?")[0])
        plain = filter(is_topic, re.findall(_CONTENT(), question))
        found = sorted(plain, key=len, reverse=True)
    stems = dict.fromkeys(re.sub(_PLURAL(), "", word) for word in found)
    return [stem for stem in stems if stem not in known]


def terms_in(words: str) -> list[str]:
    """Return every word that may stand in or above what a request is about, those that say most first: names, and words without their ending."""
    words = without_commands(words)
    named = [part for name in files_in(words) for part in (name, name.rpartition("/")[2])]
    exact = [*named, *re.findall(_LINK(), words), *re.findall(_QUOTED(), words)]
    exact += [*re.findall(_NAME(), words), *re.findall(_PROPER(), words)]
    plain = (word for word in re.findall(_SAYING(), words) if is_topic(word))
    stems = (re.sub(_PLURAL(), "", word.lower()) for word in plain if word.lower() not in _doing())
    terms: dict[str, str] = {}
    for term in (*exact, *(stem for stem in stems if is_topic(stem) and stem not in _doing())):
        terms.setdefault(term.lower(), term)
    return list(terms.values())[:MOST_TERMS]


def names_in(words: str) -> list[str]:
    """Return the names in programs among the words, and the links."""
    words = without_commands(words)
    return re.findall(_LINK(), words) or re.findall(_NAME(), words)


def is_topic(word: str) -> bool:
    """Return whether a word says what something is about, rather than how it is asked."""
    return word.lower() not in _plain()


@cache
def _doing() -> frozenset[str]:
    return frozenset(_DOING.split())


@cache
def _plain() -> frozenset[str]:
    return frozenset(_PLAIN.split())


def is_about_one(words: str) -> bool:
    """Return whether a question is about one thing, which then has to stand in the file, not about all or the most."""
    return not wants_change(words) and not re.search(_OVERALL(), words)
