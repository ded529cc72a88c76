"""The search itself: `rg` walks, counts and says where the first lines are; what may not be shown is taken out."""

import codecs
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from subprocess import SubprocessError

from msgspec import Struct, field

from ybs.core.cutting import LONGEST_WORD, from_word, shortened, up_to_word
from ybs.core.errors import Refused, ToolError
from ybs.security.launcher import trusted_program
from ybs.security.paths.roots import Roots
from ybs.security.sandbox.confined import SAID_BY_BUBBLEWRAP, launch_reader
from ybs.security.sandbox.launch import SandboxView
from ybs.tools.reading.document import PROBE_BYTES, TextFile, wide_encoding
from ybs.tools.searching.child import ChildOutput, output_of
from ybs.tools.searching.choice import GlobChoice
from ybs.tools.searching.ignore import rules_at
from ybs.tools.searching.walk import Deadline, Walk

#: PCRE2 takes over where a pattern has lookaround or a backreference. `$` matches before `\r\n` as well.
_ALWAYS = (
    *("--no-config", "--no-mmap", "--no-follow", "--color", "never", "--with-filename", "--null"),
    *("--engine", "auto", "--crlf"),
)
#: It looks at what a walk of ours looks at: hidden files too, `.gitignore` files, and no other ignore files.
_WALK = (
    *("--hidden", "--glob", "!.git", "--no-ignore-messages"),
    *("--no-ignore-dot", "--no-ignore-global", "--no-ignore-exclude", "--no-ignore-parent"),
)
#: Lines may be of any length: they are left out, and read where they are.
_PLACES = ("--line-number", "--column", "--no-heading", "--max-columns", "1", "--text")
#: A name may hold line ends; `--crlf` changes those of the output, in some versions.
_COUNT = re.compile(r"([^\0]+)\0(\d+)\r?\n")
#: A match of nothing at the end of a file without a last line end has no column.
_PLACE = re.compile(rb"([^\0]+)\0(\d+):(?:(\d+):)?[^\n]*\n")
_UNREADABLE = re.compile(r"^(?:rg: )?(.+): .* \(os error \d+\)$", re.MULTILINE)
_SLOW = re.compile(r"^(?:rg: )?(.+): PCRE2: error matching: ", re.MULTILINE)
_REFUSED = re.compile(r"^error: (.+)$", re.MULTILINE)
_REFUSED_BY_PCRE2 = re.compile(
    r"^PCRE2: error compiling pattern at offset \d+: (.+)$", re.MULTILINE
)
_ENDED_BY_SIGNAL = 128  # so a sandbox says it
_BATCH_CHARS = 100_000  # of paths on one command line
_NAME_ENDING = re.compile(r"[\w.-]+", re.ASCII)

Places = list[tuple[int, int]]  # lines from 1, and bytes in them from 0


class Counts(Struct):
    """The matching lines of each file. `skipped` could not be read, in `slow` the pattern was given up."""

    files: dict[str, int] = field(default_factory=dict[str, int])
    skipped: list[str] = field(default_factory=list[str])
    slow: list[str] = field(default_factory=list[str])
    was_cut: bool = False


def program(environ: Mapping[str, str]) -> str:
    """Return the path of `rg`: the one that was installed with ybs, else one of the system or of PATH.

    Where there is none it is empty. In PATH, one that lies in a project does not count.
    """
    for place in _beside_ybs():
        if os.access(place, os.X_OK):
            return place
    return str(trusted_program("rg", environ=environ) or "")


def _beside_ybs() -> Iterator[str]:
    yield f"{os.path.dirname(sys.executable)}/rg"  # noqa: PTH120 - links are not followed, a venv's Python is one
    import sysconfig  # few installations need it

    for scheme in (sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user")):
        yield f"{sysconfig.get_path('scripts', scheme)}/rg"
    yield str(Path(__file__).parents[3] / "bin/rg")  # pip install --target


class Search:
    """One pattern, looked for in one folder. What `rg` sees is `shown`, which is that folder or one file in it.

    Paths are relative to the folder. Methods raise ToolError, in words where `rg` does not take the pattern.
    """

    def __init__(
        self,
        roots: Roots,
        start: Path,
        deadline: Deadline,
        options: Sequence[str],
        *,
        shown: Path | None = None,
    ) -> None:
        """`options` have the pattern."""
        self._roots, self._start, self.deadline = roots, start, deadline
        self._shown, self._options = str(shown or start), options
        self._program = program(roots.host.environ)
        if not self._program:
            raise ToolError(
                "rg, which does the searching, is missing; use run_shell with grep. "
                "The person can install ybs again, or ripgrep."
            )

    def below(
        self, rules_in: str | None = "", endings: Sequence[str] | None = None
    ) -> Counts | None:
        """Count the matching lines of every file, of binary ones too, or of those whose names have one of these endings.

        `rules_in` is a folder above, with a slash at its end, whose `.gitignore` holds here; it is None where
        ignored files count as well. Return None where `rg` breaks off: it waits at a pipe, or a line is too long.
        """
        # Of itself it says nothing of a file that has a NUL byte.
        options = ["--count", "--binary", *_WALK, *_kinds(endings)]
        if not (self._start / ".git").exists():  # with it, a repository within is one of its own
            options.append("--no-require-git")
        folder, here = str(self._start), "./"
        if rules_in is None:
            options.append("--no-ignore")
        elif rules_in:
            folder = rules_in
            here = f"./{str(self._start)[len(folder) :]}/"
            options += ["--ignore-file", f"{folder}.gitignore"]
        counts = Counts()
        is_done = self._count(counts, self._output(options, [here], folder), here)
        return counts if is_done else None

    def within(self, paths: Sequence[str], counts: Counts | None = None) -> Counts | None:
        """Count the matching lines of these files, beside those of `counts`. Return None where `rg` breaks off."""
        counts = Counts() if counts is None else counts
        for batch in _batches(paths):
            output = self._output(["--count"], batch)
            if not self._count(counts, output, "./"):
                return None
        return counts

    def places(self, paths: Sequence[str], most: int) -> dict[str, Places]:
        """Return the lines that match in each of the files, at most so many in one, each with the byte where."""
        found: dict[str, Places] = {}
        for batch in _batches(paths):
            output = self._output([*_PLACES, "--max-count", str(most)], batch)
            for name, line, column in _PLACE.findall(output.text):
                place = (int(line), int(column or 1) - 1)
                found.setdefault(os.fsdecode(name)[2:], []).append(place)
        return found

    def _output(
        self, options: Sequence[str], paths: Sequence[str], folder: str = ""
    ) -> ChildOutput:
        """Run it so that it sees what is searched and the rules above it, and nothing else.

        It opens by path, and a command that still runs can put a link in the place of a folder at any moment.
        """
        if not folder:
            folder, paths = str(self._start), [f"./{path}" for path in paths]
        words = [self._program, *_ALWAYS, *options, *self._options, "--", *paths]
        shown = (self._shown, *filter(os.path.isfile, [f"{folder}.gitignore"]))
        hidden = tuple(self._roots.blocked_in(str(self._start)))
        view = SandboxView(folder=folder, git_folders=(), shown=shown, hidden=hidden)
        try:
            launch = launch_reader(words, {}, view)
            return output_of(words, folder=folder, deadline=self.deadline, launch=launch)
        except (OSError, SubprocessError) as error:
            raise ToolError(f"The search could not be started: {error}") from error

    def _count(self, counts: Counts, output: ChildOutput, here: str) -> bool:
        """Add what a run counted; return whether it came to its end, or to the deadline."""
        said = os.fsdecode(output.errors)
        skipped, slow = _UNREADABLE.findall(said), _SLOW.findall(said)
        was_ended = not 0 <= output.code < _ENDED_BY_SIGNAL
        if was_ended and not self.deadline.is_over:
            return False
        is_known = output.code in (0, 1) and not said.startswith(SAID_BY_BUBBLEWRAP)
        if not (is_known or was_ended or skipped or slow):
            raise ToolError(_refusal(said))
        found = _COUNT.findall(os.fsdecode(output.text))
        counts.files |= {path[len(here) :]: int(count) for path, count in found}
        counts.skipped += [path[len(here) :] for path in skipped]
        counts.slow += [path[len(here) :] for path in slow]
        counts.was_cut |= was_ended
        return True


def _refusal(said: str) -> str:
    """Return the model's error for what `rg` said: mostly that a pattern is wrong."""
    found, by_pcre2 = _REFUSED.search(said), _REFUSED_BY_PCRE2.search(said)
    if found is None:
        return (
            f"The search failed: {shortened(said.strip(), 300)}. Use run_shell with grep instead."
        )
    if by_pcre2 and "not supported" in found[1]:  # but by PCRE2
        found = by_pcre2
    return (
        f"The pattern is not a regular expression: {found[1]}. "
        "Characters such as ( [ { . * + ? stand for themselves behind a backslash."
    )


def _kinds(endings: Sequence[str] | None) -> Iterator[str]:
    if endings and all(_NAME_ENDING.fullmatch(ending) for ending in endings):
        for ending in endings:
            yield from ("--type-add", f"ybs:*{ending}")
        yield from ("--type", "ybs")


def _batches(paths: Sequence[str]) -> Iterator[Sequence[str]]:
    start = size = 0
    for place, path in enumerate(paths):
        size += len(path) + 1
        if size > _BATCH_CHARS:
            yield paths[start : place + 1]
            start, size = place + 1, 0
    if start < len(paths):
        yield paths[start:]


LONGEST_PATTERN = 5_000
_LARGE_BYTES = 50_000_000  # a line of so much fits in the memory that `rg` may have
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY


class SearchResult(Struct):
    """What a search found: how many lines match in how many files, and where the first ones are.

    Files are named by their paths relative to the start. `skipped` ones could not be read, `large` ones have a line too
    long for memory, in `slow` ones the pattern was given up, `binary` ones match and have a NUL byte at their beginning.
    `unseen` says what was not looked at.
    """

    places: dict[str, Places] = field(default_factory=dict[str, Places])
    total: int = 0
    files: int = 0
    was_cut: bool = False
    skipped: list[str] = field(default_factory=list[str])
    large: list[str] = field(default_factory=list[str])
    slow: list[str] = field(default_factory=list[str])
    binary: list[str] = field(default_factory=list[str])
    unseen: str = ""


class Scope(Struct, kw_only=True):
    """Where to look, and for how many lines to return the place."""

    start: Path
    choice: GlobChoice
    most: int
    includes_ignored: bool = False


def options_of(pattern: str, *, ignore_case: bool = False) -> list[str]:
    """Return the options that give `rg` the pattern. Raises ToolError for one that it cannot take."""
    if len(pattern) > LONGEST_PATTERN:
        raise ToolError(
            f"The pattern has {len(pattern):,} characters; {LONGEST_PATTERN:,} are possible"
        )
    if "\n" in pattern:
        raise ToolError("A match lies within one line, so a pattern holds no line end")
    if "\0" in pattern:
        raise ToolError("The pattern holds a NUL, which no text has")
    return ["--ignore-case"] * ignore_case + ["--regexp", pattern]


def find_in_file(
    options: Sequence[str], path: Path, most: int, roots: Roots, deadline: Deadline
) -> SearchResult:
    """Search one file, which may be an ignored one. Raises ToolError."""
    beginning = _beginning(roots, path)
    wide = wide_encoding(beginning)
    if wide.startswith("utf-32"):
        return SearchResult(skipped=[path.name])
    is_text = _is_text(beginning) or bool(wide)
    if wide and not _is_text(beginning):
        options = [*options, "--encoding", wide.replace("utf-16-", "utf-16")]
    search = Search(roots, path.parent, deadline, options, shown=path)
    counts = search.within([path.name])
    if counts is None:
        return SearchResult(large=[path.name])
    return _found(search, counts, [*counts.files], most, lambda _: is_text)


def find(options: Sequence[str], scope: Scope, roots: Roots, deadline: Deadline) -> SearchResult:
    """Search the files of a folder. Raises ToolError."""
    start, large = scope.start, list[str]()
    search = Search(roots, start, deadline, options)
    has_own_rules = scope.includes_ignored or (start / ".git").exists()
    rules = [] if has_own_rules else rules_at(roots.folder, start).folders
    counts = None
    if len(rules) < 2:  # rules of a file that it is given hang on the folder it runs in
        rules_in = None if scope.includes_ignored else "".join(rules)
        counts = search.below(rules_in, scope.choice.endings)
    if counts is None:
        counts, large = _listed(search, scope, roots, deadline)
    named = [scope.choice.of(each) for each in (counts.files, counts.skipped, counts.slow)]
    if roots.holds_blocked(start):
        named = [[p for p in each if not roots.is_blocked(f"{start}/{p}")] for each in named]
    chosen, skipped, slow = named
    chosen = sorted(path for path in chosen if not roots.is_blocked_link(f"{start}/{path}"))
    found = _found(
        search, counts, chosen, scope.most, lambda path: _is_text(_beginning(roots, start / path))
    )
    found.skipped = sorted(path for path in skipped if not os.path.isdir(start / path))  # noqa: PTH112 - a path may be too long
    found.slow, found.large = sorted(slow), large
    return found


def _listed(
    search: Search, scope: Scope, roots: Roots, deadline: Deadline
) -> tuple[Counts, list[str]]:
    """Search the files that our own walk finds, and return those with a line too long for memory as well."""
    ignored = scope.includes_ignored
    walk = Walk(roots, scope.start, deadline=deadline, includes_ignored=ignored, has_links=False)
    paths, large = sorted(scope.choice.of(walk.paths())), list[str]()
    counts = search.within(paths)
    if counts is None:  # each large file for itself, so that one costs the others nothing
        large = [path for path in paths if _size(scope.start / path) > _LARGE_BYTES]
        others = frozenset(large)
        counts = search.within([path for path in paths if path not in others])
        if counts is None:
            raise ToolError(
                "The search broke off; narrow `path` or file_pattern, or use run_shell."
            )
        large = [path for path in large if search.within([path], counts) is None]
    counts.was_cut |= walk.was_cut
    return counts, large


def _found(
    search: Search,
    counts: Counts,
    paths: Sequence[str],
    most: int,
    is_text: Callable[[str], bool],
) -> SearchResult:
    """Return where the first matches are. Files are looked into until there are enough of them."""
    shown, binary, lines = list[str](), list[str](), 0
    for path in paths:
        if lines >= most:
            break
        if is_text(path):
            shown.append(path)
            lines += counts.files[path]
        else:
            binary.append(path)
    places = search.places(shown, most)
    return SearchResult(
        places=_bounded({path: places[path] for path in shown if path in places}, most),
        total=sum(counts.files[path] for path in paths)
        - sum(counts.files[path] for path in binary),
        files=len(paths) - len(binary),
        was_cut=counts.was_cut or search.deadline.is_over,
        skipped=counts.skipped,
        slow=counts.slow,
        binary=binary,
    )


def _beginning(roots: Roots, path: Path) -> bytes:
    try:
        with roots.held(path) as place:
            descriptor = place.open(_READ)
    except (OSError, Refused):
        return b""  # it is gone
    try:
        return os.read(descriptor, PROBE_BYTES)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _is_text(beginning: bytes) -> bool:
    """Return whether `rg` takes a file for text when it finds it by itself."""
    return b"\0" not in beginning or beginning.startswith((b"\xff\xfe", b"\xfe\xff"))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _bounded(places: dict[str, Places], most: int) -> dict[str, Places]:
    bounded: dict[str, Places] = {}
    for path, lines in places.items():
        if lines[:most]:
            bounded[path] = lines[:most]
        most = max(most - len(lines), 0)
    return bounded


LONGEST_SHOWN = 300
_BEFORE_MATCH = 100  # characters shown before a match far out in a line
_SHOWN_OF_WORD = 12  # characters, where a match is in a word that is too long to be shown whole


class LineMatch(Struct):
    """One matching line with the lines around it, in their order; its number counts from 1."""

    file: str
    line: int
    context_before: list[str]
    content: str
    context_after: list[str]


def matches_in(
    descriptor: int, name: str, places: Sequence[tuple[int, int]], context: int
) -> list[LineMatch]:
    """Read the lines at the places (line from 1, byte from 0). Lines that are gone by now are left out.

    The descriptor is closed. Raises OSError.
    """
    wanted = {
        near for line, _ in places for near in range(max(line - context, 1), line + context + 1)
    }
    try:
        lines, encoding = _lines(descriptor, wanted)
    finally:
        os.close(descriptor)

    def shown(numbers: Iterable[int]) -> list[str]:
        return [_shown(lines[number], encoding) for number in numbers if number in lines]

    return [
        LineMatch(
            file=name,
            line=line,
            context_before=shown(range(line - context, line)),
            content=_shown(lines[line], encoding, place),
            context_after=shown(range(line + 1, line + context + 1)),
        )
        for line, place in places
        if line in lines
    ]


def _lines(descriptor: int, wanted: set[int]) -> tuple[dict[int, bytes], str]:
    """Return the wanted lines without their ends, and the encoding of the file."""
    lines: dict[int, bytes] = {}
    first, last, encoding = 1, max(wanted, default=0), ""
    for data in blocks(descriptor):
        encoding = encoding or _encoding(data)
        lines.update(_numbered(data, first, wanted))
        first += data.count(b"\n")
        if first > last:
            break
    return lines, encoding


def _numbered(data: bytes, first: int, wanted: set[int]) -> Iterator[tuple[int, bytes]]:
    here = [number - first for number in wanted if number >= first]
    if not here:
        return
    ends = data.split(b"\n", max(here) + 1)
    count = len(ends) - (not ends[-1])  # nothing follows the last line end
    for place in here:
        if place < count:
            yield place + first, ends[place].removesuffix(b"\r")


def _encoding(data: bytes) -> str:
    return "utf-8" if data.isascii() else TextFile(data).encoding


def _shown(line: bytes, encoding: str, place: int = 0) -> str:
    """Return the excerpt of a line: all of it, or the part around the byte `place`.

    Of a long word around that, only a few characters: it may be a token, which could not be masked in parts.
    """
    start, end = max(place - LONGEST_WORD, 0), place + LONGEST_WORD
    before = line[start:place].decode(encoding, "replace")
    text = before + line[place:end].decode(encoding, "replace")
    column = len(before)
    first = column - _BEFORE_MATCH if column > LONGEST_SHOWN - _BEFORE_MATCH else 0
    last = first + LONGEST_SHOWN
    is_begun, is_ended = bool(start or first), end < len(line) or last < len(text)
    begin = len(text) - len(from_word(text, first)) if is_begun else 0
    stop = len(up_to_word(text, last)) if is_ended else len(text)
    of_word = text[column : column + _SHOWN_OF_WORD]
    part = f"[...]{of_word[: begin - column] if column < begin else of_word}[...]"
    pieces = [
        part if column < begin else "[...]" if is_begun else "",
        text[begin:stop],
        part if is_ended and stop <= max(column, begin) else "[...]" if is_ended else "",
    ]
    return " ".join(filter(None, pieces))


BLOCK_BYTES = 16_000_000
MOST_OF_LINE = 16_000_000  # what a line has beyond that is left out
_MARK = b"\xef\xbb\xbf"


def blocks(descriptor: int) -> Iterator[bytes]:
    """Yield blocks of whole lines; of a line that does not fit in memory only the beginning. Raises OSError."""
    kept: list[bytes] = []
    size = 0
    was_cut = False
    for piece in _chunks(descriptor):
        end = piece.rfind(b"\n") + 1
        if not end:
            if size < MOST_OF_LINE:
                kept.append(piece)
                size += len(piece)
            else:
                was_cut = True
            continue
        if was_cut:  # the end of the cut line is not a line of its own
            start = piece.find(b"\n")
            kept, piece, end = [b"".join(kept)], piece[start:], end - start
        yield b"".join((*kept, piece[:end]))
        kept, size, was_cut = [piece[end:]], len(piece) - end, False
    if size:
        yield b"".join(kept)


def _chunks(descriptor: int) -> Iterator[bytes]:
    piece = os.read(descriptor, BLOCK_BYTES)
    encoding = wide_encoding(piece)
    decoder = codecs.getincrementaldecoder(encoding)("replace") if encoding else None
    mark = _MARK
    while piece:
        data = decoder.decode(piece).encode("utf-8", "replace") if decoder else piece
        yield data.removeprefix(mark)
        mark = b""
        piece = os.read(descriptor, BLOCK_BYTES)
