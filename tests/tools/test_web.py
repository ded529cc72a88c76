"""Pages for tools: nothing of this machine and its network, whatever names, redirects and addresses say."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from rows import every_row
from ybs.tools import web
from ybs.tools.web import NotFetched, fetch, is_public

pytestmark = pytest.mark.integration

seen: list[tuple[str, str]] = []


class Pages(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        seen.append((self.headers["Host"], self.path))
        status, kind, body, more = 200, "text/html; charset=iso-8859-1", "<p>caf\xe9</p>".encode("latin-1"), {}  # fmt: skip
        match self.path:
            case "/long":
                body = b"x" * 3_000_000
            case "/gone":
                status = 404
            case path if path.startswith("/to/"):
                status, more = 302, {"Location": path.removeprefix("/to/")}
            case "/round":
                status, more = 302, {"Location": "/round"}
            case _:
                pass
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in more.items():
            self.send_header(name, value)
        self.end_headers()
        with suppress(OSError):  # who asked has enough
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    server.handle_error = lambda *_: None  # pyright: ignore[reportAttributeAccessIssue]
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    seen.clear()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def public(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have names ending in `.example` lead here, and this machine count as public under them alone."""
    real = web._addresses  # pyright: ignore[reportPrivateUsage]

    def addresses(host: str, port: int) -> list[str]:
        return ["127.0.0.1"] if host.endswith(".example") else list(real(host, port))

    judged = web._checked  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(web, "_addresses", addresses)
    monkeypatch.setattr(
        web,
        "_checked",
        lambda url, is_trusted: judged(url, is_trusted=is_trusted or url.host.endswith(".example")),
    )


@pytest.mark.usefixtures("public")
def test_a_page_is_read_with_its_own_encoding():
    with serving() as port:
        page = fetch(f"http://site.example:{port}/page")
        assert (page.text, page.content_type) == ("<p>café</p>", "text/html")
        assert seen == [(f"site.example:{port}", "/page")]
        cut = fetch(f"http://site.example:{port}/long", most_bytes=1_000)
        assert (len(cut.data), cut.is_cut) == (1_000, True)


@pytest.mark.usefixtures("public")
@every_row(
    "target",
    ["http://127.0.0.1:{}/", "http://localhost:{}/", "//[::1]:{}/", "http://[::ffff:127.0.0.1]:{}/", "http://2130706433:{}/"],
)  # fmt: skip
def test_a_redirect_to_this_machine_is_refused(target: str):
    with serving() as port:
        with pytest.raises(NotFetched, match=r"not an address of the public web|is not known"):
            fetch(f"http://site.example:{port}/to/{target.format(port)}")
        assert [path for _, path in seen if path == "/"] == []


@pytest.mark.usefixtures("public")
def test_what_cannot_be_fetched_is_said():
    with serving() as port:
        for path, words in {
            "/gone": "answers 404",
            "/round": "redirects more than 5 times",
            "/to/file:///etc/passwd": "begins with http:// or https://",
        }.items():
            with pytest.raises(NotFetched, match=words):
                fetch(f"http://site.example:{port}{path}")
    for bad in ("file:///etc/passwd", "gopher://x/", "no address", "http://", "data:text/plain,x"):
        with pytest.raises(NotFetched):
            fetch(bad)
    with pytest.raises(NotFetched, match="could not be reached"):
        fetch("http://site.example:1/")


def test_one_that_the_person_named_may_be_here_but_may_not_send_on():
    with serving() as port:
        assert fetch(f"http://127.0.0.1:{port}/page", is_trusted=True).text == "<p>café</p>"
        with pytest.raises(NotFetched, match="not an address of the public web"):
            fetch(f"http://127.0.0.1:{port}/page")
        with pytest.raises(NotFetched, match="not an address of the public web"):
            fetch(f"http://127.0.0.1:{port}/to/http://127.0.0.1:{port}/page", is_trusted=True)


@every_row(
    "address",
    ["127.0.0.1", "10.1.2.3", "192.168.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "::1", "::", "fe80::1%eth0", "fd00::1",
     "fec0::1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "224.0.0.1", "255.255.255.255"],
)  # fmt: skip
def test_addresses_that_are_not_public(address: str):
    assert not is_public(address)


def test_addresses_that_are_public():
    assert all(map(is_public, ("8.8.8.8", "2001:4860:4860::8888", "::ffff:8.8.8.8")))


def test_localhost_is_the_address_at_which_the_persons_own_server_listens(monkeypatch):
    """Of a search server that they named; at the other address another user of the machine may listen."""
    with serving() as port:
        monkeypatch.setattr(web, "loopback_hosts", lambda _: ["127.0.0.1", "::1"])
        assert fetch(f"http://localhost:{port}/page", is_trusted=True).text
        monkeypatch.setattr(web, "loopback_hosts", lambda _: ["::1", "127.0.0.1"])
        with pytest.raises(NotFetched, match="could not be reached"):
            fetch(f"http://localhost:{port}/page", is_trusted=True)
    assert [path for _, path in seen] == ["/page"]
