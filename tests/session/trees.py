"""A folder as data, and the things that tools and commands do to one: what the tests of undo compare and play."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from hypothesis import strategies as st
from msgspec import Struct

NAMES = ("a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "d\udcff\n/x", "k", ".ybs.json")
IGNORED = "ignored.log"


def tree(folder: Path) -> dict[str, tuple[str, int, bytes]]:
    """Return what is in a folder: kind, mode and content of each path."""
    return dict(_entries(str(folder), ""))


def _entries(top: str, prefix: str) -> Iterator[tuple[str, tuple[str, int, bytes]]]:
    with os.scandir(f"{top}/{prefix}") as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            path = prefix + entry.name
            mode = entry.stat(follow_symlinks=False).st_mode & 0o7777
            if entry.is_symlink():
                yield path, ("link", 0, os.fsencode(Path(entry.path).readlink()))
            elif entry.is_dir():
                yield path, ("folder", mode, b"")
                yield from _entries(top, f"{path}/")
            elif entry.is_file():
                yield path, ("file", mode, Path(entry.path).read_bytes())
            else:
                yield path, ("other", mode, b"")


class Act(Struct, frozen=True):
    """One thing done to the project: `path` and `other` are relative. `is_tool`: by a tool that names the path."""

    kind: str
    path: str
    other: str = ""
    content: bytes = b""
    mode: int = 0o644
    is_tool: bool = False

    def do(self, project: Path) -> None:
        """Do it as far as it can be done."""
        path, other = project / self.path, project / self.other
        with suppress(OSError, shutil.Error):
            _DOING[self.kind](self, path, other)


def _write(act: Act, path: Path, _: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if act.is_tool and not path.is_dir():  # tools put a new file in the place of the old one
        path = Path(os.path.realpath(path))
        path.unlink(missing_ok=True)
    path.write_bytes(act.content)


def _chmod(act: Act, path: Path, _: Path) -> None:
    if not path.is_symlink():
        path.chmod(
            act.mode | 0o500 if path.is_dir() else act.mode
        )  # a closed one cannot be compared


def _hard_link(act: Act, path: Path, other: Path) -> None:
    if not Path(act.other).is_absolute():  # a later write would go into a file of this machine
        path.hardlink_to(other)


_DOING: dict[str, Callable[[Act, Path, Path], object]] = {
    "write": _write,
    "delete": lambda _, path, __: path.unlink(),
    "rename": lambda _, path, other: path.rename(other),
    "chmod": _chmod,
    "link": lambda act, path, _: path.symlink_to(act.other),
    "hard link": _hard_link,
    "folder": lambda _, path, __: path.mkdir(parents=True),
    "rmtree": lambda _, path, __: shutil.rmtree(path),
}
_paths = st.sampled_from(NAMES)
_contents = st.sampled_from((b"", b"one\n", b"two\n", b"\0\xff", b"x" * 900))
_modes = st.sampled_from((0o600, 0o644, 0o755, 0o444, 0o700, 0o555))

tool_acts = st.builds(
    Act,
    st.sampled_from(("write", "delete")),
    _paths,
    content=_contents,
    is_tool=st.just(value=True),
)
shell_acts = st.builds(
    Act,
    st.sampled_from(sorted(_DOING)),
    _paths,
    st.one_of(_paths, st.just("/etc/hostname"), st.just("nowhere")),
    _contents,
    _modes,
)
turns = st.lists(st.one_of(tool_acts, shell_acts, shell_acts), min_size=1, max_size=8)
