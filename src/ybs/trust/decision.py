"""Trust in a project, bound to its folder and to every byte that it is about.

A record holds the folder's real path and the digest of each file that could make ybs do something (`trust_files`). One
byte changed, one file more or less, and the project is not trusted any more; the difference is shown.
"""

import os
from collections.abc import Collection, Mapping
from hashlib import sha256
from pathlib import Path
from shutil import rmtree

import msgspec
from msgspec import Struct

from ybs.config import private_file
from ybs.config.document import visible
from ybs.config.host import Host
from ybs.config.layers import Loaded
from ybs.config.review import (
    REPLACED,
    FileDifference,
    Item,
    ProjectFile,
    Review,
    VariableUse,
)
from ybs.core.decoding import from_json
from ybs.core.errors import ConfigError, ToolError
from ybs.trust.files import Untrustable, read_one
from ybs.trust.place import Place, lies_there, place_of
from ybs.trust.reach import Command, CommandReach, reach
from ybs.trust.wording import difference

_UNSHOWN = (
    "is too large, or not text: where it changes later you are asked again, and shown no difference"
)
#: The text of a file is kept for showing a difference, up to this size.
MOST_KEPT = 64_000
MOST_KEPT_IN_ALL = 1_000_000
LARGEST_RECORD = 8_000_000


class TrustedFile(Struct, frozen=True):
    """What a record knows of a file. `text` is empty where none is kept (`_texts_of`)."""

    digest: str
    text: str = ""


class _Record(Struct, frozen=True, kw_only=True):
    """What the trust store holds of one folder. `place` tells it from another one that has its path later."""

    folder: str
    files: dict[str, TrustedFile]
    place: Place = ""
    variables: tuple[VariableUse, ...] = ()
    version: int = 1

    def __repr__(self) -> str:
        return f"Record(folder={self.folder!r})"


def is_unchanged(review: Review, path: str, folder: Path | None = None) -> bool:
    """Read a trusted file again, before it is run, and return whether it is still what was trusted.

    `folder` is a copy of the project that it is run in.
    """
    file = review.files.get(path)
    if not review.is_trusted or file is None:
        return False
    try:
        now = read_one(folder or review.folder, path)
    except (OSError, Untrustable):
        return False
    return now is not None and now.digest == file.digest


def is_folder_unchanged(review: Review, path: str) -> bool:
    """Return whether a trusted file, and each one below its folder, is what was trusted. What came later is not looked for."""
    folder = path.rpartition("/")[0]
    return all(is_unchanged(review, each) for each in {path, *review.paths(folder)})


def reach_unchanged(
    review: Review | None, command: Command, folder: Path, home: Path, path: str = os.defpath
) -> CommandReach:
    """Return what a command of the project reaches, right before it is started with a `PATH`; `folder` is the project or a copy of it.

    Raises ToolError where a file of the project that it reaches, or reached when it was trusted, is not what was trusted.
    """
    found = reach(command, folder, home, review.files if review is not None else (), path)
    for each in found.files:
        if review is not None and not is_unchanged(review, each, folder):
            raise ToolError(f"{visible(each)} is not the program that you trust")
    return found


def judge(
    host: Host,
    folder: Path,
    files: dict[str, ProjectFile],
    items: tuple[Item, ...],
    *,
    once: bool = False,
) -> Review:
    """Compare what was read with what was trusted. `folder` is the real path."""
    record = recall(host, folder)
    changes = _changes(record.files, files) if record is not None else []
    if record is not None and not lies_there(host, record.place, folder):
        changes.insert(0, REPLACED)
    is_known = record is not None and not changes
    texts = {} if is_known else _texts_of(files)
    unshown = [path for path, text in texts.items() if not text and files[path].size]
    return Review(
        folder=folder,
        items=(*items, *(Item(place=visible(e), words=_UNSHOWN, asks=False) for e in unshown)),
        files=files,
        is_trusted=is_known or once,
        once=once and not is_known,
        changes=tuple(changes),
        granted=frozenset(record.variables if record is not None and is_known else ()),
    )


def review_of(loaded: Loaded, folder: Path) -> Review:
    """Return what the project wants; where that is nothing, a review of nothing, for such a project can be trusted as well."""
    if loaded.review is not None:
        return loaded.review
    return judge(loaded.host, folder.resolve(), {}, (), once=loaded.trusts_project)


def grant(host: Host, review: Review, names: Collection[str]) -> None:
    """Trust what was reviewed, and let its MCP servers and tools have these variables. Raises ConfigError and OSError."""
    give(host, review, named_in(review, names))


def named_in(review: Review, names: Collection[str]) -> list[VariableUse]:
    """Return the uses of variables that wait for a grant and have these names. Raises ConfigError for a name that none has."""
    uses = [use for use in review.grantable if use.name in names]
    if unknown := sorted({*names} - {use.name for use in (*uses, *review.granted)}):
        raise ConfigError(f"This project waits for no grant of {visible(', '.join(unknown))}.")
    return uses


def give(host: Host, review: Review, uses: Collection[VariableUse] = ()) -> None:
    """Trust exactly what was reviewed, with these uses of variables beside those that were granted. Raises ConfigError and OSError."""
    if review.problem:
        raise ConfigError(f"{visible(str(review.folder))} cannot be trusted: {review.problem}")
    texts = _texts_of(review.files)
    kept = {path: TrustedFile(file.digest, texts[path]) for path, file in review.files.items()}
    variables = (*review.granted, *uses)
    place = place_of(host, review.folder)
    record = _Record(folder=str(review.folder), files=kept, variables=variables, place=place)
    private_file.replace(record_file(host, review.folder), msgspec.json.encode(record))
    private_file.remove(_refusal_file(host, review.folder))


def digest_of(review: Review) -> str:
    """Return what stands for all that is shown of a project to who decides: its files, byte for byte, and the words about them."""
    files = sorted((path, file.digest) for path, file in review.files.items())
    shown = (str(review.folder), files, review.items, review.variables)
    return sha256(repr(shown).encode()).hexdigest()[:32]


def refuse(host: Host, review: Review) -> None:
    """Remember a no, for the files as they are now. Raises ConfigError and OSError."""
    private_file.replace(_refusal_file(host, review.folder), _digests(review))


def is_refused(host: Host, review: Review) -> bool:
    """Return whether the person said no to exactly these files."""
    try:
        kept = private_file.read(_refusal_file(host, review.folder), most_bytes=LARGEST_RECORD)
    except (OSError, ConfigError):
        return False
    return kept == _digests(review)


def _digests(review: Review) -> bytes:
    files = {path: file.digest for path, file in sorted(review.files.items())}
    return msgspec.json.encode({"folder": str(review.folder), "refused": files})


def _refusal_file(host: Host, folder: Path) -> Path:
    return record_file(host, folder).with_suffix(".refused.json")


def revoke(host: Host, folder: Path) -> bool:
    """Forget a project, with the homes of the MCP servers and agents that started in it. Return whether it had been trusted."""
    folder = folder.resolve()
    for home in host.residents_folder.glob(f"*-{_digest_of(str(folder))}-*"):
        rmtree(home, ignore_errors=True)
    private_file.remove(_refusal_file(host, folder))
    return private_file.remove(record_file(host, folder))


def home_mark(host: Host, folder: Path) -> str:
    """Return what ends the name of each home in which a project's code may write: its path, and the folder that lies there now. Raises OSError."""
    number_and_times = place_of(host, folder).partition(":")[2]
    return f"{_digest_of(str(folder))}-{_digest_of(number_and_times)}"


def _digest_of(text: str) -> str:
    return sha256(text.encode(errors="surrogateescape")).hexdigest()[:16]


def recall(host: Host, folder: Path) -> _Record | None:
    """Return what was trusted in this folder; None where nothing was, or the record is of no use."""
    try:
        data = private_file.read(record_file(host, folder), most_bytes=LARGEST_RECORD)
        record = from_json(data, _Record) if data is not None else None
    except (OSError, ConfigError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    # The name of the file is a digest of the path; the path in it must agree.
    return record if record is not None and record.folder == str(folder) else None


def record_file(host: Host, folder: Path) -> Path:
    """Return where the trust in a folder is kept."""
    name = sha256(str(folder).encode(errors="surrogateescape")).hexdigest()
    return host.config_folder / "trust" / f"{name}.json"


def _changes(
    known: Mapping[str, TrustedFile], files: Mapping[str, ProjectFile]
) -> list[FileDifference]:
    changes: list[FileDifference] = []
    for path in sorted({*known, *files}):
        was, now = known.get(path), files.get(path)
        if was is None:
            changes.append(FileDifference(path=visible(path), what="is new"))
        elif now is None:
            changes.append(FileDifference(path=visible(path), what="was removed"))
        elif was.digest != now.digest:
            changes.append(_change(path, was, now))
    return changes


def _change(path: str, was: TrustedFile, now: ProjectFile) -> FileDifference:
    text = _text_of(now.data)
    if was.digest.removesuffix("+x") == now.digest.removesuffix("+x"):
        may = "may be run now" if now.is_executable else "may not be run any more"
        return FileDifference(path=visible(path), what=may)
    shown = difference(was.text, text) if was.text and text else ""
    size = "" if shown else f" ({now.size:,} bytes now, no difference can be shown)"
    return FileDifference(path=visible(path), what=f"has changed{size}", difference=shown)


def _texts_of(files: Mapping[str, ProjectFile]) -> dict[str, str]:
    """Return the texts that a record keeps, from which a difference can be shown; nothing of a file where none will be."""
    room, texts = MOST_KEPT_IN_ALL, dict[str, str]()
    for path, file in files.items():
        text = _text_of(file.data) if len(file.data) <= room else ""
        room -= len(text)
        texts[path] = text
    return texts


def _text_of(data: bytes) -> str:
    """Return a file as text, other bytes as escapes; nothing for one that is too large, or no text."""
    is_text = len(data) <= MOST_KEPT and b"\0" not in data
    return data.decode(errors="backslashreplace") if is_text else ""
