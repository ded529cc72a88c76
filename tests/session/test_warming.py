"""What is loaded while a session waits, and that nothing is while it does not."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import aclosing

import pytest

from rows import every_row
from ybs.core.messages import UserMessage
from ybs.core.ports import Request
from ybs.session import warming
from ybs.session.warming import Warming
from ybs.testing import ScriptedModel


class Steps:
    """Steps that are counted instead of taken; `begun` is set with the first one, `done` with the last one."""

    def __init__(self, count: int) -> None:
        self.left, self.begun, self.done = count, asyncio.Event(), asyncio.Event()

    def __call__(self) -> Iterator[str]:
        while self.left:
            self.left -= 1
            self.begun.set()
            if not self.left:
                self.done.set()
            yield "a step"


def warming_of(steps: Steps, monkeypatch: pytest.MonkeyPatch) -> Warming:
    monkeypatch.setattr(warming, "_steps", steps)
    return Warming(has_sandbox=False)


async def test_all_steps_are_taken_while_somebody_waits(monkeypatch: pytest.MonkeyPatch):
    steps = Steps(3)
    with warming_of(steps, monkeypatch).waiting():
        await steps.done.wait()
    assert steps.left == 0


async def test_no_step_is_taken_after_the_wait(monkeypatch: pytest.MonkeyPatch):
    steps, others = Steps(2), Steps(2)
    warm = warming_of(steps, monkeypatch)
    with warm.waiting():
        pass
    with warming_of(others, monkeypatch).waiting():  # so long the loop runs
        await others.done.wait()
    assert steps.left == 2


async def test_a_later_wait_goes_on_with_the_steps_that_are_left(monkeypatch: pytest.MonkeyPatch):
    steps = Steps(3)
    warm = warming_of(steps, monkeypatch)
    with warm.waiting():
        await steps.begun.wait()
    assert steps.left == 2
    with warm.waiting():
        await steps.done.wait()


async def test_a_model_that_answers_late_gives_time_for_the_steps(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(warming, "MODEL_SECONDS", 0.0)
    steps = Steps(2)

    async def late(_request: Request) -> str:
        await steps.done.wait()
        return "fine"

    model = warming_of(steps, monkeypatch).awaiting(ScriptedModel([late]))
    async with aclosing(model.stream(Request("", [UserMessage.of("hello")]))) as events:
        said = [event async for event in events]
    plain = ScriptedModel(["fine"])
    async with aclosing(plain.stream(Request("", [UserMessage.of("hello")]))) as events:
        assert said == [event async for event in events]
    assert (model.name, model.window, steps.left) == ("scripted", 32_768, 0)


@every_row("has_sandbox, tries", [(True, 1), (False, 0)])
async def test_the_sandbox_is_tried_once_beside_the_first_answer(has_sandbox, tries, monkeypatch):
    started: list[str] = []

    class FakeThread:
        def __init__(self, *, target: object, name: str, daemon: bool) -> None:
            self.name = name

        def start(self) -> None:
            started.append(self.name)

    monkeypatch.setattr(warming, "Thread", FakeThread)
    monkeypatch.setattr(warming, "_steps", Steps(0))
    model = Warming(has_sandbox=has_sandbox).awaiting(ScriptedModel(["one", "two"]))
    for _ in range(2):
        async with aclosing(model.stream(Request("", [UserMessage.of("hello")]))) as events:
            assert [event async for event in events]
    later = asyncio.Event()  # later than a start that the second answer would have asked for
    asyncio.get_running_loop().call_later(warming.SENDING_SECONDS, later.set)
    await later.wait()
    assert started == ["ybs-sandbox"] * tries


@pytest.mark.integration
def test_all_that_is_named_can_be_loaded_and_the_sandbox_is_tried():
    code = (
        "from ybs.session import warming; import sys;"
        "from ybs.security.sandbox import choice; warming._try_sandbox();"
        "print(choice.tried_bubblewrap.cache_info().currsize, *warming._steps(), sep='\\n');"
        "print(not {*warming.FOR_EDITS, *warming.FOR_COMMANDS, *warming.FOR_ENDS} - set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert (lines[0], lines[-1]) == ("1", "True")
