"""Run the project's tests, with the framework that its files show, and say in short what came of it."""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from shutil import which
from typing import Annotated, Any

from ybs import tool

SECONDS = 540
MOST_LINES = 60
#: Lines that say which test failed, or how many did.
_TELLING = re.compile(
    r"(?:FAILED|ERROR|E  |--- FAIL|FAIL|not ok|thread '.*' panicked|test .* FAILED|\s*[\u2715\u00d7\u2717] "
    r"|.*AssertionError|.*\b(?:passed|failed|failures?|errors?)\b)"
)


@tool(needs={"project": "write"}, cwd="project")
def run_tests(
    only: Annotated[str, "a file or a part of a name, as the framework takes it"] = "",
) -> dict[str, Any]:
    """Run the project's tests and return what failed."""
    command = command_in(Path.cwd(), only)
    ran = subprocess.run(
        command, capture_output=True, text=True, errors="replace", check=False, timeout=SECONDS
    )
    lines = (ran.stdout + ran.stderr).splitlines()
    telling = [line for line in lines if _TELLING.match(line)]
    return {
        "passed": ran.returncode == 0,
        "command": " ".join(command),
        "exit_code": ran.returncode,
        "result": "\n".join((telling or lines)[-MOST_LINES:]),
        **({} if ran.returncode == 0 else {"end": "\n".join(lines[-MOST_LINES:])}),
    }


def command_in(folder: Path, only: str) -> Sequence[str]:
    """Return the command that runs the tests of a folder. Raises LookupError where no framework is known."""
    last = [only] if only else []
    known: dict[str, Sequence[str]] = {
        "Cargo.toml": ("cargo", "test", *last),
        "go.mod": ("go", "test", "./...", *(["-run", only] if only else [])),
        "pom.xml": ("mvn", "-q", "test"),
        "gradlew": ("./gradlew", "test"),
        "build.gradle": ("gradle", "test"),
        "build.gradle.kts": ("gradle", "test"),
    }
    found = next((command for name, command in known.items() if (folder / name).exists()), None)
    if found is not None:
        return found
    if script := _script_of(folder / "package.json"):
        return (script, "test", *(["--", only] if only else []))
    if _is_python(folder):
        return (*_python_in(folder), *last)
    if re.search(r"^test:", _text(folder / "Makefile"), re.MULTILINE):
        return ("make", "test")
    raise LookupError("no test framework is known here: run the tests by a command")


def _python_in(folder: Path) -> Sequence[str]:
    """Return what runs Python's tests: the project's own interpreter where there is one, pytest where that has it."""
    own = (folder / name / "bin/python" for name in (".venv", "venv"))
    python = next((str(each) for each in own if each.exists()), which("python3") or sys.executable)
    tried = subprocess.run([python, "-c", "import pytest"], capture_output=True, check=False)
    return (python, "-m", "unittest") if tried.returncode else (python, "-m", "pytest", "-q")


def _script_of(file: Path) -> str:
    try:
        scripts = json.loads(_text(file)).get("scripts", {})
    except ValueError:
        return ""
    if "test" not in scripts:
        return ""
    locks = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lockb": "bun"}
    return next((name for lock, name in locks.items() if file.with_name(lock).exists()), "npm")


def _is_python(folder: Path) -> bool:
    names = ("pytest.ini", "tox.ini", "pyproject.toml", "setup.py", "setup.cfg")
    return any((folder / name).exists() for name in names) or any(
        next(folder.glob(pattern), None) for pattern in ("test_*.py", "tests/*.py", "*_test.py")
    )


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""
