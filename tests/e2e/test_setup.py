"""`ybs setup` on a real terminal."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from screen import Screen

Start = Callable[..., Screen]

KEY = "sk-" + "q7" * 12


class Locked(BaseHTTPRequestHandler):
    """Lists its models for who has the key, and answers 401 to everybody else."""

    def do_GET(self) -> None:
        is_known = self.headers.get("authorization") == f"Bearer {KEY}"
        body = json.dumps({"data": [{"id": "behind-a-key"}]} if is_known else {"error": "no"})
        self.send_response(200 if is_known else 401)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def locked_server() -> Iterator[int]:
    """Run the server until the block ends, and give its port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Locked) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.slow
def test_a_key_is_never_shown_and_is_kept_for_its_server(project: Path, home: Path) -> None:
    with locked_server() as port, Screen("setup", environ={"OLLAMA_HOST": "127.0.0.1:9"}) as screen:
        screen.sees(r"q to quit\):")
        screen.stays()
        screen.keys("another server…\r")
        screen.sees("Address, such as")
        screen.stays()
        screen.keys(f"127.0.0.1:{port}\r")
        screen.sees("answers, but it needs a key")
        screen.sees("Key .not shown")
        screen.stays()
        screen.keys("wrong\r")
        screen.sees("refused this key")
        screen.stays()
        screen.keys(KEY + "\r")
        screen.sees(f"behind-a-key, 127.0.0.1:{port}. Saved in")
        screen.sees(r"is sent to\s+http://127\.0\.0\.1:\d+ only")
        screen.sees(r"1 or 2\?")
        screen.stays()
        screen.keys("\r")
        screen.sees(r"Please type 1 or 2\.")
        screen.stays()
        screen.keys("1\r")
        screen.sees("web_search")
        screen.stays()
        screen.keys("\r")
        assert screen.ends() == 0
        assert KEY not in screen.raw
        assert "wrong" not in screen.raw
    file = home / ".config" / "ybs" / "keys.json"
    assert json.loads(file.read_text()) == {f"127.0.0.1:{port}@http://127.0.0.1:{port}": KEY}
    assert file.stat().st_mode & 0o777 == 0o600
    assert KEY not in (file.parent / "config.json").read_text()


@pytest.mark.slow
def test_doctor_and_setup_run_on_the_terminal_of_a_chat(start: Start, home: Path) -> None:
    screen = start(["hello"], environ={"OLLAMA_HOST": "127.0.0.1:9"})
    screen.sees(r"› *\n")
    screen.keys("/doctor\r")
    screen.sees(r"problems? to fix\.|No problems found")
    screen.keys("/setup\r")  # before the prompt is back
    screen.sees(r"q to quit\):")
    screen.stays()
    assert "In use: scripted, 127.0.0.1:" in screen.text
    assert "No model was found" not in screen.text
    screen.keys("\r")  # keeps it
    screen.sees(r"1 or 2\?")
    screen.stays()
    screen.keys("2\r")
    screen.sees(r"Install web_search")
    screen.stays()
    screen.keys("n\r")
    screen.sees(r"ask edits")  # the status line: it counts in this chat
    screen.keys("hi\r")
    screen.sees("hello")
    screen.keys("\x04")
    assert screen.ends() == 0
    assert "Traceback" not in screen.raw
