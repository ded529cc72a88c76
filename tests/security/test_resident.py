"""Programs that run beside a session: what they see and change, in each sandbox of Linux, by what they print and leave."""

import marshal
import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import MAGIC_NUMBER, cache_from_source
from pathlib import Path
from typing import Any

import pytest

from hosts import this_host
from ybs.core.errors import Refused, ToolError
from ybs.security.sandbox import copied_homes
from ybs.security.sandbox import resident as module
from ybs.security.sandbox.choice import choose
from ybs.security.sandbox.landlock import Landlock, open_kernel
from ybs.security.sandbox.launch import Access, Backend, Launch
from ybs.security.sandbox.places import Places
from ybs.security.sandbox.resident import KeptFolder, Resident, home_of, start_resident
from ybs.security.sandbox.scratch import PrivateFolder

LOOK = """
echo "in $PWD: $(ls -A | sort | tr '\\n' ' ')"
echo "home: $(ls -A ~ | tr '\\n' ' ')"
echo kept >> ~/kept 2>/dev/null && echo "home is written"
echo x > "$1/new" 2>/dev/null && echo "project is written"
cat "$1/file" 2>/dev/null
cat "$2/secret" 2>/dev/null || echo "the real home is hidden"
cat "$2/notes/note" 2>/dev/null
echo y > "$2/notes/new" 2>/dev/null && echo "notes are written"
(exec 3<>/dev/tcp/127.0.0.1/$3) 2>/dev/null && echo "network"
echo "VALUE=$VALUE"
"""


@pytest.fixture(params=["bubblewrap", "landlock"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if sys.platform != "linux":
        pytest.skip("these are the sandboxes of Linux")
    if request.param == "landlock":
        kernel = open_kernel()
        if kernel is None or kernel.abi < 1:
            pytest.skip("NO LANDLOCK on this machine: programs in it are untested")

        def in_landlock(places: Places, private: PrivateFolder) -> Landlock:
            return Landlock(places, kernel, "", private)

        monkeypatch.setattr(module, "choose", in_landlock)
    return request.param


@pytest.fixture
def place(project: Path) -> Path:
    host = this_host()
    (project / "file").write_text("a file of the project\n")
    (host.home / "secret").write_text("a secret\n")
    (host.home / "notes").mkdir()
    (host.home / "notes" / "note").write_text("a note\n")
    return host.home


def look(project: Path, place: Path, port: int = 1, /, **given: Any) -> str:
    """Start a look around and return what it prints."""
    command = ("/bin/bash", "-c", LOOK, "look", str(project), str(place), str(port))
    wanted = Resident(**{"key": "mcp-demo", "command": command, **given})
    launch = start_resident(this_host(), project, wanted)
    try:
        done = subprocess.run(
            launch.argv,
            env=launch.environ,
            cwd=project,
            pass_fds=launch.descriptors,
            preexec_fn=launch.before_exec,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        for descriptor in launch.descriptors:
            os.close(descriptor)
    assert launch.scratch == ""
    return done.stdout + done.stderr


@pytest.mark.integration
def test_it_reads_the_project_and_has_a_home_of_its_own_that_stays(
    project: Path, place: Path, kind: str
):
    said = look(project, place)
    assert f"in {project}: file" in said
    assert "a file of the project" in said
    assert "home is written" in said
    assert "the real home is hidden" in said
    assert "project is written" not in said
    assert "a note" not in said
    assert "home: kept" in look(project, place)
    assert not (place / "kept").exists()
    if kind == "bubblewrap":
        assert (home_of(this_host(), "mcp-demo") / "temporary/home/kept").exists()


@pytest.mark.integration
def test_python_keeps_what_it_compiles_in_its_home_and_takes_nothing_of_the_project(project: Path, place: Path, kind: str):  # fmt: skip
    module = project / "served.py"
    module.write_text("print('trusted')")
    cache = Path(cache_from_source(str(module)))
    cache.parent.mkdir()
    code = marshal.dumps(compile("print('owned')", "served.py", "exec"))
    cache.write_bytes(MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8) + code)
    command = ("/bin/sh", "-c", 'cd "$0"; python3 -m served; echo $PYTHONPYCACHEPREFIX=$HOME/.cache/python', str(project))  # fmt: skip
    said, _, rest = look(project, place, command=command).partition("\n")
    assert said == "trusted"
    prefix, home = rest.strip().split("=")
    assert prefix == home
    assert not prefix.startswith(str(project))


@pytest.mark.integration
def test_it_sees_no_project_where_it_gets_none(project: Path, place: Path, kind: str):
    said = look(project, place, project="none")
    assert "a file of the project" not in said
    assert "home is written" in said
    assert f"in {project}" not in said


@pytest.mark.integration
def test_it_writes_where_it_may_and_nowhere_else(project: Path, place: Path, kind: str):
    said = look(project, place, project="write", writable=(place / "notes",))
    assert "project is written" in said or kind == "landlock"  # a new file in a project with .git
    assert "notes are written" in said
    assert (place / "notes" / "new").exists()
    assert "the real home is hidden" in said


@pytest.mark.integration
def test_it_reads_what_it_is_shown(project: Path, place: Path, kind: str):
    said = look(project, place, shown=(place / "notes",), declared={"VALUE": "given"})
    assert "a note" in said
    assert "notes are written" not in said
    assert "VALUE=given" in said


@pytest.mark.integration
def test_a_login_that_it_is_lent_is_at_its_place_in_its_own_home(
    project: Path, place: Path, kind: str
):
    files = (place / ".agent/login.json", place / ".gone/login.json")
    files[0].parent.mkdir()
    files[0].write_text("old")
    (files[0].parent / "settings.json").write_text("theirs")
    words = "ls -A ~/.agent; cat ~/.agent/login.json; echo new > ~/.agent/login.json; cat $0/.agent/settings.json"
    wanted = Resident(
        key="acp-x", command=("/bin/sh", "-c", words, str(place)), network=True, lent=files
    )

    def run() -> str:
        launch = start_resident(this_host(), project, wanted)
        try:
            return subprocess.run(
                launch.argv,
                env=launch.environ,
                cwd=project,
                pass_fds=launch.descriptors,
                preexec_fn=launch.before_exec,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                check=False,
            ).stdout
        finally:
            for descriptor in launch.descriptors:
                os.close(descriptor)

    assert run().split() == ["login.json", "old"]
    assert files[0].read_text() == "new\n", "it may be written, as a login is from time to time"
    link = home_of(this_host(), "acp-x") / "temporary/home/.agent/login.json"
    link.unlink()
    link.write_text("its own")
    os.utime(link, (2e9, 2e9))
    assert run().split() == ["login.json", "its", "own"], "the newer one stays"
    os.utime(link, (1, 1))
    assert run().split() == ["login.json", "new"]
    assert link.is_symlink()
    link.unlink()
    link.parent.rmdir()
    link.parent.symlink_to(files[0].parent)
    run()
    assert not files[0].is_symlink(), (
        "a link of the program's own does not lead to the person's files"
    )
    assert files[0].read_text() == "new\n"


@pytest.mark.integration
def test_it_has_the_network_only_where_it_gets_it(project: Path, place: Path, kind: str):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert "network" in look(project, place, port, network=True).splitlines()
        assert "network" not in look(project, place, port).splitlines()


@pytest.mark.integration
def test_ybs_own_files_stay_hidden(project: Path, place: Path, kind: str):
    host = this_host()
    for folder in (host.config_folder, host.state_folder / "residents" / "other"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "secret").write_text("a secret of ybs\n")
        said = look(project, folder)
        assert "a secret of ybs" not in said


def test_what_is_too_much_to_open_is_refused(project: Path, place: Path):
    wanted = Resident(key="k", command=("true",), shown=(place,))
    with pytest.raises(Refused, match="home folder"):
        start_resident(this_host(), project, wanted)


@pytest.mark.integration
def test_a_project_that_no_sandbox_may_open_is_not_seen(project: Path, place: Path):
    said = look(place, place)
    assert "home is written" in said
    assert "the real home is hidden" in said


def test_without_a_sandbox_nothing_is_started(
    project: Path, place: Path, monkeypatch: pytest.MonkeyPatch
):
    def none(*_: Any) -> Backend:
        return Backend("there is none")

    monkeypatch.setattr(module, "choose", none)
    with pytest.raises(Refused, match="there is none"):
        start_resident(this_host(), project, Resident(key="k", command=("true",)))


def test_a_private_home_is_a_copy_of_the_kept_one_without_what_is_no_file(
    project: Path, place: Path, tmp_path: Path
):
    kept = home_of(this_host(), "k") / "temporary" / "home"
    kept.mkdir(parents=True)
    (kept / "cached").write_text("x")
    (kept / "link").symlink_to("cached")
    os.mkfifo(kept / "pipe")
    for key in ("k", "k", "new"):  # a second start finds what the first one left
        wanted = Resident(key=key, command=("true",))
        for each in start_resident(
            this_host(), project, wanted, private=tmp_path / "own"
        ).descriptors:
            os.close(each)
    copy = tmp_path / "own" / "residents" / "k" / "temporary" / "home"
    assert sorted(each.name for each in copy.iterdir()) == ["cached", "link"]
    assert (copy / "link").is_symlink()
    assert not home_of(this_host(), "new").exists()


def test_no_link_that_comes_while_a_home_is_copied_is_followed(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The program, still running, exchanges a folder for a link as soon as it was listed."""
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("of the person")
    home = home_of(this_host(), "k") / "home"
    (home / "a" / "deep").mkdir(parents=True)
    (home / "a" / "deep" / "x").write_text("kept")
    (home / "b").mkdir()
    (home / "b" / "file").write_text("kept")
    copy = copied_homes._copy_entry

    def exchange(folder: int, name: str, to: Path) -> None:
        copy(folder, name, to)
        if not (home / "b").is_symlink():
            for each, led in ((home / "b", secret), (home / "a" / "deep", secret)):
                each.rename(tmp_path / f"away-{each.name}")
                each.symlink_to(led)
            (home / "b2").symlink_to(secret / "key")

    monkeypatch.setattr(copied_homes, "_copy_entry", exchange)
    wanted = Resident(key="k-here", seed="k", command=("true",))
    for each in start_resident(this_host(), project, wanted).descriptors:
        os.close(each)
    found = home_of(this_host(), "k-here")
    said = [
        each.read_text() for each in found.rglob("*") if each.is_file() and not each.is_symlink()
    ]
    assert "of the person" not in said
    assert (found / "home" / "a").is_dir()


def test_a_new_home_begins_as_a_copy_of_another_one_which_stays_as_it_is(
    project: Path, place: Path, tmp_path: Path
):
    kept = home_of(this_host(), "k") / "temporary" / "home"
    kept.mkdir(parents=True)
    (kept / "cached").write_text("x")
    wanted = Resident(key="k-here", seed="k", command=("true",))

    def begin(**given: Any) -> Path:
        for each in start_resident(this_host(), project, wanted, **given).descriptors:
            os.close(each)
        tops = given.get("private", this_host().state_folder)
        return tops / "residents" / "k-here" / "temporary" / "home"

    assert (begin(private=tmp_path / "own") / "cached").read_text() == "x"
    assert not home_of(this_host(), "k-here").exists()
    here = begin()
    (here / "cached").write_text("y")
    assert (begin() / "cached").read_text() == "y"
    assert (kept / "cached").read_text() == "x"
    assert sorted(each.name for each in kept.parents[2].iterdir()) == ["k", "k-here"]


def test_a_toolchain_that_may_not_be_shown_is_left_out(
    project: Path, place: Path, monkeypatch: pytest.MonkeyPatch
):
    seen: list[Places] = []

    def none(places: Places, _private: PrivateFolder) -> Backend:
        seen.append(places)
        return Backend("")

    monkeypatch.setattr(module, "choose", none)
    good = place / "venv"
    for folder in (good, place):
        folder.mkdir(exist_ok=True)
        (folder / "pyvenv.cfg").write_text("")
    for folder, shown in ((good, True), (place, False)):
        monkeypatch.setenv("VIRTUAL_ENV", str(folder))
        with pytest.raises(Refused):
            start_resident(this_host(), project, Resident(key="k", command=("true",)))
        assert (str(folder) in seen[-1].readable) is shown
    (project / "venv").mkdir()
    (project / "venv/pyvenv.cfg").write_text("")
    monkeypatch.setenv("VIRTUAL_ENV", str(project / "venv"))
    for sees in ("none", "read"):
        with pytest.raises(Refused):
            start_resident(this_host(), project, Resident(key="k", command=("x",), project=sees))
        assert (str(project / "venv") in seen[-1].readable) is (sees == "read")


class FakeBackend:
    """Takes what is to be started, and says how."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.chosen: list[tuple[Places, PrivateFolder]] = []
        self.asked: list[tuple[object, Path, Access]] = []

    def choose(self, places: Places, private: PrivateFolder) -> "FakeBackend":
        self.chosen.append((places, private))
        return self

    def launch(self, command: Sequence[str], folder: Path, environ: object, access: Access) -> Launch:  # fmt: skip
        self.asked.append((command[3:], folder, access))
        return Launch(command, {"HOME": "/home"}, scratch="/goes/with/the/session")


@pytest.mark.parametrize("name", ["bubblewrap", "landlock (reduced)"])
@pytest.mark.parametrize(
    ("kind", "network", "readable", "writable", "begins_in"),
    [
        ("none", False, "", "{work}", "{work}"),
        ("read", True, "{project}", "{work}", "{project}"),
        ("write", False, "", "{work} {project}", "{project}"),
    ],
)
def test_a_program_sees_and_changes_what_it_is_given(
    project: Path, place: Path, monkeypatch: pytest.MonkeyPatch, name: str, kind: Any, network: bool, readable: str,
    writable: str, begins_in: str,
) -> None:  # fmt: skip
    backend, host = FakeBackend(name), this_host()
    monkeypatch.setattr(module, "choose", backend.choose)
    own, notes = host.state_folder / "own", place / "notes"
    own.mkdir(parents=True)
    (place / "shown").mkdir()
    wanted = Resident(
        key="k", command=("run", "it"), project=kind, network=network, own=(own,), declared={"A": "b"},
        shown=(place / "shown", notes), writable=(notes,),
    )  # fmt: skip
    launch = start_resident(host, project, wanted)
    ((places, kept),) = backend.chosen
    names = {"project": project, "work": f"{kept.path}/work"}
    assert places.writable == (*writable.format(**names).split(), str(notes))
    assert places.readable == (str(place / "shown"), str(own), *readable.format(**names).split())
    declared = {"A": "b", **({"HOME": "/tmp/home"} if name == "bubblewrap" else {})}
    given = Access(network=network, declared=declared)
    begin = (begins_in.format(**names), "run", "it")
    assert backend.asked == [(begin, Path(kept.path, "work"), given)]
    assert launch.scratch == ""


@pytest.mark.parametrize(("declared", "home"), [({}, "/tmp/home"), ({"HOME": "/x"}, "/x")])
def test_a_home_that_was_declared_stays(
    project: Path, monkeypatch: pytest.MonkeyPatch, declared: dict[str, str], home: str
) -> None:
    backend = FakeBackend("bubblewrap")
    monkeypatch.setattr(module, "choose", backend.choose)
    wanted = Resident(key="k", command=("x",), declared=declared)
    start_resident(this_host(), project, wanted)
    start_resident(this_host(), this_host().home, wanted)  # is no project
    homes = [access.declared["HOME"] for *_, access in backend.asked]
    assert homes == [home, home]
    work = f"{home_of(this_host(), 'k')}/work"
    assert [places.writable for places, _ in backend.chosen] == [(work,), (work,)]
    assert [command[0] for command, *_ in backend.asked] == [str(project), work]


def test_the_kept_folder_is_private_and_is_not_removed(place: Path):
    kept = KeptFolder(place / "kept")
    assert Path(kept.home).is_dir()
    assert kept.home.startswith(kept.shared)
    for folder in ("", "temporary", "unshared", "work", "temporary/home"):
        assert (place / "kept" / folder).stat().st_mode & 0o777 == 0o700
    assert KeptFolder(place / "kept").path == kept.path, "of several sessions at once"
    kept.remove()
    assert Path(kept.work).is_dir()


def test_the_best_sandbox_is_chosen():
    assert module.choose is choose


@pytest.mark.integration
def test_a_link_that_it_puts_in_place_of_its_home_opens_nothing(
    project: Path, place: Path, kind: str
):
    script = 'cat "$1/notes/note" 2>/dev/null; rmdir ~ 2>/dev/null && ln -s "$1/notes" ~'
    command = ("/bin/sh", "-c", script, "link", str(place))
    said = ""
    for _ in range(2):
        launch = start_resident(this_host(), project, Resident(key="mcp-demo", command=command))
        try:
            said = subprocess.run(
                launch.argv, env=launch.environ, pass_fds=launch.descriptors,
                preexec_fn=launch.before_exec, capture_output=True, text=True, check=False,
            ).stdout  # fmt: skip
        finally:
            for descriptor in launch.descriptors:
                os.close(descriptor)
    assert (home_of(this_host(), "mcp-demo") / "temporary/home").is_symlink()
    assert "a note" not in said


@pytest.mark.parametrize("name", ["LD_PRELOAD", "LD_DEBUG_OUTPUT", "GCONV_PATH"])
def test_no_variable_makes_the_sandbox_itself_do_something(project: Path, place: Path, name: str):
    wanted = Resident(key="k", command=("true",), declared={name: f"{place}/x"})
    with pytest.raises(ToolError, match=f"{name} cannot be declared"):
        start_resident(this_host(), project, wanted)
