"""Names that look the same and are not: one file is meant, and no second one is made."""

from pathlib import Path
from typing import Any

import pytest

from rows import every_row

NFC, NFD = "r\u00e9sum\u00e9.md", "re\u0301sume\u0301.md"
REMARK = "The name on disk is "


def names_in(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


@pytest.mark.integration
@every_row(
    ("there", "asked"),
    [
        (NFD, NFC),
        (NFC, NFD),
        ("Shot at 3.45\u202fPM.txt", "Shot at 3.45 PM.txt"),
        ("Snímek 2026-05-15 v\u00a013.05.txt", "Snímek 2026-05-15 v 13.05.txt"),
        ("Capture d\u2019e\u0301cran.txt", "Capture d'écran.txt"),
        ("plain name.txt", "plain\u00a0name.txt"),
        ("\u1112\u1161\u11ab\u1100\u1173\u11af.txt", "\ud55c\uae00.txt"),
    ],
)
async def test_a_file_that_looks_the_same_is_meant_by_every_tool(bench, project, there, asked):
    (project / there).write_text("old text\n")
    before = names_in(project)
    said = [(await bench.ok("read_file", path=asked)).output]
    assert said[0].startswith("1\told text")
    said.append((await bench.ok("edit_file", path=asked, old_text="old", new_text="new")).output)
    assert (project / there).read_text() == "new text\n"
    said.append((await bench.ok("write_file", path=asked, content="whole\n")).output)
    assert "Overwrote" in said[-1]
    assert (project / there).read_text() == "whole\n"
    found = await bench.ok("search_files", pattern="whole", path=asked)
    assert found.display["total_matches"] == 1
    assert names_in(project) == before
    said.append((await bench.ok("delete_file", path=asked)).output)
    assert not (project / there).exists()
    assert all(REMARK + ascii(there) in each for each in said), said


async def test_a_new_file_goes_into_the_folder_that_looks_the_same(bench: Any, project: Path):
    (project / "Caf\u00e9/a b").mkdir(parents=True)
    output = (
        await bench.ok("write_file", path="Cafe\u0301/a\u00a0b/new/x.txt", content="x\n")
    ).output
    assert (project / "Caf\u00e9/a b/new/x.txt").read_text() == "x\n"
    assert "'Caf\\xe9', 'a b'" in output
    assert len(names_in(project)) == 1
    listed = await bench.ok("list_files", pattern="**", path="Cafe\u0301")
    assert listed.display["total_matches"] == 1


async def test_the_very_name_comes_first_and_nothing_is_said_of_it(bench: Any, project: Path):
    for name in (NFC, NFD):
        (project / name).write_text(f"{name!a}\n")
    for name in (NFC, NFD):
        output = (await bench.ok("read_file", path=name)).output
        assert ascii(name) in output
        assert REMARK not in output


async def test_where_two_look_the_same_nothing_is_done_and_both_are_named(bench, project):
    for space in "\u202f\u00a0":
        (project / f"a{space}b.txt").write_text("x\n")
    for tool, more in (
        ("read_file", {}),
        ("write_file", {"content": "y"}),
        ("edit_file", {"old_text": "x", "new_text": "y"}),
        ("delete_file", {}),
    ):
        said = (await bench.call(tool, path="a b.txt", **more)).output
        assert r"'a\xa0b.txt', 'a\u202fb.txt'" in said
    assert len(names_in(project)) == 2
    assert {(project / name).read_text() for name in names_in(project)} == {"x\n"}


async def test_other_letters_are_another_file(bench: Any, project: Path):
    (project / "resume.md").write_text("x\n")
    (project / "\ufb01le.txt").write_text("x\n")  # a ligature
    assert "Created" in (await bench.ok("write_file", path=NFC, content="y\n")).output
    assert "Created" in (await bench.ok("write_file", path="file.txt", content="y\n")).output
    assert len(names_in(project)) == 4


async def test_a_blocked_file_is_not_reached_by_another_spelling(make_bench: Any, project: Path):
    from ybs.config.schema import Config, SafetySettings

    (project / "my\u00a0keys").write_text("secret\n")
    config = Config(safety=SafetySettings(sandbox_blocked_paths=("./my\u00a0keys",)))
    bench = make_bench(config=config)
    for tool, more in (("read_file", {}), ("write_file", {"content": "y"})):
        answered = await bench.call(tool, path="my keys", **more)
        assert "secret" not in answered.output
    assert (project / "my\u00a0keys").read_text() == "secret\n"


@pytest.mark.integration
async def test_a_command_starts_in_the_folder_that_looks_the_same(bench: Any, project: Path):
    (project / NFD).mkdir()
    answered = await bench.ok("run_shell", command="pwd", working_dir=NFC)
    assert answered.display["stdout"] == f"{project}/{NFD}\n"


async def test_a_name_below_what_is_no_folder_has_no_twin(bench: Any, project: Path):
    (project / "file").write_text("text\n")
    assert "résumé" in await bench.fails("read_file", path=f"file/{NFC}")
