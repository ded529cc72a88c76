"""Python projects: who manages their packages, and what their settings say of tests and style."""

from collections.abc import Iterator
from functools import cached_property

from ybs.context.kinds.folder import Folder
from ybs.context.kinds.glance import glance
from ybs.context.kinds.kind import NAMES, Kind, picked

#: The files by which a Python project is known.
SIGNS = ("pyproject.toml", "setup.py", "setup.cfg", "Pipfile", "requirements.txt", "manage.py")
#: Who manages the packages: by a lock file, or by a table of pyproject.toml.
_MANAGERS = (
    ("uv", "uv.lock", "tool.uv"),
    ("poetry", "poetry.lock", "tool.poetry"),
    ("pdm", "pdm.lock", "tool.pdm"),
    ("pipenv", "Pipfile"),
    ("hatch", "hatch.toml", "tool.hatch.envs"),
)
_SETUP = {
    "uv": "uv sync",
    "poetry": "poetry install",
    "pdm": "pdm install",
    "pipenv": "pipenv install --dev",
}
#: Tables that name tasks, and how one is run.
_TASKS = (
    ("tool.poe.tasks", "poe "),
    ("tool.taskipy.tasks", "task "),
    ("tool.hatch.envs.default.scripts", "hatch run "),
    ("tool.pdm.scripts", "pdm run "),
)
#: What looks at code: the verb, the tool, how it is run, and the tables and files that set it up.
_TOOLS = (
    ("lint", "ruff", "ruff check", ("tool.ruff", "ruff.toml", ".ruff.toml")),
    ("lint", "flake8", "flake8", (".flake8", "setup.cfg flake8", "tox.ini flake8", "tool.flake8")),
    ("format", "ruff", "ruff format", ("tool.ruff.format",)),
    ("format", "black", "black .", ("tool.black",)),
    ("types", "mypy", "mypy", ("tool.mypy", "setup.cfg mypy", "mypy.ini", ".mypy.ini")),
    ("types", "basedpyright", "basedpyright", ("tool.basedpyright",)),
    ("types", "pyright", "pyright", ("tool.pyright", "pyrightconfig.json")),
)
#: Where a project lists what it needs.
_NEEDS = frozenset(
    {"project", "dependency-groups", "tool.uv", "tool.poetry", "tool.pdm", "tool.hatch.envs"}
)
_NEEDED = (
    "requirements-dev.txt",
    "dev-requirements.txt",
    "requirements_dev.txt",
    "requirements.txt",
)


def python(folder: Folder, below: list[Folder]) -> Kind | None:
    """Return what the folder's files say of Python; None where it is not a Python project."""
    if not folder.first(*SIGNS):
        return None
    settings = _Settings(folder, below)
    commands = settings.tasks()
    styles = settings.styles()
    for verb, command in (
        ("setup", settings.setup),
        ("test", settings.tests()),
        *styles[True],
        *settings.sessions.items(),
        *styles[False],
    ):
        if command:
            commands.setdefault(verb, command)
    is_workspace = settings.has("tool.uv.workspace")
    return Kind(name="Python", tool=settings.tool, commands=commands, is_workspace=is_workspace)


class _Settings:
    """What the folder's files say: `pyproject.toml` by its tables, setup.cfg and tox.ini as `tox.ini testenv`."""

    def __init__(self, folder: Folder, below: list[Folder]) -> None:
        self._folder, self._below = folder, below
        tables = glance(folder.text("pyproject.toml"))
        self._needs = [
            line for name in tables if not _NEEDS.isdisjoint(_above(name)) for line in tables[name]
        ]
        self._needs += folder.text("Pipfile").splitlines()
        self._needs += [line for name in _NEEDED for line in folder.text(name).splitlines()]
        for name in ("setup.cfg", "tox.ini"):
            ini = glance(folder.text(name))
            tables |= {f"{name} {table}": lines for table, lines in ini.items()}
        self._tables = tables
        self._known = folder.files | {above for name in tables for above in _above(name)}
        #: Who manages the packages, and how its commands begin.
        self.tool = next((tool for tool, *signs in _MANAGERS if self.has(*signs)), "pip")
        self._run = f"{self.tool} run " if self.tool in _SETUP else ""

    def has(self, *signs: str) -> bool:
        """Return whether one of these is a file here, or a table, or one has tables below it."""
        return any(sign in self._known for sign in signs)

    def lists(self, package: str) -> bool:
        """Return whether the project lists a package among those that it needs."""
        quoted = (f'"{package}', f"'{package}")
        return any(
            line.startswith(package) or any(each in line for each in quoted) for line in self._needs
        )

    @property
    def setup(self) -> str:
        """How the packages are installed."""
        if self.tool in _SETUP:
            return _SETUP[self.tool]
        if name := self._folder.first(*_NEEDED):
            return f"pip install -r {name}"
        return "pip install -e ." if self.has("setup.py", "build-system") else ""

    def tasks(self) -> dict[str, str]:
        """Return the tasks that a table of pyproject.toml names."""
        found: dict[str, str] = {}
        for table, runner in _TASKS:
            names = {
                line.partition("=")[0].strip().strip('"') for line in self._tables.get(table, [])
            }
            below = f"{table}."
            names |= {name.removeprefix(below) for name in self._tables if name.startswith(below)}
            how = runner if runner.endswith("run ") else self._run + runner
            found = picked(names, lambda name, how=how: f"{how}{name}") | found
        return found

    def tests(self) -> str:
        """Return how the tests are run: by pytest where it is set up, which is quicker than nox and tox."""
        folder, run = self._folder, self._run
        is_set = self.has("pytest.ini", ".pytest.ini", "conftest.py", "pytest.toml", "tool.pytest")
        is_set = is_set or self.has("setup.cfg tool:pytest", "tox.ini pytest")
        if is_set or any("conftest.py" in each.files for each in self._below):
            return f"{run}pytest"
        if command := self.sessions.get("test"):
            return command
        if "manage.py" in folder.files:
            return f"{run}python manage.py test"
        if name := folder.first("runtests.py", "run_tests.py"):
            return f"{run}python {name}"
        names = (name for each in (folder, *self._below) for name in each.files)
        has_tests = any(name.startswith("test_") for name in names)
        return f"{run}pytest" if has_tests and self.lists("pytest") else ""

    @cached_property
    def sessions(self) -> dict[str, str]:
        """What nox and tox are told to run."""
        heads = (
            line for line in self._folder.text("noxfile.py").splitlines() if line[:4] == "def "
        )
        names = {head[4:].partition("(")[0].replace("_", "-") for head in heads}
        found = picked(names, lambda name: f"nox -s {name.replace('-', '_')}")
        if self._tables.keys() & {"tox.ini testenv", "tox.ini tox"} or self.has(
            "tool.tox", "tox.toml"
        ):
            found.setdefault("test", "tox")
        tox = {
            name.removeprefix(start)
            for name in self._tables
            for start in ("tox.ini testenv:", "tool.tox.env.")
            if name.startswith(start)
        }
        return picked(tox - {*NAMES["test"]}, lambda name: f"tox -e {name}") | found

    def styles(self) -> dict[bool, list[tuple[str, str]]]:
        """Return the tools that look at code: under True those that the project installs, under False the others.

        What pre-commit runs is left to it.
        """
        hooks = self._folder.text(".pre-commit-config.yaml")
        found: dict[bool, list[tuple[str, str]]] = {True: [], False: []}
        for verb, tool, command, signs in _TOOLS:
            is_set = self.has(*signs)
            if self.lists(tool) and (is_set or verb == "lint"):
                found[True].append((verb, f"{self._run}{command}"))
            elif is_set and tool not in hooks:
                found[False].append((verb, command))
        return found


def _above(name: str) -> Iterator[str]:
    """Yield the table's name and those of the tables above it."""
    yield name
    yield name.partition(":")[0]
    while name := name.rpartition(".")[0]:
        yield name
