"""Entering the reduced sandbox: what is prepared before the fork, and what a child does with it."""

import ctypes
import errno
import os
import struct
import sys
from types import SimpleNamespace

import pytest

from rows import every_row
from ybs.security.sandbox import landlock
from ybs.security.sandbox.landlock import Kernel, SandboxEntry, open_kernel, prepare, prepare_git

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
    with pytest.raises(OSError, match="Landlock") as caught:
        Kernel(calls, calls, 1).allow(9, 11, 1)
    assert caught.value.errno == 7


@every_row("call", [0, 1, 5])
def test_what_the_kernel_says_is_a_refusal_below_zero_alone(call: int) -> None:
    assert Kernel(FakeCalls(call), FakeCalls(), 1).create_ruleset(1, network=0, scopes=0) == call


def plain(entry: SandboxEntry, names: dict[object, str]) -> list[tuple[object, ...]]:
    """Return the steps with names for what is called, and the bytes of buffers."""
    return [
        (names.get(call, call), *(bytes(a) if isinstance(a, ctypes.Array) else a for a in arguments), may_fail)
        for call, arguments, may_fail in entry._steps
    ]  # fmt: skip


@every_row(("machine", "capset"), [("x86_64", 126), ("aarch64", 91)])
def test_the_child_gives_up_everything_before_it_is_ruled_and_is_filtered_last(
    monkeypatch: pytest.MonkeyPatch, machine: str, capset: int
) -> None:
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(machine=machine))
    syscalls, prctls = FakeCalls(), FakeCalls()
    program = bytes(range(16))
    entry = prepare(Kernel(syscalls, prctls, 6), 77, program)
    *steps, filtered = plain(entry, {syscalls: "syscall", prctls: "prctl"})
    version = struct.pack("=Ii", 0x20080522, 0)
    assert steps == [
        ("prctl", 1, 9, 0, 0, 0, False),
        *(("prctl", 24, number, 0, 0, 0, True) for number in range(64)),
        ("prctl", 47, 4, 0, 0, 0, True),
        ("syscall", capset, version + b"\0", bytes(25), False),
        ("prctl", 38, 1, 0, 0, 0, False),
        ("syscall", 446, 77, 0, False),
        (landlock._close, 77, False),
    ]
    *begin, address, third, fourth, may_fail = filtered
    assert (*begin, third, fourth, may_fail) == ("prctl", 22, 2, 0, 0, False)
    assert isinstance(address, int)
    count, code = struct.unpack("HP", ctypes.string_at(address, struct.calcsize("HP")))
    assert (count, ctypes.string_at(code, 16)) == (2, program)


def test_ybs_own_git_is_ruled_and_keeps_the_rest() -> None:
    syscalls, prctls = FakeCalls(), FakeCalls()
    entry = prepare_git(Kernel(syscalls, prctls, 6), 77)
    assert plain(entry, {syscalls: "syscall", prctls: "prctl"}) == [
        ("prctl", 1, 9, 0, 0, 0, False),
        ("prctl", 38, 1, 0, 0, 0, False),
        ("syscall", 446, 77, 0, False),
        (landlock._close, 77, False),
    ]


def test_the_child_makes_one_call_after_the_other_and_closes_the_ruleset() -> None:
    syscalls, prctls = FakeCalls(), FakeCalls()
    reading, writing = os.pipe()
    prepare(Kernel(syscalls, prctls, 6), writing, bytes(16))()
    assert [call[0] for call in prctls.calls] == [1, *[24] * 64, 47, 38, 22]
    assert [call[0] for call in syscalls.calls] == [landlock._CAPSET[os.uname().machine], 446]
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
    calls = [FakeCalls(-1), FakeCalls(0), FakeCalls(-1), FakeCalls(0)]
    steps = [(calls[0], (), True), *((call, (), False) for call in calls[1:])]
    with pytest.raises(Ended, match="126"):
        SandboxEntry(steps, ())()
    assert [call.calls for call in calls] == [[()], [()], [()], []]
    assert "could not be entered" in capfd.readouterr().err


def test_a_library_without_the_calls_is_no_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: object())
    assert open_kernel() is None


@every_row(("said", "abi"), [(7, 7), (1, 1), (0, 0), (-1, 0)])
def test_the_kernel_is_asked_for_its_version(
    monkeypatch: pytest.MonkeyPatch, said: int, abi: int
) -> None:
    library = SimpleNamespace(syscall=FakeCalls(said), prctl=FakeCalls())
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: library)
    assert open_kernel() == Kernel(library.syscall, library.prctl, abi)
    assert library.syscall.calls == [(444, None, 0, 1)]


def test_the_real_kernel_says_why_it_refuses() -> None:
    kernel = open_kernel()
    assert kernel is not None
    with pytest.raises(OSError, match="Landlock") as caught:
        kernel.create_ruleset(1 << 60, network=0, scopes=0)
    assert caught.value.errno in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)
    assert kernel.prctl(38, 0, 0, 0, 0) == -1  # this may not be set to 0
