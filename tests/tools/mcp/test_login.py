"""Logins at servers: the test plays the browser."""

import asyncio
import re
import stat
from collections.abc import Callable, Coroutine
from contextlib import nullcontext
from pathlib import Path
from socket import socket
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from hosts import this_host
from mcp_http import Answer, connected, protocol, scripted, served
from mcp_login import Provider, browse
from rows import every_row
from ybs.config.key_store import key_file, keys_in_file
from ybs.core.errors import ToolError
from ybs.core.remedies import Remedy
from ybs.tools.mcp.answers import check_target
from ybs.tools.mcp.servers import Servers
from ybs.trust.grants import ORIGIN_MARK

pytestmark = pytest.mark.integration


async def log_in(
    servers: Servers, visit: Callable[[str], Coroutine[Any, Any, object]] = browse
) -> str:
    """Log in, and return what was said of where; `visit` is what the browser does with the address."""
    opened: list[asyncio.Future[Any]] = []
    said: list[str] = []

    def show(url: str, place: str) -> None:
        assert urlsplit(url).hostname == "127.0.0.1"
        assert len(url) < 40
        said.append(place)
        opened.append(asyncio.ensure_future(visit(url)))

    try:
        await servers.login(next(iter(servers.connections.values())), show)
    finally:
        await asyncio.gather(*opened)
    return said[-1]


async def test_a_server_that_wants_a_login_says_so_and_nothing_is_registered(tmp_path: Path):
    provider = Provider()
    async with served(provider.app) as url, connected(tmp_path, url) as held:
        with pytest.raises(ToolError, match="does not run: it wants you to log in first") as caught:
            await held.one.link()
        assert caught.value.remedies == (Remedy("log_in", "demo"),)
        assert held.one.state == "failed"
        assert held.news[0].remedies == caught.value.remedies
        assert set(provider.asked) == {"/mcp"}


async def test_a_login_is_kept_for_the_next_process_and_refreshed(tmp_path: Path):
    provider = Provider()
    async with served(provider.app) as url:
        async with connected(tmp_path, url) as held:
            assert await log_in(held.servers) == urlsplit(url).netloc
            assert await held.call("echo") == "done"
        file = key_file(this_host())
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        async with connected(tmp_path, url) as held:
            assert await held.call("echo") == "done"
            provider.access.clear()  # revoked
            assert await held.call("echo") == "done"
            assert provider.count == 2
        expire(file)
        async with connected(tmp_path, url) as held:
            before = len(provider.asked)
            assert await held.call("echo") == "done"
            assert provider.asked[before] == "/as/token"
        async with connected(tmp_path, url) as held:
            provider.access.clear()
            provider.refresh.clear()
            with pytest.raises(ToolError, match="log in first"):
                await held.one.link()
        assert len(provider.clients) == 1


async def test_what_another_process_refreshed_is_taken(tmp_path: Path):
    provider = Provider()
    async with served(provider.app) as url, connected(tmp_path, url) as first:
        await log_in(first.servers)
        assert await first.call("echo") == "done"
        async with connected(tmp_path, url) as second:
            assert await second.call("echo") == "done"
            provider.access.clear()
            assert await second.call("echo") == "done"  # its refresh token is used up now
        assert await first.call("echo") == "done"
        assert provider.count == 2
        provider.access.clear()
        assert await asyncio.gather(*(first.call("echo") for _ in range(5))) == ["done"] * 5
        assert provider.count == 3
    assert first.said == []


def expire(file: Path) -> None:
    """Make the tokens that are kept as old as those that a server no longer takes."""
    keys = msgspec.json.decode(file.read_bytes(), type=dict[str, str])
    old = {
        name: re.sub(r'"expires":[\d.]+', '"expires":1.0', login) for name, login in keys.items()
    }
    assert old != keys
    file.write_bytes(msgspec.json.encode(old))


async def test_tokens_are_known_as_secrets_and_nothing_says_them(tmp_path: Path):
    provider = Provider()
    async with served(provider.app) as url, connected(tmp_path, url) as held:
        await log_in(held.servers)
        assert {"access-token-1", "refresh-token-1"} <= set(keys_in_file(this_host()))
        assert {"access-token-1", "refresh-token-1"} <= set(held.hidden)
        assert "token-1" not in repr(vars(held.one)) + "".join(held.said)
        server = held.one.server
        held.servers.forget(server)
        assert "token-1" not in key_file(this_host()).read_text()
        assert not held.servers.has_login(server)


async def test_a_login_is_for_the_entry_that_it_was_made_for(tmp_path: Path):
    """Whoever writes a project's entry knows the name and the address of a service that many people use."""
    provider = Provider()
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    theirs = [(one, {ORIGIN_MARK: "project"}), (one, {ORIGIN_MARK: "editor"})]
    theirs.append((one, {ORIGIN_MARK: "plugin", "root": "/plugins/p"}))
    async with served(provider.app) as url:
        async with connected(one, url) as held:
            await log_in(held.servers)
        for folder, mark in theirs:
            async with connected(folder, url, **mark) as held:
                assert not held.servers.has_login(held.one.server)
                with pytest.raises(ToolError, match="log in first"):
                    await held.one.link()
        async with connected(one, url, **{ORIGIN_MARK: "project"}) as held:
            await log_in(held.servers)
            await held.one.link()
        for folder, works in ((one, True), (other, False)):
            async with connected(folder, url, **{ORIGIN_MARK: "project"}) as held:
                assert held.servers.has_login(held.one.server) is works
        async with connected(other, url) as held:
            assert held.servers.has_login(held.one.server)


async def test_a_second_login_is_a_new_one(tmp_path: Path):
    provider = Provider()
    async with served(provider.app) as url, connected(tmp_path, url) as held:
        await log_in(held.servers)
        await log_in(held.servers)
        assert provider.count == 2
        assert await held.call("echo") == "done"


async def test_a_program_that_is_known_already_needs_no_registration(tmp_path: Path):
    provider = Provider()
    provider.can_register = False
    async with served(provider.app) as url:
        async with connected(tmp_path, url) as held:
            with pytest.raises(ToolError, match="cannot register themselves"):
                await log_in(held.servers)
        free = a_free_port()
        provider.clients["own"] = {"redirect_uris": [f"http://127.0.0.1:{free}/callback"]}
        oauth = {"client_id": "own", "callback_port": free, "scopes": "read write"}
        async with connected(tmp_path, url, oauth=oauth) as held:
            await log_in(held.servers)
            assert await held.call("echo") == "done"
        assert provider.scopes == ["read write"]


def a_free_port() -> int:
    with socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


REFUSALS = [
    ({"error": "access_denied"}, "the login was refused: access_denied"),
    ({"error": "x", "error_description": "No\x1b[2J seat."}, "the login was refused: No"),
    (
        {"code": "1", "state": "of another"},
        "the login failed: the browser came back from another login",
    ),
]


@pytest.mark.parametrize(("page", "words"), REFUSALS)
async def test_a_login_that_fails_says_why(tmp_path: Path, page: dict[str, str], words: str):
    provider = Provider()
    provider.page = page
    async with served(provider.app) as url, connected(tmp_path, url) as held:
        with pytest.raises(ToolError, match=f"^You are not logged in to demo: {words}") as caught:
            await log_in(held.servers)
        assert "\x1b" not in str(caught.value)
        assert provider.count == 0


async def test_nobody_waits_for_ever_for_a_browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ybs.tools.mcp.http.LOGIN_SECONDS", 0.05)

    async def nobody(_url: str) -> None:
        pass

    provider = Provider()
    async with served(provider.app) as url, connected(tmp_path, url) as held:
        with pytest.raises(ToolError, match=r"nobody logged in within 0\.05 s"):
            await log_in(held.servers, nobody)


async def test_others_at_the_port_of_a_login_are_turned_away(tmp_path: Path):
    provider = Provider()
    pages: list[str] = []

    async def visit(url: str) -> None:
        back = next(iter(provider.clients.values()))["redirect_uris"][0]
        pages.append(await browse(back))
        pages.append(await browse(back.replace("callback", "else?code=1")))
        pages.append(await browse(url))

    async with served(provider.app) as url, connected(tmp_path, url) as held:
        await log_in(held.servers, visit)
    assert pages[:2] == ["", ""]
    assert "You can close this page" in pages[2]


async def test_a_server_that_wants_no_login_says_so(tmp_path: Path):
    async with served(protocol()) as url, connected(tmp_path, url) as held:
        with pytest.raises(ToolError, match="demo does not ask for a login"):
            await log_in(held.servers)


async def test_a_server_cannot_lead_the_login_to_an_open_line_or_to_this_machine(tmp_path: Path):
    metadata = 'Bearer resource_metadata="http://far.example/meta"'
    app = scripted(lambda _: Answer(401, www_authenticate=metadata))
    async with served(app) as url, connected(tmp_path, url) as held:
        with pytest.raises(ToolError, match=r"it leads to http://far\.example, where everybody"):
            await log_in(held.servers)


async def test_m08_neither_codes_nor_tokens_go_to_where_a_server_redirects(tmp_path: Path):
    provider, asked = Provider(), list[str]()
    elsewhere = scripted(lambda request: asked.append(request.path) or Answer(200, b"{}"))
    async with (
        served(elsewhere) as other,
        served(provider.app) as url,
        connected(tmp_path, url) as held,
    ):
        for path in ("/as/token", "/as/register"):
            provider.leads = {path: other}
            with pytest.raises(
                ToolError, match=r"You are not logged in to demo: .*Redirect to .* not followed"
            ):
                await log_in(held.servers)
        provider.leads = {}
        await log_in(held.servers)
        assert await held.call("echo") == "done"
        provider.leads = {"/mcp": other, "/as/token": other}
        with pytest.raises(ToolError, match=r"Redirect to .* not followed"):
            await held.call("echo")
        provider.leads = {"/as/token": other}
        provider.access.clear()
        with pytest.raises(ToolError):
            await held.call("echo")
    assert asked == []


async def test_every_host_that_gets_something_of_a_login_is_named(tmp_path: Path):
    honest, provider = Provider(), Provider()
    async with (
        served(honest.app) as there,
        served(provider.app) as url,
        connected(tmp_path, url) as held,
    ):
        log_in_at, own = urlsplit(there).netloc, urlsplit(url).netloc
        provider.metadata = {"authorization_endpoint": there.replace("/mcp", "/as/authorize")}
        honest.clients = provider.clients
        provider.codes = honest.codes
        assert await log_in(held.servers) == f"{log_in_at}; the answer goes to {own}"
        provider.metadata = {
            name: there.replace("/mcp", path)
            for name, path in (("authorization_endpoint", "/as/authorize"), ("token_endpoint", "/as/token"))
        }  # fmt: skip
        assert await log_in(held.servers) == f"{log_in_at}; ybs was registered at {own}"


async def test_a_client_secret_goes_to_no_other_server_than_at_the_first_login(tmp_path: Path):
    provider, thief, port = Provider(), Provider(), a_free_port()
    provider.clients["own"] = {"redirect_uris": [f"http://127.0.0.1:{port}/callback"]}
    thief.clients, thief.codes = provider.clients, provider.codes
    oauth = {"client_id": "own", "client_secret": "s" * 20, "callback_port": port}
    async with (
        served(thief.app) as there,
        served(provider.app) as url,
        connected(tmp_path, url, oauth=oauth) as held,
    ):
        own, other = urlsplit(url).netloc, urlsplit(there).netloc
        for _ in range(2):
            assert await log_in(held.servers) == own
        provider.metadata = {"token_endpoint": there.replace("/mcp", "/as/token")}
        with pytest.raises(ToolError, match=rf"secret went to .*{own}.* before.* go to .*{other}") as caught:  # fmt: skip
            await log_in(held.servers)
        assert caught.value.remedies == (Remedy("log_out", "demo"),)
        assert thief.asked == []
        assert held.servers.logout(held.one.server)
        provider.access = {"access-token-1"}  # what the other one gives
        said = await log_in(held.servers)
        assert said == f"{own}; the answer, with your client secret, goes to {other}"
        assert thief.asked == ["/as/token"]


@pytest.mark.parametrize(
    ("metadata", "why"),
    [
        ({"authorization_endpoint": "http://far.example/a"}, "leads to http://far.example, where"),
        ({"token_endpoint": "http://far.example/t"}, "leads to http://far.example, where"),
        ({"registration_endpoint": "http://far.example/r"}, "leads to http://far.example, where"),
        ({"revocation_endpoint": "http://far.example/v"}, "leads to http://far.example, where"),
        ({"issuer": "https://far.example/as"}, "issuer mismatch"),
    ],
)
async def test_metadata_with_an_open_endpoint_or_another_issuer_is_refused(
    tmp_path: Path, metadata: dict[str, str], why: str
):
    provider = Provider()
    provider.metadata = metadata
    async with served(provider.app) as url, connected(tmp_path, url) as held:
        with pytest.raises(ToolError, match=why):
            await log_in(held.servers)
        assert not {"/as/authorize", "/as/token"} & {*provider.asked}


async def test_an_answer_of_another_issuer_is_not_passed_on(tmp_path: Path):
    provider = Provider()
    provider.page = {"code": "of another", "iss": "https://far.example"}
    async with served(provider.app) as url, connected(tmp_path, url) as held:
        with pytest.raises(ToolError, match="iss mismatch"):
            await log_in(held.servers)
        assert "/as/token" not in provider.asked


@every_row(
    "url, home, refused",
    [
        ("https://auth.example/token", "https://mcp.example/mcp", False),
        ("http://mcp.example/token", "https://mcp.example/mcp", True),
        ("http://mcp.example:8080/token", "http://mcp.example/mcp", True),
        ("http://mcp.example/other", "http://mcp.example/mcp", False),
        ("http://127.0.0.1:9/token", "https://mcp.example/mcp", True),
        ("https://[::1]/token", "https://mcp.example/mcp", True),
        ("http://localhost:9/token", "http://127.0.0.1:8/mcp", False),
        ("http://far.example/token", "http://127.0.0.1:8/mcp", True),
        ("javascript:alert(1)", "https://mcp.example/mcp", True),
    ],
)
def test_a_server_leads_to_encrypted_addresses_and_from_this_machine_to_it(
    url: str, home: str, refused: bool
):
    with pytest.raises(ToolError, match="it leads to") if refused else nullcontext():
        check_target(url, home)
