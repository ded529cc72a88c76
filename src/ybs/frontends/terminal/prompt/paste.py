"""Pasted text: made harmless, and where it is long folded to one sign in the draft that stands for all of it."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby

from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.formatted_text.utils import fragment_list_to_text
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.layout.utils import explode_text_fragments

from ybs.session.mentions import NOTHING, is_long, named_in

#: Folded pastes that no draft holds any more are kept up to this size, so that Up brings them back.
MOST_KEPT = 10_000_000
#: So many lines with pastes are known again when they come back or are read.
MOST_SENT = 100
#: Characters of a private plane, at its very end: no font and no language uses them.
_FIRST, _COUNT = 0x10F000, 0xF00
_SIGN = re.compile(f"[{chr(_FIRST)}-{chr(_FIRST + _COUNT - 1)}]")
_ATTRIBUTES = re.compile("\x1b\\[[0-9;:]*m")
_UNWANTED = re.compile(
    f"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff{chr(_FIRST)}-{chr(_FIRST + _COUNT - 1)}]"
)
_STYLE = "fg:ansicyan"
#: What an edited line is compared by: a path is one piece, without the sign that ends a sentence.
_PIECES = re.compile(r"@?[\w~/-]+(?:[.:][\w~/-]+)*|\s+|.")
#: Changed lines with more pairs of pieces than this are not compared: all in them counts as pasted.
_MOST_COMPARED = 1_000_000


class Pastes:
    """The folded pastes of a session. Each is one character in the draft, so every key takes it as one."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._numbers: dict[str, int] = {}
        self._sent: dict[str, str] = {}
        self._made = 0

    def fold(self, text: str, draft: str) -> str:
        """Return the character that stands for a text in the draft."""
        self._made += 1
        sign = chr(_FIRST + self._made % _COUNT)
        self._texts.pop(sign, None)
        self._texts[sign], self._numbers[sign] = text, self._made
        self._forget(set(draft))
        return sign

    def fold_long(self, text: str, draft: str) -> str:
        """Return the text, or a character for it where it is long."""
        return self.fold(text, draft) if is_long(text) else text

    def expand(self, text: str) -> str:
        """Return the text with the pastes in their places."""
        return _SIGN.sub(lambda found: self._texts.get(found[0]) or self._label(found[0]), text)

    def note_sent(self, words: str, folded: str) -> None:
        """Note how words looked in the draft: what was pasted is not searched for, it may hold another paste."""
        if has_folded(folded):
            self._sent.pop(words, None)
            self._sent[words] = folded
            if len(self._sent) > MOST_SENT:
                del self._sent[next(iter(self._sent))]

    def shorten(self, text: str) -> str:
        """Return a text that was sent with words in the places of what had been pasted."""
        for words in self._sent_in(text):
            text = text.replace(words, self.label(self._sent[words]))
        return text

    def label(self, text: str) -> str:
        """Return the text with words in the places of pastes, as it is shown."""
        return _SIGN.sub(lambda found: self._label(found[0]), text)

    def fold_known(self, text: str) -> str:
        """Return words that were sent with the pastes in them folded again, as far as they are remembered."""
        for words in self._sent_in(text):
            folded = self._sent[words]
            is_whole = words.endswith(self.expand(folded).strip())
            text = text.replace(words, folded if is_whole else self.fold(words, ""))
        return text

    def _sent_in(self, text: str) -> list[str]:
        """List words with pastes that stand in a text that was sent, the longest first."""
        found = [words for words in self._sent if words in text]
        return sorted(found, key=len, reverse=True)

    def refold(self, text: str, draft: str) -> str:
        """Return the edited text with the draft's pastes folded again: what is left of a changed one names no files either."""
        signs = dict.fromkeys(_SIGN.findall(draft))
        for sign in signs:
            if pasted := self._texts.get(sign):
                text = text.replace(pasted, sign, draft.count(sign))
        torn = [self.expand(sign) for sign in signs if text.count(sign) < draft.count(sign)]
        if not torn:
            return text
        return "".join(
            self.fold(part, draft)
            if is_pasted and (is_long(part) or named_in(part) != NOTHING)
            else part
            for part, is_pasted in _parts("\n".join(torn), text)
        )

    def _label(self, sign: str) -> str:
        number, text = self._numbers.get(sign, 0), self._texts.get(sign)
        if text is None:
            return f"[a paste that is gone #{number}]"
        lines = text.count("\n") + (not text.endswith("\n"))
        size = f"{lines:,} lines" if lines > 1 else f"{len(text):,} characters"
        return f"[pasted {size} #{number}]"

    def _forget(self, in_draft: Iterable[str]) -> None:
        kept = sum(map(len, self._texts.values()))
        newest = next(reversed(self._texts))
        for sign in [sign for sign in self._texts if sign not in in_draft and sign != newest]:
            if kept <= MOST_KEPT:
                return
            kept -= len(self._texts.pop(sign))


class FoldedPastes(Processor):
    """Draws the words of a paste in the place of its character."""

    def __init__(self, pastes: Pastes) -> None:
        self._pastes = pastes

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        """Draw one line."""
        fragments = transformation_input.fragments
        if not has_folded(fragment_list_to_text(fragments)):
            return Transformation(fragments)
        drawn: StyleAndTextTuples = []
        starts = [0]  # where each character of the line begins on the screen
        for style, text, *_ in explode_text_fragments(fragments):
            label = self._pastes.label(text)
            drawn.append((style if label == text else f"{style} {_STYLE}", label))
            starts.append(starts[-1] + len(label))
        end = len(starts) - 1

        def to_screen(place: int) -> int:
            return starts[place] if place <= end else starts[end] + place - end

        return Transformation(drawn, to_screen)  # the way back is for the mouse alone


def _parts(pasted: str, edited: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts of an edited text, and whether they stood in what was pasted: lines, and pieces of changed ones."""
    from difflib import SequenceMatcher  # behind an editor alone

    lines, before = re.findall(r".*\n|.+", edited), Counter(pasted.split("\n"))
    pieces: list[str] = []
    is_old: list[bool] = []
    for line in lines:
        new = [line] if (is_whole := line.rstrip("\n") in before) else _PIECES.findall(line)
        pieces += new
        is_old += [is_whole] * len(new)
    gone = before - Counter(line.rstrip("\n") for line in lines)
    was = _PIECES.findall("\n".join(gone.elements()))
    places = [place for place, is_known in enumerate(is_old) if not is_known]
    matcher = SequenceMatcher(str.isspace, was, [pieces[each] for each in places], autojunk=False)
    is_much = len(was) * len(places) > _MOST_COMPARED
    for _, start, size in [(0, 0, len(places))] if is_much else matcher.get_matching_blocks():
        for place in places[start : start + size]:
            is_old[place] = True
    for is_pasted, part in groupby(zip(pieces, is_old, strict=True), key=lambda each: each[1]):
        yield "".join(piece for piece, _ in part), is_pasted


def has_folded(text: str) -> bool:
    """Return whether a folded paste stands in a text."""
    return not text.isascii() and _SIGN.search(text) is not None


def clean(text: str) -> tuple[str, int]:
    """Return a pasted text with plain line ends and without control characters, and how many of those there were.

    Colours go without a word.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _UNWANTED.subn("", _ATTRIBUTES.sub("", text) if "\x1b" in text else text)
