"""The learning store, one private file: recurring tasks, offers, and the person's answers to them."""

import os
import re
import stat
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from ybs.config import private_file
from ybs.config.host import Host
from ybs.core.decoding import from_json
from ybs.core.errors import YbsError
from ybs.core.remedies import Remedy
from ybs.learning.detector import DAY_SECONDS, Cluster, Detector, DetectorState, PastRequest
from ybs.learning.past import requests_in
from ybs.learning.preferences import Preference, Preferences
from ybs.transcripts.reading import SUFFIX

#: At most so many new offers within seven days.
PER_WEEK: Final = 2
VERSION: Final = 1
_MOST_CORRECTIONS: Final = 6
#: What a transcript says was typed where a command made the words.
_COMMAND: Final = re.compile(r"/\S+")
#: So many of the sessions that were read before are looked at each time.
_NEWEST: Final = 100
#: What became of an offer: `waiting` was not made yet.
State: TypeAlias = Literal["waiting", "offered", "dismissed", "accepted"]


class TaskOffer(Struct, kw_only=True):
    """What the person was told of a recurring task. `made` is the file that accepting it wrote.

    `used_at` is when they asked for it last since then; `corrections` is what they said while it was done, `undone` how often they took it back.
    """

    at: float
    state: State = "offered"
    made: str = ""
    used_at: float = 0.0
    corrections: list[str] = field(default_factory=list[str])
    undone: int = 0

    def note(self, request: PastRequest) -> None:
        """Note that the task was asked for again."""
        self.used_at = request.at
        self.corrections = [*self.corrections, *request.corrections][-_MOST_CORRECTIONS:]
        self.undone += request.is_undone


class LearnedTasks(Struct, kw_only=True):
    """All of the file. `read` says how long each session was and up to which line it was read; `since` is when all was forgotten.

    `looked_at` is when all sessions were looked at last, and not only the newest.
    """

    version: int = VERSION
    known: DetectorState = field(default_factory=DetectorState)
    preferences: Preferences = field(default_factory=Preferences)
    read: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    offers: dict[int, TaskOffer] = field(default_factory=dict[int, TaskOffer])
    since: float = 0.0
    looked_at: float = 0.0

    def update(self, folder: Path, now: float | None = None) -> int:
        """Read what sessions hold that was not read yet, the oldest first; return how many requests that were.

        Whether an old session has grown is looked up once a day.
        """
        now = time.time() if now is None else now
        is_due = not 0 <= now - self.looked_at < DAY_SECONDS
        if is_due:
            self.looked_at = now
        count, detector = 0, Detector(self.known)
        for name, size in _changed(folder, self.read, most=None if is_due else _NEWEST):
            _, after = self.read.get(name, (0, 0))
            past = requests_in(folder / name, after=after)
            self.read[name] = (size, past.end)
            for request in past.requests:
                if request.at >= self.since:
                    count += 1
                    if (said := self._as_said(request)) is not None:
                        self._add(said, detector)
        return count

    def _add(self, request: PastRequest, detector: Detector) -> None:
        cluster = detector.add(request)
        offer = self.offers.get(cluster.id) if cluster else None
        if offer is not None and offer.state == "accepted":
            offer.note(request)
        self.preferences.add(request)

    def _as_said(self, request: PastRequest) -> PastRequest | None:
        """Return a request in the person's own words: of a command that was learned those that it stands for, of another one None."""
        if not _COMMAND.fullmatch(request.text):
            return request
        for number, offer in self.offers.items():
            cluster = self.known.clusters.get(number)
            if cluster is not None and f"/{Path(offer.made).stem}" == request.text:
                return replace(request, text=cluster.last[-1].text)
        return None

    def next_offer(self, now: float) -> Cluster | Preference | None:
        """Return what is worth telling the person now, and note that they were told; None most of the time."""
        said = self.preferences.recurring()
        told_at = [*(each.at for each in self.offers.values()), *(each.offered_at for each in said)]
        if sum(at > now - 7 * DAY_SECONDS for at in told_at) >= PER_WEEK:
            return None
        for cluster in self.waiting():
            self.offers[cluster.id] = TaskOffer(at=now)
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
        """Return the recurring tasks, those offered before first."""
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
        self.offers[cluster] = TaskOffer(at=at, state=state, made=made)

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

    def load(self) -> LearnedTasks:
        """Return what was learned; nothing where there is no file. Raises YbsError where it cannot be read, and OSError."""
        data = private_file.read(self.path)
        if data is None:
            return LearnedTasks()
        try:
            learned = from_json(data, LearnedTasks)
        except msgspec.DecodeError as error:
            raise YbsError(
                f"{self.path} cannot be read: {error}",
                remedies=(Remedy("do", "delete it: what recurs is then noticed anew"),),
            ) from error
        return learned if learned.version == VERSION else LearnedTasks(since=learned.since)

    @contextmanager
    def changing(self) -> Generator[LearnedTasks]:
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
            data = msgspec.json.encode(LearnedTasks(since=time.time()))
            private_file.replace(self.path, data, waits=False)
        finally:
            os.close(handle)


def _changed(
    folder: Path, read: dict[str, tuple[int, int]], *, most: int | None
) -> list[tuple[str, int]]:
    """Return the sessions that have grown since they were read, the oldest first, with their sizes.

    Of those that were read only the last `most` by name are looked at, where that is given.
    """
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(SUFFIX))  # noqa: PTH208 - names
    except (FileNotFoundError, NotADirectoryError):
        return []
    known = [name for name in names if name in read]
    fresh = [name for name in names if name not in read and not name.startswith(".")]
    files: list[tuple[float, str, int]] = []
    for name in (*fresh, *(known if most is None else known[-most:])):
        try:
            facts = os.lstat(folder / name)
        except FileNotFoundError:  # it was deleted in the meantime
            continue
        if stat.S_ISREG(facts.st_mode) and facts.st_size != read.get(name, (-1, 0))[0]:
            files.append((facts.st_mtime, name, facts.st_size))
    return [(name, size) for _, name, size in sorted(files)]
