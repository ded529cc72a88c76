"""The place that is attacked: a home with canaries, a project, services, a process; and the verdict afterwards."""

import ctypes
import json
import os
import secrets
import shutil
import socket
import stat
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from string import Template
from typing import Any

from security.escapes.attempts import ATTEMPTS, Attempt
from ybs.security.sandbox.launch import Launch

#: The system's own: those of a home folder are hidden in the sandbox.
PYTHON = next((p for p in ("/usr/bin/python3", "/usr/local/bin/python3") if Path(p).exists()), "")
INSIDE = Path(__file__).with_name("inside.py")
SECONDS = 60
NOBODY = 65534
CANARIES_OF_HOME = (
    *(".ssh/id_ed25519", ".aws/credentials", ".config/gcloud/credentials.db", ".netrc"),
    *(".git-credentials", ".npmrc", ".pypirc", ".docker/config.json", ".kube/config"),
    *(".gnupg/private", ".bash_history", ".cargo/credentials.toml", ".config/ybs/config.json"),
    *(".config/gh/hosts.yml", ".m2/settings.xml", ".gem/credentials", ".ybs.json"),
    *(".local/share/uv/credentials/c", ".local/state/ybs/log", ".bashrc", ".ssh/authorized_keys"),
    *(".nvm/.npmrc", ".pyenv/versions/3/pip.conf"),
)
PLAIN_OF_HOME = (".cargo/bin/tool", ".local/bin/ls", ".pyenv/version")
OF_PROJECT = (
    *(
        ".git/HEAD",
        ".git/config",
        ".git/hooks/sample",
        ".git/info/exclude",
        ".git/objects/x",
        ".git/refs/x",
    ),
    *(".ybs/own", ".ybs.json", ".mcp.json", ".vscode/tasks.json", ".envrc", ".husky/pre-commit"),
    *(".gitmodules", "sub/.git/config", "sub/.git/hooks/sample", "src/app.py"),
    *("node_modules/x/.git/hooks/sample", "1/2/3/4/5/6/.git/config", "own-hooks/sample"),
    *("store/bare/HEAD", "store/bare/objects/x", "store/bare/refs/x", "store/bare/config"),
    *(".pre-commit-config.yaml", ".cargo/config.toml"),
)
_CREATE, _REMOVE = 0o1600, 0


class World:
    """Everything an attempt can reach for. Use as a context manager."""

    def __init__(self, user: int | None = None) -> None:
        self.user = os.getuid() if user is None else user
        self.name = f"ybs-escape-{secrets.token_hex(4)}"
        self.canary = f"canary-{secrets.token_hex(8)}"
        self.base = Path("/tmp", self.name)
        self.home, self.outside = self.base / "home", self.base / "outside"
        self.project, self.spool = self.base / "project", self.base / "spool"
        self._sockets: list[socket.socket] = []
        self.received = b""

    def __enter__(self) -> "World":
        self._make_files()
        self._open_services()
        self.victim = subprocess.Popen(
            ["sleep", "600"],
            cwd=self.outside,
            env={"KEY_OF_VICTIM": self.canary},
            **_as_user(self.user),
        )
        self._leak = os.open(self.outside / "secret", os.O_RDONLY)
        os.set_inheritable(self._leak, True)  # every spawn has to keep it from the child by itself
        self._before = self._state()
        return self

    def __exit__(self, *_: object) -> None:
        self.victim.kill()
        self.victim.wait()
        os.close(self._leak)
        for one in self._sockets:
            one.close()
        ctypes.CDLL(None).shmctl(self._shared_id, _REMOVE, None)
        for path in self._common():
            path.unlink(missing_ok=True)
        shutil.rmtree(self.base, ignore_errors=True)

    @property
    def names(self) -> dict[str, str | int]:
        """What the attempts' texts find as variables."""
        return {
            "H": str(self.home), "O": str(self.outside), "P": str(self.project), "B": str(self.base),
            "S": str(self.spool), "N": self.name, "victim": self.victim.pid, "port": self.port,
            "datagrams": self.datagrams_port, "abstract": self.name, "shared": self.shared_key,
        }  # fmt: skip

    @property
    def environ(self) -> dict[str, str]:
        """The environment that ybs has: full of canaries and of variables that run code."""
        secret = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN")
        runs = ("BASH_ENV", "LD_PRELOAD", "PYTHONSTARTUP", "NODE_OPTIONS", "GIT_SSH_COMMAND")
        reaches = ("SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "XDG_RUNTIME_DIR")
        return {
            "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.home), "LANG": "C.UTF-8",
            **dict.fromkeys((*secret, *runs, *reaches, "DATABASE_URL"), self.canary),
        }  # fmt: skip

    def attack(self, launch: Launch, attempts: Iterable[Attempt] = ATTEMPTS) -> dict[str, str]:
        """Run a launch of `command()`; return what each attempt said, "won" for those that succeeded."""
        process = spawn(launch, self.project, self.user)
        out, err = process.communicate(timeout=SECONDS)
        marker, _, results = out.partition("RESULTS ")
        assert results, f"the attempts did not run: {marker[-500:]} {err[-2000:]}"
        said: dict[str, str] = json.loads(results)
        broken = {id_: text for id_, text in said.items() if text.startswith(("BROKEN", "died"))}
        assert not broken, f"these attempts are no attempts: {broken}"
        self._listen()
        state = self._state()
        return {one.id: self._verdict(one, said[one.id], state) for one in attempts}

    def command(self, attempts: Iterable[Attempt] = ATTEMPTS) -> list[str]:
        """Write the plan into the project and return what carries it out."""
        plan = self.project / "plan.json"
        rows = [one._asdict() for one in attempts]
        plan.write_text(json.dumps({"names": self.names, "attempts": rows}))
        program = self.project / "inside.py"
        program.write_text(INSIDE.read_text())
        return [PYTHON, "-I", str(program), str(plan)]

    def unsandboxed(self, attempts: Iterable[Attempt]) -> Launch:
        """Return the launch of an agent that knows no sandbox: everything is inherited."""
        # The loader would complain of a library that is a canary, in the output of every command.
        environ = {name: value for name, value in self.environ.items() if name != "LD_PRELOAD"}
        return Launch(self.command(attempts), environ, (os.dup(self._leak),))

    def _verdict(self, one: Attempt, said: str, state: Mapping[str, object]) -> str:
        if one.lands:
            path = Path(Template(one.lands).substitute({k: str(v) for k, v in self.names.items()}))
            return "won" if _holds(path, one.id) else f"not there: {said}"
        if said == "host":
            return "won" if one.id.encode() in self.received else "nothing arrived"
        if said != "won" and self._before.get(one.id) != state.get(one.id):
            return "won"
        return said

    def _state(self) -> dict[str, object]:
        """Return what the attempts that leave no text behind would change."""

        def look(number: int) -> os.stat_result | None:
            path = self.outside / f"target{number}"
            return path.stat() if path.exists() else None

        size, mode, time, there, tagged = map(look, range(25, 30))
        return {
            "W25": size and size.st_size,
            "W26": mode and stat.S_IMODE(mode.st_mode),
            "W27": time and time.st_mtime,
            "W28": there is not None,
            "W29": os.listxattr(self.outside / "target29") if tagged else None,
            "W30": (self.outside / "W30").exists(),
        }

    def _make_files(self) -> None:
        for folder in (self.home, self.outside, self.project, self.base / "project2", self.spool):
            folder.mkdir(parents=True)
        self.base.chmod(0o755)
        canaries = [self.home / name for name in CANARIES_OF_HOME]
        canaries += [self.outside / "secret", self.spool / "secret", *self._common()[:2]]
        canaries += [self.project / "hidden" / "key", self.project / "deep" / "vault" / "key"]
        plain = [self.home / name for name in PLAIN_OF_HOME]
        plain += [self.project / name for name in OF_PROJECT]
        plain += [self.outside / f"target{number}" for number in (17, 18, 25, 26, 27, 28, 29)]
        plain += [self.spool / "target16"]
        for path in (*canaries, *plain):
            _write(path, self.canary if path in canaries else "plain")
        _write(self.project / ".git" / "HEAD", "ref: refs/heads/main")
        _write(self.project / ".git" / "config", "[core]\n\thooksPath = own-hooks\n")
        (self.project / "way-out").symlink_to(self.outside)
        self._make_archive()
        if os.getuid() == 0:
            for path in (self.base, *self.base.rglob("*")):
                os.chown(path, self.user, self.user, follow_symlinks=False)
        self.spool.chmod(0o777)

    def _make_archive(self) -> None:
        import io
        import tarfile

        with tarfile.open(self.project / "upwards.tar", "w") as archive:
            member = tarfile.TarInfo(f"{self.project}/../outside/W21")
            member.size = 3
            archive.addfile(member, io.BytesIO(b"W21"))

    def _common(self) -> list[Path]:
        """Return the places outside of the base that attempts reach for."""
        name = self.name
        return [
            Path("/tmp", f"{name}.secret"), Path("/dev/shm", f"{name}.secret"),
            Path("/tmp", f"{name}.W11"), Path("/var/tmp", f"{name}.W12"),
            Path("/dev/shm", f"{name}.W13"), Path("/etc/cron.d", name),
            Path("/usr/local/bin", f"{name}.W23"), Path("/", f"{name}.W24"),
        ]  # fmt: skip

    def _open_services(self) -> None:
        tcp = socket.create_server(("127.0.0.1", 0))
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("127.0.0.1", 0))
        self.port, self.datagrams_port = tcp.getsockname()[1], udp.getsockname()[1]
        abstract = _unix(socket.SOCK_STREAM, f"\0{self.name}")
        service = _unix(socket.SOCK_STREAM, str(self.outside / "service"))
        common = _unix(socket.SOCK_STREAM, str(self.spool / "service"))
        datagrams = _unix(socket.SOCK_DGRAM, str(self.outside / "datagrams"))
        for name in ("service", "datagrams"):
            (self.outside / name).chmod(0o777)
        (self.spool / "service").chmod(0o777)
        self._datagrams = (udp, datagrams)
        self._sockets = [tcp, udp, abstract, service, common, datagrams]
        self.shared_key = secrets.randbelow(2**30) + 1
        self._shared_id = ctypes.CDLL(None).shmget(self.shared_key, 4096, _CREATE | 0o666)

    def _listen(self) -> None:
        for one in self._datagrams:
            one.setblocking(False)
            try:
                while True:
                    self.received += one.recv(100)
            except BlockingIOError:
                continue


def spawn(launch: Launch, folder: Path, user: int) -> subprocess.Popen[str]:
    """Start a launch as run_shell does, as another user where the test is root's."""
    try:
        return subprocess.Popen(
            launch.argv, env=dict(launch.environ), cwd=folder, pass_fds=launch.descriptors,
            preexec_fn=launch.before_exec, start_new_session=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **_as_user(user),
        )  # fmt: skip
    finally:
        for descriptor in launch.descriptors:
            os.close(descriptor)


def _as_user(user: int) -> dict[str, Any]:
    return {} if user == os.getuid() else {"user": user, "group": user, "extra_groups": []}


def _holds(path: Path, text: str) -> bool:
    try:
        return path.is_file() and text in path.read_text(errors="replace")
    except OSError:
        return False


def _unix(kind: int, address: str) -> socket.socket:
    one = socket.socket(socket.AF_UNIX, kind)
    one.bind(address)
    if kind == socket.SOCK_STREAM:
        one.listen()
    return one


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")


def held(results: Mapping[str, str]) -> set[str]:
    """Return the ids of the attempts that came to nothing."""
    return {id_ for id_, said in results.items() if said != "won"}
