"""The place of a bench: a throwaway home and project, the scripted server, and the programs to compare."""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from process import Ended, run

HERE = Path(__file__).parent
PROMPT = "Change VALUE from 1 to 2 in src/app.py, then run the checks."
#: What is measured: the ybs beside this interpreter, or the one that the variable YBS names.
YBS = os.environ.get("YBS") or str(Path(sys.executable).with_name("ybs"))


@dataclass(frozen=True)
class Row:
    """One line of the report. `limit` is the most that the project's measures allow; None where there is none."""

    what: str
    value: float
    unit: str
    limit: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Session:
    """One headless run of an agent and what it asked the server for."""

    ended: Ended
    all_requests: list[dict[str, Any]]

    @property
    def requests(self) -> list[dict[str, Any]]:
        """The requests for an answer, which the plan counts."""
        return [row for row in self.all_requests if row["path"].endswith("/chat/completions")]

    @property
    def first_request_seconds(self) -> float:
        """Time from spawn to the first byte of the first request."""
        return self.requests[0]["began"] - self.ended.started_at

    def seconds_to_request(self, number: int) -> float:
        """Time from spawn until request `number` (from 0) had arrived whole."""
        return self.requests[number]["arrived"] - self.ended.started_at

    @property
    def gaps_ms(self) -> list[float]:
        """What the agent took between an answer and the next request, for each turn after the first."""
        pairs = zip(self.requests, self.requests[1:], strict=False)
        return [(after["arrived"] - before["answered"]) * 1000 for before, after in pairs]


class Lab:
    """Everything that a measure needs. Use as a context manager."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="ybs-bench-"))
        self.environment = {
            "HOME": str(self.folder / "home"),
            "PATH": os.environ.get("PATH", os.defpath),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "OPENAI_API_KEY": "none",
        }
        self._count = 0
        #: Which folder the project of a session is a copy of.
        self.template = "template"

    def __enter__(self) -> "Lab":
        (self.folder / "home").mkdir()
        make_project(self.folder / "template")
        self._server = subprocess.Popen(
            [sys.executable, str(HERE / "server.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._port = int(self._server.stdout.readline())
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stdin.close()
        self._server.wait()
        self._server.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def address(self) -> str:
        """Where the server is."""
        return f"http://127.0.0.1:{self._port}"

    def plain(self, *argv: str) -> Ended:
        """Run a program that needs no server."""
        ended = run(list(argv), self.folder / "home", self.environment)
        if ended.code != 0:
            raise SystemExit(f"{' '.join(argv)} ended with {ended.code}:\n{ended.output}")
        return ended

    def python(self, code: str) -> Ended:
        """Run a line of Python with the interpreter that ybs runs on."""
        return self.plain(sys.executable, "-c", code)

    def ybs(self, plan: str, *more: str, **variables: str) -> Session:
        """Run `ybs --print` against a plan of the server, with questions off."""
        options = ["--provider", "openai", "--model", "fake", "--mode", "bypass", *more]
        words = [*options, "--print", PROMPT]
        return self._session(
            plan, lambda endpoint: [YBS, "--endpoint", endpoint, *words], variables
        )

    def floor(self, plan: str) -> Session:
        """Run the bare loop against a plan of the server."""
        return self._session(
            plan, lambda endpoint: [sys.executable, str(HERE / "floor.py"), endpoint, PROMPT], {}
        )

    def _session(
        self, plan: str, command: Callable[[str], list[str]], variables: dict[str, str]
    ) -> Session:
        self._count += 1
        base = f"/{plan}-{self._count}"
        project = self.folder / "project"
        shutil.rmtree(project, ignore_errors=True)
        shutil.copytree(self.folder / self.template, project)
        ended = run(
            command(f"http://127.0.0.1:{self._port}{base}/v1"),
            project,
            {**self.environment, **variables},
        )
        session = Session(ended, self._log_of(base))
        if ended.code != 0 or not session.requests:
            count = len(session.requests)
            raise SystemExit(
                f"{plan}: ended with {ended.code} after {count} requests:\n{ended.output}"
            )
        check_edits(project, plan)
        return session

    def _log_of(self, base: str) -> list[dict[str, Any]]:
        with closing(HTTPConnection("127.0.0.1", self._port)) as connection:
            connection.request("GET", f"{base}/log")
            return json.load(connection.getresponse())


def make_project(folder: Path) -> None:
    """Make a git repository of 61 small Python modules."""
    functions = "".join(
        f'\n\ndef scaled_by_{n}(number):\n    """Return the number times {n}."""\n    return number * {n}\n'
        for n in range(12)
    )
    (folder / "src").mkdir(parents=True)
    for name in ["app", *(f"mod_{n:02d}" for n in range(60))]:
        (folder / "src" / f"{name}.py").write_text(
            f'"""Module {name}."""\n\nVALUE = 1\n{functions}'
        )
    (folder / "README.md").write_text("# A project to measure with\n")
    if shutil.which("git"):
        git = [
            "git",
            "-C",
            str(folder),
            "-c",
            "user.name=bench",
            "-c",
            "user.email=bench@localhost",
        ]
        for arguments in (
            ["init", "-q", "-b", "main"],
            ["add", "-A"],
            ["commit", "-q", "-m", "start"],
        ):
            subprocess.run([*git, *arguments], check=True)


def check_edits(project: Path, plan: str) -> None:
    """Stop where a session did not do its work: its times would mean nothing."""
    names = (
        ["app"]
        if plan == "task"
        else [f"mod_{n:02d}" for n in range(int(plan.removeprefix("turns")) // 2)]
    )
    for name in names:
        if "VALUE = 2" not in (project / "src" / f"{name}.py").read_text():
            raise SystemExit(f"{plan}: src/{name}.py was not edited, so its times mean nothing")


def interleave(rounds: int, **measured: Callable[[], object]) -> dict[str, list]:
    """Run each one once to warm up, then `rounds` times by turns, so that a busy moment meets all of them."""
    for call in measured.values():
        call()
    results: dict[str, list] = {name: [] for name in measured}
    order = list(measured)
    for _ in range(rounds):
        for name in order:
            results[name].append(measured[name]())
        order.append(order.pop(0))
    return results


def median(values: Iterable[float]) -> float:
    """Return the middle value."""
    return statistics.median(values)
