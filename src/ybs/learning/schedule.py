"""The rhythm of a recurring task, and what runs it by the clock: the gateway, a systemd timer or a line for cron.

A missed run is made up for once (gateway, systemd) or left out (cron), two runs never overlap, and times are local ones, so that daylight saving moves nothing.
"""

import shlex
import statistics
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from ybs.config import private_file
from ybs.core.decoding import from_json
from ybs.core.errors import YbsError
from ybs.learning.detector import Cluster
from ybs.trust.place import Place

_NEEDED_DAYS: Final = 4
#: The median distance of the gaps from their median, as a share of it: beyond this there is no rhythm.
_MOST_SPREAD: Final = 0.34
_WEEKDAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_WEEK: Final = 7


class Rhythm(Struct, frozen=True, kw_only=True):
    """How often a task comes: each so many days, at which hour and minute (local), and on which days of the week (0 is Monday; empty: any)."""

    days: float
    hour: int
    minute: int = 0
    weekdays: tuple[int, ...] = ()

    def holds(self, day: date) -> bool:
        """Return whether the task comes on a day. What comes each so many days is counted from the first of the month, as systemd does."""
        if self.weekdays:
            return day.weekday() in self.weekdays
        return self.days <= 1 or (day.day - 1) % round(self.days) == 0

    @property
    def words(self) -> str:
        """How a person says it."""
        at = f"at {self.hour:02}:{self.minute:02}"
        if len(self.weekdays) == 1:
            return f"each {_WEEKDAYS[self.weekdays[0]]} {at}"
        if self.weekdays:
            return f"on {_WEEKDAYS[self.weekdays[0]]} to {_WEEKDAYS[self.weekdays[-1]]} {at}"
        return f"each day {at}" if self.days <= 1 else f"each {self.days:g} days {at}"


def rhythm_of(cluster: Cluster) -> Rhythm | None:
    """Return the rhythm of a task; None where it has none."""
    days = cluster.days
    if len(days) < _NEEDED_DAYS:
        return None
    gaps = [later - earlier for earlier, later in pairwise(days)]
    gap = statistics.median(gaps)
    spread = statistics.median(abs(each - gap) for each in gaps)
    if spread > _MOST_SPREAD * gap:
        return None
    times = [datetime.fromtimestamp(each.at) for each in cluster.last]
    minutes = round(statistics.median(each.hour * 60 + each.minute for each in times) / 15) * 15
    hour, minute = divmod(min(minutes, 24 * 60 - 15), 60)
    return Rhythm(days=gap, hour=hour, minute=minute, weekdays=_weekdays(gap, times, days))


def _weekdays(gap: float, times: Sequence[datetime], days: Sequence[int]) -> tuple[int, ...]:
    seen = Counter(each.weekday() for each in times)
    if gap == _WEEK:
        return (seen.most_common(1)[0][0],)
    #: 1970-01-01 was a Thursday.
    has_weekend = any((day + 3) % _WEEK > 4 for day in days)
    return (0, 1, 2, 3, 4) if gap == 1 and not has_weekend and len(days) > 5 else ()


class Scheduled(Struct, frozen=True, kw_only=True):
    """A command of the person's that the gateway runs by the clock, in a folder and a mode, with rules such as `--allow` takes.

    `since` is when they agreed, and `place` the folder that they agreed to; `begun` is the time of the last run that was begun, and `ended` of the last that came to its end.
    """

    name: str
    folder: str
    mode: str
    rhythm: Rhythm
    since: float
    allow: tuple[str, ...] = ()
    place: Place = ""
    begun: float = 0.0
    ended: float = 0.0

    def due(self, now: datetime) -> float:
        """Return the time of the run that is due, the newest where several were missed; 0 where none is."""
        at = time(self.rhythm.hour, self.rhythm.minute)
        for back in range(32):
            day = now.date() - timedelta(days=back)
            moment = datetime.combine(day, at).timestamp()
            if moment <= now.timestamp() and self.rhythm.holds(day):
                return moment if moment > max(self.since, self.begun) else 0.0
        return 0.0


def scheduled_in(folder: Path) -> list[Scheduled]:
    """Return what the gateway is to run; what cannot be read is left out."""
    found: list[Scheduled] = []
    for file in sorted(folder.glob("*.json")):
        with suppress(OSError, YbsError, msgspec.DecodeError):
            found.append(from_json(private_file.read(file) or b"", Scheduled))
    return found


def keep(folder: Path, scheduled: Scheduled) -> None:
    """Write down what the gateway is to run. Raises Unsafe and OSError."""
    private_file.replace(folder / f"{scheduled.name}.json", msgspec.json.encode(scheduled))


class ScheduledTask(Struct, frozen=True, kw_only=True):
    """A command line that is to run by the clock, in a folder; what it prints is kept in the file `result`."""

    name: str
    folder: str
    command: tuple[str, ...]
    result: Path


def systemd_units(task: ScheduledTask, rhythm: Rhythm) -> dict[str, str]:
    """Return the timer and the service by their file names, for `~/.config/systemd/user`."""
    service = f"""\
[Unit]
Description=ybs: /{task.name}

[Service]
Type=oneshot
WorkingDirectory={_systemd(task.folder)}
ExecStart={" ".join(map(_systemd_word, task.command))}
StandardOutput=truncate:{_systemd(str(task.result))}
TimeoutStartSec=1h
"""
    timer = f"""\
[Unit]
Description=ybs: /{task.name} {rhythm.words}

[Timer]
OnCalendar={_on_calendar(rhythm)}
Persistent=true

[Install]
WantedBy=timers.target
"""
    return {f"ybs-{task.name}.service": service, f"ybs-{task.name}.timer": timer}


def cron_line(task: ScheduledTask, rhythm: Rhythm) -> str:
    """Return the line for `crontab -e`."""
    day, weekday = "*", "*"
    if rhythm.weekdays:
        weekday = ",".join(str((each + 1) % _WEEK) for each in rhythm.weekdays)
    elif rhythm.days > 1:
        day = f"*/{round(rhythm.days)}"
    lock = shlex.quote(f"{task.result}.lock")
    run = f"cd {shlex.quote(task.folder)} && flock -n {lock} {shlex.join(task.command)} > {shlex.quote(str(task.result))}"
    return f"{rhythm.minute} {rhythm.hour} {day} * {weekday} {run}".replace("%", "\\%")


def _on_calendar(rhythm: Rhythm) -> str:
    at = f"{rhythm.hour:02}:{rhythm.minute:02}:00"
    if rhythm.weekdays:
        return f"{','.join(_WEEKDAYS[each] for each in rhythm.weekdays)} *-*-* {at}"
    return f"*-*-* {at}" if rhythm.days <= 1 else f"*-*-1/{round(rhythm.days)} {at}"


def _systemd(text: str) -> str:
    return text.replace("%", "%%")


def _systemd_word(text: str) -> str:
    escaped = _systemd(text).replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$")
    return f'"{escaped}"'
