"""write_file, and what all writes promise: whole or not at all."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from rows import every_row
from ybs.core.changes import FileChange
from ybs.core.errors import ToolError
from ybs.core.ports import Answer, Question
from ybs.security.paths.opening import held
from ybs.tools.builtin.write_file import WriteFile, WriteFileArguments
from ybs.tools.editing.changes import ChangingTool
from ybs.tools.reading.files import read_bytes, write_atomically


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_a_new_file_is_made_with_its_folders(bench: Any, project: Path):
    answered = await bench.ok("write_file", path="a/b/c.txt", content="grün\n")
    assert (project / "a/b/c.txt").read_bytes() == "grün\n".encode()
    assert answered.output == "Created a/b/c.txt: 6 bytes written."
    assert answered.display == {
        "success": True,
        "bytes_written": 6,
    }
    made = FileChange(path="a/b/c.txt", before=None, after="grün\n", added=1)
    assert answered.result.changes == (made,)


async def test_what_is_judged_is_the_file_that_was_shown_though_a_link_changed_in_between(
    bench: Any, project: Path
):
    (project / "link").symlink_to("a")
    tool = next(tool for tool in bench.tools if tool.name == "write_file")
    arguments = tool.arguments(path="link", content="x")
    assert tool.preview(arguments).paths == (str(project / "a"),)
    (project / "link").unlink()
    (project / "link").symlink_to("b")
    assert tool.subject(arguments).paths == ("a",)
    await tool.run(arguments, print)
    assert names_in(project) == ["a", "link"]


async def test_the_change_that_was_shown_is_the_one_that_is_written_whatever_was_shown_in_between(
    bench: Any, project: Path
):
    (project / "a").write_text("old\n")
    await bench.ok("read_file", path="a")
    tool = next(tool for tool in bench.tools if tool.name == "write_file")
    first, second = (tool.arguments(path=path, content="x") for path in ("a", "b"))
    tool.preview(first)
    tool.preview(second)
    (project / "a").write_text("of another program\n")
    with pytest.raises(ToolError, match="changed on disk in the meantime"):
        await tool.run(first, print)
    await tool.run(second, print)
    assert names_in(project) == ["a", "b"]


@pytest.mark.integration
async def test_an_overwrite_says_so_and_keeps_the_mode(bench: Any, project: Path):
    path = project / "run.sh"
    path.write_text("old\nsame\n")
    path.chmod(0o751)
    answered = await bench.ok("write_file", path="run.sh", content="new\nsame\n")
    assert answered.output == "Overwrote run.sh, which had 9 bytes: 9 bytes written."
    assert path.stat().st_mode & 0o777 == 0o751
    (change,) = answered.result.changes
    assert change == FileChange(
        path="run.sh", before="old\nsame\n", after="new\nsame\n", added=1, removed=1
    )


async def test_a_file_that_was_read_and_is_gone_is_made_again(bench: Any, project: Path):
    (project / "a").write_text("old\n")
    await bench.ok("read_file", path="a")
    (project / "a").unlink()
    answered = await bench.ok("write_file", path="a", content="new\n")
    assert answered.output == "Created a: 4 bytes written."
    assert (project / "a").read_bytes() == b"new\n"


async def test_a_new_file_has_the_usual_mode(bench: Any, project: Path):
    before = os.umask(0o027)
    try:
        await bench.ok("write_file", path="a", content="x")
    finally:
        os.umask(before)
    assert (project / "a").stat().st_mode & 0o777 == 0o640


async def test_a_text_with_a_nul_is_refused(bench: Any, project: Path):
    said = await bench.fails("write_file", path="Makefile", content="all:\n\ttrue #\0\n")
    assert "NUL" in said
    assert not (project / "Makefile").exists()


@pytest.mark.integration
@every_row(
    ("before", "content", "after"),
    [
        (b"a\r\nb\r\n", "c\nd\n", b"c\r\nd\r\n"),
        (b"a\nb\n", "c\r\nd\r\n", b"c\r\nd\r\n"),
        (b"\xef\xbb\xbfa\n", "b\n", b"\xef\xbb\xbfb\n"),
        ("a\n".encode("utf-16"), "b\n", "b\n".encode("utf-16")),
        ("grün\n".encode("latin-1"), "日本\n", "日本\n".encode()),
        ("grün\n".encode("latin-1"), "gelb\n", b"gelb\n"),
        ("grün\n".encode("latin-1"), "blaß\n", "blaß\n".encode("latin-1")),
        ("# 这是测试\n".encode("gb18030"), "# 另外一个\n", "# 另外一个\n".encode("gb18030")),
        ("# テスト\n".encode("shift_jis"), "# grün\n", "# grün\n".encode()),
        ("a b\n".encode("utf-16-le"), "c d\n", "c d\n".encode("utf-16-le")),
        (b"\0\0", "text\n", b"text\n"),
        (b"", "a\n", b"a\n"),
    ],
)
async def test_a_text_keeps_its_line_ends_and_encoding(
    make_bench: Any, project: Path, before: bytes, content: str, after: bytes
):
    (project / "a").write_bytes(before)
    await make_bench().ok("write_file", path="a", content=content)
    assert (project / "a").read_bytes() == after


async def test_a_link_is_written_through_and_stays(bench: Any, project: Path):
    (project / "real").write_text("old")
    (project / "link").symlink_to("real")
    await bench.ok("write_file", path="link", content="new")
    assert (project / "link").is_symlink()
    assert (project / "real").read_text() == "new"


async def test_a_file_with_hard_links_becomes_one_of_its_own_and_that_is_said(
    bench: Any, project: Path, tmp_path: Path
):
    (tmp_path / "outside").write_text("old\n")
    os.link(tmp_path / "outside", project / "a")
    output = (await bench.ok("write_file", path="a", content="new\n")).output
    assert output.endswith("It had another name (hard links); there the old content stays.")
    assert (tmp_path / "outside").read_text() == "old\n"
    assert "hard links" not in (await bench.ok("write_file", path="a", content="x")).output


async def test_what_is_no_file_is_not_written(bench: Any, project: Path):
    os.mkfifo(project / "pipe")
    (project / "folder").mkdir()
    assert "a folder" in await bench.fails("write_file", path="folder", content="x")
    assert "a named pipe" in await bench.fails("write_file", path="pipe", content="x")
    (project / "file").write_text("x")
    assert "a part of its path is a file" in await bench.fails(
        "write_file", path="file/x", content="x"
    )


async def test_a_call_without_content_makes_no_file(bench: Any, project: Path):
    assert "content" in await bench.fails("write_file", path="a")
    assert not (project / "a").exists()


async def test_a_file_that_changed_since_it_was_read_is_not_overwritten(bench: Any, project: Path):
    (project / "a").write_text("one")
    await bench.ok("read_file", path="a")
    (project / "a").write_text("two")
    assert "Read it again" in await bench.fails("write_file", path="a", content="three")
    assert (project / "a").read_text() == "two"


async def test_p11_a_file_that_changes_while_the_person_thinks_is_not_overwritten(
    make_bench: Any, project: Path
):
    async def slow(question: Question) -> Answer:
        (project / "a").write_text("changed")
        return Answer(is_allowed=True)

    bench = make_bench(mode="ask", confirm=slow)
    assert "in the meantime" in await bench.fails("write_file", path="a", content="x")
    assert (project / "a").read_text() == "changed"


async def test_p10_a_folder_swapped_for_a_link_while_the_person_thinks_is_not_followed(
    make_bench: Any, project: Path, tmp_path: Path
):
    (project / "sub").mkdir()

    async def slow(question: Question) -> Answer:
        (project / "sub").rmdir()
        (project / "sub").symlink_to(tmp_path)
        return Answer(is_allowed=True)

    bench = make_bench(mode="ask", confirm=slow)
    answered = await bench.call("write_file", path="sub/x", content="x")
    assert answered.result.is_error
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("step", ["write", "fsync", "replace", "fchmod"])
async def test_a_write_that_fails_leaves_the_original_and_no_stray_file(
    bench: Any, project: Path, monkeypatch: pytest.MonkeyPatch, step: str
):
    (project / "a").write_text("original")

    def full(*args: Any, **how: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    if step == "write":
        real = os.open

        def open_full(path: Any, flags: int, *rest: Any, **how: Any) -> int:
            if flags & os.O_ACCMODE == os.O_WRONLY:
                os.close(real(path, flags, *rest, **how))
                full()
            return real(path, flags, *rest, **how)

        monkeypatch.setattr(os, "open", open_full)
    else:
        monkeypatch.setattr(os, step, full)
    assert "the disk is full" in await bench.fails("write_file", path="a", content="new")
    monkeypatch.undo()
    assert names_in(project) == ["a"]
    assert (project / "a").read_text() == "original"


def test_an_interrupt_in_mid_write_leaves_no_stray_file(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    def interrupt(descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with held(project / "a") as place, pytest.raises(KeyboardInterrupt):
        write_atomically(place, b"x", "a")
    assert list(project.iterdir()) == []


async def test_a_write_protected_file_or_folder_is_an_error(
    bench: Any, project: Path, monkeypatch: pytest.MonkeyPatch
):
    (project / "a").write_text("x")

    def no(path: str, mode: int, **options: int) -> bool:
        return "dir_fd" not in options  # as the tool looks

    monkeypatch.setattr(os, "access", no)
    assert "a is write-protected" in await bench.fails("write_file", path="a", content="y")
    monkeypatch.undo()

    def read_only(name: str, **options: Any) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(os, "mkdir", read_only)
    assert "read-only" in await bench.fails("write_file", path="new/b", content="y")


async def test_the_owner_is_kept_where_that_is_possible(
    bench: Any, project: Path, monkeypatch: pytest.MonkeyPatch
):
    (project / "a").write_text("x")
    (project / "a").chmod(0o4755)  # that would lend the rights of somebody else
    given: list[tuple[int, int]] = []

    def chown(descriptor: int, user: int, group: int) -> None:
        given.append((user, group))
        raise OSError(errno.EINVAL, "Invalid argument")  # as in a container

    owner = (project / "a").stat()
    fstat = os.fstat

    def other(descriptor: int) -> os.stat_result:
        status = list(fstat(descriptor))
        status[4] += int(status[0]) & 0o777 == 0o600  # as if somebody else had made the new one
        return os.stat_result(status)

    monkeypatch.setattr(os, "fstat", other)
    monkeypatch.setattr(os, "fchown", chown)
    await bench.ok("write_file", path="a", content="y")
    assert given == [(owner.st_uid, owner.st_gid), (-1, owner.st_gid)]
    assert not (project / "a").stat().st_mode & 0o4000


async def test_a_file_too_large_to_compare_is_refused(
    bench: Any, project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("ybs.tools.reading.files.MOST_BYTES", 5)
    (project / "a").write_text("123456")
    assert "too many to hold" in await bench.fails("write_file", path="a", content="x")


async def test_the_own_temporary_name_fits_beside_a_long_one(bench: Any, project: Path):
    name = "x" * 255
    await bench.ok("write_file", path=name, content="y")
    assert "too long" in await bench.fails("write_file", path=name + "x", content="y")


async def test_a_change_that_was_not_previewed_is_worked_out(bench: Any, project: Path):
    tool = next(tool for tool in bench.tools if tool.name == "write_file")
    first, second = (tool.arguments(path=name, content=name) for name in "ab")
    tool.preview(first)
    await tool.run(second, print)
    await tool.run(first, print)
    assert names_in(project) == ["a", "b"]
    with pytest.raises(NotImplementedError):
        ChangingTool(bench.workspace).change(first)


def test_a_file_that_fails_while_it_is_compared_is_an_error():
    # /proc/self/mem opens, is an ordinary file, and cannot be read at its beginning.
    memory = Path(f"/proc/{os.getpid()}/mem")
    with held(memory) as place, pytest.raises(ToolError, match="cannot be used"):
        read_bytes(place, "mem")


@every_row("path", ["new/", "new/.", "a/b/"])
async def test_the_name_of_a_folder_is_refused(bench: Any, project: Path, path: str):
    assert "names a folder" in await bench.fails("write_file", path=path, content="x")
    assert names_in(project) == []


async def test_a_new_text_that_leaves_code_out_is_refused(bench: Any, project: Path):
    (project / "a").write_text("one = 1\ntwo = 2\n")
    content = "one = 3\n# ... rest of the code ...\n"
    assert "leaves code out" in await bench.fails("write_file", path="a", content=content)
    assert (project / "a").read_text() == "one = 1\ntwo = 2\n"
    await bench.ok("write_file", path="new", content=content)


async def test_a_long_file_that_was_never_read_is_not_replaced(bench: Any, project: Path):
    lines = "".join(f"{number}\n" for number in range(500))
    (project / "long.txt").write_text(lines)
    (project / "wide.txt").write_text("x" * 4_001)
    (project / "binary").write_bytes(b"\0" * 5_000)
    (project / "small.txt").write_text("x\n" * 50)
    for name in ("long.txt", "wide.txt", "binary"):
        before = (project / name).read_bytes()
        said = await bench.fails("write_file", path=name, content="mine\n")
        assert f"{name} is there already (" in said
        assert "Read it first" in said
        assert (project / name).read_bytes() == before
        await bench.call("read_file", path=name, limit=1)
        assert "Overwrote" in (await bench.ok("write_file", path=name, content=lines)).output
        assert "Overwrote" in (await bench.ok("write_file", path=name, content="y\n")).output
    assert "Overwrote" in (await bench.ok("write_file", path="small.txt", content="y\n")).output


async def test_a_link_to_a_long_file_is_no_way_around(bench: Any, project: Path):
    (project / "long.txt").write_text("x\n" * 500)
    (project / "link").symlink_to("long.txt")
    await bench.fails("write_file", path="link", content="mine\n")
    await bench.ok("read_file", path="link")
    await bench.ok("write_file", path="long.txt", content="mine\n")


async def test_what_an_edit_has_changed_may_be_replaced(bench: Any, project: Path):
    (project / "long.txt").write_text("first\n" + "x\n" * 500)
    await bench.ok("edit_file", path="long.txt", old_text="first", new_text="second")
    await bench.ok("write_file", path="long.txt", content="mine\n")


async def test_a_byte_order_mark_before_the_old_text_is_shown_before_it_is_written(
    bench: Any, project: Path
):
    (project / "run").write_text("#!/bin/sh\n")
    tool = WriteFile(bench.workspace)
    preview = tool.preview(WriteFileArguments(path="run", content="\ufeff#!/bin/sh\n"))
    assert "(+0 -0)" in preview.title
    assert "utf-8 -> utf-8 with a byte order mark" in preview.body
