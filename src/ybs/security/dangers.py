"""Commands that destroy: what is blocked in every mode, and what always asks."""

import re
from collections.abc import Iterator, Sequence
from posixpath import normpath

from ybs.security.commands import SHELLS, Command
from ybs.security.unicode import hidden_characters
from ybs.security.wrappers import Reading, read

_LONG = {"--recursive": "r", "--force": "f", "--no-preserve-root": "", "--dereference": "L"}
_INTERPRETERS = SHELLS | {"eval", "source", ".", "python", "python3", "perl", "ruby", "node", "php"}
_GIT_VALUES = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"})
_DISK = re.compile(r"/dev/(?:sd|hd|vd|xvd|nvme|mmcblk|disk|dm-|mapper/|loop|md)")
_FORK_BOMB = re.compile(r"([\w:.]+)\(\)\{[^}]*\1\|\1[^}]*\}")
_FETCHED = re.compile(r"(?:\$\(|`|<\()\s*(?:curl|wget)\b")
_SQL = re.compile(
    r"\b(?:drop\s+(?:table|database|schema)|truncate\s+table|delete\s+from\s+[\w.\"`]+\s*(?:;|$|[\"']))",
    re.IGNORECASE,
)
#: Programs that destroy whatever their arguments.
_ALWAYS = {
    **dict.fromkeys(
        ("shred", "wipefs", "fdisk", "sfdisk", "parted", "mkswap"), "destroys data for good"
    ),
    **dict.fromkeys(("shutdown", "reboot", "halt", "poweroff"), "stops the machine"),
}
_PACKAGE_MANAGERS = (
    *("apt", "apt-get", "aptitude", "dnf", "yum", "zypper", "brew", "snap", "flatpak", "apk"),
    *("pip", "pip3", "uv", "npm", "pnpm", "yarn"),
)
#: Programs whose verb may stand behind another word: `docker system prune`, `uv pip uninstall`.
_NESTED_VERBS = frozenset({"docker", "kubectl", "uv"})
#: Program and one of its options, or its verb.
_WITH_WORD: dict[str, tuple[frozenset[str], str]] = {
    "systemctl": (frozenset({"poweroff", "reboot", "halt", "kexec"}), "stops the machine"),
    "init": (frozenset({"0", "6"}), "stops the machine"),
    "crontab": (frozenset({"-r"}), "deletes all scheduled jobs"),
    "docker": (frozenset({"prune"}), "deletes containers, images or volumes"),
    "kubectl": (frozenset({"delete"}), "deletes resources of a cluster"),
    "terraform": (frozenset({"destroy"}), "destroys infrastructure"),
    "find": (frozenset({"-delete"}), "deletes every file it finds"),
    "dpkg": (frozenset({"-r", "-P", "--remove", "--purge"}), "removes packages"),
    "rpm": (frozenset({"-e", "--erase"}), "removes packages"),
    **dict.fromkeys(
        _PACKAGE_MANAGERS,
        (
            frozenset({"remove", "purge", "autoremove", "erase", "uninstall", "del"}),
            "removes packages",
        ),
    ),
}
_GIT: dict[str, tuple[frozenset[str], str]] = {
    "push": (
        frozenset({"-f", "--force", "--force-with-lease", "--mirror", "--delete", "-d", "--prune"}),
        "overwrites or deletes history at the other end",
    ),
    "reset": (frozenset({"--hard", "--merge"}), "throws away changes that are not committed"),
    "checkout": (
        frozenset({"-f", "--force", "--", "."}),
        "throws away changes that are not committed",
    ),
    "switch": (
        frozenset({"-f", "--force", "--discard-changes"}),
        "throws away uncommitted changes",
    ),
    "branch": (frozenset({"-D"}), "deletes a branch with its commits"),
    "stash": (frozenset({"drop", "clear"}), "deletes stashed changes"),
    "reflog": (frozenset({"expire", "delete"}), "deletes the way back to old commits"),
    "update-ref": (frozenset({"-d"}), "deletes a reference"),
}


def blocked_entry(reading: Reading, blocked: Sequence[str]) -> str:
    """Return the first entry of the list that the commands match, or nothing.

    An entry matches a command with its program, at least its options and at least its operands.
    """
    for entry in blocked:
        wanted = read(entry).runs[:1]
        if wanted and any(_covers(wanted[0].words, run.words) for run in reading.runs):
            return entry
    return ""


def warnings_of(text: str, reading: Reading) -> tuple[str, ...]:
    """Say what is destructive about the commands, one line for each thing."""
    found = [warning for run in reading.runs for warning in _dangers_of(run)]
    if _FORK_BOMB.search(re.sub(r"\s", "", text)):
        found.append("fork bomb: starts processes without end")
    if _SQL.search(text):
        found.append("SQL that deletes tables or rows")
    return tuple(dict.fromkeys(found))


def oddities_of(text: str, reading: Reading) -> tuple[str, ...]:
    """Say what a reader could overlook in the command; these make no command destructive."""
    found = [f"holds the invisible character {name}" for name in hidden_characters(text)]
    found += [
        f"the program's name {run.words[0]!r} holds letters that look like others"
        for run in reading.runs
        if run.words and not run.words[0].isascii()
    ]
    return tuple(found)


def _covers(wanted: list[str], words: list[str]) -> bool:
    if not wanted or not words or wanted[0] != words[0]:
        return False
    wanted_options, wanted_operands = _split(wanted)
    options, operands = _split(words)
    if not wanted_options <= options:
        return False
    if (
        wanted_operands and wanted_operands[0].isalpha()
    ):  # a subcommand, such as `push` of `git push`
        return operands[: len(wanted_operands)] == wanted_operands
    return all(operand in operands for operand in wanted_operands)


def _split(words: list[str]) -> tuple[set[str], list[str]]:
    """Return the options, short ones letter by letter, and the operands, paths and numbers made alike."""
    options: set[str] = set()
    operands: list[str] = []
    rest = iter(words[1:])
    for word in rest:
        if word in _GIT_VALUES and words[0] == "git":
            next(rest, None)
        elif word == "--":
            operands += [_normal(operand) for operand in rest]
        elif word.startswith("--"):
            options.add(_LONG.get(word, word))
        elif word.startswith("-") and len(word) > 1:
            options.update(word[1:].replace("R", "r"))
        else:
            operands.append(_normal(word))
    return options, operands


def _normal(operand: str) -> str:
    if operand.startswith("/"):
        path = normpath(operand.removesuffix("*"))
        return "/" if path == "//" else path
    return operand.lstrip("0") or "0" if operand.isdigit() else operand


def _dangers_of(run: Command) -> Iterator[str]:
    for target in run.targets:
        if _DISK.match(target):
            yield f"writes to the disk {target} itself"
    if not run.words:
        return
    name = run.words[0]
    if warning := _ALWAYS.get(name, ""):
        yield f"{name}: {warning}"
    words, warning = _WITH_WORD.get(name, (frozenset[str](), ""))
    verbs = _split(run.words)[1][: 2 if name in _NESTED_VERBS else 1]
    given = {*verbs, *(word for word in run.words if word.startswith("-"))}
    if not words.isdisjoint(given):
        yield f"{name}: {warning}"
    if name.startswith("mkfs"):
        yield "mkfs: erases a file system"
    yield from _file_dangers(name, run)
    yield from _git_dangers(run)
    if name in _INTERPRETERS and _reads_program_from_elsewhere(run):
        yield f"{name}: runs what another command or server sends it"


def _file_dangers(name: str, run: Command) -> Iterator[str]:
    options, operands = _split(run.words)
    if name == "rm" and "r" in options:
        yield "rm -r: deletes folders and all that is in them"
    if name in ("chmod", "chown") and "r" in options and ("777" in operands or "/" in operands):
        yield f"{name} -R: changes the rights of a whole tree"
    if name == "dd" and any(operand.startswith("of=") for operand in operands):
        yield "dd of=: overwrites what it writes to"
    if name == "truncate":
        yield "truncate: cuts files off"
    if name == "pacman" and any(word.startswith("-R") for word in run.words):
        yield "pacman: removes packages"


def _git_dangers(run: Command) -> Iterator[str]:
    if run.words[0] != "git":
        return
    options, operands = _split(run.words)
    verb = operands[0] if operands else ""
    words, warning = _GIT.get(verb, (frozenset[str](), ""))
    if not words.isdisjoint(run.words[1:]):
        yield f"git {verb}: {warning}"
    elif verb == "push" and any(operand.startswith(("+", ":")) for operand in operands):
        yield "git push: overwrites or deletes history at the other end"
    if verb == "clean" and ("f" in options or "--force" in options):
        yield "git clean: deletes files that are not committed"
    if verb == "restore" and "--staged" not in options:
        yield "git restore: throws away changes that are not committed"
    if verb in ("filter-branch", "filter-repo"):
        yield f"git {verb}: rewrites the whole history"


def _reads_program_from_elsewhere(run: Command) -> bool:
    operands = [word for word in run.words[1:] if not word.startswith("-")]
    is_fed = run.is_piped_into and (
        not operands or "-s" in run.words or operands[0] == "/dev/stdin"
    )
    return is_fed or any(_FETCHED.match(word) for word in run.words)
