"""What a routed model keeps of one request while it is answered: what has come, how long it waited, and whether another arm may do better."""

from typing import Final

from ybs.core.errors import AuthError, ModelError, YbsError
from ybs.core.events import (
    AssistantSaid,
    Event,
    Noticed,
    PromptRead,
    RequestRetried,
    RequestStarted,
    TextStreamed,
)
from ybs.core.messages import Usage
from ybs.providers.http.failures import NotServed
from ybs.router.requests import BYTES

#: What may come before anything of an answer is shown.
_NOT_YET: Final = (Noticed, PromptRead, RequestRetried, RequestStarted)
#: For room in a pool, and for models that rest, a request waits no longer than this in all, in seconds.
MOST_WAIT_SECONDS: Final = 60.0


class Waits:
    """Counts how long a request has waited."""

    def __init__(self) -> None:
        self._waited, self._count = 0.0, 0

    def next(self, seconds: float, why: str) -> RequestRetried | None:
        """Return what to tell of the next try; None where it would wait too long."""
        if self._waited + seconds > MOST_WAIT_SECONDS:
            return None
        self._waited, self._count = self._waited + seconds, self._count + (seconds > 0)
        return RequestRetried(attempt=self._count, wait_seconds=seconds, message=why)


class Seen:
    """What of an answer has come."""

    def __init__(self) -> None:
        self.has_output = False
        self._usage, self._written = Usage(), 0

    def add(self, event: Event) -> None:
        """Take an event of the answer."""
        self.has_output = self.has_output or not isinstance(event, _NOT_YET)
        if isinstance(event, TextStreamed):
            self._written += len(event.text)
        elif isinstance(event, AssistantSaid):
            self._usage = event.usage

    def used(self, asked: int) -> Usage:
        """Return what the request has used: of one that was cut off, what the provider counts most likely."""
        if self._usage != Usage() or not self.has_output:
            return self._usage
        return Usage(input_tokens=asked, output_tokens=self._written // BYTES)


def may_pass(error: ModelError) -> bool:
    """Return whether another arm may do better: an outage, a limit, a refused key; not a request that is wrong."""
    return error.temporary or isinstance(error, NotServed | AuthError)


def first_line(error: YbsError) -> str:
    """Return the first line of what an error says, as a sentence."""
    text = str(error).split("\n", 1)[0].strip()[:200]
    return text if text.endswith((".", "!", "?")) else f"{text}."
