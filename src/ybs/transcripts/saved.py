"""A saved session as a list shows it: of its file only the two ends are read, where they tell enough."""

import os
from pathlib import Path
from typing import Final

from msgspec import Struct

from ybs.config import private_file
from ybs.core.errors import YbsError
from ybs.core.events import AssistantSaid, Event, SessionEnded, SessionStarted, Titled, UserSaid
from ybs.transcripts.line import decoded
from ybs.transcripts.reading import Transcript, read

SUFFIX: Final = ".jsonl"
#: Why a session ended that was one prompt of a script.
ONE_SHOT: Final = "one_shot"
_HEAD_BYTES: Final = 4_096
_TAIL_BYTES: Final = 2_048


class Saved(Struct, frozen=True, kw_only=True):
    """A session that was kept. `project` is its folder; `is_open`: some ybs writes it now (None: unknown).

    `is_one_shot`: it is one prompt of a script (`--print`) that nobody went on with.
    """

    name: str
    path: Path
    title: str
    project: str
    changed_at: float
    messages: int
    size: int
    is_open: bool | None
    provider: str
    model: str
    is_one_shot: bool = False


def look_at(path: Path, *, project: str | None = None) -> Saved | None:
    """Return what is known of a session; None where it is empty, cannot be read, or is not of the project that is asked for."""
    try:
        file = private_file.open_to_read(path)
        if file is None:
            return None
        with file:
            return _look_at(path, file.fileno(), project)
    except (OSError, YbsError):
        return None


def _look_at(path: Path, handle: int, project: str | None) -> Saved | None:
    facts = os.fstat(handle)
    started = _said(os.pread(handle, _HEAD_BYTES, 0).partition(b"\n")[0])
    is_of_another = isinstance(started, SessionStarted) and project not in (None, started.folder)
    if not facts.st_size or is_of_another:
        return None
    tail = os.pread(handle, _TAIL_BYTES, max(facts.st_size - _TAIL_BYTES, 0)).splitlines()
    titled, ended = (_said(tail[-2]), _said(tail[-1])) if len(tail) > 1 else (None, None)
    has_ended = isinstance(ended, SessionEnded)
    if not (has_ended and isinstance(titled, Titled) and isinstance(started, SessionStarted)):
        transcript = read(path)
        started = transcript.replay.started
        title, messages = name_of(transcript), len(transcript.replay.messages)
    else:
        title, messages = titled.title, ended.message_count
    folder = started.folder if started else ""
    if project not in (None, folder):
        return None
    config = started.config if started else {}
    return Saved(
        name=path.name.removesuffix(SUFFIX),
        path=path,
        title=title,
        project=folder,
        changed_at=facts.st_mtime,
        messages=messages,
        size=facts.st_size,
        is_open=False if has_ended else _is_locked(handle),
        provider=config.get("provider", ""),
        model=config.get("model", ""),
        is_one_shot=ended.reason == ONE_SHOT
        if isinstance(ended, SessionEnded)
        else ONE_SHOT in config,
    )


def name_of(transcript: Transcript) -> str:
    """Return the title of a session, or one made of its first exchange."""
    if transcript.replay.title:
        return transcript.replay.title
    from ybs.transcripts.title import title_of  # its patterns take a millisecond

    events = [each.event for each in transcript.events if each.is_main]
    words = next((e.content for e in events if isinstance(e, UserSaid)), "")
    answer = next((e.content for e in events if isinstance(e, AssistantSaid) and e.content), "")
    return title_of(words, answer)


def _said(data: bytes) -> Event | None:
    line = decoded(data)
    return line.said if line is not None else None


def _is_locked(handle: int) -> bool | None:
    """Return whether somebody has the file's lock. It is taken for a moment: only where the end is missing."""
    import fcntl  # not on every system

    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        fcntl.flock(handle, fcntl.LOCK_UN)
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks
        return None
    return False
