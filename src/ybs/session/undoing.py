"""Undo and redo the file changes of each turn, shell effects included, without git."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from ybs.agent.project_walk import SCAN_SECONDS, listings, walked
from ybs.checkpoints.states import Change, KeptTurn, Recovered, Restored, State
from ybs.checkpoints.store import StoredContents
from ybs.core.cutting import first_words
from ybs.core.errors import Refused, ToolError, YbsError
from ybs.core.ports import Effect
from ybs.core.threads import in_thread
from ybs.core.wording import listed, plural
from ybs.security.paths.names import real_name
from ybs.security.paths.roots import Roots

if TYPE_CHECKING:
    # Nothing of it is needed before the first change.
    from ybs.checkpoints.keeping import Keeper, Walk
    from ybs.checkpoints.planning import RestoreStep
    from ybs.checkpoints.states import Change
    from ybs.checkpoints.store import RunningTurn, TurnRecord
    from ybs.tools.searching.walk import Deadline

#: A larger file is named, not compared.
MOST_COMPARED_BYTES = 1_000_000
MOST_CHARS = 2_000_000

Get = Callable[[str], bytes | None]


def line_of(change: Change) -> str:
    """Return the change of a path in words, as `edited src/a.py`."""
    before, after = change.before, change.after
    slash = "/" if "folder" in (before.kind, after.kind) else ""
    return f"{_verb_of(before, after)} {change.path}{slash}{_detail_of(before, after)}"


def _verb_of(before: State, after: State) -> str:
    if before.kind == "absent":
        return "created"
    if after.kind == "absent":
        return "deleted"
    if before.kind != after.kind:
        return "replaced"
    is_mode = before.digest == after.digest and before.target == after.target
    return "changed the mode of" if is_mode and not after.mark else "edited"


def _detail_of(before: State, after: State) -> str:
    if after.kind == "link":
        return f" (a link to {after.target})"
    if "absent" not in (before.kind, after.kind) and before.mode != after.mode:
        return f" ({before.mode:o} to {after.mode:o})"
    return ""


def diff_of_turn(changes: Iterable[Change], get: Get) -> str:
    """Return the changes as a unified diff; what has no lines to show is named in one. Raises OSError."""
    pieces: list[str] = []
    left = MOST_CHARS
    for change in changes:
        for piece in _chunks(change, get) if left > 0 else (line_of(change),):
            pieces.append(piece)
            left -= len(piece)
    return "\n".join(pieces)


def _chunks(change: Change, get: Get) -> Iterator[str]:
    before, after = change.before, change.after
    line = line_of(change)
    if change.why_not_redone:
        yield f"{line} (not kept)"
    elif "file" not in (before.kind, after.kind) or before.digest == after.digest:
        yield line
    elif max(before.size, after.size) > MOST_COMPARED_BYTES:
        yield f"{line} ({before.size:,} to {after.size:,} bytes)"
    else:
        yield from _compared(change, line, get)


def _compared(change: Change, line: str, get: Get) -> Iterator[str]:
    before, after = change.before, change.after
    old, new = _content(before, get), _content(after, get)
    if old is None or new is None:
        yield f"{line} (its saved copy is missing)"
        return
    is_plain = "absent" in (before.kind, after.kind) or before.mode == after.mode
    if old == new or not is_plain:
        yield line
    from ybs.tools.editing.changes import text_diff  # only who looks at a diff needs it

    if text := text_diff(old, new, change.path).text:
        yield text


def _content(state: State, get: Get) -> bytes | None:
    return get(state.digest) if state.digest else b""


def named(changes: Sequence[Change]) -> tuple[str, ...]:
    """Return the changed paths; of folders only those in which nothing else changed, with a slash at the end."""
    above = {str(folder) for change in changes for folder in Path(change.path).parents}
    named = ((change.path, _is_folder(change)) for change in changes)
    return tuple(
        f"{path}/" if is_folder else path
        for path, is_folder in named
        if not (is_folder and path in above)
    )


def _is_folder(change: "Change") -> bool:
    """Return whether there was and is nothing but a folder."""
    return {change.before.kind, change.after.kind} <= {"folder", "absent"}


_Value = TypeVar("_Value")
#: More lines than this are not in the message of a commit.
_MOST_LINES = 20
_BEYOND = "What commands change in files here cannot be undone"
_BEYOND_TURN = "What this turn's commands changed in files cannot be undone"
_TOO_MUCH = "there is too much to look at"
_IN_INCOGNITO = "incognito mode keeps no copies for undo"
_WHY_GONE = "has no saved copy any more"
_IN_BULK = "something changed in {}, where undo keeps no copies"
_NOT_WALKED = "of {} undo only looks at the project's folder"


class Checkpoints:
    """The checkpoints of a session. `may_write` false (incognito): there are none.

    `has_jobs` tells whether a command of the session runs in the background: what it changes is the turn's.
    """

    def __init__(
        self,
        roots: Roots,
        session: str,
        *,
        may_write: bool,
        has_jobs: Callable[[], bool] = lambda: False,
        turn: Callable[[], int] | None = None,
    ) -> None:
        self._roots, self.session, self._may_write = roots, session, may_write
        self._has_jobs = has_jobs
        #: The number of the turn that runs; None where nobody could go on with it after a kill.
        self.turn = turn
        #: What the person should be told once, such as that shell effects cannot be undone; empty: nothing.
        self.notice = ""
        self._lock = Lock()  # a look that was cancelled may take a moment to end
        self._making = Lock()
        self._made: Keeper | None = None
        self._said = ""
        self._is_noted = False

    def take_notice(self) -> str:
        """Return a note for the person, once; empty if there is none."""
        notice, self.notice = self.notice, ""
        return notice

    def begin(self) -> None:
        """Begin a turn; nothing is looked at yet."""
        if self._may_write:
            self._keeper.begin()

    async def before_change(self, effect: Effect, paths: Sequence[str]) -> None:
        """Keep what a tool is about to change. Raises ToolError.

        What runs commands, or does not say what it changes, may change anything: all of the project is kept.
        """
        if not self._may_write or effect == "read":
            return
        is_all = effect == "execute" or not paths
        try:
            if is_all:
                await self._keep_all()
            else:
                await self._working(lambda _: self._keep(paths), in_thread)
        except Refused:
            raise  # the tool is refused as well
        except ToolError as error:
            self.notice = f"Changes from now on cannot be undone: {error}."
            raise

    def first_lost(self, paths: Iterable[str], *, is_named: bool = False) -> tuple[str, str]:
        """Return the first of these absolute paths that undo would not bring back, and why, as `Keeper.first_lost` does.

        It may take a moment: call it in a thread.
        """
        from ybs.tools.searching.walk import Deadline

        if not self._may_write:
            path = next(filter(os.path.lexists, paths), "")
            return path, _IN_INCOGNITO if path else ""
        with self._lock:
            look, has_jobs = self._look(Deadline(SCAN_SECONDS)), self._has_jobs()
            return self._keeper.first_lost(paths, *look, has_jobs=has_jobs, is_named=is_named)

    async def after_change(self) -> None:
        """See what was changed since `before_change`: what changes later is somebody else's. Raises ToolError."""
        if self._made is None or not self._made.is_open:
            return
        keeper, has_jobs = self._made, self._has_jobs()

        def settle(deadline: "Deadline") -> None:
            keeper.settle(*self._look(deadline), has_jobs=has_jobs)
            self._note()

        await self._working(settle, in_thread)

    async def end(self) -> KeptTurn | None:
        """End the turn and keep what it changed; None where nothing did, or where `notice` says why not."""
        keeper = self._made
        if keeper is None or not (keeper.is_busy or keeper.is_unseen or self._is_noted):
            return None
        try:
            return await self._working(self._end)
        except ToolError as error:
            self.notice = f"What this turn changed cannot be undone: {error}."
            self._is_noted = False  # the note stays: all that is left of it
            return None

    async def recover(self) -> Recovered | None:
        """Complete the record of a turn that was killed; None where there is none. Raises ToolError."""
        return await self._working(lambda _: self._recover())

    async def told(self) -> None:
        """Note that everybody knows how the turn ended."""
        if self._is_noted:
            await self._working(lambda _: self._forget())

    async def undo(self, names: Sequence[str], *, force: bool = False) -> Restored:
        """Take back what these turns changed; they are named newest first, for clocks go backwards too.

        Raises YbsError where a checkpoint is gone.
        """
        return await self._working(partial(self._restore, names, force=force))

    async def redo(
        self, names: Sequence[str], *, force: bool = False, only: Collection[str] | None = None
    ) -> Restored:
        """Do again what was undone, in `only` these paths; the turns are named newest first.

        A path that the person had taken back before the undo stays as it is. Raises YbsError where a checkpoint is gone.
        """
        restore = partial(self._restore, names, force=force, is_redo=True, only=only)
        return await self._working(restore)

    def changes(self, name: str) -> tuple[str, ...]:
        """Return a line for each path that the turn changed, as `edited src/a.py`. Raises YbsError."""
        return tuple(map(line_of, self._record(name).changes))

    def diff(self, name: str) -> str:
        """Return the turn's changes as a unified diff; what has no lines is named in one. Raises YbsError."""
        contents = StoredContents()
        return diff_of_turn(self._record(name, contents).changes, contents.get)

    def message(self, name: str, paths: Collection[str | Path], columns: int) -> str:
        """Return a commit's message for some of the paths that a turn changed, with a title of so many columns."""
        contents = StoredContents()
        changes = self._record(name, contents).changes
        return commit_message([each for each in changes if each.path in paths], columns)

    def close(self) -> None:
        """Let go of the contents that were kept for the session alone."""
        if self._made is not None:
            self._made.close()
            self._made = None

    @property
    def _keeper(self) -> "Keeper":
        with self._making:
            if self._made is None:
                from ybs.checkpoints.keeping import Keeper

                self._made = Keeper(self._roots)
            return self._made

    async def _working(
        self,
        work: "Callable[[Deadline], _Value]",
        run: Callable[[Callable[[], _Value]], Awaitable[_Value]] = asyncio.to_thread,
    ) -> _Value:
        """Work in a thread; it depends on `run` whether the exit waits for it. Raises ToolError where the disk does not let it."""
        from ybs.tools.searching.walk import Deadline

        deadline = Deadline(SCAN_SECONDS)

        def locked() -> _Value:
            with self._lock:
                return work(deadline)

        try:
            return await run(locked)
        except OSError as error:
            raise ToolError(f"no copy can be kept: {error.strerror or error}") from error
        except ToolError:
            raise
        except YbsError as error:
            raise ToolError(str(error)) from error
        finally:
            deadline.cancel()

    def _look(self, deadline: "Deadline") -> "tuple[Walk, Callable[[], bool]]":
        """Return how the project is walked through, and what ends that early."""
        return (lambda: listings(self._roots, deadline)), (lambda: deadline.is_over)

    def _keep(self, paths: Sequence[str]) -> None:
        """Keep each path as it is: a tool has followed the links by then, and a merge changes the links themselves.

        One that may not be written is left out alone. Raises Refused for it, once the others are kept.
        """
        refused: list[str] = []
        for path in paths:
            try:
                real = self._roots.judge(path, is_write=True, is_link_followed=False)
            except Refused as error:
                refused.append(str(error))
            else:
                self._keeper.touch(str(real))
        self._note()
        if refused:
            raise Refused("; ".join(refused))

    def _note(self) -> None:
        """Have the disk know of the turn, so that a kill does not take it along."""
        if self.turn is not None:
            self._is_noted = True
            self._keeper.note(self.session, self.turn(), self._spelled)

    def _forget(self) -> None:
        self._is_noted = False
        self._keeper.store.forget(self.session)

    def _recover(self) -> Recovered | None:
        keeper, contents = self._keeper, StoredContents()
        running = keeper.store.running(self.session, contents)
        if running is None or self.turn is None or running.turn != self.turn():
            self._forget()  # another turn has ended since: it was elsewhere
            return None
        self._is_noted = True
        if running.record:
            kept = self._kept(self._record(running.record))
            return Recovered(kept=kept, has_more=running.has_more)
        now = (
            keeper.completed(change, path, is_open=change.path in running.open)
            for path, change in sorted(self._by_path(running.changes).items())
        )
        changes = [change for change in now if change.before != change.after]
        if not changes:
            return Recovered(kept=None, has_more=running.has_more)
        kept = self._add(changes, running, contents=contents)
        return Recovered(kept=kept, has_more=running.has_more)

    def _add(
        self,
        changes: "Sequence[Change]",
        running: "RunningTurn | None",
        *,
        contents: StoredContents | None = None,
        beyond: str = "",
        since_ns: int = 0,
    ) -> KeptTurn:
        """Keep a turn; until all know of it the disk has its name, in a new note: the old one may have broken off."""
        record = self._keeper.add(
            self.session, changes, contents=contents, beyond=beyond, since_ns=since_ns
        )
        if running is not None:
            running = replace(running, changes=(), open=frozenset(), record=record.name)
            self._keeper.store.note(self.session, running, is_first=True)
        return self._kept(record)

    async def _keep_all(self) -> None:
        from ybs.checkpoints.scan import TooMuch

        has_jobs = self._has_jobs()

        def keep(deadline: "Deadline") -> str:
            try:
                self._keeper.scan(*self._look(deadline), has_jobs=has_jobs)
            except TooMuch as error:
                return str(error)
            finally:
                self._note()
            return ""

        # One that is cancelled does not come to the second line.
        if problem := await self._working(keep):
            self._keeper.note_failure(problem)
            self.notice = "" if problem == self._said else f"{_BEYOND}: {problem}."
            self._said = problem

    def _end(self, deadline: "Deadline") -> KeptTurn | None:
        from ybs.checkpoints.store import RunningTurn

        keeper = self._keeper
        changes, shared = keeper.end(*self._look(deadline))
        if keeper.has_given_up:
            self.notice = f"{_BEYOND_TURN}: {_TOO_MUCH}."
        beyond = (self._said or _TOO_MUCH) if keeper.was_unseen else ""
        if not (changes or beyond):
            self._forget()
            return None
        running = RunningTurn(turn=self.turn()) if self.turn and self._is_noted else None
        spelled_changes = [self._spelled(change) for change in changes]
        since_ns = keeper.commands_since_ns
        kept = self._add(spelled_changes, running, beyond=beyond, since_ns=since_ns)
        spelled, made = (
            {self._roots.show(Path(path)) for path in paths} for paths in (shared, keeper.made)
        )
        return replace(
            kept,
            shared=tuple(path for path in kept.paths if path in spelled),
            made=tuple(path for path in kept.paths if path in made),
        )

    def _kept(self, record: "TurnRecord") -> KeptTurn:
        unkept = tuple(change.path for change in record.changes if change.why_not_undone)
        are_edits = all({c.before.kind, c.after.kind} == {"file"} for c in record.changes)
        paths = named(record.changes)
        return KeptTurn(name=record.name, paths=paths, unkept=unkept, are_edits=are_edits)

    def _spelled(self, change: "Change") -> "Change":
        return replace(change, path=self._roots.show(Path(change.path)))

    def _record(self, name: str, contents: StoredContents | None = None) -> "TurnRecord":
        return self._keeper.store.read(name, contents)

    def _changed_bulk(self, records: "Iterable[TurnRecord]", deadline: "Deadline") -> set[str]:
        """Return the bulk folders in which something changed since commands of these turns ran."""
        from ybs.checkpoints.scan import TooMuch, changed_bulk

        since_ns = min((record.since_ns for record in records if record.since_ns), default=0)
        if since_ns:
            walk, is_over = self._look(deadline)
            with suppress(TooMuch):  # it was too much then as well, and that was noted
                changed = changed_bulk(self._roots, walk(), since_ns, is_over)
                return {f"{self._roots.show(Path(path))}/" for path in changed}
        return set()

    def _unwalked(self, records: "Iterable[TurnRecord]") -> Iterator[str]:
        """Say which folders commands of these turns could write in and nobody looked at."""
        looked = walked(self._roots) if any(record.since_ns for record in records) else ()
        for folder in self._roots.folders if looked else ():
            if not any(folder.is_relative_to(each) for each in looked):
                yield _NOT_WALKED.format(self._roots.show(folder))

    def _restore(
        self,
        names: Sequence[str],
        deadline: "Deadline",
        *,
        force: bool,
        is_redo: bool = False,
        only: Collection[str] | None = None,
    ) -> Restored:
        from ybs.checkpoints.planning import Restoring, plan

        if not names:
            return Restored()
        store, contents = self._keeper.store, StoredContents()
        records = [store.read(name, contents) for name in dict.fromkeys(names)]
        records = records[::-1] if is_redo else records
        steps = self._steps(records, contents, only, is_redo=is_redo)
        mark = records[0].name
        keeps = force and not is_redo
        look_at = partial(self._keeper.look_at, keeps=keeps)
        planned = plan(self._roots, steps, look_at, force=force, is_resumed=store.began(mark))
        bulk = set[str]() if is_redo else self._changed_bulk(records, deadline)
        outcome = Restored(
            unkept={
                self._roots.show(Path(path)): steps[path].why_not for path in sorted(planned.unkept)
            },
            left=self._shown(planned.left),
        )
        if planned.conflicts:
            return replace(outcome, conflicts=self._shown(planned.conflicts))
        overwritten = self._overwritten(mark, planned.steps, contents) if keeps else ""
        restoring = Restoring(self._roots, planned.steps, contents.get)
        try:
            store.begin(mark, overwritten)
            restoring.do()
        except (OSError, Refused) as error:
            reason = (error.strerror if isinstance(error, OSError) else "") or str(error)
            problem = f"Only some of the files were restored: {reason}. Run the command again to restore the rest."
            return replace(outcome, problem=problem)
        store.finish(mark)
        if not is_redo and any(path.endswith("/.gitignore") for path in planned.steps):
            bulk |= self._changed_bulk(records, deadline)  # what git ignored before the turn
        return replace(
            outcome,
            beyond=(*_beyond(records, bulk), *self._unwalked(records)),
            paths=self._shown(planned.steps.keys() - restoring.stayed),
            stayed=self._shown(restoring.stayed),
            is_done=True,
            overwritten=overwritten,
        )

    def _steps(
        self,
        records: "Iterable[TurnRecord]",
        contents: StoredContents,
        only: Collection[str] | None,
        *,
        is_redo: bool,
    ) -> "dict[str, RestoreStep]":
        from ybs.checkpoints.planning import joined

        steps = joined((self._by_path(record.changes) for record in records), is_redo=is_redo)
        for step in steps.values():
            step.why_not = step.why_not or ("" if contents.has(step.target) else _WHY_GONE)
        return {
            path: step
            for path, step in steps.items()
            if only is None or self._shown([path])[0] in only
        }

    def _overwritten(
        self, mark: str, steps: "Mapping[str, RestoreStep]", contents: StoredContents
    ) -> str:
        """Keep what is about to be overwritten, as a turn that does it, and return its name."""
        from ybs.checkpoints.planning import overwriting

        broken_off = self._keeper.store.overwritten(mark, contents)
        earlier = self._by_path(broken_off.changes) if broken_off else {}
        changes = overwriting(steps, earlier)
        spelled = [replace(change, path=self._roots.show(Path(path))) for path, change in changes]
        return self._keeper.add(self.session, spelled, contents=contents).name

    def _by_path(self, changes: "Iterable[Change]") -> "dict[str, Change]":
        folder = str(self._roots.folder).rstrip("/")
        paths = ((real_name(change.path), change) for change in changes)
        return {
            path if path.startswith("/") else f"{folder}/{path}": change for path, change in paths
        }

    def _shown(self, paths: Iterable[str]) -> tuple[str, ...]:
        return tuple(self._roots.show(Path(path)) for path in sorted(paths))


def _beyond(records: "Iterable[TurnRecord]", bulk: Iterable[str]) -> tuple[str, ...]:
    """Return why commands may have changed more than is known; `bulk` are folders in which something changed."""
    reasons = [record.beyond for record in records if record.beyond]
    reasons += [_IN_BULK.format(listed(folders))] if (folders := sorted(bulk)) else []
    return tuple(dict.fromkeys(reasons))


def commit_message(changes: "Sequence[Change]", columns: int) -> str:
    """Return a title of so many columns at most and, for more than one file, a line for each."""
    acts = [(verb, change.path) for change in changes if (verb := _verb(change))]
    if not acts:
        return "Change files"
    verbs, paths = {verb for verb, _ in acts}, [path for _, path in acts]
    verb, folder = verbs.pop() if len(verbs) == 1 else "Change", os.path.commonpath(paths)
    count = plural(len(acts), "file")
    titles = [f"{verb} {' and '.join(paths)}", *([f"{verb} {count} in {folder}"] if folder else ())]
    title = next((each for each in titles if first_words(each, columns) == each), f"{verb} {count}")
    if len(acts) == 1:
        return title
    lines = [f"- {verb} {path}" for verb, path in acts[:_MOST_LINES]]
    lines += [f"- and {len(acts) - _MOST_LINES:,} more"] * (len(acts) > _MOST_LINES)
    return "\n".join([title, "", *lines])


def _verb(change: "Change") -> str:
    """Return the change of a file in words; empty for a folder that was made or removed."""
    match change.before.kind, change.after.kind:
        case ("absent" | "folder", "absent" | "folder"):
            return ""
        case ("absent" | "folder", _):
            return "Add"
        case (_, "absent" | "folder"):
            return "Remove"
        case _:
            return "Change"
