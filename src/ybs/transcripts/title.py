"""A session's name for people, made of the first exchange; no model is asked."""

import re
from typing import Final

from ybs.core.lazy import lazy
from ybs.security.unicode import printable

LONGEST: Final = 60
#: A prompt of fewer words says too little alone.
FEWEST_WORDS: Final = 3
_READ: Final = 2_000
#: What is said before the matter itself.
_POLITE: Final = lazy(
    r"(?:(?:hi|hello|hey|good (?:morning|afternoon|evening))(?: there| again| ybs)?"
    r"|sure(?: thing)?|of course|certainly|great|okay|ok|thanks|thank you"
    r"|please|kindly|now|so|well|also"
    r"|(?:can|could|would|will) you(?: (?:please|kindly|help me(?: to)?))?"
    r"|(?:i want|i need|i would like|i['\u2019]d like) you to"
    r"|(?:can|could|may) i ask you to|help me(?: to)?)"
    r"(?:\s*[,.!:;\u2013-]+\s*|\s+|$)",
    re.IGNORECASE,
)
#: So that begins: most prompts do not, and for them nothing has to be compiled.
_POLITE_BEGINS: Final = (
    *("hi", "hello", "hey", "good ", "sure", "of course", "certainly", "great", "ok", "thank", "please", "kindly"),
    *("now", "so", "well", "also", "can ", "could ", "would ", "will ", "may ", "i want", "i need", "i would"),
    *("i'd", "i\u2019d", "help me"),
)  # fmt: skip
_MARKS: Final = lazy(r"^(?:[#>*+-]+\s+|\d+[.)]\s+)|[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}")
_SENTENCE_ENDS: Final = (". ", "! ", "? ", "。", "！", "？")  # noqa: RUF001 - other writings have their own
_SENTENCES: Final = lazy(r"(?<=[.!?:])\s+")
_PLEASE_ENDS: Final = ("please", "thanks", "thank you")
_PLEASE: Final = lazy(r",?\s+(?:please|thanks|thank you)$", re.IGNORECASE)


#: How a request begins, in the midst of a prompt; what stands before it is why.
_REQUEST: Final = lazy(
    r"(?:^|[.!?;:,\u2013-]\s+|\s(?=so\s|and\s|then\s))(?:(?:so|and|then|now),?\s+)*"
    r"(?:please|kindly|(?:can|could|would|will) you|(?:i want|i need|i would like|i['\u2019]d like) you to)\s+(?=\w)",
    re.IGNORECASE,
)
#: Verbs of work to be done, and those of a look that only prepares it.
_WORK: Final = frozenset({
    "add", "build", "change", "clean", "convert", "create", "debug", "delete", "describe", "document", "drop", "explain",
    "extend", "extract", "find", "fix", "implement", "improve", "install", "list", "make", "merge", "migrate", "move",
    "optimise", "optimize", "port", "refactor", "remove", "rename", "replace", "review", "rewrite", "run", "show",
    "simplify", "sort", "speed", "split", "summarise", "summarize", "test", "tidy", "translate", "update", "upgrade", "use",
    "write", "why", "how", "what", "where", "which", "who", "when",
})  # fmt: skip


def title_of(words: str, answer: str) -> str:
    """Name a session after what was asked; with what was answered where that is little. Empty for nothing."""
    asked = _request(words) or _first_sentence(words)
    if _says_enough(asked):
        return _cut(asked)
    answered = _first_sentence(_MARKS().sub("", answer[:_READ].lstrip()))
    return _cut(f"{asked.rstrip('?')}: {answered}" if asked and answered else asked or answered)


def _request(text: str) -> str:
    """Return the sentence that asks for something, where others stand before it; "" where there is none."""
    text = " ".join(printable(text[:_READ]).split())
    first = _first_sentence(text)
    if not first or first.split(" ", 1)[0].lower() in _WORK:
        return ""
    found = _REQUEST().search(text)
    if found and found.start() and _says_enough(asked := _first_sentence(text[found.end() :])):
        return asked
    before, *sentences = _SENTENCES().split(text)
    for each in sentences if any(map(str.isalnum, before)) else ():
        asked = _first_sentence(each)
        is_asked = each.rstrip().endswith("?") or asked.split(" ", 1)[0].lower() in _WORK
        if is_asked and _says_enough(asked):
            return asked
    return ""


def _first_sentence(text: str) -> str:
    """Return the first sentence or line that says something, without politeness and its full stop."""
    for line in printable(text[:_READ]).splitlines():
        rest = " ".join(line.split())
        while rest.lower().startswith(_POLITE_BEGINS) and (polite := _POLITE().match(rest)):
            rest = rest[polite.end() :]
        said = next((at for at, character in enumerate(rest) if character.isalnum()), 0)
        ends = [end for mark in _SENTENCE_ENDS if (end := rest.find(mark, said)) >= 0]
        sentence = rest[: min(ends, default=len(rest)) + 1].rstrip(" .!,:;。！")  # noqa: RUF001
        if sentence.lower().endswith(_PLEASE_ENDS):
            sentence = _PLEASE().sub("", sentence)
        if any(character.isalnum() for character in sentence):
            return sentence
    return ""


def _says_enough(text: str) -> bool:
    # Chinese and others write without spaces.
    return len(text.split()) >= FEWEST_WORDS or (not text.isascii() and len(text) >= 8)


def _cut(text: str) -> str:
    first = text.split(" ", 1)[0].rstrip(",:;?!")
    if first.isalpha() and first.islower():  # a name such as src/app.py stays as it is
        text = text[0].upper() + text[1:]
    if len(text) <= LONGEST:
        return text
    cut = text[: LONGEST - 1]
    whole_words = cut.rpartition(" ")[0]
    return (whole_words if len(whole_words) > LONGEST // 2 else cut).rstrip(" ,;:.-") + "…"
