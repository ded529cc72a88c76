"""Keys that were meant for something else are not consent: bursts, pastes, what a terminal says by itself."""

import asyncio
import signal
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from select import select
from typing import Any

import pytest
from stage import Stage, staged

from fake_session import FakeSession, asks, question_of, says
from ybs.core.ports import Answer
from ybs.frontends.terminal.questions.late import ask_late
from ybs.session.reply import Menu, MenuItem, Reply

pytestmark = pytest.mark.integration

#: Each of them allows something when it is pressed alone.
CONSENTS = "ya14"


@pytest.fixture(autouse=True)
def short_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ybs.frontends.terminal.questions.confirm.HOLD_SECONDS", 0.005)


@asynccontextmanager
async def asked(*, draft: str = "") -> AsyncGenerator[Stage]:
    """Open a question that has been on the screen for long."""
    session = FakeSession(asks(question_of()))
    async with staged(session) as stage:
        stage.terminal.work.submit("go")
        await stage.sees("[y] yes")
        stage.terminal.window.draft.text = draft
        stage.terminal.window.draft.cursor_position = len(draft)
        await stage.settles()
        stage.clock.now += 1
        yield stage


async def types(stage: Stage, *pieces: str) -> None:
    """Type pieces that are read one by one, 10 ms from each other on the clock of the terminal."""
    for piece in pieces:
        stage.keys(piece)
        await stage.until(lambda: not select([stage.pipe.fileno()], [], [], 0)[0])
        stage.clock.now += 0.01
    await stage.settles()


@pytest.mark.slow
async def test_t05_no_key_of_a_burst_is_consent() -> None:
    wrong: list[object] = []
    async with asked() as stage:
        for key in CONSENTS:
            for pieces in (
                (f"please do it another wa{key}",),
                (f"{key}es pleas{key}",),
                (f"\n{key}",),
                (f"please do it another wa{key}\r",),
                (f"\x1b[200~a text\x1b[201~{key}",),
                (f"\x1b[200~a text\x1b[201~{key}\x1b[201~",),
                ("please do it another wa", key),
                ("please do it anoth", f"er wa{key}"),
                ("\x1b[200~a text\x1b[201~", key),
                ("\x1b[200~a te", "xt\x1b[20", f"1~{key}"),
                ("\x1b[57358u", key),
            ):
                await types(stage, *pieces)
                wrong += [pieces] if stage.session.answers else []
                stage.session.answers.clear()
                assert stage.terminal.asking.is_choosing, pieces
                stage.clock.now += 1
        assert wrong == []
        stage.keys("y")
        await stage.until(lambda: stage.session.answers)
        assert stage.session.answers == [Answer(is_allowed=True)]


async def test_t05_a_key_that_another_follows_at_once_is_no_consent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ybs.frontends.terminal.questions.confirm.HOLD_SECONDS", 60.0)
    async with asked(draft="x") as stage:
        for key in CONSENTS:
            await types(stage, key)
            assert stage.terminal.asking.is_holding, "it may be the beginning of a burst"
            await types(stage, f"es{key}")
            assert not stage.terminal.asking.is_holding
            stage.clock.now += 1
        assert stage.terminal.window.draft.text == "xyesyaesa1es14es4"
        await types(stage, "y")
        stage.terminal.note_hidden()
        assert not stage.terminal.asking.is_holding
        assert stage.session.answers == []
    async with choosing() as stage:
        await types(stage, "\r")
        assert stage.terminal.picking.is_holding
        await types(stage, "p")
        assert not stage.terminal.picking.is_holding
        assert stage.session.lines == ["/mode"]


async def test_t05_a_burst_that_answers_nothing_goes_on_in_the_draft(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "ybs.frontends.terminal.questions.confirm.HOLD_SECONDS", 60.0
    )  # however slow the machine
    async with asked(draft="pl") as stage:
        await types(stage, "ease do it another wa", "y")
        stage.clock.now += 1
        await types(stage, "1", "4")
        assert stage.terminal.window.draft.text == "please do it another way14"
        assert stage.session.answers == []


@pytest.mark.slow
async def test_t05_what_a_terminal_says_by_itself_answers_and_types_nothing() -> None:
    said = (
        "\x1b[?2004;1$y",
        "\x1b[1;1y",
        "\x1b[?64;1;2c",
        "\x1b[>1;4000;1c",
        "\x1b[?5u",
        "\x1b[8;24;80t",
        "\x1b]10;rgb:0000/0000/yyyy\x1b\\",
        "\x1b]11;rgb:1111/1111/1111\x07",
        "\x1bP>|a terminal(1)\x1b\\",
        "\x1b_Gi=1;OK\x1b\\",
        "\x1b[I",
        "\x1b[O",
        "\x1b[121;1:3u",
        "\x1b[27;1:3u",
        "\x1b[1;1:3A",
    )
    async with asked(draft="x") as stage:
        stage.terminal.window.app.ttimeoutlen = (
            60  # no sequence is taken for keys because its rest comes late
        )
        for sequence in said:
            for pieces in ((sequence,), (sequence[:1], sequence[1:]), (sequence[:4], sequence[4:])):
                await types(stage, *pieces)
                assert stage.session.answers == [], pieces
                assert stage.terminal.asking.is_choosing, pieces
                assert stage.terminal.window.draft.text == "x", pieces
        stage.clock.now += 1
        stage.keys("\x1b[I")
        stage.keys("\x1b[121u\x1b[121;1:3u")  # pressed and let go
        await stage.until(lambda: stage.session.answers)
        assert stage.session.answers == [Answer(is_allowed=True)]


async def test_t05_after_the_shell_a_key_counts_only_when_the_question_is_drawn_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with asked() as stage:

        def to_shell(_group: int, number: int) -> None:
            assert number == signal.SIGTSTP
            stage.clock.now += 60
            stage.keys("y")  # typed behind `fg`

        monkeypatch.setattr("os.kill", to_shell)
        await types(stage, "\x1a")
        await stage.sees("[y] yes")
        await stage.settles()
        assert stage.session.answers == []
        stage.clock.now += 1
        stage.keys("y")
        await stage.until(lambda: stage.session.answers)


async def test_t05_a_question_lets_another_program_have_its_keys() -> None:
    async with staged(FakeSession(asks(question_of()))) as stage:
        stage.terminal.window.is_away = True
        stage.keys("for the editor")
        stage.terminal.asking._take_typed_keys()  # pyright: ignore[reportPrivateUsage] - when it asks
        assert select([stage.pipe.fileno()], [], [], 0)[0], "they are not read"
        stage.terminal.window.is_away = False


@asynccontextmanager
async def choosing(*script: object) -> AsyncGenerator[Stage]:
    session = FakeSession(*script)  # type: ignore[arg-type] # cues
    items = [MenuItem(f"/mode {name}", name) for name in ("ask", "plan", "bypass")]
    session.replies["/mode"] = Reply(text="", menu=Menu("A mode", tuple(items)))
    async with staged(session, prompt="go" if script else "") as stage:
        await stage.until(lambda: session.is_busy == bool(script))
        stage.terminal.work.submit("/mode")
        await stage.sees("Enter chooses")
        stage.clock.now += 1
        yield stage


@pytest.mark.slow
async def test_t05_an_enter_within_a_paste_or_before_what_is_named_chooses_nothing() -> None:
    async with choosing() as stage:
        for burst in ("\rbypass", "\x1b[200~bypass\r\x1b[201~", "bypass\rgo on"):
            await types(stage, burst)
            assert stage.session.lines == ["/mode"], burst
            stage.clock.now += 1
            await types(stage, "\x15")
        stage.clock.now += 1
        await types(stage, "byp")
        stage.clock.now += 0.05
        stage.keys("\r")
        await stage.sees("answer to /mode bypass")
    async with choosing() as stage:
        stage.clock.now -= 0.9
        await types(stage, "\r")
        assert stage.session.lines == ["/mode"], "it came before the menu could be read"


async def test_t05_a_menu_that_is_there_again_after_a_question_waits_for_a_silence() -> None:
    go = asyncio.Event()

    async def later(session: FakeSession) -> None:
        await go.wait()
        await asks(question_of())(session)

    async with choosing(later) as stage:
        await types(stage, "byp")
        go.set()
        await stage.sees("[y] yes")
        stage.clock.now += 1
        stage.keys("n")
        await stage.until(lambda: stage.terminal.picking.is_open)
        await stage.settles()
        stage.clock.now += 0.05
        await types(stage, "\r")
        assert stage.terminal.picking.is_open
        stage.clock.now += 1
        stage.keys("\r")
        await stage.until(lambda: not stage.terminal.picking.is_open)


async def test_t05_a_yes_that_more_lines_follow_is_no_consent_in_plain_sentences(
    talking: Callable[..., Any],
) -> None:
    session = FakeSession(asks(question_of()), says("the rest"))
    async with talking(session) as talk:
        talk.types("go\n")
        await talk.sees("no because ...: ")
        talk.clock.now += 1
        talk.types("yes\nmore of the paste\nyes\n")
        await talk.until(
            lambda: (
                talk.text.count("Typed before the question, so not taken as its answer: yes") == 2
            )
        )
        assert session.answers == []
        talk.clock.now += 1
        talk.types("yes\n")
        await talk.until(lambda: session.answers)
    assert session.answers == [Answer(is_allowed=True)]


def test_t05_a_line_typed_ahead_trusts_and_chooses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter((0.0, 0.1, 10.0, 11.0, 20.0, 21.0))
    typed = iter(("early", "pasted", "late"))
    followed = iter((True, False))
    forgotten: list[int] = []
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(sys.stdin, "fileno", lambda: 0)
    monkeypatch.setattr("ybs.frontends.terminal.questions.late.forget_typed", forgotten.append)

    def is_followed(_number: int) -> bool:
        return next(followed)

    monkeypatch.setattr("ybs.frontends.terminal.questions.late.is_followed", is_followed)
    assert ask_late("Trust? ", lambda _: next(typed), lambda: next(times)) == "late"
    assert len(forgotten) == 3
