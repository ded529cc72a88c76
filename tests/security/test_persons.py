"""What of a project the person's own settings are, name or lead to: asked about by file tools, held for commands, told of."""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from hosts import host_at
from rows import every_row
from scripted import OpenAIServer
from security.test_sandboxed_work import bubblewrap, landlock, run
from trusting import give_trust
from ybs.config import paths
from ybs.config.host import asked_for
from ybs.config.layers import load
from ybs.security.paths import home_links, persons
from ybs.security.paths.autorun_changes import AutorunFiles
from ybs.security.paths.persons import named_by_settings
from ybs.security.paths.roots import Roots
from ybs.security.sandbox.protected import protected
from ybs.session.session import Session
from ybs.testing import call

pytestmark = [pytest.mark.integration, pytest.mark.timeout(60)]

HOOKS, SETTINGS = ".claude/settings.json", ".config/ybs/config.json"
SCRIPTS = ("check.sh", "server.py", "lib/tool.py", "pkg/__main__.py", "pkg/index.js", "README.md")


@pytest.fixture
def here(home: Path) -> Path:
    """Return a project in the home folder that has some scripts."""
    for name in SCRIPTS:
        put(home / "work/here" / name, "x")
    return (home / "work/here").resolve()


def put(file: Path, what: object) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(what if isinstance(what, str) else json.dumps(what))
    return file


def link(home: Path, name: str, target: Path) -> None:
    (home / name).parent.mkdir(parents=True, exist_ok=True)
    (home / name).symlink_to(target)


def hook(command: str) -> dict[str, Any]:
    each = {"type": "command", "command": command, "timeout": 5}
    return {"hooks": {"PostToolUse": [{"hooks": [each]}]}}


def server(*words: str, **more: object) -> dict[str, Any]:
    return {"mcpServers": {"a": {"command": words[0], "args": list(words[1:]), **more}}}


def forget() -> None:
    """Have the home folder looked at anew, as the next process does."""
    for each in (home_links.led_into, home_links.hidden_in, home_links.read_by_ybs):
        each.cache_clear()


def named(home: Path, root: Path, **variables: str) -> list[str]:
    host = host_at(home)
    if variables:
        host = type(host).of({**host.environ, **variables})
    return sorted(os.path.relpath(path, root) for path in named_by_settings(host, str(root)))


@every_row(
    ("file", "tree", "found"),
    [
        (HOOKS, hook("~/work/here/check.sh"), "check.sh"),
        (HOOKS, hook('sh -c "exec $HOME/work/here/check.sh --quiet" > log'), "check.sh"),
        (HOOKS, hook("cd ~/work/here && ./check.sh"), "check.sh"),
        (HOOKS, hook("cd ~/work && python3 here/lib/tool.py"), "lib/tool.py"),
        (HOOKS, hook('python3 "$CLAUDE_PROJECT_DIR"/lib/tool.py'), "lib/tool.py"),
        (HOOKS, hook("$SCRIPTS/check.sh"), "check.sh"),
        (HOOKS, {"statusLine": {"command": "~/work/here/check.sh"}}, "check.sh"),
        (SETTINGS, server("python3", "HOME/work/here/server.py"), "server.py"),
        (SETTINGS, server("uv", "--directory", "HOME/work/here", "run", "server.py"), "server.py"),
        (SETTINGS, server("python3", "server.py", cwd="~/work/here"), "server.py"),
        (
            SETTINGS,
            server("python3", "-m", "lib.tool", env={"P": "HOME/work/here"}),
            "lib.tool lib/tool.py",
        ),
        (SETTINGS, server("python3", "-u", "HOME/work/here/pkg"), "pkg/__main__.py pkg/index.js"),
        (SETTINGS, {"profiles": {"x": server("~/work/here/check.sh")}}, "check.sh"),
        (SETTINGS, {"context": {"system_prompt_file": "~/work/here/README.md"}}, "README.md"),
        (SETTINGS, server("HOME/work/here/made-later.py"), "made-later.py"),
        (
            SETTINGS,
            {"a": [*(f"/none/{n}" for n in range(2_100)), "~/work/here/check.sh"]},
            "check.sh",
        ),
        # What a shell's words run where it starts in the project, as with the trust.
        (HOOKS, hook("python3 lib/tool.py; ./check.sh; cat README.md"), "check.sh lib/tool.py"),
        (HOOKS, hook("cd lib && ./tool.py --x README.md"), "lib/tool.py"),
        (
            HOOKS,
            hook("(cd lib; ls); env A=1 sh check.sh README.md"),
            "check.sh lib/check.sh",
        ),
        (HOOKS, hook("[ -f lib/tool.py ] && . lib/tool.py || ./gone.sh"), "gone.sh lib/tool.py"),
        (HOOKS, hook("for f in lib/*.py; do python3 $f; done"), "lib lib/tool.py"),
        (HOOKS, hook("./lib; ."), ""),
        (SETTINGS, server("python3", "server.py", "README.md"), "server.py"),
        (SETTINGS, {"providers": {"a": {"command": ["./check.sh", "README.md"]}}}, "check.sh"),
        (SETTINGS, {"agents": {"a": {"args": ["server.py"], "command": "node"}}}, "server.py"),
        # What is named from the home folder, however a program goes there.
        (HOOKS, hook("cd ~ && ./work/here/check.sh"), "check.sh"),
        (HOOKS, hook("cd; work/here/check.sh"), "check.sh"),
        (HOOKS, hook("pushd ~ ; sh work/here/made-later.sh"), "made-later.sh"),
        (HOOKS, hook("sh<~/work/here/check.sh"), "check.sh"),
        (HOOKS, hook("${X:-~}/work/here/check.sh"), "check.sh work/here/check.sh"),
        (HOOKS, hook("$(echo ~)/work/here/check.sh"), "check.sh work/here/check.sh"),
        # Folders of data, other words, and what a runner is given.
        (SETTINGS, server("npx", "-y", "files", "HOME/work/here", "HOME/work/here/pkg"), ""),
        (SETTINGS, server("node", "/opt/files.js", "HOME/work/here/pkg"), ""),
        (HOOKS, hook("make check.sh; npm run lib/tool.py; npx files README.md"), ""),
        (SETTINGS, {"mcpServers": {"a": {"command": "npx", "args": ["check"]}}}, ""),
        (SETTINGS, {"llm": {"model": "lib/tool.py"}, "env": {"A": "lib/tool.py"}}, ""),
        (HOOKS, hook("cd /usr/bin && ./check.sh"), ""),
        (HOOKS, hook("'it''s"), ""),
        (HOOKS, {"permissions": {"allow": ["Bash(git diff:*)", "Edit(~/work/here/check.sh)"]}}, ""),
        (SETTINGS, {"safety": {"allow": ["edit_file(~/work/here/check.sh)"]}}, ""),
        (HOOKS, "{", ""),
        (HOOKS, [1], ""),
    ],
)
def test_what_settings_of_the_persons_name_is_theirs_in_any_spelling(home, here, file, tree, found):
    put(home / file, json.loads(json.dumps(tree).replace("HOME", str(home))))
    assert " ".join(named(home, here, SCRIPTS=str(here))) == found
    (home / file).unlink()
    assert named(home, here) == []


def test_a_folder_that_is_entered_elsewhere_may_have_a_link_that_leads_here(home, here):
    link(home, "scripts/check", here / "check.sh")
    link(home, "bin/tool", here / "lib/tool.py")
    link(home, "bin/gone", here / "gone")
    put(home / HOOKS, hook("cd ~/scripts && ./check"))
    assert named(home, here) == ["check.sh"]
    put(home / HOOKS, hook("tool --quiet; gone"))
    assert named(home, here) == []
    assert named(home, here, PATH=f"{home}/none:{home}/bin:/usr/bin") == ["lib/tool.py"]
    put(home / HOOKS, hook("tool.py"))
    assert named(home, here, PATH=f"{here}/lib") == ["lib/tool.py"]


@pytest.mark.parametrize(
    "name",
    [
        ".claude/agents/a.md",
        ".claude/commands/deep/a.md",
        ".claude/skills/mine/scripts/run.py",
        ".claude/settings.json",
        ".agents/skills/mine",
        ".config/ybs/commands/a.md",
        ".config/ybs/agents/a.md",
        ".config/ybs/tools/a",
        ".config/ybs/skills/mine",
        ".ybs/tools/a",
    ],
)
def test_what_links_in_the_places_that_ybs_reads_lead_to_is_the_persons(home, here, name):
    link(home, name, here / "check.sh")
    assert named(home, here) == ["check.sh"]
    forget()
    (home / name).unlink()
    link(home, "other", here / "lib")
    link(home, name, home / "other")
    assert named(home, here) == ["lib"]


def test_links_in_what_a_link_leads_to_count_and_second_names_do(home, here):
    link(home, ".claude/skills/mine", home / "skills")
    link(home, "skills/a.md", here / "README.md")
    link(home, ".claude/skills/round", home / ".claude/skills")
    link(home, ".claude/skills/all", home)
    put(home / "skills/run.py", "x")
    os.link(home / "skills/run.py", here / "again.py")
    assert named(home, here) == ["README.md", "again.py"]


def test_of_very_many_folders_those_near_the_top_count_and_close_the_project(
    home, here, monkeypatch
):
    link(home, ".claude/skills/a/x", here / "README.md")
    link(home, ".claude/skills/a/b/c/d/e/f/g/h/i/j/k/l/m/n/x", here / "check.sh")
    link(home, ".claude/skills/node_modules/x", here / "check.sh")
    assert named(home, here) == ["README.md", "check.sh"]
    forget()
    monkeypatch.setattr(home_links, "_MOST_FOLDERS", 20)
    assert named(home, here) == [".", "README.md"]


@pytest.mark.parametrize(
    ("root", "setting"),
    [
        (".claude", ""),
        (".claude/skills/mine", ""),
        (".claude/agents", ""),
        (".agents", ""),
        (".emacs.d", ""),
        (".dotfiles", ""),
        (".config/nvim", ""),
        ("linked", "pointer"),
        ("dotfiles/claude", "link"),
        ("work/mine", "skill"),
        ("work/mine/scripts", "skill"),
        ("tools/deep", "search"),
        ("hooks", "git"),
        ("hooks/sub", "git"),
    ],
)
def test_a_root_that_is_or_lies_in_such_a_place_is_the_persons_as_a_whole(home, root, setting):
    link(home, ".claude" if setting == "link" else ".a/other", home / "dotfiles/claude")
    link(home, ".config/x" if setting == "pointer" else "x", home / "linked")
    link(home, ".config/ybs/skills/mine" if setting == "skill" else ".x/y", home / "work/mine")
    if setting == "search":
        put(home / SETTINGS, {"tools": {"search_paths": ["./tools", "~/tools"]}})
    if setting == "git":
        put(home / ".gitconfig", "[core]\n\thooksPath = ~/hooks\n")
    put(home / root / "file", "x")
    top = (home / root).resolve()
    assert named(home, top)[0] == "."
    roots = Roots(host_at(home), top)
    assert roots.autorun_part(top / "file") == "file"
    assert str(top) in protected(host_at(home), str(top))


@pytest.mark.parametrize(
    "root",
    ["here", ".claude/projects/x", ".codex/worktrees/x", ".local/src/x", "linked", "hooks"],
)
def test_nothing_changes_elsewhere(home, root):
    link(home, ".pointers/here", home / "linked")
    for name in (".claude/agents/a.md", ".claude/hooks/a.sh", ".config/ybs/commands/a.md"):
        put(home / name, "x")
    put(home / ".gitconfig", "[core]\n\thooksPath =\n[include]\n\tpath = ~/hooks\n")
    put(home / HOOKS, hook("~/.claude/hooks/a.sh"))
    put(home / SETTINGS, server("npx", "-y", "files", str(home / root)))
    put(home / root / "file", "x")
    top = (home / root).resolve()
    assert named(home, top) == []
    assert protected(host_at(home), str(top)) == []


def test_settings_that_were_asked_for_by_name_are_the_persons_too(home, here, monkeypatch):
    file = put(here / "ci.json", server("~/work/here/check.sh"))
    assert named(home, here) == []
    load(host_at(home), folder=here, config_file=file)
    assert named(home, here) == ["check.sh", "ci.json"]
    asked_for.discard(str(file))


def test_files_of_settings_are_read_once_for_each_state(home, here, monkeypatch):
    put(home / HOOKS, hook("~/work/here/check.sh"))
    assert named(home, here) == ["check.sh"]
    host = host_at(home)
    assert named_by_settings(host, str(here))
    monkeypatch.setattr(persons, "read_beginning", None)
    assert named_by_settings(host, str(here)) == [str(here / "check.sh")]


def test_no_reader_has_a_place_of_the_persons_that_is_not_in_the_list():
    source = Path(paths.__file__).parents[1]
    own = re.compile(
        r"(?:home / |config_folder / )f?[\"'](?:\.(?:claude|agents|ybs)/|commands|agents|skills\b)"
    )
    found = [
        f"{file.relative_to(source)}: {line.strip()}"
        for file in source.rglob("*.py")
        for line in file.read_text().splitlines()
        if own.search(line)
    ]
    # These write there, or say where it is.
    assert {each.partition(":")[0] for each in found} == {
        *("frontends/subcommands/skills.py", "commands/learn.py")
    }


def test_what_changed_in_it_is_told_but_for_what_git_does(home):
    put(home / ".gitconfig", "[core]\n\thooksPath = ~/hooks\n")
    put(home / "hooks/pre-commit", "x")
    put(home / "hooks/.git/config", "x")
    files, folders = AutorunFiles(host_at(home)), [str((home / "hooks").resolve())]
    assert files.look(folders) == []
    put(home / "hooks/pre-commit", "evil")
    put(home / "hooks/.git/index", "y")
    assert [each.path.rpartition("/")[2] for each in files.look(folders)] == ["pre-commit"]


on_linux = pytest.mark.skipif(sys.platform != "linux", reason="NOT TESTED: needs Linux")


def test_what_a_hook_runs_of_an_environment_is_asked_about_and_can_be_made_anew(home, here):
    put(here / ".venv/bin/ruff", "x")
    put(home / HOOKS, hook(".venv/bin/ruff format; ./check.sh"))
    roots = Roots(host_at(home), here)
    for name in (".venv/bin/ruff", "check.sh"):
        assert roots.autorun_part(here / name) == name
    assert protected(host_at(home), str(here)) == [f"{here}/check.sh"]


@on_linux
@pytest.mark.parametrize("make", [bubblewrap, landlock])
def test_commands_cannot_write_it(make, home: Path, here: Path):
    link(home, ".claude/hooks/check", here / "check.sh")
    link(home, ".config/ybs/commands/deep/a.md", here / "README.md")
    put(home / HOOKS, hook("~/.claude/hooks/check; ./pkg/__main__.py"))
    put(home / SETTINGS, server("uv", "--directory", str(here), "run", "lib/tool.py"))
    tried = "; ".join(f"(echo evil > {name})" for name in SCRIPTS)
    moved = "mv lib other; mkdir lib; echo evil > lib/tool.py"
    run(make(here, home), f"{tried}; {moved}; true", here)
    assert {name for name in SCRIPTS if (here / name).read_text() == "x"} == {
        *("check.sh", "README.md", "lib/tool.py", "pkg/__main__.py")
    }


@on_linux
@pytest.mark.parametrize("make", [bubblewrap, landlock])
def test_a_root_that_is_the_persons_is_read_only_for_commands(make, home: Path):
    hooks = put(home / "hooks/pre-commit", "x").parent.resolve()
    put(home / ".gitconfig", "[core]\n\thooksPath = ~/hooks\n")
    tried = "echo evil > pre-commit; echo evil > pre-push; mkdir x; rm pre-commit; ls"
    assert run(make(hooks, home), f"({tried}) 2>/dev/null", hooks).split() == ["pre-commit"]
    assert (hooks / "pre-commit").read_text() == "x"


async def edited(folder: Path, name: str, old: str, mode: str) -> bool:
    """Return whether a model could edit a file in a folder, where nobody can be asked."""
    script = [
        call("read_file", path=name),
        call("edit_file", path=name, old_text=old, new_text=f"{old} # evil"),
        "Done.",
    ]
    async with OpenAIServer(script) as model:
        options: dict[str, Any] = {"provider": "openai", "endpoint": model.url, "model": "scripted"}
        async with Session.open(folder, sandbox=False, mode=mode, **options) as session:
            await session.send("tidy up")
    return "evil" in (folder / name).read_text()


@pytest.mark.parametrize("mode", ["ask", "accept-edits", "auto"])
@pytest.mark.parametrize(
    ("folder", "name", "old"),
    [
        ("work/here", "check.sh", "x"),
        ("work/here", "README.md", "x"),
        ("work/here", "server.py", "x"),
        ("hooks", "pre-commit", "x"),
        (".claude", "settings.json", "timeout"),
        ("work/here", "lib/tool.py", "x"),
        ("work/here", "pkg/index.js", "x"),
        ("work/here", "pkg/__main__.py", "x"),
        ("work/here", "free.py", "x"),
    ],
)
async def test_no_file_tool_edits_it_unasked(home: Path, here: Path, mode, folder, name, old):
    link(home, ".claude/hooks/check", here / "check.sh")
    link(home, ".config/ybs/commands/a.md", here / "README.md")
    put(
        home / HOOKS,
        hook("~/.claude/hooks/check; ./pkg/index.js; cd ~ && work/here/pkg/__main__.py"),
    )
    put(home / SETTINGS, {"mcpServers": {"a": {"command": "true", "args": [f"{here}/server.py"]}}})
    (home / SETTINGS).chmod(0o600)
    put(home / "hooks/pre-commit", "x")
    alias = "[alias]\n\tst = !$HOME/work/here/lib/tool.py --short\n"
    put(home / ".gitconfig", f"[core]\n\thooksPath = ~/hooks\n{alias}")
    put(here / "free.py", "x")
    if mode == "auto":
        give_trust(home / folder)
    assert await edited(home / folder, name, old, mode) is (name == "free.py")
