"""Find what changed since the session began, of all that a command may run or reads by name: outside the sandbox it acts with the person's keys.

When a file was changed last is what the system notes of it (`st_ctime`), which no program can set. So it does not matter who
changed it: a tool, a command, a sub-agent, or the person themselves. Nobody looks through recipes and scripts for what they load: a
command that is not known to load nothing loads any file of the project.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from glob import iglob
from itertools import chain, islice
from pathlib import Path
from stat import S_ISDIR

from ybs.core.errors import YbsError
from ybs.security.commands import options, wrappers
from ybs.security.commands.command import parse, scan
from ybs.security.commands.wrappers import read
from ybs.security.paths.folder_index import index_of
from ybs.security.paths.git_names import REPOSITORIES
from ybs.security.paths.git_settings import commands, hook_folders, named_by_settings
from ybs.security.paths.repository import find_repository
from ybs.security.paths.roots import Roots
from ybs.security.policy.rules import GIT_VERBS, TAKE_DATA

#: Programs that load no file but those that they are told to.
_LOAD_NAMED = frozenset(("aws", "kubectl"))
#: Short options in one word, before a path.
_OPTIONS = re.compile(r"\A-[A-Za-z]+(?=[^A-Za-z])")
#: Programs that git's settings start with words, and that load no file of the folder which they run in; without words none of any name does.
_PROGRAMS = """
    aws bat cache cat code delta difft emacsclient gh git git-credential-manager git-lfs glab gpg gpg2 less meld nano nvim ssh store subl vi vim
    vimdiff
"""
_HELPERS = frozenset(_PROGRAMS.split())
_MOST_MATCHES = 1_000
_MOST_ENTRIES, _MOST_NAMED = 2_000, 5
#: The clock of a file system goes in steps.
_STEP_NS = 20_000_000


def changed_files(
    command: str, folder: Path, roots: Roots, since_ns: int, jobs: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return what was changed since then of all that the command may load, a few names of it, as they are shown to the person.

    A command that loads what it does not name, or changes the project before it does, loads the whole project. So does `git` where a
    hook could run. A job that runs in the background can see that a file is looked at, and change it before the command runs it.
    """
    since_ns -= _STEP_NS
    programs = _programs(command, folder, roots)
    found: Iterator[str] = chain(
        (f"{path}, which {why}" for path, why in _leading_away(command, folder, roots)),
        map(roots.show, _changed_of(_in_path(folder, roots), since_ns)),
    )
    if programs is None:
        where = (each for root in roots.folders for each in _changed_below(str(root), since_ns))
        found = chain(found, _by_itself(command), map(roots.show, where))
    elif not programs <= TAKE_DATA:
        found = chain(found, map(roots.show, _changed_of(_named(command, folder), since_ns)))
    if jobs and (programs is None or not programs <= TAKE_DATA):
        found = chain((f"whatever {jobs[0]} writes",), found)
    names = [*dict.fromkeys(found)]
    more = [f"and {len(names) - _MOST_NAMED} more"] if len(names) > _MOST_NAMED else []
    return (*names[:_MOST_NAMED], *more)


def _programs(command: str, folder: Path, roots: Roots) -> set[str] | None:
    """Return the programs of a command that load at most what they are told to; None where it may load anything of the project."""
    reading = read(command)
    programs = {"".join(run.words[:1]) for run in reading.runs}
    if not reading.is_clear or not programs <= TAKE_DATA | _LOAD_NAMED:
        return None
    for run in reading.runs:
        if any(options.running(run.words)) or any(wrappers.words_that_run(run.words)):
            return None
        if run.words[:1] == ["git"] and GIT_VERBS.isdisjoint(run.words[1:2]):
            return None  # it may be an alias
    return None if programs & {"git", "gh", "glab"} and _git_may_load(folder, roots) else programs


def _by_itself(command: str) -> Iterator[str]:
    """Yield that a command may change what it loads: `git pull && make`. To enter a folder first changes nothing."""
    if len([run for run in parse(command).commands if run.words[:1] not in (["cd"], ["echo"])]) > 1:
        yield "what this command changes itself"


def _leading_away(command: str, folder: Path, roots: Roots) -> Iterator[tuple[str, str]]:
    """Yield words of a command that lead to another repository, whoever made it and when, or out of the project by a link in it."""
    repositories = _other_repositories(folder, roots)
    entered = 0
    for run in parse(command).commands:
        entered += run.words[:1] == ["cd"]
        for word in run.words[1:]:
            if _names_repository(word, folder, repositories):
                yield word, "is another repository"
            elif _leads_out(word, folder, roots):
                yield word, "leads out of the project"
    if entered > 1:
        yield "a folder", "is entered after another"


def _leads_out(word: str, folder: Path, roots: Roots) -> bool:
    for path in (folder / text for text in _parts(word)):
        matches = islice(iglob(str(path), include_hidden=True), _MOST_MATCHES)  # noqa: PTH207 - a text
        if any(map(roots.leads_out, (path, *matches))):
            return True
    return False


def _parts(word: str) -> Iterator[str]:
    """Yield what of a word may be a path: the word, and what is glued to an option or stands behind a sign."""
    parts = [word, word.partition("=")[2]]
    if word[:1] == "-":
        parts += [word[2:], _OPTIONS.sub("", word)]
    yield from filter(None, dict.fromkeys(parts))


def _named(command: str, folder: Path) -> Iterator[Path]:
    """Yield the paths that a command may name; they need not exist."""
    for word in scan(command):
        for part in (*_parts(word), *re.split("[=,:@]", word)):
            if part:
                yield folder / part


def _changed_of(paths: Iterator[Path], since_ns: int) -> Iterator[Path]:
    """Yield those that changed; of folders what changed in them."""
    for path in paths:
        yield from _changed_below(str(path), since_ns)


def _changed_below(start: str, since_ns: int) -> list[Path]:
    """Return the files that changed at a path and below it; where there are none the folders in which something was removed or renamed."""
    changed = {
        Path(path): S_ISDIR(status.st_mode)
        for path, status in _all_below(start)
        if status.st_ctime_ns >= since_ns
    }
    return [path for path, is_folder in changed.items() if not is_folder] or [*changed]


def _all_below(start: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield a path and all below it but what is git's own."""
    pending = list[str]()
    with suppress(OSError, ValueError):
        status = os.stat(start)  # noqa: PTH116
        pending = [start] * S_ISDIR(status.st_mode)
        yield start, status
    while pending:
        with suppress(OSError), os.scandir(pending.pop()) as entries:
            for entry in sorted(entries, key=lambda each: each.name):
                if entry.name != ".git":
                    yield entry.path, entry.stat(follow_symlinks=False)
                    pending += [entry.path] * entry.is_dir(follow_symlinks=False)


def _in_path(folder: Path, roots: Roots) -> Iterator[Path]:
    """Yield the programs that PATH leads to in the project: git alone finds its helpers, ssh and gpg there."""
    for entry in roots.host.environ.get("PATH", os.defpath).split(os.pathsep):
        place = Path(os.path.realpath(folder / entry))
        if any(place.is_relative_to(root) for root in roots.folders):
            with suppress(OSError):
                for each in islice(place.iterdir(), _MOST_ENTRIES):
                    yield from dict.fromkeys((each, each.resolve()))


def _git_may_load(folder: Path, roots: Roots) -> bool:
    """Return whether git could run a hook here, a file of the project that settings name, or a program of theirs that may load one.

    In submodules it runs theirs.
    """
    host, root = roots.host, str(roots.folder)
    if named_by_settings(host, root) or _other_repositories(folder, roots):
        return True
    for command in commands(host, root):
        program, *words = command.strip("! ").split() or [""]
        if words and Path(program).name not in _HELPERS:
            return True
    places = list(map(Path, hook_folders(host, root)))
    with suppress(YbsError, OSError):
        places.append(find_repository(folder).common_folder / "hooks")
    return any(each.suffix != ".sample" for place in places for each in _entries(place))


def _entries(place: Path) -> Iterator[Path]:
    with suppress(OSError):
        yield from place.iterdir()


def _other_repositories(folder: Path, roots: Roots) -> list[Path]:
    """Return the other repositories in the project: what a command may have made to be pushed to or entered."""
    own = None
    with suppress(YbsError, OSError, ValueError):
        own = find_repository(folder).common_folder
    return [
        path
        for root in roots.folders
        for path in map(Path, index_of(str(root)).look().repositories)
        if path != own
    ]


def _names_repository(word: str, folder: Path, repositories: Sequence[Path]) -> bool:
    """Return whether a word names one: git runs its hooks. It finds a bare one from any folder in it, and by a name without `.git`."""
    named = {
        Path(os.path.realpath(folder / part.removeprefix("file://")))
        for each in _parts(word)
        for part in (each, f"{each}.git")
    }
    return any(
        path == repository
        or (
            path == repository.parent
            if repository.name in REPOSITORIES
            else path.is_relative_to(repository)
        )
        for repository in repositories
        for path in named
    )
