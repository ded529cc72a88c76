"""The files that a shell's text runs or sources, by the reading that commands are judged by (`commands.wrappers`).

One answer for `.envrc` and for the hooks and servers of the person's: no wrapper, quotation or interpreter hides a file. What is given to
another program, such as `make` or `npm run`, is data.
"""

import re
from collections.abc import Iterator, Sequence
from glob import escape, has_magic, iglob
from itertools import islice, takewhile
from os.path import join
from typing import Literal, TypeAlias

from ybs.core.lazy import lazy
from ybs.security.commands.command import MOVING, Command, is_short, scan, words_in
from ybs.security.commands.dangers import INTERPRETERS, stem_of
from ybs.security.commands.wrappers import commands_run_by, read
from ybs.security.paths.whole_paths import spelled_out

Kind: TypeAlias = Literal["sourced", "run"]
#: Words of a shell and of direnv by which a file is sourced. `dotenv` alone means `.env`.
_SOURCING = words_in(". source source_env source_env_if_exists dotenv dotenv_if_exists load_dotenv")
_LOOP = lazy(r"\bfor\s+([A-Za-z_]\w*)\s+in\s+([^;\n]+)")
_HOME = lazy(r"(?:~|\$HOME|\$\{HOME\})/")
#: What stands before a path and may mean the project's folder.
_FOLDER = lazy(r"(?:\$\(.*\)|`.*`|\$\w+|\$\{[^{}]*\})/+")
_NO_PATH = lazy(r"[;&|<>()`$\"'\\\n]|\A\Z")
#: A longer text is read line by line. So many values of loops are put in place of their variables, and so many files match a pattern.
_LONGEST, _MOST_VALUES, _MOST_MATCHES = 30_000, 20, 100


def files_run(text: str, home: str) -> dict[tuple[str, Kind], None]:
    """Return the paths, whole ones or from where it starts, by which a text names what it sources or runs. They may be patterns."""
    if len(text) > _LONGEST or not is_short(text):
        texts = dict.fromkeys(text.splitlines())
    else:
        texts = dict.fromkeys((text, spelled_out(text)))
        loops = [(name, each) for name, words in _LOOP().findall(text) for each in words.split()]
        for name, value in loops[:_MOST_VALUES]:
            variable = rf"\$(?:{name}\b|\{{{name}\}})"
            texts[re.sub(variable, lambda _, each=value: each, text)] = None
    words = (found for each in texts for found in _words_in(each, home))
    return {(word, kind): None for word, kind in words if not _NO_PATH().search(word)}


def matches(path: str, root: str) -> Iterator[str]:
    """Yield a path below the root, given from there; of a pattern its folder with a slash, and what it matches."""
    parts = path.split("/")
    plain = [*takewhile(lambda part: not has_magic(part), parts)]
    if plain == parts:
        yield f"{root}{path}"
        return
    yield f"{root}{'/'.join(plain)}/"
    yield from islice(iglob(f"{escape(root)}{path}"), _MOST_MATCHES)  # noqa: PTH207 - a text


def _words_in(text: str, home: str) -> Iterator[tuple[str, Kind]]:
    """Yield the words by which commands name what they run, from each folder that they enter."""
    reading, fed, entered = read(text), list[Command](), [""]
    for program, run in zip(reading.programs, reading.runs, strict=True):
        fed = [*fed, run] if run.is_piped_into else [run]
        if run.words[:1] and run.words[0] in MOVING:
            left = [] if reading.script.is_clear else entered  # a subshell, or a loop, comes back
            here = [_placed(word, home) for word in _operands(run.words[1:])] or [home]
            entered = [*left, *(join(entered[-1], each) for each in here)]  # noqa: PTH118 - texts
        kind: Kind = "sourced" if program in _SOURCING else "run"
        for word in _named_by(program, run, fed):
            placed = _placed(word, home)
            for folder in entered:
                yield join(folder, placed), kind  # noqa: PTH118 - texts


def _named_by(program: str, run: Command, fed: Sequence[Command]) -> Iterator[str]:
    """Yield the words by which a command names what it runs, which may be the output of another one; `fed` are those of its pipe."""
    name, words = stem_of(program), run.words[1:]
    operands = [*_operands(words)]
    if "/" in program:
        yield program
    named = list[str]()
    inner = {each[0] for each in commands_run_by(name, words)}
    named += [word for word in words if word in inner and "." in word]  # `uv run x.py`
    if name in INTERPRETERS:
        named += [*(words if name == "eval" else operands), *run.sources]
        named += [word for each in fed[:-1] if not operands for word in each.words]
    elif name in _SOURCING:
        named += operands or [".env"]
    for word in named:
        yield word
        if "$(" in word or "`" in word:
            yield from scan(word)


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


def _placed(word: str, home: str) -> str:
    """Return a word in which a path below the home folder is whole, and one from a folder that may be the project's begins there."""
    if at_home := _HOME().match(f"{word}/"):
        return join(home, word[at_home.end() :])  # noqa: PTH118 - a text
    folder = _FOLDER().match(word)
    return word[folder.end() :] if folder else word
