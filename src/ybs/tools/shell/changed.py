"""Which files that a command names or runs were changed since the session began: outside the sandbox they act with the person's keys.

When a file was changed last is what the system notes of it (`st_ctime`), which no program can set. So it does not matter who
changed it: a tool, a command, a sub-agent, or the person themselves. Which files a command runs is known in part only: those that
it names in any spelling, the recipes of common programs, and git's hooks with what they name.
"""

import os
import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ybs.core.errors import YbsError
from ybs.security.commands import options, wrappers
from ybs.security.commands.command import scan
from ybs.security.commands.wrappers import read
from ybs.security.paths.git_settings import named_by_git
from ybs.security.paths.repository import find_repository
from ybs.security.paths.roots import Roots
from ybs.trust.reach import reach

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
#: Programs whose words are data, unless an option of theirs runs something.
_TAKE_DATA = frozenset(("git", "gh", "glab", "cd", "echo"))
_GIT = frozenset(("git", "gh", "glab"))
_MOST_HOOKS, _MOST_NAMED, _MOST_BYTES = 100, 5, 64_000
#: The clock of a file system goes in steps.
_STEP_NS = 20_000_000


def changed_files(command: str, folder: Path, roots: Roots, since_ns: int) -> tuple[str, ...]:
    """Return the files that were changed since then, a few of them, as they are shown to the person."""
    top = next((root for root in roots.folders if folder.is_relative_to(root)), roots.folder)
    found = dict.fromkeys(
        path
        for path in _files_of(command, folder, top, roots)
        if _is_changed(path, since_ns - _STEP_NS)
    )
    names = [roots.show(path) for path in found]
    more = [f"and {len(names) - _MOST_NAMED} more"] if len(names) > _MOST_NAMED else []
    return (*names[:_MOST_NAMED], *more)


def _files_of(command: str, folder: Path, top: Path, roots: Roots) -> Iterator[Path]:
    """Yield the files that a command names or runs; they need not be there."""
    if (takes_data := _takes_data(command)) is None:
        yield from _run_by(command, folder, top, roots)
    if _GIT.isdisjoint(_programs_in(command) if takes_data is None else takes_data):
        return
    for hook in _hooks(folder, top, roots):
        yield hook
        with suppress(OSError), hook.open("rb") as file:
            text = file.read(_MOST_BYTES).decode(errors="replace")
            yield from _run_by(text, top, top, roots)


def _run_by(text: str, folder: Path, top: Path, roots: Roots) -> Iterator[Path]:
    there = "" if folder == top else f"cd {shlex.quote(str(folder.relative_to(top)))} && "
    yield from (top / name for name in reach((there + text,), top, roots.host.home).files)
    for program in _programs_in(text):
        for name in _RECIPES_OF.get(program, ()):
            yield from dict.fromkeys((folder / name, top / name))


def _programs_in(text: str) -> set[str]:
    """Return every word of a text that may be a program's name."""
    return {word.rpartition("/")[2] for word in scan(text)}


def _takes_data(command: str) -> set[str] | None:
    """Return the programs of a command whose words are all data; None where it may run one of the files that it names."""
    reading = read(command)
    is_plain = reading.is_clear and all(
        run.words[:1]
        and run.words[0] in _TAKE_DATA
        and not any(options.running(run.words))
        and not any(wrappers.words_that_run(run.words))
        for run in reading.runs
    )
    return {run.words[0] for run in reading.runs} if is_plain else None


def _hooks(folder: Path, top: Path, roots: Roots) -> Iterator[Path]:
    """Yield the hooks of the repository, and what its settings name."""
    places = [top / name for name in _HOOKS] + [Path(path) for path in named_by_git(roots.host, str(top))]  # fmt: skip
    with suppress(YbsError, OSError):
        places.append(find_repository(folder).common_folder / "hooks")
    for place in places:
        if place.is_file():
            yield place
        with suppress(OSError):
            entries = sorted(place.iterdir())[:_MOST_HOOKS] if place.is_dir() else []
            yield from (each for each in entries if each.suffix != ".sample" and each.is_file())


def _is_changed(path: Path, since_ns: int) -> bool:
    try:
        return os.lstat(path).st_ctime_ns >= since_ns
    except (OSError, ValueError):
        return False
