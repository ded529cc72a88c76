"""Folders that editable installs add to those in which Python looks for modules (lines of `*.pth`), and in which ybs does not.

Such a folder is a project's `src`. A file there is loaded by whoever looks for a module of its name that nothing else has, as
Python's library does (`msvcrt`, `nt`), so whoever writes it runs in ybs's process. A package that brings something for ybs gets its folder back.
This runs before ybs imports anything else, so it needs no more than `os` and `sys`.
"""

import os
import sys

_PACKAGES = ("site-packages", "dist-packages")
#: The folders, as they were named.
left_out: list[str] = []


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
    """Look in the folder that has this package or module again; return whether one has it."""
    top = module.partition(".")[0]
    for folder in left_out:
        if os.path.isdir(f"{folder}/{top}") or os.path.isfile(f"{folder}/{top}.py"):  # noqa: PTH112, PTH113
            left_out.remove(folder)
            sys.path.append(folder)
            return True
    return False
