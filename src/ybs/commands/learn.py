"""Recurring tasks as replies: list, explain, turn into a command, schedule or forget them.

`/learn` and `ybs learn` answer with the same functions.
"""

import asyncio
import difflib
import os
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from ybs.config import private_file
from ybs.config.host import Host
from ybs.core.cutting import first_words
from ybs.core.errors import YbsError
from ybs.core.wording import listed, plural
from ybs.learning.detector import Cluster
from ybs.learning.draft import CommandDraft, as_text, draft_of, usual_steps
from ybs.learning.preferences import Preference
from ybs.learning.schedule import (
    Rhythm,
    Scheduled,
    ScheduledTask,
    cron_line,
    keep,
    rhythm_of,
    systemd_units,
)
from ybs.learning.store import LearnedTasks, LearningStore
from ybs.security.launcher import own_program
from ybs.security.paths.opening import held
from ybs.session.reply import Menu, MenuItem, Reply, Row, Table
from ybs.session.session import Session
from ybs.trust.place import place_of

ACTIONS: Final = ("show", "why", "accept", "dismiss", "schedule", "forget")
_LONGEST, _MOST_STEPS = 60, 4
_UNUSED_AFTER_DAYS: Final = 60
_NOTHING: Final = "Nothing recurs so far: a task is noticed when it was asked for on three days."


async def learn(session: Session, argument: str) -> Reply:
    """List the recurring tasks, or do with one what the person says."""
    return await asyncio.to_thread(_answered, session, argument)


def learning_of(session: Session) -> "RecurringTasks":
    """Return what recurs in the sessions of a session's host."""
    folder = session.host.expand(session.config.session.storage_path, session.folder)
    return RecurringTasks(session.host, folder, session.folder)


def _answered(session: Session, argument: str) -> Reply:
    if session.environment.incognito.is_on:
        return Reply(text="Incognito: nothing is learned from this session, and nothing is shown.")
    learning = learning_of(session)
    if argument.startswith("accept p"):
        return _keep(session, learning.statement(argument.removeprefix("accept ").strip()))
    return learning.take(argument)


def _keep(session: Session, text: str) -> Reply:
    path = session.context.memories.keep(text, for_all=True)
    return Reply(text=f"Saved for all projects: {text}\n{session.host.short(str(path))}")


class RecurringTasks:
    """The recurring tasks of a host. `sessions` is the folder of saved sessions, `folder` the project's."""

    def __init__(self, host: Host, sessions: Path, folder: Path) -> None:
        self._host, self._sessions, self._folder = host, sessions, folder
        self.store = LearningStore(host)

    def take(self, argument: str) -> Reply:
        """Do what stands behind `/learn`, but for keeping statements, which needs a session. Raises YbsError and OSError."""
        action, _, rest = argument.partition(" ")
        word, _, where = rest.strip().partition(" ")
        if action in ("", "list"):
            return self.listed()
        if action == "forget":
            return self.forget(word)
        if action == "accept" and where:
            return self.accept(number_of(word), in_project=where == "project")
        return self.answer("show" if action == "accept" else action, word)

    def answer(self, action: str, word: str) -> Reply:
        """Do what is the same for `/learn` and `ybs learn`: show, explain, schedule or dismiss a task. Raises YbsError and OSError."""
        match action:
            case "dismiss" if word.startswith("p"):
                return self.dismiss_statement(word)
            case "show":
                return self.show(number_of(word))
            case "why":
                return self.why(number_of(word))
            case "dismiss":
                return self.dismiss(number_of(word))
            case "schedule":
                return self.schedule(number_of(word))
            case _:
                return Reply.error(f"Usage: /learn [{'|'.join(ACTIONS)}] N")

    def look(self) -> LearnedTasks:
        """Read the sessions that are new, and return what is known. It may take some time. Raises YbsError and OSError."""
        with self.store.changing() as learned:
            learned.update(self._sessions)
        return learned

    def offer(self) -> str:
        """Return one line about what recurs and was never told; empty most of the time. Raises YbsError and OSError."""
        with self.store.changing() as learned:
            learned.update(self._sessions)
            found = learned.next_offer(time.time())
        match found:
            case Cluster(id=number):
                return (
                    f'"{_task(found)}" was {reason(found)}. /learn accept {number} makes a command of it, '
                    f"/learn dismiss {number} does not."
                )
            case Preference(id=number):
                sessions = plural(len(found.sessions), "session")
                return (
                    f'You said "{found.text}" in {sessions}. /learn accept p{number} '
                    f"keeps it for all projects, /learn dismiss p{number} does not."
                )
            case _:
                return ""

    def listed(self) -> Reply:
        """List what recurs."""
        learned = self.look()
        rows = [
            Row((each.id, _state(learned, each), _task(each), _counted(each)))
            for each in learned.listed()
        ]
        said = [
            Row(
                (
                    f"p{each.id}",
                    "said",
                    each.text,  # all of it: that is what is kept
                    f"in {plural(len(each.sessions), 'session')}",
                )
            )
            for each in learned.preferences.recurring()
        ]
        if not rows and not said:
            return Reply(text=_NOTHING)
        notes = (
            "/learn accept N makes a command of a task, and keeps what you said (pN) as a memory; /learn why N says what it is known from.",
        )
        table = Table.of([("", "", "", "")])
        return Reply(tables=(Table(columns=table.columns, rows=(*rows, *said)),), notes=notes)

    def why(self, number: int) -> Reply:
        """Say what a task is known from, and what accepting it would make."""
        cluster = self.store.load().find(number)
        lines = [f"{reason(cluster)[0].upper()}{reason(cluster)[1:]}:"]
        lines += [
            f"  {_date(each.at)}  {first_words(each.text, _LONGEST)}" for each in cluster.last
        ]
        if (rhythm := rhythm_of(cluster)) is not None:
            lines.append(
                f"It comes {rhythm.words}: /learn schedule {number} shows how to have it run by itself."
            )
        return Reply(text="\n".join(lines))

    def show(self, number: int) -> Reply:
        """Show the command that accepting a task would write, or the change of the one that it wrote."""
        learned = self.store.load()
        cluster = learned.find(number)
        path, before, after = self._planned(learned, cluster, self._own_folder())
        diff = "".join(
            difflib.unified_diff(
                before.splitlines(True),
                after.splitlines(True),
                "" if before else "/dev/null",
                str(path),
            )
        )
        if not diff:
            return Reply(text=f"{self._host.short(str(path))} is as it should be.")
        items = (
            MenuItem(
                f"/learn accept {number} mine",
                f"write {self._host.short(str(path))}",
                "for you, in every project",
            ),
            MenuItem(
                f"/learn accept {number} project",
                f"write .ybs/commands/{path.name}",
                "for everybody in this project",
            ),
            MenuItem(f"/learn dismiss {number}", "no", "it is not offered again"),
        )
        if before:
            items = (items[0], MenuItem("/learn", "no", "leave it as it is"))
        return Reply(diff=diff, menu=Menu(f"/{path.stem}", items, is_numbered=False))

    def accept(self, number: int, *, in_project: bool = False) -> Reply:
        """Write the command of a task. Raises YbsError where a file of the name is there that this did not write, and OSError."""
        folder = self._folder / ".ybs/commands" if in_project else self._own_folder()
        with self.store.changing() as learned:
            cluster = learned.find(number)
            path, before, after = self._planned(learned, cluster, folder)
            self._write(path, after, is_new=not before)
            learned.settle(cluster.id, "accepted", made=str(path))
        note = (
            " A project's commands count once it is trusted: `ybs trust show`."
            if in_project
            else ""
        )
        return Reply(
            text=f"Written: {self._host.short(str(path))}. /{path.stem} is there from the next session on.{note}"
        )

    def dismiss(self, number: int) -> Reply:
        """Note that a task is not to be offered again."""
        with self.store.changing() as learned:
            cluster = learned.find(number)
            learned.settle(cluster.id, "dismissed")
        return Reply(text=f'"{_task(cluster)}" is not offered again.')

    def forget(self, word: str) -> Reply:
        """Delete what is known of one task or statement (`3`, `p1`), or of all."""
        if word in ("all", "--all"):
            self.store.forget_all()
            return Reply(
                text="All of it is forgotten. What you ask from now on may be noticed again."
            )
        with self.store.changing() as learned:
            if word.startswith("p"):
                learned.preferences.remove(_statement(learned, word).id)
            else:
                learned.forget(learned.find(number_of(word)).id)
        return Reply(text="Forgotten.")

    def statement(self, word: str) -> str:
        """Return what the person has said again and again, and note that it was kept. Raises YbsError."""
        with self.store.changing() as learned:
            found = _statement(learned, word)
            found.is_settled = True
            return found.text

    def dismiss_statement(self, word: str) -> Reply:
        """Note that something said again and again is not to be kept."""
        return Reply(text=f'"{self.statement(word)}" is not offered again.')

    def schedule(self, number: int, *, mode: str = "plan", with_cron: bool = False) -> Reply:
        """Show the files, or the line for cron, that run a task's command by the clock. Raises YbsError."""
        texts = self._schedule(number, mode=mode, with_cron=with_cron)
        lines = [line for name, text in texts.items() for line in (f"# {name}", text)]
        return Reply(text="\n".join(lines).rstrip())

    def write_schedule(self, number: int, *, mode: str) -> Reply:
        """Write the timer and the service of systemd. Raises YbsError and OSError."""
        texts = self._schedule(number, mode=mode, with_cron=False)
        folder = self._host.home / ".config/systemd/user"
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
        timer = next(name for name in texts if name.endswith(".timer"))
        return Reply(
            text=f"Written to {self._host.short(str(folder))}. It begins with:\n  systemctl --user enable --now {timer}"
        )

    def schedule_in_gateway(self, number: int, *, mode: str, allow: tuple[str, ...]) -> Reply:
        """Have the gateway run a task's command, with exactly these rights. Raises YbsError and OSError."""
        name, folder, rhythm = self._planned_runs(number)
        scheduled = Scheduled(
            name=name,
            folder=folder,
            place=place_of(self._host, self._host.expand(folder, self._host.home)),
            rhythm=rhythm,
            since=time.time(),
            mode=mode,
            allow=allow,
        )
        keep(self._results, scheduled)
        place = self._host.short(str(self._results / f"{name}.json"))
        return Reply(
            text=f"`ybs gateway` runs /{name} {rhythm.words} in the mode {mode}, and answers in your chat and in {name}.md beside {place}; delete that file to end it."
        )

    @property
    def _results(self) -> Path:
        return self._host.state_folder / "scheduled"

    def _schedule(self, number: int, *, mode: str, with_cron: bool) -> dict[str, str]:
        name, folder, rhythm = self._planned_runs(number)
        result = self._results / f"{name}.md"
        private_file.make_folder(result.parent)
        command = (own_program(), "--print", f"/{name}", "--mode", mode)
        task = ScheduledTask(name=name, folder=folder, command=command, result=result)
        return {"crontab -e": cron_line(task, rhythm)} if with_cron else systemd_units(task, rhythm)

    def _planned_runs(self, number: int) -> tuple[str, str, Rhythm]:
        """Return the name of a task's command, the folder that it is for, and when it comes. Raises YbsError."""
        learned = self.store.load()
        cluster = learned.find(number)
        rhythm = rhythm_of(cluster)
        if rhythm is None:
            raise YbsError(f"task {number} has no rhythm: it came on {_days(cluster)}")
        offer = learned.offers.get(number)
        if offer is None or not offer.made:
            raise YbsError(f"there is no command for it yet; first: ybs learn accept {number}")
        name = Path(offer.made).stem
        folder = cluster.last[-1].project or str(self._folder)
        if not folder.isprintable():
            raise YbsError(f"no timer can be written for a folder of such a name: {folder!r}")
        return name, folder, rhythm

    def _write(self, path: Path, text: str, *, is_new: bool) -> None:
        """Write a command's file, a project's through no link: its repository may have brought one. Raises YbsError and OSError."""
        place, top = path.resolve(), path.parents[2]
        is_own = path.is_relative_to(self._own_folder())
        if not is_own and place != top.resolve() / path.relative_to(top):
            raise YbsError(
                f"{path} is or lies behind a link, and is not written; move the link away"
            )
        flags = os.O_WRONLY | os.O_CREAT | (os.O_EXCL if is_new else os.O_TRUNC)
        with held(place, make_folders=True) as entry:
            handle = entry.open(flags)
            with open(handle, "w", encoding="utf-8") as file:  # noqa: PTH123 - opened by descriptor
                file.write(text)

    def _own_folder(self) -> Path:
        return self._host.config_folder / "commands"

    def _planned(
        self, learned: LearnedTasks, cluster: Cluster, folder: Path
    ) -> tuple[Path, str, str]:
        """Return the file of a task's command, its text now (empty: there is none) and the text that it should have."""
        offer = learned.offers.get(cluster.id)
        if offer is not None and offer.made and (path := Path(offer.made)).is_file():
            before = path.read_text(encoding="utf-8")
            return path, before, _with_corrections(before, offer.corrections)
        draft = draft_of(cluster)
        return self._free(draft, folder), "", draft.text

    def _free(self, draft: CommandDraft, folder: Path) -> Path:
        """Return a file for a command of a name that is not taken."""
        names = [draft.name, *(f"{draft.name}-{number}" for number in range(2, 100))]
        for name in names:
            if not (path := folder / f"{name}.md").exists():
                return path
        raise YbsError(f"there are too many commands called {draft.name}")


def reason(cluster: Cluster) -> str:
    """Return in numbers why a task is offered."""
    text = f"asked for {plural(cluster.count, 'time')} on {_days(cluster)}"
    steps = usual_steps(cluster.last)
    return f"{text}, each time: {listed(steps, _MOST_STEPS)}" if steps else text


def number_of(word: str) -> int:
    """Return the number of a task. Raises YbsError."""
    if not word.isdecimal():
        raise YbsError(f"{word or 'nothing'!r} is not the number of a task; /learn lists them")
    return int(word)


def _with_corrections(text: str, corrections: Sequence[str]) -> str:
    """Add what the person said while the task was done, once each."""
    new = [as_text(" ".join(each.split())) for each in dict.fromkeys(corrections)]
    lines = [f"- {each}" for each in new if each and f"- {each}" not in text]
    return "\n".join([text.rstrip(), "", "Also:", *lines, ""]) if lines else text


def _statement(learned: LearnedTasks, word: str) -> Preference:
    for each in learned.preferences.recurring():
        if f"p{each.id}" == word:
            return each
    raise YbsError(f"there is no statement {word}; /learn lists them")


def _state(learned: LearnedTasks, cluster: Cluster) -> str:
    offer = learned.offers.get(cluster.id)
    if offer is None or offer.state != "accepted":
        return learned.state_of(cluster.id)
    if offer.corrections or offer.undone:
        return f"accepted, corrected {plural(len(offer.corrections) + offer.undone, 'time')}: /learn show {cluster.id}"
    used = max(offer.used_at, offer.at)
    is_unused = used and time.time() - used > _UNUSED_AFTER_DAYS * 86_400
    name = Path(offer.made).name
    return f"accepted, not used since {_date(used)}: delete {name}?" if is_unused else "accepted"


def _task(cluster: Cluster) -> str:
    return first_words(cluster.last[-1].text, _LONGEST)


def _counted(cluster: Cluster) -> str:
    return f"{plural(cluster.count, 'time')} on {_days(cluster)}"


def _days(cluster: Cluster) -> str:
    return plural(len(cluster.days), "day")


def _date(at: float) -> str:
    return datetime.fromtimestamp(at).strftime("%Y-%m-%d")
