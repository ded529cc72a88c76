"""A clock that is wrong, for processes: libfaketime changes what they are told."""

import asyncio
from pathlib import Path

import pytest

LIBRARY = next(iter(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")), None)
needs_clock = pytest.mark.skipif(LIBRARY is None, reason="NOT TESTED: libfaketime is not installed")


class Clock:
    """The clock of all processes that are started after it: hours from the real one, and a day is 24 of them."""

    def __init__(self, file: Path, patch: pytest.MonkeyPatch, hours: float = 0.0) -> None:
        self._file = file
        self._write(hours)
        patch.setenv("LD_PRELOAD", str(LIBRARY))
        patch.setenv("FAKETIME_TIMESTAMP_FILE", str(file))
        patch.setenv("FAKETIME_CACHE_DURATION", "1")
        for name in ("FAKETIME_DONT_FAKE_MONOTONIC", "NO_FAKE_STAT", "FAKETIME_DISABLE_SHM"):
            patch.setenv(name, "1")

    async def set(self, hours: float) -> None:
        """Set it, and wait until processes that run have seen it."""
        self._write(hours)
        await asyncio.sleep(1.1)

    def _write(self, hours: float) -> None:
        fresh = self._file.with_suffix(".new")
        fresh.write_text(f"{hours * 3_600:+.0f}\n")
        fresh.replace(self._file)
