"""Paths without undo copies: large files, and folders of dependencies, build outputs and caches."""

from collections.abc import Iterable

#: Undo keeps no larger file.
MOST_KEPT_BYTES = 10_000_000
#: Such a folder is bulk where git ignores it; one that belongs to the project is kept like any other.
_NAMES = frozenset((
    "node_modules", "bower_components", "jspm_packages", "site-packages", "vendor", "Pods", "Carthage", "deps",
    ".venv", "venv", "env", "virtualenv", ".virtualenv", ".tox", ".nox", ".eggs", ".bundle",
    "__pycache__", "__pypackages__", ".cache", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis",
    "build", "_build", "dist", "target", "out", "obj", "DerivedData", "dist-newstyle", ".stack-work", "htmlcov", "coverage",
    ".gradle", ".m2", ".cargo", ".npm", ".yarn", ".pnpm-store", ".parcel-cache", ".turbo", ".next", ".nuxt",
    ".svelte-kit", ".angular", ".terraform", ".dart_tool", ".ipynb_checkpoints", ".zig-cache", ".ccache",
))  # fmt: skip
#: What programs write there at any time, and make again without a word.
_CACHES = frozenset((
    "__pycache__", ".cache", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", "htmlcov", "coverage",
    ".parcel-cache", ".turbo", ".ipynb_checkpoints", ".zig-cache", ".ccache",
))  # fmt: skip
_BEGINNINGS = ("cmake-build-", "bazel-")
_ENDINGS = (".egg-info", ".dSYM")
#: A folder with one of these files in it is a cache (https://bford.info/cachedir/) or a Python environment.
_MARKS = frozenset(("CACHEDIR.TAG", "pyvenv.cfg"))


def is_bulk_name(name: str) -> bool:
    """Return whether a folder of this name, if git ignores it, is one of dependencies, build outputs or caches."""
    return name in _NAMES or name.startswith(_BEGINNINGS) or name.endswith(_ENDINGS)


def is_cache(path: str) -> bool:
    """Return whether a bulk folder is a cache by its name: nobody misses what was in it."""
    return path.rpartition("/")[2] in _CACHES


def has_bulk_mark(names: Iterable[str]) -> bool:
    """Return whether one of the names in a folder marks it as a cache or an environment."""
    return not _MARKS.isdisjoint(names)
