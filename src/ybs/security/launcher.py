"""Every process that ybs starts begins here: the program is found, given a folder and variables, and started.

A project is somebody else's until the person trusts it, and a model may write in it. So nothing that a project holds
decides what runs: a program has an absolute path, found away from every root; Python looks for modules neither in the folder
that it stands in nor in a root; and a process stands in a folder that no project has, unless whoever starts it says otherwise.
`tests/test_spawning.py` finds processes that are started anywhere else in ybs; what libraries start (`platform` its `uname`, `ctypes.util`
its `ldconfig`, plugins their own) the process itself judges, by `judge_start`.
"""

import os
import stat
import sys
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from errno import EACCES, ENOENT
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, TypeAlias

from ybs.security.paths import own_code
from ybs.security.sandbox.launch import Launch

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from subprocess import Popen

#: As `subprocess` has it, which is loaded with the first process.
_DEVNULL: Final = -3
#: Never looked for along PATH: the project may have put a folder of its own there.
BUBBLEWRAP: Final = ("/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap")
#: Not `/bin/sh`, which is dash on Debian: there `[[`, `{1..3}` and `set -o pipefail` fail, and `&>` means something else.
BASH: Final = ("/usr/bin/bash", "/bin/bash", "/usr/local/bin/bash")
#: Looked through first, whatever PATH says.
SYSTEM_FOLDERS = (
    "/usr/bin",
    "/bin",
    "/usr/local/bin",
    "/opt/homebrew/bin",
    "/opt/local/bin",
    "/run/current-system/sw/bin",
)
#: Where else a system has programs that only root puts there: macOS's own, and those of Windows' graphics driver in WSL.
_MORE_SYSTEM_FOLDERS = ("/usr/sbin", "/sbin", "/usr/lib/wsl/lib")
#: Where a process stands that has no business in the project: everybody has this folder, and only root can write in it.
OWN_FOLDER: Final = Path("/")
#: What runs for ybs itself on the system's programs has no more than this.
SYSTEM_ENVIRON: Final = {"PATH": os.defpath, "LC_ALL": "C"}
#: What says to Python how it reads and writes.
_KEPT_OF_PYTHON = ("PYTHONDONTWRITEBYTECODE", "PYTHONUTF8", "PYTHONIOENCODING", "PYTHONUNBUFFERED")
#: Variables that say to the system, or to OpenSSL, where libraries are that each program loads.
LOADERS: Final = (
    *("LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT", "DYLD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES"),
    *("OPENSSL_CONF", "OPENSSL_MODULES", "OPENSSL_ENGINES"),
)
#: Folders in which programs look for others, for libraries, for modules and for what was compiled of them.
_FOLDERS = (
    *("PATH", "PYTHONPATH", "PYTHONHOME", "PYTHONPYCACHEPREFIX", *LOADERS),
    *("DYLD_FALLBACK_LIBRARY_PATH", "NODE_PATH", "PERL5LIB", "RUBYLIB"),
)
#: What else than a colon stands between the paths of a variable.
_BETWEEN = {"LD_PRELOAD": " ", "LD_LIBRARY_PATH": ";"}
_IN_FOLDER = ("/bin/sh", "-c", 'cd -- "$1" && shift && exec "$@"', "sh")
#: What ybs's own Python begins with.
_BEGINNING: Final = str(Path(__file__).with_name("own_python.py"))
#: The folder in which this ybs is found.
_OWN_PACKAGES = str(Path(__file__).parents[2])

#: What Python tells of the start of a program, and where the program stands among its arguments.
STARTS: Final = {
    "subprocess.Popen": 0,
    "os.posix_spawn": 0,
    "os.exec": 0,
    "os.spawn": 1,
    "os.system": 0,
}
_SHELLS: Final = ("sh", "bash", "dash", "zsh")
_WITHOUT_SIGNS: Final = str.maketrans(dict.fromkeys("\"'`$(){}<>|&;=", " "))
_is_launching: ContextVar[bool] = ContextVar("_is_launching", default=False)

#: What a standard stream of a process is: a descriptor, a file, or a constant of `subprocess`; None hands on ybs's own.
Stream: TypeAlias = int | IO[Any] | None


def trusted_program(
    name: str, *, away_from: Iterable[Path], environ: Mapping[str, str]
) -> Path | None:
    """Return a program's absolute path: of a folder of the system, or of PATH where only its owner may write.

    What lies in a root (`away_from`) is never it. None where there is no such program.
    """
    tops = _resolved(away_from)
    for folder in (*map(Path, SYSTEM_FOLDERS), *_folders_of(environ)):
        if (found := _safe(folder / name, tops)) is not None:
            return found
    return None


def persons_program(
    name: str, *, away_from: Iterable[Path], environ: Mapping[str, str]
) -> str | None:
    """Return the path of a program that the person's own PATH names, or of one that they named by its whole path.

    What lies in a root (`away_from`) is never it. None where there is no such program.
    """
    tops = _resolved(away_from)
    places = (Path(),) if "/" in name else _folders_of(environ)
    for path in (folder / name for folder in places):
        try:
            if (
                path.is_absolute()
                and path.is_file()
                and os.access(path, os.X_OK)
                and _is_away(path, tops)
            ):
                return str(path)
        except (OSError, ValueError):  # a folder that cannot be looked into, or no path at all
            continue
    return None


def system_program(paths: Iterable[str]) -> str | None:
    """Return the first of these programs that only root can have put there."""
    return next((path for path in paths if _is_roots(path)), None)


def named_system_program(name: str) -> str | None:
    """Return the path of a program that comes with the system, and that only root can have put there."""
    return system_program(f"{folder}/{name}" for folder in (*SYSTEM_FOLDERS, *_MORE_SYSTEM_FOLDERS))


def bash() -> str | None:
    """Return the path of the system's bash, in which the commands of a model run where there is one."""
    return system_program(BASH)


def shell_command(command: str) -> list[str]:
    """Return the shell for a model's commands: the system's bash without anybody's startup files, or else sh."""
    program = bash()
    return [program, "--norc", "-c", command] if program else ["/bin/sh", "-c", command]


def python(option: str, target: str, *words: str, options: Sequence[str] = ("-P",)) -> list[str]:
    """Return the command that runs a module (`option` is `-m`), a text (`-c`) or a file ("") with ybs's own Python.

    It looks for modules where this process does: not in the folder that it stands in (`options`: -P, or -I, which says so too),
    nor in those of projects that are installed beside ybs as editable. Raises FileNotFoundError where there is no Python.
    """
    if not sys.executable:
        raise FileNotFoundError(ENOENT, "there is no Python to start")
    if target == "ybs":  # which begins by this itself
        return [sys.executable, *options, option, target, *words]
    path = "\n".join(each for each in _own_path() if each.startswith("/"))
    return [sys.executable, *options, _BEGINNING, path, option, target, *words]


def _own_path() -> list[str]:
    """Return where this process looks for modules; of a program that embeds ybs only where packages are installed, and ybs itself."""
    if own_code.is_program():
        return sys.path
    usual = tuple(f"{each}/lib" for each in {sys.prefix, sys.base_prefix})
    return [
        each
        for each in sys.path
        if each == _OWN_PACKAGES or each.startswith(usual) or each.endswith("-packages")
    ]


def environ_away(environ: Mapping[str, str], away_from: Iterable[Path]) -> dict[str, str]:
    """Return variables by which a program finds no other program, library or module in a root.

    What says more to Python than that is not among them: it could have code run.
    """
    tops = _resolved(away_from)
    kept = {name: value for name, value in environ.items() if not name.startswith("PYTHON")}
    kept |= {name: environ[name] for name in _KEPT_OF_PYTHON if name in environ}
    for name in _FOLDERS:
        parts = [
            each
            for each in paths_in(name, environ)
            if _is_path_away(each, tops) or (name == "PYTHONPATH" and each == _OWN_PACKAGES)
        ]
        kept.pop(name, None)
        kept |= {name: os.pathsep.join(parts)} if parts else {}
    kept.setdefault("PATH", os.defpath)
    return kept


def paths_in(name: str, environ: Mapping[str, str]) -> list[str]:
    """Return the paths that a variable lists; where it is missing, or empty, one that is empty."""
    value = environ.get(name, "")
    return value.replace(_BETWEEN.get(name, os.pathsep), os.pathsep).split(os.pathsep)


def start(
    launch: Launch,
    *,
    folder: str | Path = OWN_FOLDER,
    stdin: Stream = _DEVNULL,
    stdout: Stream = _DEVNULL,
    stderr: Stream = _DEVNULL,
    has_own_group: bool = True,
) -> "Popen[bytes]":
    """Start a program and close the descriptors that it was handed. Raises OSError.

    With a group of its own it has a session, too, and so no terminal.
    """
    from subprocess import Popen

    try:
        with _launching():
            return Popen(
                _checked(launch.argv),
                cwd=folder,
                env=launch.environ,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                start_new_session=has_own_group,
                pass_fds=launch.descriptors,
                preexec_fn=launch.before_exec,
            )
    finally:
        _close(launch.descriptors)


async def start_in_loop(  # noqa: PLR0913 - as of `start`, and the longest line
    launch: Launch,
    *,
    folder: str | Path = OWN_FOLDER,
    stdin: Stream = _DEVNULL,
    stdout: Stream = _DEVNULL,
    stderr: Stream = _DEVNULL,
    has_own_group: bool = True,
    limit: int = 1 << 16,
) -> "Process":
    """Start a program as a process of the running loop, otherwise as `start` does. `limit`: bytes in a line that is read."""
    import asyncio

    try:
        with _launching():
            return await asyncio.create_subprocess_exec(
                *_checked(launch.argv),
                cwd=folder,
                env=launch.environ,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                limit=limit,
                start_new_session=has_own_group,
                pass_fds=launch.descriptors,
                preexec_fn=launch.before_exec,
            )
    finally:
        _close(launch.descriptors)


def ask(launch: Launch, seconds: float) -> tuple[int, bytes, bytes]:
    """Run a program to its end; return its exit code, what it printed and its errors. Raises OSError, also when it takes too long."""
    from subprocess import PIPE, TimeoutExpired

    with start(launch, stdout=PIPE, stderr=PIPE, has_own_group=False) as process:
        try:
            printed, errors = process.communicate(timeout=seconds)
        except TimeoutExpired as error:
            raise TimeoutError(f"it took longer than {seconds:g} s") from error
        finally:
            process.kill()  # nothing, where it has ended
    return process.returncode, printed, errors


def spawn(
    argv: Sequence[str],
    environ: Mapping[str, str],
    *actions: tuple[int, ...] | tuple[int, int, str, int, int],
    folder: str | Path = OWN_FOLDER,
    **options: Any,
) -> int:
    """Start a program that no object of Python's holds, and return its number. Raises OSError.

    Actions and options are those of `os.posix_spawn`. That knows no folder, so a shell changes to it and becomes the program.
    """
    if not os.access(_checked(argv)[0], os.X_OK):
        raise FileNotFoundError(ENOENT, os.strerror(ENOENT), argv[0])
    words = [*_IN_FOLDER, str(folder), *argv]
    with _launching():
        return os.posix_spawn(words[0], words, environ, file_actions=actions, **options)


def is_launching() -> bool:
    """Return whether a program is being started here, whose path is known to be away from every root."""
    return _is_launching.get()


def judge_start(event: str, arguments: Sequence[Any], away_from: Iterable[Path]) -> None:
    """Raise PermissionError for a program that the rest of this process starts in a root, or by a relative entry of PATH.

    That is what libraries do that find theirs by PATH. Of a shell the words of its command count, too.
    Event and arguments are those that Python tells an audit hook.
    """
    place, environ, tops = STARTS[event], arguments[-1], _resolved(away_from)
    program = os.fsdecode(arguments[place])
    # Only Popen looks along PATH; to the system a bare name is a file where the process stands.
    is_name = event == "subprocess.Popen" and "/" not in program
    found = _found_by_path(program, environ) if is_name else program
    is_away = _is_path_away(found, tops) and _is_away(Path(found), tops)
    if event != "os.system" and is_away and Path(found).name in _SHELLS:
        words = [os.fsdecode(each) for each in arguments[place + 1]][1:]
        is_away = all(_is_away(Path(path), tops) for path in _named(words, environ))
    if event == "os.system" or not is_away:
        raise PermissionError(EACCES, "it may be a program of the project", program)


def _named(words: Iterable[str], environ: Mapping[str, str] | None) -> Iterator[str]:
    """Yield the programs that the words of a shell's commands may name."""
    for word in " ".join(words).translate(_WITHOUT_SIGNS).split():
        path = word if "/" in word else _found_by_path(word, environ)
        if os.access(path, os.X_OK) and os.path.isfile(path):  # noqa: PTH113 - a text
            yield path


@contextmanager
def _launching() -> Generator[None]:
    """Mark what is started meanwhile as judged."""
    token = _is_launching.set(True)
    try:
        yield
    finally:
        _is_launching.reset(token)


def _found_by_path(program: str, environ: Mapping[str, str] | None) -> str:
    """Return the path that PATH leads to, of these variables or the process's own; a system's where it leads nowhere."""
    folders = os.get_exec_path(environ)
    paths = (os.path.join(folder, program) for folder in folders)  # noqa: PTH118 - an empty one is where it stands
    found = (path for path in paths if os.access(path, os.X_OK) and os.path.isfile(path))  # noqa: PTH113 - a text
    return next(found, f"/{program}")


def _checked(argv: Sequence[str]) -> Sequence[str]:
    """Return the words of a command whose program has an absolute path. Raises FileNotFoundError for others."""
    if not argv[0].startswith("/"):
        raise FileNotFoundError(ENOENT, os.strerror(ENOENT), argv[0])
    return argv


def _close(descriptors: Iterable[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _is_roots(path: str) -> bool:
    try:
        found = Path(path).stat()
    except OSError:
        return False
    is_program = stat.S_ISREG(found.st_mode) and bool(found.st_mode & 0o111)
    return is_program and found.st_uid == 0 and not found.st_mode & 0o022


def _folders_of(environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield the folders of PATH, but for relative ones, which mean the folder that a program happens to be in."""
    for entry in environ.get("PATH", os.defpath).split(os.pathsep):
        if entry.startswith("/"):
            yield Path(entry)


def _resolved(folders: Iterable[Path]) -> list[str]:
    return [os.path.realpath(folder) for folder in folders]


def _lies_in(path: Path, tops: Sequence[str]) -> bool:
    real = os.path.realpath(path)
    return any(top in ("/", real) or real.startswith(f"{top}/") for top in tops)


def _is_away(path: Path, tops: Sequence[str]) -> bool:
    """Return whether neither a program nor the name that it has lies in one of these folders."""
    return not any(_lies_in(each, tops) for each in (path.parent, path))


def _is_path_away(path: str, tops: Sequence[str]) -> bool:
    return path.startswith("/") and not _lies_in(Path(path), tops)


def _safe(path: Path, tops: Sequence[str]) -> Path | None:
    try:
        real = path.resolve()
        is_ours = not _lies_in(real, tops) and all(
            _is_ours(each) for each in (path.parent, real.parent, real)
        )
        return real if is_ours and real.is_file() and os.access(real, os.X_OK) else None
    except (OSError, RuntimeError, ValueError):  # gone, a circle of links, or no path at all
        return None


def _is_ours(path: Path) -> bool:
    facts = path.stat()
    return facts.st_uid in (0, os.getuid()) and not facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
