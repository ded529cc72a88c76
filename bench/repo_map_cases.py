"""Cases for the repo map: commits of local clones, what they touched, and which definitions they changed."""

import json
import random
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from ybs.repo_map.languages import language_of
from ybs.repo_map.tags import Tag, tags_of

#: The weights of the rank were fitted on these repositories and on no others; what is reported is the rest.
TUNED_ON = {
    *("ansible", "celery", "flask", "scrapy", "axios", "vite", "hugo", "gitleaks"),
    *("bat", "clap", "gson", "redis", "spdlog", "AutoMapper", "jekyll", "framework"),
}
#: Of so many commits, since this day, cases are drawn.
MOST_COMMITS, SINCE = 6000, "2017-01-01"
MOST_TOUCHED = 4
#: What a change is said to be in: the innermost of these around it.
KINDS = {
    *("class", "struct", "enum", "interface", "trait", "impl", "type"),
    *("function", "method", "macro"),
}
_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+", re.MULTILINE)
_OLD_NAME = re.compile(r'^--- "?a/(.*?)"?\t?$', re.MULTILINE)


class Case(Struct, frozen=True):
    """A commit: the map is made at its parent, and should show what it touched."""

    commit: str
    parent: str
    message: str
    touched: list[str]
    #: For each touched file the definitions that the commit changed.
    changed: dict[str, list[str]]


class Clone:
    """A clone of a clone, so that checking things out changes nobody's files."""

    def __init__(self, source: Path, into: Path) -> None:
        self.name, self.folder = source.name, into / source.name
        words = ["git", "clone", "-q", "--shared", "--no-checkout", str(source), str(self.folder)]
        subprocess.run(words, check=True)

    def git(self, *words: str) -> str:
        """Return what git printed; nothing for what it cannot do."""
        done = subprocess.run(["git", *words], cwd=self.folder, capture_output=True, check=False)
        return done.stdout.decode("utf-8", "surrogateescape")

    def check_out(self, commit: str) -> list[str]:
        """Put the files of a commit into the folder and return their paths."""
        self.git("-c", "advice.detachedHead=false", "checkout", "-q", "-f", commit)
        return [path for path in self.git("ls-files", "-z").split("\0") if path]

    def cases(self, most: int, seed: int) -> list[Case]:
        """Draw commits at random, in the order of their days."""
        drawn = random.Random(f"{seed} {self.name}")
        found = list(self._fitting())
        chosen = sorted(drawn.sample(range(len(found)), min(most, len(found))), reverse=True)
        return [self._case(*found[number]) for number in chosen]

    def _fitting(self) -> Iterator[tuple[str, str, list[str]]]:
        limits = ("--no-merges", "-n", str(MOST_COMMITS), f"--since={SINCE}")
        form = ("--no-renames", "--name-status", "-z", "--format=%x01%H %P%x02")
        for block in self.git("log", *limits, *form).split("\1")[1:]:
            head, _, rest = block.partition("\2")
            fields = [field for each in rest.split("\0") if (field := each.strip("\n"))]
            rows = zip(fields[::2], fields[1::2], strict=False)
            touched = [path for sign, path in rows if sign in "MDT" and _is_source(path)]
            commit, *parents = head.split()
            if len(parents) == 1 and 1 <= len(touched) <= MOST_TOUCHED:
                yield commit, parents[0], touched

    def _case(self, commit: str, parent: str, touched: list[str]) -> Case:
        message = self.git("log", "-1", "--format=%B", commit).strip()
        options = ("-U0", "--no-renames", "--no-color", "--no-ext-diff")
        changes = self.git("diff", *options, parent, commit, "--", *touched)
        changed: dict[str, list[str]] = {}
        for part in changes.split("diff --git ")[1:]:
            if found := _OLD_NAME.search(part):
                path = found.group(1)
                data = self.git("cat-file", "blob", f"{parent}:{path}")
                names = _changed(part, data.encode("utf-8", "surrogateescape"), path)
                if names:
                    changed[path] = names
        return Case(commit, parent, message, touched, changed)


def _is_source(path: str) -> bool:
    return bool(language_of(path)) and ".min." not in path and "node_modules/" not in path


def _changed(part: str, data: bytes, path: str) -> list[str]:
    """Return the names of the definitions around the changed lines; new lines belong to what is around both sides."""
    tags = tags_of(data, language_of(path, data[:4000])).definitions
    found: dict[str, None] = {}
    for start, length in _HUNK.findall(part):
        first, lines = int(start), int(length or 1)
        spans = [(line, line) for line in range(first, first + lines)] or [(first, first + 1)]
        for span in spans:
            if around := [tag for tag in tags if _is_around(tag, *span)]:
                found[min(around, key=lambda tag: tag.end_line - tag.line).name] = None
    return list(found)


def _is_around(tag: Tag, first: int, last: int) -> bool:
    return tag.kind in KINDS and tag.line <= first and last <= tag.end_line


def print_case(repository: str, case: Case, **measures: float) -> None:
    """Print a case with its measures as a line of JSON."""
    row = {"repository": repository, "commit": case.commit[:12], "touched": case.touched}
    print(json.dumps({**row, **measures, "message": case.message.split("\n")[0]}), flush=True)
