"""Commands that destroy: those that are blocked in every mode, and those that always ask, also when called indirectly.

No parser sees every spelling. What is not seen here is bounded by the sandbox and taken back by undo.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache, lru_cache, partial
from itertools import count
from posixpath import basename, normpath
from typing import TypeAlias

from msgspec import Struct

from ybs.core.lazy import lazy
from ybs.security.commands.command import Command, ends_of, parse, scan, words_in
from ybs.security.commands.options import GIT_GLOBAL, GIT_OWN, operands_of, takes_targets, values_of
from ybs.security.commands.wrappers import INTERPRETED, SHELLS, Reading, name_of, resolved
from ybs.security.commands.writers import DELETERS

_UNSAVED = "throws away changes that are not committed"
_CLOUD = "deletes what a cloud, cluster or host of repositories keeps"
_SCHEMA = "deletes the data of a database"
#: A row of `ROWS`: programs, verbs (any of them, or none), options or operands (any of them, or none), what is permanently lost or
#: public then. `of=*` is the beginning of an operand; `!--staged` holds where the option is missing; `FILES` are files behind the verb.
ROWS: tuple[tuple[str, str, str, str], ...] = (
    ("rm", "", "-r", "deletes folders and all that is in them"),
    ("shred wipefs fdisk sfdisk parted mkswap mkfs newfs mke srm blkdiscard lvremove vgremove pvremove", "", "", "destroys data for good"),
    ("truncate", "", "", "cuts files off"),
    ("dd", "", "of=*", "overwrites what it writes to"),
    ("mv", "", "/dev/null", "throws files away"),
    ("rsync", "", "--delete --delete-after --delete-before --delete-excluded", "deletes files that the source lacks"),
    ("shutdown reboot halt poweroff", "", "", "stops the machine"),
    ("systemctl init", "poweroff reboot halt kexec 0 6", "", "stops the machine"),
    ("kill", "", "-1", "ends every process"),
    ("chmod chown", "777 /", "-r", "changes the rights of a whole tree"),
    ("find fd fdfind", "", "-delete", "deletes every file it finds"),
    ("tar bsdtar rsync 7z 7za 7zz", "", "--remove-files --remove-source-files -sdel", "deletes the files that it packs or copies"),
    ("zip", "", "-m --move", "deletes the files that it packs"),
    ("crontab", "", "-r", "deletes all scheduled jobs"),
    ("userdel groupdel deluser", "", "", "deletes a user or group"),
    ("iptables nft ufw", "flush disable reset", "", "opens the firewall"),
    ("iptables ip6tables", "", "-F --flush -X", "opens the firewall"),
    ("zfs zpool btrfs cryptsetup diskutil", "destroy labelclear luksformat luksFormat erase delete eraseDisk eraseVolume partitionDisk zeroDisk reformat", "", "destroys data for good"),
    ("docker podman", "prune", "", "deletes containers, images or volumes"),
    ("docker podman", "rm rmi", "-f", "deletes containers or images"),
    ("docker podman", "volume", "rm", "deletes volumes"),
    ("docker podman docker-compose", "down", "-v --volumes --rmi", "deletes containers and their volumes"),
    ("kubectl oc helm terraform tofu pulumi vagrant cdk serverless sls minikube kind eksctl gcloud az gsutil doctl flyctl fly heroku gh aws", "delete destroy drain uninstall remove rm rb apps:destroy pg:reset terminate-instances delete-bucket delete-stack delete-db-instance delete-table", "", _CLOUD),
    ("terraform tofu aws", "apply sync", "-destroy --destroy -auto-approve --auto-approve --delete", _CLOUD),
    ("npm pnpm yarn cargo uv poetry flit hatch bun lerna twine gem pod", "publish unpublish yank upload push trunk", "", "publishes, which cannot be taken back"),
    ("dropdb dropuser", "", "", _SCHEMA),
    ("redis-cli rails rake manage django-admin prisma artisan mix alembic sequelize knex", "flushall flushdb FLUSHALL FLUSHDB flush reset reset_db sqlflush db:drop db:reset db:purge db:schema:load db:wipe migrate:fresh migrate:reset migrate:rollback ecto.drop ecto.reset downgrade", "", _SCHEMA),
    ("apt apt-get aptitude dnf yum zypper brew snap flatpak apk pip uv npm pnpm yarn", "remove purge autoremove erase uninstall del", "", "removes packages"),
    ("dpkg rpm", "", "-r -P -e --remove --purge --erase", "removes packages"),
    ("pacman", "", "-R --remove", "removes packages"),
    ("git", "push", "-f --force-with-lease --mirror --delete -d --prune +* :*", "overwrites or deletes history at the other end"),
    ("git", "reset", "--hard --merge", _UNSAVED),
    ("git", "checkout switch", "-f -- . --discard-changes", _UNSAVED),
    ("git", "checkout", "FILES --ours --theirs", _UNSAVED),
    ("git", "restore", "!--staged", _UNSAVED),
    ("git", "clean", "-f", "deletes files that are not committed"),
    ("git", "branch", "-D", "deletes a branch with its commits"),
    ("git", "tag update-ref", "-d --delete", "deletes a tag or reference"),
    ("git", "stash", "drop clear", "deletes stashed changes"),
    ("git", "worktree", "-f", "deletes a work tree with its changes"),
    ("git", "gc prune reflog", "--prune --expire expire delete", "deletes the way back to old commits"),
    ("git", "filter-branch filter-repo", "", "rewrites the whole history"),
)  # fmt: skip
#: Programs whose verb may stand behind another word: `docker system prune`, `uv pip uninstall`. Any may have it behind values of options.
_VERB_PLACES = {
    **dict.fromkeys(words_in("docker podman kubectl oc uv gh helm heroku az prisma zfs btrfs"), 2),
    **dict.fromkeys(words_in("gcloud doctl flyctl fly aws pulumi kind minikube"), 3),
    **dict.fromkeys(words_in("chmod chown"), 9),
}
#: Rows by program.
BY_PROGRAM: dict[str, list[tuple[frozenset[str], tuple[str, ...], str]]] = {}
for _programs, _verbs, _needs, _says in ROWS:
    for _program in _programs.split():
        BY_PROGRAM.setdefault(_program, []).append(
            (frozenset(_verbs.split()), tuple(_needs.split()), _says)
        )
_SHORT = {"--recursive": "-r", "--force": "-f", "--dereference": "-L"}
INTERPRETERS = SHELLS | INTERPRETED | {"eval", "source", "."}
_DEVICE = r"/dev/(?:sd|hd|vd|xvd|nvme|mmcblk|disk|dm-|mapper/|loop|md)"
_DISK, _TO_DISK = lazy(_DEVICE), lazy(r">[ \t|]*" + _DEVICE)
_SQL_WORDS = ("drop", "truncate", "delete")
_SQL = lazy(
    r"\b(?:drop\s+(?:table|database|schema)|truncate\s+table|dropdatabase\s*\(|delete\s+from\s+[\w.\"`]+\s*(?:;|$|[\"']))",
    re.IGNORECASE,
)
_CODE_OPTION = lazy(r"-[a-zA-Z]*[ceErp]|--eval|--print|--execute")
_DELETING = lazy(
    r"\b(?:rmtree|removedirs|rmSync|rmdirSync|unlinkSync|rm_rf|remove_dir_all|FileUtils\.rm\w*|os\.remove|os\.unlink"
    r"|File\.delete|shutil\.move|\.unlink\(|unlink\s*[(<$*\"'])"
)
#: A program for an interpreter that is no shell can be let run where it can change nothing.
FED = "runs the program that another command or server sends it"
_EVERYTHING = words_in("* ./* ../* /* ~/* .* **")
_WILD = re.compile(r"[*?\[]")
#: A name as files have it, not a branch (`2.x`) or a commit.
_FILE = re.compile(r"^(?:\.{0,2}|~)/|/$|[*?]|(?<!\d)\.[A-Za-z]\w*$")
#: A word without its folder, version and kind: `python3.11`, `mkfs.ext4`.
_STEM = re.compile(r"(?<![^\s/])([^\s/\d.]++)[^\s/]*+(?=\s|$)")
#: With more different words an unclear text is not looked through one by one.
_MOST_WORDS = 2_000
#: A function that pipes into itself, white space left out: `f(){f|f&}`.
_FORK_BOMB = lazy(r"(?<![\w:.])([\w:.]{1,40})\(\)\{[^}]{0,200}?\1\|\1")

#: Programs whose operands name no program: files, patterns, texts.
_READERS = words_in("basename cat cd cmp comm cut df diff dirname du echo file grep egrep head less ls man md5sum nl printf readlink realpath rg ag ack sed seq sha256sum sort stat tail test [ tr type uniq wc which whereis git jq touch mkdir cp mv rm vi vim")  # fmt: skip
#: Programs that destroy only with an option or verb, so that their bare name among other words means nothing.
_WITH_NEEDS = frozenset(
    name for name, rows in BY_PROGRAM.items() if all(verbs or needs for verbs, needs, _ in rows)
) | {"shred"}
_WITH_OPTIONS = frozenset(
    name
    for name, rows in BY_PROGRAM.items()
    if any(need.startswith("-") for _, needs, _ in rows for need in needs)
)
_FEEDERS = words_in("find fd fdfind xargs parallel")
_OPEN = ("$", "`", "-$", "-`")
_AWK_RUNS = lazy(r"system\s*\(|\|\s*(?:getline|\"|')|[\"']\s*\||\|&")
#: The command `e` of GNU sed at the start of a step, or the flag `e` of a substitution.
_SED_RUNS = lazy(
    r"(?:^|[;{}\n])\s*(?:\d+|\$|/(?:[^/\\]|\\.)*/)?(?:,(?:\d+|\$|/(?:[^/\\]|\\.)*/))?!?\s*e(?:\s|$)"
    r"|s([/|,#:@!])(?:(?!\1)[^\\]|\\.)*\1(?:(?!\1)[^\\]|\\.)*\1[gpiIm\d]*e"
)
_SED_PLAIN = lazy(
    r"(?:\d+|\$|/[^/\\\n]*/)?(?:,(?:\d+|\$|/[^/\\\n]*/))?[pdq=]"
    r"|s([/|,#:@!])(?:(?!\1)[^\\\n]|\\.)*\1(?:(?!\1)[^\\\n]|\\.)*\1[gpiI\d]*"
)
#: Programs that take lines of their own language, and the line by which each starts a shell.
_ESCAPES = {
    **dict.fromkeys(("sqlite3", "sqlite"), lazy(r"\.(?:shell|system)\b|\bedit\s*\(", re.I)),
    **dict.fromkeys(("ed", "ex", "red", "gdb", "lldb", "ftp", "bc"), lazy(r"(?:^|[\s'\"n;])[rwe]?\s*!\s*\w|\bshell\s+\w")),
    **dict.fromkeys(("psql", "mysql", "mariadb"), lazy(r"\\!|\\\\!|\bsystem\s+\w")),
    "m4": lazy(r"\bsyscmd|\besyscmd"),
}  # fmt: skip


class _Given(Struct):
    """What a program is given. `options`: short ones letter by letter, long ones as they are; `globs` may stand for some.

    `values` are the places of operands that may be the value of an option.
    """

    options: set[str]
    operands: list[str]
    globs: list[str]
    values: set[int]

    @property
    def in_order(self) -> Iterator[tuple[str, bool]]:
        """Yield each operand, and whether it may be a value."""
        return ((each, place in self.values) for place, each in enumerate(self.operands))


#: Whether a word is what another one wants.
_Fits: TypeAlias = Callable[[str, str], bool]


def blocked_entry(reading: Reading, blocked: Sequence[str]) -> str:
    """Return the first entry of the list that the commands match, or nothing.

    An entry matches a command with its program, at least its options and at least its operands. In a text
    that is not clear these words may stand anywhere in that order.
    """
    return next((entry for entry in blocked if _matches(reading, entry)), "")


def warnings_of(text: str, reading: Reading) -> tuple[str, ...]:
    """Say what is destructive about the commands, one line for each thing."""
    runs = [each for run in reading.meant for each in (run, *_named_in(run))]
    found = [warning for run in runs for warning in _dangers_of_run(run)]
    if not reading.is_clear:
        found += _dangers_of_words(text, reading.scanned)
    if "(" in text and "|" in text and _FORK_BOMB().search(_squeezed(text)):
        found.append("fork bomb: starts processes without end")
    if any(word in text.lower() for word in _SQL_WORDS) and _SQL().search(text):
        found.append("SQL that deletes tables or rows")
    return tuple(dict.fromkeys(found))


@cache
def _wanted(entry: str) -> list[str] | None:
    """Return the words of an entry of the list, empty for nothing; None where it is not a flat command."""
    script = parse(entry)
    if not script.is_clear:
        return None
    program, *rest = (script.commands[0].words if script.commands else []) or [""]
    return [basename(program), *rest] if program else []


def _matches(reading: Reading, entry: str) -> bool:
    wanted = _wanted(entry)
    if not wanted:
        return wanted is None and _squeezed(entry) in _squeezed(reading.text)
    may_hold = not reading.is_clear and _may_hold(wanted, reading.scanned)
    return may_hold or any(covers(wanted, run.words) for run in reading.meant)


def _may_hold(wanted: list[str], scanned: list[str]) -> bool:
    """Return whether the words of an entry stand among those of a text that is not clear, in their order."""
    different = dict.fromkeys(scanned)  # in their order
    if len(different) > _MOST_WORDS:
        return bool(re.search(rf"\b{re.escape(wanted[0])}\b", " ".join(different)))
    first = next((word for word in different if _may_be(wanted[0], word)), None)
    if first is None:
        return False
    following = scanned[scanned.index(first) + 1 :]
    return _holds(_given(wanted), _given([wanted[0], *dict.fromkeys(following)]), str.__eq__)


def covers(
    wanted: list[str], words: list[str], fits: _Fits | None = None, *, is_whole: bool = False
) -> bool:
    """Return whether a command is one that these words mean, whatever its other options; `push` of `git push` must be its verb.

    `fits` reads the words as patterns, and a word that is only known when it runs as any that it may become. `is_whole`: they name all
    of its operands.
    """
    is_open = bool(fits and ends_of(" ".join(words)))
    is_same = fits or str.__eq__
    if fits and is_open:
        is_same = partial(_may_become, fits)
    if not words or not is_same(name_of(wanted), words[0]):
        return False
    needed, given = _given(wanted, str if fits else None), _given(words, _kept if is_open else None)
    verbs = needed.operands
    is_verb = bool(verbs) and verbs[0].replace("*", "").isalpha() and not takes_targets(words)
    if is_open:  # such a word may be an option, too, unless `--` stands before it
        ends = words.index("--") if "--" in words else len(words)
        given.options |= {word for word in words[1:ends] if ends_of(word)}
    if not _holds(needed, given, is_same) or (is_verb and not _begins(verbs, given, is_same)):
        return False
    return not is_whole or all(
        is_value or any(is_same(verb, operand) for verb in verbs)
        for operand, is_value in given.in_order
    )


def _may_become(fits: _Fits, pattern: str, word: str) -> bool:
    """Return whether a word is like one of a pattern, or may be when it runs: `p$X` may be `push`."""
    if (ends := ends_of(word)) is None:
        return fits(pattern, word)
    before, behind = ends
    first, star, last = pattern.partition("*")[0], "*" in pattern, pattern.rpartition("*")[2]
    begins = first.startswith(before) or (star and before.startswith(first))
    return begins and (last.endswith(behind) or (star and behind.endswith(last)))


def _begins(verbs: list[str], given: _Given, is_same: _Fits) -> bool:
    """Return whether the first operands are these.

    A word behind an option may be its value (`kubectl -n x delete`), and one that is only known when it runs none, one or several.
    """
    ends, places = len(verbs), {0}
    for operand, is_value in given.in_order:
        after = {p + 1 for p in places if p < ends and is_same(verbs[p], operand)}
        if after and ends_of(operand):
            after |= {*places, *range(min(after), ends + 1)}
        places = after | (places if is_value else places & {ends})
    return ends in places


def _holds(needed: _Given, given: _Given, is_same: _Fits) -> bool:
    operands = all(any(is_same(each, word) for word in given.operands) for each in needed.operands)
    return operands and all(
        _has(option, given) or any(is_same(option, word) for word in given.options)
        for option in needed.options
        if len(option) == 2 or option.startswith("--")
    )


def _may_be(program: str, word: str) -> bool:
    """Return whether a word of a scanned text may name the program: also glued to an option, or as a glob."""
    is_path = word.startswith("/") or "bin/" in word  # other patterns find files of the project
    if program not in word and not is_path:
        return False
    names = {
        basename(word),
        basename(word.partition("=")[2]),
        basename(word[2:] if word[0] == "-" else ""),
    }
    return program in names or any(
        (head + tail or "bin/" in word) and program.startswith(head) and program.endswith(tail)
        for head, tail in (_ends(name) for name in names if is_path and _WILD.search(name))
    )


def _ends(name: str) -> tuple[str, str]:
    """Return the text before and behind the wild part of a name."""
    return _WILD.split(name, maxsplit=1)[0], re.split(r"[*?\]]", name)[-1]


def _given(words: list[str], spelled: Callable[[str], str] | None = None) -> _Given:
    """Sort the words behind the program."""
    spelled = spelled or _normal
    globs = [word for word in words if word[:1] == "-" and _WILD.search(word)]
    given, is_git = _Given(set(), [], globs, set()), words[0] == "git"
    rest, before = iter(words[1:]), ""
    for word in rest:
        if word in GIT_GLOBAL and is_git:
            next(rest, None)
        elif word == "--" and not is_git:
            given.operands += map(spelled, rest)
        elif word.startswith("-") and len(word) > 1:
            given.options |= _options_in(word)
        elif word.startswith("+") and not given.operands:  # a toolchain, an option of a shell
            given.options.add(word)
        else:
            is_behind = before[:1] == "-" and before != "--" and "=" not in before
            is_known = is_git and not given.operands and before in GIT_OWN
            if is_behind and not is_known:
                given.values.add(len(given.operands))
            given.operands.append(spelled(word))
        before = word
    return given


def _options_in(word: str) -> set[str]:
    if not word.startswith("--"):
        return {word, *("-" + letter for letter in word[1:] + ("r" if "R" in word else ""))}
    head = word.partition("=")[0]
    shorts = {_SHORT[long] for long in _SHORT if long.startswith(head) and len(head) > 2}
    return shorts or {word, head}


def _has(option: str, given: _Given) -> bool:
    """Return whether an option was given, long ones also abbreviated."""
    if option in given.options or any(fnmatchcase(option, word) for word in given.globs):
        return True
    return option.startswith("--") and any(
        len(word) > 2 and option.startswith(word) for word in given.options
    )


def _normal(operand: str) -> str:
    """Return paths and numbers in one spelling."""
    if operand.startswith("/"):
        path = normpath(operand.rstrip("*?"))
        return "/" if path == "//" else path
    return operand.lstrip("0") or "0" if operand.isdigit() else operand


def _kept(operand: str) -> str:
    """Return an operand in one spelling; as it stands where it is only known when it runs."""
    return operand if ends_of(operand) else _normal(operand)


def _dangers_of_run(run: Command) -> Iterator[str]:
    for target in run.targets:
        if target.startswith("/dev/") and _DISK().match(target):
            yield f"writes to the disk {target} itself"
    name = stem_of(run.words[0]) if run.words else ""
    if name in BY_PROGRAM:
        given = _given(run.words)
        first = next(place for place in count() if place not in given.values)
        ends = first + _VERB_PLACES.get(name, 1)
        yield from _rows_for((name,), set(given.operands[:ends]), given)
    operands = [word for word in run.words[1:] if not word.startswith("-")]
    if name == "rm" and _EVERYTHING & set(operands):
        yield "rm: deletes every file there"
    if name in _FEEDERS and not DELETERS.isdisjoint(map(basename, run.words[1:])):
        yield f"{name}: deletes every file that it finds or is given"
    if name in INTERPRETED or name in _ESCAPES or name.endswith("awk"):
        yield from _dangers_of_code(name, run)
    is_fed = not operands or "-s" in run.words or operands[0] == "/dev/stdin"
    if run.is_piped_into and is_fed and name in INTERPRETERS:
        yield f"{name}: {FED if name in INTERPRETED else 'runs what another command or server sends it'}"


def _dangers_of_code(name: str, run: Command) -> Iterator[str]:
    """Yield the dangers of a program given as text: `python -c`, a here-document, a script of awk that runs commands."""
    for code in (*codes_in(run), *scripts_in(name, run.words), run.given):
        if code and _DELETING().search(code):
            yield f"{name}: its program deletes files"
        yield from _rows_in(scan(code))


def scripts_in(name: str, words: Sequence[str]) -> list[str]:
    """Return the scripts among a command's words that run commands: those of awk, lines of `_ESCAPES`; of sed all but the plainest."""
    if name in ("sed", "gsed"):
        given = values_of(words, "-e --expression -f --file") or operands_of(words)[:1]
        return [each for each in given if not _SED_PLAIN().fullmatch(each)]
    runs = _AWK_RUNS if name.endswith("awk") else _ESCAPES.get(name)
    return [*filter(runs().search, operands_of(words))] if runs else []


def codes_in(run: Command) -> list[str]:
    """Return the programs that an interpreter is given as arguments: `python -c CODE`."""
    return [
        code
        for option, code in zip(run.words[1:], run.words[2:], strict=False)
        if _CODE_OPTION().fullmatch(option)
    ]


@lru_cache(1024)
def stem_of(program: str) -> str:
    """Return a program's name without its folder, version and kind: `python` of `/bin/python3.11`."""
    return next(iter(_STEM.findall(program)), program)


def _dangers_of_words(text: str, words: list[str]) -> Iterator[str]:
    """Yield the dangers of an unclear text, its words read as one command."""
    yield from _rows_in(words)
    if "/dev/" in text and (disk := _TO_DISK().search(text)):
        yield f"writes to the disk {disk[0].lstrip('> |')} itself"
    known = INTERPRETERS.intersection(_STEM.findall(" ".join(words)))
    if known and re.search(r"\||<<|\b(?:curl|wget)\b", text):
        yield f"{min(known)}: may run what another command or server sends it"
    for name in filter(_WILD.search, {basename(word) for word in words if "/" in word}):
        head, tail = _ends(name)
        if any((head and p.startswith(head)) or (tail and p.endswith(tail)) for p in BY_PROGRAM):
            yield "a program is named by a pattern and may be one that destroys"


def _rows_in(words: list[str]) -> Iterator[str]:
    """Yield the dangers of each word, read as a program with any of the others as arguments."""
    different = dict.fromkeys(words)
    names = set(_STEM.findall(" ".join(different)))
    if len(different) > _MOST_WORDS:
        yield "too many words to look through"
    elif known := names & BY_PROGRAM.keys():
        given = _given(["", *different])
        yield from _rows_for(sorted(known), names | set(given.operands), given)


def _rows_for(names: Iterable[str], verbs: set[str], given: _Given) -> Iterator[str]:
    for name in names:
        for row_verbs, needs, warning in BY_PROGRAM[name]:
            verb = verbs & row_verbs
            if (verb or not row_verbs) and (not needs or _meets(needs, given)):
                yield f"{' '.join([name, *sorted(verb)])}: {warning}"


def _meets(needs: Iterable[str], given: _Given) -> bool:
    return any(
        not _has(need[1:], given)
        if need.startswith("!")
        else any(operand.startswith(need[:-1]) for operand in given.operands)
        if need.endswith("*")
        else _has_files(given)
        if need == "FILES"
        else need in given.operands or _has(need, given)
        for need in needs
    )


def _has_files(given: _Given) -> bool:
    """Return whether files stand behind `checkout`: more than one word does, and no branch is made, or the name shows that it is a file's."""
    rest = given.operands[1:] if given.operands[:1] == ["checkout"] else []
    is_new = any(_has(option, given) for option in ("-b", "-B", "--orphan"))
    return not is_new and (len(rest) > 1 or any(map(_FILE.search, rest)))


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _named_in(run: Command) -> Iterator[Command]:
    """Yield what an unknown program may run: one of `ROWS` that its words name."""
    if run.words and run.words[0] not in _READERS:
        for place, word in enumerate(run.words[1:], 1):
            if (name := basename(word)) in _WITH_NEEDS:
                yield Command([name, *run.words[place + 1 :]], [])


def hidden_in(text: str, reading: Reading) -> Iterator[str]:
    """Say what may run or destroy anything, which is only known when it runs."""
    for run in reading.runs:
        name, words = "".join(run.words[:1]), run.words
        if name in _WITH_OPTIONS and (word := _open_word(words, reading.values)):
            yield f"{word[:40]!r} may be an option of {name}, which is only known when it runs"
        if name in ("sed", "gsed") and any(map(_SED_RUNS().search, words[1:])):
            yield f"{name} runs commands that its script holds"
        if name in _ESCAPES and _ESCAPES[name]().search(text):
            yield f"{name} runs commands that its input holds"


def _open_word(words: list[str], values: Mapping[str, str]) -> str:
    """Return a word that may turn out to be an option; nothing where `--` stands before it."""
    ends = words.index("--") if "--" in words else len(words)
    for word in words[1:ends]:
        if word.startswith(_OPEN) and any(
            part.startswith(_OPEN) for part in resolved(word, values).split()
        ):
            return word
    return ""
