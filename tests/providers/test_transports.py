import asyncio
import gzip
import socket
import zlib
from contextlib import aclosing
from ssl import SSLCertVerificationError, SSLError

import pytest
from raw_http import http, unending

from rows import every_row
from ybs.providers.http.httpx_transport import HttpxTransport, start_importing
from ybs.providers.http.plain_http import PlainTransport
from ybs.providers.http.transport import CutOff, HttpRequest, Unreachable, reason_of


@pytest.fixture(params=["plain", "httpx2"])
async def connect(request):
    """Give a function that opens one of the two transports: both must do the same."""
    opened = []

    def open_to(url: str):
        if request.param == "plain":
            opened.append(PlainTransport(url, connect_seconds=5))
        else:
            opened.append(HttpxTransport(connect_seconds=5))
        return opened[-1]

    yield open_to
    for transport in opened:
        await transport.aclose()


def call(url: str, body: bytes = b'{"a":1}', method: str = "POST") -> HttpRequest:
    return HttpRequest(method=method, url=f"{url}/v1/x?y=1", headers={"x-one": "1"}, body=body)


async def read(response) -> bytes:
    async with aclosing(response.chunks()) as chunks:
        return b"".join([chunk async for chunk in chunks])


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@pytest.mark.integration
async def test_a_request_arrives_whole_and_its_answer_too(serve, connect):
    server = await serve(http("hello", x_two="2", status="201 Created"))
    response = await connect(server.url).send(call(server.url))
    assert (response.status, response.headers["x-two"]) == (201, "2")
    assert await read(response) == b"hello"
    (asked,) = server.asked
    assert (asked.method, asked.path, asked.body) == ("POST", "/v1/x?y=1", {"a": 1})
    assert asked.headers["x-one"] == "1"
    assert asked.headers["host"] == f"127.0.0.1:{server.port}"


@pytest.mark.integration
async def test_a_get_has_no_body(serve, connect):
    server = await serve(http("{}"))
    await read(await connect(server.url).send(call(server.url, b"", "GET")))
    assert "content-length" not in server.asked[0].headers


@pytest.mark.integration
async def test_a_connection_is_used_again(serve, connect):
    server = await serve(http("one"), http("two"))
    transport = connect(server.url)
    answers = [await read(await transport.send(call(server.url))) for _ in range(2)]
    assert answers == [b"one", b"two"]
    assert server.connections == 1


async def test_two_calls_at_once_have_two_connections(serve, connect):
    server = await serve(http("one"), http("two"))
    transport = connect(server.url)
    responses = [await transport.send(call(server.url)) for _ in range(2)]
    assert {await read(response) for response in responses} == {b"one", b"two"}
    assert server.connections == 2


async def test_a_connection_that_the_server_closed_meanwhile_is_replaced(serve, connect):
    server = await serve(http("one", connection="close"), http("two"))
    transport = connect(server.url)
    answers = [await read(await transport.send(call(server.url))) for _ in range(2)]
    assert answers == [b"one", b"two"]
    assert server.connections == 2


async def test_a_chunked_body_is_joined(serve, connect):
    body = b"5;x=1\r\nhello\r\n1\r\n \r\n5\r\nworld\r\n0\r\nt: 1\r\n\r\n"
    server = await serve(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body)
    assert await read(await connect(server.url).send(call(server.url))) == b"hello world"


async def test_a_request_is_written_at_once(serve, monkeypatch: pytest.MonkeyPatch):
    server = await serve(http("hello"))
    transport = PlainTransport(server.url, connect_seconds=5)
    written: list[bytes] = []
    write = asyncio.StreamWriter.write
    note = lambda self, data: (written.append(data), write(self, data))[1]  # noqa: E731
    await transport.warm_up()
    monkeypatch.setattr(asyncio.StreamWriter, "write", note)
    response = await transport.send(call(server.url))
    monkeypatch.undo()
    own = [data for data in written if data.startswith(b"POST") or data.endswith(b'{"a":1}')]
    assert (len(own), await read(response)) == (1, b"hello")
    await transport.aclose()


@pytest.mark.integration
@every_row("size", [1, 2, 3, 7, 1000])
async def test_a_chunked_body_is_joined_wherever_it_is_cut(serve, connect, size: int):
    long = b"x" * 300
    body = b"5\r\nhello\r\n12C;x=1\r\n%s\r\n0\r\nt: 1\r\n\r\n" % long
    answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body

    async def write(writer: asyncio.StreamWriter) -> None:
        for start in range(0, len(answer), size):
            writer.write(answer[start : start + size])
            await asyncio.sleep(0)

    server = await serve(write)
    transport = connect(server.url)
    assert await read(await transport.send(call(server.url))) == b"hello" + long


@pytest.mark.integration
async def test_chunks_that_came_together_are_one_piece(serve):
    body = b"".join(b"6\r\nhello\n\r\n" for _ in range(50)) + b"0\r\n\r\n"
    server = await serve(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body)
    transport = PlainTransport(server.url, connect_seconds=5)
    response = await transport.send(call(server.url))
    await asyncio.sleep(0.05)  # all of it comes
    async with aclosing(response.chunks()) as chunks:
        assert [chunk async for chunk in chunks] == [b"hello\n" * 50]
    await transport.aclose()


async def test_what_comes_behind_a_chunked_body_is_not_the_next_answer(serve):
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    server = await serve(head + b"3\r\none\r\n0\r\n\r\n" + http("forged"), http("two"))
    transport = PlainTransport(server.url, connect_seconds=5)
    answers = [await read(await transport.send(call(server.url))) for _ in range(2)]
    assert answers == [b"one", b"two"]
    await transport.aclose()


async def test_a_body_may_end_with_the_connection(serve, connect):
    server = await serve(unending("hello"))
    assert await read(await connect(server.url).send(call(server.url))) == b"hello"


async def test_a_packed_body_is_unpacked_although_nobody_asked_for_it(serve, connect):
    body = b"data: {}\n\n" * 500
    for encoding, packed in (("gzip", gzip.compress(body)), ("deflate", zlib.compress(body))):
        server = await serve(http(packed, content_encoding=encoding))
        assert await read(await connect(server.url).send(call(server.url))) == body


async def test_each_piece_of_a_packed_stream_is_read_as_it_comes(serve, connect):
    packer = zlib.compressobj(wbits=31)
    pieces = [packer.compress(b"one") + packer.flush(zlib.Z_SYNC_FLUSH), packer.flush()]
    go_on = asyncio.Event()

    async def stream(writer: asyncio.StreamWriter) -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n"
        writer.write(head + pieces[0])
        await go_on.wait()
        writer.write(pieces[1])

    server = await serve(stream)
    response = await connect(server.url).send(call(server.url))
    async with aclosing(response.chunks()) as chunks:
        seen = b""
        while not seen:
            seen = await anext(chunks)
        assert seen == b"one"
        go_on.set()
        assert not b"".join([chunk async for chunk in chunks])


async def test_a_body_in_an_unknown_or_damaged_encoding_is_cut_off(serve):
    for encoding in ("br", "gzip"):
        server = await serve(http(b"not packed", content_encoding=encoding))
        transport = PlainTransport(server.url, connect_seconds=5)
        with pytest.raises(CutOff, match=r"encoding br|damaged"):
            await read(await transport.send(call(server.url)))
        await transport.aclose()


async def test_a_large_body_comes_whole(serve, connect):
    server = await serve(http(b"x" * 500_000))
    assert len(await read(await connect(server.url).send(call(server.url)))) == 500_000


async def test_an_answer_without_a_body(serve, connect):
    server = await serve(b"HTTP/1.1 204 No Content\r\n\r\n")
    assert await read(await connect(server.url).send(call(server.url))) == b""


async def test_a_continue_is_passed_over(serve, connect):
    server = await serve(b"HTTP/1.1 100 Continue\r\n\r\n" + http("ok"))
    assert await read(await connect(server.url).send(call(server.url))) == b"ok"


@every_row(
    "reply",
    [
        b"",
        b"HTTP/1.1 200",
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        b"HTTP/1.1 banana\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"x: " + b"y" * 200_000 + b"\r\n\r\n",
    ],
)
async def test_an_answer_that_is_no_http_is_cut_off(serve, connect, reply: bytes):
    server = await serve(reply)
    with pytest.raises(CutOff):
        await connect(server.url).send(call(server.url))


@every_row(
    "reply",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhel",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n-5\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + b"5" * 200_000,
    ],
)
async def test_a_body_that_breaks_off_is_cut_off(serve, connect, reply: bytes):
    server = await serve(reply)
    response = await connect(server.url).send(call(server.url))
    with pytest.raises(CutOff):
        await read(response)
    await response.aclose()


async def test_nobody_there_is_unreachable(connect):
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(Unreachable, match=r"^connection refused$"):
        await connect(url).send(call(url))


async def test_closing_an_answer_stops_the_server(serve, connect):
    async def write_for_ever(writer: asyncio.StreamWriter) -> None:
        writer.write(unending("first"))
        await server.gone.wait()

    server = await serve(write_for_ever)
    response = await connect(server.url).send(call(server.url))
    async with aclosing(response.chunks()) as chunks:
        assert await anext(chunks) == b"first"
    await response.aclose()
    await asyncio.wait_for(server.gone.wait(), 5)


async def test_cancelling_a_call_stops_the_server(serve, connect):
    asked = asyncio.Event()

    async def never(writer: asyncio.StreamWriter) -> None:
        asked.set()
        await server.gone.wait()

    server = await serve(never)
    transport = connect(server.url)
    sending = asyncio.create_task(transport.send(call(server.url)))
    await asked.wait()
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    await asyncio.wait_for(server.gone.wait(), 5)


# The plain one alone


async def test_warming_up_connects_ahead(serve):
    server = await serve(http("ok"))
    transport = PlainTransport(server.url, connect_seconds=5)
    await transport.warm_up()
    await read(await transport.send(call(server.url)))
    assert server.connections == 1
    await transport.aclose()


async def test_warming_up_leaves_failures_to_the_call():
    await PlainTransport(f"http://127.0.0.1:{free_port()}", connect_seconds=5).warm_up()


async def test_localhost_is_found_without_a_name_server(serve):
    server = await serve(http("ok"))
    transport = PlainTransport(f"http://localhost:{server.port}", connect_seconds=5)
    assert await read(await transport.send(call(server.url))) == b"ok"
    assert server.asked[0].headers["host"] == f"localhost:{server.port}"
    await transport.aclose()


async def test_a_stale_connection_is_tried_once_and_then_replaced(serve):
    async def hang_up(writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await serve(http("one"), hang_up, http("two"))
    transport = PlainTransport(server.url, connect_seconds=5)
    assert await read(await transport.send(call(server.url))) == b"one"
    assert await read(await transport.send(call(server.url))) == b"two"
    await transport.aclose()


async def test_idle_connections_that_the_server_closed_are_thrown_away(serve):
    server = await serve(http("one"), http("two"))
    transport = PlainTransport(server.url, connect_seconds=5)
    await transport.warm_up()
    transport._idle[0].close()
    assert await read(await transport.send(call(server.url))) == b"one"
    assert transport._idle[0].is_open
    await transport.aclose()


async def test_a_name_that_cannot_be_one_is_unreachable():
    url = f"http://{'x' * 70}.example"
    with pytest.raises(Unreachable, match="no such host name"):
        await PlainTransport(url, connect_seconds=5).send(call(url))


async def test_http_1_0_closes(serve):
    server = await serve(b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok")
    transport = PlainTransport(server.url, connect_seconds=5)
    for _ in range(2):
        assert await read(await transport.send(call(server.url))) == b"ok"
    assert server.connections == 2


async def test_an_answer_is_read_once(serve):
    server = await serve(http("one"))
    transport = PlainTransport(server.url, connect_seconds=5)
    response = await transport.send(call(server.url))
    assert (await read(response), await read(response)) == (b"one", b"")
    await response.aclose()
    await transport.aclose()


# The other one alone


async def test_httpx2_is_imported_once_and_warmed_up_in_a_thread():
    assert start_importing() is start_importing()
    transport = HttpxTransport(connect_seconds=5)
    await transport.warm_up()
    await transport.aclose()


async def test_an_address_that_httpx2_refuses_is_cut_off():
    transport = HttpxTransport(connect_seconds=5)
    with pytest.raises(CutOff):
        await transport.send(HttpRequest(method="GET", url="https://[::1", headers={}))
    await transport.aclose()


async def test_a_proxy_is_used_only_where_it_is_asked_for(serve, monkeypatch: pytest.MonkeyPatch):
    server, proxy = await serve(http("direct")), await serve(http("by proxy"))
    monkeypatch.setenv("HTTP_PROXY", proxy.url)  # no library reads it on its own
    answers = []
    for asked_for in (None, proxy.url):
        transport = HttpxTransport(connect_seconds=5, proxy=asked_for)
        answers.append(await read(await transport.send(call(server.url))))
        await transport.aclose()
    assert answers == [b"direct", b"by proxy"]


# Reasons


def unverified(why: str) -> SSLError:
    error = SSLCertVerificationError(1, "certificate verify failed")
    error.verify_message = why
    return error


@every_row(
    ("error", "reason"),
    [
        (ConnectionRefusedError(), "connection refused"),
        (socket.gaierror(-2, "x"), "no such host name"),
        (SSLError(1, "certificate verify failed"), "TLS failed: certificate verify failed"),
        (unverified("self-signed certificate"), "TLS failed: self-signed certificate"),
        (TimeoutError(), "connecting took too long"),
        (OSError(113, "x"), "there is no network route to it"),
        (OSError(24, "Too many  open files"), "[Errno 24] Too many open files"),
        (OSError(), "OSError"),
        (
            ExceptionGroup("all failed", [OSError(5, "x"), ConnectionRefusedError()]),
            "connection refused",
        ),
    ],
)
def test_the_reason_in_a_few_words(error: BaseException, reason: str):
    assert reason_of(error) == reason


def test_the_reason_is_found_behind_other_errors():
    error = RuntimeError("All connection attempts failed")
    error.__cause__ = ExceptionGroup("x", [ConnectionRefusedError()])
    assert reason_of(error) == "connection refused"


@pytest.mark.integration
async def test_what_a_server_sets_for_one_call_is_not_sent_with_the_next(serve, connect):
    """Sessions share a transport: a cookie would tell one of them by the other."""
    server = await serve(http("hello", set_cookie="who=one; Path=/"))
    transport = connect(server.url)
    for _ in range(2):
        await read(await transport.send(call(server.url)))
    assert [each.headers.get("cookie") for each in server.asked] == [None, None]


@pytest.mark.integration
async def test_who_warms_up_beside_others_makes_no_connection_more(serve):
    server = await serve(http("hello"))
    transport = PlainTransport(server.url, connect_seconds=5)
    await asyncio.gather(*(transport.warm_up() for _ in range(5)))
    assert server.connections == 1
    await transport.aclose()
