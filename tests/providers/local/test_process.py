"""A process that outlives its run is known by its number and its start time, on systems with /proc and without."""

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from ybs.providers.local import process

pytestmark = pytest.mark.integration
WAITS = (sys.executable, "-c", "input()")


@pytest.fixture(params=[True, False])
def has_proc(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Run a test as on Linux, then as on a system without /proc."""
    if request.param and not process.HAS_PROC:
        pytest.skip("NOT TESTED: this system has no /proc")
    if not request.param and shutil.which("ps", path=os.defpath) is None:
        pytest.skip("NOT TESTED: ps is not installed")
    monkeypatch.setattr(process, "HAS_PROC", request.param)
    return bool(request.param)


@pytest.fixture
def child() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(WAITS, stdin=subprocess.PIPE, start_new_session=True) as waiting:
        yield waiting
        waiting.kill()


@pytest.mark.usefixtures("has_proc")
def test_a_start_time_stays_while_the_process_lives(child: "subprocess.Popen[bytes]"):
    started = process.start_time(child.pid)
    assert started
    assert process.start_time(child.pid) == started
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert process.start_time(child.pid) == ""  # a zombie
    child.wait()
    assert process.start_time(child.pid) == ""


@pytest.mark.usefixtures("has_proc")
async def test_a_process_is_ended_only_by_its_own_start_time(child: "subprocess.Popen[bytes]"):
    for other in ("", "1"):
        await process.end(child.pid, other)
        assert child.poll() is None
    await process.end(child.pid, process.start_time(child.pid))
    assert child.wait() == -15


@pytest.mark.skipif(
    shutil.which("ps", path=os.defpath) is None, reason="NOT TESTED: ps is not installed"
)
async def test_nothing_else_waits_for_ps(child, monkeypatch):
    ask, threads = process._start_time_of_ps, set[int]()

    def noted(pid: int) -> str:
        threads.add(threading.get_ident())
        return ask(pid)

    monkeypatch.setattr(process, "HAS_PROC", False)
    monkeypatch.setattr(process, "_start_time_of_ps", noted)
    await process.end(child.pid, await process.unblocked(process.start_time, child.pid))
    assert child.wait() == -15
    assert threads
    assert threading.get_ident() not in threads


def test_without_a_ps_no_process_is_known(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(process, "HAS_PROC", False)
    monkeypatch.setattr(process, "named_system_program", lambda _name: None)
    assert process.start_time(os.getpid()) == ""
