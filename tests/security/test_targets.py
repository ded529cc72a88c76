"""What links, settings of repositories and `PATH` lead to in a project: asked about, held, and named after a command."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from hosts import host_at, this_host
from rows import every_row
from ybs.security.paths.autorun_changes import AutorunFiles
from ybs.security.paths.folder_index import index_of
from ybs.security.paths.roots import Roots
from ybs.security.sandbox.protected import protected

pytestmark = pytest.mark.integration


def filled(folder: Path, *files: str) -> None:
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("old")


def linked(folder: Path, link: str, target: str) -> None:
    (folder / link).parent.mkdir(parents=True, exist_ok=True)
    (folder / link).symlink_to(target)


def part_of(folder: Path, name: str) -> str:
    return Roots(this_host(), folder).autorun_part(folder / name)


def held(folder: Path) -> set[str]:
    return {os.path.relpath(path, folder) for path in protected(this_host(), str(folder))}


def changed(folder: Path, *files: str) -> set[str]:
    """Return what is named after these files were written."""
    watch = AutorunFiles(this_host())
    watch.look([str(folder)])
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("evil")
    return {os.path.relpath(each.path, folder) for each in watch.look([str(folder)])}


def repository(folder: Path, config: str = "") -> Path:
    for name in ("objects", "refs", "hooks", "info"):
        (folder / name).mkdir(parents=True)
    (folder / "HEAD").write_text("ref: refs/heads/main")
    (folder / "config").write_text(config)
    return folder


@every_row(
    ("link", "target", "file"),
    [
        (".git/hooks/pre-commit", "../../scripts/lint", "scripts/lint"),
        (".git/hooks", "../scripts", "scripts/pre-commit"),
        (".git/config", "../scripts/lint", "scripts/lint"),
        (".git/config.worktree", "../scripts/lint", "scripts/lint"),
        (".git/info/attributes", "../../scripts/lint", "scripts/lint"),
        (".git/info", "../scripts", "scripts/attributes"),
        ("sub/.git/hooks/pre-commit", "../../../scripts/lint", "scripts/lint"),
        (".hg/hgrc", "../scripts/lint", "scripts/lint"),
    ],
)
def test_what_a_link_in_a_repositorys_folder_leads_to_is_known(tmp_path, link, target, file):
    folder = tmp_path / link.replace("/", "-")
    filled(folder, file, "scripts/new", ".git/HEAD")
    linked(folder, link, target)
    end = file if target.endswith("lint") else "scripts"
    assert part_of(folder, file) == end
    assert held(folder) - {".git", ".hg", "sub/.git"} == {end}
    assert changed(folder, file) >= {file}
    if end == file:
        assert part_of(folder, "scripts/new") == ""


@every_row(
    ("links", "file", "named", "holds"),
    [
        ({".cargo": "c"}, "c/config.toml", ".cargo/config.toml", {".cargo", "c/config.toml"}),
        ({".github": "g"}, "g/hooks/x", ".github/hooks", {".github", "g/hooks"}),
        (
            {"gradle": "w/x", "w": "g"},
            "g/x/wrapper/p.jar",
            "gradle/wrapper",
            {"gradle", "w", "g/x/wrapper"},
        ),
        ({".GitHub": "g"}, "g/workflows/ci.yml", ".GitHub/workflows", {".GitHub"}),
        ({".github": "g", "g/workflows": "../w"}, "w/ci.yml", ".github/workflows", {".github"}),
        ({"app/.cargo": "../c"}, "c/config.toml", "app/.cargo/config.toml", set()),
        ({".gradle": "app", "app/.cargo": "../c"}, "c/config", "app/.cargo/config", set()),
    ],
)
def test_a_link_of_the_first_of_two_names_has_what_it_leads_to_known_by_the_second(
    tmp_path, links, file, named, holds
):
    folder = tmp_path / "-".join((*links, file)).replace("/", "-")
    filled(folder, "c/other", "g/other")
    for link, target in links.items():
        linked(folder, link, target)
    assert part_of(folder, file) == named, "before it is there"
    assert part_of(folder, "c/other") == part_of(folder, "g/other") == ""
    assert changed(folder, file) == {named}
    assert held(folder) == holds


def test_a_link_of_the_first_of_two_names_among_dependencies_is_an_ordinary_one(project: Path):
    filled(project, "c/config.toml")
    linked(project, "vendor/x/.cargo", "../../c")
    assert part_of(project, "c/config.toml") == ""


def test_what_links_behind_a_link_of_two_names_lead_to_is_held(project: Path):
    filled(project, "g/hooks/other", "lint")
    linked(project, "g/hooks/pre-commit", "../../lint")
    linked(project, ".github", "g")
    assert held(project) == {".github", "g/hooks", "lint"}
    assert part_of(project, "lint") == "lint"


def test_each_link_on_the_way_of_a_hook_is_known_and_the_sample_and_ignored_files_are_not(project):
    repository(project / ".git")
    filled(project, "tools/deep/lint", "mine", ".git/hooks/commit-msg.sample")
    linked(project, "tools/lint", "deep/lint")
    linked(project, ".git/hooks/pre-commit", "../../tools/lint")
    linked(project, ".git/hooks/pre-push", "/usr/bin/true")
    linked(project, ".git/info/exclude", "../../mine")
    assert held(project) == {".git", "tools/lint", "tools/deep/lint"}
    assert part_of(project, "tools/deep/lint") == "tools/deep/lint"
    assert part_of(project, "tools/lint") == "tools/lint"  # which may be deleted itself
    assert part_of(project, "mine") == ""
    assert changed(project, "mine", ".git/hooks/commit-msg.sample") == set()


def test_what_a_hook_leads_to_counts_before_it_is_there(project: Path):
    repository(project / ".git")
    linked(project, ".git/hooks/pre-commit", "../../scripts/lint")
    linked(project, ".hg/hgrc", "../mercurial.rc")
    for name in ("scripts/lint", "mercurial.rc"):
        assert part_of(project, name) == name
        assert changed(project, name) == {name}
    assert held(project) == {".git", ".hg", "scripts/lint", "mercurial.rc"}


def test_of_a_hook_that_is_found_by_a_linked_folder_that_folder_stays_open(project: Path):
    repository(project / ".git")
    filled(project, "tools/lint", "tools/other")
    linked(project, "scripts", "tools")
    linked(project, ".git/hooks/pre-commit", "../../scripts/lint")
    assert held(project) == {".git", "scripts", "tools/lint"}
    assert part_of(project, "tools/other") == ""


def test_a_hook_of_the_repository_around_the_folder_leads_into_it(project: Path) -> None:
    repository(project / ".git")
    filled(project, "app/lint")
    linked(project, ".git/hooks/pre-commit", "../../app/lint")
    assert part_of(project / "app", "lint") == "lint"
    assert held(project / "app") == {"lint"}


@every_row("place", ["app/.git", "app", "app/tests/r"])
def test_settings_of_each_repository_are_read_with_its_own_top(tmp_path: Path, place: str):
    folder = tmp_path / place.replace("/", "-")
    repository(folder / ".git")
    git = repository(folder / place, "[core]\nhooksPath = tools/hooks\n[alias]\nx = !./run -x\n")
    top = place.removesuffix("/.git")
    filled(folder, f"{top}/tools/hooks/pre-commit", "tools/hooks/pre-commit", f"{top}/run", "lint")
    linked(git, "tools/hooks/commit-msg" if git.name != ".git" else "x", str(folder / "lint"))
    assert part_of(folder, "tools/hooks/pre-commit") == ""
    if top == place:  # all of a bare one is held
        assert held(folder) == {".git", place, "lint"}
        return
    assert part_of(folder, f"{top}/tools/hooks/pre-commit") == f"{top}/tools/hooks"
    assert held(folder) == {".git", place, f"{top}/tools/hooks", f"{top}/run"}
    assert changed(folder, f"{top}/tools/hooks/new") == {f"{top}/tools/hooks/new"}


def test_the_persons_own_hooks_folder_is_meant_in_each_repository(project: Path, home: Path):
    (home / ".gitconfig").write_text("[core]\nhooksPath = hooks\n")
    repository(project / ".git")
    repository(project / "app/.git")
    assert part_of(project, "app/hooks/pre-commit") == "app/hooks"
    assert part_of(project, "hooks/pre-commit") == "hooks"
    assert part_of(project, "app/deep/hooks/pre-commit") == ""


def test_a_work_tree_and_a_submodule_go_by_settings_that_lie_elsewhere(project: Path):
    def git(*words: str) -> None:
        run = ["git", "-c", "user.name=x", "-c", "user.email=x@y", *words]
        subprocess.run(run, cwd=project, check=True, capture_output=True)

    git("init", "-q", ".")
    git("config", "core.hooksPath", "tools/hooks")
    git("commit", "--allow-empty", "-qm", "x")
    git("worktree", "add", "-q", "wt/x")
    assert part_of(project, "wt/x/tools/hooks/pre-commit") == "wt/x/tools/hooks"
    module = repository(project / ".git/modules/sub", "[core]\nhooksPath = own\n")
    filled(project, "sub/own/pre-commit", "lint")
    linked(module, "hooks/post-commit", str(project / "lint"))
    (project / "sub/.git").write_text("gitdir: ../.git/modules/sub\n")
    index_of(str(project))._took = 0.0  # pyright: ignore[reportPrivateUsage] - however slow the machine is
    assert part_of(project, "sub/own/pre-commit") == "sub/own"
    assert held(project) == {".git", "wt/x/.git", "sub/.git", "sub/own", "lint"}
    assert changed(project, ".git/modules/sub/config") == {"sub/.git"}
    (module / "hooks/pre-commit").write_text("old")
    assert changed(project, ".git/modules/sub/hooks/pre-commit") == {"sub/.git"}


@every_row(
    ("files", "file"),
    [
        ({"r/config": "../settings.ini"}, "settings.ini"),
        ({"r/commondir": "../common\n"}, "common/config"),
        ({"r/commondir": "../common\n"}, "common/hooks/pre-commit"),
    ],
)
def test_a_bare_repository_goes_by_files_beside_it(tmp_path: Path, files, file: str):
    folder = tmp_path / file.replace("/", "-")
    (folder / "common/hooks").mkdir(parents=True)
    filled(folder, file, "common/config", "common/other")
    for name in ("objects", "refs"):
        (folder / "r" / name).mkdir(parents=True)
    (folder / "r/HEAD").write_text("ref: refs/heads/main")
    for name, text in files.items():
        if text.endswith("\n"):
            (folder / name).write_text(text)
        else:
            linked(folder, name, text)
    assert part_of(folder, file)
    assert any(f"{file}/".startswith(f"{each}/") for each in held(folder))
    assert file in changed(folder, file)
    assert part_of(folder, "common/other") == ""


def test_of_a_folder_that_is_a_bare_repository_itself_another_folder_may_count(project: Path):
    repository(project)
    (project / "commondir").write_text("common\n")
    filled(project, "common/config", "lint")
    linked(project, "hooks/pre-commit", "../lint")
    assert part_of(project, "common/config") == "common/config"
    (project / "commondir").unlink()
    index_of(str(project))._took = 0.0  # pyright: ignore[reportPrivateUsage]
    assert part_of(project, "lint") == "lint"
    assert changed(project, "hooks/post-commit") == {"hooks"}


@every_row(
    ("link", "target"),
    [
        (".husky/pre-commit", "../s/h"),
        (".husky/deep/more/x", "../../../s/h"),
        (".vscode/tasks.json", "../s/h"),
        (".claude/settings.json", "../s/h"),
        (".config/mise/conf.d/x.toml", "../../../s/h"),
    ],
)
def test_what_links_in_held_folders_lead_to_is_held_asked_about_and_named(tmp_path, link, target):
    folder = tmp_path / link.replace("/", "-")
    filled(folder, "s/h", "s/other")
    linked(folder, link, target)
    assert part_of(folder, "s/h") == link
    assert part_of(folder, "s/other") == ""
    top = ".config/mise" if "mise" in link else link.partition("/")[0]
    assert held(folder) == {top, "s/h"}
    assert changed(folder, "s/h") == {link}


def test_what_other_links_of_such_names_lead_to_is_asked_about_and_named_and_stays_writable(
    project: Path,
):
    filled(project, "s/h", "docs/rules.md", "conf/tasks.json", "mine/x")
    linked(project, "sub/.envrc", "../s/h")
    linked(project, ".claude/CLAUDE.md", "../docs/rules.md")
    linked(project, "sub/.vscode", "../conf")
    linked(project, "sub/.idea", "..")
    linked(project, ".run/x", "/usr/bin/true")
    parts = {"s/h": "sub/.envrc", "docs/rules.md": ".claude/CLAUDE.md", "mine/x": ""}
    parts |= {"conf/new": "sub/.vscode"}
    assert {each: part_of(project, each) for each in parts} == parts
    assert held(project) == {".claude", ".run"}
    named = {"sub/.envrc", ".claude/CLAUDE.md", "sub/.vscode"}
    assert changed(project, "s/h", "docs/rules.md", "conf/tasks.json", "mine/x") == named
    assert changed(project, "conf/deep/new") == {"sub/.vscode"}
    assert changed(project, "mine/y") == set()


@every_row(
    ("file", "line", "names"),
    [
        (".envrc", "source_env s/x.sh", "s/x.sh"),
        (".envrc", "source_env_if_exists .envrc.local", ".envrc.local"),
        (".envrc", "[ -f s/x.sh ] && . ./s/x.sh # y", "s/x.sh"),
        (".envrc", 'source "$PWD/s/x.sh"', "s/x.sh"),
        (".envrc", 'source "$(dirname "$0")"/s/x.sh; true', "s/x.sh"),
        (".envrc", "if true; then source ${HOME}/HERE/s/x.sh; fi", "s/x.sh"),
        (".envrc", "dotenv", ".env"),
        (".envrc", "dotenv_if_exists .env.local", ".env.local"),
        (".envrc", 'eval "$(./s/x.sh --y)"', "s/x.sh"),
        (".envrc", "A=$(python3 -I s/x.py)", "s/x.py"),
        (".envrc", 'eval "$(/usr/bin/php s/x.php)"', "s/x.php"),
        (".envrc", 'eval "$(deno run -A s/x.ts)"', "s/x.ts"),
        (".envrc", 'eval "$(cat s/x.sh)"', "s/x.sh"),
        (".envrc", "cat s/x.sh | bash", "s/x.sh"),
        (".envrc", "env FOO=1 python3 -X dev s/x.py", "s/x.py"),
        (".envrc", 'FOO=1 "./s/x.sh"', "s/x.sh"),
        (".envrc", "bash -euo pipefail s/x.sh", "s/x.sh"),
        (".envrc", "python3 - y < s/x.py", "s/x.py"),
        (".envrc", "uv run x.py", "x.py"),
        (".envrc", "builtin source -- s/x.sh", "s/x.sh"),
        (".envrc", 'for f in s/x.sh; do . "$PWD/$f"; done', "s/x.sh"),
        (".envrc", 'F=./s/x.sh; source "$F"', "s/x.sh"),
        (".envrc", 'source_env "$(expand_path s/x.sh)"', "s/x.sh"),
        (".envrc", "echo \n" * 8_000 + "time . s/x.sh", "s/x.sh"),
        (".autoenv.zsh", "  s/x.sh y", "s/x.sh"),
        (".exrc", "set nu\nsource s/x.vim", "s/x.vim"),
        (".tmuxinator.yml", "pre: source ./s/x.sh\nroot: .", "s/x.sh"),
        (".tmuxinator.yml", "panes:\n  - . ./s/x.sh", "s/x.sh"),
        (".tmux.conf", "source-file s/x.conf", "s/x.conf"),
    ],
)
def test_what_a_file_at_the_top_sources_is_held_asked_about_and_named(home, file, line, names):
    folder = home / re.sub(r"\W+", "-", line)[-60:]
    (folder / "s").mkdir(parents=True)
    (folder / file).write_text(f"# old\n{line.replace('HERE', folder.name)}\n")
    assert part_of(folder, names) == names
    assert held(folder) == {file}
    filled(folder, names)
    assert held(folder) == {file, names}
    assert changed(folder, names) == {names}


def test_what_such_a_file_names_otherwise_is_ordinary(project: Path):
    (project / ".envrc").write_text(
        'use flake\nwatch_file a/b\nexport A=$(cat a/b) B="a/b" PATH="$PWD/bin:$PATH"\nsource_up\n'
        "python -m a\nls . a/b\nsource_env ../a/b\n. ~/a\nsource_url https://x/a/b y\n[ -d a/b ] || mkdir a/b\n# source a/b\n"
    )
    (project / ".exrc").write_text('" source a/b\n')
    (project / ".pre-commit-config.yaml").write_text("exclude: |\n  (?x)^(\n    a/b|\n    c\n  )\n")
    (project / ".vscode").mkdir()
    filled(project, "a/b", "c")
    for name in ("a/b", "a", "c", "bin", "build"):
        assert part_of(project, name) == "", name


def test_what_is_sourced_is_followed_and_read_again_when_it_changes(project: Path):
    filled(project, "s/two.sh", "s/later.sh", "three.sh", ".venv/bin/activate", "conf/x")
    (project / ".envrc").write_text(
        "source_env s/one.sh\nsource .venv/bin/activate\nsource_env conf\n. ./.envrc\n"
    )
    (project / "s/one.sh").write_text(". ./two.sh\n./run.sh\n")
    (project / "s/run.sh").write_text("./later.sh\n")
    assert part_of(project, "s/two.sh") == "s/two.sh"
    assert part_of(project, "s/run.sh") == "s/run.sh"  # the shell that sources runs it
    assert part_of(project, "conf/x") == part_of(project, "s/later.sh") == ""
    parts = {".envrc", "s/one.sh", "s/two.sh", "s/run.sh"}
    assert held(project) == parts, "an environment can be made anew"
    assert part_of(project, ".venv/bin/activate") == ".venv/bin/activate"
    (project / "s/two.sh").write_text("source three.sh\n")
    assert part_of(project, "three.sh") == "three.sh"
    (project / ".envrc").unlink()
    os.mkfifo(project / ".envrc")
    index_of(str(project))._took = 0.0  # pyright: ignore[reportPrivateUsage]
    assert part_of(project, "three.sh") == ""


def test_a_file_that_is_longer_than_what_is_read_may_source_anything(project: Path):
    filled(project, "scripts/x.sh", "other.sh")
    line = "# a line of many\n"
    (project / ".envrc").write_text(line * 100_000 + ". scripts/x.sh\n")
    assert held(project) == {".envrc", "scripts/x.sh"}
    assert part_of(project, "other.sh") == ""
    (project / ".envrc").write_text(line * 300_000 + ". scripts/x.sh\n")
    assert held(project) == {"."}
    assert part_of(project, "other.sh")


def test_a_pattern_means_what_it_matches_and_what_will_be_in_its_folder(project: Path):
    filled(project, "env.a", "env.d/on/z.sh")
    (project / "env.d/on/x.sh").write_text("source lib.sh")
    (project / ".envrc").write_text('. env.*\nfor f in env.d/*/*.sh; do source "$f"; done\n')
    assert part_of(project, "env.a") == "env.a"
    assert part_of(project, "env.d/new/y.sh") == "env.d"
    assert held(project) == {".envrc", "env.d", "env.a"}
    assert part_of(project, "lib.sh") == "lib.sh"
    assert part_of(project, "other.a") == ""
    assert changed(project, "env.b", "env.d/new/y.sh") == {"env.b", "env.d/new/y.sh"}


def test_links_in_the_folder_that_such_a_link_leads_to_count(project: Path) -> None:
    filled(project, "conf/x", "s/h")
    linked(project, "conf/tasks.json", "../s/h")
    linked(project, ".vscode", "conf")
    assert held(project) == {".vscode", "conf", "s/h"}
    assert part_of(project, "s/h") == "s/h"
    assert changed(project, "s/h") >= {".vscode"}


def test_links_of_a_folder_that_was_added_count(project: Path, tmp_path: Path):
    more = tmp_path / "more"
    filled(more, "s/h")
    linked(more, ".envrc", "s/h")
    roots = Roots(this_host(), project)
    roots.add(more)
    assert roots.autorun_part(more / "s/h") == f"{more}/.envrc"


def test_a_hook_that_is_written_in_place_is_a_change_of_its_repository(project: Path):
    repository(project / "sub/.git")
    filled(project, "sub/.git/hooks/pre-commit", "sub/.git/hooks/x.sample")
    assert changed(project, "sub/.git/hooks/x.sample") == set()
    assert changed(project, "sub/.git/hooks/pre-commit") == {"sub/.git"}


@pytest.fixture
def in_path(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put folders of the project in front of a folder with programs."""
    filled(tmp_path / "programs", "git", "ls", "python")
    filled(project, "bin/setup", ".venv/bin/black", "tools/ls")
    (tmp_path / "programs/lib").mkdir()
    linked(project, "linked", "tools")
    folders = [project / "bin", project / ".venv/bin", project / "linked", tmp_path / "programs"]
    monkeypatch.setenv("PATH", ":".join(map(str, folders)))
    return project


def test_a_name_that_hides_a_program_is_asked_about_in_each_folder_of_path(in_path: Path):
    parts = {
        "bin/git": "bin/git",
        ".venv/bin/python": ".venv/bin/python",
        "tools/ls": "tools/ls",
        "bin/setup": "",
        "bin/lib": "",
        ".venv/bin/ruff": "",
        "bin/deep/git": "",
        "git": "",
    }
    assert {each: part_of(in_path, each) for each in parts} == parts
    linked(in_path, "bin/git", "../other/wrapper")
    assert part_of(in_path, "other/wrapper") == "bin/git"


def test_a_program_that_appears_or_changes_under_such_a_name_is_named_and_no_other(in_path: Path):
    assert changed(in_path, "bin/git", "bin/other", ".venv/bin/ruff") == {"bin/git"}
    assert changed(in_path, "tools/ls", ".venv/bin/python", "bin/setup") == {
        "tools/ls",
        ".venv/bin/python",
    }
    assert "bin/git" not in held(in_path)


def test_a_folder_of_path_that_is_a_link_out_is_not_the_projects(in_path: Path, tmp_path: Path):
    (in_path / "bin/setup").unlink()
    (in_path / "bin").rmdir()
    filled(tmp_path / "elsewhere", "git")
    linked(in_path, "bin", str(tmp_path / "elsewhere"))
    watch = AutorunFiles(this_host())
    watch.look([str(in_path)])
    (tmp_path / "elsewhere/git").write_text("mine")
    assert watch.look([str(in_path)]) == []
    (in_path / "bin").unlink()
    filled(in_path, "bin/git")
    assert [(each.path, each.is_new) for each in watch.look([str(in_path)])] == [
        (f"{in_path}/bin/git", True)
    ]


def test_relative_folders_of_path_hang_on_the_project(project, tmp_path, monkeypatch):
    filled(tmp_path / "programs", "git")
    monkeypatch.setenv("PATH", f"node_modules/.bin:{tmp_path}/programs")
    assert part_of(project, "node_modules/.bin/git") == "node_modules/.bin/git"
    assert part_of(project, "node_modules/.bin/tsc") == ""


def test_where_the_home_folder_is_the_project_no_folders_are_looked_through(home: Path):
    filled(home, "a/b")
    host = host_at(home)
    assert Roots(host, home).autorun_part(home.resolve() / "a/b") == ""
    assert index_of(str(home.resolve()))._folders == {}  # pyright: ignore[reportPrivateUsage]


def test_a_link_is_judged_by_what_is_named_below_its_path(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", f"{project}/tools/bin:{os.environ['PATH']}")
    repository(project / ".git", "[core]\nhooksPath = ci/hooks\n")
    linked(project, ".vscode", "conf/ed")
    roots = Roots(this_host(), project)
    for name, part in (("ci", "ci/hooks"), ("conf", ".vscode"), ("tools", "tools"), ("src", "")):
        assert roots.autorun_part(project / name) == ""
        assert roots.autorun_part(project / name, is_link=True) == part
