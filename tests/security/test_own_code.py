"""What ybs's own process loads cannot be changed by what it holds: ybs is installed in the project's own `.venv`, and attacked."""

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import spec_from_file_location
from pathlib import Path
from typing import Any
from venv import EnvBuilder

import msgspec
import pytest

import ybs
from hosts import this_host
from installing import declare
from scripted import OpenAIServer
from security import swapping
from security.test_planted_programs import MODULES, PROGRAMS
from serving import serving
from ybs.checkpoints.planning import is_ours
from ybs.config import editables
from ybs.config.installed import EntryPoint
from ybs.core.messages import ToolCall
from ybs.finder import ModuleFinder as OwnFinder
from ybs.security.paths import own_code, roots
from ybs.security.paths.roots import Roots
from ybs.security.paths.steps import steps
from ybs.testing import call

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(120),
    pytest.mark.skipif(sys.platform != "linux", reason="NOT TESTED: needs Linux"),
]
PROGRAM = """
import atexit, importlib.util, os, sys
from ybs.cli import main
if wanted := os.environ.get("YBS_TEST_LOOKS_FOR"):
    atexit.register(lambda: print("found:", importlib.util.find_spec(wanted), file=sys.stderr))
sys.exit(main())
"""
#: The same on a machine where bubblewrap does not work.
WITHOUT_BUBBLEWRAP = """
from ybs.security.sandbox import choice
choice.tried_bubblewrap = lambda: (None, (), "there is no bubblewrap")
"""
#: What setuptools installs for an editable package without a folder of its own.
EDITABLE = """
import os, sys
from importlib.util import spec_from_file_location
MAPPING = {{"made_by_model": "{project}/mapped/made_by_model.py"}}
class Finder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        place = MAPPING.get(name, "")
        return spec_from_file_location(name, place) if os.path.exists(place) else None
sys.meta_path.append(Finder)
"""
#: Where the environment lies in the project, and what `.venv` is a link to where it is one.
LAYOUTS = {"plain": (".venv", ""), "deep": ("envs/one/.venv", ""), "linked": ("envs/real", ".venv")}
SANDBOXES = ("bubblewrap", "landlock")
#: Every layout in the one sandbox, and the layout with the longest way down in the other one, whose rules are about paths too.
PLACES = [*((layout, "bubblewrap") for layout in LAYOUTS), ("deep", "landlock")]


class Installed:
    """ybs in an environment in a project of its own."""

    def __init__(self, project: Path, home: Path, layout: str, sandbox: str) -> None:
        self.project, self.home = project, home
        inside, link = LAYOUTS[layout]
        self.real = project / inside
        EnvBuilder(symlinks=True).create(self.real)
        self.named = project / (link or inside)
        if link:
            self.named.symlink_to(self.real.relative_to(self.named.parent))
        (site,) = self.real.glob("lib/python*/site-packages")
        self.site = site.relative_to(self.real)
        shutil.copytree(Path(ybs.__file__).parent, site / "ybs")
        (site / "seen.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
        declare(site, "ybs", {})
        (project / "src").mkdir()
        (project / "src/app.py").write_text("x = 1\n")
        patch = "" if sandbox == "bubblewrap" else WITHOUT_BUBBLEWRAP
        (self.real / "bin/ybs").write_text(
            PROGRAM.replace("from ybs.cli", f"{patch}from ybs.cli", 1)
        )

    def run(
        self,
        *script: Any,
        environ: Mapping[str, str] | None = None,
        options: Sequence[str] = ("--mode", "bypass"),
        by: "Installed | None" = None,
    ) -> tuple[str, str]:
        """Take one turn in which nothing is asked; return the tools' results as the model got them, and standard error.

        `by` is the installation that works here, if it is another one.
        """
        program = (by or self).named / "bin"
        with serving([*script, "done"], OpenAIServer) as server:
            words = (
                *("--print", "go", *options, "--provider", "openai"),
                *("--endpoint", server.url, "--model", "m"),
            )
            done = subprocess.run(
                [program / "python", program / "ybs", *words],
                cwd=self.project,
                env={"HOME": str(self.home), "PATH": os.environ["PATH"], "OPENAI_API_KEY": "k"}
                | dict(environ or {}),
                capture_output=True,
                text=True,
                timeout=100,
                stdin=subprocess.DEVNULL,
                check=False,
            )
            told = str(server.requests[-1].body) if server.requests else ""
        assert "done" in done.stdout, done.stderr
        return told, done.stderr

    def named_in(self, text: str) -> str:
        """Return the text with paths from the project's folder for its words in capitals."""
        named, real = (path.relative_to(self.project) for path in (self.named, self.real))
        words = {"SITE": named / self.site, "VENV": named, "REAL": real, "TOP": real.parts[0]}
        for word, path in words.items():
            text = text.replace(word, str(path))
        return text

    def named_call(self, made: ToolCall) -> ToolCall:
        """Return the call with such paths."""
        return msgspec.structs.replace(
            made, arguments=msgspec.Raw(self.named_in(bytes(made.arguments).decode()).encode())
        )

    def state(self) -> dict[str, tuple[int, int, bytes]]:
        """Return all that there is of it by its name from the project's folder, but for compiled files."""
        found = {str(self.named): self.named, str(self.named.resolve()): self.real}
        found |= {
            str(path): path for path in self.named.rglob("*") if "__pycache__" not in path.parts
        }
        return {name: _state(path) for name, path in found.items()}


def _state(path: Path) -> tuple[int, int, bytes]:
    status = path.lstat()
    is_file = path.is_file() and not path.is_symlink()
    return status.st_ino, status.st_mode, path.read_bytes() if is_file else b""


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Installed]:
    made: dict[tuple[str, str], Installed] = {}

    def get(layout: str, sandbox: str) -> Installed:
        if (layout, sandbox) not in made:
            folder = tmp_path_factory.mktemp("own")
            (folder / "home").mkdir()
            (folder / "project").mkdir()
            swapping.SANDBOXES[sandbox](folder / "project", folder / "home")  # skips
            made[layout, sandbox] = Installed(folder / "project", folder / "home", layout, sandbox)
        return made[layout, sandbox]

    return get


@pytest.fixture(params=SANDBOXES)
def sandbox(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=PLACES, ids="-".join)
def installed(
    request: pytest.FixtureRequest, make: Callable[[str, str], Installed]
) -> Iterator[Installed]:
    one = make(*request.param)
    before = one.state()
    yield one
    assert one.state() == before


@pytest.fixture
def fresh() -> Iterator[Callable[[], None]]:
    """Forget what was found of the process's own code, before and after."""

    def forget() -> None:
        own_code._installed.clear()  # pyright: ignore[reportPrivateUsage]
        own_code._code.cache_clear()  # pyright: ignore[reportPrivateUsage]
        own_code._code_in.cache_clear()  # pyright: ignore[reportPrivateUsage]

    forget()
    yield forget
    forget()


#: VENV is the environment by its name, REAL its own folder, SITE where its packages are, TOP the first folder on the way.
COMMANDS = (
    "echo x > SITE/ybs/tools/reading/pdf.py",
    "echo 'import os' > SITE/evil.pth",
    "echo 'x = 1' > SITE/sitecustomize.py",
    "mkdir SITE/pypdf; echo 'x = 1' > SITE/pypdf/__init__.py",
    "rm SITE/ybs/tools/reading/pdf.py",
    "mv SITE/ybs SITE/old; mkdir SITE/ybs",
    "echo 'home = /tmp' > VENV/pyvenv.cfg",
    "rm -f VENV/bin/python; printf '#!/bin/sh\\n' > VENV/bin/python",
    "ln -sfn /tmp/x VENV/lib64; ln -s /tmp/x SITE/link.pth",
    "mv VENV aside && mkdir -p VENV/bin",
    "mv REAL aside && mkdir -p REAL/bin",
    "mv TOP aside && mkdir -p REAL/bin",
    "rm -f .venv; ln -s /tmp .venv",
    "rm -rf VENV REAL",
    "ln SITE/ybs/cli/__init__.py hard && echo x > hard",
    "cp -rf src/app.py SITE/ybs/cli/__init__.py",
    'python3 -c \'import os; os.rename("src", "SITE/plugin")\'',
)


#: What the kernel says of each, or ybs where it asks.
STOPPED = (
    "Read-only file system",
    "Device or resource busy",
    "Invalid cross-device link",
    "there is no terminal to ask on",
)


def test_no_command_changes_it(installed: Installed) -> None:
    calls = [
        call("run_shell", command=f"({installed.named_in(each)}) 2>&1; echo over {number}")
        for number, each in enumerate(COMMANDS)
    ]
    told, _ = installed.run(*calls, call("run_shell", command="echo y > src/app.py"))
    for number in range(len(COMMANDS)):
        assert f"over {number}" in told
    assert (installed.project / "src/app.py").read_text() == "y\n"  # all else is as before


@pytest.mark.parametrize("layout", [each for each in LAYOUTS if each != "deep"])
def test_no_process_of_another_installation_changes_it(make, layout: str, tmp_path: Path) -> None:
    """A server works in the projects of all who attach, with the code of whoever started it."""
    installed = make(layout, "bubblewrap")
    (tmp_path / "project").mkdir()
    other, before = (
        Installed(tmp_path / "project", tmp_path, "plain", "bubblewrap"),
        installed.state(),
    )
    calls = [
        call("run_shell", command=f"({installed.named_in(each)}) 2>&1; echo over {number}")
        for number, each in enumerate(COMMANDS)
    ]
    write = installed.named_call(call("write_file", path="SITE/evil.pth", content="import os\n"))
    told, said = installed.run(*calls, write, by=other)
    assert f"over {len(COMMANDS) - 1}" in told
    assert "ybs itself runs from there" in told
    assert f"ybs itself runs from {installed.named.relative_to(installed.project)}" in said.replace(
        "envs/real, ", ""
    )
    assert installed.state() == before


def test_with_the_sandbox_off_no_command_changes_it_unasked(installed: Installed) -> None:
    read = call("read_file", path="src/app.py")  # or the turn would end for all those refusals
    calls = [
        each
        for command in COMMANDS
        for each in (call("run_shell", command=f"({installed.named_in(command)}) 2>&1"), read)
    ]
    shutil.rmtree(installed.project / "aside", ignore_errors=True)  # half a copy, of another test
    write = call(
        "run_shell",
        command='touch "$HOME/outside" && (rm -f .venv/nothing-of-this-name; printenv HOME)',
    )
    told, said = installed.run(*calls, write, options=("--mode", "auto", "--no-sandbox"))
    is_held = (installed.home / "outside").exists()
    (installed.home / "outside").unlink(missing_ok=True)
    if "so each is asked about" in said:
        assert not is_held
        assert told.count("there is no terminal to ask on") > len(COMMANDS)
    else:
        assert "That is read-only for tools and commands" in said
        assert is_held
        results = told.split("'role': 'tool'")[
            1:-1:2
        ]  # of the commands, without what was read between
        stopped = [each for each in results if any(word in each for word in STOPPED)]
        assert len(results) == len(COMMANDS)
        assert len(stopped) >= len(COMMANDS) - 1  # a link that is not there may be made


def test_no_file_tool_changes_it(installed: Installed) -> None:
    pdf, new = "SITE/ybs/tools/reading/pdf.py", "SITE/evil.pth"
    calls = (
        call("write_file", path=pdf, content="x = 1\n"),
        call("write_file", path=new, content="import os\n"),
        call("write_file", path="SITE/Sitecustomize.py", content="x = 1\n"),
        call("write_file", path="REAL/lib/new/a.py", content="x = 1\n"),
        call("write_file", path="VENV/pyvenv.cfg", content="home = /tmp\n"),
        call("write_file", path="VENV/bin/python", content="#!/bin/sh\n"),
        call("read_file", path=pdf),
        call("edit_file", path=pdf, old_text="import", new_text="export"),
        call("delete_file", path=pdf),
        call("delete_file", path="VENV/bin/python"),
        call("delete_file", path="VENV"),
        call("write_file", path=f"src/../{pdf}", content="x = 1\n"),
    )
    done = [installed.named_call(each) for each in calls]
    told, _ = installed.run(*done, call("write_file", path="src/new.py", content="y = 1\n"))
    refused = told.count("ybs itself runs from there")
    assert refused == len(calls) - 2, told  # one reads, one edits what is not in the file
    assert (installed.project / "src/new.py").read_text() == "y = 1\n"


def test_the_start_says_where_ybs_lies_and_a_failed_install_why_it_failed(installed):
    command = installed.named_in("touch SITE/package.py")
    told, said = installed.run(call("run_shell", command=command))
    assert "ybs itself runs from " in said
    assert str(installed.real.relative_to(installed.project)) in said
    assert "ybs itself runs from there" in told


def test_the_start_says_what_loads_libraries_from_the_project(make):
    installed = make("plain", "bubblewrap")
    for value in ("src", f"/usr/lib:{installed.project}/src", "/usr/lib:"):
        _, said = installed.run(environ={"LD_LIBRARY_PATH": value})
        assert "LD_LIBRARY_PATH leads into a folder that commands may change" in said
    for value in ("/usr/lib", ""):
        _, said = installed.run(environ={"LD_LIBRARY_PATH": value})
        assert "LD_LIBRARY_PATH" not in said
    named = {"OPENSSL_CONF": "src/with space/openssl.cnf", "OPENSSL_MODULES": "src"}
    _, said = installed.run(environ=named | {"OPENSSL_ENGINES": "/usr/lib"})
    for name, is_said in {**dict.fromkeys(named, True), "OPENSSL_ENGINES": False}.items():
        assert (f"{name} leads into a folder that commands may change" in said) == is_said


def test_no_module_of_the_project_is_loaded(make: Callable[[str, str], Installed]) -> None:
    """The project itself is installed beside ybs, and its `src` is where Python looks for what ybs does without."""
    installed = make("plain", "bubblewrap")
    environ = {"PYTHONPATH": "src"}
    pth = installed.real / installed.site / "project.pth"
    pth.write_text(f"{installed.project}/more\nimport __editable___project_finder\n")
    finder = pth.with_name("__editable___project_finder.py")
    finder.write_text(EDITABLE.format(project=installed.project))
    try:
        for name in ("src", "more", "mapped"):
            (installed.project / name).mkdir(exist_ok=True)
            write = call("write_file", path=f"{name}/made_by_model.py", content="x = 1\n")
            installed.run(write, environ=environ)
            _, said = installed.run(environ=environ | {"YBS_TEST_LOOKS_FOR": "made_by_model"})
            assert "found: None" in said
            (installed.project / name / "made_by_model.py").unlink()
    finally:
        pth.unlink()
        finder.unlink()


def test_a_plugin_of_the_project_is_held_before_it_is_in_use(make):
    """It is installed as editable, and a provider is loaded once it is chosen: in this session, or at the next start."""
    installed = make("plain", "bubblewrap")
    site = installed.real / installed.site
    (installed.project / "src/acme").mkdir()
    (installed.project / "src/acme/wire.py").write_text("x = 1\n")
    (site / "acme.pth").write_text(f"{installed.project}/src\n")
    declare(site, "acme", {"ybs.providers": {"acme": "acme.wire:PROVIDER"}})
    try:
        told, said = installed.run(
            call("write_file", path="src/acme/__init__.py", content="x = 1\n"),
            call("run_shell", command="echo x > src/acme/wire.py; echo y > src/app.py"),
        )
        assert (installed.project / "src/acme/wire.py").read_text() == "x = 1\n"
        assert not (installed.project / "src/acme/__init__.py").exists()
        assert (installed.project / "src/app.py").read_text() == "y\n"
        assert "ybs itself runs from there" in told
        assert "src/acme" in said
    finally:
        (site / "acme.pth").unlink()
        shutil.rmtree(site / "acme-0.1.0.dist-info")
        shutil.rmtree(installed.project / "src/acme")


@pytest.mark.parametrize(
    "words",
    [
        ("mcp", "serve"),
        ("tool", "call", "list_files", "{}"),
        ("sandbox", "exec", "--", "/bin/true"),
    ],
)
def test_no_subcommand_with_tools_loads_one_and_each_holds_ybs(make, words):
    installed = make("plain", "bubblewrap")
    module = installed.project / "src/made_by_model.py"
    module.write_text("x = 1\n")
    environ = {"PATH": os.environ["PATH"], "HOME": str(installed.home), "PYTHONPATH": "src"}
    try:
        ran = subprocess.run(
            [installed.named / "bin/python", installed.named / "bin/ybs", *words],
            env=environ | {"YBS_TEST_LOOKS_FOR": module.stem}, cwd=installed.project,
            capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
    finally:
        module.unlink()
    assert "found: None" in ran.stderr


#: What Python's library looks for and has on other systems alone, and what pip and other packages can do without.
MISSING = ("msvcrt", "nt", "winreg", "_winapi", "_overlapped", "_scproxy", "brotli", "chardet", "simplejson", "cryptography", "PIL")  # fmt: skip


def test_no_module_is_loaded_by_a_name_that_nothing_else_has(make, tmp_path):
    """The project is installed as editable: its `src` stands behind all folders in which Python looks for modules."""
    installed, mark = make("plain", "bubblewrap"), tmp_path / "mark"
    more = installed.project / "more"
    more.mkdir(exist_ok=True)
    (installed.project / "a.pdf").write_bytes(b"%PDF-1.4\n" + b"rubbish " * 50)
    pth = installed.real / installed.site / "project.pth"
    pth.write_text(f"{more}\n")
    for name in MISSING:
        (more / f"{name}.py").write_text(f"open({str(mark)!r}, 'a').write({name!r} + ' ')\n")
    environ = {"HOME": str(installed.home), "PATH": os.environ["PATH"], "PIP_NO_INDEX": "1"}
    try:
        told, _ = installed.run(call("read_file", path="a.pdf"))
        assert "a.pdf" in told
        assert not mark.exists(), mark.read_text()
        for words in (("doctor",), ("models", "list"), ("models", "download", "starter"), ("map",)):
            subprocess.run(
                [installed.named / "bin/python", installed.named / "bin/ybs", *words],
                env=environ, cwd=installed.project, capture_output=True, timeout=60,
                stdin=subprocess.DEVNULL, check=False,
            )  # fmt: skip
            assert not mark.exists(), (words, mark.read_text())
        control = [installed.named / "bin/python", "-P", "-c", "import msvcrt"]
        subprocess.run(control, env=environ, cwd="/", check=True)
        assert mark.read_text() == "msvcrt "
    finally:
        pth.unlink()


def test_another_environment_of_the_project_is_written_as_before(make, sandbox):
    installed = make("plain", sandbox)
    EnvBuilder(symlinks=True).create(installed.project / "other/env")
    (site,) = installed.project.glob("other/env/lib/python*/site-packages")
    path = str((site / "package.py").relative_to(installed.project))
    installed.run(
        call("run_shell", command=f"echo 'x = 1' > {path}"),
        call("write_file", path=f"{path}.txt", content="x\n"),
    )
    assert (site / "package.py").read_text() == "x = 1\n"
    assert (site / "package.py.txt").read_text() == "x\n"


def test_git_restores_none_of_it(make: Callable[[str, str], Installed]) -> None:
    installed = make("plain", "bubblewrap")
    project = installed.project
    file = installed.real / installed.site / "ybs/tools/reading/pdf.py"
    was = file.read_bytes()

    def git(*words: str) -> None:
        own = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(("git", *own, *words), cwd=project, check=True, capture_output=True)

    file.write_text("x = 1\n")
    git("init", "-q")
    (project / "src/app.py").write_text("x = 1\n")
    git("add", "-f", str(file), "src/app.py")
    git("commit", "-qm", "made by an attacker")
    file.write_bytes(was)
    (project / "src/app.py").write_text("x = 2\n")
    try:
        paths = [str(file.relative_to(project)), "src/app.py"]
        installed.run(*(call("git", action="restore", paths=[path]) for path in paths))
        assert file.read_bytes() == was
        assert (project / "src/app.py").read_text() == "x = 1\n"
    finally:
        shutil.rmtree(project / ".git")


#: What ybs itself starts, by these or of its own accord: programs by PATH, its own Python, another ybs.
WORDS = (
    *(
        ("doctor",),
        ("version", "--format", "json"),
        ("models", "list"),
        ("models", "download", "starter"),
    ),
    *(
        ("map",),
        ("mcp", "test"),
        ("hooks", "check"),
        ("tool", "call", "git", '{"action":"status"}'),
    ),
    *(("sandbox", "exec", "--", "/bin/true"), ("-p", "claude-cli", "--print", "hi")),
)


@pytest.mark.slow
def test_from_there_it_starts_no_program_and_no_module_of_the_project(make, sandbox, tmp_path):
    installed, sprung, made = make("plain", sandbox), tmp_path / "sprung", list[Path]()
    sprung.mkdir()
    folders = [installed.project / each for each in ("", "bin", "node_modules/.bin", ".venv/bin")]
    try:
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
            for name in {*PROGRAMS} - {"rg"}:  # one beside ybs is its own
                if not os.path.lexists(folder / name):
                    made.append(folder / name)
                    made[-1].write_text(f"#!/bin/sh\n: > '{sprung}/{name}'\nexit 9\n")
                    made[-1].chmod(0o755)
        for name in MODULES:
            made.append(installed.project / f"{name}.py")
            made[-1].write_text(f"open({str(sprung / name)!r}, 'w')\n")
        path = os.pathsep.join(["", ".", "bin", *map(str, folders), os.environ["PATH"]])
        environ = {"HOME": str(installed.home), "PATH": path, "OLLAMA_HOST": "127.0.0.1:9"}
        for words in WORDS:
            ran = subprocess.run(
                [installed.named / "bin/python", installed.named / "bin/ybs", *words],
                env={**environ, "PIP_NO_INDEX": "1", "YBS_MODEL_HUB": ""}, cwd=installed.project,
                capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=False,
            )  # fmt: skip
            assert "Traceback" not in ran.stderr, (words, ran.stderr)
            assert [each.name for each in sprung.iterdir()] == [], words
    finally:
        for each in made:
            each.unlink()


def test_python_m_ybs_loads_no_module_of_the_folder_it_is_started_in(make, tmp_path):
    installed = make("plain", "bubblewrap")
    mark, module = tmp_path / "mark", installed.project / "msgspec.py"
    module.write_text(f"open({str(mark)!r}, 'w')\n")
    try:
        done = subprocess.run(
            [installed.named / "bin/python", "-m", "ybs", "config", "show"],
            cwd=installed.project,
            env={"HOME": str(installed.home), "PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        module.unlink()
    assert (done.returncode, mark.exists()) == (0, False), done.stderr


def test_no_empty_or_relative_entry_of_a_variable_has_ybs_load_a_module(make, tmp_path):
    """`PYTHONPATH=$PYTHONPATH:~/lib` begins with an empty entry where it was unset: the folder that one stands in."""
    installed, mark = make("plain", "bubblewrap"), tmp_path / "mark"
    environ = {"HOME": str(installed.home), "PATH": os.environ["PATH"]}
    inner = installed.project / "inner"
    inner.mkdir()
    (installed.project / ".git").mkdir()
    files = [installed.project / f"{name}.py" for name in ("msgspec", "msvcrt", "nt")]
    for file in files:
        file.write_text(f"open({str(mark)!r}, 'a').write({file.name!r})\n")
    python = installed.named / "bin/python"
    try:
        for folder, value in ((installed.project, f":{tmp_path}"), (installed.project, "."), (inner, "..")):  # fmt: skip
            done = subprocess.run(
                [python, installed.named / "bin/ybs", "config", "show"],
                cwd=folder, env=environ | {"PYTHONPATH": value}, capture_output=True, timeout=60, check=False,
            )  # fmt: skip
            assert (done.returncode, mark.exists()) == (0, False), done.stderr
            control = [python, "-c", "import msvcrt"]
            subprocess.run(control, cwd=folder, env=environ | {"PYTHONPATH": value}, check=True)
            assert mark.exists()
            mark.unlink()
    finally:
        for file in files:
            file.unlink()
        inner.rmdir()
        (installed.project / ".git").rmdir()


def test_an_undo_writes_none_of_it(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = project.resolve()
    made = Roots(this_host(), folder)
    places = [f"{folder}/{name}" for name in ("venv/a.py", "venv/missing/a.py", "src/a.py")]
    (folder / "venv").mkdir()
    assert [is_ours(made, path) for path in places] == [True, True, True]
    monkeypatch.setattr(roots, "code_in", lambda _: (f"{folder}/venv",))
    assert [is_ours(made, path) for path in places] == [False, False, True]


class Finder:
    """Stands for one that an editable install put up."""


def test_a_root_in_a_folder_of_modules_is_code_as_a_whole() -> None:
    inside = str(Path(msgspec.__file__).resolve().parent)
    assert own_code.code_in(inside) == (inside,)


def test_a_finder_of_an_editable_install_is_known_by_what_it_maps_to(monkeypatch):
    finds_in = own_code._finds_in  # pyright: ignore[reportPrivateUsage]
    module: Any = type(sys)("__editable___x_finder")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(Finder, "__module__", module.__name__)
    assert finds_in(Finder(), "/p")
    module.MAPPING = {"x": "/elsewhere/x"}
    assert not finds_in(Finder(), "/p")
    module.MAPPING = {"x": "/p/src/x"}
    assert finds_in(Finder(), "/p")
    assert not finds_in(object(), "/p")


def test_ybs_itself_loads_nothing_more_from_a_root_and_another_program_as_before(monkeypatch):
    module: Any = type(sys)("__editable___p_finder")
    module.MAPPING = {"p": "/p/src/p.py"}
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(Finder, "__module__", module.__name__)
    monkeypatch.setattr(own_code, "code_in", lambda _: ("/p/venv",))
    path, finders = ["/p", "/p/src", "/p/venv/lib", "/elsewhere"], [Finder()]
    monkeypatch.setattr(sys, "path", path)
    monkeypatch.setattr(sys, "meta_path", finders)
    own_code.forget_in("/p")
    assert (len(path), len(finders)) == (4, 1)
    finders.append(OwnFinder())
    own_code.forget_in("/p")
    assert path == ["/p/venv/lib", "/elsewhere"]
    assert [type(each) for each in finders] == [OwnFinder]


def test_what_a_link_of_a_root_leads_to_is_not_loaded_from_either(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """Whoever puts a folder in the place of the link decides what is loaded."""
    for folder in ("root/libs", "shared", "own"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "root/libs/lib").symlink_to("../../shared")
    (tmp_path / "root/code").symlink_to(tmp_path / "own")
    root = str((tmp_path / "root").resolve())
    path = [f"{tmp_path}/root/libs/lib", f"{tmp_path}/root/code", f"{tmp_path}/shared", "relative"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(own_code, "code_in", lambda _: (f"{root}/code",))
    monkeypatch.setattr(sys, "path", path)
    monkeypatch.setattr(sys, "meta_path", [OwnFinder()])
    own_code.forget_in(root)
    assert path == [f"{tmp_path}/root/code", f"{tmp_path}/shared", "relative"]
    monkeypatch.chdir(tmp_path / "root")
    own_code.forget_in(root)
    assert path == [f"{tmp_path}/root/code", f"{tmp_path}/shared"]


def test_what_ybs_itself_has_loaded_from_elsewhere_is_code_too(monkeypatch):
    package: Any = type(sys)("made_package")
    package.__file__, package.__path__ = "/p/made_package/__init__.py", ["/p/made_package"]
    module: Any = type(sys)("made_module")
    module.__file__ = "/p/made_module.py"
    inside: Any = type(sys)("made_namespace.inside")  # what is around it has no file
    inside.__file__, inside.__path__ = "/q/made/inside/__init__.py", ["/q/made/inside"]
    for each in (package, module, inside):
        monkeypatch.setitem(sys.modules, each.__name__, each)
    made = {"/p/made_package", "/p/made_module.py", "/q/made/inside"}
    look: Any = own_code._code  # pyright: ignore[reportPrivateUsage]
    assert made.isdisjoint(look.__wrapped__().folders)
    monkeypatch.setattr(sys, "meta_path", [OwnFinder()])
    assert made <= look.__wrapped__().folders


def test_a_plugin_that_a_finder_leads_to_is_code_before_it_is_loaded(monkeypatch, tmp_path: Path):
    plugins: Any = own_code._plugins  # pyright: ignore[reportPrivateUsage]
    module: Any = type(sys)("__editable___p_finder")
    module.MAPPING = {"acme.core": f"{tmp_path}/core", "other": f"{tmp_path}/other"}
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(Finder, "__module__", module.__name__)
    for name in ("core", "other"):
        (tmp_path / f"{name}.py").touch()
    entry = EntryPoint(package="p", group="ybs.wires", name="x", value="acme.core.wire:X")
    monkeypatch.setattr("ybs.config.installed.installed", lambda: [entry])
    assert list(plugins(has_links=False)) == []
    monkeypatch.setattr(sys, "meta_path", [Finder()])
    assert list(plugins(has_links=False)) == [f"{tmp_path}/core.py"]


def test_a_plugin_is_held_where_a_finder_says_that_it_lies(monkeypatch, tmp_path: Path):
    """As those of the package `editables`, which say it only when they are asked."""
    plugins: Any = own_code._plugins  # pyright: ignore[reportPrivateUsage]
    places = {"acme": tmp_path / "acme/__init__.py", "single": tmp_path / "single.py"}
    for path in places.values():
        path.parent.mkdir(exist_ok=True)
        path.touch()

    class Redirecting:
        @staticmethod
        def find_spec(name: str, path: object) -> Any:
            assert path is None
            if name == "odd":
                raise ValueError(name)
            return spec_from_file_location(name, places[name]) if name in places else None

    values = ("acme.wire:X", "single:X", "odd:X", "nowhere:X")
    entries = [EntryPoint(package="p", group="ybs.wires", name=e, value=e) for e in values]
    monkeypatch.setattr("ybs.config.installed.installed", lambda: entries)
    monkeypatch.setattr(own_code, "finders", [Redirecting])
    monkeypatch.setattr(editables, "finders", own_code.finders)
    assert set(plugins(has_links=False)) == {f"{tmp_path}/acme", f"{tmp_path}/single.py"}
    assert own_code.editable_folders() == list(dict.fromkeys(own_code.left_out))


def test_a_plugin_that_lies_in_a_linked_part_of_a_package_is_held(monkeypatch, tmp_path: Path):
    """`flit install --symlink` of a module `ns.plug`; and the same where `ns` has a file of its own."""
    packages, source = tmp_path / "site-packages", tmp_path / "project/src/plug"
    source.mkdir(parents=True)
    for name in ("ns", "ns/more", "old", "no-name", "whole"):
        (packages / name).mkdir(parents=True)
    for name in ("old", "whole"):
        (packages / name / "__init__.py").touch()
    for name in ("ns/plug", "ns/more/plug", "old/plug", "no-name/plug"):
        (packages / name).symlink_to(source)
    links: Any = own_code._links  # pyright: ignore[reportPrivateUsage]
    assert set(links(str(packages))) == {f"{packages}/ns/plug", f"{packages}/ns/more/plug"}
    entry = EntryPoint(package="p", group="ybs.tools", name="x", value="old.plug.tool:X")
    monkeypatch.setattr("ybs.config.installed.installed", lambda: [entry])
    monkeypatch.setattr("ybs.config.installed.site_folders", lambda: [str(packages)])
    monkeypatch.setattr(own_code, "module_folders", lambda: [str(packages)])
    monkeypatch.setattr(sys, "meta_path", [OwnFinder()])
    look: Any = own_code._code  # pyright: ignore[reportPrivateUsage]
    assert str(source) in look.__wrapped__().folders
    for link in ("ns/plug", "ns/more/plug"):
        (packages / link).unlink()
    (packages / "linked.py").symlink_to(source)
    plugins: Any = own_code._plugins  # pyright: ignore[reportPrivateUsage]
    assert list(plugins(has_links=True)) == [f"{packages}/old", f"{packages}/old/plug"]


def test_what_a_link_among_the_packages_leads_to_is_code_too(monkeypatch, tmp_path: Path):
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "project/src/linked").mkdir(parents=True)
    (tmp_path / "site-packages/linked").symlink_to("../project/src/linked")
    monkeypatch.setattr(
        own_code, "module_folders", lambda: (f"{tmp_path}/site-packages", "/no-packages")
    )
    look: Any = own_code._code  # pyright: ignore[reportPrivateUsage]
    assert f"{tmp_path}/project/src/linked" in look.__wrapped__().folders


def test_the_folder_of_the_script_that_started_ybs_is_code_where_python_looks_in_it(
    monkeypatch, tmp_path: Path
):
    programs: Any = own_code._more_folders  # pyright: ignore[reportPrivateUsage]
    folder = str(tmp_path.resolve())
    (tmp_path / "ybs").touch()
    monkeypatch.setattr(sys, "argv", [f"{folder}/ybs"])
    monkeypatch.setattr(sys, "path", [folder])
    assert folder not in programs()  # of a program that embeds ybs it is that program's
    monkeypatch.setattr(sys, "meta_path", [OwnFinder()])
    assert folder in programs()
    monkeypatch.setattr(sys, "path", [])
    assert folder not in programs()
    monkeypatch.setattr(sys, "argv", ["gone"])
    assert "" not in programs()
    assert not any("gone" in each for each in own_code._programs())  # pyright: ignore[reportPrivateUsage]


def test_packages_of_another_environment_in_which_ybs_looks_are_code(monkeypatch, tmp_path: Path):
    """`uv run --with ybs` looks in those of the project's environment, by a line of code in a `*.pth`."""
    packages, source = f"{tmp_path}/.venv/lib/site-packages", f"{tmp_path}/src"
    named = f"{tmp_path}/other/lib/site-packages"
    monkeypatch.setattr(sys, "path", [*sys.path, packages, source, named])
    monkeypatch.setenv("PYTHONPATH", f"/else:{named}")
    look: Any = own_code._code  # pyright: ignore[reportPrivateUsage]
    assert packages not in look.__wrapped__().folders  # of a program that embeds ybs
    monkeypatch.setattr(sys, "meta_path", [OwnFinder()])
    found = look.__wrapped__().folders
    assert {packages, source, named} & found == {packages}


def test_packages_of_the_user_and_a_folder_of_compiled_modules_belong_to_it(monkeypatch):
    import site

    monkeypatch.setattr(site, "ENABLE_USER_SITE", True)
    monkeypatch.setattr(site, "USER_SITE", "/home/u/packages")
    monkeypatch.setattr(sys, "pycache_prefix", "/home/u/compiled")
    assert "/home/u/packages" in own_code.module_folders()
    assert "/home/u/compiled" in own_code._more_folders()  # pyright: ignore[reportPrivateUsage]


def test_each_link_on_the_way_counts_also_one_that_goes_up_and_a_circle_ends(tmp_path):
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/link").symlink_to("../a/b")
    link, end = f"{tmp_path}/a/link", f"{tmp_path}/a/b"
    assert list(steps(link, has_turns=False)) == [link, end]
    assert list(steps(link)) == [link, str(tmp_path), end]
    (tmp_path / "circle").symlink_to("circle")
    assert set(steps(f"{tmp_path}/circle")) == {f"{tmp_path}/circle"}


def test_folders_in_which_python_would_look_are_there_before_a_command_could_make_them(
    monkeypatch, tmp_path: Path, fresh
):
    import site

    packages, compiled = tmp_path / "user/lib/packages", tmp_path / "compiled"
    debians, within = tmp_path / "local/lib/dist-packages", tmp_path / "lib/dist-packages"
    monkeypatch.setattr(site, "ENABLE_USER_SITE", True)
    monkeypatch.setattr(site, "USER_SITE", str(packages))
    monkeypatch.setattr(site, "getsitepackages", lambda: [str(debians), str(within)])
    monkeypatch.setattr(sys, "pycache_prefix", str(compiled))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    (tmp_path / "pyvenv.cfg").touch()
    own_code.make_missing(str(tmp_path / "other"))
    assert [each.name for each in tmp_path.iterdir()] == ["pyvenv.cfg"]
    own_code.make_missing(str(tmp_path))
    assert all(each.is_dir() for each in (packages, compiled, debians))
    assert not within.exists()  # in a folder that is held as a whole
    assert {str(packages), str(debians)} <= {*own_code.code_in(str(tmp_path))}
    fresh()
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "file/x"))
    (tmp_path / "file").touch()
    own_code.make_missing(str(tmp_path))
    monkeypatch.delitem(sys.modules, "site")
    assert str(packages) not in own_code.module_folders()


def test_a_folder_of_programs_a_script_or_a_plugin_is_code_also_where_it_is_the_project(
    monkeypatch, tmp_path: Path, fresh
):
    """`~/.local/bin` with the script of `pip install --user`; a repository that is the package of a plug-in."""
    bin_folder, plugin = tmp_path / "home/bin", tmp_path / "plugin"
    for each in (bin_folder, plugin, tmp_path / "venv/bin"):
        each.mkdir(parents=True)
    (bin_folder / "ybs").touch()
    package: Any = type(sys)("made_package")
    package.__file__, package.__path__ = f"{plugin}/__init__.py", [str(plugin)]
    monkeypatch.setitem(sys.modules, package.__name__, package)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    monkeypatch.setattr(sys, "argv", [str(bin_folder / "ybs")])
    monkeypatch.setattr(sys, "path", [str(bin_folder), *sys.path])
    monkeypatch.setattr(sys, "meta_path", [OwnFinder()])
    for folder in (bin_folder, plugin, plugin / "parts", tmp_path / "venv/bin"):
        assert own_code.code_in(str(folder)) == (str(folder),)
    assert own_code.code_in(str(tmp_path / "venv/src")) == ()
    assert own_code.code_in(str(tmp_path / "home")) == (str(bin_folder),)
    fresh()


@pytest.mark.parametrize("python", [sys.executable, "/usr/bin/python3"])
def test_what_python_looks_for_at_its_start_in_the_folder_of_an_editable_install_is_asked_about(
    python, tmp_path: Path
):
    """Debian's and Ubuntu's looks for more than others."""
    same = 'import sys; print(sys.version_info[:2] == tuple(map(int, sys.argv[1].split("."))))'
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    asked = [python, "-c", same, version]
    if not os.access(python, os.X_OK) or b"True" not in subprocess.check_output(asked):
        pytest.skip("NOT TESTED: needs a system's Python of this version")
    subprocess.run([python, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    (site,) = tmp_path.glob("venv/lib/python*/site-packages")
    src = tmp_path / "project/src"
    src.mkdir(parents=True)
    (site / "seen.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    (site / "ybs").symlink_to(Path(ybs.__file__).parent)
    (site / "zz.pth").write_text(f"{src}\n")
    script = tmp_path / "venv/bin/ybs"
    script.write_text(PROGRAM)
    done = subprocess.run(
        [tmp_path / "venv/bin/python", "-vv", script, "config", "show"],
        env={"HOME": str(tmp_path)}, cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    tried = [Path(line.rpartition("trying ")[2]) for line in done.stderr.splitlines() if f"trying {src}/" in line]  # fmt: skip
    assert tried  # of each name the module, its compiled file and the package
    shown = Roots(this_host(), tmp_path / "project")
    sources = [each for each in tried if each.suffix in (".py", ".pyc", ".so")]
    assert [each.name for each in sources if not shown.autorun_part(each)] == []


def test_a_python_that_a_file_could_lead_elsewhere_is_code_as_a_whole(monkeypatch, tmp_path: Path):
    """The project is what holds the interpreter, as of conda: Python looks there for `pyvenv.cfg`, which is missing."""
    root = str(tmp_path.resolve())
    monkeypatch.setattr(sys, "prefix", root)
    own_code._code_in.cache_clear()  # pyright: ignore[reportPrivateUsage]
    assert own_code.code_in(root) == (root,)
    own_code._code_in.cache_clear()  # pyright: ignore[reportPrivateUsage]
    (tmp_path / "pyvenv.cfg").touch()
    assert root not in own_code.code_in(root)
    own_code._code_in.cache_clear()  # pyright: ignore[reportPrivateUsage]


def test_an_environment_with_ybs_is_code_whoever_runs_from_it(tmp_path: Path, fresh) -> None:
    root, outer = tmp_path.resolve() / "project", tmp_path.resolve() / "venvs/p"
    packages = [root / name / "lib/python3.11/site-packages" for name in (".venv", "a/env", "a/b/deep", "node_modules/env", "other", "editable")]  # fmt: skip
    packages.append(outer / "lib/python3.12/site-packages")
    for each in packages:
        each.mkdir(parents=True)
        (each / "../../../bin").resolve().mkdir()
        (each / "../../../bin/python").resolve().symlink_to("/usr/bin/python3")
        if "other" not in each.parts and "editable" not in each.parts:
            (each / "ybs").mkdir()
            (each / "ybs/__init__.py").touch()
    (packages[5] / "ybs-1.dist-info").mkdir()
    (packages[0] / "linked").symlink_to(root / "source")
    (root / "link").symlink_to(outer)
    (root / "around").symlink_to(tmp_path)  # nothing is looked for behind it
    (root / "closed").mkdir(mode=0)
    assert own_code.code_in(str(root)) == ()
    own_code.find_installed(str(root))
    own_code.find_installed(str(root / "missing"))
    found = {str(root / name) for name in (".venv", "a/env", "link", "source")}
    assert {*own_code.code_in(str(root))} == found
    assert own_code.code_in(str(packages[0])) == (str(packages[0]),)
    shutil.rmtree(root / ".venv")
    own_code.find_installed(str(root / "missing"))
    assert {*own_code.code_in(str(root))} == {str(root / "a/env"), str(root / "link")}
    fresh()
    assert own_code.code_in(str(root)) == ()
