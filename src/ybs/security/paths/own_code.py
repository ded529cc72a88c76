"""The code that ybs's own process loads: its interpreter, the standard library, site-packages, and ybs itself.

Where it lies in a folder that tools may work in (`pip install ybs` in a project's `.venv`, an editable install), whoever
could write it would run in ybs's process, outside the sandbox and with the person's keys.

An installation is known by what it is, and not only by the process that looks: a server holds sessions of projects whose own
`.venv` has ybs too, for the terminals that attach from there. So each session looks for environments with ybs once, as it begins.
"""

import os
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from functools import cache
from typing import NamedTuple

from ybs.config.editables import finders, found_by_finders, left_out, mapping_of
from ybs.security.paths.path_text import above, lies_in
from ybs.security.paths.steps import steps

#: Why a write was refused: the person can do what the message says.
OWN_CODE = (
    "ybs itself runs from there, so nothing in it is changed while ybs works. The person can do it in a shell of their own, "
    "or install ybs elsewhere (`uv tool install ybs`, `pipx install ybs`)."
)
_VENV = ("lib", "lib64", "include", "pyvenv.cfg")
#: So many folders deep below a root an environment is looked for, and not among what is installed by the thousand.
_DEPTH = 2
_BULK = frozenset({"node_modules", "vendor", "target", "__pycache__", ".git"})
#: Environments with ybs in them that sessions of this process have found in their roots.
_installed: list[str] = []


class _Code(NamedTuple):
    """Absolute paths, as named and as resolved, and the links on the way. `folders` hold nothing but code; `prefixes` hold more besides."""

    folders: frozenset[str]
    prefixes: frozenset[str]


def make_missing(root: str) -> None:
    """Make the folders of modules in the root that Python would look in if they were there: what is missing, any command could make."""
    for path in filter(None, (*_site_folders(), sys.pycache_prefix)):
        if os.path.realpath(path) in code_in(root):  # not in another folder that is held
            with suppress(OSError):
                os.makedirs(path, 0o700, exist_ok=True)  # noqa: PTH103 - a text


def find_installed(root: str) -> None:
    """Hold each environment in the root that has ybs among its packages, whichever process runs from it. What is gone is forgotten."""
    found = (*_installed, *_environments(root))
    _installed[:] = dict.fromkeys(each for each in found if any(_packages(each)))


def _environments(root: str) -> Iterator[str]:
    folders = [root]
    for depth in range(_DEPTH + 1):
        yield from (each for each in folders if os.path.lexists(f"{each}/bin/python"))
        if depth < _DEPTH:
            folders = [below for each in folders for below in _folders_in(each)]


def _folders_in(folder: str) -> list[str]:
    """Return the folders in a folder, and links to some; of a link nothing."""
    try:
        if os.path.islink(folder):  # noqa: PTH114 - texts throughout
            return []
        with os.scandir(folder) as entries:
            return [each.path for each in entries if each.name not in _BULK and each.is_dir()]
    except OSError:  # it may not be looked at
        return []


def _packages(prefix: str) -> list[str]:
    """Return the folders of packages in an environment that have ybs itself, and not only a way to where somebody works on it."""
    try:
        names = sorted(os.listdir(f"{prefix}/lib"))  # noqa: PTH208 - texts throughout
    except OSError:
        return []
    pythons = [f"{prefix}/lib/{name}" for name in names if name.startswith("python")]
    found = [f"{each}/{kind}-packages" for each in pythons for kind in ("dist", "site")]
    return [each for each in found if os.path.lexists(f"{each}/ybs/__init__.py")]


def code_in(root: str) -> tuple[str, ...]:
    """Return what lies in the root, whose links are resolved: code, and links that lead to it.

    The root itself where it is or lies in a folder of code. What lies in another path of the list is left out.
    """
    return _code_in(root, tuple(_installed))


@cache
def _code_in(root: str, installed: tuple[str, ...]) -> tuple[str, ...]:
    code = _code()
    if installed:
        code = _with_installed(code, installed)
    if any(lies_in(root, folder) for folder in code.folders):
        return (root,)
    is_prefix = root in map(os.path.realpath, _prefixes())
    if is_prefix and not os.path.lexists(
        f"{root}/pyvenv.cfg"
    ):  # with one, it would lead Python elsewhere
        return (root,)
    inside = {path for path in code.folders | code.prefixes if path != root and lies_in(path, root)}
    return tuple(sorted(path for path in inside if inside.isdisjoint(above(path, root))))


def forget_in(root: str) -> None:
    """Load no more modules from what is left writable in the root: folders that PYTHONPATH or an editable install names.

    For the program `ybs` alone: where another one embeds it, these are that program's folders.
    """
    if not is_program():
        return
    held = code_in(root)
    sys.path[:] = [
        entry
        for entry in sys.path
        if all(
            not lies_in(step, root) or any(lies_in(step, path) for path in held)
            for step in steps(os.path.join(os.getcwd(), entry))  # noqa: PTH109, PTH118
        )
    ]
    sys.meta_path[:] = [finder for finder in sys.meta_path if not _finds_in(finder, root)]


def editable_folders() -> list[str]:
    """Return the folders of editable installs, in which ybs looks for nothing but packages that bring plug-ins."""
    places = (path for mapping in _mappings() for path in mapping.values())
    return list(dict.fromkeys((*left_out, *map(os.path.dirname, places))))


def _finds_in(finder: object, root: str) -> bool:
    """Return whether the finder may be one of an editable install in the root: those of setuptools say what they map to."""
    module = sys.modules.get(getattr(finder, "__module__", ""))
    if module is None or "editable" not in module.__name__:
        return False
    mapping: dict[str, str] | None = getattr(module, "MAPPING", None)
    return mapping is None or any(
        lies_in(os.path.realpath(path), root) for path in mapping.values()
    )


@cache
def _code() -> _Code:
    folders, prefixes = set[str](), set[str]()
    modules = dict.fromkeys(module_folders())
    links = [each for path in modules if path.endswith("-packages") for each in _links(path)]
    for path in (*modules, *links, *_more_folders()):
        folders.update(steps(path, has_turns=False))
    if is_program():
        for path in (*_loaded(folders), *_plugins(has_links=bool(links))):
            folders.update(steps(path, has_turns=False))
    for path in _programs():
        prefixes.update(steps(path, has_turns=False))
    return _Code(frozenset(folders), frozenset(prefixes))


def _with_installed(code: _Code, installed: tuple[str, ...]) -> _Code:
    folders, prefixes = set(code.folders), set(code.prefixes)
    for prefix in installed:
        packages = _packages(prefix)
        links = (each for folder in packages for each in _links(folder))
        for path in (f"{prefix}/bin", *packages, *links):
            folders.update(steps(path, has_turns=False))
        for path in _parts(prefix):
            prefixes.update(steps(path, has_turns=False))
    return _Code(frozenset(folders), frozenset(prefixes))


def module_folders() -> Iterator[str]:
    """Yield the folders of modules: ybs, the standard library, and where packages are installed."""
    import msgspec

    yield os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120 - texts throughout
    yield os.path.dirname(os.path.dirname(os.path.abspath(msgspec.__file__)))  # noqa: PTH100, PTH120
    yield os.path.dirname(os.path.abspath(os.__file__))  # noqa: PTH100, PTH120
    yield from _site_folders()
    installed = {os.path.realpath(prefix) for prefix in _prefixes()}
    for entry in sys.path:
        real = os.path.realpath(entry)
        if "/lib" in real and any(
            real != prefix and lies_in(real, f"{prefix}/{name}")
            for prefix in installed
            for name in ("lib", "lib64", "local/lib")
        ):
            yield os.path.abspath(entry)  # noqa: PTH100


def _site_folders() -> list[str]:
    """Return where Python looks for packages and `*.pth` at each start, also where there is nothing yet."""
    site = sys.modules.get("site")
    if site is None:  # it was started without
        return []
    user: str | None = site.ENABLE_USER_SITE and site.USER_SITE
    return [*site.getsitepackages(), *([user] if user else ())]


def _links(folder: str) -> Iterator[str]:
    """Yield the links in a folder of modules, and in packages there without a file of their own: what was installed by a link to where somebody works on it."""
    try:
        with os.scandir(folder) as entries:
            found = list(entries)
    except OSError:  # missing
        return
    for each in found:
        if each.is_symlink():
            yield each.path
        elif (
            each.name.isidentifier()
            and each.is_dir()
            and not os.access(f"{each.path}/__init__.py", os.F_OK)
        ):
            yield from _links(each.path)


def is_program() -> bool:
    """Return whether the process is the program `ybs`, and not another one that embeds it."""
    return any(type(each).__module__ == "ybs.finder" for each in sys.meta_path)


def _loaded(folders: Collection[str]) -> Iterator[str]:
    """Yield packages and modules loaded from elsewhere that bring plugins, from an editable install."""
    known = tuple(f"{folder}/" for folder in folders)
    for module in list(sys.modules.values()):
        file: str | None = getattr(module, "__file__", None)
        if file and not file.startswith(known):
            yield os.path.dirname(file) if hasattr(module, "__path__") else file  # noqa: PTH120


def _plugins(*, has_links: bool) -> Iterator[str]:
    """Yield packages that bring plugins, loaded or not, and those around them: the next start may load them from where they lie."""
    maps = _mappings()
    if not (has_links or left_out or finders or any(maps)):
        return
    from ybs.config.installed import installed, site_folders  # few have such installs

    for module in {each.module for each in installed()}:
        parts = module.split(".")
        names = [".".join(parts[: count + 1]) for count in range(len(parts))]
        found = [f"{folder}/{parts[0]}" for folder in left_out]
        found += (f"{each}/{name.replace('.', '/')}" for each in site_folders() for name in names)
        found += (path for mapping in maps for name, path in mapping.items() if name in names)
        for path in found:
            yield from (each for each in (path, f"{path}.py") if os.path.exists(each))  # noqa: PTH110
        for name in names if finders else ():
            yield from _by_finders(name)


def _by_finders(name: str) -> Iterator[str]:
    """Yield where finders of editable installs would load a package or module from."""
    with suppress(Exception):  # somebody else's code
        spec = found_by_finders(name)
        if spec is not None:
            yield from spec.submodule_search_locations or filter(None, (spec.origin,))


def _mappings() -> list[dict[str, str]]:
    """Return what the finders of editable installs lead to, by the names of packages and modules."""
    return [mapping_of(each) for each in (*sys.meta_path, *finders)]


def _prefixes() -> Iterable[str]:
    return dict.fromkeys((sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix))


def _programs() -> Iterator[str]:
    """Yield whole environments, their parts, the interpreter, the program `ybs`."""
    for prefix in _prefixes():
        yield from _parts(prefix)
    for program in (sys.executable, getattr(sys, "_base_executable", ""), sys.argv[0]):
        if program and os.path.isfile(program):  # noqa: PTH113
            yield os.path.abspath(program)  # noqa: PTH100


def _parts(prefix: str) -> tuple[str, ...]:
    return (prefix, *(f"{prefix}/{name}" for name in _VENV))


def _more_folders() -> Iterator[str]:
    """Yield the folders of programs (a `pyvenv.cfg` beside Python leads it elsewhere), of the script `ybs`, of compiled modules, and of another environment's packages."""
    yield from (f"{prefix}/bin" for prefix in _prefixes())
    if is_program():  # added by code in a `*.pth`, as by `uv run --with`; what the variable names is loaded no more
        named = {*map(os.path.abspath, os.environ.get("PYTHONPATH", "").split(os.pathsep))}
        yield from (e for e in sys.path if e.endswith("-packages") and e not in named)
    if is_program() and os.path.isfile(sys.argv[0]):  # noqa: PTH113
        script = os.path.dirname(os.path.realpath(sys.argv[0]))  # noqa: PTH120
        if script in sys.path:  # where Python looks first
            yield script
    if sys.pycache_prefix:
        yield os.path.abspath(sys.pycache_prefix)  # noqa: PTH100
