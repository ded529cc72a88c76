"""Programs that run other programs (`env`, `nohup`, `sh -c`, `xargs`, `find -exec`): what they run."""

from collections.abc import Iterator

from msgspec import Struct

from ybs.security.commands import SHELLS, Command, Script, parse

#: Program -> the one-letter options that take the next word as their value. An unknown long option may
#: take one as well, so both readings are followed.
_WRAPPERS = {
    "env": "uCS",
    "exec": "a",
    "time": "fo",
    "nice": "n",
    "ionice": "cnpPu",
    "stdbuf": "ioe",
    "timeout": "ks",
    "xargs": "aEIdLnPs",
    "sudo": "ugpChRrTtUD",
    "doas": "uC",
    "strace": "eop",
    "watch": "n",
    "caffeinate": "tw",
    "flock": "wE",
    "parallel": "j",
    **dict.fromkeys(("command", "builtin", "nohup", "setsid", "chroot", "busybox"), ""),
    **dict.fromkeys(("taskset", "unshare", "chrt"), ""),
}
#: Programs with a word of their own (a duration, a folder, a mask) before the command.
_SKIPPED_WORDS = {"timeout": 1, "chroot": 1, "taskset": 1, "chrt": 1, "flock": 1}
_FIND_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_DEEPEST = 10
_MOST_RUNS = 500


class Reading(Struct):
    """What a script runs: each program with its arguments, the program's name without its folder."""

    script: Script
    runs: list[Command]
    is_clear: bool


def read(text: str, depth: int = 0) -> Reading:
    """Read a command line, and through the wrappers in it."""
    script = parse(text)
    reading = Reading(script=script, runs=[], is_clear=script.is_clear and depth <= _DEEPEST)
    if depth <= _DEEPEST:
        for command in script.commands:
            _follow(command, command.argv, reading, depth)
    return reading


def _follow(command: Command, argv: list[str], reading: Reading, depth: int) -> None:
    if not argv:
        reading.runs += [command] if command.targets else []
        return
    name = argv[0].rpartition("/")[2]
    if "$" in name or "`" in name:  # only known when it runs: `env $X`
        reading.is_clear = False
    words = [name, *argv[1:]]
    run = Command(words=words, targets=command.targets, is_piped_into=command.is_piped_into)
    reading.runs.append(run)
    for text in _texts_run_by(words):
        inner = read(text, depth + 1)
        reading.runs += inner.runs
        reading.is_clear = reading.is_clear and inner.is_clear
    if depth > _DEEPEST or len(reading.runs) > _MOST_RUNS:
        reading.is_clear = False
        return
    for inner_argv in _commands_run_by(words):
        _follow(command, Command(words=inner_argv, targets=[]).argv, reading, depth + 1)


def _texts_run_by(words: list[str]) -> Iterator[str]:
    """Yield the arguments that are command lines of their own."""
    name, *rest = words
    if name in SHELLS:
        yield from _after_option(rest, "c")
    elif name == "eval":
        yield " ".join(rest)
    elif name in ("trap", "watch"):
        yield from rest[:1] if name == "trap" else [" ".join(_after_options(rest, "n"))]
    elif name in ("su", "flock", "script"):
        yield from _after_option(rest, "c")
    elif name == "env":
        yield from _after_option(rest, "S")


def _after_option(words: list[str], letter: str) -> Iterator[str]:
    """Yield the word behind a cluster of options that holds the letter (`-c`, `-lc`, `-ec`)."""
    for place, word in enumerate(words[:-1]):
        if word.startswith("-") and not word.startswith("--") and letter in word:
            yield words[place + 1]
            return


def _commands_run_by(words: list[str]) -> Iterator[list[str]]:
    """Yield the argument lists that the program runs as commands."""
    name, *rest = words
    if name in ("find", "fd", "fdfind"):
        for place, word in enumerate(rest):
            if word in _FIND_RUNS or (name != "find" and word in ("-x", "-X", "--exec")):
                yield rest[place + 1 :]
    elif name in _WRAPPERS:
        inner = _after_options(rest, _WRAPPERS[name])
        yield inner[_SKIPPED_WORDS.get(name, 0) :]
        if any(
            word.startswith("--") and "=" not in word for word in rest[: len(rest) - len(inner)]
        ):
            yield inner[_SKIPPED_WORDS.get(name, 0) + 1 :]


def _after_options(words: list[str], with_value: str) -> list[str]:
    place = 0
    while place < len(words) and words[place].startswith("-"):
        word = words[place]
        place += 1
        if word == "--":
            break
        if not word.startswith("--") and word[-1] in with_value and len(word) > 1:
            place += 1
    return words[place:]
