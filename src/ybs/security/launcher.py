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
from collections.abc import (
    Callable,
    Collection,
    Container,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager
from contextvars import ContextVar
from errno import EACCES, ENOENT
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, TypeAlias

from ybs.config.host import worked_in
from ybs.core.lazy import lazy
from ybs.security.paths import own_code
from ybs.security.paths.steps import is_away, steps
from ybs.security.sandbox.launch import Launch

if TYPE_CHECKING:
    from subprocess import Popen

    from ybs.security.loop_process import LoopProcess

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
_BETWEEN_WORDS = lazy(r"[\s:;,='\"@()<>|&!#`\[\]{}]+")
_LONGEST_PATH: Final = 4096
_ESCAPE = lazy(rb"%([0-9A-Fa-f]{2})")
_HOME = lazy(r"\$\{?HOME\b\}?|~(?=/)")
_NUMBERED: Final = ("GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_")
#: What ybs's own Python is told as this process was: where its files lie, and its settings.
_OF_YBS: Final = ("YBS_", "XDG_")
_IN_FOLDER = ("/bin/sh", "-c", 'cd -- "$1" && shift && exec "$@"', "sh")
#: What ybs's own Python begins with.
_BEGINNING: Final = str(Path(__file__).with_name("own_python.py"))

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
    name: str, *, environ: Mapping[str, str], also: Iterable[Path] = ()
) -> Path | None:
    """Return a program's absolute path: of a folder of the system, or of PATH where only its owner may write.

    What is not away from each folder that is worked in, and from those named `also`, is never it. None where there is no such program.
    """
    others = _others(also)
    for folder in (*map(Path, SYSTEM_FOLDERS), *_folders_of(environ)):
        if (found := _safe(folder / name, others)) is not None:
            return found
    return None


def persons_program(
    name: str, *, environ: Mapping[str, str], also: Iterable[Path] = ()
) -> str | None:
    """Return the path of a program that the person's own PATH names, or of one that they named by its whole path.

    What is not away from each folder that is worked in, and from those named `also`, is never it. None where there is no such program.
    """
    others = _others(also)
    places = (Path(),) if "/" in name else _folders_of(environ)
    for path in map(str, (folder / name for folder in places)):
        if is_away(path, others) and os.path.isfile(path) and os.access(path, os.X_OK):  # noqa: PTH113 - a text
            return path
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


def own_program() -> str:
    """Return the program `ybs` by its whole path, for a line that others start it by: the one that runs, or the one beside ybs's own Python.

    Where there is neither, its name: a path that is not whole would mean another program in each folder.
    """
    started, beside = Path(sys.argv[0]).absolute(), Path(sys.executable).parent / "ybs"
    return str(started if started.name == "ybs" else beside if beside.is_file() else beside.name)


def python(option: str, target: str, *words: str, options: Sequence[str] = ()) -> list[str]:
    """Return the command that runs a module (`option` is `-m`), a text (`-c`) or a file ("") with ybs's own Python.

    It looks for modules where this process does, but not in the folder that it stands in, nor in what is worked in, and it reads no
    variables (-I), no `*.pth` and no `sitecustomize` (-S). Raises FileNotFoundError where there is no Python.
    """
    if not sys.executable:
        raise FileNotFoundError(ENOENT, "there is no Python to start")
    compiled = sys.pycache_prefix or ""
    as_here = [
        *(("-B",) if sys.dont_write_bytecode else ()),
        *(("-X", "utf8") if sys.flags.utf8_mode else ()),
        *(("-X", f"pycache_prefix={compiled}") if is_away(compiled, worked_in) else ()),
    ]
    given = [_lines(each) for each in (_own_path(), _prefixes(), own_code.editable_folders())]
    own = (sys.executable, "-I", "-S", *as_here, *options, _BEGINNING, *given)
    return [*own, option, target, *words]


def _own_path() -> list[str]:
    """Return where a process of ybs's own looks for modules: where packages are installed, and where this one looks outside of what is worked in.

    Of a program that embeds ybs, only where packages are installed.
    """
    code, usual = set(own_code.module_folders()), "" if own_code.is_program() else "-packages"
    return [e for e in sys.path if e in code or (e.endswith(usual) and is_away(e, worked_in))]


def _prefixes() -> list[str]:
    """Return what Python's `site` found out in this process: where the installation is, and the folder of the user's packages."""
    site = sys.modules.get("site")
    is_user = getattr(site, "ENABLE_USER_SITE", False)
    user: str = getattr(site, "USER_SITE", None) or "" if is_user else ""
    return [user, sys.prefix, sys.exec_prefix, *getattr(site, "PREFIXES", ())]


def _lines(paths: Iterable[str]) -> str:
    return "\n".join(each for each in paths if "\n" not in each)


def environ_away(environ: Mapping[str, str], *, for_ybs: bool = False) -> dict[str, str]:
    """Return variables of which none leads into what is worked in, but where `for_ybs` those by which ybs knows its own folders.

    What says more to Python than where it looks for modules is not among them: it could have code run.
    """
    own = {each: environ[each] for each in environ if for_ybs and each.startswith(_OF_YBS)}
    kept = {name: value for name, value in environ.items() if not name.startswith("PYTHON")}
    kept |= {name: environ[name] for name in _KEPT_OF_PYTHON if name in environ}
    for name in _FOLDERS:
        parts = [each for each in paths_in(name, environ) if is_away(each, worked_in)]
        kept.pop(name, None)
        kept |= {name: os.pathsep.join(parts)} if parts else {}
    kept.setdefault("PATH", os.defpath)
    return {**away_from((), kept), **own}


def away_from(
    folders: Iterable[str], environ: Mapping[str, str], *, but: Container[str] = ()
) -> Mapping[str, str]:
    """Return the variables without anything that leads into the folders, or into what is worked in, unless it leads into one of `but`.

    Search paths lose the entries that lie there, and relative and empty ones, which mean the folder a program happens to be in.
    Other variables that name something in there, such as options, are left out.
    """
    others = worked_in.union(folders)
    leads = partial(_leads_into, folders=others, but=but, home=environ.get("HOME", ""))
    kept = {
        name: _led_away(name, value, leads, is_bound=not but) for name, value in environ.items()
    }
    left = {name: value for name, value in kept.items() if value is not None}
    if any(name.startswith(_NUMBERED) for name in environ.keys() - left.keys()):
        left.pop("GIT_CONFIG_COUNT", None)  # git stops at one that it does not find
    return left


def _led_away(name: str, value: str, leads: Callable[[str], bool], *, is_bound: bool) -> str | None:
    entries = value.split(os.pathsep)
    left = [each for each in entries if not leads(each)]
    if name.endswith("PATH") and is_bound:
        left = [each for each in left if each.startswith("/")]
    elif len(left) < len(entries) and not all(each.startswith("/") for each in entries):
        return None  # no list of paths, so half of it would mean something else
    elif len(left) > 1 and leads(os.pathsep.join(left)):
        return None  # into a folder that has a colon in its name
    return os.pathsep.join(left) if left or not value else None


def _leads_into(entry: str, *, folders: Collection[str], but: Container[str], home: str) -> bool:
    """Return whether a path, or an option with a path in it, names something in one of the folders, and none of `but`.

    It may be written as an address, with escapes, or from the home folder on.
    """
    if not ("/" in entry or "%" in entry or "$" in entry):  # most of them
        return False
    unescaped = _ESCAPE().sub(lambda found: bytes.fromhex(found[1].decode()), os.fsencode(entry))
    texts = {entry, os.fsdecode(unescaped), entry.replace("\\", "")}
    texts |= {_HOME().sub(lambda _: home, each) for each in texts}
    paths = {path for text in texts for path in _paths_of(text, folders)}
    return not all(is_away(path, folders, but=but) for path in paths)


def _paths_of(text: str, folders: Iterable[str]) -> Iterator[str]:
    """Yield the paths that each word of a text may be, or begin: what stands between words may also be a part of a name."""
    between, end = _BETWEEN_WORDS(), 0
    while (slash := text.find("/", end)) >= 0:
        path = "/" + text[slash : slash + _LONGEST_PATH].lstrip("/")
        yield path
        yield between.split(path, 1)[0]
        yield from (e for e in folders if path.startswith(e) and between.match(path, len(e)))
        found = between.search(text, slash)
        end = found.end() if found else len(text)


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
) -> "LoopProcess":
    """Start a program as a process of the running loop, otherwise as `start` does. `limit`: bytes in a line that is read."""
    from ybs.security.loop_process import LoopProcess

    process = start(
        launch,
        folder=folder,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        has_own_group=has_own_group,
    )
    return await LoopProcess.of(process, limit)


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


def judge_start(event: str, arguments: Sequence[Any]) -> None:
    """Raise PermissionError for a program that the rest of this process starts where it works, or by a relative entry of PATH.

    That is what libraries do that find theirs by PATH. Of a shell the words of its command count, too.
    Event and arguments are those that Python tells an audit hook.
    """
    place, environ = STARTS[event], arguments[-1]
    program = os.fsdecode(arguments[place])
    # Only Popen looks along PATH; to the system a bare name is a file where the process stands.
    is_name = event == "subprocess.Popen" and "/" not in program
    found = _found_by_path(program, environ) if is_name else program
    is_fine = event != "os.system" and is_away(found, worked_in)
    if is_fine and Path(found).name in _SHELLS:
        words = [os.fsdecode(each) for each in arguments[place + 1]][1:]
        is_fine = all(is_away(path, worked_in) for path in _named(words, environ))
    if not is_fine:
        raise PermissionError(EACCES, "it may be a program of the project", program)


def _named(words: Iterable[str], environ: Mapping[str, str] | None) -> Iterator[str]:
    """Yield the programs that the words of a shell's commands may name."""
    for word in " ".join(words).translate(_WITHOUT_SIGNS).split():
        path = word if "/" in word else _found_by_path(word, environ)
        if os.access(path, os.X_OK) and os.path.isfile(path):  # noqa: PTH113 - a text
            yield os.path.join(os.getcwd(), path)  # noqa: PTH109, PTH118


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


def _others(also: Iterable[Path]) -> set[str]:
    """Return the folders in which others than the person may write, without links."""
    return worked_in.union(map(os.path.realpath, also))


def _safe(path: Path, others: Container[str]) -> Path | None:
    """Return the path to start a program by, if the person or root alone decides what that is."""
    try:
        if not is_away(str(path), others):
            return None
        *_, real = places = [Path(each) for each in steps(str(path))]
        is_ours = all(_is_ours(each) for each in (*(each.parent for each in places), real))
        if not (is_ours and real.is_file() and os.access(real, os.X_OK)):
            return None
    except (OSError, ValueError):  # gone, a circle of links, or no path at all
        return None
    return real if real.name == path.name else path  # some go by the name that they are called by


def _is_ours(path: Path) -> bool:
    facts = path.stat()
    return facts.st_uid in (0, os.getuid()) and not facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
