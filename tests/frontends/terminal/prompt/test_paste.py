"""Pasted text: harmless, folded where it is long, and never a half of itself."""

import pytest
from stage import Stage, staged

from fake_session import FakeSession, hangs, says
from timing import takes_at_most
from ybs.frontends.terminal.prompt.paste import (
    MOST_KEPT,
    Pastes,
    clean,
)
from ybs.session.injection import NO_COMMAND
from ybs.session.mentions import MOST_CHARACTERS, MOST_LINES, is_long

LONG = "\n".join(f"line {number}" for number in range(30))
MARK = "[pasted 30 lines #1]"


def paste(stage: Stage, text: str) -> None:
    stage.keys(f"\x1b[200~{text}\x1b[201~")


def draft_of(stage: Stage) -> str:
    return stage.terminal.window.draft.text


@pytest.mark.integration
async def test_a_long_paste_is_shown_as_a_mark_and_sent_whole() -> None:
    session = FakeSession(says("ok"))
    async with staged(session) as stage:
        stage.keys("see ")
        paste(stage, LONG.replace("\n", "\r"))
        await stage.sees(f"› see {MARK}")
        stage.keys(" and fix\r")
        await stage.sees("1.2k in")
        assert session.lines == [f"see {LONG} and fix"]
        assert "line 7" not in stage.screen
        assert session.sent == [f"see {MARK} and fix"]  # where files are looked for
        stage.keys("\x1b[A")
        await stage.sees(f"› see {MARK} and fix")
        stage.keys("\x03")


@pytest.mark.integration
async def test_no_end_and_no_part_of_a_folded_paste_names_files() -> None:
    session = FakeSession(hangs, says("ok"))
    inner = LONG.replace("line 3", "@private.txt")
    outer = f"first\n{inner}\n/abs/outside/x.png\n"
    async with staged(session) as stage:
        for pasted in (inner, outer, outer + "\n \n"):
            paste(stage, pasted)
            await stage.settles()
        stage.keys("\r")
        await stage.until(lambda: session.lines and not draft_of(stage))
        for count, pasted in enumerate((inner + "\n", outer), 1):
            paste(stage, pasted)
            stage.keys("see @mine\r")
            await stage.until(lambda count=count: len(session.steered) == count)
        stage.keys("\x03")
        await stage.sees("interrupted")
        await stage.until(lambda: "@mine" in draft_of(stage))
        assert len(draft_of(stage).split("\n")) == 2  # both came back folded
        stage.keys("\r")
        await stage.until(lambda: len(session.lines) == 2)
    searched = "\n".join([*session.sent, *session.steered_in])
    assert searched.count("@mine") == 4
    assert "@private" not in searched
    assert "x.png" not in searched
    assert all("@private" in line for line in [*session.lines, *session.steered])


def test_a_line_comes_back_whole_when_its_paste_was_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ybs.frontends.terminal.prompt.paste.MOST_KEPT", 100)
    monkeypatch.setattr("ybs.frontends.terminal.prompt.paste.MOST_SENT", 2)
    pastes = Pastes()
    words = f"see {LONG}"
    pastes.note_sent(words, f"see {pastes.fold(LONG, '')}")
    pastes.fold(LONG.upper(), "")
    assert LONG not in pastes.shorten(words)
    assert pastes.expand(pastes.fold_known(words)) == words
    for other in ("one", "two"):
        pastes.note_sent(other, f"{other}{pastes.fold(LONG, '')}")
    assert pastes.shorten(words) == words  # too long ago


@pytest.mark.integration
async def test_every_key_takes_a_folded_paste_as_one() -> None:
    session = FakeSession(says("ok"))
    async with staged(session) as stage:
        stage.keys("a")
        paste(stage, LONG)
        await stage.sees(MARK)
        paste(stage, LONG)
        stage.keys("b")
        await stage.sees(f"a{MARK}[pasted 30 lines #2]b")
        # Left over b and the second, Backspace takes the first; what is typed comes between.
        stage.keys("\x1b[D\x1b[D\x7fx")
        await stage.sees("› ax[pasted 30 lines #2]b")
        stage.keys("\x1f\x1f")  # undo
        await stage.sees(f"a{MARK}[pasted 30 lines #2]b")
        # Delete, cut and insert again.
        stage.keys("\x05\x1b[D\x1b[D\x1b[D\x1b[3~\x0b\x01\x19")
        await stage.sees("› [pasted 30 lines #2]ba")
        stage.keys("\r")
        await stage.sees("1.2k in")
        assert session.lines == [f"{LONG}ba"]


@pytest.mark.integration
async def test_the_cursor_stands_behind_the_words_of_a_mark_and_lines_still_wrap() -> None:
    async with staged(FakeSession(), columns=28) as stage:
        stage.keys("12345 ")
        paste(stage, LONG)
        stage.keys("end")
        await stage.sees("end")
        lines = stage.screen.split("\n")
        row = next(n for n, line in enumerate(lines) if "12345" in line)
        assert lines[row : row + 2] == ["› 12345 [pasted 30 lines #1]", "  end"]
        cursor = stage.terminal.window.app.renderer.last_rendered_screen
        assert cursor is not None
        point = cursor.get_cursor_position(stage.terminal.window.app.layout.current_window)
        assert point.x == len("  end")


@pytest.mark.integration
@pytest.mark.parametrize("first", ["!rm -rf ~", "/quit", "/* a comment"])
async def test_what_a_folded_paste_begins_with_is_no_command(first: str) -> None:
    session = FakeSession(says("ok"))
    async with staged(session) as stage:
        paste(stage, f"{first}\n{LONG}")
        stage.keys("\r")
        stage.keys("\r")
        await stage.sees("1.2k in")
        assert session.lines == [f"{NO_COMMAND}{first}\n{LONG}"]


@pytest.mark.integration
async def test_a_paste_behind_a_typed_sign_runs_where_the_sign_says() -> None:
    session = FakeSession(says("ok"))
    async with staged(session) as stage:
        stage.keys("!")
        paste(stage, f"! false\n{LONG}")
        stage.keys("\r")
        await stage.sees("1.2k in")
        assert session.lines == [f"! ! false\n{LONG}"]


async def test_what_is_removed_from_a_paste_is_said() -> None:
    session = FakeSession(says("ok"))
    async with staged(session) as stage:
        paste(stage, "a\tb\r\nc\rd\x1b[31me\x1b[0m\x07\x00")
        await stage.sees("2 control characters left out of the paste")
        assert draft_of(stage) == "a\tb\nc\nde"
        paste(stage, "\x08")
        await stage.sees("1 control character left out")


@pytest.mark.integration
async def test_a_paste_waits_steers_and_comes_back_whole() -> None:
    session = FakeSession(hangs)
    async with staged(session) as stage:
        stage.keys("go\r")
        await stage.sees("so far")
        paste(stage, LONG)
        await stage.sees(MARK)
        stage.keys(" and go on\r")
        await stage.until(lambda: session.steered)
        assert session.steered == [f"{LONG} and go on"]
        assert session.steered_in == [f"{MARK} and go on"]  # where files are looked for
        await stage.sees("read before the next step")
        stage.keys("\x1b[A")
        await stage.until(lambda: stage.terminal.window.draft.words == f"{LONG} and go on")
        assert session.steered == []
        stage.keys("\t")
        await stage.sees("sent when this is done")
        stage.keys("\x1b[A")
        await stage.until(lambda: stage.terminal.window.draft.words == f"{LONG} and go on")
        assert draft_of(stage) != f"{LONG} and go on"  # folded again
        stage.keys("\x03")
        await stage.sees("interrupted")


@pytest.mark.integration
async def test_a_paste_of_five_megabytes_is_quick() -> None:
    text = ("x" * 79 + "\n") * 62_500
    session = FakeSession(says("ok"))
    async with staged(session) as stage:
        with takes_at_most(1):
            stage.terminal.window.app.key_processor.feed_multiple([])
            stage.terminal.window.draft.paste(text)
            stage.keys("y")
            await stage.sees("[pasted 62,500 lines #1]y")
        assert stage.terminal.window.draft.words == text + "y"


def test_what_is_long_and_what_is_not() -> None:
    assert not is_long("x" * MOST_CHARACTERS)
    assert is_long("x" * (MOST_CHARACTERS + 1))
    assert not is_long("x\n" * (MOST_LINES - 1) + "x")
    assert is_long("x\n" * MOST_LINES + "x")
    pastes = Pastes()
    assert pastes.label(pastes.fold("x" * 2000, "")) == "[pasted 2,000 characters #1]"
    assert pastes.fold_long("short", "") == "short"


def test_a_character_that_stands_for_a_paste_cannot_be_pasted() -> None:
    pastes = Pastes()
    sign = pastes.fold(LONG, "")
    assert clean(f"a{sign}b\ud800") == ("ab", 2)
    assert clean("\tü 👩‍👩‍👧 \u202e\n") == ("\tü 👩‍👩‍👧 \u202e\n", 0)


@pytest.mark.integration
def test_old_pastes_are_let_go_but_never_one_of_the_draft() -> None:
    pastes = Pastes()
    text = "x" * (MOST_KEPT // 2)
    first = pastes.fold(text, "")
    second = pastes.fold(text, first)
    third = pastes.fold(text, first + second)
    assert pastes.expand(first + second + third) == text * 3
    fourth = pastes.fold(text, "")
    assert pastes.expand(fourth) == text
    assert pastes.expand(first) == pastes.label(first) == "[a paste that is gone #1]"
