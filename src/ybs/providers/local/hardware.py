"""What this machine gives a local model: threads and memory."""

import os
from collections.abc import Mapping
from pathlib import Path

from ybs.core.errors import ConfigError, ProviderDown
from ybs.core.remedies import Remedy

MOST_THREADS = 8
VARIABLE = "YBS_LLAMA_THREADS"
#: Memory while it runs, as a multiple of the model file: weights, a repacked copy of most, the window.
MEMORY_FACTOR = 1.9


def threads(environ: Mapping[str, str] = os.environ) -> int:
    """Return the number of threads: one core is left to everything else, so two cores give one.

    llama.cpp's threads spin while they wait. Where they share cores with other work, more threads are many
    times slower, not faster. `YBS_LLAMA_THREADS` goes before this.
    """
    asked = environ.get(VARIABLE, "")
    if asked:
        if not asked.isdecimal() or not 1 <= int(asked) <= 256:
            raise ConfigError(f"{VARIABLE}={asked!r} is not a number of threads (1 to 256)")
        return int(asked)
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return max(1, min(MOST_THREADS, cores - 1))


def check_memory(model: Path) -> None:
    """Raise ProviderDown if the model would not fit into the memory that is free now."""
    free = free_memory_bytes()
    needed = model.stat().st_size * MEMORY_FACTOR
    if free is not None and free < needed:
        raise ProviderDown(
            f"The local model needs about {needed / 1e9:.1f} GB of memory, and only {free / 1e9:.1f} GB is free.",
            remedies=(
                Remedy("do", "close other programs and try again"),
                Remedy("change_provider"),
            ),
        )


def free_memory_bytes(meminfo: Path = Path("/proc/meminfo")) -> int | None:
    """Return the memory that programs can still get, or None where the system does not say."""
    try:
        lines = meminfo.read_text("ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    for line in lines:
        match line.split():
            case ["MemAvailable:", number, "kB"] if number.isdecimal():
                return int(number) * 1024
            case _:
                pass
    return None
