"""Commands that destroy: what is blocked in every mode, and what always asks."""

import re
from collections.abc import Iterable, Iterator, Sequence
from posixpath import normpath

from msgspec import Struct

from ybs.security.commands import Command, parse
from ybs.security.unicode import hidden_characters
from ybs.security.wrappers import SHELLS, Reading

_SHORT = {"--recursive": "-r", "--force": "-f", "--dereference": "-L"}
_GIT_VALUES = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"})
_INTERPRETERS = SHELLS | {"eval", "source", ".", "python", "perl", "ruby", "node", "php"}
_DISK = re.compile(r"/dev/(?:sd|hd|vd|xvd|nvme|mmcblk|disk|dm-|mapper/|loop|md)")
_TO_DISK = re.compile(r">[ \t|]*" + _DISK.pattern)
_SQL = re.compile(
    r"\b(?:drop\s+(?:table|database|schema)|truncate\s+table|delete\s+from\s+[\w.\"`]+\s*(?:;|$|[\"']))",
    re.IGNORECASE,
)
_UNSAVED = "throws away changes that are not committed"
_FAR_HISTORY = "overwrites or deletes history at the other end"
_REMOVED = "remove purge autoremove erase uninstall del"
#: Programs, verbs (any of them, or none), options or operands (any of them, or none), what they do.
#: `of=*` is the beginning of an operand; `!--staged` holds where the option is missing.
_DANGERS: tuple[tuple[str, str, str, str], ...] = (
    ("rm", "", "-r", "deletes folders and all that is in them"),
    ("shred wipefs fdisk sfdisk parted mkswap mkfs", "", "", "destroys data for good"),
    ("truncate", "", "", "cuts files off"),
    ("dd", "", "of=*", "overwrites what it writes to"),
    ("shutdown reboot halt poweroff", "", "", "stops the machine"),
    ("systemctl init", "poweroff reboot halt kexec 0 6", "", "stops the machine"),
    ("chmod chown", "777 /", "-r", "changes the rights of a whole tree"),
    ("find fd fdfind", "", "-delete", "deletes every file it finds"),
    ("crontab", "", "-r", "deletes all scheduled jobs"),
    ("docker podman", "prune", "", "deletes containers, images or volumes"),
    ("kubectl", "delete", "", "deletes resources of a cluster"),
    ("terraform", "destroy", "", "destroys infrastructure"),
    ("apt apt-get aptitude dnf yum zypper brew snap flatpak apk", _REMOVED, "", "removes packages"),
    ("pip uv npm pnpm yarn", _REMOVED, "", "removes packages"),
    ("dpkg rpm", "", "-r -P -e --remove --purge --erase", "removes packages"),
    ("pacman", "", "-R --remove", "removes packages"),
    ("git", "push", "-f --force-with-lease --mirror --delete -d --prune +* :*", _FAR_HISTORY),
    ("git", "reset", "--hard --merge", _UNSAVED),
    ("git", "checkout", "-f -- .", _UNSAVED),
    ("git", "switch", "-f --discard-changes", _UNSAVED),
    ("git", "restore", "!--staged", _UNSAVED),
    ("git", "clean", "-f", "deletes files that are not committed"),
    ("git", "branch", "-D", "deletes a branch with its commits"),
    ("git", "stash", "drop clear", "deletes stashed changes"),
    ("git", "reflog", "expire delete", "deletes the way back to old commits"),
    ("git", "update-ref", "-d", "deletes a reference"),
    ("git", "filter-branch filter-repo", "", "rewrites the whole history"),
)
#: Programs whose verb may stand behind another word: `docker system prune`, `uv pip uninstall`.
_VERB_PLACES = {"docker": 2, "podman": 2, "kubectl": 2, "uv": 2, "chmod": 9, "chown": 9}
_PROGRAMS = "\n" + "\n".join(sorted({row[0].replace(" ", "\n") for row in _DANGERS})) + "\n"
_FUNCTION = re.compile(r"[\w:.]+$")
_WILD = re.compile(r"[*?\[]")
#: A word without its folder, version and kind: `python3.11`, `mkfs.ext4`.
_STEM = re.compile(r"(?<![^\s/])([^\s/\d.]++)[^\s/]*+(?=\s|$)")
#: With more different words an unclear text is not looked through one by one.
_MOST_WORDS = 2_000


class _Given(Struct):
    """What a program is given. `options`: short ones letter by letter, long ones as they are."""

    options: set[str]
    operands: list[str]


def blocked_entry(reading: Reading, blocked: Sequence[str]) -> str:
    """Return the first entry of the list that the commands match, or nothing.

    An entry matches a command with its program, at least its options and at least its operands. In a text
    that is not clear these words may stand anywhere in that order.
    """
    return next((entry for entry in blocked if _matches(reading, entry)), "")


def warnings_of(text: str, reading: Reading) -> tuple[str, ...]:
    """Say what is destructive about the commands, one line for each thing."""
    found = [warning for run in reading.runs for warning in _dangers_of_run(run)]
    if not reading.is_clear:
        found += _dangers_of_words(text, reading.scanned)
    if _is_fork_bomb(text):
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
    return tuple(dict.fromkeys(found))


def _matches(reading: Reading, entry: str) -> bool:
    script = parse(entry)
    if not script.is_clear:
        return _squeezed(entry) in _squeezed(reading.text)
    if not script.commands or not (wanted := script.commands[0].argv):
        return False
    wanted[0] = _name(wanted[0])
    if any(_covers(wanted, run.words) for run in reading.runs):
        return True
    different = dict.fromkeys(reading.scanned)  # in their order
    if len(different) > _MOST_WORDS:
        return bool(re.search(rf"\b{re.escape(wanted[0])}\b", " ".join(different)))
    first = next((word for word in different if _may_be(wanted[0], word)), None)
    if first is None:
        return False
    following = reading.scanned[reading.scanned.index(first) :]
    return _holds(wanted, [wanted[0], *dict.fromkeys(following[1:])])


def _covers(wanted: list[str], words: list[str]) -> bool:
    """Tell whether a command is one that the entry means."""
    if not words or wanted[0] != words[0] or not _holds(wanted, words):
        return False
    verbs, operands = _given(wanted).operands, _given(words).operands
    is_verb = bool(verbs) and verbs[0].isalpha()  # such as `push` of `git push`
    return not is_verb or operands[: len(verbs)] == verbs


def _holds(wanted: list[str], words: list[str]) -> bool:
    needed, given = _given(wanted), _given(words)
    return set(needed.operands) <= set(given.operands) and all(
        _has(option, given)
        for option in needed.options
        if len(option) == 2 or option.startswith("--")
    )


def _may_be(program: str, word: str) -> bool:
    """Tell whether a word of a scanned text may name the program: also glued to an option, or as a glob."""
    is_path = word.startswith("/") or "bin/" in word  # other patterns find files of the project
    if program not in word and not is_path:
        return False
    names = {_name(word), _name(word.partition("=")[2]), _name(word[2:] if word[0] == "-" else "")}
    return program in names or any(
        (head + tail or "bin/" in word) and program.startswith(head) and program.endswith(tail)
        for head, tail in (_ends(name) for name in names if is_path and _WILD.search(name))
    )


def _ends(name: str) -> tuple[str, str]:
    """Return what stands before and behind the wild part of a name."""
    return _WILD.split(name, maxsplit=1)[0], re.split(r"[*?\]]", name)[-1]


def _name(word: str) -> str:
    return word.rpartition("/")[2]


def _given(words: list[str]) -> _Given:
    """Sort the words behind the program."""
    given = _Given(set(), [])
    rest = iter(words[1:])
    for word in rest:
        if word in _GIT_VALUES and words[0] == "git":
            next(rest, None)
        elif word == "--" and words[0] != "git":
            given.operands += [_normal(operand) for operand in rest]
        elif word.startswith("-") and len(word) > 1:
            given.options |= _options_in(word)
        else:
            given.operands.append(_normal(word))
    return given


def _options_in(word: str) -> set[str]:
    if word.startswith("--"):
        shorts = (
            short for long, short in _SHORT.items() if long.startswith(word) and len(word) > 2
        )
        return set(shorts) or {word}
    return {word, *("-" + letter for letter in word[1:] + ("r" if "R" in word else ""))}


def _has(option: str, given: _Given) -> bool:
    """Tell whether an option was given, long ones also abbreviated."""
    if option in given.options or not option.startswith("--"):
        return option in given.options
    return any(len(word) > 2 and option.startswith(word) for word in given.options)


def _normal(operand: str) -> str:
    """Return paths and numbers in one spelling."""
    if operand.startswith("/"):
        path = normpath(operand.rstrip("*?"))
        return "/" if path == "//" else path
    return operand.lstrip("0") or "0" if operand.isdigit() else operand


def _dangers_of_run(run: Command) -> Iterator[str]:
    yield from (
        f"writes to the disk {target} itself" for target in run.targets if _DISK.match(target)
    )
    if not run.words:
        return
    name = next(iter(_STEM.findall(run.words[0])), run.words[0])
    given = _given(run.words)
    yield from _rows_for({name}, set(given.operands[: _VERB_PLACES.get(name, 1)]), given)
    operands = [word for word in run.words[1:] if not word.startswith("-")]
    is_fed = not operands or "-s" in run.words or operands[0] == "/dev/stdin"
    if run.is_piped_into and is_fed and name in _INTERPRETERS:
        yield f"{name}: runs what another command or server sends it"


def _dangers_of_words(text: str, words: list[str]) -> Iterator[str]:
    """Yield what the words of an unclear text would do if they belonged together."""
    different = dict.fromkeys(words)
    if len(different) > _MOST_WORDS:
        yield "too many words to look through"
        return
    names = set(_STEM.findall(" ".join(different)))
    given = _given(["", *different])
    yield from _rows_for(names, names | set(given.operands), given)
    if disk := _TO_DISK.search(text):
        yield f"writes to the disk {disk[0].lstrip('> |')} itself"
    if names & _INTERPRETERS and re.search(r"\||<<|\b(?:curl|wget)\b", text):
        yield f"{min(names & _INTERPRETERS)}: may run what another command or server sends it"
    for word in different:
        if _WILD.search(name := _name(word)):
            head, tail = _ends(name)
            if (head and "\n" + head in _PROGRAMS) or (tail and tail + "\n" in _PROGRAMS):
                yield "a program is named by a pattern and may be one that destroys"


def _rows_for(names: set[str], verbs: set[str], given: _Given) -> Iterator[str]:
    for programs, row_verbs, needs, warning in _DANGERS:
        found = names.intersection(programs.split())
        verb = verbs.intersection(row_verbs.split())
        if found and (verb or not row_verbs) and _meets(needs.split(), given):
            yield f"{' '.join([min(found), *sorted(verb)])}: {warning}"


def _meets(needs: Iterable[str], given: _Given) -> bool:
    return not needs or any(
        not _has(need[1:], given)
        if need.startswith("!")
        else any(operand.startswith(need[:-1]) for operand in given.operands)
        if need.endswith("*")
        else need in given.operands or _has(need, given)
        for need in needs
    )


def _is_fork_bomb(text: str) -> bool:
    """Tell whether a function pipes into itself: `f() { f | f & }`."""
    head, *bodies = _squeezed(text).split("(){")
    for body in bodies:
        name = _FUNCTION.findall(head[-40:]) if "|" in body else []
        if name and f"{name[-1]}|{name[-1]}" in body.partition("}")[0]:
            return True
        head = body
    return False


def _squeezed(text: str) -> str:
    return "".join(text.split())
