"""Make clients of httpx2, here and nowhere else: no library picks the proxy, the login or the server behind `localhost` by itself.

Whoever needs no more than a request sends it by `ybs.providers.http`. Imported only where a client is made.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import httpx2

from ybs.config.addresses import loopback_hosts


class _Wire(httpx2.AsyncHTTPTransport):
    """Sends a request to the server that `localhost` stands for, where that is its host; headers and certificate keep the name."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url, send = request.url, super().handle_async_request
        if url.host != "localhost":
            return await send(request)
        port = url.port or (443 if url.scheme == "https" else 80)
        first, other = [
            httpx2.Request(
                request.method,
                url.copy_with(host=host),
                headers=request.headers,
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": url.host},
            )
            for host in await asyncio.to_thread(loopback_hosts, port)
        ]
        try:
            return await send(first)
        except httpx2.ConnectError:
            return await send(other)


def open_client(
    *,
    proxy: str | None,
    ca_file: str | None = None,
    keepalive_seconds: float = 5.0,
    around: Callable[[httpx2.AsyncBaseTransport], httpx2.AsyncBaseTransport] | None = None,
    **options: Any,
) -> httpx2.AsyncClient:
    """Return a client that goes through the `proxy` (see `proxy_for`) or none, and has the certificates of `ca_file` beside the system's.

    `around` wraps what sends its requests; `options` are httpx2's own. Raises OSError for a `ca_file` that cannot be read, and
    ValueError, ImportError or httpx2.InvalidURL for a proxy that cannot be one.
    """
    certificates = httpx2.create_ssl_context()
    if ca_file:
        certificates.load_verify_locations(ca_file)
    limits = httpx2.Limits(keepalive_expiry=keepalive_seconds)
    wire = _Wire(verify=certificates, proxy=proxy, limits=limits)
    transport = around(wire) if around is not None else wire
    return httpx2.AsyncClient(transport=transport, trust_env=False, **options)
