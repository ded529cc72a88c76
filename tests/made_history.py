"""Repositories with commits made up for a test: all of them are written by one run of `git fast-import`."""

import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from hostile_git import GIT


class MadeRepository:
    """A repository without a work tree's files; `commit` adds to a branch, and HEAD is at main."""

    def __init__(self, top: Path) -> None:
        self.top, self._made = top, 0
        self._branches: set[str] = set()
        top.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main", "--template=")

    def git(self, *words: str, stdin: bytes = b"") -> str:
        """Run git as anybody would."""
        who = ("-c", "user.name=x", "-c", "user.email=x@y")
        done = subprocess.run(
            [GIT, *who, *words], cwd=self.top, input=stdin, check=True, capture_output=True
        )
        return done.stdout.decode().strip()

    def commit(
        self,
        *commits: Iterable[str | bytes],
        branch: str = "main",
        titles: Sequence[bytes] = (),
        start: str = "",
        merges: str = "",
    ) -> None:
        """Make commits, the oldest first, each of the files that it changes; `merges` goes into the first one."""
        lines: list[bytes] = []
        start = branch if branch in self._branches else start
        self._branches.add(branch)
        for number, paths in enumerate(commits):
            title = titles[number] if titles else b"a title"
            self._made += 1
            lines += [b"commit refs/heads/%s" % branch.encode()]
            lines += [b"committer x <x@y> %d +0000" % (1_000_000_000 + self._made)]
            lines += [b"data %d" % len(title), title]
            lines += [f"from refs/heads/{start}^0".encode()] if start and not number else []
            lines += [f"merge refs/heads/{merges}^0".encode()] if merges and not number else []
            for path in paths:
                name = path.encode() if isinstance(path, str) else path
                # In quotes as in C, every byte by its number.
                quoted = b"".join(b"\\%03o" % byte for byte in name)
                lines += [b'M 100644 inline "%s"' % quoted, b"data %d" % len(str(self._made))]
                lines += [str(self._made).encode()]
        self.git("fast-import", "--quiet", stdin=b"\n".join(lines) + b"\n")
