"""Folders that editable installs add to those in which Python looks for modules (lines of `*.pth`), and in which ybs does not.

Such a folder is a project's `src`. A file there is loaded by whoever looks for a module of its name that nothing else has, as
Python's library does (`msvcrt`, `nt`), so whoever writes it runs in ybs's process. A package that brings something for ybs is found there by its name, and no other.
This runs before ybs imports anything else, so it needs no more than `os` and `sys`.
"""

import os
import sys

TYPE_CHECKING = False  # `typing` is not loaded yet
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

_PACKAGES = ("site-packages", "dist-packages")
#: The folders, as they were named.
left_out: list[str] = []
#: Where packages lie that were taken back, by their names: so called in finders of editable installs, of which this has one.
MAPPING: dict[str, str] = {}


def leave_out() -> None:
    """Look for modules in none of these folders from now on, in the whole process."""
    own = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120 - texts throughout
    prefixes = {sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix}
    usual = tuple(f"{each}/{name}/" for each in prefixes for name in ("lib", "lib64", "local/lib"))
    odd = {
        each
        for each in sys.path
        if each != own and not f"{each}/".startswith(usual) and not each.endswith(_PACKAGES)
    }
    if odd:
        named = _named()
        added = {each for each in odd if os.path.realpath(each) in named}
        left_out.extend(each for each in sys.path if each in added)
        sys.path[:] = [each for each in sys.path if each not in added]


def _named() -> set[str]:
    """Return the folders that files of installed packages name, without links."""
    found = set[str]()
    for folder in (each for each in sys.path if each.endswith(_PACKAGES)):
        try:
            found_here = os.listdir(folder)  # noqa: PTH208
            names = [each for each in found_here if each.endswith(".pth") and each[0] != "."]
        except OSError:
            continue
        for name in names:
            found.update(_lines_of(folder, name))
    return found


def _lines_of(folder: str, name: str) -> set[str]:
    try:
        with open(f"{folder}/{name}", encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123
            lines = [line.strip() for line in file if "\0" not in line]
    except OSError:
        return set()
    return {os.path.realpath(os.path.join(folder, line)) for line in lines if line}  # noqa: PTH118


def take_back(module: str) -> bool:
    """Find the package or module of this name in these folders again, and nothing else; return whether one has it.

    One that has both is passed over: which of them is meant, whoever made the second would decide.
    """
    top = module.partition(".")[0]
    is_on = any(isinstance(each, _Finder) for each in sys.meta_path)
    if is_on and top in MAPPING:
        return False
    for folder in left_out:
        path = f"{folder}/{top}"
        if os.path.isdir(path) != os.path.isfile(f"{path}.py"):  # noqa: PTH112, PTH113
            MAPPING[top] = path
            sys.meta_path += [] if is_on else [_Finder()]
            return True
    return False


class _Finder:
    """A meta path finder for what was taken back."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> "ModuleSpec | None":
        """Return where the package or module is; None for all that was not taken back."""
        from importlib.machinery import PathFinder  # not before these folders are left out

        del path, target
        place = MAPPING.get(name, "")
        return PathFinder.find_spec(name, [os.path.dirname(place)]) if place else None  # noqa: PTH120
