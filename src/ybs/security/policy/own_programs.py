"""Programs of the project that something else runs: `python3 test_app.py`, `node index.js`, `uv run python -m app`.

They run in the sandbox, as the tests of the project do. "Always" covers such a command as it stands; of a file of tests
it covers other options and arguments too. A program that is given as text (`python -c`) is not one of these.
"""

from collections.abc import Callable, Sequence

from ybs.core.lazy import lazy
from ybs.security.commands.command import Command
from ybs.security.commands.dangers import INTERPRETERS, stem_of
from ybs.security.commands.wrappers import Reading

#: Two words by which a package manager runs a program of the project's environment.
_RUNNERS = frozenset(
    (name, "run") for name in ("uv", "poetry", "pipenv", "pdm", "rye", "hatch")
) | {("bundle", "exec")}  # fmt: skip
#: Interpreters with a verb before the file.
_VERBS = {"deno": ("run", "test"), "bun": ("run", "test")}
#: Options before the file that change neither which file runs nor what runs before it.
_HARMLESS = lazy(
    r"-(?:[uBOIbvqwx]+|W[a-z:]+|X(?:dev|utf8)|-(?:test|watch|trace-warnings|trace-uncaught|no-warnings"
    r"|enable-source-maps|test-reporter=\w+|experimental-[\w-]+|warnings|yjit|jit|allow-\w+|quiet))"
)
_FILE = lazy(
    r"(?!-)[\w@.+/-]+\.(?:pyw?|[cm]?js|jsx|[cm]?ts|tsx|rb|php|p[lm]|t|lua|sh|bash|zsh|R|jl|exs?|tcl|scm|groovy|ps1)"
)
_MODULE = lazy(r"[A-Za-z_]\w*(?:\.\w+)*")
_TEST = lazy(r"(?:^|/)(?:tests?(?:[_-][^/]*)?|[^/]*[_.-](?:tests?|spec))\.\w+$")
#: Words that mean the same in a rule as in a shell, without quotes.
_PLAIN_WORD = lazy(r"(?!\+$)[\w./:=,@%+-]+")


def program_ends(words: Sequence[str]) -> int:
    """Return the place behind the file, module or verb of the project that a command runs; 0 where it runs none."""
    start = 2 if tuple(words[:2]) in _RUNNERS else 0
    rest = words[start:]
    if not rest:
        return 0
    if start and _is_own_file(rest[0]):
        return start + 1  # `uv run main.py`
    name = stem_of(rest[0].rpartition("/")[2])
    if name not in INTERPRETERS or name in ("eval", "source", "."):
        return 0
    place, verbs = start + 1, _VERBS.get(name, ())
    if verbs and words[place : place + 1] and words[place] in verbs:
        place += 1
    options = place
    while place < len(words) and _HARMLESS().fullmatch(words[place]):
        place += 1
    is_test = "--test" in words[options:place] or words[options - 1] == "test"
    if words[place : place + 1] == ["-m"] and name.startswith(("python", "pypy")):
        is_one = place + 1 < len(words) and _MODULE().fullmatch(words[place + 1])
        return place + 2 if is_one else 0
    if place < len(words) and _is_own_file(words[place]):
        return place + 1
    return place if is_test and place == len(words) else 0


def scope_of_program(words: Sequence[str], stays: Callable[[int], bool]) -> str:
    """Return the scope of a command that runs a program of the project, or nothing.

    `stays` says whether the words from a place on reach for nothing outside.
    """
    ends = program_ends(words)
    if not ends or not all(map(_PLAIN_WORD().fullmatch, words)):
        return ""
    if _TEST().search(words[ends - 1]) and stays(ends):
        return " ".join(words[:ends]) + " *"
    return " ".join(words)


def runs_more(reading: Reading, is_known: Callable[[Command], bool]) -> bool:
    """Return whether a command of a flat line runs other programs, apart from those that are known for what they run."""
    parts = reading.script.commands
    known = [part for part in parts if is_known(part)]
    covered = {tail for part in known for tail in _tails(part.argv)}
    others = [run for run in reading.runs if tuple(run.words) not in covered]
    return len(others) != len(parts) - len(known)


def _tails(words: Sequence[str]) -> list[tuple[str, ...]]:
    """Return what a reading may name of a command: it and its ends, each with the bare name of its first word."""
    return [
        (words[place].rpartition("/")[2].lower(), *words[place + 1 :])
        for place in range(len(words))
    ]


def _is_own_file(word: str) -> bool:
    """Return whether a word names a program below the folder that the command runs in."""
    return (
        bool(_FILE().fullmatch(word)) and not word.startswith("/") and ".." not in word.split("/")
    )
