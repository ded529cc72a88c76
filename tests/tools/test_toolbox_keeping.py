"""Before a tool changes something, what is there can be kept, and looked at again after it; no failure of that stops it."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from tools.conftest import MakeBench
from tools.odd import FINE, Odd, OddWriter, Print, box
from ybs.core.errors import ToolError
from ybs.core.messages import ToolCall
from ybs.core.ports import Effect

CALL = ToolCall(id="7", name="odd")


class Hook:
    """What is called before a change: it notes what it was told, and fails if it is given an error."""

    def __init__(self, error: Exception | None = None) -> None:
        self.told: list[tuple[Effect, tuple[str, ...]]] = []
        self.error = error

    async def __call__(self, effect: Effect, paths: Sequence[str]) -> None:
        self.told.append((effect, tuple(paths)))
        if self.error is not None:
            raise self.error


class Looking(Hook):
    """A hook that notes whether a file is there."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file
        self.seen: list[bool] = []

    async def __call__(self, effect: Effect, paths: Sequence[str]) -> None:
        await super().__call__(effect, paths)
        self.seen.append(self._file.exists())


async def test_a_change_is_announced_with_its_paths_before_it_is_made(make_bench: MakeBench):
    bench = make_bench()
    bench.toolbox.before_change = hook = Looking(bench.workspace.roots.folder / "a.txt")
    await bench.ok("write_file", path="./a.txt", content="one\n")
    await bench.ok("read_file", path="a.txt")
    await bench.ok("edit_file", path="a.txt", old_text="one", new_text="two")
    await bench.ok("delete_file", path="a.txt")
    assert hook.told == [("write", ("a.txt",)), ("edit", ("a.txt",)), ("delete", ("a.txt",))]
    assert hook.seen == [False, True, True]


async def test_a_tool_that_does_not_say_what_it_changes_is_announced_too():
    async def act(_print: Print) -> object:
        return FINE

    toolbox = box(OddWriter(act), dry_run=False)
    toolbox.before_change = hook = Hook()
    toolbox._gate.policy.mode = "bypass"  # pyright: ignore[reportPrivateUsage]
    assert not (await toolbox.run(CALL, lambda _: None)).is_error
    assert hook.told == [("write", ())]


async def test_what_is_refused_or_only_shown_or_read_is_not_announced(make_bench: MakeBench):
    async def act(_print: Print) -> object:
        return FINE

    hook = Hook()
    refused = make_bench(mode="plan")
    refused.toolbox.before_change = hook
    assert (await refused.call("write_file", path="a", content="b")).result.is_refused
    dry = make_bench(dry_run=True)
    dry.toolbox.before_change = hook
    await dry.ok("write_file", path="a", content="b")
    reading = box(Odd(act))
    reading.before_change = hook
    assert not (await reading.run(CALL, lambda _: None)).is_error
    assert hook.told == []


async def test_a_failure_to_keep_is_a_note_and_the_tool_runs(make_bench: MakeBench):
    bench = make_bench()
    bench.toolbox.before_change = Hook(ToolError("the disk is full"))
    answered = await bench.ok("write_file", path="a", content="b")
    assert "[note: the person cannot undo this: the disk is full]" in answered.output
    assert (bench.workspace.roots.folder / "a").read_text() == "b"
    bench.toolbox.before_change = Hook(ValueError("odd"))
    answered = await bench.ok("write_file", path="b", content="b")
    assert "cannot undo this: keeping the files failed" in answered.output


async def test_what_a_change_left_is_looked_at_and_a_failure_of_that_says_nothing(
    make_bench: MakeBench,
):
    bench = make_bench()
    bench.toolbox.after_change = hook = Looking(bench.workspace.roots.folder / "a.txt")
    await bench.ok("write_file", path="a.txt", content="one\n")
    await bench.ok("read_file", path="a.txt")
    assert hook.told == [("write", ("a.txt",))]
    assert hook.seen == [True]
    bench.toolbox.after_change = Hook(ToolError("the disk is full"))
    answered = await bench.ok("write_file", path="a.txt", content="b")
    assert "full" not in answered.output


async def test_a_tool_that_fails_is_looked_at_too():
    async def act(_print: Print) -> object:
        raise ToolError("half of it is done")

    toolbox = box(OddWriter(act), dry_run=False)
    toolbox.after_change = hook = Hook()
    toolbox._gate.policy.mode = "bypass"  # pyright: ignore[reportPrivateUsage]
    assert (await toolbox.run(CALL, lambda _: None)).is_error
    assert hook.told == [("write", ())]


async def test_a_call_that_is_cancelled_twice_is_looked_at_to_the_end():
    began, looking, go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()
    done: list[str] = []

    async def act(_print: Print) -> object:
        began.set()
        await asyncio.Event().wait()
        return FINE

    async def look(effect: Effect, _paths: Sequence[str]) -> None:
        looking.set()
        await go_on.wait()
        done.append(effect)

    toolbox = box(OddWriter(act), dry_run=False)
    toolbox.after_change = look
    toolbox._gate.policy.mode = "bypass"  # pyright: ignore[reportPrivateUsage]
    running = asyncio.ensure_future(toolbox.run(CALL, lambda _: None))
    await began.wait()
    running.cancel()
    await looking.wait()
    running.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert done == ["write"]
