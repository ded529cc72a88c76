"""What a door may say besides a turn: words for the running one, and going back in the conversation."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from ybs import Session
from ybs.core.errors import YbsError
from ybs.core.events import Event, ToolPrinted, UserSaid
from ybs.session.reply import Outcome, Reply
from ybs.testing import OpenAIServer, RecordedEvents, call

Open = Callable[..., tuple[Session, RecordedEvents]]


async def test_without_a_turn_words_steer_nothing(open_session: Open) -> None:
    async with OpenAIServer([]) as server:
        session, _ = open_session(server)
        assert not session.steer("hello")
        assert session.unread() == ()
        await session.close()


async def test_words_for_the_running_turn_are_read_at_its_next_step(open_session: Open) -> None:
    async with OpenAIServer([call("list_files", pattern="*"), "done"]) as server:
        session, events = open_session(server)

        def speak(event: Event) -> None:
            if event == UserSaid(content="what is here?"):
                assert session.steer("only the names")

        session.subscribe(speak)
        await session.send("what is here?")
        said = [event.content for event in events.of(UserSaid)]
        assert said == ["what is here?", "only the names"]
        assert [words for _, words in session.prompts()] == said
        assert session.take_back() == ""
        await session.close()


async def test_a_turn_is_remembered_with_what_it_used(open_session: Open) -> None:
    async with OpenAIServer(["one", "two"]) as server:
        session, _ = open_session(server)
        await session.send("first")
        await session.send_shell("true")
        assert [turn.words for turn in session.turns] == ["first", "!true"]
        assert all(turn.model == "scripted" and turn.usage.input_tokens for turn in session.turns)
        await session.close()


async def test_going_back_forgets_what_came_after(open_session: Open) -> None:
    async with OpenAIServer(["one", "two", "three"]) as server:
        session, _ = open_session(server)
        await session.send("first")
        await session.send("second")
        place, words = session.prompts()[1]
        assert words == "second"
        session.rewind(place)
        assert [words for _, words in session.prompts()] == ["first"]
        await session.send("another")
        sent = [m["content"] for m in server.requests[-1].body["messages"] if m["role"] == "user"]
        assert sent == ["first", "another"]
        await session.close()


async def test_going_back_waits_for_the_running_turn(open_session: Open) -> None:
    async with OpenAIServer(["one"]) as server:
        session, _ = open_session(server)
        errors: list[YbsError] = []

        def go_back(event: Event) -> None:
            if isinstance(event, UserSaid):
                with pytest.raises(YbsError, match="running") as caught:
                    session.rewind(0)
                errors.append(caught.value)

        session.subscribe(go_back)
        await session.send("first")
        assert len(errors) == 1
        assert len(session.prompts()) == 1
        await session.close()


async def test_a_typed_command_goes_on_in_the_background(open_session: Open, project: Path) -> None:
    async with OpenAIServer(["I see"]) as server:
        session, events = open_session(server)

        beside: list[asyncio.Future[Reply | Outcome]] = []

        def let_go(event: Event) -> None:
            if isinstance(event, ToolPrinted):
                beside.append(asyncio.ensure_future(session.handle("/bg")))

        session.subscribe(let_go)
        await session.send_shell("echo begun; while ! [ -e go ]; do sleep 0.01; done")
        assert await beside[0] == Reply(text="It goes on in the background. /jobs shows it.")
        said = events.of(UserSaid)[0].content
        assert "Still running, in the background as job-1\n\nOutput:\nbegun" in said
        reply = await session.handle("/background")
        assert isinstance(reply, Reply)
        assert reply.is_error
        await session.close()
