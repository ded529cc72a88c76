"""Imports ybs's own modules without Python's search through folders and file name endings: a start imports 290 of them.

A compiled file that is where it mostly is, and current, is read in one step; everything else about an import is Python's.
See https://docs.python.org/3/reference/import.html#the-meta-path and https://peps.python.org/pep-0552/ (ADR 0036).
"""

import os
import sys
from collections.abc import Sequence
from importlib import import_module

# `importlib.util` has it too, and loads what few starts need.
from importlib._bootstrap_external import MAGIC_NUMBER
from importlib.machinery import ModuleSpec, SourceFileLoader
from marshal import loads
from types import CodeType, ModuleType, SimpleNamespace

#: What a compiled file begins with that belongs to a source of some time and size: the version, and no flags.
_BEGINNING = MAGIC_NUMBER + bytes(4)
_ENDING = f".{sys.implementation.cache_tag}.pyc"
_BITS = 0xFFFFFFFF
#: Optimized code is in files of other names.
IS_PLAIN = not sys.flags.optimize


def install() -> None:
    """Look for ybs's modules this way first from now on, in the whole process."""
    sys.meta_path.insert(0, ModuleFinder())


def is_installed() -> bool:
    """Return whether the process is ybs's own, and looks this way."""
    return any(isinstance(each, ModuleFinder) for each in sys.meta_path)


def load_msgspec() -> None:
    """Load msgspec without what it loads for little.

    Of typing_extensions, which Python's own `typing` has as well, and is loaded already; and, by way of `uuid`, of `platform`, for the
    name of the system.
    """
    missing: dict[str, object] = {
        "typing_extensions": None,  # Python's way to say that there is none
        "platform": SimpleNamespace(system=lambda: os.uname().sysname),
    }
    stand_ins = {name: each for name, each in missing.items() if name not in sys.modules}
    sys.modules.update(stand_ins)  # pyright: ignore[reportCallIssue, reportArgumentType]
    try:
        import_module("msgspec")
    finally:
        for name in stand_ins:
            del sys.modules[name]


class ModuleFinder:
    """A meta path finder for the modules of ybs: `ybs.x.y` is the file `y.py` in the folder of the package `ybs.x`."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where the module or the package is; None for all that is not ybs's, which Python finds."""
        del target
        if not path or not name.startswith("ybs."):
            return None
        module = name.rpartition(".")[2]
        return _spec(name, path[0], module) or _spec(name, f"{path[0]}/{module}", "__init__")


def _spec(name: str, folder: str, module: str) -> ModuleSpec | None:
    """Return the module of a name, which is a file in the folder; None where there is none."""
    source = f"{folder}/{module}.py"
    try:
        status = os.stat(source)  # noqa: PTH116 - 290 times in a start
    except OSError:
        return None
    compiled = f"{folder}/__pycache__/{module}{_ENDING}" if _is_usual() else None
    is_package = module == "__init__"
    spec = ModuleSpec(
        name, Loader(name, source, compiled, status), origin=source, is_package=is_package
    )
    if spec.submodule_search_locations is not None:
        spec.submodule_search_locations.append(folder)
    spec.has_location = True
    if compiled is not None:
        spec.cached = compiled  # else Python takes the path of the source to pieces
    return spec


class Loader(SourceFileLoader):
    """Python's loader, but for the compiled file of a source whose status has just been taken."""

    def __init__(self, name: str, path: str, compiled: str | None, status: os.stat_result) -> None:
        super().__init__(name, path)
        self._compiled, self._status = compiled, status if compiled is not None else None

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the module's code."""
        status, self._status = self._status, None  # a reload looks again
        if self._compiled is not None and status is not None:
            try:
                code = _current(self._compiled, status)
            except (OSError, EOFError, ValueError, TypeError):
                code = None  # there is none, or it is damaged: Python knows what to do
            # In a tree that was moved it names another source, which Python puts right.
            if isinstance(code, CodeType) and code.co_filename == self.path:
                return code
        return super().get_code(fullname)


def _is_usual() -> bool:
    """Return whether compiled files are where they mostly are."""
    return IS_PLAIN and sys.pycache_prefix is None


def _current(compiled: str, status: os.stat_result) -> object:
    """Return what a compiled file holds; None where it is of another source. Raises what reading raises."""
    handle = os.open(compiled, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = os.read(handle, os.fstat(handle).st_size)
    finally:
        os.close(handle)
    time, size = int(status.st_mtime) & _BITS, status.st_size & _BITS
    current = _BEGINNING + time.to_bytes(4, "little") + size.to_bytes(4, "little")
    return loads(memoryview(data)[16:]) if data[:16] == current else None  # noqa: S302 - Python trusts this file too
