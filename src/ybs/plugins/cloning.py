"""Plugins behind a git address: fetched without a work tree, so that nothing of the repository is run or filtered."""

import os
import signal
import tarfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from subprocess import PIPE
from tempfile import TemporaryDirectory
from threading import Timer
from typing import TYPE_CHECKING, Final

from ybs.config.document import visible
from ybs.git.hardening import cloning, cloning_environment
from ybs.plugins.content import MOST_BYTES, MOST_FILES, BadPlugin, PluginFiles
from ybs.security.launcher import persons_program, start
from ybs.security.sandbox.launch import Launch

if TYPE_CHECKING:
    from subprocess import Popen

#: The addresses that are understood.
STARTS: Final = ("https://", "file://")
SECONDS = 300.0
_MOST_TOLD = 300
#: No file that git writes may be larger, in blocks of 512 bytes: 512 MB.
_BOUNDED = ("/bin/sh", "-c", 'ulimit -f 1000000; exec "$@"', "sh")
#: No checkout is made: no hook, filter, submodule or link comes into play.
_FETCHING = ("clone", "--quiet", "--bare", "--depth=1", "--no-tags", "--template=")


def clone(address: str, environ: Mapping[str, str]) -> PluginFiles:
    """Fetch the newest commit of a repository and return its files. Raises BadPlugin and OSError."""
    git = persons_program("git", environ=environ)
    if git is None:
        raise BadPlugin("git, which fetches it, is not on your PATH")
    with TemporaryDirectory(prefix="ybs-plugin-") as folder:
        given = cloning_environment(environ, folder)
        bare = f"{folder}/repository"
        fetching = cloning(git, *_FETCHING, "--no-recurse-submodules", "--", address, bare)
        _run(fetching, given, folder)
        listing = cloning(git, "--git-dir", bare, "archive", "HEAD")
        return of_tar(_run(listing, given, folder)).settled()


def _run(command: Sequence[str], environ: Mapping[str, str], folder: str) -> bytes:
    """Run git to its end, or until it has written more than may be read."""
    with (
        Path(folder, "said").open("w+b") as said,
        start(
            Launch([*_BOUNDED, *command], environ), folder=folder, stdout=PIPE, stderr=said
        ) as process,
    ):
        assert process.stdout is not None  # noqa: S101 - a pipe
        data = _read(process)
        if process.returncode:
            said.seek(0)
            words = said.read(10_000).decode(errors="replace").replace("\0", "").split()
            text = visible(" ".join(words)[-_MOST_TOLD:])
            raise BadPlugin(f"git could not fetch it: {text or 'it was stopped'}")
    return data


def _read(process: "Popen[bytes]") -> bytes:
    """Return what a process writes. Raises BadPlugin where that is too much, or takes too long."""
    assert process.stdout is not None  # noqa: S101 - a pipe

    def end() -> None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    timer = Timer(SECONDS, end)
    timer.daemon = True
    timer.start()
    try:
        data = process.stdout.read(2 * MOST_BYTES + 1)
        if len(data) > 2 * MOST_BYTES:
            end()
            raise BadPlugin(f"it is larger than {MOST_BYTES // 1_000_000} MB")
        process.wait()
    finally:
        timer.cancel()
    return data


def of_tar(data: bytes) -> PluginFiles:
    """Read a tar file. Raises BadPlugin and tarfile.TarError."""
    content = PluginFiles()
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
            content.add(member.name, packed.read(), is_executable=bool(member.mode & 0o111))
    return content
