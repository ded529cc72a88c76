"""What anybody's tool may do wrong: each becomes a result that the model reads, and the session goes on."""

import asyncio
import io
import logging
import threading
from typing import Any

import pytest
from msgspec import Raw

from rows import every_row
from tools.odd import FINE, Odd, OddWriter, Print, box, failure_of, result_of
from ybs.config.schema import SafetySettings
from ybs.core.errors import ToolError
from ybs.core.events import ToolPrinted
from ybs.core.messages import ToolCall
from ybs.core.ports import Answer, Question, ToolOutput
from ybs.security.policy.confirm import Gate
from ybs.security.policy.policy import Policy
from ybs.tools.calls import live
from ybs.tools.toolbox import LocalToolbox


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class UnspeakableToolError(ToolError):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@every_row(
    "error",
    [
        SystemExit(3),
        KeyboardInterrupt("stop"),
        GeneratorExit("odd"),
        RecursionError("deep"),
        MemoryError("full"),
        StopIteration("x"),
        TimeoutError("late"),
        ExceptionGroup("many", [ValueError("a")]),
        BaseExceptionGroup("many", [KeyboardInterrupt()]),
    ],
)
async def test_whatever_a_tool_raises_is_a_result(error: BaseException):
    async def act(_print: Print) -> None:
        raise error

    output = await failure_of(act)
    assert "odd failed by a mistake of its own" in output


async def test_a_mistake_of_a_tool_is_told_to_the_log_and_not_to_the_terminal(capsys):
    async def act(_print: Print) -> None:
        raise ValueError("odd")

    assert "ValueError: odd" in await failure_of(act)
    assert capsys.readouterr() == ("", "")
    log, told = logging.getLogger("ybs.tools.calls.supervise"), io.StringIO()
    handler = logging.StreamHandler(told)
    log.addHandler(handler)
    try:
        await failure_of(act)
    finally:
        log.removeHandler(handler)
    assert told.getvalue().startswith("the tool odd failed\nTraceback")


async def test_an_error_without_words_is_a_result_too():
    async def act(_print: Print) -> None:
        raise Unspeakable

    async def act_on_purpose(_print: Print) -> None:
        raise UnspeakableToolError

    assert "Unspeakable: its message cannot be read" in await failure_of(act)
    assert "its message cannot be read" in await failure_of(act_on_purpose)


async def test_a_tool_that_cancels_itself_does_not_end_the_turn():
    async def act(_print: Print) -> None:
        raise asyncio.CancelledError

    assert "it cancelled itself" in await failure_of(act)


@every_row(
    ("value", "said"),
    [
        (None, "it returned NoneType, not ToolOutput"),
        ("text", "it returned str"),
        (ToolOutput(output=5), "not text"),  # pyright: ignore[reportArgumentType]
        (ToolOutput(output="", summary=None), "not text"),  # pyright: ignore[reportArgumentType]
        (ToolOutput(output="", images=["x"]), "no tuple"),  # pyright: ignore[reportArgumentType]
        (ToolOutput(output="", images=("x",)), "no tuple"),  # pyright: ignore[reportArgumentType]
        (ToolOutput(output="", changes=({"path": "x"},)), "not a tuple of FileChange"),  # pyright: ignore[reportArgumentType]
    ],
)
async def test_a_wrong_type_is_a_result(value: Any, said: str):
    async def act(_print: Print) -> Any:
        return value

    assert said in await failure_of(act)


async def test_a_tool_that_is_no_coroutine_is_a_result():
    tool = Odd(lambda _print: FINE)  # pyright: ignore[reportArgumentType]
    assert "TypeError" in (await result_of(tool)).output


async def test_a_result_object_that_cannot_be_encoded_costs_only_itself():
    circle: list[Any] = []
    circle.append(circle)
    for display in (object(), circle, "x" * 8_000_001):

        async def act(_print: Print, display: Any = display) -> ToolOutput:
            return ToolOutput(output="text", display=display)

        result = await result_of(Odd(act))
        assert result.output.startswith("text\n[note: its result object is lost: ")
        assert bytes(result.display) == b'{"success":true}'
        assert not result.is_error


async def test_half_characters_reach_nobody():
    async def act(_print: Print) -> ToolOutput:
        return ToolOutput(output="a\ud800b ä", summary="\udcff")

    result = await result_of(Odd(act))
    assert (result.output, result.summary) == ("a?b ä", "?")

    async def fail(_print: Print) -> ToolOutput:
        raise ToolError("no \ud800")

    assert await failure_of(fail) == "no ?"


@pytest.mark.integration
async def test_huge_output_is_cut():
    async def act(_print: Print) -> ToolOutput:
        return ToolOutput(output="x" * 10_000_000, summary="y" * 1_000_000)

    result = await result_of(Odd(act))
    assert len(result.output) <= 10_000
    assert len(result.summary) <= 1_000


async def test_printing_is_bounded_and_ends_with_the_call(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(live, "MOST_CHARS", 10)
    kept: list[Print] = []

    async def act(print_live: Print) -> ToolOutput:
        kept.append(print_live)
        for _ in range(9):
            print_live("abcd")
        return FINE

    events: list[Any] = []
    await result_of(Odd(act), events.append)
    kept[0]("too late")
    text = "".join(event.text for event in events)
    assert text == "abcdabcdab\n[no more of this output is shown here]\n"


async def test_printing_without_end_is_an_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(live, "MOST_PIECES", 1000)

    async def act(print_live: Print) -> ToolOutput:
        while True:  # it never waits, so nothing else would end it
            print_live("x")

    assert "printed without end" in await failure_of(act)


async def test_a_thread_may_print():
    threads: set[int] = set()

    async def act(print_live: Print) -> ToolOutput:
        await asyncio.to_thread(print_live, "from far")
        return FINE

    events: list[Any] = []

    def emit(event: Any) -> None:
        threads.add(threading.get_ident())
        events.append(event)

    await result_of(Odd(act), emit)
    assert events == [ToolPrinted(id="7", text="from far")]
    assert threads == {threading.get_ident()}


async def test_what_a_thread_prints_at_the_very_end_is_dropped():
    events: list[Any] = []
    printer = live.LiveOutput("7", events.append)
    thread = threading.Thread(target=printer, args=("late",))
    thread.start()
    thread.join()  # printed, but the loop had no time to show it
    printer.close()
    await asyncio.sleep(0)
    assert events == []


async def test_a_question_that_crashes_is_a_refusal():
    async def crash(_question: Question) -> Answer:
        raise RuntimeError("no screen")

    async def act(_print: Print) -> ToolOutput:
        raise AssertionError("it must not run")

    made = LocalToolbox([OddWriter(act)], Gate(Policy(SafetySettings()), crash))
    result = await made.run(ToolCall(id="1", name="odd"), lambda event: None)
    assert result.is_refused
    assert "could not be confirmed; nothing was done" in result.output
    assert "no screen" in result.output


async def test_cancelling_a_question_lets_the_next_one_be_asked():
    asked: asyncio.Queue[Question] = asyncio.Queue()
    answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

    async def ask(question: Question) -> Answer:
        asked.put_nowait(question)
        return await asyncio.shield(answer)

    async def act(_print: Print) -> ToolOutput:
        return FINE

    made = LocalToolbox([OddWriter(act)], Gate(Policy(SafetySettings()), ask))
    first = asyncio.create_task(made.run(ToolCall(id="1", name="odd"), lambda event: None))
    await asked.get()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    answer.set_result(Answer(is_allowed=True))
    result = await made.run(ToolCall(id="2", name="odd"), lambda event: None)
    assert result.output == "fine"


async def test_arguments_nested_too_deep_are_refused():
    async def act(_print: Print) -> ToolOutput:
        raise AssertionError("it must not run")

    deep = b'{"a":' + b"[" * 5_000 + b"]" * 5_000 + b"}"
    result = await box(OddWriter(act)).run(
        ToolCall(id="1", name="odd", arguments=Raw(deep)), lambda event: None
    )
    assert result.is_error
    assert len(result.output) < 2_000
