"""How many tokens a request has: estimated, and corrected by what the provider reports."""

from typing import Final

from ybs.core.messages import AssistantMessage, Usage
from ybs.core.ports import Request
from ybs.providers.tokens.correction import Correction
from ybs.providers.tokens.families import family_of
from ybs.providers.tokens.features import estimate
from ybs.providers.tokens.meter import Meter, PictureSize

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
