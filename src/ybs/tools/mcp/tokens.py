"""The person's logins at servers: kept as the keys of providers are, in the system's keyring or in a private file."""

import asyncio
from contextlib import suppress
from typing import Any

import msgspec
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import ValidationError

from ybs.config.host import Host
from ybs.config.key_store import keep_key, stored_key
from ybs.tools.mcp.settings import Server

_KIND = "mcp"


class KeptTokens:
    """The storage of the SDK for one server. What is kept belongs to its name and address, and goes nowhere else."""

    def __init__(self, host: Host, server: Server, login: Any = None) -> None:
        self._host, self._server, self._login = host, server, login

    async def get_tokens(self) -> OAuthToken | None:
        """Return the tokens that were kept."""
        return self._as(OAuthToken, (await self._read()).get("tokens"))

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep tokens."""
        await self._keep("tokens", tokens)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return how ybs is known to the server: as the settings say, or as it was registered before."""
        own = self._server.oauth
        if own.client_id:
            address = self._login.address if self._login else "http://127.0.0.1/callback"
            said = {
                "client_id": own.client_id,
                "client_secret": own.client_secret or None,
                "redirect_uris": [address],
            }
            return OAuthClientInformationFull.model_validate(said)
        return self._as(OAuthClientInformationFull, (await self._read()).get("client"))

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep how ybs was registered."""
        await self._keep("client", client_info)

    @staticmethod
    def _as(kind: Any, data: Any) -> Any:
        with suppress(ValidationError):
            return None if data is None else kind.model_validate(data)
        return None

    async def _read(self) -> dict[str, Any]:
        text = await asyncio.to_thread(
            stored_key, self._host, f"{_KIND}:{self._server.name}", self._server.url
        )
        try:
            return msgspec.json.decode(text, type=dict[str, Any]) if text else {}
        except msgspec.DecodeError:
            return {}

    async def _keep(self, name: str, value: Any) -> None:
        kept = {**await self._read(), name: value.model_dump(mode="json", exclude_none=True)}
        text = msgspec.json.encode(kept).decode()
        await asyncio.to_thread(
            keep_key, self._host, f"{_KIND}:{self._server.name}", self._server.url, text
        )
