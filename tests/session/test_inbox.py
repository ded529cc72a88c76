"""The inbox of a session: several frontends send, each hears of its own lines, and nothing is lost when a turn is stopped."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest

from ybs.commands.open import SlashCommands
from ybs.core.errors import YbsError
from ybs.core.events import Event
from ybs.core.messages import UserMessage
from ybs.core.ports import Guard, Request, Turn
from ybs.session.hub import Hub, Shared
from ybs.session.inbox import InboxLine, Sender, to_type
from ybs.session.reply import Outcome, Reply
from ybs.session.running_task import Stopped
from ybs.testing import ScriptedModel


class Held(ScriptedModel):
    """It answers when it is let."""

    def __init__(self, *script: Any) -> None:
        super().__init__(script)
        self.asked, self.may = asyncio.Event(), asyncio.Event()

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        self.asked.set()
        await self.may.wait()
        async for event in super().stream(request):
            yield event


class Frontend(Sender):
    """It writes down what it hears."""

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.results: list[Reply | Outcome | YbsError] = []
        self.was_read: list[str] = []
        self.back: list[str] = []

    def line(self, text: str, **how: Any) -> InboxLine:
        return InboxLine(text=text, sender=self, **how)

    def take(self, line: InboxLine, kept: str | None) -> None:
        del kept
        self.taken.append(line.text)

    async def done(self, line: InboxLine, result: Reply | Outcome | YbsError) -> None:
        del line
        self.results.append(result)

    def read(self, text: str, kept: str | None) -> None:
        del kept
        self.was_read.append(text)

    def give_back(self, lines: list[InboxLine]) -> None:
        self.back += [to_type([line]) for line in lines]

    def changed(self) -> None:
        """Look at the inbox."""


def opened(hub: Hub, project: Path, model: ScriptedModel, **more: Any) -> Shared:
    return hub.open(project, model=model, sandbox=False, commands=SlashCommands(), **more)


async def until(is_true: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not is_true():  # noqa: ASYNC110 - of many kinds
            await asyncio.sleep(0.01)


async def test_each_hears_of_its_own_lines_and_all_are_taken_in_order(project: Path):
    async with Hub() as hub:
        model = Held("first", "second", "third")
        session = opened(hub, project, model).session
        one, other, inbox = Frontend(), Frontend(), session.inbox
        inbox.submit(one.line("hello"))
        await model.asked.wait()
        inbox.submit(other.line("by the way"))  # for the running turn
        inbox.queue(one.line("and then"))
        assert session.state.waiting == ("by the way", "and then")
        model.may.set()
        await until(lambda: not inbox.is_busy)
        assert one.taken == ["hello", "and then"]
        assert (other.taken, other.was_read) == ([], ["by the way"])
        texts = [each.text for each in one.results if isinstance(each, Outcome)]
        assert (texts, other.results) == (["second", "third"], [])
        said = [
            each.words for each in session.conversation.messages if isinstance(each, UserMessage)
        ]
        assert said == ["hello", "by the way", "and then"]
        assert session.state.waiting == ()


async def test_what_a_stopped_turn_did_not_read_goes_back_to_whoever_sent_it(project: Path):
    async with Hub() as hub:
        model = Held("never")
        inbox = opened(hub, project, model).session.inbox
        one, other = Frontend(), Frontend()
        inbox.submit(one.line("hello"))
        await model.asked.wait()
        inbox.submit(one.line("mine"))
        inbox.submit(other.line("yours"))
        inbox.queue(other.line("later"))
        inbox.queue(one.line("/picked", is_choice=True))
        inbox.stop()
        await until(lambda: not inbox.is_busy)
        assert (one.back, other.back) == (["mine"], ["yours", "later"])
        assert not inbox.has_more


async def test_a_command_runs_beside_a_turn_and_one_that_waits_behind_it(project: Path):
    async with Hub() as hub:
        model = Held("fine")
        session = opened(hub, project, model).session
        one, other = Frontend(), Frontend()
        session.inbox.submit(one.line("hello"))
        await model.asked.wait()
        session.inbox.submit(other.line("/mode plan"))
        await until(lambda: other.results)
        assert session.mode == "plan"
        session.inbox.submit(other.line("/clear"))
        session.inbox.submit(other.line("words for what it leaves"))
        assert session.inbox.queued == ["/clear", "words for what it leaves"]
        recalled = session.inbox.recall()
        assert recalled is not None
        assert recalled.text == "words for what it leaves"
        model.may.set()
        await until(lambda: not session.inbox.is_busy)
        assert other.taken == ["/mode plan", "/clear"]
        assert list(session.conversation.messages) == []


async def test_what_cannot_be_done_is_told_to_whoever_asked_and_the_next_line_is_taken(project):
    async with Hub() as hub:
        session = opened(hub, project, ScriptedModel(["fine"])).session
        one = Frontend()
        session.inbox.submit(one.line("/retry"))
        session.inbox.queue(one.line("/not a command", is_for_model=True))
        await until(lambda: not session.inbox.is_busy)
        reply, outcome = one.results
        assert isinstance(reply, Reply)
        assert reply.is_error
        assert isinstance(outcome, Outcome)
        assert outcome.text == "fine"


async def test_who_waits_for_a_line_gets_what_came_of_it(project: Path):
    async with Hub() as hub:
        session = opened(hub, project, ScriptedModel(["one", "two"])).session
        results = await asyncio.gather(
            session.inbox.result_of("first"),
            session.inbox.result_of("/model and more", is_for_model=True),
        )
        assert [each.text for each in results] == ["one", "two"]
        assert isinstance(await session.inbox.result_of("/status"), Reply)
        with session.running.held("It is away."), pytest.raises(YbsError, match="It is away"):
            await session.inbox.result_of("third")


@pytest.mark.integration
async def test_who_waits_for_a_line_behind_a_turn_that_is_stopped_hears_of_it(project: Path):
    async with Hub() as hub:
        model = Held("never said")
        session = opened(hub, project, model).session
        one = asyncio.create_task(session.inbox.result_of("hello"))
        await model.asked.wait()
        other = asyncio.create_task(session.inbox.result_of("later"))
        given_up = asyncio.create_task(session.inbox.result_of("not at all"))
        await until(lambda: len(session.inbox.queued) == 2)
        given_up.cancel()
        await until(lambda: session.inbox.queued == ["later"])
        session.inbox.stop()
        outcome = await one
        assert isinstance(outcome, Outcome)
        assert outcome.finished.reason == "interrupted"
        with pytest.raises(Stopped, match="Not sent"):
            await other


async def test_who_waits_and_is_cancelled_stops_the_turn_and_its_successor_runs(project: Path):
    async with Hub() as hub:
        model = Held("said")
        session = opened(hub, project, model).session
        one = asyncio.create_task(session.inbox.result_of("hello"))
        await model.asked.wait()
        one.cancel()
        await until(lambda: not session.is_busy and not session.inbox.is_busy)
        model.may.set()
        outcome = await session.inbox.result_of("again")
        assert isinstance(outcome, Outcome)
        assert outcome.text == "said"


async def test_words_that_a_turn_did_not_come_to_read_stay_words_and_name_what_was_typed(
    project: Path, tmp_path: Path
):
    (outside := tmp_path / "diary.txt").write_text("the diary")
    one = Frontend()

    class Last(Guard):
        """The last moment of a turn, in which the person says something."""

        async def wants_more(self, turn: Turn) -> bool:
            if one.taken == ["begin"]:
                inbox.submit(one.line("!touch ran", is_for_model=True))
                inbox.submit(one.line(f"look\n@{outside}", typed="look"))
            return False

    async with Hub() as hub:
        session = opened(hub, project, ScriptedModel(["one", "two"]), guards=[Last()]).session
        inbox = session.inbox
        inbox.submit(one.line("begin"))
        await until(lambda: not inbox.is_busy)
        assert one.taken == ["begin", f"!touch ran\nlook\n@{outside}"]
        assert not (project / "ran").exists()
        assert "the diary" not in str(session.conversation.messages)


@pytest.mark.integration
async def test_what_goes_back_is_no_command_and_names_no_more_than_the_person_typed(
    project: Path, tmp_path: Path
):
    (outside := tmp_path / "diary.txt").write_text("the diary")
    async with Hub() as hub:
        model = Held("one", "two", "three")
        session = opened(hub, project, model).session
        one, inbox = Frontend(), session.inbox
        inbox.submit(one.line("begin"))
        await model.asked.wait()
        inbox.queue(one.line(f"look\n@{outside}", typed="look"))
        recalled = inbox.recall()
        assert recalled is not None
        assert (to_type([recalled]), recalled.brought) == (f"look\n@{outside}", f"\n@{outside}")
        inbox.queue(one.line("!touch ran", is_for_model=True))
        inbox.stop()
        await until(lambda: not inbox.is_busy)
        assert one.back == ["(pasted)\n!touch ran"]
        model.may.set()
        inbox.submit(one.line(f"look\n@{outside}"))  # as it was put into the prompt
        await until(lambda: session.state.questions)
        inbox.stop()
        await until(lambda: not inbox.is_busy)
        assert "the diary" not in str(session.conversation.messages)


async def test_a_file_that_an_editors_text_names_is_asked_about_where_the_words_come_back(
    project: Path, tmp_path: Path
):
    (outside := tmp_path / "diary.txt").write_text("the diary")
    async with Hub() as hub:
        model = Held("one", "two")
        session = opened(hub, project, model).session
        one, inbox = Frontend(), session.inbox
        inbox.submit(one.line("begin"))
        await model.asked.wait()
        words = f"look at @{outside}"
        inbox.queue(one.line(words, typed=words, linked=(), is_for_model=True))
        recalled = inbox.recall()
        assert recalled is not None
        model.may.set()
        inbox.queue(one.line(recalled.text))  # from a terminal on the same session
        await until(lambda: session.state.questions)
        (question,) = session.state.questions
        assert question.title.startswith("attach ")
        assert str(outside) in question.title + question.preview
        inbox.stop()


async def test_a_command_is_one_in_the_part_that_was_typed(project: Path):
    async with Hub() as hub:
        session = opened(hub, project, ScriptedModel(["fine"])).session
        one = Frontend()
        session.inbox.submit(one.line("!touch ran", typed=""))
        await until(lambda: not session.inbox.is_busy)
        assert isinstance(one.results[0], Outcome)
        assert session.conversation.messages[0].text == "!touch ran"
        assert not (project / "ran").exists()


async def test_no_paste_says_which_command_a_typed_sign_begins(project: Path):
    async with Hub() as hub:
        session = opened(hub, project, ScriptedModel(["fine"] * 3)).session
        one = Frontend()
        for text, typed in (
            ("!!touch ran", "![pasted]"),
            ("/undo x", "/[pasted]"),
            ("/undo", "/un"),
        ):
            session.inbox.submit(one.line(text, typed=typed))
        await until(lambda: not session.inbox.is_busy)
        assert all(isinstance(each, Outcome) for each in one.results)
        words = [m.text for m in session.conversation.messages if isinstance(m, UserMessage)]
        assert words == ["!!touch ran", "/undo x", "/undo"]
        assert not (project / "ran").exists()


def test_of_lines_that_go_back_together_none_is_a_command():
    one = Frontend()
    assert to_type([one.line("!make")]) == "!make"
    assert to_type([one.line("!make"), one.line("and more")]) == "(pasted)\n!make\nand more"
    assert to_type([one.line("!make"), one.line("see\nrm x", typed="see")]).startswith("(pasted)\n")
    assert to_type([one.line("and more"), one.line("!make")]) == "and more\n!make"
    assert to_type([one.line("!cat\nx", typed="!cat [pasted]")]) == "!cat\nx"


async def test_what_may_be_written_down_comes_with_a_line_and_is_none_in_incognito(project: Path):
    heard: list[tuple[str, str | None]] = []

    class Keeping(Frontend):
        def take(self, line: InboxLine, kept: str | None) -> None:
            heard.append(("taken", kept))

        def hear_line(self, text: str, what: Any, kept: str | None) -> None:
            heard.append((f"{what} elsewhere", kept))

    secret = "cJlCK11rtodUkRx63idB"
    # The first look finds the login alone, and what it leaves the password.
    words = f'/mode "password": "{secret} https://bob:V5WBExE5c0yAha2H@h.example/x"'
    front, other = Keeping(), Keeping()
    async with Hub() as hub:
        session = opened(hub, project, ScriptedModel(["answer"])).session
        session.inbox.hear(other)
        session.inbox.queue(front.line(f"{words}\nof a file", typed=words))
        session.inbox.queue(front.line("/incognito"))
        session.inbox.queue(front.line("to myself"))
        await until(lambda: len(front.results) == 3)
        assert await session.inbox.kept("a draft") is None
    kept = heard[0][1]
    assert kept is not None
    assert re.fullmatch(r'/mode "password": "\[[a-z-]+\].*', kept)
    assert not [each for each in (secret, "V5WBExE5c0yAha2H", "of a file") if each in kept]
    ways = ("taken", "taken elsewhere")
    assert heard == [(way, each) for each in (kept, "/incognito", None) for way in ways]
