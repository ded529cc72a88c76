"""Judge the detector of recurring tasks on made-up users: precision, recall, at which occurrence it is offered, offers a week, and its rhythm.

    python bench/recurrence.py [--users 100] [--tuning] [--format json] [--verbose]
    python bench/recurrence.py --history REPOSITORY [--author NAME]

The users of the judged seeds were never looked at while the detector was tuned. A history is replayed as requests: a commit's title asks for
the changes of its files; what would have been offered when is printed, for a person to judge.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parent))

from recurrence_users import DAY, JUDGED_FROM, Asked, User, user

from ybs.learning.detector import Cluster, Detector, DetectorState, PastRequest
from ybs.learning.schedule import rhythm_of
from ybs.learning.store import PER_WEEK

#: A cluster is of the task that this share of its requests is of.
MOSTLY: Final = 0.7
#: A task is due when it was asked for on so many days.
DUE_DAYS: Final = 4
#: A rhythm is right within this share of the true gap.
GAP_SHARE: Final = 0.1


@dataclass
class Judged:
    """What the detector made of users: offers that were right and wrong, tasks that were due and found, and right rhythms."""

    users: int = 0
    requests: int = 0
    right: int = 0
    wrong: list[str] = field(default_factory=list)
    due: int = 0
    found: int = 0
    missed: list[str] = field(default_factory=list)
    occurrences: list[int] = field(default_factory=list)
    offers: int = 0
    days: int = 0
    rhythms: int = 0
    right_rhythms: int = 0
    seconds: float = 0.0

    def figures(self) -> dict[str, float]:
        """Return the measures by their names."""
        return {
            "users": self.users,
            "requests": self.requests,
            "precision": round(self.right / max(self.right + len(self.wrong), 1), 3),
            "recall": round(self.found / max(self.due, 1), 3),
            "median_occurrence": statistics.median(self.occurrences or [0]),
            "offers_a_week": round(7 * self.offers / max(self.days, 1), 2),
            "rhythms_within_a_tenth": round(self.right_rhythms / max(self.rhythms, 1), 3),
            "cpu_ms_a_request": round(1_000 * self.seconds / max(self.requests, 1), 3),
        }


class Offers:
    """What was offered to one user, by the number of the cluster, and what they asked for so far."""

    def __init__(self, judged: Judged) -> None:
        self.detector = Detector(DetectorState())
        self.offered: dict[int, str] = {}
        self.at: list[float] = []
        self.days_of: dict[str, set[int]] = {}
        self._judged = judged
        self._members: dict[int, list[str]] = {}

    def add(self, asked: Asked) -> None:
        """Show the detector a request."""
        cluster = self.detector.add(asked.request)
        if cluster is not None:
            self._members.setdefault(cluster.id, []).append(asked.intent)
        if asked.intent:
            day = int(asked.request.at // DAY)
            self.days_of.setdefault(asked.intent, set()).add(day)

    def offer(self, now: float) -> None:
        """Offer what recurs, as far as the week allows it, and judge it."""
        clusters = self.detector.known.clusters
        free = PER_WEEK - sum(at > now - 7 * DAY for at in self.at)
        known = [clusters[each] for each in self.offered if each in clusters]
        for cluster in self.detector.recurring(known)[: max(free, 0)]:
            names = self._members[cluster.id]
            name = max(set(names), key=names.count)
            is_right = bool(name) and names.count(name) >= MOSTLY * len(names)
            if is_right and name not in self.offered.values():
                self._judged.right += 1
                self._judged.occurrences.append(len(self.days_of[name]))
            else:
                self._judged.wrong.append(cluster.last[-1].text)
            self.offered[cluster.id] = name if is_right else ""
            self.at.append(now)


def judge(judged: Judged, someone: User) -> None:
    """Show a detector the days of a user, one after the other, as ybs does at the start of a session."""
    offers = Offers(judged)
    today = int(someone.asked[0].request.at // DAY)
    begun = time.process_time()
    for asked in someone.asked:
        if (day := int(asked.request.at // DAY)) != today:
            today = day
            offers.offer(asked.request.at)
        offers.add(asked)
    judged.seconds += time.process_time() - begun
    due = {name for name, days in offers.days_of.items() if len(days) >= DUE_DAYS}
    found = set(offers.offered.values()) & due
    judged.users += 1
    judged.requests += len(someone.asked)
    judged.due += len(due)
    judged.found += len(found)
    judged.missed += sorted(due - found)
    judged.offers += len(offers.at)
    judged.days += 30
    clusters = offers.detector.known.clusters
    for number, name in offers.offered.items():
        if name in someone.gaps and number in clusters:
            _judge_rhythm(judged, clusters[number], someone.gaps[name])


def _judge_rhythm(judged: Judged, cluster: Cluster, gap: float) -> None:
    rhythm = rhythm_of(cluster)
    if len(cluster.days) >= DUE_DAYS:
        judged.rhythms += 1
        judged.right_rhythms += rhythm is not None and abs(rhythm.days - gap) <= GAP_SHARE * gap


def replay(repository: str, author: str) -> None:
    """Show a detector the commits of a repository, the oldest first, and print what it offers."""
    form = [
        "log",
        "--reverse",
        "--no-merges",
        "--name-only",
        "--format=%x00%ct%x01%s",
        f"--author={author}",
    ]
    log = subprocess.run(["git", "-C", repository, *form], capture_output=True, check=True)
    detector, offered, at, today = Detector(DetectorState()), list[Cluster](), list[float](), 0
    for entry in log.stdout.decode(errors="replace").split("\0")[1:]:
        head, *files = [line for line in entry.splitlines() if line]
        seconds, _, title = head.partition("\x01")
        now = float(seconds)
        if int(now // DAY) != today:
            today = int(now // DAY)
            free = PER_WEEK - sum(each > now - 7 * DAY for each in at)
            for cluster in detector.recurring(offered)[: max(free, 0)]:
                offered.append(cluster)
                at.append(now)
                day = time.strftime("%Y-%m-%d", time.gmtime(now))
                print(day, f"{cluster.count} times on {len(cluster.days)} days:")
                for request in cluster.last:
                    print(f"    {request.text}  ({', '.join(request.steps[:4])})")
        detector.add(
            PastRequest(title, tuple(f"edit {each.rpartition('/')[2]}" for each in files[:40]), now)
        )
    print(f"{detector.known.requests} requests, {len(offered)} offers")


def main() -> None:
    parser = argparse.ArgumentParser(description="Judge the detector of recurring tasks.")
    parser.add_argument("--users", type=int, default=100)
    parser.add_argument("--tuning", action="store_true", help="the seeds for tuning")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument("--verbose", action="store_true", help="list what was wrong and missed")
    parser.add_argument("--history", metavar="REPOSITORY", help="replay its commits")
    parser.add_argument("--author", default="", help="of this author alone")
    given = parser.parse_args()
    if given.history:
        replay(given.history, given.author)
        return
    first = 0 if given.tuning else JUDGED_FROM
    judged = Judged()
    for seed in range(first, first + given.users):
        judge(judged, user(seed))
    if given.format == "json":
        print(json.dumps(judged.figures()))
        return
    for name, value in judged.figures().items():
        print(f"{name:24} {value}")
    if given.verbose:
        print("wrong:", *judged.wrong, "missed:", *judged.missed, sep="\n  ")


if __name__ == "__main__":
    main()
