"""What was found out about each model file, kept so that it is found out once: a head takes a second to read."""

from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from ybs.config import private_file
from ybs.config.host import Host
from ybs.core.errors import ConfigError, YbsError
from ybs.providers.local.gguf import ModelHead, read_head

MOST_NOTES = 100
NO_CALLS: Final = "none"


class ModelNotes(Struct, frozen=True, kw_only=True):
    """What is known of the file that had this size and was changed at this time.

    `template` names the chat template that the model answers with real tool calls: empty where none was tried yet, `NO_CALLS` where
    it did so with none.
    """

    size: int
    changed_ns: int
    head: ModelHead
    template: str = ""


def notes_of(host: Host, path: Path) -> ModelNotes:
    """Return what is known of a model file, read now where nothing is. Raises ConfigError where it cannot be read."""
    try:
        facts = path.stat()
    except OSError as error:
        raise ConfigError(f"The model file {path} cannot be read: {error.strerror}") from error
    known = _all(host).get(str(path))
    if known and (known.size, known.changed_ns) == (facts.st_size, facts.st_mtime_ns):
        return known
    notes = ModelNotes(size=facts.st_size, changed_ns=facts.st_mtime_ns, head=read_head(path))
    keep(host, path, notes)
    return notes


def keep(host: Host, path: Path, notes: ModelNotes) -> None:
    """Write the notes of a file down. What cannot be written is found out again another time."""
    kept = {name: each for name, each in _all(host).items() if name != str(path)}
    newest = dict([*kept.items(), (str(path), notes)][-MOST_NOTES:])
    try:
        private_file.replace(_file(host), msgspec.json.encode(newest))
    except (OSError, YbsError):
        return


def _file(host: Host) -> Path:
    return host.state_folder / "models.json"


def _all(host: Host) -> dict[str, ModelNotes]:
    try:
        return msgspec.json.decode(
            private_file.read(_file(host)) or b"{}", type=dict[str, ModelNotes]
        )
    except (OSError, YbsError, msgspec.DecodeError):
        return {}
