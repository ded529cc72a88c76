"""Checks on every request before any handler, and the security headers of every answer."""

import asyncio
from collections.abc import Sequence
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

from msgspec import Struct
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from ybs.config.addresses import is_loopback
from ybs.core.errors import YbsError
from ybs.core.time_limits import time_limit, time_limit_at
from ybs.frontends.web.access import WebLogins

#: The header that names the token of a login.
TOKEN_HEADER: Final = "x-ybs-token"  # noqa: S105 - the name of a header
#: What is said to whoever may not come in. The page then shows how to log in.
NOT_LOGGED_IN: Final = "not logged in"
#: Bodies of more bytes are refused: a message with pictures is the largest, and who has not logged in says little.
MOST_BODY, MOST_UNKNOWN_BODY = 40_000_000, 10_000
#: So long a client may take for the head of a request, and for its body where it has logged in and where not.
HEAD_SECONDS, BODY_SECONDS, UNKNOWN_BODY_SECONDS = 10.0, 120.0, 10.0
#: A client that reads nothing for so long is dropped.
WRITE_SECONDS: Final = 30.0
#: So many connections are open at once; more are closed at once.
MOST_CONNECTIONS: Final = 512
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; manifest-src 'self'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types ybs"
)
#: The page has no service worker: one that a browser asks for was left by a program that had the port, and ends with this.
_NO_WORKER: Final = "oninstall = () => skipWaiting(); onactivate = () => registration.unregister();"
_SAID: Final = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
    "x-robots-tag": "noindex",
}


class PageAddress(Struct, frozen=True, kw_only=True):
    """Where the page is: its origins as browsers name them. `proxy`: a named proxy stands before it and says who asks."""

    origins: tuple[str, ...]
    is_secure: bool = False
    has_proxy: bool = False

    def origin_of(self, headers: Headers) -> str:
        """Return the origin that a request names in `Host`; "" for what is not the page's."""
        host = headers.get("host", "").lower()
        return next((each for each in self.origins if urlsplit(each).netloc == host), "")

    @property
    def cookie(self) -> str:
        """The cookie's name: with a port, as those of all servers of a machine lie together."""
        prefix = "__Host-" if self.is_secure else ""
        return f"{prefix}ybs-{urlsplit(self.origins[0]).port or 443}"


def is_for_this_machine(host: str) -> bool:
    """Return whether a server that listens at an address is for this machine alone: at 0.0.0.0, which leads here, it is for all."""
    return is_loopback(host.strip("[]")) and host != "0.0.0.0"  # noqa: S104 - compared only


class WebGate:
    """ASGI middleware: the right host, the same origin, a login for all below `/api/`, and the security headers."""

    def __init__(self, app: ASGIApp, place: PageAddress, access: WebLogins) -> None:
        self._app, self._place, self._access = app, place, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or refuse it."""
        if scope["type"] != "http":  # there are no websockets
            return
        answering = _Answering(send, self._place)
        refusal = self._refusal(scope)
        if refusal is None and Headers(scope=scope).get("service-worker"):
            await Response(_NO_WORKER, media_type="text/javascript")(scope, receive, answering)
            return
        if refusal is not None:
            await PlainTextResponse(refusal[1], refusal[0])(scope, receive, answering)
            return
        is_known = "login" in scope.get("state", {})
        most = MOST_BODY if is_known else MOST_UNKNOWN_BODY
        seconds = BODY_SECONDS if is_known else UNKNOWN_BODY_SECONDS
        await self._app(scope, _bounded(receive, most, seconds), answering)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Return the code and the words of a refusal; None for a request that may pass."""
        headers, path = Headers(scope=scope), str(scope["path"])
        if not self._place.origin_of(headers):
            return 421, "This is not the address of the page."
        is_reading = scope["method"] in ("GET", "HEAD")
        if not is_reading and headers.get("origin") not in self._place.origins:
            return 403, "Another page asked for this."
        site = headers.get("sec-fetch-site", "same-origin")
        if path.startswith("/api/"):
            if site != "same-origin" or headers.get("origin", "") not in ("", *self._place.origins):
                return 403, "Another page asked for this."
            if path in ("/api/enter", "/api/proof"):
                return None
            return self._entered(scope)
        return None

    def _entered(self, scope: Scope) -> tuple[int, str] | None:
        request = Request(scope)
        cookie = request.cookies.get(self._place.cookie, "")
        origin = self._place.origin_of(request.headers)
        login = self._access.find(cookie, request.headers.get(TOKEN_HEADER, ""), origin)
        if login is None:
            return 401, NOT_LOGGED_IN
        scope.setdefault("state", {})["login"] = login
        return None


class TooMuchSent(YbsError):
    """A client sends more, or more slowly, than is taken."""


def _bounded(receive: Receive, most: int, seconds: float) -> Receive:
    """Return what receives a body of so many bytes within so many seconds. Raises TooMuchSent."""
    taken, is_whole, until = 0, False, asyncio.get_running_loop().time() + seconds

    async def bounded() -> Message:
        nonlocal taken, is_whole
        if is_whole:  # what comes now is the end of the connection
            return await receive()
        try:
            async with time_limit_at(until):
                message = await receive()
        except TimeoutError as error:
            raise TooMuchSent("The rest of the request did not come.") from error
        taken += len(message.get("body", b""))
        is_whole = not message.get("more_body", False)
        if taken > most:
            raise TooMuchSent(f"A request has at most {most:,} bytes.")
        return message

    return bounded


class _Answering:
    """Sends an answer with the security headers; who does not read it is let go."""

    def __init__(self, send: Send, place: PageAddress) -> None:
        self._send, self._place = send, place

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _SAID.items():
                headers[name] = value
            headers.setdefault("cache-control", "no-cache" if "etag" in headers else "no-store")
            if self._place.is_secure:
                headers["strict-transport-security"] = "max-age=31536000"
        async with time_limit(WRITE_SECONDS):
            await self._send(message)


class BoundedProtocol(H11Protocol):
    """A connection of uvicorn's, with a bound on how many there are and on the time for the head of a request."""

    most: ClassVar[int] = MOST_CONNECTIONS
    _impatience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Take a connection, or close it where there are too many."""
        if len(self.connections) >= self.most:
            transport.abort()
            return
        super().connection_made(transport)
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        """Take bytes; once they are the head of a request, it has the time that it needs."""
        super().data_received(data)
        if not self._is_idle:
            self._be_patient()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        if self._is_idle and not self.transport.is_closing():
            self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._be_patient()
        if self in self.connections:
            super().connection_lost(exc)

    @property
    def _is_idle(self) -> bool:
        cycle: Any = self.cycle  # None before the first request
        return cycle is None or cycle.response_complete

    def _wait_for_head(self) -> None:
        self._be_patient()
        self._impatience = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _be_patient(self) -> None:
        if self._impatience is not None:
            self._impatience.cancel()
            self._impatience = None


def address_of(scope: Scope, *, has_proxy: bool) -> str:
    """Return who asks: as the named proxy says, where one stands before the page and on this machine."""
    client: Sequence[Any] = scope.get("client") or ("", 0)
    peer = str(client[0])
    if has_proxy:
        said = Headers(scope=scope).get("x-forwarded-for", "")
        if nearest := said.rpartition(",")[2].strip():
            return nearest[:64]
    return peer
