"""Commands that destroy: what is blocked in every mode, and what always asks."""

import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from posixpath import normpath

from msgspec import Struct

from ybs.core.lazy import lazy
from ybs.security.commands import roundabout
from ybs.security.commands.command import Command, parse, scan
from ybs.security.commands.destruction import BY_PROGRAM, VERB_PLACES
from ybs.security.commands.options import GIT_GLOBAL
from ybs.security.commands.wrappers import INTERPRETED, SHELLS, Reading

_SHORT = {"--recursive": "-r", "--force": "-f", "--dereference": "-L"}
INTERPRETERS = SHELLS | INTERPRETED | {"eval", "source", "."}
_DISK = re.compile(r"/dev/(?:sd|hd|vd|xvd|nvme|mmcblk|disk|dm-|mapper/|loop|md)")
_TO_DISK = re.compile(r">[ \t|]*" + _DISK.pattern)
_SQL = re.compile(
    r"\b(?:drop\s+(?:table|database|schema)|truncate\s+table|dropdatabase\s*\(|delete\s+from\s+[\w.\"`]+\s*(?:;|$|[\"']))",
    re.IGNORECASE,
)
_PROGRAMS = "\n" + "\n".join(sorted(BY_PROGRAM)) + "\n"
_CODE_OPTION = lazy(r"-[a-zA-Z]*[ceErp]|--eval|--print|--execute")
_DELETING = lazy(
    r"\b(?:rmtree|removedirs|rmSync|rmdirSync|unlinkSync|rm_rf|remove_dir_all|FileUtils\.rm\w*|os\.remove|os\.unlink"
    r"|File\.delete|shutil\.move|\.unlink\(|unlink\s*[(<$*\"'])"
)
_EVERYTHING = frozenset({"*", "./*", "../*", "/*", "~/*", ".*", "**"})
_FUNCTION = lazy(r"[\w:.]+$")
_WILD = re.compile(r"[*?\[]")
#: A word without its folder, version and kind: `python3.11`, `mkfs.ext4`.
_STEM = re.compile(r"(?<![^\s/])([^\s/\d.]++)[^\s/]*+(?=\s|$)")
#: With more different words an unclear text is not looked through one by one.
_MOST_WORDS = 2_000


class _Given(Struct):
    """What a program is given. `options`: short ones letter by letter, long ones as they are; `globs` may stand for some."""

    options: set[str]
    operands: list[str]
    globs: list[str]


def blocked_entry(reading: Reading, blocked: Sequence[str]) -> str:
    """Return the first entry of the list that the commands match, or nothing.

    An entry matches a command with its program, at least its options and at least its operands. In a text
    that is not clear these words may stand anywhere in that order.
    """
    return next((entry for entry in blocked if _matches(reading, entry)), "")


def warnings_of(text: str, reading: Reading) -> tuple[str, ...]:
    """Say what is destructive about the commands, one line for each thing."""
    runs = (*reading.runs, *roundabout.runs_behind(reading))
    found = [warning for run in runs for warning in _dangers_of_run(run)]
    found += roundabout.warnings_about(reading)
    if not reading.is_clear:
        found += _dangers_of_words(text, reading.scanned)
    if _is_fork_bomb(text):
        found.append("fork bomb: starts processes without end")
    if _SQL.search(text):
        found.append("SQL that deletes tables or rows")
    return tuple(dict.fromkeys(found))


@cache
def _wanted(entry: str) -> list[str] | None:
    """Return the words of an entry of the list, empty for nothing; None where it is not a flat command."""
    script = parse(entry)
    if not script.is_clear:
        return None
    program, *rest = (script.commands[0].argv if script.commands else []) or [""]
    return [_name(program), *rest] if program else []


def _matches(reading: Reading, entry: str) -> bool:
    wanted = _wanted(entry)
    if wanted is None:
        return _squeezed(entry) in _squeezed(reading.text)
    if not wanted:
        return False
    return any(
        run.words and run.words[0] == wanted[0] and _covers(wanted, run.words)
        for run in reading.runs
    ) or (not reading.is_clear and _may_hold(wanted, reading.scanned))


def _may_hold(wanted: list[str], scanned: list[str]) -> bool:
    """Return whether the words of an entry stand among those of a text that is not clear, in their order."""
    different = dict.fromkeys(scanned)  # in their order
    if len(different) > _MOST_WORDS:
        return bool(re.search(rf"\b{re.escape(wanted[0])}\b", " ".join(different)))
    first = next((word for word in different if _may_be(wanted[0], word)), None)
    if first is None:
        return False
    following = scanned[scanned.index(first) :]
    return _holds(wanted, [wanted[0], *dict.fromkeys(following[1:])])


def _covers(wanted: list[str], words: list[str]) -> bool:
    """Return whether a command is one that the entry means."""
    if not _holds(wanted, words):
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
    """Return whether a word of a scanned text may name the program: also glued to an option, or as a glob."""
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
    given = _Given(set(), [], [word for word in words if word[:1] == "-" and _WILD.search(word)])
    rest = iter(words[1:])
    for word in rest:
        if word in GIT_GLOBAL and words[0] == "git":
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
        head = word.partition("=")[0]
        shorts = (
            short for long, short in _SHORT.items() if long.startswith(head) and len(head) > 2
        )
        return set(shorts) or {word, head}
    return {word, *("-" + letter for letter in word[1:] + ("r" if "R" in word else ""))}


def _has(option: str, given: _Given) -> bool:
    """Return whether an option was given, long ones also abbreviated."""
    if option in given.options or any(fnmatchcase(option, word) for word in given.globs):
        return True
    if not option.startswith("--"):
        return False
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
    name = stem_of(run.words[0])
    if name in BY_PROGRAM:
        given = _given(run.words)
        yield from _rows_for((name,), set(given.operands[: VERB_PLACES.get(name, 1)]), given)
    if name not in INTERPRETERS and name != "rm" and not name.endswith("awk"):
        return
    operands = [word for word in run.words[1:] if not word.startswith("-")]
    if name == "rm" and _EVERYTHING & set(operands):
        yield "rm: deletes every file there"
    if name in INTERPRETED or name.endswith("awk"):
        yield from _dangers_of_code(name, run)
    is_fed = not operands or "-s" in run.words or operands[0] == "/dev/stdin"
    if run.is_piped_into and is_fed and name in INTERPRETERS:
        yield f"{name}: runs what another command or server sends it"


def _dangers_of_code(name: str, run: Command) -> Iterator[str]:
    """Yield what a program given as text would do: `python -c`, or a here-document."""
    for code in (*codes_in(run), *roundabout.codes_of(run), run.given):
        if code and _DELETING().search(code):
            yield f"{name}: its program deletes files"
        words = dict.fromkeys(scan(code))
        if len(words) > _MOST_WORDS:
            yield f"{name}: its program is too long to look through"
        else:
            yield from _rows_for_any(set(_STEM.findall(" ".join(words))), words)


def codes_in(run: Command) -> list[str]:
    """Return the programs that an interpreter is given as arguments: `python -c CODE`."""
    words = run.words
    return [
        words[place + 1]
        for place, word in enumerate(words[:-1])
        if place and _CODE_OPTION().fullmatch(word)
    ]


@lru_cache(1024)
def stem_of(program: str) -> str:
    """Return a program's name without its folder, version and kind: `python` of `/bin/python3.11`."""
    return next(iter(_STEM.findall(program)), program)


def _dangers_of_words(text: str, words: list[str]) -> Iterator[str]:
    """Yield what the words of an unclear text would do if they belonged together."""
    different = dict.fromkeys(words)
    if len(different) > _MOST_WORDS:
        yield "too many words to look through"
        return
    names = set(_STEM.findall(" ".join(different)))
    yield from _rows_for_any(names, different)
    if disk := _TO_DISK.search(text):
        yield f"writes to the disk {disk[0].lstrip('> |')} itself"
    if names & INTERPRETERS and re.search(r"\||<<|\b(?:curl|wget)\b", text):
        yield f"{min(names & INTERPRETERS)}: may run what another command or server sends it"
    for word in different:
        if "/" in word and _WILD.search(name := _name(word)):
            head, tail = _ends(name)
            if (head and "\n" + head in _PROGRAMS) or (tail and tail + "\n" in _PROGRAMS):
                yield "a program is named by a pattern and may be one that destroys"


def _rows_for_any(names: set[str], words: Iterable[str]) -> Iterator[str]:
    """Yield what any of the names would do with any of the words."""
    if known := names & BY_PROGRAM.keys():
        given = _given(["", *words])
        yield from _rows_for(sorted(known), names | set(given.operands), given)


def _rows_for(names: Iterable[str], verbs: set[str], given: _Given) -> Iterator[str]:
    for name in names:
        for row_verbs, needs, warning in BY_PROGRAM.get(name, ()):
            verb = verbs & row_verbs
            if (verb or not row_verbs) and (not needs or _meets(needs, given)):
                yield f"{' '.join([name, *sorted(verb)])}: {warning}"


def _meets(needs: Iterable[str], given: _Given) -> bool:
    return any(
        not _has(need[1:], given)
        if need.startswith("!")
        else any(operand.startswith(need[:-1]) for operand in given.operands)
        if need.endswith("*")
        else need in given.operands or _has(need, given)
        for need in needs
    )


def _is_fork_bomb(text: str) -> bool:
    """Return whether a function pipes into itself: `f() { f | f & }`."""
    if "(" not in text or "|" not in text:
        return False
    head, *bodies = _squeezed(text).split("(){")
    for body in bodies:
        name = _FUNCTION().findall(head[-40:]) if "|" in body else []
        if name and f"{name[-1]}|{name[-1]}" in body.partition("}")[0]:
            return True
        head = body
    return False


def _squeezed(text: str) -> str:
    return "".join(text.split())
