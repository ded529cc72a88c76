"""A login in the person's browser: the address to open, and the port on loopback to which the browser comes back."""

import asyncio
from collections.abc import Callable
from typing import Any, Final, Self
from urllib.parse import parse_qs, urlsplit

from mcp.shared.auth import AuthorizationCodeResult

from ybs.core.errors import ToolError

_PATH = "/callback"
_MOST_LINE = 16_000
#: How long the person may take.
LOGIN_SECONDS: Final = 300.0
_PAGE = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=utf-8\r\nconnection: close\r\n\r\n"
    b"<!doctype html><title>ybs</title><p>You are logged in. You can close this page."
)
_NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nconnection: close\r\n\r\n"


class BrowserLogin:
    """Listens on loopback as long as it is entered. `tell` shows the person what to open."""

    def __init__(self, tell: Callable[[str], None], port: int = 0) -> None:
        self._tell, self._port = tell, port
        self._server: asyncio.Server | None = None
        self._came: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(
            self._answer, "127.0.0.1", self._port, limit=_MOST_LINE
        )
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

    async def show(self, url: str) -> None:
        """Show the address to open."""
        self._tell(url)

    async def result(self) -> Any:
        """Wait for the browser. Raises ToolError where the login was refused or took too long."""
        try:
            async with asyncio.timeout(LOGIN_SECONDS):
                came = await self._came
        except TimeoutError:
            raise ToolError(f"nobody logged in within {LOGIN_SECONDS:g} s") from None
        if "code" not in came:
            raise ToolError(f"the login was refused: {came.get('error', 'no reason was given')}")
        return AuthorizationCodeResult(
            code=came["code"], state=came.get("state"), iss=came.get("iss")
        )

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(10):
                line = (await reader.readline()).decode("latin-1").split()
            parts = urlsplit(line[1] if len(line) > 1 else "")
            given = {name: values[0] for name, values in parse_qs(parts.query).items()}
            is_it = parts.path == _PATH and ("code" in given or "error" in given)
            writer.write(_PAGE if is_it else _NOT_FOUND)
            await writer.drain()
            if is_it and not self._came.done():
                self._came.set_result(given)
        except (TimeoutError, ValueError, ConnectionError):
            pass  # somebody else looked at the port
        finally:
            writer.close()
