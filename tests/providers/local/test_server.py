"""The managed server: started once, found again, replaced, ended; clear words when it cannot start."""

import asyncio
import os
import stat
from pathlib import Path

import msgspec
import pytest

from ybs.core.errors import ConfigError, ProviderDown
from ybs.providers.local import hardware, server

pytestmark = pytest.mark.usefixtures("fake_server")


async def ensure(
    model: Path, *, window: int = 4096, waits: list[float] | None = None
) -> server.Running:
    waits = [] if waits is None else waits
    return await server.ensure(model, alias="small", window=window, threads=1, waiting=waits.append)


async def test_the_second_run_finds_the_server_of_the_first(starter: Path):
    first = await ensure(starter)
    assert await ensure(starter) == first
    assert first.endpoint == f"http://127.0.0.1:{first.port}/v1"


async def test_two_runs_at_once_start_one_server(starter: Path):
    one, other = await asyncio.gather(ensure(starter), ensure(starter))
    assert one == other


async def test_another_window_needs_another_server(starter: Path):
    first = await ensure(starter)
    second = await ensure(starter, window=2048)
    assert second.pid != first.pid
    assert server.start_time(first.pid) != first.started


async def test_a_server_with_another_chat_template_is_replaced(
    starter: Path, monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as older:
        older.setattr(server, "template_of", lambda _model: "of an older version")
        first = await ensure(starter)
    second = await ensure(starter)
    assert second.pid != first.pid
    assert server.start_time(first.pid) == ""


async def test_too_little_memory_is_said_before_anything_starts(
    starter: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(hardware, "free_memory_bytes", lambda: 10)
    with pytest.raises(ProviderDown, match="GB of memory"):
        await ensure(starter)
    assert not server.state_file().exists()


async def test_the_wait_is_reported_while_the_model_loads(
    starter: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FAKE_SERVE", "slow")
    waits: list[float] = []
    await ensure(starter, waits=waits)
    assert waits
    assert waits == sorted(waits)


async def test_stop_ends_it_and_says_whether_one_ran(starter: Path):
    running = await ensure(starter)
    assert await server.stop()
    assert server.start_time(running.pid) != running.started
    assert not server.state_file().exists()
    assert not await server.stop()


async def test_the_key_is_readable_by_its_owner_only_and_not_in_the_arguments(starter: Path):
    running = await ensure(starter)
    assert stat.S_IMODE(server.state_file().stat().st_mode) == 0o600
    assert stat.S_IMODE(server.log_file().stat().st_mode) == 0o600
    assert stat.S_IMODE(server.state_file().parent.stat().st_mode) == 0o700
    arguments = await asyncio.to_thread(Path(f"/proc/{running.pid}/cmdline").read_bytes)
    assert running.key.encode() not in arguments


async def test_a_process_that_only_got_the_same_number_is_left_alone(starter: Path):
    mine = server.Running(
        pid=os.getpid(), started="1", port=1, key="k", model=str(starter), window=4096
    )
    server.state_file().parent.mkdir(parents=True)
    server.state_file().write_bytes(msgspec.json.encode(mine))
    assert server.running() is None
    assert (await ensure(starter)).pid != os.getpid()


@pytest.mark.parametrize("content", [b"", b"{", b'{"pid": "x"}', b"[]"])
async def test_a_broken_state_file_counts_as_none(starter: Path, content: bytes):
    server.state_file().parent.mkdir(parents=True)
    server.state_file().write_bytes(content)
    assert server.running() is None
    assert (await ensure(starter)).port


@pytest.mark.slow
async def test_a_server_that_died_is_replaced(starter: Path):
    first = await ensure(starter)
    os.kill(first.pid, 9)
    second = await ensure(starter)
    assert second.pid != first.pid


async def test_a_missing_extra_says_what_to_install(starter: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FAKE_SERVE", "missing")
    with pytest.raises(ConfigError, match=r"pip install 'ybs\[local\]'"):
        await ensure(starter)
    assert not server.state_file().exists()


async def test_a_crash_at_the_start_shows_the_end_of_the_log(
    starter: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FAKE_SERVE", "crash")
    with pytest.raises(ProviderDown, match="out of memory") as caught:
        await ensure(starter)
    assert str(server.log_file()) in str(caught.value)


async def test_a_crash_at_the_start_shows_the_errors_before_a_traceback(
    starter: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FAKE_SERVE", "traceback")
    with pytest.raises(ProviderDown, match="invalid magic") as caught:
        await ensure(starter)
    assert "Traceback" not in str(caught.value)


async def test_a_start_that_never_gets_ready_is_given_up(
    starter: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FAKE_SERVE", "slow")
    monkeypatch.setattr(server, "START_SECONDS", 0.0)
    with pytest.raises(ProviderDown, match="not ready after"):
        await ensure(starter)
    assert server.running() is None


async def test_a_cancelled_start_leaves_no_server_behind(
    starter: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FAKE_SERVE", "slow")
    waits: asyncio.Queue[float] = asyncio.Queue()
    start = asyncio.create_task(
        server.ensure(starter, alias="small", window=1, threads=1, waiting=waits.put_nowait)
    )
    await waits.get()
    pid = msgspec.json.decode(server.state_file().read_bytes())["pid"]
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start
    assert server.start_time(pid) == ""
    assert not server.state_file().exists()


@pytest.mark.slow
async def test_a_server_that_does_not_heed_the_first_signal_is_killed(
    starter: Path, monkeypatch: pytest.MonkeyPatch
):
    running = await ensure(starter)
    monkeypatch.setattr(server, "STOP_SECONDS", 0.3)
    os.kill(running.pid, 19)  # SIGSTOP: it cannot react to SIGTERM
    assert await server.stop()
    assert server.start_time(running.pid) == ""
