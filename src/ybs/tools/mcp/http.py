"""A server at an address: streamable HTTP by the SDK, within limits, with the person's login where it wants one."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata

from ybs.config.addresses import is_loopback
from ybs.config.host import Host
from ybs.config.network import Network
from ybs.core.errors import ToolError
from ybs.tools.mcp.settings import BadServer, Server
from ybs.tools.mcp.tokens import KeptTokens

#: One answer may have so many bytes, and one event of a stream as many.
MOST_BYTES: Final = 16_000_000
_CONNECT_SECONDS = 30.0
LOGIN_NEEDED: Final = "it wants you to log in first"


class Login(Protocol):
    """Takes the person through a login in their browser."""

    @property
    def address(self) -> str:
        """Where the browser comes back to."""
        ...

    async def show(self, url: str) -> None:
        """Show the address to open."""
        ...

    async def result(self) -> Any:
        """Wait until the browser comes back, and return what it brings."""
        ...


class HttpTransport:
    """What stands for a process where a server is at an address. It is lost when nothing else says so."""

    def __init__(
        self, server: Server, host: Host, network: Network, login: Login | None = None
    ) -> None:
        check_address(server)
        self._server, self._host, self._network, self._login = server, host, network, login
        self._stack = AsyncExitStack()
        self.ended = asyncio.Event()
        self.said = self.how = ""

    async def __aenter__(self) -> Any:
        client = await asyncio.to_thread(self._client)
        await self._stack.enter_async_context(client)
        return await self._stack.enter_async_context(
            streamable_http_client(
                self._server.url, http_client=client, max_sse_event_size=MOST_BYTES
            )
        )

    async def __aexit__(self, *error: Any) -> None:
        await self._stack.__aexit__(*error)

    def _client(self) -> httpx2.AsyncClient:
        server, network = self._server, self._network
        certificates = httpx2.create_ssl_context()
        if network.ca_file:
            certificates.load_verify_locations(network.ca_file)
        is_near = is_loopback(urlsplit(server.url).hostname or "")
        return httpx2.AsyncClient(
            headers=dict(server.headers),
            auth=None if _has_key(server) else self._auth(),
            transport=_Bounded(certificates, None if is_near else self._proxy()),
            timeout=httpx2.Timeout(server.timeout_seconds, connect=_CONNECT_SECONDS, read=None),
            trust_env=False,
        )

    def _proxy(self) -> str | None:
        environ = self._host.environ
        scheme = urlsplit(self._server.url).scheme
        names = (f"{scheme}_proxy", f"{scheme.upper()}_PROXY", "all_proxy", "ALL_PROXY")
        return self._network.proxy or next((environ[n] for n in names if environ.get(n)), None)

    def _auth(self) -> OAuthClientProvider:
        server, login = self._server, self._login
        metadata = OAuthClientMetadata.model_validate(
            {
                "client_name": "ybs",
                "redirect_uris": [login.address if login else "http://127.0.0.1/callback"],
                "scope": server.oauth.scopes or None,
                "token_endpoint_auth_method": "client_secret_post"
                if server.oauth.client_secret
                else "none",
            }
        )

        async def show(url: str) -> None:
            if login is None:
                raise ToolError(LOGIN_NEEDED)
            await login.show(url)

        async def result() -> Any:
            if login is None:
                raise ToolError(LOGIN_NEEDED)
            return await login.result()

        return OAuthClientProvider(
            server.url, metadata, KeptTokens(self._host, server, login), show, result
        )


def transport(
    server: Server, host: Host, network: Network, login: Login | None = None
) -> HttpTransport:
    """Return the way to a server. Raises BadServer."""
    return HttpTransport(server, host, network, login)


def check_address(server: Server) -> None:
    """Raise BadServer where a key would go over an open line."""
    parts = urlsplit(server.url)
    if parts.scheme == "http" and not is_loopback(parts.hostname or "") and server.headers:
        raise BadServer(
            "its headers would go over http://, which everybody on the way can read; use https://"
        )


def _has_key(server: Server) -> bool:
    return any(name.lower() == "authorization" for name in server.headers)


class _Bounded(httpx2.AsyncHTTPTransport):
    """Ends an answer that is too long; a stream of events has its own limit for each."""

    def __init__(self, certificates: ssl.SSLContext, proxy: str | None) -> None:
        super().__init__(verify=certificates, proxy=proxy)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        if "text/event-stream" not in response.headers.get("content-type", ""):
            response.stream = _BoundedStream(response.stream)
        return response


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._pieces():
            yield piece

    async def _pieces(self) -> AsyncGenerator[bytes]:
        length = 0
        async for piece in self._inner:
            length += len(piece)
            if length > MOST_BYTES:
                raise httpx2.ReadError(f"it answered with more than {MOST_BYTES // 1_000_000} MB")
            yield piece

    async def aclose(self) -> None:
        """Close the answer."""
        await self._inner.aclose()
