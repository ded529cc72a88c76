"""Clients of httpx2: no way to a server but the one that ybs picked."""

import httpx2
import pytest

from scripted import OpenAIServer
from ybs.config import http_client
from ybs.config.http_client import open_client


async def test_only_the_first_address_of_localhost_is_sent_a_key(monkeypatch: pytest.MonkeyPatch):
    asked: list[str] = []

    async def answer(_: object, request: httpx2.Request) -> httpx2.Response:
        host, key = request.headers["host"], request.headers["x-key"]
        asked.append(f"{request.url.host} {request.extensions['sni_hostname']} {host} {key}")
        return httpx2.Response(200, text="{}")

    monkeypatch.setattr(httpx2.AsyncHTTPTransport, "handle_async_request", answer)
    monkeypatch.setattr(http_client, "loopback_hosts", lambda port: [f"a{port}", "b"])
    async with open_client(proxy=None, headers={"x-key": "k"}) as client:
        for address in ("https://localhost/mcp", "http://localhost/mcp"):
            await client.get(address)
    assert asked == ["a443 localhost localhost k", "a80 localhost localhost k"]


async def test_the_environment_names_neither_a_proxy_nor_a_login(tmp_path, monkeypatch):
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password sesame\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    async with OpenAIServer([]) as server, OpenAIServer([]) as other:
        monkeypatch.setenv("HTTP_PROXY", other.url)
        async with open_client(proxy=None) as client:
            await client.get(f"{server.url}/models")
    (sent,) = server.other_requests
    assert other.other_requests == []
    assert "authorization" not in {name.lower() for name in sent.headers}
