"""The command /add-dir: tools and commands work in one more folder from then on."""

from pathlib import Path

import pytest

from ybs.core.events import ToolFinished
from ybs.core.ports import Answer, Question
from ybs.session.reply import Reply
from ybs.session.session import Session
from ybs.testing import call


async def said(session: Session, line: str) -> Reply:
    reply = await session.handle(line)
    assert isinstance(reply, Reply)
    return reply


@pytest.mark.integration
async def test_a_folder_that_was_added_is_read_and_written_like_the_project(playing, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.txt").write_text("plums\n")
    calls = [
        call("read_file", path=str(other / "a.txt")),
        call("edit_file", path=str(other / "a.txt"), old_text="plums", new_text="figs"),
        call("run_shell", command="cat a.txt", working_dir=str(other)),
    ]
    async with playing([*calls, "done"], mode="bypass") as (session, events, server):
        reply = await said(session, f"/add-dir {other}")
        assert reply.text.endswith("other too, until this session ends.")
        await session.send("go")
        listed = (await said(session, "/add-dir")).tables[0]
        shown = (await said(session, "/permissions")).tables[-1]
        undone = await said(session, "/undo")
    assert [event.success for event in events.of(ToolFinished)] == [True] * 3
    assert "figs" in events.of(ToolFinished)[2].output
    assert [row.cells[0] for row in listed.rows] == ["works in", "works in"]
    assert [row.cells[1:3] for row in shown.rows] == [row.cells for row in listed.rows]
    assert not undone.is_error
    assert (other / "a.txt").read_text() == "plums\n"
    assert f"read and change files in {other}" in repr(server.requests[0].body)


@pytest.mark.integration
async def test_what_may_be_read_besides_is_listed(playing, tmp_path: Path):
    async def always(_question: Question) -> Answer:
        return Answer(is_allowed=True, is_for_session=True)

    other = tmp_path / "other"
    other.mkdir()
    (other / "a.txt").write_text("plums\n")
    async with playing([call("read_file", path=str(other / "a.txt")), "done"], confirm=always) as (
        session,
        _,
        _,
    ):
        await session.send("go")
        rows = (await said(session, "/add-dir")).tables[0].rows
    assert [row.cells[0] for row in rows] == ["works in", "may read"]


async def test_what_cannot_be_added_is_said(playing, tmp_path: Path, home: Path):
    (tmp_path / "file").write_text("x")
    (home / ".ssh").mkdir()
    async with playing([]) as (session, _, _):
        for name, words in (
            (str(tmp_path / "gone"), "does not exist."),
            (str(tmp_path / "file"), "is not a folder."),
            ("~/.ssh", "cannot be added: keys, passwords or ybs's own files are there."),
        ):
            reply = await said(session, f"/add-dir {name}")
            assert reply.is_error
            assert reply.text.endswith(words)
        (home / "private").mkdir()
        (session.folder / "docs").symlink_to(home / "private")
        for command in ("/add-dir docs", f"/add-dir {session.folder}/docs"):
            reply = await said(session, command)
            assert reply.is_error
            assert "leads to ~/private by a link that a project may have put there" in reply.text
        assert (await said(session, "/add-dir .")).text.startswith("ybs works in ")
        assert len(session.environment.roots.folders) == 1
