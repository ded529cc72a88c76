"""What was sent before, kept for each project."""

import asyncio
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from stage import Stage, staged

from fake_session import FakeSession, hangs, says
from hosts import this_host
from ybs.config.schema import Config, UiSettings
from ybs.frontends.terminal.prompt import history
from ybs.frontends.terminal.prompt.history import (
    LineHistory,
    _Entry,
    history_file,
    open_history,
    read_entries,
    write_entries,
)
from ybs.security.incognito import Incognito
from ybs.session.reply import Reply, TerminalActions

pytestmark = pytest.mark.integration

UP, DOWN, REVERSE, ENTER = "\x1b[A", "\x1b[B", "\x12", "\r"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "history" / "p.jsonl"


def texts(path: Path) -> list[str]:
    return [entry.text for entry in read_entries(path)]


async def as_typed(text: str) -> str | None:
    return text


def write_down(lines: LineHistory, taken: str) -> None:
    lines.write_down(taken, taken)


def modes_of(*paths: Path) -> list[int]:
    return [stat.S_IMODE(path.stat().st_mode) for path in paths]


async def has_loaded(stage: Stage) -> None:
    kept = stage.terminal.window.draft.lines
    await stage.until(lambda: kept._loaded)
    await stage.settles()


async def test_up_and_down_bring_back_what_an_earlier_session_sent(path: Path) -> None:
    write_entries(path, [_Entry(1, "first"), _Entry(2, "second\nline")], 0)
    async with staged(FakeSession(), history=LineHistory(path)) as stage:
        await has_loaded(stage)
        stage.keys("draft")
        stage.keys(UP)
        await stage.sees("› second\n  line")
        stage.keys(UP)  # in its lines first
        stage.keys(UP)
        await stage.sees("› first")
        stage.keys(DOWN + DOWN + DOWN)
        await stage.sees("› draft")


async def test_what_is_sent_is_written_down_once_and_in_order(path: Path) -> None:
    session = FakeSession(says("ok"), says("ok"), says("ok"))
    kept = LineHistory(path)
    async with staged(session, history=kept) as stage:
        await has_loaded(stage)
        for number, line in enumerate(("one", "one", "!ls", "/help")):
            stage.keys(line)
            stage.keys(ENTER)
            await stage.until(lambda number=number: len(session.lines) > number)
            await stage.until(lambda: not stage.terminal.work.is_busy)
        await stage.until(lambda: len(texts(path)) == 3)
    assert texts(path) == ["one", "!ls", "/help"]
    assert modes_of(path, path.parent) == [0o600, 0o700]


async def test_ctrl_r_searches_back_and_ends_in_the_prompt(path: Path) -> None:
    write_entries(
        path, [_Entry(n, text) for n, text in enumerate(("run tests", "fix A", "fix b"))], 0
    )
    session = FakeSession(says("ok"))
    async with staged(session, history=LineHistory(path)) as stage:
        await has_loaded(stage)
        stage.keys(REVERSE + "FIX")
        await stage.sees("search: FIX")
        await stage.sees("› fix b")
        stage.keys(REVERSE)
        await stage.sees("› fix A")
        stage.keys("\x03")  # goes back to the prompt, and stops nothing
        await stage.until(lambda: "search:" not in stage.screen.split("\n")[-3])
        assert stage.terminal.window.draft.text == ""
        stage.keys(REVERSE + "tests")
        await stage.sees("› run tests")
        stage.keys(ENTER)
        await stage.until(lambda: stage.terminal.window.draft.text == "run tests")
        assert session.lines == []
        stage.keys(ENTER)
        await stage.until(lambda: session.lines == ["run tests"])


async def test_nothing_typed_in_incognito_is_written_or_found_afterwards(path: Path) -> None:
    write_entries(path, [_Entry(1, "before")], 0)
    session = FakeSession(says("ok"), says("ok"))
    session.is_incognito = True
    kept = LineHistory(path, is_incognito=lambda: session.is_incognito)
    async with staged(session, history=kept) as stage:
        await has_loaded(stage)
        stage.keys("hidden")
        stage.keys(ENTER)
        await stage.until(lambda: not stage.terminal.work.is_busy and session.lines)
        stage.keys(UP)
        await stage.sees("› hidden")
        stage.keys(DOWN)
        await stage.until(lambda: stage.terminal.window.draft.text == "")
        session.is_incognito = False
        stage.terminal.redraw()
        await stage.settles()
        stage.keys(UP)
        await stage.until(lambda: stage.terminal.window.draft.text == "before")
        stage.keys(ENTER)
        await stage.until(lambda: session.lines[-1:] == ["before"])
    await asyncio.to_thread(lambda: None)
    assert "hidden" not in texts(path)


async def test_words_that_wait_behind_incognito_are_never_written(path: Path) -> None:
    go_on = asyncio.Event()

    async def waits(_session: FakeSession) -> None:
        await go_on.wait()

    class Changing(FakeSession):
        async def handle(self, line: str, images: Any = ()) -> Any:
            self.is_incognito = self.is_incognito or line == "/incognito"
            return await super().handle(line, images)

    session = Changing(waits, says("ok"))
    kept = LineHistory(path, is_incognito=lambda: session.is_incognito)
    async with staged(session, history=kept) as stage:
        await has_loaded(stage)
        stage.keys("first" + ENTER)
        await stage.until(lambda: session.is_busy)
        for count, line in enumerate(("/incognito", "my disease"), 1):
            stage.keys(line + "\t")
            await stage.until(lambda count=count: len(stage.terminal.live.queued) == count)
        go_on.set()
        await stage.until(lambda: session.lines[-1:] == ["my disease"])
        session.is_incognito = False
        await stage.until(kept.forget)  # not found afterwards either
        await stage.until(lambda: len(texts(path)) == 2)
    assert texts(path) == ["first", "/incognito"]


async def test_a_line_is_written_when_it_is_taken_and_not_when_it_comes_back(path: Path) -> None:
    session = FakeSession(hangs, says("ok"))
    async with staged(session, history=LineHistory(path)) as stage:
        await has_loaded(stage)
        stage.keys("first" + ENTER)
        await stage.until(lambda: session.is_busy)
        stage.keys("given back\t")
        await stage.until(lambda: stage.terminal.live.queued)
        stage.keys("\x1b")
        await stage.until(lambda: stage.terminal.window.draft.text == "given back")
        await stage.until(lambda: len(texts(path)) == 1)
        stage.keys(" later" + ENTER)
        await stage.until(lambda: len(texts(path)) == 2)
    assert texts(path) == ["first", "given back later"]


async def test_what_the_session_says_may_be_of_others_is_not_written_down(path: Path) -> None:
    """What was piped in comes back by /rewind, and another session could not tell that the person never typed its `@path`."""

    class Doubtful(FakeSession):
        def kept(self, text: str) -> str | None:
            return "" if "@" in text else text

    session = Doubtful(says("ok"))
    session.replies["/rewind 1"] = Reply(
        text="Went back.", terminal=TerminalActions(draft="see @/home/ada/diary now")
    )
    async with staged(session, history=LineHistory(path)) as stage:
        await has_loaded(stage)
        stage.keys("/rewind 1" + ENTER)
        await stage.until(lambda: stage.terminal.window.draft.text.startswith("see @"))
        stage.keys(" then" + ENTER)
        await stage.sees("ok")
        await stage.until(lambda: not session.is_busy)
        await stage.settles()
        stage.keys("mine" + ENTER)
        await stage.until(lambda: "mine" in texts(path))
        stage.keys("@left \x13@typed")  # Ctrl-S puts it aside
    assert texts(path) == ["/rewind 1", "mine"]


async def test_no_history_is_written_or_read_where_it_is_switched_off(path: Path) -> None:
    for is_on in (True, False):
        fake = SimpleNamespace(
            config=Config(ui=UiSettings(history=is_on)),
            environment=SimpleNamespace(incognito=Incognito()),
            host=this_host(),
            folder=path.parent,
        )
        kept = open_history(cast("Any", fake))
        kept.remember("x", "x")
        kept.write_down("x", "x")
        await asyncio.get_running_loop().shutdown_default_executor()
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        file = history_file(this_host(), path.parent)
        assert file.is_relative_to(this_host().state_folder)
        assert texts(file) == ["x"]


async def test_a_long_paste_is_written_as_its_mark(path: Path) -> None:
    session = FakeSession(says("ok"))
    async with staged(session, history=LineHistory(path)) as stage:
        await has_loaded(stage)
        stage.keys("see \x1b[200~" + "line\r" * 30 + "\x1b[201~")
        stage.keys(ENTER)
        await stage.until(lambda: texts(path))
    assert texts(path) == ["see [pasted 30 lines #1]"]


async def test_a_draft_that_was_emptied_comes_back_with_up_and_is_not_written(path: Path) -> None:
    async with staged(FakeSession(), history=LineHistory(path)) as stage:
        await has_loaded(stage)
        stage.keys("half a thought")
        await stage.sees("half a thought")
        stage.keys("\x03")
        await stage.until(lambda: stage.terminal.window.draft.text == "")
        stage.keys("\x1f")
        await stage.until(lambda: stage.terminal.window.draft.text == "half a thought")
        stage.keys("\x03")
        await stage.settles()
        stage.keys(UP)
        await stage.until(lambda: stage.terminal.window.draft.text == "half a thought")
    assert texts(path) == []


def test_a_damaged_file_gives_what_is_whole(path: Path) -> None:
    write_entries(path, [_Entry(1, "one")], 0)
    with path.open("ab") as file:
        file.write(b'{"at": 2, "text": "ha\n\xff\xfe\n[]\n{"at":3,"text":"two","more":1}\n')
    assert texts(path) == ["one", "two"]
    path.unlink()
    path.symlink_to("/etc/passwd")
    assert texts(path) == []
    assert texts(path.parent) == []


def test_the_file_is_cut_to_its_newest_half_when_it_has_become_long(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "MOST_ENTRIES", 10)
    count = write_entries(path, [_Entry(n, f"line {n}") for n in range(10)], 0)
    assert count == 10
    assert write_entries(path, [_Entry(11, "last")], count) == 5
    assert texts(path) == ["line 6", "line 7", "line 8", "line 9", "last"]
    monkeypatch.setattr(history, "MOST_BYTES", 400)
    count = write_entries(path, [_Entry(n, "x" * 60) for n in range(4)], 5)
    assert count < 5
    assert path.stat().st_size <= 200
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_sessions_of_one_project_write_side_by_side(path: Path) -> None:
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda n: write_entries(path, [_Entry(n, f"line {n}")], 0), range(40)))
    assert sorted(texts(path)) == sorted(f"line {n}" for n in range(40))


async def test_a_home_that_cannot_be_written_disturbs_nothing(tmp_path: Path, path: Path) -> None:
    (tmp_path / "state").mkdir()
    os.chmod(tmp_path / "state", 0o777)  # noqa: PTH101 - a folder that ybs refuses
    session = FakeSession(says("ok"))
    async with staged(session, history=LineHistory(path)) as stage:
        stage.keys("hello")
        stage.keys(ENTER)
        await stage.sees("1.2k in")
    assert texts(path) == []
