"""What each turn changed in files, shell effects included, and the way back; git has no part in it."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from ybs.core.errors import Refused, ToolError, YbsError
from ybs.core.ports import Effect
from ybs.security.names import real_name
from ybs.security.paths import Roots

if TYPE_CHECKING:
    # Nothing of it is needed before the first change.
    from ybs.tools.searching.walk import Deadline
    from ybs.transcripts.checkpoints import Record
    from ybs.transcripts.keeping import Keeper
    from ybs.transcripts.states import Change

_Value = TypeVar("_Value")
#: How long the look at the project before a command, and that after the turn, may take.
SCAN_SECONDS = 10.0
_BEYOND = "What commands change in files here cannot be undone"


class Kept(Struct, frozen=True, kw_only=True):
    """What a turn changed and was kept under a name.

    `unkept` are changed paths that no undo brings back, `shared` those that somebody else changed during the turn as well.
    """

    name: str
    paths: tuple[str, ...] = ()
    unkept: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()


class Restored(Struct, frozen=True, kw_only=True):
    """What an undo or redo did: all or nothing.

    `conflicts` are paths that somebody else changed since, or where nothing may be written; while there are some
    nothing is done. `problem` says what ended it half-way, in words for the person: done once more it goes on.
    """

    paths: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    unkept: tuple[str, ...] = ()
    is_done: bool = False
    problem: str = ""


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
    ) -> None:
        self._roots, self.session, self._may_write = roots, session, may_write
        self._has_jobs = has_jobs
        #: What the person should be told once, such as that shell effects cannot be undone; empty: nothing.
        self.notice = ""
        self._lock = Lock()  # a look that was cancelled may take a moment to end
        self._made: Keeper | None = None
        self._said = ""

    def begin(self) -> None:
        """Begin a turn; nothing is looked at yet."""
        if self._may_write:
            self._keeper.begin()

    async def before_change(self, effect: Effect, paths: Sequence[str]) -> None:
        """Keep what a tool is about to change; `paths` as `Roots.show` writes them. Raises ToolError.

        What runs commands, or does not say what it changes, may change anything: all of the project is kept.
        """
        if not self._may_write or effect == "read":
            return
        links = effect != "delete"
        is_all = effect == "execute" or not paths
        try:
            if is_all:
                await self._keep_all()
            else:
                await self._working(lambda _: self._keep(paths, is_link_followed=links))
        except Refused:
            raise  # the tool is refused as well
        except ToolError as error:
            self.notice = f"What is changed now cannot be undone: {error}."
            raise

    async def after_change(self) -> None:
        """See what was changed since `before_change`: what changes later is somebody else's. Raises ToolError."""
        if self._made is None or not self._made.is_open:
            return
        from ybs.session.project_walk import listings

        keeper, has_jobs = self._made, self._has_jobs()
        await self._working(
            lambda deadline: keeper.settle(
                lambda: listings(self._roots, deadline),
                lambda: deadline.is_over,
                has_jobs=has_jobs,
            )
        )

    async def end(self) -> Kept | None:
        """End the turn and keep what it changed; None where nothing did, or where `notice` says why not."""
        if self._made is None or not self._made.is_busy:
            return None
        try:
            return await self._working(self._end)
        except ToolError as error:
            self.notice = f"What this turn changed cannot be undone: {error}."
            return None

    async def undo(self, names: Sequence[str], *, force: bool = False) -> Restored:
        """Take back what these turns changed; they are named newest first, for clocks go backwards too.

        Raises YbsError where a checkpoint is gone.
        """
        return await self._working(lambda _: self._restore(names, force=force, is_redo=False))

    async def redo(self, names: Sequence[str], *, force: bool = False) -> Restored:
        """Do again what was undone; the turns are named newest first. Raises YbsError where a checkpoint is gone."""
        return await self._working(lambda _: self._restore(names, force=force, is_redo=True))

    def changes(self, name: str) -> tuple[str, ...]:
        """Return a line for each path that the turn changed, as `edited src/a.py`. Raises YbsError."""
        from ybs.session.turn_diff import line_of

        return tuple(map(line_of, self._record(name).changes))

    def diff(self, name: str) -> str:
        """Return the turn's changes as a unified diff; what has no lines is named in one. Raises YbsError."""
        from ybs.session.turn_diff import diff_of_turn

        return diff_of_turn(self._record(name).changes, self._keeper.shelf.objects.get)

    def close(self) -> None:
        """Let go of the contents that were kept for the session alone."""
        if self._made is not None:
            self._made.close()
            self._made = None

    @property
    def _keeper(self) -> "Keeper":
        if self._made is None:
            from ybs.transcripts.keeping import Keeper

            self._made = Keeper(self._roots)
        return self._made

    async def _working(self, work: "Callable[[Deadline], _Value]") -> _Value:
        """Do it in a thread. Raises ToolError where the disk does not let it."""
        from ybs.tools.searching.walk import Deadline

        deadline = Deadline(SCAN_SECONDS)

        def locked() -> _Value:
            with self._lock:
                return work(deadline)

        try:
            return await asyncio.to_thread(locked)
        except OSError as error:
            raise ToolError(f"no copy can be kept: {error.strerror or error}") from error
        except ToolError:
            raise
        except YbsError as error:
            raise ToolError(str(error)) from error
        finally:
            deadline.cancel()

    def _keep(self, paths: Sequence[str], *, is_link_followed: bool) -> None:
        for path in paths:
            real = self._roots.resolve(path, is_write=True, is_link_followed=is_link_followed)
            self._keeper.touch(str(real))

    async def _keep_all(self) -> None:
        from ybs.session.project_walk import listings
        from ybs.transcripts.scan import TooMuch

        has_jobs = self._has_jobs()

        def keep(deadline: "Deadline") -> str:
            try:
                self._keeper.scan(
                    lambda: listings(self._roots, deadline),
                    lambda: deadline.is_over,
                    has_jobs=has_jobs,
                )
            except TooMuch as error:
                return str(error)
            return ""

        # One that is cancelled does not come to the second line.
        if problem := await self._working(keep):
            self._keeper.failures += 1
            self.notice = "" if problem == self._said else f"{_BEYOND}: {problem}."
            self._said = problem

    def _end(self, deadline: "Deadline") -> Kept | None:
        from ybs.session.project_walk import listings

        keeper = self._keeper
        changes, shared = keeper.end(
            lambda: listings(self._roots, deadline), lambda: deadline.is_over
        )
        if keeper.has_given_up:
            self.notice = (
                "What this turn's commands changed in files cannot be undone: it is too much."
            )
        if not changes:
            return None
        record = keeper.add(self.session, [self._spelled(change) for change in changes])
        spelled = {self._roots.show(Path(path)) for path in shared}
        paths = _named(record.changes)
        return Kept(
            name=record.name,
            paths=paths,
            shared=tuple(path for path in paths if path in spelled),
            unkept=tuple(change.path for change in record.changes if not change.is_kept),
        )

    def _spelled(self, change: "Change") -> "Change":
        from msgspec.structs import replace

        return replace(change, path=self._roots.show(Path(change.path)))

    def _record(self, name: str) -> "Record":
        return self._keeper.shelf.read(name)

    def _restore(self, names: Sequence[str], *, force: bool, is_redo: bool) -> Restored:
        from ybs.transcripts.planning import joined, plan
        from ybs.transcripts.restore import Restoring

        if not names:
            return Restored()
        shelf = self._keeper.shelf
        records = [shelf.read(name) for name in dict.fromkeys(names)]
        if is_redo:
            records.reverse()
        steps = joined(map(self._by_path, records), is_redo=is_redo)
        for step in steps.values():
            step.is_kept = step.is_kept and shelf.objects.has_state(step.target)
        mark = records[0].name
        planned = plan(self._roots, steps, force=force, is_resumed=shelf.began(mark))
        unkept = self._shown(planned.unkept)
        if planned.conflicts:
            return Restored(conflicts=self._shown(planned.conflicts), unkept=unkept)
        try:
            shelf.begin(mark)
            Restoring(self._roots, planned.steps, shelf.objects.get).do()
        except (OSError, Refused) as error:
            reason = (error.strerror if isinstance(error, OSError) else "") or str(error)
            problem = (
                f"Only a part of the files was restored: {reason}. Once more goes on from there."
            )
            return Restored(unkept=unkept, problem=problem)
        shelf.finish(mark)
        return Restored(paths=self._shown(planned.steps), unkept=unkept, is_done=True)

    def _by_path(self, record: "Record") -> "dict[str, Change]":
        folder = str(self._roots.folder).rstrip("/")
        paths = ((real_name(change.path), change) for change in record.changes)
        return {
            path if path.startswith("/") else f"{folder}/{path}": change for path, change in paths
        }

    def _shown(self, paths: Iterable[str]) -> tuple[str, ...]:
        return tuple(self._roots.show(Path(path)) for path in sorted(paths))


def _named(changes: "Sequence[Change]") -> tuple[str, ...]:
    """Return the changed paths; of folders only those in which nothing else changed, with a slash at the end."""
    above = {str(folder) for change in changes for folder in Path(change.path).parents}
    named = ((change.path, _is_folder(change)) for change in changes)
    return tuple(
        f"{path}/" if is_folder else path
        for path, is_folder in named
        if not (is_folder and path in above)
    )


def _is_folder(change: "Change") -> bool:
    """Tell whether there was and is nothing but a folder."""
    return {change.before.kind, change.after.kind} <= {"folder", "absent"}
