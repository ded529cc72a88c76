"""What a server's program is shown, and how it is started."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hosts import host_at
from rows import every_row
from ybs.config.variables import project_variables
from ybs.core.errors import Refused
from ybs.security.own_programs import Start, with_git_setting
from ybs.security.paths.roots import Roots
from ybs.security.sandbox import resident as resident_module
from ybs.security.sandbox.choice import choose
from ybs.security.sandbox.landlock import Landlock, open_kernel
from ybs.security.sandbox.launch import Launch
from ybs.security.sandbox.resident import Resident, start_resident
from ybs.tools.mcp.launching import (
    alone,
    key_of,
    launch_bare,
    needed_by,
    program_of,
    resident_of,
    sees,
)
from ybs.tools.mcp.settings import BadServer, Server, filled, server_of
from ybs.tools.workspace import Workspace
from ybs.trust.shown import listed_for


class Place:
    """A home with a project and programs in it."""

    def __init__(self, home: Path, **more: str) -> None:
        self.home, self.project = home, home / "project"
        self.project.mkdir(parents=True)
        for name in ("bin/npx", "apps/server/dist/index.js", "apps/server/package.json", "one.py"):
            path = home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("#!/bin/sh\n")
            path.chmod(0o755)
        (home / "data").mkdir()
        (home / "data/todo.md").write_text("")
        (home / "apps/server/package.json").chmod(0o644)
        host = host_at(home)
        environ = {**host.environ, "PATH": f"{home}/bin:/usr/bin:/bin", "NODE_ENV": "x", **more}
        self.host = type(host).of(environ)
        self.host.work_in(self.project)
        roots = Roots(self.host, self.project, (), ())
        self.workspace = Workspace(roots)

    def resident(self, **entry: Any) -> Resident:
        return self.resident_of(server_of("demo", entry), self.start(**entry))

    def resident_of(self, server: Server, start: Start, seen: Sequence[str] = ()) -> Resident:
        program = program_of(server, self.workspace, start)
        return resident_of(server, self.workspace, start, program, seen=seen)

    def bare(self, server: Server, start: Start) -> Launch:
        program = program_of(server, self.workspace, start)
        return launch_bare(server, self.workspace, start, program)

    def start(self, **entry: Any) -> Start:
        return self.workspace.own_programs.start(server_of("demo", entry).starts_in)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place((tmp_path / "home").resolve())


def test_a_program_is_found_on_the_persons_path_and_shown_with_what_lies_around_it(place: Place):
    found = place.resident(command="npx", args=["-y", "server"])
    assert found.command == (f"{place.home}/bin/npx", "-y", "server")
    assert found.shown == (place.home / "bin",)
    assert (found.project, found.network, found.writable) == ("read", True, ())


@pytest.mark.integration
@every_row(
    "word, shown",
    [
        ("~/apps/server/dist/index.js", "apps/server"),
        ("~/data", "data"),
        ("--root=~/data", "data"),
        ("~/one.py", "one.py"),
        ("~/data/todo.md", "data/todo.md"),
        ("~/apps/server/package.json", "apps/server/package.json"),
        ("~/missing", None),
        ("/usr/bin/env", None),
        ("data", None),
        ("/", None),
        ("/" + "x" * 5_000, None),
    ],
)
def test_what_arguments_name_is_shown(word: str, shown: str | None, tmp_path: Path):
    place = Place((tmp_path / word.replace("/", "_")[:40]).resolve())
    found = place.resident(command="/bin/sh", args=[word.replace("~", str(place.home))])
    assert found.shown == (() if shown is None else (place.home / shown,))


def test_what_runs_a_script_is_shown_with_its_libraries(place: Place):
    python = place.home / "py/3.11/bin/python3"
    python.parent.mkdir(parents=True)
    python.write_text("")
    venv = place.home / "tool/venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "pyvenv.cfg").write_text("")
    (venv / "bin/python").symlink_to(python)
    script = venv / "bin/serve"
    script.write_text(f"#!{venv}/bin/python\n")
    for program in (python, script):
        program.chmod(0o755)
    found = place.resident(command=str(script))
    assert set(found.shown) == {venv, place.home / "py/3.11"}


def test_a_program_of_the_home_folders_own_prefix_has_none_of_the_persons_data(place: Place):
    (place.home / ".local/share/mail").mkdir(parents=True)
    program = place.home / ".local/bin/serve"
    program.parent.mkdir()
    program.write_text("")
    program.chmod(0o755)
    assert place.resident(command=str(program)).shown == (program.parent,)


def test_what_lies_in_the_project_is_seen_as_the_project_is(place: Place):
    (place.project / "server.py").write_text("")
    words = [str(place.project / "server.py")]
    assert place.resident(command="/bin/sh", args=words).shown == ()
    hidden = place.resident(command="/bin/sh", args=words, project="none")
    assert hidden.shown == (place.project / "server.py",)


def test_a_program_of_the_project_is_one_only_by_its_path(place: Place):
    tool = place.project / "bin" / "tool"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    host = type(place.host).of({**place.host.environ, "PATH": str(tool.parent)})
    roots = Roots(host, place.project, (), ())
    place.workspace = Workspace(roots)
    with pytest.raises(BadServer, match="tool is not on your PATH"):
        place.resident(command="tool")
    with pytest.raises(BadServer, match=r"no file \./bin/tool: it started outside of the project"):
        place.resident(command="./bin/tool")
    asked_for = place.resident(command="./bin/tool", cwd="project")
    assert asked_for.command == (str(tool),)
    assert asked_for.start == Start(folder=place.project, environ=host.environ)


@pytest.mark.integration
@every_row(
    "entry, why",
    [
        ({"command": "nosuch"}, "nosuch is not on your PATH"),
        ({"command": "./nosuch"}, "there is no file ./nosuch"),
        ({"command": "npx", "read": ["~/nosuch"]}, "there is no ~/nosuch"),
        ({"command": "npx", "args": ["~"]}, "no sandbox may open"),
        ({"command": "npx", "args": ["~/"]}, "no sandbox may open"),
        ({"command": "npx", "write": ["~"]}, "no sandbox may open"),
    ],
)
def test_what_cannot_be_started_is_said(entry: dict[str, Any], why: str, tmp_path: Path):
    place = Place((tmp_path / str(len(list(tmp_path.iterdir())))).resolve())
    with pytest.raises(BadServer, match=why):
        place.resident(**entry)


OTHERS = [{"from": "project"}, {"from": "editor"}, {"from": "plugin", "root": "/srv/plugin"}]


@pytest.mark.integration
@pytest.mark.parametrize("whose", [{}, *OTHERS])
@pytest.mark.parametrize("project", ["none", "read"])
def test_a_link_of_a_project_opens_nothing_to_any_server(place: Place, whose, project):
    """Whoever has written the entry: the link is the project's."""
    (place.project / "notes").symlink_to(place.home / "data")
    (place.project / "apps").symlink_to(place.home / "apps")
    said = "leads to ~/(data|apps)[^ ]* by a link that a project may have put there; name that"
    names = ("notes", "notes/todo.md", "apps/server/dist/index.js")
    entry = {"command": "npx", "project": project, **whose}
    for word in (f"{place.project}/{name}" for name in names):
        for args in ([word], [f"--root={word}"]):
            if whose and project == "none":  # it sees nothing that it names in the project
                assert place.resident(**entry, args=args).shown == (place.home / "bin/npx",)
                continue
            with pytest.raises(BadServer, match=said):
                place.resident(**entry, args=args)
    with pytest.raises(BadServer, match=said):
        place.resident(**{**entry, "command": f"{place.project}/{names[-1]}", "project": "read"})
    found = place.resident(**entry, args=[f"{place.project}/notes", str(place.home / "data")])
    assert set(found.shown) >= {place.home / "data"}


@pytest.mark.integration
def test_a_link_of_a_project_opens_nothing_that_the_persons_own_entry_names(place: Place):
    (place.project / "notes").symlink_to(place.home / "data")
    (place.project / "hooks").symlink_to(".git/hooks")
    (place.project / ".git/hooks").mkdir(parents=True)
    said = "leads to ~/data by a link that a project may have put there; name that place"
    for name in ("notes", f"{place.project}/notes", "~/project/notes"):
        for key in ("read", "write"):
            with pytest.raises(BadServer, match=said):
                place.resident(command="npx", **{key: [name]})
    with pytest.raises(BadServer, match=r"leads to ~/project/\.git/hooks by a link"):
        place.resident(command="npx", write=["hooks"])
    assert place.home / "data" in place.resident(command="npx", write=["~/data"]).writable
    named = place.resident(command="npx", args=[f"{place.project}/notes"], read=["~/data"])
    assert place.home / "data" in named.shown


@pytest.mark.integration
def test_a_link_of_a_project_opens_nothing_to_another_agent(place: Place):
    (place.project / "docs").symlink_to(place.home / "data")
    program = str(place.home / "bin/npx")
    assert needed_by([program, str(place.home / "data")], place.host, place.project) == [
        place.home / "bin",
        place.home / "data",
    ]
    with pytest.raises(Refused, match="~/project/docs leads to ~/data by a link"):
        needed_by([program, f"--x={place.project}/docs"], place.host, place.project)


@pytest.mark.integration
def test_a_link_in_what_a_server_changes_opens_nothing_to_it(place: Place):
    (place.home / "kept").mkdir()
    (place.home / "kept/out").symlink_to(place.home / "data")
    words = [f"{place.home}/kept/out"]
    assert place.home / "data" in place.resident(command="npx", args=words).shown
    with pytest.raises(BadServer, match="~/kept/out leads to ~/data by a link"):
        place.resident(command="npx", args=words, write=["~/kept"])


@pytest.mark.integration
@pytest.mark.parametrize("whose", [{}, *OTHERS])
def test_a_link_of_a_project_to_what_every_server_sees_is_in_nobodys_way(place: Place, whose):
    python = place.home / ".pyenv/versions/3.11/bin/python3"
    python.parent.mkdir(parents=True)
    python.write_text("")
    python.chmod(0o755)
    (place.project / "lib").mkdir()
    links = {"python": python, "env": Path("/usr/bin/env"), "src": place.project / "lib"}
    for name, target in links.items():
        (place.project / name).symlink_to(target)
    for name in links:
        shown = place.resident(command="/bin/sh", args=[f"{place.project}/{name}"], **whose).shown
        assert shown == ()


@pytest.mark.integration
def test_a_link_of_a_project_opens_no_more_than_the_person_was_shown(place: Place):
    (place.project / "docs").symlink_to(place.home / "data")
    (place.project / "run").symlink_to(place.home / "apps/server/dist/index.js")
    theirs: dict[str, Any] = {"command": "npx", "from": "project"}
    for key in ("read", "write"):
        with pytest.raises(BadServer, match="docs is a link to ~/data"):
            place.resident(**theirs, **{key: ["docs"]})
        with pytest.raises(BadServer, match="is a link to ~/data"):
            place.resident(**theirs, **{key: [f"{place.project}/docs"]})
        (place.project / "apps").mkdir(exist_ok=True)
        with pytest.raises(BadServer, match="is a link to ~/apps"):
            place.resident(**theirs, **{key: ["docs/../apps"]})
    for word in (f"--root={place.project}/docs", f"{place.project}/docs/todo.md"):
        with pytest.raises(BadServer, match=r"leads to ~/data[^ ]* by a link"):
            place.resident(**theirs, args=[word])
    with pytest.raises(BadServer, match=r"~/project/run leads to ~/apps/server/dist/index\.js by"):
        place.resident(**{**theirs, "command": "./run"})


@pytest.mark.integration
def test_a_link_of_the_persons_or_the_systems_is_in_no_projects_way_and_opens_nothing(place: Place):
    (place.home / "link").symlink_to(place.home / "data")
    (place.home / "npx").symlink_to(place.home / "bin/npx")
    words = ("~/link", "--root=~/link/todo.md", "--log=/dev/stderr", "/dev/stdin", "/proc/self/fd")
    for word in (*words, "/proc/self/cwd", "/dev/null", "/sys/class/net", "--to=/var/run/x"):
        found = place.resident(**{"command": "npx", "args": [word], "from": "project"})
        assert found.shown == (place.home / "bin/npx",)
    with pytest.raises(BadServer, match="~/npx is a link to ~/bin/npx; a project's file has to"):
        place.resident(**{"command": "~/npx", "from": "project"})


@pytest.mark.integration
@pytest.mark.parametrize("whose", [{}, *OTHERS])
def test_a_device_that_is_named_is_in_nobodys_way(place: Place, whose, monkeypatch):
    (place.project / "docs").symlink_to(place.home / "data")
    monkeypatch.chdir(place.project)
    expected = place.resident(command="npx", **whose).shown
    for word in ("--log=/dev/stderr", "/dev/null", "/proc/self/cwd/docs", "/proc/self/cwd/docs/x"):
        assert place.resident(command="npx", args=[word], **whose).shown == expected
    with pytest.raises(
        BadServer, match=r"docs leads to ~/data by a link|is a link to|may open|lies"
    ):
        place.resident(command="npx", read=["/proc/self/cwd/docs"], **whose)


@pytest.mark.integration
def test_links_of_path_and_of_first_lines_are_the_persons_also_for_a_projects_server(tmp_path):
    home = (tmp_path / "home").resolve()
    place = Place(home, PATH=f"{home}/programs:/usr/bin")
    top = python_at(home / "mamba")
    for name in ("programs", "venv/bin"):
        (home / name).mkdir(parents=True)
    (home / "venv/pyvenv.cfg").touch()
    (home / "venv/bin/python").symlink_to(top / "bin/python3.11")
    (home / "bin/npx").write_text(f"#!{home}/venv/bin/python\n")
    (home / "programs/npx").symlink_to(home / "bin/npx")
    found = place.resident(**{"command": "npx", "from": "project"}).shown
    assert found == (home / "programs/npx", home / "bin/npx", home / "venv", top)


def python_at(top: Path) -> Path:
    """Put what looks like a Python with its libraries, and says that it ran, into a folder; return that."""
    for name in ("bin", "lib/python3.11", "private"):
        (top / name).mkdir(parents=True)
    (top / "lib/python3.11/os.py").touch()
    (top / "bin/python3.11").write_text(f"#!/bin/sh\ncat {top}/private/* || echo ran\n")
    (top / "bin/python3.11").chmod(0o755)
    (top / "private/diary").write_text("private")
    return top


def venv_in(folder: Path, top: Path) -> Path:
    """Make a virtual environment in a folder of that Python, and return its program."""
    (folder / ".venv/bin").mkdir(parents=True)
    (folder / ".venv/pyvenv.cfg").touch()
    (folder / ".venv/bin/python3").symlink_to(top / "bin/python3.11")
    (folder / ".venv/bin/python").symlink_to("python3")
    return folder / ".venv/bin/python"


@pytest.fixture(params=["bubblewrap", "landlock"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if sys.platform != "linux":
        pytest.skip("these are the sandboxes of Linux")
    if request.param == "landlock":
        kernel = open_kernel()
        if kernel is None or kernel.abi < 1:
            pytest.skip("NO LANDLOCK on this machine: programs in it are untested")
        within = lambda places, private: Landlock(places, kernel, "", private)  # noqa: E731 - one line
        monkeypatch.setattr(resident_module, "choose", within)
    elif choose is not resident_module.choose:
        pytest.fail("another sandbox is left of a test before")
    return request.param


def ran(place: Place, found: Resident) -> str:
    """Run a program in the sandbox, and return what it prints."""
    launch = start_resident(place.host, place.project, found)
    try:
        done = subprocess.run(
            launch.argv,
            env=launch.environ,
            cwd=place.project,
            pass_fds=launch.descriptors,
            preexec_fn=launch.before_exec,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        for descriptor in launch.descriptors:
            os.close(descriptor)
    return done.stdout + done.stderr


@pytest.mark.integration
@pytest.mark.parametrize("project", ["none", "read"])
@pytest.mark.parametrize("whose", [{}, {"from": "editor"}])
def test_the_python_of_an_environment_in_a_project_is_seen_wherever_it_lies(place: Place, whose, project, kind: str):  # fmt: skip
    top, other = python_at(place.home / "mamba"), place.home / "other"
    place.host.work_in(other)  # another session of this process
    for program in (venv_in(place.project, top), venv_in(other, top)):
        if whose and project == "none" and program.is_relative_to(place.project):
            continue  # it sees nothing that it names in the project
        found = place.resident(command=str(program), project=project, **whose)
        assert {top / "bin", top / "lib"} <= set(found.shown)
        assert top not in found.shown
        said = ran(place, found)
        assert "ran" in said
        assert "private" not in said.replace(f"{top}/private", "")
    shown = needed_by([str(program)], place.host, place.project)
    assert shown == [other / ".venv", top / "bin", top / "lib"]


@pytest.mark.integration
def test_a_program_of_packages_in_a_project_is_followed_there(place: Place, kind: str):
    package = place.project / "node_modules/srv"
    (package / "dist").mkdir(parents=True)
    (package / "package.json").touch()
    (package / "dist/index.js").write_text("#!/bin/sh\necho ran\n")
    (package / "dist/index.js").chmod(0o755)
    link = place.project / "node_modules/.bin/srv"
    link.parent.mkdir()
    link.symlink_to("../srv/dist/index.js")
    found = place.resident(command=str(link), project="none")
    assert found.shown == (link.parent, package)
    assert ran(place, found) == "ran\n"
    assert needed_by([str(link)], place.host, place.project) == [link.parent, package]


@pytest.mark.integration
def test_a_link_of_a_project_to_anything_else_than_such_a_program_is_told(place: Place):
    """A document that may be run, a script beside others, another project, and the environment of one."""
    home, project = place.home, place.project
    other, top = home / "other", python_at(home / "mamba")
    place.host.work_in(other)
    program = venv_in(other, top)
    for path in (home / "data/all.pdf", home / "work/bin/run", other / "run", home / ".local/bin/x", home / ".ssh/bin/x"):  # fmt: skip
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    (home / "work/pyvenv.cfg").touch()
    (home / ".ssh/lib/python3").mkdir(parents=True)
    (home / ".ssh/lib/python3/os.py").touch()
    (project / ".venv").symlink_to(other / ".venv")
    (project / "lib").symlink_to(top / "lib")
    (top / "bin/data").write_text("")
    ends = {"pdf": home / "data/all.pdf", "run": home / "work/bin/run", "other": other / "run"}
    for name, end in {**ends, "script": top / "bin/data"}.items():
        (project / name).symlink_to(end)
    for name in (*ends, "script", "lib", "lib/python3.11/os.py"):
        for command, args in (("npx", [f"--x={project}/{name}"]), (f"{project}/{name}", [])):
            if (project / name).is_file() or args:
                with pytest.raises(BadServer, match=f"/project/{name} leads to ~/.* by a link"):
                    place.resident(command=command, args=args, project="none")
    with pytest.raises(BadServer, match=r"~/project/\.venv leads to ~/other/\.venv by a link"):
        place.resident(command=f"{project}/.venv/bin/python")
    (project / "keys").symlink_to(home / ".ssh/bin/x")
    with pytest.raises(BadServer, match="it names ~/project/keys, which no sandbox may open"):
        place.resident(command=f"{project}/keys")
    with pytest.raises(Refused, match="~/project/run leads to ~/work/bin/run by a link"):
        needed_by([f"{project}/run"], place.host, project)
    assert place.resident(command=str(program)).shown == (other / ".venv", top / "bin", top / "lib")


@pytest.mark.integration
def test_a_variable_of_the_persons_opens_nothing_to_a_projects_server(tmp_path: Path):
    """It leads elsewhere at another start, and the question has listed one place."""
    home = (tmp_path / "home").resolve()
    place = Place(home, NOTES=str(home / "data"), RUN=str(home / "one.py"), VIRTUAL_ENV=f"{home}/v")
    (home / "v").mkdir()
    (home / "v/pyvenv.cfg").touch()

    def started(command: str, *args: str, whose: str = "project") -> Resident:
        entry = {"command": command, "args": list(args), "from": whose, "root": "/srv/plugin"}
        environ = {**place.host.environ, **project_variables(place.project)}
        server = filled(server_of("demo", entry), environ)
        return place.resident_of(server, place.start(**entry))

    for word in ("${NOTES}", "--x=${NOTES}/todo.md", "${NO_SUCH:-~/data}", "${NOTES:-~/apps}"):
        said = r"a variable of yours leads it to ~/data(/todo\.md)?, which opens nothing to"
        with pytest.raises(BadServer, match=said):
            started("npx", word)
        assert home / "data" in started("npx", word, "~/data", "~/data/todo.md").shown
        assert started("npx", word, whose="plugin").shown[1].is_relative_to(home / "data")
    with pytest.raises(BadServer, match=r"a variable of yours leads it to ~/one\.py"):
        started("${RUN}")
    for word in ("${VIRTUAL_ENV}", "${NO_SUCH:-/usr/share}", "${NO_SUCH:-x}", "${NOTES}/gone"):
        assert started("npx", word).shown == (home / "bin/npx",)
    assert started("${HOME}/one.py", "${HOME}/data").shown == (home / "one.py", home / "data")


@pytest.mark.integration
@pytest.mark.parametrize("others", OTHERS)
@pytest.mark.parametrize("key", ["read", "write"])
def test_only_an_entry_of_the_persons_own_opens_more_of_the_project(place: Place, key, others):
    for name in (".git", ".vscode", "src"):
        (place.project / name).mkdir()
    for path in (".git", ".vscode", "src", ".", "..", "~", "~/project", f"{place.project}/src"):
        with pytest.raises(BadServer, match="lies in the project or holds it"):
            place.resident(command="npx", **{**others, key: [path]})
    assert place.project / ".git" in place.resident(command="npx", write=[".git"]).writable


@pytest.mark.integration
@pytest.mark.parametrize("others", OTHERS)
def test_only_an_entry_of_the_persons_own_changes_anything_outside_of_the_project(place, others):
    for path in ("clone/.git/hooks", ".local/bin", ".cache", "work"):
        (place.home / path).mkdir(parents=True)
    for path in ("~/clone/.git", "~/clone", "~/.local/bin", "~/.cache", "~/work"):
        with pytest.raises(BadServer, match="only an entry of your own settings opens"):
            place.resident(command="npx", **others, write=[path])
    assert place.resident(command="npx", **others, read=["~/work"]).shown[-1:] == (
        place.home / "work",
    )
    assert place.resident(command="npx", write=["~/work"]).writable == (place.home / "work",)


@pytest.mark.integration
@pytest.mark.parametrize("others", OTHERS)
@every_row(
    "word, shown",
    [
        ("~/apps/server/dist/index.js", "apps/server/dist/index.js"),
        ("--root=~/apps/server/dist/index.js", "apps/server/dist/index.js"),
        ("~/venv/bin/python", "venv"),
        ("~/docs/run.sh", "docs/run.sh"),
        ("~/data", "data"),
        ("~/missing", None),
        ("/usr/bin/env", None),
        ("/" + "x" * 5_000, None),
    ],
)
def test_around_what_the_entry_of_another_names_nothing_is_shown(word, shown, tmp_path, others):
    place = Place((tmp_path / others["from"] / word.replace("/", "_")[:40]).resolve())
    (place.home / "venv/bin").mkdir(parents=True)
    (place.home / "docs").mkdir()
    for name in ("venv/pyvenv.cfg", "venv/bin/python", "docs/run.sh"):
        (place.home / name).write_text("")
    if others["from"] == "editor" and shown:  # but for the package of a script
        shown = shown.replace("apps/server/dist/index.js", "apps/server")
    word = word.replace("~", str(place.home))
    expected = () if shown is None else (place.home / shown,)
    assert place.resident(command="/bin/sh", args=[word], **others).shown == expected
    if "=" not in word and shown not in (None, "data"):
        assert place.resident(command=word, **others).shown == expected


@pytest.mark.parametrize("others", OTHERS)
def test_a_program_of_path_that_another_names_is_shown_alone(tmp_path: Path, others):
    """Beside it lie the person's own scripts, with what stands in them."""
    home = (tmp_path / others["from"]).resolve()
    place = Place(home, PATH=f"{home}/bin:{home}/node/bin:{home}/.cargo/bin")
    for name in ("node/bin/npm", "node/lib/node_modules/npm/cli.js", "bin/serve", "venv/bin/python", ".cargo/bin/tool"):  # fmt: skip
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    (home / "venv/pyvenv.cfg").touch()
    (home / "bin/serve").write_text(f"#!{home}/venv/bin/python\n")
    for command, shown in (("npx", ["bin/npx"]), ("serve", ["bin/serve", "venv"]), ("npm", ["node"]), ("tool", [])):  # fmt: skip
        expected = tuple(home / name for name in shown)
        assert place.resident(command=command, **others).shown == expected
        assert tuple(listed_for({"command": command}, place.host, place.project)) == expected


BASES = (
    "~",
    "${HOME}",
    "$HOME",
    "${NOTES}",
    "${NO:-~}",
    "${YBS_PROJECT_DIR}",
    ".",
    "..",
    "",
    "~root",
)
TAILS = ("", "/data", "/link", "/link/todo.md", "/../data", "/data/../apps", "//data//", "/missing/../data", "/venv/bin/python")  # fmt: skip
WORDS = st.builds(
    "{}{}{}".format, st.sampled_from(("", "--x=", "x=y=", "@")), st.sampled_from(BASES), st.sampled_from(TAILS)
)  # fmt: skip
ENTRIES = st.fixed_dictionaries(
    {
        "command": st.one_of(
            st.sampled_from(("/bin/sh", "npx", "serve", "~/bin/serve", "missing")), WORDS
        ),
        "args": st.lists(WORDS, max_size=3),
        "read": st.lists(WORDS, max_size=1),
        "project": st.sampled_from(("none", "read", "write")),
    }
)


@pytest.mark.integration
def test_a_projects_server_is_shown_no_more_than_the_question_lists(tmp_path: Path):
    home = (tmp_path / "home").resolve()
    place = Place(home, NOTES=str(home / "data"))
    (home / "link").symlink_to("data")
    (home / "venv/bin").mkdir(parents=True)
    (home / "venv/pyvenv.cfg").touch()
    (home / "venv/bin/python").symlink_to("/usr/bin/python3")
    (home / "bin/serve").write_text(f"#!{home}/venv/bin/python\n")
    (home / "bin/serve").chmod(0o755)
    started: list[bool] = []

    @settings(max_examples=150)
    @given(ENTRIES)
    @example({"command": "/bin/sh", "read": [f"/dev/..{home}/data"]})
    @example({"command": "/bin/sh", "read": [f"/proc/../{home}/link/../data"]})
    def play(entry: dict[str, Any]) -> None:
        listed = set(listed_for(entry, place.host, place.project))
        marked = {**entry, "from": "project"}
        environ = {**place.host.environ, **project_variables(place.project)}
        try:
            server = filled(server_of("demo", marked), environ)
            found = place.resident_of(server, place.start(**marked))
        except BadServer:
            return
        started.append(True)
        seen = {path for path in found.shown if not path.is_relative_to(place.project)}
        assert seen <= listed

    play()
    assert len(started) >= 10


def test_a_projects_server_without_the_project_sees_the_files_that_the_trust_is_about(place):
    for name in ("srv/run.py", "srv/helper.py", "lib/pre.js", "lib/more.js"):
        path = place.project / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/usr/bin/python3\n")
        path.chmod(0o755)
    (place.project / "link").symlink_to(place.home / "data")
    args = [f"--require={place.project}/lib", str(place.home), str(place.home / "data")]
    entry = {"command": "./srv/run.py", "args": args[::2], "from": "project"}
    server = server_of("demo", {**entry, "project": "none"})
    start, seen = place.start(**entry), ("srv/run.py", "lib/pre.js", "link")
    found = place.resident_of(server, start, seen)
    trusted = [place.project / "srv/run.py", place.project / "lib/pre.js"]
    assert found.shown == (place.home / "data", *trusted)
    with pytest.raises(BadServer, match="it names ~, which no sandbox may open"):
        place.resident_of(server_of("demo", {**entry, "args": args, "project": "none"}), start)


def test_the_first_line_of_a_projects_program_opens_nothing_of_the_persons(place: Place):
    script = place.project / "run"
    script.write_text(f"#!{place.home}/data\n")
    script.chmod(0o755)
    theirs = place.resident(**{"command": "./run", "from": "project", "project": "none"})
    assert place.home / "data" not in theirs.shown
    assert place.home / "data" in place.resident(command=str(script)).shown


def test_more_is_given_where_the_entry_says_so(place: Place):
    found = place.resident(
        command="npx",
        read=["~/one.py"],
        write=["~/data"],
        project="write",
        network=False,
        env={"KEY": "value"},
    )
    assert place.home / "one.py" in found.shown
    assert found.writable == (place.home / "data",)
    assert (found.project, found.network, found.declared["KEY"]) == ("write", False, "value")


def test_packages_come_from_where_the_person_has_them_from_without_logins(place: Place):
    (place.home / ".npmrc").write_text("fund=false\nregistry = https://npm.example/\n")
    given = with_git_setting(project_variables(place.project))
    registry = {"npm_config_registry": "https://npm.example/"}
    assert place.resident(command="npx").declared == registry | given
    (place.home / ".npmrc").write_text("registry=https://me:pass@npm.example/\n")
    assert place.resident(command="npx").declared == given


def test_an_address_for_packages_with_a_token_in_it_is_for_the_persons_own_servers(tmp_path: Path):
    token = "8kQz3LpW" + "7vXr2NbT"
    held = {
        "UV_INDEX_URL": f"https://dl.example/{token}/acme/simple/",
        "UV_INDEX": "https://pip.example/simple?token=abc",
        "npm_config_registry": f"https://npm.example/{'5tz9lmq2' + 'xvk7rw4bnh8c'}/",
    }
    plain = {
        "PIP_INDEX_URL": "https://host.example/artifactory/api/pypi/pypi-remote-2024/simple",
        "UV_DEFAULT_INDEX": "https://pkgs.example/MyTeam/_packaging/PublicFeed/pypi/simple/",
    }
    place = Place((tmp_path / "home").resolve(), **held, **plain)
    theirs = place.resident(**{"command": "npx", "from": "project"})
    assert theirs.declared.items() >= plain.items()
    assert not held.keys() & theirs.declared.keys()
    assert place.resident(command="npx").declared.items() >= (held | plain).items()


def test_packages_come_from_nowhere_in_a_project_that_is_not_trusted(tmp_path: Path):
    project = (tmp_path / "home/project").resolve()
    environ = {"UV_INDEX_URL": f"file://{project}/simple", "PIP_INDEX_URL": "https://pip.example/"}
    found = Place(project.parent, **environ).resident(command="npx")
    assert "UV_INDEX_URL" not in found.declared
    assert found.declared["PIP_INDEX_URL"] == environ["PIP_INDEX_URL"]


def test_a_pipe_in_the_place_of_settings_for_packages_is_not_waited_for(place: Place):
    os.mkfifo(place.home / ".npmrc")
    given = with_git_setting(project_variables(place.project))
    assert place.resident(command="npx").declared == given


def test_without_a_sandbox_it_runs_as_the_person_does(place: Place):
    server = server_of("demo", {"command": "npx", "sandbox": False, "env": {"KEY": "1"}})
    start = place.start(command="npx")
    launch = place.bare(server, start)
    assert launch.argv[3:] == (str(start.folder), f"{place.home}/bin/npx")
    assert launch.environ["YBS_PROJECT_DIR"] == str(place.project)
    assert (launch.environ["HOME"], launch.environ["KEY"]) == (str(place.home), "1")


def test_a_container_program_lies_in_no_project_and_no_plugin(place: Place):
    own, plugin = place.project / "docker", place.host.config_folder / "plugins/x/docker"
    link = place.home / "bin/podman"
    plugin.parent.mkdir(parents=True)
    for program in (own, plugin, place.home / "bin/docker"):
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    link.symlink_to(own)
    for command in (str(own), str(plugin), str(link), "podman"):
        server = server_of("demo", {"command": command, "args": ["run", "x"]})
        with pytest.raises(BadServer, match=r"in a project or a plugin|is not on your PATH"):
            place.bare(server, place.start(command=command))
    for command in ("docker", "~/bin/docker"):
        server = server_of("demo", {"command": command, "args": ["run", "x"]})
        launch = place.bare(server, place.start(command=command))
        assert launch.argv[4:] == (f"{place.home}/bin/docker", "run", "x")


def test_a_home_belongs_to_what_runs_and_not_to_a_name():
    entry = {"command": "npx", "args": ["time", "${YBS_PROJECT_DIR}"], "env": {"A": "1"}}
    others = (
        {"command": "./npx"},
        {"args": ["time", "${YBS_PROJECT_DIR}", "x"]},
        {"args": ["time ${YBS_PROJECT_DIR}"]},
        {"from": "project"},
        {"from": "editor"},
        {"from": "plugin", "root": "/a/one"},
        {"from": "plugin", "root": "/a/two"},
    )
    servers = [server_of("time", {**entry, **other}) for other in ({}, *others)]
    assert len({key_of(each) for each in servers}) == 8
    assert len({key_of(each).rpartition("-")[0] for each in servers}) == 1
    again = server_of("time", {**entry, "env": {"A": "2"}, "said": "x"})
    more = {"from": "project", "env": {"A": "1", "B": "${TOKEN}"}}
    assert key_of(server_of("time", {**entry, **more})) not in map(key_of, servers)
    assert key_of(filled(again, {"YBS_PROJECT_DIR": "/p"})) == key_of(servers[0])


@pytest.mark.parametrize(
    ("entry", "is_seen"),
    [
        ({}, True),
        ({"project": "none"}, False),
        ({"project": "none", "read": ["~/data"]}, False),
        ({"project": "none", "read": ["~/project/lib"]}, True),
        ({"project": "none", "args": ["--root={project}/lib"]}, True),
        ({"project": "none", "write": ["~/project/lib"]}, True),
    ],
)
def test_alone_a_server_sees_nothing_of_the_project(place: Place, entry: Any, is_seen: bool):
    (place.project / "lib").mkdir()
    words = [each.format(project=place.project) for each in entry.get("args", ())]
    found = place.resident(command="npx", **{**entry, "args": words})
    assert sees(found, place.project) is is_seen
    narrow = alone(found, place.project)
    assert not sees(narrow, place.project)
    assert place.home / "bin" in narrow.shown
    assert narrow.writable == ()
