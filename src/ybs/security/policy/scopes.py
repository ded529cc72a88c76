"""Scopes: what "always" stands for, such as `run_shell(pytest *)` or `run_shell(git commit *)`.

A scope covers a later command only where the command is understood, every part of it is covered, and none of its words
makes the program run another one or do something else. Where it runs the sandbox holds it to the project.
"""

import re
from collections.abc import Sequence

from ybs.core.lazy import lazy
from ybs.security.commands import options, wrappers
from ybs.security.commands.command import Command, parse, words_in
from ybs.security.commands.dangers import INTERPRETERS, scripts_in, stem_of
from ybs.security.commands.options import operands_of
from ybs.security.commands.wrappers import Reading
from ybs.security.policy.rules import ELSEWHERE

#: Programs whose first word says what is done: "always" means that word, too.
_WITH_VERB = words_in("git npm pnpm yarn bun deno npx cargo rustup go docker podman kubectl helm pip pip3 pipx uv uvx poetry pdm hatch rye conda gh glab terraform tofu aws gcloud az dotnet mix swift bundle gem rails php composer brew apt apt-get coverage ruff")  # fmt: skip
#: Verbs that name what they run.
_RUNNING_VERBS = frozenset({"run", "exec", "dlx", "x", "tool"})
_VERB = lazy(r"[A-Za-z][\w.:@/-]*")
#: Parts of a line that an "always" need not name: without an option or operand that writes or runs.
_HARMLESS = words_in("basename cat cd cmp comm cut df dirname du echo false grep head id ls nl pwd readlink realpath seq stat tail test tr true uname wc whoami")  # fmt: skip
#: Programs that run others in so many ways that nothing is remembered about them.
_NEVER = words_in(
    "env xargs find fd eval exec source . command builtin trap alias sudo doas su ssh nohup timeout time watch"
)
#: Options of interpreters before the file that change neither which file runs nor what runs before it.
_HARMLESS_OPTION = lazy(
    r"-(?:[uBOIbvqwx]+|W[a-z:]+|X(?:dev|utf8)|-(?:test|watch|trace-warnings|trace-uncaught|no-warnings"
    r"|enable-source-maps|test-reporter=\w+|experimental-[\w-]+|warnings|yjit|jit|allow-\w+|quiet))"
)
_FILE = lazy(r"(?!-)[\w@.+/-]+\.\w+")
#: Words that mean the same in a rule as in a shell, without quotes.
_PLAIN_WORD = lazy(r"(?!\+$)[\w./:=,@%+-]+")
_OFFERED = lazy(r"run_shell\([\w./:=,@%+ -]+?(?: \*)?\)")
#: Variables that say which programs run, or how.
POWERFUL = lazy(
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
_PLAIN_VALUE = lazy(r"[A-Za-z_]\w*=[\w.:/=,@%+-]*", re.ASCII)


def is_harmless(assignment: str) -> bool:
    """Return whether `NAME=VALUE` may stand in front of what is always allowed: it reaches for nothing outside the project."""
    name, _, value = assignment.partition("=")
    is_powerful = POWERFUL().match(assignment) and name not in _SEARCHED
    if is_powerful or not _PLAIN_VALUE().fullmatch(assignment):
        return False
    pieces = value.split(":") if name in _SEARCHED else [value]
    return not any(piece.startswith("/") or ".." in piece.split("/") for piece in pieces)


def scopes_of(reading: Reading) -> list[str]:
    """Return the scopes that together cover all of a command; empty where there are none."""
    scopes = list(map(scope_of, parts_to_cover(reading)))
    return list(dict.fromkeys(scopes)) if all(scopes) else []


def scope_of(part: Command) -> str:
    """Return the scope of one command of a flat line, or nothing; its output may go to /dev/null."""
    sets, words = part.sets, part.words
    if not _goes_nowhere(part) or not words or not all(map(is_harmless, sets)):
        return ""
    size = _beginning_of(words)
    if not size or not all(map(_PLAIN_WORD().fullmatch, words[:size])):
        return ""
    star = [] if words[:size] == words and options.takes_targets(words) else ["*"]
    return " ".join([*sets, *words[:size], *star]) if _does_no_more(words, size) else ""


def parts_to_cover(reading: Reading) -> list[Command]:
    """Return the commands of a flat line that an "always" has to name: those that do more than read, where there are some."""
    return [part for part in reading.parts if not _is_harmless(part)] or reading.parts


def _is_harmless(part: Command) -> bool:
    """Return whether one command of a line only reads, whatever its words."""
    is_plain = not part.sets and _goes_nowhere(part)
    if not is_plain or not part.words or part.words[0] not in _HARMLESS:
        return False
    return part.words[0] != "cd" or not any(map(ELSEWHERE().search, part.words[1:]))


def only_reads(text: str) -> bool:
    """Return whether a text is a flat line of programs that only read, whatever their words."""
    script = parse(text)
    return script.is_clear and not script.has_variables and all(map(_is_harmless, script.commands))


def why_never(reading: Reading) -> str:
    """Return in a few words why nothing may be remembered about a command, not even as it stands; else nothing."""
    if reading.text.endswith(" *"):
        return "as a rule it would allow more than this command"
    for run in reading.runs:
        if not (name := "".join(run.words[:1])):
            return "it runs no program"
        if name in _NEVER or next(options.running(run.words), None) is not None:
            return f"{name} runs other programs"
        if stem_of(name) in INTERPRETERS and not _program_ends(run.words):
            return f"{name} can run anything"
        if name == "git" and options.git_verb(run.words) != 1:
            return "git is given options of its own"
    return ""


def rules_in(grant: str) -> list[str]:
    """Return the rules for the scopes that are offered together, as in `run_shell(a *) + run_shell(b *)`; empty for every other text."""
    pieces = grant.split(" + ")
    return pieces if all(map(_OFFERED().fullmatch, pieces)) else []


def _goes_nowhere(part: Command) -> bool:
    return not part.sources and all(target == "/dev/null" for target in part.targets)


def _beginning_of(words: Sequence[str]) -> int:
    """Return how many words say what is run: the program, its verb, the file or module; 0 where that is not certain."""
    name = words[0].rpartition("/")[2]
    if ends := _program_ends(words):
        return ends
    if name in _NEVER or stem_of(name) in INTERPRETERS:
        return 0
    if options.takes_targets(words):
        return len(words) if len(operands_of(words)) == len(words) - 1 else 0
    if name not in _WITH_VERB:
        return 0 if any(wrappers.commands_run_by(wrappers.name_of(words), list(words[1:]))) else 1
    size = 3 if "".join(words[1:2]) in _RUNNING_VERBS else 2
    return size if len(words) >= size and all(map(_VERB().fullmatch, words[1:size])) else 0


def _does_no_more(words: list[str], size: int) -> bool:
    """Return whether no word behind the beginning reaches outside, makes the program run another one or choose something else."""
    runs = any(options.running(words)) or any(wrappers.words_that_run([words[0], *words[size:]]))
    does_else = runs or options.chooses(words) or scripts_in(words[0], words)
    return not does_else and not any(map(ELSEWHERE().search, words[size:]))


def _program_ends(words: Sequence[str]) -> int:
    """Return the place behind the file or module of the project that an interpreter runs; 0 where it runs none."""
    if stem_of(words[0].rpartition("/")[2]) not in INTERPRETERS:
        return 0
    place = 1
    while place < len(words) and _HARMLESS_OPTION().fullmatch(words[place]):
        place += 1
    if words[place : place + 1] == ["-m"]:
        return place + 2 if place + 1 < len(words) else 0
    is_file = place < len(words) and _FILE().fullmatch(words[place])
    return place + 1 if is_file and ".." not in words[place].split("/") else 0
