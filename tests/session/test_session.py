"""The session: turns, cancelling, the shell, switching, and what doors are told."""

import asyncio
import os
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import msgspec
import pytest

from opened import events_to
from scripted import HttpError, Interrupted, OllamaServer, OpenAIServer
from ybs import Session
from ybs.commands.open import SlashCommands
from ybs.core.errors import ConfigError, YbsError
from ybs.core.events import (
    AssistantSaid,
    SessionEnded,
    SessionStarted,
    SystemPrompted,
    TextStreamed,
    ToolFinished,
    ToolPrinted,
    TurnFinished,
)
from ybs.core.messages import UserMessage
from ybs.core.ports import Answer, Question
from ybs.core.remedies import Remedy
from ybs.session.reply import Outcome, Reply
from ybs.session.stream import events_of
from ybs.testing import RecordedEvents, answer, call

Open = Callable[..., tuple[Session, RecordedEvents]]


def write_settings(home: Path, settings: dict[str, object]) -> None:
    """Write the user's own configuration file."""
    file = home / ".ybs.json"
    file.write_bytes(msgspec.json.encode(settings))
    file.chmod(0o600)


@pytest.mark.integration
async def test_a_turn_reads_edits_runs_and_answers(project: Path, playing):
    (project / "app.py").write_text("VALUE = 1\n")
    script = [
        call("read_file", path="app.py"),
        call("edit_file", path="app.py", old_text="VALUE = 1", new_text="VALUE = 2"),
        call("run_shell", command="cat app.py"),
        "Done.",
    ]
    async with playing(script, mode="bypass") as (session, events, _):
        outcome = await session.send("Set VALUE to 2.")
    assert outcome.finished.reason == "done"
    assert (outcome.text, outcome.refusals, outcome.finished.steps) == ("Done.", 0, 4)
    assert (project / "app.py").read_text() == "VALUE = 2\n"
    assert "VALUE = 2" in events.of(ToolFinished)[2].output
    assert session.usage.input_tokens > 0
    assert events.names[:2] == ["SessionStarted", "SystemPrompted"]
    assert events.names[-4:] == ["TurnFinished", "FilesChanged", "Titled", "SessionEnded"]


async def test_the_first_events_say_where_and_with_what(project: Path, playing):
    async with playing(["hi"]) as (session, events, _):
        await session.send("hello")
    started = events.of(SessionStarted)[0]
    assert started.folder == str(project)
    assert started.config["provider"] == "openai"
    assert str(project) in events.of(SystemPrompted)[0].content
    assert events.of(SessionEnded)[0].message_count == 2


async def test_nobody_can_confirm_by_default_so_a_write_is_refused_and_the_turn_goes_on(
    project: Path, playing
):
    async with playing([call("write_file", path="a.txt", content="x"), "I could not."]) as (
        session,
        events,
        _,
    ):
        outcome = await session.send("write it")
    assert outcome.refusals == 1
    assert outcome.text == "I could not."
    assert not (project / "a.txt").exists()
    assert events.of(ToolFinished)[0].is_refused


async def test_the_persons_reason_for_a_no_reaches_the_model(project: Path, open_session: Open):
    async def refuse(question: Question) -> Answer:
        return Answer(is_allowed=False, reason="use notes.md instead")

    async with OpenAIServer([call("write_file", path="a.txt", content="x"), "ok"]) as server:
        session, _ = open_session(server)
        session.confirm = refuse
        async with session:
            await session.send("write it")
        sent = server.requests[1].body["messages"][-1]["content"]
    assert "use notes.md instead" in sent


@pytest.mark.integration
async def test_always_this_session_asks_once_for_what_its_rule_covers(project, open_session):
    asked: list[str] = []

    async def always(question: Question) -> Answer:
        asked.append(question.grant)
        return Answer(is_allowed=True, is_for_session=True)

    shell = call("run_shell", command="echo hi")
    other = call("run_shell", command="touch ho")
    async with OpenAIServer([shell, shell, other, "ok"]) as server:
        session, _ = open_session(server)
        session.confirm = always
        async with session:
            await session.send("go")
    assert asked[0] == "run_shell(echo *)"
    assert len(asked) == 2


@pytest.mark.integration
async def test_cancelling_keeps_the_partial_text_and_the_session_lives(open_session: Open):
    async with OpenAIServer([Interrupted(how="stall", after_frames=4), "again"]) as server:
        session, events = open_session(server)
        got_text = asyncio.Event()
        session.subscribe(
            events_to(lambda e: got_text.set() if isinstance(e, TextStreamed) else None)
        )
        async with session:
            turn = asyncio.create_task(session.send("hello"))
            await got_text.wait()
            assert session.is_busy
            assert session.cancel()
            outcome = await turn
            assert outcome.finished.reason == "interrupted"
            assert not session.is_busy
            assert not session.cancel()
            kept = session.conversation.messages[-1]
            assert kept.stop_reason == "cut_off"
            assert (await session.send("once more")).text == "again"
    assert [e.stop_reason for e in events.of(AssistantSaid)] == ["cut_off", "end"]


@pytest.mark.integration
async def test_cancelling_kills_a_running_command(project: Path, open_session: Open):
    async with OpenAIServer(
        [call("run_shell", command="echo $$ > pid; echo on; sleep 60")]
    ) as server:
        session, events = open_session(server, mode="bypass")
        runs = asyncio.Event()
        session.subscribe(events_to(lambda e: runs.set() if isinstance(e, ToolPrinted) else None))
        async with session:
            turn = asyncio.create_task(session.send("wait"))
            await runs.wait()
            session.cancel()
            assert (await turn).finished.reason == "interrupted"
    with pytest.raises(ProcessLookupError):
        os.kill(int((project / "pid").read_text()), 0)
    assert not events.of(ToolFinished)[-1].success
    assert not session.conversation.open_calls


@pytest.mark.integration
async def test_being_cancelled_from_outside_passes_on(playing):
    async with playing([Interrupted(how="stall", after_frames=0)]) as (session, _, _):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await session.send("hello")
        assert not session.is_busy


async def test_closing_ends_a_running_turn(open_session: Open):
    async with OpenAIServer([Interrupted(how="stall", after_frames=0)]) as server:
        session, _ = open_session(server)
        turn = asyncio.create_task(session.send("hello"))
        await server.received()
        await session.close()
        assert (await turn).finished.reason == "interrupted"


async def test_an_outcome_can_be_checked(playing):
    async with playing([HttpError(status=401, message="bad key"), "better"]) as (session, _, _):
        with pytest.raises(YbsError, match="refused the key") as caught:
            (await session.send("hello")).check()
        assert Remedy("set_key", "OPENAI_API_KEY") in caught.value.remedies
        assert (await session.send("again")).check().text == "better"


async def test_a_folder_that_does_not_exist_opens_no_session(project: Path):
    with pytest.raises(ConfigError, match="is not a folder"):
        Session.open(
            project / "missing",
            commands=SlashCommands(),
            endpoint="http://127.0.0.1:1/v1",
            model="m",
        )


async def test_two_turns_at_once_are_refused(playing):
    async with playing([Interrupted(how="stall", after_frames=0)]) as (session, _, server):
        turn = asyncio.create_task(session.send("hello"))
        await server.received()
        with pytest.raises(YbsError, match="ybs is still working"):
            await session.send("me too")
        assert (await session.handle("/clear")).is_error
        assert (await session.handle("/model other")).is_error
        session.cancel()
        await turn


async def test_a_provider_error_ends_the_turn_and_the_session_lives(playing):
    async with playing([HttpError(status=401, message="bad key"), "better"]) as (session, _, _):
        outcome = await session.send("hello")
        assert outcome.finished.reason == "error"
        assert not outcome.finished.is_temporary
        assert Remedy("set_key", "OPENAI_API_KEY") in outcome.finished.remedies
        assert (await session.send("again")).text == "better"


@pytest.mark.integration
async def test_a_time_limit_stops_a_stalled_model(playing):
    async with playing([Interrupted(how="stall", after_frames=0)], timeout=0.2) as (session, _, _):
        outcome = await session.send("hello")
    assert outcome.finished.reason == "limit"


@pytest.mark.integration
async def test_a_typed_command_runs_and_the_model_answers(project: Path, open_session: Open):
    async with OpenAIServer(["I see it."]) as server:
        session, events = open_session(server)
        async with session:
            outcome = await session.handle("!echo out; echo err >&2; exit 3")
        sent = server.requests[0].body["messages"][-1]["content"]
    assert isinstance(outcome, Outcome)
    assert outcome.text == "I see it."
    assert sent.startswith("[Shell command output]\nCommand: echo out; echo err >&2; exit 3\n")
    assert "Exit code: 3\n\nOutput:\nout\n\nStderr:\nerr" in sent
    assert "out" in "".join(e.text for e in events.of(ToolPrinted))


async def test_a_blocked_typed_command_is_refused_and_the_model_is_told(open_session: Open):
    async with OpenAIServer(["Right."]) as server:
        session, _ = open_session(server)
        async with session:
            await session.handle("!sudo true")
        sent = server.requests[0].body["messages"][-1]["content"]
    assert sent.startswith("[Shell command failed]\nCommand: sudo true\nError: ")


@pytest.mark.integration
async def test_a_typed_command_is_part_of_the_turn_and_can_be_cancelled(project, open_session):
    async with OpenAIServer([]) as server:
        session, events = open_session(server)
        runs = asyncio.Event()
        session.subscribe(events_to(lambda e: runs.set() if isinstance(e, ToolPrinted) else None))
        async with session:
            turn = asyncio.create_task(session.handle("!echo $$ > pid; echo on; sleep 60"))
            await runs.wait()
            assert session.is_busy
            with pytest.raises(YbsError, match="ybs is still working"):
                await session.send("me too")
            assert session.cancel()
            outcome = await turn
    assert isinstance(outcome, Outcome)
    assert outcome.finished.reason == "interrupted"
    assert events.of(TurnFinished)
    with pytest.raises(ProcessLookupError):
        os.kill(int((project / "pid").read_text()), 0)


@pytest.mark.integration
async def test_a_dry_run_runs_no_typed_command_either(project: Path, playing):
    async with playing(["Right."], dry_run=True) as (session, _, _):
        await session.handle("!touch here")
    assert not (project / "here").exists()


async def test_a_cancel_before_the_first_step_ends_the_turn_all_the_same(playing):
    async with playing(["later"]) as (session, events, _):
        turn = asyncio.create_task(session.send("hello"))
        await asyncio.sleep(0)
        assert session.cancel()
        assert (await turn).finished.reason == "interrupted"
        assert len(events.of(TurnFinished)) == 1
        assert (await session.send("again")).text == "later"


async def test_the_events_of_a_turn_come_as_an_iterator(playing):
    async with playing(["hello"]) as (session, recorded, _):
        told = [envelope async for envelope in events_of(session, "hi")]
    assert told == recorded.envelopes[:-1]
    assert isinstance(told[-1].event, TurnFinished)
    assert {(each.session, each.agent) for each in told} == {(session.id, "main")}


async def test_leaving_the_iterator_cancels_the_turn(playing):
    async with playing([Interrupted(how="stall", after_frames=4)]) as (session, recorded, _):
        async with aclosing(events_of(session, "hi")) as told:
            async for envelope in told:
                if isinstance(envelope.event, TextStreamed):
                    break
        assert not session.is_busy
    assert recorded.of(TurnFinished)[0].reason == "interrupted"


async def test_an_error_of_a_turn_comes_out_of_the_iterator(playing):
    async with playing([Interrupted(how="stall", after_frames=0)]) as (session, _, server):
        turn = asyncio.create_task(session.send("hello"))
        await server.received()
        with pytest.raises(YbsError, match="ybs is still working"):
            [_ async for _ in events_of(session, "me too")]
        session.cancel()
        await turn


async def test_a_blank_line_asks_nobody_anything(playing):
    async with playing([]) as (session, _, _):
        assert await session.handle("   ") == Reply(text="")


@pytest.mark.integration
async def test_closing_twice_ends_the_session_once(open_session: Open):
    async with OpenAIServer(["hi"]) as server:
        session, events = open_session(server)
        await session.send("hello")
        await session.close()
        await session.close()
    assert len(events.of(SessionEnded)) == 1


async def test_a_bare_exclamation_mark_prints_the_usage(playing):
    async with playing([]) as (session, _, _):
        reply = await session.handle("!  ")
    assert isinstance(reply, Reply)
    assert reply.is_error
    assert "!COMMAND" in reply.text


@pytest.mark.integration
async def test_switching_keeps_the_conversation_and_the_new_provider_gets_it(home, open_session):
    async with OpenAIServer(["one"]) as first, OllamaServer(["two"]) as second:
        own = {"endpoint": second.url, "wire": "ollama", "model": "m"}
        write_settings(home, {"providers": {"mine": own}})
        session, _ = open_session(first)
        async with session:
            await session.send("hello")
            reply = await session.handle("/provider mine")
            assert isinstance(reply, Reply)
            assert reply.text == "Now using mine m."
            assert (await session.send("and now?")).text == "two"
        sent = [m["content"] for m in second.requests[0].body["messages"]]
    assert sent[1:] == [
        "hello",
        "one",
        "and now?",
    ]  # of an empty folder a small model is told nothing


@pytest.mark.integration
async def test_switching_warns_when_the_conversation_no_longer_fits(home: Path, open_session: Open):
    async with OpenAIServer(["one"]) as server:
        small = {"endpoint": server.url, "window": 1000, "model": "tiny"}
        write_settings(home, {"providers": {"small": small}})
        session, _ = open_session(server)
        async with session:
            await session.send("word " * 2000)
            reply = await session.handle("/provider small")
    assert isinstance(reply, Reply)
    assert "does not fit" in reply.text


async def test_an_unknown_provider_changes_nothing(playing):
    async with playing(["still here"]) as (session, _, _):
        reply = await session.handle("/provider olama")
        assert isinstance(reply, Reply)
        assert reply.is_error
        assert "ollama" in reply.text
        assert (await session.send("hello")).text == "still here"


@pytest.mark.integration
async def test_dry_run_shows_the_calls_and_does_nothing(project: Path, playing):
    async with playing(
        [call("write_file", path="a.txt", content="x")], mode="bypass", dry_run=True
    ) as (session, events, _):
        outcome = await session.send("write")
    assert outcome.finished.reason == "dry_run"
    assert not (project / "a.txt").exists()
    assert "Not executed" in events.of(ToolFinished)[0].output


async def test_sinks_can_leave(open_session: Open):
    async with OpenAIServer(["one"]) as server:
        session, _ = open_session(server)
        seen: list[object] = []
        leave = session.subscribe(events_to(seen.append))
        leave()
        async with session:
            await session.send("hello")
    assert seen == []


async def test_the_status_counts_what_the_provider_reports(project: Path, playing):
    from ybs.core.messages import Usage

    usage = Usage(input_tokens=1_500, output_tokens=3)
    async with playing([answer("hi", usage=usage)]) as (session, _, _):
        before = session.status()
        await session.send("hello")
        after = session.status()
    assert before.context_tokens > 0  # an estimate: prompt and tools
    assert (after.context_tokens, after.usage.output_tokens) == (1_503, 3)
    assert (after.provider, after.model, after.mode) == ("openai", "scripted", "ask")
    assert after.sandbox == "no sandbox"
    assert after.folder == str(project)


async def test_the_python_door_works_as_the_readme_says(project: Path):
    async with (
        OpenAIServer(["It sells coupons."]) as server,
        Session.open(
            project, commands=SlashCommands(), provider="openai", endpoint=server.url, model="m"
        ) as session,
    ):
        outcome = await session.send("What does this project do?")
    assert outcome.text == "It sells coupons."
    assert session.conversation.messages[0] == UserMessage.of("What does this project do?")
    assert isinstance(outcome.finished, TurnFinished)
