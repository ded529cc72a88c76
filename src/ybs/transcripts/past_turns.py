"""The turns that can be taken back: where each began in the conversation, and what it changed in files."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from ybs.core.events import (
    Compacted,
    Event,
    FilesChanged,
    FilesRestored,
    Replaced,
    Rewound,
    SessionStarted,
    TurnFinished,
    UserSaid,
)
from ybs.core.messages import Message, UserMessage

#: The place of a turn whose words were summed up, or that has none.
NOWHERE = -1


class PastTurn(Struct, kw_only=True):
    """A turn: the message that it began with, and the place of that in the conversation (`NOWHERE`: there is none).

    `end` says how it ended, with `size` messages; None while it runs, where ybs was killed, and where a part of it was cut.
    """

    message: UserMessage
    place: int
    changed: FilesChanged | None = None
    end: TurnFinished | None = None
    size: int = 0


class PastTurns:
    """Follows events. A rewind hides turns; another history can bring them back."""

    def __init__(self) -> None:
        self._all: list[PastTurn] = []
        self._hidden: list[PastTurn] = []
        self._undone: set[str] = set()
        #: How many turns have begun, rewound ones too.
        self.begun = 0
        self._is_running = self._is_wordless = False

    @property
    def open(self) -> list[PastTurn]:
        """The turns that can be taken back, oldest first. What was undone in files is left out of them."""
        turns = (
            replace(each, changed=None)
            if each.changed and each.changed.checkpoint in self._undone
            else each
            for each in self._all
        )
        return [each for each in turns if each.place != NOWHERE or each.changed]

    def add(self, event: Event, messages: Sequence[Message]) -> None:
        """Take an event; `messages` is the conversation after it."""
        match event:
            case UserSaid(origin="person" | "shell") if not self._is_running:
                self._is_running = True
                self.begun += 1
                self._all.append(PastTurn(message=event.message, place=len(messages) - 1))
                self._hidden.clear()
            case TurnFinished():
                self._end(event, len(messages))
            case SessionStarted():  # a turn that was killed has no end
                self._is_wordless = self._is_wordless and not self._is_running
                self._is_running = False
            case FilesChanged() | FilesRestored():
                self._change(event)
            case Rewound():
                self._is_running = False  # a copy has no end of a turn that was cut in its midst
                self._hide(event.keeps)
            case Compacted():
                self._sum_up(messages)
            case Replaced():
                self._find(messages)
            case _:
                pass

    def _end(self, event: TurnFinished, length: int) -> None:
        if self._is_running:
            last = self._all[-1]
            last.end, last.size = event, length - last.place
        self._is_wordless = not self._is_running
        self._is_running = False

    def _change(self, event: FilesChanged | FilesRestored) -> None:
        if isinstance(event, FilesRestored):
            change = self._undone.difference_update if event.is_redo else self._undone.update
            change(event.checkpoints)
            return
        is_wordless = self._is_wordless and not self._is_running  # one that was killed still runs
        # A command that was typed, and stopped; or the words are gone.
        if is_wordless or not self._all or self._all[-1].changed:
            message = UserMessage.of("", origin="shell")
            self._all.append(PastTurn(message=message, place=NOWHERE))
        self._all[-1].changed = event

    def _hide(self, keeps: int) -> None:
        """Hide the turns that were cut; one whose files stay as it left them can still be taken back."""
        gone = [each for each in self._all if each.place >= keeps]
        for each in gone:
            if each.changed and each.changed.checkpoint not in self._undone:
                each.place = NOWHERE
        names = {id(each) for each in gone if each.place != NOWHERE}
        self._all = [each for each in self._all if id(each) not in names]
        for each in self._all:
            if each.place + each.size > keeps:
                each.end, each.size = None, 0
        self._hidden = [*(each for each in gone if id(each) in names), *self._hidden]

    def _sum_up(self, messages: Sequence[Message]) -> None:
        """Look for each turn's beginning after a compaction, from the end: the newest turns are those that stay."""
        for each in _missing(self._all[::-1], messages, _prompts(messages)[::-1]):
            each.place = NOWHERE

    def _find(self, messages: Sequence[Message]) -> None:
        """Look for each turn's beginning in another history; turns that are not in it are hidden."""
        known = [*self._all, *self._hidden]
        gone = [each for each in known if not _stands(each, messages)]
        placed = (each for each in self._all if each.place != NOWHERE)
        has_moved = not all(_stands(each, messages) for each in placed)
        if has_moved or len(gone) == len(known):
            gone = _missing(known, messages, _prompts(messages))
        names = {id(each) for each in gone if each.place != NOWHERE}
        self._all = [each for each in known if id(each) not in names]
        self._hidden = [each for each in known if id(each) in names]


def _prompts(messages: Sequence[Message]) -> list[int]:
    return [place for place, each in enumerate(messages) if isinstance(each, UserMessage)]


def _stands(each: PastTurn, messages: Sequence[Message]) -> bool:
    return 0 <= each.place < len(messages) and messages[each.place] == each.message


def _missing(
    turns: Sequence[PastTurn], messages: Sequence[Message], places: list[int]
) -> list[PastTurn]:
    """Give each turn the next of the places where its message stands; return the turns without one."""
    missing: list[PastTurn] = []
    for each in turns:
        said = (n for n, place in enumerate(places) if messages[place] == each.message)
        found = next(said, None)
        if found is None:
            missing.append(each)
        else:
            each.place = places[found]
            del places[: found + 1]
    return missing
