"""The sandbox of ybs's own git: it sees the git folder, of the work tree what it was given, and nothing else.

Commands of the model may still run while git works, and can exchange any folder of the project with a link at any
moment. Git looks at a path first and uses it later, so no check of its own or before it helps. In here it does not
matter: what lies outside is not mounted (bubblewrap), or may not be opened (Landlock, seatbelt). The work tree is
read-only for every command, and the git folder for those that only read: whoever wants files written has them made in
the git folder and puts them in place by a walk that follows no link (`git_checkout`).
"""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from ybs.security._mounts import checked
from ybs.security.git_walls import LOOKS_AT_FILES, WRITE
from ybs.security.launch import Launch
from ybs.security.places import SYSTEM, lies_in, system_folders
from ybs.security.programs import BUBBLEWRAP, system_program
from ybs.security.repository import Repository

if TYPE_CHECKING:
    from ybs.security._entry import Kernel
    from ybs.security.paths import Roots

_BOUND = ("--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--die-with-parent")
_DEVICES = ("/dev/null", "/dev/urandom")
#: Where programs find their libraries; the rest of /etc is none of git's business.
_LOADER = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d")
_TELL_OF_FILES = (".gitignore", ".gitattributes")
#: So begins what it says where it fails itself.
SAID_BY_BUBBLEWRAP = "bwrap: "


class View(Struct, frozen=True, kw_only=True):
    """What one git process sees, as absolute paths without links; it starts in `folder`, which may be empty.

    `shown` are folders and files that it may read but for what is `hidden` in them; `git_folders` it may write where it
    `is_writing`.
    """

    folder: str
    git_folders: tuple[str, ...]
    shown: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    is_writing: bool = False


class GitSandbox:
    """What the git of a session may see. `is_off` is the person's --no-sandbox: git is started as it is."""

    def __init__(self, roots: "Roots | None" = None, *, is_off: bool = False) -> None:
        self._roots, self.is_off = roots, is_off

    def view(
        self, repository: Repository, folder: Path, command: str, also: Sequence[str] = ()
    ) -> View | None:
        """Return what a command of git sees, started for a folder; `also` are more files. None: all that there is.

        Of the work tree that is what tools may work in: only those folders, without blocked paths, and the lists of
        ignored files and attributes above them.
        """
        if self.is_off:
            return None
        top = str(repository.work_tree)
        git_folders = {str(repository.git_folder), str(repository.common_folder)}
        shown: list[str] = []
        if command in LOOKS_AT_FILES:
            shown = [path for root in self._folders(folder) for path in _shown(root, top)]
        return View(
            folder=top,
            git_folders=tuple(
                path
                for path in sorted(git_folders)
                if not any(path != other and lies_in(path, other) for other in git_folders)
            ),
            shown=(*dict.fromkeys(shown), *also),
            hidden=self._hidden(shown),
            is_writing=command in WRITE,
        )

    def shows(self, path: str, folder: Path) -> bool:
        """Return whether git for a folder sees what lies at an absolute path. To it all else is deleted."""
        return self.is_off or any(lies_in(path, root) for root in self._folders(folder))

    def _folders(self, folder: Path) -> list[str]:
        return [str(root) for root in (self._roots.folders if self._roots else (folder.resolve(),))]

    def _hidden(self, shown: Sequence[str]) -> tuple[str, ...]:
        if self._roots is None:
            return ()
        return tuple(path for folder in shown for path in self._roots.blocked_in(folder))


def _shown(root: str, top: str) -> Iterator[str]:
    """Yield of a work tree what lies in a folder, and what the folders above say of it."""
    if lies_in(top, root):
        yield top
    elif lies_in(root, top):
        yield root
        while root != top:
            root = os.path.dirname(root)  # noqa: PTH120 - texts throughout
            yield from filter(_is_file, (f"{root}/{name}" for name in _TELL_OF_FILES))


def _is_file(path: str) -> bool:
    return os.path.isfile(path) and not os.path.islink(path)  # noqa: PTH113, PTH114 - texts throughout


class Machine:
    """What was found out about this machine while it was used."""

    has_bubblewrap = True


def launches(
    argv: Sequence[str], environ: Mapping[str, str], view: View | None
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


def launch_reader(argv: Sequence[str], environ: Mapping[str, str], view: View) -> Launch | None:
    """Return what starts a program that reads for a tool and sees the view; None where that cannot be had.

    The process is the program itself, as whoever watches it needs. Whoever starts it closes the descriptors. Raises
    OSError.
    """
    if sys.platform == "darwin":
        return next(_on_macos(argv, environ, view), None)
    from ybs.security.sandbox import landlock_kernel

    kernel = landlock_kernel() if sys.platform == "linux" else None
    return None if kernel is None else _in_landlock(kernel, argv, environ, view)


def takes_scripts(program: str) -> bool:
    """Return whether a shell in the sandbox finds git there: it is shown the system's folders, and git alone more."""
    return sys.platform == "linux" and any(lies_in(program, folder) for folder in SYSTEM)


def cannot_be_had(code: int, said: str) -> bool:
    """Return whether a launch failed because this machine has no such sandbox. It may try for some 10 ms."""
    if code != 1 or not said.startswith(SAID_BY_BUBBLEWRAP) or not Machine.has_bubblewrap:
        return False
    from ybs.security.sandbox import has_bubblewrap

    Machine.has_bubblewrap = has_bubblewrap()
    return not Machine.has_bubblewrap


def _on_macos(argv: Sequence[str], environ: Mapping[str, str], view: View) -> Iterator[Launch]:
    from ybs.security import _seatbelt

    if (program := _seatbelt.find()) is not None:
        text, parameters = _seatbelt.git_profile(view, _program_places(argv[0]))
        defined = [f"-D{name}={value}" for name, value in parameters.items()]
        yield Launch((program, "-p", text, *defined, "--", *argv), environ)


def _on_linux(argv: Sequence[str], environ: Mapping[str, str], view: View) -> Iterator[Launch]:
    # Nothing is tried before: that would take longer than git does.
    program = system_program(BUBBLEWRAP) if Machine.has_bubblewrap else None
    if program is not None:
        yield Launch(_in_bubblewrap(program, argv, view), environ)
    from ybs.security.sandbox import landlock_kernel  # with ctypes

    if (kernel := landlock_kernel()) is not None:
        yield _in_landlock(kernel, argv, environ, view)


def _in_bubblewrap(program: str, argv: Sequence[str], view: View) -> tuple[str, ...]:
    places = [word for path in _program_places(argv[0]) for word in ("--ro-bind", path, path)]
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


def _mounts(view: View) -> Iterator[str]:
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
    kernel: "Kernel", argv: Sequence[str], environ: Mapping[str, str], view: View
) -> Launch:
    from ybs.security import _landlock
    from ybs.security._entry import prepare_git

    system = [folder for folder, target in system_folders() if not target and folder != "/etc"]
    readable = [*system, *_LOADER, *_program_places(argv[0])]
    ruleset = _landlock.git_ruleset(kernel, readable, _DEVICES, view)
    return Launch(
        tuple(argv), environ, descriptors=(ruleset,), before_exec=prepare_git(kernel, ruleset)
    )


def _program_places(program: str) -> list[str]:
    """Return what a program needs that does not lie in the system's folders: itself, and the libraries beside it."""
    if any(lies_in(program, folder) for folder in SYSTEM):
        return []
    prefix = Path(program).parent.parent
    beside = (program, str(prefix / "lib"), str(prefix / "libexec"))
    return [path for path in beside if os.path.exists(path)]  # noqa: PTH110 - texts throughout
