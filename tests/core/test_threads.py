"""Work in a thread: waited for at once where it is short, and left behind where it does not end."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from contextvars import ContextVar
from time import monotonic
from typing import Any

import pytest

from rows import every_row
from ybs.core import threads
from ybs.core.threads import in_thread

_WORKER = threads._Worker
_named: ContextVar[str] = ContextVar("_named")


@pytest.fixture(autouse=True)
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the threads of this test, and keep those of others out, which may come back from their work meanwhile."""
    made: list[Any] = []

    class Idle(list[Any]):
        def append(self, worker: Any) -> None:
            if worker in made:
                super().append(worker)

    def worker() -> Any:
        made.append(_WORKER())
        return made[-1]

    monkeypatch.setattr(threads, "_Worker", worker)
    monkeypatch.setattr(threads, "_idle", Idle())
    monkeypatch.setattr(threads, "_busy", set())
    return made


async def _until_idle(worker: Any) -> None:
    for _ in range(10_000):
        if worker in threads._idle:
            return
        await asyncio.sleep(0.001)
    pytest.fail("the thread has not come back")


@every_row("at_once", [0.0, 5.0])
async def test_a_value_comes_back_and_a_failure_is_raised_as_it_was(monkeypatch, at_once):
    monkeypatch.setattr(threads, "MOST_BLOCKING_SECONDS", at_once)

    def fail() -> None:
        raise KeyError("gone")

    assert await in_thread(threading.get_ident) != threading.get_ident()
    with pytest.raises(KeyError, match="gone"):
        await in_thread(fail)
    assert await in_thread(lambda: None) is None


async def test_the_thread_has_the_context_of_who_calls():
    for value in ("one", "two"):
        _named.set(value)
        assert await in_thread(_named.get) == value


async def test_short_work_is_done_before_the_loop_goes_on(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(threads, "MOST_BLOCKING_SECONDS", 60.0)
    turns: list[str] = []
    asyncio.get_running_loop().call_soon(turns.append, "loop")
    assert await in_thread(lambda: list(turns)) == []
    assert turns == []


async def test_the_loop_does_not_stand_still_for_long_work_nor_for_a_second_piece(monkeypatch):
    free, set_by_the_loop = threading.Event(), threading.Event()
    first = asyncio.create_task(in_thread(free.wait))
    await asyncio.sleep(0)
    assert not first.done()
    monkeypatch.setattr(threads, "MOST_BLOCKING_SECONDS", 5.0)
    asyncio.get_running_loop().call_soon(set_by_the_loop.set)
    began = monotonic()
    assert await in_thread(set_by_the_loop.wait)
    assert monotonic() - began < 5
    free.set()
    assert await first


async def test_work_that_is_done_before_anybody_waits_for_it_has_its_result(monkeypatch):
    free = threading.Event()
    first = asyncio.create_task(in_thread(free.wait))
    await asyncio.sleep(0)

    class Quick(_WORKER):
        def do(self, work: Callable[[], None]) -> None:
            done = threading.Event()
            super().do(lambda: (work(), done.set())[0])
            done.wait()

    monkeypatch.setattr(threads, "_Worker", Quick)
    async with asyncio.timeout(5):
        assert await in_thread(lambda: 5) == 5
    free.set()
    assert await first


async def test_what_takes_too_long_is_left_behind_and_its_thread_is_used_again(made: list[Any]):
    free, told = threading.Event(), list[Any]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    with pytest.raises(TimeoutError):
        await in_thread(free.wait, 0.01)
    (worker,) = made
    assert threads._busy == {worker}
    free.set()
    await _until_idle(worker)
    assert threads._busy == set()
    assert await in_thread(lambda: 5) == 5
    assert (made, told) == ([worker], [])


async def test_an_answer_after_the_loop_has_gone_bothers_nobody(made: list[Any]):
    free = threading.Event()

    def in_another_loop() -> None:
        with pytest.raises(TimeoutError):
            asyncio.run(in_thread(free.wait, 0.01))

    await asyncio.to_thread(in_another_loop)
    (worker,) = made
    assert worker not in threads._idle
    free.set()
    await _until_idle(worker)
    assert await in_thread(lambda: 5) == 5
    assert made == [worker]


@pytest.mark.integration
def test_work_that_does_not_end_holds_up_no_exit():
    program = """
import asyncio, threading
from ybs.core.threads import in_thread
try:
    asyncio.run(in_thread(threading.Event().wait, 0.01))
except TimeoutError:
    print("left behind")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=8)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"left behind\n", b"")


async def test_a_machine_without_threads_is_slow_but_works(monkeypatch: pytest.MonkeyPatch):
    def no_more(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", no_more)
    assert await in_thread(threading.get_ident) == threading.get_ident()


async def test_cancelling_who_waits_ends_the_wait_alone():
    free, ended = threading.Event(), threading.Event()

    def work() -> None:
        free.wait()
        ended.set()

    waiting = asyncio.create_task(in_thread(work))
    await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not ended.is_set()
    free.set()
    assert await asyncio.to_thread(ended.wait, 10)


async def test_a_cancellation_that_was_asked_for_comes_with_the_next_wait_however_short(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(threads, "MOST_BLOCKING_SECONDS", 60.0)
    done: list[str] = []
    begun = monotonic()

    async def cancelling() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        try:
            await in_thread(lambda: done.append("work"))
            done.append("more")
        except asyncio.CancelledError:
            done.append(await in_thread(lambda: "tidied up"))  # which is not cancelled again
            raise

    with pytest.raises(asyncio.CancelledError):
        await asyncio.ensure_future(cancelling())
    assert done == ["work", "tidied up"]
    assert monotonic() - begun < 30  # of 60


async def test_many_at_a_time_all_come_to_their_end():
    values = await asyncio.gather(*(in_thread(lambda n=n: n * n) for n in range(200)))
    assert values == [n * n for n in range(200)]
