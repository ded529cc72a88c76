"""What of a project the person's own settings are, name or lead to: it runs with their rights, or speaks in their name, later on.

One answer for all who ask: file tools ask about it, the sandbox holds it for commands, the look after each command tells of it.

A program of the person's starts in the project, or in an empty folder (`own_programs`), as the trust and its entry say at that moment, and goes
on from there. So here it starts in each of them: what its words run counts as a path from the project, and what they name as one from the home folder.
"""

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from ybs.config.document import LARGEST_BYTES, Unusable, parse, text_of
from ybs.config.host import Host, asked_for
from ybs.config.paths import PERSONS_HOOKS, PERSONS_PLACES, SYSTEM_FILE
from ybs.config.tree import is_list, is_object
from ybs.core.lazy import lazy
from ybs.security.paths.autorun import kind_of
from ybs.security.paths.files_run import files_run, matches
from ybs.security.paths.folder_index import listed
from ybs.security.paths.git_settings import Folders, named_by_git
from ybs.security.paths.home_links import led_into
from ybs.security.paths.opening import read_beginning, stamp_of
from ybs.security.paths.path_text import lies_in
from ybs.security.paths.whole_paths import loaded_in, spelled_out, ways_named

#: A file of settings without links, and what tells its state from another one.
_File = tuple[str, tuple[int, ...]]
#: The steps of the ways that are named, and what is loaded wherever it stands in the text.
_Started = tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]
_WORD = lazy(r"[\w.+-]+")
_ADDRESS = lazy(r"https?://[\w.:/@%+-]*")
#: What a text has that may name a path from elsewhere.
_MAY_LEAD = lazy(r"[/~$`]|\bcd\b")
#: Sections of rules, which say what may be done to a file.
_RULES = ("safety", "permissions")
#: Variables in which a shell and npm say what they start and where, and those whose folders are looked at otherwise.
_LEFT_OUT = lazy(r"_|PATH|npm_.*")


def named_by_settings(
    host: Host, root: str, repositories: Mapping[str, Folders] | None = None
) -> list[str]:
    """Return the paths in a root, whose links are resolved, that are the person's own; they need not exist.

    That is the root itself where it is what is named, or lies in it. `repositories` are those whose settings count, by default the one around the root.
    """
    said = _reached(host, root, _states(host))
    path = host.environ.get("PATH", "")
    led = led_into(str(host.home), path, (*_places(host), *said.folders), root)
    started = _started(host, root, tuple(map(_state, _startup_files(host))))
    run = _run_of(said, root)
    named = dict.fromkeys(
        (*named_by_git(host, root, repositories), *led, *asked_for, *said.files, *started, *run)
    )
    inside = dict.fromkeys(root if lies_in(root, path) else path for path in named)
    return [path for path in inside if lies_in(path, root)]


def run_in_project(host: Host, root: str) -> list[str]:
    """Return the paths in a root that commands of settings run where they start there; they need not exist."""
    return _run_of(_reached(host, root, _states(host)), root)


class _Said(Struct, frozen=True):
    """What files of settings say: the files in a root that they name, the folders in which they have ybs look for the person's own, and what runs, below the root."""

    files: tuple[str, ...]
    folders: tuple[str, ...]
    run: tuple[str, ...]


def _run_of(said: _Said, root: str) -> list[str]:
    found = (path for each in said.run for path in matches(each, root))
    named = (path.rstrip("/") for path in found if path.endswith("/") or not os.path.isdir(path))  # noqa: PTH112 - texts
    return [path for path in named if path != root]


def _states(host: Host) -> tuple[_File, ...]:
    return tuple(_state(each) for each in (*_own_files(host), *sorted(asked_for)))


@lru_cache(64)
def _own_files(host: Host) -> tuple[str, ...]:
    hooks = host.persons((PERSONS_HOOKS,))
    return tuple(map(str, (SYSTEM_FILE, host.user_config_file, host.home_config_file, *hooks)))


@lru_cache(64)
def _places(host: Host) -> tuple[str, ...]:
    return tuple(map(str, host.persons(PERSONS_PLACES)))


def _startup_files(host: Host) -> Iterator[str]:
    """Yield the files that programs run by themselves as they start, of the home folder and of where shells look besides."""
    home = str(host.home)
    for folder in {home, f"{home}/.config/fish", host.environ.get("ZDOTDIR", home)}:
        yield from _held(folder, listed(folder)[0])


@lru_cache(64)
def _held(folder: str, names: frozenset[str]) -> tuple[str, ...]:
    ours = (
        name for name in sorted(names) if not name.startswith(".git")
    )  # `named_by_git` reads git's
    return tuple(f"{folder}/{name}" for name in ours if kind_of(name.lower()) == "held")


def _state(file: str) -> _File:
    try:
        return file, stamp_of(os.stat(file))  # noqa: PTH116 - texts throughout
    except OSError:
        return file, ()


@lru_cache(64)
def _reached(host: Host, root: str, files: tuple[_File, ...]) -> _Said:
    """Return what the files say of a root. They are read once for each state that they have."""
    trees = [_read(file) for file, state in files if state]
    entries = [entry for tree in trees for entry in _entries(tree)]
    folders = [str(path) for tree in trees for path in _search_paths(tree, host)]
    words = {word for entry in entries for text in entry for word in _WORD().findall(text)}
    found = list(_programs(host, root, words))
    for entry in entries:
        if any(_MAY_LEAD().search(_ADDRESS().sub("", text)) for text in entry):
            from ybs.trust.reach import named_in  # most settings name a model and its server

            found += named_in(entry, Path(root), host.home, host.environ)
    texts = dict.fromkeys(text for tree in trees for text in _commands(tree))
    names = (name for text in texts for name, _ in files_run(text, str(host.home)))
    paths = (os.path.normpath(os.path.join(root, name)) for name in names)  # noqa: PTH118 - texts
    run = dict.fromkeys(path[len(root) :] for path in paths if path != root and lies_in(path, root))
    return _Said(tuple(dict.fromkeys(found)), tuple(folders), tuple(run))


def _started(host: Host, root: str, files: tuple[_File, ...]) -> Iterator[str]:
    """Yield what startup files and variables name of a root by whole paths, but for folders, of which programs run nothing by themselves."""
    ways, loaded = _named_at_start(host, root, files)
    yield from loaded
    for way in ways:
        if not os.path.isdir(way[-1]):  # noqa: PTH112 - texts throughout
            yield from way


@lru_cache(64)
def _named_at_start(host: Host, root: str, files: tuple[_File, ...]) -> _Started:
    home = str(host.home)
    script = spelled_out("\n".join(os.fsdecode(_content(file)) for file, state in files if state))
    given = (each for name, each in host.environ.items() if not _LEFT_OUT().fullmatch(name))
    ways = ways_named("\n".join((script, *given)), home, root)
    return tuple(dict.fromkeys(ways)), tuple(loaded_in(script, home, root))


def _content(file: str) -> bytes:
    data = None
    with suppress(OSError, ValueError):
        data = read_beginning(os.path.realpath(file), LARGEST_BYTES + 1)
    return data or b""


def _read(file: str) -> Any:
    """Return what a file says; nothing where it cannot be read: then ybs goes by nothing in it, either."""
    try:
        return parse(Path(file), text_of(_content(file))).tree
    except Unusable:
        return None


def _entries(tree: Any) -> Iterator[list[str]]:
    """Yield the texts of each object that has any of its own, such as a hook or a server, with those of objects in it (`env`)."""
    values: Iterable[Any] = tree if is_list(tree) else ()
    if is_object(tree):
        values = [each for key, each in tree.items() if key not in _RULES]
        if own := list(_texts(values)):
            inner = (each.values() for each in values if is_object(each))
            yield [*own, *(text for texts in inner for text in _texts(texts))]
    for each in values:
        yield from _entries(each)


def _commands(tree: Any) -> Iterator[str]:
    """Yield the commands of hooks, servers and tools as a shell has them."""
    if is_object(tree):
        words = [*_texts([tree.get("command")]), *_texts([tree.get("args")])]
        yield from words[:1]
        yield shlex.join(words)
    values = [each for key, each in tree.items() if key not in _RULES] if is_object(tree) else tree
    for each in values if is_object(tree) or is_list(tree) else ():
        yield from _commands(each)


def _texts(values: Iterable[Any]) -> Iterator[str]:
    for each in values:
        if isinstance(each, str):
            yield each
        elif is_list(each):
            yield from _texts(each)


def _search_paths(tree: Any, host: Host) -> Iterator[Path]:
    """Yield the folders of `search_paths` in sections and profiles, but those that each project has of its own."""
    for key, value in tree.items() if is_object(tree) else ():
        if key == "search_paths" and is_list(value):
            yield from host.persons(e for e in _texts(value) if e.startswith(("~/", "/")))
        else:
            yield from _search_paths(value, host)


def _programs(host: Host, root: str, words: Iterable[str]) -> Iterator[str]:
    """Yield the programs in a root to which PATH leads by one of the words."""
    for entry in host.environ.get("PATH", "").split(os.pathsep):
        folder = os.path.join(root, entry)  # noqa: PTH118 - texts throughout
        is_inside = lies_in(os.path.realpath(folder), root)
        for path in (f"{folder}/{word}" for word in words):
            if is_inside or os.path.islink(path):  # noqa: PTH114 - texts throughout
                real = os.path.realpath(path)
                if lies_in(real, root) and os.path.isfile(real):  # noqa: PTH113
                    yield real
