"""A login in the person's browser: the address to open, and the port on loopback to which the browser comes back."""

import asyncio
from collections.abc import Callable
from secrets import token_urlsafe
from typing import Any, Final, Self
from urllib.parse import parse_qs, urlsplit

from mcp.shared.auth import AuthorizationCodeResult

from ybs.core.errors import ToolError
from ybs.tools.mcp.listed import cleaned

_PATH = "/callback"
_MOST_LINE = 16_000
#: How long the person may take.
LOGIN_SECONDS: Final = 300.0
_HEAD = "HTTP/1.1 {status}\r\n{more}content-type: text/html; charset=utf-8\r\nconnection: close\r\n\r\n{page}"
_PAGE = "<!doctype html><title>ybs</title><p>{words} You can close this page."


class BrowserLogin:
    """Listens on loopback as long as it is entered. `tell` shows the person what to open, and the host where they log in with those that get something else of it.

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
            async with asyncio.timeout(LOGIN_SECONDS):
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
            async with asyncio.timeout(10):
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
