"""The sandbox of macOS: a profile for sandbox-exec. Paths go in as parameters, never as text of the profile."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ybs.config.host import Host
from ybs.security.paths.own_code import code_in
from ybs.security.paths.persons import named_by_settings
from ybs.security.sandbox.launch import PLAIN, Access, Backend, Launch, environment_of
from ybs.security.sandbox.places import Places, lies_in
from ybs.security.sandbox.protected import GIT, NAMES
from ybs.security.sandbox.scratch import PrivateFolder

if TYPE_CHECKING:
    from ybs.security.sandbox.launch import SandboxView

PROGRAM = "/usr/bin/sandbox-exec"
#: Folders of the system that programs read. The home folder is in none of them.
_SYSTEM = (
    *("/System", "/usr", "/bin", "/sbin", "/Library/Apple", "/Library/Developer", "/private/etc"),
    *("/Library/Frameworks", "/Library/Java", "/opt", "/nix", "/private/var/db/timezone"),
    *("/private/var/select", "/Applications/Xcode.app", "/Library/Preferences/Logging"),
)
_HIDDEN = ("/private/etc/master.passwd", "/private/etc/sudoers", "/private/etc/sudoers.d")
_DEVICES = ("null", "zero", "random", "urandom", "dtracehelper", "fd", "stdin", "stdout", "stderr")
_SYSCTLS = (
    *("hw.activecpu", "hw.byteorder", "hw.cachelinesize", "hw.cpufamily", "hw.logicalcpu"),
    *("hw.logicalcpu_max", "hw.machine", "hw.memsize", "hw.model", "hw.ncpu", "hw.pagesize"),
    *("hw.pagesize_compat", "hw.physicalcpu", "hw.physicalcpu_max", "hw.tbfrequency"),
    *(
        "kern.argmax",
        "kern.hostname",
        "kern.maxfilesperproc",
        "kern.maxproc",
        "kern.osproductversion",
    ),
    *("kern.osrelease", "kern.ostype", "kern.osversion", "kern.secure_kernel", "kern.version"),
    *("kern.usrstack64", "machdep.cpu.brand_string", "sysctl.proc_cputype", "vm.loadavg"),
)
_BASE = """(version 1)
(deny default)
(allow process-exec)
(allow process-fork)
(allow signal (target same-sandbox))
(allow process-info* (target same-sandbox))
(allow pseudo-tty)
(allow ipc-posix-sem)
(allow file-read-metadata)
(allow file-read* (literal "/"))
(allow mach-lookup
  (global-name "com.apple.system.opendirectoryd.libinfo")
  (global-name "com.apple.cfprefsd.daemon")
  (global-name "com.apple.cfprefsd.agent"))
"""
_READABLE_DEVICES = " ".join(f'(subpath "/dev/{name}")' for name in _DEVICES)
_READABLE_SYSCTLS = " ".join(f'(sysctl-name "{name}")' for name in _SYSCTLS)
_MACHINE = f"""(allow file-read* file-write-data file-ioctl {_READABLE_DEVICES})
(allow sysctl-read {_READABLE_SYSCTLS})"""
_NETWORK = (
    "(allow network-outbound (remote ip))\n(allow network-inbound (local ip))\n"
    '(allow network-outbound (literal "/private/var/run/mDNSResponder"))\n(allow system-socket)'
)


class SandboxExec(Backend):
    """Wraps commands with sandbox-exec and one profile for each command."""

    name = "sandbox-exec"
    is_reduced = False
    holds_reading = True

    def __init__(self, places: Places, private: PrivateFolder | None = None) -> None:
        super().__init__(PROGRAM)
        self.places: Places = places  # pyright: ignore[reportIncompatibleVariableOverride] - it is never set again
        self.private = private or PrivateFolder(places.host.scratch_folder)

    def launch(
        self,
        command: Sequence[str],
        folder: Path,
        environ: Mapping[str, str],
        access: Access = PLAIN,
    ) -> Launch:
        """Return the command line that runs the command in the sandbox. Raises Refused for a folder outside of it."""
        network, read_only = access.network, access.read_only
        self.places.check_folder(folder)
        private = self.private.alone() if access.is_alone else self.private
        variables = environment_of(
            environ, **private.folders_for(access), network=network, declared=access.declared
        )
        text, parameters = profile(
            self.places,
            private.opened_for(access),
            shared=self.private.temporary,
            network=network,
            read_only=read_only,
        )
        defined = [f"-D{name}={value}" for name, value in parameters.items()]
        argv = (PROGRAM, "-p", text, *defined, "--", *command)
        return Launch(
            argv=argv,
            environ=variables,
            scratch=self.private.path,
            writable=() if read_only else self.places.writable,
            clean_up=private.remove if access.is_alone else None,
        )


def find() -> str | None:
    """Return the program of the system, where there is one."""
    return PROGRAM if os.access(PROGRAM, os.X_OK) else None


def profile(
    places: Places, own: Sequence[str], *, shared: str, network: bool, read_only: bool = False
) -> tuple[str, dict[str, str]]:
    """Return the profile's text and the parameters that its paths stand in.

    A program may write in its `own` folders, and read the `shared` one.
    """
    names = _Names()
    seen = (*_SYSTEM, *places.toolchains, *places.toolchains.values(), *places.readable)
    readable = _subpaths(names, "READ", (*seen, *places.writable))
    hidden = _subpaths(
        names, "HIDDEN", (*_HIDDEN, *dict.fromkeys((*places.blocked, *places.covered)))
    )
    lines = [
        _BASE,
        f"(allow file-read* {readable})",
        _MACHINE,
        *(_writable(names, root) for root in places.writable if not read_only),
        *filter(None, (_held(names, places.host, root) for root in places.writable)),
        # The last rule that matches decides: what is hidden stays so, wherever it lies, but for the session's own folders.
        f"(deny file-read* file-write* {hidden})",
        f"(allow file-read* {_subpaths(names, 'SHARED', (shared,))})",
        f"(allow file-read* file-write* {_subpaths(names, 'OWN', own)})",
    ]
    if network:
        lines.append(_NETWORK)
    return "\n".join(lines) + "\n", names.values


def git_profile(view: "SandboxView", programs: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Return the profile in which ybs's own git sees the view, and the parameters that its paths stand in."""
    names = _Names()
    seen = (*_SYSTEM, *programs, *view.shown)
    lines = [
        _BASE,
        f"(allow file-read* {_subpaths(names, 'READ', seen)})",
        _MACHINE,
    ]
    if view.hidden:
        lines.append(f"(deny file-read* {_subpaths(names, 'HIDDEN', view.hidden)})")
    may = "file-read* file-write*" if view.is_writing else "file-read*"
    if view.git_folders:  # a rule without a path would be one for all of them
        lines.append(f"(allow {may} {_subpaths(names, 'GIT', view.git_folders)})")
    return "\n".join(lines) + "\n", names.values


class _Names:
    """Gives every path a parameter name of its own."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def add(self, kind: str, path: str) -> str:
        name = f"{kind}_{len(self.values)}"
        self.values[name] = path
        return name


def _subpaths(names: _Names, kind: str, paths: Sequence[str]) -> str:
    return " ".join(f'(subpath (param "{names.add(kind, path)}"))' for path in paths)


def _writable(names: _Names, root: str) -> str:
    """Allow writing below a root, but to none of the protected names, missing ones included.

    Patterns, because APFS takes `.GIT` for `.git`. `.git` is meant at any depth, for repositories in the repository.
    """
    parameter = names.add("ROOT", root)
    top = "|".join(_any_case(name) for name in NAMES)
    return (
        f'(allow file-write* (require-all (subpath (param "{parameter}"))'
        f' (require-not (literal (param "{parameter}")))'
        f" (require-not {_below(parameter, f'({top})')})"
        f" (require-not {_below(parameter, f'(.*/)?{_any_case(GIT)}')})))"
    )


def _held(names: _Names, host: Host, root: str) -> str:
    """Deny writing to ybs's own code and the person's own files below a root, and renaming a folder on the way to them."""
    paths = [*code_in(root), *named_by_settings(host, root)]
    if not paths:
        return ""
    way = {str(folder) for path in paths for folder in Path(path).parents}
    kept = "".join(
        f' (literal (param "{names.add("WAY", path)}"))'
        for path in sorted(way)
        if lies_in(path, root)
    )
    denied = f"(deny file-write* {_subpaths(names, 'HELD', paths)})"
    return f"{denied}\n(deny file-write-unlink{kept})" if kept else denied


def _below(parameter: str, pattern: str) -> str:
    return f'(regex (string-append "^" (regex-quote (param "{parameter}")) "/{pattern}(/.*)?$"))'


def _any_case(name: str) -> str:
    """Return a pattern that matches the name whatever the case of its letters; it has no other signs than dots."""
    return "".join(
        f"[{letter}{letter.upper()}]" if letter.isalpha() else f"[{letter}]" for letter in name
    )
