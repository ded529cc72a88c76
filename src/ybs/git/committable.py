"""Find the changes of a turn that may be committed, from the work tree before and after it."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from ybs.core.folder_names import OTHERS
from ybs.core.lazy import lazy
from ybs.git.hardening import GitError
from ybs.security.paths.credentials import NAMES as KEY_NAMES
from ybs.security.paths.repository import under_way

if TYPE_CHECKING:
    from ybs.git.client import Git

_DIRTY = "they were changed before this turn"
_NESTED = "they lie in a repository of their own"
_SHARED = "somebody else changed them as well"
_FILTERED = "they go through a filter, such as LFS"
_SECRET = "they are new, and such files hold keys and passwords"  # noqa: S105 - a reason
#: Why files are left out that commands made: caches, build folders, downloads; `git add` is the person's word on them.
MADE = "commands made them"
_SECRET_NAME = lazy(
    r"\.env(?:\.(?!example$|sample$|template$|dist$|defaults$).*)?|(?!(?:example|sample|template|default)s?\.).*\.env|\.envrc"
    r"|id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?|.*\.(?:pem|key|p12|pfx|ppk|jks|keystore|kdbx|tfstate)|\.htpasswd|kubeconfig"
    r"|service-?account.*\.json",
    re.IGNORECASE,
)
#: What git shows without quotes. Attributes may say what becomes of other files.
_PLAIN_NAME = lazy(r"(?!(?:.*/)?\.gitattributes\Z)[\w./@+-]+", re.ASCII)
_MOST_STATUS = 50_000  # characters that one variable of a process holds anywhere
#: Paths as they were given, by their names counted from the top of the work tree.
Named: TypeAlias = Mapping[str, str | Path]


class WorkTreeStatus(Struct, frozen=True):
    """A look at the work tree: the letters of each path that differs, and why nothing can be committed.

    `shared` are paths that somebody else has changed since, `made` are files that commands made, `branch` is what git says of the branch.
    """

    changes: Mapping[str, str]
    trouble: str = ""
    shared: frozenset[str] = frozenset()
    made: frozenset[str] = frozenset()
    branch: str = ""


async def look(git: "Git") -> WorkTreeStatus:
    """Look at the work tree, with one run of git where all is well."""
    try:
        branch, rows = await git.look()
        is_bare = await git.is_bare()
        what = under_way(git.repository())
    except GitError as error:
        return WorkTreeStatus({}, str(error))
    changes = {row.path: row.letters for row in rows}
    if is_bare:
        return WorkTreeStatus({})
    if what:
        return WorkTreeStatus(changes, f"{what} is under way")
    if branch == "HEAD (no branch)":
        return WorkTreeStatus(changes, "HEAD is on no branch")
    if has_conflicts(changes.values()):
        return WorkTreeStatus(changes, "there are conflicts")
    return WorkTreeStatus(changes, branch=branch)


def has_conflicts(letters: Iterable[str]) -> bool:
    """Return whether some letters of a status mean a conflict."""
    return any("U" in each or each in ("AA", "DD") for each in letters)


def names_within(git: "Git", folder: Path, paths: Iterable[str | Path]) -> Named:
    r"""Return the paths by their names counted from the top of the work tree; others are left out.

    They are absolute or relative to the folder; a text is one as tools show it, with `\xNN`.
    """
    from ybs.security.paths.names import real_name

    top = str(git.repository().work_tree)
    names: dict[str, str | Path] = {}
    for path in paths:
        name = real_name(path) if isinstance(path, str) else path
        parent, name = os.path.split(os.path.join(folder, name))  # noqa: PTH118 - names need not be UTF-8
        try:
            real = f"{os.path.realpath(parent)}/{name}"
        except OSError:  # a link that turned into a folder between two looks
            continue
        if real.startswith(f"{top.rstrip('/')}/"):
            names[os.path.relpath(real, top)] = path
    return names


def is_as_head(git: "Git", letters: Mapping[str, str]) -> bool:
    """Return whether the index holds what HEAD does. A look at the work tree passes over submodules."""
    has_submodules = os.path.lexists(git.repository().work_tree / ".gitmodules")
    return not has_submodules and all(each[0] in " ?" for each in letters.values())


async def status_after(git: "Git", before: WorkTreeStatus, names: Sequence[str]) -> str:
    """Return what git says where these files alone were edited since, and may be committed; empty where that is not certain."""
    from ybs.security.paths.repository import elsewhere

    top = git.repository().work_tree
    changes = {**before.changes, **dict.fromkeys(names, " M")}
    if (
        not before.branch
        or len(changes) != len(before.changes) + len(names)  # some differed before
        or before.shared.intersection(names)
        or not is_as_head(git, changes)
        or not all(map(_PLAIN_NAME().fullmatch, changes))
        or any(elsewhere(top, name) for name in names)
        or under_way(git.repository())
        or await git.is_bare()
        or await git.may_be_filtered(names)
    ):
        return ""
    rows = sorted((letters == "??", name, letters) for name, letters in changes.items())
    said = "\n".join([f"## {before.branch}", *(f"{letters} {name}" for _, name, letters in rows)])
    return said if len(said) < _MOST_STATUS else ""


async def sorted_out(
    git: "Git",
    names: Sequence[str],
    changed: Sequence[str],
    before: WorkTreeStatus,
    letters: Mapping[str, str],
) -> tuple[list[str], dict[str, list[str]]]:
    """Return which files may be committed, and those that may not with the reason."""
    from ybs.security.paths.repository import elsewhere

    top = git.repository().work_tree
    left: dict[str, list[str]] = {
        _DIRTY: [name for name in changed if name in before.changes],
        _SHARED: [n for n in changed if n in before.shared and n not in before.changes],
        _NESTED: [n for n in names if n not in before.changes and elsewhere(top, n)],
        _SECRET: [name for name in changed if letters.get(name) == "??" and _is_secret(name)],
        MADE: [n for n in changed if n in before.made and letters.get(n) == "??"],
    }
    out = {name for each in left.values() for name in each}
    mine = [name for name in changed if name not in out]
    filtered: Mapping[str, str] = {}
    # Attributes that were changed or are gone may still stand in the index.
    is_doubtful = any(os.path.basename(name) == ".gitattributes" for name in letters)  # noqa: PTH119
    if mine and (is_doubtful or await git.may_be_filtered(mine)):
        filtered = await git.filtered(mine)
    left[_FILTERED] = list(filtered)
    return [name for name in mine if name not in filtered], left


def is_build_product(path: str) -> bool:
    """Return whether its folder says that a file is a cache, or was built or installed."""
    folders = path.split("/")[:-1]
    return any(name in OTHERS or name.startswith(".") for name in folders) or path.endswith(".pyc")


def _is_secret(path: str) -> bool:
    name = os.path.basename(path)  # noqa: PTH119
    return name in KEY_NAMES or _SECRET_NAME().fullmatch(name) is not None
