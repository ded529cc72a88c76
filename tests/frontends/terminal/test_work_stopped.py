"""Lines that wait: they reach the turn they are meant for, and none is lost where something is stopped or fails."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from stage import Stage, staged

from fake_session import EndTurn, FakeSession, hangs, says
from rows import every_row
from ybs.core.errors import YbsError
from ybs.core.events import UserSaid
from ybs.frontends.terminal import terminal
from ybs.frontends.terminal.prompt.draft import PromptDraft
from ybs.frontends.terminal.prompt.history import LineHistory
from ybs.session.reply import Menu, MenuItem, NotSent, Reply, TerminalActions

pytestmark = pytest.mark.integration


class Slow(FakeSession):
    """A command that takes as long as the test wants."""

    def __init__(self, *script: Any) -> None:
        super().__init__(*script)
        self.gate = asyncio.Event()

    async def handle(self, line: str, images: Any = ()) -> Any:
        if line == "/slow":
            await self.gate.wait()
        return await super().handle(line, images)


def draft_of(stage: Stage) -> str:
    return stage.terminal.window.draft.text


async def test_words_behind_a_command_that_waits_are_not_for_the_old_turn() -> None:
    session = FakeSession(hangs)
    async with staged(session, prompt="go") as stage:
        await stage.sees("so far")
        for line in ("/incognito", "my secret plan", "!make", "and more"):
            stage.keys(f"{line}\r")
            await stage.sees(f"{line}  (sent when this is done)")
        assert session.steered == []
        stage.keys("\x03")
        waiting = "(pasted)\n/incognito\nmy secret plan\n!make\nand more"
        await stage.until(lambda: draft_of(stage) == waiting)


class Ending(FakeSession):
    """A session in which what a turn leaves behind takes its time to be kept."""

    def __init__(self, *script: Any) -> None:
        super().__init__(*script)
        self.gate = asyncio.Event()

    async def _take_turn(self, text: str) -> Any:
        outcome = await super()._take_turn(text)
        await self.gate.wait()
        return outcome


async def test_what_is_typed_after_a_turn_was_stopped_is_not_given_back_but_sent() -> None:
    session = Ending(hangs, says("the next answer"))
    async with staged(session, prompt="go") as stage:
        await stage.sees("so far")
        stage.keys("for this turn\t")
        await stage.sees("for this turn  (sent when this is done)")
        stage.keys("\x1b")
        await stage.sees("interrupted")
        await stage.until(lambda: draft_of(stage) == "for this turn")
        stage.terminal.window.draft.clear()
        stage.keys("the next one\r")
        session.gate.set()
        await stage.sees("the next answer")
    assert session.lines == ["go", "the next one"]


async def test_what_waits_behind_a_stopped_command_is_given_back() -> None:
    session = Slow()
    async with staged(session) as stage:
        stage.keys("/slow\r")
        await stage.until(lambda: stage.terminal.work.is_busy)
        stage.keys("do X\r")
        await stage.sees("do X  (sent when this is done)")
        stage.keys("\x1b")
        await stage.until(lambda: draft_of(stage) == "do X")
        await stage.until(lambda: "sent when this is done" not in stage.screen)


async def test_words_that_came_before_the_first_were_read_stay_unread() -> None:
    composed, ending = asyncio.Event(), asyncio.Event()

    class Composing(FakeSession):
        async def _take_turn(self, text: str) -> Any:
            async def cue(_session: FakeSession) -> None:
                await composed.wait()
                self.emit(UserSaid(content=text))
                await ending.wait()

            finished = await self._play(cue)
            raise EndTurn(finished.reason)

        async def send(
            self, text: str, images: Any = (), *, typed: Any = None, linked: Any = None
        ) -> Any:
            raise AssertionError("nothing is pasted here")

    session = Composing()
    async with staged(session) as stage:
        stage.keys("explain @big\r")
        await stage.until(lambda: session.is_busy)
        stage.keys("only the names\r")
        await stage.sees("only the names  (read before the next step)")
        composed.set()
        await stage.settles()
        assert "only the names  (read before the next step)" in stage.screen
        stage.terminal.recall()
        assert draft_of(stage) == "only the names"
        stage.terminal.recall()  # nothing waits any more
        assert draft_of(stage) == "only the names"


async def test_words_for_a_turn_that_broke_are_given_back_and_the_next_line_goes_on() -> None:
    gate = asyncio.Event()

    async def breaks(_session: FakeSession) -> None:
        await gate.wait()
        raise YbsError("the disk is full")

    session = FakeSession(breaks, says("two"))
    async with staged(session, prompt="go") as stage:
        await stage.until(lambda: session.is_busy)
        stage.keys("and this\r")
        await stage.sees("and this  (read before")
        stage.keys("later\t")
        await stage.sees("later  (sent when")
        gate.set()
        await stage.sees("1.2k in")
        assert draft_of(stage) == "and this"
        assert session.lines == ["go", "later"]
        assert "read before the next step" not in stage.screen


async def test_a_choice_from_a_menu_is_not_given_back_as_words() -> None:
    session = FakeSession(hangs)
    items = (MenuItem("/model other", "other"),)
    session.replies["/model"] = Reply(text="", menu=Menu("Models", items))
    async with staged(session, prompt="go") as stage:
        await stage.sees("so far")
        stage.terminal.work.choose("/model other")
        await stage.sees("/model other  (sent when this is done)")
        stage.keys("mine\t")
        await stage.sees("mine  (sent when")
        stage.keys("\x03")
        await stage.until(lambda: draft_of(stage) == "mine")


async def test_what_is_given_back_while_the_editor_is_open_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def write(_text: str, _command: Any) -> str:
        opened.set()
        await saved.wait()
        return "edited"

    opened, saved, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
    monkeypatch.setenv("VISUAL", "true")
    monkeypatch.setattr("ybs.frontends.terminal.prompt.input.edit", write)

    async def stops(_session: FakeSession) -> None:
        await ended.wait()
        raise EndTurn("limit", "enough")

    session = FakeSession(stops)
    async with staged(session, prompt="go") as stage:
        await stage.until(lambda: session.is_busy)
        stage.keys("steer me\r")
        await stage.sees("steer me  (")
        stage.keys("draft\x07")
        await opened.wait()
        ended.set()
        await stage.until(lambda: not stage.terminal.work.is_busy)
        saved.set()
        await stage.until(lambda: not stage.terminal.window.is_away)
        await stage.until(lambda: draft_of(stage) == "steer me\nedited")


class Unsendable(FakeSession):
    """A session that sends nothing, as where a file that is named cannot be read."""

    async def send(
        self, text: str, images: Any = (), *, typed: Any = None, linked: Any = None
    ) -> Any:
        raise NotSent("It was not sent.")


async def test_words_that_ybs_was_started_with_come_back_unsent_as_words() -> None:
    async with staged(Unsendable(), prompt="!touch ran") as stage:
        await stage.until(lambda: draft_of(stage) == "(pasted)\n!touch ran")


def test_long_words_given_back_still_name_files_and_what_was_pasted_does_not() -> None:
    draft = PromptDraft(LineHistory(), print)
    words = "please fix\n" * 10 + "in @src/cart.py"
    draft.give(words)
    assert draft.pastes.shorten(draft.words) == words
    draft.set("")
    draft.insert_text(f"{words} for this log: ")
    draft.paste("see @other.py\n" * 20)
    sent = draft.take()
    draft.give(sent)
    assert draft.words == sent
    typed = draft.pastes.label(draft.text)
    assert "@src/cart.py" in typed
    assert "@other.py" not in typed


@every_row("command", ["!!git status", "!make", "/review"])
def test_a_command_that_comes_back_takes_nothing_of_the_draft_with_it(command: str) -> None:
    draft = PromptDraft(LineHistory(), print)
    draft.give(command)
    draft.give("")
    assert draft.words == command
    draft.set("")
    draft.paste("first\ntouch ran\n" * 20)
    draft.give(command)
    assert draft.words.startswith(f"(pasted)\n{command}\nfirst\ntouch ran\n")
    draft.set("")
    draft.give("touch ran")  # each line that goes back by itself, as those of a server do
    draft.give(command)
    assert draft.words == f"(pasted)\n{command}\ntouch ran"


async def test_a_hint_stays_for_its_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async with staged(FakeSession()) as stage:
        monkeypatch.setattr(terminal, "TWICE_SECONDS", 0.01)
        stage.terminal.hint("the first")
        monkeypatch.setattr(terminal, "TWICE_SECONDS", 60.0)
        stage.terminal.hint("the second")
        await asyncio.sleep(0.02)  # the first one's time is over
        await stage.settles()
        await stage.sees("the second")


async def test_a_command_takes_the_place_of_words_that_were_taken_back_and_up_finds_them() -> None:
    session = FakeSession()
    session.replies["/undo"] = Reply(
        text="Took it back.", terminal=TerminalActions(draft="fix the cart")
    )
    async with staged(session) as stage:
        for command in ("/redo", "!ls"):
            stage.keys("/undo\r")
            await stage.until(lambda: draft_of(stage) == "fix the cart")
            stage.keys(command)
            await stage.until(lambda c=command: draft_of(stage) == c)
            stage.keys("\x15")  # Ctrl-U
            await stage.until(lambda: draft_of(stage) == "")
            await stage.settles()
            stage.keys("\x1b[A")  # Up
            await stage.until(lambda: draft_of(stage) == "fix the cart")
            stage.terminal.window.draft.set("")
        stage.keys("/undo\r")
        await stage.until(lambda: draft_of(stage) == "fix the cart")
        stage.keys(" in src/")
        await stage.until(lambda: draft_of(stage) == "fix the cart in src/")


async def test_words_that_were_taken_back_do_not_mix_with_what_is_typed_or_waits() -> None:
    session = Slow()
    undone = Reply(text="Took it back.", terminal=TerminalActions(draft="fix the cart"))
    session.replies |= {"/slow": undone, "/redo": Reply(text="Did it again.")}
    async with staged(session) as stage:
        stage.keys("/slow\r")
        await stage.until(lambda: stage.terminal.work.is_busy)
        stage.keys("/redo\r")
        await stage.sees("/redo  (sent when this is done)")
        session.gate.set()
        await stage.sees("Did it again.")
        assert draft_of(stage) == ""
        session.gate.clear()
        stage.keys("/slow\r")
        await stage.until(lambda: stage.terminal.work.is_busy)
        stage.keys("something else")
        await stage.until(lambda: draft_of(stage) == "something else")
        session.gate.set()
        await stage.until(lambda: not stage.terminal.work.is_busy)
        assert draft_of(stage) == "something else"
