"""Sessions of one process: shared by frontends, apart from each other."""

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from rows import every_row
from ybs.config.private_file import Busy
from ybs.core.envelope import Envelope
from ybs.core.errors import YbsError
from ybs.core.events import ConfirmationAnswered, StateChanged, ToolFinished, TurnFinished
from ybs.core.open_question import OpenQuestion
from ybs.core.ports import Answer, Preview, Question
from ybs.session.feed import Listener
from ybs.session.hub import Hub, Shared
from ybs.session.questions import Questions, buttons_of, by_id, by_kind, choices_of
from ybs.testing import ScriptedModel, call

NO, YES = Answer(is_allowed=False), Answer(is_allowed=True)


def opened(hub: Hub, project: Path, *script: Any, **options: Any) -> Shared:
    return hub.open(project, **{"model": ScriptedModel(script), "sandbox": False, **options})


async def until(listener: Listener, kind: type[Any]) -> Envelope:
    """Return the next event of a kind."""
    async with asyncio.timeout(10):
        async for envelope in listener:
            if isinstance(envelope.event, kind):
                return envelope
    raise AssertionError(f"no {kind.__name__} came")


async def asked(listener: Listener) -> OpenQuestion:
    """Return the question that a listener hears of next."""
    while True:
        state = (await until(listener, StateChanged)).event
        if isinstance(state, StateChanged) and state.questions:
            return state.questions[0]


async def test_a_question_is_seen_by_all_and_answered_once_by_whoever_comes_first(project: Path):
    (project / "a").write_text("text")
    async with Hub() as hub:
        shared = opened(hub, project, call("delete_file", path="a"), "done", mode="ask")
        first, second = shared.feed.listen(), shared.feed.listen()
        turn = asyncio.create_task(shared.session.send("delete it"))
        question = await asked(first)
        assert await asked(second) == question
        assert (question.name, question.title) == ("delete_file", "Delete a")
        questions = hub.share(shared.session.id).session.questions
        assert questions.answer(question.id, YES)
        assert not questions.answer(question.id, NO)
        assert (await turn).finished.reason == "done"
        assert not questions.answer(question.id, NO)
        assert not (project / "a").exists()
        told = (await until(second, ConfirmationAnswered)).event
        assert isinstance(told, ConfirmationAnswered)
        assert told.is_allowed
        states = [each async for each in ended(second, shared)]
        assert states[-1].questions == ()


async def ended(listener: Listener, shared: Shared) -> Any:
    """Yield the states that a listener has not read."""
    shared.feed.end()
    async for envelope in listener:
        if isinstance(envelope.event, StateChanged):
            yield envelope.event


async def test_a_frontend_that_asks_itself_is_overtaken_by_an_answer_by_id(project: Path):
    (project / "a").write_text("text")
    left = asyncio.Event()

    async def confirm(question: Question) -> Answer:
        del question
        try:
            return await asyncio.get_running_loop().create_future()
        finally:
            left.set()

    async with Hub() as hub:
        script = (call("delete_file", path="a"), "done")
        shared = opened(hub, project, *script, mode="ask", confirm=confirm)
        listener = shared.feed.listen()
        turn = asyncio.create_task(shared.session.send("delete it"))
        question = await asked(listener)
        shared.session.questions.answer(question.id, NO)
        await turn
        assert left.is_set()  # it no longer stands on its screen
        assert (project / "a").exists()


async def test_an_answer_that_comes_late_answers_no_other_question_of_the_same_call() -> None:
    questions, seen = Questions(lambda: None), list[str]()
    for number in range(3):
        question = Question(
            call=call("run_shell", command="x"),
            effect="execute",
            preview=Preview(title=str(number)),
        )
        asking = asyncio.create_task(questions.ask(question, by_id))
        await asyncio.sleep(0)
        shown = questions.open[0]
        assert shown.id not in seen
        assert not any(questions.answer(earlier, YES) for earlier in seen)
        assert questions.answer(shown.id, NO)
        assert not (await asking).is_allowed
        seen.append(shown.id)


async def test_a_turn_that_is_stopped_at_a_question_leaves_none_open(project: Path):
    (project / "a").write_text("text")
    async with Hub() as hub:
        shared = opened(hub, project, call("delete_file", path="a"), mode="ask")
        listener = shared.feed.listen()
        turn = asyncio.create_task(shared.session.send("delete it"))
        question = await asked(listener)
        shared.session.cancel()
        assert (await turn).finished.reason == "interrupted"
        assert shared.session.questions.open == ()
        assert not shared.session.questions.answer(question.id, YES)


async def test_where_a_session_stands_is_told_and_not_asked_for(project: Path):
    async with Hub() as hub:
        shared = opened(hub, project, "first", mode="bypass")
        session, listener = shared.session, shared.feed.listen()
        first = (await until(listener, StateChanged)).event
        assert first == session.state
        session.mode = "plan"
        changed = (await until(listener, StateChanged)).event
        assert isinstance(changed, StateChanged)
        assert changed.mode == "plan"
        await session.send("hello")
        states = [each async for each in ended(listener, shared)]
        assert any(each.is_busy for each in states)
        assert states[-1] == session.state
        assert (states[-1].name, states[-1].is_busy) == (session.journal.name, False)


@pytest.mark.integration
async def test_a_job_that_begins_and_ends_is_told(project: Path):
    start = call("run_shell", command="sleep 0.2", background=True)
    async with Hub() as hub:
        shared = opened(hub, project, start, "done", mode="bypass")
        listener = shared.feed.listen()
        await shared.session.send("start it")
        jobs: list[tuple[str, ...]] = []
        while ("job-1",) not in jobs or jobs[-1]:
            state = (await until(listener, StateChanged)).event
            assert isinstance(state, StateChanged)
            jobs.append(state.jobs)


@pytest.mark.integration
async def test_sessions_are_apart_and_end_alone(project: Path):
    async with Hub() as hub:
        one = opened(hub, project, "of one", "of one, again")
        other = opened(hub, project, "of the other")
        assert hub.sessions == (one, other)
        assert one.session.id != other.session.id
        listener = other.feed.listen()
        await one.session.send("hello")
        await other.session.send("hello too")
        await hub.close(other.session.id)
        heard = [envelope async for envelope in listener]
        assert {each.session for each in heard} == {other.session.id}
        assert "of one" not in str(heard)
        assert hub.sessions == (one,)
        with pytest.raises(YbsError, match="is open here"):
            hub.find(other.session.id)
        assert (await one.session.send("again")).text == "of one, again"


async def test_a_saved_session_that_is_open_is_shared_and_closed_by_the_last_who_holds_it(
    project: Path,
):
    async with Hub() as hub:
        one = opened(hub, project, "fine")
        await one.session.send("hello")
        with pytest.raises(Busy):  # whose options would it go by
            opened(hub, project, resume=one.session.journal.name)
        assert hub.share(one.session.id) is one
        await hub.release(one.session.id)
        assert hub.sessions == (one,)
        await hub.release(one.session.id)
        assert hub.sessions == ()
        other = opened(hub, project, resume="")
        assert other is not one
        assert other.session.journal.replay.messages[0].content[0].text == "hello"


async def test_ids_and_numbers_go_on_where_a_new_conversation_begins(project: Path):
    async with Hub() as hub:
        shared = opened(hub, project, "one", "two")
        listener = shared.feed.listen()
        identity = shared.session.id
        await shared.session.send("hello")
        await shared.session.start_anew(is_incognito=False)
        await shared.session.send("hello again")
        assert shared.session.id == identity
        await hub.close(identity)
        heard = [envelope async for envelope in listener]
        numbers = [each.number for each in heard]
        assert numbers == sorted(set(numbers))
        assert {each.session for each in heard} == {identity}
        assert len([each for each in heard if isinstance(each.event, TurnFinished)]) == 2
        assert not [each for each in heard if isinstance(each.event, ToolFinished)]


def test_the_choices_of_a_question_are_those_of_the_terminal():
    question = OpenQuestion(
        id="1", name="run_shell", title="Run git push", grant="git push *", can_be_kept=True,
        offers_network=True, outside="offered",
    )  # fmt: skip
    choices = choices_of(question)
    assert [*choices] == ["y", "n", "r", "w", "o", "a", "p"]
    assert choices["w"].answer == Answer(is_allowed=True, with_network=True)
    assert not choices["n"].answer.is_allowed
    assert [each.label for each in buttons_of(question, "ywoan")] == [
        "Yes",
        "Yes, with network",
        "Yes, outside the sandbox, once",
        "Always in this session: git push *",
        "No",
    ]
    destructive = OpenQuestion(id="2", name="run_shell", title="Run rm", outside="needed")
    assert [each.label for each in buttons_of(destructive, "yion")] == [
        "Yes, in the sandbox",
        "Yes, outside the sandbox, once",
        "No",
    ]
    own = OpenQuestion(id="3", name="ask_user", title="Ask you", choices=("red",))
    answers = [each.answer.reason for each in buttons_of(own, "yn")]
    assert answers == ["red", "the person said no"]


@every_row(
    "outside, network, grant",
    [*itertools.product(("", "offered", "needed"), (False, True), ("", "run_shell(make *)"))],
)
def test_by_its_kind_an_answer_gives_what_the_title_says(outside, network, grant):
    """Clients take the last answer of a kind, or the second of all."""
    question = OpenQuestion(
        id="1", name="run_shell", title="Run a shell command in sub", grant=grant,
        can_be_kept=True, offers_network=network, needs_network=network, outside=outside,
        network_grant=f"{grant} with network" if grant else "",
    )  # fmt: skip
    asked, choices = by_kind(question)
    keys = [each.key for each in choices]
    assert keys == (["o", "n"] if outside == "needed" else ["y", "n", *["a"] * bool(grant)])
    is_told = asked.title == "Run a shell command outside the sandbox in sub"
    assert is_told == bool(asked.warnings) == (outside == "needed")
    once, no, *always = (each.answer for each in choices)
    assert once == Answer(is_allowed=True, is_outside=is_told)
    assert not no.is_allowed
    assert always == [Answer(is_allowed=True, is_for_session=True)] * len(always)
    assert by_kind(asked) == (
        asked,
        choices,
    )  # where the call asked for it the title says so already
    assert by_kind(replace(question, choices=("yes", "no")))[1] == []
