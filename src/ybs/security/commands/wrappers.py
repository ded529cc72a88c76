"""Programs that run other programs (`env`, `nohup`, `sh -c`, `xargs`, `find -exec`): what they may run."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import takewhile

from msgspec import Struct, field
from msgspec.structs import replace

from ybs.core.lazy import lazy
from ybs.security.commands import options, syntax
from ybs.security.commands.command import GRAMMAR, Command, Script, parse, scan, words_in

SHELLS = words_in("sh bash dash zsh ksh ash fish")
#: Programs that run other languages.
INTERPRETED = words_in("python perl ruby node php lua deno bun osascript pwsh Rscript tclsh julia nodejs irb ghci groovy scala elixir guile expect")  # fmt: skip
_MODULES = re.compile(r"(?:python|pypy)[\d.]*")
#: Their arguments together are one text.
_JOINING = words_in("eval watch ssh parallel")
#: Programs with a word of their own (a duration, a folder, a person) before the command.
_WITH_OPERAND = words_in(
    "timeout chroot taskset chrt flock su runuser ssh setarch faketime gosu su-exec"
)
_WRAPPERS = (SHELLS | _JOINING | _WITH_OPERAND) | words_in("env command builtin exec nohup time nice ionice stdbuf setsid xargs sudo doas pkexec strace ltrace caffeinate unshare nsenter busybox toybox script trap alias systemd-run setpriv prlimit unbuffer proot fakeroot coproc valgrind hyperfine rlwrap entr linux32 linux64 uname26 i386 x86_64 choom numactl eatmydata cgexec torsocks proxychains proxychains4 dbus-run-session xvfb-run capsh chpst start-stop-daemon tini dumb-init firejail catchsegv chronic sg at batch npx uvx bunx watchexec")  # fmt: skip
#: Programs that are wrappers with one of these verbs.
_WITH_VERB = {
    **dict.fromkeys(["uv", "poetry", "pipenv", "pdm", "rye", "hatch", "conda", "pipx"], ("run",)),
    **dict.fromkeys(["bundle", "direnv", "mise", "npm", "pnpm", "yarn"], ("exec", "x", "dlx")),
    **dict.fromkeys(["docker", "podman", "kubectl"], ("exec", "run")),
    "git": ("bisect", "foreach", "shell", "hook", "instaweb", "daemon", "send-email"),
    "gh": ("alias", "extension", "extensions", "ext", "config"),
    "tox": ("exec", "e"),
    "mix": ("cmd", "run"),
    "nix": ("-c", "--command"),
    "nix-shell": ("--run", "--command"),
    "perf": ("stat", "record"),
    "tmux": ["new", "new-session", "new-window", "split-window", "send-keys", "run-shell"],
}
_FIND_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"})
_TEXT = re.compile(r"[\s;&|<>()$`'\"\\*?\[]")
_FINDERS = frozenset({"find", "fd", "fdfind"})
#: Programs that add words of their input, or names that they find, to a command.
_FEEDING = _FINDERS | {"xargs", "parallel"}
#: Where `find`, `fd` and `parallel` put them; `xargs` has them at the end, or where an option says.
_PLACE = lazy(r"\{[\w./#%+-]*\}")
_ENDS = frozenset({";", "+", ":::", "::::", ":::+", "::::+"})
#: Stands for what is added, as a word that is only known when it runs.
_ADDED = "$ADDED"
#: Settings of git that say what a verb means.
_ALIASES = lazy(r"(?:--config-env=)?(?:alias|include|includeif)\..*", re.I | re.S)
_ASSIGNMENT = lazy(r"([A-Za-z_]\w*)\+?=(.*)", re.DOTALL)
_VARIABLE = lazy(r"\$(?:(\w+)|\{(\w+)\})")
#: Beyond these a text is not clear, and is only scanned.
_DEEPEST = 5
_MOST_WORDS = 5_000
#: Longer values of variables are not put in their place: `a=…; b=$a$a; c=$b$b` would be without end.
_LONGEST_VALUE = 1_000


class Reading(Struct):
    """What a text runs: each program, without its folder, with its arguments, those in wrappers included. `programs`: how each is spelled.

    `meant`: the same, and each with the values in place of its variables where the text gives them (`values`): what denies, blocks or
    warns goes by these. `script` is the flat line; `doubts` say in words why a text is not clear. `scanned`: all that could be
    words of a command; empty for a text that is clear.
    """

    text: str
    script: Script
    runs: list[Command]
    meant: list[Command] = field(default_factory=list[Command])
    values: dict[str, str] = field(default_factory=dict[str, str])
    programs: list[str] = field(default_factory=list[str])
    is_clear: bool = True
    doubts: dict[str, None] = field(default_factory=dict[str, None])
    word_count: int = 0
    scanned: list[str] = field(default_factory=list[str])

    @property
    def parts(self) -> list[Command]:
        """The commands of a flat line of which nothing is only known when it runs; of any other text none."""
        is_known = self.is_clear and self.script.is_clear and not self.script.has_variables
        return self.script.commands if is_known else []

    def doubt(self, reason: str) -> None:
        """Note why the text cannot be judged for certain."""
        self.doubts[reason] = None
        self.is_clear = False


def name_of(words: Sequence[str]) -> str:
    """Return the program's bare name, in small letters, as some file systems ignore case; a variable as it is spelled."""
    name = words[0].rpartition("/")[2] if words else ""
    return name if "$" in name else name.lower()


def words_that_run(words: Sequence[str]) -> Iterator[str]:
    """Yield the words behind the program by which it runs another one: `exec` of `tox exec`, `-exec` of `find`."""
    name = name_of(words)
    wanted = _FIND_RUNS if name in _FINDERS else _WITH_VERB.get(name, ())
    ends = len(words) if name in _FINDERS or "--" not in words else words.index("--")
    yield from (word for word in words[1:ends] if word in wanted)


@lru_cache(maxsize=4)  # who judges a call and who looks at how it went read the same one
def read(text: str) -> Reading:
    """Read a command line, and through the wrappers in it. Nobody changes what this returns."""
    reading = Reading(text=text, script=parse(text), runs=[])
    _follow_text(text, reading, 0, reading.script)
    reading.meant = reading.runs
    if "$" in text and (values := _values(reading.runs)):
        reading.values, reading.meant = values, [*reading.runs, *_with_values(reading, values)]
    reading.scanned = [] if reading.is_clear else scan(text)
    return reading


def _follow_text(text: str, reading: Reading, depth: int, flat: Script | None = None) -> None:
    """Add the commands of a text, read twice: where the two readings disagree, both are judged.

    One command of plain and quoted words has one reading in every shell, so it is read once.
    """
    flat = flat or parse(text)
    commands = flat.commands
    if not flat.is_simple:
        whole = syntax.parse(text, is_flat=flat.is_clear)
        for reason in whole.doubts:
            reading.doubt(reason)
        if not flat.is_clear:
            commands = whole.commands or commands
        elif whole.commands != commands:
            reading.doubt("two ways to read it disagree")
            commands = commands + whole.commands
    for command in commands:
        _follow(command, reading, depth)


def _follow(command: Command, reading: Reading, depth: int) -> None:
    """Add a command and what it may run to the reading."""
    words, name = command.words, name_of(command.words)
    reading.word_count += len(words)
    if depth > _DEEPEST or reading.word_count > _MOST_WORDS:
        reading.doubt("it is too long or nested too deeply to be judged")
        return
    run = command if words[:1] in ([], [name]) else replace(command, words=[name, *words[1:]])
    reading.runs.append(run)
    reading.programs.append("".join(words[:1]))
    if name in GRAMMAR and name != "coproc":
        reading.doubt(f"{name!r} stands where a program should")  # `time ! x`
    for inner in commands_run_by(name, words[1:]):
        _follow(Command(inner, [], run.is_piped_into, run.given), reading, depth + 1)
        if _TEXT.search(inner[0]):
            _follow_text(inner[0], reading, depth + 1)
    texts = [value for _, value in options.running(run.words)]
    texts += [" ".join(words[1:])] * (name in _JOINING) + [run.given] * (name in SHELLS)
    for text in filter(None, texts):
        _follow_text(text, reading, depth + 1)


def _values(runs: Sequence[Command]) -> dict[str, str]:
    """Return the variables that the commands give one literal value; one that they give two has none."""
    values: dict[str, str] = {}
    for run in runs:
        for word in (*run.sets, *run.words):
            if found := _ASSIGNMENT().fullmatch(word):
                value = "$" if found[1] in values else resolved(found[2], values)
                values[found[1]] = value if len(value) <= _LONGEST_VALUE else "$"
    return values


def resolved(word: str, values: Mapping[str, str]) -> str:
    """Return a word with its variables replaced by their values, where these are known."""
    return _VARIABLE().sub(lambda found: values.get(found[1] or found[2], found[0]), word)


def _with_values(reading: Reading, values: Mapping[str, str]) -> list[Command]:
    """Return the commands that hold variables with the values of these, and what they run then; a value with spaces as one word and as several."""
    other = Reading(text="", script=reading.script, runs=[])
    for run in reading.runs:
        whole = [resolved(word, values) for word in run.words]
        apart = [part for word in whole for part in word.split()]
        if whole != run.words:
            for words in [whole] if apart == whole else [whole, apart]:
                _follow(replace(run, words=words), other, 0)
    return other.runs


def filled(runs: Sequence[Command]) -> list[Command]:
    """Return what commands run with words that the line does not show, each of these as a variable.

    That is what `xargs`, `parallel` and `find -exec` run, and any verb of git where an option sets an alias. Only rules that deny or ask mean it.
    """
    other = Reading(text="", script=Script([], is_clear=True), runs=[])
    for run in runs:
        name = "".join(run.words[:1])
        for words in _with_added(name, run.words) if name in _FEEDING else ():
            _follow(Command(words, []), other, 0)
            if name == "parallel":  # a shell reads what it runs
                _follow_text(" ".join(words), other, 0)
            if other.word_count > _MOST_WORDS:  # too long to be judged: it may be any
                return [Command([_ADDED, _ADDED], [])]
        if name == "git":
            _follow_aliases(run.words, other)
    return other.runs


def _with_added(name: str, words: list[str]) -> Iterator[list[str]]:
    """Yield what a program runs with what it adds: in the places for it, and at the end where it has none."""
    starts, marks = [""], list[str]()
    if name == "find":  # each name begins as the place that was searched
        places = takewhile(lambda word: word[:1] not in ("-", "(", "!"), words[1:])
        starts = ["./" if word == "." else word for word in places] or ["./"]
    elif name not in _FINDERS:
        marks = options.values_of(words, "-I -J")
        marks += [word.partition("=")[2] for word in words if word.startswith("--replace=")]
    place = re.compile("|".join([_PLACE().pattern, *map(re.escape, marks)]))
    has_place = any(map(place.search, words))
    for behind in commands_run_by(name, words[1:]) if has_place or name != "find" else ():
        inner = list(takewhile(lambda word: word not in _ENDS, behind))
        if inner and inner[0] in marks:
            marks.remove(inner[0])  # it is the option's own value, not the program
            continue
        if name != "find":
            yield [*inner, _ADDED, _ADDED]
        for start in starts if has_place and any(map(place.search, inner)) else ():
            yield [place.sub(lambda _, start=start: start + _ADDED, word) for word in inner]


def _follow_aliases(words: list[str], reading: Reading) -> None:
    """Add any verb of a git that is told what verbs mean, and the program that an alias says."""
    verb = options.git_verb(words)
    aliases = [word for word in words[1:verb] if _ALIASES().fullmatch(word)]
    if aliases:
        _follow(Command(["git", _ADDED, *words[verb + 1 :]], []), reading, 0)
    for alias in aliases:
        program = alias.partition("=")[2]
        if program.startswith("!"):
            _follow_text(" ".join([program[1:], *words[verb + 1 :]]), reading, 0)


def commands_run_by(name: str, words: list[str]) -> Iterator[list[str]]:
    """Yield every argument list that the program may run as a command."""
    if name in _FINDERS:
        starts = (place + 1 for place, word in enumerate(words) if word in _FIND_RUNS)
        yield from (words[start:] for start in starts if words[start:])
    elif name in _WRAPPERS:
        if not (name == "command" and {"-v", "-V"} & set(words[:2])):
            yield from _starts(name, words)
    elif _MODULES.fullmatch(name):
        if "-m" in words[:-1]:  # `python -m pip uninstall`
            yield words[words.index("-m") + 1 :]
        elif words and not words[0].startswith("-"):
            yield words
    elif name in _WITH_VERB:
        verbs = _WITH_VERB[name]
        place = next((place for place, word in enumerate(words) if word in verbs), len(words))
        yield from _starts(name, words[place + 1 :])


def _starts(name: str, words: list[str]) -> Iterator[list[str]]:
    """Yield from every word that may be the program, up to the one that can be nothing else."""
    operands_left = 1 + (name in _WITH_OPERAND or name in _WITH_VERB)
    is_behind_option = False
    for place, word in enumerate(words):
        if first := _program_in(word, is_alias=name == "alias"):
            yield [first, *words[place + 1 :]]
        is_option = word.startswith("-")
        is_own = is_option or is_behind_option or "=" in word or word[:1].isdigit()
        is_behind_option = is_option
        operands_left -= not is_own
        if not operands_left:
            return


def _program_in(word: str, *, is_alias: bool) -> str:
    """Return the word, or what is glued to an option: `-Sprogram`, `--split-string=program`."""
    if word.startswith("-") and not word.startswith("--"):
        return word[2:]
    return word.partition("=")[2] if "=" in word and (is_alias or word.startswith("-")) else word
