"""A real PostgreSQL server for tests: made in a folder, on a free port of the loopback, and ended with them."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

USER = "ybs"


def programs() -> Path | None:
    """Return the folder of the server's programs: that of the newest version which is installed; None where there is none."""
    versions = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: int(p.parts[4])
    )
    if versions:  # Debian's are not on PATH
        return versions[-1].parent
    found = shutil.which("initdb")
    return Path(found).resolve().parent if found else None


class Postgres:
    """One server. It can be ended and started again, as a machine would."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._bin = folder, programs() or Path()
        with socket.create_server(("127.0.0.1", 0)) as taken:
            self.port: int = taken.getsockname()[1]
        self._running: subprocess.Popen[bytes] | None = None
        if os.geteuid() == 0:  # it refuses to run as root
            shutil.chown(folder, "postgres")
        self._run("initdb", "--no-sync", "-A", "trust", "-U", USER, "-E", "UTF8", "-D", str(folder / "data"))  # fmt: skip

    @property
    def url(self) -> str:
        """What the setting `gateway.database` takes."""
        return f"postgresql://{USER}@127.0.0.1:{self.port}/ybs"

    @property
    def pid(self) -> int:
        """The process of the running server, which has the others as children."""
        assert self._running is not None
        return self._running.pid

    def _command(self, program: str, *arguments: str) -> list[str]:
        who = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        return [*(who if os.geteuid() == 0 else []), str(self._bin / program), *arguments]

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(self._command(program, *arguments), capture_output=True, text=True, check=False, cwd="/")  # fmt: skip
        assert done.returncode == 0, done.stderr

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = ("-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "fsync=off")  # fmt: skip
        self._running = subprocess.Popen(
            self._command("postgres", "-D", str(self._folder / "data"), "-p", str(self.port), *options),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/",
        )  # fmt: skip
        ready = self._command("pg_isready", "-h", "127.0.0.1", "-p", str(self.port))
        for _ in range(200):
            if subprocess.run(ready, capture_output=True, check=False, cwd="/").returncode == 0:
                break
            time.sleep(0.05)
        with suppress(AssertionError):  # it is there when the server is started again
            self._run("createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", USER, "ybs")

    def end(self, *, kill: bool = False) -> None:
        """End it: at once, without a word to those who are connected (`kill`), or telling them."""
        if self._running is not None:
            self._running.kill() if kill else self._running.send_signal(2)
            self._running.wait(20)
            self._running = None

    def ask(self, statement: str) -> str:
        """Return what a statement answers, as psql prints it."""
        command = self._command("psql", "-h", "127.0.0.1", "-p", str(self.port), "-U", USER, "-d", "ybs", "-AtXc", statement)  # fmt: skip
        return subprocess.run(command, capture_output=True, text=True, check=True, cwd="/").stdout.strip()  # fmt: skip


@contextmanager
def postgres(folder: Path) -> Generator[Postgres]:
    """Hand out a running server."""
    folder.mkdir(mode=0o711, exist_ok=True)
    server = Postgres(folder)
    server.start()
    try:
        yield server
    finally:
        server.end()
