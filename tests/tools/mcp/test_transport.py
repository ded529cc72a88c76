"""The pipes of a server: programs that behave, and programs that do not."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from anyio import BrokenResourceError, ClosedResourceError

from mcp_running import running
from rows import every_row
from ybs.core.errors import ToolError
from ybs.security.sandbox.launch import Launch
from ybs.tools.mcp.link import McpLink, ProcessTransport, words_of
from ybs.tools.shell.orphans import CommandMark
from ybs.tools.shell.watch import Watch

pytestmark = pytest.mark.integration


def _nothing(*_: Any) -> None:
    pass


async def echoed(link: McpLink, text: str = "hello") -> str:
    return (await link.call("echo", {"text": text}, _nothing)).output


def with_marker(folder: Path) -> list[int]:
    """List the processes whose environment names the folder."""
    found: list[int] = []
    for name in os.listdir("/proc"):  # noqa: PTH208 - names
        try:
            environ = Path("/proc", name, "environ").read_bytes() if name.isdecimal() else b""
        except OSError:
            continue
        if f"MARKER={folder}".encode() in environ:
            found.append(int(name))
    return found


async def test_a_server_answers_and_is_gone_afterwards(tmp_path: Path):
    async with running(tmp_path) as (link, transport):
        offer, problems = await link.offer()
        assert [each.name for each in offer.tools] == ["echo"]
        assert problems == []
        assert await echoed(link, "é \n ok") == "é \n ok"
        assert with_marker(tmp_path) != []
    assert transport.ended.is_set()
    assert with_marker(tmp_path) == []


async def test_m04_what_a_server_lists_has_an_end(tmp_path: Path):
    more = (
        "def answer(method, params, inner=answer):\n"
        " if method == 'initialize': return {**inner(method, params), 'capabilities': {'tools': {}, 'resources': {}}}\n"
        " if method == 'resources/list': return {'resources': [{'uri': 'a://' + 'x' * n, 'name': 'r'} for n in (5, 9_000)]}\n"
        " return inner(method, params)\n"
        "def tools(): return [{'name': 'n' * 9_000, 'inputSchema': {'type': 'object'}},"
        " {'name': 'large', 'inputSchema': {'type': 'object', 'properties': {'x': {'description': 'x' * 5_000_000}}}},"
        " *({'name': f't{n}', 'inputSchema': {'type': 'object', 'properties': {'x': {'description': 'x' * 15_000}}}} for n in range(40))]\n"
    )
    async with running(tmp_path, more) as (link, _):
        offer, problems = await link.offer()
        assert [each.uri for each in offer.resources] == ["a://xxxxx"]
        assert [each.name for each in offer.tools] == [f"t{n}" for n in range(33)]
        assert "name has more than 200 characters" in problems[0]
        assert "take more than 16,000 bytes" in problems[1]
        assert "all tools together take more than" in problems[-1]


async def test_lines_that_are_no_messages_are_passed_over(tmp_path: Path):
    more = "print('starting up'); sys.stdout.buffer.write(b'\\xff\\xfe\\n\\n'); print('{}')\n"
    async with running(tmp_path, more) as (link, transport):
        assert await echoed(link) == "hello"
        assert "starting up" in transport.said


async def test_one_that_writes_nothing_else_is_ended(tmp_path: Path):
    more = "while True: print('noise')\n"
    with pytest.raises(Exception, match="unhandled errors in a TaskGroup") as caught:
        async with running(tmp_path, more):
            raise AssertionError
    assert words_of(caught.value) == "the connection was closed"
    assert with_marker(tmp_path) == []


@every_row(
    ("call", "problem"),
    [
        ("return text('x' * 50_000_000)", "a message of more than 16 MB"),
        (
            "return text('', structuredContent={'x': [{}] * 1_000_000})",
            "a message of more than 500,000 objects",
        ),
        ("\n while True: sys.stdout.write('x' * 1_000_000)", "a message of more than 16 MB"),
    ],
)
async def test_m04_a_message_without_bounds_ends_the_server_and_not_ybs(
    tmp_path: Path, call: str, problem: str
):
    async with running(tmp_path, f"def call(name, given): {call}\n") as (link, transport):
        with pytest.raises(ToolError, match="the connection was closed"):
            await echoed(link)
        await transport.ended.wait()
        assert transport.how == f"it sent {problem}"
    assert with_marker(tmp_path) == []


async def test_m04_one_that_never_answers_is_waited_for_no_longer_than_said(tmp_path: Path):
    more = "def call(name, given): time.sleep(600)\n"
    async with running(tmp_path, more, seconds=0.5) as (link, _):
        with pytest.raises(ToolError, match="did not answer in time"):
            await echoed(link)
    assert with_marker(tmp_path) == []


async def test_m04_one_that_does_not_read_holds_nothing_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("ybs.tools.shell.peer.GRACE_SECONDS", 0.2)
    monkeypatch.setattr("ybs.tools.shell.peer.MOST_BYTES", 1_500_000)
    async with running(tmp_path, "def call(name, given): time.sleep(600)\n", 0.3) as (
        link,
        transport,
    ):
        async with asyncio.timeout(5):
            for size in (1, 1_000_000):
                with pytest.raises(ToolError, match="did not answer in time"):
                    await echoed(link, "x" * size)
            with pytest.raises(ToolError):
                await echoed(link, "x" * 1_000_000)
            await transport.ended.wait()
        assert transport.how == "it does not read what it is sent"
    assert with_marker(tmp_path) == []


async def test_half_a_character_does_not_stop_what_comes_after_it(tmp_path: Path):
    async with running(tmp_path, seconds=1.0) as (link, _):
        async with asyncio.timeout(5):
            assert await echoed(link, "a \ud800 b") == "a \ufffd b"
            assert await echoed(link) == "hello"


async def test_one_that_dies_in_mid_call_says_how(tmp_path: Path):
    more = "def call(name, given):\n print('the disk is full', file=sys.stderr, flush=True); os._exit(3)\n"
    async with running(tmp_path, more) as (link, transport):
        with pytest.raises(ToolError, match="the connection was closed"):
            await echoed(link)
        await transport.ended.wait()
        assert transport.how == "it ended with exit code 3"
        assert transport.said == "the disk is full"


async def test_much_on_standard_error_holds_nothing_up(tmp_path: Path):
    more = "def call(name, given):\n sys.stderr.write('noise ' * 1_000_000); return text('done')\n"
    async with running(tmp_path, more) as (link, transport):
        assert await echoed(link) == "done"
        assert len(transport.said) <= 16_000


async def test_one_that_ignores_every_polite_end_is_killed_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("ybs.tools.shell.peer.GRACE_SECONDS", 0.2)
    more = (
        "import signal, subprocess\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        "import threading\n"
        "threading.Thread(target=lambda: time.sleep(600)).start()\n"
    )
    async with running(tmp_path, more) as (link, _):
        assert await echoed(link) == "hello"
        assert len(with_marker(tmp_path)) == 2
    assert with_marker(tmp_path) == []


async def test_a_cancelled_call_is_cancelled_at_the_server_too(tmp_path: Path):
    more = (
        "def call(name, given):\n"
        " line = json.loads(sys.stdin.readline())\n"
        " open(os.path.join(os.environ['MARKER'], 'heard'), 'w').write(line['method'])\n"
        " return text('never read')\n"
    )
    async with running(tmp_path, more) as (link, _):
        task = asyncio.create_task(echoed(link))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(5):
            while not (tmp_path / "heard").exists():  # noqa: ASYNC110 - another process writes it
                await asyncio.sleep(0.01)
        async with asyncio.timeout(5):
            while not (tmp_path / "heard").read_text():  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.01)
        assert (tmp_path / "heard").read_text() == "notifications/cancelled"


async def test_a_program_that_cannot_be_started_is_said(tmp_path: Path):
    def start() -> tuple[Launch, CommandMark]:
        return Launch((str(tmp_path / "nosuch"),), {}), CommandMark.new()

    watch = Watch("ybs-test")
    try:
        with pytest.raises(ToolError, match="cannot be started: No such file"):
            async with ProcessTransport(start, watch):
                raise AssertionError
    finally:
        watch.close()


async def test_what_nobody_came_to_use_is_closed(tmp_path: Path):
    watch = Watch("ybs-test")
    try:
        async with ProcessTransport(
            lambda: (Launch(("/bin/cat",), {}), CommandMark.new()), watch
        ) as given:
            read, write = given
        for unused in (read.receive_nowait, lambda: write.send_nowait(None)):
            with pytest.raises(ClosedResourceError):
                unused()
    finally:
        watch.close()


def test_of_several_errors_the_one_that_says_something_is_told():
    late = ToolError("it did not answer in time")
    torn = BrokenResourceError()
    assert words_of(ExceptionGroup("both", [torn, late])) == "it did not answer in time"
    torn.__context__ = late
    assert words_of(ExceptionGroup("one", [torn])) == "it did not answer in time"
    assert words_of(ClosedResourceError()) == "the connection was closed"
