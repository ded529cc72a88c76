"""The system call filter, run by a small BPF machine of the test's own, for both kinds of machine."""

import struct
from functools import cache

import pytest

from rows import every_row
from ybs.security.sandbox.seccomp import confining, is_known, replacing_namespaces, telling

ALLOW, KILL, EPERM, ENOSYS, DONE = 0x7FFF0000, 0x80000000, 0x50001, 0x50026, 0x50000
NO_CONTROL = 0x50019  # ENOTTY
ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
#: The calls of the tests by name, from each machine's own table.
NUMBERS = {
    "x86_64": {
        "read": 0, "open": 2, "ioctl": 16, "socket": 41, "connect": 42, "socketpair": 53, "clone": 56, "execve": 59,
        "truncate": 76, "setxattr": 188, "creat": 85, "chmod": 90, "fchmod": 91, "ptrace": 101, "setpgid": 109, "setsid": 112,
        "mknod": 133, "mount": 165, "keyctl": 250, "openat": 257, "mknodat": 259, "fchmodat": 268, "unshare": 272,
        "prlimit64": 302, "bpf": 321, "io_uring_setup": 425, "clone3": 435, "openat2": 437, "fchmodat2": 452,
    },
    "aarch64": {
        "setxattr": 5, "ioctl": 29, "mknodat": 33, "mount": 40, "truncate": 45, "fchmod": 52, "fchmodat": 53, "openat": 56, "read": 63,
        "unshare": 97, "ptrace": 117, "setpgid": 154, "setsid": 157, "socket": 198, "socketpair": 199, "connect": 203,
        "keyctl": 219, "clone": 220, "execve": 221, "prlimit64": 261, "bpf": 280, "io_uring_setup": 425, "clone3": 435,
        "openat2": 437, "fchmodat2": 452,
    },
}  # fmt: skip
MACHINES = sorted(NUMBERS)
#: Every call that is refused whatever its arguments are, and those that are in the reduced sandbox alone.
REFUSED = {
    "x86_64": {
        103, 134, 153, 155, 156, 159, *range(161, 181), 212, 227, 246, 248, 249, 250, 272, 298, 300, 304, 305, 308,
        310, 311, 312, 313, 320, 321, 323, *range(425, 434), 438, 442, 443, 467,
    } - {162},
    "aarch64": {
        18, 39, 40, 41, 42, 51, 58, 60, 89, 97, 104, 105, 106, 112, 116, 142, 161, 162, 170, 171, 217, 218, 219, 224,
        225, 241, 262, 265, 266, 268, *range(270, 274), 280, 282, 294, *range(425, 434), 438, 442, 443, 467,
    },
}  # fmt: skip
SHARED = {
    "x86_64": {29, 30, 31, 64, 65, 66, 68, 69, 70, 71, 101, 220, 240, 241},
    "aarch64": {117, 180, 181, *range(186, 197)},
}
UNSUPPORTED = {
    "x86_64": {188, 189, 190, 197, 198, 199, 463, 466, 469},
    "aarch64": {5, 6, 7, 14, 15, 16, 463, 466, 469},
}
#: Those that are refused for what is in their arguments, where all bits of those are set.
JUDGED = (
    "open",
    "creat",
    "chmod",
    "mknod",
    "openat",
    "fchmod",
    "fchmodat",
    "fchmodat2",
    "mknodat",
    "clone",
)
#: Where the arguments stand that are judged.
PLACES = {
    "open": 2, "creat": 1, "chmod": 1, "mknod": 1, "openat": 3, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2,
    "mknodat": 2, "clone": 0, "ioctl": 1,
}  # fmt: skip
ALL_BITS = (1 << 64) - 1


def answer(program: bytes, number: int, *arguments: int, arch: int) -> int:
    """Run the program on one call, as linux/kernel/seccomp.c does; return its answer."""
    padded = (*(each & ALL_BITS for each in arguments), *(0,) * (6 - len(arguments)))
    data = struct.pack("=iIQ6Q", number, arch, 0, *padded)
    place = accumulator = 0
    instructions = decoded(program)
    while True:
        code, if_true, if_false, value = instructions[place]
        place += 1
        if code in (0x15, 0x35, 0x45):
            is_true = (
                accumulator == value if code == 0x15
                else accumulator >= value if code == 0x35
                else bool(accumulator & value)
            )  # fmt: skip
            place += if_true if is_true else if_false
            continue
        assert (if_true, if_false) == (0, 0), "this instruction does not jump"
        if code == 0x20:
            (accumulator,) = struct.unpack_from("=I", data, value)
        elif code == 0x54:
            accumulator &= value
        else:
            assert code == 0x06
            return value


@cache
def decoded(program: bytes) -> list[tuple[int, int, int, int]]:
    return list(struct.iter_unpack("=HBBI", program))


def answers(program: bytes, machine: str, argument: int) -> dict[int, set[int]]:
    """Return the calls that do not pass where every argument is this one, by what is answered."""
    found: dict[int, set[int]] = {}
    for number in range(500):
        answered = answer(program, number, *(argument,) * 6, arch=ARCH[machine])
        found.setdefault(answered, set()).add(number)
    del found[ALLOW]
    return found


def numbers(machine: str, *names: str) -> set[int]:
    return {NUMBERS[machine][name] for name in names if name in NUMBERS[machine]}


@pytest.fixture(params=MACHINES)
def ask(request: pytest.FixtureRequest):
    machine = request.param

    def asked(
        program: bytes, name: str, *arguments: int, expected: int | None = None
    ) -> int | None:
        if name not in NUMBERS[machine] and machine == "aarch64":
            return expected  # open, creat, chmod and mknod have no number there
        return answer(program, NUMBERS[machine][name], *arguments, arch=ARCH[machine])

    asked.machine = machine
    return asked


@pytest.mark.integration
@every_row("machine", MACHINES)
@every_row(("argument", "judged"), [(0, ()), (ALL_BITS, JUDGED)])
def test_every_call_has_its_answer(machine: str, argument: int, judged: tuple[str, ...]) -> None:
    sockets = numbers(machine, "socket", "socketpair")
    missing = numbers(machine, "clone3", "openat2")
    refused = REFUSED[machine] | sockets | numbers(machine, *judged)
    assert answers(confining(machine), machine, argument) == {EPERM: refused, ENOSYS: missing}
    program = replacing_namespaces(machine, network=False, can_deny_truncate=True)
    limits = numbers(machine, "prlimit64") if argument else set()
    assert answers(program, machine, argument) == {
        EPERM: refused | SHARED[machine] | numbers(machine, "connect") | limits,
        ENOSYS: missing,
        0x5005F: UNSUPPORTED[machine],
        DONE: numbers(machine, "setsid", "setpgid"),
    }


@every_row("machine", MACHINES)
def test_what_stands_in_an_argument_is_not_taken_for_the_number_of_a_call(machine: str) -> None:
    program = replacing_namespaces(machine, network=False, can_deny_truncate=False)
    for call, place in PLACES.items():
        for value in NUMBERS[machine].values() if call in NUMBERS[machine] else ():
            arguments = [ALL_BITS] * 6
            arguments[place] = value
            answered = answer(program, NUMBERS[machine][call], *arguments, arch=ARCH[machine])
            assert (call, value, answered) == (call, value, ALLOW)


@every_row("name", ["read", "execve", "connect", "ptrace", "setsid", "truncate"])
def test_ordinary_calls_pass(ask, name: str) -> None:
    assert ask(confining(ask.machine), name, 1, 2, 3) == ALLOW


@every_row("name", ["mount", "keyctl", "bpf", "unshare", "io_uring_setup"])
def test_calls_of_the_list_are_refused(ask, name: str) -> None:
    assert ask(confining(ask.machine), name) == EPERM


@every_row("name", ["clone3", "openat2"])
def test_calls_whose_flags_cannot_be_seen_do_not_exist(ask, name: str) -> None:
    assert ask(confining(ask.machine), name) == ENOSYS


def test_calls_of_another_machine_kill(ask) -> None:
    program = confining(ask.machine)
    assert answer(program, 0, arch=0x40000003) == KILL


@every_row("machine", MACHINES)
@every_row("number", [0x40000000, 0x40000001, 0x400001FF])
def test_calls_of_a_second_set_do_not_exist(machine: str, number: int) -> None:
    assert answer(confining(machine), number, arch=ARCH[machine]) == ENOSYS


@every_row(("family", "expected"), [(1, ALLOW), (2, ALLOW), (10, ALLOW), (16, ALLOW), (17, EPERM), (40, EPERM), (38, EPERM), (0, EPERM), (1 << 16, EPERM)])  # fmt: skip
@every_row("call", ["socket", "socketpair"])
def test_only_common_socket_families_pass(ask, call: str, family: int, expected: int) -> None:
    assert ask(confining(ask.machine), call, family, 1, 0) == expected


def test_with_the_network_on_there_are_no_unix_sockets_but_pairs(ask) -> None:
    program = confining(ask.machine, has_unix_sockets=False)
    assert ask(program, "socket", 1, 1) == EPERM
    assert ask(program, "socketpair", 1, 1) == ALLOW
    assert ask(program, "socket", 2, 1) == ALLOW


@every_row(("call", "place"), [("chmod", 1), ("fchmod", 1), ("fchmodat", 2), ("fchmodat2", 2), ("creat", 1), ("mknod", 1), ("mknodat", 2)])  # fmt: skip
@every_row(("mode", "expected"), [(0o755, ALLOW), (0o1777, ALLOW), (0o4755, EPERM), (0o2755, EPERM)])  # fmt: skip
def test_setuid_and_setgid_bits_are_refused(ask, call, place, mode, expected):
    arguments = [0] * place + [mode]
    assert ask(confining(ask.machine), call, *arguments, expected=expected) == expected


@every_row(("call", "place"), [("open", 1), ("openat", 2)])
def test_a_mode_counts_only_where_a_file_is_made(ask, call: str, place: int) -> None:
    program, before = confining(ask.machine), [0] * place
    assert ask(program, call, *before, 0, 0o6755, expected=ALLOW) == ALLOW, (
        "whatever stood in that register"
    )
    assert ask(program, call, *before, 0o100, 0o644, expected=ALLOW) == ALLOW
    assert ask(program, call, *before, 0o100, 0o4755, expected=EPERM) == EPERM
    assert ask(program, call, *before, 0o20200000, 0o4755, expected=EPERM) == EPERM
    assert ask(program, call, *before, ~0o20000100, ALL_BITS, expected=ALLOW) == ALLOW


@every_row(("kind", "expected"), [(0o010000, ALLOW), (0o100000, ALLOW), (0o140000, ALLOW), (0o020000, EPERM), (0o060000, EPERM)])  # fmt: skip
@every_row(("call", "place"), [("mknod", 1), ("mknodat", 2)])
def test_pipes_can_be_made_and_devices_cannot(ask, call, place, kind, expected):
    answered = ask(confining(ask.machine), call, *[0] * place, kind | 0o777, expected=expected)
    assert answered == expected


@every_row("flag", [0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000])  # fmt: skip
def test_clone_makes_threads_and_processes_but_no_namespaces(ask, flag: int) -> None:
    program = confining(ask.machine)
    assert ask(program, "clone", flag | 17) == EPERM
    assert ask(program, "clone", 0x3D0F00) == ALLOW, "a thread of glibc"
    assert ask(program, "clone", 0x1200011) == ALLOW, "a fork of glibc"


@every_row("request_", [0x5412, 0x541C, 0x1_0000_5412])
def test_nothing_can_be_typed_into_a_terminal(ask, request_: int) -> None:
    program = confining(ask.machine)
    assert ask(program, "ioctl", 0, request_) == EPERM
    assert ask(program, "ioctl", 0, 0x5413) == ALLOW


@every_row("network", [True, False])
def test_the_reduced_sandbox_closes_what_namespaces_would(ask, network: bool) -> None:
    program = replacing_namespaces(ask.machine, network=network, can_deny_truncate=True)
    assert ask(program, "ptrace") == EPERM
    assert ask(program, "bpf") == EPERM
    assert ask(program, "connect") == (ALLOW if network else EPERM)
    assert ask(program, "socket", 2, 1) == (ALLOW if network else EPERM)
    assert ask(program, "socket", 1, 1) == (EPERM if network else ALLOW)
    assert ask(program, "socket", 16, 3) == (ALLOW if network else EPERM)
    assert ask(program, "read") == ALLOW
    assert ask(program, "truncate") == ALLOW


def test_attributes_of_files_are_not_supported_in_the_reduced_sandbox(ask) -> None:
    program = replacing_namespaces(ask.machine, network=False, can_deny_truncate=True)
    assert ask(program, "setxattr") == 0x5005F
    assert ask(confining(ask.machine), "setxattr") == ALLOW


def test_leaving_the_group_seems_to_work_and_does_nothing(ask) -> None:
    program = replacing_namespaces(ask.machine, network=False, can_deny_truncate=True)
    assert ask(program, "setsid") == DONE
    assert ask(program, "setpgid") == DONE


def test_datagrams_can_be_sent_to_no_unix_socket(ask) -> None:
    program = replacing_namespaces(ask.machine, network=False, can_deny_truncate=True)
    for flags in (0, 0o2000000, 0o4000):
        assert ask(program, "socket", 1, 2 | flags) == EPERM
        assert ask(program, "socketpair", 1, 2 | flags) == EPERM
        assert ask(program, "socketpair", 1, 1 | flags) == ALLOW
        assert ask(program, "socketpair", 1, 5 | flags) == ALLOW


def test_datagrams_of_the_internet_pass_where_the_network_is_on(ask) -> None:
    program = replacing_namespaces(ask.machine, network=True, can_deny_truncate=True)
    assert ask(program, "socket", 2, 2) == ALLOW


def test_truncation_by_path_is_closed_where_landlock_cannot(ask) -> None:
    program = replacing_namespaces(ask.machine, network=False, can_deny_truncate=False)
    assert ask(program, "truncate") == EPERM


def test_limits_are_the_callers_own(ask) -> None:
    program = replacing_namespaces(ask.machine, network=False, can_deny_truncate=True)
    assert ask(program, "prlimit64", 0, 7) == ALLOW
    assert ask(program, "prlimit64", 4711, 7) == EPERM


def test_only_machines_with_a_table_have_a_filter() -> None:
    assert [name for name in ("x86_64", "aarch64", "riscv64") if is_known(name)] == ["x86_64", "aarch64"]  # fmt: skip


@every_row("machine", MACHINES)
def test_the_filter_stays_short(machine: str) -> None:
    assert len(confining(machine)) // 8 < 200
    longest = replacing_namespaces(machine, network=True, can_deny_truncate=False)
    assert len(longest) % 8 == 0
    assert len(longest) // 8 < 250


@every_row("machine", MACHINES)
def test_what_runs_read_only_changes_no_mode_owner_or_time_and_signals_nobody(machine: str):
    """Landlock has no right for these; signals are closed where the kernel cannot keep them in."""
    for can_deny in (True, False):
        program = replacing_namespaces(
            machine,
            network=False,
            can_deny_truncate=True,
            read_only=True,
            can_deny_signals=can_deny,
        )
        facts = {
            "x86_64": {90, 91, 92, 93, 94, 132, 235, 260, 268, 280},
            "aarch64": {52, 53, 54, 55, 88},
        }
        kill = {"x86_64": 62, "aarch64": 129}[machine]
        for number in facts[machine]:
            assert answer(program, number, arch=ARCH[machine]) == EPERM, number
        assert answer(program, kill, arch=ARCH[machine]) == (ALLOW if can_deny else EPERM)
        ioctl = {"x86_64": 16, "aarch64": 29}[machine]
        # FS_IOC_SETFLAGS and SETVERSION, FS_IOC_FSSETXATTR, FS_IOC_SET_ENCRYPTION_POLICY, FS_IOC_ENABLE_VERITY, TIOCSTI, none
        for control in (
            0x40086602,
            0x40087602,
            0x401C5820,
            0x800C6613,
            0x40806685,
            0x5412,
            0x12345678,
        ):
            assert answer(program, ioctl, 3, control, arch=ARCH[machine]) in (EPERM, NO_CONTROL)
        for control in (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451, 0x80086601):
            assert answer(program, ioctl, 3, control, arch=ARCH[machine]) == ALLOW
        assert len(program) // 8 < 250


@every_row("machine", MACHINES)
def test_attempts_to_write_or_connect_are_told_and_nothing_is_refused(machine: str):
    program = telling(machine)
    told = 0x7FC00000
    openat, mkdirat = {"x86_64": (257, 258), "aarch64": (56, 34)}[machine]
    assert answer(program, openat, 0, 0, 0, arch=ARCH[machine]) == ALLOW
    for flags in (0o1, 0o2, 0o100, 0o1000):
        assert answer(program, openat, 0, 0, flags, arch=ARCH[machine]) == told
    for number in (mkdirat, *numbers(machine, "connect", "truncate", "fchmodat")):
        assert answer(program, number, arch=ARCH[machine]) == told
    assert set(answers(program, machine, 0)) == {told}
