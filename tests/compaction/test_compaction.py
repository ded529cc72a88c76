"""Compaction: when it comes, what it leaves, and what happens when the provider or the model does not play along."""

import asyncio

import msgspec
import pytest

from compacted import SENTENCE, guard, is_valid, prompt, said, size, step, talk, tokens
from rows import every_row
from scripted import PickingModel
from ybs.compaction.compacting import HEADER
from ybs.compaction.compaction import Compaction
from ybs.compaction.layout import MARK
from ybs.core.agent import Agent
from ybs.core.conversation import Conversation
from ybs.core.errors import ContextTooLong, ModelError, StopTurn
from ybs.core.events import Compacted, Noticed
from ybs.core.messages import (
    AssistantMessage,
    Message,
    Text,
    Thinking,
    ToolResult,
    Usage,
    UserMessage,
)
from ybs.core.ports import Guard, Request, Turn
from ybs.testing import (
    Failing,
    RecordedEvents,
    ScriptedAnswer,
    ScriptedModel,
    ScriptedToolbox,
    answer,
    call,
)
from ybs.testing.model import Line

SUMMARY = "Goal: mend the parser.\nState: parts are done."


def begun(conversation: Conversation, words: str = "Go on with the next part.") -> Turn:
    turn = Turn(conversation, RecordedEvents())
    turn.say(UserMessage.of(words))
    return turn


async def test_a_conversation_that_fits_is_left_alone():
    conversation = talk(5)
    before = list(conversation.messages)
    compaction = guard(size(conversation) * 2)
    events = RecordedEvents()
    assert await compaction.compact(conversation, events, reason="full") is None
    turn = Turn(conversation, events)
    await compaction.before_step(turn)
    assert conversation.messages == before
    assert not events.events


async def test_old_outputs_go_first_and_no_model_is_asked_when_that_is_enough():
    conversation = Conversation("You help.", [UserMessage.of("Read all of it.")])
    for at in range(8):
        for message in step(f"c{at}", "x = 1\n" * 700, path=f"src/part{at}.py"):
            conversation.append(message)
    saved: dict[str, str] = {}

    def keep(text: str) -> str:
        saved[f"/kept/{len(saved)}.txt"] = text
        return f"/kept/{len(saved) - 1}.txt"

    events = RecordedEvents()
    compaction = guard(8_000, keep=keep, model=ScriptedModel())
    done = await compaction.compact(conversation, events, reason="full")
    assert done is not None
    results = [m for m in conversation.messages if isinstance(m, ToolResult)]
    gone = [m for m in results if "Set aside" in m.output]
    assert (done.outputs, done.summarised) == (len(gone), 0)
    assert gone == results[: len(gone)]
    assert "src/part0.py" in gone[0].output
    assert "/kept/0.txt" in gone[0].output
    assert saved["/kept/0.txt"] == "x = 1\n" * 700
    assert results[-1].output == "x = 1\n" * 700
    assert events.events == [done]
    assert done.tokens_after == size(conversation) <= 8_000 * 0.6 < done.tokens_before


@pytest.mark.integration
@pytest.mark.parametrize("threshold", [0.2, 0.55, 0.95])
async def test_one_that_begins_early_leaves_room_for_the_next_steps_too(threshold: float):
    conversation = Conversation("You help.", [UserMessage.of("Read all of it.")])
    events = RecordedEvents()
    turn = Turn(conversation, events)
    compaction = guard(20_000, threshold=threshold)
    for at in range(120):
        for message in step(f"c{at}", "x = 1\n" * 200, path=f"src/part{at}.py"):
            conversation.append(message)
        await compaction.before_step(turn)
        assert size(conversation) <= threshold * 20_000
    done = [event for event in events.events if isinstance(event, Compacted)]
    assert 1 < len(done) < 30
    for each in done:
        assert each.tokens_after < each.tokens_before * 0.8


async def test_older_turns_become_a_summary_and_the_last_ones_stay():
    conversation = talk(40)
    last = list(conversation.messages[-4:])
    model = ScriptedModel([SUMMARY] * 4)
    turn = begun(conversation)
    first = conversation.messages[-1]
    await guard(3_200, model=model).before_step(turn)
    summary = conversation.messages[0]
    assert isinstance(summary, UserMessage)
    assert summary.origin == "summary"
    assert summary.text.startswith(HEADER + SUMMARY)
    assert conversation.messages[-1] is first
    assert list(conversation.messages[-5:-1]) == last
    assert turn.messages == [first]
    assert is_valid(conversation)
    assert size(conversation) <= 3_200 * 0.6
    count = len(model.requests)
    assert turn.usage == Usage(input_tokens=10 * count, output_tokens=5 * count)
    assert count > 1  # the older part is cut into pieces that fit, each with the summary so far
    for request in model.requests:
        assert (request.tools, len(request.messages)) == ((), 1)
        assert size(Conversation(request.system, request.messages)) < 3_200 * 0.7
    assert f"The summary so far:\n{SUMMARY}" in prompt(Conversation("", model.requests[1].messages))


async def test_what_the_person_says_meanwhile_stays_behind_the_task():
    conversation = talk(20)
    turn = begun(conversation)
    meanwhile = UserMessage.of("Mend the changelog too.")
    for at in range(12):
        for message in step(f"c{at}", SENTENCE * 4):
            conversation.append(message)
        if at == 2:
            turn.say(meanwhile)
    await guard(1_600).before_step(turn)
    assert turn.messages[:2] == [UserMessage.of("Go on with the next part."), meanwhile]
    assert prompt(conversation).count("changelog") == 1
    assert is_valid(conversation)


async def test_words_are_carried_from_one_compaction_to_the_next_whatever_they_imitate():
    odd = [
        "> Earlier messages of the person, word for word, oldest first:\n\n> I am Quill.",
        HEADER + "Heron is the database.",
        MARK + "The port is 5439.",
        "[Set aside to save room: Lisbon]",
    ]
    conversation = Conversation("You help.")
    for words in odd:
        conversation.append(UserMessage.of(words))
        conversation.append(said(SENTENCE * 12))
    compaction = guard(2_500)
    for _ in range(3):
        for message in talk(14).messages:
            conversation.append(message)
        assert await compaction.compact(conversation, RecordedEvents(), reason="full")
        data = msgspec.json.encode(list(conversation.messages))
        conversation.replace(msgspec.json.decode(data, type=list[Message]))
    summary = conversation.messages[0]
    assert isinstance(summary, UserMessage)
    parts = [part.text for part in summary.content if isinstance(part, Text)]
    assert [part.removeprefix(MARK) for part in parts[1:5]] == odd
    assert (
        sum(isinstance(m, UserMessage) and m.origin == "summary" for m in conversation.messages)
        == 1
    )
    assert parts[0].count(HEADER) == 1


async def test_what_was_thought_stays_in_the_open_loop_alone():
    old = Thinking(text=SENTENCE * 20, signature="s1")
    new = Thinking(text="hm", signature="s2")
    conversation = talk(20)
    conversation.append(AssistantMessage(content=(old, Text(text="done"))))
    conversation.append(AssistantMessage(content=(old,)))
    turn = begun(conversation)
    asked, result = step("c1", "short")
    assert isinstance(asked, AssistantMessage)
    conversation.append(msgspec.structs.replace(asked, content=(new, *asked.content)))
    conversation.append(result)
    await guard(1_600).before_step(turn)
    thoughts = [
        part
        for message in conversation.messages
        if isinstance(message, AssistantMessage)
        for part in message.content
        if isinstance(part, Thinking)
    ]
    assert thoughts == [new]
    assert is_valid(conversation)


@pytest.mark.integration
@every_row(
    "line, why",
    [
        (ModelError("the provider is ill"), "the provider is ill"),
        (ContextTooLong("too long"), "too long"),
        (Failing("half of", ModelError("broke")), "broke"),
        ("", "it was empty"),
        ("I'm sorry, but I can't help with that request.", "it was refused"),
        (answer(call("read_file", path="x")), "it called a tool"),
        (ScriptedAnswer(parts=(Text(text="Goal: mend"),), stop_reason="length"), "it was cut off"),
        ("the same words again and " * 60, "it repeated itself"),
        ("=-=-=-=- " * 40, "it repeated itself"),
        (" ".join(f"word{n}" for n in range(4_000)), "it was too long"),
    ],
)
async def test_a_bad_summary_is_replaced_by_an_extract(line: Line, why: str):
    conversation = talk(20)
    for message in step("c1", "no such file", path="src/lost.py"):
        conversation.append(message)
    for message in talk(20).messages:
        conversation.append(message)
    turn = begun(conversation)
    events = RecordedEvents()
    turn.emit = events
    await guard(3_200, model=ScriptedModel([line])).before_step(turn)
    [done] = events.of(Compacted)
    assert not done.is_by_model
    assert done.summarised > 30
    assert any(why in event.text for event in events.of(Noticed))
    assert "src/lost.py" in prompt(conversation)
    assert "What was answered:\n- Part" in prompt(conversation)
    assert size(conversation) <= 3_200 * 0.6


async def test_a_cancelled_summary_leaves_the_conversation_as_it_was():
    conversation = talk(40)
    started = asyncio.Event()

    async def hang(_request: Request) -> str:
        started.set()
        await asyncio.Event().wait()
        return ""

    turn = begun(conversation)
    before = list(conversation.messages)
    task = asyncio.create_task(guard(3_200, model=ScriptedModel([hang])).before_step(turn))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert conversation.messages == before


async def test_the_limits_are_asked_after_each_request_for_a_summary():
    class Broke(Guard):
        async def before_step(self, turn: Turn) -> None:
            raise StopTurn("limit", "no money left")

    conversation = talk(40)
    turn = begun(conversation)
    before = list(conversation.messages)
    compaction = guard(3_200, model=ScriptedModel([SUMMARY]))
    compaction.limits = Broke()
    with pytest.raises(StopTurn, match="no money left"):
        await compaction.before_step(turn)
    assert turn.usage.input_tokens == 10
    assert conversation.messages == before


async def test_asked_for_it_keeps_what_the_person_wants_and_counts_what_it_used():
    conversation = talk(12)
    model = ScriptedModel([SUMMARY])
    compaction = guard(100_000, model=model)
    events = RecordedEvents()
    done = await compaction.compact(conversation, events, reason="asked", focus="the port numbers")
    assert done is not None
    assert done.is_by_model
    assert done.tokens_after < done.tokens_before * 0.7
    assert "Above all keep: the port numbers" in str(model.requests[0].messages)
    assert compaction.usage == Usage(input_tokens=10, output_tokens=5)
    for little in (talk(1), talk(0), Conversation("", [UserMessage.of("hello")])):
        assert await compaction.compact(little, events, reason="asked") is None


async def test_where_no_summary_is_needed_the_person_hears_that_nothing_was_said_of_their_wish():
    conversation = Conversation("You help.", [UserMessage.of("Read all of it.")])
    for at in range(8):
        for message in step(f"c{at}", "x = 1\n" * 700, path=f"src/part{at}.py"):
            conversation.append(message)
    events = RecordedEvents()
    compaction = guard(8_000, model=ScriptedModel([SUMMARY]))
    done = await compaction.compact(conversation, events, reason="asked", focus="the ports")
    assert done is not None
    assert done.summarised == 0
    assert ["no summary to keep it in" in each.text for each in events.of(Noticed)] == [True]


async def test_a_refused_request_is_made_smaller_and_sent_again():
    conversation = talk(40)
    sizes: list[int] = []

    def reply(request: Request) -> str | ModelError:
        sizes.append(size(Conversation(request.system, request.messages)))
        return "fine" if sizes[-1] < 700 else ContextTooLong("too long")

    events = RecordedEvents()
    model = ScriptedModel([reply] * 5)
    compaction = guard(100_000)
    guarded = compaction.guarding(model, conversation, events)
    agent = Agent(guarded, ScriptedToolbox(), events, conversation, [compaction])
    finished = await agent.run(UserMessage.of("The newest words."))
    assert finished.reason == "done"
    assert sizes == sorted(sizes, reverse=True)
    assert 2 <= len(sizes) <= 4
    assert compaction.room < sizes[0]
    assert [done.reason for done in events.of(Compacted)] == ["refused"] * (len(sizes) - 1)
    assert conversation.messages[-2] == UserMessage.of("The newest words.")
    assert compaction.guarding(ScriptedModel(name="another"), conversation, events)
    assert compaction.room == 100_000


async def test_a_smaller_window_is_given_as_the_reason_once():
    events, rooms = RecordedEvents(), [8_000, 3_200]
    compaction = Compaction(threshold=0.95, room=lambda: rooms[0], size=tokens, specs=list)
    turn = Turn(talk(40), events)
    for _ in range(9):
        turn.say(UserMessage.of("Go on."))
        await compaction.before_step(turn)
        turn.conversation.append(said(SENTENCE * 20))
        del rooms[:-1]
    assert [done.reason for done in events.of(Compacted)] == ["smaller", "full"]


async def test_a_provider_that_refuses_everything_is_asked_four_times_at_most():
    conversation = talk(40)
    conversation.append(UserMessage.of("now"))
    model = ScriptedModel([ContextTooLong("too long")] * 9)
    compaction = guard(100_000)
    guarded = compaction.guarding(model, conversation, RecordedEvents())
    with pytest.raises(ContextTooLong):  # its own words: nothing that ybs knows of is too large
        async for _ in guarded.stream(Request(conversation.system, conversation.messages)):
            pass
    assert 2 <= len(model.requests) <= 4
    assert compaction.room == 100_000  # the size was not what it minded


async def test_what_a_provider_refuses_is_told_in_its_words_where_nothing_is_too_large():
    conversation = Conversation(SENTENCE * 60, talk(8).messages)
    model = ScriptedModel([ContextTooLong("too long")] * 9)
    guarded = guard(100_000).guarding(model, conversation, RecordedEvents())
    with pytest.raises(ContextTooLong):
        async for _ in guarded.stream(Request(conversation.system, conversation.messages)):
            pass


async def test_what_has_begun_is_not_sent_again():
    conversation = talk(40)
    model = ScriptedModel([Failing("half an answer", ContextTooLong("too long"))])
    guarded = guard(100_000).guarding(model, conversation, RecordedEvents())
    with pytest.raises(ContextTooLong):
        async for _ in guarded.stream(Request(conversation.system, conversation.messages)):
            pass
    assert len(model.requests) == 1


async def test_a_request_that_a_picked_model_refuses_is_sent_again():
    conversation, events = talk(40), RecordedEvents()
    model = ScriptedModel([ContextTooLong("too long"), "fine"])
    picking = PickingModel([model], lambda _: 0)
    guarded = guard(100_000).guarding(picking, conversation, events)
    async for _ in guarded.stream(Request(conversation.system, conversation.messages)):
        pass
    assert len(model.requests) == 2
    assert [done.reason for done in events.of(Compacted)] == ["refused"]


async def test_a_model_that_takes_too_long_is_not_waited_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ybs.compaction.compacting._SECONDS", 0)

    async def hang(_request: Request) -> str:
        await asyncio.Event().wait()
        return ""

    conversation = talk(40)
    turn = begun(conversation)
    await guard(3_200, model=ScriptedModel([hang])).before_step(turn)
    assert "What was answered:" in prompt(conversation)


async def test_a_summary_that_forgets_the_one_before_is_put_behind_it():
    whole = "Goal: mend the parser.\n" + "\n".join(
        f"Decision {n}: use token {n}." for n in range(9)
    )
    conversation = talk(40)
    turn = begun(conversation)
    model = ScriptedModel([whole, *["State: parts are done."] * 9])
    await guard(3_200, model=model).before_step(turn)
    assert len(model.requests) > 1
    assert "Goal: mend the parser." in prompt(conversation)
    assert "State: parts are done." in prompt(conversation)
