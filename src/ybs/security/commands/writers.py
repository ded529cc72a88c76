"""Commands that are known to write or to need the network: the person is asked before they run, not after they were stopped.

Which operands of a program it removes or writes over stands here alone (`written_over`). Nothing depends on this table being whole: what it does not name runs with the project read-only, and is asked about once it
was stopped. So it names what is common, and by plain words alone.
"""

import re
from collections.abc import Iterator, Mapping
from posixpath import basename
from typing import Final

from ybs.core.lazy import lazy
from ybs.security.commands.command import Command, words_in
from ybs.security.commands.options import git_verb, operands_of, takes_targets, values_of
from ybs.security.commands.wrappers import Reading

#: How files begin that are not the project's, or are only known when the command runs.
_ELSEWHERE = ("/dev/", "/tmp/", "/var/tmp/", "&", "$", "`")  # noqa: S108 - the sandbox has its own
#: Programs that delete what their operands name, those that remove or write over all of them, and those that write to the last one.
DELETERS = words_in("rm rmdir unlink shred srm trash")
_OVER_ALL = DELETERS | words_in("mv truncate tee")
_OVER_LAST = words_in("cp install ln rsync")
#: Options whose value a program writes to; the folder of the first ones takes what the operands name.
_INTO: Final[Mapping[str, str]] = dict.fromkeys(
    ("cp", "mv", "install", "ln"), "-t --target-directory"
)
_TO = {**dict.fromkeys(("sort", "curl"), "-o --output"), "wget": "-O --output-document"}
#: Programs that write over their operands with one of these words.
_IN_PLACE = dict.fromkeys(("sed", "gsed", "perl", "yq", "ruby"), r"-[a-z0-9E]{0,4}i|--in-?place")
#: All of them but those of `_TO`, which stand in texts of other uses.
OVERWRITING = _OVER_ALL | _OVER_LAST | _IN_PLACE.keys()
#: Programs that write whatever their words are.
_WRITERS = (DELETERS | _OVER_LAST) | words_in("mkdir touch mv chmod chown chgrp truncate patch make gmake cmake ninja gradle gradlew mvn mvnw virtualenv tox nox alembic black isort rustfmt cookiecutter")  # fmt: skip
#: Programs that talk to whom their words say, and verbs with which those that install do.
REACHING = words_in("curl wget aria2c nc ncat netcat socat telnet ftp lftp ssh sftp scp rsync ping dig host nslookup gh glab")  # fmt: skip
_INSTALLERS = words_in("pip pip3 npm pnpm yarn bun poetry bundle composer apt apt-get brew")
_FETCHING = words_in("install i ci add update upgrade download publish audit require")
_ON_THIS_MACHINE = lazy(r"(?:\w+://)?(?:localhost|127(?:\.\d+){3}|\[::1\])(?:[:/?]|$)")
#: Programs that write with one of these verbs.
_VERBS = {
    "git": "add am apply checkout cherry-pick clean clone commit fetch gc init merge mv pull push rebase reset restore"
    " revert rm switch update-index",
    "npm": "install i ci add remove uninstall update init link dedupe publish audit version",
    "pnpm": "install i add remove update init link publish",
    "yarn": "install add remove upgrade init link publish",
    "bun": "install add remove update init",
    **dict.fromkeys(("pip", "pip3"), "install uninstall download"),
    "uv": "add remove sync lock venv init pip publish build",
    "poetry": "install add remove update lock init build publish new",
    "cargo": "add build run install new init fix fmt update remove publish clean bench",
    "go": "get install generate mod build run",
    **dict.fromkeys(("docker", "podman"), "build run compose push pull rm start stop exec"),
    "terraform": "apply init destroy",
    "bundle": "install add update init",
    "composer": "install require update remove",
    "dotnet": "build restore add new publish run",
    **dict.fromkeys(("apt", "apt-get", "brew"), "install update upgrade"),
    "ruff": "format",
}
#: Options with which they only look, and targets (`make test`) that seldom write more than caches.
_LOOKING = words_in("--version --help -V -n -nd --dry-run --check --check-only --diff")
_TESTING = words_in("test tests check lint help")
#: Verbs of git that write with one of these words, and words with which `git branch` and `git tag` list.
_GIT_WORDS = {
    "bisect": "start good bad new old skip reset run replay",
    "remote": "add remove rm rename set-url set-head set-branches prune update",
    "stash": "push save pop apply drop clear branch store",
    "submodule": "add init update deinit sync set-url set-branch",
    "worktree": "add remove move prune lock unlock repair",
}
_LISTING = re.compile(r"-l$|--(?:list|(?:no-)?contains|(?:no-)?merged|points-at|sort|format)\b")
#: How the reason ends for what no command in the sandbox can do, and for what none can do without the network.
IN_GIT = "writes to .git, which is read-only in the sandbox"
_NEEDS_NETWORK = "needs the network"
#: Of git's verbs those that write elsewhere.
_NOT_IN_GIT = words_in("apply clean clone init")
#: Programs that write with one of these words.
_WITH_WORD = {
    **_IN_PLACE,
    **dict.fromkeys(("tar", "bsdtar"), r"-?[a-z]{0,3}x(?![a-zA-Z]*O)[a-zA-Z]*$|--extract|--get"),
    **dict.fromkeys(("prettier", "biome"), r"--write|-w"),
    **dict.fromkeys(("eslint", "ruff", "clippy"), r"--fix$"),
    **dict.fromkeys(("gofmt", "goimports"), r"-w"),
    "tee": rf"(?!-|{'|'.join(map(re.escape, _ELSEWHERE))})",
    "sort": r"-[a-z]{0,3}o|--output",
}


def written_over(run: Command) -> Iterator[str]:
    """Yield the files and folders that a command removes or writes over, as its words name them, and where in a folder something is put."""
    yield from run.targets
    # `git rm` and `git mv` do what `rm` and `mv` do.
    words = run.words[git_verb(run.words) :] if run.words[:1] == ["git"] else run.words
    name, operands = "".join(words[:1]), operands_of(words or [""])
    places = values_of(words, _INTO.get(name, ""))
    yield from places or values_of(words, _TO.get(name, ""))
    is_in_place = name in _IN_PLACE and any(re.match(_IN_PLACE[name], each) for each in words[1:])
    if name in _OVER_ALL or is_in_place:
        yield from operands
    if name == "mv" or name in _OVER_LAST:
        sources = operands if places else operands[:-1]
        places = places or operands[-1:] * bool(sources)
        yield from places
        yield from (f"{place}/{basename(each.rstrip('/'))}" for place in places for each in sources)


def writes(reading: Reading) -> list[str]:
    """Say which commands are known to write or to need the network, first what cannot be done in the sandbox."""
    reasons = [reason for run in reading.runs for reason in _reasons(run)]
    return sorted(reasons, key=lambda reason: not reason.endswith(IN_GIT))


def needs_network(reading: Reading) -> bool:
    """Return whether a part is known to be of no use without the network."""
    return any(reason.endswith(_NEEDS_NETWORK) for reason in writes(reading))


def _reasons(run: Command) -> Iterator[str]:
    yield from (f"it writes to {each}" for each in run.targets if not each.startswith(_ELSEWHERE))
    words, operands = run.words, operands_of(run.words)
    name, only_looks = "".join(words[:1]), not _LOOKING.isdisjoint(words)
    only_looks |= bool(words) and takes_targets(words) and not _TESTING.isdisjoint(operands)
    if name in REACHING and name not in _WRITERS and not only_looks:
        is_here = any(map(_ON_THIS_MACHINE().match, operands))
        yield f"{name} " + ("reaches a server on this machine" if is_here else _NEEDS_NETWORK)
    elif name in _WRITERS and not (only_looks or _is_elsewhere(run, operands)):
        yield f"{name} changes files"
    elif name in _WITH_WORD and any(re.match(_WITH_WORD[name], word) for word in words[1:]):
        yield f"{name} changes files in this way"
    verb = "".join(words[git_verb(words) :][:1] if name == "git" else operands[:1])
    is_listed = verb in _VERBS.get(name, "").split()
    if name == "git" and verb not in _NOT_IN_GIT:
        if is_listed or _changes_names(verb, words, operands):
            yield f"git {verb} {IN_GIT}"
    elif is_listed and not only_looks:
        is_fetching = name in _INSTALLERS and verb in _FETCHING
        yield f"{name} {verb} {_NEEDS_NETWORK if is_fetching else 'changes something'}"


def _is_elsewhere(run: Command, operands: list[str]) -> bool:
    """Return whether all that a program would write lies outside of the project."""
    written = [*written_over(run)] if run.words[0] in OVERWRITING else operands
    return bool(written) and all(each.startswith(_ELSEWHERE) for each in written)


def _changes_names(verb: str, words: list[str], operands: list[str]) -> bool:
    """Return whether git makes or removes a name: `git branch` lists, `git branch x` makes one."""
    first, *rest = [*operands[1:], ""]
    if verb == "config":
        return len(rest) > 1 and first not in ("get", "list")
    if verb in ("branch", "tag"):
        return bool(first) and not any(map(_LISTING.match, words))
    return first in _GIT_WORDS.get(verb, "").split() or (verb == "stash" and not first)
