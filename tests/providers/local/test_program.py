"""Which program serves the model."""

import importlib.util
import shutil
from pathlib import Path

import pytest

from hosts import this_host
from rows import every_row
from ybs.core.errors import ConfigError
from ybs.providers.local import program
from ybs.providers.local.hardware import Gpu, Machine

CARD = Gpu(maker="nvidia", name="T4", total_bytes=1, free_bytes=1)
APPLE = Gpu(maker="apple", name="Apple GPU", total_bytes=1, free_bytes=1, is_shared=True)
FOUND = "/usr/bin/llama-server"


@every_row(
    ("has_extra", "in_path", "gpus", "expected"),
    [
        (True, FOUND, (), ""),
        (True, None, (), ""),
        (True, FOUND, (CARD,), FOUND),
        (True, None, (CARD,), ""),
        (True, FOUND, (APPLE,), ""),
        (False, FOUND, (), FOUND),
        (False, FOUND, (CARD,), FOUND),
        (True, "bin/llama-server", (CARD,), ""),
    ],
)
def test_the_extra_serves_unless_a_card_wants_another_program(
    monkeypatch: pytest.MonkeyPatch,
    has_extra: bool,
    in_path: str | None,
    gpus: tuple[Gpu, ...],
    expected: str,
):
    monkeypatch.setattr(program, "find_spec", lambda _name: has_extra or None)
    monkeypatch.setattr(shutil, "which", lambda _name, path: in_path)
    assert program.find_program(this_host(), None, Machine(cores=2, gpus=gpus)) == expected


@every_row("in_path", [None, "llama-server"])
def test_without_any_program_the_message_names_three_ways(
    monkeypatch: pytest.MonkeyPatch, in_path: str | None
):
    monkeypatch.setattr(program, "find_spec", lambda _name: None)
    monkeypatch.setattr(shutil, "which", lambda _name, path: in_path)
    with pytest.raises(ConfigError) as caught:
        program.find_program(this_host(), None, Machine(cores=2))
    for words in (r"pip install 'ybs[local]'", "`llama-server` is in PATH", "local.server"):
        assert words in str(caught.value)


def test_the_program_of_the_settings_goes_first(tmp_path: Path):
    path = tmp_path / "my-server"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    assert program.find_program(this_host(), str(path), Machine(cores=2)) == str(path)


def test_a_program_of_the_settings_must_be_there_and_absolute(tmp_path: Path):
    path = tmp_path / "plain.txt"
    path.write_text("x")
    for named in (str(path), str(tmp_path / "gone"), "llama-server", str(tmp_path)):
        with pytest.raises(ConfigError, match=r"local\.server is not the absolute path"):
            program.find_program(this_host(), named, Machine(cores=2))


def test_the_name_of_the_extra_is_right():
    assert (
        importlib.util.find_spec("xllamacpp") is None
        or program.find_program(this_host(), None, Machine(cores=1)) == ""
    )
