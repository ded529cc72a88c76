"""The errors of ybs, as one tree.

    YbsError
    ├── ConfigError            a setting cannot be used (file, line and key stand in the message)
    ├── ModelError             the provider failed; the turn ends, the session lives
    │   ├── AuthError          the key is missing or was refused
    │   ├── RateLimited        too many requests; `retry_after_seconds` when the provider says it
    │   ├── ContextTooLong     the request does not fit the model's window
    │   └── ProviderDown       nobody answers, or the answer broke off
    ├── ToolError              the model reads it and the turn goes on
    │   └── Refused            a person, a rule or a mode said no
    └── StopTurn               control flow: a guard ends the turn

A message says what happened and where; `remedies` are what to do, which each frontend words in its own terms.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Self

if TYPE_CHECKING:  # this module is loaded where there is no msgspec: in the search's own process
    from ybs.core.remedies import Remedy


class YbsError(Exception):
    """Base of every error that ybs raises on purpose."""

    def __init__(self, message: str = "", *, remedies: "Sequence[Remedy]" = ()) -> None:
        super().__init__(message)
        self.remedies = tuple(remedies)


class ConfigError(YbsError):
    """A setting cannot be used."""


class ModelError(YbsError):
    """The provider failed in a way that ends this turn."""

    #: True when the same request may succeed later (exit code 75 in a script).
    temporary = False
    #: The status and the words with which a server failed, where one did.
    status: int = 0
    server_words: str = ""

    def known(self, *, temporary: bool) -> Self:
        """Return this error, of which it is known whether it passes."""
        self.temporary = temporary
        return self

    def said_by_server(self, status: int, words: str) -> Self:
        """Return this error, with what the server said."""
        self.status, self.server_words = status, words
        return self


class AuthError(ModelError):
    """The provider refused the key, or there is none."""


class RateLimited(ModelError):
    """The provider asks to slow down."""

    temporary = True

    def __init__(
        self,
        message: str,
        *,
        retry_after_seconds: float | None = None,
        remedies: "Sequence[Remedy]" = (),
    ) -> None:
        super().__init__(message, remedies=remedies)
        self.retry_after_seconds = retry_after_seconds


class ContextTooLong(ModelError):
    """The request is larger than the model's window."""


class ProviderDown(ModelError):
    """Nobody answers at the endpoint, or the answer broke off, stalled or made no sense."""

    temporary = True


class ToolError(YbsError):
    """A tool could not do what was asked; the text goes to the model."""


class Refused(ToolError):
    """A person, a rule or the mode did not allow the call."""


class StopTurn(YbsError):
    """A guard ends the turn; the message tells the person why."""

    def __init__(
        self,
        reason: Literal["limit", "loop", "dry_run"],
        message: str,
        *,
        remedies: "Sequence[Remedy]" = (),
    ) -> None:
        super().__init__(message, remedies=remedies)
        self.reason: Literal["limit", "loop", "dry_run"] = reason


class Failure:
    """What an error says to the person, without the error itself, whose traceback would keep the turn alive."""

    __slots__ = ("is_temporary", "message", "remedies")

    def __init__(
        self,
        message: str = "",
        remedies: "tuple[Remedy, ...]" = (),
        *,
        is_temporary: bool = False,
    ) -> None:
        self.message, self.remedies, self.is_temporary = message, remedies, is_temporary

    @classmethod
    def of(cls, error: YbsError) -> Self:
        """Return the failure of an error."""
        is_temporary = isinstance(error, ModelError) and error.temporary
        return cls(str(error), error.remedies, is_temporary=is_temporary)


NO_FAILURE = Failure()
