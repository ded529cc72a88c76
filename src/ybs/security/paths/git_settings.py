"""The parts of a project that the person's own git settings name: hooks, included settings, programs for files.

They run at the person's next commit, so the sandbox holds them and file tools ask. Settings are read as text, without git
(https://git-scm.com/docs/git-config#_syntax), once for each state of a file.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from stat import S_ISREG

from ybs.config.host import Host
from ybs.core.lazy import lazy
from ybs.security.paths.opening import read_beginning

_MOST_BYTES = 1_000_000
_MOST_FILES = 50
_SECTION = re.compile(r'\s*\[\s*([^\s\]"]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\](.*)')
_ENTRY = re.compile(r"\s*([A-Za-z][A-Za-z0-9-]*)\s*(?:=(.*)|(?:[#;].*)?)\Z", re.DOTALL)
#: Keys whose value is a path, then those whose value is a command, which may name a file of the project.
_HOOKS = "core.hookspath"
_PATHS = frozenset({_HOOKS, "init.templatedir"})
_INCLUDES = frozenset({"include.path", "includeif.path"})
_COMMANDS = frozenset(
    {"core.fsmonitor", "core.editor", "core.pager", "core.sshcommand", "core.askpass"}
    | {"core.gitproxy", "sequence.editor", "gpg.program", "credential.helper", "diff.external"}
    | {"diff.textconv", "diff.command", "merge.driver", "filter.clean", "filter.smudge"}
    | {"filter.process", "interactive.difffilter", "mergetool.cmd", "difftool.cmd"}
    | {"trailer.command", "trailer.cmd", "core.alternaterefscommand", "gpg.defaultkeycommand"}
    | {"remote.receivepack", "remote.uploadpack", "submodule.update", "tar.command", "imap.tunnel"}
    | {"man.cmd", "man.path", "browser.cmd", "browser.path", "mergetool.path", "difftool.path"}
    | {"guitool.cmd", "instaweb.httpd", "lfs.path", "lfs.clean", "sendemail.smtpserver"}
    | {"sendemail.tocmd", "sendemail.cccmd", "sendemail.headercmd"}
)
#: Variables of git that are such commands.
_VARIABLES = (
    *("GIT_SSH", "GIT_SSH_COMMAND", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_PAGER", "GIT_ASKPASS"),
    *("GIT_EXTERNAL_DIFF", "GIT_PROXY_COMMAND", "SSH_ASKPASS", "EDITOR", "VISUAL", "PAGER"),
)  # fmt: skip
_VARIABLE = "variable"
#: Settings of a repository that start no program, name no file, lead nowhere else, and give a command no other branches to push, to
#: overwrite or to delete than its words say. Those of addresses and names of remotes are looked at.
_ADDRESSES, _REMOTES = ("remote.url", "remote.pushurl"), ("branch.remote", "branch.pushremote", "remote.pushdefault")  # fmt: skip
_PLAIN = lazy(
    r"(?:branch\.(?!mergeoptions=|rebase=)|(?:branch|pull)\.rebase=(?i:true|false|merges)\Z|advice\.|color\.|column\.|gui\.|index\.|maintenance\.|pack\.|rerere\.|status\.|user\."
    r"|core\.(?:autocrlf|bare|checkstat|commitgraph|compression|eol|filemode|hidedotfiles|ignorecase|logallrefupdates|longpaths|multipackindex"
    r"|precomposeunicode|preloadindex|quotepath|repositoryformatversion|safecrlf|sharedrepository|sparsecheckout|sparsecheckoutcone|symlinks"
    r"|trustctime|untrackedcache|whitespace)=|core\.fsmonitor=(?i:true|false)\Z|(?:commit|tag)\.gpgsign=|credential\.username="
    r"|diff\.(?:algorithm|colormoved|renames|submodule)=|fetch\.(?:parallel|prune|writecommitgraph)="
    r"|extensions\.(?:compatobjectformat|objectformat|partialclone|preciousobjects|refstorage|relativeworktrees|worktreeconfig)="
    r"|gc\.auto\w*=|gpg\.format=|http\.(?:postbuffer|version)=|lfs\.(?:access|locksverify|repositoryformatversion)=|log\.(?:date|decorate)="
    r"|merge\.(?:conflictstyle|ff|renamelimit|renames)=|pull\.ff=|push\.(?:autosetupremote|followtags)=|push\.default=(?i:current|nothing|simple)\Z"
    r"|rebase\.(?:autosquash|autostash|updaterefs)="
    r"|remote\.(?:gh-resolved|glab-resolved|partialclonefilter|promisor|prune|skipdefaultupdate|skipfetchall|tagopt)="
    r"|remote\.fetch=[^:]*(?::refs/remotes/.*)?\Z"
    r").*",
    re.DOTALL,
)
#: What git reaches itself or by ssh. Of a repository on this machine it would run the hooks, of `ext` or `helper` a program of that name.
PROTOCOLS = ("git", "http", "https", "ssh")
_ADDRESS = lazy(rf"(?:{'|'.join(PROTOCOLS)})://.*|(?!-)[^/:]+:(?!:|//).+")
#: Section and key in lower case, and the value; of a file's also what stands in quotes in the section.
_Entry = tuple[str, str]
_FileEntry = tuple[str, str, str]
_known: dict[str, tuple[tuple[int, ...], list[_FileEntry]]] = {}


def named_by_git(host: Host, root: str) -> Iterator[str]:
    """Yield the person's own files of settings, and the paths that settings outside of any command's reach name, in any folder; they need not exist."""
    yield from map(os.path.realpath, _persons_files(host))
    for key, path in _named(host, root):
        if key not in _INCLUDES or not os.path.isdir(path):  # noqa: PTH112
            yield path


def hook_folders(host: Host, root: str) -> list[str]:
    """Return the folders, wherever they lie, that settings and variables of git name for hooks; they need not exist."""
    return [path for key, path in _named(host, root) if key == _HOOKS]


def commands(host: Host, root: str) -> list[_Entry]:
    """Return the commands that settings and variables of git name for a repository, each behind its key."""
    return [(key, value) for key, value, _ in _settings(host, _top(root)) if _is_command(key)]


def remotes_of(files: Iterable[Path]) -> set[str]:
    """Return the names of the remotes in a repository's own settings.

    Raises ValueError where a setting is none of those that are known to start no program and to lead nowhere else.
    """
    names, used = set[str](), set[str]()
    for file in files:
        entries = _entries(str(file)) or [("", "", "")]
        for key, value, name in entries:
            if key in _ADDRESSES and _ADDRESS().fullmatch(value):
                names.add(name)
            elif key in _REMOTES:
                used.add(value)
            elif not _PLAIN().fullmatch(f"{key}={value}"):
                raise ValueError(f"{file.name} has {key or 'more than ybs understands'}")
    if others := used - names - {"."}:
        raise ValueError(f"a branch's remote is {min(others)}, which has no name")
    return names


def _is_command(key: str) -> bool:
    return key in (*_COMMANDS, _VARIABLE) or key.startswith(("hook.", "pager."))


def _named(host: Host, root: str) -> Iterator[_Entry]:
    """Yield keys and the paths that they name."""
    top = _top(root)
    for key, value, folder in _settings(host, top):
        if not value:
            continue
        if key in _INCLUDES or key in _PATHS:
            yield key, _resolved(host, value, folder if key in _INCLUDES else top)
        elif _is_command(key) or key.startswith("alias."):
            words = (
                _resolved(host, word, top) for word in re.split(r"[\s'\"!;&|]+", value) if word
            )
            yield from ((key, path) for path in words if os.path.isfile(path))  # noqa: PTH113


def _settings(host: Host, top: str) -> Iterator[tuple[str, str, str]]:
    """Yield keys, values and the folder of the file that they stand in, with what files include."""
    yield from ((key, value, top) for key, value in _in_variables(host.environ))
    pending, seen = [*_files(host, top)], set[str]()
    while pending and len(seen) < _MOST_FILES:
        file = pending.pop()
        folder = os.path.dirname(file)  # noqa: PTH120 - texts throughout
        if file not in seen:
            seen.add(file)
            entries = _entries(file)
            pending += (
                _resolved(host, value, folder) for key, value, _ in entries if key in _INCLUDES
            )
            yield from ((key, value, folder) for key, value, _ in entries)


def _in_variables(environ: Mapping[str, str]) -> Iterator[_Entry]:
    """Yield the settings that variables hold, of which some are numbered; files of settings count as included."""
    number = 0
    for name in _VARIABLES:
        if value := environ.get(name):
            yield _VARIABLE, value
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        if value := environ.get(name):
            yield "include.path", value
    while key := environ.get(f"GIT_CONFIG_KEY_{number}"):
        yield key.lower(), environ.get(f"GIT_CONFIG_VALUE_{number}", "")
        number += 1


def _top(root: str) -> str:
    """Return the folder of the repository around the root, or the root."""
    above = (str(folder) for folder in (Path(root), *Path(root).parents))
    return next((folder for folder in above if os.path.lexists(f"{folder}/.git")), root)


def _files(host: Host, top: str) -> Iterator[str]:
    """Yield the files that git reads for a repository, the person's and the machine's first."""
    yield from _persons_files(host)
    folder = f"{top}/.git"
    if pointer := _said(folder).removeprefix("gitdir:").strip():  # a worktree or submodule
        folder = _resolved(host, pointer, top)
    common = _said(f"{folder}/commondir").strip()
    common = _resolved(host, common, folder) if common else folder
    yield from (f"{folder}/config.worktree", f"{common}/config")


def _persons_files(host: Host) -> Iterator[str]:
    home = str(host.home)
    config = host.environ.get("XDG_CONFIG_HOME", "")
    yield host.environ.get("GIT_CONFIG_SYSTEM", "/etc/gitconfig")
    yield host.environ.get("GIT_CONFIG_GLOBAL", f"{home}/.gitconfig")
    yield f"{config if config.startswith('/') else f'{home}/.config'}/git/config"


def _said(file: str) -> str:
    """Return the content of a short file; empty if it is a folder, a link, or missing."""
    try:
        if not S_ISREG(os.lstat(file).st_mode):  # mostly: a folder, or nothing
            return ""
        return os.fsdecode(read_beginning(file, _MOST_BYTES) or b"")
    except (OSError, ValueError):
        return ""


def _resolved(host: Host, value: str, folder: str) -> str:
    if value.startswith("~/"):
        value = f"{host.home}/{value[2:]}"
    return os.path.realpath(value if value.startswith("/") else f"{folder}/{value}")


def _entries(file: str) -> list[_FileEntry]:
    """Return the content of a file; empty if it is missing or cannot be read."""
    try:
        status = os.stat(file)  # noqa: PTH116
        stamp = (
            status.st_dev,
            status.st_ino,
            status.st_size,
            status.st_mtime_ns,
            status.st_ctime_ns,
        )
        if (known := _known.get(file)) is not None and known[0] == stamp:
            return known[1]
        data = read_beginning(os.path.realpath(file), _MOST_BYTES)
    except (OSError, ValueError):
        return []
    entries = list(_parsed(os.fsdecode(data or b"")))
    _known[file] = (stamp, entries)
    return entries


def _parsed(text: str) -> Iterator[_FileEntry]:
    """Yield the entries of a file, and one without a key for each line that is understood otherwise here than by git."""
    section = name = ""
    text = text.replace("\r\n", "\n")
    if "\\\n" in text or len(text) >= _MOST_BYTES:  # a comment does not go on in the next line
        yield "", "", ""
    for line in text.replace("\\\n", "").split("\n"):
        rest = line
        while begun := _SECTION.match(rest):
            section, _, name = begun[1].lower().partition(".")
            name, rest = begun[2] or name, begun[3]
        if entry := _ENTRY.match(rest):
            value = "true" if entry[2] is None else _value(entry[2])
            yield f"{section}.{entry[1].lower()}", value, name
        elif rest.strip()[:1] not in ("", "#", ";"):
            yield "", "", ""


def _value(text: str) -> str:
    r"""Return a value without its quotes, escapes and comment."""
    said: list[str] = []
    is_quoted = False
    pieces = iter(text.strip())
    for sign in pieces:
        if sign == "\\":
            said.append(next(pieces, ""))
        elif sign == '"':
            is_quoted = not is_quoted
        elif sign in "#;" and not is_quoted:
            break
        else:
            said.append(sign)
    return "".join(said).strip()
