"""Folders and finders by which Python looks for modules, and ybs does not: those that editable installs add (lines of `*.pth`), and folders of PYTHONPATH that are worked in.

Such a folder is a project's `src`, or the project (`PYTHONPATH=$PYTHONPATH:~/lib` has an empty entry where it was unset, which means any folder that one stands in). A file there is loaded by whoever looks for a module of its name that nothing else has, as
Python's library does (`msvcrt`, `nt`), so whoever writes it runs in ybs's process. A package that brings something for ybs is found there by its name, and no other.
This runs before ybs imports anything else, so it needs no more than `os` and `sys`.
"""

import os
import sys

TYPE_CHECKING = False  # `typing` is not loaded yet
if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.machinery import ModuleSpec
    from typing import Any

_OURS = os.path.abspath(f"{__file__}/../../..")  # noqa: PTH100 - texts throughout
_PACKAGES = ("site-packages", "dist-packages")
#: What the tops of repositories hold: of git, Mercurial, Jujutsu, Sapling, Subversion, Bazaar, Pijul, Darcs and Fossil.
REPOSITORY_MARKS = (
    *(".git", ".hg", ".jj", ".sl", ".svn", ".bzr", ".pijul"),
    *("_darcs", ".fslckout", "_FOSSIL_"),
)
#: The folders, as they were named.
left_out: list[str] = []
#: The finders: classes or objects of others than Python.
finders: "list[Any]" = []
#: Where packages lie that were taken back, by their names: so called in finders of editable installs, of which this has one.
MAPPING: dict[str, str] = {}


def leave_out() -> None:
    """Look for modules in none of these folders and by none of these finders from now on, in the whole process."""
    finders.extend(each for each in sys.meta_path if not _is_pythons(each))
    sys.meta_path[:] = filter(_is_pythons, sys.meta_path)
    sys.path[:] = filter(os.path.isabs, sys.path)  # others stand for a finder, or for any folder
    if worked_in := os.environ.get("PYTHONPATH") and _worked_in():
        kept = (e for e in sys.path if e == _OURS or os.path.realpath(e) not in worked_in)
        sys.path[:] = list(kept)
    prefixes = {sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix}
    usual = tuple(f"{each}/{name}/" for each in prefixes for name in ("lib", "lib64", "local/lib"))
    own = _own()
    odd = {each for each in sys.path if each not in own and not f"{each}/".startswith(usual)}
    if odd:
        named = _named()
        added = {each for each in odd if os.path.realpath(each) in named}
        left_out.extend(each for each in sys.path if each in added)
        sys.path[:] = [each for each in sys.path if each not in added]


def _worked_in() -> set[str]:
    """Return the folders that PYTHONPATH names in the folder that the process stands in, or in the outermost repository around it, without links."""
    try:
        top = here = above = os.getcwd()  # noqa: PTH109 - texts throughout, and no links in this one
    except OSError:  # it is gone
        return set()
    home = f"{os.path.realpath(os.path.expanduser('~'))}/"  # noqa: PTH111 - a text
    while not home.startswith(
        f"{above.rstrip('/')}/"
    ):  # the home folder is no project, nor what holds it
        if any(os.path.lexists(f"{above}/{mark}") for mark in REPOSITORY_MARKS):
            top = above
        above = os.path.dirname(above)  # noqa: PTH120 - a text
    named = os.environ["PYTHONPATH"].split(os.pathsep)
    folders = {os.path.realpath(os.path.join(here, each)) for each in named}  # noqa: PTH118 - a text
    return {each for each in folders if f"{each}/".startswith(f"{top}/")}


def _is_pythons(finder: object) -> bool:
    return getattr(finder, "__module__", "").startswith("_frozen_importlib")


def _own() -> set[str | None]:
    """Return the folders of ybs, of what it needs, and of the user's packages. What another is called says nothing of whose it is."""
    needed = (each for each in sys.path if os.path.isdir(f"{each}/msgspec"))  # noqa: PTH112 - texts throughout
    return {_OURS, next(needed, None), getattr(sys.modules.get("site"), "USER_SITE", None)}


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
    """Find the package or module of this name in these folders or by these finders again, and nothing else; return whether one has it.

    One that has both is passed over: which of them is meant, whoever made the second would decide.
    """
    top = module.partition(".")[0]
    is_on = any(isinstance(each, _Finder) for each in sys.meta_path)
    if is_on and top in MAPPING:
        return False
    if place := _place_of(top):
        MAPPING[top] = place
        sys.meta_path += [] if is_on else [_Finder()]
    return bool(place)


def mapping_of(finder: object) -> dict[str, str]:
    """Return where what a finder finds lies, by names of packages and modules, where it says so as those of setuptools do."""
    return getattr(sys.modules.get(getattr(finder, "__module__", "")), "MAPPING", {})


def found_by_finders(name: str) -> "ModuleSpec | None":
    """Return what one of the finders has for a name; None where none has it. Raises what they raise."""
    found = (each.find_spec(name, None) for each in finders)
    return next((each for each in found if each is not None), None)


def _place_of(top: str) -> str:
    for folder in left_out:
        path = f"{folder}/{top}"
        if os.path.isdir(path) != os.path.isfile(f"{path}.py"):  # noqa: PTH112, PTH113
            return path
    spec = found_by_finders(top)
    if spec is not None:
        return next(iter(spec.submodule_search_locations or ()), spec.origin or "")
    return next(_below(top), "")


def _below(name: str) -> "Iterator[str]":
    """Yield what finders have in a package without a folder of its own."""
    for each in finders:
        mapping = mapping_of(each)
        yield from (path for inside, path in mapping.items() if inside.startswith(f"{name}."))


class _Finder:
    """A meta path finder for what was taken back."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> "ModuleSpec | None":
        """Return where the package or module is; None for all that was not taken back."""
        from importlib.machinery import ModuleSpec, PathFinder  # not before these are left out

        del path, target
        folder = os.path.dirname(MAPPING.get(name, ""))  # noqa: PTH120 - a text
        if name.partition(".")[0] not in MAPPING:
            return None
        if folder in left_out:
            return PathFinder.find_spec(name, [folder])
        is_whole = any(_below(name))
        return found_by_finders(name) or (
            ModuleSpec(name, None, is_package=True) if is_whole else None
        )
