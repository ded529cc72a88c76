"""Detect the hardware for a local model: processors, memory, and graphics processors with their own."""

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

from ybs.core.errors import ConfigError
from ybs.security.launcher import SYSTEM_ENVIRON, named_system_program
from ybs.security.launcher import ask as answer_of
from ybs.security.sandbox.launch import Launch

MOST_THREADS = 8
VARIABLE = "YBS_LLAMA_THREADS"
#: How long a program that describes the machine may take.
ASK_SECONDS = 5.0
#: The part of an Apple chip's memory that its graphics processor may use.
APPLE_SHARE = 0.7
_MIB = 1 << 20
#: Rows of `memory.stat`. https://docs.kernel.org/admin-guide/cgroup-v2.html
_RECLAIMABLE = ("active_file", "inactive_file", "slab_reclaimable")

#: Runs a program and returns what it prints; empty where there is no such program, or it fails.
Ask: TypeAlias = Callable[[Sequence[str]], str]


class Gpu(Struct, frozen=True, kw_only=True):
    """A graphics processor. `is_shared`: its memory is the machine's own."""

    maker: Literal["nvidia", "amd", "apple"]
    name: str
    total_bytes: int
    free_bytes: int
    is_shared: bool = False


class Machine(Struct, frozen=True, kw_only=True):
    """A machine as a model sees it. Memory is None where the system does not say.

    `idle_gpus` are there, but the program that serves models was built without support for them.
    """

    cores: int
    memory_bytes: int | None = None
    free_bytes: int | None = None
    gpus: tuple[Gpu, ...] = ()
    idle_gpus: tuple[Gpu, ...] = ()

    @property
    def threads(self) -> int:
        """How many threads write: one core is left to everything else, so two cores give one.

        llama.cpp's threads spin while they wait, many times for each token. Where they share cores with other work, more of
        them are several times slower, not faster.
        """
        return max(1, min(MOST_THREADS, self.cores - 1))

    @property
    def reading_threads(self) -> int:
        """How many threads read a prompt: as many as there are cores, since many tokens are read at once and little is waited for."""
        return max(1, min(MOST_THREADS, self.cores))

    @property
    def words(self) -> str:
        """The machine in a few words."""
        parts = [f"{self.cores} cores" if self.cores > 1 else "1 core"]
        if self.memory_bytes is not None:
            free = "" if self.free_bytes is None else f" ({gigabytes(self.free_bytes)} free)"
            parts.append(f"{gigabytes(self.memory_bytes)} of memory{free}")
        parts += [
            f"{g.name} with {gigabytes(g.total_bytes)}" for g in (*self.gpus, *self.idle_gpus)
        ]
        return ", ".join(parts)


def gigabytes(count: int) -> str:
    """Write a number of bytes for people."""
    return f"{count / 1e9:.1f} GB"


def asked_threads(environ: Mapping[str, str]) -> int | None:
    """Return the number of threads that `YBS_LLAMA_THREADS` asks for. Raises ConfigError for what is not one."""
    asked = environ.get(VARIABLE, "")
    if not asked:
        return None
    if not asked.isdecimal() or not 1 <= int(asked) <= 256:
        raise ConfigError(f"{VARIABLE}={asked!r} is not a number of threads (1 to 256)")
    return int(asked)


def detect(
    root: Path = Path("/"), *, platform: str = sys.platform, ask: Ask | None = None
) -> Machine:
    """Look at this machine. Blocks for a moment: programs such as nvidia-smi are asked."""
    ask = ask or output_of
    if platform == "darwin":
        return _apple(ask)
    total, free = _memory(root)
    return Machine(
        cores=min(_cores(), _core_limit(root)),
        memory_bytes=total,
        free_bytes=free,
        gpus=(*_nvidia(ask), *_amd(root)),
    )


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _core_limit(root: Path) -> int:
    """Return how many cores' time the container gets; threads beyond it would stand still for most of the time."""
    quota, _, period = _text(root / "sys/fs/cgroup/cpu.max").strip().partition(" ")
    if not (quota.isdecimal() and period.isdecimal() and int(period)):
        return sys.maxsize
    return max(1, int(quota) // int(period))


def _memory(root: Path) -> tuple[int | None, int | None]:
    """Return all memory and what programs can still get, both within the limit of the container."""
    rows = re.findall(r"^(\w+):\s+(\d+) kB$", _text(root / "proc/meminfo"), re.MULTILINE)
    known = {name: int(number) * 1024 for name, number in rows}
    total, free = known.get("MemTotal"), known.get("MemAvailable")
    limit = _number(root / "sys/fs/cgroup/memory.max")
    used = _number(root / "sys/fs/cgroup/memory.current")
    if limit is not None and used is not None:
        total = min(total or limit, limit)
        left = limit - max(0, used - _reclaimable(root))
        free = min(limit if free is None else free, max(0, left))
    return total, free


def _reclaimable(root: Path) -> int:
    """Return how much of what the container uses holds files that the kernel drops when memory is wanted.

    A model that was just downloaded is among them, and would otherwise not fit beside itself.
    """
    rows = re.findall(r"^(\w+) (\d+)$", _text(root / "sys/fs/cgroup/memory.stat"), re.MULTILINE)
    return sum(int(number) for name, number in rows if name in _RECLAIMABLE)


def _nvidia(ask: Ask) -> list[Gpu]:
    fields = "name,memory.total,memory.free"
    text = ask(("nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits"))
    rows = re.findall(r"^(.+), (\d+), (\d+)$", text, re.MULTILINE)
    return [
        Gpu(maker="nvidia", name=n, total_bytes=int(all_) * _MIB, free_bytes=int(free) * _MIB)
        for n, all_, free in rows
    ]


def _amd(root: Path) -> list[Gpu]:
    """Read what the kernel says of AMD's cards; others have no such files."""
    found: list[Gpu] = []
    for file in sorted(root.glob("sys/class/drm/card*/device/mem_info_vram_total")):
        total, used = _number(file), _number(file.with_name("mem_info_vram_used"))
        if total is not None and used is not None:
            name = _text(file.with_name("product_name")).strip() or "AMD GPU"
            free = max(0, total - used)
            found.append(Gpu(maker="amd", name=name, total_bytes=total, free_bytes=free))
    return found


def _apple(ask: Ask) -> Machine:
    """Ask macOS. Only Apple's own chips have a graphics processor that llama.cpp gains from."""
    # Each for itself: sysctl fails, whatever else it prints, where it does not know a name, as on Intel's processors.
    names = ("hw.memsize", "hw.physicalcpu", "hw.perflevel0.physicalcpu")
    said = "".join(ask(("sysctl", name)) for name in names)
    rows = re.findall(r"^([\w.]+): (\d+)$", said, re.MULTILINE)
    known = {name: int(number) for name, number in rows}
    total = known.get("hw.memsize")
    fast = known.get("hw.perflevel0.physicalcpu")
    pages = ask(("vm_stat",))
    size = re.search(r"page size of (\d+) bytes", pages)
    idle = re.findall(
        r"^Pages (?:free|inactive|speculative|purgeable): +(\d+)\.$", pages, re.MULTILINE
    )
    free = int(size[1]) * sum(map(int, idle)) if size and idle else None
    gpus: tuple[Gpu, ...] = ()
    if total is not None and fast is not None:
        most = int(total * APPLE_SHARE)
        room = most if free is None else min(most, free)
        gpus = (
            Gpu(maker="apple", name="Apple GPU", total_bytes=most, free_bytes=room, is_shared=True),
        )
    cores = fast or known.get("hw.physicalcpu") or _cores()
    return Machine(cores=cores, memory_bytes=total, free_bytes=free, gpus=gpus)


def output_of(argv: Sequence[str], environ: Mapping[str, str] = SYSTEM_ENVIRON) -> str:
    """Run a program and return what it prints; empty where there is no such program, it fails, or it takes too long.

    One without a path is one that comes with the system.
    """
    name, *words = argv
    program = name if "/" in name else named_system_program(name) or ""
    try:
        code, printed, _ = answer_of(Launch((program, *words), environ), ASK_SECONDS)
        return "" if code else printed.decode()
    except (OSError, UnicodeDecodeError):
        return ""


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _number(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isdecimal() else None
