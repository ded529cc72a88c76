"""httpx2 as a transport: for https:// endpoints and behind proxies. Imported only when one is used."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from importlib import import_module
from threading import Lock, Thread
from typing import TYPE_CHECKING

from ybs.providers.http.transport import CutOff, HttpRequest, Unreachable, reason_of

if TYPE_CHECKING:
    import httpx2

_importing: Thread | None = None


def start_importing() -> Thread:
    """Begin to import httpx2 in a thread, while other things are read and waited for."""
    global _importing
    if _importing is None:
        _importing = Thread(target=_import, name="import httpx2", daemon=True)
        _importing.start()
    return _importing


def _import() -> None:
    # The last two are what httpx2 imports late, at its first client and at its first connection.
    for name in ("httpx2", "httpcore2", "anyio._backends._asyncio"):
        import_module(name)


class HttpxResponse:
    """An answer of httpx2."""

    def __init__(self, response: "httpx2.Response") -> None:
        self._response = response
        self.status: int = response.status_code
        self.headers: Mapping[str, str] = response.headers

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body as it comes."""
        import httpx2  # imported by now

        try:
            async for chunk in self._response.aiter_bytes():
                yield chunk
        except httpx2.HTTPError as error:
            raise CutOff("the connection was closed") from error

    async def aclose(self) -> None:
        """Close the answer."""
        await self._response.aclose()


class HttpxTransport:
    """One httpx2.AsyncClient, made at the first call, which goes through the `proxy`, whatever the environment says."""

    def __init__(
        self, *, connect_seconds: float, proxy: str | None = None, ca_file: str | None = None
    ) -> None:
        self._connect_seconds = connect_seconds
        self._proxy, self._ca_file = proxy, ca_file
        self._made: httpx2.AsyncClient | None = None
        self._making = Lock()

    async def warm_up(self) -> None:
        """Import httpx2 and read the certificates, in a thread."""
        with suppress(OSError):  # the call tells
            await asyncio.to_thread(self._client)

    async def send(self, call: HttpRequest) -> HttpxResponse:
        """Send a call through the pool."""
        start_importing().join()
        import httpx2  # imported by now

        try:
            client = self._client()
        except OSError as error:  # of the file, or of what stands in it
            why = f"{self._ca_file}: {error.strerror or error}"
            raise Unreachable(f"TLS failed: network.ca_file cannot be used: {why}") from error
        try:
            request = client.build_request(
                call.method, call.url, headers=dict(call.headers), content=call.body
            )
            return HttpxResponse(await client.send(request, stream=True))
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError) as error:
            raise Unreachable(reason_of(error)) from error
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise CutOff(" ".join(str(error).split())[:200] or "the connection broke") from error

    async def aclose(self) -> None:
        """Close the pool."""
        if self._made is not None:
            await self._made.aclose()

    def _client(self) -> "httpx2.AsyncClient":
        with self._making:  # threads of several sessions may be at it
            if self._made is None:
                self._made = self._new_client()
            return self._made

    def _new_client(self) -> "httpx2.AsyncClient":
        start_importing().join()
        from http.cookiejar import CookieJar, DefaultCookiePolicy

        import httpx2  # imported by now, and what it imports itself

        from ybs.config.http_client import open_client

        return open_client(
            proxy=self._proxy,
            ca_file=self._ca_file,
            keepalive_seconds=60,
            # What a server sets for one session is not sent with the requests of another.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            timeout=httpx2.Timeout(None, connect=self._connect_seconds),
        )
