"""delete_file."""

import os
from pathlib import Path
from typing import Any

import pytest

from ybs.core.changes import FileChange
from ybs.core.ports import Answer, Question


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_a_file_is_deleted_after_its_content_was_shown(make_bench: Any, project: Path):
    questions: list[Question] = []

    async def yes(question: Question) -> Answer:
        questions.append(question)
        return Answer(is_allowed=True)

    (project / "a").write_text("one\ntwo\n")
    answered = await make_bench(mode="ask", confirm=yes).ok("delete_file", path="a")
    assert not (project / "a").exists()
    assert answered.output == "Deleted a."
    assert questions[0].preview.title == "Delete a"
    assert questions[0].preview.body == "--- a\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-two"
    assert questions[0].preview.is_diff
    gone = FileChange(path="a", before="one\ntwo\n", after=None, removed=2)
    assert answered.result.changes == (gone,)


async def test_of_a_link_only_the_link_is_deleted(make_bench: Any, project: Path):
    (project / "real").write_text("x")
    (project / "link").symlink_to("real")
    bench = make_bench(dry_run=True)
    assert "a link to real" in (await bench.ok("delete_file", path="link")).output
    answered = await make_bench().ok("delete_file", path="link")
    gone = FileChange(path="link", before="", after=None, omitted="a link to real")
    assert answered.result.changes == (gone,)
    assert (project / "real").exists()
    assert names_in(project) == ["real"]


async def test_a_link_that_leads_outside_may_be_deleted_and_its_target_stays(
    bench: Any, project: Path
):
    target = project.parent / "target"
    target.write_text("x")
    (project / "link").symlink_to(target)
    await bench.ok("delete_file", path="link")
    assert target.exists()


async def test_folders_missing_files_and_the_root_are_refused(bench: Any, project: Path):
    (project / "folder").mkdir()
    assert "files only" in await bench.fails("delete_file", path="folder")
    assert "files only" in await bench.fails("delete_file", path=".")
    assert "does not exist" in await bench.fails("delete_file", path="none")
    assert "outside the folders that ybs may work in" in await bench.fails("delete_file", path="..")


@pytest.mark.parametrize("content", [b"\0" * 10, b"x" * 1_000_001])
async def test_what_cannot_be_shown_is_named_by_its_size(
    make_bench: Any, project: Path, content: bytes
):
    (project / "a").write_bytes(content)
    output = (await make_bench(dry_run=True).ok("delete_file", path="a")).output
    assert f"{len(content):,}" in output
    assert len(output) < 200


async def test_a_pipe_can_be_deleted(bench: Any, project: Path):
    os.mkfifo(project / "pipe")
    await bench.ok("delete_file", path="pipe")
    assert not (project / "pipe").exists()


async def test_a_deleted_file_counts_no_longer_as_read(bench: Any, project: Path):
    (project / "a").write_text("x")
    await bench.ok("read_file", path="a")
    await bench.ok("delete_file", path="a")
    assert not bench.workspace.reads.knows(project / "a")
    await bench.ok("write_file", path="a", content="y")


async def test_a_deletion_that_fails_is_an_error(
    bench: Any, project: Path, monkeypatch: pytest.MonkeyPatch
):
    (project / "a").write_text("x")

    def denied(name: str, *, dir_fd: int) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "unlink", denied)
    assert "permission denied" in await bench.fails("delete_file", path="a")


@pytest.mark.parametrize("how", ["content", "content, its time set back", "other file", "nothing"])
async def test_a_file_that_changes_while_the_person_thinks_is_not_deleted(
    make_bench: Any, project: Path, how: str
):
    path = project / "a"
    path.write_text("one\n")
    os.utime(path, (1, 1))

    async def yes(question: Question) -> Answer:
        if how.startswith("content"):
            path.write_text("two\n")
            if "set back" in how:
                os.utime(path, (1, 1))
        elif how == "other file":
            (project / "b").write_text("six\n")
            os.utime(project / "b", (1, 1))
            (project / "b").rename(path)
        return Answer(is_allowed=True)

    answered = await make_bench(mode="ask", confirm=yes).call("delete_file", path="a")
    assert path.exists() == (how != "nothing")
    assert ("changed in the meantime" in answered.output) == (how != "nothing")


async def test_a_name_that_is_no_utf_8_is_written_with_escapes(make_bench: Any, project: Path):
    questions: list[Question] = []

    async def yes(question: Question) -> Answer:
        questions.append(question)
        return Answer(is_allowed=True)

    (project / os.fsdecode(b"caf\xe9")).symlink_to(os.fsdecode(b"\xff"))
    answered = await make_bench(mode="ask", confirm=yes).ok("delete_file", path="caf\\xe9")
    assert answered.output == "Deleted caf\\xe9."
    assert names_in(project) == []
    assert questions[0].preview.body == "a link to \\xff"
    assert questions[0].preview.paths[0].encode()
