"""`ybs map`: the files and names of a project, those that a query is about first. It needs no model."""

import os
import signal
import sys
from argparse import Namespace
from contextlib import contextmanager, suppress
from math import ceil, inf
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from ybs.core.decoding import decodable, from_json
from ybs.core.wording import plural
from ybs.frontends.headless.output import read_piped, tell, warn, write, write_json
from ybs.frontends.host import this_host
from ybs.repo_map.protocol import DEFAULT_TOKENS, MapAnswer, MapQuery, MapReady, MapRequest, plain
from ybs.security.gate import put_json
from ybs.session.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Generator
    from queue import SimpleQueue

    from ybs.repo_map.repo_map import RepoMap
    from ybs.security.paths.roots import Roots
    from ybs.session.options import Options

#: What the process of a session may have: memory, and seconds of the processor.
MOST_BYTES, MOST_SECONDS = 1_000_000_000, 600
#: The memory of a command: a text made to be hard on a parser ends it, and not the machine.
MOST_BYTES_BY_HAND = 2_000_000_000
#: The files are looked at once more where the question comes later than this.
FRESH_SECONDS = 20.0
#: The folder of the indexes in that of ybs's caches.
CACHES = "maps"
#: Looking for files ends after this time: the map is of those that were found.
WALK_SECONDS = 20.0


def map_project(arguments: Namespace, options: "Options") -> int:
    """Print the map of a folder, or make one for the session that started this process."""
    if arguments.wait:
        return serve()
    folder = Path(arguments.folder) if arguments.folder else options.folder
    if not folder.is_dir():
        tell(f"ybs: {folder}: there is no such folder")
        return 2
    loaded = load_settings(replace(options, folder=folder))
    warn(loaded.warnings)
    settings = loaded.config
    job = MapRequest.of(
        folder.resolve(),
        blocked=(*settings.safety.sandbox_blocked_paths, settings.session.storage_path),
        is_kept=not (settings.incognito.enabled or arguments.no_cache),
    )
    query = read_piped() if arguments.query == "-" else arguments.query
    tokens = arguments.tokens or settings.context.repo_map_tokens or DEFAULT_TOKENS
    made = repo_map_of(job)
    try:
        with _bounded_memory(MOST_BYTES_BY_HAND):
            made.prepare()
            answer = made.answer(query, tokens)
    finally:
        made.close()
    if arguments.format == "json":
        write_json({"text": answer.text, "files": answer.files, "tokens": answer.tokens})
    elif answer.text:
        write(answer.text)
    elif made.is_empty:
        tell("ybs: there are no files to map")
    else:
        tell(f"ybs: no file fits into {plural(tokens, 'token')}; allow more with --tokens")
    return 0


def repo_map_of(job: MapRequest) -> "RepoMap":
    """Make what maps the folder of a job."""
    from ybs.git.client import Git
    from ybs.providers.tokens import estimate
    from ybs.repo_map.repo_map import RepoMap
    from ybs.repo_map.store import cache_file
    from ybs.security.paths.repository import is_in_repository
    from ybs.security.paths.roots import Roots

    host, folder = this_host(), Path(os.fsdecode(job.folder))
    roots = Roots(host, folder, blocked=[os.fsdecode(path) for path in job.blocked])
    return RepoMap(
        roots.folder,
        cache=cache_file(roots.folder, host.cache_folder / CACHES) if job.is_kept else None,
        list_files=lambda: files_of(roots),
        # It ends with this process, also where it waits for ever for a pipe that was put into `.git`.
        git=Git(host.environ, roots.folder, has_own_group=False)
        if is_in_repository(roots.folder)
        else None,
        count=lambda text: ceil(estimate(text)),
        parses=job.parses,
    )


def files_of(roots: "Roots") -> list[str]:
    """List the files that tools may read, as paths within the folder, without secrets and what links lead to."""
    from ybs.repo_map.reading import is_secret
    from ybs.tools.searching.walk import Deadline, Walk

    walk = Walk(roots, roots.folder, deadline=Deadline(WALK_SECONDS), has_links=False)
    return [path for path in walk.paths() if not is_secret(path)]


def serve() -> int:
    """Make maps for the sessions at the other end of the pipes."""
    _bound()
    talk(_lines())
    return 0


def talk(lines: "SimpleQueue[bytes]") -> None:
    """Make maps: job in, ready out; question in, answer out, until the end is said."""
    made = repo_map_of(from_json(lines.get(), MapRequest))
    try:
        made.prepare()
        prepared_at = monotonic()
        if lines.empty():  # grammars and caches are loaded before somebody waits for an answer
            made.answer("", DEFAULT_TOKENS)
        _say(MapReady(sources=made.sources))
        while question := msgspec.json.decode(lines.get(), type=decodable(MapQuery | None)):
            if monotonic() - prepared_at > FRESH_SECONDS:
                made.prepare()
            found = made.answer(question.query, question.tokens)
            text, files = plain(found.text), found.files
            _say(MapAnswer(text=text, files=files, tokens=found.tokens, sources=made.sources))
            prepared_at = -inf  # for whoever asks next, the files are looked at again
    finally:
        made.close()


def _say(words: MapReady | MapAnswer) -> None:
    put_json(msgspec.json.encode(words) + b"\n", sys.stdout)


def _lines() -> "SimpleQueue[bytes]":
    """Return the queue of what the session says, and end this process once it has gone.

    The session holds the other end until it has the answer, so this sees its end also while the index is made.
    """
    from queue import SimpleQueue
    from threading import Thread

    lines: SimpleQueue[bytes] = SimpleQueue()

    def listen() -> None:
        rest = b""
        # Not by way of `sys.stdin`, which Python could not close while a thread reads.
        while data := os.read(0, 65_536):
            *whole, rest = (rest + data).split(b"\n")
            for line in whole:
                lines.put(line)
        if os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)  # git too
        os._exit(0)

    Thread(target=listen, daemon=True).start()
    return lines


def _bound() -> None:
    """Bound what this process may use: it reads what strangers wrote, with parsers in C."""
    import resource

    from ybs.security.incognito import leave_no_dump

    leave_no_dump()
    _lower(resource.RLIMIT_AS, MOST_BYTES)
    _lower(resource.RLIMIT_CPU, MOST_SECONDS)


@contextmanager
def _bounded_memory(most: int) -> "Generator[None]":
    """Bound the memory of this process for a while."""
    import resource

    before = _lower(resource.RLIMIT_AS, most)
    try:
        yield
    finally:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_AS, before)


def _lower(kind: int, most: int) -> tuple[int, int]:
    """Bound what this process may use, and return the bounds before."""
    import resource

    before = resource.getrlimit(kind)
    if before[0] == resource.RLIM_INFINITY or before[0] > most:
        with suppress(OSError, ValueError):  # macOS bounds no address space
            resource.setrlimit(kind, (most, before[1]))
    return before
