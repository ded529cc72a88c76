"""`rg`, which does the searching: where it is, and runs of it that count lines and say where the first ones are.

https://github.com/BurntSushi/ripgrep/blob/master/GUIDE.md
"""

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from subprocess import SubprocessError

from msgspec import Struct, field

from ybs.core.errors import ToolError
from ybs.security.launcher import trusted_program
from ybs.security.paths.roots import Roots
from ybs.security.sandbox.confined import SAID_BY_BUBBLEWRAP, launch_reader
from ybs.security.sandbox.launch import SandboxView
from ybs.tools.searching.child import ChildOutput, output_of
from ybs.tools.searching.walk import Deadline

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


def program(environ: Mapping[str, str], folders: Sequence[Path]) -> str:
    """Return the path of `rg`: the one that was installed with ybs, else one of the system or of PATH.

    Where there is none it is empty. In PATH, one that lies in these folders, the project's, does not count.
    """
    for place in _beside_ybs():
        if os.access(place, os.X_OK):
            return place
    return str(trusted_program("rg", away_from=folders, environ=environ) or "")


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
        self._program = program(roots.host.environ, roots.folders)
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
        return f"The search failed: {said.strip()[:300]}. Use run_shell with grep instead."
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
