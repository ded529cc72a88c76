"""Record a finished turn: its file changes, a commit of them, and the session's title."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING

from ybs.agent.environment import ToolEnvironment
from ybs.agent.hooks import TurnHook
from ybs.core.errors import YbsError
from ybs.core.events import Emit, FilesChanged, Noticed, Titled
from ybs.core.messages import ToolCall
from ybs.core.ports import Answer, Effect
from ybs.core.remedies import Remedy
from ybs.security.paths.roots import Roots
from ybs.session.injection import as_typed
from ybs.session.journal import Journal
from ybs.session.masking import mask
from ybs.session.warming import Warming

if TYPE_CHECKING:
    from ybs.checkpoints.states import Restored
    from ybs.git.committer import Committer
    from ybs.git.consent import CommitWish
    from ybs.session.undoing import Checkpoints

#: An event names so many of the changed paths; the checkpoint has all of them.
MOST_PATHS = 1_000
WAS_KILLED = "What its commands changed in files cannot be undone: ybs was killed in that turn."


class TurnRecorder(TurnHook):
    """Keeps what each turn changed in files, commits it, and names the session. One for a conversation."""

    name = "keeping the files"
    loss = "the person cannot undo this"

    def __init__(self, environment: ToolEnvironment, journal: Journal, warming: Warming) -> None:
        self._environment, self._journal, self._warming = environment, journal, warming
        self._making = Lock()  # a tool that is about to be asked about looks from a thread
        environment.workspace.ask_for_losses(self.first_lost)
        self._emit: Emit | None = None
        self._checkpoints: Checkpoints | None = None
        self._committer: Committer | None = None
        self._question: asyncio.Future[Answer] | None = None
        self._is_changing = self._has_cleaned = self._has_recovered = False

    @property
    def checkpoints(self) -> "Checkpoints":
        """What the turns changed in files."""
        with self._making:
            if self._checkpoints is None:
                self._checkpoints = self._new_checkpoints()
            return self._checkpoints

    def _new_checkpoints(self) -> "Checkpoints":
        from ybs.session.undoing import Checkpoints  # with the first change

        environment, journal = self._environment, self._journal
        name, may_write = journal.begin(), environment.incognito.may_write
        is_saved = may_write and bool(journal.path)
        return Checkpoints(
            environment.roots,
            name,
            may_write=may_write,
            has_jobs=environment.has_jobs,
            turn=(lambda: journal.replay.past_turns.begun) if is_saved else None,
        )

    def first_lost(self, paths: Iterable[str], *, is_named: bool = False) -> tuple[str, str]:
        """Return the first of these absolute paths that `/undo` would not bring back, and why."""
        return self.checkpoints.first_lost(paths, is_named=is_named)

    @property
    def committer(self) -> "Committer":
        """What commits them."""
        if self._committer is None:
            from ybs.git.committer import Committer  # with the first change
            from ybs.session.commit_terms import consent_of, hook_runner

            environment = self._environment
            self._committer = Committer(
                environment.folder,
                environment.config.git,
                consent=consent_of(environment, self._ask),
                find_runner=lambda: hook_runner(environment),
                mask=lambda text: environment.mask(text, "the commit's message"),
                sandbox=environment.workspace.git_sandbox,
            )
        return self._committer

    async def restored(self, work: "Callable[[], Awaitable[Restored]]", emit: Emit) -> "Restored":
        """Do an undo or redo, and name the git repositories that it makes. Raises YbsError."""
        return await self._environment.autorun_watch.around(work, emit, who="An undo or redo")

    async def tell_of_others(self, emit: Emit) -> None:
        """Name the files that run or are read later and that jobs, hooks and servers left."""
        if self._environment.is_watching:
            await self._environment.autorun_watch.end_turn(emit)

    @property
    def roots(self) -> Roots:
        """The folders that tools may work in."""
        return self._environment.roots

    async def recover(self, emit: Emit) -> None:
        """Where the session was killed in a turn, tell what tools changed in it, once, before anything goes on."""
        journal = self._journal
        if self._has_recovered or not (journal.earlier and journal.path):
            return
        try:
            await self._recover(emit)
        except YbsError as error:
            text = f"What the turn that was killed changed in files cannot be undone: {error}."
            emit(Noticed(level="warning", text=text))
        self._has_recovered = True

    async def _recover(self, emit: Emit) -> None:
        checkpoints, journal = self.checkpoints, self._journal
        if checkpoints.turn is None or (left := await checkpoints.recover()) is None:
            return
        known = {change.checkpoint for change in journal.replay.checkpoints}
        if left.kept is not None and left.kept.name not in known:
            emit(FilesChanged(checkpoint=left.kept.name, paths=left.kept.paths[:MOST_PATHS]))
        if left.has_more:
            emit(Noticed(level="warning", text=WAS_KILLED))
        await journal.synced()
        await checkpoints.told()

    async def before_turn(self, emit: Emit) -> None:
        """Note that a turn begins; nothing is looked at before something changes."""
        self._emit, self._is_changing = emit, False

    async def before_change(self, call: ToolCall, effect: Effect, paths: Sequence[str]) -> None:
        """Keep what a call is about to change, and what git says before."""
        del call
        if self._emit is None:
            return  # no turn: one tool was called alone
        self._begin_changing()
        if effect == "execute":
            await self._environment.autorun_watch.before(self._emit)
        try:
            with self._warming.waiting():
                await self.committer.begin()
        finally:
            await self.checkpoints.before_change(effect, paths)

    async def before_typed(self) -> None:
        """Keep what a command that the person typed may change. That is their own work, so it is not committed."""
        if self._emit is not None:
            self._begin_changing()
            await self._environment.autorun_watch.before(self._emit)
            await self.checkpoints.before_change("execute", ())

    def _begin_changing(self) -> None:
        if not self._is_changing:
            self._is_changing = True
            self.checkpoints.begin()
            self.committer.forget()

    async def after_change(self, call: ToolCall, effect: Effect, paths: Sequence[str]) -> None:
        """Record the changes of a call; changes made after this point do not belong to the turn."""
        if self._emit is None:
            return
        try:
            if effect == "execute":
                await self._environment.autorun_watch.after(self._emit)
            elif self._environment.is_watching:
                self._environment.autorun_watch.accept(call.name, paths)
        finally:
            await self.checkpoints.after_change()

    async def after_turn(self) -> None:
        """Emit what the turn changed, commit it, name the session, and wait until the disk has it.

        That is done to its end, also where it is cancelled meanwhile.
        """
        emit, self._emit = self._emit, None
        if emit is None:
            return
        ending = asyncio.ensure_future(self._end(emit))
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            if self._question is not None:
                self._question.cancel()
            await asyncio.wait((ending,))
            raise

    async def _ask(self, wish: "CommitWish") -> bool | None:
        """Ask the person whether there may be commits; None where they stopped the turn instead."""
        from ybs.session.commit_terms import question_of

        asking = self._environment.gate.confirm(question_of(wish))
        self._question = asyncio.ensure_future(asking)
        try:
            answer = await self._question
        except asyncio.CancelledError:
            return None
        finally:
            self._question = None
        return None if answer.is_unattended else answer.is_allowed

    async def _end(self, emit: Emit) -> None:
        cleaning = asyncio.ensure_future(self._clean())  # in a thread, while git is waited for
        try:
            try:
                await self._end_all(emit)
            finally:
                await cleaning
        except (YbsError, OSError) as error:  # how the turn went stands all the same
            text = f"Not all that belongs to this turn could be kept: {error}."
            emit(Noticed(level="warning", text=text))

    async def _end_all(self, emit: Emit) -> None:
        replay = self._journal.replay
        await self.tell_of_others(emit)
        if self._is_changing:
            await self._keep(emit)
        if not replay.title and replay.turns:
            from ybs.transcripts.title import title_of  # once in a session

            if title := title_of(self._masked(self._words), self._masked(replay.last_answer)):
                emit(Titled(title=title))
        await self._journal.synced()
        if self._is_changing:
            await self.checkpoints.told()

    def close(self) -> None:
        """Let go of what was held for the session alone."""
        if self._checkpoints is not None:
            self._checkpoints.close()

    @property
    def _was_stopped(self) -> bool:
        turns = self._journal.replay.turns
        return bool(turns) and turns[-1].finished.reason == "interrupted"

    @property
    def _words(self) -> str:
        """What the person said in the last turn; its line in the journal has the beginning alone."""
        replay = self._journal.replay
        begun = replay.turns[-1].words
        said = (each.message.words for each in reversed(replay.past_turns.open))
        whole = next((words for words in said if begun and words.startswith(begun)), begun)
        return as_typed(whole)

    def _masked(self, text: str) -> str:
        """Mask a whole text before it is cut: part of a secret cannot be recognised."""
        from ybs.core.messages import Text

        return mask(self._environment.secrets.firewall, Text(text=text)).text

    async def _keep(self, emit: Emit) -> None:
        kept = await self.checkpoints.end()
        if notice := self.checkpoints.take_notice():
            emit(Noticed(level="warning", text=notice))
        commit = None
        try:
            with self._warming.waiting():
                # Who stopped a turn wants the prompt back; they are asked after another one.
                if kept is None or (self._was_stopped and self.committer.would_ask):
                    self.committer.forget()
                else:
                    commit = await self.committer.after_turn(
                        kept.paths,
                        partial(self.checkpoints.message, kept.name),
                        shared=kept.shared,
                        made=kept.made,
                        are_edits=kept.are_edits,
                    )
        finally:
            if kept is not None:
                made = commit.commit if commit else ""
                named = kept.paths[:MOST_PATHS]
                emit(FilesChanged(checkpoint=kept.name, paths=named, commit=made))
        if commit is not None and commit.notice:
            remedies = (Remedy("change_commits"),) if commit.is_about_all else ()
            level = "info" if commit.commit else "warning"
            emit(Noticed(level=level, text=commit.notice, remedies=remedies))

    async def _clean(self) -> None:
        """Forget sessions that are too old or too many, with their checkpoints, once in a session."""
        if self._has_cleaned or not self._journal.path:
            return
        self._has_cleaned = True
        settings, store = self._environment.config.session, self._journal.store()
        from ybs.session.cleaning import clean  # not before the end of a turn

        await asyncio.to_thread(
            clean,
            self._environment.host,
            store,
            max_sessions=settings.max_sessions,
            retention_days=settings.retention_days,
            keep=self._journal.name,
        )
