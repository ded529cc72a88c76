"""What the question about trust says of the files that a project's MCP servers are shown."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from trusting import put, wanting
from ybs.trust.wording import lines_of


def shown(project: Path, settings: dict[str, Any]) -> list[str]:
    found = [line for line in lines_of(wanting(project, settings)) if "of your files" in line]
    return [line.partition(": shows the MCP server ")[2] for line in found]


@pytest.mark.integration
def test_the_question_lists_the_program_that_starts_and_none_of_the_repository_around(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(("git", "init", "-q", project), check=True)
    folders = (project / "bin", home / "bin")
    for folder in folders:
        put(folder, "srv", "#!/bin/sh\n", 0o755)
    monkeypatch.setenv("PATH", f"{os.pathsep.join(map(str, folders))}:{os.environ['PATH']}")
    (app := project / "app").mkdir()
    assert shown(app, {"mcpServers": {"s": {"command": "srv"}}}) == ["s of your files: ~/bin/srv"]


@pytest.mark.integration
def test_the_question_lists_each_file_that_a_server_is_shown(project: Path, home: Path) -> None:
    for name in ("Documents/setup.sh", "notes/a", "venv/bin/python", "venv/pyvenv.cfg"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("")
    (home / "link").symlink_to("notes")
    (project / "srv.py").write_text("")
    server: dict[str, Any] = {
        "command": "~/venv/bin/python",
        "args": [
            "srv.py",
            f"{project}/srv.py",
            "--x=~/Documents/setup.sh",
            "~/missing",
            "/" + "x" * 999,
        ],
        "read": ["~/link"],
        "env": {"A": "~/notes"},
    }
    said = (
        "s of your files: ~/venv, ~/Documents/setup.sh, ~/missing (not there yet), ~/link, ~/notes"
    )
    servers = {"mcpServers": {"s": server, "none": {"command": "/bin/sh", "args": ["srv.py"]}}}
    assert shown(project, servers) == [said]


def test_the_question_lists_what_is_read_by_the_path_that_is_shown(
    project: Path, home: Path
) -> None:
    for name in ("private", "diary", "later"):
        (home / name).mkdir(parents=True)
    read = [f"/dev/..{home}/private", f"/proc/self/../..{home}/diary", f"/usr/../{home}/later", "/dev/null"]  # fmt: skip
    servers = {"mcpServers": {"s": {"command": "/bin/sh", "read": read}}}
    assert shown(project, servers) == ["s of your files: ~/private, ~/diary, ~/later, /dev/null"]


def test_the_question_lists_what_variables_lead_to(project: Path, home: Path) -> None:
    (home / "Documents").mkdir(exist_ok=True)
    (project.parent / "other").mkdir()
    args = ["${HOME}/Documents", "${YBS_PROJECT_DIR}/../other", "${NOT_SET}/x", "${HOME}/none"]
    servers = {"mcpServers": {"s": {"command": "/bin/sh", "args": args}}}
    (said,) = shown(project, servers)
    assert said.startswith("s of your files: ~/Documents, ")
    assert said.endswith("/other, ~/none (not there yet)")


def test_the_question_lists_what_an_entry_leads_to_as_it_is_started(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = project.parent
    for name in ("private", "tools"):
        (beside / name).mkdir()
    (beside / "tools/serve").write_text("")
    (project / "docs").mkdir()
    monkeypatch.setenv("NOTES", str(home))
    monkeypatch.setenv("KEY", "/Zx9kQ2mB7v" + "Lp4RtY")
    server: dict[str, Any] = {
        "command": "../tools/serve",
        "args": ["${YBS_PROJECT_DIR}/../later", "--x=${NO_SUCH:-~/mine}", "${NOTES}/a", "${KEY}"],
        "read": ["docs/../../private", "docs"],
    }
    server["args"] += ["${NOTES}/venv", "${NO_SUCH}/a", "a\0b", "/a\0b"]
    (home / "venv").mkdir(parents=True)
    (found,) = shown(project, {"mcpServers": {"s": server}})
    listed = {each.replace(str(home), "~") for each in found.partition("files: ")[2].split(", ")}
    where = [f"{beside}/{name}".replace(str(home), "~") for name in ("tools/serve", "private")]
    assert listed == {*where, f"{beside}/later (not there yet)"}


@pytest.mark.parametrize("value", ["", "~/envs"])
def test_the_question_lists_the_same_whatever_a_variable_says(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    """What one leads to is shown at no start."""
    for name in ("Documents", "envs"):
        (home / name).mkdir(parents=True)
    if value:
        monkeypatch.setenv("VIRTUAL_ENV", str(home / "envs"))
    args = ["--env=${VIRTUAL_ENV:-~/Documents}", "${VIRTUAL_ENV}", "~/envs"]
    servers = {"s": {"command": "${VIRTUAL_ENV:-~/Documents/run}", "args": args}}
    assert shown(project, {"mcpServers": servers}) == ["s of your files: ~/envs"]


def test_the_question_lists_the_program_that_a_bare_word_means(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is shown alone: beside it lie the person's own scripts."""
    for program in (home / "bin/uvx", home / ".local/bin/npx", project / "bin/uvx"):
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    path = (project / "bin", home / "none", home / "bin", home / ".local/bin", Path("/usr/bin"))
    monkeypatch.setenv("PATH", ":".join(map(str, path)))
    servers = {
        name: {"command": name, "args": ["server.py"]} for name in ("uvx", "npx", "env", "none")
    }
    assert shown(project, {"mcpServers": servers}) == ["uvx of your files: ~/bin/uvx"]
