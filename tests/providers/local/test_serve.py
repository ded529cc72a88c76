"""When the server's process ends by itself."""

import asyncio
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from ybs.config.private_file import Unsafe
from ybs.providers.local import process, serve
from ybs.providers.local.server import SOCKET, ServerArguments, SocketConnection, command


@pytest.fixture
def job(tmp_path: Path) -> ServerArguments:
    state = tmp_path / "llama.json"
    state.write_text("{}")
    os.utime(state, (1000.0, 1000.0))
    return ServerArguments(
        model="m.gguf",
        template="t.jinja",
        alias="m",
        key="k",
        window=1024,
        threads=1,
        reading_threads=2,
        state_file=str(state),
        slots_folder=str(tmp_path),
        idle_seconds=60,
    )


class Clock:
    """Time that passes by five seconds with every look."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        self.now += 5.0
        return self.now


def test_it_ends_when_no_run_has_used_it_for_long(job: ServerArguments):
    clock = Clock()
    serve.wait_until_unused(job, Event(), is_working=lambda: False, look_seconds=0, now=clock)
    assert 1060 <= clock.now <= 1070


def test_a_run_that_touches_the_state_file_puts_the_end_off(job: ServerArguments):
    clock = Clock()
    os.utime(job.state_file, (1500.0, 1500.0))
    serve.wait_until_unused(job, Event(), is_working=lambda: False, look_seconds=0, now=clock)
    assert clock.now >= 1560


def test_a_long_answer_is_not_cut_off(job: ServerArguments):
    clock, working = Clock(), iter([True, True, False])
    serve.wait_until_unused(
        job, Event(), is_working=lambda: next(working), look_seconds=0, now=clock
    )
    assert clock.now >= 1180


def test_it_ends_when_told(job: ServerArguments):
    ended = Event()
    ended.set()
    clock = Clock()
    serve.wait_until_unused(job, ended, is_working=lambda: True, look_seconds=0, now=clock)
    assert clock.now == 1005


def test_it_ends_when_nobody_can_find_it_any_more(job: ServerArguments):
    Path(job.state_file).unlink()
    serve.wait_until_unused(job, Event(), is_working=lambda: True, look_seconds=0, now=Clock())


def test_a_server_that_does_not_answer_is_not_working(job: ServerArguments):
    assert not serve.is_working(job)


class FakeLlama:
    """What the server would be started with."""

    class CommonParams:
        def __init__(self) -> None:
            self.model, self.cpuparams, self.cpuparams_batch = (SimpleNamespace() for _ in range(3))
            self.chat_template = "the model's own"

    @staticmethod
    def Server(parameters: object) -> object:
        return parameters


@pytest.mark.parametrize(("template", "served"), [("mine", "mine"), ("", "the model's own")])
def test_the_server_gets_what_the_job_says(job, monkeypatch, template, served):
    monkeypatch.setitem(sys.modules, "xllamacpp", FakeLlama)
    got = serve.start(replace(job, template=template))
    assert (got.hostnames, got.api_keys) == ([SOCKET], ["k"])
    assert (got.n_ctx, got.cpuparams.n_threads, got.cpuparams_batch.n_threads) == (1024, 1, 2)
    assert got.slot_save_path == f"{job.slots_folder}/"
    assert got.chat_template == served
    assert got.n_batch == serve.BATCH  # so that it tells how far it is


def test_a_graphics_processor_reads_as_much_at_a_time_as_it_likes(job, monkeypatch):
    monkeypatch.setitem(sys.modules, "xllamacpp", FakeLlama)
    on_gpu = replace(job, gpu_layers=9)
    assert not hasattr(serve.start(on_gpu), "n_batch")
    for given in (job, on_gpu):
        words = serve.program_arguments(replace(given, template="", program="x"))
        assert ("--batch-size" in words) is (given is job)


def test_the_template_is_a_file_of_the_persons_alone_and_no_link_is_followed(job, tmp_path: Path):
    elsewhere, state = tmp_path / "notes", tmp_path / "state"
    elsewhere.write_text("mine")
    given = replace(job, template="t", program="x", state_file=str(state / "llama.json"))
    before = os.umask(0)
    try:
        *_, word, file = serve.program_arguments(given)
    finally:
        os.umask(before)
    assert (word, Path(file).read_text()) == ("--chat-template-file", "t")
    assert stat.S_IMODE(Path(file).stat().st_mode) == 0o600
    Path(file).unlink()
    Path(file).symlink_to(elsewhere)
    with pytest.raises(Unsafe, match="is a link"):
        serve.program_arguments(given)
    assert elsewhere.read_text() == "mine"


@pytest.mark.integration
def test_the_log_ends_where_requests_begin(tmp_path: Path):
    code = (
        "import os, sys; from ybs.providers.local.serve import end_log; end_log('ready\\n');"
        "sys.stderr.write('what was asked'); print('what was asked'); sys.stderr.flush();"
        "os.system('echo what was asked; echo and answered >&2')"
    )
    log = tmp_path / "llama.log"
    with log.open("wb") as file:
        subprocess.run([sys.executable, "-c", code], stdout=file, stderr=file, check=True)
    assert log.read_text() == "ready\n"


@pytest.mark.integration
def test_nothing_is_imported_out_of_the_folder_that_ybs_stands_in(project: Path):
    for name in ("msgspec", "xllamacpp", "ybs"):
        (project / f"{name}.py").write_text("open('was_here', 'w')")
    ended = subprocess.run(command(), input=b"no job", capture_output=True, check=False, timeout=9)
    assert b"DecodeError" in ended.stderr
    assert not (project / "was_here").exists()


class Served:
    """A server program under the process that keeps it."""

    def __init__(self, job: ServerArguments, log: Path) -> None:
        self.job, self.log = job, log
        self.pid = process.spawn(command(), msgspec.json.encode(job), log, os.environ)
        self.started = process.start_time(self.pid)

    def ask(self, path: str) -> tuple[int, dict[str, Any]]:
        connection = SocketConnection(str(Path(self.job.state_file).with_name(SOCKET)), timeout=5)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {self.job.key}"})
            response = connection.getresponse()
            return response.status, msgspec.json.decode(response.read())
        finally:
            connection.close()

    def wait_until(self, is_so: Callable[[], object]) -> None:
        while not is_so():
            assert process.start_time(self.pid) == self.started, self.log.read_text()

    def is_up(self) -> bool:
        try:
            return self.ask("/health")[0] == 200
        except OSError:
            return False


@pytest.fixture
def program(job: ServerArguments, tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """Return a function that has the fake program served by the real process."""
    script = tmp_path / "llama-server"
    fake = Path(__file__).with_name("fake_llama_server.py")
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {fake} "$@"\n')
    script.chmod(0o755)
    served: list[Served] = []

    def serve_it(**changes: Any) -> Served:
        given = replace(job, program=str(script), template="{{ x }}", gpu_layers=3, **changes)
        served.append(Served(given, tmp_path / "log"))
        return served[-1]

    yield serve_it
    for each in served:
        if process.start_time(each.pid) == each.started:
            process.kill(each.pid)


@pytest.mark.integration
def test_a_program_of_the_persons_is_served_and_ended(program, tmp_path):
    served = program()
    served.wait_until(
        lambda: bool(served.log.read_text())
    )  # what is read once it is up is left out
    served.wait_until(served.is_up)
    _, got = served.ask("/health")
    assert (got["model"], got["alias"], got["host"]) == ("m.gguf", "m", SOCKET)
    assert (got["ctx_size"], got["threads"], got["n_gpu_layers"]) == (1024, 1, 3)
    assert (got["threads_batch"], got["slot_save_path"]) == (2, str(tmp_path))
    assert Path(got["chat_template_file"]).read_text() == "{{ x }}"
    arguments = Path(f"/proc/{got['pid']}/cmdline").read_bytes().split(b"\0")
    assert b"k" not in arguments
    served.ask("/quote")
    assert served.log.read_text() == "loading the model\n"
    asyncio.run(process.end(served.pid, served.started))
    assert process.start_time(got["pid"]) == ""


@pytest.mark.integration
def test_a_program_that_ends_by_itself_ends_its_keeper_with_its_code(program):
    served = program(alias="broken")
    assert os.waitpid(served.pid, 0)[1] >> 8 == 1
    assert "E model: no such file" in served.log.read_text()
    assert not Path(served.job.state_file).exists()


@pytest.mark.integration
def test_a_program_does_not_outlive_a_keeper_that_is_killed(program: Callable[..., Served]):
    served = program()
    served.wait_until(served.is_up)
    pid = served.ask("/health")[1]["pid"]
    started = process.start_time(pid)
    os.kill(served.pid, 9)
    os.waitpid(served.pid, 0)
    while process.start_time(pid) == started:
        pass
