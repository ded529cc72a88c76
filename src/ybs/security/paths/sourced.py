"""What files such as `.envrc` at the top of a project source or run: it runs with them, whatever it is called.

A shell's files, and those that they source, are read as commands are (`commands.wrappers`): no wrapper, quotation or interpreter hides what
they run. Other formats are not parsed: what looks like sourcing counts. What they name otherwise is data, or what a person starts on purpose.
"""

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from glob import escape, has_magic, iglob
from itertools import islice, takewhile
from typing import Literal, TypeAlias

from msgspec import Struct

from ybs.core.lazy import lazy
from ybs.security.commands.command import Command, is_short, scan, words_in
from ybs.security.commands.dangers import INTERPRETERS, stem_of
from ybs.security.commands.wrappers import commands_run_by, read
from ybs.security.paths.opening import read_beginning
from ybs.security.paths.path_text import lies_in
from ybs.security.paths.whole_paths import spelled_out

_State: TypeAlias = tuple[int, ...]
_Kind: TypeAlias = Literal["sourced", "run"]
#: So much is read of a file, so many are followed, and so many values of loops are put in place of their variables.
_MOST_BYTES, _MOST_FILES, _MOST_VALUES = 64_000, 100, 20
#: A longer text of a shell is read line by line.
_LONGEST = 30_000
#: Words of a shell and of direnv by which a file is sourced. `dotenv` alone means `.env`.
_SOURCING = words_in(". source source_env source_env_if_exists dotenv dotenv_if_exists load_dotenv")
#: What sources a file in another format, where a line or the value of an entry begins (`pre: source ./env.sh`).
_SOURCES = lazy(
    r"(?:(?:^|[;&|({`]|\b(?:then|do|else)\s|[:-]\s)[ \t]*|[\"'])(?:\.|source(?:-file|_env(?:_if_exists)?)?)[ \t]+"
    r"[\"']?((?:\$\([^()]*\))?[^\s\"'`;&|()<>#=-][^\s\"'`;&|()<>]*)",
    re.MULTILINE,
)
_LOOP = lazy(r"\bfor\s+([A-Za-z_]\w*)\s+in\s+([^;\n]+)")
_HOME = lazy(r"(?:~|\$HOME|\$\{HOME\})/")
#: What stands before a path and may mean the project's folder.
_FOLDER = lazy(r"(?:\$\(.*\)|`.*`|\$\w+|\$\{[^{}]*\})/+")
_NO_PATH = lazy(r"[;&|<>()`$\"'\\\n]|\A\Z")
#: Shells run these where somebody enters the folder.
_OF_SHELLS = (".envrc", ".autoenv")


class _Followed(Struct, frozen=True):
    """What was read, by the state of each path that was looked at, and what came of it."""

    tops: tuple[str, ...]
    states: dict[str, _State]
    paths: tuple[str, ...]


#: By root.
_known: dict[str, _Followed] = {}


def sourced(held: Iterable[str], root: str, home: str) -> tuple[str, ...]:
    """Return the paths in a root that those of these files source or run which lie at its top, and what those source; they need not exist."""
    tops = tuple(path for path in held if path.rpartition("/")[0] == root)
    known = _known.get(root)
    if (
        known is None
        or known.tops != tops
        or any(_state(path) != state for path, state in known.states.items())
    ):
        _known[root] = known = _followed(tops, root, os.path.realpath(home))
    return known.paths


def _followed(tops: tuple[str, ...], root: str, home: str) -> _Followed:
    states = {path: _state(path) for path in tops}
    queue = list(tops)
    shells = {path for path in tops if path[len(root) + 1 :].startswith(_OF_SHELLS)}
    for path in queue:
        if not _is(states[path], stat.S_ISREG):
            continue
        for target, kind in _targets(path, root, home, is_of_shell=path in shells):
            if target not in states and len(queue) < len(tops) + _MOST_FILES:
                states[target] = _state(target)
                is_matched = target.endswith("/") and target != f"{root}/"
                is_named = is_matched or not _is(states[target], stat.S_ISDIR)
                queue += [target.rstrip("/")] * is_named
                shells |= {target} if kind == "sourced" and path in shells else set()
    return _Followed(tops, states, tuple(queue[len(tops) :]))


def _state(path: str) -> _State:
    """Return what tells a file from another one, and its kind alone of what is none; nothing where nothing is.

    Of a folder with a slash at its end, which a pattern looks through, also when its names changed.
    """
    try:
        status = os.stat(path)  # noqa: PTH116 - texts throughout
    except (OSError, ValueError):
        return ()
    if not stat.S_ISREG(status.st_mode):
        return (status.st_mode, *[status.st_ctime_ns] * path.endswith("/"))
    return status.st_mode, status.st_dev, status.st_ino, status.st_size, status.st_ctime_ns


def _is(state: _State, kind: Callable[[int], bool]) -> bool:
    return bool(state) and kind(state[0])


def _targets(path: str, root: str, home: str, *, is_of_shell: bool) -> Iterator[tuple[str, _Kind]]:
    """Yield the paths in the root that a file names, from the root or from its own folder."""
    for word, kind in _words_in(path, is_of_shell=is_of_shell):
        name = _HOME().sub(lambda _: f"{home}/", word, 1) if _HOME().match(word) else word
        folder = _FOLDER().match(name)
        name = name[folder.end() :] if folder else name
        if _NO_PATH().search(name):
            continue
        for base in dict.fromkeys((root, path.rpartition("/")[0])):
            target = os.path.normpath(f"{base}/{name}" if name[0] != "/" else name)
            if target != root and lies_in(target, root):
                yield from ((each, kind) for each in _matches(target[len(root) :], root))


def _matches(path: str, root: str) -> Iterator[str]:
    """Yield a path below the root; of a pattern its folder with a slash, and what it matches."""
    parts = path.split("/")
    plain = [*takewhile(lambda part: not has_magic(part), parts)]
    if plain == parts:
        yield f"{root}{path}"
        return
    yield f"{root}{'/'.join(plain)}/"
    yield from islice(iglob(f"{escape(root)}{path}"), _MOST_FILES)  # noqa: PTH207 - a text


def _words_in(path: str, *, is_of_shell: bool) -> Iterable[tuple[str, _Kind]]:
    """Return the words by which a file sources others, and by which one of a shell runs them."""
    data: bytes | None = None
    with suppress(OSError, ValueError):
        data = read_beginning(os.path.realpath(path), _MOST_BYTES)
    text = (data or b"").decode(errors="replace")
    if not is_of_shell:
        return [(word, "sourced") for word in _SOURCES().findall(text)]
    if len(text) > _LONGEST or not is_short(text):
        return dict.fromkeys(found for line in text.splitlines() for found in _files_in(line))
    texts = dict.fromkeys((text, spelled_out(text)))
    loops = [(name, each) for name, words in _LOOP().findall(text) for each in words.split()]
    for name, value in loops[:_MOST_VALUES]:
        texts[re.sub(rf"\$(?:{name}\b|\{{{name}\}})", lambda _, each=value: each, text)] = None
    return dict.fromkeys(found for each in texts for found in _files_in(each))


def _files_in(text: str) -> Iterator[tuple[str, _Kind]]:
    """Yield the words by which a shell's text names what it sources or runs, which may be the output of a command."""
    reading, fed = read(text), list[Command]()
    for program, run in zip(reading.programs, reading.runs, strict=True):
        fed = [*fed, run] if run.is_piped_into else [run]
        name, words = stem_of(program), run.words[1:]
        operands = [*_operands(words)]
        named = [program] if "/" in program else []
        named += [inner[0] for inner in commands_run_by(name, words) if inner[0] in words]
        if name in INTERPRETERS:
            named += [*(words if name == "eval" else operands), *run.sources]
            named += [word for each in fed[:-1] if not operands for word in each.words]
        kind: _Kind = "sourced" if name in _SOURCING else "run"
        if kind == "sourced":
            named += operands or [".env"]
        for word in named:
            yield word, kind
            if "$(" in word or "`" in word:
                yield from ((each, kind) for each in scan(word))


def _operands(words: Sequence[str]) -> Iterator[str]:
    """Yield the words that may be the first operand: one behind an option may be its value."""
    is_behind_option = False
    for word in words:
        is_option = word.startswith("-")
        if not is_option and word != "run":  # `deno run FILE`
            yield word
            if not is_behind_option:
                return
        is_behind_option = is_option
