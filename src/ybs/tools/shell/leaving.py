"""Find why no rule of the person's lets a command out of the sandbox, where it acts with their keys, and what the question about it names.

Only `git`, `gh` and `glab` leave by a rule, and only where it is known that they load nothing which a command in the sandbox or a
tool could have changed: in a repository that was there before the session, whose settings start no program, without hooks. All
else may load any file of the project, and no time or content of files says for certain that none was changed (ADR 53).

They look and run while the folders are lent to them, as an editor's file is: nothing in a sandbox that may change files there runs then.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from stat import S_ISDIR

from ybs.core.errors import Refused
from ybs.security.commands.options import operands_of
from ybs.security.commands.wrappers import read
from ybs.security.paths.folder_index import index_of
from ybs.security.paths.git_settings import commands, hook_folders, remotes_of
from ybs.security.paths.own_code import code_in
from ybs.security.paths.path_text import spelled
from ybs.security.paths.persons import named_by_settings
from ybs.security.paths.repository import Repository, check_plain, find_repository, number_of
from ybs.security.paths.roots import Roots
from ybs.security.policy.rules import may_be_let_out, options_of
from ybs.security.sandbox.choice import has_bubblewrap
from ybs.tools.shell.path_leases import lent, may_change
from ybs.tools.workspace import Workspace

#: Programs that git's settings start with words, and that load no file of the folder which they run in; without words none of any name does.
_PROGRAMS = """
    aws bat cache cat code delta difft emacsclient gh git git-credential-manager git-lfs glab gpg gpg2 less meld nano nvim ssh store subl vi vim
    vimdiff
"""
_HELPERS = frozenset(_PROGRAMS.split())
#: What of git reaches other repositories, and variables that lead it to another one.
_REACH = frozenset(("fetch", "pull", "push", "ls-remote"))
_LEADING = (
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY"),
    *("GIT_EXEC_PATH", "GIT_CONFIG_PARAMETERS", "GIT_ALLOW_PROTOCOL"),
)
#: What of git's own folder says something to programs that ask it.
_SAID = frozenset(("HEAD", "config", "hooks", "packed-refs", "refs"))
_BUSY = "a command, server, hook or tool that may change files here runs"
#: The clock of a file system goes in steps.
_STEP_NS = 20_000_000


class Leaving:
    """A command that may leave the sandbox, and where it would run."""

    def __init__(self, command: str, folder: Path, workspace: Workspace) -> None:
        self._parts, self._folder, self._workspace = read(command).parts, folder, workspace
        self._roots = workspace.roots
        self._tops = [str(root) for root in self._roots.folders]

    def why_asked(self) -> str:
        """Return why no rule lets it out; empty where one may."""
        is_busy = may_change(*self._tops)
        return self.why_loading() or (_BUSY if is_busy else "") or next(self._by_words(), "")

    @asynccontextmanager
    async def held(self) -> AsyncGenerator[None]:
        """Keep all that may change files here from it while the command runs by a rule alone, and look anew before it does. Raises Refused."""
        with lent(*self._tops) as is_still:
            why = await asyncio.to_thread(self.why_asked) if is_still else _BUSY
            if why:
                raise Refused(f"safety.outside_sandbox does not count by now: {why}. Nothing was run; the person is asked about it if you call it again")  # fmt: skip
            yield

    def changed(self) -> tuple[str, ...]:
        """Return what was changed since the session began of all that it may load, as it is shown to the person: each file, and folders with a `/` behind.

        A folder is named where it was made or moved, or something in it was made, moved or removed; alone where nothing in it is as it was.
        It goes by what the system notes of a file (`st_ctime`), which no program can set. That helps who is asked, and decides
        nothing: a file system in memory notes no write by a mapping. What runs in the background could change all that is looked at.
        """
        since, roots = self._workspace.since_ns - _STEP_NS, self._roots
        more = ("whatever runs here in the background writes",) * may_change(*self._tops)
        found = (each for top in self._tops for each in _changed_below(top, since).items())
        return (*more, *(spelled(f"{roots.show(Path(path))}{end}") for path, end in found))

    def why_loading(self) -> str:
        """Return why it may load what lies in the project; empty where it is known to load nothing of it, if it finds no programs there (`Shells.prepare_outside`)."""
        if not self._parts or not all(map(may_be_let_out, self._parts)):
            return "it may load any file of the project"
        number, *begun = self._workspace.repository.split() or [""]
        try:
            repository = find_repository(self._folder)
            if self._folder != self._roots.folder or number_of(self._folder) != number:
                return "it is not at the top of a repository that was here when the session began"
            check_plain(repository, begun)
            return next(_by_repository(repository, self._roots), "")
        except (ValueError, OSError, RuntimeError) as error:
            return str(error)

    def _by_words(self) -> Iterator[str]:
        """Yield words that lead to another repository, to a file for others, or elsewhere by a link."""
        remotes = remotes_of(find_repository(self._folder).config_files)
        for part in self._parts:
            words = part.words
            if words[0] == "git" and words[1] in _REACH:
                _, *operands = operands_of(words)
                # The first may be the value of an option that a rule names, and another one the repository.
                is_known = {w for w in words if w[:1] == "-"}.issubset(options_of(part))
                reached = [*operands[:1], *(w for w in operands[1:] if ":" in w and not is_known)]
                others = (word for word in reached if word not in remotes)
                yield from (f"{word} is not a remote of this repository" for word in others)
            for word in words[2:]:
                path = self._folder / word
                if not os.path.lexists(path):
                    continue
                if words[0] != "git":
                    yield f"{word} is a file or folder here"
                elif os.path.realpath(path) != os.path.normpath(path):
                    yield f"{word} is found by a link"


def _by_repository(repository: Repository, roots: Roots) -> Iterator[str]:
    """Yield what git could run or load here. Raises ValueError for a setting that is not known."""
    host, top = roots.host, str(roots.folder)
    remotes_of(repository.config_files)
    yield from (f"{name} is set" for name in _LEADING if name in host.environ)
    for root in map(str, roots.folders):
        if code_in(root) and not has_bubblewrap():
            yield "ybs itself lies here, and nothing on this machine keeps it as it is"
        index = index_of(root).look()
        yield from (
            f"{roots.show(Path(path))} is a repository, too"
            for path in index.repositories
            if path != f"{top}/.git"
        )
        yield from (f"{path} could not be looked at" for path in index.unseen)
    yield from (f"settings of yours name {path}" for path in named_by_settings(host, top))
    for key, command in commands(host, top):
        program, *words = command.strip("! ").split() or [""]
        if key.startswith("hook.") or (words and Path(program).name not in _HELPERS):
            yield f"settings of git start {command}"
        if "git-lfs" in command and os.path.lexists(f"{top}/.lfsconfig"):
            yield "git-lfs goes by .lfsconfig"
    for place in (*map(Path, hook_folders(host, top)), repository.common_folder / "hooks"):
        with suppress(FileNotFoundError, NotADirectoryError):
            yield from (f"git has a hook {each.name}" for each in place.iterdir() if each.suffix != ".sample")  # fmt: skip


def _changed_below(start: str, since_ns: int) -> dict[str, str]:
    """Return what changed at a path and below it, with a `/` for folders; below one in which nothing is as it was nothing."""
    changed, mixed = dict[str, str](), {start}
    for path, status in _all_below(start):
        if status is None or status.st_ctime_ns >= since_ns:
            changed[path] = "/" * (status is None or S_ISDIR(status.st_mode))
            continue
        while path not in mixed:
            mixed.add(path)
            path = os.path.dirname(path)  # noqa: PTH120 - a text
    whole = changed.keys() - mixed
    return {path: end for path, end in changed.items() if os.path.dirname(path) not in whole}  # noqa: PTH120


def _all_below(start: str) -> Iterator[tuple[str, os.stat_result | None]]:
    """Yield a path and all below it; of git's own what programs ask it for, and what it runs; None for a folder that can be entered and not listed."""
    pending = list[str]()
    with suppress(OSError, ValueError):
        status = os.stat(start)  # noqa: PTH116
        pending = [start] * S_ISDIR(status.st_mode)
        yield start, status
    while pending:
        folder = pending.pop()
        try:
            with os.scandir(folder) as entries:
                found = sorted(entries, key=lambda each: each.name)
        except OSError:
            if os.access(folder, os.X_OK):
                yield folder, None
            continue
        for entry in found:
            if folder.endswith("/.git") and entry.name not in _SAID:
                continue
            with suppress(OSError):  # it has gone
                if entry.name != ".git":  # it changes with each look of git's
                    yield entry.path, entry.stat(follow_symlinks=False)
                pending += [entry.path] * entry.is_dir(follow_symlinks=False)
