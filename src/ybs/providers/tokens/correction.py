"""What the numbers that a provider reports teach about its next ones."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from ybs.core.messages import Message
from ybs.core.ports import Request

#: How far a family's rates may be off for a whole conversation, and for one message, as shares.
_PRIOR: Final = 0.15**2
_OF_TEXT: Final = 0.10**2
#: It drifts: what a session is about changes.
_DRIFT: Final = 0.01**2
#: Tokens that a template adds unseen.
_HIDDEN: Final = 150.0
_FEW: Final = 10.0
#: A number farther off than this is about something else, such as the part that no cache held.
_FARTHEST: Final = 3.0
_MOST_HIDDEN: Final = 3_000
#: A conversation that grew does not shrink, but for thinking that a server leaves out later.
_LEAST_KEPT: Final = 0.85
#: After so many doubts in a row the first belief is doubted.
_ENOUGH: Final = 3
_MOST_MARKS: Final = 16


class Mark(Struct, frozen=True):
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
        self._marks: list[Mark] = []
        self._refused = 0

    def corrected(self, request: Request, estimate: float) -> float:
        """Return the likely true size of a request."""
        return self._expected(self.known(request), estimate)

    def known(self, request: Request) -> Mark | None:
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
            self._learn_ratio(estimate - mark.estimate, counted - mark.counted, _FEW)
        messages = request.messages
        last = messages[-1] if messages else None
        self._marks.append(Mark(request.system, len(messages), last, estimate, counted))
        del self._marks[1:-_MOST_MARKS]
        self.answers += 1

    def _expected(self, mark: Mark | None, estimate: float) -> float:
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
        self, request: Request, mark: Mark | None, estimate: float, counted: int
    ) -> bool:
        """Return whether a number can be that of the whole request."""
        if mark is not None and mark.begins(request.messages):
            has_shrunk = counted < _LEAST_KEPT * mark.counted
            if has_shrunk and estimate >= mark.estimate:
                return False  # only what no cache held
        expected = self._expected(mark, estimate) if mark else estimate
        least = expected / _FARTHEST - _HIDDEN
        return max(1.0, least) <= counted <= expected * _FARTHEST + _MOST_HIDDEN
