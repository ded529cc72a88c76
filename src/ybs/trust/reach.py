"""Find the project files that a command reaches, in any spelling, and the programs whose files cannot be known.

A command is not parsed: every part of it that could name an existing file of the project counts, so that a wrapper, a
quotation or a folder that is entered first hides nothing.
"""

import glob
import os
import re
import shlex
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

#: Everything below these is bound to the trust.
BOUND_FOLDERS: Final = (".ybs/hooks/", ".ybs/tools/")
MOST_BASES: Final = 32
MOST_CANDIDATES: Final = 2_000
_MOST_MATCHES = 100
_MOST_LINKS = 8
_DEEPEST = 4
_MOST_PARTS = 10
_LARGEST_SCRIPT = 64_000
_LONGEST_LINE = 1_000
_ANY_FILE = "what may be any file"
_TOO_LONG = "a command too long to be read"
#: Programs that run what their own files say, which no command names: the recipes, packages and plugins of a project.
_RUNNERS: Final = re.compile(
    r"(?:[gb]?make|cmake|ctest|ninja|meson|scons|waf|just|task|mage|rake|thor|bundler?|gradlew?|mvnw?|ant|sbt|lein|mix"
    r"|p?np[mx]|yarn|bunx?|deno|node-gyp|tsx|ts-node|nx|turbo|lerna|gulp|grunt|webpack|vite|rollup|parcel|babel|jest|vitest|mocha|ava"
    r"|karma|playwright|cypress|eslint|prettier|stylelint|biome|tsc|husky|lint-staged|lefthook|pre-commit|tox|nox|invoke|inv|fab|doit"
    r"|pytest|py\.test|nosetests|unittest|coverage|poetry|pdm|hatch|pipenv|uvx?|pipx?|pip3|rye|pixi|conda|flask|django-admin|uvicorn"
    r"|gunicorn|hypercorn|celery|alembic|scrapy|mypy|pylint|sphinx-build|mkdocs|jupyter|cargo|go|zig|bazel|bazelisk|buck2?|pants|swift"
    r"|xcodebuild|dotnet|msbuild|cabal|dune|javac?|kotlin|scala|groovy|composer|phpunit|artisan|rspec|cucumber|rails|jekyll|nix|nix-shell"
    r"|nix-build|direnv|vagrant|ansible|ansible-playbook|terraform|tofu|pulumi|docker|podman|docker-compose|packer|skaffold|helmfile"
    r"|earthly|dagger|run-parts|eval|m4|tclsh|expect|emacs|n?vim|gdb|lldb)\Z"
)
#: Programs that run a file that they are given.
_INTERPRETERS: Final = re.compile(
    r"(?:(?:ba|da|z|k|a|fi)?sh|busybox|source|node(?:js)?|ruby|perl|php|lua|osascript|pwsh|(?:python|pypy)[\d.]*)\Z"
)
#: Programs, and words of the shell, that run no file which their command does not name, and no other program that is not looked for
#: in it (`-exec`). A hook that runs anything else only reads the project: of languages nobody can list what loads files of it (`awk`, `sed`
#: and all others but the shell's).
_CLOSED: Final = re.compile(
    r"(?:\[\[?|-[a-z]+|:|\.|source|true|false|test|echo|printf|read|cd|pwd|set|unset|export|local|readonly|declare|shift|exit|return|break|continue"
    r"|wait|for|case|esac|if|fi|while|until|do|done|then|else|elif|in|[{}!]|cat|head|tail|tac|nl|wc|cut|tr|sort|uniq|tee|paste|join|comm"
    r"|fold|fmt|rev|column|expand|od|xxd|hexdump|base64|[ef]?grep|rg|jq|yq|ls|find|stat|file|du|df|basename|dirname"
    r"|realpath|readlink|mkdir|rmdir|mktemp|rm|cp|mv|touch|chmod|diff|cmp|date|sleep|seq|id|whoami|uname|hostname|printenv|type|which|kill|jobs"
    r"|env|xargs|exec|time|command|umask|ulimit|cksum|md5sum|sha\d+sum|shasum|logger|curl|wget|git|ruff|black|isort|gofmt|gofumpt|shfmt|shellcheck"
    r"|clang-format|stylua|taplo|notify-send|say|afplay|paplay|aplay|terminal-notifier|tput|stty|clear)\Z"
)
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*w?\Z")
_SHELL = re.compile(r"(?:(?:ba|da|z|k|a|fi)?sh|source)\Z")
_SHELL_LINE = re.compile(rb"#![^\n]*\b(?:ba|da|z|k|a|fi)?sh\b")
_OWN_SHELL = re.compile(r"\A\s*(?:/usr/bin/env\s+|/\S*/)\w*sh(?:\s+-[a-bd-z]+)?\s*\n")
_SHELL_SUFFIXES = (".sh", ".bash", ".zsh", ".ksh", "")
_DATA_SUFFIXES = (
    *(".json", ".jsonc", ".toml", ".yaml", ".yml", ".ini", ".cfg", ".conf", ".md", ".txt", ".rst"),
    *(".csv", ".tsv", ".xml", ".html", ".css", ".svg", ".png", ".lock", ".env", ".log"),
)
#: How commands name the project's folder, and other variables or outputs that stand in a word.
_PROJECT = re.compile(
    r"\$\{?(?:CLAUDE_PROJECT_DIR|YBS_PROJECT_DIR|PWD)\b(?::?-[^{}\s]*)?\}?"
    r"|\$\(\s*(?:pwd(?:\s+-[LP])?|git rev-parse --show-toplevel)\s*\)|`\s*(?:pwd|git rev-parse --show-toplevel)\s*`"
)
_HOME = re.compile(r"\$\{?HOME\b\}?|(?<![^\s\"'=:,;|&()])~(?=/)")
_VARIABLE = re.compile(
    r"\$\([^()]*\)|`[^`]*`|\$\{[^{}]*\}|\$[A-Za-z_]\w*|\$[0-9@*#?!$-]|\{[^{}\s]*\}"
)
#: A file that the shell writes into is none that runs.
_OUTPUT = re.compile(
    r"(?:(?<![=<-])[0-9&]?>{1,2}[|&]?|\|\s*tee(?=\s))(?:\s*-a)?\s*[\"']?[^\s\"'`;|&()<>]+[\"']?[^\s\"'`;|&()<>]*"
)
#: An output that goes where another one goes, such as `2>&1`, or both of them into a file: its `&` begins no command.
_DUPLICATED = re.compile(r"\d*[<>]&(?:\d+|-)(?=[\s;&|()]|\Z)|&>{1,2}")
_BETWEEN = re.compile(r"[\s;|&()<>=:,@\"'`\[\]{}#]+")
_MODULE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*\Z")
_IMPORTED = re.compile(r"(?:-\w*m\s*|\b(?:import|from)\s+)([A-Za-z_][\w.]*)")
_QUOTES = re.compile(r"[\"'\\]")
#: Stands for what a variable says.
_ANY = "\x02"
_GLOB = re.compile(r"[*?\x02]|\[[^\]]*\]")
_SOURCED = re.compile(r"(?:\A|[\s;&|(\"'])\.\s")
_PIPED = re.compile(r"\|\s*(?:\S*/)?(sh|bash|dash|zsh|ksh|python[\d.]*|node|perl|ruby)\b")
#: What runs a script, or loads one, that a variable, a search or a list of names says.
_GIVEN = re.compile(
    r"\b(?:(?:ba|da|z|k|a)?sh|source|node|perl|ruby|php|lua)[\"']?\s+(?:-\S+\s+)*[\"']?(?:\$|`|\{\})|-exec\b|hooksPath"
    r"|\b(?:xargs|parallel)\b[^;|&]*\b(?:(?:ba|da|z|k|a)?sh|node|perl|ruby|php|lua)\b"
    r"|\b(?:export|env|declare|typeset|readonly|local)\s[^;|&\n]*?\b(?!(?:LC_\w+|LANG|TZ|CI|TERM|NO_COLOR)=)[A-Z][A-Z0-9_]*\+?="
    r"|\b(?!(?:LC_\w+|LANG|TZ|CI|TERM|NO_COLOR)=)[A-Z][A-Z0-9_]*\+?=(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s;|&()\"'])*[ \t]+(?![ \t]|[;|&)}#\n]|\Z)"
    r"|\b(?:PATH|HOME|ENV|BASH\w*|SHELLOPTS|PS4|CDPATH|ZDOTDIR|(?:GIT|LD|DYLD|XDG|CURL|RIPGREP|SSH)_\w+|WGETRC|PAGER|LESS\w*|\w*EDITOR|VISUAL)\+?=",
    re.DOTALL,
)
#: Comments, quotations and escapes, in their order; a quotation that cannot be followed is its first sign alone.
_QUOTED: Final = re.compile(
    r"(?<![^\s;&|()])\#[^\n]*|\$\(\([^()]*\)\)|'[^']*'|\"(?:[^\"\\$`]|\\.|\$(?!\()|\$\((?:[^()\"'`\\]|\"[^()\"'`\\]*\")*\))*\"|\\.|[\"']",
    re.DOTALL,
)
_PATTERNS: Final = re.compile(
    r"(?:((?:^|[;&|({]|\bdo|\bthen)\s*case\s+[^\s()`]+\s+in)|;;)\s*\(?[^()\s;|]+(?:\s*\|\s*[^()\s;|]+)*\s*\)",
    re.MULTILINE,
)
_ODD_CASE = re.compile(r"\bcase\s(?!\s*\S+\s+in;)")
_FUNCTION = re.compile(r"([A-Za-z_]\w*)\s*\(\s*\)")
#: A pattern that may become an option of a program that runs others, by the name of a file; and such options.
_OPTION_BY_PATTERN = re.compile(
    r"\b(?:find|rg|sort|g?sed|[gmn]?awk|git|env|xargs|perl|ruby|php|lua|node)\s[^;|&\n]*(?<=\s)[*?\[]"
)
#: Programs that are known, but whose words can have them run another one: words that what runs prints, or that names of files are, may say so.
_TOLD = (
    r"(?:\S*/)?(?:env|xargs|exec|time|command|source|\.|git|g?sed|[gmn]?awk|find|sort|rg|curl|wget)"
)
_TOLD_BY_OTHERS = re.compile(
    rf"\bxargs\s(?:[^\n;&|]*\s)?{_TOLD}(?:\s|\Z)|(?:^|[;&|({{!`]|\b(?:do|then|else|if|while|until|xargs))\s*{_TOLD}\s[^\n]*(?:\$(?!\(\()|`)"
    r"|\b(?:export|local|readonly|declare|typeset|set|eval)\s+(?:-\S+\s+)*[\"']?(?:\$(?!\(\()|`)",
    re.MULTILINE,
)
_RUNS_BY_OPTION = re.compile(
    r"\bgit\s[^;|&\n]*(?<=\s)(?:-c|-O|--(?:exec|ext|open|config-env|git-dir|work-tree|namespace)|(?:submodule|difftool|mergetool)\b)"
    r"|\brg\s[^;|&\n]*--pre|\bsort\s[^;|&\n]*--comp|\bfind\s[^;|&\n]*-(?:exec|ok)|\bcd\s+[/~-]|\.\./"
)
_PLAIN_WORD = re.compile(r"[\w./@%+=:,-]+\Z")
#: A copy of the project, or a way to it, from where any file of it may be run.
_COPIES: Final = re.compile(
    r"\b(?:cp\s+(?:-\S+\s+)*-\w*[rRa]|rsync|tar|cpio|ln|git\b[^;|&\n]*\s(?:worktree|clone|archive))\b.*"
    r"(?:/tmp\b|/dev/shm|\$\{?TMPDIR|\bmktemp)",
    re.DOTALL,
)
#: Where a command begins in a script, behind what only starts another one.
_BEGINS = re.compile(
    r"(?:^|[;&|(`]|\)\s*(?=[({]|(?:then|do|else|elif|if|while|until|for|case|time|!)\s)|-exec\s|-c\s+[\"'])\s*"
    r"(?:(?:if|while|until|elif|then|do|else|exec|env|sudo|time|nice|nohup|command|xargs|[!{])\s+(?:-[^\s;&|()`]+\s+)*|timeout\s+\d+\w?\s+|[A-Za-z_]\w*\+?=[^\s;&|()`]*\s+)*"
    r"[\"']?(?P<program>(?![A-Za-z_]\w*\+?=)[^\s;&|()`\"']+)(?:[\"']?[ \t]+(?P<next>[^\s;&|()`]+))?",
    re.MULTILINE,
)
#: The beginning of a path that is there only if its folder lists it.
_IS_PLAIN = re.compile(r"(?!\.{0,2}\Z)[ -)+->@-Z\\^-~]+\Z")
_COMMENT = re.compile(r"^\s*#.*$", re.MULTILINE)


class CommandReach(Struct, frozen=True):
    """The files of a project that a command reaches, by their path in it, and what it runs that may reach more."""

    files: tuple[str, ...]
    unknown: tuple[str, ...]


def reach(texts: Sequence[str], folder: Path, home: Path) -> CommandReach:
    """Return what a command reaches: one of a shell, or several words. `folder` is the project's real path."""
    is_shell = len(texts) == 1
    text = texts[0] if is_shell else shlex.join(texts)
    search = _Search(str(folder), str(home))
    search.follow(text)
    unknown = dict.fromkeys((*_programs_in(text, search), *search.problems))
    if not is_shell:
        unknown.pop(_ANY_FILE, None)  # a variable that the program is given
    elif _has_open_program(_PROJECT.sub(".", text).replace(str(folder), ".")):
        unknown["a program that something else names"] = None
    elif not unknown and (program := _unknown_program(text, search)):
        unknown[program] = None
    for path in search.regular:
        unknown |= dict.fromkeys(_loaded_by(path, search, folder, home))
    return CommandReach(tuple(sorted(search.files)), tuple(unknown))


def files_named(text: str, folder: Path, home: Path) -> set[str]:
    """Return the files of a project that a text names in any spelling, by their path in it. `folder` is its real path."""
    search = _Search(str(folder), str(home))
    search.follow(text)
    return search.files


class _Search:
    """Looks for files below one folder that the parts of a text name."""

    def __init__(self, folder: str, home: str, bases: Iterable[str] = ()) -> None:
        self.folder, self.home = folder.rstrip("/"), home
        self.files, self.regular, self.words = set[str](), dict[str, None](), set[str]()
        self.problems = list[str]()
        self._bases = dict.fromkeys((self.folder, *bases))

    def follow(self, text: str) -> None:
        """Find the files that a text names, from the project's folder or one that it names."""
        candidates = self._candidates(text.replace("\0", " "))
        done = 0
        while done < len(self._bases):
            base = list(self._bases)[done]
            done += 1
            names = _names_in(base)
            for candidate in candidates:
                first = candidate.partition("/")[0]
                if names is None or first.casefold() in names or not _IS_PLAIN.match(first):
                    path = os.path.join(base, candidate)  # noqa: PTH118 - a text
                    self._add(os.path.normpath(path))
                    if ".." in candidate:  # behind a link it leads elsewhere
                        self._add(os.path.realpath(path))

    def _candidates(self, text: str) -> list[str]:
        plain = _HOME.sub(lambda _: self.home, _PROJECT.sub(".", _OUTPUT.sub(" ", text)))
        found = dict.fromkeys(_words(plain))
        loose = _VARIABLE.sub(_ANY, plain)
        found |= dict.fromkeys(_words(loose))
        self.words = {word.rpartition("/")[2] for word in found}
        bare = _QUOTES.sub("", plain)
        modules = [name for match in _IMPORTED.finditer(bare) for name in _module(match[1])]
        modules += [
            name for word in found if _MODULE.match(word) and "." in word for name in _module(word)
        ]
        modules += [name for word in _app_names(plain) for name in _module(word)]
        found |= dict.fromkeys(modules)
        if not self.words.isdisjoint(("node", "nodejs")):
            ends = (".js", ".mjs", ".cjs", ".json", "/index.js")
            found |= {f"{word}{end}": None for word in list(found) for end in ends}
        if len(found) > MOST_CANDIDATES:
            self.problems.append(_TOO_LONG)
        runs_files = self._runs_files(text, loose)
        return [
            each
            for each in list(found)[:MOST_CANDIDATES]
            if each and len(each) < 1_000 and (runs_files or not _GLOB.search(each))
        ]

    @property
    def has_shell(self) -> bool:
        """Whether a shell is named, which may be given any file."""
        return any(map(_SHELL.match, self.words))

    def _runs_files(self, text: str, loose: str) -> bool:
        """Return whether files that a pattern names may be run; otherwise they are what a program works on."""
        if any(map(_INTERPRETERS.match, self.words)) or _SOURCED.search(text):
            return True
        return any(_GLOB.search(begin["program"]) for begin in _BEGINS.finditer(loose))

    def _add(self, path: str) -> None:
        if _GLOB.search(path):
            self._add_matches(path)
            return
        links: list[str] = []
        place, mode = self._walk(path, links)
        if not mode:
            return
        self.files.update(links)
        if stat.S_ISDIR(mode):
            self._enter(place)
        elif stat.S_ISREG(mode):
            found = place[len(self.folder) + 1 :]
            self.files.add(found)
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
            if not _GLOB.search(match):
                self._add(match)

    def _enter(self, folder: str) -> None:
        if len(self._bases) >= MOST_BASES:
            if folder not in self._bases and _TOO_LONG not in self.problems:
                self.problems.append(_TOO_LONG)
            return
        self._bases.setdefault(folder)
        if folder != self.folder and self._is_inside(folder):
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
                return here, 0
        return here, mode

    def _behind(self, link: str, rest: list[str], links: list[str]) -> tuple[str, int]:
        """Return where a path leads that goes on behind a link of the project. Raises OSError."""
        to = os.path.join(os.path.dirname(link), os.readlink(link), *rest)  # noqa: PTH115, PTH118, PTH120
        is_here = self._is_inside(os.path.normpath(to)) or self._is_inside(os.path.realpath(to))
        if is_here and len(links) < _MOST_LINKS:
            return self._walk(os.path.normpath(to), links)
        return link, stat.S_IFLNK if os.path.exists(link) else 0  # noqa: PTH110

    def _is_inside(self, path: str) -> bool:
        return path == self.folder or path.startswith(f"{self.folder}/")


def _words(text: str, depth: int = 0) -> Iterator[str]:
    """Yield every part of a text that could be a path, with quotations and escapes undone."""
    with suppress(ValueError):
        for word in shlex.split(text):
            yield from _parts(word)
            if depth < _DEEPEST and word != text and re.search(r"\s", word):
                yield from _words(word, depth + 1)
    for word in text.split():
        yield from _parts(word)
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
        yield f"{path}/__init__.py"
    whole = "/".join(parts)
    yield from (f"{whole}.py", f"{whole}/__main__.py")
    if len(parts) > 1:  # the last one may be a name in the module
        yield "/".join(parts[:-1]) + ".py"


def _app_names(text: str) -> Iterator[str]:
    """Yield the modules of words such as `app:main`."""
    for word in text.split():
        name, colon, rest = word.strip("\"'").partition(":")
        if colon and not rest.startswith("//") and _MODULE.match(name):
            yield name


def _programs_in(text: str, search: _Search) -> Iterator[str]:
    """Yield the programs that a command names and that run files which it does not name."""
    for word in sorted(search.words):
        if _RUNNERS.match(word):
            yield f"`{word}`"
    for match in _PIPED.finditer(text):
        yield f"`{match[1]}`, given what another program prints"
    if pythons := [word for word in search.words if _PYTHON.match(word)]:
        yield f"`{min(pythons)}`"


def _has_open_program(text: str) -> bool:
    """Return whether a variable, or another program, says which program or script is run."""
    if _GIVEN.search(text) or _COPIES.search(text):
        return True
    for match in _BEGINS.finditer(text):
        is_sourced = match["program"] in (".", "source")
        word = (match["next"] or "").strip("\"'") if is_sourced else match["program"]
        if word.startswith(("$", "{}")):
            return True
    return False


def _unknown_program(text: str, search: _Search) -> str:
    """Return a program of a command or script that may run files which are not named there, "" without one."""
    plain = _PROJECT.sub(".", text.replace("\\\n", "")).replace(search.folder, ".")
    bare, told = _QUOTES.sub("", plain), _QUOTED.sub(_expanded, plain)
    plain = _DUPLICATED.sub(" ", _PATTERNS.sub(r"\1;", _QUOTED.sub(_unquoted, plain)))
    if max(map(len, plain.split("\n"))) > _LONGEST_LINE:
        return _TOO_LONG
    if (
        "$'" in text
        or _ODD_CASE.search(plain)
        or _OPTION_BY_PATTERN.search(plain)
        or _RUNS_BY_OPTION.search(bare)
        or _TOLD_BY_OTHERS.search(told)
    ):
        return "a program that something else names"
    own = {os.path.basename(path) for path in search.regular}  # noqa: PTH119 - a text
    functions = set(_FUNCTION.findall(plain))
    for begin in _BEGINS.finditer(plain):
        folder, slash, name = begin["program"].rpartition("/")
        if slash and not folder.startswith(("/", "~")):
            is_closed = name in own
        elif _INTERPRETERS.match(name):
            is_closed = _is_given_script(name, plain[begin.end("program") :], own)
        else:
            is_closed = name in functions or bool(_CLOSED.match(name))
        if not is_closed:
            return f"`{begin['program']}`".replace(_ANY, "…")
    return ""


def _expanded(match: re.Match[str]) -> str:
    """Return what stands for the same where variables and outputs matter: none is in single quotes, a comment or an escape."""
    inside = match[0].strip("\"'")
    return inside if match[0][0] in '"$' or _PLAIN_WORD.match(inside) else ""


def _unquoted(match: re.Match[str]) -> str:
    """Return what stands for a comment, a quotation or an escape: its plain name, the commands in it, or a sign that no name has."""
    text = match[0]
    if text.startswith("#"):
        return ""
    if text.startswith("$"):
        return _ANY  # a number
    inside = text.strip("\"'")
    if not inside:
        return f"\n{_ANY}\n" if len(text) == 1 else ""
    return inside if _PLAIN_WORD.match(inside) or "$(" in inside else _ANY


def _is_given_script(name: str, rest: str, own: set[str]) -> bool:
    """Return whether an interpreter is a shell that is given a file of the project, and no code."""
    words = re.split(r"[;&|\n()]", rest)[0].split()
    if not _SHELL.match(name) or any("c" in word for word in words if word.startswith("-")):
        return False
    return "<" in rest or any(os.path.basename(word) in own for word in words)  # noqa: PTH119 - a text


def _names_in(folder: str) -> set[str] | None:
    """Return the names in a folder without their case, which some systems ignore; None where it cannot be listed."""
    try:
        return {name.casefold() for name in os.listdir(folder)}  # noqa: PTH208
    except OSError:
        return None


def _loaded_by(path: str, search: _Search, folder: Path, home: Path) -> Iterator[str]:
    """Yield a script of the project where it may run or load more files of it."""
    suffix = os.path.splitext(path)[1].lower()  # noqa: PTH122
    try:
        with open(folder / path, "rb") as file:  # noqa: PTH123
            data = file.read(_LARGEST_SCRIPT)
            is_program = bool(os.fstat(file.fileno()).st_mode & 0o111) or data.startswith(b"#!")
    except OSError:
        return
    is_data = suffix in _DATA_SUFFIXES and not is_program
    if b"\0" in data[:1_000] or (is_data and not search.has_shell):
        return
    named = data.startswith(b"#!")
    if is_data or (_SHELL_LINE.match(data) if named else suffix in _SHELL_SUFFIXES):
        text = _COMMENT.sub("", data.removeprefix(b"#!").decode(errors="replace"))
        if len(data) < _LARGEST_SCRIPT and not _runs_more(text, path, search, folder, home):
            return
    yield path


def _runs_more(text: str, path: str, search: _Search, folder: Path, home: Path) -> bool:
    """Return whether a script of a shell names files of the project that its command does not, or runs what does."""
    inner = _Search(str(folder), str(home), [str((folder / path).parent)])
    inner.follow(text)
    others = inner.files - search.files
    if inner.problems or any(not each.startswith(BOUND_FOLDERS) for each in others):
        return True
    if any(map(_PYTHON.match, inner.words)):
        return True
    is_open = _unknown_program(_OWN_SHELL.sub("", text), inner) or _has_open_program(
        _PROJECT.sub(".", text)
    )
    return bool(is_open)
