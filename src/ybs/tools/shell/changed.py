"""Find the files that a command names or runs and that changed since the session began: outside the sandbox they act with the person's keys.

When a file was changed last is what the system notes of it (`st_ctime`), which no program can set. So it does not matter who
changed it: a tool, a command, a sub-agent, or the person themselves. A folder on the way that was changed counts too: what lies in
one that is renamed keeps its times. Which files a command runs is known in part only: those that it names in any spelling, the recipes
of common programs, and git's hooks, each with what they name and load in turn.
"""

import json
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from glob import iglob
from itertools import islice
from pathlib import Path

from ybs.core.errors import YbsError
from ybs.security.commands import options, wrappers
from ybs.security.commands.command import parse, scan
from ybs.security.commands.wrappers import read
from ybs.security.paths.folder_index import index_of
from ybs.security.paths.git_names import REPOSITORIES
from ybs.security.paths.git_settings import hook_folders, named_by_settings
from ybs.security.paths.repository import find_repository
from ybs.security.paths.roots import Roots
from ybs.security.policy.rules import TAKE_DATA
from ybs.trust.reach import files_named, reach

#: What programs run without being told to.
_RECIPES = (
    ("make gmake", "GNUmakefile makefile Makefile"),
    ("cmake ctest", "CMakeLists.txt"),
    ("npm npx pnpm yarn bun bunx node-gyp", "package.json"),
    ("python python3 pip pip3 uv poetry pdm hatch", "pyproject.toml setup.py setup.cfg"),
    ("pytest tox nox invoke inv", "pyproject.toml conftest.py tox.ini noxfile.py tasks.py"),
    ("pre-commit prek", ".pre-commit-config.yaml"),
    ("cargo", "Cargo.toml build.rs .cargo/config.toml"),
    ("just", "justfile Justfile .justfile"),
    ("task", "Taskfile.yml Taskfile.yaml"),
    ("rake bundle rails", "Rakefile Gemfile"),
    ("gradle gradlew", "build.gradle build.gradle.kts settings.gradle settings.gradle.kts"),
    ("mvn mvnw ant", "pom.xml build.xml"),
    ("composer", "composer.json"),
    ("docker podman docker-compose", "Dockerfile docker-compose.yml compose.yml compose.yaml"),
)
_RECIPES_OF = {program: files.split() for programs, files in _RECIPES for program in programs.split()}  # fmt: skip
#: Where hooks of git lie by themselves, or are named.
_HOOKS = (".husky", ".githooks", ".git-hooks", ".pre-commit-config.yaml", "lefthook.yml", ".lefthook.yml")  # fmt: skip
_GIT = frozenset(("git", "gh", "glab"))
#: Programs that run a file which they are given, and what else loads none that it is not given. Of all others it is not known.
_GIVEN_ALL = re.compile(
    r"(?:git|gh|glab|cd|echo|true|test|cp|mv|ls|cat|scp|ssh|kubectl|aws|az|(?:ba|da|z|k|a)?sh|node|ruby|perl|php|lua|python[\d.]*)\Z"
)
#: What git does without changing a file of the project.
_KEEPS = frozenset(["add", "commit", "push", "fetch", "status", "log", "diff", "show", "branch", "tag", "remote", "rev-parse", "ls-files", "describe", "config"])  # fmt: skip
#: Short options in one word, before a path; how many files of a pattern are looked at.
_OPTIONS = re.compile(r"\A-[A-Za-z]+(?=[^A-Za-z])")
_MOST_MATCHES = 1_000
_MOST_HOOKS, _MOST_NAMED, _MOST_BYTES, _MOST_PROGRAMS, _MOST_FOLLOWED = 100, 5, 64_000, 2_000, 40
#: What a recipe or a script runs or loads, of all that it names, by the end of its name; what else it works on.
_RUN = re.compile(
    r"\.(?:\w*sh|mk|mak|make|inc|in|cmake|gradle|kts|just|py|[mc]?js|ts|rb|rake|p[lm]|php|lua)\Z"
)
_NAMED_INSIDE = re.compile(r"(?:\*/)?[\w.@+/-]+(?:\*\.(?:\w*sh|mk)|(?<=\.d/)\*)?")
_IS_BARE = re.compile(r"/(?:[\w@+-]+|\*)\Z")
_STARTED = re.compile(r"(?:\b(?:ba|da|z|k)?sh|\bsource|(?<!\S)\.)\s+([\w.@+/-]+)")
_INCLUDED = re.compile(r"^\s*[-!s]?(?:include|import)\s+(.+)$", re.MULTILINE)
_IMPORTED = re.compile(r"^\s*(?:from|import)\s+(\w[\w.]*)", re.MULTILINE)
_MODULES = (".py", "/__init__.py", "/__main__.py", ".js", ".mjs", ".cjs", ".ts", "/index.js")
_VARIABLE = re.compile(r"(?:\$\([^()]*\)|\$\{[^{}]*\}|\$\w+)/?")
#: The clock of a file system goes in steps.
_STEP_NS = 20_000_000


def changed_files(
    command: str, folder: Path, roots: Roots, since_ns: int, jobs: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return the files that were changed since then, a few of them, as they are shown to the person.

    A job that runs in the background can see that a file is looked at, and change it before the command runs it.
    """
    top = next((root for root in roots.folders if folder.is_relative_to(root)), roots.folder)
    files = dict.fromkeys(_files_of(command, folder, top, roots))
    found = {path: None for path in files if _is_changed(path, roots, since_ns - _STEP_NS)}
    found |= dict.fromkeys(_named_repositories(command, folder, roots))
    names = [roots.show(path) for path in found]
    if jobs and any(".git" not in path.parts for path in files):
        names.insert(0, f"whatever {jobs[0]} writes")
    more = [f"and {len(names) - _MOST_NAMED} more"] if len(names) > _MOST_NAMED else []
    return (*names[:_MOST_NAMED], *more)


def may_run_changed(command: str, folder: Path, roots: Roots, since_ns: int) -> bool:
    """Return whether a command runs files that it does not name, and anything in the project was changed since then, or is by the command itself.

    A rule stands for no such command: what `make`, a script or a test loads cannot be found by reading. Nor does it for one that names
    a link in the project which leads out of it, or that enters folders one after the other.
    """
    top = next((root for root in roots.folders if folder.is_relative_to(root)), roots.folder)
    enters = sum(run.words[:1] == ["cd"] for run in parse(command).commands)
    if enters > 1 or _runs_what_it_changed(command, folder, top, roots):
        return True
    if _leads_out(command, folder, roots):
        return True
    if _takes_data(command) is not None:
        return False
    there = "" if folder == top else f"cd {shlex.quote(str(folder.relative_to(top)))} && "
    is_known = all(
        _GIVEN_ALL.match("".join(run.words[:1])) or top.joinpath(*run.words[:1]).is_file()
        for run in parse(command).commands
    )
    if is_known and not reach((there + command,), top, roots.host.home).unknown:
        return False
    return any(_is_changed_in(str(root), since_ns - _STEP_NS) for root in roots.folders)


def _leads_out(command: str, folder: Path, roots: Roots) -> bool:
    """Return whether a word of the command, or a pattern in it, names something outside by way of a link in the project."""
    for run in parse(command).commands:
        for word in run.words[1:]:
            texts = {
                word,
                word.partition("=")[2],
                *([word[2:], _OPTIONS.sub("", word)] if word[:1] == "-" else []),
            }
            for path in (folder / text for text in texts if text):
                found = islice(iglob(str(path), include_hidden=True), _MOST_MATCHES)  # noqa: PTH207 - a text
                if any(map(roots.leads_out, (path, *found))):
                    return True
    return False


def _runs_what_it_changed(command: str, folder: Path, top: Path, roots: Roots) -> bool:
    """Return whether a part of the command runs files of the project behind a part that may have changed them: `git pull && make`."""
    has_changed = False
    for run in parse(command).commands:
        program = "".join(run.words[:1])
        is_data = program in TAKE_DATA and _takes_data(shlex.join(run.words)) is not None
        if has_changed and (
            not is_data or (program in _GIT and any(True for _ in _hooks(folder, top, roots)))
        ):
            return True
        verb = run.words[1:2] if program == "git" else []
        is_kept = program in ("cd", "echo") or bool(verb and _KEEPS.issuperset(verb))
        writes = any(word.startswith(("-o", "--o")) for word in run.words)  # `git diff --output`
        has_changed = has_changed or writes or not (is_data and is_kept)
    return False


def _is_changed_in(root: str, since_ns: int) -> bool:
    pending = [root]
    with suppress(OSError):  # what was removed from the top
        if os.stat(root).st_ctime_ns >= since_ns:  # noqa: PTH116
            return True
    while pending:
        with suppress(OSError), os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.name == ".git":
                    continue
                if entry.stat(follow_symlinks=False).st_ctime_ns >= since_ns:
                    return True
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
    return False


def _files_of(command: str, folder: Path, top: Path, roots: Roots) -> Iterator[Path]:
    """Yield the files that a command names or runs; they need not be there."""
    yield from _in_path(folder, roots)
    if (takes_data := _takes_data(command)) is None:
        yield from _run_by(command, folder, top, roots)
    if _GIT.isdisjoint(_programs_in(command) if takes_data is None else takes_data):
        return
    for repository in _other_repositories(folder, roots):
        yield from (repository, repository / "config", *_entries(repository / "hooks", _MOST_HOOKS))
    for hook in _hooks(folder, top, roots):
        yield hook
        yield from _run_by(_text_of(hook), top, top, roots)


def _run_by(text: str, folder: Path, top: Path, roots: Roots) -> Iterator[Path]:
    """Yield the files that a command runs, and those that they run and load in turn."""
    there = "" if folder == top else f"cd {shlex.quote(str(folder.relative_to(top)))} && "
    found = dict.fromkeys(top / name for name in files_named(there + text, top, roots.host.home))
    recipes = [name for program in _programs_in(text) for name in _RECIPES_OF.get(program, ())]
    places = dict.fromkeys((folder, top, *_folders_in(text, folder))) if recipes else ()
    found |= dict.fromkeys(place / name for place in places for name in recipes)
    yield from found
    pending = list(found)
    for path in pending:  # which grows meanwhile
        inside = dict.fromkeys(map(os.path.normpath, _run_inside(path, folder, top, roots)))
        files = [Path(each) for each in inside if os.path.isfile(each)]  # noqa: PTH113 - hundreds
        fresh = [each for each in files if each not in found and each.is_relative_to(top)]
        found |= dict.fromkeys(fresh)
        pending += fresh[: max(0, _MOST_FOLLOWED - len(pending))]
        yield from fresh


def _run_inside(path: Path, folder: Path, top: Path, roots: Roots) -> Iterator[Path]:
    """Yield the files that a recipe or a script of the project plainly runs and loads."""
    if not (text := _text_of(path)):
        return
    if included := " ".join(_INCLUDED.findall(text)):
        yield from (top / name for name in files_named(included, top, roots.host.home))
    text = _VARIABLE.sub(lambda match: "*/" if match[0][-1] == "/" else "", text)
    named = {
        name for name in _NAMED_INSIDE.findall(text) if _RUN.search(name) or _IS_BARE.search(name)
    }
    modules = {name.replace(".", "/") for name in _IMPORTED.findall(text)}
    modules |= {name for name in named if not _RUN.search(name)}
    for base in dict.fromkeys((folder, path.parent)):
        for name in (*named, *_STARTED.findall(text)):
            yield from base.glob(name) if "*" in name and name[0] != "/" else ()
            yield base / name.removeprefix("*/")
        yield from (base / f"{name}{end}" for name in modules for end in _MODULES)


def _folders_in(text: str, folder: Path) -> Iterator[Path]:
    """Yield the folders that a word names, as in `make -C src` and `npm --prefix=web`."""
    for word in scan(text):
        for part in (word, word.rpartition("=")[2], word[2:]):
            with suppress(OSError, ValueError):
                if part and (folder / part).is_dir():
                    yield folder / part


def _text_of(path: Path) -> str:
    """Return the text of what runs or says what is run, of `package.json` its scripts; nothing for other files."""
    if path.suffix and not _RUN.search(path.name) and path.name != "package.json":
        return ""
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES).decode(errors="replace")
        if path.name == "package.json":
            return "\n".join(map(str, json.loads(text)["scripts"].values()))
    except (OSError, ValueError, LookupError, AttributeError, TypeError):
        return ""
    return "" if "\0" in text else text


def _in_path(folder: Path, roots: Roots) -> Iterator[Path]:
    """Yield the programs that PATH leads to in the project: git alone finds its helpers, ssh and gpg there."""
    for entry in roots.host.environ.get("PATH", os.defpath).split(os.pathsep):
        place = Path(os.path.realpath(folder / entry))
        if any(place.is_relative_to(root) for root in roots.folders):
            for each in _entries(place, _MOST_PROGRAMS):
                yield from dict.fromkeys((each, each.resolve()))


def _entries(folder: Path, most: int) -> list[Path]:
    with suppress(OSError):
        return list(islice(folder.iterdir(), most))
    return []


def _other_repositories(folder: Path, roots: Roots) -> Iterator[Path]:
    """Yield the other repositories in the project: submodules, and what a command may have made to be pushed to or entered."""
    own = None
    with suppress(YbsError, OSError, ValueError):
        own = find_repository(folder).common_folder
    for root in roots.folders:
        yield from (
            each for name in index_of(str(root)).look().repositories if (each := Path(name)) != own
        )


def _named_repositories(command: str, folder: Path, roots: Roots) -> Iterator[Path]:
    """Yield those that a word names: git runs their hooks, whoever wrote them and when."""
    words = {word for each in scan(command) for word in (each, each.rpartition("=")[2])}
    words |= {f"{word}.git" for word in words}  # git's own short form
    named = {os.path.realpath(folder / word.removeprefix("file://")) for word in words}
    for repository in _other_repositories(folder, roots):
        places = (
            (repository, repository.parent) if repository.name in REPOSITORIES else (repository,)
        )
        is_bare = repository.name not in REPOSITORIES  # git finds it from any folder in it
        inside = is_bare and any(path.startswith(f"{repository}/") for path in named)
        if inside or not named.isdisjoint(map(str, places)):
            yield repository


def _programs_in(text: str) -> set[str]:
    """Return every word of a text that may be a program's name."""
    return {word.rpartition("/")[2] for word in scan(text)}


def _takes_data(command: str) -> set[str] | None:
    """Return the programs of a command whose words are all data; None where it may run one of the files that it names."""
    reading = read(command)
    is_plain = reading.is_clear and all(
        run.words[:1]
        and run.words[0] in TAKE_DATA
        and not any(options.running(run.words))
        and not any(wrappers.words_that_run(run.words))
        for run in reading.runs
    )
    return {run.words[0] for run in reading.runs} if is_plain else None


def _hooks(folder: Path, top: Path, roots: Roots) -> Iterator[Path]:
    """Yield the hooks of the repository, and what its settings name."""
    places = [top / name for name in _HOOKS]
    places += map(Path, named_by_settings(roots.host, str(top)))
    places += map(Path, hook_folders(roots.host, str(top)))
    with suppress(YbsError, OSError):
        places.append(find_repository(folder).common_folder / "hooks")
    for place in places:
        if place.is_file():
            yield place
        with suppress(OSError):
            entries = sorted(place.iterdir())[:_MOST_HOOKS] if place.is_dir() else []
            yield from (each for each in entries if each.suffix != ".sample" and each.is_file())


def _is_changed(path: Path, roots: Roots, since_ns: int) -> bool:
    way = (each for each in path.parents if any(each != root and each.is_relative_to(root) for root in roots.folders))  # fmt: skip
    try:
        # A repository's own folder changes with each commit, and no command in the sandbox can.
        return any(os.lstat(each).st_ctime_ns >= since_ns for each in (path, *(() if ".git" in path.parts else way)))  # fmt: skip
    except (OSError, ValueError):
        return False
