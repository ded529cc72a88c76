"""The file changes of a session's turns, remembered for /diff: small, and without the conversation."""

from typing import Final

from msgspec import Struct

from ybs.core.changes import FileChange
from ybs.core.events import Event, ToolFinished, TurnFinished, UserSaid

#: Texts of so many characters are kept; the oldest go first.
MOST_CHARS: Final = 2_000_000
TOO_OLD: Final = "the difference is no longer stored"


class TurnChanges(Struct, kw_only=True):
    """What one turn did: changes of files in order, and how many commands it ran."""

    files: list[FileChange]
    commands: int = 0


class Changes:
    """Watches a session's events."""

    def __init__(self) -> None:
        self._turns: list[TurnChanges] = []
        self._now = TurnChanges(files=[])
        self._chars = 0

    @property
    def turns(self) -> list[TurnChanges]:
        """The turns that changed files or ran commands, oldest first; a running one is the last."""
        return [turn for turn in (*self._turns, self._now) if turn.files or turn.commands]

    @property
    def running(self) -> TurnChanges:
        """What has been changed since the last turn ended."""
        return self._now

    def add(self, event: Event, *, is_main: bool = True) -> None:
        """Note what the event changed. A turn of a sub-agent is part of the main agent's."""
        match event:
            case ToolFinished(name="run_shell", is_refused=False) | UserSaid(origin="shell"):
                self._now.commands += 1
            case ToolFinished(success=True) if event.changes:
                self._now.files += event.changes
                self._chars += sum(map(_size, event.changes))
                self._forget()
            case TurnFinished() if is_main:
                if self._now.files or self._now.commands:
                    self._turns.append(self._now)
                self._now = TurnChanges(files=[])
            case _:
                pass

    def _forget(self) -> None:
        """Drop the oldest texts until the rest fits; which files they were of is still known."""
        if self._chars <= MOST_CHARS:
            return
        for turn in (*self._turns, self._now):
            for place, change in enumerate(turn.files):
                self._chars -= _size(change)
                turn.files[place] = change.without_texts(TOO_OLD)
                if self._chars <= MOST_CHARS:
                    return


def _size(change: FileChange) -> int:
    return len(change.before or "") + len(change.after or "")
