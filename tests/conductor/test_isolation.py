"""Sub-agents that write have copies of the project, and what they changed is merged."""

import asyncio
import os
import stat
import threading
from pathlib import Path
from tempfile import mkdtemp

import pytest

from conductor.copies import DELEGATE, HAS_MEMORY, Copies
from hosts import this_host
from rows import every_row
from session.trees import tree
from ybs.conductor import contents as copying
from ybs.conductor import origin
from ybs.conductor.contents import moved_text
from ybs.conductor.merging import Merged
from ybs.conductor.overlay import Overlay
from ybs.config.host import is_in_memory
from ybs.core.errors import ToolError, YbsError
from ybs.security.paths.repository import is_in_repository
from ybs.tools.searching.walk import Deadline

pytestmark = pytest.mark.integration
LINES = "".join(f"line {number}\n" for number in range(1, 20))


def write(folder: Path, path: str, text: str | bytes = LINES) -> None:
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_bytes(text if isinstance(text, bytes) else text.encode())


def read(path: str) -> str:
    return Path(path).read_text()


async def test_a_copy_has_what_the_person_sees_and_shares_nothing_with_it(copies: Copies) -> None:
    project = copies.project
    write(project, "src/a.py")
    write(project, ".gitignore", "*.log\nnode_modules\n")
    write(project, "notes.log", "ignored, and seen all the same")
    write(project, ".git/HEAD", "ref: refs/heads/main")
    (project / "src/run").write_bytes(b"#!/bin/sh\n")
    (project / "src/run").chmod(0o755)
    (project / "link").symlink_to("src/a.py")
    (project / "empty").mkdir(mode=0o750)
    before = tree(project)
    overlay = await copies.open()
    assert overlay.folder.name == project.name
    assert not overlay.folder.is_relative_to(project)
    assert tree(overlay.folder) == {
        path: entry
        for path, entry in before.items()
        if not path.startswith(".git/") and path != ".git"
    }
    assert (overlay.folder / "src/a.py").stat().st_mtime_ns == (
        project / "src/a.py"
    ).stat().st_mtime_ns
    assert stat.S_IMODE(overlay.folder.parent.parent.stat().st_mode) == 0o700
    for path in ("src/a.py", "src/run", "notes.log"):
        write(overlay.folder, path, "changed")
    assert tree(project) == before


async def test_changes_of_one_copy_reach_the_project_and_undo_takes_them_back(
    copies: Copies,
) -> None:
    project = copies.project
    for path in ("edited", "deleted", "folder/gone", "mode"):
        write(project, path)
    before = tree(project)
    overlay = await copies.open()
    write(overlay.folder, "edited", "new")
    write(overlay.folder, "made/here/new.bin", b"\0\xff")
    write(overlay.folder, "~name", "not a home folder")
    (overlay.folder / "deleted").unlink()
    (overlay.folder / "folder/gone").unlink()
    (overlay.folder / "folder").rmdir()
    (overlay.folder / "mode").chmod(0o755)
    (overlay.folder / "link").symlink_to("edited")
    copies.undo.checkpoints.begin()
    merged = await copies.merge(overlay)
    assert merged.conflicts == ()
    assert tree(project) == tree(overlay.folder)
    assert (
        "Merged into the project: deleted, edited, folder, folder/gone, link, made," in merged.text
    )
    assert await copies.merge(overlay) == Merged(), "a second time nothing happens"
    kept = await copies.undo.checkpoints.end()
    assert kept is not None
    await copies.undo.checkpoints.undo([kept.name])
    assert tree(project) == before
    assert copies.questions == []


async def test_what_was_merged_is_not_merged_again_over_what_came_later(copies: Copies) -> None:
    write(copies.project, "a", "one\ntwo\nthree\n")
    overlay = await copies.open()
    write(overlay.folder, "a", "ONE\ntwo\nthree\n")
    assert (await copies.merge(overlay)).paths == ("a",)
    write(copies.project, "a", "mine\ntwo\nthree\n")
    assert await copies.merge(overlay) == Merged()
    write(overlay.folder, "a", "ONE\ntwo\nTHREE\n")
    assert (await copies.merge(overlay)).paths == ("a",)
    assert (copies.project / "a").read_text() == "mine\ntwo\nTHREE\n"


async def test_a_copy_that_is_as_it_was_changes_nothing(copies: Copies) -> None:
    write(copies.project, "a")
    overlay = await copies.open()
    assert await copies.merge(overlay) == Merged()
    assert (await copies.merge(overlay)).text == ""
    assert copies.undo.paths == []


async def test_the_lines_of_both_are_merged_and_the_mode_of_either_counts(copies: Copies) -> None:
    write(copies.project, "a.py")
    one, two = await copies.open("one"), await copies.open("two")
    write(one.folder, "a.py", LINES.replace("line 2\n", "line two\n"))
    (one.folder / "a.py").chmod(0o755)
    write(two.folder, "a.py", LINES.replace("line 18\n", "line eighteen\n"))
    assert (await copies.merge(one)).paths == ("a.py",)
    assert (await copies.merge(two)).paths == ("a.py",)
    wanted = LINES.replace("line 2\n", "line two\n").replace("line 18\n", "line eighteen\n")
    assert (copies.project / "a.py").read_text() == wanted
    assert (copies.project / "a.py").stat().st_mode & 0o777 == 0o755
    assert tree(copies.project) == {"a.py": ("file", 0o755, wanted.encode())}


async def clash(copies: Copies, first: object, second: object) -> tuple[Merged, Overlay]:
    """Have two sub-agents make something of `a` each, and merge one after the other."""
    one, two = await copies.open("one"), await copies.open("two")
    for overlay, made in ((one, first), (two, second)):
        place = overlay.folder / "a"
        if isinstance(made, int):
            place.chmod(made)
            continue
        place.unlink(missing_ok=True)
        if isinstance(made, bytes):
            place.write_bytes(made)
        elif isinstance(made, str):
            place.symlink_to(made)
        elif made is dict:
            write(overlay.folder, "a/inner", b"in a folder")
    await copies.merge(one)
    before = tree(copies.project)
    merged = await copies.merge(two)
    assert tree(copies.project) == before, "the project keeps its own"
    assert merged.paths == ()
    return merged, two


async def test_what_cannot_be_merged_is_kept_and_both_sides_are_shown(copies: Copies) -> None:
    write(copies.project, "a", "old\n")
    merged, _ = await clash(copies, b"mine\n", b"its\n")
    (conflict,) = merged.conflicts
    assert conflict.path == "a"
    assert read(conflict.kept) == "its\n"
    roots = copies.environment.roots
    assert roots.resolve(conflict.kept) == Path(conflict.kept), "tools may read it"
    assert "-mine\n+its" in merged.text
    assert "both changed the same lines" in merged.text
    assert "(1 path)" in merged.text


@every_row(
    "first, second, why, kept",
    [
        (b"\0mine", b"\0its", "could not be merged", b"\0its"),
        (None, b"its\n", "it was deleted in the project meanwhile", b"its\n"),
        (b"mine\n", None, "the sub-agent deleted it", "deleted"),
        ("one", "two", "both changed it", "a link to two"),
        (0o755, 0o700, "both changed its mode", b"old\n"),
        (dict, b"its\n", "both changed it", b"its\n"),
        (b"mine\n", dict, "both changed it", ""),
    ],
    ids=[
        "binary",
        "deleted here",
        "deleted there",
        "links",
        "modes",
        "folder here",
        "folder there",
    ],
)
async def test_each_kind_of_conflict_is_named(
    tmp_path: Path, first: object, second: object, why: str, kept: bytes | str
) -> None:
    project = Path(mkdtemp(dir=tmp_path))
    copies = Copies(project)
    write(project, "a", "old\n")
    try:
        merged, _ = await clash(copies, first, second)
        by_path = {conflict.path: conflict for conflict in merged.conflicts}
        conflict = by_path["a"]
        assert why in conflict.why
        if isinstance(kept, bytes):
            assert read(conflict.kept) == kept.decode()
        else:
            assert conflict.kept == kept
        if second is dict:
            assert read(by_path["a/inner"].kept) == "in a folder"
            assert by_path["a/inner"].why == "what lies above it was not merged"
    finally:
        await copies.aclose()


async def test_both_may_make_the_same_or_delete_the_same(copies: Copies) -> None:
    write(copies.project, "gone")
    one, two = await copies.open(), await copies.open()
    for overlay in (one, two):
        (overlay.folder / "gone").unlink()
        write(overlay.folder, "new", "same\n")
    assert not (await copies.merge(one)).conflicts
    assert not (await copies.merge(two)).conflicts
    assert (copies.project / "new").read_text() == "same\n"


async def test_a_folder_goes_only_where_nobody_put_something_in_it(copies: Copies) -> None:
    write(copies.project, "d/a")
    overlay = await copies.open()
    (overlay.folder / "d/a").unlink()
    (overlay.folder / "d").rmdir()
    write(copies.project, "d/new", "mine")
    await copies.merge(overlay)
    assert tree(copies.project).keys() == {"d", "d/new"}


async def test_what_git_ignores_stays_behind_unless_a_tool_wrote_it(copies: Copies) -> None:
    write(copies.project, ".gitignore", "*.log\n.env\nbuild/\n")
    overlay = await copies.open()
    write(overlay.folder, "run.log")
    write(overlay.folder, "build/out.o")
    write(overlay.folder, ".env", "A=1\n")
    await overlay.hook.before_change(DELEGATE, "write", [f"{overlay.folder}/.env"])
    await overlay.hook.after_change(DELEGATE, "write", [f"{overlay.folder}/.env"])
    merged = await copies.merge(overlay)
    assert merged.paths == (".env",)
    assert merged.left == ("build/", "run.log")
    assert "Not merged (ignored by git): build/, run.log." in merged.text
    assert not (copies.project / "run.log").exists()


async def test_rules_of_git_above_the_project_hold_in_a_copy(tmp_path: Path) -> None:
    repository = Path(mkdtemp(dir=tmp_path))
    write(repository, ".git/HEAD", "ref: refs/heads/main")
    write(repository, ".gitignore", "*.log\n.env\n/in/sub/only.here\n")
    write(repository, "in/.gitignore", "__pycache__/\n!kept.log\n")
    write(repository, "in/sub/.env", "K=1\n")
    copies = Copies(repository / "in/sub")
    try:
        overlay = await copies.open()
        for path in ("x.log", "kept.log", "d/only.here", "only.here", "__pycache__/a.pyc", ".env"):
            write(overlay.folder, path, "new")
        merged = await copies.merge(overlay)
        assert merged.paths == ("d", "d/only.here", "kept.log")
        assert merged.left == (".env", "__pycache__/", "only.here", "x.log")
        assert (copies.project / ".env").read_text() == "K=1\n"
    finally:
        await copies.aclose()


async def test_a_folder_that_git_ignores_only_in_the_copy_is_named(copies: Copies) -> None:
    for path in ("out/a.txt", "out/tool.txt", "out/same.txt", "x.txt"):
        write(copies.project, path, "1\n")
    overlay = await copies.open()
    write(overlay.folder, ".gitignore", "out/\nx.txt\n")
    for path in ("out/a.txt", "out/tool.txt", "out/new.txt", "out/made.txt", "x.txt"):
        write(overlay.folder, path, "2\n")
    for path in ("out/tool.txt", "out/made.txt"):
        await overlay.hook.after_change(DELEGATE, "write", [f"{overlay.folder}/{path}"])
    merged = await copies.merge(overlay)
    assert merged.left == ("out/", "x.txt")
    assert merged.paths == (".gitignore", "out/made.txt", "out/tool.txt")
    assert (copies.project / "out/tool.txt").read_text() == "2\n"
    assert (copies.project / "out/a.txt").read_text() == "1\n"


async def test_dependencies_are_read_where_they_are_and_not_copied(copies: Copies) -> None:
    copies.environment.sandbox.is_off = False  # only a sandbox keeps commands from writing there
    write(copies.project, ".gitignore", "node_modules/\n")
    write(copies.project, "node_modules/lib/index.js")
    overlay = await copies.open()
    link = overlay.folder / "node_modules"
    assert link.is_symlink()
    roots = overlay.environment.roots
    inside = roots.resolve("node_modules/lib/index.js")
    assert inside.read_text() == LINES
    with pytest.raises(ToolError):
        roots.resolve("node_modules/lib/index.js", is_write=True)
    link.unlink()
    write(overlay.folder, "node_modules/other", "installed anew")
    assert await copies.merge(overlay) == Merged()
    assert (copies.project / "node_modules/lib/index.js").is_file()


async def test_a_project_that_is_too_large_is_refused_in_plain_words(
    copies: Copies, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(copies.project, "a", b"x" * 1000)
    monkeypatch.setattr(copying, "MOST_COPIED_BYTES", 999)
    with pytest.raises(ToolError, match="holds 1,000 bytes, and a copy of it may have 999"):
        await copies.open()
    monkeypatch.setattr(copying, "MOST_COPIED_BYTES", 10**9)
    monkeypatch.setattr(copying, "LEAST_FREE_BYTES", 10**18)
    with pytest.raises(ToolError, match=r"the disk is nearly full\. Let only one task write"):
        await copies.open()
    where = r"memory \(/dev/shm\)" if HAS_MEMORY else "the disk"
    with pytest.raises(ToolError, match=rf"{where} is nearly full\. Let only one task write"):
        await Copies(copies.project, {"incognito.enabled": True}).open()
    assert list(copies.environment.host.copies_folder.glob("*/*")) == []


async def test_a_large_file_is_copied_and_never_merged_unasked(
    copies: Copies, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ybs.checkpoints.states.MOST_FILE_BYTES", 1000)
    monkeypatch.setattr("ybs.checkpoints.scan.MOST_FILE_BYTES", 1000)
    copies.environment.sandbox.is_off = False
    write(copies.project, ".gitignore", "*.bin\n")
    write(copies.project, "large", b"x" * 2000)
    write(copies.project, "ignored.bin", b"x" * 2000)
    overlay = await copies.open()
    assert (overlay.folder / "large").read_bytes() == b"x" * 2000
    assert (overlay.folder / "ignored.bin").is_symlink()
    assert await copies.merge(overlay) == Merged()
    write(overlay.folder, "large", b"y" * 3000)
    (conflict,) = (await copies.merge(overlay)).conflicts
    assert conflict.why == "the file is too large to be merged (3,000 bytes)"
    assert read(conflict.kept) == "y" * 3000
    assert (copies.project / "large").read_bytes() == b"x" * 2000


async def test_in_incognito_nothing_is_written_but_the_copy_stays(project: Path) -> None:
    copies = Copies(project, {"incognito.enabled": True})
    write(project, "a", "old\n")
    merged, two = await clash(copies, b"mine\n", b"its\n")
    (conflict,) = merged.conflicts
    await two.aclose()
    assert conflict.kept == str(two.folder / "a")
    assert is_in_memory(conflict.kept) is HAS_MEMORY
    assert copies.environment.roots.resolve(conflict.kept).read_text() == "its\n"
    other = "not a regular file" if HAS_MEMORY else "outside"  # nothing else there is open
    with pytest.raises(YbsError, match=other):
        copies.environment.roots.resolve(f"{two.folder.parent.parent}/a")
    await copies.aclose()
    assert not two.folder.exists()


async def test_a_copy_is_removed_and_so_is_what_a_crash_left(copies: Copies) -> None:
    write(copies.project, "a")
    overlay = await copies.open()
    assert overlay.folder.is_dir()
    await overlay.aclose()
    assert not overlay.folder.parent.exists()
    other = await copies.open()
    await copies.isolation.aclose()
    assert not other.folder.exists()
    assert tree(copies.environment.host.copies_folder) == {}
    left = copies.environment.host.copies_folder / "0123456789ab"
    write(left, "hex/project/a")
    Copies(copies.project)
    for thread in threading.enumerate():
        if thread.name == "ybs-sweep":
            thread.join()
    assert not left.exists()


async def test_nobody_else_can_put_something_above_a_copy_for_what_looks_upward_from_there(
    copies: Copies, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    os.chmod(tmp_path, 0o1777)  # noqa: PTH101
    (this_host().home / ".git").mkdir()
    overlay = await Copies(copies.project).open()
    home = this_host().home
    above = [each for each in overlay.folder.parents if each.is_relative_to(home)]
    assert home in above
    assert not [each for each in above if each != home and each.stat().st_mode & 0o022]
    assert not is_in_repository(overlay.folder), "whoever keeps the home folder in one"
    await overlay.aclose()


async def test_links_that_name_the_project_lead_into_the_copy_and_back(copies: Copies) -> None:
    project = copies.project
    write(project, "t.txt", "old")
    (project / "abs").symlink_to(project / "t.txt")
    overlay = await copies.open()
    assert (overlay.folder / "abs").readlink() == overlay.folder / "t.txt"
    assert await copies.merge(overlay) == Merged()
    (overlay.folder / "abs").write_text("new")
    (overlay.folder / "made").symlink_to(overlay.folder / "abs")
    merged = await copies.merge(overlay)
    assert merged.paths == ("made", "t.txt")
    assert (project / "made").readlink() == project / "abs"
    assert (project / "abs").readlink() == project / "t.txt"


async def test_without_a_sandbox_dependencies_are_not_within_reach_of_a_copy(
    copies: Copies,
) -> None:
    write(copies.project, ".gitignore", "node_modules/\n")
    write(copies.project, "node_modules/m.js")
    overlay = await copies.open()
    assert tree(overlay.folder).keys() == {".gitignore"}
    assert await copies.merge(overlay) == Merged()
    assert (copies.project / "node_modules/m.js").is_file()


def folders_of(copies: Copies) -> list[Path]:
    return [each for each in copies.environment.host.copies_folder.glob("*/*") if each.is_dir()]


async def test_a_copy_whose_making_is_cancelled_is_removed(
    copies: Copies, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, begun, cancelled = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
    real = copying.Copying.do

    def held(self: copying.Copying, deadline: Deadline) -> copying.Copied:
        loop.call_soon_threadsafe(begun.set)
        cancelled.wait()
        return real(self, deadline)

    def cancel(_: Deadline) -> None:
        cancelled.set()

    monkeypatch.setattr(copying.Copying, "do", held)
    monkeypatch.setattr(Deadline, "cancel", cancel)
    write(copies.project, "a")
    task = asyncio.create_task(copies.open())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert folders_of(copies) == []


async def test_a_copy_that_takes_too_long_is_given_up_and_removed(
    copies: Copies, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = copying.Copying.do

    def late(self: copying.Copying, deadline: Deadline) -> copying.Copied:
        deadline.cancel()
        return real(self, deadline)

    monkeypatch.setattr(copying.Copying, "do", late)
    write(copies.project, "a")
    with pytest.raises(ToolError, match="making the copy takes too long"):
        await copies.open()
    assert folders_of(copies) == []


async def test_waiting_for_another_copy_takes_nothing_from_the_time_for_the_own(
    copies: Copies, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Deadline] = []

    def deadline(seconds: float) -> Deadline:
        made.append(Deadline(seconds))
        return made[-1]

    loop, begun, may_go_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
    real = copying.Copying.do

    def held(self: copying.Copying, deadline: Deadline) -> copying.Copied:
        loop.call_soon_threadsafe(begun.set)
        may_go_on.wait()
        return real(self, deadline)

    monkeypatch.setattr(copying.Copying, "do", held)
    monkeypatch.setattr(origin, "Deadline", deadline)
    first, second = (asyncio.create_task(copies.open(name)) for name in ("one", "two"))
    await begun.wait()
    assert len(made) == 1
    may_go_on.set()
    await asyncio.gather(first, second)
    assert len(made) == 2


async def test_the_folder_in_which_lines_are_merged_is_removed(copies: Copies) -> None:
    write(copies.project, "a")
    overlay = await copies.open()
    write(copies.project, "a", "first\n" + LINES)
    write(overlay.folder, "a", LINES + "last\n")
    assert (await copies.merge(overlay)).paths == ("a",)
    assert folders_of(copies) == [overlay.folder.parent]


@every_row(
    "text, moved",
    [
        ("see /a/app/x.", "see /c/x/x."),
        ("in /a/app.", "in /c/x."),
        ("/a/app-two/x /a/app.bak /b/a/app /a/apps", "/a/app-two/x /a/app.bak /b/a/app /a/apps"),
        ("'/a/app':/a/app/", "'/c/x':/c/x/"),
    ],
)
def test_only_paths_in_the_project_become_those_in_a_copy(text: str, moved: str) -> None:
    assert moved_text(text, Path("/a/app"), Path("/c/x")) == moved


async def test_of_folders_with_too_much_that_git_ignores_some_are_shown(
    copies: Copies, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("ybs.checkpoints.scan", "ybs.agent.project_walk"):
        monkeypatch.setattr(f"{module}.MOST_IGNORED", 1)
    monkeypatch.setattr(copying, "MOST_SHOWN", 2)
    copies.environment.sandbox.is_off = False
    write(copies.project, ".gitignore", "/data*\nnode_modules/\n")
    for name in ("data0/x", "data1/x", "data2/x", "node_modules/x"):
        write(copies.project, name)
    overlay = await copies.open()
    shown = {each.name for each in overlay.folder.iterdir() if each.is_symlink()}
    assert shown == {"data0", "data1", "node_modules"}
    assert await copies.merge(overlay) == Merged()
