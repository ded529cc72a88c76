"""What somebody met who used the terminal for the first time: presses that did too much, too little, or nothing."""

import asyncio
import re

import pytest
from msgspec.structs import replace
from paper import Page, ran, started
from prompt_toolkit.application.current import set_app
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys
from stage import Stage, staged

from fake_session import FakeSession, asks, hangs, question_of, says
from rows import every_row
from ybs.core.events import ThinkingStreamed, ToolFinished
from ybs.frontends.terminal.drawing.markdown import draw
from ybs.frontends.terminal.drawing.render import MOST_ROWS
from ybs.frontends.terminal.prompt.draft import PromptDraft
from ybs.frontends.terminal.prompt.history import LineHistory
from ybs.frontends.terminal.signs import fit_encoding

STUCK = "interrupting; Ctrl-C again leaves ybs"


async def has(stage: Stage, text: str) -> None:
    await stage.until(lambda: stage.terminal.window.draft.text == text)


async def will_not_stop(session: FakeSession) -> None:
    """Go on for a while after it was stopped."""
    try:
        await hangs(session)
    except asyncio.CancelledError:
        await asyncio.Event().wait()


@pytest.mark.integration
async def test_a_press_that_stopped_a_turn_is_not_the_first_of_two() -> None:
    async with staged(FakeSession(hangs)) as stage:
        stage.keys("go\r")
        await stage.sees("so far")
        stage.keys("a draft")
        await has(stage, "a draft")
        stage.keys("\x03")
        await stage.until(lambda: not stage.terminal.work.is_busy)
        stage.keys("\x03")
        await has(stage, "")
        assert stage.terminal.window.app.is_running
        stage.keys("\x03")
        await stage.sees("press Ctrl-C again to leave ybs")
        stage.keys("\x1b[A")  # up
        await has(stage, "a draft")
        stage.keys("\x03")  # the hint stands, and the prompt is not empty
        await has(stage, "")
        assert stage.terminal.window.app.is_running


@pytest.mark.integration
async def test_a_turn_that_does_not_stop_is_left_once_the_prompt_is_empty() -> None:
    async with staged(FakeSession(will_not_stop)) as stage:
        stage.keys("go\r")
        await stage.sees("so far")
        stage.keys("a draft")
        await has(stage, "a draft")
        stage.terminal.interrupt()
        await stage.sees("interrupting")
        stage.terminal.interrupt()
        assert stage.terminal.window.draft.text == ""
        assert stage.terminal.window.app.is_running
        await stage.sees(STUCK)
        stage.terminal.interrupt()
        await stage.until(lambda: not stage.terminal.window.app.is_running)
    assert stage.code == 130


@every_row("may_write", [True, False])
async def test_who_leaves_finds_the_draft_in_the_history_but_after_incognito(
    may_write: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, history, written = FakeSession(), LineHistory(), list[str]()
    session.is_incognito = not may_write
    monkeypatch.setattr(history, "store_string", written.append)
    async with staged(session, history=history) as stage:
        stage.keys("put away\x13")
        await has(stage, "")
        stage.keys("a draft")
        await has(stage, "a draft")
    assert written == (["put away", "a draft"] if may_write else [])


@pytest.mark.integration
async def test_a_lone_escape_is_over_before_the_next_letter() -> None:
    async with staged(FakeSession(says("ok"))) as stage:
        app = stage.terminal.window.app
        with set_app(app):
            app.key_processor.feed(KeyPress(Keys.Escape))
            app.key_processor.process_keys()
        assert app.timeoutlen is not None
        assert app.timeoutlen <= 0.05
        await stage.until(lambda: not app.key_processor.key_buffer)
        stage.keys("/help")
        await has(stage, "/help")
        stage.keys("\x1bb")  # Alt-B: a word back
        await stage.until(lambda: stage.terminal.window.draft.cursor_position == 1)
        for pause in (1.0, 0.6):  # too long for two that belong together
            stage.clock.now += pause
            stage.keys("\x1b")
            await stage.until(lambda: stage.terminal.escaped[0] == stage.clock.now)
            await has(stage, "/help")
        stage.clock.now += 0.4
        stage.keys("\x1b")
        await has(stage, "")
        assert stage.session.lines == []


async def test_enter_takes_the_only_file_that_fits_and_sends_one_that_is_written_out(monkeypatch):
    from prompt_toolkit.buffer import CompletionState
    from prompt_toolkit.completion import Completion

    wrong: list[str] = []
    for typed, offered, kept in [
        ("see @ca", ["@src/cart.py "], "see @src/cart.py "),
        ("see @ca", ["@src/cart.py ", "@src/cards.py "], None),
        ("see @a.py", ["@a.py "], None),
        ("/mo", ["/model "], None),
    ]:
        draft = PromptDraft(LineHistory(), print)
        draft.text = typed
        draft.cursor_position = len(typed)
        length = len(typed.split()[-1])
        draft.complete_state = CompletionState(
            draft.document, [Completion(text, -length) for text in offered]
        )
        is_kept = draft.take_only()
        if (is_kept, draft.text) != (kept is not None, kept or typed):
            wrong.append(f"{typed} {offered}: {is_kept} {draft.text}")
    assert wrong == []


def unfolded(page: Page) -> str:
    page.pieces.clear()
    assert page.renderer.unfold()
    return page.text


@pytest.mark.integration
def test_what_is_drawn_whole_has_an_end() -> None:
    page = Page()
    output = "\n".join(f"line {n}" for n in range(5_000))
    shown = {"stdout": output, "exit_code": 0, "output_file": "/tmp/all.txt"}
    page.draw(started(command="seq"), ran(display=shown))
    lines = unfolded(page).strip("\n").split("\n")
    assert len(lines) == MOST_ROWS + 2
    assert lines[1].strip() == f"… {5_001 - MOST_ROWS} lines before these   ctrl-o again shows all"
    assert lines[-2].strip() == "line 4999"
    assert lines[-1].strip() == "(all of it: /tmp/all.txt)"


def test_a_thought_can_be_read_while_it_is_thought() -> None:
    page = Page()
    page.draw(ThinkingStreamed(text="First this.\n\n" + "Then that. " * 30))
    assert unfolded(page).count("Then that.") == 30
    page.draw(ThinkingStreamed(text="And this."))
    assert "And this." in unfolded(page)


def test_what_a_quiet_tool_gave_the_model_is_kept_too() -> None:
    page = Page()
    page.draw(started(command="ls"), ran(display={"stdout": "a\n" * 30, "exit_code": 0}))
    page.draw(started("read_file", path="a.py"), said("read_file", "1 import os\n2 import re"))
    page.draw(started("edit_file", path="b.py"), said("edit_file", "Edited b.py"))
    assert unfolded(page).endswith("read a.py\n    1 import os\n    2 import re\n")
    assert "shell ls" in unfolded(page)


def said(name: str, output: str) -> ToolFinished:
    return replace(ran(name), output=output, summary="Edited b.py")


async def test_a_draft_that_was_brought_back_is_no_longer_put_aside() -> None:
    async with staged(FakeSession()) as stage:
        stage.keys("later\x13")
        await stage.sees("put aside;")
        stage.keys("\x13")
        await has(stage, "later")
        await stage.until(lambda: "put aside" not in stage.screen)


@pytest.mark.integration
async def test_a_long_menu_says_how_many_more_there_are() -> None:
    async with staged(FakeSession(), early="/") as stage:
        await stage.sees(" … ")
        assert " more" in stage.screen.split(" … ")[1].split("\n")[0]


def test_rules_and_tasks_are_drawn_and_have_ascii_twins() -> None:
    drawn = draw("one\n\n---\n\n- [ ] open\n- [x] done\n- [y] no task", 20, has_colour=False)
    drawn = re.sub(r"\x1b\[\d*m", "", drawn)
    assert "─" * 20 in drawn
    assert "☐ open" in drawn
    assert "☑ done" in drawn
    assert "[y] no task" in drawn
    assert "-" * 20 in fit_encoding(drawn, "ascii")
    assert "[ ] open" in fit_encoding(drawn, "ascii")
    assert "[x] done" in fit_encoding(drawn, "ascii")


@pytest.mark.integration
async def test_words_typed_into_a_question_are_seen_and_none_is_lost() -> None:
    async with staged(FakeSession(asks(question_of())), prompt="go") as stage:
        await stage.sees("[y] yes")
        stage.clock.now += 1
        stage.keys("thing n\ry")
        await has(stage, "thing n\ny")
        await stage.sees("still in your prompt: thing n y")
        assert stage.session.answers == []
        assert stage.terminal.asking.is_choosing
