"""How ybs's own Python begins as a child: `own_python.py PATH SITE EDITABLE -m MODULE`, `-c TEXT` or `"" FILE`, and words for it.

Python looks for modules in folders that variables and files (`*.pth`) name, and runs `sitecustomize` where it finds one: also in those of
projects, where everybody writes. So it starts without its `site`, and the parent says what that found, one path per line: the folders
of modules; the user's packages, the prefixes, and where else packages are installed; and folders of editable installs.
"""

import os
import site  # which does nothing by itself
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

(_path, _site, _editable, _how, _what), sys.argv[1:] = sys.argv[1:6], sys.argv[6:]
sys.path[:] = _path.split("\n")
_user, sys.prefix, sys.exec_prefix, *site.PREFIXES[:] = _site.split("\n")
if _user:
    site.USER_SITE, site.ENABLE_USER_SITE = _user, True


class _OwnFinder:
    """Finds the package `ybs` that this file is of, and nothing that lies beside it."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where the package is; None for all others."""
        del path, target
        own = os.path.abspath(f"{__file__}/../../..")  # noqa: PTH100 - Python's own work until here
        return PathFinder.find_spec(name, [own]) if name == "ybs" else None


sys.meta_path.insert(0, _OwnFinder)
if _editable:
    from ybs.config.editables import left_out

    left_out += _editable.split("\n")
if _how == "-c":
    exec(_what)  # noqa: S102 - as Python's own option
else:
    import runpy

    if _how:
        runpy.run_module(_what, run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(_what, run_name="__main__")
