"""The terminal at work: keys in, screen out."""

import asyncio
import os
import re
import signal
from typing import Any

import pytest
from stage import staged

from fake_session import FakeSession, asks, ends, fails, hangs, question_of, says
from ybs.config.schema import Config, UiSettings
from ybs.core.errors import ProviderDown
from ybs.core.events import TextStreamed
from ybs.core.ports import Answer
from ybs.frontends.terminal import terminal as terminal_module

pytestmark = pytest.mark.integration

YES = Answer(is_allowed=True)
ALT_ENTER = "\x1b\r"


async def test_the_start_says_where_we_are_and_what_was_wrong() -> None:
    session = FakeSession(warnings=("~/.ybs.json:3: unknown key",))
    async with staged(session) as stage:
        await stage.sees("/help for more")
        assert "fake scripted · ask · no sandbox" in stage.screen
        assert "! ~/.ybs.json:3: unknown key" in stage.screen
        await stage.sees("ctx 3%")
    assert stage.code == 0


async def test_a_turn_shows_prompt_answer_and_usage() -> None:
    session = FakeSession(says("All **good** now.\n\nSecond `block`."))
    async with staged(session) as stage:
        stage.keys("fix it\r")
        await stage.sees("1.2k in · 34 out · 1.5 s")
        assert session.lines == ["fix it"]
        shown = stage.screen
        assert (
            shown.index("› fix it")
            < shown.index("  All good now.")
            < shown.index("  Second block.")
        )
        assert shown.count("All good now.") == 1


async def test_a_prompt_given_on_the_command_line_is_sent_at_once() -> None:
    session = FakeSession(says("hello"))
    async with staged(session, prompt="say hello") as stage:
        await stage.sees("1.2k in")
        assert session.lines == ["say hello"]


@pytest.mark.parametrize("prompt", ["!rm -rf x", "/quit"])
async def test_a_prompt_given_on_the_command_line_is_never_a_command(prompt: str) -> None:
    session = FakeSession(says("hello"))
    async with staged(session, prompt=prompt) as stage:
        await stage.sees("1.2k in")
        assert session.sent == [prompt]
        stage.keys("/help\r")
        await stage.sees("answer to /help")


async def test_a_command_that_it_begins_with_is_taken_at_once() -> None:
    session = FakeSession()
    async with staged(session, command="/resume") as stage:
        await stage.sees("answer to /resume")
        assert (session.lines, session.sent) == (["/resume"], [])


async def test_a_command_is_answered_without_a_turn() -> None:
    session = FakeSession()
    async with staged(session) as stage:
        stage.keys("/help\r")
        await stage.sees("answer to /help")
        stage.keys("/wrong\r")
        await stage.sees("✗ answer to /wrong")


@pytest.mark.parametrize("word", ["/quit", "exit", "Quit ", ":q"])
async def test_quit_leaves_with_zero(word: str) -> None:
    async with staged(FakeSession()) as stage:
        stage.keys(f"{word}\r")
        await stage.until(lambda: not stage.terminal.window.app.is_running)
    assert stage.code == 0


async def test_a_sentence_that_begins_so_is_for_the_model() -> None:
    session = FakeSession(says("ok"))
    async with staged(session) as stage:
        stage.keys("exit codes, please\r")
        await stage.sees("1.2k in")
        assert session.lines == ["exit codes, please"]


@pytest.mark.parametrize("new_line", [ALT_ENTER, "\n", "\\\r"])
async def test_a_prompt_can_have_several_lines(new_line: str) -> None:
    session = FakeSession(says("ok"))
    async with staged(session) as stage:
        stage.keys("one")
        await stage.sees("› one")
        stage.keys(new_line)
        await stage.until(lambda: "\n" in stage.terminal.window.draft.text)
        stage.keys("two\r")
        await stage.sees("1.2k in")
        assert session.lines == ["one\ntwo"]


@pytest.mark.integration
@pytest.mark.parametrize("paste", ["\x1b[200~one\rtwo\r\x1b[201~", "one\rtwo"])
async def test_pasting_several_lines_sends_nothing(paste: str) -> None:
    session = FakeSession()
    async with staged(session) as stage:
        stage.keys(paste)
        await stage.sees("two")
        await stage.settles()
        assert session.lines == []
        assert stage.terminal.window.draft.text.startswith("one\ntwo")


async def test_an_empty_line_sends_nothing() -> None:
    session = FakeSession()
    async with staged(session) as stage:
        stage.keys("   \r")
        await stage.settles()
        assert session.lines == []


@pytest.mark.integration
async def test_what_is_typed_during_a_turn_is_kept() -> None:
    session = FakeSession(hangs)
    async with staged(session) as stage:
        stage.keys("first\r")
        await stage.sees("so far")
        stage.keys("a draft")
        await stage.sees("› a draft")
        stage.keys("\x03")
        await stage.sees("interrupted")
        assert stage.terminal.window.draft.text == "a draft"


@pytest.mark.integration
async def test_a_line_sent_during_a_turn_waits_for_its_end() -> None:
    release = asyncio.Event()

    async def first(fake: FakeSession) -> None:
        await release.wait()
        await says("one")(fake)

    session = FakeSession(first, says("two"))
    async with staged(session) as stage:
        stage.keys("first\r")
        await stage.until(lambda: session.is_busy)
        stage.keys("second\t")
        await stage.sees("› second  (sent when this is done)")
        assert session.lines == ["first"]
        release.set()
        await stage.until(lambda: stage.screen.count("1.2k in") == 2)
        assert session.lines == ["first", "second"]


@pytest.mark.integration
async def test_a_line_waiting_behind_a_stopped_turn_goes_back_to_the_prompt() -> None:
    session = FakeSession(hangs)
    async with staged(session) as stage:
        stage.keys("first\r")
        await stage.sees("so far")
        stage.keys("second\t")
        await stage.sees("(sent when this is done)")
        stage.keys("\x03")
        await stage.sees("interrupted")
        await stage.until(lambda: stage.terminal.window.draft.text == "second")
        assert session.lines == ["first"]


@pytest.mark.integration
async def test_escape_stops_the_turn() -> None:
    session = FakeSession(hangs)
    async with staged(session) as stage:
        stage.keys("go\r")
        await stage.sees("so far")
        stage.keys("\x1b")
        await stage.sees("! interrupted")
        assert not session.is_busy


async def test_the_text_of_a_stopped_turn_stays_on_the_screen() -> None:
    session = FakeSession(hangs)
    async with staged(session) as stage:
        stage.keys("go\r")
        await stage.sees("so far")
        stage.keys("\x03")
        await stage.sees("interrupted")
        assert "so far" in stage.screen


@pytest.mark.integration
@pytest.mark.parametrize("is_explaining", [False, True])
async def test_ctrl_c_at_a_question_stops_the_turn(is_explaining: bool) -> None:
    session = FakeSession(asks(question_of()), says("never"))
    async with staged(session, prompt="go") as stage:
        await stage.sees("[y] yes")
        stage.clock.now += 1
        if is_explaining:
            stage.keys("r")
            await stage.sees("because:")
        stage.keys("\x03")
        await stage.sees("! interrupted")
        await stage.until(lambda: not stage.terminal.work.is_busy)
        assert session.answers == []
        assert not stage.terminal.asking.is_choosing
        assert "[y] yes" not in stage.screen


async def test_a_second_ctrl_c_at_a_question_leaves() -> None:
    async with staged(FakeSession(asks(question_of())), prompt="go") as stage:
        await stage.sees("[y] yes")
        stage.terminal.interrupt()
        stage.terminal.interrupt()
        await stage.until(lambda: not stage.terminal.window.app.is_running)
    assert stage.code == 130


@pytest.mark.integration
async def test_escape_at_a_question_stops_the_turn() -> None:
    session = FakeSession(asks(question_of(), then="then this"))
    async with staged(session, prompt="go") as stage:
        await stage.sees("[y] yes")
        stage.clock.now += 1
        stage.keys("\x1b")
        await stage.sees("! interrupted")
        assert "then this" not in stage.screen
        assert session.answers == []


@pytest.mark.integration
async def test_n_at_a_question_is_a_no_and_the_turn_goes_on() -> None:
    session = FakeSession(asks(question_of(), then="then this"))
    async with staged(session, prompt="go") as stage:
        await stage.sees("[y] yes")
        stage.clock.now += 1
        stage.keys("n")
        await stage.sees("then this")
        assert [answer.is_allowed for answer in session.answers] == [False]


async def test_a_stopped_turn_takes_its_hint_with_it() -> None:
    async with staged(FakeSession(hangs), prompt="go") as stage:
        await stage.sees("so far")
        stage.keys("\x03")
        await stage.sees("! interrupted")
        await stage.until(lambda: "Ctrl-C again leaves" not in stage.screen)
        await stage.sees("ctx 3%")


@pytest.mark.parametrize(("environ", "broken"), [({}, 1), ({"XTERM_VERSION": "XTerm(390)"}, 0)])
async def test_a_narrower_screen_is_cleared_of_lines_that_were_broken(environ, broken, monkeypatch):
    for name, value in environ.items():
        monkeypatch.setenv(name, value)

    async def long(session: FakeSession) -> None:
        session.emit(TextStreamed(text="word " * 9 + "so far"))
        await asyncio.Event().wait()

    async with staged(FakeSession(long), prompt="go", columns=80) as stage:
        await stage.sees("so far")
        app = stage.terminal.window.app
        before = len(stage.raw)
        screen = app.renderer.last_rendered_screen
        assert screen is not None
        up = screen.get_cursor_position(app.layout.current_window).y
        stage.size = stage.size._replace(columns=30)
        app._on_resize()
        await stage.until(lambda: "\x1b[J" in stage.raw[before:])
        erased = stage.raw[before:].partition("\x1b[J")[0]
        moved = sum(int(rows or 1) for rows in re.findall(r"\x1b\[(\d*)A", erased))
        assert moved - up == broken


async def test_a_second_interrupt_within_two_seconds_leaves_a_turn() -> None:
    session = FakeSession(hangs)
    async with staged(session) as stage:
        stage.keys("go\r")
        await stage.sees("so far")
        stage.terminal.interrupt()
        stage.clock.now += 1.9
        stage.terminal.interrupt()
        await stage.until(lambda: not stage.terminal.window.app.is_running)
    assert stage.code == 130


@pytest.mark.integration
async def test_an_interrupt_at_an_empty_prompt_says_how_to_leave() -> None:
    async with staged(FakeSession()) as stage:
        stage.keys("\x03")
        await stage.sees("press Ctrl-C again to leave ybs")
        stage.clock.now += 2.1
        stage.keys("\x03")
        await stage.settles()
        assert stage.terminal.window.app.is_running
        stage.clock.now += 1
        stage.keys("\x03")
        await stage.until(lambda: not stage.terminal.window.app.is_running)
    assert stage.code == 0


async def test_an_interrupt_empties_the_prompt_first() -> None:
    async with staged(FakeSession()) as stage:
        stage.keys("draft")
        await stage.sees("› draft")
        stage.keys("\x03\x03")
        await stage.sees("press Ctrl-C again to leave ybs")
        assert stage.terminal.window.draft.text == ""


@pytest.mark.integration
async def test_ctrl_d_leaves_only_from_an_empty_prompt() -> None:
    async with staged(FakeSession()) as stage:
        stage.keys("x\x04")
        await stage.settles()
        assert stage.terminal.window.app.is_running
        stage.keys("\x7f\x04")
        await stage.until(lambda: not stage.terminal.window.app.is_running)
    assert stage.code == 0


async def test_shift_tab_goes_through_the_modes() -> None:
    session = FakeSession()
    async with staged(session) as stage:
        seen: list[str] = []
        for _ in range(4):
            before = session.mode
            stage.keys("\x1b[Z")
            await stage.until(lambda before=before: session.mode != before)
            seen.append(session.mode)
        assert seen == ["accept-edits", "plan", "auto", "ask"]
        session.mode = "bypass"
        stage.keys("\x1b[Z")
        await stage.until(lambda: session.mode == "ask")


async def test_a_provider_that_is_down_gives_one_clear_line_and_the_session_lives() -> None:
    session = FakeSession(fails(ProviderDown("nobody answers at localhost:1")), says("back"))
    async with staged(session) as stage:
        stage.keys("a\r")
        await stage.sees("✗ nobody answers at localhost:1")
        stage.keys("b\r")
        await stage.sees("back")


async def test_the_limit_says_why_it_stopped() -> None:
    session = FakeSession(ends("loop", "the same test failed 5 times"))
    async with staged(session) as stage:
        stage.keys("a\r")
        await stage.sees("! the same test failed 5 times")


@pytest.mark.integration
@pytest.mark.parametrize(("columns", "rows"), [(20, 24), (20, 5), (40, 10), (10, 3), (200, 60)])
async def test_any_size_of_terminal_works(columns: int, rows: int) -> None:
    text = "# A heading\n\nA paragraph that is longer than the line.\n\n```py\nx = 1\n```\n\n| a | b |\n|--|--|\n| 1 | 2 |"
    session = FakeSession(says(text), asks(question_of(warnings=("deletes files: build/",))))
    async with staged(session, columns=columns, rows=rows) as stage:
        stage.keys("a prompt that is longer than twenty columns\r")
        await stage.until(lambda: len(session.script) == 1 and not stage.terminal.work.is_busy)
        stage.keys("go\r")
        await stage.until(lambda: stage.terminal.asking.is_choosing)
        await stage.settles()
        stage.clock.now += 1
        stage.keys("y")
        await stage.until(lambda: session.answers)
        await stage.until(lambda: not stage.terminal.work.is_busy)
        assert session.answers == [YES]


@pytest.mark.integration
async def test_a_resize_during_a_turn_is_survived() -> None:
    session = FakeSession(hangs)
    async with staged(session) as stage:
        stage.keys("go\r")
        await stage.sees("so far")
        stage.size = stage.size._replace(columns=30)
        app = stage.terminal.window.app
        drawn = app.render_counter
        app._on_resize()
        await stage.until(lambda: app.render_counter > drawn)
        stage.keys("\x03")
        await stage.until(lambda: not session.is_busy)


@pytest.mark.integration
async def test_no_colour_leaves_no_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    session = FakeSession(says("see `code`\n\n```python\nimport os\n```"), asks(question_of()))
    async with staged(session) as stage:
        stage.keys("a\r")
        await stage.sees("1.2k in")
        stage.keys("b\r")
        await stage.sees("[y] yes")
        stage.clock.now += 1
        stage.keys("y")
        await stage.until(lambda: session.answers)
        assert not re.search(r"\x1b\[(?:\d+;)*(?:3[0-7]|38|4[0-7]|48|9[0-7])(?:;\d+)*m", stage.raw)


async def test_the_setting_for_colour_is_honoured() -> None:
    config = Config(ui=UiSettings(color=False))
    async with staged(FakeSession(says("see `code`"), config=config)) as stage:
        stage.keys("a\r")
        await stage.sees("1.2k in")
        assert "\x1b[36m" not in stage.raw


async def test_what_a_model_says_cannot_act_on_the_terminal() -> None:
    session = FakeSession(says("a\x1b]0;title\x07b\x1b[2Jc\u202ed\x9b31m", size=1))
    async with staged(session) as stage:
        stage.keys("a\r")
        await stage.sees("1.2k in")
        assert "\x1b]0;" not in stage.raw
        assert "\x1b[2J" not in stage.raw
        assert "\u202e" not in stage.raw
        assert "\x9b" not in stage.raw
        assert "a␛]0;title␇b␛[2Jc<U+202E>d" in stage.screen


async def test_a_signal_to_end_closes_the_session() -> None:
    session = FakeSession(hangs)
    async with staged(session) as stage:
        stage.keys("go\r")
        await stage.sees("so far")
        os.kill(os.getpid(), signal.SIGTERM)
        await stage.until(lambda: not stage.terminal.window.app.is_running)
    assert stage.code == 143
    assert not session.is_busy


async def test_nothing_is_loaded_any_more_after_leaving_at_once(monkeypatch):
    monkeypatch.setattr(terminal_module, "WARM_UP_SECONDS", 61.0)
    loop, timers = asyncio.get_running_loop(), list[asyncio.TimerHandle]()
    call_later = loop.call_later

    def noted(delay: float, *rest: Any) -> asyncio.TimerHandle:
        timer = call_later(delay, *rest)
        timers.extend([timer] * (delay == 61.0))
        return timer

    monkeypatch.setattr(loop, "call_later", noted)
    async with staged(FakeSession()):
        pass
    assert [timer.cancelled() for timer in timers] == [True]


async def test_nothing_is_drawn_while_the_size_changes() -> None:
    async with staged(FakeSession(hangs), prompt="go") as stage:
        await stage.sees("so far")
        app = stage.terminal.window.app
        stage.size = stage.size._replace(columns=30)
        drawn = app.render_counter
        for columns in (31, 32):  # without a signal, as a terminal tells of it late
            app.invalidate()
            await stage.settles()
            stage.size = stage.size._replace(columns=columns)
        app._on_resize()
        assert app.render_counter == drawn
        await stage.until(lambda: app.render_counter > drawn)
        await stage.until(lambda: re.search(r"^─{32}\n", stage.screen, re.MULTILINE))
