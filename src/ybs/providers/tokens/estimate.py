"""Estimate the tokens of a request, corrected by the counts that the provider reports."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from ybs.core.messages import AssistantMessage, Message, Usage
from ybs.core.ports import Request
from ybs.providers.tokens.meter import Meter, PictureSize, estimate, family_of

#: Providers whose models are sent their own earlier thinking, by the name that it carries.
_THINKING: Final = ("anthropic", "ollama")
#: How far the count of an answer may be from the estimate and still be about the same text.
_LIKELY_SHARE: Final = 0.35
_FEW: Final = 15


class TokenCounter:
    """Counts for one model; another model needs another counter. `picture_size` reads a picture's pixels."""

    def __init__(
        self, provider: str, model: str, *, picture_size: PictureSize | None = None
    ) -> None:
        self.correction = Correction()
        wire = provider if provider in _THINKING else ""
        self.meter = Meter(family_of(provider, model), estimate, wire, picture_size)

    def tokens(self, request: Request) -> int:
        """Return the likely size of a request; what is new since the last one is all that takes time."""
        size = self.correction.corrected(request, self.meter.request(request))
        return round(size + self._answer_surplus(request))

    def is_counted(self, request: Request) -> bool:
        """Return whether the provider itself has counted this, all but its own last answer."""
        mark, messages = self.correction.known(request), request.messages
        if mark is None or not mark.begins(messages):
            return False
        new = messages[mark.count :]
        return not new or (len(new) == 1 and isinstance(new[0], AssistantMessage))

    def _answer_surplus(self, request: Request) -> float:
        """Return by how much the provider's own count of its last answer is larger than the estimate.

        It is none where the count must hold thinking that is not sent back.
        """
        mark, messages = self.correction.known(request), request.messages
        if mark is None or not mark.begins(messages) or mark.count >= len(messages):
            return 0.0
        answer = messages[mark.count]
        if not isinstance(answer, AssistantMessage) or answer.usage.input_tokens != mark.counted:
            return 0.0
        estimate, counted = self.meter.message(answer), answer.usage.output_tokens
        surplus = counted - self.correction.ratio * estimate
        return surplus if abs(surplus) <= _LIKELY_SHARE * counted + _FEW else 0.0

    def learn(self, request: Request, usage: Usage) -> None:
        """Compare a request with what the provider reported for it; nothing reported teaches nothing."""
        if usage.input_tokens > 0:
            self.correction.learn(request, self.meter.request(request), usage.input_tokens)


#: How far a family's rates may be off for a whole conversation, and for one message, as shares.
_PRIOR: Final = 0.15**2
_OF_TEXT: Final = 0.10**2
#: It drifts: what a session is about changes.
_DRIFT: Final = 0.01**2
#: Tokens that a template adds unseen.
_HIDDEN: Final = 150.0
_FEW_SEEN: Final = 10.0
#: A number farther off than this is about something else, such as the part that no cache held.
_FARTHEST: Final = 3.0
_MOST_HIDDEN: Final = 3_000
#: A conversation that grew does not shrink, but for thinking that a server leaves out later.
_LEAST_KEPT: Final = 0.85
#: After so many doubts in a row the first belief is doubted.
_ENOUGH: Final = 3
_MOST_MARKS: Final = 16


class _Mark(Struct, frozen=True):
    """A request whose size is known: what it was estimated to have, and what the provider counted."""

    system: str
    count: int
    last: Message | None
    estimate: float
    counted: int

    def begins(self, messages: Sequence[Message]) -> bool:
        """Return whether these messages begin with the marked ones: they never change, and are only added."""
        if self.count > len(messages):
            return False
        return self.count == 0 or messages[self.count - 1] is self.last


class Correction:
    """Corrects estimates: what is known of the longest beginning is taken, only the rest is estimated."""

    def __init__(self) -> None:
        self.ratio = 1.0
        self.answers = 0
        self._doubt = _PRIOR
        self._marks: list[_Mark] = []
        self._refused = 0

    def corrected(self, request: Request, estimate: float) -> float:
        """Return the likely true size of a request."""
        return self._expected(self.known(request), estimate)

    def known(self, request: Request) -> _Mark | None:
        """Return the longest beginning whose size is known; else the shortest request: its hidden part is the same."""
        marks = [mark for mark in self._marks if mark.system == request.system]
        for mark in reversed(marks):
            if mark.begins(request.messages):
                return mark
        return min(marks, key=lambda mark: mark.estimate, default=None)

    def learn(self, request: Request, estimate: float, counted: int) -> None:
        """Take what a provider reported for a request, where it can be true."""
        mark = self.known(request)
        if not self._is_likely(request, mark, estimate, counted):
            self._refused += 1
            if self._refused < _ENOUGH or not self._is_likely(request, None, estimate, counted):
                return
            mark, self._marks = None, []  # what was believed before was wrong
        self._refused = 0
        if mark is None:
            self._learn_ratio(estimate, counted, _HIDDEN)
        else:
            self._learn_ratio(estimate - mark.estimate, counted - mark.counted, _FEW_SEEN)
        messages = request.messages
        last = messages[-1] if messages else None
        self._marks.append(_Mark(request.system, len(messages), last, estimate, counted))
        del self._marks[1:-_MOST_MARKS]
        self.answers += 1

    def _expected(self, mark: _Mark | None, estimate: float) -> float:
        if mark is None:
            return self.ratio * estimate
        return max(0.0, mark.counted + self.ratio * (estimate - mark.estimate))

    def _learn_ratio(self, size: float, grown: float, unseen: float) -> None:
        """Weigh a measured ratio against what was believed (Kalman's rule for one number)."""
        if size <= 0 or grown <= 0:
            return
        seen = min(max(grown / size, 0.5), 2.0)
        noise = _OF_TEXT + (unseen / size) ** 2
        gain = self._doubt / (self._doubt + noise)
        self.ratio += gain * (seen - self.ratio)
        self._doubt = (1 - gain) * self._doubt + _DRIFT

    def _is_likely(
        self, request: Request, mark: _Mark | None, estimate: float, counted: int
    ) -> bool:
        """Return whether a number can be that of the whole request."""
        if mark is not None and mark.begins(request.messages):
            has_shrunk = counted < _LEAST_KEPT * mark.counted
            if has_shrunk and estimate >= mark.estimate:
                return False  # only what no cache held
        expected = self._expected(mark, estimate) if mark else estimate
        least = expected / _FARTHEST - _HIDDEN
        return max(1.0, least) <= counted <= expected * _FARTHEST + _MOST_HIDDEN
