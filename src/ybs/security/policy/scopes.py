"""Scopes: what "always this session" stands for, such as `run_shell(pytest *)` or read-only git.

A scope covers a later command only where the command is understood, every part of it is covered, and none of its words
reaches outside the project or makes the program run or write something else.
"""

import re
from collections.abc import Sequence

from ybs.core.lazy import lazy
from ybs.security.commands import options, wrappers
from ybs.security.commands.command import Command
from ybs.security.commands.dangers import INTERPRETERS, stem_of
from ybs.security.commands.options import operands_of
from ybs.security.commands.wrappers import Reading
from ybs.security.policy import goals
from ybs.security.policy.assignments import is_harmless
from ybs.security.policy.own_programs import program_ends, runs_more, scope_of_program

_GIT_READS = (
    "status",
    "log",
    "diff",
    "show",
    "blame",
    "shortlog",
    "describe",
    "rev-parse",
    "ls-files",
)
GIT_READ_ONLY = f"git {'|'.join(_GIT_READS)} *"
#: Beginnings of commands that check, build, format or read, each a scope of its own. Nothing here takes a program as text,
#: and what these programs run is the project's own code, in the same sandbox.
_BEGINNINGS_TEXT: Sequence[str] = """\
pytest|python -m pytest|python3 -m pytest|python -m unittest|python3 -m unittest|uv run pytest|poetry run pytest|tox|nox|nose2|coverage report
ruff check|ruff format|mypy|pyright|basedpyright|flake8|pylint|black|isort|python -m mypy
npm test|npm run|pnpm test|pnpm run|yarn test|yarn run|npx tsc|npx eslint|npx jest|npx vitest|npx prettier
tsc|eslint|jest|vitest|prettier|biome check|mocha
cargo test|cargo build|cargo check|cargo clippy|cargo fmt|cargo nextest run|cargo doc
go test|go build|go vet|go fmt|gofmt|golangci-lint run|staticcheck
mvn test|mvn compile|gradle test|./gradlew test|gradle build|./gradlew build
dotnet test|dotnet build|swift test|swift build|mix test|bundle exec rspec|rspec|phpunit
ctest|ninja|shellcheck|yamllint|markdownlint|hadolint
ls|cat|head|tail|wc|grep|rg|tree|file|stat|du|jq|sort|uniq|cut|diff|cmp|echo|pwd|date""".splitlines()
_BEGINNINGS: Sequence[Sequence[str]] = [
    entry.split() for line in _BEGINNINGS_TEXT for entry in line.split("|")
]
#: Programs that only read, whatever their options but those of `options`.
_READERS = frozenset(_BEGINNINGS_TEXT[-1].split("|")) | {"git"}
#: Beginnings whose next word belongs to the scope: `npm run lint` is not `npm run deploy`.
_WITH_NAME = frozenset({"npm run", "pnpm run", "yarn run"})
_BY_PROGRAM: dict[str, list[list[str]]] = {}
for _words in _BEGINNINGS:
    _BY_PROGRAM.setdefault(_words[0], []).append(list(_words))
#: Options by which these programs load or run code from elsewhere, or write where they are told.
_REACHING = lazy(
    r"-(?:-?exec|-?toolexec|-?vettool|-?overlay|-?modfile|o|p|c|C|f|D|I|P|W|X)(?:=|$)|-[cpo].+"
    r"|--(?:config|rootdir|confcutdir|basetemp|output|out|prefix|manifest-path|target-dir|plugin|require|import"
    r"|loader|node-options|script-shell|ext-diff|textconv|no-index|python-executable|custom-typeshed-dir|init-hook"
    r"|load-plugins|resolve-plugins-relative-to|rulesdir|resolver|globalSetup|setupFiles|init-script|settings|define"
    r"|override-ini|junit|html|report|project|workdir|cwd|pre|files-from|to-command|delete|write|in-place)"
)
_NAME = re.compile(r"[A-Za-z][\w:-]*")
_OFFERED = lazy(r"run_shell\(([\w./:=,@%+| -]+?)( \*)?\)")
_WILD_START = tuple("*?[{~")
#: Programs for which nothing is ever remembered, not even the exact command.
_NEVER = frozenset(
    (
        "env",
        "xargs",
        "find",
        "fd",
        "eval",
        "exec",
        "source",
        ".",
        "command",
        "builtin",
        "trap",
        "alias",
    )
) | {
    "sudo",
    "doas",
    "su",
    "ssh",
    "docker",
    "podman",
    "kubectl",
    "nohup",
    "timeout",
    "time",
    "watch",
}


def scope_of(run: Command) -> str:
    """Return the scope that covers a command, such as `pytest *`, or nothing."""
    words = run.words
    if run.targets or run.sources or run.sets or run.given or not words:
        return ""
    if words[0] == "git":
        scope = GIT_READ_ONLY if len(words) > 1 and words[1] in _GIT_READS else ""
        size = 2
    else:
        fitting = [each for each in _BY_PROGRAM.get(words[0], ()) if words[: len(each)] == each]
        if not fitting:
            return ""
        best = max(fitting, key=len)
        scope, size = " ".join(best), len(best)
        if scope in _WITH_NAME:
            if len(words) == size or not _NAME.fullmatch(words[size]):
                return ""
            scope, size = f"{scope} {words[size]}", size + 1
        scope += " *"
    return scope if scope and _stays(words, size, run.globs) else ""


def scopes_of(reading: Reading) -> list[str]:
    """Return the scopes that together cover all of a command; empty where there are none."""
    script = reading.script
    if (
        not reading.is_clear
        or not script.is_clear
        or script.has_variables
        or len(reading.runs) < len(script.commands)
    ):
        return []
    scopes = [scope_of_part(part) for part in script.commands]
    return list(dict.fromkeys(scopes)) if all(scopes) else []


def scope_of_part(part: Command) -> str:
    """Return the scope of one command of a flat line; output may go to /dev/null."""
    targets = [target for target in part.targets if target != "/dev/null"]
    sets, words = part.words[: part.start], part.argv
    if targets or part.sources or not words or not all(map(is_harmless, sets)):
        return ""
    scope = scope_of(Command(words, targets, globs=part.globs)) or scope_of_program(
        words, lambda size: _stays(words, size, part.globs)
    )
    return " ".join([*sets, scope]) if scope else ""


def is_reading(scope: str) -> bool:
    """Return whether a scope is of a program that only reads, and so needs no place to write."""
    return next((word for word in scope.split() if "=" not in word), "") in _READERS


def why_never(reading: Reading) -> str:
    """Say in a few words why nothing may be remembered about a command, not even as it stands; else nothing."""
    for run in reading.runs:
        name = run.words[0] if run.words else ""
        if program_ends(run.words):
            continue
        if stem_of(name) in INTERPRETERS:
            return f"{name} runs more than a program of the project"
        if not name or name in _NEVER or next(options.running(run.words), None) is not None:
            return f"{name} runs other commands" if name else "it runs no program"
        if name == "git" and options.git_verb(run.words) != 1:
            return "git is given options of its own"
    is_more = runs_more(reading, lambda part: bool(program_ends(part.argv)))
    return "one program in it runs another" if is_more else ""


def text_of(scopes: list[str]) -> str:
    """Write scopes as the person reads them before they are stored."""
    return " + ".join(f"run_shell({scope})" for scope in scopes)


def scopes_in(text: str) -> list[str]:
    """Read what `text_of` wrote; empty for every other text."""
    pieces = [_OFFERED().fullmatch(piece) for piece in text.split(" + ")]
    scopes = [f"{piece[1]}{piece[2] or ''}" for piece in pieces if piece is not None]
    is_whole = len(scopes) == len(pieces) and all(map(_is_scope, scopes))
    return scopes if is_whole else []


def _is_scope(text: str) -> bool:
    if text == GIT_READ_ONLY:
        return True
    words = text.removesuffix(" *").split()
    sets = 0
    while sets < len(words) and "=" in words[sets]:
        sets += 1
    return scope_of_part(Command(words, [], start=sets)) == text


def _stays(words: list[str], size: int, globs: Sequence[str] = ()) -> bool:
    """Return whether no word behind the beginning reaches outside the project, or makes or runs something else."""
    behind = words[size:]
    if options.writing(words) or options.from_globs(words, globs) or any(options.running(words)):
        return False
    if any(wrappers.words_that_run([words[0], *behind])) or any(goals.chosen(words)):
        return False
    if goals.is_by_goals(words) and operands_of(["", *behind]):
        return False
    return not any(_reaches(word, is_reader=words[0] in _READERS) for word in behind)


def _reaches(word: str, *, is_reader: bool) -> bool:
    """Return whether a word loads or writes something elsewhere, or may."""
    value = word.partition("=")[2] if word.startswith("-") else word
    if not is_reader and _REACHING().match(word):
        return True
    return value.startswith(("/", *_WILD_START)) or ".." in value.split("/")
