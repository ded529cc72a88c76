"""The system call filter of the sandbox: a BPF program, assembled with nothing but struct.

Allowed is what is not named here, so that programs of today and tomorrow run. Named are calls that reach the kernel's
rarely used parts, other processes, devices, or ways around the sandbox. Numbers: the kernel's syscall tables,
https://github.com/torvalds/linux/tree/master/arch; structures: linux/seccomp.h, linux/filter.h.
"""

import struct
from collections.abc import Iterable
from functools import cache

_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_ERRNO = 0x00050000
_EPERM, _ENOSYS, _NOT_SUPPORTED = 1, 38, 95
_NO_CONTROL = _ERRNO | 25  # ENOTTY, as of every file that does not know it
_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
_X32 = 0x40000000  # x86_64 has a second set of calls from here on
_SETID_BITS = 0o6000
_CREATES = 0o100 | 0o20000000  # O_CREAT and the bit of O_TMPFILE: only then is there a mode
_DEVICE_BIT = 0x2000  # in S_IFCHR and S_IFBLK, not in S_IFREG, S_IFIFO and S_IFSOCK
_NEW_NAMESPACES = 0x7E020000  # CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET}
_TERMINAL_INPUT = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX
_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_DATAGRAM, _KIND_OF_SOCKET = 2, 0xF

#: Calls by name: the number on x86_64 and on aarch64, which has fewer of the old ones.
_CALLS: dict[str, tuple[int | None, int | None]] = {
    # keys of the kernel
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    # code and observation in the kernel
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "fanotify_init": (300, 262),
    "lookup_dcookie": (212, 18), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427), "kexec_load": (246, 104), "kexec_file_load": (320, 294),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "create_module": (174, None), "query_module": (178, None), "get_kernel_syms": (177, None),
    # other file systems and roots
    "open_by_handle_at": (304, 265), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "move_mount": (429, 429), "open_tree": (428, 428), "open_tree_attr": (467, 467), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "setns": (308, 268), "unshare": (272, 97), "chroot": (161, 51),
    # the machine as a whole
    "acct": (163, 89), "swapon": (167, 224), "swapoff": (168, 225), "reboot": (169, 142), "syslog": (103, 116),
    "quotactl": (179, 60), "quotactl_fd": (443, 443), "settimeofday": (164, 170), "clock_settime": (227, 112),
    "clock_adjtime": (305, 266), "adjtimex": (159, 171), "vhangup": (153, 58), "iopl": (172, None),
    "ioperm": (173, None), "nfsservctl": (180, 42), "uselib": (134, None), "sethostname": (170, 161),
    "setdomainname": (171, 162), "_sysctl": (156, None),
    # other processes
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "pidfd_getfd": (438, 438), "kcmp": (312, 272),
}  # fmt: skip
#: Their flags stand behind a pointer, where a filter cannot look; libraries fall back to the older call.
_MISSING: dict[str, tuple[int | None, int | None]] = {"clone3": (435, 435), "openat2": (437, 437)}
#: Without namespaces of its own the sandbox has to close these too.
_SHARED: dict[str, tuple[int | None, int | None]] = {
    "ptrace": (101, 117), "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195),
    "msgget": (68, 186), "msgsnd": (69, 189), "msgrcv": (70, 188), "msgctl": (71, 187),
    "semget": (64, 190), "semop": (65, 193), "semctl": (66, 191), "semtimedop": (220, 192),
    "mq_open": (240, 180), "mq_unlink": (241, 181),
}  # fmt: skip
_CONNECT: dict[str, tuple[int | None, int | None]] = {"connect": (42, 203)}
_TRUNCATE: dict[str, tuple[int | None, int | None]] = {"truncate": (76, 45)}
#: Landlock has no right for attributes of files, so those of files outside could be changed.
_ATTRIBUTES: dict[str, tuple[int | None, int | None]] = {
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "removexattr": (197, 14),
    "lremovexattr": (198, 15), "fremovexattr": (199, 16), "setxattrat": (463, 463),
    "removexattrat": (466, 466), "file_setattr": (469, 469),
}  # fmt: skip
#: It has none for modes, owners and times either.
_FACTS: dict[str, tuple[int | None, int | None]] = {
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "chown": (92, None),
    "lchown": (94, None), "fchown": (93, 55), "fchownat": (260, 54), "utime": (132, None), "utimes": (235, None),
    "futimesat": (261, None), "utimensat": (280, 88), "setpriority": (141, 140), "ioprio_set": (251, 30),
    "sched_setaffinity": (203, 122), "sched_setscheduler": (144, 119), "sched_setparam": (142, 118), "sched_setattr": (314, 274),
}  # fmt: skip
#: What a program may do with a descriptor that it only reads: ask a terminal or a pipe about itself, or a file where it lies.
#: Every file system has others of its own, which change a file's flags, version or keys.
_READING_CONTROLS = (
    *range(0x5401, 0x5412), 0x5413, 0x541B, 0x5421, *range(0x5450, 0x5453),  # TC…, TIO…, FIO…
    0x2, 0x80086601, 0x80046601, 0x801C581F, 0xC020660B,  # FIGETBSZ, GETFLAGS, FSGETXATTR, FIEMAP
)  # fmt: skip
_SIGNALS: dict[str, tuple[int | None, int | None]] = {
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "pidfd_send_signal": (424, 424),
}  # fmt: skip
#: They answer "done" and do nothing: a process that leaves its group could not be ended with it.
_LEAVE_GROUP: dict[str, tuple[int | None, int | None]] = {
    "setsid": (112, 157),
    "setpgid": (109, 154),
}

#: Machines by the name that the kernel gives them: the column of the tables, the audit constant.
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}

_Code = list[tuple[int, int, int, int]]


def is_known(machine: str) -> bool:
    """Return whether there is a filter for this machine, as `os.uname().machine` names it."""
    return machine in _MACHINES


@cache
def confining(machine: str, *, has_unix_sockets: bool = True) -> bytes:
    """Return the filter for a process that already lives in namespaces of its own."""
    column, arch = _MACHINES[machine]
    families = (_UNIX, _INET, _INET6, _NETLINK) if has_unix_sockets else (_INET, _INET6, _NETLINK)
    code = _start(arch)
    code += _common(column)
    code += _sockets(column, families, (_UNIX, _INET, _INET6, _NETLINK))
    return _packed([*code, (_RETURN, 0, 0, _ALLOW)])


@cache
def replacing_namespaces(
    machine: str,
    *,
    network: bool,
    can_deny_truncate: bool,
    read_only: bool = False,
    can_deny_signals: bool = True,
) -> bytes:
    """Return the filter for a process that shares the machine's namespaces.

    `can_deny_truncate`, `can_deny_signals`: Landlock itself watches over truncate(2) and over signals to other processes; without
    it the calls are closed here, those for signals where it is `read_only`. That closes modes, owners and times of files as well.
    With the network on there are no unix sockets, since the filter cannot see which address is connected to.
    """
    column, arch = _MACHINES[machine]
    code = _start(arch)
    code += _common(column)
    code += _refuse(_numbers(_SHARED, column), _ERRNO | _EPERM)
    code += _refuse(_numbers(_ATTRIBUTES, column), _ERRNO | _NOT_SUPPORTED)
    code += _refuse(_numbers(_LEAVE_GROUP, column), _ERRNO)
    code += _of_others(column)
    if read_only:
        code += _refuse(_numbers(_FACTS, column), _ERRNO | _EPERM)
        code += _arguments_of((16, 29)[column], _allowed_values(1, _READING_CONTROLS, _NO_CONTROL))
        if not can_deny_signals:
            code += _refuse(_numbers(_SIGNALS, column), _ERRNO | _EPERM)
    if not can_deny_truncate:
        code += _refuse(_numbers(_TRUNCATE, column), _ERRNO | _EPERM)
    if network:
        code += _sockets(column, (_INET, _INET6, _NETLINK), (_UNIX,))
    else:
        code += _refuse(_numbers(_CONNECT, column), _ERRNO | _EPERM)
        code += _sockets(column, (_UNIX,), (_UNIX,))
    code += _no_datagrams(column)
    return _packed([*code, (_RETURN, 0, 0, _ALLOW)])


def _packed(code: _Code) -> bytes:
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


def _numbers(table: dict[str, tuple[int | None, int | None]], column: int) -> list[int]:
    return [number for pair in table.values() if (number := pair[column]) is not None]


def _start(arch: int) -> _Code:
    return [
        (_LOAD, 0, 0, _ARCH),
        (_JUMP_EQUAL, 1, 0, arch),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_JUMP_AT_LEAST, 0, 1, _X32),  # no other machine has numbers so high
        (_RETURN, 0, 0, _ERRNO | _ENOSYS),
    ]


def _common(column: int) -> _Code:
    return [
        *_refuse(_numbers(_CALLS, column), _ERRNO | _EPERM),
        *_refuse(_numbers(_MISSING, column), _ERRNO | _ENOSYS),
        *_modes(column),
        *_arguments_of((56, 220)[column], _refused_bits(0, _NEW_NAMESPACES)),  # clone
        *_arguments_of((16, 29)[column], _refused_values(1, _TERMINAL_INPUT)),  # ioctl
    ]


def _modes(column: int) -> _Code:
    """Refuse setuid and setgid bits, and device files."""
    if column == 0:
        # open, creat, chmod and mknod have no number on aarch64
        old = [
            *_arguments_of(2, _refused_mode_of_new(1, 2)),
            *_arguments_of(85, _refused_bits(1, _SETID_BITS)),
            *_arguments_of(90, _refused_bits(1, _SETID_BITS)),
            *_arguments_of(133, _refused_bits(1, _DEVICE_BIT | _SETID_BITS)),
        ]
    else:
        old = []
    return [
        *old,
        *_arguments_of((257, 56)[column], _refused_mode_of_new(2, 3)),  # openat
        *_arguments_of((91, 52)[column], _refused_bits(1, _SETID_BITS)),  # fchmod
        *_arguments_of((268, 53)[column], _refused_bits(2, _SETID_BITS)),  # fchmodat
        *_arguments_of(452, _refused_bits(2, _SETID_BITS)),  # fchmodat2
        *_arguments_of((259, 33)[column], _refused_bits(2, _DEVICE_BIT | _SETID_BITS)),  # mknodat
    ]


def _sockets(column: int, families: Iterable[int], paired: Iterable[int]) -> _Code:
    return [
        *_arguments_of((41, 198)[column], _allowed_values(0, families)),
        *_arguments_of((53, 199)[column], _allowed_values(0, paired)),
    ]


def _no_datagrams(column: int) -> _Code:
    """Refuse unix datagram sockets: sendmsg(2) names an address behind a pointer, so connect(2) is not all."""
    refused = [
        (_LOAD, 0, 0, _low_word(0)),
        (_JUMP_EQUAL, 0, 4, _UNIX),
        (_LOAD, 0, 0, _low_word(1)),
        (0x54, 0, 0, _KIND_OF_SOCKET),  # A &= k
        (_JUMP_EQUAL, 0, 1, _DATAGRAM),
        (_RETURN, 0, 0, _ERRNO | _EPERM),
    ]
    return [*_arguments_of((41, 198)[column], refused), *_arguments_of((53, 199)[column], refused)]


def _of_others(column: int) -> _Code:
    """Refuse prlimit(2) on any process but the caller."""
    return _arguments_of((302, 261)[column], _allowed_values(0, (0,)))


def _refuse(numbers: list[int], answer: int) -> _Code:
    """Answer each of the calls (at most 255 of them: a jump is one byte)."""
    last = len(numbers) - 1
    code: _Code = [
        (_JUMP_EQUAL, last - place, 0 if place < last else 1, number)
        for place, number in enumerate(numbers)
    ]
    return [*code, (_RETURN, 0, 0, answer)]


def _arguments_of(number: int, checks: _Code) -> _Code:
    """Run the checks for one call only; they end in a return or fall through."""
    return [(_JUMP_EQUAL, 0, len(checks) + 1, number), *checks, (_LOAD, 0, 0, _NUMBER)]


def _low_word(argument: int) -> int:
    # Both machines are little-endian. The kernel itself looks at 32 bits of all arguments that are judged here.
    return _ARGUMENTS + 8 * argument


def _refused_bits(argument: int, bits: int) -> _Code:
    return [
        (_LOAD, 0, 0, _low_word(argument)),
        (_JUMP_BITS, 0, 1, bits),
        (_RETURN, 0, 0, _ERRNO | _EPERM),
    ]


def _refused_mode_of_new(flags: int, mode: int) -> _Code:
    checks = _refused_bits(mode, _SETID_BITS)
    return [(_LOAD, 0, 0, _low_word(flags)), (_JUMP_BITS, 0, len(checks), _CREATES), *checks]


def _refused_values(argument: int, values: Iterable[int]) -> _Code:
    return [(_LOAD, 0, 0, _low_word(argument)), *_refuse(list(values), _ERRNO | _EPERM)]


def _allowed_values(argument: int, values: Iterable[int], answer: int = _ERRNO | _EPERM) -> _Code:
    allowed = list(values)
    return [
        (_LOAD, 0, 0, _low_word(argument)),
        *((_JUMP_EQUAL, len(allowed) - place, 0, value) for place, value in enumerate(allowed)),
        (_RETURN, 0, 0, answer),
    ]


#: Calls that change files: the numbers as above, and of their arguments those with a path, each with the folder that it hangs on.
CHANGING: dict[str, tuple[tuple[int | None, int | None], tuple[tuple[int | None, int], ...]]] = {
    "creat": ((85, None), ((None, 0),)), "truncate": ((76, 45), ((None, 0),)),
    "mkdir": ((83, None), ((None, 0),)), "mkdirat": ((258, 34), ((0, 1),)),
    "mknod": ((133, None), ((None, 0),)), "mknodat": ((259, 33), ((0, 1),)),
    "unlink": ((87, None), ((None, 0),)), "unlinkat": ((263, 35), ((0, 1),)), "rmdir": ((84, None), ((None, 0),)),
    "rename": ((82, None), ((None, 0), (None, 1))), "renameat": ((264, 38), ((0, 1), (2, 3))),
    "renameat2": ((316, 276), ((0, 1), (2, 3))),
    "link": ((86, None), ((None, 1),)), "linkat": ((265, 37), ((2, 3),)),
    "symlink": ((88, None), ((None, 1),)), "symlinkat": ((266, 36), ((1, 2),)),
    "chmod": ((90, None), ((None, 0),)), "fchmodat": ((268, 53), ((0, 1),)), "fchmodat2": ((452, 452), ((0, 1),)),
    "open": ((2, None), ((None, 0),)), "openat": ((257, 56), ((0, 1),)),
}  # fmt: skip
#: Which argument of these holds the flags; they change something only with one of `WRITING`.
OPENING: dict[str, int] = {"open": 1, "openat": 2}
WRITING = (
    0o1 | 0o2 | 0o100 | 0o1000
)  # O_WRONLY, O_RDWR, O_CREAT, O_TRUNC; the same on both machines
_NOTIFY = 0x7FC00000


@cache
def telling(machine: str) -> bytes:
    """Return the filter that lets another process be told of attempts to change a file or to connect; it refuses nothing."""
    column, _ = _MACHINES[machine]
    code: _Code = [(_LOAD, 0, 0, _NUMBER)]
    for name, argument in OPENING.items():
        if (number := CHANGING[name][0][column]) is not None:
            asked: _Code = [
                (_LOAD, 0, 0, _low_word(argument)),
                (_JUMP_BITS, 0, 1, WRITING),
                (_RETURN, 0, 0, _NOTIFY),
                (_RETURN, 0, 0, _ALLOW),
            ]
            code += [(_JUMP_EQUAL, 0, len(asked), number), *asked]
    others = [
        number
        for name, entry in CHANGING.items()
        if name not in OPENING and (number := entry[0][column]) is not None
    ]
    code += _refuse([*others, *_numbers(_CONNECT, column)], _NOTIFY)
    return _packed([*code, (_RETURN, 0, 0, _ALLOW)])


def changing(machine: str) -> dict[int, str]:
    """Return the names of the calls in `CHANGING` by their numbers."""
    column, _ = _MACHINES[machine]
    return {
        number: name for name, entry in CHANGING.items() if (number := entry[0][column]) is not None
    }
