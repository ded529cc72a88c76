"""Which sandbox is chosen, and what happens where there is none: S19 of the security cases."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hosts import host_at, this_host
from ybs.core.errors import Refused
from ybs.core.remedies import Remedy
from ybs.security.sandbox import bubblewrap, landlock, seatbelt
from ybs.security.sandbox import choice as sandbox
from ybs.security.sandbox.choice import Backend, Open, choose, see
from ybs.security.sandbox.landlock import Kernel


@pytest.fixture(autouse=True)
def untried() -> Iterator[None]:
    """Forget what this process found out about the real machine, before and after."""
    for found in (sandbox.tried_bubblewrap, sandbox.tried_landlock):
        found.cache_clear()
    yield
    for found in (sandbox.tried_bubblewrap, sandbox.tried_landlock):
        found.cache_clear()


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, project: Path, home: Path):
    """Return a function that makes a machine with some sandboxes and chooses one there."""

    def chosen(*, bwrap: bool = False, abi: int = 0, platform: str = "linux", works: bool = True) -> Backend:  # fmt: skip
        kernel = Kernel(lambda *_: 0, lambda *_: 0, abi)
        monkeypatch.setattr(sys, "platform", platform)
        monkeypatch.setattr(bubblewrap, "find", lambda: "/usr/bin/bwrap" if bwrap else None)
        monkeypatch.setattr(bubblewrap, "attempt", lambda _: ((), "/usr/bin/bwrap") if works else (None, "refused"))  # fmt: skip
        monkeypatch.setattr(landlock, "open_kernel", lambda: kernel)
        monkeypatch.setattr(landlock, "is_known", lambda _: True)
        monkeypatch.setattr(seatbelt, "find", lambda: "/usr/bin/sandbox-exec" if works else None)
        return choose(see(host_at(home), project))

    return chosen


def test_bubblewrap_comes_first(machine) -> None:
    backend = machine(bwrap=True, abi=7)
    assert (backend.name, backend.why, backend.is_reduced) == (
        "bubblewrap",
        "/usr/bin/bwrap",
        False,
    )


@pytest.mark.parametrize("bwrap", [True, False])
def test_landlock_stands_in_and_says_so(machine, bwrap: bool) -> None:
    backend = machine(bwrap=bwrap, abi=3, works=False)
    assert (backend.name, backend.is_reduced) == ("landlock (reduced)", True)
    assert ("refused" if bwrap else "not installed") in backend.why
    assert "Landlock ABI 3 stands in for it" in backend.why


def test_without_any_every_command_is_refused_with_the_reason(machine, project: Path) -> None:
    backend = machine(bwrap=True, works=False)
    assert (backend.name, backend.is_reduced) == ("none", True)
    with pytest.raises(Refused, match="refused; the kernel offers no Landlock") as caught:
        backend.launch(("true",), project, {})
    assert Remedy("run_without_sandbox") in caught.value.remedies


def test_macos_has_sandbox_exec_or_nothing(machine) -> None:
    assert machine(platform="darwin").name == "sandbox-exec"
    assert machine(platform="darwin", works=False).why == "/usr/bin/sandbox-exec is missing"


def test_another_system_has_none(machine) -> None:
    assert machine(platform="freebsd14").why == "ybs knows no sandbox for freebsd14"


def test_the_machine_is_tried_once(machine, monkeypatch: pytest.MonkeyPatch, project: Path) -> None:
    tried = []
    machine(bwrap=True)
    monkeypatch.setattr(bubblewrap, "attempt", lambda _: tried.append(1))
    choose(see(this_host(), project))
    assert tried == []


@pytest.mark.integration
def test_only_the_sandbox_that_is_used_is_loaded() -> None:
    code = "import sys, ybs.security.sandbox.choice as s; print(sorted(m for m in sys.modules if m in ('ctypes', 'subprocess', 'tempfile') or '._' in m and m.startswith('ybs.security')))"  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_no_sandbox_runs_the_command_as_it_is_in_a_built_environment(
    project: Path, home: Path
) -> None:
    backend = Open()
    assert (backend.name, backend.why, backend.is_reduced) == (
        "none",
        "you turned it off",
        True,
    )
    surroundings = {"OPENAI_API_KEY": "k", "TMPDIR": "/t", "HOME": str(home), "RUN_BY_YBS": "a.1;"}
    launch = backend.launch(("true",), project, surroundings)
    assert launch.environ["HOME"] == str(home)
    assert launch.environ["RUN_BY_YBS"] == "a.1;"
    assert launch.argv == ("true",)
    assert launch.environ["TMPDIR"] == "/t"
    assert "OPENAI_API_KEY" not in launch.environ


def test_a_machine_without_a_filter_has_no_landlock_either(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernel = Kernel(lambda *_: 0, lambda *_: 0, 3)
    monkeypatch.setattr(landlock, "is_known", lambda _: False)
    found, why = landlock.attempt(kernel)
    assert found is None
    assert "no system call filter" in why
    assert landlock.attempt(None) == (None, "the kernel offers no Landlock")


def test_only_linux_has_something_to_try_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    monkeypatch.setattr(bubblewrap, "find", lambda: tried.append(sys.platform))
    for platform in ("darwin", "linux"):
        monkeypatch.setattr(sys, "platform", platform)
        sandbox.try_machine()
    assert tried == ["linux"]
