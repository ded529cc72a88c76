"""Programs that run other programs (`env`, `nohup`, `sh -c`, `xargs`, `find -exec`): what they may run."""

import re
from collections.abc import Iterator
from functools import cached_property

from msgspec import Struct

from ybs.security.commands import Command, Script, parse, scan

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "fish"})
#: Their arguments together are one text.
_JOINING = frozenset({"eval", "watch", "ssh", "parallel"})
#: Programs with a word of their own (a duration, a folder, a person) before the command.
_WITH_OPERAND = frozenset({"timeout", "chroot", "taskset", "chrt", "flock", "su", "runuser", "ssh"})
_WRAPPERS = frozenset[str]().union(
    SHELLS,
    _JOINING,
    _WITH_OPERAND,
    ("env", "command", "builtin", "exec", "nohup", "time", "nice", "ionice", "stdbuf", "setsid"),
    ("xargs", "sudo", "doas", "pkexec", "strace", "ltrace", "caffeinate", "unshare", "nsenter"),
    ("busybox", "toybox", "script", "trap", "alias", "systemd-run", "setpriv", "prlimit"),
    ("unbuffer", "proot", "fakeroot"),
)
_FIND_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"})
_TEXT = re.compile(r"[\s;&|<>()$`'\"\\*?\[]")
#: Beyond these a text is not clear, and is only scanned.
_DEEPEST = 5
_MOST_WORDS = 5_000


class Reading(Struct, dict=True):
    """What a text runs: each program, without its folder, with its arguments, those in wrappers included."""

    text: str
    script: Script
    runs: list[Command]
    is_clear: bool
    word_count: int = 0

    @cached_property
    def scanned(self) -> list[str]:
        """All that could be words of a command; empty for a text that is clear."""
        return [] if self.is_clear else scan(self.text)


def read(text: str) -> Reading:
    """Read a command line, and through the wrappers in it."""
    script = parse(text)
    reading = Reading(text=text, script=script, runs=[], is_clear=script.is_clear)
    for command in script.commands:
        _follow(command, reading, 0)
    return reading


def _follow(command: Command, reading: Reading, depth: int) -> None:
    """Add a command and what it may run to the reading."""
    argv = command.argv
    reading.word_count += len(argv)
    if depth > _DEEPEST or reading.word_count > _MOST_WORDS:
        reading.is_clear = False
    if not reading.is_clear:
        return
    name = argv[0].rpartition("/")[2] if argv else ""
    reading.runs.append(
        Command([name, *argv[1:]] if argv else [], command.targets, command.is_piped_into)
    )
    for words in _commands_run_by(name, argv[1:]):
        if not reading.is_clear:
            return
        _follow(Command(words, [], command.is_piped_into), reading, depth + 1)
        if _TEXT.search(words[0]):
            _follow_text(words[0], reading, depth + 1)
    if name in _JOINING:
        _follow_text(" ".join(argv[1:]), reading, depth + 1)


def _follow_text(text: str, reading: Reading, depth: int) -> None:
    script = parse(text)
    reading.is_clear = reading.is_clear and script.is_clear
    for command in script.commands:
        _follow(command, reading, depth)


def _commands_run_by(name: str, words: list[str]) -> Iterator[list[str]]:
    """Yield every argument list that the program may run as a command."""
    if name in ("find", "fd", "fdfind"):
        starts = (place + 1 for place, word in enumerate(words) if word in _FIND_RUNS)
        yield from (words[start:] for start in starts if words[start:])
    elif name in _WRAPPERS and not (name == "command" and {"-v", "-V"} & set(words[:2])):
        yield from _starts(name, words)


def _starts(name: str, words: list[str]) -> Iterator[list[str]]:
    """Yield from every word that may be the program, up to the one that can be nothing else."""
    operands_left = 1 + (name in _WITH_OPERAND)
    is_behind_option = False
    for place, word in enumerate(words):
        if first := _program_in(word, is_alias=name == "alias"):
            yield [first, *words[place + 1 :]]
        is_option = word.startswith("-")
        is_own = is_option or is_behind_option or "=" in word or word[:1].isdigit()
        is_behind_option = is_option
        operands_left -= not is_own
        if not operands_left:
            return


def _program_in(word: str, *, is_alias: bool) -> str:
    """Return the word, or what is glued to an option: `-Sprogram`, `--split-string=program`."""
    if word.startswith("-") and not word.startswith("--"):
        return word[2:]
    return word.partition("=")[2] if "=" in word and (is_alias or word[0] == "-") else word
