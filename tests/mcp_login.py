"""A server that wants a login, with its authorization server, and a browser that a test plays."""

from base64 import urlsafe_b64encode
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx2

from mcp_http import Answer, App, Request, message, protocol

ISSUER = "/as"


class Provider:
    """Registers programs, shows a page that agrees by itself, gives tokens and takes them. Its endpoints stand below `/as`."""

    def __init__(self) -> None:
        self.clients: dict[str, Any] = {}
        self.codes: dict[str, dict[str, str]] = {}
        self.access, self.refresh = set[str](), set[str]()
        self.asked: list[str] = []
        self.scopes: list[str] = []
        self.count = 0
        #: What the next browser is answered with, beside the state.
        self.page: dict[str, str] = {}
        self.seconds, self.can_register = 3600, True
        #: What its metadata says in place of the truth.
        self.metadata: dict[str, str] = {}
        #: Paths that lead to another server.
        self.leads: dict[str, str] = {}

    @property
    def app(self) -> App:
        """The server."""
        return protocol(self._answer)

    def _answer(self, request: Request) -> Answer | None:
        self.asked.append(request.path)
        home = f"http://{request.headers['host']}"
        if request.path in self.leads:
            return Answer(307, location=self.leads[request.path])
        match request.path.removeprefix(ISSUER):
            case "/mcp":
                return self._door(request, home)
            case "/.well-known/oauth-protected-resource/mcp":
                return Answer(
                    200,
                    {
                        "resource": f"{home}/mcp",
                        "authorization_servers": [home + ISSUER],
                        "scopes_supported": ["all"],
                    },
                )
            case "/.well-known/oauth-authorization-server/as":
                return self._metadata(home + ISSUER)
            case "/register" if self.can_register:
                client = {**request.json, "client_id": f"client-{len(self.clients)}"}
                self.clients[client["client_id"]] = client
                return Answer(201, client)
            case "/authorize":
                return self._authorize(dict(parse_qsl(request.query)))
            case "/token":
                return self._token(dict(parse_qsl(request.body.decode())))
            case _:
                return Answer(404)

    def _door(self, request: Request, home: str) -> Answer | None:
        given = request.headers.get("authorization", "")
        if given.removeprefix("Bearer ") in self.access:
            asked = request.json
            is_echo = asked.get("params", {}).get("arguments") == {"show": "headers"}
            said = {"content": [{"type": "text", "text": f"You sent {given}."}]}
            return message(asked, said) if is_echo else None
        where = f"{home}/.well-known/oauth-protected-resource/mcp"
        return Answer(401, www_authenticate=f'Bearer resource_metadata="{where}"')

    def _metadata(self, issuer: str) -> Answer:
        register = {"registration_endpoint": f"{issuer}/register"} if self.can_register else {}
        return Answer(
            200,
            {
                "issuer": issuer,
                "authorization_endpoint": f"{issuer}/authorize",
                "token_endpoint": f"{issuer}/token",
                "code_challenge_methods_supported": ["S256"],
                **register,
                **self.metadata,
            },
        )

    def _authorize(self, given: dict[str, str]) -> Answer:
        assert given["redirect_uri"] in self.clients[given["client_id"]]["redirect_uris"]
        self.scopes.append(given.get("scope", ""))
        code = f"code-{len(self.codes)}"
        self.codes[code] = given
        back = {"state": given["state"], **(self.page or {"code": code})}
        return Answer(302, location=f"{given['redirect_uri']}?{urlencode(back)}")

    def _token(self, given: dict[str, str]) -> Answer:
        if given["grant_type"] == "refresh_token":
            if given["refresh_token"] not in self.refresh:
                return Answer(400, {"error": "invalid_grant"})
            self.refresh.remove(given["refresh_token"])
        else:
            asked = self.codes.pop(given["code"])
            digest = urlsafe_b64encode(sha256(given["code_verifier"].encode()).digest())
            assert asked["code_challenge"] == digest.decode().rstrip("=")
            assert asked["redirect_uri"] == given["redirect_uri"]
        self.count += 1
        access, refresh = f"access-token-{self.count}", f"refresh-token-{self.count}"
        self.access, self.refresh = {access}, {refresh}
        return Answer(
            200,
            {
                "access_token": access,
                "refresh_token": refresh,
                "token_type": "bearer",
                "expires_in": self.seconds,
            },
        )


async def browse(url: str) -> str:
    """Open an address as a browser does, follow where it leads, and return the page."""
    async with httpx2.AsyncClient(follow_redirects=True, trust_env=False) as client:
        return (await client.get(url)).text


def port_of(url: str) -> int:
    """Return the port of an address."""
    return urlsplit(url).port or 0
