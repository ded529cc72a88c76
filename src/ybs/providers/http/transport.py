"""The interface of a connection for the HTTP client: a request goes out; a status, headers and chunks come in.

There are two: `plain_http` for http:// endpoints, and `httpx_transport` for TLS and proxies. The first
exists because importing and warming httpx2 costs more time than all else of a first request together
(`bench/` prints the ratio), and servers on this machine speak plain HTTP.
"""

from collections.abc import AsyncGenerator, Iterator, Mapping
from errno import EHOSTUNREACH, ENETUNREACH
from pathlib import Path
from socket import gaierror
from ssl import SSLError
from typing import Protocol, cast

from msgspec import Struct


class Unreachable(Exception):
    """No connection came about; nothing was sent. The text is a reason in a few words."""


class CutOff(Exception):
    """The connection broke, or what came is not HTTP. The text is a reason in a few words."""


class Route(Struct, frozen=True, kw_only=True):
    """How servers beyond this machine are reached: `proxy` in place of those of the environment, `ca_file` beside the system's certificates.

    A server that listens at a `unix_socket` is reached there.
    """

    proxy: str | None = None
    ca_file: str | None = None
    unix_socket: Path | None = None

    def __repr__(self) -> str:
        # A proxy's password must not reach a log by way of a representation.
        return f"Route(ca_file={self.ca_file!r})"


class HttpRequest(Struct, frozen=True, kw_only=True):
    """One HTTP request. `url` is absolute; header names are in lower case."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes = b""


class Response(Protocol):
    """An answer whose body has not been read yet."""

    status: int
    headers: Mapping[str, str]

    def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body as it comes. Raises CutOff."""
        ...

    async def aclose(self) -> None:
        """Let go of the connection; an unread body stops the server's work."""
        ...


class Transport(Protocol):
    """Sends calls to one endpoint and keeps its connections, for all sessions that reach it in the same way. It keeps nothing of a call."""

    async def warm_up(self) -> None:
        """Do ahead what the first call needs. Failures are left for the call to report."""
        ...

    async def send(self, call: HttpRequest) -> Response:
        """Send a call and return when the headers of the answer are there.

        Raises Unreachable or CutOff.
        """
        ...

    async def aclose(self) -> None:
        """Close all connections."""
        ...


def reason_of(error: BaseException) -> str:
    """Return in a few words why no connection came about, looking through causes and groups."""
    for each in _causes(error):
        if isinstance(each, ConnectionRefusedError):
            return "connection refused"
        if isinstance(each, gaierror):
            return "no such host name"
        if isinstance(each, SSLError):
            said = getattr(each, "verify_message", "") or getattr(each, "reason", "") or str(each)
            return f"TLS failed: {said.rstrip('.')}"
        if isinstance(each, TimeoutError):
            return "connecting took too long"
        if isinstance(each, OSError) and each.errno in {EHOSTUNREACH, ENETUNREACH}:
            return "there is no network route to it"
    return " ".join(str(error).split()) or type(error).__name__


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        if isinstance(error, BaseExceptionGroup):
            for each in cast("BaseExceptionGroup[BaseException]", error).exceptions:
                yield from _causes(each)
        error = error.__cause__ or error.__context__
