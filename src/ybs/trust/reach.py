"""Find the project files that a command reaches, in any spelling, and what it runs that may reach more.

For the files a command is not parsed: every part of it that could name an existing file of the project counts, so that a wrapper, a
quotation or a folder that is entered first hides nothing. What it runs is known only where all of it is understood: simple commands of
literal words, whose programs are known to run and load no file of the project (ADR 51).
"""

import glob
import os
import re
import shlex
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, Final, TypeAlias

from msgspec import Struct

from ybs.config.paths import SYSTEM
from ybs.core.lazy import lazy

#: A shell's text, or the words of a program that is started without one.
Command: TypeAlias = str | tuple[str, ...]
MOST_BASES: Final = 32
MOST_CANDIDATES: Final = 2_000
_MOST_MATCHES = 100
_MOST_LINKS = 8
_DEEPEST = 4
_MOST_PARTS = 10
_LONGEST_LINE = 1_000
#: Stands for all of a project.
WHOLE: Final = ("",)
_ANY_FILE = "what may be any file"
_TOO_LONG = "a command too long to be read"
_MORE = "more than plain commands"
#: Programs that run a file that they are given.
_INTERPRETERS: Final = re.compile(
    r"(?:(?:ba|da|z|k|a|fi)?sh|busybox|source|node(?:js)?|ruby|perl|php|lua|osascript|pwsh|(?:python|pypy)[\d.]*)\Z"
)
#: How commands name the project's folder, and other variables or outputs that stand in a word.
_PROJECT = re.compile(
    r"\$(?:CLAUDE_PROJECT_DIR|YBS_PROJECT_DIR|PWD)\b|\$\{(?:CLAUDE_PROJECT_DIR|YBS_PROJECT_DIR|PWD)\b[^{}]*\}"
    r"|\$\(\s*(?:pwd(?:\s+-[LP])?|git rev-parse --show-toplevel)\s*\)|`\s*(?:pwd|git rev-parse --show-toplevel)\s*`"
)
_HOME = re.compile(r"\$\{?HOME\b\}?|(?<![^\s\"'=:,;|&()<>])~(?P<user>[\w.-]*)(?=/)")
_WHOLE_PATH = re.compile(r"(?<![\w.*)}>-])/|-\w/")
_SYSTEM: Final = tuple(f"{folder}/" for folder in SYSTEM)
_VARIABLE = re.compile(
    r"\$\([^()]*\)|`[^`]*`|\$\{[^{}]*\}|\$[A-Za-z_]\w*|\$[0-9@*#?!$-]|\{[^{}\s]*\}"
)
_NAMED = re.compile(r"\$\{?(\w+)\b\}?")
#: A file that the shell writes into is none that runs.
_OUTPUT = re.compile(
    r"(?:(?<![=<-])[0-9&]?>{1,2}[|&]?|\|\s*tee(?=\s))(?:\s*-a)?\s*[\"']?[^\s\"'`;|&()<>]+[\"']?[^\s\"'`;|&()<>]*"
)
_BETWEEN = re.compile(r"[\s;|&()<>=:,@\"'`\[\]{}#]+")
_MODULE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*\Z")
_IMPORTED = re.compile(
    r"(?:-\w*m\s*|\b(?:import|from)\s+|\b(?:__import__|import_module)\s*\(\s*)((?:[A-Za-z_][\w.]*(?:\s+as\s+\w+)?(?:\s*,\s*)?)+)"
)
_USED = re.compile(r"(?:-[mM]-?|\b(?:use|require)\s+)([A-Za-z_]\w*(?:::\w+)*)")
_QUOTES = re.compile(r"[\"'\\]")
#: A text that a shell splits at its spaces.
_UNQUOTED = re.compile(r"[ \t\r\n!#-&(-\[\]-~]*\Z")
#: Stands for what a variable says.
_ANY = "\x02"
_ANY_TOP = re.compile(rf"{_ANY}(?=[\"']?/)")
_GLOB = re.compile(r"[*?\x02]|\[[^\]]*\]")
_SOURCED = re.compile(r"(?:\A|[\s;&|(\"'])\.\s")
#: Where a command begins in a script, behind what only starts another one.
_BEGINS = lazy(
    r"(?:^|[;&|(`]|\)\s*(?=[({]|(?:then|do|else|elif|if|while|until|for|case|time|!)\s)|-exec\s|-c\s+[\"'])\s*"
    r"(?:(?:if|while|until|elif|then|do|else|exec|env|sudo|time|nice|nohup|command|xargs|[!{])\s+(?:-[^\s;&|()`]+\s+)*|timeout\s+\d+\w?\s+|[A-Za-z_]\w*\+?=[^\s;&|()`]*\s+)*"
    r"[\"']?(?P<program>(?![A-Za-z_]\w*\+?=)[^\s;&|()`\"']+)(?:[\"']?[ \t]+(?:[^\s;&|()`]+))?",
    re.MULTILINE,
)
#: The beginning of a path that is there only if its folder lists it.
_IS_PLAIN = re.compile(r"(?!\.{0,2}\Z)[ -)+->@-Z\\^-~]+\Z")
#: The project's folder in double quotes; a word; what a command consists of. All of it means the same to every shell, but for `&>`, behind
#: which a command of `dash` begins: nothing may follow.
_FOLDER = r"\$(?:(?:CLAUDE|YBS)_PROJECT_DIR|PWD|\{(?:(?:CLAUDE|YBS)_PROJECT_DIR|PWD)\})(?=[/\"])"
_PIECE = (
    r"[A-Za-z0-9_./@%+=:,-]|\\[ '\"]|'[^\x00-\x1f\x7f'$`]*'"
    rf'|"(?:[^\x00-\x1f\x7f"$`\\]|\\["nt]|{_FOLDER})*"'
)
_WORD = rf"(?!\d+[<>])(?:(?:~(?=/))?(?:{_PIECE})+|[\[\]])(?=[\s;&|<>]|\Z)"
_TOKEN: Final = lazy(
    r"(?P<end>[ \t\n]*(?:&&|\|\||[|;\n])[ \t\n]*)|[ \t]+|\d?>&(?:\d|-)(?=[\s;&|]|\Z)"
    rf"|\d?(?:>>?|<)[ \t]*{_WORD}|&>>?[ \t]*{_WORD}(?=[ \t]*(?:[;|\n]|&&|\Z))|(?P<word>{_WORD})",
    re.ASCII,
)
#: What begins a command and is no program: a variable that is set, and words of the shell.
_NO_PROGRAM: Final = re.compile(
    r"\w+\+?=.*|if|then|elif|else|fi|for|while|until|do|done|case|esac|function|select|time|coproc"
)
_TEST = r"(?:\n-[defhLnrswxz]\n.*|\n(?!-).*\n!?=\n.*)"
#: Programs that run no other one and load no code, with the words that they may have, each behind a line feed. `black` is none: where
#: Python starts processes anew (macOS, and all systems from 3.14 on), it imports `multiprocessing` from the folder that it works in.
#: `isort` is none: where a setting says `skip_gitignore`, it runs git, and git what a repository in the project names.
_KNOWN: Final[Mapping[str, Callable[[], re.Pattern[str]]]] = {
    program: pattern
    for programs, words in (
        ("echo : true false pwd cat tac head tail wc nl cut tr uniq paste fold grep ls stat basename dirname realpath", r"(?:\n.*)*"),
        ("readlink cmp diff comm cksum sha256sum cp mv rm touch mkdir rmdir tee date sleep id whoami uname", r"(?:\n.*)*"),
        ("ruff gofmt gofumpt shfmt shellcheck clang-format stylua taplo notify-send say afplay paplay aplay", r"(?:\n.*)*"),
        ("sort", r"(?:\n(?!--).*)*"),
        ("jq", r"(?:\n(?!-\w*[fL]|--(?:from-file|library-path))(?!.*\b(?:include|import)\b).*)*"),
        ("printf", r"\n(?!-)(?:[^%\n\x02]|%[s%])*(?:\n.*)*"),
        ("test", _TEST),
        ("[", rf"{_TEST}\n\]"),
        ("cd", r"\n(?:\x02(?:/|\Z)|(?![-+/~]))(?!.*(?:\.\.|\x02)).*"),
        ("exit", r"(?:\n[0-9]{1,3})?"),
    )
    for pattern in (lazy(words),)
    for program in programs.split()
}  # fmt: skip


class CommandReach(Struct, frozen=True):
    """The files of a project that a command reaches, by their path in it, and what it runs that may reach more."""

    files: tuple[str, ...]
    unknown: tuple[str, ...]

    def seen(self, project: Any) -> tuple[str, ...]:
        """Return what of the project the sandbox shows to the command, by what its entry says as `project`: with `none` the files that it reaches."""
        return self.files if project == "none" else WHOLE


def reach(
    command: Command,
    folder: Path,
    home: Path,
    trusted: Collection[str] = (),
    path: str = os.defpath,
) -> CommandReach:
    """Return what a command reaches. `folder` is the project's real path, `path` the `PATH` that it is started with.

    Words are never known as a whole, since what serves runs more than it names; each is a path as it stands, besides.
    A file that is `trusted` is reached where it has gone, too.
    """
    search = _Search(str(folder), str(home), trusted)
    if isinstance(command, str):
        search.follow(command)
        unknown = dict.fromkeys(
            search.problems or unknown_in(command, search.regular, within(folder, path))
        )
    else:
        for word in command:
            search.add_exactly(opened_by(word, search.folder, search.home))
        search.follow(shlex.join(command))
        # What may be any file is a variable that the program is given.
        unknown = dict.fromkeys(each for each in search.problems if each != _ANY_FILE)
        unknown |= dict.fromkeys(_named(command, search.regular))
    return CommandReach(tuple(sorted(search.files)), tuple(unknown))


def named_in(
    words: Sequence[str],
    folder: Path,
    home: Path,
    environ: Mapping[str, str] | None = None,
    start: str = "",
) -> list[str]:
    """Return the whole paths of files below a folder that the words of an entry from elsewhere name, which starts anywhere.

    Such as a script by its whole path, or by its name behind a folder that is entered. What is named by its whole path need not exist.
    Variables stand for what `environ` says, or for anything. Plain words name files from the home folder, and from where it is known to `start`.
    """
    search = _SearchFromElsewhere(str(folder), str(home), start)
    for each in _filled_in(words, environ or {}):
        search.find(each)
    return [f"{search.folder}/{path}" for path in sorted(search.files)]


def beginnings(text: str, home: Path, environ: Mapping[str, str]) -> frozenset[str] | None:
    """Return the names, without their case, one of which has to be in the home folder, or where a command starts, for `named_in` to find anything.

    None where it may name files elsewhere.
    """
    names = set[str]()
    for (each,) in _filled_in((text,), environ):
        if _has_whole_path(_OUTPUT.sub(" ", each), "/", str(home)):
            return None
        paths = map(os.path.normpath, _plain_words(each, str(home)))
        names.update(path.partition("/")[0].casefold() for path in paths if path != ".")
    is_here = names.isdisjoint(("", "..")) and all(map(str.isascii, names))
    return frozenset(names) if is_here else None


def opened_by(word: str, folder: str, home: str) -> str:
    """Return the path that a word means to what is started in a folder without a shell."""
    word = f"{home}{word[1:]}" if word.startswith("~/") else word
    return os.path.normpath(os.path.join(folder, word.replace("\0", " ")))  # noqa: PTH118 - a text


def within(folder: Path, path: str) -> list[Path]:
    """Return the folders of a `PATH` that lie in a project, as `.venv/bin` may: what a command names is found there, whatever it is."""
    places = (folder / each for each in path.split(os.pathsep))
    return [each for each in places if Path(os.path.realpath(each)).is_relative_to(folder)]


def unknown_in(text: str, own: Iterable[str], inside: Collection[Path]) -> Iterator[str]:
    """Yield what a shell's command runs that is not known; `own` are the files of the project that it names, `inside` is what of `PATH` lies there."""
    is_long = max(map(len, text.split("\n"))) > _LONGEST_LINE
    commands = [] if is_long else _simple_commands(text)
    if not commands:
        yield _TOO_LONG if is_long else _MORE
    for words in commands:
        known = _KNOWN.get(words[0])
        is_known = known and known().fullmatch("".join(f"\n{word}" for word in words[1:]))
        if not is_known or any(os.path.lexists(each / words[0]) for each in inside):
            yield from _named(words, own)


def _simple_commands(text: str) -> list[list[str]]:
    """Return the words of each simple command, without redirections; nothing where any part of the text may mean more."""
    text = text.strip(" \t\n").removesuffix(";")
    commands: list[list[str]] = [[]]
    place = 0
    while place < len(text):
        token = _TOKEN().match(text, place)
        if token is None:
            return []
        place = token.end()
        if token["end"]:
            commands.append([])
        elif token["word"]:
            commands[-1] += shlex.split(re.sub(_FOLDER, _ANY, token["word"]))
    begins = ["".join(words[:1]) for words in commands]
    return [] if any(not each or _NO_PROGRAM.fullmatch(each) for each in begins) else commands


def _named(words: Sequence[str], own: Iterable[str]) -> list[str]:
    """Return how a program is shown: a script of the project by its path, also one that an interpreter is given."""
    program, *given = words
    if not (program == "." or _INTERPRETERS.match(program.rpartition("/")[2])):
        given = []
    names = {word.rpartition("/")[2] for word in (program if "/" in program else "", *given)}
    scripts = [path for path in own if path.rpartition("/")[2] in names]
    return scripts or [f"`{program.replace(_ANY, '.')}`"]


class _Search:
    """Looks for files below one folder that the parts of a text name."""

    #: What the words mean that name the project's folder, and how the files end that node finds by a name.
    _here = "."
    _ends = (".js", ".mjs", ".cjs", ".json", "/index.js")

    def __init__(self, folder: str, home: str, trusted: Collection[str] = ()) -> None:
        self.folder, self.home = folder.rstrip("/"), home
        self._trusted = frozenset(trusted)
        self._trusted_folders = {str(up) for path in trusted for up in PurePosixPath(path).parents}
        self.files, self.regular = set[str](), dict[str, None]()
        self.problems = list[str]()
        self._bases = dict.fromkeys((self.folder,))

    def follow(self, text: str) -> None:
        """Find the files that a text names, from the project's folder or one that it names."""
        candidates, is_whole = _candidates(
            text.replace("\0", " "), self._here, self.home, self._ends
        )
        if not is_whole:
            self.problems.append(_TOO_LONG)
        self._follow_all(candidates)

    def _follow_all(self, candidates: Sequence[str]) -> None:
        done = 0
        while done < len(self._bases):
            base = list(self._bases)[done]
            done += 1
            names = self._names_in(base)
            for candidate in candidates:
                first = candidate.partition("/")[0]
                if names is None or first.casefold() in names or not _IS_PLAIN.match(first):
                    path = os.path.join(base, candidate)  # noqa: PTH118 - a text
                    self._add(os.path.normpath(path))
                    if ".." in candidate:  # behind a link it leads elsewhere
                        self._add(os.path.realpath(path))

    def _add(self, path: str) -> None:
        if _GLOB.search(path):
            self._add_matches(path)
        else:
            self.add_exactly(path)

    def add_exactly(self, path: str) -> None:
        """Find the file at a path that is no pattern."""
        links: list[str] = []
        place, mode = self._walk(path, links)
        found = place.removeprefix(f"{self.folder}/")
        if not mode and found in self._trusted_folders:
            mode = stat.S_IFDIR
        is_file = bool(mode) and not stat.S_ISDIR(mode)
        if mode or found in self._trusted:
            self.files.update(links)
        if is_file or found in self._trusted:
            self.files.add(found)
        if stat.S_ISDIR(mode):
            self._enter(place)
        elif stat.S_ISREG(mode):
            self.regular[found] = None

    def _add_matches(self, path: str) -> None:
        shown = path.removeprefix(self.folder).strip("/")
        if not self._is_inside(path):
            return
        if not _GLOB.sub("", shown).strip("./"):
            if _ANY_FILE not in self.problems:
                self.problems.append(_ANY_FILE)
            return
        found = glob.iglob(path.replace(_ANY, "*"), include_hidden=True)  # noqa: PTH207 - a text
        for count, match in enumerate(found):
            if count == _MOST_MATCHES:
                self.problems.append(f"{shown}, which names very many files")
                return
            self.add_exactly(match)

    def _enter(self, folder: str) -> None:
        if len(self._bases) >= MOST_BASES:
            if folder not in self._bases and _TOO_LONG not in self.problems:
                self.problems.append(_TOO_LONG)
            return
        self._bases.setdefault(folder)
        if folder != self.folder and self._is_inside(folder):
            self._add_started(folder)

    def _add_started(self, folder: str) -> None:
        """Find what an interpreter runs that is given a folder."""
        for name in ("__main__.py", "index.js"):
            self._add(f"{folder}/{name}")

    def _walk(self, path: str, links: list[str]) -> tuple[str, int]:
        """Return where a path leads and the mode of that, 0 where it is nothing of the project's; note links on the way."""
        if not self._is_inside(path):
            real = os.path.realpath(path)
            if not self._is_inside(real):
                is_above = f"{self.folder}/".startswith(f"{path.rstrip('/')}/")
                return path, stat.S_IFDIR if is_above else 0
            path = real
        here, parts, mode = self.folder, path[len(self.folder) :].split("/")[1:], stat.S_IFDIR
        for number, part in enumerate(parts):
            here = f"{here}/{part}"
            try:
                mode = os.lstat(here).st_mode
                if stat.S_ISLNK(mode):
                    links.append(here[len(self.folder) + 1 :])
                    return self._behind(here, parts[number + 1 :], links)
            except (OSError, ValueError):
                return "/".join((here, *parts[number + 1 :])), 0
        return here, mode

    def _behind(self, link: str, rest: list[str], links: list[str]) -> tuple[str, int]:
        """Return where a path leads that goes on behind a link of the project. Raises OSError."""
        to = os.path.join(os.path.dirname(link), os.readlink(link), *rest)  # noqa: PTH115, PTH118, PTH120
        is_here = self._is_inside(os.path.normpath(to)) or self._is_inside(os.path.realpath(to))
        if is_here and len(links) < _MOST_LINKS:
            return self._walk(os.path.normpath(to), links)
        return link, stat.S_IFLNK  # where it leads to nothing here, the sandbox may have something

    def _names_in(self, folder: str) -> set[str] | None:
        """Return the names in a folder without their case, which some systems ignore; None where it cannot be listed."""
        top = folder[len(self.folder) + 1 :]
        below = [path for path in self._trusted if not top or path.startswith(f"{top}/")]
        try:
            names = os.listdir(folder)  # noqa: PTH208
        except OSError:
            return None
        names += [path.removeprefix(f"{top}/").partition("/")[0] for path in below]
        return {name.casefold() for name in names}

    def _is_inside(self, path: str) -> bool:
        return path == self.folder or path.startswith(f"{self.folder}/")


class _SearchFromElsewhere(_Search):
    """Looks for what words name that are not the project's: from any folder that one of them names, and not from the project's."""

    _ends = (".js", ".mjs", ".cjs", ".json")

    def __init__(self, folder: str, home: str, start: str = "") -> None:
        super().__init__(folder, home)
        self._here, self._start = start or self.folder, start
        self._bases = {"/": None}

    def find(self, words: Sequence[str]) -> None:
        """Find what words name that hold a whole path, and where they enter a folder what all of them name there."""
        whole = [word for word in words if _has_whole_path(word, self._here, self.home)]
        self._bases = {"/": None}
        self._follow_together(whole)
        if len(self._bases) > 1:  # only then other words lead anywhere
            self._follow_together(words)
        for word in whole:
            self._add_named(_shells_words(word))
        if not self._start:  # they are what a program is given one by one
            self._add_named(words)
        self._bases = dict.fromkeys(filter(None, (self.home, self._start)))
        self._follow_all([path for word in words for path in _plain_words(word, self.home)])

    def _follow_together(self, words: Sequence[str]) -> None:
        """Find the files that words name together, and where they are too many those that each one names alone."""
        if words:
            self.follow(shlex.join(words))
        for word in words if _TOO_LONG in self.problems else ():
            self.follow(word)

    def _add_named(self, words: Iterable[str]) -> None:
        """Find what is named by its whole path: files that are not there yet, and what an interpreter runs of a folder."""
        program = ""
        for path in (_placed(word, self._here, self.home) for word in words):
            if not path.startswith("/"):
                program = program if path.startswith("-") else path
                continue
            real = os.path.realpath(path.replace("\0", " "))
            if real != self.folder and self._is_inside(real) and not os.path.lexists(real):
                self.files.add(real[len(self.folder) + 1 :])
            if _INTERPRETERS.match(program.rpartition("/")[2]):
                super()._add_started(real)
            program = path

    def _add_started(self, folder: str) -> None:
        """Find nothing: most folders that are named are data of a program."""

    def _names_in(self, folder: str) -> set[str] | None:
        if folder in (self._start, self.home):  # a look at each word is quicker
            return None
        return set() if folder == "/" else super()._names_in(folder)

    def _walk(self, path: str, links: list[str]) -> tuple[str, int]:
        place, mode = super()._walk(path, links)
        # What lies in the system's folders is found by its whole path.
        is_away = not mode and not f"{place}/".startswith(_SYSTEM)
        return place, stat.S_IFDIR if is_away and os.path.isdir(place) else mode  # noqa: PTH112 - texts throughout


def _filled_in(words: Sequence[str], environ: Mapping[str, str]) -> Iterator[list[str]]:
    """Yield words as they stand, and with the values of variables where any has one."""
    yield (given := list(words))
    filled = [_NAMED.sub(lambda found: environ.get(found[1], found[0]), word) for word in words]
    if filled != given:
        yield filled


def _placed(text: str, here: str, home: str) -> str:
    """Return a text in which paths stand for what the project's folder and home folders are called."""
    text = _PROJECT.sub(lambda _: here, text)
    return _HOME.sub(lambda found: os.path.expanduser(found[0]) if found["user"] else home, text)  # noqa: PTH111 - a text


def _has_whole_path(word: str, here: str, home: str) -> bool:
    """Return whether a word holds what may be a whole path."""
    return _WHOLE_PATH.search(_placed(word, here, home)) is not None


@lru_cache(500)
def _shells_words(text: str) -> list[str]:
    """Return the words that a text has for a shell; none where a quotation does not end."""
    try:
        return shlex.split(text)
    except ValueError:
        return []


@lru_cache(500)
def _plain_words(text: str, home: str) -> tuple[str, ...]:
    """Return the parts of a text that could be a path, without patterns and modules."""
    plain = _placed(_OUTPUT.sub(" ", text.replace("\0", " ")), ".", home)
    loose = _ANY_TOP.sub(".", _VARIABLE.sub(_ANY, plain))
    found = dict.fromkeys(word for each in dict.fromkeys((plain, loose)) for word in _words(each))
    return tuple(each for each in found if each and len(each) < 1_000 and not _GLOB.search(each))


@lru_cache(500)
def _candidates(text: str, here: str, home: str, ends: tuple[str, ...]) -> tuple[list[str], bool]:
    """Return what in a text could be a path, with `ends` for what node finds by a name, and whether that is all."""
    plain = _placed(_OUTPUT.sub(" ", text), here, home)
    found = dict.fromkeys(_words(plain))
    # A name may hold what an output begins with: `cat 'a>b'`.
    whole = _words(_placed(text, here, home))
    found |= dict.fromkeys(word for word in whole if ">" in word or "|" in word)
    loose = _VARIABLE.sub(_ANY, plain)
    found |= dict.fromkeys(_words(loose))
    found |= dict.fromkeys(_words(_ANY_TOP.sub(".", loose)))
    words = {word.rpartition("/")[2] for word in found}
    bare = _QUOTES.sub("", plain)
    imported = [each for match in _IMPORTED.finditer(bare) for each in match[1].split(",")]
    modules = [name for each in imported if each.strip() for name in _module(each.split()[0])]
    modules += [
        name for word in found if _MODULE.match(word) and "." in word for name in _module(word)
    ]
    modules += [name for word in _app_names(plain) for name in _module(word)]
    found |= dict.fromkeys(modules)
    if "perl" in words:
        names = (match[1].replace("::", "/") for match in _USED.finditer(bare))
        found |= dict.fromkeys(f"{name}.pm" for name in names)
    if not words.isdisjoint(("node", "nodejs")):
        found |= {f"{word}{end}": None for word in list(found) for end in ends}
    runs_files = _runs_files(text, loose, words)
    candidates = [
        each
        for each in list(found)[:MOST_CANDIDATES]
        if each and len(each) < 1_000 and (runs_files or not _GLOB.search(each))
    ]
    return candidates, len(found) <= MOST_CANDIDATES


def _runs_files(text: str, loose: str, words: Iterable[str]) -> bool:
    """Return whether files that a pattern names may be run; otherwise they are what a program works on."""
    if any(map(_INTERPRETERS.match, words)) or _SOURCED.search(text):
        return True
    return any(_GLOB.search(begin["program"]) for begin in _BEGINS().finditer(loose))


def _words(text: str, depth: int = 0) -> Iterator[str]:
    """Yield every part of a text that could be a path, with quotations and escapes undone."""
    is_quoted = not _UNQUOTED.match(text)
    for word in _shells_words(text) if is_quoted else ():
        yield from _parts(word)
        if depth < _DEEPEST and word != text and re.search(r"\s", word):
            yield from _words(word, depth + 1)
    for word in text.split():
        yield from _parts(word)
        if is_quoted:
            yield from _parts(_QUOTES.sub("", word))


def _parts(word: str) -> Iterator[str]:
    yield word
    pieces = _BETWEEN.split(word)
    if len(pieces) > 1:
        ends = [0, *(match.end() for match in _BETWEEN.finditer(word))]
        starts = [*(match.start() for match in _BETWEEN.finditer(word)), len(word)]
        for number, start in enumerate(ends):
            for end in starts[number : number + (_MOST_PARTS if len(pieces) <= _MOST_PARTS else 1)]:
                yield word[start:end]
    for piece in pieces:
        if piece.startswith(("-", "$", "+")):
            yield piece.lstrip("-$+")
            yield piece[2:]


def _module(name: str) -> Iterator[str]:
    """Yield the files that a module of Python may be."""
    parts = name.strip(".").split(".")
    for count in range(1, len(parts) + 1):
        path = "/".join(parts[:count])
        yield from (f"{path}/__init__.py", f"{path}/__init__.*so")
    whole = "/".join(parts)
    yield from (f"{whole}.*so", f"{whole}.py", f"{whole}/__main__.py")
    if len(parts) > 1:  # the last one may be a name in the module
        yield "/".join(parts[:-1]) + ".py"


def _app_names(text: str) -> Iterator[str]:
    """Yield the modules of words such as `app:main`."""
    for word in text.split():
        name, colon, rest = word.strip("\"'").partition(":")
        if colon and not rest.startswith("//") and _MODULE.match(name):
            yield name
