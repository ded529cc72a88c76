"""A server at an address: streamable HTTP, or the older SSE, by the SDK, within limits, with the person's login where it wants one."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from ipaddress import ip_address, ip_network
from typing import Any
from urllib.parse import urlsplit

import httpx2
from mcp.client.streamable_http import streamable_http_client

from ybs.config.addresses import is_loopback
from ybs.config.host import Host
from ybs.config.network import Network
from ybs.tools.mcp.answers import CONNECT_SECONDS, MOST_BYTES, PROGRAM, CheckedTransport
from ybs.tools.mcp.login import Authorization, Login
from ybs.tools.mcp.settings import BadServer, Server


class HttpTransport:
    """What stands for a process where a server is at an address; `ended` is set when it cannot be reached or forgot the session."""

    def __init__(
        self,
        server: Server,
        host: Host,
        network: Network,
        hide: Callable[[Sequence[str]], None],
        login: Login | None = None,
    ) -> None:
        check_address(server)
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
            certificates = httpx2.create_ssl_context()
            if network.ca_file:
                certificates.load_verify_locations(network.ca_file)
        except OSError as error:  # of the file, or of what stands in it
            why = error.strerror or error
            raise BadServer(f"network.ca_file, {network.ca_file}, cannot be used: {why}") from error
        proxy = proxy_for(server.url, self._host.environ, network)
        try:
            wire = httpx2.AsyncHTTPTransport(verify=certificates, proxy=proxy)
        except (ValueError, ImportError, httpx2.InvalidURL) as error:
            raise BadServer("the address of the proxy cannot be used") from error
        return httpx2.AsyncClient(
            headers={"user-agent": PROGRAM, **server.headers},
            auth=self._auth(),
            transport=CheckedTransport(
                wire,
                self._lose,
                address=server.url,
                seconds=server.timeout_seconds,
                is_sse=server.is_sse,
            ),
            timeout=httpx2.Timeout(server.timeout_seconds, connect=CONNECT_SECONDS, read=None),
            trust_env=False,
        )

    def _auth(self) -> Authorization | None:
        """Return what logs in; nothing where there is a key, or where everybody on the way could read the login."""
        if self._server.has_key or _is_open(self._server.url):
            return None
        return Authorization(self._server, self._host, self._hide, self._login)


def _given(client: httpx2.AsyncClient, *_: Any, **__: Any) -> httpx2.AsyncClient:
    return client


def check_address(server: Server) -> None:
    """Raise BadServer where a key would go over an open line."""
    if _is_open(server.url) and server.headers:
        raise BadServer(
            "its headers would go over http://, which everybody on the way can read; use https://"
        )


def _is_open(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme == "http" and not is_loopback(parts.hostname or "")


def proxy_for(url: str, environ: Mapping[str, str], network: Network) -> str | None:
    """Return the proxy on the way to an address: that of the settings, else that of the environment, none for this machine."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if is_loopback(host):
        return None
    if network.proxy:
        return network.proxy
    given = {name.lower(): value for name, value in environ.items() if value}
    if _goes_past(host, given.get("no_proxy", "")):
        return None
    found = given.get(f"{parts.scheme}_proxy") or given.get("all_proxy")
    return f"http://{found}" if found and "://" not in found else found


def _goes_past(host: str, no_proxy: str) -> bool:
    """Return whether `NO_PROXY` names a host: itself, a domain that it is in, or a network."""
    for word in filter(None, (each.strip().lower() for each in no_proxy.split(","))):
        name = word.lstrip("*").lstrip(".")
        if not name or host == name or host.endswith(f".{name}"):
            return True
        try:
            if ip_address(host) in ip_network(word, strict=False):
                return True
        except ValueError:
            continue  # one of them is a name
    return False
