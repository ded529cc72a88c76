"""Commits of ybs's own: one for each turn that changed files, and one that takes such a commit back."""

import os
from asyncio import Lock
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ybs.config.paths import is_same
from ybs.config.schema import GitSettings as Settings
from ybs.core.wording import listed
from ybs.git.client import Git
from ybs.git.committable import (
    MADE,
    Named,
    WorkTreeStatus,
    is_as_head,
    is_build_product,
    look,
    names_within,
    sorted_out,
    status_after,
)
from ybs.git.consent import Consent
from ybs.git.hardening import GitError, plain_message
from ybs.git.hooks import (
    AFTER_COMMIT,
    HookFailed,
    RunScript,
    checked,
    digest_of,
    hooks_folder,
    hooks_in,
    left_undone,
)
from ybs.security.paths.repository import is_in_repository

if TYPE_CHECKING:
    from ybs.git.hardening import GitSandbox
    from ybs.git.moves import How

#: The title of a commit has at most so many columns.
COLUMNS = 72
_MOST_PATHS = 5_000  # more files than that are no turn's work but something that ran
_SECONDS = 10.0  # a repository that takes longer to look at is left alone

#: Makes the message for some of the paths, given how many columns its title may have.
Describe: TypeAlias = Callable[[Sequence[str | Path], int], str]


class Commit(Struct, frozen=True, kw_only=True):
    """What became of a turn's changes: the commit, its title, its paths counted from the top of the work tree.

    `commit` is empty where none was made and there is only something to tell. `notice` is for the person, or empty;
    `is_about_all` tells that the person may want to change whether there are commits.
    """

    commit: str = ""
    title: str = ""
    paths: tuple[str, ...] = ()
    notice: str = ""
    is_about_all: bool = False


def _as_it_is(text: str) -> str:
    return text


class Committer:
    """Commits what each turn changed, and nothing else. One for a session; nothing here ever raises GitError."""

    def __init__(
        self,
        folder: Path,
        settings: Settings,
        *,
        consent: Consent,
        mask: Callable[[str], str] = _as_it_is,
        find_runner: Callable[[], RunScript | None] = lambda: None,
        sandbox: "GitSandbox | None" = None,
    ) -> None:
        """Take the project's folder, `mask`, which takes secrets out of a text, and the sandbox of git.

        `find_runner` returns what runs hooks in a sandbox; None: there is none, and no commit where hooks would run.
        """
        self._sandbox, self._consent, self._find_runner = sandbox, consent, find_runner
        self._folder, self._prefix, self._mask = folder, settings.commit_message_prefix, mask
        self._is_on = self._may_write = consent.may_write
        # One that a command makes later on may still be open to a job of it, while git trusts it.
        self._was_there = is_in_repository(folder)
        self._git: Git | None = None
        self._before: WorkTreeStatus | None = None
        self._beginning = Lock()
        self._has_begun = False  # this turn; where there can be no commit, nothing was noted
        self._has_committed = False
        self._told: set[str] = set()

    async def begin(self) -> None:
        """Note what differs from the last commit. To be called before each change; the first of a turn counts."""
        async with self._beginning:  # a change that comes meanwhile waits for the look as well
            if self._is_on and not self._has_begun:
                self._has_begun = True
                await self._begin()

    async def _begin(self) -> None:
        git = self._repository()
        if git is None or not self._consent.is_possible(git.repository().common_folder):
            return
        begun_at = monotonic()
        self._before = await look(git)
        # Nobody waits for that before each change; the end of the turn says why nothing is committed.
        self._is_on = monotonic() - begun_at < _SECONDS

    def forget(self) -> None:
        """Forget what `begin` noted: for a turn that never came to `after_turn`."""
        self._before, self._has_begun = None, False

    async def after_turn(
        self,
        paths: Sequence[str | Path],
        describe: Describe,
        *,
        shared: Sequence[str | Path] = (),
        made: Sequence[str | Path] = (),
        are_edits: bool = False,
    ) -> Commit | None:
        """End the turn (each one, also with no paths) and commit these files; None: there is nothing to tell.

        The paths are absolute or relative to the project's folder. The `shared` ones are not committed, nor those that
        commands `made` where git does not know them; `describe` makes a message for those that are. `are_edits`: none of them is new or gone.
        """
        before = self._before
        self.forget()
        if before is None or not paths or (git := self._repository()) is None:
            return None
        try:
            others, generated = (
                frozenset(names_within(git, self._folder, each)) for each in (shared, made)
            )
            before = replace(before, shared=others, made=generated)
            names = names_within(git, self._folder, paths)
            hooks = hooks_in(await hooks_folder(git))
            # Nobody is asked about a turn that left everything as it was, so then git is asked first.
            is_known = self._consent.is_known(git.repository().common_folder)
            is_quick = are_edits and not hooks and is_known
            done = await self._commit_edits(git, before, names, describe) if is_quick else None
            return done or await self._commit(git, before, names, describe, hooks)
        except HookFailed as error:
            return Commit(notice=f"Not committed: {error}")
        except (GitError, OSError) as error:
            return self._refused(str(error))

    @property
    def would_ask(self) -> bool:
        """Whether the person would be asked before a commit."""
        git = self._repository()
        return git is not None and not self._consent.is_known(git.repository().common_folder)

    async def set_back(self, act: "Callable[[Git, str], Awaitable[How]]", commit: str) -> "How":
        """Have `take_back` or `bring_back` act on ybs's commit, and say how. The work tree is not touched."""
        git = self._repository() if self._may_write else None
        if git is None:
            return "stays"
        try:
            return await act(git, commit)
        except (GitError, OSError):
            return "stays"

    def _repository(self) -> Git | None:
        """Return git for a repository of the person's own; None where there is no such one."""
        if not self._was_there:
            return None
        host = self._consent.host
        git = self._git or Git(
            host.environ,
            self._folder,
            timeout_seconds=_SECONDS,
            sandbox=self._sandbox,
        )
        try:
            place = git.repository()
            owners = {path.stat().st_uid for path in (place.work_tree, place.git_folder)}
        except (GitError, OSError):
            return None
        self._git = git
        # A repository of the home folder holds settings, and no project below it.
        is_of_home = is_same(place.work_tree, host.home) and not is_same(host.home, self._folder)
        return git if owners == {os.getuid()} and not is_of_home else None

    async def _commit_edits(
        self, git: Git, before: WorkTreeStatus, paths: Named, describe: Describe
    ) -> Commit | None:
        """Commit in one run of git, where nothing else has changed since the turn began; None where it may have."""
        names = list(paths)
        status = await status_after(git, before, names)
        if not status or not await self._is_wanted(git):
            return None
        message = self._message(describe, paths.values())
        commit = await git.commit(message, *names, status=status)
        return self._made(commit, message, names, await self._undone(git)) if commit else None

    async def _commit(
        self,
        git: Git,
        before: WorkTreeStatus,
        paths: Named,
        describe: Describe,
        hooks: Sequence[Path],
    ) -> Commit | None:
        now = await look(git)
        changed = [name for name in paths if name in now.changes]
        trouble = before.trouble or now.trouble
        if len(changed) > _MOST_PATHS:
            trouble = f"the turn changed {len(changed):,} files"
        if trouble:
            return self._refused(trouble) if changed or now.trouble else None
        mine, left = await sorted_out(git, list(paths), changed, before, now.changes)
        made = left.pop(MADE, [])
        if not mine and self.would_ask:  # who never heard of commits misses none
            return None
        notices = self._left_out(left)
        if not mine:
            return Commit(notice=notices) if notices else None
        if not await self._is_wanted(git, hooks):
            return None
        told = {MADE: [name for name in made if not is_build_product(name)]}
        notices = "\n".join(filter(None, [notices, self._left_out(told)]))
        message = self._message(describe, [paths[name] for name in mine])
        if hooks:
            if problem := await self._problem_of(git, hooks):
                return self._refused(problem)
            message = await self._checked(git, hooks, mine, message)
        commit = await git.commit(message, *mine, is_sorted_out=is_as_head(git, now.changes))
        notices = f"{notices}\n{await self._undone(git)}".strip()
        return self._made(commit, message, mine, notices)

    async def _is_wanted(self, git: Git, hooks: Sequence[Path] = ()) -> bool:
        """Return whether the person wants commits in this repository."""
        names, digest = tuple(hook.name for hook in hooks), digest_of(hooks) if hooks else ""
        return await self._consent.given(git.repository().common_folder, names, digest)

    async def _problem_of(self, git: Git, hooks: Sequence[Path]) -> str:
        """Return why the hooks may not run, so that there is no commit; empty where they may."""
        names = tuple(hook.name for hook in hooks)
        which = f"the repository has hooks ({', '.join(names)})"
        if self._find_runner() is None:
            return f"{which}, and there is no sandbox to run them in"
        place = git.repository().common_folder
        if await self._consent.given_to_hooks(place, names, digest_of(hooks)):
            return ""
        return f"{which}, and they run only where you agreed to them in a chat"

    async def _checked(
        self, git: Git, hooks: Sequence[Path], names: Sequence[str], message: str
    ) -> str:
        """Have the hooks look at what is to be committed; return the message as they left it. Raises HookFailed."""
        run = self._find_runner()
        assert run is not None  # noqa: S101 - else there is no commit
        await git.refuse_unfit(names)
        async with git.index_of(await git.head()) as index:
            await git.put(names, index)
            top = git.repository().work_tree
            said = await checked(run, hooks, top, index, message)
        return plain_message(said)

    def _message(self, describe: Describe, paths: Iterable[str | Path]) -> str:
        """Make the message of what is said of these paths, with the prefix before its title."""
        prefix = f"{self._prefix.strip()} ".lstrip()
        text = self._mask(describe(list(paths), COLUMNS - len(prefix)))
        return plain_message(f"{prefix}{text}")

    def _made(self, commit: str, message: str, paths: Sequence[str], notices: str = "") -> Commit:
        """Return what was done and say it; the first time the person is told how to end it."""
        title = message.partition("\n")[0]
        is_first, self._has_committed = not self._has_committed, True
        what = "ybs commits what each turn changed" if is_first else "Committed"
        return Commit(
            commit=commit,
            title=title,
            paths=tuple(paths),
            notice=f"{what}: {title} ({commit[:7]}).\n{notices}".rstrip(),
            is_about_all=is_first,
        )

    def _refused(self, reason: str) -> Commit | None:
        """Say once why nothing is committed."""
        reason = reason.partition("\n")[0].rstrip(". ")
        if reason in self._told:
            return None
        from ybs.security.unicode import printable

        self._told.add(reason)
        return Commit(notice=f"Not committed: {printable(reason)}.", is_about_all=True)

    async def _undone(self, git: Git) -> str:
        """Say once what git itself would have done with the commit."""
        said = await left_undone(git, (AFTER_COMMIT,))
        if said in self._told:
            return ""
        self._told.add(said)
        return said

    def _left_out(self, left: Mapping[str, list[str]]) -> str:
        """Name, once each, the files that are not in a commit."""
        lines: list[str] = []
        for why, names in left.items():
            if new := [name for name in names if name not in self._told]:
                self._told.update(new)
                lines.append(f"Not committed, because {why}: {_shown(new)}.")
        return "\n".join(lines)


def changed_files(paths: Sequence[str]) -> str:
    """Return which files changed: the title where nobody has words for it."""
    return f"Change {_shown([os.path.basename(path) for path in paths])}"  # noqa: PTH119


def _shown(names: Sequence[str]) -> str:
    """Name a few files."""
    from ybs.security.paths.names import shown_name

    return listed(map(shown_name, names))
