"""What a frontend may say besides a turn: words for the running one, and going back in the conversation."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from opened import events_to
from scripted import OpenAIServer
from ybs import Session
from ybs.core.errors import YbsError
from ybs.core.events import (
    ConfirmationAnswered,
    ConfirmationAsked,
    Event,
    Noticed,
    ToolPrinted,
    TurnFinished,
    UserSaid,
)
from ybs.session.reply import Outcome, Reply
from ybs.session.tally import Tally
from ybs.testing import RecordedEvents, call

Open = Callable[..., tuple[Session, RecordedEvents]]


async def test_without_a_turn_words_steer_nothing(open_session: Open) -> None:
    async with OpenAIServer([]) as server:
        session, _ = open_session(server)
        assert not session.steer("hello")
        assert session.unread() == ()
        await session.close()


@pytest.mark.integration
async def test_words_for_the_running_turn_are_read_at_its_next_step(open_session: Open) -> None:
    async with OpenAIServer([call("list_files", pattern="*"), "done"]) as server:
        session, events = open_session(server)

        def speak(event: Event) -> None:
            if event == UserSaid(content="what is here?"):
                assert session.steer("only the names")

        session.subscribe(events_to(speak))
        await session.send("what is here?")
        said = [event.content for event in events.of(UserSaid)]
        assert said == ["what is here?", "only the names"]
        assert [words for _, words in session.history.prompts()] == said
        assert session.take_back() == ""
        await session.close()


@pytest.mark.integration
async def test_what_is_told_about_words_for_the_running_turn_comes_behind_them(
    project: Path, open_session: Open
) -> None:
    (project / "a.txt").write_text("plums\n")
    async with OpenAIServer([call("list_files", pattern="*"), "done"]) as server:
        session, events = open_session(server)

        def speak(event: Event) -> None:
            if event == UserSaid(content="what is here?"):
                assert session.steer("see @a.txt")

        session.subscribe(events_to(speak))
        await session.send("what is here?")
        offer = await session.handle("/rewind")
        assert isinstance(offer, Reply)
        assert offer.menu is not None
        back = [re.sub(r"\S+ ago", "- ago", item.detail) for item in offer.menu.items]
        assert back == ["the last prompt, - ago, sent while ybs worked", "2 prompts back, - ago"]
        told = [each for each in events.events if isinstance(each, UserSaid | Noticed)]
        assert [type(event).__name__ for event in told] == ["UserSaid", "UserSaid", "Noticed"]
        assert told[-1] == Noticed(level="info", text="Attached: a.txt (1 line)")
        await session.close()


def test_the_time_of_a_turn_leaves_out_that_of_its_questions(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("ybs.session.tally.monotonic", lambda: now[0])
    tally = Tally()
    asked = ConfirmationAsked(id="1", name="run_shell", title="", preview="")
    answered = ConfirmationAnswered(id="1", is_allowed=True)
    for at, event in (
        (1.0, answered),  # a rule decided
        (10.0, asked),
        (12.0, replace(asked, id="2")),
        (15.0, answered),
        (20.0, replace(answered, id="2")),
        (30.0, replace(asked, id="3")),
        (60.0, TurnFinished(reason="interrupted", duration_seconds=62.0)),
    ):
        now[0] = at
        tally.add(event)
    assert tally.worked_seconds == 22.0


@pytest.mark.integration
async def test_a_turn_is_remembered_with_what_it_used(open_session: Open) -> None:
    async with OpenAIServer(["one", "two"]) as server:
        session, _ = open_session(server)
        await session.send("first")
        await session.send_shell("true")
        assert [turn.words for turn in session.turns] == ["first", "!true"]
        assert all(turn.model == "scripted" and turn.usage.input_tokens for turn in session.turns)
        await session.close()


@pytest.mark.integration
async def test_going_back_forgets_what_came_after(open_session: Open) -> None:
    async with OpenAIServer(["one", "two", "three"]) as server:
        session, _ = open_session(server)
        await session.send("first")
        await session.send("second")
        place, words = session.history.prompts()[1]
        assert words == "second"
        await session.history.rewind(place)
        assert [words for _, words in session.history.prompts()] == ["first"]
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
                with pytest.raises(YbsError, match="working") as caught:
                    session.history.clear()
                errors.append(caught.value)

        session.subscribe(events_to(go_back))
        await session.send("first")
        assert len(errors) == 1
        assert len(session.history.prompts()) == 1
        await session.close()


@pytest.mark.integration
async def test_a_typed_command_goes_on_in_the_background(open_session: Open, project: Path) -> None:
    async with OpenAIServer(["I see"]) as server:
        session, events = open_session(server)

        beside: list[asyncio.Future[Reply | Outcome]] = []

        def let_go(event: Event) -> None:
            if isinstance(event, ToolPrinted):
                beside.append(asyncio.ensure_future(session.handle("/bg")))

        session.subscribe(events_to(let_go))
        await session.send_shell("echo begun; while ! [ -e go ]; do sleep 0.01; done")
        assert await beside[0] == Reply(
            text="The command continues in the background. /jobs lists it."
        )
        said = events.of(UserSaid)[0].content
        assert "Still running, in the background as job-1\n\nOutput:\nbegun" in said
        reply = await session.handle("/background")
        assert isinstance(reply, Reply)
        assert reply.is_error
        await session.close()


@pytest.mark.integration
@pytest.mark.parametrize("streams", ["", ">&2", "both"])
async def test_nothing_of_what_a_typed_command_prints_is_lost_at_any_length(streams, open_session):
    lengths = (600, 5_100, 7_000, 9_500, 9_700, 9_990, 10_100, 12_000)
    async with OpenAIServer(["ok"] * len(lengths)) as server:
        session, events = open_session(server)
        for length in lengths:
            count = length // 10
            one = f"seq -f 'line %04.0f' 1 {count if streams != 'both' else count // 2}"
            two = f"{one}; seq -f 'line %04.0f' {count // 2 + 1} {count} >&2"
            await session.send_shell(two if streams == "both" else f"{one} {streams}")
            said = events.of(UserSaid)[-1].content
            told = set(re.findall(r"line \d{4}", said))
            if (file := re.search(r"The whole output is in (.+)", said)) is not None:
                told |= set(
                    re.findall(r"line \d{4}", await asyncio.to_thread(Path(file[1]).read_text))
                )
            assert told == {f"line {number:04}" for number in range(1, count + 1)}, length
            assert len(said) < 10_600
        await session.close()
