"""Reading a transcript: its lines, the chain of those that count, and what they leave behind."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import BinaryIO, Final

from msgspec import Struct
from msgspec.structs import replace

from ybs.config import private_file
from ybs.core.envelope import MAIN, Envelope
from ybs.core.errors import YbsError
from ybs.core.events import Replaced, Rewound
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
    return Transcript(
        path=path,
        lines=lines,
        chain=chain,
        replay=_replayed(lines),
        damaged=damaged,
    )


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
