"""What a look at one folder can find: a kind of project, with its tool and its commands."""

from collections.abc import Callable, Collection

from msgspec import Struct

#: What a command is for, in the order in which it is told.
VERBS = ("setup", "test", "lint", "format", "types", "build")
#: The names that people give to what is run for it. Nothing else of their scripts is ever shown.
NAMES = {
    "setup": ("setup", "bootstrap", "init", "deps", "install-dev", "dev-install", "install-deps"),
    "test": ("test", "tests", "spec", "unit", "unittest", "unittests",
             "test-unit", "test:unit", "unit-test"),
    "lint": ("lint", "lint-all", "linters", "style", "lint:check", "flake8", "eslint",
             "ruff", "rubocop", "clippy", "phpstan", "vet"),
    "format": ("format", "fmt", "reformat", "prettier"),
    "types": ("types", "typecheck", "type-check", "typing", "check-types",
              "mypy", "pyright", "tsc"),
    "build": ("build", "compile"),
}  # fmt: skip
_FAMILY = {"TypeScript": "JavaScript", "Kotlin": "Java", "C++": "C", "C/C++": "C", "F#": "C#"}


class Kind(Struct, frozen=True, kw_only=True):
    """A kind of project; `tool` manages its packages; a workspace's members are built and tested by it."""

    name: str
    tool: str = ""
    commands: dict[str, str] = {}
    is_workspace: bool = False

    @property
    def label(self) -> str:
        """The kind as it is shown."""
        tool = f"{self.tool} workspace" if self.tool and self.is_workspace else self.tool
        return f"{self.name} ({tool})" if tool else self.name

    @property
    def family(self) -> str:
        """The name that languages which hold one another have in common."""
        return _FAMILY.get(self.name, self.name)


def picked(
    names: Collection[str], command: Callable[[str], str], *, check: str = "lint"
) -> dict[str, str]:
    """Choose for each verb the target, task or script that is there; `check` is what a `check` without more is."""
    if not names:
        return {}
    chosen = {
        verb: command(found)
        for verb, known in NAMES.items()
        if (found := next((name for name in known if name in names), ""))
    }
    if "check" in names:
        chosen.setdefault("lint" if "test" in chosen else check, command("check"))
    return chosen
