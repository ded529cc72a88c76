"""Detect the kind of a project and its commands from its own files.

Nothing is run and nothing imported. What the prompt is told are words of the tables here, and plain names of folders.
"""

import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from ybs.core.decoding import from_json
from ybs.core.errors import Refused
from ybs.core.folder_names import ASIDE, OTHERS
from ybs.core.lazy import lazy
from ybs.security.paths.opening import held, open_listed, read_beginning

MAX_LINE_BYTES: Final = 200
MAX_BYTES, MAX_FILES, MAX_FOLDERS, MAX_NAMES = 64 * 1024, 200, 64, 2_000
_DEEPEST: Final = 2
#: What the line tells, less and less where there is no room.
_TOLD: Final = (("test", "lint", "types", "build"), ("test", "lint"), ("test",))
#: The names that people give to what is run for it. Nothing else of their scripts is ever shown.
_NAMES: Final = {
    "test": ("test", "tests", "unit", "spec", "check"),
    "lint": ("lint", "check", "style", "linters", "clippy", "eslint", "ruff", "rubocop"),
    "types": ("types", "typecheck", "type-check", "mypy", "pyright", "tsc"),
    "build": ("build", "compile"),
}

Commands = dict[str, str]


class _Kind(Struct, frozen=True, kw_only=True):
    """A language and the tool that its project is managed with, which the members of a workspace share."""

    name: str
    tool: str = ""
    commands: Commands = {}
    is_workspace: bool = False

    @property
    def label(self) -> str:
        """The kind as it is shown."""
        tool = f"{self.tool} workspace" if self.tool and self.is_workspace else self.tool
        return f"{self.name} ({tool})" if tool else self.name


class _Row(Struct, frozen=True):
    """A kind that one of its files shows (`*.x`: any with that end), with the commands of its tool for all projects."""

    name: str
    tool: str
    signs: tuple[str, ...]
    commands: Commands = {}


def _row(name: str, tool: str, signs: str, test: str = "", build: str = "", lint: str = "") -> _Row:
    said = {"test": test, "lint": lint, "build": build}
    return _Row(name, tool, tuple(signs.split()), {v: c for v, c in said.items() if c})


_ROWS: Final = (
    _row("Rust", "cargo", "Cargo.toml", "cargo test", "cargo build"),
    _row("Go", "", "go.mod go.work", "go test ./...", "go build ./..."),
    _row("Java", "Gradle", "build.gradle.kts build.gradle", "gradle test", "gradle build"),
    _row("Java", "Maven", "pom.xml", "mvn test", "mvn package"),
    _row("Scala", "sbt", "build.sbt", "sbt test", "sbt compile"),
    _row("C#", "dotnet", "*.sln *.slnx *.csproj", "dotnet test", "dotnet build"),
    _row("F#", "dotnet", "*.fsproj", "dotnet test", "dotnet build"),
    _row("Ruby", "bundler", "Gemfile *.gemspec"),
    _row("PHP", "composer", "composer.json"),
    _row("Swift", "", "Package.swift", "swift test", "swift build"),
    _row("Elixir", "mix", "mix.exs", "mix test", "mix compile"),
    _row("Dart", "", "pubspec.yaml", "dart test"),
    _row("Haskell", "stack", "stack.yaml", "stack test", "stack build"),
    _row("Haskell", "cabal", "*.cabal", "cabal test", "cabal build"),
    _row("Clojure", "lein", "project.clj", "lein test"),
    _row("OCaml", "dune", "dune-project", "dune test", "dune build"),
    _row("Zig", "", "build.zig", "zig build test", "zig build"),
    _row("Perl", "", "cpanfile Makefile.PL", "prove -l"),
    _row("Terraform", "", "*.tf", "", "", "terraform validate"),
    _row("C/C++", "Autotools", "configure.ac", "", "autoreconf -fi && ./configure && make"),
    _row("C/C++", "CMake", "CMakeLists.txt", "", "cmake -B build && cmake --build build"),
    _row("C/C++", "Meson", "meson.build", "", "meson setup build && meson compile -C build"),
)
#: Commands that a file of settings shows, for a kind: perhaps by a word in it.
_SHOWN: Final = (
    ("Rust", "lint", "clippy.toml", "", "cargo clippy"),
    ("Rust", "lint", "Cargo.toml", "clippy]", "cargo clippy"),
    ("Go", "lint", ".golangci.yml", "", "golangci-lint run"),
    ("Ruby", "test", "Rakefile", "TestTask", "bundle exec rake test"),
    ("Ruby", "test", ".rspec", "", "bundle exec rspec"),
    ("Ruby", "lint", ".rubocop.yml", "", "bundle exec rubocop"),
    ("PHP", "test", "phpunit.xml", "", "vendor/bin/phpunit"),
    ("PHP", "test", "phpunit.xml.dist", "", "vendor/bin/phpunit"),
    ("PHP", "lint", "phpstan.neon", "", "vendor/bin/phpstan analyse"),
    ("PHP", "test", "artisan", "", "php artisan test"),
    ("Dart", "test", "pubspec.yaml", "sdk: flutter", "flutter test"),
    ("Elixir", "lint", ".credo.exs", "", "mix credo"),
    ("C/C++", "test", "CMakeLists.txt", "enable_testing", "ctest --test-dir build"),
    ("C/C++", "test", "meson.build", "test(", "meson test -C build"),
)
_WRAPPERS: Final = {"gradle ": "gradlew", "mvn ": "mvnw"}
#: Who manages the packages of Python: by a lock file, or by a table of pyproject.toml.
_OF_PYTHON: Final = {"uv": "uv.lock", "poetry": "poetry.lock", "pdm": "pdm.lock", "pipenv": "Pipfile"}  # fmt: skip
_RUN_ALL: Final = {"nox": "noxfile.py", "tox": "tox.ini"}
_OF_NODE: Final = {"pnpm": "pnpm-lock.yaml", "yarn": "yarn.lock", "bun": "bun.lock", "npm": ""}
#: What looks at Python, by its name, which stands in the settings of a project that uses it.
_LOOKING: Final = (
    ("lint", "ruff", "ruff check"),
    ("lint", "flake8", "flake8"),
    ("types", "mypy", "mypy"),
    ("types", "basedpyright", "basedpyright"),
    ("types", "pyright", "pyright"),
)
_SETTINGS: Final = ("pyproject.toml", "setup.py", "setup.cfg", "Pipfile", "requirements.txt", "manage.py")  # fmt: skip
#: What runs tasks whatever the language: its file, how the name of a task is found in it, and how one is run.
_RUNNERS: Final = (
    ("Makefile", lazy(r"^([A-Za-z0-9][\w \t-]*?)[ \t]*::?(?![:=])", re.MULTILINE), "make "),
    ("justfile", lazy(r"^@?([A-Za-z][\w-]*)(?: [^\n:]*)?:(?!=)", re.MULTILINE), "just "),
    ("Taskfile.yml", lazy(r"^  ([A-Za-z][\w-]*):", re.MULTILINE), "task "),
)


class Part(Struct, frozen=True, kw_only=True):
    """A folder that is built and tested for itself; `folder` is "" for the project's own.

    `commands` has for each verb one command, or one for each kind.
    """

    folder: str = ""
    kinds: tuple[_Kind, ...] = ()
    commands: dict[str, tuple[str, ...]] = {}

    def told(self, verbs: Sequence[str]) -> str:
        """Write the part down with the commands for these verbs."""
        kinds = ", ".join(kind.label for kind in self.kinds)
        commands = ", ".join(
            f"{verb} " + " and ".join(f'"{command}"' for command in self.commands[verb])
            for verb in verbs
            if verb in self.commands
        )
        return ": ".join(filter(None, (self.folder, kinds, commands)))


class Project(Struct, frozen=True, kw_only=True):
    """A project: its own folder first, then what else in it is one."""

    name: str
    parts: tuple[Part, ...] = ()

    @property
    def line(self) -> str:
        """The project in one line for the prompt, of at most 200 bytes; "" when nothing is known."""
        return next((line for line in self._lines() if len(line.encode()) <= MAX_LINE_BYTES), "")

    def _lines(self) -> Iterator[str]:
        """Say less and less: fewer verbs, then the commands of the first part alone, then fewer parts."""
        if not self.parts:
            return
        for verbs in _TOLD:
            yield "Project: " + "; ".join(part.told(verbs) for part in self.parts)
        own, *others = self.parts
        for count in range(len(others), -1, -1):
            more = [f"{len(others) - count} more"] if count < len(others) else []
            briefly = [each.told(()) for each in others[:count]]
            yield "Project: " + "; ".join([own.told(("test", "lint")), *briefly, *more])


def detect(folder: Path) -> Project:
    """Look at the project's files and say what they show. Never raises."""
    look = _Look()
    top = _Folder(str(folder), "", look)
    own = look.part(top)
    parts = [own] if own.kinds or own.commands else []
    above = {
        kind.name for kind in own.kinds if kind.is_workspace or {*kind.commands} & {"test", "lint"}
    }
    above |= {"TypeScript", "JavaScript"} if above & {"TypeScript", "JavaScript"} else set[str]()
    for each in look.below(top, 1):
        found = look.part(each)
        kinds = tuple(kind for kind in found.kinds if kind.name not in above)
        if kinds and found.commands:
            parts.append(Part(folder=each.shown, kinds=kinds, commands=found.commands))
    return Project(name=folder.name, parts=tuple(parts))


class _Look:
    """One look at a project, with what may still be opened in it."""

    def __init__(self) -> None:
        self.files, self.folders = MAX_FILES, MAX_FOLDERS

    def below(self, folder: "_Folder", depth: int) -> "Iterator[_Folder]":
        """Yield the folders that matter, those within one after it."""
        for name in sorted(folder.below):
            if self.folders > 0:
                each = _Folder(f"{folder.path}/{name}", f"{folder.shown}{name}/", self)
                yield each
                if depth < _DEEPEST:
                    yield from self.below(each, depth + 1)

    def part(self, folder: "_Folder") -> Part:
        """Join what a folder shows; what its own runners offer comes before what a kind does."""
        kinds = [kind for kind in (_python(folder), *_tabled(folder), _node(folder)) if kind]
        runners = _run_by(folder)
        commands: dict[str, tuple[str, ...]] = {verb: (one,) for verb, one in runners.items()}
        for verb in _NAMES:
            if offered := tuple(kind.commands[verb] for kind in kinds if verb in kind.commands):
                commands.setdefault(verb, offered)
        if ".pre-commit-config.yaml" in folder.files:
            commands.setdefault("lint", ("pre-commit run --all-files",))
        return Part(folder=folder.shown, kinds=tuple(kinds), commands=commands)


class _Folder:
    """The names in a folder, and the beginning of its files. All of it is the project's: no link is followed."""

    def __init__(self, path: str, shown: str, look: _Look) -> None:
        self.path, self.shown, self._look = path, shown, look
        self.files: set[str] = set()
        self.below: list[str] = []
        look.folders -= 1
        with suppress(OSError, Refused):
            folder = open_listed(Path(path))
            try:
                with os.scandir(folder) as entries:
                    for entry in islice(entries, MAX_NAMES):
                        self._note(entry)
            finally:
                os.close(folder)

    def _note(self, entry: "os.DirEntry[str]") -> None:
        if entry.is_file(follow_symlinks=False):
            self.files.add(entry.name)
        elif _is_wanted(entry.name) and entry.is_dir(follow_symlinks=False):
            self.below.append(entry.name)

    def has(self, sign: str) -> bool:
        """Return whether there is such a file; `*.x` stands for any with that end."""
        if sign[0] == "*":
            return any(name.endswith(sign[1:]) for name in self.files)
        return sign in self.files

    def text(self, name: str) -> str:
        """Return the beginning of a file; "" where there is none, or no text in it."""
        if name not in self.files or self._look.files <= 0:
            return ""
        self._look.files -= 1
        try:
            with held(Path(self.path, name)) as place:
                data = read_beginning(place.name, MAX_BYTES, folder=place.folder) or b""
        except (OSError, ValueError, Refused):
            return ""
        return data.decode("utf-8-sig", "replace")


def _is_wanted(name: str) -> bool:
    """Return whether a folder may be looked into, and its name stand in a line of the prompt."""
    is_plain = len(name) <= 40 and all(c.isalnum() or c in "_-.+@" for c in name)
    return is_plain and name[0] != "." and name not in OTHERS and name.lower() not in ASIDE


def _picked(names: Collection[str], command: Callable[[str], str]) -> Commands:
    """Choose for each verb the target, task or script that is there; one `check` is not both test and lint."""
    found: Commands = {}
    for verb, known in _NAMES.items():
        name = next((each for each in known if each in names), "")
        if name and command(name) not in found.values():
            found[verb] = command(name)
    return found


def _run_by(folder: _Folder) -> Commands:
    """Return what the folder's own runners offer, the first one's where two have it."""
    found: Commands = {}
    for file, pattern, start in _RUNNERS:
        if text := folder.text(file):
            names = " ".join(pattern().findall(text)).split()
            found = _picked(names, lambda name, start=start: f"{start}{name}") | found
    return found


def _tabled(folder: _Folder) -> Iterator[_Kind]:
    """Yield the kinds that a file shows; of two tools for one language the first."""
    names = set[str]()
    for row in _ROWS:
        if row.name in names or not any(map(folder.has, row.signs)):
            continue
        names.add(row.name)
        commands: Commands = row.commands | {
            verb: command
            for name, verb, file, word, command in _SHOWN
            if name == row.name and file in folder.files and word in folder.text(file)
        }
        for start, wrapper in _WRAPPERS.items():
            if wrapper in folder.files:
                commands = {v: c.replace(start, f"./{wrapper} ") for v, c in commands.items()}
        is_workspace = row.name == "Rust" and "[workspace]" in folder.text("Cargo.toml")
        if is_workspace:
            commands = {v: f"{c} --workspace" for v, c in commands.items()}
        elif row.name == "Go" and "go.mod" not in folder.files:
            commands = {}  # from the folder of a workspace `./...` reaches no module
        elif row.name == "PHP" and (package := _package_of(folder.text("composer.json"))):
            commands |= _picked(package.scripts, lambda name: f"composer {name}")
        yield _Kind(name=row.name, tool=row.tool, commands=commands, is_workspace=is_workspace)


def _python(folder: _Folder) -> _Kind | None:
    if not any(map(folder.has, _SETTINGS)):
        return None
    text = folder.text("pyproject.toml")
    said = "".join(map(folder.text, (*_SETTINGS[1:], "requirements-dev.txt", "tox.ini"))) + text
    tools = (t for t, lock in _OF_PYTHON.items() if lock in folder.files or f"[tool.{t}" in text)
    tool = next(tools, "")
    run = f"{tool} run " if tool else ""
    commands: Commands = {}
    if "pytest" in said or folder.has("pytest.ini") or folder.has("conftest.py"):
        commands["test"] = f"{run}pytest"
    elif runner := next((each for each in ("nox", "tox") if folder.has(_RUN_ALL[each])), ""):
        commands["test"] = runner
    elif folder.has("manage.py"):
        commands["test"] = f"{run}python manage.py test"
    for verb, name, command in _LOOKING:
        if name in said or folder.has(f"{name}.toml") or folder.has(f"{name}.ini"):
            commands.setdefault(verb, f"{run}{command}")
    is_workspace = "[tool.uv.workspace]" in text
    return _Kind(name="Python", tool=tool or "pip", commands=commands, is_workspace=is_workspace)


class _Package(msgspec.Struct, rename="camel"):
    """The parts of a package.json that count."""

    scripts: dict[str, Any] = {}
    package_manager: str = ""
    workspaces: Any = None
    dependencies: dict[str, Any] = {}
    dev_dependencies: dict[str, Any] = {}


def _package_of(text: str) -> _Package | None:
    try:
        return from_json(text, _Package)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _node(folder: _Folder) -> _Kind | None:
    if (package := _package_of(folder.text("package.json"))) is None:
        return None
    named = package.package_manager.partition("@")[0]
    is_of_pnpm = "pnpm-workspace.yaml" in folder.files
    locked = next((tool for tool, lock in _OF_NODE.items() if lock in folder.files), "npm")
    tool = named if named in _OF_NODE else "pnpm" if is_of_pnpm else locked
    names = [
        name for name, script in package.scripts.items() if "no test specified" not in str(script)
    ]
    commands = _picked(names, lambda name: _script(tool, name))
    is_typed = "tsconfig.json" in folder.files
    is_typed |= "typescript" in package.dependencies or "typescript" in package.dev_dependencies
    is_workspace = bool(package.workspaces) or is_of_pnpm
    name = "TypeScript" if is_typed else "JavaScript"
    return _Kind(name=name, tool=tool, commands=commands, is_workspace=is_workspace)


def _script(tool: str, name: str) -> str:
    """Write how a script is run. `bun test` is bun's own runner, and npm knows `test` alone without `run`."""
    is_short = tool in ("pnpm", "yarn") or (tool == "npm" and name == "test")
    return f"{tool} {name}" if is_short else f"{tool} run {name}"
