"""A small HTTP server for a platform's webhook, behind the person's own proxy with TLS.

It takes JSON by POST: Telegram's with the secret in a header, Meta's with the body's signature by the secret.
"""

import asyncio
import hashlib
import hmac
import json
import socket
from collections.abc import Awaitable, Callable
from typing import Any, Final, Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from ybs.core.errors import YbsError
from ybs.frontends.gateway.channel import BadSettingsError
from ybs.frontends.web.command import WebServer
from ybs.frontends.web.gate import BoundedProtocol

_HEADER, _SIGNED_HEADER = "x-telegram-bot-api-secret-token", "x-hub-signature-256"
_MOST_BYTES: Final = 2_000_000


class Webhook:
    """Serves `listen` ("HOST:PORT") inside its `async with`. `came` takes a body; what it raises makes the platform send that again.

    Where there is a `verify_token`, the address is Meta's: its challenge is answered to who knows that token, and bodies are signed.
    """

    def __init__(
        self,
        listen: str,
        secret: str,
        came: Callable[[Any], Awaitable[None]],
        verify_token: str = "",
    ) -> None:
        self._listen, self._secret, self._came = listen, secret.encode(), came
        self._verify_token = verify_token.encode()
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
        routes = [Route("/{path:path}", self._post, methods=["POST"])]
        if self._verify_token:
            routes.append(Route("/{path:path}", self._challenged, methods=["GET"]))
        app = Starlette(routes=routes)
        config = uvicorn.Config(
            app, http=BoundedProtocol, lifespan="off", log_config=None, access_log=False
        )
        self._server = WebServer(config)
        self._serving = asyncio.create_task(self._server.serve([self._socket]))
        await self._server.is_up.wait()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.should_exit = self._server.force_exit = True
        await asyncio.gather(self._serving, return_exceptions=True)
        self._socket.close()

    async def _challenged(self, request: Request) -> Response:
        query = request.query_params
        if not hmac.compare_digest(query.get("hub.verify_token", "").encode(), self._verify_token):
            return Response(status_code=403)
        return PlainTextResponse(query.get("hub.challenge", ""))

    def _is_genuine(self, request: Request, body: bytes) -> bool:
        given, secret = request.headers.get(_HEADER, ""), self._secret
        if self._verify_token:
            given = request.headers.get(_SIGNED_HEADER, "")
            secret = b"sha256=" + hmac.new(secret, body, hashlib.sha256).hexdigest().encode()
        return hmac.compare_digest(given.encode(), secret)

    async def _post(self, request: Request) -> Response:
        body = bytearray()
        async for piece in request.stream():
            body += piece
            if len(body) > _MOST_BYTES:
                return Response(status_code=413)
        if not self._is_genuine(request, bytes(body)):
            return Response(status_code=403)
        try:
            async with self._one:  # in the order in which they came
                await self._came(json.loads(bytes(body)))
        except YbsError:
            return Response(status_code=503)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return Response(status_code=400)
        return Response()
