"""Reading a transcript: its lines, the chain of those that count, and what they leave behind."""

import os
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Final

from msgspec import Struct
from msgspec.structs import replace

from ybs.config import private_file
from ybs.core.envelope import MAIN, Envelope
from ybs.core.errors import YbsError
from ybs.core.events import (
    AssistantSaid,
    Event,
    Replaced,
    Rewound,
    SessionEnded,
    SessionStarted,
    Titled,
    UserSaid,
)
from ybs.transcripts.line import TranscriptLine, decoded, lines_in
from ybs.transcripts.replay import Replay

#: A number that no session reaches; whoever wrote it made it up.
_TOO_HIGH: Final = 1_000_000_000


class Transcript(Struct, frozen=True, kw_only=True):
    """A file that was read. It is the person's own and may have been edited, so nothing in it grants anything.

    `damaged` counts the lines that could not be read.
    `chain` are the lines from the first one to the last, without what was rewound.
    """

    path: Path
    lines: Sequence[TranscriptLine]
    chain: Sequence[TranscriptLine]
    replay: Replay
    damaged: int

    @property
    def last(self) -> int:
        """The number of the last line."""
        return self.lines[-1].event

    @property
    def began_ns(self) -> int:
        """When the session began, or the one that it is a copy of, in nanoseconds since the epoch; 0 where that cannot be read."""
        try:
            return int(datetime.fromisoformat(self.lines[0].timestamp).timestamp()) * 1_000_000_000
        except (ValueError, OverflowError, OSError):
            return 0

    @property
    def repository(self) -> str:
        """The mark of the repository that was there when it began; empty where there was none, or nobody knows."""
        first = self.lines[0].said
        return first.config.get(REPOSITORY, "") if isinstance(first, SessionStarted) else ""

    @property
    def events(self) -> list[Envelope]:
        """What the chain tells, of all agents."""
        name = self.path.stem
        return [
            Envelope(name, line.agent, line.said, line.started_by)
            for line in self.chain
            if line.said is not None
        ]

    @property
    def story(self) -> Sequence[TranscriptLine]:
        """What a copy needs: the chain, or all lines.

        Those where something came back, whose turns are told elsewhere, and where files are not as the chain tells:
        what a rewound turn did to them still counts.
        """
        has_returned = any(isinstance(line.said, Replaced) for line in self.chain)
        if has_returned or _replayed(self.chain).checkpoints != self.replay.checkpoints:
            return self.lines
        return self.chain


def read(path: Path) -> Transcript:
    """Read a transcript, whatever has happened to it. Raises YbsError where nothing can be read, and OSError."""
    file = private_file.open_to_read(path)
    if file is None:
        raise YbsError(f"the session file {path} does not exist")
    with file:
        lines, damaged = _lines(file)
    if not lines:
        what = f"none of its {damaged} lines can be read" if damaged else "it is empty"
        raise YbsError(f"{path} is not a session file: {what}")
    chain = _chain(lines)
    return Transcript(path=path, lines=lines, chain=chain, replay=_replayed(lines), damaged=damaged)


def _lines(file: BinaryIO) -> tuple[list[TranscriptLine], int]:
    """Read the lines; each has a number above those before it and follows one that is there."""
    lines: list[TranscriptLine] = []
    numbers = {0}
    last = damaged = 0
    for data in lines_in(file):
        line = decoded(data)
        if line is None:
            damaged += not data.isspace()
            continue
        if not last < line.event < _TOO_HIGH:  # written by hand, or copied
            line = replace(line, event=last + 1, parent=last)
        elif line.parent not in numbers:  # damaged, or not before this one
            line = replace(line, parent=last)
        last = line.event
        numbers.add(last)
        lines.append(line)
    return lines, damaged


def _chain(lines: Sequence[TranscriptLine]) -> list[TranscriptLine]:
    chain: list[TranscriptLine] = []
    wanted = lines[-1].event
    for line in reversed(lines):
        if line.event == wanted:
            chain.append(line)
            wanted = line.parent
    chain.reverse()
    return chain


def _replayed(lines: Iterable[TranscriptLine]) -> Replay:
    """Fold all lines, as the running session did."""
    replay = Replay()
    for line in lines:
        match line.said:
            case None:
                continue
            case Rewound(keeps=keeps) if (
                line.agent == MAIN
            ):  # where a line is damaged, its parent knows better
                kept = min(keeps, replay.count_until(line.parent))
                replay.add(Rewound(keeps=kept), line.event)
            case _:
                replay.add(line.said, line.event, agent=line.agent)
    return replay


SUFFIX: Final = ".jsonl"
#: Why a session ended that was one prompt of a script.
ONE_SHOT: Final = "one_shot"
#: In what a session begins with: others than the person may have written what is said in it.
OF_OTHERS: Final = "of_others"
#: Likewise: the mark of the repository that was there.
REPOSITORY: Final = "repository"
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
