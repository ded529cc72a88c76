"""A finding of `ybs doctor`, with its fix."""

import os
import sys
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from ybs.frontends.tty import NARROW, columns, fit_width, is_dumb
from ybs.security.gate import put
from ybs.security.launcher import persons_program

#: `untried`: it is there, and whether it works is known only beyond this machine.
State: TypeAlias = Literal["ok", "untried", "missing", "warning", "error"]
_INDENT: Final = " " * 9
#: The installer of a system, by the program it is.
_INSTALLERS: Final = {
    "brew": "brew install",
    "apt-get": "sudo apt-get install",
    "dnf": "sudo dnf install",
    "pacman": "sudo pacman -S",
    "zypper": "sudo zypper install",
    "apk": "sudo apk add",
}


class Finding(Struct, frozen=True, kw_only=True):
    """One thing that was looked for. `fix` is a line to paste; what is not needed spoils nothing."""

    name: str
    state: State
    detail: str
    fix: str = ""
    is_needed: bool = True

    @property
    def needs_fix(self) -> bool:
        """Whether the person is better off doing something about it."""
        return self.is_needed and self.state not in ("ok", "untried")


def write_findings(findings: Sequence[Finding]) -> None:
    """Print one line for each, dim where there is nothing to do, with its fix where there is something."""
    is_drawn = sys.stdout.isatty() and not is_dumb()
    width = 0 if columns() < NARROW else max(len(each.name) for each in findings)
    for each in findings:
        line = f"{each.state:<7}  {each.name:<{width}}  {each.detail}"
        put(fit_width(line, _INDENT), sys.stdout, is_dim=is_drawn and not each.needs_fix)
        if each.fix and each.needs_fix:  # in one piece: it is there to be pasted
            put(f"{_INDENT}fix: {each.fix}", sys.stdout)
    put(f"\n{summary(findings)}", sys.stdout)


def summary(findings: Sequence[Finding]) -> str:
    """Return how much there is to do."""
    match sum(each.needs_fix for each in findings):
        case 0:
            return "No problems found."
        case 1:
            return "1 problem to fix."
        case count:
            return f"{count} problems to fix."


def is_installed(program: str) -> bool:
    """Return whether this machine has a program, so that the person can be told to use it; it is not run."""
    return persons_program(program, away_from=(), environ=os.environ) is not None


def install(package: str) -> str:
    """Return the command that installs a package on this system."""
    there = (command for program, command in _INSTALLERS.items() if is_installed(program))
    return f"{next(there, 'install')} {package}"
