"""Programs that run other programs (`env`, `nohup`, `sh -c`, `xargs`, `find -exec`): what they may run."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct, field
from msgspec.structs import replace

from ybs.core.lazy import lazy
from ybs.security.commands import options, syntax
from ybs.security.commands.command import GRAMMAR, Command, Script, parse, scan, words_in

SHELLS = words_in("sh bash dash zsh ksh ash fish")
#: Programs that run other languages.
INTERPRETED = words_in("python perl ruby node php lua deno bun osascript pwsh Rscript tclsh julia nodejs irb ghci groovy scala elixir guile expect")  # fmt: skip
_MODULES = re.compile(r"(?:python|pypy)[\d.]*")
_AS_MODULE = lazy(r"-[A-Za-ln-z]*m(.*)", re.DOTALL)
#: Their arguments together are one text.
_JOINING = words_in("eval watch ssh parallel")
#: Programs with a word of their own (a duration, a folder, a person) before the command.
_WITH_OPERAND = words_in(
    "timeout chroot taskset chrt flock su runuser ssh setarch faketime gosu su-exec script sg"
)
_WRAPPERS = (SHELLS | _JOINING | _WITH_OPERAND) | words_in("env command builtin exec nohup time nice ionice stdbuf setsid xargs gxargs sudo doas pkexec strace ltrace caffeinate unshare nsenter busybox toybox script trap alias systemd-run setpriv prlimit unbuffer proot fakeroot coproc valgrind hyperfine rlwrap entr linux32 linux64 uname26 i386 x86_64 choom numactl eatmydata cgexec torsocks proxychains proxychains4 dbus-run-session xvfb-run capsh chpst start-stop-daemon tini dumb-init firejail catchsegv chronic sg at batch npx uvx bunx watchexec")  # fmt: skip
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
#: Programs that add words of their input to a command.
_FEEDING = frozenset({"xargs", "gxargs", "parallel"})
#: Settings of git that say what a verb means.
_ALIASES = lazy(r"(?:--config-env=)?(?:alias|include|includeif|help)\..*", re.I | re.S)
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
    if name.startswith("git-") and len(name) > 4:  # `/usr/lib/git-core/git-push`
        words, name = ["git", name[4:], *words[1:]], "git"
    reading.word_count += len(words)
    if depth > _DEEPEST or reading.word_count > _MOST_WORDS:
        reading.doubt("it is too long or nested too deeply to be judged")
        return
    spelled = [name, *words[1:]] if words else []
    run = command if spelled == command.words else replace(command, words=spelled)
    reading.runs.append(run)
    reading.programs.append("".join(command.words[:1]))
    if name in GRAMMAR and name != "coproc":
        reading.doubt(f"{name!r} stands where a program should")  # `time ! x`
    for inner in commands_run_by(name, words[1:]):
        _follow(Command(inner, [], run.is_piped_into, run.given), reading, depth + 1)
        if _TEXT.search(inner[0]):
            _follow_text(inner[0], reading, depth + 1)
    for file in run.sources if name in SHELLS else ():  # `sh < x.sh`
        _follow(Command([file], []), reading, depth + 1)
    texts = [value.removeprefix("exec=") for _, value in options.running(run.words)]  # of tar
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


def adds_words(run: Command) -> bool:
    """Return whether a command runs others with words that the line does not show: `xargs`, `find`, a git that is told what verbs mean."""
    name = "".join(run.words[:1])
    before_verb = run.words[1 : options.git_verb(run.words)] if name == "git" else []
    is_feeding = name in _FEEDING or (name in _FINDERS and not _FIND_RUNS.isdisjoint(run.words))
    return is_feeding or any(map(_ALIASES().fullmatch, before_verb))


def commands_run_by(name: str, words: list[str]) -> Iterator[list[str]]:
    """Yield every argument list that the program may run as a command."""
    if name in _FINDERS:
        starts = (place + 1 for place, word in enumerate(words) if word in _FIND_RUNS)
        yield from (words[start:] for start in starts if words[start:])
    elif name in _WRAPPERS:
        if not (name == "command" and {"-v", "-V"} & set(words[:2])):
            yield from _starts(name, words)
    elif _MODULES.fullmatch(name):
        yield from _modules_in(words)
    elif name in (".", "source"):
        yield from filter(None, [words])
    elif name in _WITH_VERB:
        verbs = _WITH_VERB[name]
        place = next((place for place, word in enumerate(words) if word in verbs), len(words))
        yield from _starts(name, words[place + 1 :])


def _modules_in(words: list[str]) -> Iterator[list[str]]:
    """Yield the module or file that Python runs, with its words: `-m pip uninstall`, `-Impip`."""
    for place, word in enumerate(words):
        if found := _AS_MODULE().fullmatch(word):
            yield from filter(None, [[*filter(None, found.groups()), *words[place + 1 :]]])
            return
    if words and not words[0].startswith("-"):
        yield words


def _starts(name: str, words: list[str]) -> Iterator[list[str]]:
    """Yield from every word that may be the program, up to the one that can be nothing else."""
    operands_left = 1 + (name in _WITH_OPERAND or name in _WITH_VERB)
    is_behind_option = False
    for place, word in enumerate(words):
        if first := _program_in(word, is_alias=name == "alias"):
            yield [first, *words[place + 1 :]]
        is_option = word.startswith("-") or (word[:1] == "+" and name in SHELLS)
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
