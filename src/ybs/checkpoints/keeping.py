"""The undo state of a session: the running turn, known file contents, and the project's store.

What undo would not bring back is asked here before a command (`first_lost`), and the answer is a look that keeps the files, not a
guess at what one would keep: where it fails, all is lost. Nobody else has a rule of their own about it.
"""

import os
import stat
from collections.abc import Callable, Iterable, Sequence, Set
from contextlib import suppress
from pathlib import Path
from time import time_ns

from msgspec import Struct, field
from msgspec.structs import replace

from ybs.checkpoints.scan import (
    FolderListing,
    KnownPaths,
    Scanner,
    Snapshot,
    TooMuch,
    Unkept,
    is_newer,
)
from ybs.checkpoints.states import (
    ABSENT,
    Change,
    State,
    Take,
    digest_of,
    seen_at,
    state_at,
    why_unkept,
)
from ybs.checkpoints.store import Pack, RunningTurn, StoredContents, TurnRecord, store_of
from ybs.core.errors import YbsError
from ybs.security.paths.roots import Roots

#: Beyond it the contents are let go of, and all is read again.
MOST_PACK_BYTES = 2_000_000_000
#: How many looks at the project may be too much before no more are taken.
MOST_FAILURES = 2
#: A look that takes longer is felt around each command. After two of them in a row there is one before the first command
#: and one after the turn.
SLOW_SECONDS = 0.15
_MOST_SLOW = 2

Walk = Callable[[], Iterable[FolderListing]]


class Keeper:
    """Keeps what stood where. Used by one thread at a time. Without `reads`, where nobody can undo anything, nothing is read or kept."""

    def __init__(self, roots: Roots, *, reads: bool = True) -> None:
        self._roots, self._reads = roots, reads
        self.store = store_of(roots.host, roots.folder)
        self._turn = TurnSegments()
        self._on_disk: set[str] = set()
        self._noted: dict[str, Change] | None = None
        self._pack: Pack | None = None
        self._known: dict[str, KnownPaths] = {}
        self._last: Snapshot | None = None
        self._problem = ""
        self.failures = self._slow = 0
        self._is_coarse = self.has_given_up = self.was_unseen = False
        #: When the turn began that ended last; 0 where it ran no commands.
        self.commands_since_ns = 0
        #: The files that commands of that turn made and no tool named; one that was moved there was made before.
        self.made: Set[str] = frozenset()

    @property
    def is_busy(self) -> bool:
        """Whether anything was kept in this turn."""
        return bool(self._turn.changes) or self._turn.segment.is_open

    @property
    def is_unseen(self) -> bool:
        """Whether commands of this turn may have changed what nobody looked at."""
        return self._turn.is_given_up

    @property
    def is_open(self) -> bool:
        """Whether anything was kept that was not compared yet."""
        return self._turn.segment.is_open

    def begin(self) -> None:
        """Begin a turn."""
        self._turn = TurnSegments()
        self._noted = None

    def note_failure(self, problem: str = "") -> None:
        """Count a look at the project that came to nothing; after some there is no other one."""
        self.failures += 1
        self._problem = problem

    def first_lost(
        self,
        paths: Iterable[str],
        walk: Walk,
        is_over: Callable[[], bool],
        *,
        has_jobs: bool,
        is_named: bool,
    ) -> tuple[str, str]:
        """Return the first of these absolute paths that undo would not bring back if it changed now, and why; else empty texts.

        `is_named`: a tool names it, so it is kept by itself; else a command changes it, and counts what a look at the project keeps.
        """
        unkept: Unkept | None = None
        for path in paths:
            try:
                status = os.lstat(path)
            except (OSError, ValueError):
                continue
            try:
                place, state = path, self._kept_ahead(path, status, is_named=is_named)
                if state is None:
                    unkept = unkept or Unkept(self._looked(walk, is_over, has_jobs=has_jobs))
                    place, state = unkept.at(path)
            except (YbsError, OSError) as error:
                return path, getattr(error, "strerror", "") or str(error)
            if state.is_lost:
                name = "it" if place == path else self._roots.show(Path(place))
                return path, f"{name} {why_unkept(state)}"
        return "", ""

    def _kept_ahead(self, path: str, status: os.stat_result, *, is_named: bool) -> State | None:
        """Return what is kept of a path, where that takes no look at all of the project. Raises YbsError and OSError."""
        if stat.S_ISDIR(status.st_mode):
            return ABSENT if is_named else None
        if (before := self._turn.before(path)) is not None:
            return before
        if is_named:
            return self.look_at(path)
        if self._is_blind or (last := self._last) is None:
            return None
        return last.kept(path, status) or (self.look_at(path) if last.has_room_for(path) else None)

    def _looked(self, walk: Walk, is_over: Callable[[], bool], *, has_jobs: bool) -> Snapshot:
        """Look at the project as before the next command. Raises YbsError and OSError."""
        snapshot = self._turn.segment.snapshot
        if snapshot is not None and (has_jobs or self._is_coarse):  # as in `scan`
            return snapshot
        if self._is_blind:
            raise TooMuch(
                self._problem or "what commands change is no longer looked at in this turn"
            )
        snapshot = self._scanned(walk, is_over)
        self._turn.fresh |= snapshot.fresh - self._turn.changes.keys()
        return snapshot

    @property
    def _is_blind(self) -> bool:
        """Whether there are no looks at the project any more, in this turn or at all."""
        return self._turn.is_given_up or self.failures >= MOST_FAILURES

    def touch(self, path: str) -> None:
        """Keep what stands at an absolute path that a tool is about to change. Raises NoRoom and OSError."""
        self._turn.touch(self._roots, path, self._take)

    def scan(self, walk: Walk, is_over: Callable[[], bool], *, has_jobs: bool) -> None:
        """Keep all of the project, unless a look from before still counts. Raises TooMuch, NoRoom and OSError."""
        turn = self._turn
        is_looking = turn.segment.snapshot is not None
        if is_looking and (has_jobs or self._is_coarse):
            return
        is_blind, turn.is_given_up = self._is_blind, True  # until it is done
        if is_blind:
            return
        now = self._scanned(walk, is_over)
        turn.is_given_up = False
        # A job may have ended since, or nobody looked after a tool.
        turn.join(self._roots, now, self._take)
        turn.begin(now)

    def settle(self, walk: Walk, is_over: Callable[[], bool], *, has_jobs: bool) -> None:
        """See what a change left; what changes from now on is not the turn's. Raises NoRoom and OSError.

        While a job runs, and where looks are slow or too much, that is left to the next look, or to the end.
        """
        now: Snapshot | None = None
        if self._turn.segment.snapshot is not None:
            if has_jobs or self._is_coarse:
                return
            try:
                now = self._scanned(walk, is_over)
            except TooMuch:
                self._is_coarse = True
                return
        self._turn.join(self._roots, now, self._take)

    def end(self, walk: Walk, is_over: Callable[[], bool]) -> tuple[list[Change], Set[str]]:
        """End the turn. Return what it changed, and which of these paths somebody else did too.

        Where the last look is too much, the open segment has only what tools changed, and `has_given_up` is set.
        Where commands may have changed what nobody looked at, so is `was_unseen`.
        Raises NoRoom and OSError.
        """
        turn = self._turn
        now: Snapshot | None = None
        try:
            is_looking = turn.segment.snapshot is not None
            if is_looking:
                with suppress(TooMuch):
                    now = self._scanned(walk, is_over)
            self.has_given_up = is_looking and now is None
            self.was_unseen = turn.is_given_up = turn.is_given_up or self.has_given_up
            settled = turn.join(self._roots, now, self._take)
            turn.compare(self._roots, self._take, settled=settled)
            self.commands_since_ns = turn.since_ns if turn.ran_commands else 0
            self.made = turn.made
        finally:
            self.begin()
        return turn.outcome, turn.shared

    def note(self, session: str, turn: int, spell: Callable[[Change], Change]) -> None:
        """Put on disk what the turn did until now, where tools did it. Raises YbsError and OSError."""
        now, before = self._turn, self._noted
        noted = {change.path: change for change in now.noted()}
        fresh = [
            change for path, change in noted.items() if before is None or before.get(path) != change
        ]
        if before is None:
            self._on_disk.clear()  # a note that is begun anew has nothing yet
        states = {change.before.digest: change.before.size for change in fresh}
        new = {digest: size for digest, size in states.items() if digest not in self._on_disk}
        new.pop("", None)
        running = RunningTurn(
            turn=turn,
            changes=tuple(map(spell, fresh)),
            open=frozenset(spell(noted[path]).path for path in now.open),
            has_more=now.has_more,
            contents=new,
        )
        self._noted = None  # until it is done
        self.store.note(session, running, self._get, is_first=before is None)
        self._on_disk |= new.keys()
        self._noted = noted

    def completed(self, change: Change, path: str, *, is_open: bool) -> Change:
        """Return a change of a turn that was killed, with what stands there now."""
        now = self.look_at(path)
        is_nothing = change.before == change.after and not is_open
        if now == change.after or is_nothing:
            return change
        # What a tool was at work on is its own; anything else somebody changed since.
        return replace(change, after=now, is_broken=change.is_broken or not is_open)

    def look_at(self, path: str, *, keeps: bool = True) -> State:
        """Return what stands at an absolute path, and keep its content. Raises NoRoom."""
        return state_at(self._roots, path, self._take if keeps else digest_of)

    def add(
        self,
        session: str,
        changes: Sequence[Change],
        *,
        contents: StoredContents | None = None,
        beyond: str = "",
        since_ns: int = 0,
    ) -> TurnRecord:
        """Keep the changes of a turn on disk; `contents` has those that this session has not seen itself.

        Raises YbsError and OSError.
        """

        def get(digest: str) -> bytes | None:
            data = self._get(digest)
            return contents.get(digest) if data is None and contents is not None else data

        return self.store.add(session, changes, get, beyond=beyond, since_ns=since_ns)

    def close(self) -> None:
        """Let go of the contents."""
        self._known, self._last = {}, None
        if self._pack is not None:
            self._pack.close()
            self._pack = None

    def _scanned(self, walk: Walk, is_over: Callable[[], bool]) -> Snapshot:
        if self._pack is not None and self._pack.size > MOST_PACK_BYTES and not self.is_busy:
            self.close()
        snapshot = Snapshot(self._turn.since_ns)
        scanner = Scanner(self._roots, self._take, is_over, reads=self._reads)
        is_first, self._last = not self._known, None  # the first finds the disk cold
        try:
            scanner.scan(walk(), self._known, snapshot)
        except TooMuch:
            self._known.update(snapshot.known)  # the next look is the quicker for it
            raise
        self._known, self._last = snapshot.known, snapshot
        is_slow = scanner.seconds > SLOW_SECONDS and not is_first
        self._slow = self._slow + 1 if is_slow else 0
        self._is_coarse = self._is_coarse or self._slow >= _MOST_SLOW
        return snapshot

    def _take(self, data: bytes) -> str:
        if not self._reads:
            return digest_of(data)
        if self._pack is None:
            self.store.make()
            self._pack = Pack(self.store.folder)
        return self._pack.take(data)

    def _get(self, digest: str) -> bytes | None:
        return None if self._pack is None else self._pack.get(digest)


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
        known = self.known_before(path)
        return seen_at(roots, path, take) if known is None else (known, None)

    def known_before(self, path: str) -> State | None:
        """Return what stood there before the segment, where that is known."""
        if path in self.touched or self.snapshot is None or not self.snapshot.covers(path):
            return self.touched.get(path)
        known = self.snapshot.known.get(path)
        return ABSENT if known is None else known[1]

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


class TurnSegments(Struct):
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

    def before(self, path: str) -> State | None:
        """Return what is kept of a path from before the turn changed it; None where it did not."""
        change = self.changes.get(path)
        return self.segment.known_before(path) if change is None else change.before

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
        if path not in before.known and not known[1].is_bulk and before.covers(path):
            yield path, ABSENT, known[1]


def _is_unknown(before: State, after: State, *, is_seen: bool) -> bool:
    """Return whether nobody can say that the two differ: one was not looked into."""
    is_bulk = before.is_bulk or after.is_bulk or (bool(before.mark) and not is_seen)
    return is_bulk and before.kind == after.kind
