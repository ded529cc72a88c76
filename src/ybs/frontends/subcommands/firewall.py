"""`ybs firewall scan`: secrets in files, for people and for checks of a project."""

import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ybs.core.errors import ToolError
from ybs.frontends.headless.output import tell, write, write_json
from ybs.frontends.host import this_host
from ybs.session.settings import load_settings

if TYPE_CHECKING:
    from ybs.security.firewall.masking import Firewall
    from ybs.session.options import Options

#: A file is read in parts of this size, which overlap, in bytes.
PART_BYTES = 4_000_000
OVERLAP_BYTES = 65_536
_PEEK = 8_192


class _Found(Struct, frozen=True):
    """A secret in a file. `line` is that of its first character; `start` and `end` count characters from there on.

    They count from the beginning of that line, from 0; a secret of several lines ends beyond the line's own end.
    """

    file: str
    line: int
    kind: str
    start: int
    end: int


class _Unreadable(Exception):
    """A name that leads to nothing that can be read."""


def scan(arguments: Namespace, options: "Options") -> int:
    """Print the secrets in `arguments.files` (`-`: standard input; none: this folder).

    Returns 1 where there are any, 0 where there are none, 2 where something cannot be read.
    """
    from ybs.security.firewall.masking import Firewall  # not needed by any other command

    firewall = Firewall(load_settings(options).config.firewall)
    found: list[_Found] = []
    is_bad = False
    for name in arguments.files or ["."]:
        try:
            for shown, parts in _texts(name):
                found += in_parts(firewall, shown, parts)
        except (_Unreadable, OSError, ToolError) as error:
            tell(f"ybs: {name}: {error}")
            is_bad = True
    _print(found, is_json=arguments.format == "json")
    return 2 if is_bad else int(bool(found))


def _print(found: list[_Found], *, is_json: bool) -> None:
    if is_json:
        write_json(found)
        return
    for one in found:
        write(f"{one.file}:{one.line}:{one.start + 1}: {one.kind}")
    if not found:
        write("No secrets were found.")


def _texts(name: str) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Yield the files behind a name, each with its parts. Raises Unreadable."""
    if name == "-":
        yield "-", _parts_of(sys.stdin.buffer)
        return
    path = Path(name)
    if path.is_dir():
        for inner in _walk(path):
            yield str(inner), _parts(inner, is_named=False)
    elif path.is_file():
        yield name, _parts(path, is_named=True)
    else:
        raise _Unreadable(
            "there is no such file" if not path.exists() else "it is not a regular file"
        )


def _walk(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder, without `.git` and what `.gitignore` leaves out."""
    from ybs.security.paths.roots import Roots  # as a session sees a folder
    from ybs.tools.searching.walk import Walk

    roots = Roots(this_host(), folder.resolve(), (str(folder.resolve()),), ())
    for entry in Walk(roots, folder.resolve(), has_links=False).files():
        yield folder / entry.path


def _parts(path: Path, *, is_named: bool) -> Iterator[bytes]:
    """Yield a file in parts; of a folder's files those that are not text, or cannot be read, are left out."""
    try:
        with path.open("rb") as file:
            yield from _parts_of(file)
    except OSError:
        if is_named:
            raise
        tell(f"ybs: {path}: the file cannot be read")


def _parts_of(file: Any) -> Iterator[bytes]:
    part = file.read(PART_BYTES)
    if is_binary(part):
        return
    while part:
        yield part
        part = file.read(PART_BYTES)


def is_binary(data: bytes) -> bool:
    """Return whether the bytes are not text. UTF-16 is text: every other byte of it is zero."""
    peek = data[:_PEEK]
    zeros = peek.count(0)
    return bool(zeros) and not 0.2 < zeros / len(peek) < 0.6


def in_parts(firewall: "Firewall", shown: str, parts: Iterator[bytes]) -> Iterator[_Found]:
    """Yield the secrets of one text that comes in parts; what stands at the end of one is read with the next."""
    data = next(parts, b"")
    line, shift = 1, 0
    while data:
        more = next(parts, b"")
        least = max(0, len(data) - OVERLAP_BYTES)
        cut = (data.rfind(b"\n", 0, least) + 1 or least) if more else len(data)
        for found in in_text(firewall, shown, data.decode("utf-8", "surrogateescape"), cut):
            column = 0 if found.line > 1 else shift
            yield _Found(
                shown, found.line + line - 1, found.kind, found.start + column, found.end + column
            )
        done = data[:cut]
        line += done.count(b"\n")
        last = done[done.rfind(b"\n") + 1 :].decode("utf-8", "surrogateescape")
        shift = len(last) + (0 if b"\n" in done else shift)
        data = data[cut:] + more if more else b""


def in_text(firewall: "Firewall", shown: str, text: str, cut: int) -> Iterator[_Found]:
    """Yield the secrets that begin before byte `cut`."""
    line, at = 1, 0
    for finding in firewall.find(text):
        if len(text[: finding.start].encode("utf-8", "surrogateescape")) >= cut:
            return
        line += text.count("\n", at, finding.start)
        at = finding.start
        begin = text.rfind("\n", 0, finding.start) + 1
        yield _Found(shown, line, finding.kind, finding.start - begin, finding.end - begin)
