"""Which program serves the model."""

import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from hosts import this_host
from rows import every_row
from ybs.core.errors import ConfigError
from ybs.providers.local import hardware, program
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
    monkeypatch.setattr(program, "persons_program", lambda *_, **__: in_path)
    monkeypatch.setattr(program, "uses_gpus", lambda _program, _ask: True)
    assert program.find_program(this_host(), None, Machine(cores=2, gpus=gpus)) == expected


def test_without_any_program_the_message_names_three_ways(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(program, "find_spec", lambda _name: None)
    monkeypatch.setattr(program, "persons_program", lambda *_, **__: None)
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


DEVICES = "Available devices:\n"


@every_row(
    ("program_path", "printed", "expected"),
    [
        ("", "[<ggml_backend_dev_type.GGML_BACKEND_DEVICE_TYPE_CPU: 0>]", False),
        ("", "[<..._TYPE_GPU: 1>, <ggml_backend_dev_type.GGML_BACKEND_DEVICE_TYPE_CPU: 0>]", True),
        ("", "", True),  # it takes too long, or fails
        (FOUND, f"{DEVICES}  CUDA0: NVIDIA T4 (15360 MiB, 15000 MiB free)\n", True),
        (FOUND, f"ggml_cuda_init: found 1\n{DEVICES}  ROCm0: AMD (8 MiB, 0 MiB free)\n", True),
        (FOUND, DEVICES, False),
        (FOUND, f"{DEVICES}  (none)\n", False),
        (FOUND, f"{DEVICES}  BLAS: OpenBLAS (0 MiB, 0 MiB free)\n", False),
        (FOUND, "", True),  # an older one, or one that takes too long
    ],
)
def test_a_program_says_whether_it_has_code_for_a_card(program_path, printed, expected):
    assert program.uses_gpus(program_path, lambda _argv: printed) is expected


def test_a_program_is_asked_once_until_another_file_is_in_its_place(tmp_path: Path):
    asked: list[str] = []

    def ask(argv: Sequence[str]) -> str:
        asked.append(argv[0])
        return f"{DEVICES}  CUDA0: T4 (15360 MiB, {len(asked)} MiB free)\n"

    one, other = tmp_path / "one", tmp_path / "other"
    for path in (one, other):
        path.write_text("")
    for path in (one, other, one):
        assert program.uses_gpus(str(path), ask)
    assert asked == [str(one), str(other)]
    os.utime(one, (1, 1))
    assert program.uses_gpus(str(one), ask)
    assert program.uses_gpus("", ask) is False
    assert program.uses_gpus("", ask) is False
    assert asked[2:] == [str(one), sys.executable]


@every_row(("can", "expected"), [((FOUND, ""), FOUND), ((FOUND,), FOUND), (("",), ""), ((), "")])
def test_the_program_that_is_asked_for_its_devices_is_the_one_that_is_started(
    monkeypatch: pytest.MonkeyPatch, can: tuple[str, ...], expected: str
):
    monkeypatch.setattr(hardware, "detect", lambda: Machine(cores=2, gpus=(CARD,)))
    monkeypatch.setattr(program, "find_spec", lambda _name: True)
    monkeypatch.setattr(program, "persons_program", lambda *_, **__: FOUND)
    monkeypatch.setattr(program, "uses_gpus", lambda asked, _ask: asked in can)
    machine = program.this_machine(this_host(), None)
    assert program.find_program(this_host(), None, machine) == expected
    assert (machine.gpus, machine.idle_gpus) == (((CARD,), ()) if can else ((), (CARD,)))


@every_row(
    ("gpus", "has_extra", "uses", "used", "idle"),
    [
        ((), True, False, (), ()),
        ((APPLE,), True, False, (APPLE,), ()),
        ((CARD,), True, True, (CARD,), ()),
        ((CARD,), True, False, (), (CARD,)),
        ((CARD,), False, False, (CARD,), ()),  # what will be installed is not known yet
    ],
)
def test_a_card_counts_where_the_program_can_use_it(monkeypatch, gpus, has_extra, uses, used, idle):
    monkeypatch.setattr(hardware, "detect", lambda: Machine(cores=2, gpus=gpus))
    monkeypatch.setattr(program, "find_spec", lambda _name: has_extra or None)
    monkeypatch.setattr(program, "persons_program", lambda *_, **__: None)
    monkeypatch.setattr(program, "uses_gpus", lambda _program, _ask: uses)
    found = program.this_machine(this_host(), None)
    assert (found.gpus, found.idle_gpus) == (used, idle)
