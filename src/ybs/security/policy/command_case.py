"""A shell command on trial: everything that the policy needs to know about it, found out once."""

import re
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from posixpath import normpath
from shlex import quote
from typing import Any
from unicodedata import name as name_of
from unicodedata import normalize

from msgspec import DecodeError, json

from ybs.config.schema import SafetySettings
from ybs.core.lazy import lazy
from ybs.security.commands import dangers, options, wrappers
from ybs.security.commands.command import MOVING, Command, parse, words_in
from ybs.security.commands.dangers import BY_PROGRAM, INTERPRETERS, scripts_in, stem_of
from ybs.security.commands.options import operands_of
from ybs.security.commands.wrappers import Reading, read
from ybs.security.commands.writers import IN_GIT, REACHING, needs_network, writes
from ybs.security.paths.autorun import part_of
from ybs.security.policy.rules import ELSEWHERE, Rule, replaces_nothing
from ybs.security.unicode import hidden_characters

#: Programs whose first word says what is done: "always" means that word, too.
_WITH_VERB = words_in("git npm pnpm yarn bun deno npx cargo rustup go docker podman kubectl helm pip pip3 pipx uv uvx poetry pdm hatch rye conda gh glab terraform tofu aws gcloud az dotnet mix swift bundle gem rails php composer brew apt apt-get coverage ruff")  # fmt: skip
#: Verbs that name what they run.
_RUNNING_VERBS = frozenset({"run", "exec", "dlx", "x", "tool"})
_VERB = lazy(r"[A-Za-z][\w.:@/-]*")
#: Parts of a line that an "always" need not name: without an option or operand that writes or runs.
_HARMLESS = words_in("basename cat cd cmp comm cut df dirname du echo false grep head id ls nl pwd readlink realpath seq stat tail test tr true uname wc whoami")  # fmt: skip
#: A line that enters a folder and does all else there, and nothing where that fails.
_ENTERS = lazy(
    r"""\s*cd[ \t]+(?:[\w./:=,@%+-]+|'[^']*'|"[^"$`\\]*")[ \t]*&&(?:[^;\n|\\'"]|'[^']*'|"[^"\\]*"|\|(?!\|))*"""
)
#: The folder that a line enters by its whole path.
_ENTERS_WHOLE = lazy(r"""cd[ \t]+(?:'(/[^']*)'|"(/[^"$`\\]*)"|(/[\w./:=,@%+-]*))(?=[ \t]*&&)""")
#: Programs that run others in so many ways that nothing is remembered about them.
_NEVER = words_in(
    "env xargs find fd eval exec source . command builtin trap alias sudo doas su ssh nohup timeout time watch"
)
#: Verbs with which a program finds by itself whom it fetches from, by the project's or the person's own settings: its other words
#: are names of packages. None hands its words to the project's own code, or sends what they name.
_INSTALLING_ROWS = (
    ("pip pip3", "download install wheel"),
    ("uv", "add lock pip sync"),
    ("poetry pdm pipenv rye", "add install lock sync update"),
    ("conda", "create install search update"),
    ("npm", "add audit ci i info install outdated update view"),
    ("pnpm", "add audit fetch i install outdated update"),
    ("bun", "add i install update"),
    ("yarn", "add info install"),  # its other words may be scripts of the project
    ("cargo", "add build check clippy fetch install search update"),
    ("go", "build get mod"),
    ("bundle gem composer", "add install lock require update"),
    ("dotnet", "add build restore"),
    ("mix", "deps.get deps.update"),
    ("swift", "build"),
)
_INSTALLING = {name: words_in(verbs) for names, verbs in _INSTALLING_ROWS for name in names.split()}
_ADDRESS = lazy(r"://|^[\w.+-]+@[\w.-]+:")
#: With the network also `HOST:PORT` and `HOST:path`; `test.py::name` is none. Of what installs also `HOST.DOMAIN/path`.
_WITH_PORT = lazy(r"(?<!:):(?!:)|\[[\da-fA-F:]*:")
_WITH_PATH = lazy(r"[\w-]+(?:\.[\w-]+)+/")
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


def scopes_of(reading: Reading, *, network: bool = False) -> list[str]:
    """Return the scopes that together cover all of a command; empty where there are none."""
    scopes = [scope_of(part, network=network) for part in parts_to_cover(reading)]
    return list(dict.fromkeys(scopes)) if all(scopes) else []


def scope_of(part: Command, *, network: bool = False) -> str:
    """Return the scope of one command of a flat line, or nothing; its output may go to /dev/null.

    With the network only what installs has one: any word of another program may say whom it talks to.
    """
    size = _installing(part.words) if network else _beginning_of(part.words)
    sets, words = part.sets, part.words
    is_more = part.may_gain_options or not _goes_nowhere(part)
    if not size or is_more or not all(map(is_harmless, sets)):
        return ""
    if not all(map(_PLAIN_WORD().fullmatch, words[:size])) or not _does_no_more(words, size):
        return ""
    if network and (part.is_piped_into or _names_address(words, size)):
        return ""
    star = [] if words[:size] == words and options.takes_targets(words) else ["*"]
    return " ".join([*sets, *words[:size], *star])


def from_its_folder(command: str, folder: str) -> str:
    """Return a command that begins by entering the folder it runs in, or one in that, by its whole path with that path from there: `cd . && make`."""
    if found := _ENTERS_WHOLE().match(command):
        path = found[1] or found[2] or found[3]
        is_inside = folder != "" and f"{path}/".startswith(f"{folder}/")
        if is_inside and ".." not in path.split("/"):
            return f"cd {quote(normpath(path[len(folder) + 1 :] or '.'))}{command[found.end() :]}"
    return command


def entered(reading: Reading) -> str:
    """Return the folder below its own, or `.`, in which all of a line runs, as that of `cd FOLDER && make`; nothing for other lines."""
    if not reading.parts or not _ENTERS().fullmatch(reading.text):
        return ""
    folder = reading.parts[0].words[1]
    return "" if folder.startswith("-") or ELSEWHERE().search(folder) else normpath(folder)


def parts_to_cover(reading: Reading) -> list[Command]:
    """Return the commands of a flat line that an "always" has to name: those that do more than read, where there are some.

    A `cd` says where the others run: one at the beginning is part of what is named (`entered`), any other has no scope.
    """
    parts = reading.parts[1:] if entered(reading) else reading.parts
    return [part for part in parts if part.words[:1] == ["cd"] or not _is_harmless(part)] or parts


def _is_harmless(part: Command) -> bool:
    """Return whether one command of a line only reads, whatever its words."""
    is_plain = not part.sets and _goes_nowhere(part)
    return is_plain and bool(part.words) and part.words[0] in _HARMLESS


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
    if not words:
        return 0
    name = words[0].rpartition("/")[2]
    if ends := _program_ends(words):
        return ends
    if name in _NEVER or name in MOVING or stem_of(name) in INTERPRETERS:
        return 0
    if options.takes_targets(words):
        return len(words) if len(operands_of(words)) == len(words) - 1 else 0
    if name not in _WITH_VERB:
        runs = any(wrappers.commands_run_by(wrappers.name_of(words), list(words[1:])))
        return 0 if runs or name in REACHING else 1
    size = 3 if "".join(words[1:2]) in _RUNNING_VERBS else 2
    return size if len(words) >= size and all(map(_VERB().fullmatch, words[1:size])) else 0


def _installing(words: Sequence[str]) -> int:
    """Return the place behind the verb with which a program installs from where its settings say; 0 where it does not."""
    start = 2 if words[1:3] == ["-m", "pip"] and stem_of(words[0]) == "python" else 0
    name, verb = (*words[start : start + 2], "", "")[:2]
    return start + 2 if verb in _INSTALLING.get(name.rpartition("/")[2], ()) else 0


def _does_no_more(words: list[str], size: int) -> bool:
    """Return whether no word behind the beginning reaches outside, makes the program run another one or choose something else."""
    runs = any(options.running(words)) or any(wrappers.words_that_run([words[0], *words[size:]]))
    runs = runs or any(options.naming_programs(words))
    does_else = runs or options.chooses(words) or scripts_in(words[0], words)
    beyond = (each.search for each in (ELSEWHERE(), _ADDRESS()))
    return not does_else and not any(found(word) for found in beyond for word in words[size:])


def _names_address(words: list[str], size: int) -> bool:
    """Return whether a word behind the beginning may say where the network is used."""
    if _installing(words) and any(map(_WITH_PATH().match, words[size:])):
        return True
    return any(map(_WITH_PORT().search, words[size:])) or any(options.naming_addresses(words))


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


#: Names of arguments that hold commands, in the tools of others.
_COMMAND_NAMES = lazy(r"(?:.*_)?(?:command|commands|cmd|script|shell|bash|exec|run|sql|query|code)", re.I)  # fmt: skip
_MOST_TEXTS = 50
#: Files that are nobody's; the sandbox has its own folders for scratch files.
_NOBODYS = lazy(r"/dev/(?:null|stdout|stderr|tty)$|/tmp/|/var/tmp/")
#: Commands of the shell itself after which other words mean something else, and those that run a text.
_CHANGING = words_in("alias unalias hash enable complete bind trap shopt fc coproc")
_RUNNING_TEXT = words_in("eval source . let")
_SETTING = words_in("export declare typeset readonly local env setenv launchctl set")
_WITH_SUBSCRIPTS = _SETTING | words_in("printf read unset test [ wait mapfile readarray")
_NETWORK = lazy(r"/dev/(?:tcp|udp)/")
#: Ends the reason to ask about a file that a command shows to write and that no sandbox holds back from being run later.
_READ_LATER = "which other programs read by themselves"
_FOREIGN_SCRIPT = ("CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "FULLWIDTH", "MATHEMATICAL")
_LATIN = lazy(r"[A-Za-z]")
_LETTERS = lazy(r"[^\W\d_]+|.", re.DOTALL)


class CommandCase:
    """One command: how it reads, what is dangerous about it, and what could allow it."""

    def __init__(self, command: str, safety: SafetySettings, *, network: bool = False) -> None:
        self.reading: Reading = read(command)
        self._network = network
        self.blocked = dangers.blocked_entry(self.reading, safety.blocked_commands)
        self.dangers = dangers.warnings_of(command, self.reading)
        self.reasons = reasons_to_ask(command, self.reading)
        self.foreseen = tuple(each for each in self.dangers if not each.endswith(dangers.FED))
        self.foreseen += tuple(each for each in self.reasons if each.endswith(_READ_LATER))
        self.needs_network = needs_network(self.reading)
        self._safe = safety.safe_commands

    @cached_property
    def writes(self) -> str:
        """Return the part that is known to write or to need the network; empty if there is none."""
        return next(iter(writes(self.reading)), "")

    @property
    def needs_git(self) -> bool:
        """Whether a part is known to write in git's folder, which no command in the sandbox can."""
        return self.writes.endswith(IN_GIT)

    @property
    def unlisted(self) -> str:
        """Return a program that is not among `safety.safe_commands`; empty if all are."""
        if not self.reading.is_clear:
            return "it is not understood"
        entries = [entry.split() for entry in self._safe if entry.strip()]
        for run, program in zip(self.reading.runs, self.reading.programs, strict=True):
            words = [program, *run.words[1:]]  # `./cat` is another program than `cat`
            is_listed = any(words[: len(entry)] == entry for entry in entries)
            if not is_listed or run.sets:
                return f"{' '.join(run.sets) or program or 'it'} is not in safety.safe_commands"
        return next(iter(self.reasons), "")

    @cached_property
    def scopes(self) -> list[str]:
        """The scopes that together cover the command."""
        return scopes_of(self.reading, network=self._network)

    @cached_property
    def folder(self) -> str:
        """The folder below the call's, or `.`, in which all of the command runs; empty where it does not begin by entering one."""
        return entered(self.reading)

    @cached_property
    def why_never(self) -> str:
        """Why nothing may be remembered about the command as it stands; empty where something may."""
        return why_never(self.reading)

    def is_covered_by(self, rules: Sequence[Rule], grants: Collection[str], place: str) -> bool:
        """Return whether a rule's pattern, or a grant for this place, covers each part that does more than read.

        A pattern means the project's folder, so where the line enters another one a rule has to name that, too (`cd *`).
        """
        parts = parts_to_cover(self.reading)
        rules = [rule for rule in rules if rule.names("run_shell")]
        if self.folder not in ("", ".") and not any(
            rule.allows_part(self.reading.parts[0]) for rule in rules
        ):
            rules = []
        return bool(parts) and all(
            any(rule.allows_part(part) for rule in rules)
            or f"run_shell({scope_of(part, network=self._network)}){place}" in grants
            for part in parts
        )

    def is_touched_by(self, rule: Rule, line: str) -> bool:
        """Return whether a rule that denies or asks covers any of the command: of the line as it stands, or as it reads from its own folder."""
        lines = dict.fromkeys((line, self.reading.text))
        return any(rule.denies_command(each, read(each)) for each in lines)

    def may_leave(self, rules: Sequence[Rule]) -> bool:
        """Return whether rules for running outside the sandbox name the command, or each of its parts, and the shell replaces nothing in it."""
        parts, text = self.reading.parts, self.reading.text
        is_named = any(rule.is_exactly(text) for rule in rules) or all(
            any(rule.lets_out(part) for rule in rules) for part in parts
        )
        return bool(parts) and is_named and replaces_nothing(text)


def commands_in(arguments: bytes) -> Iterator[str]:
    """Yield the texts among a tool's arguments that look like commands: by their name, or their first word."""
    try:
        decoded = json.decode(arguments)
    except DecodeError:
        return
    texts = [text for text in _texts("", decoded) if _looks_like_command(*text)]
    yield from (text for _, text in texts[:_MOST_TEXTS])
    if len(texts) > _MOST_TEXTS:
        yield "\n".join(text for _, text in texts[_MOST_TEXTS:])


def _texts(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, dict):
        for key, inner in value.items():  # pyright: ignore[reportUnknownVariableType]
            yield from _texts(str(key), inner)  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(value, list):
        if value and all(isinstance(each, str) for each in value):  # pyright: ignore[reportUnknownVariableType]
            yield name, " ".join(value)  # pyright: ignore[reportUnknownArgumentType]
        else:
            for inner in value:  # pyright: ignore[reportUnknownVariableType]
                yield from _texts(name, inner)


def _looks_like_command(name: str, text: str) -> bool:
    if _COMMAND_NAMES().fullmatch(name):
        return True
    first, _, rest = text.strip().partition(" ")
    program = stem_of(first.rpartition("/")[2])
    return bool(rest) and (program in BY_PROGRAM or program == "sudo") and text.isprintable()


def reasons_to_ask(text: str, reading: Reading) -> tuple[str, ...]:
    """Say what has to be asked about, one line for each thing."""
    found = [f"not understood: {reason}" for reason in reading.doubts]
    moves = any(run.words and run.words[0] in MOVING for run in reading.runs)
    for run in reading.runs:
        name, words = "".join(run.words[:1]), run.words
        files = [*run.targets, *(options.operands_of(words) if name == "tee" else ())]
        reaching = [(file, _reach_of(file, moves=moves)) for file in files]
        found += [f"writes to {file!r}, {reach}" for file, reach in reaching if reach]
        for each in (*run.sets, *(words[1:] if name in _SETTING else ())):
            if POWERFUL().match(each) and not is_harmless(each):
                variable = each.partition("=")[0].rstrip("+")
                found.append(f"sets {variable}, which says how other programs run")
        found += _reasons_of_program(name, run)
    found += dangers.hidden_in(text, reading)
    if _NETWORK().search(text):
        found.append("opens a network connection by way of /dev/tcp or /dev/udp")
    if not text.isascii():
        found += oddities_of(text, reading)
    return tuple(dict.fromkeys(found))


def _reasons_of_program(name: str, run: Command) -> Iterator[str]:
    words = run.words
    if name in _RUNNING_TEXT:
        yield f"{name} runs text or a file as commands of this shell"
    elif name in _CHANGING and len(words) > 1:
        yield f"{name} changes what other commands mean"
    if name in _WITH_SUBSCRIPTS and any("[" in w and ("$(" in w or "`" in w) for w in words[1:]):
        yield f"{name} runs the substitution within a subscript"
    if run.given and stem_of(name) in INTERPRETERS:
        yield f"{name} runs the text of a here-document"
    for option, _ in options.running(words) if name in options.RUNNING else ():
        yield f"{name} {option} runs what it is given"


def oddities_of(text: str, reading: Reading) -> Iterator[str]:
    """Say what a reader could overlook in the command."""
    yield from (f"holds the invisible character {name}" for name in hidden_characters(text))
    for run in reading.runs:
        if run.words and not run.words[0].isascii():
            yield f"the program's name {run.words[0]!r} holds letters that look like others"
    for word in dict.fromkeys(_LETTERS().findall(text)):
        if not word.isascii() and (twin := _deceiver(word)):
            yield f"{word[:40]!r} holds {twin}, which looks like another character"


def _deceiver(word: str) -> str:
    """Return the name of a character in a run of letters that is there to be taken for another one, or nothing."""
    has_latin = bool(_LATIN().search(word))
    for character in word:
        plain = normalize("NFKC", character)
        is_twin = plain != character and plain.isascii() and not plain.isalnum()
        is_foreign = name_of(character, "").startswith(_FOREIGN_SCRIPT)
        if character.isspace() or (is_foreign and (is_twin or has_latin)):
            return f"U+{ord(character):04X}"
    return ""


def _reach_of(target: str, *, moves: bool) -> str:
    """Return what is special about a file that is written to, or nothing."""
    path = normpath(target)
    parts = path.split("/")
    if _NOBODYS().match(path):
        return ""
    if target[:1] in "~$/" or parts[0] == "..":
        return "outside the project"
    if any(part.startswith(".") and part != "." for part in parts):
        return _READ_LATER if part_of(list(map(str.lower, parts))) else "which is hidden"
    return "in a folder that is only known when it runs" if moves else ""
