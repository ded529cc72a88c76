"""What a turn changed: the changes of its segments, joined, and the paths that somebody else changed as well.

A segment is the time between a look and the next one. What changes between two segments is not the turn's.
"""

import os
from collections.abc import Iterable, Set
from time import time_ns

from msgspec import Struct, field
from msgspec.structs import replace

from ybs.checkpoints.scan import Snapshot, is_newer
from ybs.checkpoints.states import ABSENT, BULK, Change, State, Take, seen_at, state_at
from ybs.security.paths.roots import Roots


class Segment(Struct):
    """The states from before: what tools name, and all of the project (`snapshot`) where a command was about to run."""

    touched: dict[str, State] = {}
    snapshot: Snapshot | None = None

    @property
    def is_open(self) -> bool:
        """Whether anything was kept in it."""
        return bool(self.touched) or self.snapshot is not None

    def touch(self, roots: Roots, path: str, take: Take) -> os.stat_result | None:
        """Keep what stands at an absolute path, unless that is known, and which folders are not there yet.

        Returns the status of what stands there, or None where there is nothing or it was known already.
        """
        first: os.stat_result | None = None
        asked = path
        while path not in self.touched:
            self.touched[path], status = self._before(roots, path, take)
            first = status if path == asked else first
            state, path = self.touched[path], os.path.dirname(path)  # noqa: PTH120 - texts throughout
            if state != ABSENT or state_at(roots, path).kind == "folder":
                break
        return first

    def _before(self, roots: Roots, path: str, take: Take) -> tuple[State, os.stat_result | None]:
        """Return what stood there before the segment: a command may have changed it since."""
        if self.snapshot is not None and self.snapshot.covers(path):
            known = self.snapshot.known.get(path)
            return ABSENT if known is None else known[1], None
        return seen_at(roots, path, take)

    def changes(self, roots: Roots, now: Snapshot | None, take: Take) -> list[Change]:
        """Return what is another one now, by path; `now` is a second snapshot, where there was a first."""
        pairs = {path: (state, state_at(roots, path, take)) for path, state in self.touched.items()}
        if self.snapshot is not None and now is not None:
            for path, before, after in _differences(roots, self.snapshot, now, take):
                pairs.setdefault(path, (before, after))
        ignored = self._ignored(now)
        return [
            Change(path=path, before=before, after=after, is_ignored=path in ignored)
            for path, (before, after) in sorted(pairs.items())
            if before != after
        ]

    def _ignored(self, now: Snapshot | None) -> Set[str]:
        """Return the paths that git ignores and no tool named; a rule that is gone by now counts."""
        if self.snapshot is None or now is None:
            return frozenset()
        return (self.snapshot.ignored | now.ignored) - self.touched.keys()


class Turn(Struct):
    """The segments of one turn: the open one, and the `changes` of those before.

    `fresh` are files that somebody changed after the turn began and before it changed them itself; they, and those that
    somebody changed after it did, are `shared` once the turn has changed them. `named` are the paths that tools named.
    `is_given_up`: a command ran unseen, so nobody can tell whose a change is; it counts as the turn's.
    """

    since_ns: int = field(default_factory=time_ns)
    segment: Segment = field(default_factory=Segment)
    changes: dict[str, Change] = {}
    fresh: set[str] = set()
    shared: set[str] = set()
    named: set[str] = set()
    is_given_up: bool = False
    #: Whether a command ran, of which nobody knows beforehand what it changes.
    ran_commands: bool = False

    def touch(self, roots: Roots, path: str, take: Take) -> None:
        """Keep what stands at an absolute path that a tool is about to change."""
        segment = self.segment
        is_known = path in self.changes or path in segment.touched or segment.snapshot is not None
        status = segment.touch(roots, path, take)
        if not (is_known or self.is_given_up or status is None) and is_newer(status, self.since_ns):
            self.fresh.add(path)
        self.named |= segment.touched.keys()

    def begin(self, snapshot: Snapshot) -> None:
        """Begin to count all that changes."""
        self.fresh |= snapshot.fresh - self.changes.keys()
        self.segment.snapshot = snapshot
        self.ran_commands = True

    def join(self, roots: Roots, now: Snapshot | None, take: Take) -> Set[str]:
        """End the segment and return what changed in it; `now` is a second snapshot, where there was a first."""
        changes = self.segment.changes(roots, now, take)
        self.segment = Segment()
        for change in changes:
            self._add(change)
        return {change.path for change in changes}

    def compare(self, roots: Roots, take: Take, *, settled: Set[str]) -> None:
        """Note what somebody else changed after the turn did; `settled` was looked at just now."""
        for path in self.changes.keys() - settled:
            change = self.changes[path]
            now = state_at(roots, path, take)
            # What could not be read perhaps can be by now.
            if self.is_given_up or change.after.kind == "other":
                self.changes[path] = replace(change, after=now)
            elif now != change.after:
                self.shared.add(path)

    @property
    def outcome(self) -> list[Change]:
        """What is another one than before the turn, by path."""
        every = (change for _, change in sorted(self.changes.items()))
        return [change for change in every if change.before != change.after]

    @property
    def made(self) -> Set[str]:
        """The files that are new and that no tool named, but for those that were moved there."""
        gone = {c.before.digest for c in self.changes.values() if c.after == ABSENT}
        new = (c for c in self.changes.values() if c.before == ABSENT and c.path not in self.named)
        return {c.path for c in new if not c.after.digest or c.after.digest not in gone}

    @property
    def open(self) -> Set[str]:
        """The paths that a tool was about to change, and that were not compared yet."""
        return self.segment.touched.keys()

    def noted(self) -> list[Change]:
        """Return what is known by now of the paths that tools named; of the open ones, what stood there before."""
        touched, every = self.segment.touched, list[Change]()
        for path in sorted(self.named):
            change = self.changes.get(path)
            if (now := touched.get(path)) is None:
                every += [change] if change is not None else []
            elif change is None or change.before == change.after:
                every.append(Change(path=path, before=now, after=now))
            else:
                is_broken = change.is_broken or change.after != now
                every.append(replace(change, after=now, is_broken=is_broken))
        return every

    @property
    def has_more(self) -> bool:
        """Whether commands changed what no tool named, or may have."""
        if self.is_given_up or self.segment.snapshot is not None:
            return True
        others = (change for path, change in self.changes.items() if path not in self.named)
        return any(change.before != change.after for change in others)

    def _add(self, change: Change) -> None:
        path = change.path
        earlier = self.changes.get(path)
        is_whole = earlier is None or earlier.after == change.before or self.is_given_up
        if not is_whole or (earlier is None and path in self.fresh):
            self.shared.add(path)
        if earlier is not None and earlier.before != earlier.after:
            change = replace(
                change,
                before=earlier.before,
                is_broken=earlier.is_broken or not is_whole,
                is_ignored=change.is_ignored and earlier.is_ignored,
            )
        self.changes[path] = change


def _differences(
    roots: Roots, before: Snapshot, now: Snapshot, take: Take
) -> Iterable[tuple[str, State, State]]:
    for path, known in before.known.items():
        after = now.known.get(path)
        if after is known:
            continue
        # What is left out since, or in a folder that cannot be listed, is still there.
        state = state_at(roots, path, take) if after is None else after[1]
        if not _is_unknown(known[1], state, is_seen=after is not None):
            yield path, known[1], state
    for path, known in now.known.items():
        # What was left out before was there before, for all that is known. A bulk folder that is new stays.
        if path not in before.known and known[1] != BULK and before.covers(path):
            yield path, ABSENT, known[1]


def _is_unknown(before: State, after: State, *, is_seen: bool) -> bool:
    """Return whether nobody can say that the two differ: one was not looked into."""
    is_bulk = BULK in (before, after) or (bool(before.mark) and not is_seen)
    return is_bulk and before.kind == after.kind
