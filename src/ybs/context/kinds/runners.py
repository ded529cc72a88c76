"""What runs a project's tasks whatever its language: make, just, task, mage, and scripts with well-known names."""

from ybs.context.kinds.folder import Folder
from ybs.context.kinds.kind import picked

_MAKEFILES = ("GNUmakefile", "makefile", "Makefile", "Makefile.am")
_JUSTFILES = ("justfile", "Justfile", ".justfile")
_TASKFILES = ("Taskfile.yml", "Taskfile.yaml", "taskfile.yml", "Taskfile.dist.yml")
_SCRIPTS = {
    "test": ("test.sh", "run_tests.sh", "run-tests.sh", "runtests.sh", "runtest"),
    "lint": ("lint.sh", "check.sh"),
    "build": ("build.sh",),
}


def runner_commands(folder: Folder, below: list[Folder]) -> dict[str, str]:
    """Return what the folder's own runners offer, the first one's where two have it."""
    found: dict[str, str] = {}
    make = targets(folder.text(*_MAKEFILES))
    is_gnu = "Makefile.am" in folder.files
    for commands in (
        picked(make, lambda name: f"make {name}", check="test"),
        {"test": "make check"} if is_gnu and "TESTS" in folder.text("Makefile.am") else {},
        picked(recipes(folder.text(*_JUSTFILES)), lambda name: f"just {name}"),
        picked(tasks(folder.text(*_TASKFILES)), lambda name: f"task {name}"),
        picked(_mage(folder.text("magefile.go")), lambda name: f"mage {name}"),
        *(_scripts(each) for each in below if each.shown in ("script/", "scripts/")),
        {verb: f"./{name}" for verb, names in _SCRIPTS.items() if (name := folder.first(*names))},
    ):
        found = commands | found
    return found


def targets(text: str) -> set[str]:
    """Return the targets of a Makefile, as far as they are written out."""
    found: set[str] = set()
    for line in text.splitlines():
        name, colon, rest = line.partition(":")
        if colon and line[:1].isalnum() and not rest.startswith(("=", ":=")) and "=" not in name:
            found.update(name.split())
    return found


def recipes(text: str) -> set[str]:
    """Return the recipes of a justfile."""
    found: set[str] = set()
    for line in text.splitlines():
        head, colon, rest = line.partition(":")
        if colon and line[:1] not in (" ", "\t", "#", "[") and not rest.startswith("="):
            found.update(head.removeprefix("@").split()[:1])
    return found


def tasks(text: str) -> set[str]:
    """Return the tasks of a Taskfile: the keys one step below `tasks:`."""
    found: set[str] = set()
    indent, is_inside = 0, False
    for line in text.splitlines():
        bare = line.lstrip()
        if not bare or bare[0] == "#":
            continue
        step = len(line) - len(bare)
        if not step:
            is_inside = line.startswith("tasks:")
        elif is_inside:
            indent = indent or step
            if step == indent:
                found.add(bare.split(": ")[0].rstrip(":").strip("'\""))
    return found


def _mage(text: str) -> set[str]:
    """Return the targets of a magefile: its exported functions, which mage takes in any case."""
    heads = (line[5:].partition("(")[0] for line in text.splitlines() if line[:5] == "func ")
    return {head.lower() for head in heads if head[:1].isupper()}


def _scripts(folder: Folder) -> dict[str, str]:
    names = {name.removesuffix(".sh"): name for name in sorted(folder.files)}
    return picked(names, lambda name: f"{folder.shown}{names[name]}")
