"""What stood at each path before a turn changed it: what tools name, and all of the project before a command."""

import os
from collections.abc import Iterable

from msgspec import Struct

from ybs.security.paths import Roots
from ybs.transcripts.scan import Snapshot
from ybs.transcripts.states import ABSENT, Change, State, Take, state_at


class Turn(Struct):
    """The states from before, of one turn. `snapshot` is there once a command was about to run."""

    touched: dict[str, State] = {}
    snapshot: Snapshot | None = None
    is_given_up: bool = False

    def touch(self, roots: Roots, path: str, take: Take) -> None:
        """Keep what stands at an absolute path, unless that is known, and which folders are not there yet."""
        while path not in self.touched:
            state = self.touched[path] = self._before(roots, path, take)
            path = os.path.dirname(path)  # noqa: PTH120 - texts throughout
            if state != ABSENT or state_at(roots, path).kind == "folder":
                return

    def _before(self, roots: Roots, path: str, take: Take) -> State:
        """Return what stood there before the turn: a command may have changed it since."""
        if self.snapshot is not None and self.snapshot.covers(path):
            known = self.snapshot.known.get(path)
            return ABSENT if known is None else known[1]
        return state_at(roots, path, take)

    def changes(self, roots: Roots, now: Snapshot | None, take: Take) -> list[Change]:
        """Return what is another one now, by path; `now` is a second snapshot, where there was a first."""
        pairs = {path: (state, state_at(roots, path, take)) for path, state in self.touched.items()}
        if self.snapshot is not None and now is not None:
            for path, before, after in _differences(roots, self.snapshot, now, take):
                pairs.setdefault(path, (before, after))
        return [
            Change(path=path, before=before, after=after)
            for path, (before, after) in sorted(pairs.items())
            if before != after
        ]


def _differences(
    roots: Roots, before: Snapshot, now: Snapshot, take: Take
) -> Iterable[tuple[str, State, State]]:
    for path, known in before.known.items():
        after = now.known.get(path)
        if after is known:
            continue
        # What is ignored since, or in a folder that cannot be listed, is still there.
        yield path, known[1], state_at(roots, path, take) if after is None else after[1]
    for path, known in now.known.items():
        # What was ignored before the turn was there before the turn, for all that is known.
        if path not in before.known and before.covers(path):
            yield path, ABSENT, known[1]
