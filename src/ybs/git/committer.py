"""Commits of ybs's own: one for each turn that changed files, and one that takes such a commit back."""

import os
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ybs.config.paths import home
from ybs.config.schema import Git as Settings
from ybs.core.lazy import lazy
from ybs.core.wording import listed
from ybs.security.paths.repository import is_in_repository, under_way

if TYPE_CHECKING:
    from ybs.git.client import Git
    from ybs.git.sandbox import GitSandbox
    from ybs.git.way_back import How

#: The title of a commit has at most so many columns.
COLUMNS = 72
_MOST_PATHS = 5_000  # more files than that are no turn's work but something that ran
_SECONDS = 10.0  # a repository that takes longer to look at is left alone
_DIRTY = "they were changed before this turn"
_NESTED = "they lie in a repository of their own"
_SHARED = "somebody else changed them as well"
_FILTERED = "they go through a filter, such as LFS"
_SECRET = "they are new, and such files hold keys and passwords"  # noqa: S105 - a reason
_SECRET_NAME = lazy(
    r"\.env(?:\.(?!example$|sample$|template$|dist$|defaults$).*)?|\.envrc|id_(?:rsa|dsa|ecdsa|ed25519)"
    r"|.*\.(?:pem|key|p12|pfx|jks|keystore|kdbx)|\.netrc|_netrc|\.pgpass|\.git-credentials|\.htpasswd",
    re.IGNORECASE,
)
#: What git shows without quotes. Attributes may say what becomes of other files.
_PLAIN_NAME = lazy(r"(?!(?:.*/)?\.gitattributes\Z)[\w./@+-]+", re.ASCII)
_MOST_STATUS = 50_000  # characters that one variable of a process holds anywhere
HOW_TO_END = "Set git.auto_commit to false to end that."

#: Makes the message for some of the paths, given how many columns its title may have.
Describe: TypeAlias = Callable[[Sequence[str | Path], int], str]
#: Paths as they were given, by their names counted from the top of the work tree.
Named: TypeAlias = Mapping[str, str | Path]


class Commit(Struct, frozen=True, kw_only=True):
    """What became of a turn's changes: the commit, its title, its paths counted from the top of the work tree.

    `commit` is empty where none was made and there is only something to tell. `notice` is for the person, or empty.
    """

    commit: str = ""
    title: str = ""
    paths: tuple[str, ...] = ()
    notice: str = ""


class _Seen(Struct, frozen=True):
    """A look at the work tree: the letters of each path that differs, and why nothing can be committed.

    `shared` are paths that somebody else has changed since, `branch` is what git says of the branch.
    """

    changes: Mapping[str, str]
    trouble: str = ""
    shared: frozenset[str] = frozenset()
    branch: str = ""


def _as_it_is(text: str) -> str:
    return text


class Committer:
    """Commits what each turn changed, and nothing else. One for a session; nothing here ever raises GitError."""

    def __init__(
        self,
        folder: Path,
        settings: Settings,
        *,
        may_write: bool,
        mask: Callable[[str], str] = _as_it_is,
        sandbox: "GitSandbox | None" = None,
    ) -> None:
        """Take the project's folder, `mask`, which takes secrets out of a text, and the sandbox of git."""
        self._sandbox = sandbox
        self._folder, self._prefix, self._mask = folder, settings.commit_message_prefix, mask
        self._is_on = settings.auto_commit and may_write
        self._may_write = may_write
        # One that a command makes later on may still be open to a job of it, while git trusts it.
        self._was_there = is_in_repository(folder)
        self._git: Git | None = None
        self._before: _Seen | None = None
        self._has_committed = False
        self._told: set[str] = set()

    async def begin(self) -> None:
        """Note what differs from the last commit. To be called before each change; the first of a turn counts."""
        if self._is_on and self._before is None and (git := self._repository()) is not None:
            begun_at = monotonic()
            self._before = await _look(git)
            # Nobody waits for that before each change; the end of the turn says why nothing is committed.
            self._is_on = monotonic() - begun_at < _SECONDS

    def forget(self) -> None:
        """Forget what `begin` noted: for a turn that never came to `after_turn`."""
        self._before = None

    async def after_turn(
        self,
        paths: Sequence[str | Path],
        describe: Describe,
        *,
        shared: Sequence[str | Path] = (),
        are_edits: bool = False,
    ) -> Commit | None:
        """End the turn (each one, also with no paths) and commit these files; None: there is nothing to tell.

        The paths are absolute or relative to the project's folder. The `shared` ones are not committed; `describe`
        makes a message for those that are. `are_edits`: none of them is new or gone.
        """
        before, self._before = self._before, None
        git = self._repository()
        if before is None or git is None or not paths:
            return None
        from ybs.git.hardening import GitError

        try:
            others = frozenset(names_within(git, self._folder, shared))
            before = replace(before, shared=others)
            names = names_within(git, self._folder, paths)
            done = await self._commit_edits(git, before, names, describe) if are_edits else None
            return done or await self._commit(git, before, names, describe)
        except GitError as error:
            return self._refused(str(error))

    async def take_back(self, commit: str) -> "How":
        """Take ybs's commit back, and say how. The work tree is not touched."""
        from ybs.git.way_back import take_back

        return await self._set_back(take_back, commit)

    async def bring_back(self, commit: str) -> "How":
        """Make ybs's commit again, if that was taken back last. The work tree is not touched."""
        from ybs.git.way_back import bring_back

        return await self._set_back(bring_back, commit)

    async def _set_back(self, act: "Callable[[Git, str], Awaitable[How]]", commit: str) -> "How":
        git = self._repository() if self._may_write else None
        if git is None:
            return "stays"
        from ybs.git.hardening import GitError

        try:
            return await act(git, commit)
        except (GitError, OSError):
            return "stays"

    def _repository(self) -> "Git | None":
        """Return git for a repository of the person's own; None where there is no such one."""
        from ybs.git.client import Git  # most turns change no file
        from ybs.git.hardening import GitError

        if not self._was_there:
            return None
        git = self._git or Git(self._folder, timeout_seconds=_SECONDS, sandbox=self._sandbox)
        try:
            place = git.repository()
            owners = {path.stat().st_uid for path in (place.work_tree, place.git_folder)}
            is_of_home = place.work_tree == home().resolve() != self._folder.resolve()
        except (GitError, OSError):
            return None
        self._git = git
        # A repository of the home folder holds settings, and no project below it.
        return git if owners == {os.getuid()} and not is_of_home else None

    async def _commit_edits(
        self, git: "Git", before: _Seen, paths: Named, describe: Describe
    ) -> Commit | None:
        """Commit in one run of git, where nothing else has changed since the turn began; None where it may have."""
        names = list(paths)
        if not (status := await _status_after(git, before, names)):
            return None
        message = self._message(describe, paths.values())
        commit = await git.commit(message, *names, status=status)
        return self._made(commit, message, names) if commit else None

    async def _commit(
        self, git: "Git", before: _Seen, paths: Named, describe: Describe
    ) -> Commit | None:
        now = await _look(git)
        changed = [name for name in paths if name in now.changes]
        trouble = before.trouble or now.trouble
        if len(changed) > _MOST_PATHS:
            trouble = f"the turn changed {len(changed):,} files"
        if trouble:
            return self._refused(trouble) if changed or now.trouble else None
        mine, left = await _sorted_out(git, list(paths), changed, before, now.changes)
        notices = self._left_out(left)
        if not mine:
            return Commit(notice=notices) if notices else None
        message = self._message(describe, [paths[name] for name in mine])
        commit = await git.commit(message, *mine, is_sorted_out=_is_as_head(git, now.changes))
        return self._made(commit, message, mine, notices)

    def _message(self, describe: Describe, paths: Iterable[str | Path]) -> str:
        """Make the message of what is said of these paths, with the prefix before its title."""
        from ybs.git.hardening import plain_message

        prefix = f"{self._prefix.strip()} ".lstrip()
        text = self._mask(describe(list(paths), COLUMNS - len(prefix)))
        return plain_message(f"{prefix}{text}")

    def _made(self, commit: str, message: str, paths: Sequence[str], notices: str = "") -> Commit:
        """Return what was done; the first time the person is told how to end it."""
        title = message.partition("\n")[0]
        if not self._has_committed:
            self._has_committed = True
            begun = f"ybs commits what each turn changed: {title} ({commit[:7]}). {HOW_TO_END}"
            notices = f"{begun}\n{notices}".rstrip()
        return Commit(commit=commit, title=title, paths=tuple(paths), notice=notices)

    def _refused(self, reason: str) -> Commit | None:
        """Say once why nothing is committed."""
        reason = reason.partition("\n")[0].rstrip(". ")
        if reason in self._told:
            return None
        from ybs.security.unicode import printable

        self._told.add(reason)
        return Commit(notice=f"Not committed: {printable(reason)}.")

    def _left_out(self, left: Mapping[str, list[str]]) -> str:
        """Name, once each, the files that are not in a commit."""
        lines: list[str] = []
        for why, names in left.items():
            if new := [name for name in names if name not in self._told]:
                self._told.update(new)
                lines.append(f"Not committed, because {why}: {_shown(new)}.")
        return "\n".join(lines)


async def _look(git: "Git") -> _Seen:
    """Look at the work tree, with one run of git where all is well."""
    from ybs.git.hardening import GitError

    try:
        branch, rows = await git.look()
        is_bare = await git.is_bare()
        what = under_way(git.repository())
    except GitError as error:
        return _Seen({}, str(error))
    changes = {row.path: row.letters for row in rows}
    if is_bare:
        return _Seen({})
    if what:
        return _Seen(changes, f"{what} is under way")
    if branch == "HEAD (no branch)":
        return _Seen(changes, "HEAD is on no branch")
    if has_conflicts(changes.values()):
        return _Seen(changes, "there are conflicts")
    return _Seen(changes, branch=branch)


def has_conflicts(letters: Iterable[str]) -> bool:
    """Return whether some letters of a status mean a conflict."""
    return any("U" in each or each in ("AA", "DD") for each in letters)


def names_within(git: "Git", folder: Path, paths: Iterable[str | Path]) -> Named:
    r"""Return the paths by their names counted from the top of the work tree; others are none of its.

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


def _is_as_head(git: "Git", letters: Mapping[str, str]) -> bool:
    """Return whether the index holds what HEAD does. A look at the work tree passes over submodules."""
    has_submodules = os.path.lexists(git.repository().work_tree / ".gitmodules")
    return not has_submodules and all(each[0] in " ?" for each in letters.values())


async def _status_after(git: "Git", before: _Seen, names: Sequence[str]) -> str:
    """Return what git says where these files alone were edited since, and may be committed; empty where that is not certain."""
    from ybs.git.client import elsewhere

    top = git.repository().work_tree
    changes = {**before.changes, **dict.fromkeys(names, " M")}
    if (
        not before.branch
        or len(changes) != len(before.changes) + len(names)  # some differed before
        or before.shared.intersection(names)
        or not _is_as_head(git, changes)
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


async def _sorted_out(
    git: "Git",
    names: Sequence[str],
    changed: Sequence[str],
    before: _Seen,
    letters: Mapping[str, str],
) -> tuple[list[str], dict[str, list[str]]]:
    """Return which files may be committed, and those that may not with the reason."""
    from ybs.git.client import elsewhere

    top = git.repository().work_tree
    left: dict[str, list[str]] = {
        _DIRTY: [name for name in changed if name in before.changes],
        _SHARED: [n for n in changed if n in before.shared and n not in before.changes],
        _NESTED: [n for n in names if n not in before.changes and elsewhere(top, n)],
        _SECRET: [name for name in changed if letters.get(name) == "??" and _is_secret(name)],
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


def _is_secret(path: str) -> bool:
    return _SECRET_NAME().fullmatch(os.path.basename(path)) is not None  # noqa: PTH119


def changed_files(paths: Sequence[str]) -> str:
    """Say which files changed: the title where nobody has words for it."""
    return f"Change {_shown([os.path.basename(path) for path in paths])}"  # noqa: PTH119


def _shown(names: Sequence[str]) -> str:
    """Name a few files."""
    from ybs.security.paths.names import shown_name

    return listed(map(shown_name, names))
