"""Writes a few settings into the user's own file and leaves everything else in it as it is."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ybs.config import private_file
from ybs.config.document import LEFT_OUT, NOTHING_SENT, Unusable, open_document, place_of
from ybs.config.shape import Fitting, annotation_at, is_section, split_key, suggest
from ybs.config.tree import is_list, is_object
from ybs.core.errors import ConfigError
from ybs.core.remedies import Remedy


def write_settings(settings: Mapping[str, Any], path: Path) -> Path:
    """Set these dotted keys (None: remove) in a file that only the user can read. Return its path, links resolved.

    Raises ConfigError when the file is there and is not a JSON object, or cannot be written.
    """
    path = path.resolve()
    tree = _read(path)
    for key, value in settings.items():
        _put(tree, split_key(key), value)
    try:
        private_file.replace(path, msgspec.json.format(msgspec.json.encode(tree), indent=2) + b"\n")
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from error
    return path


def change_list(key: str, entry: str, *, is_wanted: bool, path: Path) -> bool:
    """Add an entry to a list in the file, or remove it; return whether that changed anything. Raises ConfigError."""
    path = path.resolve()
    inner: Any = _read(path)
    for name in split_key(key):
        inner = inner.get(name) if is_object(inner) else None
    entries: list[Any] = list(inner) if is_list(inner) else []
    if (entry in entries) == is_wanted:
        return False
    others = [each for each in entries if each != entry]
    write_settings({key: [*others, entry] if is_wanted else others or None}, path)
    return True


def is_set(key: str, path: Path) -> bool:
    """Return whether the file has something at a dotted key, whatever it is. Raises ConfigError."""
    inner: Any = _read(path.resolve())
    for name in split_key(key):
        if not is_object(inner) or name not in inner:
            return False
        inner = inner[name]
    return True


def _read(path: Path) -> dict[str, Any]:
    """Return what the file says, as the settings are read: what ybs ignores there is not written to. Raises ConfigError."""
    try:
        document = open_document(path, "own")
    except Unusable as error:
        raise ConfigError(f"{place_of(path, error)} {error}. Correct the file first.") from error
    return {} if document is None else document.tree


def _put(tree: dict[str, Any], keys: Sequence[str], value: Any) -> None:
    *sections, name = keys
    for section in sections:
        inner = tree.setdefault(section, {})
        if not is_object(inner):
            raise ConfigError(
                f"{section!r} is not an object in your configuration file. Correct the file first."
            )
        tree = inner
    if value is None:
        tree.pop(name, None)
    else:
        tree[name] = value


def refuse_unknown(key: str) -> Any:
    """Return the type of a setting. Raises ConfigError where there is none of that name."""
    path = split_key(key)
    annotation = annotation_at(path)
    if annotation is None or not all(path):
        guess = suggest(path)
        raise ConfigError(f"There is no setting {key!r}{guess}" + "." * (not guess))
    return annotation


def fitting_value(key: str, text: str) -> Any:
    """Return a text as the value of a setting: as it stands where the setting is a text, else read as JSON.

    Raises ConfigError where there is no such setting, or the value does not fit it.
    """
    annotation, path = refuse_unknown(key), split_key(key)
    if path[-1] == "api_key":
        raise ConfigError(
            "A key on the command line would stay in the history of your shell.",
            remedies=(Remedy("save_key"),),
        )
    said: list[str] = []

    def warn(_path: Any, words: str) -> str:
        said.append(words.removesuffix(LEFT_OUT).removesuffix(NOTHING_SENT))
        return words

    value = Fitting(warn, is_text=True).value(text, annotation, path)
    if not said and is_section(annotation):
        said.append("is a section; set one of the settings in it")
    if said:
        raise ConfigError(f"{key}: {said[0]}. Nothing was changed.")
    return value
