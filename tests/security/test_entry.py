"""Entering the reduced sandbox: what is prepared before the fork, and what a child does with it."""

import ctypes
import os
import struct
import sys

import pytest

from rows import every_row
from ybs.security.sandbox import entry as entry_module
from ybs.security.sandbox.entry import Entry, Kernel, open_kernel, prepare

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="NOT TESTED: needs Linux")


class FakeCalls:
    """Records system calls and answers them."""

    def __init__(self, result: int = 0) -> None:
        self.calls: list[tuple[object, ...]] = []
        self.result = result

    def __call__(self, *arguments: object) -> int:
        self.calls.append(arguments)
        return self.result


@every_row(("abi", "size"), [(1, 8), (3, 8), (4, 16), (5, 16), (6, 24), (7, 24)])
def test_a_kernel_is_told_only_what_it_knows(abi: int, size: int) -> None:
    calls = FakeCalls(5)
    assert Kernel(calls, calls, abi).create_ruleset(7, network=3, scopes=3) == 5
    ((number, attributes, length, flags),) = calls.calls
    assert (number, length, flags) == (444, size, 0)
    assert attributes == struct.pack("=QQQ", 7, 3, 3)[:size]


def test_a_rule_names_the_descriptor_and_the_rights() -> None:
    calls = FakeCalls()
    Kernel(calls, calls, 1).allow(9, 11, 0b1100)
    assert calls.calls == [(445, 9, 1, struct.pack("=Qi", 0b1100, 11), 0)]


def test_a_refusal_of_the_kernel_is_an_error() -> None:
    calls = FakeCalls(-1)
    ctypes.set_errno(7)
    with pytest.raises(OSError, match="Landlock"):
        Kernel(calls, calls, 1).allow(9, 11, 1)


def test_the_child_gives_up_everything_before_it_is_ruled_and_is_filtered_last() -> None:
    syscalls, prctls = FakeCalls(), FakeCalls()
    reading, writing = os.pipe()
    entry = prepare(Kernel(syscalls, prctls, 6), writing, bytes(16))
    entry()
    options = [call[0] for call in prctls.calls]
    assert options == [1, *[24] * 64, 47, 38, 22]
    assert [call[0] for call in syscalls.calls] == [entry_module._CAPSET[os.uname().machine], 446]
    assert os.read(reading, 1) == b"", "the ruleset is closed in the child"
    os.close(reading)


def test_a_child_that_cannot_enter_runs_nothing(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    class Ended(BaseException):
        pass

    def end(code: int) -> None:
        raise Ended(code)

    monkeypatch.setattr(os, "_exit", end)
    after = FakeCalls()
    steps = [(FakeCalls(-1), (), True), (FakeCalls(-1), (), False), (after, (), False)]
    with pytest.raises(Ended, match="126"):
        Entry(steps, ())()
    assert after.calls == []
    assert "could not be entered" in capfd.readouterr().err


def test_a_library_without_the_calls_is_no_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: object())
    assert open_kernel() is None
