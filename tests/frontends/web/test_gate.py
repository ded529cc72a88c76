"""What every request passes: hosts, origins, logins, sizes, and the headers of every answer."""

from collections.abc import Callable
from typing import Any

import pytest

from rows import every_row
from ybs.frontends.web import gate
from ybs.frontends.web.gate import TOKEN_HEADER, PageAddress, WebGate, address_of

ORIGIN = "http://127.0.0.1:8707"
Make = Callable[..., Any]


async def test_a_request_to_another_name_is_refused_whatever_it_asks_for(site: Make):
    for host in ("evil.example", "evil.example:8707", "127.0.0.1:8708", "127.0.0.1", ""):
        async with site().entered() as browser:
            for path in ("/", "/api/sessions", "/static/app.js"):
                answer = await browser.get(path, headers={"host": host})
                assert answer.status_code == 421, (host, path)


async def test_both_names_of_this_machine_are_known(site: Make):
    async with site().browser() as browser:
        for host in ("127.0.0.1:8707", "localhost:8707", "LOCALHOST:8707"):
            assert (await browser.get("/", headers={"host": host})).status_code == 200


async def test_nothing_is_changed_for_another_origin_or_for_none(site: Make):
    made = site()
    async with made.entered() as browser:
        for origin in (
            "http://evil.example",
            "http://127.0.0.1:9999",
            "https://127.0.0.1:8707",
            "null",
        ):
            answer = await browser.post("/api/links", json={}, headers={"origin": origin})
            assert answer.status_code == 403, origin
        del browser.headers["origin"]
        assert (await browser.post("/api/links", json={})).status_code == 403
    async with made.browser() as browser:
        del browser.headers["origin"]
        assert (await browser.post("/api/enter", json={"key": "x"})).status_code == 403


async def test_nothing_is_read_for_another_page(site: Make):
    async with site().entered() as browser:
        for site_of in ("cross-site", "same-site", "none"):
            answer = await browser.get("/api/sessions", headers={"sec-fetch-site": site_of})
            assert answer.status_code == 403, site_of
        answer = await browser.get("/api/sessions", headers={"origin": "http://127.0.0.1:9999"})
        assert answer.status_code == 403


async def test_the_cookie_alone_is_worth_nothing(site: Make):
    made = site()
    async with made.entered() as browser:
        assert (await browser.get("/api/sessions")).status_code == 200
        token = browser.headers.pop(TOKEN_HEADER)
        assert (await browser.get("/api/sessions")).status_code == 401
        assert (await browser.post("/api/links", json={})).status_code == 401
        browser.cookies.clear()
        browser.headers[TOKEN_HEADER] = token
        assert (await browser.get("/api/sessions")).status_code == 401


async def test_every_address_below_api_needs_a_login(site: Make):
    made = site()
    routes = made.app._app.routes
    assert len(routes) > 15
    async with made.browser() as browser:
        for route in routes:
            path = route.path.replace("{id}", "x").replace("{place:int}/{number:int}", "1/1")
            if not path.startswith("/api/") or path == "/api/enter":
                continue
            for method in route.methods:
                answer = await browser.request(method, path)
                assert answer.status_code == 401, (method, path)


async def test_every_answer_has_the_headers(site: Make):
    async with site().browser() as browser:
        answers = [
            await browser.get("/"),
            await browser.get("/static/app.js"),
            await browser.get("/api/sessions"),
            await browser.get("/nowhere"),
            await browser.get("/", headers={"host": "evil.example"}),
        ]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["x-content-type-options"] == "nosniff"


async def test_a_body_has_a_bound(site: Make, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gate, "MOST_BODY", 1_000)
    async with site().entered() as browser:
        answer = await browser.post("/api/sessions", json={"folder": "x" * 1_001})
        assert answer.status_code == 413


async def test_who_has_not_logged_in_says_little(site: Make):
    async with site().browser() as browser:
        answer = await browser.post("/api/enter", json={"key": "x" * gate.MOST_UNKNOWN_BODY})
        assert answer.status_code == 413


async def test_a_body_that_does_not_come_is_given_up(site: Make, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gate, "BODY_SECONDS", 0.01)

    async def body() -> Any:
        yield b"{"
        import asyncio

        await asyncio.Event().wait()

    async with site().entered() as browser:
        headers = {"content-type": "application/json"}
        answer = await browser.post("/api/sessions", content=body(), headers=headers)
        assert answer.status_code == 413


async def test_there_are_no_websockets():
    async def never(*_: Any) -> None:
        raise AssertionError

    await WebGate(never, PageAddress(origins=(ORIGIN,)), None)({"type": "websocket"}, never, never)  # type: ignore[arg-type]


def test_only_a_named_proxy_says_who_asks():
    headers = [(b"x-forwarded-for", b"1.1.1.1, 10.0.0.7")]
    scope: Any = {"type": "http", "client": ("127.0.0.1", 5), "headers": headers}
    assert (
        address_of(scope, has_proxy=True) == "10.0.0.7"
    )  # what the proxy itself saw, not what it was told
    assert address_of(scope, has_proxy=False) == "127.0.0.1"


@every_row(
    "host, is_it",
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("192.168.1.2", False),
        ("localhost.evil.example", False),
    ],
)
def test_loopback(host: str, is_it: bool):
    assert gate.is_for_this_machine(host) is is_it


def test_the_cookie_of_a_page_with_tls_is_bound_to_its_host():
    assert (
        PageAddress(origins=("https://box.lan:8707",), is_secure=True).cookie == "__Host-ybs-8707"
    )
    assert PageAddress(origins=(ORIGIN,)).cookie == "ybs-8707"
