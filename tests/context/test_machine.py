"""System information: one short line."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from rows import every_row
from ybs.context import project as machine
from ybs.context.project import MOST_BYTES, system_information


@pytest.fixture
def cgroups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with 8 cores and 24 GB, and a cgroup `/a/b` on it."""
    own = tmp_path / "own"
    own.write_text("0::/a/b\n")
    folder = tmp_path / "cgroup"
    (folder / "a/b").mkdir(parents=True)
    real = machine._read  # pyright: ignore[reportPrivateUsage] - its one frontend to the system

    def read(path: Path) -> str:
        return real(own if path == Path("/proc/self/cgroup") else path)

    monkeypatch.setattr(machine, "_read", read)
    monkeypatch.setattr(machine, "_CGROUPS", folder)
    monkeypatch.setattr("sys.platform", "linux")
    pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 24 * 2**30 // 4096}
    eight = {0: set(range(8))}  # by process: 0 is this one
    monkeypatch.setattr(os, "sched_getaffinity", eight.__getitem__, raising=False)
    monkeypatch.setattr(os, "sysconf", pages.__getitem__)
    uname = SimpleNamespace(sysname="Linux", machine="x86_64")
    monkeypatch.setattr(os, "uname", lambda: uname, raising=False)
    return folder


def test_the_line_says_what_runs_on_what(cgroups: Path):
    text = system_information("0.3", "ollama", "qwen3:14b", 32_768, 8_192)
    assert text == (
        "ybs 0.3, ollama qwen3:14b, window 32,768 (answers up to 8,192), 8 cores, 24 GB, Linux x86_64"
    )
    (cgroups / "a/b/cpu.max").write_text("max 100000\n")
    (cgroups / "a/cpu.max").write_text("150000 100000\n")
    (cgroups / "memory.max").write_text("536870912\n")
    assert "), 2 cores, 512 MB, " in system_information("0.3", "o", "m", 4_096, 1_024)
    (cgroups / "a/b/cpu.max").write_text("nonsense\n")
    (cgroups / "a/cpu.max").write_text("1 100000\n")
    (cgroups / "memory.max").write_text("max\n")
    assert ", 1 core, 24 GB, " in system_information("0.3", "o", "m", 4_096, 1_024)


def test_unknown_limits_are_not_named(cgroups: Path, monkeypatch: pytest.MonkeyPatch):
    assert system_information("1", "p", "m", 0, 100).startswith("ybs 1, p m, 8 cores")
    assert "window 100, 8 cores" in system_information("1", "p", "m", 100, 100)

    def fail(_: str) -> int:
        raise ValueError("unrecognized configuration name")

    monkeypatch.setattr(os, "sysconf", fail)
    assert machine.memory_bytes() == 0
    assert ", 8 cores, Linux" in system_information("1", "p", "m", 100, 100)


@every_row("model", ["x" * 500, "日本" * 100, "\x1b[31m\nred\u202e", "", "m" * 50])
def test_the_line_is_short_and_legible_whatever_the_model_is_called(model: str, cgroups: Path):
    text = system_information("0.3.0.dev1+local", "openai", model, 1_000_000, 65_536)
    assert len(text.encode()) <= MOST_BYTES
    assert text.isprintable()
    assert text.startswith("ybs 0.3.0.dev1+local, openai")
    whole = (
        "x86_64",
        "24 GB",
        "(answers up to 65,536)",
    )  # what does not fit is left out as a whole
    assert text.endswith(whole)
