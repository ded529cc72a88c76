"""ybs's own git: it runs no program that a repository names, reaches no network and asks nobody.

Three layers of protection, each enough for most attacks: only commands of a list; every setting that names a program is overridden on
the command line, also those with names of the repository's choice; and an environment of its own (`hardening`). Around
them stands a sandbox, for commands of the model may exchange paths while git works.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from ybs.core.errors import Refused
from ybs.git.hardening import (
    COMMIT,
    HEED_IGNORED,
    OPTIONS,
    SIGNED,
    WRITE,
    GitError,
    GitSandbox,
    environment,
    overrides,
    plain_message,
    words_for,
)
from ybs.security.launcher import trusted_program
from ybs.security.paths.opening import stamp_of
from ybs.security.paths.repository import (
    Repository,
    check_complete,
    check_writable,
    commit_at_head,
    elsewhere,
    find_repository,
    has_attributes,
)
from ybs.security.sandbox.confined import cannot_be_had, launches, takes_scripts
from ybs.security.sandbox.launch import SandboxView

_Given = TypeVar("_Given")
_Found = TypeVar("_Found")
TIMEOUT_SECONDS = 30.0
MOST_OUTPUT_BYTES = 8_000_000
_MOST_ERROR_CHARS = 2000
_PERSONAL = r"^(user\.(name|email)|core\.(excludesfile|hookspath)|commit\.gpgsign)$"


class StatusLine(Struct, frozen=True):
    """One line of a status: the two letters of git (index, work tree), and the path."""

    letters: str
    path: str


class Git:
    """Git for one folder, which must lie in a work tree. Everything may raise GitError and nothing else."""

    def __init__(
        self,
        environ: Mapping[str, str],
        folder: Path,
        *,
        timeout_seconds: float = TIMEOUT_SECONDS,
        most_bytes: int = MOST_OUTPUT_BYTES,
        has_own_group: bool = True,
        sandbox: GitSandbox | None = None,
    ) -> None:
        self.folder, self.environ, self._has_own_group = folder, environ, has_own_group
        self._sandbox = sandbox or GitSandbox()
        self.timeout_seconds, self.most_bytes = timeout_seconds, most_bytes
        self._settings: list[tuple[str, str]] = []
        self._stamp: list[tuple[str | int, ...]] = []
        self._identity: dict[str, str] | None = None
        self._own: dict[str, str] | None = None

    async def run(
        self,
        command: str,
        *arguments: str,
        stdin: bytes | None = None,
        index: str = "",
        files: str = "",
    ) -> bytes:
        """Run one of git's commands and return what it printed.

        `index` names another index file, `files` a folder in git's own that stands for the work tree.
        """
        ending = words_for(command, arguments)
        repository = self.repository(is_write=command in WRITE)
        if command in HEED_IGNORED:  # both are read by git; later on they are known
            await asyncio.gather(
                self._settings_of(repository), self._person(), return_exceptions=True
            )
        settings = await self._settings_of(repository)
        more = dict(await self._who(settings)) if command in SIGNED else {}
        more |= {"GIT_INDEX_FILE": index} if index else {}
        more |= {"GIT_WORK_TREE": files} if files else {}
        ignored = await self._ignored() if command in HEED_IGNORED else ""
        view = self._sandbox.view(repository, self.folder, command, [ignored] if ignored else [])
        if view is not None:
            self._tried(check_complete, repository)
        named = ("-c", f"core.excludesFile={ignored}") if ignored else ()
        words = [*OPTIONS, *overrides(key for key, _ in settings), *named, *ending]
        return await self.start(words, environment(repository, more), stdin, view)

    async def is_bare(self) -> bool:
        """Return whether the settings say that there is no work tree."""
        settings = dict(await self._settings_of(self.repository()))
        return _is_true(settings.get("core.bare", ""))

    async def branch(self) -> str:
        """Return the branch, or an empty string where HEAD is on none."""
        return _text(await self.run("branch", "--show-current")).strip()

    async def head(self) -> str:
        """Return the commit that HEAD is at, in full; empty before the first one."""
        try:
            if found := self._tried(commit_at_head, self.repository()):
                return found
            return _text(await self.run("rev-parse", "--verify", "--quiet", "HEAD")).strip()
        except GitError:
            return ""

    async def look(self, *paths: str) -> tuple[str, list[StatusLine]]:
        """Return what git says of the branch, and what differs; a file of another name is one gone and one new."""
        words = ("--porcelain=v1", "-z", "--branch", "--no-renames", "--untracked-files=all")
        rows = _text(await self.run("status", *words, "--", *paths)).split("\0")
        branch, *changes = (StatusLine(row[:2], row[3:]) for row in rows if row)
        return branch.path, changes

    async def add(self, *paths: str) -> None:
        """Put files, as they are or as gone, into the index.

        Refused where a filter changes a file, and where it lies in a repository within this one.
        """
        if paths:
            await self.refuse_unfit(paths)
            # `git add` looks into repositories within this one, whose settings are nobody's.
            listing = ("--cached", "--others", "--exclude-standard", "--deduplicate")
            printed = await self.run("ls-files", "-z", *listing, "--", *paths)
            top = self.repository().work_tree
            await self.put([name for name in _names(printed) if not elsewhere(top, name)])

    async def put(self, names: Sequence[str], index: str = "") -> None:
        """Put files as they are into the index, or another one. Nothing is refused."""
        words = ("--add", "--remove", "--replace", "-z", "--stdin")
        await self.run("update-index", *words, stdin=self._listed(names), index=index)

    def _listed(self, names: Sequence[str]) -> bytes:
        top = self.repository().work_tree
        # What is gone goes first: a file can have taken the place of a folder.
        ordered = sorted(names, key=lambda name: _is_entry(top / name))
        return b"".join(os.fsencode(name) + b"\0" for name in ordered)

    async def commit(
        self, message: str, *paths: str, is_sorted_out: bool = False, status: str = ""
    ) -> str:
        """Commit the index, or these paths alone, and return the new commit. No hook runs.

        With paths, the rest of the index stays as it is. `is_sorted_out`: there is nothing else in the index than in HEAD,
        and none of the paths is unfit. With a `status` it is done only where git says exactly that, without `-z`; the
        result is empty where it says something else, or cannot be asked in the same run. It is done step by step, for
        `git commit` looks into submodules, and their settings are nobody's.
        """
        message = plain_message(message)
        parent = await self.head()
        title = f"commit: {message.partition(chr(10))[0]}"
        if (is_sorted_out or status) and self._can_script():
            names = {"YBS_PARENT": parent, "YBS_TITLE": title, "YBS_MESSAGE": message}
            names["YBS_STATUS"] = status
            return _line(await self._run_script(COMMIT, names, self._listed(paths)))
        if status:
            return ""
        if is_sorted_out:
            await self.put(paths)
        if not paths or is_sorted_out:
            tree = _line(await self.run("write-tree"))
        else:
            tree = await self._tree_with(paths, parent)
            await self.put(paths)
        before = ("-p", parent) if parent else ()
        new = _line(await self.run("commit-tree", *before, tree, stdin=message.encode()))
        await self.run("update-ref", "-m", title, "HEAD", new, parent or "0" * len(new))
        return new

    def _can_script(self) -> bool:
        found = trusted_program("git", environ=self.environ, also=(self.folder,))
        return takes_scripts(str(found))

    async def _run_script(self, script: str, names: Mapping[str, str], stdin: bytes) -> bytes:
        """Run several commands that write in one sandbox, which takes longer to make than they take."""
        repository = self.repository(is_write=True)
        settings = await self._settings_of(repository)
        ignored = list(filter(None, [await self._ignored()]))
        view = self._sandbox.view(repository, self.folder, "update-index", ignored)
        if view is not None:
            self._tried(check_complete, repository)
        words = [*OPTIONS, *overrides(key for key, _ in settings)]
        words += [word for file in ignored for word in ("-c", f"core.excludesFile={file}")]
        environ = environment(repository, {**await self._who(settings), **names})
        return await self.start(words, environ, stdin, view, script=script)

    async def _tree_with(self, paths: Sequence[str], parent: str) -> str:
        """Write the tree of the last commit with these files as they are now, by way of an index of its own."""
        await self.refuse_unfit(paths)
        async with self.index_of(parent) as index:
            await self.put(paths, index)
            return _line(await self.run("write-tree", index=index))

    @asynccontextmanager
    async def index_of(self, commit: str) -> AsyncGenerator[str, None]:
        """Give an index file of its own that holds what a commit does; nothing without one."""
        name = f"ybs-index-{os.urandom(6).hex()}"
        index = str(self.repository().git_folder / name)
        try:
            await self.run("read-tree", commit or "--empty", index=index)
            yield index
        finally:
            for left in (index, f"{index}.lock"):
                with suppress(OSError):
                    os.unlink(left)  # noqa: PTH108 - a text already

    async def refuse_unfit(self, paths: Sequence[str], index: str = "") -> None:
        """Raise GitError for a path of another repository or out of sight, and for a file that goes through a filter."""
        top = self.repository().work_tree
        for path in paths:
            if why := elsewhere(top, path):
                raise GitError(f"{path!r} {why}")
            if not self._sandbox.shows(f"{top}/{path}", self.folder):
                raise GitError(f"{path!r} lies outside the folders that ybs works in")
        for path, name in (await self.filtered(paths, index)).items():
            raise GitError(
                f"{path!r} goes through the filter {name!r}, a program that ybs's own git does not run; "
                "use git yourself"
            )

    async def may_be_filtered(self, paths: Sequence[str]) -> bool:
        """Return whether `filtered` may find one of these files: where no attributes are, git need not be asked."""
        repository = self.repository()
        settings = dict(await self._settings_of(repository))
        is_sparse = settings.get("core.sparsecheckout", "false") != "false"
        return is_sparse or has_attributes(repository, paths)

    async def filtered(self, paths: Sequence[str], index: str = "") -> dict[str, str]:
        """Return the files for which attributes name a filter, whose program would have to run.

        With `index`, the attributes are those in that index file.
        """
        names = b"".join(os.fsencode(path) + b"\0" for path in paths)
        words = ("--cached",) if index else ()
        printed = await self.run(
            "check-attr", *words, "-z", "--stdin", "filter", stdin=names, index=index
        )
        fields = _text(printed).split("\0")
        rows = zip(fields[::3], fields[2::3], strict=False)
        return {path: value for path, value in rows if value not in ("unspecified", "unset")}

    async def setting(self, name: str) -> str:
        """Return a setting of the repository, or else the person's own, where it is one that counts here."""
        own = {**await self._person(), **dict(await self._settings_of(self.repository()))}
        return own.get(name, "")

    async def signs(self) -> bool:
        """Return whether git itself would sign commits here."""
        return _is_true(await self.setting("commit.gpgsign"))

    def repository(self, *, is_write: bool = False) -> Repository:
        """Return where the repository is; with `is_write`, one in which git can write safely. Raises GitError."""
        found = self._tried(find_repository, self.folder)
        if is_write:
            self._tried(check_writable, found)
        return found

    def _tried(self, work: Callable[[_Given], _Found], given: _Given) -> _Found:
        try:
            return work(given)
        except (OSError, ValueError, RuntimeError, Refused) as error:
            raise GitError(f"git cannot be used in {self.folder}: {error}") from error

    async def _settings_of(self, repository: Repository) -> list[tuple[str, str]]:
        """List the settings that git goes by here, as git itself finds and reads them; it runs nothing for it."""
        stamp: list[tuple[str | int, ...]] = [
            (str(file), *stamp_of(self._tried(Path.stat, file))) for file in repository.config_files
        ]
        if stamp != self._stamp:
            words = ["--no-pager", "config", "--no-includes", "--null", "--list"]
            printed = await self.start(words, environment(repository, {}), None, None)
            self._settings, self._stamp = _settings_in(printed), stamp
        return self._settings

    async def _who(self, settings: Sequence[tuple[str, str]]) -> dict[str, str]:
        """Return the variables that name the author: the repository's, else the person's own settings."""
        if self._identity is None:
            found = {**await self._person(), **dict(settings)}
            name, mail = found.get("user.name") or "ybs", found.get("user.email") or "ybs@localhost"
            self._identity = {
                **{f"GIT_{role}_NAME": name for role in ("AUTHOR", "COMMITTER")},
                **{f"GIT_{role}_EMAIL": mail for role in ("AUTHOR", "COMMITTER")},
            }
        return self._identity

    async def _person(self) -> dict[str, str]:
        """Read the person's own settings that count here; they are theirs and no repository's."""
        if self._own is None:
            home = self.environ.get("HOME", "")
            words = ["config", "--global", "--null", "--get-regexp", _PERSONAL]
            own = {"HOME": home, "GIT_CONFIG_GLOBAL": ""} if home.startswith("/") else {}
            own |= {n: v for n, v in self.environ.items() if n == "XDG_CONFIG_HOME"}
            try:
                printed = await self.start(words, environment(None, own), None, None)
            except GitError:  # there are none
                printed = b""
            self._own = dict(_settings_in(printed))
        return self._own

    async def _ignored(self) -> str:
        """Return the person's own list of ignored files, where there is one."""
        home = self.environ.get("HOME", "")
        folder = self.environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
        file = (await self._person()).get("core.excludesfile", f"{folder}/git/ignore")
        file = home + file[1:] if file.startswith("~/") else file
        return _real_file(file)

    async def start(
        self,
        words: Sequence[str],
        environ: Mapping[str, str],
        stdin: bytes | None,
        view: SandboxView | None,
        *,
        script: str = "",
    ) -> bytes:
        """Start git with these words and variables, in a sandbox that shows the view, and return what it printed."""
        from ybs.security.sandbox.child import Failed, run_child  # asyncio's part for processes

        program = trusted_program("git", environ=self.environ, also=(self.folder,))
        if program is None:
            raise GitError("there is no git on this machine, outside this project")
        argv = [*(("/bin/sh", "-c", script, "sh") if script else ()), str(program), *words]
        # A repository whose work tree has gone is said so by git itself.
        folder = environ.get("GIT_WORK_TREE", "/")
        ways = launches(argv, environ, view)
        try:
            while True:
                try:
                    return await run_child(
                        next(ways),
                        folder=Path(folder),
                        stdin=stdin,
                        timeout_seconds=self.timeout_seconds,
                        most_bytes=self.most_bytes,
                        has_own_group=self._has_own_group,
                    )
                except Failed as error:
                    if not cannot_be_had(error.code, str(error)):
                        raise
        except (OSError, ValueError, Failed) as error:
            said = str(error)[:_MOST_ERROR_CHARS]
            raise GitError(f"git failed: {said}") from error


def _is_true(value: str) -> bool:
    return value.lower() not in ("", "false", "no", "off", "0")


def _real_file(path: str) -> str:
    is_file = path.startswith("/") and Path(path).is_file()
    return os.path.realpath(path) if is_file else ""


def _is_entry(path: Path) -> bool:
    return os.path.lexists(path) and (path.is_symlink() or not path.is_dir())


def _names(data: bytes) -> list[str]:
    return [os.fsdecode(name) for name in data.split(b"\0") if name]


def _settings_in(printed: bytes) -> list[tuple[str, str]]:
    """Return the names and values that `git config --null` printed; a name without a value means true."""
    rows = (entry.partition("\n") for entry in _text(printed).split("\0") if entry)
    return [(key, value if equals else "true") for key, equals, value in rows]


def _line(data: bytes) -> str:
    return data.decode("ascii", "replace").strip()


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
