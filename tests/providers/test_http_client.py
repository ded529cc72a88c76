import asyncio
from base64 import b64encode
from contextlib import aclosing
from urllib.parse import quote

import pytest
from raw_http import chunk, http, sse, unending

from rows import every_row
from ybs.commands.advice import told
from ybs.config.addresses import is_local, is_loopback
from ybs.core.errors import (
    AuthError,
    ConfigError,
    ContextTooLong,
    ModelError,
    ProviderDown,
    RateLimited,
)
from ybs.providers.http import plain_http
from ybs.providers.http.client import HttpClient, Patience, host_of, open_transport
from ybs.providers.http.failures import BadRequest, NotServed, Site
from ybs.providers.http.httpx_transport import HttpxTransport
from ybs.providers.http.plain_http import PlainTransport
from ybs.providers.wire.framing import DONE

SECRET = "sk-" + "b2" * 16


@pytest.fixture
async def client_of():
    """Give a function that makes a client of an address."""
    made: list[HttpClient] = []

    def make(url: str, **patience: float) -> HttpClient:
        made.append(new_client(url, **patience))
        return made[-1]

    yield make
    for client in made:
        await client.aclose()


def new_client(url: str, **patience: float) -> HttpClient:
    site = Site(provider="openai", endpoint=url, host=url.partition("://")[2], model="m")
    return HttpClient(
        site,
        patience=Patience(**{"first": 5.0, "later": 5.0, **patience}),
        headers={"authorization": f"Bearer {SECRET}"},
        secret=SECRET,
    )


async def ask(client: HttpClient, **options) -> list[dict]:
    async with aclosing(client.stream("/chat", {"a": "ü"}, **options)) as frames:
        return [frame async for frame in frames]


@pytest.fixture
async def failure(serve, client_of):
    """Give a function that returns the error which a reply leads to."""

    async def fail(reply, **patience: float) -> ModelError:
        server = await serve(reply)
        client = client_of(server.url, **patience)
        with pytest.raises(ModelError) as caught:
            await ask(client)
        text = str(caught.value)
        assert SECRET not in text
        assert text.count("\n") <= 1
        assert f"openai at 127.0.0.1:{server.port}" in text
        return caught.value

    return fail


async def test_a_login_in_an_address_goes_where_localhost_is_the_persons_own(
    serve, client_of, monkeypatch
):
    """Another user may listen at the other address that `localhost` means."""
    server = await serve(http("{}", type="application/json"))
    monkeypatch.setattr(plain_http, "loopback_hosts", lambda _port: ["127.0.0.1", "::1"])
    password = "sesame" + "/!"
    login = f"bob:{quote(password, safe='')}"
    client = client_of(f"http://{login}@localhost:{server.port}/v1")
    assert await client.fetch("GET", "/models") == {}
    monkeypatch.setattr(plain_http, "loopback_hosts", lambda _port: [])
    elsewhere = client_of(f"http://{login}@localhost:{server.port}/v1")
    with pytest.raises(ProviderDown):
        await elsewhere.fetch("GET", f"http://{login}@localhost:{server.port}/props")
    (asked,) = server.asked
    assert asked.path == "/v1/models"
    assert asked.headers["host"] == f"localhost:{server.port}"
    assert asked.headers["authorization"] == f"Basic {b64encode(b'bob:sesame/!').decode()}"


async def test_a_stream_gives_its_frames(serve, client_of):
    server = await serve(http(sse(chunk({"content": "a"}), chunk({}, "stop"))))
    client = client_of(server.url)
    frames = await ask(client)
    assert frames == [chunk({"content": "a"}), chunk({}, "stop"), {}]
    assert frames[-1] is DONE
    (asked,) = server.asked
    assert (asked.method, asked.path, asked.body) == ("POST", "/chat", {"a": "ü"})
    assert asked.headers["content-type"] == "application/json"
    assert asked.headers["authorization"] == f"Bearer {SECRET}"
    assert asked.headers["accept-encoding"] == "identity"
    assert "text/event-stream" in asked.headers["accept"]


@pytest.mark.parametrize("type", ["application/json", "text/plain", "text/event-stream"])
async def test_a_whole_answer_is_one_frame_whatever_its_type(serve, client_of, type: str):
    server = await serve(http('{\n "choices": []\n}', type=type))
    assert await ask(client_of(server.url)) == [{"choices": []}]


async def test_two_values_on_a_line_are_two_frames(serve, client_of):
    server = await serve(http('{"n":1}{"n":2}\n', type="application/x-ndjson"))
    frames = await ask(client_of(server.url), framing="ndjson")
    assert frames == [{"n": 1}, {"n": 2}]
    assert "ndjson" in server.asked[0].headers["accept"]


async def test_utf8_cut_between_chunks_is_whole_again(serve, client_of):
    data = 'data: {"t": "größer"}\n\n'.encode()
    cut = data.index(b"\xc3") + 1

    async def in_two(writer: asyncio.StreamWriter) -> None:
        writer.write(unending(data[:cut]))
        await writer.drain()
        await asyncio.sleep(0)
        writer.write(data[cut:])
        await writer.drain()

    server = await serve(in_two)
    assert await ask(client_of(server.url)) == [{"t": "größer"}]


async def test_nobody_there_is_said_with_what_to_do(unused_tcp_port: int):
    url = f"http://127.0.0.1:{unused_tcp_port}"
    site = Site(
        provider="ollama",
        endpoint=url,
        host=f"127.0.0.1:{unused_tcp_port}",
        start_advice="start it with `ollama serve`",
    )
    with pytest.raises(ProviderDown) as caught:
        await ask(HttpClient(site))
    assert told(caught.value) == (
        f"ollama at 127.0.0.1:{unused_tcp_port} does not answer (connection refused).\n"
        "Start it with `ollama serve`, or choose another provider: /provider"
    )


@every_row(
    ("status", "body", "kind", "words"),
    [
        (
            "401 Unauthorized",
            f'{{"error":{{"message":"bad key {SECRET}"}}}}',
            AuthError,
            "refused the key (401): bad key ****",
        ),
        ("403 Forbidden", "", AuthError, "refused the key (403)"),
        (
            "404 Not Found",
            '{"error":{"message":"no such model"}}',
            NotServed,
            "does not have the model 'm'",
        ),
        ("404 Not Found", "<html><title>404</title></html>", NotServed, "a web page"),
        (
            "400 Bad Request",
            '{"error":{"message":"what?"}}',
            BadRequest,
            "refused the request (400): what?",
        ),
        ("413 Payload Too Large", "", ContextTooLong, "too long for m"),
        ("429 Too Many Requests", "", RateLimited, "has received too many requests (429)"),
        (
            "500 Internal Server Error",
            "oops\x1b[31m",
            ProviderDown,
            "cannot answer now (500): oops [31m",
        ),
        ("503 Service Unavailable", "<html>", ProviderDown, "cannot answer now (503): a web page"),
        ("302 Found", "", ModelError, "redirects to another address"),
    ],
)
async def test_statuses_become_errors_with_words(failure, status, body, kind, words):
    error = await failure(http(body, status=status))
    assert type(error) is kind or (kind is ProviderDown and isinstance(error, kind))
    assert words in str(error)


@every_row(
    ("reply", "words"),
    [
        (http("<!doctype html><html></html>", type="text/html"), "a web page instead of an answer"),
        (unending('data: {"choices": [{"del'), "not complete JSON"),
        (unending('data: {"choices": []}\n\ndata: {"cho\n\n'), "not complete JSON"),
        (unending(b'data: {"t": "gr\xc3'), "not complete JSON"),
        (http("data: oops\n\n"), "not complete JSON: oops"),
        (http('data: {"error": {"message": "boom"}}\n\n'), "broke off its answer: boom"),
        (http('{"error": "boom"}', type="application/json"), "broke off its answer: boom"),
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\ndata: {}\n\n",
            "broke off (the connection was closed)",
        ),
        (b"", "broke off (the connection was closed)"),
        (b"what?\r\n\r\n", "broke off (it does not speak proper HTTP)"),
    ],
)
async def test_nonsense_becomes_an_error_with_words(failure, reply: bytes, words: str):
    assert words in told(await failure(reply))


async def test_silence_before_the_answer_is_an_error(failure):
    async def silent(writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    error = await failure(silent, first=0.01)
    assert isinstance(error, ProviderDown)
    assert "did not answer: nothing arrived for 0.01 s" in str(error)


@pytest.mark.integration
async def test_silence_after_the_headers_is_an_error(failure):
    async def silent(writer: asyncio.StreamWriter) -> None:
        writer.write(unending(""))
        await asyncio.Event().wait()

    assert "did not answer" in str(await failure(silent, first=0.05))


async def test_silence_within_the_answer_is_an_error(failure):
    async def stall(writer: asyncio.StreamWriter) -> None:
        writer.write(unending('data: {"n": 1}\n\n'))
        await asyncio.Event().wait()

    error = await failure(stall, later=0.01)
    assert "stopped in the middle of its answer: nothing arrived for 0.01 s" in str(error)


def signs_of_life(beginning: str, sign: str):
    """Say something, then only that one is still there."""

    async def reply(writer: asyncio.StreamWriter) -> None:
        writer.write(unending(beginning))
        while True:
            writer.write(sign.encode())
            await writer.drain()
            await asyncio.sleep(0.01)

    return reply


@pytest.mark.integration
@every_row(
    "beginning, sign", [("", ": still here\n\n"), ("", "\n"), ('data: {"n": 1}\n\n', ": x\n\n")]
)
async def test_comments_do_not_keep_an_answer_open_for_ever(failure, monkeypatch, beginning, sign):
    monkeypatch.setattr("ybs.providers.http.client.LONGEST_SILENCE", 0.4)
    async with asyncio.timeout(5):
        error = await failure(signs_of_life(beginning, sign), first=0.3, later=0.3)
    assert "nothing arrived for 0.4 s" in str(error)


@pytest.mark.integration
async def test_comments_do_keep_it_open_for_a_while(serve, client_of, monkeypatch):
    async def slow(writer: asyncio.StreamWriter) -> None:
        writer.write(unending(""))
        for _ in range(20):
            writer.write(b": thinking\n\n")
            await asyncio.sleep(0.01)
        writer.write(b'data: {"n": 1}\n\n')

    monkeypatch.setattr("ybs.providers.http.client.LONGEST_SILENCE", 5.0)
    server = await serve(slow)
    assert await ask(client_of(server.url, first=0.1, later=0.1)) == [{"n": 1}]


@pytest.mark.integration
async def test_frames_that_say_nothing_are_signs_of_life_too(serve, client_of, monkeypatch):
    monkeypatch.setattr("ybs.providers.http.client.LONGEST_SILENCE", 0.2)
    server = await serve(signs_of_life("", 'data: {"choices": []}\n\n'))
    client = client_of(server.url, first=0.1, later=0.1)
    async with asyncio.timeout(5):
        with pytest.raises(ProviderDown, match=r"nothing arrived for 0\.2 s"):
            async with aclosing(client.batches("/chat", {}, progress=lambda: 7)) as batches:
                assert [batch async for batch in batches]


@pytest.mark.integration
async def test_comments_do_not_prolong_what_is_complete(serve, client_of):
    server = await serve(signs_of_life('data: {"n": 1}\n\n', ": x\n\n"))
    async with asyncio.timeout(5):
        assert await ask(client_of(server.url), linger=lambda: 0.1) == [{"n": 1}]


@pytest.mark.integration
async def test_an_error_body_without_end_is_cut(failure):
    async def flood(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad\r\n\r\n" + b"x" * 200_000)
        await asyncio.Event().wait()

    said = str(await failure(flood))
    assert said.count("x") == 65_536
    assert said.endswith(" …")


async def test_an_error_body_that_stalls_is_not_waited_for_long(failure, monkeypatch):
    async def stall(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 500 No\r\ncontent-length: 9\r\n\r\n")
        await asyncio.Event().wait()

    monkeypatch.setattr("ybs.providers.http.client._SHORT_SECONDS", 0.01)
    assert "cannot answer now (500)" in str(await failure(stall, first=600.0, later=600.0))


async def test_an_error_body_that_breaks_off_is_passed_over(failure):
    error = await failure(b"HTTP/1.1 401 No\r\ncontent-length: 9\r\n\r\nx")
    assert type(error) is AuthError


@pytest.mark.integration
@pytest.mark.parametrize("rest", [b"", b"data: {bro", b"data: {bro\n\n"])
async def test_after_a_complete_answer_nothing_is_an_error(serve, client_of, rest: bytes):
    async def linger(writer: asyncio.StreamWriter) -> None:
        writer.write(unending(b'data: {"n": 1}\n\n'))
        await writer.drain()
        await seen.wait()
        writer.write(rest)
        await writer.drain()
        if not rest:
            await asyncio.Event().wait()

    seen = asyncio.Event()
    server = await serve(linger)
    frames = []
    client = client_of(server.url)
    async with aclosing(client.stream("/", {}, linger=lambda: 0.05 if frames else None)) as stream:
        async for frame in stream:
            frames.append(frame)
            seen.set()
    assert frames == [{"n": 1}]


async def test_a_connection_that_breaks_after_the_answer_is_no_error(serve, client_of):
    server = await serve(b'HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\ndata: {"n": 1}\n\n')
    frames = []
    async with aclosing(
        client_of(server.url).stream("/", {}, linger=lambda: 5.0 if frames else None)
    ) as stream:
        async for frame in stream:
            frames.append(frame)  # noqa: PERF401 - the lambda looks at it
    assert frames == [{"n": 1}]


async def test_closing_the_stream_closes_the_connection(serve, client_of):
    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(unending('data: {"n": 1}\n\n'))
        await server.gone.wait()

    server = await serve(endless)
    async with aclosing(client_of(server.url).stream("/", {})) as frames:
        assert await anext(frames) == {"n": 1}
    await asyncio.wait_for(server.gone.wait(), 5)


async def test_half_surrogates_in_the_conversation_are_replaced(serve, client_of):
    server = await serve(http("{}"))
    client = client_of(server.url)
    async with aclosing(client.stream("/", {"a": ["\ud800x", {"b": "ok"}, 1]})) as frames:
        assert [frame async for frame in frames] == [{}]
    assert server.asked[0].body == {"a": ["?x", {"b": "ok"}, 1]}


async def test_a_short_call_returns_its_object(serve, client_of):
    server = await serve(http('{"a": 1}'), http("[1]"), http("<html>"))
    client = client_of(server.url)
    assert await client.fetch("GET", "/x") == {"a": 1}
    assert await client.fetch("GET", f"{server.url}/y") == {}
    with pytest.raises(ModelError, match="web page"):
        await client.fetch("POST", "/z", {"q": 1})
    assert [(a.method, a.path, a.body) for a in server.asked] == [
        ("GET", "/x", None),
        ("GET", "/y", None),
        ("POST", "/z", {"q": 1}),
    ]
    await client.aclose()


async def test_warming_up_connects_and_closing_unused_is_fine(serve, client_of):
    server = await serve(http("{}"))
    client = client_of(server.url)
    await client.aclose()
    await client.warm_up()
    await client.fetch("GET", "/")
    assert server.connections == 1
    await client.aclose()


# Addresses


@every_row(
    "address",
    [
        "",
        "localhost:8080",
        "ftp://x",
        "http://",
        "http://a b",
        "http://x:port",
        "http://x\r\ny: 1",
        "http://[::1",
    ],
)
def test_what_is_no_address_is_refused(address: str):
    with pytest.raises(ConfigError, match="is not a valid address"):
        host_of(address)


@every_row(
    "address, shown",
    [
        ("https://u:{}@h:99999/v1?sig={}#{}", "https://h:99999/v1"),
        ("https://h:99999/v1?sig={}&to=me@h#{}", "..."),
        ("https://u:{}/{}@h/v1", "https://h/v1"),
        ("https://u:a?{}@h/v1", "..."),
        ("https://h:{}@/v1?{}", "https:///v1"),
        ("u:{}@h/v1?sig={}", "h/v1"),
        ("http://u:{}@[::1/v1?sig={}", "http://[::1/v1"),
        ("http://u:{} @h/v1?sig={}", "http://h/v1"),
    ],
)
def test_a_message_about_an_address_shows_no_password_and_no_query(address: str, shown: str):
    secret = "Tr0ub4" + "dorx"
    with pytest.raises(ConfigError, match="is not a valid address") as refused:
        host_of(address.replace("{}", secret))
    assert str(refused.value).startswith(f"{shown!r} is not")
    assert secret not in str(refused.value)


@every_row(
    ("host", "loopback", "local"),
    [
        ("localhost", True, True),
        ("127.0.0.1", True, True),
        ("127.9.9.9", True, True),
        ("::1", True, True),
        ("nas", False, True),
        ("192.168.1.5", False, True),
        ("10.0.0.1", False, True),
        ("172.16.0.1", False, True),
        ("172.32.0.1", False, False),
        ("box.local", False, True),
        ("api.openai.com", False, False),
        ("127.evil.example", False, False),
        ("10.evil.example", False, False),
        ("fda.example", False, False),
        ("fd00::1", False, True),
        ("fd::1", False, False),
        ("0127.0.0.1", False, False),
        ("010.0.0.1", False, False),
        ("127.1", False, False),
        ("134744072", False, False),
        ("0x08080808", False, False),
        ("\u0661\u0662\u0667.0.0.1", False, False),
    ],
)
def test_which_hosts_are_near(host: str, loopback: bool, local: bool):
    assert (is_loopback(host), is_local(host)) == (loopback, local)


def test_patience_fits_the_distance():
    near, far = Patience.of("http://localhost:1", 120), Patience.of("https://api.example.com", 90)
    assert (near.connect, near.first, near.later) == (5, 600, 120)
    assert (far.connect, far.first, far.later) == (10, 90, 90)


def test_plain_http_needs_no_httpx2_and_tls_does():
    from ybs.providers.http import httpx_transport

    assert isinstance(open_transport("http://10.0.0.1", connect_seconds=1), PlainTransport)
    assert isinstance(
        open_transport("https://127.0.0.1", connect_seconds=1), httpx_transport.HttpxTransport
    )


def test_a_proxy_is_honoured_for_others_but_not_for_this_machine(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.example:3128")
    near = open_transport("http://127.0.0.1:1", connect_seconds=1)
    far = open_transport("http://nas.example", connect_seconds=1)
    assert isinstance(near, PlainTransport)
    assert isinstance(far, HttpxTransport)
    monkeypatch.setenv("NO_PROXY", ".example")
    past = open_transport("http://nas.example", connect_seconds=1)
    assert isinstance(past, PlainTransport)


async def test_an_answer_that_fails_in_the_middle_names_its_request(serve, client_of):
    failing = unending('data: {"error":{"message":"overloaded"}}\n\n')
    marked = failing.replace(b"\r\n", b"\r\nx-request-id: req_7\r\n", 1)
    cut = unending('data: {"a": \n\n').replace(b"\r\n", b"\r\nrequest-id: req_8\r\n", 1)
    for reply, found in ((marked, "req_7"), (cut, "req_8")):
        with pytest.raises(ModelError, match=rf"\(request {found}\)"):
            await ask(client_of((await serve(reply)).url))
