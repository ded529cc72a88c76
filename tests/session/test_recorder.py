"""What is kept when a turn is over, also one that is stopped, or whose end goes wrong."""

import asyncio
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opened import events_to
from scripted import OpenAIServer
from ybs.core.events import Event, FilesChanged, Noticed, Titled, ToolPrinted, TurnFinished
from ybs.session.reply import Outcome
from ybs.session.session import Session
from ybs.testing import RecordedEvents, call
from ybs.transcripts.store import SessionStore

pytestmark = pytest.mark.integration

Open = Callable[..., tuple[Session, RecordedEvents]]


async def test_a_second_stop_loses_nothing_of_what_the_turn_changed(
    open_session: Open, project: Path
):
    async with OpenAIServer([call("run_shell", command="echo 2 > a.txt"), "done"]) as server:
        session, events = open_session(server, mode="bypass")

        def stop(event: Event) -> None:
            if isinstance(event, TurnFinished):
                asyncio.get_running_loop().call_soon(session.cancel)

        session.subscribe(events_to(stop))
        async with session:
            outcome = await session.send("change the file")
            assert (outcome.finished.reason, outcome.text) == ("done", "done")
            assert len(events.of(FilesChanged)) == 1
            assert (await session.history.undo()).files is not None
    assert not (project / "a.txt").exists()


async def test_what_goes_wrong_at_the_end_of_a_turn_hides_not_how_it_went(
    open_session: Open, monkeypatch: pytest.MonkeyPatch
):
    def refuse(*_arguments: Any, **_options: Any) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(SessionStore, "clean", refuse)
    async with OpenAIServer(["done", "more"]) as server:
        session, events = open_session(server)
        async with session:
            outcome = await session.send("do something small")
            assert (outcome.finished.reason, outcome.text) == ("done", "done")
            assert "Permission denied" in events.of(Noticed)[-1].text
            assert (await session.send("go on")).text == "more"


async def test_a_typed_command_that_is_stopped_is_no_part_of_the_turn_before(
    open_session: Open, project: Path
):
    async with OpenAIServer([call("run_shell", command="echo 1 > a.txt"), "done"]) as server:
        session, events = open_session(server, mode="bypass")
        async with session:
            await session.send("write a file")
            printed = asyncio.Event()

            def see(event: Event) -> None:
                if isinstance(event, ToolPrinted):
                    printed.set()

            session.subscribe(events_to(see))
            turn = asyncio.ensure_future(session.handle("!echo 2 > b.txt; echo x; sleep 9"))
            await printed.wait()
            session.cancel()
            stopped = await turn
            assert isinstance(stopped, Outcome)
            assert stopped.finished.reason == "interrupted"
            assert [
                type(e) for e in events.events if isinstance(e, TurnFinished | FilesChanged)
            ] == [TurnFinished, FilesChanged] * 2
            way = await session.history.undo()
            assert (way.files and way.files.paths, way.was_cut) == (("b.txt",), False)
            assert (project / "a.txt").read_text() == "1\n"
            way = await session.history.undo()
            assert (way.files and way.files.paths, way.was_cut) == (("a.txt",), True)


async def test_a_typed_command_names_a_session_and_not_what_it_printed(open_session: Open):
    async with OpenAIServer(["done"]) as server:
        session, events = open_session(server, mode="bypass")
        async with session:
            await session.handle("!echo one two three")
            assert [event.title for event in events.of(Titled)] == ["!echo one two three"]


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


async def test_what_a_typed_command_changed_is_the_persons_own_work(
    project: Path, open_session: Open
):
    git(project, "-c", "init.defaultBranch=main", "init", "-q")
    script = ["I see", call("write_file", path="its.txt", content="ybs\n"), "done"]
    async with OpenAIServer(script) as server:
        session, events = open_session(server, mode="bypass", overrides={"git.auto_commit": True})
        async with session:
            await session.handle("!echo mine > mine.txt")
            assert [event.commit for event in events.of(FilesChanged)] == [""]
            await session.send("write yours")
            assert git(project, "show", "--name-only", "--format=").split() == ["its.txt"]
            await session.history.undo(2)
    assert not (project / "mine.txt").exists()
