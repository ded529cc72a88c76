"""Fixtures for every test: a temporary HOME, an empty project, and no network but loopback."""

import gc
import os
import re
import shutil
import signal
import socket
from collections.abc import Generator, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import settings
from hypothesis.internal.conjecture import providers

from leaks import put_back_what_is_process_wide, tell_of_open_databases
from skips import unexpected

# A busy machine is slow, and that is no fault of what is tested. CI looks longer (`--hypothesis-profile thorough`).
settings.register_profile("ybs", deadline=None, max_examples=12)
settings.register_profile("thorough", deadline=None, max_examples=20)
settings.load_profile("ybs")

LOOPBACK = ("127.", "localhost", "::1")

_connect = socket.socket.connect
_homes: list[Path] = []
_numbers = count()
_skips: list[str] = []
_left_out: set[str] = set()
_MODE = 0o755
_MODULE_MARK = re.compile(r"^pytestmark = \[?\s*pytest\.mark\.(\w+)", re.MULTILINE)
_HAS_FAILED = pytest.StashKey[bool]()


def _checked_connect(self: socket.socket, address: Any) -> Any:
    host = address[0] if isinstance(address, tuple) else ""
    if self.family in (socket.AF_INET, socket.AF_INET6) and not host.startswith(LOOPBACK):
        raise AssertionError(f"a test tried to reach {host}")
    return _connect(self, address)


def pytest_configure(config: pytest.Config) -> None:
    """Refuse every connection that would leave this machine, forget anybody's keys, put the search for garbage off."""
    # Most runs leave marked tests out. Where whole folders are run, these are not even collected, by none of the processes.
    left_out = re.fullmatch(r"not \((\w+(?: or \w+)*)\)", config.option.markexpr)
    if left_out and all(Path(arg).is_dir() for arg in config.args):
        _left_out.update(left_out[1].split(" or "))
    # Once, not by a fixture that each of thousands of tests waits for.
    socket.socket.connect = _checked_connect
    for name in list(os.environ):
        if name.startswith(("YBS_", "XDG_")) or name.endswith(("_API_KEY", "_PROXY", "_proxy")):
            del os.environ[name]
    # A shell that starts the suite in the background has all that it starts ignore Ctrl-C, which tests press.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Reading the system's certificates takes 20 ms, again for each client; loopback needs none of them.
    os.environ.pop("SSL_CERT_FILE", None)
    os.environ["SSL_CERT_DIR"] = "/nonexistent"
    # Hypothesis reads the constants of every module that is loaded, in each process, for one value in twenty: CI does.
    if not config.option.hypothesis_profile:
        providers.is_local_module_file = lambda _path: False
    tell_of_open_databases()
    gc.disable()


def pytest_unconfigure() -> None:
    """Give the network back."""
    socket.socket.connect = _connect


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Import no module whose tests are all left out."""
    if not _left_out or collection_path.suffix != ".py":
        return None
    marks = _MODULE_MARK.search(collection_path.read_text(encoding="utf-8"))
    return True if marks and marks[1] in _left_out else None


def pytest_pycollect_makeitem(obj: object) -> list[pytest.Item] | None:
    """Make nothing of a test that is left out."""
    marks = getattr(obj, "pytestmark", ()) if _left_out else ()
    return [] if any(mark.name in _left_out for mark in marks) else None


def pytest_collection_finish() -> None:
    """Leave what was collected out of the search for garbage: that takes seconds, for nothing."""
    # The processes that run tests are measured; what those start is not, which would take it twice as long.
    os.environ.pop("COVERAGE_PROCESS_CONFIG", None)
    gc.freeze()
    gc.set_threshold(20_000)
    gc.enable()


def pytest_report_teststatus(report: pytest.CollectReport | pytest.TestReport) -> None:
    """Keep why a test is skipped; with several processes the reports come to the one that counts."""
    if report.skipped and isinstance(report.longrepr, tuple):
        _skips.append(report.longrepr[2].removeprefix("Skipped: "))


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Keep why a whole module is skipped."""
    if report.skipped and isinstance(report.longrepr, tuple):
        _skips.append(report.longrepr[2].removeprefix("Skipped: "))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In CI, fail a run that skipped what it should have tested."""
    if os.environ.get("CI") and (wrong := unexpected(_skips)):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        print("\nSkipped in CI, and not on the list of tests/skips.py:", *wrong, sep="\n  ")  # noqa: T201 - pytest's own report


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Have a worker say once how a test went: a message for each of its phases costs both processes more than a small test."""
    option = item.config.option
    if not hasattr(item.config, "workerinput") or option.verbose > 0:
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed or report.duration > option.durations_min:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    """Fail the test that leaves something to the tests after it, rather than one of those."""
    yield
    if left := put_back_what_is_process_wide():
        raise AssertionError(f"{item.name} leaves behind: {left}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember which test has failed."""
    report = yield
    if report.failed:
        item.stash[_HAS_FAILED] = True
    if (
        report.passed
    ):  # each process sends its reports to the one that counts, which reads neither of these
        report.keywords, report.sections = {}, []
    return report


def _new_folder(base: Path, name: str) -> Path:
    folder = base / f"{name}-{next(_numbers)}"
    folder.mkdir()
    return folder


def _is_like_new(folder: Path) -> bool:
    return folder.is_dir() and folder.stat().st_mode & 0o777 == _MODE and not any(folder.iterdir())


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the test an empty HOME."""
    # Most tests leave it empty, so the next one can have it. Not in `tmp_path`: few tests need that. Nor by
    # `monkeypatch`, which half of the tests do without: the next test sets it anew.
    if not _homes or not _is_like_new(_homes[-1]):
        _homes.append(_new_folder(tmp_path_factory.getbasetemp(), "home"))
        _homes[-1].chmod(_MODE)
    os.environ["HOME"] = str(_homes[-1])
    return _homes[-1]


@pytest.fixture
def tmp_path(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Path]:
    """Make an empty folder. pytest's own looks through the folders of all tests before for a free number.

    It stays where the test fails. Else it goes at once: pytest removes thousands of them in one process, from the disk.
    """
    name = re.sub(r"\W", "_", request.node.name)[:30]
    folder = _new_folder(tmp_path_factory.getbasetemp(), name)
    yield folder
    if not request.node.stash.get(_HAS_FAILED, default=False):
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make an empty project and stand in it."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder
