"""The keys do what the table says, which `?` and /help show."""

import os
import signal
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import pytest
from stage import Stage, staged

from fake_session import FakeSession, hangs, says
from ybs.config.schema import Config, UiSettings
from ybs.frontends.terminal.prompt.completion import YbsCompleter
from ybs.frontends.terminal.prompt.keys import EMACS_KEYS, KEYS, VI_KEYS, keys_text

pytestmark = pytest.mark.integration

Try: TypeAlias = Callable[[Stage], Awaitable[None]]
KILLED: list[tuple[int, int]] = []
APPENDS = """sh -c 'printf " edited" >> "$1"' sh"""
VI = Config(ui=UiSettings(editing_mode="vi"))


def text_of(stage: Stage) -> str:
    return stage.terminal.window.draft.text


async def has(stage: Stage, text: str) -> None:
    await stage.until(lambda: text_of(stage) == text)


async def empties(stage: Stage) -> None:
    stage.terminal.window.draft.reset()
    await stage.settles()


async def enter(stage: Stage) -> None:
    stage.keys("first\r")
    await stage.sees("so far")
    stage.keys("and this\r")
    await stage.until(lambda: stage.session.steered == ["and this"])


async def up_and_escape(stage: Stage) -> None:
    stage.keys("\x1b[A")
    await has(stage, "and this")
    await empties(stage)
    stage.keys("\x02")
    await stage.until(lambda: stage.session.lines[-1:] == ["/background"])
    stage.keys("\x1b")
    await stage.sees("interrupted")
    await stage.until(lambda: not stage.terminal.work.is_busy)
    stage.keys("\x1b[A")
    await has(stage, "and this")
    stage.keys("\x1b[A")
    await has(stage, "first")
    stage.keys("\x1b[B\x1b[B")
    await has(stage, "")


async def new_lines(stage: Stage) -> None:
    stage.keys("a\x1b[13;2ub\nc\x1b\rd\\\r")
    await has(stage, "a\nb\nc\nd\n")
    await empties(stage)


async def tab(stage: Stage) -> None:
    draft = stage.terminal.window.draft
    await stage.until(lambda: isinstance(draft.completer, YbsCompleter))
    stage.keys("/mod")
    await stage.sees(" /mode [NAME]")
    stage.keys("\t\t\x1b[Z\r")  # a command that was chosen is sent
    await stage.until(lambda: stage.session.lines[-1:] == ["/model"])
    await has(stage, "")
    await stage.until(
        lambda: " /mode [NAME]" not in stage.screen and not stage.terminal.work.is_busy
    )
    stage.keys("/mod")
    await stage.sees(" /mode [NAME]")
    stage.keys("\x1b")  # closes the menu, and nothing else
    await stage.until(lambda: draft.complete_state is None)
    await has(stage, "/mod")
    stage.keys("\t")
    await stage.sees(" /mode [NAME]")
    stage.keys("\x1b[A")  # nothing is selected: what was sent before
    await has(stage, "/model")
    await empties(stage)


async def search(stage: Stage) -> None:
    stage.keys("\x12fir")
    await stage.sees("search: fir")
    stage.keys("\r")
    await has(stage, "first")
    await empties(stage)


async def twice_escape(stage: Stage) -> None:
    stage.keys("words")
    await has(stage, "words")
    stage.keys("\x1b\x1b")
    await has(stage, "")
    stage.keys("\x1b\x1b")
    await stage.until(lambda: stage.session.lines[-1:] == ["/rewind"])
    await stage.until(lambda: not stage.terminal.work.is_busy)


async def shift_tab(stage: Stage) -> None:
    for sent in ("\x1b[Z", "\x1b[9;2u"):
        before = stage.session.mode
        stage.keys(sent)
        await stage.until(lambda before=before: stage.session.mode != before)


async def editor(stage: Stage) -> None:
    for keys in ("\x07", "\x18\x05"):
        stage.keys(f"draft{keys}")
        await has(stage, "draft edited")
        await empties(stage)


async def image(stage: Stage) -> None:
    stage.keys("\x16")
    await stage.sees("no clipboard with images")


async def aside(stage: Stage) -> None:
    stage.keys("later\x13")
    await has(stage, "")
    stage.keys("now\x13")
    await has(stage, "later")
    await empties(stage)
    stage.keys("\x13")
    await has(stage, "now")
    await empties(stage)


async def jobs(stage: Stage) -> None:
    stage.keys("\x14")
    await stage.until(lambda: stage.session.lines[-1:] == ["/jobs"])
    await stage.until(lambda: not stage.terminal.work.is_busy)


async def unfold(stage: Stage) -> None:
    stage.keys("\x0f")
    await stage.sees("nothing more to show")


async def redraw(stage: Stage) -> None:
    before = len(stage.raw)
    stage.keys("\x0c")
    await stage.until(lambda: "\x1b[2J" in stage.raw[before:])


async def suspend(stage: Stage) -> None:
    stage.keys("\x1a")
    await stage.until(lambda: (0, signal.SIGTSTP) in KILLED)


async def emacs(stage: Stage) -> None:
    stage.keys("two words")
    stage.keys("\x01x\x05y\x17\x15")  # beginning, end, a word, all of it
    await has(stage, "")
    stage.keys("\x19")
    await has(stage, "xtwo ")
    stage.keys("\x1f")
    await has(stage, "")
    await empties(stage)


async def interrupt(stage: Stage) -> None:
    stage.keys("words\x03")
    await has(stage, "")
    stage.keys("\x03")
    await stage.sees("press Ctrl-C again to leave ybs")


async def leave(stage: Stage) -> None:
    await empties(stage)
    stage.keys("\x04")
    await stage.until(lambda: not stage.terminal.window.app.is_running)


TRIES: dict[str, Try] = {
    "Enter": enter,
    "Up, Down": up_and_escape,
    "Esc": up_and_escape,
    "Tab": tab,
    "Shift-Enter, Ctrl-J, \\ Enter": new_lines,
    "Ctrl-R": search,
    "Esc Esc": twice_escape,
    "Shift-Tab": shift_tab,
    "Ctrl-G, Ctrl-X Ctrl-E": editor,
    "Ctrl-V": image,
    "Ctrl-S": aside,
    "Ctrl-L": redraw,
    "Ctrl-O": unfold,
    "Ctrl-B": up_and_escape,
    "Ctrl-T": jobs,
    "Ctrl-Z": suspend,
    **dict.fromkeys((key for key, _ in EMACS_KEYS), emacs),
    "Ctrl-C": interrupt,
    "Ctrl-D": leave,
}


def note_signal(pid: int, number: int) -> None:
    KILLED.append((pid, number))


async def test_every_key_of_the_table_does_what_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(TRIES) == {key for key, _ in (*KEYS, *EMACS_KEYS)}
    monkeypatch.setattr(os, "kill", note_signal)
    monkeypatch.setenv("VISUAL", APPENDS)
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    async with staged(FakeSession(hangs)) as stage:
        for tried in dict.fromkeys(TRIES.values()):
            await tried(stage)
            assert text_of(stage) == "", tried
    assert stage.code == 0


@pytest.mark.slow
async def test_the_keys_of_vi_do_what_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [key for key, _ in VI_KEYS] == ["Esc", "/, u"]
    session = FakeSession(hangs, config=VI)
    async with staged(session) as stage:
        stage.keys("?")
        await stage.sees("leave insert mode")
        stage.keys("go\r")
        await stage.sees("so far")
        stage.keys("ab")
        await has(stage, "ab")
        stage.keys("\x1b")  # normal mode, and the turn runs on
        await stage.sees("── normal ─")
        assert session.is_busy
        stage.keys("x")
        await has(stage, "a")
        stage.keys("u")
        await has(stage, "ab")
        stage.keys("\x1b")
        await stage.sees("interrupted")
        stage.keys("cc")
        await has(stage, "")
        await stage.until(lambda: "normal" not in stage.screen.split("\n")[-2])
        stage.keys("one\x1b\rtwo")  # Alt-Enter
        await has(stage, "one\ntwo")
        stage.keys("\x1b")
        await stage.sees("── normal ─")
        stage.keys("\x1b\x1b")
        await has(stage, "")
        stage.keys("?g")  # vi's own search, not the table of keys
        await stage.sees("search: g")
        stage.keys("\r")
        await has(stage, "go")
        stage.keys("\x1b[Z")
        await stage.until(lambda: session.mode != "ask")
        stage.keys("\r")
        await stage.until(lambda: session.lines == ["go", "go"])


def test_the_table_fits_into_eighty_columns_and_knows_vi() -> None:
    for is_vi in (False, True):
        lines = keys_text(is_vi=is_vi).split("\n")
        assert max(map(len, lines)) < 80
    assert "normal mode" in keys_text(is_vi=True)
    assert "Ctrl-W" not in keys_text(is_vi=True)


async def test_a_thousand_keys_at_once_keep_their_order() -> None:
    typed = "".join(f"{number} " for number in range(260))
    session = FakeSession(says("ok"))
    async with staged(session) as stage:
        stage.keys(typed)
        await has(stage, typed)
        stage.keys("\x01" + "\x1b[C" * 3 + "\x1b[13;2u" + "x" * 900)
        await has(stage, typed[:3] + "\n" + "x" * 900 + typed[3:])


async def test_keys_typed_before_the_prompt_is_there_are_not_lost() -> None:
    session = FakeSession(says("ok"))
    async with staged(session, early="early\x1b[13;2uwords") as stage:
        await has(stage, "early\nwords")


async def test_ctrl_c_of_another_program_on_the_terminal_is_not_ours() -> None:
    async with staged(FakeSession(hangs), prompt="go") as stage:
        await stage.sees("so far")
        window = stage.terminal.window
        window.is_away = True
        window.app.key_processor.send_sigint()
        await stage.settles()
        assert stage.session.is_busy
        window.is_away = False
        window.app.key_processor.send_sigint()
        await stage.sees("interrupted")


async def test_a_command_typed_before_completion_is_loaded_gets_its_menu() -> None:
    async with staged(FakeSession(), early="/mod") as stage:
        await stage.sees("› /mod\n /model [NAME]")
