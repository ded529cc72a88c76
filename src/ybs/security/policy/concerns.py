"""What is asked about although nothing is destroyed: what is not understood, reaches outside, or deceives the eye."""

import re
from collections.abc import Iterator
from posixpath import normpath
from unicodedata import name as name_of
from unicodedata import normalize

from ybs.security.commands import options
from ybs.security.commands.command import Command
from ybs.security.commands.dangers import INTERPRETERS, codes_in, stem_of
from ybs.security.commands.roundabout import concerns_about
from ybs.security.commands.wrappers import Reading
from ybs.security.policy.assignments import is_harmless, is_powerful
from ybs.security.unicode import hidden_characters

_DEVICES = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"})
_SCRATCH = ("/tmp/", "/var/tmp/")  # noqa: S108 - the sandbox has its own; nothing is opened here
#: Commands of the shell itself after which other words mean something else.
_CHANGING = frozenset(
    ("alias", "unalias", "hash", "enable", "complete", "bind", "trap", "shopt", "fc", "coproc")
)
_RUNNING_TEXT = frozenset({"eval", "source", ".", "let"})
_SETTING = frozenset(
    ("export", "declare", "typeset", "readonly", "local", "env", "setenv", "launchctl", "set")
)
_WITH_SUBSCRIPTS = _SETTING | {
    "printf",
    "read",
    "unset",
    "test",
    "[",
    "wait",
    "mapfile",
    "readarray",
}
_NETWORK = re.compile(r"/dev/(?:tcp|udp)/")
_FOREIGN_SCRIPT = ("CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "FULLWIDTH", "MATHEMATICAL")
_LATIN = re.compile(r"[A-Za-z]")
_LETTERS = re.compile(r"[^\W\d_]+|.", re.DOTALL)


def concerns_of(text: str, reading: Reading, *, with_harmless: bool = True) -> tuple[str, ...]:
    """Say what has to be asked about, one line for each thing.

    Without `with_harmless` the variables that an "always" may stand for are left out: `PYTHONPATH=src`.
    """
    found = [f"not understood: {reason}" for reason in reading.doubts]
    names = {run.words[0] for run in reading.runs if run.words}
    moves = not names.isdisjoint(_MOVING)
    is_watched = not names.isdisjoint(_WATCHED)
    for run in reading.runs:
        if is_watched or run.targets or run.sets or run.given:
            found += _concerns_of_run(run, moves=moves, with_harmless=with_harmless)
    found += concerns_about(text, reading)
    if _NETWORK.search(text):
        found.append("opens a network connection by way of /dev/tcp or /dev/udp")
    if not text.isascii():
        found += oddities_of(text, reading)
    return tuple(dict.fromkeys(found))


def notes_of(reading: Reading) -> tuple[str, ...]:
    """Say what the person should look at where they are asked anyway."""
    return tuple(
        f"{run.words[0]} runs code given on the command line"
        for run in reading.runs
        if run.words and stem_of(run.words[0]) in INTERPRETERS and codes_in(run)
    )


def oddities_of(text: str, reading: Reading) -> tuple[str, ...]:
    """Say what a reader could overlook in the command."""
    found = [f"holds the invisible character {name}" for name in hidden_characters(text)]
    found += [
        f"the program's name {run.words[0]!r} holds letters that look like others"
        for run in reading.runs
        if run.words and not run.words[0].isascii()
    ]
    for word in dict.fromkeys(_LETTERS.findall(text)):
        if not word.isascii() and (twin := _deceiver(word)):
            found.append(f"{word[:40]!r} holds {twin}, which looks like another character")
    return tuple(dict.fromkeys(found))


def _deceiver(word: str) -> str:
    """Return the name of a character in a run of letters that is there to be taken for another one, or nothing."""
    has_latin = bool(_LATIN.search(word))
    for character in word:
        plain = normalize("NFKC", character)
        name = name_of(character, "")
        is_twin = plain != character and plain.isascii() and (not plain.isalnum() or has_latin)
        if character.isspace() or (is_twin and name.startswith(_FOREIGN_SCRIPT)):
            return f"U+{ord(character):04X}"
        if has_latin and name.startswith(_FOREIGN_SCRIPT):
            return f"U+{ord(character):04X}"
    return ""


def _concerns_of_run(run: Command, *, moves: bool, with_harmless: bool) -> Iterator[str]:
    for target in run.targets:
        if reason := _reach_of(target, moves=moves):
            yield f"writes to {target!r}, {reason}"
    for assignment in run.sets:
        if is_powerful(assignment) and (with_harmless or not is_harmless(assignment)):
            yield _setting(assignment)
    if run.words:
        yield from _concerns_of_words(run, moves=moves)


def _concerns_of_words(run: Command, *, moves: bool) -> Iterator[str]:
    name, words = run.words[0], run.words
    if name in _BY_NAME:
        yield from _concerns_by_name(name, words, moves=moves)
    if run.given and stem_of(name) in INTERPRETERS:
        yield f"{name} runs the text of a here-document"
    if name in options.RUNNING:
        yield from (
            f"{name} {option.name} runs what it is given" for option in options.running(words)
        )


_MOVING = frozenset({"cd", "pushd", "chdir"})
_BY_NAME = _RUNNING_TEXT | _CHANGING | _WITH_SUBSCRIPTS | {"tee"}
_WATCHED = _BY_NAME | set(options.RUNNING)


def _concerns_by_name(name: str, words: list[str], *, moves: bool) -> Iterator[str]:
    if name in _RUNNING_TEXT:
        yield f"{name} runs text or a file as commands of this shell"
    elif name in _CHANGING and len(words) > 1:
        yield f"{name} changes what other commands mean"
    elif name == "tee":
        for word in words[1:]:
            if not word.startswith("-") and (reason := _reach_of(word, moves=moves)):
                yield f"writes to {word!r}, {reason}"
    elif name in _SETTING:
        yield from (_setting(word) for word in words[1:] if is_powerful(word))
    if name in _WITH_SUBSCRIPTS and any("[" in word and _SUBSTITUTED(word) for word in words[1:]):
        yield f"{name} runs the substitution within a subscript"


_SUBSTITUTED = re.compile(r"\$\(|`").search


def _setting(assignment: str) -> str:
    return f"sets {assignment.partition('=')[0].rstrip('+')}, which says how other programs run"


def _reach_of(target: str, *, moves: bool) -> str:
    """Say what is special about a file that is written to, or nothing."""
    if target in _DEVICES:
        return ""
    path = normpath(target)
    parts = path.split("/")
    if target[:1] in "~$":
        return "outside the project"
    if path.startswith("/"):
        return "" if path.startswith(_SCRATCH) else "outside the project"
    if parts[0] == "..":
        return "outside the project"
    if any(part.startswith(".") and part != "." for part in parts):
        return "which other programs read by themselves"
    return "in a folder that is only known when it runs" if moves else ""
