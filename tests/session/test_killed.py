"""What is left of a turn that was killed: what tools changed can be undone, and the rest is told."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hosts import this_host
from opened import events_to
from scripted import OpenAIServer
from session.test_undoing import Play
from session.trees import tree
from ybs.checkpoints.states import Recovered
from ybs.checkpoints.store import store_of
from ybs.core.events import Event, FilesChanged, Noticed, ToolFinished
from ybs.session.recorder import WAS_KILLED
from ybs.session.session import Session
from ybs.session.undoing import Checkpoints
from ybs.testing import RecordedEvents, call

Open = Callable[..., tuple[Session, RecordedEvents]]


@pytest.fixture
def play(project: Path) -> Play:
    play = Play(project)
    play.checkpoints.turn = lambda: 1
    play.checkpoints.begin()
    return play


async def edit(play: Play, path: str, content: str | None) -> None:
    """Let a tool write or delete a file."""
    await play.checkpoints.before_change(
        "write" if content else "delete", [f"{play.project}/{path}"]
    )
    file = play.project / path
    file.parent.mkdir(exist_ok=True)
    file.unlink() if content is None else file.write_text(content)
    await play.checkpoints.after_change()


async def after_a_kill(play: Play, turn: int = 1) -> Recovered | None:
    """Let go of all that the process knew, and take the session up again."""
    play.checkpoints.close()
    play.checkpoints = Checkpoints(play.roots, "session-1", may_write=True)
    play.checkpoints.turn = lambda: turn
    left = await play.checkpoints.recover()
    await play.checkpoints.told()
    return left


def notes(project: Path) -> list[Path]:
    return list((store_of(this_host(), project).folder / "records").glob("*.running"))


@pytest.mark.integration
async def test_all_that_tools_changed_in_a_killed_turn_can_be_undone_and_done_again(play: Play):
    (play.project / "a").write_text("1")
    (play.project / "b").write_text("1")
    before = tree(play.project)
    await edit(play, "a", "2")
    await edit(play, "d/new", "new")
    await edit(play, "a", "3")
    await edit(play, "b", None)
    (note,) = notes(play.project)
    assert note.stat().st_mode & 0o777 == 0o600
    with note.open("ab") as file:
        file.write(b'{"turn":1,"changes":[{"pa')  # a line that broke off
    after = tree(play.project)
    left = await after_a_kill(play)
    assert left is not None
    assert left.kept is not None
    assert (left.kept.paths, left.has_more) == (("a", "b", "d/new"), False)
    assert notes(play.project) == []
    assert (await play.checkpoints.undo([left.kept.name])).is_done
    assert tree(play.project) == before
    assert (await play.checkpoints.redo([left.kept.name])).is_done
    assert tree(play.project) == after


async def test_a_tool_that_was_killed_at_work_is_undone_and_a_change_since_is_a_conflict(
    play: Play,
):
    (play.project / "a").write_text("1")
    (play.project / "b").write_text("1")
    await edit(play, "a", "2")
    await play.checkpoints.before_change("write", [f"{play.project}/b"])
    (play.project / "b").write_text("2")
    (play.project / "a").write_text("mine")
    left = await after_a_kill(play)
    assert left is not None
    assert left.kept is not None
    name = left.kept.name
    assert (await play.checkpoints.undo([name])).conflicts == ("a",)
    assert (await play.checkpoints.undo([name], force=True)).paths == ("a", "b")
    assert {path: each[2] for path, each in tree(play.project).items()} == {"a": b"1", "b": b"1"}


@pytest.mark.parametrize("b", ["1", "other"])  # the same content as that of `a` is not noted again
async def test_a_note_that_broke_off_in_its_last_byte_costs_nothing_of_what_was_noted_before(
    play: Play, b: str
):
    (play.project / "a").write_text("1")
    (play.project / "b").write_text(b)
    await edit(play, "a", "2")
    await play.checkpoints.before_change("write", [f"{play.project}/b"])
    (note,) = notes(play.project)
    os.truncate(note, note.stat().st_size - 1)  # killed before the tool began
    (play.project / "b").write_text("mine")
    left = await after_a_kill(play)
    assert left is not None
    assert left.kept is not None
    assert left.kept.paths == ("a",)
    assert (await play.checkpoints.undo([left.kept.name])).is_done
    assert {path: each[2] for path, each in tree(play.project).items()} == {"a": b"1", "b": b"mine"}


async def test_what_commands_of_a_killed_turn_changed_is_told_only_where_they_may_have(play: Play):
    await play.checkpoints.before_change("execute", ())
    await play.checkpoints.after_change()
    left = await after_a_kill(play)
    assert left == Recovered(kept=None, has_more=False)
    play.checkpoints.begin()
    await play.checkpoints.before_change("execute", ())
    (play.project / "made").write_text("by a command")
    assert await after_a_kill(play) == Recovered(kept=None, has_more=True)


async def test_a_turn_that_was_kept_before_the_kill_keeps_its_name_and_is_not_kept_twice(
    play: Play,
):
    await edit(play, "a", "1")
    kept = await play.checkpoints.end()
    assert kept is not None
    records = sorted((store_of(this_host(), play.project).folder / "records").glob("*.record"))
    (play.project / "a").write_text("changed by somebody after the kill")
    left = await after_a_kill(play)
    assert left is not None
    assert left.kept is not None
    assert (left.kept.name, left.kept.paths, left.has_more) == (kept.name, ("a",), False)
    assert (
        sorted((store_of(this_host(), play.project).folder / "records").glob("*.record")) == records
    )


async def test_a_turn_that_has_ended_leaves_no_note_and_one_of_another_turn_is_dropped(play: Play):
    await edit(play, "a", "1")
    assert await play.checkpoints.end() is not None
    left = await after_a_kill(play)  # before anybody heard of it
    assert left is not None
    assert left.kept is not None
    play.checkpoints.begin()
    await edit(play, "a", "2")
    assert await after_a_kill(play, turn=2) is None
    assert notes(play.project) == []
    assert await after_a_kill(play) is None


@pytest.mark.integration
async def test_a_session_that_was_killed_takes_its_turn_back_at_the_first_undo(
    open_session: Open, project: Path
):
    (project / "a").write_text("old")
    script = ["talk", call("write_file", path="b", content="b"), call("run_shell", command="x=1")]
    async with OpenAIServer([*script, "done"]) as server:
        session, _ = open_session(server, mode="bypass")
        await session.send("talk")

        def kill(event: Event) -> None:
            if isinstance(event, ToolFinished) and event.name == "write_file":
                session.journal.close()  # nothing more is written
                note = notes(project)[0]
                kept.append((note, note.read_bytes()))
                session.cancel()

        kept: list[tuple[Path, bytes]] = []
        session.subscribe(events_to(kill))
        await session.send("change it")
        name = session.journal.name
        await session.close()
        kept[0][0].write_bytes(kept[0][1])
        kept[0][0].chmod(0o600)
        again, events = open_session(server, mode="bypass", resume=name)
        async with again:
            reply = await again.handle("/undo")
            assert getattr(reply, "text", "") == (
                "Took back the last turn. 1 file is as before: b."
            )
            assert not (project / "b").exists()
            assert [words for _, words in again.history.prompts()] == ["talk"]
            assert [event.paths for event in events.of(FilesChanged)] == [("b",)]
            assert notes(project) == []
            assert again.journal.replay.checkpoints == []


KILLED = """
import asyncio, os, signal, sys
from ybs.core.events import ToolPrinted
from ybs.session.session import Session

def kill(event):
    if isinstance(event, ToolPrinted):
        os.kill(os.getpid(), signal.SIGKILL)

async def main():
    here = {"provider": "openai", "endpoint": sys.argv[2], "model": "m", "sandbox": False}
    session = Session.open(sys.argv[1], mode="bypass", **here)
    session.subscribe(lambda envelope: kill(envelope.event))
    await session.send("change it")

asyncio.run(main())
"""


@pytest.mark.slow
async def test_a_process_killed_in_a_turn_leaves_its_edits_to_the_next_undo(
    open_session: Open, project: Path
):
    (project / "a").write_text("old")
    command = call("run_shell", command="echo 1 > made; echo x")
    async with OpenAIServer([call("write_file", path="b", content="b"), command]) as server:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", KILLED, str(project), server.url
        )
        assert await process.wait() == -signal.SIGKILL
        session, events = open_session(server, mode="bypass", resume="")
        async with session:
            reply = await session.handle("/undo")
            assert "1 file is as before: b." in getattr(reply, "text", "")
            assert WAS_KILLED in [event.text for event in events.of(Noticed)]
    assert set(tree(project)) == {"a", "made"}
