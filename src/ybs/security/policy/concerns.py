"""What is asked about although nothing is destroyed: what is not understood, reaches outside, or deceives the eye."""

import re
from collections.abc import Iterator
from posixpath import normpath
from unicodedata import name as name_of
from unicodedata import normalize

from ybs.core.lazy import lazy
from ybs.security.commands import options
from ybs.security.commands.command import Command, words_in
from ybs.security.commands.dangers import INTERPRETERS, hidden_in, stem_of
from ybs.security.commands.wrappers import Reading
from ybs.security.unicode import hidden_characters

#: Files that are nobody's; the sandbox has its own folders for scratch files.
_NOBODYS = re.compile(r"/dev/(?:null|stdout|stderr|tty)$|/tmp/|/var/tmp/")
#: Commands of the shell itself after which other words mean something else, and those that run a text.
_CHANGING = words_in("alias unalias hash enable complete bind trap shopt fc coproc")
_RUNNING_TEXT = words_in("eval source . let")
_SETTING = words_in("export declare typeset readonly local env setenv launchctl set")
_WITH_SUBSCRIPTS = _SETTING | words_in("printf read unset test [ wait mapfile readarray")
_MOVING = words_in("cd pushd chdir")
_NETWORK = re.compile(r"/dev/(?:tcp|udp)/")
#: Variables that say which programs run, or how.
_POWERFUL = lazy(
    r"(?:PATH|CDPATH|IFS|ENV|HOME|SHELL|SHELLOPTS|BASHOPTS|PS[0-4]|PROMPT_COMMAND|TERMINFO|TMPDIR|BROWSER|CC|CXX"
    r"|LD|MAKEFLAGS|MAKEFILES|PAGER|MANPAGER|EDITOR|VISUAL|FCEDIT|FPATH|ZDOTDIR|INPUTRC|LESS\w*|GCONV_PATH|RUSTC\w*"
    r"|PYTHON(?:PATH|HOME|STARTUP|BREAKPOINT|WARNINGS|INSPECT|EXECUTABLE|USERBASE)"
    r"|NODE_(?:OPTIONS|PATH)|PERL5?(?:LIB|OPT|DB)|RUBY(?:OPT|LIB)|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|JDK_JAVA_OPTIONS"
    r"|(?:LD|DYLD|BASH|GIT|SSH|SUDO|XDG|npm_config|NPM_CONFIG|CARGO|PIP|UV|GOFLAGS|DOCKER|YBS|AWS|LC_ALL_)_\w+|GOFLAGS"
    r"|\w+_(?:PAGER|EDITOR|ASKPASS|PROXY|proxy|WRAPPER|PRELOAD))\+?=",
    re.ASCII,
)
#: Of these, the ones that add folders to look for the project's own code in.
_SEARCHED = ("PYTHONPATH", "NODE_PATH", "RUBYLIB", "PERL5LIB")
_PLAIN = re.compile(r"[A-Za-z_]\w*=[\w.:/=,@%+-]*", re.ASCII)
_FOREIGN_SCRIPT = ("CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "FULLWIDTH", "MATHEMATICAL")
_LATIN = re.compile(r"[A-Za-z]")
_LETTERS = re.compile(r"[^\W\d_]+|.", re.DOTALL)


def is_harmless(assignment: str) -> bool:
    """Return whether `NAME=VALUE` may stand in front of what is always allowed: it reaches for nothing outside the project."""
    name, _, value = assignment.partition("=")
    if not _PLAIN.fullmatch(assignment):
        return False
    if _POWERFUL().match(assignment) and name not in _SEARCHED:
        return False
    pieces = value.split(":") if name in _SEARCHED else [value]
    return not any(piece.startswith("/") or ".." in piece.split("/") for piece in pieces)


def concerns_of(text: str, reading: Reading) -> tuple[str, ...]:
    """Say what has to be asked about, one line for each thing."""
    found = [f"not understood: {reason}" for reason in reading.doubts]
    moves = any(run.words and run.words[0] in _MOVING for run in reading.runs)
    for run in reading.runs:
        name, words = "".join(run.words[:1]), run.words
        files = [*run.targets, *(options.operands_of(words) if name == "tee" else ())]
        reaching = [(file, _reach_of(file, moves=moves)) for file in files]
        found += [f"writes to {file!r}, {reach}" for file, reach in reaching if reach]
        for each in (*run.sets, *(words[1:] if name in _SETTING else ())):
            if _POWERFUL().match(each) and not is_harmless(each):
                variable = each.partition("=")[0].rstrip("+")
                found.append(f"sets {variable}, which says how other programs run")
        found += _concerns_of_program(name, run)
    found += hidden_in(text, reading)
    if _NETWORK.search(text):
        found.append("opens a network connection by way of /dev/tcp or /dev/udp")
    if not text.isascii():
        found += oddities_of(text, reading)
    return tuple(dict.fromkeys(found))


def _concerns_of_program(name: str, run: Command) -> Iterator[str]:
    words = run.words
    if name in _RUNNING_TEXT:
        yield f"{name} runs text or a file as commands of this shell"
    elif name in _CHANGING and len(words) > 1:
        yield f"{name} changes what other commands mean"
    if name in _WITH_SUBSCRIPTS and any("[" in w and ("$(" in w or "`" in w) for w in words[1:]):
        yield f"{name} runs the substitution within a subscript"
    if run.given and stem_of(name) in INTERPRETERS:
        yield f"{name} runs the text of a here-document"
    for option in options.running(words) if name in options.RUNNING else ():
        yield f"{name} {option.name} runs what it is given"


def oddities_of(text: str, reading: Reading) -> tuple[str, ...]:
    """Say what a reader could overlook in the command."""
    found = [f"holds the invisible character {name}" for name in hidden_characters(text)]
    names = [run.words[0] for run in reading.runs if run.words and not run.words[0].isascii()]
    found += [f"the program's name {name!r} holds letters that look like others" for name in names]
    words = [word for word in _LETTERS.findall(text) if not word.isascii()]
    twins = [(word, _deceiver(word)) for word in dict.fromkeys(words)]
    found += [
        f"{word[:40]!r} holds {twin}, which looks like another character"
        for word, twin in twins
        if twin
    ]
    return tuple(dict.fromkeys(found))


def _deceiver(word: str) -> str:
    """Return the name of a character in a run of letters that is there to be taken for another one, or nothing."""
    has_latin = bool(_LATIN.search(word))
    for character in word:
        plain = normalize("NFKC", character)
        is_twin = plain != character and plain.isascii() and not plain.isalnum()
        is_foreign = name_of(character, "").startswith(_FOREIGN_SCRIPT)
        if character.isspace() or (is_foreign and (is_twin or has_latin)):
            return f"U+{ord(character):04X}"
    return ""


def _reach_of(target: str, *, moves: bool) -> str:
    """Say what is special about a file that is written to, or nothing."""
    path = normpath(target)
    parts = path.split("/")
    if _NOBODYS.match(path):
        return ""
    if target[:1] in "~$/" or parts[0] == "..":
        return "outside the project"
    if any(part.startswith(".") and part != "." for part in parts):
        return "which other programs read by themselves"
    return "in a folder that is only known when it runs" if moves else ""
