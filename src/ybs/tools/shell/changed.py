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
from ybs.security.commands.command import parse
from ybs.security.commands.wrappers import read
from ybs.security.paths.folder_index import IndexedPaths, index_of
from ybs.security.paths.git_names import REPOSITORIES
from ybs.security.paths.git_settings import commands, hook_folders, named_by_settings
from ybs.security.paths.repository import find_repository
from ybs.security.paths.roots import Roots
from ybs.security.policy.rules import GIT_VERBS, TAKE_DATA

#: Short options in one word, before a path.
_OPTIONS = re.compile(r"\A-[A-Za-z]+(?=[^A-Za-z])")
#: Programs that git's settings start with words, and that load no file of the folder which they run in; without words none of any name does.
_PROGRAMS = """
    aws bat cache cat code delta difft emacsclient gh git git-credential-manager git-lfs glab gpg gpg2 less meld nano nvim ssh store subl vi vim
    vimdiff
"""
_HELPERS = frozenset(_PROGRAMS.split())
_GIT = frozenset(("git", "gh", "glab"))
#: What git does with other repositories, which a path may be; what of its own folder says something.
_REACH = frozenset(("fetch", "pull", "push", "ls-remote"))
_SAID = frozenset(("HEAD", "config", "hooks", "packed-refs", "refs"))
_MOST_MATCHES = 1_000
_MOST_ENTRIES, _MOST_NAMED = 2_000, 5
#: The clock of a file system goes in steps.
_STEP_NS = 20_000_000


def changed_files(
    command: str, folder: Path, roots: Roots, since_ns: int, jobs: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return what was changed since then of all that the command may load, a few names of it, as they are shown to the person.

    A command that loads what it does not name, or changes the project before it does, loads the whole project. So does `git` where a
    hook could run, or where it is not known which repository it finds. A job that runs in the background could change all that is
    looked at.
    """
    since_ns -= _STEP_NS
    found: Iterator[str] = chain(
        (f"whatever {job} writes" for job in jobs[:1]),
        (f"{path}, which {why}" for path, why in _leading_away(command, folder, roots)),
        map(roots.show, _changed_of(_in_path(folder, roots), since_ns)),
    )
    if not _is_data(command, folder, roots):
        where = (each for root in roots.folders for each in _changed_below(str(root), since_ns))
        found = chain(found, _by_itself(command), map(roots.show, where))
    names = [*dict.fromkeys(found)]
    more = [f"and {len(names) - _MOST_NAMED} more"] if len(names) > _MOST_NAMED else []
    return (*names[:_MOST_NAMED], *more)


def _is_data(command: str, folder: Path, roots: Roots) -> bool:
    """Return whether a command loads nothing of the project."""
    reading = read(command)
    if not reading.is_clear:
        return False
    programs = {"".join(run.words[:1]) for run in reading.runs}
    for run in reading.runs:
        if any(options.running(run.words)) or any(wrappers.words_that_run(run.words)):
            return False
        if run.words[:1] == ["git"] and GIT_VERBS.isdisjoint(run.words[1:2]):
            return False  # it may be an alias
    return programs <= {"echo"} or (
        programs <= TAKE_DATA - {"cd"} and not _git_may_load(folder, roots)
    )


def _by_itself(command: str) -> Iterator[str]:
    """Yield that a command may change what it loads: `git pull && make`. To enter a folder first changes nothing."""
    if len([run for run in parse(command).commands if run.words[:1] not in (["cd"], ["echo"])]) > 1:
        yield "what this command changes itself"


def _leading_away(command: str, folder: Path, roots: Roots) -> Iterator[tuple[str, str]]:
    """Yield words of a command that lead to another repository, whoever made it and when, or elsewhere by a link in the project."""
    own = {f"{root}/.git" for root in roots.folders}
    repositories = [Path(each) for each in _index(roots).repositories if each not in own]
    entered = 0
    for run in parse(command).commands:
        entered += run.words[:1] == ["cd"]
        reaches = run.words[:1] == ["git"] and not _REACH.isdisjoint(run.words[1:2])
        for word in run.words[1:]:
            path = folder / word
            if _names_repository(word, folder, repositories):
                yield word, "is another repository"
            elif _leads_out(word, folder, roots):
                yield word, "leads out of the project"
            elif "".join(run.words[:1]) in _GIT and _is_by_link(path):
                yield word, "is found by a link"
            elif reaches and os.path.lexists(path):
                yield word, "is a file or folder here"
    if entered > 1:
        yield "a folder", "is entered after another"


def _is_by_link(path: Path) -> bool:
    try:
        return os.path.lexists(path) and os.path.realpath(path) != os.path.normpath(path)
    except (OSError, ValueError):
        return True


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
    """Yield a path and all below it; of git's own what programs ask it for, and what it runs."""
    pending = list[str]()
    with suppress(OSError, ValueError):
        status = os.stat(start)  # noqa: PTH116
        pending = [start] * S_ISDIR(status.st_mode)
        yield start, status
    while pending:
        folder = pending.pop()
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda each: each.name):
                if folder.endswith("/.git") and entry.name not in _SAID:
                    continue
                if entry.name != ".git":  # it changes with each look of git's
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
    host, root, index = roots.host, str(roots.folder), _index(roots)
    is_top = any(folder == each for each in roots.folders) and os.path.lexists(folder / ".git")
    others = [each for each in index.repositories if each != f"{folder}/.git"]
    if not is_top or others or index.unseen or named_by_settings(host, root):
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


def _index(roots: Roots) -> IndexedPaths:
    """Return what is known of the folders: the repositories in them, and what could not be looked into."""
    found = IndexedPaths()
    for root in roots.folders:
        seen = index_of(str(root)).look()
        found.repositories += seen.repositories
        found.unseen += seen.unseen
    return found


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
