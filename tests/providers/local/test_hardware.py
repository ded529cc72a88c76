"""Threads and memory."""

import os
from pathlib import Path

import pytest

from rows import every_row
from ybs.core.errors import ConfigError, ProviderDown
from ybs.providers.local import hardware


@every_row(("cores", "expected"), [(1, 1), (2, 1), (4, 3), (64, hardware.MOST_THREADS)])
def test_one_core_is_left_to_everything_else(
    monkeypatch: pytest.MonkeyPatch, cores: int, expected: int
):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(cores)), raising=False)
    assert hardware.threads({}) == expected


def test_the_variable_goes_before_the_count_of_cores():
    assert hardware.threads({"YBS_LLAMA_THREADS": "5"}) == 5


@every_row("asked", ["many", "0", "257", "-1", "1.5"])
def test_a_wrong_number_of_threads_is_refused(asked: str):
    with pytest.raises(ConfigError, match="YBS_LLAMA_THREADS"):
        hardware.threads({"YBS_LLAMA_THREADS": asked})


@every_row(
    ("text", "expected"),
    [
        ("MemTotal:  8 kB\nMemAvailable:    2000 kB\n", 2_048_000),
        ("MemTotal:  8 kB\n", None),
        ("MemAvailable: much\n", None),
        ("", None),
    ],
)
def test_free_memory_is_read_from_the_kernel(tmp_path: Path, text: str, expected: int | None):
    (tmp_path / "meminfo").write_text(text)
    assert hardware.free_memory_bytes(tmp_path / "meminfo") == expected


def test_a_system_that_does_not_say_is_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert hardware.free_memory_bytes(tmp_path / "none") is None
    monkeypatch.setattr(hardware, "free_memory_bytes", lambda: None)
    hardware.check_memory(tmp_path)


def test_a_model_that_does_not_fit_is_refused_with_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    model = tmp_path / "m.gguf"
    with model.open("wb") as file:
        file.truncate(1_000_000_000)
    monkeypatch.setattr(hardware, "free_memory_bytes", lambda: 1_500_000_000)
    with pytest.raises(ProviderDown, match=r"about 1\.9 GB of memory, and only 1\.5 GB is free"):
        hardware.check_memory(model)
    monkeypatch.setattr(hardware, "free_memory_bytes", lambda: 2_000_000_000)
    hardware.check_memory(model)
