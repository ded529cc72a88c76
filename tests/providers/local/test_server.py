"""The managed server: started once, found again, replaced, ended; clear words when it cannot start."""

import asyncio
import os
import stat
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from hosts import this_host
from rows import every_row
from ybs.config.schema import AgentLimits, Config
from ybs.core.errors import ConfigError, ProviderDown
from ybs.core.messages import UserMessage
from ybs.core.ports import Request
from ybs.providers.local import hardware, process, server
from ybs.providers.local.choice import Shape
from ybs.providers.local.hardware import Gpu, Machine
from ybs.providers.registry import Provider, open_model

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("fake_server")]

SHAPE = Shape(file_bytes=100, layers=4, token_bytes=100, longest=32_768)


def wanted(model: Path, **changes: Any) -> server.Wanted:
    given: dict[str, Any] = {"alias": "small", "shape": SHAPE, "window": 4096, **changes}
    return server.Wanted(model=str(model), **given)


async def ensure(
    model: Path,
    *,
    told: list[float | str] | None = None,
    lease: server.ServerLease | None = None,
    crashed: server.RunningServer | None = None,
    **changes: Any,
) -> server.RunningServer:
    """Start a server, or find it; without a lease of its own the run gives it back at once, as one that ended does."""
    told = [] if told is None else told
    own = lease or server.ServerLease(this_host())
    found = await server.ensure(
        this_host(), wanted(model, **changes), own, told=told.append, crashed=crashed
    )
    if lease is None:
        own.release()
    return found


async def test_the_second_run_finds_the_server_of_the_first(starter: Path):
    first = await ensure(starter)
    assert await ensure(starter) == first
    assert first.socket == str(server.socket_file(this_host()))


async def test_two_runs_at_once_start_one_server(starter: Path):
    one, other = await asyncio.gather(ensure(starter), ensure(starter))
    assert one == other


async def test_another_window_needs_another_server(starter: Path):
    first = await ensure(starter)
    second = await ensure(starter, window=2048)
    assert second.pid != first.pid
    assert process.start_time(first.pid) != first.started


async def test_a_server_with_another_chat_template_is_replaced(starter: Path):
    first = await ensure(starter, template="of an older version")
    second = await ensure(starter)
    assert second.pid != first.pid
    assert process.start_time(first.pid) == ""


async def test_runs_share_a_server_whatever_window_each_would_like(starter: Path):
    mine = server.ServerLease(this_host())
    first = await ensure(starter, lease=mine)
    assert await ensure(starter, window=2048) == first
    mine.release()
    assert await ensure(starter, window=2048) != first


async def test_a_server_that_another_run_uses_is_not_taken_away_for_another_model(
    starter: Path, tmp_path: Path
):
    mine, others = server.ServerLease(this_host()), server.ServerLease(this_host())
    first = await ensure(starter, lease=others)
    with pytest.raises(ProviderDown, match="Another ybs uses the local server with the model qwen"):
        await ensure(tmp_path / "other.gguf", lease=mine)
    assert server.running(this_host()) == first
    others.release()
    second = await ensure(tmp_path / "other.gguf", lease=mine)
    assert second.model.endswith("other.gguf")
    assert process.start_time(first.pid) == ""


async def test_a_lease_ends_with_the_process_that_holds_it(starter: Path):
    await ensure(starter)
    code = "from ybs.providers.local.server import ServerLease; from ybs.frontends.host import this_host; a = ServerLease(this_host()); a.hold(); print(); input()"
    holder = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", code), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert holder.stdout is not None
    await holder.stdout.readline()
    assert server.ServerLease(this_host()).is_held_by_others()
    holder.kill()
    await holder.communicate()
    assert not server.ServerLease(this_host()).is_held_by_others()


async def test_a_server_that_hangs_is_replaced_even_while_others_use_it(starter, monkeypatch):
    others = server.ServerLease(this_host())
    first = await ensure(starter, lease=others)
    with monkeypatch.context() as hanging:
        hanging.setattr(server, "is_healthy", lambda found: found.pid != first.pid)
        second = await ensure(starter)
    others.release()
    assert second.pid != first.pid


async def test_too_little_memory_is_said_before_anything_starts(starter, monkeypatch):
    monkeypatch.setattr(hardware, "detect", lambda: Machine(cores=2, free_bytes=10**8))
    with pytest.raises(ProviderDown, match=r"about 0\.4 GB of memory, and only 0\.1 GB is free"):
        await ensure(starter)
    assert not server.state_file(this_host()).exists()


async def test_the_wait_is_reported_while_the_model_loads(starter, monkeypatch):
    monkeypatch.setenv("FAKE_SERVE", "slow")
    waits: list[Any] = []
    await ensure(starter, told=waits)
    assert waits
    assert waits == sorted(waits)


async def test_stop_ends_it_and_says_whether_one_ran(starter: Path):
    running = await ensure(starter)
    assert await server.stop(this_host())
    assert process.start_time(running.pid) != running.started
    assert not server.state_file(this_host()).exists()
    assert not await server.stop(this_host())


async def test_the_key_is_readable_by_its_owner_only_and_not_in_the_arguments(starter: Path):
    running = await ensure(starter)
    assert stat.S_IMODE(server.state_file(this_host()).stat().st_mode) == 0o600
    assert stat.S_IMODE(server.log_file(this_host()).stat().st_mode) == 0o600
    assert stat.S_IMODE(server.state_file(this_host()).parent.stat().st_mode) == 0o700
    arguments = await asyncio.to_thread(Path(f"/proc/{running.pid}/cmdline").read_bytes)
    assert running.key.encode() not in arguments


async def test_a_process_that_only_got_the_same_number_is_left_alone(starter: Path):
    mine = server.RunningServer(
        pid=os.getpid(), started="1", socket="s", key="k", model=str(starter), window=4096
    )
    server.state_file(this_host()).parent.mkdir(parents=True)
    server.state_file(this_host()).write_bytes(msgspec.json.encode(mine))
    assert server.running(this_host()) is None
    assert (await ensure(starter)).pid != os.getpid()


@pytest.mark.parametrize("content", [b"", b"{", b'{"pid": "x"}', b"[]"])
async def test_a_broken_state_file_counts_as_none(starter: Path, content: bytes):
    server.state_file(this_host()).parent.mkdir(parents=True)
    server.state_file(this_host()).write_bytes(content)
    assert server.running(this_host()) is None
    assert (await ensure(starter)).key


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
    assert not server.state_file(this_host()).exists()


async def test_a_crash_at_the_start_shows_the_end_of_the_log(starter, monkeypatch):
    monkeypatch.setenv("FAKE_SERVE", "crash")
    with pytest.raises(ProviderDown, match="out of memory") as caught:
        await ensure(starter)
    assert str(server.log_file(this_host())) in str(caught.value)


async def test_a_crash_at_the_start_shows_the_errors_before_a_traceback(starter, monkeypatch):
    monkeypatch.setenv("FAKE_SERVE", "traceback")
    with pytest.raises(ProviderDown, match="invalid magic") as caught:
        await ensure(starter)
    assert "Traceback" not in str(caught.value)


async def test_a_start_that_never_gets_ready_is_given_up(starter, monkeypatch):
    monkeypatch.setenv("FAKE_SERVE", "slow")
    monkeypatch.setattr(server, "START_SECONDS", 0.0)
    with pytest.raises(ProviderDown, match="not ready after"):
        await ensure(starter)
    assert server.running(this_host()) is None


async def test_a_cancelled_start_leaves_no_server_behind(starter, monkeypatch):
    monkeypatch.setenv("FAKE_SERVE", "slow")
    waits: asyncio.Queue[float | str] = asyncio.Queue()
    start = asyncio.create_task(
        server.ensure(
            this_host(), wanted(starter), server.ServerLease(this_host()), told=waits.put_nowait
        )
    )
    await waits.get()
    pid = msgspec.json.decode(server.state_file(this_host()).read_bytes())["pid"]
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start
    assert process.start_time(pid) == ""
    assert not server.state_file(this_host()).exists()


@pytest.mark.slow
async def test_a_server_that_does_not_heed_the_first_signal_is_killed(starter, monkeypatch):
    running = await ensure(starter)
    monkeypatch.setattr(process, "STOP_SECONDS", 0.3)
    os.kill(running.pid, 19)  # SIGSTOP: it cannot react to SIGTERM
    assert await server.stop(this_host())
    assert process.start_time(running.pid) == ""


@every_row(
    ("asked", "most", "windows"), [(None, 4096, [8192, 4096]), (16_384, 4096, [16_384, 8192, 4096])]
)
async def test_a_start_that_fails_for_want_of_memory_is_tried_with_less_and_it_is_said(
    starter: Path, monkeypatch: pytest.MonkeyPatch, asked: int | None, most: int, windows: list[int]
):
    monkeypatch.setenv("FAKE_SERVE", f"memory {most}")
    told: list[Any] = []
    found = await ensure(starter, window=asked, told=told)
    words = [each for each in told if isinstance(each, str)]
    assert found.window == windows[-1]
    assert words == [
        "The local model's server did not get the memory that it needs, "
        f"so it is started again with a window of {window:,} tokens."
        for window in windows[1:]
    ]
    assert await ensure(starter, window=asked) == found  # the next run does not fail first
    await server.stop(this_host())


async def test_a_process_that_the_kernel_kills_counts_as_one_without_memory(starter, monkeypatch):
    monkeypatch.setenv("FAKE_SERVE", "killed")
    told: list[Any] = []
    with pytest.raises(ProviderDown, match=r"right after its start \(-9\)"):
        await ensure(starter, window=8192, told=told)
    assert [each for each in told if isinstance(each, str)] == [
        "The local model's server did not get the memory that it needs, "
        "so it is started again with a window of 4,096 tokens."
    ]
    assert server.running(this_host()) is None


async def test_layers_go_back_to_the_processor_first(starter, monkeypatch):
    gpu = Gpu(maker="nvidia", name="T4", total_bytes=1 << 34, free_bytes=1 << 34)
    here = Machine(cores=4, free_bytes=1 << 33, gpus=(gpu,))
    monkeypatch.setattr(hardware, "detect", lambda: here)
    first = await ensure(starter)
    assert first.plan is not None
    assert first.plan.gpu_layers == 5
    told: list[Any] = []
    os.kill(first.pid, 9)
    second = await ensure(starter, crashed=first, told=told)
    assert second.plan is not None
    assert (second.plan.gpu_layers, second.window) == (2, 4096)
    assert told[0] == (
        "The local model's server ended in the middle of an answer, so it is started again with 2 layers on the GPU."
    )


@pytest.fixture
def full_card(fake_server: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a card that says it has much room, and has none."""
    monkeypatch.setenv("FAKE_SERVE", "no card")
    gpu = Gpu(maker="nvidia", name="T4", total_bytes=1 << 40, free_bytes=1 << 40)
    here = Machine(cores=4, free_bytes=1 << 33, gpus=(gpu,))
    monkeypatch.setattr(hardware, "detect", lambda: here)


@pytest.mark.usefixtures("full_card")
async def test_a_card_that_has_room_for_nothing_is_given_up_in_the_end(starter: Path):
    told: list[Any] = []
    found = await ensure(starter, told=told, shape=replace(SHAPE, layers=48), window=None)
    assert found.plan is not None
    assert (found.plan.gpu_layers, found.window) == (0, 8192)
    assert [each.partition("with ")[2] for each in told if isinstance(each, str)] == [
        "24 layers on the GPU.",
        "12 layers on the GPU.",
        "a window of 8,192 tokens on the CPU alone.",
    ]


@pytest.mark.usefixtures("full_card")
async def test_a_model_that_only_the_card_had_room_for_fails_where_it_has_none(starter: Path):
    large = replace(SHAPE, layers=48, file_bytes=1 << 34)
    told: list[Any] = []
    with pytest.raises(ProviderDown, match="cudaMalloc failed"):
        await ensure(starter, told=told, shape=large)
    words = [each for each in told if isinstance(each, str)]
    assert words[-1].endswith("with 6 layers on the GPU.")


async def test_a_crash_with_the_least_setting_starts_the_same_again(starter: Path):
    first = await ensure(starter)
    os.kill(first.pid, 9)
    assert (await ensure(starter, crashed=first)).window == first.window == 4096


async def test_the_log_of_the_server_before_is_kept(starter: Path):
    await ensure(starter)
    server.log_file(this_host()).write_text("the first")
    await ensure(starter, window=2048)
    assert server.log_file(this_host()).with_name("llama.last.log").read_text() == "the first"


async def _ask(found: server.RunningServer) -> None:
    at = Provider(
        name="llamacpp",
        wire="openai",
        endpoint="http://localhost/v1",
        api_key=found.key,
        unix_socket=Path(found.socket),
    )
    once = Config(agent=AgentLimits(retry_attempts=0))
    model = open_model(this_host(), at, once, model="small")
    try:
        _ = [each async for each in model.stream(Request("", (UserMessage.of("my words"),)))]
    finally:
        await model.aclose()


async def test_who_takes_a_folder_that_others_write_to_is_asked_nothing(starter, tmp_path):
    running = await ensure(starter)
    told: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        told.append(await reader.read(1000))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    open_folder = tmp_path / "open"
    open_folder.mkdir()
    open_folder.chmod(0o777)
    path = open_folder / "llama.sock"
    async with await asyncio.start_unix_server(answer, path):
        taken = replace(running, socket=str(path))
        assert not await asyncio.to_thread(server.is_healthy, taken)
        with pytest.raises(ProviderDown):
            await _ask(taken)
        assert told == []
        open_folder.chmod(0o700)
        assert await asyncio.to_thread(server.is_healthy, taken)
    assert told


async def test_a_socket_that_a_killed_server_left_behind_stops_nobody(starter: Path):
    path = server.socket_file(this_host())
    path.parent.mkdir(parents=True, mode=0o700)
    path.write_text("left")
    assert await asyncio.to_thread(server.is_healthy, await ensure(starter))


async def test_the_server_is_at_a_socket_and_at_no_port(starter: Path):
    running = await ensure(starter)
    assert await asyncio.to_thread(Path(running.socket).is_socket)
