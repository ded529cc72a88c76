"""The server on a real socket: slow clients, many connections, many tabs, and the command itself."""

import asyncio
import json
import ssl
import time
from argparse import Namespace
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from socket import socket
from typing import Any

import httpx2
import pytest

from hosts import this_host
from rows import every_row
from timing import takes_at_most
from web_pages import Web, web
from ybs.core.errors import YbsError
from ybs.core.events import TextStreamed
from ybs.frontends.headless.output import UsageError
from ybs.frontends.web import gate
from ybs.frontends.web.access import Password, WebLogins
from ybs.frontends.web.command import _own, place_of, serving
from ybs.frontends.web.gate import TOKEN_HEADER, BoundedProtocol, PageAddress
from ybs.frontends.web.pages import Pages
from ybs.session.options import Options
from ybs.testing import ScriptedModel


class Served:
    """The page on a port of this machine, in the loop of the test."""

    def __init__(self, pages: Pages, access: WebLogins, origin: str, port: int) -> None:
        self.pages, self.access, self.origin, self.port = pages, access, origin, port
        self.secrets = access.begin("a browser", "127.0.0.1", origin)
        name = f"ybs-{port}"
        self.headers = {"cookie": f"{name}={self.secrets.cookie}", TOKEN_HEADER: self.secrets.token}

    async def open(self) -> str:
        async with httpx2.AsyncClient(base_url=self.origin, headers=self.headers) as browser:
            said = await browser.post("/api/sessions", json={}, headers={"origin": self.origin})
            return said.json()["id"]

    async def raw(self, head: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(head.encode())
        return reader, writer

    def stream(self, name: str) -> str:
        lines = [f"GET /api/sessions/{name}/stream?tab=t HTTP/1.1", f"host: 127.0.0.1:{self.port}"]
        lines += [f"{key}: {value}" for key, value in self.headers.items()]
        return "\r\n".join(lines) + "\r\n\r\n"


@asynccontextmanager
async def served(project: Path, *script: Any) -> AsyncIterator[Served]:
    with socket() as bound:
        bound.bind(("127.0.0.1", 0))
        bound.listen(1024)
        bound.setblocking(False)
        port = bound.getsockname()[1]
        origin, access = f"http://127.0.0.1:{port}", WebLogins(None)
        given = {"host": this_host(), "model": ScriptedModel(script), "sandbox": False}
        password = Password(project / "none.json")
        where = (password, access, PageAddress(origins=(origin,)), bound)
        pages = Pages(Options.of(project, given))
        async with serving(pages, *where):
            yield Served(pages, access, origin, port)


pytestmark = pytest.mark.integration


async def test_a_client_that_never_finishes_its_request_is_dropped(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(gate, "HEAD_SECONDS", 0.1)
    async with served(project) as site, asyncio.timeout(8):
        for head in ("", "GET / HTTP/1.1\r\nhost:"):
            reader, writer = await site.raw(head)
            with suppress(ConnectionError):
                assert await reader.read() == b""
            writer.close()


async def test_more_connections_than_the_bound_are_closed_and_those_that_are_there_go_on(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(BoundedProtocol, "most", 20)
    async with served(project) as site, asyncio.timeout(20):
        name = await site.open()
        reader, writer = await site.raw(site.stream(name))
        assert b"200 OK" in await reader.readline()
        many = await asyncio.gather(*(site.raw("") for _ in range(200)))
        closed = 0
        for other, _ in many:
            try:
                closed += await asyncio.wait_for(other.read(1), 0.05) == b""
            except ConnectionError:
                closed += 1
            except TimeoutError:
                pass
        assert closed >= 180
        site.pages.find(name, site.secrets.login.id).say(
            {"t": "note", "level": "info", "text": "still here"}
        )
        while b"still here" not in await reader.readline():
            pass
        for _, each in (*many, (reader, writer)):
            each.close()


async def test_a_hundred_tabs_on_one_stream_do_not_hold_the_turn_up(project: Path):
    async with served(project) as site, asyncio.timeout(30):
        name = await site.open()
        followed = site.pages.find(name, site.secrets.login.id)

        async def watch(number: int) -> int:
            reader, writer = await site.raw(site.stream(name).replace("tab=t", f"tab={number}"))
            count = 0
            async for line in reader:
                if b'"t":"text"' in line:
                    count += json.loads(line)["text"].count("x")
                if count == 500:
                    break
            writer.close()
            return count

        watching = [asyncio.create_task(watch(number)) for number in range(100)]
        while len(followed.tabs) < 100:  # noqa: ASYNC110 - no one thing tells it
            await asyncio.sleep(0.01)
        with takes_at_most(0.5, "a millisecond for each token, with tabs or without"):
            for _ in range(500):
                followed.session.emit(TextStreamed(text="x"))
        assert await asyncio.gather(*watching) == [500] * 100


async def test_a_streamed_piece_is_sent_at_once(project: Path):
    async with served(project) as site, asyncio.timeout(20):
        name = await site.open()
        followed = site.pages.find(name, site.secrets.login.id)
        reader, writer = await site.raw(site.stream(name))
        while b'"t":"status"' not in await reader.readline():
            pass
        took: list[float] = []
        for _ in range(7):
            begun = time.monotonic()
            followed.session.emit(TextStreamed(text="x"))
            while b'"t":"text"' not in await reader.readline():
                pass
            took.append(time.monotonic() - begun)
        assert min(took) < 0.05  # what waits for more to come waits each time
        writer.close()


def arguments(**given: Any) -> Namespace:
    return Namespace(
        **{"host": "127.0.0.1", "proxy": "", "cert": None, "key": None, "name": [], **given}
    )


@every_row(
    "given, has_password, origins",
    [
        ({}, False, ("http://127.0.0.1:1",)),
        ({"host": "::1"}, False, ("http://[::1]:1",)),
        ({"host": "localhost"}, False, ("http://127.0.0.1:1",)),
        (
            {"cert": "c", "key": "k"},
            False,
            ("https://127.0.0.1:1", "https://localhost:1", "https://[::1]:1"),
        ),
        ({"host": "0.0.0.0"}, True, None),
        ({"host": "0.0.0.0", "cert": "c", "key": "k"}, True, None),
        ({"host": "0.0.0.0", "cert": "c", "key": "k", "name": ["Box.lan"]}, False, None),
        (
            {"host": "0.0.0.0", "cert": "c", "key": "k", "name": ["Box.lan"]},
            True,
            ("https://box.lan:1",),
        ),
        ({"host": "10.0.0.2", "cert": "c", "key": "k"}, True, ("https://10.0.0.2:1",)),
        ({"host": "10.0.0.2", "proxy": "https://a.example"}, True, None),
        ({"proxy": "https://a.example"}, False, None),
        ({"proxy": "http://a.example"}, True, None),
        ({"proxy": "https://a.example/ybs"}, True, None),
        ({"proxy": "https://A.example"}, True, ("https://a.example",)),
        ({"cert": "c"}, True, None),
    ],
)
def test_where_the_page_may_be(
    given: Any, has_password: bool, origins: Any, tmp_path: Path, monkeypatch: Any
):
    monkeypatch.setattr(Password, "is_set", property(lambda _: has_password))
    password = Password(tmp_path / "password.json")
    if origins is None:
        with pytest.raises(UsageError):
            place_of(arguments(**given), 1, password)
    else:
        place = place_of(arguments(**given), 1, password)
        assert place.origins == origins
        assert place.is_secure is origins[0].startswith("https")
        assert place.has_proxy is bool(given.get("proxy"))


def test_the_link_is_the_last_line_and_an_interrupt_ends_it_well(project: Path, home: Path):
    import signal

    with web([], project, home) as page:
        assert page.link.startswith("http://127.0.0.1:")
        assert "/#key=" in page.link
        code, said = page.end(signal.SIGINT)
        assert (code, said.count("the page is open")) == (0, 1)
        assert "Traceback" not in said


def test_a_port_that_is_taken_is_said(project: Path, home: Path):
    import subprocess
    import sys

    with web([], project, home) as page:
        command = [str(Path(sys.executable).parent / "ybs"), "web", "--port", str(page.port)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
        assert done.returncode == 1
        assert "cannot be used" in done.stderr
        elsewhere = subprocess.run(
            [*command[:2], "--host", "0.0.0.0", "--port", "0"],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
        assert elsewhere.returncode == 2
        assert "ybs web password" in elsewhere.stderr


def certificate(folder: Path) -> tuple[Path, Path]:
    """Make a certificate for this machine."""
    from datetime import UTC, datetime, timedelta
    from ipaddress import ip_address

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    cert_file, key_file = folder / "cert.pem", folder / "key.pem"
    cert_file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    form = (
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    key_file.write_bytes(key.private_bytes(*form))
    return cert_file, key_file


def entered(page: Web, context: ssl.SSLContext, **given: str) -> httpx2.Response:
    origin = f"https://127.0.0.1:{page.port}"
    with httpx2.Client(verify=context, trust_env=False) as browser:
        return browser.post(f"{origin}/api/enter", json=given, headers={"origin": origin})


def test_with_tls_and_a_password_others_log_in_and_wrong_tries_are_bounded(
    project: Path, home: Path, tmp_path: Path
):
    cert, key = certificate(tmp_path)
    words = "-".join(("a", "long", "password"))
    config = home / ".config/ybs"
    Password(config / "web-password.json").set(words)
    context = ssl.create_default_context(cafile=str(cert))
    with web(
        [],
        project,
        home,
        "--host",
        "0.0.0.0",
        "--name",
        "127.0.0.1",
        "--cert",
        str(cert),
        "--key",
        str(key),
    ) as page:
        assert page.link.startswith("https://127.0.0.1:")
        said = entered(page, context, password=words)
        assert said.status_code == 200
        cookie = said.headers["set-cookie"]
        assert cookie.startswith("__Host-ybs-")
        assert "Secure" in cookie
        assert "strict-transport-security" in said.headers
        codes = [entered(page, context, password="wrong").status_code for _ in range(6)]
        assert codes == [401] * 5 + [429]
        assert entered(page, context, password=words).status_code == 429
        token, origin = said.json()["token"], f"https://127.0.0.1:{page.port}"
        known = {"cookie": cookie.partition(";")[0], TOKEN_HEADER: token}
        page.end()
        page.start()  # nobody else has the certificate, so a login goes on
        with httpx2.Client(verify=context, trust_env=False, headers=known) as browser:
            assert browser.get(f"{origin}/api/sessions").status_code == 200
    kept = WebLogins(home / ".local/state/ybs/web-logins.json")
    with _own("127.0.0.1", kept) as bound:
        assert bound.getsockname()[1] == page.port
        with _own("127.0.0.1", kept) as other:
            assert other.getsockname()[1] != page.port


def test_a_login_in_clear_text_ends_with_the_server(project: Path, home: Path):
    with web([], project, home) as page:
        origin = f"http://127.0.0.1:{page.port}"
        given = {"key": page.link.partition("#key=")[2]}
        with httpx2.Client(base_url=origin, trust_env=False) as browser:
            said = browser.post("/api/enter", json=given, headers={"origin": origin})
            known = {TOKEN_HEADER: said.json()["token"]}
            assert browser.get("/api/sessions", headers=known).status_code == 200
            page.end()
            page.start()
            assert page.port == int(origin.rpartition(":")[2])
            assert browser.get("/api/sessions", headers=known).status_code == 401
        assert not (home / ".local/state/ybs/web-logins.json").exists()


def test_a_certificate_that_is_none_is_said(tmp_path: Path):
    from ybs.frontends.web.command import _check_tls

    (tmp_path / "none").write_text("none")
    with pytest.raises(YbsError, match="cannot be used"):
        _check_tls(str(tmp_path / "none"), str(tmp_path / "none"))
