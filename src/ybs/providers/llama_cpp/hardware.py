"""How many threads a local model gets."""

import os
from collections.abc import Mapping

from ybs.core.errors import ConfigError

MOST_THREADS = 8
VARIABLE = "YBS_LLAMA_THREADS"


def threads(environ: Mapping[str, str] = os.environ) -> int:
    """Return the number of threads: one core is left to everything else, so two cores give one.

    llama.cpp's threads spin while they wait. Where they share cores with other work, more threads are many
    times slower, not faster. `YBS_LLAMA_THREADS` goes before this.
    """
    asked = environ.get(VARIABLE, "")
    if asked:
        if not asked.isdecimal() or not 1 <= int(asked) <= 256:
            raise ConfigError(f"{VARIABLE}={asked!r} is no number of threads (1 to 256)")
        return int(asked)
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return max(1, min(MOST_THREADS, cores - 1))
