"""A small HTTP server for a platform's webhook, behind the person's own proxy with TLS: POST, JSON, and a secret in a header."""

import asyncio
import hmac
import json
import socket
from collections.abc import Awaitable, Callable
from typing import Any, Final, Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ybs.core.errors import YbsError
from ybs.frontends.gateway.channel import BadSettingsError
from ybs.frontends.web.command import Server
from ybs.frontends.web.gate import BoundedProtocol

_HEADER: Final = "x-telegram-bot-api-secret-token"
_MOST_BYTES: Final = 2_000_000


class Webhook:
    """Serves `listen` ("HOST:PORT") inside its `async with`. `came` takes a body; what it raises makes the platform send that again."""

    def __init__(self, listen: str, secret: str, came: Callable[[Any], Awaitable[None]]) -> None:
        self._listen, self._secret, self._came = listen, secret.encode(), came
        self._one = asyncio.Lock()

    async def __aenter__(self) -> Self:
        host, _, port = self._listen.rpartition(":")
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((host, int(port)))
        except (OSError, ValueError, OverflowError) as error:
            self._socket.close()
            raise BadSettingsError(f"webhook_listen: {self._listen} cannot be used") from error
        app = Starlette(routes=[Route("/{path:path}", self._post, methods=["POST"])])
        config = uvicorn.Config(
            app, http=BoundedProtocol, lifespan="off", log_config=None, access_log=False
        )
        self._server = Server(config)
        self._serving = asyncio.create_task(self._server.serve([self._socket]))
        await self._server.is_up.wait()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.should_exit = self._server.force_exit = True
        await asyncio.gather(self._serving, return_exceptions=True)
        self._socket.close()

    async def _post(self, request: Request) -> Response:
        given = request.headers.get(_HEADER, "").encode()
        if not hmac.compare_digest(given, self._secret):
            return Response(status_code=403)
        body = bytearray()
        async for piece in request.stream():
            body += piece
            if len(body) > _MOST_BYTES:
                return Response(status_code=413)
        try:
            async with self._one:  # in the order in which they came
                await self._came(json.loads(bytes(body)))
        except YbsError:
            return Response(status_code=503)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return Response(status_code=400)
        return Response()
