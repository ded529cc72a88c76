"""What destroys in a roundabout way: an option in a variable, a program behind one that nobody knows, a script in another language.

No parser sees every spelling. What is not seen here is bounded by the sandbox and taken back by undo.
"""

import re
from collections.abc import Iterator, Sequence

from ybs.core.lazy import lazy
from ybs.security.commands.command import Command
from ybs.security.commands.destruction import BY_PROGRAM
from ybs.security.commands.options import operands_of
from ybs.security.commands.wrappers import Reading

_ASSIGNMENT = lazy(r"([A-Za-z_]\w*)\+?=(.*)", re.DOTALL)
_VARIABLE = lazy(r"\$(?:(\w+)|\{(\w+)\})")
_OPEN = ("$", "`", "-$", "-`")
#: Programs whose operands name no program: files, patterns, texts.
_READERS = frozenset(
    ("basename", "cat", "cd", "cmp", "comm", "cut", "df", "diff", "dirname", "du", "echo", "file", "grep", "egrep")
) | frozenset(
    ("head", "less", "ls", "man", "md5sum", "nl", "printf", "readlink", "realpath", "rg", "ag", "ack", "sed", "seq")
) | {"sha256sum", "sort", "stat", "tail", "test", "[", "tr", "type", "uniq", "wc", "which", "whereis", "git", "jq", "touch", "mkdir", "cp", "mv", "rm", "vi", "vim"}  # fmt: skip
#: Programs that destroy only with an option or verb, so that their bare name among other words means nothing.
_WITH_NEEDS = frozenset(
    name for name, rows in BY_PROGRAM.items() if all(verbs or needs for verbs, needs, _ in rows)
) | {"shred"}
_WITH_OPTIONS = frozenset(
    name
    for name, rows in BY_PROGRAM.items()
    if any(need.startswith("-") for _, needs, _ in rows for need in needs)
)
_FEEDERS = frozenset({"find", "fd", "fdfind", "xargs", "parallel"})
_DELETERS = frozenset({"rm", "unlink", "shred", "srm", "rmdir", "trash"})
_AWKS = frozenset({"awk", "gawk", "mawk", "nawk"})
_SEDS = frozenset({"sed", "gsed"})
_AWK_RUNS = lazy(r"system\s*\(|\|\s*(?:getline|\"|')|[\"']\s*\||\|&")
#: The command `e` of GNU sed at the start of a step, or the flag `e` of a substitution.
_SED_RUNS = lazy(
    r"(?:^|[;{}\n])\s*(?:\d+|\$|/(?:[^/\\]|\\.)*/)?(?:,(?:\d+|\$|/(?:[^/\\]|\\.)*/))?!?\s*e(?:\s|$)"
    r"|s([/|,#:@!])(?:(?!\1)[^\\]|\\.)*\1(?:(?!\1)[^\\]|\\.)*\1[gpiIm\d]*e"
)
#: Programs that take lines of their own language, and the line by which each starts a shell.
_ESCAPES = {
    **dict.fromkeys(("sqlite3", "sqlite"), lazy(r"\.(?:shell|system)\b|\bedit\s*\(", re.I)),
    **dict.fromkeys(("ed", "ex", "red", "gdb", "lldb", "ftp", "bc"), lazy(r"(?:^|[\s'\"n;])[rwe]?\s*!\s*\w|\bshell\s+\w")),
    **dict.fromkeys(("psql", "mysql", "mariadb"), lazy(r"\\!|\\\\!|\bsystem\s+\w")),
    "m4": lazy(r"\bsyscmd|\besyscmd"),
}  # fmt: skip


def runs_behind(reading: Reading) -> Iterator[Command]:
    """Yield what may be run that no word names in the place of a program: to be judged like what is run."""
    values = _values(reading)
    for run in reading.runs:
        if any("$" in word for word in run.words):
            words = [part for word in run.words for part in _resolved(word, values)]
            if words and words != run.words:
                yield Command(words, run.targets, run.is_piped_into)
        words = run.words
        if words and words[0] not in _READERS:
            for place, word in enumerate(words[1:], 1):
                if (name := word.rpartition("/")[2]) in _WITH_NEEDS:
                    yield Command([name, *words[place + 1 :]], [])


def warnings_about(reading: Reading) -> Iterator[str]:
    """Say what destroys that no run shows."""
    for run in reading.runs:
        if (
            run.words
            and run.words[0] in _FEEDERS
            and not _DELETERS.isdisjoint(_names(run.words[1:]))
        ):
            yield f"{run.words[0]}: deletes every file that it finds or is given"


def concerns_about(text: str, reading: Reading) -> Iterator[str]:
    """Say what may run or destroy anything, which is only known when it runs."""
    values = _values(reading)
    for run in reading.runs:
        name, words = run.words[0] if run.words else "", run.words
        if name in _WITH_OPTIONS and (word := _open_word(words, values)):
            yield f"{word[:40]!r} may be an option of {name}, which is only known when it runs"
        if name in _SEDS and any(_SED_RUNS().search(word) for word in words[1:]):
            yield f"{name} runs commands that its script holds"
        if name in _ESCAPES and _ESCAPES[name]().search(text):
            yield f"{name} runs commands that its input holds"


def codes_of(run: Command) -> Sequence[str]:
    """Return the scripts of a program that may run commands, `awk`'s where it does."""
    if run.words[0] not in _AWKS:
        return ()
    return [word for word in operands_of(run.words) if _AWK_RUNS().search(word)]


def _names(words: Sequence[str]) -> Iterator[str]:
    return (word.rpartition("/")[2] for word in words)


def _values(reading: Reading) -> dict[str, str]:
    """Return the variables that the text gives one literal value; one that it gives two has none."""
    values: dict[str, str] = {}
    for run in reading.runs:
        for word in (*run.sets, *run.words):
            if found := _ASSIGNMENT().fullmatch(word):
                values[found[1]] = "$" if found[1] in values else found[2]
    return values


def _resolved(word: str, values: dict[str, str]) -> list[str]:
    """Return what the shell makes of a word: several where a value has spaces."""
    return _VARIABLE().sub(lambda found: values.get(found[1] or found[2], found[0]), word).split()


def _open_word(words: list[str], values: dict[str, str]) -> str:
    """Return a word that may turn out to be an option; nothing where `--` stands before it."""
    ends = words.index("--") if "--" in words else len(words)
    return next(
        (
            word
            for word in words[1:ends]
            if word.startswith(_OPEN)
            and any(part.startswith(_OPEN) for part in _resolved(word, values))
        ),
        "",
    )
