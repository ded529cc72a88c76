"""The parts of a project that settings of git name: hooks, included settings, programs for files; the person's own and those of its repositories.

They run at the person's next commit, so the sandbox holds them and file tools ask. Settings are read as text, without git
(https://git-scm.com/docs/git-config#_syntax), once for each state of a file.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from stat import S_ISREG

from msgspec import Struct

from ybs.config.host import Host
from ybs.core.lazy import lazy
from ybs.security.paths.folder_index import listed, names_in
from ybs.security.paths.opening import read_beginning

_MOST_BYTES = 1_000_000
_MOST_FILES = 50
_LONGEST_COMMAND = 5_000
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
_OF_TREE = "config.worktree"
#: Stands for a key where git reads on.
_MORE = "more than ybs understands"
#: Variables of git that are such commands.
_VARIABLES = (
    *("GIT_SSH", "GIT_SSH_COMMAND", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_PAGER", "GIT_ASKPASS"),
    *("GIT_EXTERNAL_DIFF", "GIT_PROXY_COMMAND", "SSH_ASKPASS", "EDITOR", "VISUAL", "PAGER"),
)  # fmt: skip
_VARIABLE = "variable"
_WORD = re.compile(r"\w[\w.-]*", re.ASCII)
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
    r"|remote\.(?:gh|glab)-resolved=base\Z|remote\.(?:partialclonefilter|promisor|prune|skipdefaultupdate|skipfetchall|tagopt)="
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
#: Key, value, and the folder of the file that says so; empty for a variable.
_Placed = tuple[str, str, str]


class Folders(Struct, frozen=True):
    """The folder of a repository, the names of files and links in it, and the folder that it shares with other work trees (mostly the same)."""

    own: str
    common: str
    names: frozenset[str]
    links: frozenset[str]


class _File(Struct, frozen=True):
    """A file in the state of its stamp: all entries, and those that may name a path."""

    stamp: tuple[int, ...]
    entries: list[_FileEntry]
    naming: list[_FileEntry]


_MISSING = _File((), [], [])
_known: dict[str, _File] = {}


def named_by_git(
    host: Host, root: str, repositories: Mapping[str, Folders] | None = None
) -> Iterator[str]:
    """Yield the person's own files of settings, and the paths that settings outside of any command's reach name, in any folder; they need not exist.

    They are those of the repository around the root, or of all that are given, each with its folders.
    """
    yield from map(os.path.realpath, _persons_files(host))
    for top, said in _said_for(host, repositories or _around(host, root)):
        for key, path in _paths(host, said, top):
            if key not in _INCLUDES or not os.path.isdir(path):  # noqa: PTH112 - texts throughout
                yield path
        yield from _in_commands(host, said, root, top)


def hook_folders(host: Host, root: str) -> list[str]:
    """Return the folders, wherever they lie, that settings and variables of git name for hooks; they need not exist."""
    said_for = _said_for(host, _around(host, root))
    named = (each for top, said in said_for for each in _paths(host, said, top))
    return [path for key, path in named if key == _HOOKS]


def commands(host: Host, root: str) -> list[_Entry]:
    """Return the commands that settings and variables of git name for a repository, each behind its key.

    Raises ValueError where they are more than is read.
    """
    said = [each for _, said in _said_for(host, _around(host, root)) for each in said]
    if any(key == _MORE or len(value) > _LONGEST_COMMAND for key, value, _ in said):
        raise ValueError(f"settings of git are {_MORE}")
    return [(key, value) for key, value, _ in said if _is_command(key)]


def folders_of(host: Host, git: str) -> Folders:
    """Return the folders of a repository: `git` is the `.git` of a work tree, or a bare repository."""
    own, (names, links) = git, listed(git)
    if not names and (said := _said(git)).startswith("gitdir:"):  # a worktree or submodule
        own = _resolved(host, said.removeprefix("gitdir:").strip(), _top(git))
        names, links = listed(own)
    common = _said(f"{own}/commondir").strip() if "commondir" in names else ""
    return Folders(own, _resolved(host, common, own) if common else own, names, links)


def _around(host: Host, root: str) -> dict[str, Folders]:
    git = git_around(root)
    return {git: folders_of(host, git)}


def remotes_of(files: Iterable[Path]) -> set[str]:
    """Return the names of the remotes in a repository's own settings.

    Raises ValueError where a setting is none of those that are known to start no program and to lead nowhere else.
    """
    names, used = set[str](), set[str]()
    for file in files:
        entries = _entries(str(file)).entries or [("", "", "")]
        for key, value, name in entries:
            if key in _ADDRESSES and _ADDRESS().fullmatch(value):
                names.add(name)
            elif key in _REMOTES:
                used.add(value)
            elif not _PLAIN().fullmatch(f"{key}={value}"):
                raise ValueError(f"{file.name} has {key or _MORE}")
    if others := used - names - {"."}:
        raise ValueError(f"a branch's remote is {min(others)}, which has no name")
    return names


def _is_command(key: str) -> bool:
    return key in (*_COMMANDS, _VARIABLE) or key.startswith(("hook.", "pager."))


def _is_naming(key: str) -> bool:
    is_path = key in _INCLUDES or key in _PATHS or key == _MORE
    return is_path or key.startswith("alias.") or _is_command(key)


def _said_for(
    host: Host, repositories: Mapping[str, Folders]
) -> Iterator[tuple[str, list[_Placed]]]:
    """Yield for each repository the folder that its relative paths hang on, and what settings say for it that names something."""
    person = list(_of_person(host))
    for git, folders in repositories.items():
        yield _top(git), [*_in_files(host, _files(folders)), *person]


def _paths(host: Host, said: Iterable[_Placed], top: str) -> Iterator[_Entry]:
    """Yield the keys whose values are paths, with these."""
    for key, value, folder in said:
        if value and key in _INCLUDES:
            yield key, _resolved(host, value, folder or top)
        elif value and key in _PATHS:
            yield key, _resolved(host, value, top)


def _in_commands(host: Host, said: Iterable[_Placed], root: str, top: str) -> Iterator[str]:
    """Yield the files in the root that commands of settings name, which git starts in the folder `top`, from there or the home folder."""
    here, at_home = names_in(top), names_in(str(host.home)) or frozenset()
    for key, value, _ in said:
        if key in _INCLUDES or key in _PATHS or not value:
            continue
        command = value.removeprefix("!")[:_LONGEST_COMMAND]
        names = _beginnings(host, command)
        if names is None or here is None or not names.isdisjoint(here | at_home):
            from ybs.trust.reach import named_in

            yield from named_in((command,), Path(root), host.home, host.environ, top)


@lru_cache(10_000)
def _beginnings(host: Host, command: str) -> frozenset[str] | None:
    """Return the names one of which has to be at the top of a repository for a command to name a file of it; None for any."""
    if _WORD.fullmatch(command):
        return frozenset((command.casefold(),))
    from ybs.trust.reach import beginnings  # with the first that has more than one

    return beginnings(command, host.home, host.environ)


def _of_person(host: Host) -> Iterator[_Placed]:
    """Yield what variables and the files of the person and of the machine say for every repository."""
    yield from ((key, value, "") for key, value in _in_variables(host.environ))
    yield from _in_files(host, _persons_files(host))


def _files(folders: Folders) -> list[str]:
    """Return the files of a repository's own settings."""
    common = f"{folders.common}/config"
    return [f"{folders.own}/{_OF_TREE}", common] if _OF_TREE in folders.names else [common]


def _in_files(host: Host, files: Iterable[str]) -> Iterator[_Placed]:
    """Yield what files and those that they include say that names something."""
    pending, seen = [*files], set[str]()
    while pending and len(seen) < _MOST_FILES:
        file = pending.pop()
        if file in seen:
            continue
        seen.add(file)
        if naming := _entries(file).naming:
            folder = os.path.dirname(file)  # noqa: PTH120 - texts throughout
            pending += (
                _resolved(host, value, folder) for key, value, _ in naming if key in _INCLUDES
            )
            yield from ((key, value, folder) for key, value, _ in naming)
    if pending:
        yield _MORE, "", ""


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


def git_around(root: str) -> str:
    """Return the `.git` of the repository around the root, or the one that it would have."""
    folder = root
    while not os.path.lexists(f"{folder}/.git"):
        folder, _, name = folder.rpartition("/")
        if not name:
            return f"{root}/.git"
    return f"{folder}/.git"


def _top(git: str) -> str:
    """Return the folder that relative paths in settings hang on."""
    return git.removesuffix("/.git")


def _persons_files(host: Host) -> Iterator[str]:
    home = str(host.home)
    config = host.environ.get("XDG_CONFIG_HOME", "")
    yield host.environ.get("GIT_CONFIG_SYSTEM", "/etc/gitconfig")
    yield host.environ.get("GIT_CONFIG_GLOBAL", f"{home}/.gitconfig")
    yield f"{config if config.startswith('/') else f'{home}/.config'}/git/config"


def _said(file: str) -> str:
    """Return the content of a short file; empty if it is a folder or missing."""
    try:
        status = os.stat(file)  # noqa: PTH116 - texts throughout
        if not S_ISREG(status.st_mode):
            return ""
        return _read(file, (status.st_dev, status.st_ino, status.st_size, status.st_ctime_ns))
    except (OSError, ValueError):
        return ""


@lru_cache(1_000)
def _read(file: str, _: tuple[int, ...]) -> str:
    """Return the content of a file in one state of it."""
    return os.fsdecode(read_beginning(os.path.realpath(file), _MOST_BYTES) or b"")


def _resolved(host: Host, value: str, folder: str) -> str:
    return os.path.realpath(_whole(host, value, folder))


def _whole(host: Host, value: str, folder: str) -> str:
    if value.startswith("~/"):
        return f"{host.home}/{value[2:]}"
    value = os.path.expanduser(value) if value.startswith("~") else value  # noqa: PTH111 - a text
    return value if value.startswith("/") else f"{folder}/{value}"


def _entries(file: str) -> _File:
    """Return the content of a file; empty if it is missing or cannot be read."""
    try:
        status = os.stat(file)  # noqa: PTH116 - texts throughout
        stamp = (
            status.st_dev,
            status.st_ino,
            status.st_size,
            status.st_mtime_ns,
            status.st_ctime_ns,
        )
        if (known := _known.get(file)) is not None and known.stamp == stamp:
            return known
        data = read_beginning(os.path.realpath(file), _MOST_BYTES) or b""
    except (OSError, ValueError):
        return _MISSING
    entries = [(_MORE, "", "")] * (len(data) == _MOST_BYTES)
    entries += _parsed(os.fsdecode(data.removeprefix(b"\xef\xbb\xbf")))  # as git passes it over
    found = _known[file] = _File(stamp, entries, [each for each in entries if _is_naming(each[0])])
    return found


def _parsed(text: str) -> Iterator[_FileEntry]:
    """Yield the entries of a file, and one without a key for each line that is understood otherwise here than by git."""
    section = name = ""
    text = text.replace("\r\n", "\n")
    if "\\\n" in text:  # a comment does not go on in the next line
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
