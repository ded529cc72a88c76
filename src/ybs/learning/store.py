"""What was learned from saved sessions, in one file of the person's: what recurs, what was offered, and what they said to it."""

import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec import Struct, field

from ybs.config import private_file
from ybs.config.host import Host
from ybs.core.errors import YbsError
from ybs.core.remedies import Remedy
from ybs.learning.detector import DAY_SECONDS, Cluster, Detector, Known, Request
from ybs.learning.past import requests_in
from ybs.learning.preferences import Preference, Preferences
from ybs.transcripts.saved import SUFFIX

#: At most so many new offers within seven days.
PER_WEEK: Final = 2
VERSION: Final = 1
_MOST_CORRECTIONS: Final = 6
#: What became of an offer: `waiting` was not made yet.
State: TypeAlias = Literal["waiting", "offered", "dismissed", "accepted"]


class Offer(Struct, kw_only=True):
    """What the person was told of a recurring task. `made` is the file that accepting it wrote.

    `used_at` is when they asked for it last since then; `corrections` is what they said while it was done, `undone` how often they took it back.
    """

    at: float
    state: State = "offered"
    made: str = ""
    used_at: float = 0.0
    corrections: list[str] = field(default_factory=list[str])
    undone: int = 0

    def note(self, request: Request) -> None:
        """Note that the task was asked for again."""
        self.used_at = request.at
        self.corrections = [*self.corrections, *request.corrections][-_MOST_CORRECTIONS:]
        self.undone += request.is_undone


class Learned(Struct, kw_only=True):
    """All of the file. `read` says how long each session was and up to which line it was read; `since` is when all was forgotten."""

    version: int = VERSION
    known: Known = field(default_factory=Known)
    preferences: Preferences = field(default_factory=Preferences)
    read: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    offers: dict[int, Offer] = field(default_factory=dict[int, Offer])
    since: float = 0.0

    def update(self, folder: Path) -> int:
        """Read what sessions hold that was not read yet, the oldest first; return how many requests that were."""
        count, detector = 0, Detector(self.known)
        for name, size in _changed(folder, self.read):
            _, after = self.read.get(name, (0, 0))
            past = requests_in(folder / name, after=after)
            self.read[name] = (size, past.end)
            for request in past.requests:
                if request.at >= self.since:
                    count += 1
                    cluster = detector.add(request)
                    offer = self.offers.get(cluster.id) if cluster else None
                    if offer is not None and offer.state == "accepted":
                        offer.note(request)
                    self.preferences.add(request)
        return count

    def next_offer(self, now: float) -> Cluster | Preference | None:
        """Return what is worth telling the person now, and note that they were told; None most of the time."""
        said = self.preferences.recurring()
        told_at = [*(each.at for each in self.offers.values()), *(each.offered_at for each in said)]
        if sum(at > now - 7 * DAY_SECONDS for at in told_at) >= PER_WEEK:
            return None
        for cluster in self.waiting():
            self.offers[cluster.id] = Offer(at=now)
            return cluster
        for preference in said:
            if not preference.offered_at:
                preference.offered_at = now
                return preference
        return None

    def waiting(self) -> list[Cluster]:
        """Return what recurs and was never offered."""
        clusters = self.known.clusters
        return Detector(self.known).recurring(
            [clusters[each] for each in self.offers if each in clusters]
        )

    def state_of(self, cluster: int) -> State:
        """Return what became of a task."""
        return self.offers[cluster].state if cluster in self.offers else "waiting"

    def listed(self) -> list[Cluster]:
        """Return what recurs, that which was offered first."""
        clusters = self.known.clusters
        offered = [clusters[each] for each in self.offers if each in clusters]
        return [*offered, *self.waiting()]

    def find(self, number: int) -> Cluster:
        """Return a recurring task by its number. Raises YbsError."""
        for cluster in self.listed():
            if cluster.id == number:
                return cluster
        known = ", ".join(str(each.id) for each in self.listed()) or "none"
        raise YbsError(f"there is no recurring task {number}; there are: {known}")

    def settle(self, cluster: int, state: State, *, made: str = "") -> None:
        """Note what the person said to a task; it is not offered again."""
        at = self.offers[cluster].at if cluster in self.offers else 0.0
        self.offers[cluster] = Offer(at=at, state=state, made=made)

    def forget_session(self, name: str) -> None:
        """Delete the words of a session that the person deletes; that a task recurs stays known from the others."""
        self.read.pop(f"{name}{SUFFIX}", None)
        for cluster in list(self.known.clusters.values()):
            cluster.last = [each for each in cluster.last if each.session != name]
            if not cluster.last:
                self.forget(cluster.id)
        for stated in self.preferences.stated:
            stated.sessions.discard(name)
        self.preferences.stated = [each for each in self.preferences.stated if each.sessions]

    def forget(self, cluster: int) -> None:
        """Delete all that is known of a task. It may be noticed again from new sessions."""
        self.known.clusters.pop(cluster, None)
        self.offers.pop(cluster, None)


class LearningStore:
    """The file of a host."""

    def __init__(self, host: Host) -> None:
        self.path = host.state_folder / "learning.json"

    def load(self) -> Learned:
        """Return what was learned; nothing where there is no file. Raises YbsError where it cannot be read, and OSError."""
        data = private_file.read(self.path)
        if data is None:
            return Learned()
        try:
            learned = msgspec.json.decode(data, type=Learned)
        except msgspec.DecodeError as error:
            raise YbsError(
                f"{self.path} cannot be read: {error}",
                remedies=(Remedy("do", "delete it: what recurs is then noticed anew"),),
            ) from error
        return learned if learned.version == VERSION else Learned(since=learned.since)

    @contextmanager
    def changing(self) -> Generator[Learned]:
        """Load it, and save it at the end; one process at a time. Raises Busy, YbsError and OSError."""
        handle = private_file.open_locked(self.path.with_suffix(".lock"))
        try:
            learned = self.load()
            yield learned
            private_file.replace(self.path, msgspec.json.encode(learned), waits=False)
        finally:
            os.close(handle)

    def forget_all(self) -> None:
        """Delete all of it, and learn from later requests only. Raises Busy and OSError."""
        handle = private_file.open_locked(self.path.with_suffix(".lock"))
        try:
            data = msgspec.json.encode(Learned(since=time.time()))
            private_file.replace(self.path, data, waits=False)
        finally:
            os.close(handle)


def _changed(folder: Path, read: dict[str, tuple[int, int]]) -> list[tuple[str, int]]:
    """Return the sessions that have grown since they were read, the oldest first, with their sizes."""
    try:
        with os.scandir(folder) as entries:
            files = [
                (facts.st_mtime, entry.name, facts.st_size)
                for entry in entries
                if entry.name.endswith(SUFFIX)
                and not entry.name.startswith(".")
                and entry.is_file(follow_symlinks=False)
                if (facts := entry.stat(follow_symlinks=False)).st_size
                != read.get(entry.name, (-1, 0))[0]
            ]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [(name, size) for _, name, size in sorted(files)]
