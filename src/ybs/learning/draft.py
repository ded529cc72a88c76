"""Draft a custom command from a recurring task: the person's own words, with places for what varied."""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from msgspec import Struct

from ybs.learning.detector import Cluster, PastRequest
from ybs.learning.normal import words_of

#: What may vary from one time to the next, by what a hint calls it.
_VARYING: Final = (
    ("version", re.compile(r"\bv?\d+\.\d+[\w.-]*\b")),
    ("file", re.compile(r"(?<![\w$@/.-])[\w.~-]*(?:/[\w.-]+)*\.[A-Za-z]{1,5}\b(?![\w/])")),
    ("name", re.compile(r"(?<![\w$@/.-])\w[\w.-]*/[\w./-]*\w|\b\w+(?:-\w+)*-v?\d+\b")),
    ("number", re.compile(r"#?\b\d+\b")),
)
#: Of what differs this share of the requests must have the same for it to stay as it is.
_SAME_IN: Final = 0.6
#: A step is named when it was taken in this share of the requests.
_USUAL_IN: Final = 0.6
_MOST_USUAL: Final = 6
_PLAIN_STEP: Final = re.compile(r"[a-z]+ [\w.:+-]{1,60}(?: [\w.:+-]{1,40})?")
_MOST_NAME_WORDS: Final = 3
_WRITTEN: Final = re.compile(r"[^\W\d_]+")
#: What a template would run, fill in or attach; in the person's past words, and what they pasted there, it is only text.
_SPECIAL: Final = re.compile(r"\$|!(?=`)|(?<=```)!")
_MENTION: Final = re.compile(r"(?<!\w)@+(?=\S)")


class CommandDraft(Struct, frozen=True, kw_only=True):
    """A command that was not written yet: its name and the text of its file."""

    name: str
    text: str


def draft_of(cluster: Cluster) -> CommandDraft:
    """Make a command of a recurring task."""
    request = _typical(cluster.last)
    text, hints = _with_places(as_text(request.text.strip()), cluster.last)
    summary = " ".join(text.split())
    for number, hint in enumerate(hints, 1):
        summary = summary.replace(f"${number}", f"<{hint}>")
    lines = ["---", f"description: {_quoted(summary[:100])}"]
    if hints:
        shown = " ".join(f"<{hint}>" for hint in hints)
        lines.append(f"argument-hint: {_quoted(shown)}")
    lines += ["---", text, ""]
    if usual := usual_steps(cluster.last):
        lines += ["What was done for this in earlier sessions, in this order:", ""]
        lines += [f"- {step}" for step in usual]
    return CommandDraft(name=_name(request, cluster), text="\n".join(lines).rstrip() + "\n")


def as_text(words: str) -> str:
    """Return words as a template has them in which nothing runs, is filled in or attached."""
    return _SPECIAL.sub(_escaped, _MENTION.sub("", words))


def usual_steps(requests: Sequence[PastRequest]) -> list[str]:
    """Return the steps that most of the requests took, in their usual order; a file that varies is "the file"."""
    needed = _USUAL_IN * len(requests)
    files = Counter(
        what for each in requests for what in {step.partition(" ")[2] for step in each.steps}
    )
    constant = {what for what, count in files.items() if count >= needed}
    places: dict[str, list[float]] = {}
    for request in requests:
        taken = dict.fromkeys(_plain(step, request, constant) for step in request.steps)
        for place, step in enumerate(filter(None, taken)):
            places.setdefault(step, []).append(place / max(len(taken), 1))
    usual = [step for step, found in places.items() if len(found) >= needed]
    usual.sort(key=lambda step: sum(places[step]) / len(places[step]))
    return usual[:_MOST_USUAL]


def _plain(step: str, request: PastRequest, usual: Collection[str]) -> str:
    """Return a step as it may be shown and sent to a model: a name that reads like a sentence is left out; `usual` files keep theirs."""
    verb, _, what = step.partition(" ")
    if (
        verb not in ("run", "use")
        and what
        and what not in usual
        and what.partition(".")[0] in request.text
    ):
        return f"{verb} the file that is named"
    return step if _PLAIN_STEP.fullmatch(step) or step.isalpha() else ""


def _typical(requests: Sequence[PastRequest]) -> PastRequest:
    """Return the request whose words most others share; of those the shortest."""
    counts = Counter(word for each in requests for word in _said(each))

    def score(request: PastRequest) -> tuple[float, int]:
        words = _said(request)
        return sum(counts[word] for word in words) / (len(words) + 2), -len(request.text)

    return max(requests, key=score)


def _said(request: PastRequest) -> set[str]:
    """Return the words of a request as they were written: a misspelt one is another word."""
    return {word for word in _WRITTEN.findall(request.text.casefold()) if words_of(word)}


def _with_places(text: str, requests: Sequence[PastRequest]) -> tuple[str, list[str]]:
    """Put places for arguments where requests differ; return the text and what each place is."""
    found = sorted(_varying(text, requests), key=lambda each: (each[0], -each[1]))
    hints: list[str] = []
    numbers: dict[str, int] = {}
    pieces, end = list[str](), 0
    for start, stop, kind in found:
        if start < end:
            continue
        value = text[start:stop]
        if value not in numbers:
            hints.append(kind)
            numbers[value] = len(hints)
        pieces += [text[end:start], f"${numbers[value]}"]
        end = stop
    return "".join([*pieces, text[end:]]), hints


def _varying(text: str, requests: Sequence[PastRequest]) -> Iterator[tuple[int, int, str]]:
    needed = _SAME_IN * len(requests)
    for kind, pattern in _VARYING:
        for match in pattern.finditer(text):
            if sum(match[0] in each.text for each in requests) < needed:
                yield *match.span(), kind


def _name(request: PastRequest, cluster: Cluster) -> str:
    """Return a name of the words that recur, in the order in which they were said; never one word, as ybs's own commands have."""
    shared = set(map(_plain_letters, cluster.shared[:6]))
    said = re.findall(r"[a-z][a-z0-9]+", _plain_letters(request.text))
    kept = [
        word
        for word in dict.fromkeys(said)
        if {_plain_letters(each) for each in words_of(word)} & shared
    ]
    name = "-".join(kept[:_MOST_NAME_WORDS])[:40] or f"task-{cluster.id}"
    return name if "-" in name else f"my-{name}"


def _plain_letters(text: str) -> str:
    """Return a text in lower case and without accents, as the name of a command may be."""
    parts = unicodedata.normalize("NFKD", text.casefold().replace("ß", "ss"))
    return "".join(each for each in parts if not unicodedata.combining(each))


def _escaped(match: re.Match[str]) -> str:
    return "\\$" if match[0] == "$" else " ! "


def _quoted(text: str) -> str:
    """Write a text as a YAML string."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
