"""Why a server's program ended, by what it wrote to its standard error, and what the person can do about it."""

import re
from pathlib import Path
from typing import Final

from ybs.core.lazy import lazy
from ybs.core.remedies import Remedy
from ybs.tools.mcp.listed import cleaned
from ybs.tools.mcp.settings import Server

_MOST_LINES: Final = 2
_SHALLOW: Final = 2  # parts of a path such as /srv, which is not named to be opened
_MOST_SHOWN: Final = 500
_ESCAPES = lazy(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
#: What stands around a reason: frames, rulers, brackets, version lines, hints at logs and manuals.
_NOISE = lazy(
    r"""\W*$|\s+at\s|\s*File\s"|\s*throw\s|\s*\^|node:|file://\S+:\d+$|/\S+:\d+$|Node\.js\sv|Bun\sv|Require\sstack:|-\s/
    |\s*(?:errno|code|syscall|path|url|requireStack|cause|address|port|hostname|dest):\s|(?:.*\s)?Traceback\s
    |npm\s(?:notice|warn|WARN)|npm\s(?:error|ERR!)\s*(?:$|code\s|errno\s|syscall\s|path\s|\d+\s*$|A\scomplete\slog|\s*/
    |.*Note\sthat\syou\scan|\d+\s+tarball|\s+at\s)
    |Run\s'docker|See\s'docker|Unable\sto\sfind\simage|note:\srun\swith|stack\sbacktrace|goroutine\s|exit\sstatus|\s+\d+:\s
    |\s*\.\.\.\s\d+\smore|(?:For\smore|Learn\smore|See\shttps?:|Did\syou\smean)|During\shandling\sof|The\sabove\sexception""",
    re.VERBOSE,
)
#: Lines that say what failed.
_STRONG = lazy(
    r"""(?:Uncaught\s|Unhandled\s|\[?)?[\w.$:]*(?:Error|Exception|Exit|Interrupt|Panic)\b(?:\s\[\w+\])?[:\]\s]
    |(?i:error|fatal|panic|failed)\b[:\[]|\S+:\s(?:error|fatal)\b|docker:\s|podman:\s|npm\s(?:error|ERR!)
    |thread\s'.*panicked\sat|Exception\sin\sthread|Caused\sby:|[\u00d7╰├]|ERR_\w+|\[ERR""",
    re.VERBOSE,
)
_WEAK = lazy(
    r"\b(?:error|fatal|cannot|can't|could not|couldn't|unable|failed|failure|denied|refused|missing|required|invalid|unknown|"
    r"unsupported|not found|no such|not set|must|usage|expired|unauthorized|forbidden)\b",
    re.IGNORECASE,
)
_READ_ONLY = lazy(
    r"\b(?:EROFS|EACCES|EPERM)\b|read-only file system|PermissionError|permission denied|readonly database|"
    r"unable to open database file",
    re.IGNORECASE,
)
_NO_NETWORK = lazy(
    r"\b(?:ENOTFOUND|EAI_AGAIN|ENETUNREACH)\b|getaddrinfo|could not resolve|name resolution|name or service not known|"
    r"dns error|network is unreachable|no such host|error sending request",
    re.IGNORECASE,
)
_HIDDEN = lazy(r"\bENOENT\b|no such file or directory|FileNotFoundError", re.IGNORECASE)
_PATH = lazy(r"""['"`:\s](/[^'"`:\n]+)""")


def reason_in(said: str) -> str:
    """Return the lines of a standard error that say why a program failed, as one; empty where it wrote none."""
    lines = _joined([line.rstrip() for line in _ESCAPES().sub("", said).splitlines()])
    whole = [line for line in lines if line.strip()]
    telling = [line.strip() for line in whole if not _NOISE().match(line)]
    strong = [line for line in telling if _STRONG().match(line)]
    if "Traceback (most recent call last)" in said:
        chosen = strong[-1:]  # Python tells the last error last
    else:
        causes = [line for line in strong[1:] if line.startswith("Caused by:")]
        chosen = [*strong[:1], causes[-1]] if causes else strong[:_MOST_LINES]
    weak = [line for line in telling if _WEAK().search(line)]
    last = telling or [line.strip() for line in whole]
    chosen = list(dict.fromkeys(chosen or weak[-_MOST_LINES:] or last[-_MOST_LINES:]))
    return cleaned("; ".join(line.rstrip(".;?!") for line in chosen), _MOST_SHOWN)


def _joined(lines: list[str]) -> list[str]:
    """Return lines with the message of a panic, and the rest of a broken line of uv, behind where they begin."""
    joined: list[str] = []
    for line in lines:
        line = re.sub(r"^\s*\|\s?", "", line)  # of Python's groups of exceptions
        before = joined[-1].lstrip() if joined else ""
        is_panic = " panicked at " in before and before.endswith(":")
        is_rest = before[:1] in ("╰", "├") and line.startswith("    ") and line.strip()
        if is_panic or is_rest:
            joined[-1] += f" {line.strip()}"
        else:
            joined.append(line)
    return joined


def remedies_for(server: Server, said: str, folder: Path) -> tuple[Remedy, ...]:
    """Return what the person can change in a server's entry, where the sandbox kept it from what it tried."""
    if server.transport != "stdio" or not server.is_held:
        return ()
    found: list[str] = []
    if not server.network and _NO_NETWORK().search(said):
        found.append(
            'give it the network, which the first fetch of a package needs: take "network": false out of its entry '
            "(--no-network of ybs mcp add)"
        )
    if denied := _READ_ONLY().search(said):
        found += _let_write(server, _path_beside(denied, said), folder)
    elif (hidden := _HIDDEN().search(said)) and (path := _path_beside(hidden, said)):
        found += _let_see(path)
    return tuple(Remedy(kind="do", value=each) for each in found)


def _path_beside(found: re.Match[str], said: str) -> Path | None:
    """Return the path that stands in the line of a find."""
    line = said[found.start() :].partition("\n")[0] + said[: found.start()].rpartition("\n")[2]
    named = _PATH().search(line)
    return Path(named[1].strip()) if named else None


def _let_see(path: Path) -> list[str]:
    """Return how a server sees a path that is there, but not for it."""
    shown = path if path.exists() else path.parent
    if len(shown.parts) <= _SHALLOW or not shown.exists():
        return []
    return [
        f'let it see {shown}: "read": ["{shown}"] in its entry, or "write" to change it (--write {shown})'
    ]


def _let_write(server: Server, path: Path | None, folder: Path) -> list[str]:
    is_inside = path is not None and path.is_relative_to(folder)
    project = 'let it change the project: "project": "write" in its entry (--project write)'
    where = "PATH" if path is None or is_inside else str(path.parent)
    elsewhere = (
        f'let it change a folder elsewhere: "write": ["{where}"] in its entry (--write {where})'
    )
    found = [project] if (path is None or is_inside) and server.project != "write" else []
    return [*found, *([] if is_inside else [elsewhere])]
