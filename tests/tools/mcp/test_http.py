"""Servers at an address: real ones of the SDK, in both generations of the protocol, and how they come back."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from itertools import product
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from socket import gaierror
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from own_ca import make_ca

from mcp_http import (
    HELD,
    RESULTS,
    Answer,
    Request,
    connected,
    message,
    older,
    protocol,
    real_server,
    review,
    scripted,
    served,
)
from rows import every_row
from ybs.config import http_client
from ybs.config.host import Host
from ybs.config.sections import Network
from ybs.core.errors import ToolError
from ybs.tools.mcp import answers, connection, http, link
from ybs.tools.mcp.settings import check_line, filled, server_of

pytestmark = pytest.mark.integration

KINDS = [(modern, whole) for modern in (True, False) for whole in (True, False)]


@pytest.mark.parametrize(("is_modern", "is_json"), KINDS)
async def test_a_real_server_in_both_generations_and_both_kinds_of_answers(
    tmp_path: Path, is_modern: bool, is_json: bool
):
    server = real_server()
    app = server.streamable_http_app(json_response=is_json)
    async with served(app if is_modern else older(app)) as url, connected(tmp_path, url) as held:
        HELD.clear()
        await held.one.settled()
        assert held.one.problem == ""
        assert held.one.version >= "2026" if is_modern else held.one.version < "2026"
        assert [each.name for each in held.one.offer.tools] == ["add", "work", "grow", "headers"]
        assert await held.call("add", a=2, b=3) == "5"
        assert await held.call("work") == "worked"
        assert ([] if is_json else ["half (1 of 2)\n", "all (2 of 2)\n"]) == HELD
        link = await held.one.link()
        assert (await link.read("notes://one")).output == "the note"
        assert await link.prompt("review", {"what": "this"}) == "Review this."
        assert await held.call("grow") == "there is more"
        async with asyncio.timeout(5):
            while not held.one.reviewed.changed:  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0.005)
        assert len(held.one.offer.tools) == 4
        held.one.approve()
        assert await held.call("grown") == "grown"
    assert [*map(str, held.said)] == [
        each for each in map(str, held.said) if "has new tools, grown" in each
    ]


async def stream(*pieces: bytes, forever: bytes = b"") -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
    while forever:
        yield forever
        await asyncio.sleep(0)


def event(**said: Any) -> bytes:
    return b"data: " + json.dumps({"jsonrpc": "2.0", **said}).encode() + b"\n\n"


def events(*pieces: bytes, forever: bytes = b"") -> Answer:
    return Answer(kind="text/event-stream", pieces=stream(*pieces, forever=forever))


#: Limits of the tests: those that ybs has take seconds.
MOST = 300_000
PIECE = b"x" * 100_000


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the limits small, and do not wait for news of a loss."""
    for module in (answers, http):
        monkeypatch.setattr(module, "MOST_BYTES", MOST)
    monkeypatch.setattr(connection, "LOSS_SECONDS", 0.0)


BAD_STARTS: list[tuple[Callable[[], Answer], str]] = [
    (lambda: Answer(404, b"<html>", "text/html"), "there is no MCP server at this address (404 Not Found)"),
    (lambda: Answer(500, b"oops", "text/plain"), "it failed (500 Internal Server Error)"),
    (lambda: Answer(503, {"message": "down\x1b[2J"}), "it failed (503 Service Unavailable: down"),
    (lambda: Answer(403, b""), "it does not allow this (403 Forbidden)"),
    (lambda: Answer(200, b"<html>", "text/html"), "it answered with text/html, which is not a message of the protocol: check its url"),
    (lambda: Answer(200, b"{{{{"), "it answered with application/json, which is not"),
    (lambda: Answer(200, {"a": 1}), "it answered with JSON, which is not a message of the protocol"),
    (lambda: Answer(200, b"\x00\xff" * 9, "application/octet-stream"), "it answered with application/octet-stream, which"),
    (lambda: Answer(200, b""), "it answered with nothing, which is not"),
    (lambda: Answer(200, b"x", content_encoding="gzip"), "it answered in the encoding gzip, which was not asked for"),
    (lambda: Answer(pieces=stream(forever=PIECE)), "it answered with more than 300,000 bytes"),
    (lambda: events(b"data: ", forever=PIECE), "it sent a message that is too long"),
    (lambda: events(b"data: {{\n\n"), "it sent something that is not a message of the protocol"),
    (lambda: events(b": nothing\n\n"), "it ended its answer too early"),
    (lambda: Answer(307, location="http://127.0.0.1:1/mcp"), "Redirect to http://127.0.0.1:1/mcp not followed"),
]  # fmt: skip


async def test_what_is_not_a_server_is_named_as_what_it_is(tmp_path: Path, small: None):
    wrong: list[str] = []
    answers: list[Callable[[], Answer]] = []
    async with served(scripted(lambda _: answers[-1]())) as url:
        for answer, words in BAD_STARTS:
            answers.append(answer)
            async with connected(tmp_path, url) as held:
                await held.one.settled()
            if held.one.state != "failed" or not held.one.problem.startswith(words):
                wrong.append(f"{words!r}: {held.one.problem!r}")
    assert wrong == []


async def test_a_server_that_is_not_there_or_never_answers_is_given_up_in_time(tmp_path: Path):
    async with served(protocol()) as url:
        pass
    async with connected(tmp_path, url) as held:
        await held.one.settled()
        assert held.one.problem == "it cannot be reached: Connection refused"
    silent = scripted(lambda _: never())
    async with served(silent) as url, connected(tmp_path, url, start_seconds=0.2) as held:
        await held.one.settled()
        assert held.one.problem == "it was not ready within 0.2 s"
    async with served(silent) as url, connected(tmp_path, url, timeout_seconds=0.2) as held:
        await held.one.settled()
        assert held.one.problem.startswith("it did not answer")


@every_row(
    "cause, words",
    [
        (gaierror(-2, "Name or service not known"), "there is no such host"),
        (ConnectionRefusedError(111, "Connect call failed"), "Connection refused"),
        (ExceptionGroup("all", [ConnectionRefusedError(111, "x")]), "Connection refused"),
        (ValueError("odd"), "it broke"),
        (None, "it broke"),
    ],
)
def test_why_nobody_is_there_is_said_in_the_words_of_the_system(cause, words):
    error = httpx2.ConnectError("it broke")
    error.__cause__ = cause
    assert answers.reason_of(error) == words


async def never() -> Answer:
    await asyncio.Event().wait()
    raise AssertionError


LATE = "it did not answer"
BAD_CALLS: list[tuple[Callable[[Any], Any], str]] = [
    (lambda _: Answer(500, {"detail": "no disk"}), "it failed (500 Internal Server Error: no disk)"),
    (lambda _: Answer(pieces=stream(forever=PIECE)), "it answered with more than 300,000 bytes"),
    (lambda _: events(b"data: ", forever=PIECE), "it sent a message that is too long"),
    (lambda _: Answer(200, b"{"), "it answered with application/json, which is not a message"),
    (lambda _: events(event(method="notifications/x")), "it ended its answer too early"),
    (lambda _: never(), LATE),
    (lambda _: events(forever=event(method="notifications/message", params={"level": "info", "data": 1})), LATE),
]  # fmt: skip


async def test_a_call_that_is_answered_badly_fails_alone_in_time_and_in_bounds(tmp_path, small):
    """M04: too much, an event that is too long, an answer that never ends: the next call works."""
    wrong: list[str] = []
    answers: list[Callable[[Any], Any]] = []

    def answer(request: Request) -> Any:
        return answers.pop()(request) if b"tools/call" in request.body and answers else None

    async with served(protocol(answer)) as url, connected(tmp_path, url) as held:
        link: Any = await held.one.link()
        for bad, words in BAD_CALLS:
            answers.append(bad)
            link._seconds = 0.05 if words == LATE else 60.0  # else the time that is usual
            with pytest.raises(ToolError) as caught:
                await held.call("echo")
            if f"The server failed: {words}" not in str(caught.value):
                wrong.append(f"{words!r}: {caught.value}")
            link._seconds = 60.0
            assert await held.call("echo") == "done"
        assert held.said == []
    assert wrong == []


#: What stands around or in an answer `{}` with its id, and what the call brings: `done`, or the words of its failure.
ODD_FRAMES = [
    (b"event: reply\ndata: {}\n\n", "done"),  # another name
    (b"data: {}\n", "done"),  # no empty line behind it
    (b"data: {}", "done"),
    (b"data: {{ nothing\n\ndata: {}\n\n", "done"),  # a bad one first
    (b"data: [object Object]\ndata: {}\n\n", "done"),  # in one event with it
    (b'data: {{"jsonrpc": "2.0", "method": "notifications/x"}}\ndata: {}\n\n', "done"),  # two in one event
    (b"{}\n\n", "done"),  # not marked as data
    (b'data: {{\n"jsonrpc": "2.0",\n"id": ID, "result": {{"content": [{{"type": "text", "text": "done"}}]}}\n}}\n\n', "done"),
    (b"data: [{}]\n\n", "done"),  # a batch
    (b": ping\r\rid: 7\rretry: x\rdata:{}\r\r", "done"),
    (b'data: {{"jsonrpc": "2.0", "id": ID, "result": {{"content": [{{"type": "text", "text": "\\ud83d done"}}]}}}}\n\n', "\ufffd done"),
    (b"event: message\ndata: nothing\n\n", "it sent something that is not a message of the protocol"),
    (b"data: \n\n: ping\n\n", "it ended its answer too early"),
]  # fmt: skip


@pytest.mark.parametrize("cut", [1, 1_000_000])
async def test_an_event_in_an_odd_frame_is_read_and_a_bad_one_loses_nothing_else(tmp_path, cut):
    frames = list(ODD_FRAMES)

    def answer(request: Request) -> Any:
        if b"tools/call" not in request.body:
            return None
        number = json.dumps(request.json["id"]).encode()
        result = {"content": [{"type": "text", "text": "done"}]}
        said = event(id=request.json["id"], result=result)[6:].strip()
        text = frames.pop(0)[0].replace(b"{{", b"{").replace(b"}}", b"}").replace(b"{}", said)
        text = text.replace(b"ID", number)
        return events(*(text[at : at + cut] for at in range(0, len(text), cut)))

    wrong: list[Any] = []
    async with served(protocol(answer)) as url, connected(tmp_path, url) as held:
        for frame, words in ODD_FRAMES:
            try:
                got = await held.call("echo")
            except ToolError as error:
                got = str(error)
            if words != got and f"The server failed: {words}" not in got:
                wrong.append((frame, got))
        assert held.said == []
    assert wrong == []


@pytest.mark.slow
async def test_m04_a_hundred_megabytes_take_no_memory(tmp_path: Path):
    big = b"x" * 1_000_000
    kinds = [lambda: Answer(pieces=stream(forever=big)), lambda: events(b"data: ", forever=big)]
    answers: list[Callable[[], Answer]] = []
    before = getrusage(RUSAGE_SELF).ru_maxrss
    async with served(scripted(lambda _: answers[-1]())) as url:
        for kind in kinds:
            answers.append(kind)
            async with connected(tmp_path, url) as held:
                await held.one.settled()
                assert held.one.state == "failed"
    assert getrusage(RUSAGE_SELF).ru_maxrss - before < 150_000  # KB


async def test_a_server_that_goes_away_is_reached_again_when_it_is_back(tmp_path: Path):
    async with AsyncExitStack() as first:
        url = await first.enter_async_context(served(protocol()))
        async with connected(tmp_path, url) as held:
            assert await held.call("echo") == "done"
            await first.aclose()
            with pytest.raises(
                ToolError, match="was lost: it cannot be reached: Connection refused"
            ):
                await held.call("echo")
            async with served(protocol(), port=urlsplit(url).port or 0):
                assert await held.call("echo") == "done"
            assert held.said == [
                "The MCP server demo was lost and is started again: it cannot be reached: Connection refused."
            ]


@pytest.mark.parametrize("status", [404, 400])
async def test_a_session_that_the_server_forgot_is_begun_anew(tmp_path: Path, status: int):
    sessions: list[str] = []

    def answer(request: Request) -> Any:
        if b'"initialize"' in request.body:
            sessions.append(f"s{len(sessions)}")
            return None
        given = request.headers.get("mcp-session-id")
        if b"server/discover" in request.body or given == sessions[-1]:
            return None
        return Answer(
            status,
            {"jsonrpc": "2.0", "id": "x", "error": {"code": -32600, "message": "Unknown session"}},
        )

    def app(request: Request) -> Any:
        got = answer(request)
        if got is None and b'"initialize"' in request.body:
            return message(request.json, RESULTS["initialize"], session=sessions[-1])
        return got

    async with served(protocol(app)) as url, connected(tmp_path, url) as held:
        assert await held.call("echo") == "done"
        sessions.append("another")
        with pytest.raises(ToolError, match="was lost: it has forgotten the session"):
            await held.call("echo")
        assert await held.call("echo") == "done"
        assert sessions == ["s0", "another", "s2"]


@pytest.mark.parametrize("is_modern", [True, False])
async def test_a_call_that_is_cancelled_is_cancelled_at_the_server(tmp_path: Path, is_modern: bool):
    server, began, ended = real_server(), asyncio.Event(), asyncio.Event()

    @server.tool()
    async def wait() -> str:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    app = server.streamable_http_app()
    async with served(app if is_modern else older(app)) as url, connected(tmp_path, url) as held:
        calling = asyncio.create_task(held.call("wait"))
        await began.wait()
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        async with asyncio.timeout(5):
            await ended.wait()
        assert await held.call("add", a=1, b=1) == "2"


async def test_headers_take_variables_and_one_that_is_not_set_is_named(tmp_path: Path):
    host = Host.of({"HOME": str(tmp_path), "DEMO_KEY": "k" * 9})
    headers = {"Authorization": "Bearer ${DEMO_KEY}", "X-Team": "${TEAM:-none}"}
    async with served(real_server().streamable_http_app()) as url:
        async with connected(tmp_path, url, host=host, headers=headers) as held:
            seen = json.loads(await held.call("headers"))
            assert (seen["authorization"], seen["x-team"]) == ("Bearer kkkkkkkkk", "none")
            assert seen["accept-encoding"] == "identity"
            assert seen["user-agent"].startswith("ybs/")
        async with connected(tmp_path, url, host=host, headers={"A": "${NOT_SET}"}) as held:
            await held.one.settled()
            assert held.one.problem == "it names the variable NOT_SET, which is not set"


async def test_localhost_is_the_server_of_the_person_that_listens_there(
    tmp_path: Path, monkeypatch
):
    async with served(real_server().streamable_http_app()) as url:
        place = urlsplit(url.replace("127.0.0.1", "localhost")).netloc
        for hosts in (
            ["127.0.0.1", "::1"],
            ["::1", "127.0.0.1"],
        ):  # nobody listens at the other one
            monkeypatch.setattr(http_client, "loopback_hosts", lambda _, hosts=hosts: hosts)
            async with connected(tmp_path, f"http://{place}/mcp", headers={"X-Key": "k"}) as held:
                seen = json.loads(await held.call("headers"))
                assert (seen["host"], seen["x-key"]) == (place, "k")


async def test_a_key_that_is_refused_is_not_a_login(tmp_path: Path):
    app = scripted(lambda _: Answer(401, {"error": "bad key"}, www_authenticate="Bearer"))
    key = {"Authorization": "Bearer 1"}
    async with served(app) as url, connected(tmp_path, url, headers=key) as held:
        await held.one.settled()
        assert held.one.problem == (
            "it does not accept the key in its headers (401 Unauthorized: bad key)"
        )


async def test_m08_a_redirect_at_the_first_message_is_named_and_gets_nothing(tmp_path: Path):
    asked: list[Request] = []
    elsewhere = scripted(lambda request: asked.append(request) or Answer(200, b"{}"))
    async with served(elsewhere) as other:
        # Another port, the same host in another spelling, another scheme, an address with a name in it.
        for to in (
            other,
            other.replace("127.0.0.1", "localhost"),
            other.replace("http:", "https:"),
            other.replace("http://", "http://me:words@"),
            other.replace("http:", ""),
        ):
            app = scripted(lambda _, to=to: Answer(307, location=to))
            async with (
                served(app) as url,
                connected(tmp_path, url, headers={"Authorization": "Bearer abc"}) as held,
            ):
                await held.one.settled()
                assert "not followed" in held.one.problem
                assert "words" not in held.one.problem
    assert asked == []


REDIRECTS = [301, 302, 307, 308]


async def test_m08_what_a_server_redirects_to_gets_nothing(tmp_path: Path, small: None):
    asked: list[Request] = []
    redirects: list[Answer] = []
    elsewhere = scripted(lambda request: asked.append(request) or Answer(200, b"{}"))

    def answer(request: Request) -> Any:
        return redirects[-1] if b"tools/call" in request.body else None

    headers = {"Authorization": "Bearer abc", "X-Key": "def"}
    async with (
        served(elsewhere) as other,
        served(protocol(answer)) as url,
        connected(tmp_path, url, headers=headers) as held,
    ):
        await held.one.settled()
        for status, to in product(REDIRECTS, (other, other.replace("127.0.0.1", "localhost"))):
            redirects.append(Answer(status, location=to))
            with pytest.raises(ToolError, match=r"Redirect to .* not followed"):
                await held.call("echo")
    assert asked == []


async def test_a_redirect_on_the_same_server_is_followed(tmp_path: Path):
    seen: list[str] = []

    def answer(request: Request) -> Any:
        seen.append(request.headers.get("authorization", ""))
        return None if request.path.endswith("/") else Answer(307, location="/mcp/")

    key = {"Authorization": "Bearer abc"}
    async with served(protocol(answer)) as url, connected(tmp_path, url, headers=key) as held:
        assert await held.call("echo") == "done"
    assert set(seen) == {"Bearer abc"}


CLEAR = {"KEY": "k", "HOST": "far.example", "URL": "http://far.example/mcp"}


async def test_keys_do_not_go_over_an_open_line(tmp_path: Path):
    host = Host.of({**os.environ, **CLEAR})
    for url, given, what in (
        ("http://far.example/mcp", {"headers": {"X-Key": "1"}}, "its headers"),
        ("http://far.example/mcp?key=${KEY}", {}, "a variable in its url"),
        ("http://far.example/${KEY}/mcp", {}, "a variable in its url"),
        ("${URL}?key=${KEY}", {}, "a variable in its url"),
        ("http://${KEY}:x@far.example/mcp", {}, "the login in its url"),
    ):
        async with connected(tmp_path, url, host=host, **given) as held:
            await held.one.settled()
            assert held.one.problem.startswith(f"{what} would go over http://")


@every_row(
    "url", ["https://${HOST}/${KEY}", "http://${HOST}:80/mcp", "${URL}", "http://[::1]/${KEY}"]
)
def test_a_variable_may_go_over_a_line_that_nobody_reads_or_name_the_server(url: str):
    server = server_of("demo", {"url": url})
    check_line(server, filled(server, CLEAR))


async def test_a_certificate_of_ones_own_authority_and_a_proxy_on_the_way(tmp_path: Path):
    ca_file, context = make_ca(tmp_path, "mcp.example.org")
    async with served(protocol(), certificates=context) as url, tunnel(url) as (proxy, asked):
        far = url.replace("127.0.0.1", "mcp.example.org")
        trusted = Network(proxy=proxy, ca_file=str(ca_file))
        async with connected(tmp_path, far, network=trusted) as held:
            assert await held.call("echo") == "done"
        assert set(asked) == {f"CONNECT mcp.example.org:{urlsplit(url).port} HTTP/1.1"}
        async with connected(tmp_path, far, network=Network(proxy=proxy)) as held:
            await held.one.settled()
            assert held.one.problem.startswith(
                "it cannot be reached: its certificate is not trusted (unable to get local issuer"
            )
        broken = Network(ca_file=str(tmp_path / "none.pem"))
        async with connected(tmp_path, far, network=broken) as held:
            await held.one.settled()
            assert held.one.problem.endswith("none.pem, cannot be used: No such file or directory")
    odd = Network(proxy="gopher://x")
    async with connected(tmp_path, "https://mcp.example.org/mcp", network=odd) as held:
        await held.one.settled()
        assert held.one.problem == "the address of the proxy cannot be used"


@asynccontextmanager
async def tunnel(to: str) -> AsyncGenerator[tuple[str, list[str]]]:
    """Run a proxy that tunnels to one server, whatever it is asked for. At the end its connections are closed."""
    asked: list[str] = []
    relays: list[asyncio.Task[None]] = []

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65_536):
                writer.write(data)
        writer.close()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers = [writer]
        try:
            asked.append((await reader.readuntil(b"\r\n\r\n")).split(b"\r\n", 1)[0].decode())
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", urlsplit(to).port)
            writers.append(far_writer)
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            await asyncio.gather(copy(reader, far_writer), copy(far_reader, writer))
        finally:
            for each in writers:
                each.close()
            with suppress(ConnectionError):
                for each in writers:
                    await each.wait_closed()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        relays.append(asyncio.create_task(relay(reader, writer)))

    proxy = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with proxy:
        yield f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}", asked
        for each in relays:
            each.cancel()
        await asyncio.gather(*relays, return_exceptions=True)


async def test_a_stream_of_news_that_breaks_off_is_opened_again(tmp_path, monkeypatch):
    monkeypatch.setattr(link, "FIRST_PAUSE_SECONDS", 0.0)
    server = real_server()
    inner, begun = server.streamable_http_app(), asyncio.Event()
    opened = list[asyncio.Future[None]]()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        headers = dict(scope.get("headers", ()))
        if headers.get(b"mcp-method") != b"subscriptions/listen":
            await inner(scope, receive, send)
            return

        async def sending(message: Any) -> None:
            await send(message)
            if message.get("body"):
                begun.set()

        opened.append(asyncio.ensure_future(inner(scope, receive, sending)))
        with suppress(asyncio.CancelledError):
            await opened[-1]

    async with served(app) as url, connected(tmp_path, url) as held:
        await held.one.settled()
        async with asyncio.timeout(8):
            await begun.wait()
            server.add_tool(review, name="later")  # and nobody says so
            opened[0].cancel()
            while not held.one.reviewed.changed:  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0.001)
        assert len(opened) == 2


async def test_a_server_of_the_older_transport_is_used(tmp_path, monkeypatch):
    """Its address ends in /sse, or its entry says so."""
    monkeypatch.setattr("logging.debug", print)  # the SDK's server would set up logging
    app = real_server().sse_app()
    async with served(app) as url:
        base = url.rpartition("/")[0]
        async with connected(tmp_path, f"{base}/sse") as held:
            await held.one.settled()
            assert held.one.problem == ""
            assert [each.name for each in held.one.offer.tools] == [
                "add",
                "work",
                "grow",
                "headers",
            ]
            assert await held.call("add", a=2, b=3) == "5"
        async with connected(tmp_path, f"{base}/nowhere", type="sse") as held:
            await held.one.settled()
            assert held.one.problem == "there is no MCP server at this address (404 Not Found)"


async def test_a_stream_of_the_older_transport_that_ends_is_told(tmp_path: Path):
    async def pieces() -> AsyncIterator[bytes]:
        yield b"event: endpoint\ndata: /messages\n\n"

    def answer(request: Request) -> Answer:
        return (
            Answer(pieces=pieces(), kind="text/event-stream")
            if request.method == "GET"
            else Answer(202)
        )

    async with served(scripted(answer)) as url, connected(tmp_path, url, type="sse") as held:
        async with asyncio.timeout(5):
            await held.one.settled()
        assert held.one.state == "failed"
        assert "it ended the stream of its answers" in held.one.problem


async def test_a_message_that_the_older_transport_refuses_is_told_at_once(tmp_path: Path):
    async def pieces() -> AsyncIterator[bytes]:
        yield b"event: endpoint\ndata: /messages\n\n"
        await asyncio.Event().wait()

    def answer(request: Request) -> Answer:
        is_stream = request.method == "GET"
        return (
            Answer(pieces=pieces(), kind="text/event-stream")
            if is_stream
            else Answer(403, {"message": "no plan"})
        )

    async with served(scripted(answer)) as url, connected(tmp_path, url, type="sse") as held:
        async with asyncio.timeout(5):
            await held.one.settled()
        assert "no plan" in held.one.problem
