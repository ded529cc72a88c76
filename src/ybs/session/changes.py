"""What the turns of a session changed in files, remembered for /diff: small, and without the conversation."""

from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ybs.core.events import Event, ToolFinished, TurnFinished, UserSaid

#: Diffs of so many characters are kept; the oldest go first.
MOST_CHARS: Final = 2_000_000
_NOWHERE: Final = "/dev/null"


class FileChange(Struct, frozen=True, kw_only=True):
    """One write, edit or removal. `diff` is empty for a removal, and when it was too old or too long to keep."""

    path: str
    diff: str = ""
    added: int = 0
    removed: int = 0
    is_removal: bool = False


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
            case ToolFinished(success=True) if b'"' in bytes(event.display):
                self._note(event)
            case ToolFinished(name="run_shell", is_refused=False) | UserSaid(origin="shell"):
                self._now.commands += 1
            case TurnFinished() if is_main:
                if self._now.files or self._now.commands:
                    self._turns.append(self._now)
                self._now = TurnChanges(files=[])
            case _:
                pass

    def _note(self, event: ToolFinished) -> None:
        if event.name == "run_shell":
            self._now.commands += 1
            return
        if b'"diff"' not in bytes(event.display) and event.name != "delete_file":
            return
        try:
            shown = msgspec.json.decode(event.display, type=dict[str, Any])
        except msgspec.DecodeError:
            return
        diff = shown.get("diff")
        if event.name == "delete_file":
            change = FileChange(path=str(shown.get("path", "")), is_removal=True)
        elif isinstance(diff, str) and diff:
            counts = (shown.get("added"), shown.get("removed"))
            added, removed = (count if isinstance(count, int) else 0 for count in counts)
            change = FileChange(path=_path_in(diff), diff=diff, added=added, removed=removed)
        else:
            return
        self._now.files.append(change)
        self._chars += len(change.diff)
        if self._chars > MOST_CHARS:
            self._forget()

    def _forget(self) -> None:
        """Drop the oldest diffs until the rest fits; which files they were of is still known."""
        for turn in (*self._turns, self._now):
            for place, change in enumerate(turn.files):
                if self._chars <= MOST_CHARS:
                    return
                self._chars -= len(change.diff)
                turn.files[place] = replace(change, diff="")


def _path_in(diff: str) -> str:
    """Read the file's name out of a diff's heading; what is not a diff says it in its one line."""
    lines = diff.split("\n", 2)
    if len(lines) < 2 or not lines[0].startswith("--- "):
        return diff.removeprefix("Binary file ").rpartition(": ")[0] or diff[:80]
    after, before = lines[1].removeprefix("+++ "), lines[0].removeprefix("--- ")
    return before if after == _NOWHERE else after
