"""Plugins in archives: read into memory within bounds, whatever the archive says of itself."""

import bz2
import gzip
import lzma
import stat
import tarfile
import zipfile
import zlib
from io import BytesIO
from pathlib import Path
from typing import Final

from ybs.plugins.content import MOST_BYTES, MOST_FILES, BadPlugin, Content

_ZIP: Final = b"PK"
#: What an archive may have beside the files themselves: headers, and padding.
_MOST_UNPACKED = 2 * MOST_BYTES
_PACKED: Final = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}
_ENCRYPTED = 1
#: What the libraries raise for archives that are none, or broken ones.
_UNREADABLE = (
    *(zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError),
    *(NotImplementedError, RuntimeError, ValueError),
)


def read_archive(file: Path) -> Content:
    """Read a zip or tar archive. Raises BadPlugin and OSError."""
    with file.open("rb") as opened:
        data = opened.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise BadPlugin(f"it is larger than {MOST_BYTES // 1_000_000} MB")
    try:
        content = _of_zip(data) if data.startswith(_ZIP) else of_tar(_unpacked(data))
    except BadPlugin:
        raise
    except _UNREADABLE as error:
        raise BadPlugin(f"it is not an archive that can be read ({error})") from error
    return without_top(content.settled())


def _unpacked(data: bytes) -> bytes:
    """Return the bytes of a tar file that may be packed; never more of them than may be read."""
    opener = next((each for start, each in _PACKED.items() if data.startswith(start)), None)
    if opener is None:
        return data
    with opener(BytesIO(data)) as packed:
        unpacked = packed.read(_MOST_UNPACKED + 1)
    if len(unpacked) > _MOST_UNPACKED:
        raise BadPlugin(f"it unpacks to more than {_MOST_UNPACKED // 1_000_000} MB")
    return unpacked


def _of_zip(data: bytes) -> Content:
    content = Content()
    with zipfile.ZipFile(BytesIO(data)) as archive:
        members = archive.infolist()
        if len(members) > 2 * MOST_FILES:
            raise BadPlugin(f"it has more than {MOST_FILES:,} files")
        for member in members:
            if member.is_dir():
                continue
            if member.flag_bits & _ENCRYPTED:
                raise BadPlugin("it is encrypted")
            with archive.open(member) as packed:
                inner = packed.read(content.room + 1)
            mode = member.external_attr >> 16
            _add(content, member.filename, inner, mode)
    return content


def of_tar(data: bytes) -> Content:
    """Read a tar file. Raises BadPlugin and tarfile.TarError."""
    content = Content()
    with tarfile.open(fileobj=BytesIO(data), mode="r:") as archive:
        for count, member in enumerate(archive):
            if count > 4 * MOST_FILES:
                raise BadPlugin(f"it has more than {MOST_FILES:,} files")
            if member.isdir():
                continue
            if member.issym():
                content.add_link(member.name, member.linkname)
                continue
            packed = archive.extractfile(member) if member.isreg() else None
            if packed is None or member.size > content.room:
                why = "is too large" if packed else "is neither a file nor a folder"
                raise BadPlugin(f"{member.name[:200]!r} {why}")
            _add(content, member.name, packed.read(), member.mode)
    return content


def _add(content: Content, path: str, data: bytes, mode: int) -> None:
    if stat.S_ISLNK(mode):
        content.add_link(path, data[:4_096].decode(errors="replace"))
    else:
        content.add(path, data, is_executable=bool(mode & 0o111))


def without_top(content: Content) -> Content:
    """Return what lies in the one folder at the top, where an archive has such a one and nothing else."""
    tops = {path.partition("/")[0] for path in content.files}
    top = next(iter(tops), "")
    is_wrapped = len(tops) == 1 and top not in content.files and not top.startswith(".")
    return content.below(top) if is_wrapped and top not in _PARTS else content


#: Folders of a plugin: one that has only one of them is not wrapped.
_PARTS = ("commands", "skills", "agents", "hooks", "tools")
