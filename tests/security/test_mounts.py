"""Folders that are swapped while a sandbox is being built: the command is not run."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from rows import every_row
from ybs.config.host import Host
from ybs.security.sandbox import bubblewrap, mounts
from ybs.security.sandbox.bubblewrap import Bubblewrap
from ybs.security.sandbox.places import see

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="NOT TESTED: needs Linux")

TABLE = """\
22 1 254:0 / / rw - ext4 /dev/root rw
23 22 254:1 /home /home rw shared:1 - ext4 /dev/home rw
24 23 0:30 / /home/a\\040b rw - tmpfs tmpfs rw
25 23 0:31 /in /home/a\\040b rw - tmpfs tmpfs rw
"""


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mountinfo").write_text(TABLE)
    monkeypatch.setattr(mounts, "_TABLE", str(tmp_path / "mountinfo"))


@every_row(
    ("path", "line"),
    [
        ("/work/p", "254:0 /work/p /work/p"),
        ("/home", "254:1 /home /home"),
        ("/home/me/p", "254:1 /home/me/p /home/me/p"),
        ("/home/a b/p", r"0:31 /in/p /home/a\040b/p"),
        ("/w\n\t\\", r"254:0 /w\012\011\134 /w\012\011\134"),
        ("/", "254:0 / /"),
    ],
)
@pytest.mark.usefixtures("table")
def test_a_mount_is_told_as_the_kernel_tells_it(path: str, line: str) -> None:
    assert mounts.checked(("--bind", path, path), ("x",))[4:] == (line, "--", "x")


@pytest.mark.usefixtures("table")
def test_an_empty_folder_has_any_device_and_what_is_asked_twice_is_looked_for_once() -> None:
    arguments = ("--perms", "0555", "--tmpfs", "/p/secret", *("--ro-bind", "/p", "/p") * 2)
    wanted = mounts.checked(arguments, ("x",))[4:-2]
    assert wanted == ("/ /p/secret", "254:0 /p /p")


def _said(backend: Bubblewrap, folder: Path, *, instead: Sequence[tuple[str, str]] = ()) -> str:
    """Run a command whose mounts were led elsewhere after they had been named."""
    launch = backend.launch(("/bin/sh", "-c", "echo ran"), folder, os.environ)
    argv = list(launch.argv)
    for was, is_now in instead:
        argv[argv.index(was)] = is_now
    try:
        done = subprocess.run(
            argv, env=launch.environ, pass_fds=launch.descriptors, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    finally:
        for descriptor in launch.descriptors:
            os.close(descriptor)
    return f"{done.returncode} {done.stdout}{done.stderr}"


@pytest.fixture
def backend_of(home: Path) -> object:
    program = bubblewrap.find()
    found = None if program is None else bubblewrap.attempt(program)[0]
    if program is None or found is None:
        pytest.skip("NOT TESTED: bubblewrap does not work here")
    return lambda project, **places: Bubblewrap(
        see(Host.of({"HOME": str(home)}), project, **places), program, found, ""
    )


@pytest.mark.integration
@pytest.mark.parametrize(
    "name", ["plain", "two words", "line\nend", "tab\t\\x", "*[a]?", "é\udcff"]
)
def test_a_command_runs_where_nothing_changed(backend_of, tmp_path: Path, name: str) -> None:
    project = tmp_path / name
    (project / ".claude").mkdir(parents=True)
    (project / "a" / "secret").mkdir(parents=True)
    (project / "key").write_text("x")
    assert _said(backend_of(project, blocked=["a/secret", "key"]), project) == "0 ran\n"


@pytest.mark.integration
@pytest.mark.parametrize("name", ["shown", "home/.pyenv"])
def test_what_may_only_be_read_and_was_led_elsewhere_runs_nothing(
    tmp_path: Path, project: Path, name: str, home: Path, backend_of
) -> None:
    for folder in (tmp_path / "shown", home / ".pyenv", tmp_path / "elsewhere"):
        folder.mkdir()
    path = str(home / ".pyenv" if name != "shown" else tmp_path / name)
    backend = backend_of(project, readable=[tmp_path / "shown"])
    said = _said(backend, project, instead=[(path, str(tmp_path / "elsewhere"))])
    assert said.startswith("126 ")
    assert "nothing was run" in said


@pytest.mark.integration
@pytest.mark.parametrize(
    ("was", "is_now"),
    [
        (".claude", "../elsewhere"),  # the source of what is held
        ("", "../elsewhere"),  # the source of the project itself
        ("a", "b"),  # the source of a folder on the way to a blocked path
        ("a/secret", "b"),  # the place of the empty folder
        ("key", "b/key"),  # the place of the empty file
        ("../seen", "../elsewhere"),  # the source of what is seen of another folder
    ],
)
def test_a_mount_that_was_led_elsewhere_runs_nothing(
    backend_of, project: Path, was: str, is_now: str
) -> None:
    for folder in (".claude", "a/secret", "b", "../elsewhere", "../seen"):
        (project / folder).mkdir(parents=True)
    for file in ("key", "b/key"):
        (project / file).write_text("x")
    backend = backend_of(project, blocked=["a/secret", "key"], readable=[project.parent / "seen"])
    path, other = (os.path.normpath(project / name) for name in (was, is_now))
    said = _said(backend, project, instead=[(path, other)])
    assert said.startswith("126 ")
    assert "nothing was run" in said
