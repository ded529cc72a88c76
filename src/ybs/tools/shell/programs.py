"""Programs that a shell did not find: which one it was, and what can be run in its place."""

import re
from typing import Final

from ybs.core.lazy import lazy

#: The exit code of a shell that did not find a program.
NOT_FOUND: Final = 127
#: What a program is called elsewhere.
OTHER_NAMES: Final = {
    "python": "python3",
    "python3": "python",
    "pip": "pip3",
    "pip3": "pip",
    "node": "nodejs",
    "nodejs": "node",
    "gawk": "awk",
    "gmake": "make",
}
#: What runs a file, by its name's ending.
RUNNERS: Final = {".sh": ("sh",), ".py": ("python3", "python")}
#: The programs that a file may be run with.
INTERPRETERS: Final = ("sh", "bash", "python3", "python")
OTHER: Final = "[{name} is not on this machine; {other} is.]"
FILE: Final = "[{name} is a file here: run it as `{command}`.]"
_NAME: Final = r"\w[\w.+-]{0,60}"
_MISSING = lazy(
    rf"(?m)^[^:\n]+: (?:(?:line )?\d+: )?({_NAME}): (?:command )?not found$"
    rf"|^(?:/usr/bin/)?env: ['\u2018]?({_NAME})['\u2019]?: No such file or directory$"
)
_HINT = lazy(
    rf"\bexit code {NOT_FOUND}\b[^\n]*\n(?:\[[^\n]*\n)*?"
    rf"\[({_NAME}) is (?:not on this machine; ({_NAME}) is\.|a file here: run it as `([^`\n]+)`\.)\]"
)


def missing_in(said: str) -> str:
    """Return the program that a shell did not find, by what it said; empty where it said nothing of the kind."""
    found = re.findall(_MISSING(), said)
    return "".join(found[-1]) if found else ""


def has_hint(output: str) -> bool:
    """Return whether a command's output ends with what can be run in the place of a program."""
    return re.search(_HINT(), output) is not None


def corrected(command: str, output: str) -> str:
    """Return the command as the hint at the end of its output says; empty where that is not certain."""
    hint = re.search(_HINT(), output)
    if hint is None:
        return ""
    name, other, run = hint.groups()
    ways = (f"./{name}", *(f"{each} {name}" for each in INTERPRETERS))
    if run not in ways and (other is None or OTHER_NAMES.get(name) != other):
        return ""
    found, count = re.subn(called(name), lambda before: before[1] + (run or other), command)
    return found if count else ""


def called(name: str) -> str:
    """Return the pattern of a program where a command calls it, with what stands before it as a group."""
    return rf"((?:^|[;&|(\n])\s*){re.escape(name)}(?![^\s;&|)])"
