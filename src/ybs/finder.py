"""Finds ybs's own compiled modules in one step each, where Python looks through folders and endings: a start has 350 of them.

What is not compiled, not up to date, or a package is left to Python's own way, and so is every module of others.
See https://docs.python.org/3/reference/import.html#the-meta-path and PEP 552 for the head of a compiled file.
"""

import marshal
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import MAGIC_NUMBER
from types import CodeType, ModuleType

_HEAD_BYTES = 16
#: A larger compiled file is left to Python; those of ybs have 40 kB at most.
_MOST_BYTES = 100_000
#: How the head of a compiled file begins that goes by the time and size of its source.
_BY_TIME = MAGIC_NUMBER + bytes(4)
_ENDING = f".{sys.implementation.cache_tag}.pyc"


def install() -> None:
    """Look for ybs's modules this way from now on, in the whole process."""
    if not sys.flags.optimize:  # `python -O` compiles to files of other names
        sys.meta_path.insert(0, Finder())


class Finder:
    """Finds the modules of ybs that are compiled and not older than their source."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where the module is and what it is; None where Python is to look."""
        del target
        if not path or not name.startswith("ybs."):
            return None
        folder, last = path[0], name.rpartition(".")[2]
        source, compiled = f"{folder}/{last}.py", f"{folder}/__pycache__/{last}{_ENDING}"
        try:
            data = _read(compiled)
            known = os.stat(source)  # noqa: PTH116 - 350 times in a start
        except OSError:
            return None
        head = _BY_TIME + _word(int(known.st_mtime)) + _word(known.st_size)
        if data[:_HEAD_BYTES] != head or len(data) == _MOST_BYTES:
            return None
        spec = ModuleSpec(name, _Loader(name, source, data), origin=source)
        spec.cached, spec.has_location = compiled, True
        return spec


class _Loader(SourceFileLoader):
    """Runs what was read already; all else, such as the source for a traceback, as Python does."""

    def __init__(self, name: str, path: str, data: bytes) -> None:
        super().__init__(name, path)
        self._data = data

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the module's code, the first time without another look at the disk."""
        data, self._data = self._data, b""
        if not data:
            return super().get_code(fullname)
        return marshal.loads(memoryview(data)[_HEAD_BYTES:])  # noqa: S302 - what Python would load


def _read(path: str) -> bytes:
    descriptor = os.open(
        path, os.O_RDONLY | os.O_CLOEXEC
    )  # a file object asks the system six times more
    try:
        return os.read(descriptor, _MOST_BYTES)
    finally:
        os.close(descriptor)


def _word(number: int) -> bytes:
    return (number & 0xFFFFFFFF).to_bytes(4, "little")
