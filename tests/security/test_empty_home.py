"""The home folder that commands find: toolchains are there, what holds keys among them is not."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hosts import this_host
from security.escapes.world import spawn
from security.test_sandboxed_work import bubblewrap, landlock
from ybs.config.host import Host
from ybs.core.errors import Refused
from ybs.security.paths.roots import Roots
from ybs.security.sandbox.launch import Backend
from ybs.security.sandbox.places import see

CANARY = "canary-of-the-home"
KEYS = (
    *(".m2/settings-security.xml", ".m2/settings.xml", ".m2/repository/settings-security.xml"),
    *(".gem/credentials", ".gem/ruby/credentials", ".nvm/.npmrc", ".nvm/.netrc"),
    *(".nvm/versions/node/v20/etc/npmrc", ".pyenv/.netrc", ".pyenv/.pypirc", ".rustup/.netrc"),
    *(".pyenv/versions/3.12/pip.conf", ".pyenv/versions/3.12/envs/work/pip.conf"),
    *(".dotnet/corefx/cryptography/x509stores/my/a.pfx", ".dotnet/NuGet/NuGet.Config"),
    *("miniconda3/.condarc", "miniconda3/envs/x/.condarc", "miniconda3/.ssh/id_rsa"),
    *(".cargo/credentials.toml", ".rbenv/.bundle/x", ".local/share/uv/credentials/c"),
    *(".local/share/uv/tools/black/pip.conf", ".sdkman/candidates/gradle/8/gradle.properties"),
)
NEEDED = (
    *(".cargo/bin/cargo", ".pyenv/versions/3.12/bin/python", ".nvm/versions/node/v20/bin/node"),
    *(".rustup/settings.toml", "miniconda3/bin/conda", ".dotnet/dotnet", ".m2/repository/a/b.jar"),
    *(
        "miniconda3/lib/python3/site-packages/a/.env",
        ".sdkman/candidates/maven/3/conf/settings.xml",
    ),
)

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(sys.platform != "linux", reason="NOT TESTED: needs Linux"),
]


def plant(home: Path) -> None:
    for name in (*KEYS, *NEEDED):
        file = home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(CANARY if name in KEYS else "tool")


def said(backend: Backend, project: Path, script: str) -> str:
    launch = backend.launch(("sh", "-c", script), project, {"PATH": "/usr/bin:/bin"})
    out, _ = spawn(launch, project, os.getuid()).communicate(timeout=30)
    return out


@pytest.mark.parametrize("make", [bubblewrap, landlock])
def test_no_key_of_a_toolchain_is_seen_and_all_of_the_rest_is(
    make: Callable[..., Backend], project: Path, home: Path
):
    plant(home)
    backend = make(project, home)
    files = " ".join(f"'{home}/{name}'" for name in (*KEYS, *NEEDED))
    out = said(backend, project, f"for f in {files}; do cat $f; echo; done 2>/dev/null")
    assert CANARY not in out
    assert out.split().count("tool") == len(NEEDED)
    assert said(backend, project, f"grep -rls canary '{home}'") == ""


def test_a_toolchain_on_another_disk_is_looked_through_as_well(
    project: Path, home: Path, tmp_path: Path
):
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk" / ".netrc").write_text(CANARY)
    (tmp_path / "disk" / "version").write_text("tool")
    (home / ".pyenv").symlink_to(tmp_path / "disk")
    out = said(bubblewrap(project, home), project, f"cat '{home}'/.pyenv/* '{home}'/.pyenv/.netrc")
    assert out == "tool"


def test_a_toolchain_in_the_project_is_the_projects(project: Path, home: Path):
    (project / ".venv").mkdir()
    (project / ".venv" / "pip.conf").write_text("x")
    places = see(Host.of({"HOME": str(home)}), project, readable=[project / ".venv"])
    assert places.hidden == []


@pytest.mark.parametrize("place", [".cache/ybs", ".config/ybs", ".local/state/ybs"])
def test_a_link_in_the_place_of_a_folder_of_ybs_opens_its_target_to_nobody(
    project: Path, home: Path, place: str
):
    target = project / "data"
    target.mkdir()
    (target / "old").write_text(CANARY)
    (home / place).parent.mkdir(parents=True, exist_ok=True)
    (home / place).symlink_to(target)
    roots = Roots(this_host(), project)
    for write in (True, False):
        with pytest.raises(Refused, match="ybs's own files"):
            roots.resolve("data/old", is_write=write)
    script = "cat data/old; echo evil > data/new; echo evil > data/old; mv data moved; rmdir data"
    assert said(bubblewrap(project, home), project, script) == ""
    assert sorted(path.name for path in project.iterdir()) == ["data"]
    assert [path.name for path in target.iterdir()] == ["old"]
    assert (target / "old").read_text() == CANARY


@pytest.mark.parametrize("place", [".cache/ybs", ".config/ybs"])
def test_a_link_to_the_project_itself_leaves_no_sandbox_and_runs_nothing(
    project: Path, home: Path, place: str
):
    (home / place).parent.mkdir(parents=True, exist_ok=True)
    (home / place).symlink_to(project)
    with pytest.raises(Refused, match="ybs's own files"):
        see(Host.of({"HOME": str(home)}), project)


@pytest.mark.parametrize("make", [bubblewrap, landlock])
def test_a_second_name_in_the_project_opens_no_closed_file_and_changes_no_setting(
    make: Callable[..., Backend], project: Path, home: Path
) -> None:
    for name in (".pgpass", ".config/ybs/keys.json", ".bashrc", ".config/mytool"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(f"{CANARY} of {name}")
        (project / "docs" / name).parent.mkdir(parents=True, exist_ok=True)
        os.link(home / name, project / "docs" / name)
    os.link(project / "docs" / ".bashrc", project / "docs" / "again")
    names = ".pgpass .config/ybs/keys.json .bashrc .config/mytool again"
    script = f"for each in {names}; do cat docs/$each; echo x >docs/$each; done"
    found = said(make(project, home), project, script)
    assert f"{CANARY} of .bashrc" in found
    assert f"{CANARY} of .config/mytool" in found
    assert ".pgpass" not in found.replace("docs/.pgpass", "")
    assert "keys.json" not in found.replace("docs/.config/ybs/keys.json", "")
    for name in (".pgpass", ".config/ybs/keys.json", ".bashrc", ".config/mytool"):
        assert (home / name).read_text() == f"{CANARY} of {name}"
