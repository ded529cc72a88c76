"""Hooks run around each call that may change something; no failure of one stops the call or another hook."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tools.conftest import MakeBench
from tools.odd import FINE, Odd, OddWriter, Print, box
from ybs.core.errors import ToolError
from ybs.core.hooks import CallHook
from ybs.core.messages import ToolCall
from ybs.core.ports import Effect
from ybs.testing import RecordedHook

CALL = ToolCall(id="7", name="odd")


class Looking(RecordedHook):
    """A hook that notes whether a file is there, before and after."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file
        self.seen: list[bool] = []

    async def before_change(self, call: ToolCall, effect: Effect, paths: Sequence[str]) -> None:
        await super().before_change(call, effect, paths)
        self.seen.append(self._file.exists())

    async def after_change(self, call: ToolCall, effect: Effect, paths: Sequence[str]) -> None:
        await super().after_change(call, effect, paths)
        self.seen.append(self._file.exists())


async def act(_print: Print) -> object:
    return FINE


async def test_a_change_is_announced_with_its_paths_before_and_after_it_is_made(
    make_bench: MakeBench, project: Path
):
    hook = Looking(project / "a.txt")
    bench = make_bench(hooks=[hook])
    await bench.ok("write_file", path="./a.txt", content="one\n")
    await bench.ok("read_file", path="a.txt")
    await bench.ok("edit_file", path="a.txt", old_text="one", new_text="two")
    await bench.ok("delete_file", path="a.txt")
    paths = (f"{project}/a.txt",)
    assert hook.before == [("write", paths), ("edit", paths), ("delete", paths)]
    assert hook.after == hook.before
    assert hook.seen == [False, True, True, True, True, False]


async def run_odd(tool: Any, *hooks: CallHook, mode: Any = "bypass") -> Any:
    """Run a call of the tool in a mode that asks about nothing."""
    toolbox = box(tool, hooks=hooks)
    toolbox._gate.policy.mode = mode  # pyright: ignore[reportPrivateUsage]
    return await toolbox.run(CALL, lambda _: None)


async def test_a_tool_that_does_not_say_what_it_changes_is_announced_too():
    hook = RecordedHook()
    assert not (await run_odd(OddWriter(act), hook)).is_error
    assert hook.before == [("write", ())]


async def test_what_is_refused_or_only_shown_or_read_is_not_announced(make_bench: MakeBench):
    hook = RecordedHook()
    refused = make_bench(mode="plan", hooks=[hook])
    assert (await refused.call("write_file", path="a", content="b")).result.is_refused
    dry = make_bench(dry_run=True, hooks=[hook])
    await dry.ok("write_file", path="a", content="b")
    assert not (await run_odd(Odd(act), hook)).is_error
    assert (hook.before, hook.after) == ([], [])


class Keeping(RecordedHook):
    name = "keeping the files"
    loss = "the person cannot undo this"


async def test_a_failure_before_the_change_is_a_note_and_the_tool_and_the_other_hooks_run(
    make_bench: MakeBench, project: Path
):
    failing, other = Keeping(ToolError("the disk is full")), RecordedHook()
    bench = make_bench(hooks=[failing, other])
    answered = await bench.ok("write_file", path="a", content="b")
    assert "[note: the person cannot undo this: the disk is full]" in answered.output
    assert answered.output.count("[note:") == 1
    assert (project / "a").read_text() == "b"
    failing.error = ValueError("odd")
    answered = await bench.ok("write_file", path="b", content="b")
    assert "cannot undo this: keeping the files failed" in answered.output
    assert other.before == other.after == [("write", (f"{project}/{name}",)) for name in "ab"]


async def test_a_hook_says_by_itself_what_its_failure_means():
    result = await run_odd(OddWriter(act), RecordedHook(ValueError("odd")))
    assert "[note: a hook failed: a hook failed by a mistake of its own: ValueError: odd]" in (
        result.output
    )


async def test_hooks_run_in_order_before_a_change_and_in_reverse_after_it():
    order: list[str] = []

    class Named(CallHook):
        def __init__(self, name: str) -> None:
            self.name = name

        async def before_change(self, call: ToolCall, effect: Effect, paths: Sequence[str]) -> None:
            order.append(f"{self.name} before {call.name}")

        async def after_change(self, call: ToolCall, effect: Effect, paths: Sequence[str]) -> None:
            order.append(f"{self.name} after {call.name}")

    await run_odd(OddWriter(act), Named("one"), Named("two"))
    assert order == ["one before odd", "two before odd", "two after odd", "one after odd"]


async def test_a_tool_that_fails_is_looked_at_too():
    async def fail(_print: Print) -> object:
        raise ToolError("half of it is done")

    hook = RecordedHook()
    assert (await run_odd(OddWriter(fail), hook)).is_error
    assert hook.after == [("write", ())]


async def test_a_call_that_is_cancelled_twice_is_looked_at_to_the_end():
    began, looking, go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()
    done: list[str] = []

    async def wait(_print: Print) -> object:
        began.set()
        await asyncio.Event().wait()
        return FINE

    class Slow(CallHook):
        async def after_change(self, call: ToolCall, effect: Effect, paths: Sequence[str]) -> None:
            looking.set()
            await go_on.wait()
            done.append(effect)

    running = asyncio.ensure_future(run_odd(OddWriter(wait), Slow()))
    await began.wait()
    running.cancel()
    await looking.wait()
    running.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert done == ["write"]
