"""A hub on loopback that does what a script says, for each request in turn; the last behaviour stays."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

MODEL = b"GGUF" + bytes(range(256)) * 4000
SHA256 = sha256(MODEL).hexdigest()

#: Answers one request.
Behaviour = Callable[["Answers"], None]


class Answers(BaseHTTPRequestHandler):
    """One request, and words for what a hub does with it."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Do what comes next in the script."""
        hub: Any = self.server
        hub.asked.append((self.path, self.headers.get("range"), self.headers.get("if-range")))
        hub.logins.append(self.headers.get("authorization"))
        hub.script[min(len(hub.asked), len(hub.script)) - 1](self)
        self.close_connection = True

    def do_POST(self) -> None:
        """Keep the body, and do what comes next in the script."""
        hub: Any = self.server
        hub.bodies.append(self.rfile.read(int(self.headers["content-length"])))
        self.do_GET()

    def head(self, status: int, **headers: Any) -> None:
        """Send the status and the headers."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()


def gives(
    data: bytes = MODEL, *, etag: str = '"1"', most: int | None = None, **headers: Any
) -> Behaviour:
    """Give the file, or what is asked for of it; `most` bytes and no more before the connection breaks."""

    def answer(to: Answers) -> None:
        begin, end = 0, len(data)
        asked, condition = to.headers.get("range", ""), to.headers.get("if-range")
        if asked and condition in (None, etag):
            begin = int(asked.removeprefix("bytes=").rstrip("-"))
        if begin > end - 1:
            to.head(416, Content_Range=f"bytes */{end}", Content_Length=0)
            return
        ranged = {"Content_Range": f"bytes {begin}-{end - 1}/{end}"} if begin else {}
        to.head(
            206 if begin else 200,
            **({"ETag": etag, "Content_Length": end - begin} | ranged | headers),
        )
        to.wfile.write(data[begin:][:most])

    return answer


def redirects(place: str, **headers: Any) -> Behaviour:
    """Send the client to another place."""
    return lambda to: to.head(302, Location=place, Content_Length=0, **headers)


def says(status: int, **headers: Any) -> Behaviour:
    """Answer with a status and nothing else."""
    return lambda to: to.head(status, Content_Length=0, **headers)


def sends_without_end(to: Answers) -> None:
    """Announce a small file and send for as long as anybody listens, in pieces of an unknown number."""
    to.head(200, X_Linked_Size=1000, Transfer_Encoding="chunked")
    try:
        while True:
            to.wfile.write(b"1000\r\n" + bytes(4096) + b"\r\n")
    except OSError:
        return


def does_not_say_how_much(to: Answers) -> None:
    """Send a file without its size."""
    to.head(200, Transfer_Encoding="chunked")
    to.wfile.write(b"4\r\nGGUF\r\n0\r\n\r\n")


class Hub(ThreadingHTTPServer):
    """The server; `asked` has the path, the range and the condition of each request, `logins` what it logs in with."""

    daemon_threads = True

    def __init__(self, *script: Behaviour) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.script, self.asked = script, list[tuple[str, str | None, str | None]]()
        self.bodies: list[bytes] = []
        self.logins: list[str | None] = []

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_port}"


@contextmanager
def open_hub(*script: Behaviour) -> Iterator[Hub]:
    """Run a hub until the block is left."""
    with Hub(*script) as hub:
        Thread(target=hub.serve_forever, args=(0.01,), daemon=True).start()
        yield hub
        hub.shutdown()
