"""Two agents of one session: what the session, its file and its figures make of the second one."""

from collections.abc import Callable
from functools import partial

import msgspec
import pytest
from msgspec import Raw

from hosts import this_host
from scripted import OpenAIServer
from ybs.core.agent import Agent
from ybs.core.changes import FileChange
from ybs.core.conversation import Conversation
from ybs.core.events import Event, ToolFinished
from ybs.core.messages import Text, ToolCall, Usage, UserMessage
from ybs.core.ports import Answer, Question
from ybs.session.session import Session
from ybs.testing import RecordedEvents, ScriptedModel, ScriptedToolbox, call
from ybs.testing.script import ScriptedAnswer

Open = Callable[..., tuple[Session, RecordedEvents]]
KEY = (
    "sk-ant-" + "api03-" + "Zx8Qw3Er5Ty7Ui9Op1As2Df4Gh6Jk8Lz0Xc2Vb4Nm6Qw8Er0Ty2Ui4Op6As8Df0" + "-AA"
)


def sub_agent(session: Session, *said: Event) -> None:
    """Emit what a sub-agent may tell."""
    for event in said:
        session.emit(event, agent="explore-1")


@pytest.mark.integration
async def test_a_sub_agents_turn_is_no_part_of_the_main_agents(open_session: Open):
    write = call("write_file", path="a.txt", content="one")
    async with OpenAIServer([write, "It says one.", "bye"]) as server:
        session, events = open_session(server)
        asked = ToolCall(id="", name="list_files", arguments=Raw(b"{}"))
        used = Usage(input_tokens=1000, output_tokens=10)
        script = [
            ScriptedAnswer(parts=(asked,), usage=used),
            ScriptedAnswer(parts=(Text(text="A file."),), usage=used),
        ]
        other = Agent(
            ScriptedModel(script, name="small"),
            ScriptedToolbox(),
            partial(session.emit, agent="explore-1"),
            Conversation("You explore."),
        )

        async def explore(_question: Question) -> Answer:
            await other.run(UserMessage.of("What is here?"))
            return Answer(is_allowed=True)

        session.confirm = explore
        async with session:
            outcome = await session.send("go")
            assert (outcome.text, outcome.finished.reason) == ("It says one.", "done")
            assert outcome.finished.steps == 2
            own = outcome.finished.usage
            assert session.usage == own + used + used
            assert session.turns[0].usage == session.usage
            assert not session.is_busy
            had, name = list(session.conversation.messages), session.journal.name
            assert session.journal.replay.messages == had
            assert "explore" not in repr(had)
            await session.send("again")
            turns, usage = list(session.turns), session.usage
    told = [each for each in events.envelopes if not each.is_main]
    assert {(each.session, each.agent) for each in told} == {(session.id, "explore-1")}
    kinds = [type(each.event).__name__ for each in told]
    assert (kinds[0], kinds[-1]) == ("UserSaid", "TurnFinished")
    lines = [
        msgspec.json.decode(line)
        for line in (this_host().sessions_folder / f"{name}.jsonl").read_bytes().splitlines()
    ]
    theirs = [line["type"] for line in lines if line.get("agent") == "explore-1"]
    assert theirs == ["user", "assistant", "tool_call", "tool_result", "assistant", "turn_end"]
    assert {line.get("agent") for line in lines} == {None, "explore-1"}
    async with OpenAIServer([]) as server:
        resumed, _ = open_session(server, resume=name)
        async with resumed:
            assert list(resumed.conversation.messages)[:4] == had
            assert resumed.usage == usage
            assert [each.usage for each in resumed.turns] == [each.usage for each in turns]


@pytest.mark.integration
async def test_what_a_sub_agent_changed_is_what_the_turn_changed(open_session: Open):
    changes = (FileChange(path="a.txt", before="a\n", after="b\n", added=1, removed=1),)
    change = ToolFinished(id="x", name="edit_file", success=True, output="", changes=changes)
    async with OpenAIServer(["done"]) as server:
        session, _ = open_session(server)
        session.subscribe(
            lambda envelope: (
                sub_agent(session, change)
                if envelope.is_main and type(envelope.event).__name__ == "UserSaid"
                else None
            )
        )
        async with session:
            await session.send("go")
            (turn,) = session.changes.turns
            assert [each.path for each in turn.files] == ["a.txt"]
            name = session.journal.name
    async with OpenAIServer([]) as server:
        resumed, _ = open_session(server, resume=name)
        async with resumed:
            assert resumed.changes.turns == [turn]


async def test_secrets_of_a_sub_agent_are_masked_like_all_others(open_session: Open):
    leak = ToolFinished(id="x", name="read_file", success=True, output=f"key = {KEY}")
    async with OpenAIServer(["done"]) as server:
        session, events = open_session(server)
        async with session:
            await session.send("go")
            sub_agent(session, leak)
            name = session.journal.name
    assert KEY not in repr(events.envelopes)
    assert KEY.encode() not in (this_host().sessions_folder / f"{name}.jsonl").read_bytes()
    assert b"[ybs:secret:" in (this_host().sessions_folder / f"{name}.jsonl").read_bytes()
