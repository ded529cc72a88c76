"""A server at an address: streamable HTTP, or the older SSE, by the SDK, within limits, with the person's login where it wants one.

The SDK forgets between two runs when a token expires and who refreshes it, and holds a lock while a request is answered.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, suppress
from functools import partial
from secrets import token_urlsafe
from typing import Any, Final, Self
from urllib.parse import parse_qs, urlsplit

import httpx2
import msgspec
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, OAuthRegistrationError
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import BaseModel, ValidationError

from ybs.config.addresses import origin_of, proxy_for
from ybs.config.host import Host
from ybs.config.http_client import open_client
from ybs.config.key_store import keep_key, stored_key, tokens_in
from ybs.config.sections import Network
from ybs.core.errors import ToolError
from ybs.core.remedies import Remedy
from ybs.core.time_limits import time_limit
from ybs.tools.mcp.answers import (
    CONNECT_SECONDS,
    MOST_BYTES,
    PROGRAM,
    CheckedTransport,
    check_target,
)
from ybs.tools.mcp.listed import cleaned
from ybs.tools.mcp.settings import BadServer, Server, is_in_clear

LOGIN_NEEDED: Final = "it wants you to log in first"
_MOST_KEPT = 64_000
#: A time that is long past.
_EXPIRED = 1.0
#: Where the browser would come back to, if somebody logged in.
_NOWHERE = "http://127.0.0.1/callback"


class Authorization(OAuthClientProvider):
    """Adds the person's token to requests, and refreshes it. With `login` what was kept does not count: the person logs in anew."""

    def __init__(
        self,
        server: Server,
        host: Host,
        hide: Callable[[Sequence[str]], None],
        login: "BrowserLogin | None" = None,
    ) -> None:
        self._server, self._host, self._hide, self._login = server, host, hide, login
        self._address = login.address if login else _NOWHERE
        has_secret = bool(server.oauth.client_secret)
        metadata = OAuthClientMetadata.model_validate(
            {
                "client_name": "ybs",
                "redirect_uris": [self._address],
                "token_endpoint_auth_method": "client_secret_post" if has_secret else "none",
            }
        )
        super().__init__(server.url, metadata, self, self._show, self._result)

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send a request with the token; where that is not accepted, refresh it or log in. Raises ToolError."""
        context = self.context
        if not context.is_token_valid():
            await self._restore(None)
        sent = context.current_tokens if context.is_token_valid() else None
        if sent is not None or not self._can_renew():
            if sent is not None:
                request.headers["authorization"] = f"Bearer {sent.access_token}"
            response = yield request
            if not _is_refused(response):
                return
            await self._restore(sent)
            if not self._can_renew():
                raise self._needed()
            request.headers.pop("authorization", None)
        async with aclosing(self._flow(request)) as flow:
            asked = await _next(flow, None)
            while asked is not None:
                answer = yield asked
                asked = await _next(flow, answer)

    def _can_renew(self) -> bool:
        return self._login is not None or self.context.can_refresh_token()

    def _flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        return super().async_auth_flow(request)

    async def get_tokens(self) -> OAuthToken | None:
        """Return the tokens, for the SDK."""
        return self.context.current_tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep tokens with all that refreshes them."""
        context = self.context
        await self._keep(
            {
                "tokens": tokens,
                "client": context.client_info,
                "metadata": context.oauth_metadata,
                "resource": context.protected_resource_metadata,
            },
            {
                "expires": context.token_expiry_time,
                "issuer": context.auth_server_url,
                "destination": self._destination,
            },
        )

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return how ybs is known to the server, for the SDK."""
        return self.context.client_info or self._own_client()

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Take a new registration; it is kept with the tokens that belong to it."""
        self.context.client_info = client_info

    def _own_client(self) -> OAuthClientInformationFull | None:
        own = self._server.oauth
        if not own.client_id:
            return None
        said = {
            "client_id": own.client_id,
            "client_secret": own.client_secret or None,
            "redirect_uris": [self._address],
            "token_endpoint_auth_method": "client_secret_post" if own.client_secret else "none",
        }
        return OAuthClientInformationFull.model_validate(said)

    async def _restore(self, refused: OAuthToken | None) -> None:
        """Take what was kept: another ybs may have refreshed it meanwhile. Where it is what was refused, it has expired."""
        if self._login is not None:
            return
        context = self.context
        async with context.lock:  # else a refresh that is under way would be undone
            name = self._server.login
            text = await asyncio.to_thread(stored_key, self._host, name, self._server.url)
            self._hide(tokens_in(text or ""))
            self._take(text or "{}")
            kept = context.current_tokens
            if refused is not None and (kept is None or kept.access_token == refused.access_token):
                context.token_expiry_time = _EXPIRED

    def _take(self, text: str) -> None:
        kept, context = _kept_in(text), self.context
        context.current_tokens = _as(OAuthToken, kept.get("tokens"))
        context.client_info = _as(OAuthClientInformationFull, kept.get("client"))
        context.oauth_metadata = _as(OAuthMetadata, kept.get("metadata"))
        context.protected_resource_metadata = _as(ProtectedResourceMetadata, kept.get("resource"))
        expires, issuer = kept.get("expires"), kept.get("issuer")
        context.token_expiry_time = expires if isinstance(expires, float) else None
        context.auth_server_url = issuer if isinstance(issuer, str) else None

    async def _keep(
        self, models: Mapping[str, BaseModel | None], more: Mapping[str, float | str | None]
    ) -> None:
        kept: dict[str, Any] = {
            name: each.model_dump(mode="json", exclude_none=True)
            for name, each in models.items()
            if each is not None
        }
        text = msgspec.json.encode({**kept, **more}).decode()
        if len(text) > _MOST_KEPT:
            raise ToolError(f"its login takes more than {_MOST_KEPT:,} bytes")
        self._hide(tokens_in(text))
        name = self._server.login
        await asyncio.to_thread(keep_key, self._host, name, self._server.url, text)

    async def _show(self, url: str) -> None:
        if self._login is None:
            raise self._needed()
        if scopes := self._server.oauth.scopes:  # the SDK asks for what the server names
            url = str(httpx2.URL(url).copy_set_param("scope", scopes))
        metadata = self.context.oauth_metadata
        said = metadata.model_dump(mode="json", exclude_none=True) if metadata else {}
        token = self._get_token_endpoint()
        endpoints = {name: each for name, each in said.items() if name.endswith("_endpoint")}
        for each in (url, token, *endpoints.values()):
            check_target(each, self._server.url)
        await self._check_destination()
        await self._login.show(url, self._place(url, token, endpoints.get("registration_endpoint")))

    def _place(self, url: str, token: str, registration: str | None) -> str:
        """Say where the person logs in, and which other hosts get something of the login."""
        own = self._server.oauth
        with_secret = ", with your client secret," if own.client_secret else ""
        said = [(url, ""), (token, f"the answer{with_secret} goes to ")]
        if not own.client_id:  # where it names no endpoint the SDK registers at the server itself
            said.append((registration or self._server.url, "ybs was registered at "))
        hosts: dict[str, str] = {}
        for address, words in said:
            host = cleaned(origin_of(address).partition("://")[2], 300)  # as long as hosts may be
            hosts.setdefault(host, f"{words}{host}")
        return "; ".join(hosts.values())

    @property
    def _destination(self) -> str:
        """What a client secret is for: the issuer, and the address that gets the secret."""
        metadata = self.context.oauth_metadata
        return f"{metadata.issuer if metadata else 'no issuer'}, {self._get_token_endpoint()}"

    async def _check_destination(self) -> None:
        """Raise ToolError where a client secret would go elsewhere than at the login that is kept."""
        server = self._server
        text = await asyncio.to_thread(stored_key, self._host, server.login, server.url)
        before = _kept_in(text or "{}").get("destination")
        if server.oauth.client_secret and before not in (None, self._destination):
            was, now = cleaned(str(before), 300), cleaned(self._destination, 300)
            raise ToolError(
                f"your client secret went to {was} before, and would now go to {now}; if that is right, "
                "forget the login that is kept before you log in again",
                remedies=[Remedy("log_out", server.name)],
            )

    async def _result(self) -> Any:
        if self._login is None:
            raise self._needed()
        return await self._login.result()

    def _needed(self) -> ToolError:
        return ToolError(LOGIN_NEEDED, remedies=[Remedy("log_in", self._server.name)])


def _is_refused(response: httpx2.Response) -> bool:
    """Return whether the token is not accepted, or not for this."""
    said = response.headers.get("www-authenticate", "")
    return response.status_code == 401 or (
        response.status_code == 403 and "insufficient_scope" in said
    )


def _kept_in(text: str) -> dict[str, Any]:
    with suppress(msgspec.DecodeError):
        return msgspec.json.decode(text, type=dict[str, Any])
    return {}


def _as(kind: Any, data: Any) -> Any:
    try:
        return None if data is None else kind.model_validate(data)
    except ValidationError:
        return None


async def _next(
    flow: AsyncGenerator[httpx2.Request, httpx2.Response], answer: httpx2.Response | None
) -> httpx2.Request | None:
    """Return what is to be sent next, None at the end. Raises ToolError."""
    try:
        return await (anext(flow) if answer is None else flow.asend(answer))
    except StopAsyncIteration:
        return None
    except OAuthFlowError as error:
        raise ToolError(f"the login failed: {_words_of(error)}") from error


def _words_of(error: OAuthFlowError) -> str:
    said = str(error).rstrip(".")
    if isinstance(error, OAuthRegistrationError):
        said += (
            "; where programs cannot register themselves, the settings of the server need oauth.client_id, "
            "or a key in its headers"
        )
    if said.startswith("State parameter mismatch"):
        return "the browser came back from another login than the one that was begun"
    return said


class HttpTransport:
    """What stands for a process where a server is at an address; `ended` is set when it cannot be reached or forgot the session."""

    def __init__(
        self,
        server: Server,
        host: Host,
        network: Network,
        hide: Callable[[Sequence[str]], None],
        login: "BrowserLogin | None" = None,
    ) -> None:
        self._server, self._host, self._network = server, host, network
        self._hide, self._login = hide, login
        self._stack = AsyncExitStack()
        self.ended = asyncio.Event()
        self.said = self.how = ""
        self._read: Any = None

    async def __aenter__(self) -> Any:
        client = await asyncio.to_thread(self._client)
        if self._server.is_sse:
            from mcp.client.sse import sse_client  # few servers are as old

            streams = await self._stack.enter_async_context(
                sse_client(self._server.url, httpx_client_factory=partial(_given, client))
            )
            self._read = streams[0]
            return streams
        await self._stack.enter_async_context(client)
        return await self._stack.enter_async_context(
            streamable_http_client(
                self._server.url, http_client=client, max_sse_event_size=MOST_BYTES
            )
        )

    async def __aexit__(self, *error: Any) -> None:
        await self._stack.__aexit__(*error)

    def _lose(self, why: str) -> None:
        self.how = self.how or why
        self.ended.set()
        if self._read is not None:  # whoever waits for an answer on it is told that none will come
            self._read.close()

    def _client(self) -> httpx2.AsyncClient:
        """Return the client. Raises BadServer."""
        server, network = self._server, self._network
        try:
            return open_client(
                proxy=proxy_for(server.url, self._host.environ, network.proxy),
                ca_file=network.ca_file,
                around=lambda wire: CheckedTransport(
                    wire,
                    self._lose,
                    address=server.url,
                    seconds=server.timeout_seconds,
                    is_sse=server.is_sse,
                ),
                headers={"user-agent": PROGRAM, **server.headers},
                auth=self._auth(),
                timeout=httpx2.Timeout(server.timeout_seconds, connect=CONNECT_SECONDS, read=None),
            )
        except OSError as error:  # of the file, or of what stands in it
            why = error.strerror or error
            raise BadServer(f"network.ca_file, {network.ca_file}, cannot be used: {why}") from error
        except (ValueError, ImportError, httpx2.InvalidURL) as error:
            raise BadServer("the address of the proxy cannot be used") from error

    def _auth(self) -> Authorization | None:
        """Return what logs in; nothing where there is a key, or where everybody on the way could read the login."""
        if self._server.has_key or is_in_clear(self._server.url):
            return None
        return Authorization(self._server, self._host, self._hide, self._login)


def _given(client: httpx2.AsyncClient, *_: Any, **__: Any) -> httpx2.AsyncClient:
    return client


_PATH = "/callback"
_MOST_LINE = 16_000
#: How long the person may take.
LOGIN_SECONDS: Final = 300.0
_HEAD = "HTTP/1.1 {status}\r\n{more}content-type: text/html; charset=utf-8\r\nconnection: close\r\n\r\n{page}"
_PAGE = "<!doctype html><title>ybs</title><p>{words} You can close this page."


class BrowserLogin:
    """Listens on loopback as long as it is entered. `tell` shows the person what to open, and the hosts that get something of the login.

    What is shown is an address on loopback, which leads to the one of the login: that is too long for a line of a terminal.
    """

    def __init__(self, tell: Callable[[str, str], None], port: int = 0) -> None:
        self._tell, self._port = tell, port
        self._start, self._target = f"/{token_urlsafe(6)}", ""
        self._server: asyncio.Server | None = None
        self._came: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()
        #: Whether there was something to open.
        self.has_shown = False

    async def __aenter__(self) -> Self:
        try:
            self._server = await asyncio.start_server(
                self._answer, "127.0.0.1", self._port, limit=_MOST_LINE
            )
        except OSError as error:
            raise ToolError(
                f"The port {self._port}, to which your browser would come back, cannot be used: {error.strerror}."
            ) from error
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    @property
    def address(self) -> str:
        """Where the browser comes back to."""
        return f"http://127.0.0.1:{self._port}{_PATH}"

    async def show(self, url: str, place: str) -> None:
        """Show what to open, and who gets something of the login."""
        self.has_shown, self._target = True, url
        self._tell(f"http://127.0.0.1:{self._port}{self._start}", place)

    async def result(self) -> Any:
        """Wait for the browser. Raises ToolError where the login was refused or took too long."""
        try:
            async with time_limit(LOGIN_SECONDS):
                came = await self._came
        except TimeoutError:
            raise ToolError(f"nobody logged in within {LOGIN_SECONDS:g} s") from None
        if "code" not in came:
            why = came.get("error_description") or came.get("error", "no reason was given")
            raise ToolError(f"the login was refused: {cleaned(why, 300).rstrip('.')}")
        return AuthorizationCodeResult(
            code=came["code"], state=came.get("state"), iss=came.get("iss")
        )

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with time_limit(10):
                line = (await reader.readline()).decode("latin-1").split()
            parts = urlsplit(line[1] if len(line) > 1 else "")
            given = {name: values[0] for name, values in parse_qs(parts.query).items()}
            is_it = parts.path == _PATH and ("code" in given or "error" in given)
            writer.write(self._response(parts.path, given if is_it else {}).encode())
            await writer.drain()
            if is_it and not self._came.done():
                self._came.set_result(given)
        except (TimeoutError, ValueError, ConnectionError):
            pass  # somebody else looked at the port
        finally:
            writer.close()

    def _response(self, path: str, given: dict[str, str]) -> str:
        if self._target and path == self._start:
            return _HEAD.format(status="302 Found", more=f"location: {self._target}\r\n", page="")
        if not given:
            return _HEAD.format(status="404 Not Found", more="", page="")
        words = "ybs goes on." if "code" in given else "The login was refused."
        return _HEAD.format(status="200 OK", more="", page=_PAGE.format(words=words))
