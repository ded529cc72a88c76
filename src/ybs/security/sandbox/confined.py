"""The sandbox of a program that ybs itself starts on the project (git, rg): it sees the paths of a view, and nothing else.

Commands of the model may still run meanwhile, and can exchange any folder of the project with a link at any moment.
In here it does not matter: what lies outside of the view is not mounted (bubblewrap), or may not be opened (Landlock,
seatbelt).
"""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ybs.config.paths import SYSTEM
from ybs.security.launcher import BUBBLEWRAP, system_program
from ybs.security.sandbox.launch import Launch, SandboxView
from ybs.security.sandbox.mounts import checked
from ybs.security.sandbox.places import lies_in, system_folders

if TYPE_CHECKING:
    from ybs.security.sandbox.landlock import Kernel

_BOUND = ("--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--die-with-parent")
_DEVICES = ("/dev/null", "/dev/urandom")
#: Where programs find their libraries; git needs nothing else of /etc.
_LOADER = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d")
#: So begins what it says where it fails itself.
SAID_BY_BUBBLEWRAP = "bwrap: "


class SandboxMachine:
    """What was found out about this machine while it was used."""

    has_bubblewrap = True


def launches(
    argv: Sequence[str], environ: Mapping[str, str], view: SandboxView | None
) -> Iterator[Launch]:
    """Yield the ways to start git so that it has the view, the best first; the next one is for a machine where that one `cannot_be_had`.

    The last one is git as it is: where no sandbox can be had, no command of a model runs either. Whoever starts one
    closes its descriptors. Raises OSError.
    """
    if view is not None and sys.platform == "darwin":
        yield from _on_macos(argv, environ, view)
    if view is not None and sys.platform == "linux":
        yield from _on_linux(argv, environ, view)
    yield Launch(tuple(argv), environ)


def launch_reader(argv: Sequence[str], environ: Mapping[str, str], view: SandboxView) -> Launch:
    """Return what starts a program that reads for a tool so that it sees the view.

    Landlock comes first: it costs less than bubblewrap. Where no sandbox can be had it is the program as it is, as with
    git. Whoever starts it closes the descriptors. Raises OSError.
    """
    if sys.platform == "darwin":
        return next(_on_macos(argv, environ, view), Launch(tuple(argv), environ))
    if sys.platform == "linux":
        from ybs.security.sandbox.choice import landlock_kernel, tried_bubblewrap

        if (kernel := landlock_kernel()) is not None:
            return _in_landlock(kernel, argv, environ, view)
        if (program := tried_bubblewrap()[0]) is not None:
            return Launch(_in_bubblewrap(program, argv, view), environ)
    return Launch(tuple(argv), environ)


def takes_scripts(program: str) -> bool:
    """Return whether a shell in the sandbox finds git there: it is shown the system's folders, and git alone more."""
    return sys.platform == "linux" and any(lies_in(program, folder) for folder in SYSTEM)


def cannot_be_had(code: int, said: str) -> bool:
    """Return whether a launch failed because this machine has no such sandbox. It may try for some 10 ms."""
    if code != 1 or not said.startswith(SAID_BY_BUBBLEWRAP) or not SandboxMachine.has_bubblewrap:
        return False
    from ybs.security.sandbox.choice import has_bubblewrap

    SandboxMachine.has_bubblewrap = has_bubblewrap()
    return not SandboxMachine.has_bubblewrap


def _on_macos(
    argv: Sequence[str], environ: Mapping[str, str], view: SandboxView
) -> Iterator[Launch]:
    from ybs.security.sandbox import seatbelt

    if (program := seatbelt.find()) is not None:
        text, parameters = seatbelt.git_profile(view, program_places(argv[0]))
        defined = [f"-D{name}={value}" for name, value in parameters.items()]
        yield Launch((program, "-p", text, *defined, "--", *argv), environ)


def _on_linux(
    argv: Sequence[str], environ: Mapping[str, str], view: SandboxView
) -> Iterator[Launch]:
    # Nothing is tried before: that would take longer than git does.
    program = system_program(BUBBLEWRAP) if SandboxMachine.has_bubblewrap else None
    if program is not None:
        yield Launch(_in_bubblewrap(program, argv, view), environ)
    from ybs.security.sandbox.choice import landlock_kernel  # with ctypes

    if (kernel := landlock_kernel()) is not None:
        yield _in_landlock(kernel, argv, environ, view)


def _in_bubblewrap(program: str, argv: Sequence[str], view: SandboxView) -> tuple[str, ...]:
    places = [word for path in program_places(argv[0]) for word in ("--ro-bind", path, path)]
    opened = list(_mounts(view))
    return (
        *(program, *_BOUND, "--cap-drop", "ALL", "--tmpfs", "/", *_system(), *places),
        *("--dir", view.folder, *opened, "--remount-ro", "/", "--chdir", view.folder, "--"),
        *checked(opened, argv),
    )


def _system() -> Iterator[str]:
    for folder, target in system_folders():
        if folder != "/etc":
            yield from ("--symlink", target, folder) if target else ("--ro-bind", folder, folder)
    for path in filter(os.path.exists, _LOADER):
        yield from ("--ro-bind", path, path)
    # What git could be led to in there may not be written: the kernel lets uid 0 do that without any capability.
    yield from ("--proc", "/proc", "--remount-ro", "/proc")
    for path in _DEVICES:
        yield from ("--dev-bind", path, path)


def _mounts(view: SandboxView) -> Iterator[str]:
    for path in sorted(view.shown):
        yield from ("--ro-bind", path, path)
    for path in view.hidden:
        if Path(path).is_dir():
            # Git takes what it may not look at for unchanged, and what is not there for deleted.
            yield from ("--perms", "0000", "--tmpfs", path)
        else:
            yield from ("--ro-bind", "/dev/null", path)
    for path in view.git_folders:
        yield from ("--bind" if view.is_writing else "--ro-bind", path, path)


def _in_landlock(
    kernel: "Kernel", argv: Sequence[str], environ: Mapping[str, str], view: SandboxView
) -> Launch:
    from ybs.security.sandbox import landlock

    system = [folder for folder, target in system_folders() if not target and folder != "/etc"]
    readable = [*system, *_LOADER, *program_places(argv[0])]
    ruleset = landlock.git_ruleset(kernel, readable, _DEVICES, view)
    before = landlock.prepare_git(kernel, ruleset)
    return Launch(tuple(argv), environ, descriptors=(ruleset,), before_exec=before)


def program_places(program: str) -> list[str]:
    """Return what a program needs that does not lie in the system's folders: itself, and the libraries beside it."""
    if any(lies_in(program, folder) for folder in SYSTEM):
        return []
    prefix = Path(program).parent.parent
    beside = (program, str(prefix / "lib"), str(prefix / "libexec"))
    return [path for path in beside if os.path.exists(path)]  # noqa: PTH110 - texts throughout
