"""list_files, and the walk over a project that it shares with search_files."""

import os
from pathlib import Path
from typing import Any

import pytest

from hosts import this_host
from rows import every_row
from ybs.security.paths.roots import Roots
from ybs.tools.searching import walk
from ybs.tools.searching.walk import Deadline, Walk


@pytest.fixture(autouse=True)
def tree(project: Path) -> Path:
    for path in (
        "a.py",
        "b.ts",
        "src/a.py",
        "src/c.tsx",
        "src/deep/d.py",
        ".github/x.yml",
        "docs/é.md",
    ):
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text("x\n")
    (project / ".git/hooks").mkdir(parents=True)
    (project / ".git/config").write_text("x")
    return project


async def listed(bench: Any, pattern: str = "**", **arguments: Any) -> list[str]:
    return (await bench.ok("list_files", pattern=pattern, **arguments)).display["files"]


async def test_all_files_come_sorted_and_git_is_left_out(bench: Any):
    answered = await bench.ok("list_files", pattern="**")
    files = [".github/x.yml", "a.py", "b.ts", "docs/é.md", "src/a.py", "src/c.tsx", "src/deep/d.py"]
    assert answered.display == {"files": files, "total_matches": 7, "truncated": False}
    assert answered.output == "\n".join(files)
    assert answered.result.summary == "7 files"


@every_row(
    ("pattern", "files"),
    [
        ("**/*.py", ["a.py", "src/a.py", "src/deep/d.py"]),
        ("*.py", ["a.py"]),
        ("./*.py", ["a.py"]),
        ("src/*.{py,tsx}", ["src/a.py", "src/c.tsx"]),
        ("src/", ["src/a.py", "src/c.tsx", "src/deep/d.py"]),
        ("src//deep/*", ["src/deep/d.py"]),
        (".", ["a.py", "b.ts"]),
    ],
)
async def test_patterns_are_globs_from_the_folder(bench: Any, pattern: str, files: list[str]):
    assert await listed(bench, pattern) == files


@pytest.mark.integration
@every_row(
    ("pattern", "files"),
    [
        (
            "app/[locale]/(auth)/**",
            ["app/[locale]/(auth)/[[...slug]]/p.tsx", "app/[locale]/(auth)/page.tsx"],
        ),
        ("**/[[...slug]]/*", ["app/[locale]/(auth)/[[...slug]]/p.tsx"]),
        ("app/[locale]/(auth)/*.{ts,tsx}", ["app/[locale]/(auth)/page.tsx"]),
        ("app/[user-id]/(.)modal/m.tsx", ["app/[user-id]/(.)modal/m.tsx"]),
        ("{{cookiecutter.slug}}/*.py", ["{{cookiecutter.slug}}/setup.py"]),
        (
            "{{cookiecutter.slug}}/{% if x %}a.py{% endif %}",
            ["{{cookiecutter.slug}}/{% if x %}a.py{% endif %}"],
        ),
        ("**/report[1].{txt,md}", ["report[1].txt"]),
        ("app/[kl]/*", ["app/l/other.tsx"]),
    ],
)
async def test_names_with_brackets_braces_and_parentheses_stand_for_themselves(
    bench: Any, project: Path, pattern: str, files: list[str]
):
    for name in (
        "app/[locale]/(auth)/page.tsx",
        "app/[locale]/(auth)/[[...slug]]/p.tsx",
        "app/[user-id]/(.)modal/m.tsx",
        "app/l/other.tsx",
        "{{cookiecutter.slug}}/setup.py",
        "{{cookiecutter.slug}}/{% if x %}a.py{% endif %}",
        "report[1].txt",
    ):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("needle\n")
    assert await listed(bench, pattern) == files
    found = await bench.ok("search_files", pattern="needle", file_pattern=pattern)
    assert sorted({each["file"] for each in found.display["matches"]}) == files


async def test_ignored_files_are_listed_on_request(bench: Any, project: Path):
    (project / ".gitignore").write_text("*.ts\n/docs/\n")
    assert await listed(bench, "{*,docs/*},!*.py", include_ignored=True) == [
        ".gitignore",
        "b.ts",
        "docs/é.md",
    ]


async def test_a_repository_within_has_only_its_own_rules(bench: Any, project: Path):
    (project / ".gitignore").write_text("*.tsx\n")
    (project / "src/.git").mkdir()
    (project / "src/.gitignore").write_text("*.py\n")
    assert await listed(bench, "**/*.{py,tsx}") == ["a.py", "src/c.tsx"]
    assert await listed(bench, "*", path="src/deep") == []


async def test_a_folder_can_be_given_and_paths_stay_relative_to_the_project(bench, project):
    assert await listed(bench, "*.py", path="src") == ["src/a.py"]
    assert await listed(bench, "*.py", path=str(project / "src")) == ["src/a.py"]


async def test_folders_that_match_are_named(bench: Any):
    answered = await bench.ok("list_files", pattern="*")
    assert answered.display["folders"] == [".github/", "docs/", "src/"]
    assert answered.output.endswith("Folders: .github/ docs/ src/")


async def test_nothing_found_is_said(bench: Any):
    answered = await bench.ok("list_files", pattern="**/*.rs")
    assert answered.output == "No files match."
    answered = await bench.ok("list_files", pattern="*.rs")
    assert answered.output == "No files match. `**/*.rs` looks in all folders below."
    assert answered.display == {"files": [], "total_matches": 0, "truncated": False}


async def test_a_cut_list_tells_how_many_there_are(bench: Any):
    answered = await bench.ok("list_files", pattern="**", max_results=2)
    assert answered.display == {
        "files": [".github/x.yml", "a.py"],
        "total_matches": 7,
        "truncated": True,
    }
    assert "[2 of 7 files shown" in answered.output


@pytest.mark.integration
async def test_a_list_is_cut_to_the_allowed_characters(make_bench: Any, project: Path):
    for number in range(200):
        (project / f"file-{number:03}.txt").write_text("")
    answered = await make_bench(max_output_chars=1000).ok(
        "list_files", pattern="*.txt", max_results=500
    )
    shown = answered.display["files"]
    assert 0 < len(shown) < 200
    assert f"[{len(shown)} of 200 files shown" in answered.output
    assert len(answered.output) <= 1000


@every_row(
    ("arguments", "words"),
    [
        ({"pattern": "/etc/*"}, "leads out"),
        ({"pattern": "../*"}, "leads out"),
        ({"pattern": "*", "path": "a.py"}, "is not a folder"),
        ({"pattern": "*", "path": ".."}, "outside the folders that ybs may work in"),
        ({"pattern": "*", "max_results": 0}, "1 or more"),
    ],
)
async def test_what_makes_no_sense_is_an_error(bench: Any, arguments: dict[str, Any], words: str):
    assert words in await bench.fails("list_files", **arguments)


async def test_gitignore_is_honoured_nested_negated_and_for_folders(bench: Any, project: Path):
    (project / ".gitignore").write_text("*.ts\n/docs/\n# remark\n*.md\n!keep.md\n")
    (project / "src/.gitignore").write_text("deep/\n!b.ts\n")
    for path in ("keep.md", "src/b.ts", "src/docs/x.txt"):
        (project / path).parent.mkdir(exist_ok=True)
        (project / path).write_text("x")
    assert await listed(bench) == [
        ".github/x.yml",
        ".gitignore",
        "a.py",
        "keep.md",
        "src/.gitignore",
        "src/a.py",
        "src/b.ts",
        "src/c.tsx",
        "src/docs/x.txt",
    ]
    assert await listed(bench, "*", path="src") == [
        "src/.gitignore",
        "src/a.py",
        "src/b.ts",
        "src/c.tsx",
    ]


async def test_an_ignored_folder_that_is_named_is_listed(bench: Any, project: Path):
    (project / ".gitignore").write_text("src/\n")
    assert await listed(bench, "**/*.py") == ["a.py"]
    assert await listed(bench, "*.py", path="src/deep") == ["src/deep/d.py"]


async def test_rules_of_folders_above_count_up_to_the_repositorys_top(make_bench, tmp_path):
    from ybs.tools.searching.walk import Walk as Walking

    repository = tmp_path / "repository"
    inner = repository / "packages" / "x"
    inner.mkdir(parents=True)
    (repository / ".git").mkdir()
    (repository / ".gitignore").write_text("*.log\n")
    (tmp_path / ".gitignore").write_text("*.py\n")
    for name in ("a.log", "a.py"):
        (inner / name).write_text("x")
    assert [entry.path for entry in Walking(Roots(this_host(), inner), inner).files()] == ["a.py"]


@pytest.mark.parametrize("content", ["[z-a]x\n!\n*.ts\n", "*.ts\n\udcff"])
async def test_a_line_that_makes_no_sense_spoils_only_itself(bench, project, content):
    (project / ".gitignore").write_bytes(content.encode(errors="surrogateescape"))
    assert "b.ts" not in await listed(bench)


async def test_odd_gitignore_files_do_no_harm(bench: Any, project: Path):
    (project / ".gitignore").write_text("# nothing\n")
    os.mkfifo(project / "docs/.gitignore")
    (project / "src/.gitignore").mkdir()
    (project / "src/deep/.gitignore").symlink_to("/dev/null")
    (project / ".github/.gitignore").symlink_to(project / "a.py")
    assert "src/deep/d.py" in await listed(bench)


async def test_p15_links_are_not_followed_out_of_the_folders(bench, project, tmp_path):
    (tmp_path / "secret.py").write_text("x")
    (project / "out").symlink_to("/")
    (project / "secret.py").symlink_to(tmp_path / "secret.py")
    (project / "loop").symlink_to(".")
    (project / "inside.py").symlink_to("src/a.py")
    (project / "dangling.py").symlink_to("nowhere")
    assert await listed(bench, "**/*.py") == ["a.py", "inside.py", "src/a.py", "src/deep/d.py"]


async def test_pipes_are_left_out(bench: Any, project: Path):
    os.mkfifo(project / "pipe.py")
    assert await listed(bench, "*.py") == ["a.py"]


async def test_names_that_are_no_text_are_shown_with_their_bytes(bench: Any, project: Path):
    folder = project / os.fsdecode(b"\xff.d")
    folder.mkdir()
    (folder / os.fsdecode(b"\xff\n.py")).write_text("x")
    assert await listed(bench, "*.d/*.py") == [r"\xff.d/\xff\x0a.py"]
    assert await listed(bench, "*.py", path=r"\xff.d") == [r"\xff.d/\xff\x0a.py"]


def test_folders_far_down_are_walked_with_few_of_them_open(tmp_path, monkeypatch):
    monkeypatch.setattr(walk, "_MOST_HELD", 2)
    top = tmp_path / "deep"
    for place in ("a/b/c/d/e", "a/b/c/f/g", "a/h"):
        (top / place).mkdir(parents=True)
        (top / place / "x").touch()
    before = os.listdir("/dev/fd")  # noqa: PTH208 - names
    paths = Walk(Roots(this_host(), top), top).paths()
    assert sorted(paths) == ["a/b/c/d/e/x", "a/b/c/f/g/x", "a/h/x"]
    assert os.listdir("/dev/fd") == before  # noqa: PTH208 - names


def test_a_walk_that_is_left_lets_go_of_its_folders(project: Path):
    before = os.listdir("/dev/fd")  # noqa: PTH208 - names
    entries = Walk(Roots(this_host(), project), project).files()
    next(entries)
    del entries
    assert os.listdir("/dev/fd") == before  # noqa: PTH208 - names


async def test_blocked_paths_are_left_out(make_bench: Any, home: Path):
    from ybs.tools.workspace import Workspace

    (home / ".ssh").mkdir()
    (home / ".ssh/id").write_text("x")
    (home / "a").write_text("x")
    roots = Roots(this_host(), home, ("./",), ("~/.ssh",))
    assert [entry.path for entry in Walk(roots, home).files()] == ["a"]
    assert Workspace(roots).fingerprint()


def test_a_folder_that_cannot_be_read_is_passed_over(project, monkeypatch):
    below = walk.open_below

    def open_below(folder: int, name: str) -> int:
        if name == "src":
            raise PermissionError
        return below(folder, name)

    monkeypatch.setattr(walk, "open_below", open_below)
    paths = [entry.path for entry in Walk(Roots(this_host(), project), project).files()]
    assert paths == ["a.py", "b.ts", ".github/x.yml", "docs/é.md"]


def test_a_walk_outside_the_project_has_its_own_rules(project: Path, tmp_path: Path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.ts").write_text("x")
    (project / ".gitignore").write_text("*.ts\n")
    roots = Roots(this_host(), project)
    roots.add(other)
    assert [entry.path for entry in Walk(roots, other).files()] == ["a.ts"]


def test_a_walk_ends_at_its_deadline_and_says_so(project: Path):
    deadline = Deadline(100)
    walk = Walk(Roots(this_host(), project), project, deadline=deadline)
    found: list[str] = []
    for entry in walk.files():
        found.append(entry.path)
        deadline.cancel()
    assert walk.was_cut
    assert found == ["a.py"]
    assert deadline.is_over


async def test_a_list_that_takes_too_long_is_cut_and_said(bench, monkeypatch):
    monkeypatch.setattr("ybs.tools.builtin.list_files.TIME_LIMIT_SECONDS", -1)
    answered = await bench.ok("list_files", pattern="**")
    assert answered.display["truncated"]
    assert "took too long" in answered.output


def test_a_fingerprint_changes_with_what_is_not_ignored_only(bench: Any, project: Path):
    fingerprint = bench.workspace.fingerprint
    (project / ".gitignore").write_text("*.log\n")
    first = fingerprint()
    assert fingerprint() == first
    (project / "x.log").write_text("x")
    (project / ".git/config").write_text("other")
    assert fingerprint() == first
    (project / "a.py").write_text("other\n")
    second = fingerprint()
    assert second != first
    (project / "new").write_text("")
    assert fingerprint() != second


@pytest.mark.parametrize("cache", [".pytest_cache/lastfailed", "src/__pycache__/a.pyc"])
def test_a_fingerprint_does_not_see_what_a_test_run_leaves_behind(bench, project, cache):
    first = bench.workspace.fingerprint()
    (project / cache).parent.mkdir(parents=True)
    (project / cache).write_text("new")
    assert bench.workspace.fingerprint() == first


def test_a_fingerprint_looks_at_a_bounded_number_of_files(bench, project, monkeypatch):
    monkeypatch.setattr("ybs.tools.workspace._MOST_FILES", 1)
    first = bench.workspace.fingerprint()
    (project / "src/a.py").write_text("other")
    assert bench.workspace.fingerprint() == first
    (project / "a.py").write_text("other")
    assert bench.workspace.fingerprint() != first


def test_a_fingerprint_passes_over_a_file_that_goes_meanwhile(bench, project, monkeypatch):
    first = bench.workspace.fingerprint()

    def gone(_: Any) -> None:
        return None

    monkeypatch.setattr("ybs.tools.searching.walk.FileEntry.status", gone)
    assert bench.workspace.fingerprint() != first


def test_a_file_that_goes_while_it_is_looked_at_is_passed_over(bench: Any, project: Path):
    entries = list(Walk(Roots(this_host(), project), project).files())
    (project / "a.py").unlink()
    assert [entry.path for entry in entries if entry.status() is None] == ["a.py"]


async def test_hostile_rules_and_globs_do_not_stop_the_walk(bench: Any, project: Path):
    rules = ("*a" * 5 + "b", "**/" * 5 + "x", "k**e***e*p", "a.py")
    (project / ".gitignore").write_text("".join(f"{rule}\n" for rule in rules))
    (project / ("a" * 200)).write_text("x")
    (project / "keep").write_text("x")
    files = await listed(bench)
    assert "a" * 200 in files
    assert "a.py" not in files
    assert "keep" not in files
    for pattern in ("*a" * 5 + "b", "{a,a}" * 5, "**/x/" * 4, "{" + "a," * 60 + "}"):
        assert "Write it simpler" in await bench.fails("list_files", pattern=pattern)
    assert await listed(bench, "b****.ts") == ["b.ts"]


async def test_a_star_behind_a_backslash_stays_one(bench: Any, project: Path):
    (project / "odd**").write_text("x")
    assert await listed(bench, r"odd\*\*") == ["odd**"]
