"""Processes begin in `security/launcher.py`, and programs are found there; this reads the source, and finds other places."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from rows import every_row

SOURCE = Path(__file__).parents[1] / "src" / "ybs"
LAUNCHER = "security/launcher.py"
#: Who else starts processes or looks for programs, and why the launcher cannot do it.
OTHERS = {
    "ready_tools/git_status.py": "a program of its own, which ybs starts in the sandbox",
    "ready_tools/run_tests.py": "a program of its own, which ybs starts in the sandbox",
}
#: Modules that are there to start processes. Of those with names, these start none, and types are for the type checker.
MODULES = {
    "subprocess": {"DEVNULL", "PIPE", "STDOUT", "TimeoutExpired", "SubprocessError"},
    "asyncio.subprocess": {"DEVNULL", "PIPE", "STDOUT", "Process"},
    "pty": set[str](),
    "multiprocessing": set[str](),
    "_posixsubprocess": set[str](),
    "webbrowser": set[str](),
}
#: Functions of `os` and of others that start a process, or look for a program in PATH.
OF_OS = re.compile(r"(?:exec|spawn|posix_spawn|fork)\w*|system|popen|startfile")
ANYWHERE = re.compile(
    r"create_subprocess_\w+|subprocess_(?:exec|shell)|posix_spawnp?|fork_exec|forkpty"
    r"|open_process|run_process|stdio_client|ProcessPoolExecutor"
)
OF_SHUTIL = re.compile("which")
#: What a module has that is worth parsing: to parse all takes seconds.
SIGNS = re.compile(
    rf"subprocess|\bpty\b|multiprocessing|webbrowser|\bshutil\b|{ANYWHERE.pattern}"
    rf"|\bos\.(?:{OF_OS.pattern})\b|\bos import\b|\bimport os as\b|getattr\("
)


def starts_in(text: str) -> Iterator[str]:
    """Yield what starts a process in a module, or looks for a program, but for what only the type checker reads."""
    tree = ast.parse(text)
    types = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        for each in node.body
        for inner in ast.walk(each)
    }
    nodes = [node for node in ast.walk(tree) if node not in types]
    names = {"os": OF_OS, "shutil": OF_SHUTIL}
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {e.asname: names[e.name] for e in node.names if e.asname and e.name in names}
    for node in nodes:
        yield from _found(node, names)


def _found(  # noqa: C901 - a case for each spelling
    node: ast.AST, names: dict[str, re.Pattern[str]]
) -> Iterator[str]:
    match node:
        case ast.Import():
            yield from (each.name for each in node.names if _is_module(each.name))
        case ast.ImportFrom(module=str(module)):
            for each in node.names:
                if _is_taken(module, each.name):
                    yield f"{module}.{each.name}"
        case ast.Attribute(value=ast.Name(id=base), attr=name) if base in names:
            if names[base].fullmatch(name) or ANYWHERE.fullmatch(name):
                yield f"{base}.{name}"
        case ast.Attribute(attr=name) if ANYWHERE.fullmatch(name):
            yield name
        case ast.Attribute(value=ast.Attribute(attr="subprocess"), attr=name):  # of `asyncio`
            if name not in MODULES["asyncio.subprocess"]:
                yield f"subprocess.{name}"
        case ast.Call(args=[ast.Constant(value=str(word)), *_]) if _is_module(word):
            yield f"a call with {word!r}"  # import_module, __import__
        case ast.Call(func=ast.Name(id="getattr"), args=[ast.Name(id=base), name, *_]):
            is_plain = isinstance(name, ast.Constant) and not OF_OS.fullmatch(str(name.value))
            if base in names and not is_plain:
                yield f"getattr({base}, …)"
        case _:
            return


def _is_module(name: str) -> bool:
    return name in MODULES or name.partition(".")[0] in MODULES


def _is_taken(module: str, name: str) -> bool:
    if module in MODULES:
        return name not in MODULES[module]
    if _is_module(module):
        return True
    if f"{module}.{name}" in MODULES or ANYWHERE.fullmatch(name):
        return True
    taken = {"os": OF_OS, "shutil": OF_SHUTIL}.get(module)
    return taken is not None and taken.fullmatch(name) is not None


@pytest.mark.integration
def test_processes_are_started_and_programs_found_by_the_launcher_alone() -> None:
    found: dict[str, list[str]] = {}
    for file in sorted(SOURCE.rglob("*.py")):
        text = file.read_text()
        if SIGNS.search(text) and (starts := list(starts_in(text))):
            found[file.relative_to(SOURCE).as_posix()] = starts
    assert found.pop(LAUNCHER, None), "the launcher starts nothing: this looks in the wrong place"
    assert {name: starts for name, starts in found.items() if name not in OTHERS} == {}
    assert set(found) == set(OTHERS), "an exception that is none any more"


@every_row(
    "text",
    [
        *("import subprocess", "import subprocess as s", "from subprocess import run"),
        *("from subprocess import PIPE, Popen", "def f():\n    import subprocess"),
        *("import asyncio\nasyncio.create_subprocess_exec('x')", "loop.subprocess_exec(f, 'x')"),
        *("from asyncio import create_subprocess_shell", "from asyncio import subprocess"),
        *("from asyncio.subprocess import create_subprocess_exec", "import asyncio.subprocess"),
        *("import asyncio\nasyncio.subprocess.create_subprocess_exec('x')",),
        *("import os\nos.execv('x', [])", "import os\nos.spawnlp(0, 'x')", "import os\nos.fork()"),
        *("import os\nos.posix_spawn('x', [], {})", "import os\nos.system('x')", "os.popen('x')"),
        *("from os import execvp", "from os import posix_spawnp as p", "import os as o\no.fork()"),
        *("import pty", "from pty import spawn", "import os\nos.forkpty()", "import webbrowser"),
        *("import multiprocessing", "from multiprocessing import get_context"),
        *("import multiprocessing.pool", "from multiprocessing.pool import Pool"),
        *("from concurrent.futures import ProcessPoolExecutor", "futures.ProcessPoolExecutor()"),
        *("import shutil\nshutil.which('x')", "from shutil import which", "from shutil import which as w"),
        *("import shutil as s\ns.which('x')", "import_module('subprocess')", "__import__('pty')"),
        *("import os\ngetattr(os, 'sys' 'tem')('x')", "from anyio import open_process"),
        *("import anyio\nanyio.run_process(['x'])", "from mcp.client.stdio import stdio_client"),
        *("if TYPE_CHECKING:\n    pass\nelse:\n    from subprocess import Popen",),
    ],
)  # fmt: skip
def test_every_other_way_to_start_a_process_is_found(text: str) -> None:
    assert SIGNS.search(text), "it would not be parsed"
    assert list(starts_in(text))


@every_row(
    "text",
    [
        "from subprocess import DEVNULL, PIPE, STDOUT, TimeoutExpired",
        "from asyncio.subprocess import PIPE, Process",
        "if TYPE_CHECKING:\n    from subprocess import Popen",
        "import os\nos.environ, os.kill(1, 9), os.waitpid(1, 0), os.openpty()",
        "import platform\nplatform.system()",
        "import shutil\nshutil.rmtree('x')",
        "from ybs.security.launcher import start, trusted_program",
    ],
)
def test_what_starts_nothing_is_left_alone(text: str) -> None:
    assert list(starts_in(text)) == []
