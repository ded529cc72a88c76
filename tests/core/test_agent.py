"""The loop: what a turn does to the conversation, and what it says on the way."""

import asyncio
from collections.abc import Callable

import pytest
from msgspec import Raw

from ybs.core.agent import Agent
from ybs.core.conversation import CANCELLED, Conversation
from ybs.core.errors import AuthError, ProviderDown, Refused, StopTurn, ToolError
from ybs.core.events import (
    AssistantSaid,
    Emit,
    Event,
    RequestStarted,
    TextStreamed,
    ToolFinished,
    ToolPrinted,
    ToolStarted,
    TurnFinished,
    UserSaid,
)
from ybs.core.messages import (
    AssistantMessage,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    UserMessage,
)
from ybs.core.ports import Guard, Turn
from ybs.testing import (
    Failing,
    RecordedEvents,
    ScriptedModel,
    ScriptedToolbox,
    ScriptOver,
    answer,
    call,
    thought,
)

PROMPT = UserMessage.of("do it")


class Scene:
    """An agent with everything made up, and what it did."""

    def __init__(
        self,
        *script: object,
        toolbox: ScriptedToolbox | None = None,
        guards: tuple[Guard, ...] = (),
        emit: Emit | None = None,
    ) -> None:
        self.events = RecordedEvents()
        self.model = ScriptedModel(script)  # pyright: ignore[reportArgumentType] - any entry
        self.toolbox = toolbox or ScriptedToolbox({"look": "seen"})
        self.conversation = Conversation("be brief")

        def sink(event: Event) -> None:
            self.events(event)
            if emit is not None:
                emit(event)

        self.agent = Agent(self.model, self.toolbox, sink, self.conversation, guards)

    async def run(self) -> TurnFinished:
        return await self.agent.run(PROMPT)

    @property
    def results(self) -> list[ToolResult]:
        return [m for m in self.conversation.messages if isinstance(m, ToolResult)]


def cancel_on(kind: type[Event], task: list[asyncio.Task[TurnFinished]]) -> Callable[[Event], None]:
    def cancel(event: Event) -> None:
        if isinstance(event, kind):
            task[0].cancel()

    return cancel


async def test_a_model_that_is_down_ends_the_turn_and_keeps_the_prompt():
    scene = Scene(ProviderDown("nobody answers at http://127.0.0.1:1"))
    finished = await scene.run()
    assert (finished.reason, finished.is_temporary, finished.steps) == ("error", True, 1)
    assert finished.message == "nobody answers at http://127.0.0.1:1"
    assert list(scene.conversation.messages) == [PROMPT]


async def test_a_refused_key_is_no_temporary_error():
    finished = await Scene(AuthError("no key")).run()
    assert (finished.reason, finished.is_temporary) == ("error", False)


async def test_each_request_of_a_turn_is_announced_with_its_number_and_a_good_end_is_no_error():
    scene = Scene(call("look"), call("look"), "done")
    finished = await scene.run()
    assert [(each.model, each.step) for each in scene.events.of(RequestStarted)] == [
        ("scripted", 1),
        ("scripted", 2),
        ("scripted", 3),
    ]
    assert (finished.reason, finished.message, finished.is_temporary) == ("done", "", False)


async def test_an_error_in_mid_stream_keeps_the_partial_text_marked_cut_off():
    scene = Scene(Failing("half of the ans", ProviderDown("broke off")))
    await scene.run()
    kept = AssistantMessage(
        content=(Text(text="half of the ans"),), stop_reason="cut_off", model="scripted"
    )
    assert list(scene.conversation.messages) == [PROMPT, kept]
    assert scene.events.of(AssistantSaid) == [AssistantSaid.of(kept)]


async def test_an_error_after_half_a_tool_call_leaves_no_call_behind():
    scene = Scene(Failing(answer(thought("hm"), call("look")), ProviderDown("broke off")))
    await scene.run()
    assert list(scene.conversation.messages) == [PROMPT]
    assert scene.toolbox.calls == []


async def test_the_session_lives_after_an_error():
    scene = Scene(ProviderDown("down"), "back again")
    await scene.run()
    finished = await scene.run()
    assert finished.reason == "done"
    assert scene.model.requests[1].messages == (PROMPT, PROMPT)


async def test_cancelling_in_mid_stream_keeps_the_partial_text_and_says_so():
    task: list[asyncio.Task[TurnFinished]] = []
    scene = Scene(answer("one two three", chunk_size=4), emit=cancel_on(TextStreamed, task))
    task.append(asyncio.create_task(scene.run()))
    with pytest.raises(asyncio.CancelledError):
        await task[0]
    said = scene.conversation.messages[-1]
    assert isinstance(said, AssistantMessage)
    assert (said.text, said.stop_reason) == ("one ", "cut_off")
    assert scene.events.of(TurnFinished)[0].reason == "interrupted"


async def test_cancelling_in_a_tool_keeps_finished_results_and_answers_the_rest():
    hangs = asyncio.Event()
    quick_is_done = asyncio.Event()

    async def hang(call: ToolCall, emit: Emit) -> str:
        await quick_is_done.wait()
        task[0].cancel()
        await hangs.wait()
        return "never"

    def quick(call: ToolCall, emit: Emit) -> str:
        quick_is_done.set()
        return "quick result"

    task: list[asyncio.Task[TurnFinished]] = []
    toolbox = ScriptedToolbox({"hang": hang, "quick": quick})
    scene = Scene(answer(call("hang"), call("quick")), "unused", toolbox=toolbox)
    task.append(asyncio.create_task(scene.run()))
    with pytest.raises(asyncio.CancelledError):
        await task[0]
    assert [(r.call_id, r.output, r.is_error) for r in scene.results] == [
        ("call_1_1", CANCELLED, True),
        ("call_1_2", "quick result", False),
    ]
    assert scene.conversation.open_calls == ()
    assert [e.id for e in scene.events.of(ToolFinished)] == ["call_1_2", "call_1_1"]
    assert scene.events.names[-1] == "TurnFinished"


async def test_writers_after_a_cancelled_one_never_start():
    started: list[str] = []

    async def write(call: ToolCall, emit: Emit) -> str:
        started.append(call.id)
        task[0].cancel()
        await asyncio.Event().wait()
        return "never"

    task: list[asyncio.Task[TurnFinished]] = []
    toolbox = ScriptedToolbox({"write": write}, writers={"write"})
    scene = Scene(answer(call("write", n=1), call("write", n=2)), toolbox=toolbox)
    task.append(asyncio.create_task(scene.run()))
    with pytest.raises(asyncio.CancelledError):
        await task[0]
    assert started == ["call_1_1"]
    assert [r.output for r in scene.results] == [CANCELLED, CANCELLED]


async def test_a_defect_in_the_toolbox_still_leaves_a_history_that_can_be_sent():
    def explode(call: ToolCall, emit: Emit) -> str:
        raise RuntimeError("a defect")

    scene = Scene(call("look"), toolbox=ScriptedToolbox({"look": explode}))
    with pytest.raises(ExceptionGroup):
        await scene.run()
    assert [r.is_error for r in scene.results] == [True]


async def test_tool_errors_and_refusals_are_read_by_the_model_and_the_turn_goes_on():
    toolbox = ScriptedToolbox({"look": ToolError("no such file"), "touch": Refused("not allowed")})
    scene = Scene(answer(call("look"), call("touch"), call("nothing")), "sorry", toolbox=toolbox)
    finished = await scene.run()
    assert finished.reason == "done"
    assert [(r.output, r.is_error, r.is_refused) for r in scene.results] == [
        ("no such file", True, False),
        ("not allowed", True, True),
        ("there is no tool 'nothing'", True, False),
    ]


async def test_the_events_of_a_turn_come_in_this_order():
    def look(call: ToolCall, emit: Emit) -> str:
        emit(ToolPrinted(id=call.id, text="..."))
        return "seen"

    toolbox = ScriptedToolbox({"look": look})
    scene = Scene(answer("I look.", call("look", at="a")), "Fine.", toolbox=toolbox)
    await scene.run()
    assert scene.events.names == [
        *("UserSaid", "RequestStarted", "TextStreamed"),
        *("ToolCallStreamed", "ToolCallStreamed", "AssistantSaid"),
        *("ToolStarted", "ToolPrinted", "ToolFinished"),
        *("RequestStarted", "TextStreamed", "AssistantSaid", "TurnFinished"),
    ]
    assert scene.events.of(UserSaid) == [UserSaid(content="do it")]
    started = scene.events.of(ToolStarted)[0]
    assert (started.id, started.name, bytes(started.arguments)) == (
        "call_1_1",
        "look",
        b'{"at":"a"}',
    )


async def test_the_model_sees_system_history_and_tools_and_steps_and_usage_are_summed():
    usage = Usage(input_tokens=7, output_tokens=3, cost_usd=0.5)
    scene = Scene(answer(call("look"), usage=usage), answer("done", usage=usage))
    finished = await scene.run()
    first, second = scene.model.requests
    assert (first.system, first.messages) == ("be brief", (PROMPT,))
    assert [spec.name for spec in first.tools] == ["look"]
    assert second.messages == tuple(scene.conversation.messages[:-1])
    assert finished.steps == 2
    assert finished.usage == Usage(input_tokens=14, output_tokens=6, cost_usd=1.0)
    assert finished.duration_seconds >= 0


async def test_an_empty_message_ends_the_turn_and_is_not_kept():
    scene = Scene(answer())
    assert (await scene.run()).reason == "done"
    assert list(scene.conversation.messages) == [PROMPT]


async def test_fifty_calls_at_once_run_side_by_side_and_are_answered_in_the_order_asked():
    barrier = asyncio.Barrier(50)

    async def look(call: ToolCall, emit: Emit) -> str:
        await barrier.wait()  # passes only when all fifty are running
        return f"result of {call.id}"

    calls = [call("look", n=n) for n in range(50)]
    scene = Scene(answer(*calls), "done", toolbox=ScriptedToolbox({"look": look}))
    assert (await scene.run()).reason == "done"
    assert [r.output for r in scene.results] == [f"result of call_1_{n}" for n in range(1, 51)]


async def test_readers_share_the_time_and_writers_wait_for_their_turn():
    log: list[str] = []
    both_read = asyncio.Barrier(2)

    async def read(call: ToolCall, emit: Emit) -> str:
        await both_read.wait()
        log.append("read")
        return ""

    async def write(call: ToolCall, emit: Emit) -> str:
        log.append("write begins")
        await asyncio.sleep(0)
        log.append("write ends")
        return ""

    toolbox = ScriptedToolbox({"read": read, "write": write}, writers={"write"})
    calls = [
        *(call("read", n=1), call("read", n=2)),
        *(call("write", n=1), call("write", n=2)),
        *(call("read", n=3), call("read", n=4)),
    ]
    scene = Scene(answer(*calls), "done", toolbox=toolbox)
    await scene.run()
    writes = ["write begins", "write ends"] * 2
    assert log == ["read", "read", *writes, "read", "read"]


async def test_identical_calls_run_once_and_every_one_gets_the_result():
    scene = Scene(answer(call("look", n=1), call("look", n=2), call("look", n=1)), "done")
    await scene.run()
    assert [c.id for c in scene.toolbox.calls] == ["call_1_1", "call_1_2"]
    assert [(r.call_id, r.output) for r in scene.results] == [
        ("call_1_1", "seen"),
        ("call_1_2", "seen"),
        ("call_1_3", "seen"),
    ]
    assert sorted(e.id for e in scene.events.of(ToolFinished)) == [
        "call_1_1",
        "call_1_2",
        "call_1_3",
    ]


class CountingGuard:
    """Looks on, stops or asks for more, as told."""

    def __init__(self, *, stops_at: int = 99, wants: int = 0) -> None:
        self.stops_at, self.wants, self.seen = stops_at, wants, 0

    async def before_step(self, turn: Turn) -> None:
        self.seen += 1
        assert turn.messages[0] == PROMPT
        if self.seen == self.stops_at:
            raise StopTurn("limit", "enough: raise agent.max_iterations")

    async def wants_more(self, turn: Turn) -> bool:
        if not self.wants:
            return False
        self.wants -= 1
        turn.say(UserMessage.of("go on", origin="guard"))
        return True


async def test_a_guard_stops_the_turn_and_its_reason_is_told():
    scene = Scene(call("look"), guards=(CountingGuard(stops_at=2),))
    finished = await scene.run()
    assert (finished.reason, finished.message) == ("limit", "enough: raise agent.max_iterations")
    assert finished.steps == 1
    assert len(scene.results) == 1


async def test_a_guard_that_wants_more_keeps_the_turn_going_and_every_guard_is_asked():
    first, second = CountingGuard(wants=1), CountingGuard(wants=1)
    scene = Scene("one", "two", guards=(first, second))
    finished = await scene.run()
    assert (finished.reason, finished.steps) == ("done", 2)
    assert (first.wants, second.wants) == (0, 0)
    assert [m.text for m in scene.model.requests[1].messages if isinstance(m, UserMessage)] == [
        "do it",
        "go on",
        "go on",
    ]


async def test_a_guard_without_an_opinion_wants_no_more():
    class Quiet(Guard):
        pass

    turn = Turn(Conversation(), RecordedEvents())
    assert await Quiet().before_step(turn) is None  # pyright: ignore[reportAbstractUsage]
    assert await Quiet().wants_more(turn) is False  # pyright: ignore[reportAbstractUsage]


async def test_a_second_turn_sees_only_its_own_messages_as_its_turn():
    guard = CountingGuard()
    scene = Scene("one", "two", guards=(guard,))
    await scene.run()
    await scene.run()  # the guard checks that the turn begins with the prompt
    assert guard.seen == 2


async def test_a_request_too_many_is_a_clear_failure_of_the_test():
    scene = Scene(call("look"))
    with pytest.raises(ScriptOver, match="has 1 answers; request 2 came"):
        await scene.run()


async def test_thinking_is_kept_as_it_came():
    signed = Thinking(text="let me see", signature="abc", provider="anthropic")
    scene = Scene(answer(signed, call("look")), "done")
    await scene.run()
    said = scene.model.requests[1].messages[1]
    assert isinstance(said, AssistantMessage)
    assert said.content[0] == signed


async def test_two_calls_with_one_id_are_told_apart_and_both_run():
    twice = [ToolCall(id="1", name="look", arguments=Raw(b'{"n":%d}' % n)) for n in (1, 2)]
    toolbox = ScriptedToolbox({"look": lambda call, _emit: bytes(call.arguments).decode()})
    scene = Scene(AssistantMessage(content=tuple(twice)), "done", toolbox=toolbox)
    finished = await scene.run()
    assert finished.reason == "done"
    assert [(r.call_id, r.output) for r in scene.results] == [("1", '{"n":1}'), ("1_2", '{"n":2}')]


async def test_a_read_after_an_edit_in_the_same_message_sees_the_edit():
    content = ["old"]

    def write(_call: ToolCall, _emit: Emit) -> str:
        content[0] = "new"
        return "written"

    tools = {"look": lambda _call, _emit: content[0], "write": write}
    toolbox = ScriptedToolbox(tools, writers=["write"])
    scene = Scene(answer(call("look"), call("write"), call("look")), "done", toolbox=toolbox)
    await scene.run()
    assert [r.output for r in scene.results] == ["old", "written", "new"]


async def test_text_between_calls_of_one_id_stays_in_its_place():
    twice = (
        Text(text="first"),
        ToolCall(id="1", name="look", arguments=Raw(b'{"n":1}')),
        Text(text="then"),
        ToolCall(id="1", name="look", arguments=Raw(b'{"n":2}')),
    )
    toolbox = ScriptedToolbox({"look": "seen"})
    scene = Scene(AssistantMessage(content=twice), "done", toolbox=toolbox)
    await scene.run()
    said = scene.conversation.messages[1]
    assert [p.text if isinstance(p, Text) else p.id for p in said.content] == [
        "first",
        "1",
        "then",
        "1_2",
    ]


def test_a_turn_whose_prompt_was_compacted_away_has_all_that_is_there():
    conversation = Conversation()
    turn = Turn(conversation, lambda _event: None)
    turn.say(UserMessage.of("go"))
    kept = UserMessage.of("a summary")
    conversation.replace([kept])
    assert list(turn.messages) == [kept]
