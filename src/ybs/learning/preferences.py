"""Facts and preferences that a person states in one session after the other: "use pnpm", "answer in German"."""

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct, field

from ybs.learning.detector import DAY_SECONDS, PastRequest
from ybs.learning.normal import words_of

#: A sentence that states how things are to be done, in the languages whose small words are known.
_STATED: Final = re.compile(
    r"(?i)\b(always|never|prefer|from now on|don'?t|do not|instead of|use \w+|answer in|reply in|remember that"
    r"|immer|nie|niemals|statt|bevorzuge|antworte auf|benutze|verwende"
    r"|toujours|jamais|plutôt|réponds en|utilise|siempre|nunca|prefiero|responde en|usa)\b"
)
_SENTENCE: Final = re.compile(r"[.!?;\n]+\s*|,\s+(?:and|but|und|et|y)\s+")
_LONGEST: Final = 160
#: It is offered after as many sessions on as many days.
_NEEDED_SESSIONS, _NEEDED_DAYS = 3, 2
_ALIKE: Final = 0.6
_MOST: Final = 400


class Preference(Struct, kw_only=True):
    """One statement: its words in the last wording, and the sessions and days in which it was made."""

    id: int
    text: str
    words: set[str]
    sessions: set[str] = field(default_factory=set[str])
    days: set[int] = field(default_factory=set[int])
    offered_at: float = 0.0
    is_settled: bool = False


class Preferences(Struct, kw_only=True):
    """The statements that were met, those that were met lately last."""

    next_id: int = 1
    stated: list[Preference] = field(default_factory=list[Preference])

    def add(self, request: PastRequest) -> None:
        """Take what a request states."""
        for text in _statements(request.text):
            words = set(words_of(text))
            if len(words) < 2:
                continue
            found = next((each for each in self.stated if _alike(words, each.words)), None)
            if found is None:
                found = Preference(id=self.next_id, text=text, words=words)
                self.next_id += 1
            else:
                self.stated.remove(found)
            found.sessions = set(sorted({*found.sessions, request.session})[-20:])
            found.days = set(sorted({*found.days, int(request.at // DAY_SECONDS)})[-20:])
            self.stated = [*self.stated, found][-_MOST:]

    def remove(self, number: int) -> None:
        """Forget a statement."""
        self.stated = [each for each in self.stated if each.id != number]

    def recurring(self) -> list[Preference]:
        """Return what was stated often enough to be worth keeping, and was not settled."""
        return [
            each
            for each in self.stated
            if len(each.sessions) >= _NEEDED_SESSIONS
            and len(each.days) >= _NEEDED_DAYS
            and not each.is_settled
        ]


def _statements(text: str) -> Iterator[str]:
    for sentence in _SENTENCE.split(text):
        sentence = sentence.strip(" ,-*")
        if len(sentence) <= _LONGEST and _STATED.search(sentence):
            yield sentence


def _alike(one: set[str], other: set[str]) -> bool:
    return len(one & other) >= _ALIKE * len(one | other)
