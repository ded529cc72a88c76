"""Commands that are known to write or to need the network: the person is asked before they run, not after they were stopped.

Nothing depends on this table being whole: what it does not name runs with the project read-only, and is asked about once it
was stopped. So it names what is common, and by plain words alone.
"""

from collections.abc import Iterator

from ybs.security.commands.command import Command
from ybs.security.commands.options import git_verb, operands_of
from ybs.security.commands.wrappers import Reading

_NOWHERE = ("/dev/", "/tmp/", "/var/tmp/", "&")  # noqa: S108 - the sandbox has its own
#: Programs that write whatever their words are.
_WRITERS = frozenset(
    ("mkdir", "touch", "cp", "mv", "rm", "rmdir", "ln", "chmod", "chown", "chgrp", "install", "truncate", "dd", "patch")
) | frozenset(
    ("rsync", "unzip", "zip", "gzip", "gunzip", "bzip2", "xz", "unxz", "make", "gmake", "cmake", "ninja", "gradle")
) | {"gradlew", "mvn", "mvnw", "virtualenv", "tox", "nox", "alembic", "isort", "gofmt", "rustfmt", "cookiecutter"}  # fmt: skip
#: Programs that talk to other machines.
_REACHING = frozenset({"curl", "wget", "ssh", "scp", "sftp", "ping", "dig", "nslookup", "gh", "glab", "ftp", "telnet"})  # fmt: skip
#: Programs that write with one of these verbs.
_VERBS = {
    "git": "add am apply bisect checkout cherry-pick clean clone commit fetch gc init merge mv pull push rebase reset"
    " restore revert rm submodule switch update-index worktree",
    "npm": "install i ci add remove uninstall update init link dedupe publish audit version",
    "pnpm": "install i add remove update init link publish",
    "yarn": "install add remove upgrade init link publish",
    "bun": "install add remove update init",
    "pip": "install uninstall download",
    "pip3": "install uninstall download",
    "uv": "add remove sync lock venv init pip publish build",
    "poetry": "install add remove update lock init build publish new",
    "cargo": "add build run install new init fix update remove publish clean bench",
    "go": "get install generate mod build run",
    "docker": "build run compose push pull rm start stop exec",
    "podman": "build run compose push pull rm start stop exec",
    "terraform": "apply init destroy",
    "bundle": "install add update init",
    "composer": "install require update remove",
    "dotnet": "build restore add new publish run",
    "apt": "install update upgrade",
    "apt-get": "install update upgrade",
    "brew": "install update upgrade",
}
_GIT = "writes to .git, which is read-only in the sandbox"
#: Of git's verbs those that write elsewhere.
_NOT_IN_GIT = frozenset(("apply", "clean", "clone", "init"))
#: Programs that write with one of these options.
_WITH_OPTION = {
    **dict.fromkeys(("sed", "gsed", "perl", "yq", "ruby"), ("-i", "--in-place", "--inplace")),
    **dict.fromkeys(("tar", "bsdtar"), ("-x", "--extract", "--get")),
    **dict.fromkeys(("prettier", "biome"), ("--write", "-w")),
    **dict.fromkeys(("eslint", "ruff", "clippy"), ("--fix",)),
    "find": ("-delete",),
    "sort": ("-o", "--output"),
}
#: Formatters, which write unless one of these is said.
_FORMATTERS = {
    "black": ("--check", "--diff"),
    "ruff format": ("--check", "--diff"),
    "cargo fmt": ("--check",),
}


def writes(reading: Reading) -> str:
    """Say which command is known to write or to need the network; nothing where none is known to."""
    reasons = [reason for run in reading.runs for reason in _reasons(run)]
    return next(filter(needs_git, reasons), next(iter(reasons), ""))


def needs_git(reason: str) -> bool:
    """Return whether what `writes` said is that the command writes in git's folder."""
    return reason.endswith(_GIT)


def _reasons(run: Command) -> Iterator[str]:
    words = run.words
    yield from (
        f"it writes to {target}" for target in run.targets if not target.startswith(_NOWHERE)
    )
    if not words:
        return
    name, operands = words[0], operands_of(words)
    if name in _REACHING:
        yield f"{name} needs the network"
    elif name in _WRITERS and not {"--version", "--help", "-n", "--dry-run"} & set(words):
        yield f"{name} changes files"
    elif name == "tee" and any(not each.startswith(_NOWHERE) for each in operands):
        yield "tee writes to a file"
    elif _has_option(words, _WITH_OPTION.get(name, ())):
        yield f"{name} changes files in this way"
    verb = words[git_verb(words)] if name == "git" and git_verb(words) < len(words) else ""
    verb = verb or next(iter(operands), "")
    if verb in _VERBS.get(name, "").split() or (name == "git" and _changes_names(verb, operands)):
        is_of_git = name == "git" and verb not in _NOT_IN_GIT
        yield f"{name} {verb} {_GIT}" if is_of_git else f"{name} {verb} changes something"
    if (checks := _FORMATTERS.get(f"{name} {verb}") or _FORMATTERS.get(name)) and not (
        set(checks) & set(words)
    ):
        yield f"{name} rewrites files"


def _changes_names(verb: str, operands: list[str]) -> bool:
    """Return whether git makes or removes a name: `git branch` lists, `git branch x` makes one."""
    rest = operands[1:]
    if verb == "config":
        return len(rest) > 1
    if verb == "stash":
        return not rest or rest[0] not in ("list", "show")
    return verb in ("branch", "tag", "remote") and bool(rest) and rest[0] not in ("show", "-v")


def _has_option(words: list[str], options: tuple[str, ...]) -> bool:
    if words[0] in ("tar", "bsdtar") and len(words) > 1:  # its letters may stand without a dash
        words = [words[0], f"-{words[1].lstrip('-')}", *words[2:]]
    short = {option[1] for option in options if len(option) == 2 and option[0] == "-"}
    for word in words[1:]:
        if word in options or word.partition("=")[0] in options:
            return True
        is_cluster = word[:1] == "-" and word[1:2] not in ("-", "")
        if is_cluster and not short.isdisjoint(word[1:4]):
            return True
    return False
