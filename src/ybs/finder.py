"""Imports ybs's own modules without Python's search through folders and file name endings: a start imports 350 of them.

Everything else about an import is Python's: which compiled file belongs to a source, whether it is current, how it runs.
See https://docs.python.org/3/reference/import.html#the-meta-path (ADR 0036).
"""

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import ModuleType


def install() -> None:
    """Look for ybs's modules this way first from now on, in the whole process."""
    sys.meta_path.insert(0, Finder())


class Finder:
    """A meta path finder for the modules of ybs: `ybs.x.y` is the file `y.py` in the folder of the package `ybs.x`."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where the module is; None for packages and for all that is not ybs's, which Python finds."""
        del target
        if not path or not name.startswith("ybs."):
            return None
        source = f"{path[0]}/{name.rpartition('.')[2]}.py"
        if not os.path.isfile(source):  # noqa: PTH113 - 350 times in a start
            return None
        spec = ModuleSpec(name, SourceFileLoader(name, source), origin=source)
        spec.has_location = True
        return spec
