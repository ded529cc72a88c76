"""Hardening of ybs's own git: the allowed commands, the overrides of a repository's settings, its environment.

https://git-scm.com/docs/git-config
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ybs.core.errors import ToolError
from ybs.security.launcher import environ_away
from ybs.security.paths.git_keys import is_harmless
from ybs.security.paths.path_text import above
from ybs.security.paths.repository import Repository
from ybs.security.sandbox.launch import SandboxView, Starter
from ybs.security.sandbox.places import lies_in

if TYPE_CHECKING:
    from ybs.security.paths.roots import Roots

#: Whatever the repository says, this holds. Large files live elsewhere with the filter lfs, so without it their place-holders would be
#: overwritten.
_SETTINGS = """
    core.hooksPath=/dev/null core.fsmonitor=false core.pager=cat core.editor=false sequence.editor=false
    core.askPass=false core.sshCommand=false core.gitProxy=false core.alternateRefsCommand=false
    core.attributesFile=/dev/null core.excludesFile=/dev/null core.commentChar=#
    i18n.commitEncoding=UTF-8 i18n.logOutputEncoding=UTF-8
    diff.external= diff.ignoreSubmodules=all diff.submodule=short diff.noprefix=false diff.mnemonicPrefix=false
    status.submoduleSummary=false submodule.recurse=false interactive.diffFilter=
    protocol.allow=never protocol.file.allow=never protocol.ext.allow=never safe.bareRepository=explicit
    commit.gpgSign=false tag.gpgSign=false log.showSignature=false gpg.format=openpgp gpg.program=false
    gpg.openpgp.program=false gpg.x509.program=false gpg.ssh.program=false gpg.ssh.defaultKeyCommand=
    credential.helper=
    gc.auto=0 maintenance.auto=false rerere.enabled=false color.ui=false
    filter.lfs.required=true filter.lfs.clean=false filter.lfs.smudge=false filter.lfs.process=
"""
#: Their keys, as git lists them.
_HELD = frozenset(each.partition("=")[0].lower() for each in _SETTINGS.split())
OPTIONS = ("--no-pager", "--no-optional-locks", "--literal-pathspecs")
_DIFF = ("--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=all")
#: The commands, and what each gets before its own arguments.
_COMMANDS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ["branch", "check-attr", "checkout-index", "ls-files", "ls-tree", "read-tree", "rev-parse"],
        (),
    ),
    **dict.fromkeys(["symbolic-ref", "update-index", "update-ref", "write-tree"], ()),
    "commit-tree": ("--no-gpg-sign",),
    "diff": _DIFF,
    "log": ("--no-ext-diff", "--no-textconv", "--no-color"),
    "status": ("--ignore-submodules=all",),
}
#: What `Git.commit` does one by one, for a shell: "$@" is git with all its options.
#: Where YBS_STATUS is set, that is what `git status` must say; else nothing is done, and nothing printed.
COMMIT = """set -e
if [ "$YBS_STATUS" ]; then
said=$("$@" status --ignore-submodules=all --porcelain=v1 --branch --no-renames --untracked-files=all) || exit 0
[ "$said" = "$YBS_STATUS" ] || exit 0
fi
"$@" update-index --add --remove --replace -z --stdin
tree=$("$@" write-tree)
new=$(printf %s "$YBS_MESSAGE" | "$@" commit-tree --no-gpg-sign ${YBS_PARENT:+-p "$YBS_PARENT"} "$tree")
"$@" update-ref -m "$YBS_TITLE" HEAD "$new" "$YBS_PARENT"
echo "$new"
"""
#: They write in git's own folder.
WRITE = (
    *("branch", "checkout-index", "commit-tree", "read-tree"),
    *("symbolic-ref", "update-index", "update-ref", "write-tree"),
)
#: They look at the files of the work tree; the others do not even see them.
LOOKS_AT_FILES = ("check-attr", "diff", "ls-files", "read-tree", "status", "update-index")
#: They write who did it and when, in the commit or in the log of a branch.
SIGNED = ("branch", "commit-tree", "symbolic-ref", "update-ref")
#: They leave out what the person's own list of ignored files names.
HEED_IGNORED = ("status", "ls-files")
#: Options that would bring a program back, ask, or write elsewhere; git takes abbreviations, too.
_FORBIDDEN = """
    --ext-diff --textconv --output --gpg-sign --edit --interactive --patch --pathspec-from-file --template --prefix
    --show-signature --recurse-submodules --submodule --ignore-submodules --exec-path --strategy --trailer --index-output
"""
_FORBIDDEN_LETTERS = "SOeipsX"
#: Their short options are others, and harmless.
_PLUMBING = (
    *("commit-tree", "update-index", "update-ref", "read-tree", "write-tree", "rev-parse"),
    *("checkout-index", "symbolic-ref"),
)
#: What holds for clones of what is elsewhere, whatever the person's settings say. Filters are the person's, and none of them is there.
_CLONING = """
    core.hooksPath=/dev/null core.fsmonitor=false core.askPass=false core.sshCommand=false core.gitProxy=false
    core.attributesFile=/dev/null credential.helper= gc.auto=0 maintenance.auto=false submodule.recurse=false
    protocol.allow=never protocol.https.allow=always protocol.file.allow=always
"""
#: By the person's keys.
_BY_SSH = ("core.sshCommand=ssh -oBatchMode=yes", "protocol.ssh.allow=always")
_KEPT = "PATH HTTPS_PROXY https_proxy ALL_PROXY NO_PROXY no_proxy SSL_CERT_FILE SSH_AUTH_SOCK"


class GitError(ToolError):
    """Git could not do it; the text says why."""


def overrides(settings: Iterable[str]) -> list[str]:
    """Return `-c` options for all that holds, and for each of a repository's own settings that is not known to be harmless.

    `settings` are the keys of those. Raises GitError for what cannot be overridden.
    """
    found = dict[str, str]()
    for key in settings:
        section, _, rest = key.partition(".")
        name, _, last = rest.rpartition(".")
        if section in ("include", "includeif"):
            raise GitError(
                f"the repository's settings include other files ({key}); use git yourself"
            )
        if key in _HELD or is_harmless(f"{section}.{last}"):
            continue
        if "=" in key or not key.isprintable():
            raise GitError(f"the repository's settings have an odd name in them ({key!r})")
        found[key] = "false"
        if section == "filter":
            # Git starts nothing, and fails on the first file that the filter is for rather than write it unfiltered.
            found |= {f"filter.{name}.process": "", f"filter.{name}.required": "true"}
    settings = (*_SETTINGS.split(), *(f"{key}={value}" for key, value in found.items()))
    return [word for setting in settings for word in ("-c", setting)]


def cloning(git: str, *arguments: str, by_ssh: bool = False) -> list[str]:
    """Return the command of a git that fetches from elsewhere, and runs no program that a repository names."""
    settings = (*_CLONING.split(), *(_BY_SSH if by_ssh else ()))
    return [git, *(word for setting in settings for word in ("-c", setting)), *arguments]


def cloning_environment(given: Mapping[str, str], home: str) -> dict[str, str]:
    """Return the environment of such a git: nothing of the person's settings of git, and of their variables what leads to the network and to their keys of ssh."""
    return environ_away({name: given[name] for name in _KEPT.split() if name in given}) | {
        "HOME": home,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C.UTF-8",
    }


def environment(repository: Repository | None, more: Mapping[str, str]) -> dict[str, str]:
    """Make git's environment anew: nothing of the person's, and no looking for a repository."""
    environ = {
        "PATH": "/usr/bin:/bin",
        "HOME": "/nonexistent",  # so that a setting with ~ in it is not an error
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_ALLOW_PROTOCOL": "",
        "GIT_ASKPASS": "false",
        "GIT_EDITOR": "false",
        "GIT_SEQUENCE_EDITOR": "false",
        "GIT_PAGER": "cat",
        "GIT_SSH_COMMAND": "false",
        "GIT_DIR": "/dev/null",
    }
    if repository is not None:
        environ |= repository.variables
    environ |= more
    return {name: value for name, value in environ.items() if value or name == "GIT_ALLOW_PROTOCOL"}


def words_for(command: str, arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the command with what stands before its arguments. Raises GitError for what git is not run for."""
    before = _COMMANDS.get(command)
    if before is None:
        raise GitError(f"git {command} is not among what ybs's own git does")
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    for word in options:
        if "\0" in word or _is_forbidden(command, word):
            raise GitError(f"{word!r} is not among what ybs's own git does")
    return (command, *before, *arguments)


def _is_forbidden(command: str, word: str) -> bool:
    if word.startswith("--"):
        name = word.partition("=")[0]
        return any(bad.startswith(name) or name.startswith(bad) for bad in _FORBIDDEN.split())
    is_short = word.startswith("-") and command not in _PLUMBING
    return is_short and any(letter in word for letter in _FORBIDDEN_LETTERS)


def plain_message(text: str) -> str:
    """Leave out of a commit's message what acts on a terminal or hides from the eye."""
    from ybs.security.unicode import replace_hidden

    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\t", "    ")
    text = text.encode("utf-8", "ignore").decode()
    return replace_hidden(text, lambda _: "", "[\x00-\x09\x0b-\x1f\x7f-\x9f]").strip()


_TELL_OF_FILES = (".gitignore", ".gitattributes")


class GitSandbox:
    """What the git of a session may see. Where the person turned the sandbox of commands off, git is started as it is, too."""

    def __init__(self, roots: "Roots | None" = None, commands: Starter | None = None) -> None:
        self._roots, self._commands = roots, commands or Starter()

    def view(
        self, repository: Repository, folder: Path, command: str, also: Sequence[str] = ()
    ) -> SandboxView | None:
        """Return what a command of git sees, started for a folder; `also` are more files. None: all that there is.

        Of the work tree that is what tools may work in: only those folders, without blocked paths, and the lists of
        ignored files and attributes above them.
        """
        if self._commands.is_off:
            return None
        top = str(repository.work_tree)
        git_folders = {str(repository.git_folder), str(repository.common_folder)}
        shown: list[str] = []
        if command in LOOKS_AT_FILES:
            shown = [path for root in self._folders(folder) for path in _shown(root, top)]
        return SandboxView(
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
        return self._commands.is_off or any(lies_in(path, root) for root in self._folders(folder))

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
        for each in above(root, top):
            yield from filter(_is_file, (f"{each}/{name}" for name in _TELL_OF_FILES))


def _is_file(path: str) -> bool:
    return os.path.isfile(path) and not os.path.islink(path)  # noqa: PTH113, PTH114 - texts throughout
