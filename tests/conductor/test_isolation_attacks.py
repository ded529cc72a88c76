"""What a sub-agent's command can put into its copy, and what of it reaches the project and the rest of the machine."""

import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import mkdtemp

import pytest

from conductor.copies import DELEGATE, HAS_MEMORY, Copies
from conductor.test_isolation import read, write
from rows import every_row
from session.trees import tree
from ybs.agent.environment import Permissions, ToolEnvironment
from ybs.agent.toolbox import make_toolbox
from ybs.checkpoints.planning import Restoring
from ybs.checkpoints.states import WHY_ELSEWHERE
from ybs.conductor.home import Workplace
from ybs.conductor.merging import Merged
from ybs.conductor.overlay import Overlay
from ybs.conductor.workplaces import Isolation
from ybs.config.host import is_in_memory
from ybs.core.errors import Refused, ToolError
from ybs.core.events import Noticed
from ybs.core.messages import ToolCall
from ybs.core.ports import Effect
from ybs.security.paths import roots
from ybs.security.paths.bulk import MOST_KEPT_BYTES
from ybs.testing import call
from ybs.tools.calls.hooks import after_change
from ybs.tools.shell.losses import loss

pytestmark = pytest.mark.integration


async def write_with_tool(overlay: Overlay, tool: str = "write_file", **arguments: str) -> None:
    """Have a sub-agent's tool change its copy, whoever is asked."""
    tools = make_toolbox(overlay.environment, hooks=[overlay.hook], agent=overlay.agent)
    await tools.run(call(tool, **arguments), lambda _: None)


async def test_a_folder_that_became_a_link_to_home_leads_nowhere(
    copies: Copies, home: Path
) -> None:
    write(home, "src/a.py", "the person's own")
    write(copies.project, "src/a.py")
    write(copies.project, "src/b.py")
    before = tree(copies.project), tree(home / "src")
    overlay = await copies.open()
    for name in ("a.py", "b.py"):
        (overlay.folder / "src" / name).unlink()
    (overlay.folder / "src").rmdir()
    (overlay.folder / "src").symlink_to(home / "src")
    merged = await copies.merge(overlay)
    assert (tree(copies.project), tree(home / "src")) == before
    assert merged.paths == ()
    assert {conflict.path for conflict in merged.conflicts} == {"src", "src/a.py", "src/b.py"}
    assert "outside" in merged.conflicts[0].why
    assert "the person's own" not in merged.text


async def test_a_link_within_the_project_is_merged_and_one_that_leads_out_is_not(
    copies: Copies,
) -> None:
    write(copies.project, "a")
    overlay = await copies.open()
    for name, target in (
        ("in", "a"),
        ("out", "../../etc/passwd"),
        ("copy", str(overlay.folder / "a")),
        ("beside", str(overlay.folder.parent)),
        ("up", f"{overlay.folder}/../a"),
    ):
        (overlay.folder / name).symlink_to(target)
    merged = await copies.merge(overlay)
    assert merged.paths == ("copy", "in")
    assert (copies.project / "copy").readlink() == copies.project / "a"
    assert {each.path for each in merged.conflicts} == {"out", "beside", "up"}


async def test_a_link_that_leads_out_among_merged_paths_keeps_none_of_them_from_being_undone(
    copies: Copies, tmp_path: Path
) -> None:
    project, outside = copies.project, tmp_path / "outside"
    write(outside, "GPL-3")
    for name in ("docs/x", "thesis.txt"):
        write(project, name)
    (project / "docs/LICENSE").symlink_to(outside / "GPL-3")
    (project / "gone").symlink_to(outside)
    before = tree(project)
    overlay = await copies.open()
    (overlay.folder / "docs").rename(overlay.folder / "documentation")
    (overlay.folder / "gone").unlink()
    write(overlay.folder, "thesis.txt", "overwritten")
    copies.undo.checkpoints.begin()
    merged = await copies.merge(overlay)
    assert merged.notes == ()
    moved, refused = merged.conflicts
    assert (moved.path, refused.path) == ("docs/LICENSE", "documentation/LICENSE")
    assert moved.why == "it was moved to where it could not be merged"
    assert (project / "docs/LICENSE").is_symlink()
    assert not (project / "gone").is_symlink()
    assert read(f"{project}/thesis.txt") == "overwritten"
    kept = await copies.undo.checkpoints.end()
    assert kept is not None
    assert (await copies.undo.checkpoints.undo([kept.name])).unkept == {}
    assert tree(project) == before


async def test_a_large_file_in_a_folder_that_is_renamed_stays_where_it_is(
    copies: Copies, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("states", "scan"):
        monkeypatch.setattr(f"ybs.checkpoints.{module}.MOST_FILE_BYTES", 1000)
    write(copies.project, "data/large", b"x" * 2000)
    write(copies.project, "data/small")
    overlay = await copies.open()
    (overlay.folder / "data").rename(overlay.folder / "input")
    merged = await copies.merge(overlay)
    assert {each.path for each in merged.conflicts} == {"data/large", "input/large"}
    assert (copies.project / "data/large").read_bytes() == b"x" * 2000
    assert (copies.project / "input/small").is_file()


async def test_what_a_command_in_a_copy_removes_is_judged_by_what_the_merge_can_keep(
    copies: Copies,
) -> None:
    write(copies.project, ".gitignore", "node_modules/\n")
    for name in ("big.bin", "a.txt", "node_modules/x"):
        write(copies.project, name)
    os.truncate(copies.project / "big.bin", MOST_KEPT_BYTES + 1)
    keeper = copies.undo.checkpoints
    copies.environment.workspace.ask_for_losses(keeper.first_lost)
    workspace = (await copies.open()).environment.workspace

    def said(command: str) -> str:
        return loss(command, workspace.roots.folder, workspace)

    assert said("rm big.bin") == "undo cannot bring back big.bin: it is over 10 MB"
    assert not said("rm a.txt node_modules/x new.txt")
    write(copies.project.parent, "outside.txt")
    outside = copies.project.parent / "outside.txt"
    assert said(f"rm {outside}") == f"undo cannot bring back {outside}: it {WHY_ELSEWHERE}"


async def test_the_person_is_told_what_of_a_merge_cannot_be_undone(
    copies: Copies, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        write(copies.project, name)
    overlay = await copies.open()
    for name in ("a", "b"):
        write(overlay.folder, name, "changed")
    roots, keep = copies.environment.roots, copies.undo.before_change
    judge = roots.judge

    def refuse(name: str, **how: bool) -> Path:
        if name == str(copies.project / "a"):
            raise Refused("a was replaced just now")
        return judge(name, **how)

    async def keeps(call: ToolCall, effect: Effect, paths: Sequence[str]) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(roots, "judge", refuse)
            await keep(call, effect, paths)

    monkeypatch.setattr(copies.undo, "before_change", keeps)
    copies.undo.checkpoints.begin()
    await copies.merge(overlay)
    (told,) = [each.text for each in copies.events if isinstance(each, Noticed)]
    assert told == ("Of what general-1 did, the person cannot undo this: a was replaced just now.")
    kept = await copies.undo.checkpoints.end()
    assert kept is not None
    assert kept.paths == ("b",)


async def test_what_a_copy_has_of_ybs_own_code_is_not_merged(
    copies: Copies, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = copies.project
    for name in ("venv/lib/a.py", "venv/lib/b.py"):
        write(project, name)
    code = (f"{project}/venv", f"{project}/link")
    monkeypatch.setattr(roots, "code_in", lambda root: code if root == str(project) else ())
    overlay = await copies.open()
    write(overlay.folder, "venv/lib/a.py", "changed")
    write(overlay.folder, "venv/lib/new.pth", "import os")
    (overlay.folder / "venv/lib/b.py").unlink()
    (overlay.folder / "link").symlink_to("src")
    write(overlay.folder, "plain.py")
    before = tree(project / "venv")
    merged = await copies.merge(overlay)
    assert (merged.paths, tree(project / "venv")) == (("plain.py",), before)
    refused = {each.path: each.why for each in merged.conflicts}
    assert refused.keys() == {"link", "venv/lib/a.py", "venv/lib/b.py", "venv/lib/new.pth"}
    assert all("ybs itself runs from there" in why for why in refused.values())


async def test_content_that_a_job_swaps_in_is_not_what_was_confirmed(copies: Copies) -> None:
    overlay = await copies.open()
    copies.answer = True
    await write_with_tool(overlay, path="AGENTS.md", content="fine")
    copies.answer = False
    write(overlay.folder, "AGENTS.md", "swapped")
    assert (await copies.merge(overlay)).paths == ()
    assert [each.call.name for each in copies.questions] == ["write_file", "write_file"]
    write(overlay.folder, "AGENTS.md", "fine")
    assert (await copies.merge(overlay)).paths == ("AGENTS.md",)
    assert len(copies.questions) == 2


async def test_pipes_devices_and_sparse_giants_stay_where_they_are(copies: Copies) -> None:
    for name in ("pipe", "giant", "closed/a", "fine"):
        write(copies.project, name)
    overlay = await copies.open()
    (overlay.folder / "pipe").unlink()
    os.mkfifo(overlay.folder / "pipe")
    os.mkfifo(overlay.folder / "new-pipe")
    os.truncate(overlay.folder / "giant", 3_000_000_000)
    write(overlay.folder, "fine", "changed")
    before = tree(copies.project)
    merged = await copies.merge(overlay)
    assert merged.paths == ("fine",)
    assert {each.path: each.why for each in merged.conflicts} == {
        "giant": "the file is too large to be merged (3,000,000,000 bytes)",
        "pipe": "it is not a file, a folder or a link now",
    }
    before["fine"] = ("file", before["fine"][1], b"changed")
    assert tree(copies.project) == before


async def test_odd_names_are_merged_and_break_no_line(copies: Copies) -> None:
    overlay = await copies.open()
    odd = "line\nbreak \x1b[31m\udcff"
    write(overlay.folder, odd, "x")
    merged = await copies.merge(overlay)
    assert (copies.project / odd).read_text() == "x"
    assert merged.text == r"Merged into the project: line\x0abreak \x1b[31m\xff."


async def test_setuid_is_not_handed_on(copies: Copies) -> None:
    write(copies.project, "a")
    overlay = await copies.open()
    (overlay.folder / "a").chmod(0o4755)
    write(overlay.folder, "b")
    (overlay.folder / "b").chmod(0o6755)
    await copies.merge(overlay)
    assert [(copies.project / name).stat().st_mode & 0o7777 for name in "ab"] == [0o755, 0o755]


async def test_a_repository_that_a_command_makes_is_not_taken_over(copies: Copies) -> None:
    overlay = await copies.open()
    for name in ("HEAD", "config", "objects/x", "refs/x"):
        write(overlay.folder, f"bare/{name}", "[core]\n fsmonitor = touch /tmp/owned\n")
    write(overlay.folder, "inner/.git/config", "[core]\n")
    merged = await copies.merge(overlay)
    assert not list(copies.project.rglob("config"))
    assert any("repository" in each.why for each in merged.conflicts)


async def test_two_merges_make_no_repository_of_a_folder(copies: Copies) -> None:
    first, second = await copies.open(), await copies.open()
    for name in ("HEAD", "config"):
        write(first.folder, f"docs/{name}")
    for name in ("docs/objects/x", "docs/refs/x", "docs/notes"):
        write(second.folder, name)
    assert (await copies.merge(first)).conflicts == ()
    merged = await copies.merge(second)
    assert {conflict.path for conflict in merged.conflicts} >= {"docs/objects/x", "docs/refs/x"}
    assert not (copies.project / "docs/objects/x").exists()


async def test_merges_do_not_put_a_repository_together_that_none_of_them_is(copies: Copies) -> None:
    write(copies.project, "docs/a.md")
    first, second = await copies.open(), await copies.open("general-2")
    for name in ("HEAD", "config"):
        write(first.folder, f"docs/{name}", "[core]\n fsmonitor = touch /tmp/owned\n")
    for name in ("OBJECTS/k", "refs/k"):
        write(second.folder, f"docs/{name}")
    write(second.folder, "other")
    assert (await copies.merge(first)).paths == ("docs/HEAD", "docs/config")
    write(second.folder, "docs/objects/k")
    merged = await copies.merge(second)
    assert merged.paths == ("other",)
    assert any("repository" in each.why for each in merged.conflicts)
    assert not (copies.project / "docs" / "refs").exists()


async def test_a_repository_that_appears_while_something_is_merged_is_named(
    copies: Copies, monkeypatch: pytest.MonkeyPatch
) -> None:
    overlay = await copies.open()
    write(overlay.folder, "docs/config", "[core]\n fsmonitor = touch /tmp/owned\n")
    do = Restoring.do

    def beside(self: Restoring) -> None:
        do(self)
        for name in ("HEAD", "objects/k", "refs/k"):
            write(copies.project, f"docs/{name}")

    monkeypatch.setattr(Restoring, "do", beside)
    await copies.merge(overlay)
    (told,) = [each.text for each in copies.events if isinstance(each, Noticed)]
    assert told.startswith("What a sub-agent did made or changed git repositories here: new: docs.")


@every_row(
    "path, is_asked",
    [(".envrc", True), ("AGENTS.md", True), (".github/workflows/ci.yml", True), ("plain", False)],
)
async def test_what_runs_later_is_asked_about_before_it_reaches_the_project(
    path: str, *, is_asked: bool, project: Path
) -> None:
    for answer in (False, True):
        copies = Copies(project, answer=answer)
        overlay = await copies.open("general-1")
        write(overlay.folder, path, f"{answer}")
        merged = await copies.merge(overlay)
        assert [question.agent for question in copies.questions] == ["general-1"] * is_asked
        assert (project / path).exists() is (answer or not is_asked)
        if is_asked:
            assert copies.questions[0].preview.title == f"Merge {path} from sub-agent general-1"
            assert f"+{answer}" in copies.questions[0].preview.body
        assert bool(merged.conflicts) is (is_asked and not answer)
        await copies.aclose()


@every_row(
    ("path", "inner", "settings", "why"),
    [
        ("held", "y", {"safety.deny": ["delete_file(held)"]}, "The rule delete_file(held)"),
        ("held", "", {"safety.deny": ["delete_file(held)"]}, "The rule delete_file(held)"),
        ("way", "", {"safety.deny": ["delete_file(way)"]}, "The rule delete_file(way)"),
        ("held", "deep/y", {"safety.ask": ["delete_file(held)"]}, "Merge the deletion of held"),
        (".envrc", "y", {}, "Merge the deletion of .envrc"),
        ("held", "y", {"safety.mode": "plan"}, "The mode is plan"),
    ],
)
async def test_a_file_that_becomes_a_folder_is_judged_as_its_deletion(
    tmp_path: Path, path: str, inner: str, settings: dict[str, object], why: str
) -> None:
    project = Path(mkdtemp(dir=tmp_path))
    for name in ("held", ".envrc", "other"):
        write(project, name, f"{name}\n")
    (project / "way").symlink_to("held")
    copies = Copies(project, settings)
    overlay = await copies.open()
    for name in (path, "other"):
        (overlay.folder / name).unlink()
        (overlay.folder / name).mkdir()
    if inner:
        write(overlay.folder, f"{path}/{inner}")
    merged = await copies.merge(overlay)
    asked = [each.preview.title for each in copies.questions]
    assert why in "".join((*asked, *(each.why for each in merged.conflicts)))
    assert (project / path).is_file(), "and what would lie in it stays away with it"
    assert (project / "other").is_dir() is (settings != {"safety.mode": "plan"})
    await copies.aclose()


async def test_what_the_person_confirmed_in_the_copy_is_not_asked_again(project: Path) -> None:
    copies = Copies(project, answer=True)
    overlay = await copies.open("general-1")
    tools = make_toolbox(overlay.environment, hooks=[overlay.hook], agent="general-1")
    result = await tools.run(call("write_file", path=".envrc", content="one\n"), lambda _: None)
    assert not result.is_error
    assert [question.agent for question in copies.questions] == ["general-1"]
    assert not (project / ".envrc").exists()
    await copies.merge(overlay)
    assert (project / ".envrc").read_text() == "one\n"
    assert len(copies.questions) == 1
    # But what a command made of it afterwards is.
    write(overlay.folder, ".envrc", "two\n")
    await copies.merge(overlay)
    assert len(copies.questions) == 2
    await copies.aclose()


@every_row(
    "settings, why",
    [
        ({"safety.deny": ["edit_file(held)"]}, "The rule edit_file(held)"),
        ({"safety.mode": "plan"}, "The mode is plan"),
        ({"safety.sandbox_blocked_paths": ["held"]}, "blocked"),
    ],
)
async def test_rules_hold_when_changes_are_merged(
    settings: dict[str, object], why: str, tmp_path: Path
) -> None:
    project = Path(mkdtemp(dir=tmp_path))
    write(project, "held")
    copies = Copies(project, settings)
    overlay = await copies.open()
    write(overlay.folder, "held", "changed")
    merged = await copies.merge(overlay)
    if why == "blocked":
        assert merged == Merged(), "it is not even looked at"
        with pytest.raises(Refused, match="blocked"):
            overlay.environment.roots.resolve("held")
    else:
        assert why in merged.conflicts[0].why
    assert (project / "held").read_text() != "changed"
    await copies.aclose()


async def test_the_copy_knows_the_blocked_places_of_the_project_by_any_name(tmp_path: Path) -> None:
    project = tmp_path / "absolute"
    write(project, "keys/a")
    write(project, "b")
    copies = Copies(project, {"safety.sandbox_blocked_paths": [str(project / "keys")]})
    overlay = await copies.open()
    assert tree(overlay.folder).keys() == {"b"}
    with pytest.raises(Refused, match="blocked"):
        overlay.environment.roots.resolve("keys/new", is_write=True)
    with pytest.raises(ToolError, match="outside"):
        overlay.environment.roots.resolve(str(project / "b"))
    await copies.aclose()


async def test_a_change_in_the_midst_of_a_merge_is_not_overwritten(
    copies: Copies, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(copies.project, "a", "old\n")
    overlay = await copies.open()
    write(overlay.folder, "a", "its\n")
    write(overlay.folder, "b", "its\n")
    do, tries = Restoring.do, list[int]()

    def meanwhile(self: Restoring) -> None:
        tries.append(1)
        (copies.project / "a").write_text(f"mine {len(tries)}\n")
        do(self)

    monkeypatch.setattr(Restoring, "do", meanwhile)
    merged = await copies.merge(overlay)
    assert (copies.project / "a").read_text().startswith("mine")
    assert [each.path for each in merged.conflicts] == ["a"]
    assert read(merged.conflicts[0].kept) == "its\n"
    assert (copies.project / "b").read_text() == "its\n"


async def test_a_disk_that_does_not_let_it_loses_nothing(
    copies: Copies, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(copies.project, "a", "old\n")
    overlay = await copies.open()
    write(overlay.folder, "a", "its\n")
    monkeypatch.setattr(Restoring, "do", _full)
    merged = await copies.merge(overlay)
    assert "No space left" in merged.conflicts[0].why
    assert read(merged.conflicts[0].kept) == "its\n"
    assert merged.paths == ()


def _full(_: Restoring) -> None:
    raise OSError(28, "No space left on device")


async def test_a_copy_that_cannot_be_looked_at_stays_to_be_read(
    copies: Copies, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(copies.project, "a")
    overlay = await copies.open()
    write(overlay.folder, "b", "its\n")
    monkeypatch.setattr("ybs.checkpoints.scan.MOST_PATHS", 1)
    merged = await copies.merge(overlay)
    assert "more than 1 files and folders" in merged.problem
    await overlay.aclose()
    assert str(overlay.folder) in merged.problem
    assert copies.environment.roots.resolve(f"{overlay.folder}/b").read_text() == "its\n"


async def test_commands_in_a_copy_see_no_folder_that_may_only_be_read(
    project: Path, tmp_path: Path
) -> None:
    copies = Copies(project, {"safety.mode": "bypass"})
    outside = tmp_path / "outside"
    write(outside, "diary.txt", "dear diary\n")
    environment = ToolEnvironment.of(project, copies.environment.loaded, Permissions())
    if environment.sandbox.state != "full":
        pytest.skip(f"NOT TESTED: {environment.sandbox.backend.why}")
    environment.roots.add_reading(str(outside))
    isolation = Isolation(Workplace(environment))
    one = await isolation.open("one")
    tools = make_toolbox(one.environment, hooks=[one.hook])
    file = f"{outside}/diary.txt"
    result = await tools.run(call("run_shell", command=f"cat {file}"), lambda _: None)
    assert "dear diary" not in result.output
    result = await tools.run(call("read_file", path=file), lambda _: None)
    assert "dear diary" in result.output
    await isolation.aclose()
    await environment.aclose()


async def test_commands_in_a_copy_reach_neither_the_project_nor_another_copy(project: Path) -> None:
    copies = Copies(project, {"safety.mode": "bypass"})
    write(project, ".gitignore", "node_modules\n")
    write(project, "node_modules/lib", "of the project\n")
    write(project, ".envrc", "rules\n")
    environment = ToolEnvironment.of(project, copies.environment.loaded, Permissions())
    if environment.sandbox.state != "full":
        pytest.skip(f"NOT TESTED: {environment.sandbox.backend.why}")
    isolation = Isolation(Workplace(environment))
    one, two = await isolation.open("one"), await isolation.open("two")
    command = (
        f"cat node_modules/lib; echo made > made; ls {project}; ls {two.folder}; echo x > {project}/a; echo x > node_modules/lib;"
        " echo bad > .envrc; true"
    )
    tools = make_toolbox(one.environment, hooks=[one.hook])
    result = await tools.run(call("run_shell", command=command), lambda _: None)
    assert "of the project" in result.output
    assert (one.folder / "made").read_text() == "made\n"
    assert (one.folder / ".envrc").read_text() == "rules\n"
    assert tree(project).keys() == {".gitignore", "node_modules", "node_modules/lib", ".envrc"}
    assert (project / "node_modules/lib").read_text() == "of the project\n"
    assert not (two.folder / "made").exists()
    await isolation.aclose()
    await environment.aclose()


async def test_in_incognito_a_copy_is_worked_in_as_any_other_and_lies_on_no_disk(
    project: Path,
) -> None:
    copies = Copies(project, {"safety.mode": "bypass", "incognito.enabled": True})
    write(project, "a", "old\n")
    environment = ToolEnvironment.of(project, copies.environment.loaded, Permissions())
    if environment.sandbox.state not in ("full", "reduced"):
        pytest.skip(f"NOT TESTED: {environment.sandbox.backend.why}")
    isolation = Isolation(Workplace(environment))
    one = await isolation.open("one")
    assert is_in_memory(str(one.folder)) is HAS_MEMORY
    tools = make_toolbox(one.environment, hooks=[one.hook])
    for asked in (
        call("write_file", path="letter", content="new\n"),
        call("run_shell", command="cat a letter; echo made > made"),
    ):
        result = await tools.run(asked, lambda _: None)
        assert not result.is_error
    assert "old\nnew" in result.output
    assert (one.folder / "made").read_text() == "made\n"
    await isolation.aclose()
    await environment.aclose()
    assert not one.folder.exists()


async def test_rules_and_modes_are_those_of_the_session_at_each_moment(copies: Copies) -> None:
    overlay = await copies.open()
    copies.environment.policy.mode = "ask"
    assert overlay.environment.policy.mode == "ask"
    overlay.environment.policy.grant("write_file")
    assert "write_file" in tuple(sorted(copies.environment.policy.rules.grants))
    assert overlay.environment.policy.tried(mode="plan").mode == "plan"
    assert copies.environment.policy.mode == "ask"
    assert overlay.environment.secrets.firewall is copies.environment.secrets.firewall
    assert not overlay.environment.has_mcp()
    assert not overlay.environment.has_external_tools()
    assert overlay.environment.has_skills() == copies.environment.has_skills()
    assert overlay.environment.skills is copies.environment.skills


async def test_a_hook_that_fails_is_told_and_the_merge_goes_on(copies: Copies) -> None:
    overlay = await copies.open()
    write(overlay.folder, "a", "its\n")

    async def fails(call: ToolCall, effect: object, paths: object) -> None:
        raise ToolError("the disk is full")

    copies.undo.before_change = fails  # type: ignore[method-assign] - a double of one test
    merged = await copies.merge(overlay)
    assert merged.notes == ("the person cannot undo this: the disk is full",)
    assert "the person cannot undo this" in merged.text
    await after_change([overlay.hook], DELEGATE, "execute", [f"{overlay.folder}/a"])
    assert overlay.hook.paths == set()
