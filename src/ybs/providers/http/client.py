"""The HTTP client: one endpoint, its connections, timeouts, and errors in ybs's own words.

It sends one call and yields the frames of the answer. Sending again after a failure is RemoteModel's part:
only it knows whether anything was shown.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager
from functools import cached_property
from math import inf
from os import environ
from typing import Any, Final
from urllib.parse import quote, urlsplit

import msgspec
from msgspec import Struct

from ybs.config.addresses import (
    is_local,
    is_loopback,
    login_of,
    parts_of,
    proxy_for,
    shown_address,
)
from ybs.core.errors import ConfigError, ModelError
from ybs.core.leases import Lease, Leases
from ybs.core.time_limits import time_limit
from ybs.providers.http import failures
from ybs.providers.http.failures import Site
from ybs.providers.http.plain_http import PlainTransport
from ybs.providers.http.transport import (
    CutOff,
    HttpRequest,
    Response,
    Route,
    Transport,
    Unreachable,
)
from ybs.providers.wire.adapter import Frame, Framing
from ybs.providers.wire.framing import BrokenFrame, FrameReader
from ybs.providers.wire.loose_json import as_list, as_object

#: So long, in seconds, a server may keep an answer open with signs of life alone: comments, pings, empty frames.
LONGEST_SILENCE: Final = 600.0


class Clock:
    """How long one answer may be waited for. What says nothing (comments, empty frames) keeps it open for so long only.

    `first` and `later` are the seconds that the first chunk and each later one may take.
    `linger` says how much longer once the answer is complete; `progress` changes with each piece of the answer.
    """

    def __init__(
        self,
        first: float,
        later: float,
        linger: Callable[[], float | None],
        progress: Callable[[], object] | None,
    ) -> None:
        self._first, self._later = first, later
        self._linger, self._progress = linger, progress
        self._longest = max(LONGEST_SILENCE, first, later)
        self._now = asyncio.get_running_loop().time
        self._said_until = self._now() + self._longest
        self._ends_at = inf
        self._last: object = None
        self.has_begun = False

    @property
    def seconds(self) -> float:
        """How long to wait for the next chunk."""
        if (rest := self._linger()) is not None:
            self._ends_at = min(self._ends_at, self._now() + rest)
            return max(self._ends_at - self._now(), 0.0)
        allowed = self._later if self.has_begun else self._first
        return max(min(allowed, self._said_until - self._now()), 0.0)

    @property
    def silence(self) -> float:
        """How long nothing was said where that was too long."""
        allowed = self._later if self.has_begun else self._first
        return allowed if self._now() < self._said_until else self._longest

    def begin(self) -> None:
        """Note that the answer has begun."""
        self.has_begun = True

    def frame_came(self) -> None:
        """Count a frame that says something."""
        said = object() if self._progress is None else self._progress()
        if said != self._last:
            self._last, self._said_until = said, self._now() + self._longest


class Begun:
    """An awaitable that goes on with one that has begun, and waits for `first`."""

    def __init__(self, step: Generator[Any, Any, bytes | None], first: Any) -> None:
        self._step, self._first = step, first

    def __await__(self) -> Generator[Any, Any, bytes | None]:
        waiting = self._first
        try:
            while True:
                try:
                    sent = yield waiting
                except BaseException as error:  # the step that waits gets it
                    waiting = self._step.throw(error)
                else:
                    waiting = self._step.send(sent)
        except StopIteration as done:
            return done.value


_ERROR_BODY_BYTES: Final = 65_536
_SHORT_ANSWER_BYTES: Final = 16 * 1024 * 1024
#: How long is waited for what a server has at hand: error bodies, lists of models.
_SHORT_SECONDS: Final = 10.0
#: They say how a call is framed.
_OWN_HEADERS: Final = (
    *("accept", "accept-encoding", "connection", "content-length", "content-type", "host"),
    "transfer-encoding",
)
_ACCEPTED: Final[dict[Framing, str]] = {
    "sse": "text/event-stream, application/json",
    "ndjson": "application/x-ndjson, application/json",
}


class Patience(Struct, frozen=True, kw_only=True):
    """How long is waited, in seconds: for a connection, for the first chunk, and for each later one."""

    connect: float = 10.0
    first: float = 120.0
    later: float = 120.0

    @classmethod
    def of(cls, endpoint: str, timeout_seconds: float) -> "Patience":
        """Fit it to the endpoint: a local server is near, but may read a long prompt for minutes."""
        host = host_of(endpoint)
        return cls(
            connect=5.0 if is_loopback(host) else 10.0,
            first=max(600.0, timeout_seconds) if is_local(host) else timeout_seconds,
            later=timeout_seconds,
        )


def host_of(endpoint: str) -> str:
    """Return the host name of an address. Raises ConfigError for what is not an http address."""
    try:
        return parts_of(endpoint, is_own=True).hostname or ""
    except ValueError as error:
        raise ConfigError(
            f"{shown_address(endpoint)!r} is not a valid address: it {error}. Write it like http://127.0.0.1:8080/v1"
        ) from error


def unnamed_place(provider: str, endpoint: str) -> str:
    """Return host and port of a server of which no more is known than that it speaks as OpenAI does; else nothing."""
    is_theirs = provider != "openai" or host_of(endpoint) == "api.openai.com"
    return "" if is_theirs else urlsplit(endpoint).netloc.rpartition("@")[2]


def checked_headers(headers: Mapping[str, str], provider: str) -> dict[str, str]:
    """Return a provider's headers in lower case. Raises ConfigError for one that is not valid."""
    for name, value in headers.items():
        is_name = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
        if not is_name or not (value.isascii() and value.isprintable()):
            raise ConfigError(f"providers.{provider}.headers: {name!r} is not a valid header.")
        if name.lower() in _OWN_HEADERS:
            raise ConfigError(f"providers.{provider}.headers: {name!r} is set by ybs itself.")
    return {name.lower(): value for name, value in headers.items()}


def port_of(endpoint: str) -> int:
    """Return the port of an address that `host_of` accepts."""
    parts = urlsplit(endpoint)
    return parts.port or (443 if parts.scheme == "https" else 80)


def open_transport(
    endpoint: str, *, connect_seconds: float, route: Route | None = None
) -> Transport:
    """Choose the transport for an endpoint."""
    route = route or Route()
    if _needs_httpx(endpoint, route):
        from ybs.providers.http.httpx_transport import HttpxTransport  # only for TLS and proxies

        proxy = proxy_for(endpoint, environ, route.proxy)
        return HttpxTransport(connect_seconds=connect_seconds, proxy=proxy, ca_file=route.ca_file)
    return PlainTransport(endpoint, connect_seconds=connect_seconds, unix_socket=route.unix_socket)


#: What a path and a query may hold as it is, their own signs and what is quoted already.
_UNQUOTED: Final = "/?%:@!$&'(),;=~*+"


@asynccontextmanager
async def get(
    url: str, headers: Mapping[str, str], *, seconds: float, route: Route | None = None
) -> AsyncGenerator[Response]:
    """GET an address, with the login in it, within `seconds` until its answer begins; redirects are the caller's. Raises Unreachable and CutOff."""
    parts = urlsplit(url)
    path, query = (quote(each, safe=_UNQUOTED) for each in (parts.path, parts.query))
    place = parts.netloc.rpartition("@")[2]
    bare = parts._replace(netloc=place, path=path, query=query).geturl()
    sent = {"user-agent": "ybs", "accept-encoding": "identity"}
    sent |= {name.lower(): value for name, value in headers.items()}
    if login := login_of(url):
        sent["authorization"] = login
    transport = open_transport(bare, connect_seconds=seconds, route=route)
    try:
        try:
            async with time_limit(seconds):
                response = await transport.send(HttpRequest(method="GET", url=bare, headers=sent))
        except TimeoutError as error:
            raise CutOff(f"no answer within {seconds:g} s") from error
        try:
            yield response
        finally:
            await response.aclose()
    finally:
        await transport.aclose()


async def timed_chunks(response: Response, seconds: float) -> AsyncGenerator[bytes]:
    """Yield the body as it comes. Raises CutOff, also where nothing comes for `seconds`."""
    async with aclosing(response.chunks()) as chunks:
        while True:
            try:
                async with time_limit(seconds):
                    chunk = await anext(chunks, None)
            except TimeoutError as error:
                raise CutOff(f"nothing came for {seconds:g} s") from error
            if chunk is None:
                return
            yield chunk


def _needs_httpx(endpoint: str, route: Route) -> bool:
    """Return whether the endpoint is reached by TLS or through a proxy."""
    if route.unix_socket is not None:
        return False
    is_tls = urlsplit(endpoint).scheme == "https"
    return is_tls or proxy_for(endpoint, environ, route.proxy) is not None


def never_done() -> float | None:
    """Say that the answer is not complete, see `HttpClient.stream`."""
    return None


class HttpClient:
    """Sends calls to one endpoint. `secret` is the key: it never stands in a message.

    `connections` are its own, or shared with other clients that take theirs from there and have the same address and route.
    """

    def __init__(
        self,
        site: Site,
        *,
        patience: Patience | None = None,
        headers: Mapping[str, str] | None = None,
        secret: str | None = None,
        route: Route | None = None,
        connections: Leases | Transport | None = None,
    ) -> None:
        self.site = site
        self._patience = patience or Patience.of(site.endpoint, 120.0)
        first, later = self._patience.first, self._patience.later
        self._short = Patience(first=min(first, _SHORT_SECONDS), later=min(later, _SHORT_SECONDS))
        self._headers = {"user-agent": "ybs", "accept-encoding": "identity", **(headers or {})}
        if login := login_of(site.endpoint):
            self._headers["authorization"] = login
        self._secret = secret
        self._unsaid = failures.secrets_of(site, secret)
        self._route = route or Route()
        self._connections = Leases() if connections is None else connections
        self._lease: Lease[Transport] | None = None

    @cached_property
    def account(self) -> str:
        """Return a mark of this address and key, which tells neither: what one account sealed, another cannot open."""
        from hashlib import sha256  # few ask

        return sha256(f"{self.site.endpoint}\n{self._secret or ''}".encode()).hexdigest()[:16]

    @property
    def _wire(self) -> Transport:
        if not isinstance(self._connections, Leases):
            return self._connections
        if self._lease is not None and self._lease.is_stale:
            self._lease.release()
            self._lease = None
        if self._lease is None:
            endpoint, seconds, route = self.site.endpoint, self._patience.connect, self._route
            self._lease = self._connections.take(
                (HttpClient, urlsplit(endpoint)[:2], seconds, route),
                lambda: open_transport(endpoint, connect_seconds=seconds, route=route),
            )
        return self._lease.thing

    async def warm_up(self) -> None:
        """Do ahead what the first call needs: imports, certificates, a connection. Never fails."""
        await self._wire.warm_up()

    async def aclose(self) -> None:
        """Close all connections that no other client uses."""
        if not isinstance(self._connections, Leases):
            await self._connections.aclose()
        lease, self._lease = self._lease, None
        if lease is not None and lease.release():
            await lease.thing.aclose()

    async def batches(
        self,
        path: str,
        body: Any,
        *,
        framing: Framing = "sse",
        linger: Callable[[], float | None] = never_done,
        progress: Callable[[], object] | None = None,
    ) -> AsyncGenerator[list[Frame], None]:
        """POST a body and yield the frames of the answer, whether it is streamed or whole: those of one chunk together.

        `linger` says, once the answer is complete, for how many seconds more may be waited for; what goes
        wrong then is no longer an error. `progress` gives something that changes with each frame that says something;
        without it every frame does. Raises ModelError. Close the generator to stop the server's work.
        """
        call = self._call("POST", path, body, accept=_ACCEPTED[framing])
        response = await self._send(call, patience=self._patience)
        try:
            site = failures.answered(self.site, response.headers, self._unsaid)
            clock = Clock(self._patience.first, self._patience.later, linger, progress)
            async with aclosing(self._frames(response, site, linger, clock)) as batches:
                async for batch in batches:
                    yield batch
        finally:
            await response.aclose()

    async def stream(
        self,
        path: str,
        body: Any,
        *,
        framing: Framing = "sse",
        linger: Callable[[], float | None] = never_done,
    ) -> AsyncGenerator[Frame, None]:
        """Yield the frames of `batches` one by one."""
        async with aclosing(self.batches(path, body, framing=framing, linger=linger)) as batches:
            async for batch in batches:
                for frame in batch:
                    yield frame

    async def fetch(
        self, method: str, path: str, body: Any = None, *, bare: str = ""
    ) -> dict[str, Any]:
        """Send a short call and return the JSON object of its answer; a bare list, as Together's, is the field `bare`. Raises ModelError."""
        call = self._call(method, path, body, accept="application/json")
        response = await self._send(call, patience=self._short)
        try:
            data = await self._read(response, at_most=_SHORT_ANSWER_BYTES)
        finally:
            await response.aclose()
        try:
            value = msgspec.json.decode(data)
        except (ValueError, RecursionError) as error:
            raise failures.senseless(self.site, data, secret=self._unsaid) from error
        rows = [row for row in as_list(value) if as_object(row)]
        return {bare: rows} if bare and rows else as_object(value)

    def _call(self, method: str, path: str, body: Any, *, accept: str) -> HttpRequest:
        headers = {**self._headers, "accept": accept}
        if body is not None:
            headers["content-type"] = "application/json"
        url, query = path if "://" in path else self.site.endpoint + path, self.site.query
        if query:
            url += f"{'&' if '?' in url else '?'}{query}"
        parts = urlsplit(url)
        url = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        return HttpRequest(method=method, url=url, headers=headers, body=encode_json(body))

    async def _send(self, call: HttpRequest, *, patience: Patience) -> Response:
        """Send a call and return its answer if the status is good. Raises ModelError."""
        try:
            async with time_limit(patience.first):
                response = await self._wire.send(call)
        except Unreachable as error:
            raise failures.unreachable(self.site, str(error)) from error
        except CutOff as error:
            raise failures.broke_off(self.site, str(error)) from error
        except TimeoutError as error:
            raise failures.stalled(self.site, patience.first, has_begun=False) from error
        if 200 <= response.status < 300:
            return response
        try:
            body = await self._read(response, at_most=_ERROR_BODY_BYTES)
        except ModelError:
            body = b""
        else:
            if len(body) == _ERROR_BODY_BYTES:
                body += " …".encode()
        finally:
            await response.aclose()
        raise failures.of_status(
            self.site, response.status, response.headers, body, secret=self._unsaid
        )

    async def _read(self, response: Response, *, at_most: int) -> bytes:
        data = bytearray()
        clock = Clock(self._short.first, self._short.later, never_done, None)
        site = failures.answered(self.site, response.headers, self._unsaid)
        async with aclosing(self._chunks(response, site, never_done, clock)) as chunks:
            async for chunk in chunks:
                data += chunk
                if len(data) > at_most:
                    break
        return bytes(data[:at_most])

    async def _frames(
        self, response: Response, site: Site, linger: Callable[[], float | None], clock: Clock
    ) -> AsyncGenerator[list[Frame], None]:
        reader = FrameReader()
        try:
            async with aclosing(self._chunks(response, site, linger, clock)) as chunks:
                async for chunk in chunks:
                    for batch in self._checked(reader.feed(chunk), site):
                        yield batch
                        clock.frame_came()
            for batch in self._checked(reader.close(), site):
                yield batch
        except BrokenFrame as error:
            if linger() is None:
                raise failures.senseless(site, error.sample, secret=self._unsaid) from error

    def _checked(self, frames: Iterator[Frame], site: Site) -> Iterator[list[Frame]]:
        """Yield the frames together, and raise what one reports, or what breaks off, behind those before it."""
        batch: list[Frame] = []
        try:
            for frame in frames:
                if "error" in frame or "type" in frame or "object" in frame:
                    error = failures.of_frame(site, frame, secret=self._unsaid)
                    if error is not None:
                        raise error
                batch.append(frame)
        except (BrokenFrame, ModelError):
            if batch:
                yield batch
            raise
        if batch:
            yield batch

    async def _chunks(
        self, response: Response, site: Site, linger: Callable[[], float | None], clock: Clock
    ) -> AsyncGenerator[bytes, None]:
        """Yield the body, with a time limit on every chunk, and on all that say nothing. Raises ProviderDown."""
        async with aclosing(response.chunks()) as chunks:
            while True:
                step = anext(chunks, None).__await__()
                try:
                    try:
                        first = next(step)  # nothing is timed where the chunk is at hand
                    except StopIteration as done:
                        chunk = done.value
                    else:
                        async with time_limit(clock.seconds):
                            chunk = await Begun(step, first)
                except (TimeoutError, CutOff) as error:
                    if linger() is not None:
                        return
                    if isinstance(error, CutOff):
                        raise failures.broke_off(site, str(error)) from error
                    begun = clock.has_begun
                    raise failures.stalled(site, clock.silence, has_begun=begun) from error
                if chunk is None:
                    return
                yield chunk
                clock.begin()


def encode_json(body: Any) -> bytes:
    """Encode plain data; nothing is the empty body."""
    if body is None:
        return b""
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError:  # half a surrogate, from a broken file name or terminal
        return msgspec.json.encode(_without_surrogates(body))


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, dict):
        return {key: _without_surrogates(each) for key, each in as_object(value).items()}
    if isinstance(value, list):
        return [_without_surrogates(each) for each in value]  # pyright: ignore[reportUnknownVariableType] - JSON
    return value
