"""What a session keeps for undo: the turn that goes on, the contents it has seen, and the project's shelf."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from ybs.security.paths import Roots
from ybs.transcripts.checkpoints import Record, shelf_of
from ybs.transcripts.objects import Pack
from ybs.transcripts.scan import Known, Listing, Scanner, Snapshot, TooMuch
from ybs.transcripts.states import Change
from ybs.transcripts.turn import Turn

#: Beyond it the contents are let go of, and all is read again.
MOST_PACK_BYTES = 2_000_000_000
#: How many looks at the project may be too much before no more are taken.
MOST_FAILURES = 2

Walk = Callable[[], Iterable[Listing]]


class Keeper:
    """Keeps what stood where. Used by one thread at a time."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self.shelf = shelf_of(roots.folder)
        self._turn = Turn()
        self._pack: Pack | None = None
        self._known: dict[str, Known] = {}
        self.failures = 0
        self.has_given_up = False

    @property
    def is_busy(self) -> bool:
        """Tell whether anything was kept in this turn."""
        return bool(self._turn.touched) or self._turn.snapshot is not None

    def begin(self) -> None:
        """Begin a turn."""
        self._turn = Turn()

    def touch(self, path: str) -> None:
        """Keep what stands at an absolute path that a tool is about to change. Raises NoRoom and OSError."""
        self._turn.touch(self._roots, path, self._take)

    def scan(self, walk: Walk, is_over: Callable[[], bool]) -> None:
        """Keep all of the project, once in a turn. Raises TooMuch, NoRoom and OSError."""
        turn = self._turn
        if turn.snapshot is None and not turn.is_given_up and self.failures < MOST_FAILURES:
            turn.is_given_up = True  # until it is done
            turn.snapshot = self._scanned(walk, is_over)

    def end(self, walk: Walk, is_over: Callable[[], bool]) -> list[Change]:
        """End the turn and return what it changed. Raises NoRoom and OSError.

        Where the second look is too much, only what tools changed is in it, and `has_given_up` is set.
        """
        turn, self._turn = self._turn, Turn()
        now: Snapshot | None = None
        if turn.snapshot is not None:
            with suppress(TooMuch):
                now = self._scanned(walk, is_over)
        self.has_given_up = turn.snapshot is not None and now is None
        return turn.changes(self._roots, now, self._take)

    def add(self, session: str, changes: Sequence[Change]) -> Record:
        """Keep the changes of a turn on disk. Raises YbsError and OSError."""
        return self.shelf.add(session, changes, self._get)

    def close(self) -> None:
        """Let go of the contents."""
        self.begin()
        self._known = {}
        if self._pack is not None:
            self._pack.close()
            self._pack = None

    def _scanned(self, walk: Walk, is_over: Callable[[], bool]) -> Snapshot:
        if self._pack is not None and self._pack.size > MOST_PACK_BYTES and not self.is_busy:
            self.close()
        snapshot = Snapshot()
        try:
            Scanner(self._roots, self._take, is_over).scan(walk(), self._known, snapshot)
        except TooMuch:
            self._known.update(snapshot.known)  # the next look is the quicker for it
            raise
        self._known = snapshot.known
        return snapshot

    def _take(self, data: bytes) -> str:
        if self._pack is None:
            self.shelf.make()
            self._pack = Pack(self.shelf.folder)
        return self._pack.take(data)

    def _get(self, digest: str) -> bytes | None:
        return None if self._pack is None else self._pack.get(digest)
