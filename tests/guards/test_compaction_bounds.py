"""Compaction at its bounds: tiny windows, gigantic messages, and what must hold whatever is compacted."""

from itertools import pairwise
from random import Random

import msgspec
import pytest
from msgspec import Raw

from compacted import SENTENCE, guard, is_valid, prompt, said, size, step, talk
from rows import every_row
from ybs.commands.advice import told
from ybs.compaction.compaction import THRASHING
from ybs.core.agent import Agent
from ybs.core.conversation import Conversation
from ybs.core.errors import ModelError, ProviderDown, StopTurn
from ybs.core.events import Compacted
from ybs.core.messages import (
    AssistantMessage,
    AssistantPart,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    UserMessage,
)
from ybs.core.ports import Turn
from ybs.testing import RecordedEvents, ScriptedModel, ScriptedToolbox, call


def begun(conversation: Conversation, words: str = "Go on.") -> Turn:
    turn = Turn(conversation, RecordedEvents())
    turn.say(UserMessage.of(words))
    return turn


async def test_one_gigantic_output_is_cut_in_the_middle_and_says_where_all_of_it_is():
    conversation = talk(3)
    turn = begun(conversation)
    output = "FIRST\n" + "y = 2\n" * 20_000 + "LAST\n"
    for message in step("c1", output, path="big.py"):
        conversation.append(message)
    saved: list[str] = []

    def keep(text: str) -> str:
        saved.append(text)
        return "/kept/big.txt"

    await guard(3_000, keep=keep).before_step(turn)
    result = conversation.messages[-1]
    assert isinstance(result, ToolResult)
    assert result.output.startswith("FIRST")
    assert result.output.endswith("LAST\n")
    assert "all of it: /kept/big.txt" in result.output
    assert saved == [output]
    assert size(conversation) <= 3_000
    assert is_valid(conversation)


async def test_words_that_cannot_fit_end_the_turn_and_say_what_to_do():
    conversation = talk(3)
    turn = begun(conversation, "word " * 20_000)
    before = list(conversation.messages)
    with pytest.raises(StopTurn, match=r"Your message has 25,\d+ tokens") as stop:
        await guard(3_000).before_step(turn)
    assert stop.value.reason == "limit"
    assert "Send it in parts" in told(stop.value)
    assert conversation.messages == before


async def test_even_a_little_is_freed_where_the_request_fits_then():
    conversation = talk(2)
    turn = begun(conversation, SENTENCE * 200)
    for message in step("c1", SENTENCE):
        conversation.append(message)
    room = size(conversation) - 5
    await guard(room).before_step(turn)
    assert size(conversation) <= room
    assert turn.messages[0] == UserMessage.of(SENTENCE * 200)


async def test_gigantic_words_of_before_do_not_poison_the_session():
    conversation = talk(3)
    conversation.append(UserMessage.of("Read this. " + "word " * 20_000 + "That is all."))
    turn = begun(conversation)
    await guard(3_000).before_step(turn)
    assert size(conversation) <= 3_000 * 0.6
    assert "Read this." in prompt(conversation)
    assert "That is all." in prompt(conversation)


async def test_a_system_prompt_that_leaves_no_room_ends_the_turn():
    conversation = Conversation("word " * 4_000)
    with pytest.raises(StopTurn, match="Even the shortest form of the conversation") as stop:
        await guard(3_000).before_step(begun(conversation))
    assert "larger window" in told(stop.value)


@pytest.mark.integration
async def test_tool_loops_are_compacted_between_their_steps():
    outputs = iter(range(100))
    toolbox = ScriptedToolbox({"read": lambda _call, _emit: f"{next(outputs)} " + "z = 3\n" * 200})
    model = ScriptedModel([*(call("read", n=n) for n in range(40)), "done"])
    events = RecordedEvents()
    conversation = Conversation("You help.")
    compaction = guard(2_000)
    agent = Agent(model, toolbox, events, conversation, [compaction])
    task = UserMessage.of("Read all 40 parts and count the lines.")
    finished = await agent.run(task)
    assert (finished.reason, finished.steps) == ("done", 41)
    assert max(size(Conversation(r.system, r.messages)) for r in model.requests) <= 2_000
    assert any(message is task for message in conversation.messages)
    names = [name for name in events.names if name in ("Compacted", "AssistantSaid")]
    assert names.count("Compacted") > 3
    assert ("Compacted", "Compacted") not in list(pairwise(names))
    for request in model.requests:
        last = request.messages[-1]
        assert last is task or (isinstance(last, ToolResult) and "z = 3" in last.output)


async def test_there_is_no_second_compaction_before_an_answer_came():
    conversation = talk(40)
    compaction = guard(3_200)
    events = RecordedEvents()
    for _ in range(3):
        agent = Agent(
            ScriptedModel([ProviderDown("nobody there")]),
            ScriptedToolbox(),
            events,
            conversation,
            [compaction],
        )
        await agent.run(UserMessage.of(SENTENCE * 20))
    assert len(events.of(Compacted)) == 1


async def test_three_compactions_that_free_next_to_nothing_end_the_turn():
    conversation = Conversation("word " * 100)
    turn = begun(conversation, SENTENCE * 104)
    compaction = guard(2_500)

    async def work() -> None:
        for at in range(60):
            for message in step(f"c{at}", "small output " * 12, path="a.py"):
                conversation.append(message)
            await compaction.before_step(turn)

    with pytest.raises(StopTurn) as stop:
        await work()
    assert str(stop.value) == THRASHING


@pytest.mark.integration
@every_row("line", [None, "A fine summary of what was done.", "", ModelError("ill")])
async def test_whatever_is_compacted_can_be_sent_fits_and_holds_the_newest_words(line):
    for seed in range(6):
        random = Random(seed)
        room = random.choice([1_200, 2_500, 6_000])
        conversation = random_talk(random)
        turn = begun(conversation, f"The newest words, number {seed}.")
        task = conversation.messages[-1]
        compaction = guard(room, model=ScriptedModel([line] * 20) if line is not None else None)
        for round in range(2):
            before = size(conversation)
            await compaction.before_step(turn)
            assert is_valid(conversation), (seed, round)
            assert size(conversation) <= min(before, room), (seed, round)
            assert any(message is task for message in turn.messages), (seed, round)
            for message in random_step(random, f"more{round}"):
                conversation.append(message)
        asked = await compaction.compact(conversation, RecordedEvents(), reason="asked")
        assert is_valid(conversation)
        assert f"number {seed}." in prompt(conversation)
        data = msgspec.json.encode(list(conversation.messages))
        assert msgspec.json.decode(data, type=list[Message]) == conversation.messages
        assert asked is None or asked.tokens_after < asked.tokens_before


@pytest.mark.integration
async def test_steps_that_fill_a_small_window_do_not_each_cost_a_summary():
    model = ScriptedModel(["Goal: read all of it. State: some of it is read."] * 60)
    turn = begun(Conversation(SENTENCE * 60), "Read all of it; the word is kiwi.")
    compaction = guard(3_072, model=model)
    for at in range(40):
        for message in step(f"c{at}", SENTENCE * 140, path=f"src/part{at}.py"):
            turn.conversation.append(message)
        await compaction.before_step(turn)
        assert size(turn.conversation) <= 3_072
    assert len(model.requests) <= 10
    assert "kiwi" in prompt(turn.conversation)


def words(random: Random, most: int) -> str:
    return " ".join(
        random.choice(["red", "blue", "go", f"n{random.randrange(99)}"]) for _ in range(most)
    )


def random_step(random: Random, name: str) -> list[Message]:
    content: list[AssistantPart] = []
    if random.random() < 0.3:
        content.append(Thinking(text=words(random, 30), signature="s"))
    results: list[Message] = []
    for at in range(random.randrange(1, 4)):
        arguments = {"path": "a/b.py", "content": words(random, random.choice([2, 200]))}
        encoded = Raw(msgspec.json.encode(arguments))
        content.append(ToolCall(id=f"{name}_{at}", name="write_file", arguments=encoded))
        output = words(random, random.choice([1, 10, 150, 900]))
        results.append(ToolResult(call_id=f"{name}_{at}", name="write_file", output=output))
    return [AssistantMessage(content=tuple(content)), *results]


def random_talk(random: Random) -> Conversation:
    conversation = Conversation(words(random, 40))
    for turn in range(random.randrange(2, 10)):
        parts: list[Text | Image] = [Text(text=words(random, random.choice([2, 20, 300])))]
        if random.random() < 0.3:
            parts.append(Text(text="[File a.py]\n" + words(random, 200)))
            parts.append(Image(media_type="image/png", data=b"png"))
        conversation.append(UserMessage(content=tuple(parts)))
        if random.random() < 0.3:
            conversation.append(UserMessage.of(words(random, 200), origin="shell"))
        for at in range(random.randrange(3)):
            for message in random_step(random, f"c{turn}_{at}"):
                conversation.append(message)
        if random.random() < 0.8:
            conversation.append(said(words(random, 40)))
    return conversation
