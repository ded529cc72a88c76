"""Tools that do not end: each call ends in time all the same, and can be cancelled."""

import asyncio
import gc
import threading
from collections.abc import Generator
from typing import Any

import pytest

from rows import every_row
from tools.odd import FINE, Odd, Print, failure_of, result_of
from ybs.config.schema import SafetySettings
from ybs.core.errors import ToolError
from ybs.core.messages import ToolCall
from ybs.core.ports import ToolOutput
from ybs.security.policy.case import Subject
from ybs.security.policy.confirm import Gate
from ybs.security.policy.policy import Policy
from ybs.tools import toolbox
from ybs.tools.calls import supervise
from ybs.tools.toolbox import LocalToolbox


@pytest.fixture
def no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervise, "GRACE_SECONDS", 0.01)


async def test_a_tool_that_never_returns_is_ended_at_its_limit():
    tool = Odd(lambda _print: asyncio.Event().wait())
    result = await result_of(tool, limit=0.01)
    assert "odd did not end within 0.01 s and was stopped" in result.output
    assert tool.is_done


@pytest.mark.integration
@pytest.mark.usefixtures("no_grace")
@every_row("is_stubborn", [False, True])
async def test_a_tool_that_swallows_its_cancellation_is_dropped(is_stubborn: bool):
    async def act(_print: Print) -> None:
        stays = is_stubborn
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                continue
            except GeneratorExit:
                if not stays:
                    raise
                stays = False

    others = asyncio.all_tasks()
    assert "did not end" in await failure_of(act, limit=0.01)
    assert asyncio.all_tasks() == others, "what is left would hold up the end of ybs"


async def test_a_tool_that_blocks_in_a_thread_is_left_at_its_limit():
    free = threading.Event()
    tool = Odd(lambda _print: asyncio.to_thread(free.wait))
    try:
        assert "did not end" in (await result_of(tool, limit=0.01)).output
    finally:
        free.set()


async def test_a_tool_says_itself_how_long_it_may_take():
    class Hasty(Odd):
        longest_seconds = 0.01

    made = LocalToolbox(
        [Hasty(lambda _print: asyncio.Event().wait())], Gate(Policy(SafetySettings()))
    )
    result = await made.run(ToolCall(id="1", name="odd"), lambda event: None)
    assert "within 0.01 s" in result.output


async def test_timeouts_inside_a_tool_are_its_own_affair():
    async def act(_print: Print) -> ToolOutput:
        for _ in range(3):
            try:
                async with asyncio.timeout(0):
                    await asyncio.Event().wait()
            except TimeoutError:
                continue
        return FINE

    assert (await result_of(Odd(act))).output == "fine"


@pytest.mark.usefixtures("no_grace")
@every_row("swallows", [False, True])
async def test_cancelling_ends_the_tool_and_passes(swallows: bool):
    began = asyncio.Event()

    async def act(_print: Print) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if not swallows:
                raise
            await asyncio.Event().wait()

    told: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    tool = Odd(act)
    task = asyncio.create_task(result_of(tool))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert tool.is_done
    assert told == []


async def test_a_second_cancellation_does_not_wait_for_the_tool():
    began, asked = asyncio.Event(), asyncio.Event()

    async def act(_print: Print) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            asked.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(result_of(Odd(act)))
    await began.wait()
    task.cancel()
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_a_tool_whose_loop_is_gone_is_closed_without_an_error():
    class Forever:
        def __await__(self) -> Generator[None, None, str]:
            yield
            return "never"

    work = supervise._Supervision().hold(Forever, "odd")
    work.send(None)
    work.close()


@pytest.mark.integration
async def test_a_result_that_comes_too_late_bothers_nobody(no_grace: None):
    async def act(_print: Print) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ToolError("too late") from None

    told: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    assert "did not end" in await failure_of(act, limit=0.01)
    gc.collect()  # what nobody has looked at is told of when it goes
    assert told == []


@every_row("method", ["preview", "subject"])
async def test_looking_at_a_call_may_crash_or_hang(method: str, monkeypatch: pytest.MonkeyPatch):
    free = threading.Event()

    def crash(_arguments: Any) -> Any:
        raise SystemExit(1)

    def hang(_arguments: Any) -> Any:
        free.wait()
        return Subject()

    async def act(_print: Print) -> ToolOutput:
        raise AssertionError("it must not run")

    tool = Odd(act)
    monkeypatch.setattr(tool, method, crash, raising=False)
    assert "SystemExit: 1" in (await result_of(tool)).output
    monkeypatch.setattr(tool, method, hang)
    monkeypatch.setattr(toolbox, "PREPARE_SECONDS", 0.01)
    try:
        result = await result_of(tool)
    finally:
        free.set()
    assert "did not even begin within 0.01 s; nothing was done" in result.output


async def test_a_preview_of_another_type_is_a_mistake(monkeypatch: pytest.MonkeyPatch):
    tool = Odd(lambda _print: asyncio.Event().wait())
    monkeypatch.setattr(tool, "preview", lambda _arguments: None)
    assert "not Preview" in (await result_of(tool)).output
