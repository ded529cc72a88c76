"""Where a setting that is in force was written: file, line and key, found again when something is wrong with it."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from ybs.config import paths
from ybs.config.document import SettingsDocument, dotted, open_document, visible
from ybs.config.files import Unusable
from ybs.config.layers import Loaded
from ybs.config.tree import KeyPath, Layer, Origin, find, is_list

#: Layers whose values stand in files.
_IN_FILES = frozenset({"system", "user", "home", "project", "file", "profile"})
_PROFILE_SIGN = ": profiles."


class Location(Struct, frozen=True):
    """A place in the person's words, such as `/home/a/.ybs.json:3: safety.deny[0]`, and the layer that it is in."""

    text: str
    layer: Layer


def locate(loaded: Loaded, path: Sequence[str], entry: Any = None) -> Location:
    """Return where a setting was written; with `entry` where this entry of a list was."""
    key = ".".join(path)
    origin = loaded.origins.get(key)
    for layer, document in _documents(loaded, key):
        below = find(document.tree, document.prefix_names + tuple(path))
        if below is None:
            continue
        if entry is None:
            return Location(document.named(tuple(path)), layer)
        if is_list(below) and entry in below:
            return Location(document.named((*path, below.index(entry))), layer)
    if origin is not None and origin.layer == "project" and entry is not None:
        return Location(dotted(tuple(path)), "file")  # a project only adds: another file has it
    if origin is None or origin.layer == "default":
        return Location(dotted(tuple(path)), "default")
    source = "" if origin.layer == "option" else f"{visible(origin.source)}: "
    return Location(source + dotted(tuple(path)), origin.layer)


class _Opened(SettingsDocument):
    """A document with the names that lead to what is looked at in it."""

    @property
    def prefix_names(self) -> tuple[str, ...]:
        return tuple(str(step) for step in self.prefix)

    def named(self, path: KeyPath) -> str:
        """Name the file, the line and the key."""
        return f"{self.place(path)}: {dotted(self.prefix + path)}"


def _documents(loaded: Loaded, key: str) -> Iterator[tuple[Layer, _Opened]]:
    """Yield the files that may hold a setting, the one that it came from first."""
    origins = [loaded.origins[key]] if key in loaded.origins else []
    origins += list(loaded.origins.values())
    origins += [
        Origin("system", str(paths.SYSTEM_FILE)),
        Origin("user", str(loaded.host.user_config_file)),
        Origin("home", str(loaded.host.home_config_file)),
    ]
    for origin in dict.fromkeys(origins):
        if origin.layer not in _IN_FILES:
            continue
        file, _, profile = origin.source.partition(_PROFILE_SIGN)
        try:
            document = open_document(Path(file), "project" if origin.layer == "project" else "own")
        except Unusable:
            continue  # changed since it was read
        if document is not None:
            prefix = ("profiles", profile) if profile else ()
            opened = _Opened(document.source, document.text, prefix)
            yield origin.layer, opened.holding(document.tree)
