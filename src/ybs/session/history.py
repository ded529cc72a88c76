"""The history of a conversation: what was said and done in it, and the ways back."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from ybs.core.conversation import Conversation
from ybs.core.errors import YbsError
from ybs.core.events import Emit, FilesRestored, Replaced, Rewound
from ybs.core.messages import AssistantMessage, Message, UserMessage
from ybs.core.remedies import Remedy
from ybs.session.injection import to_type
from ybs.session.journal import Journal
from ybs.session.recorder import TurnRecorder
from ybs.session.running_task import RunningTask
from ybs.session.taking_up import remove_leftovers

if TYPE_CHECKING:
    from ybs.agent.window import Window
    from ybs.checkpoints.states import Restored
    from ybs.git.moves import How
    from ybs.transcripts.past_turns import PastTurn

_AT_WORK = "An undo is in progress."
#: Tools that change nothing, or only the files that they name. After a call of any other one `/undo` says what it may have missed.
NAMING_THEIR_CHANGES = frozenset({
    *("read_file", "list_files", "search_files", "write_file", "edit_file", "delete_file"),
    *("set_thought", "repo_map", "skill", "ask_user", "todo", "delegate"),
})  # fmt: skip
#: What a way back is about.
What: TypeAlias = Literal["both", "conversation", "files"]


class CommitSet(Struct, frozen=True):
    """A commit of ybs's that was to be taken back or made again, and how that was done."""

    commit: str
    how: "How"


class WayBack(Struct, frozen=True, kw_only=True):
    """How a way back went. Where `files` has conflicts and nothing was forced, nothing was changed at all.

    `words` are those of the first prompt that is gone; `turns` is how many were taken back. `commits` says what became
    of ybs's own. `was_cut` is false where the conversation stayed as it was. `ran_commands`: one of the turns has no
    checkpoint, and a call that may have changed what undo knows nothing of.
    """

    files: "Restored | None" = None
    words: str = ""
    turns: int = 0
    commits: "tuple[CommitSet, ...]" = ()
    was_cut: bool = False
    ran_commands: bool = False

    @property
    def is_done(self) -> bool:
        """Whether anything was changed."""
        return self.files is None or self.files.is_done


class Undone(Struct, frozen=True):
    """What an undo took away, for a redo: the checkpoints and commits, newest first, the messages before it, and the `paths` it changed.

    `overwritten` names what a forced one found: a redo brings that back, with what the person had made of it.
    """

    checkpoints: tuple[str, ...]
    commits: tuple[str, ...]
    messages: tuple[Message, ...]
    paths: frozenset[str] = frozenset()
    overwritten: str = ""


def _ran_unseen(turns: "Sequence[PastTurn]", messages: Sequence[Message]) -> bool:
    """Return whether a turn without a checkpoint has a call that may have changed something."""
    ends = [*(turn.place for turn in turns[1:]), len(messages)][: len(turns)]
    return any(
        any(map(_runs, messages[turn.place : end if end > turn.place else None]))
        for turn, end in zip(turns, ends, strict=True)
        if turn.changed is None
    )


def _runs(message: Message) -> bool:
    """Return whether a message calls for, or tells of, more than what names the files that it changes."""
    if isinstance(message, UserMessage):
        return message.origin == "shell"
    calls = message.calls if isinstance(message, AssistantMessage) else ()
    return any(call.name not in NAMING_THEIR_CHANGES for call in calls)


class History:
    """The ways back of one conversation. None of them is open while a turn runs (YbsError).

    `rewritten` is called whenever the conversation is another one than before.
    """

    def __init__(
        self,
        conversation: Conversation,
        journal: Journal,
        recorder: TurnRecorder,
        running: RunningTask,
        emit: Emit,
        rewritten: Callable[[], None],
    ) -> None:
        self._conversation, self._journal, self._recorder = conversation, journal, recorder
        self._running, self._emit, self._rewritten = running, emit, rewritten
        #: What /redo does again, the last one first; a new turn empties it.
        self.undone: list[Undone] = []

    @property
    def turns(self) -> "Sequence[PastTurn]":
        """The turns that can be taken back, oldest first."""
        return self._journal.replay.past_turns.open

    def prompts(self) -> list[tuple[int, str]]:
        """List what the person said: the place in the conversation, and the words without what was attached."""
        said = enumerate(self._conversation.messages)
        return [
            (place, message.words)
            for place, message in said
            if isinstance(message, UserMessage) and message.origin == "person"
        ]

    def clear(self) -> None:
        """Forget the conversation; the session goes on."""
        self._running.check()
        self._cut(0)

    def take_out(self, place: int) -> UserMessage:
        """Cut the conversation before what the person said at that place, and return that."""
        self._running.check()
        said = self._conversation.messages[place]
        if not isinstance(said, UserMessage):
            raise TypeError("the message there is not from the person")
        self._cut(place)
        return said

    def since(self, place: int) -> "Sequence[PastTurn]":
        """Return the turns from the first that began there or later."""
        turns = self.turns
        begin = next((n for n, turn in enumerate(turns) if turn.place >= place), len(turns))
        return turns[begin:]

    async def rewind(self, place: int, what: What = "both", *, force: bool = False) -> WayBack:
        """Go back to before what stands at that place: the conversation, the files that changed since, or both."""
        with self._running.held(_AT_WORK):
            await self._recover()
            turns = self.since(place)
            gone = self._conversation.messages[place : place + 1]
            words = next((to_type(each) for each in gone if isinstance(each, UserMessage)), "")
            return await self._go_back(turns, place, words, what, force=force)

    async def undo(self, count: int = 1, *, force: bool = False) -> WayBack:
        """Take the last turns back: what they changed in files, and their words."""
        with self._running.held(_AT_WORK):
            await self._recover()
            turns = list(self.turns)[-count:] if count > 0 else []
            if not turns:
                raise self._why_not()
            place = next((turn.place for turn in turns if turn.place >= 0), -1)
            words = to_type(turns[0].message)
            return await self._go_back(turns, place, words, "both", force=force)

    async def _recover(self) -> None:
        """Have what a turn that was killed changed in files among the turns."""
        if calls := self._conversation.open_calls:
            remove_leftovers(self._recorder.roots, calls)
        await self._recorder.recover(self._emit)

    async def _go_back(
        self, turns: "Sequence[PastTurn]", place: int, words: str, what: What, *, force: bool
    ) -> WayBack:
        names = [turn.changed.checkpoint for turn in reversed(turns) if turn.changed is not None]
        files = None
        commits: tuple[CommitSet, ...] = ()
        before = tuple(self._conversation.messages)
        if names and what != "conversation":
            files = await self._restored(names, what, force=force)
            if not files.is_done:
                return WayBack(files=files, words=words)
            commits = await self._take_back_commits(turns)
            self._emit(FilesRestored(checkpoints=tuple(names)))
        was_cut = what != "files" and place >= 0
        ran_commands = (
            _ran_unseen(turns, before) if turns else any(map(_runs, before[max(place, 0) :]))
        )
        if was_cut:
            self._cut(place)
        if was_cut or files:
            overwritten = files.overwritten if files else ""
            gone = tuple(names) if files else ()
            taken = tuple(each.commit for each in commits if each.how != "stays")
            paths = frozenset(files.paths if files else ())
            self.undone.append(Undone(gone, taken, before, paths, overwritten))
        return WayBack(
            files=files,
            words=words,
            turns=len(turns),
            commits=commits,
            was_cut=was_cut,
            ran_commands=ran_commands,
        )

    def _why_not(self) -> YbsError:
        if self._journal.replay.restorable() is None:
            return YbsError("There is nothing to undo.")
        return YbsError(
            "There is nothing to undo: the conversation was compacted (summarised).",
            remedies=(Remedy("restore_conversation"),),
        )

    async def _restored(self, names: Sequence[str], what: What, *, force: bool) -> "Restored":
        try:
            work = partial(self._recorder.checkpoints.undo, names, force=force)
            return await self._recorder.restored(work, self._emit)
        except YbsError as error:
            if what == "files":
                raise
            remedies = (*error.remedies, Remedy("rewind_conversation"))
            raise YbsError(str(error), remedies=remedies) from error

    async def _take_back_commits(self, turns: "Sequence[PastTurn]") -> tuple[CommitSet, ...]:
        """Take ybs's own commits back, the newest first, as long as each is the last one of its branch."""
        from ybs.git.moves import take_back  # with the first undo

        done: list[CommitSet] = []
        for turn in reversed(turns):
            if turn.changed is not None and (commit := turn.changed.commit):
                is_stuck = bool(done) and done[-1].how == "stays"
                committer = self._recorder.committer
                how = "stays" if is_stuck else await committer.set_back(take_back, commit)
                done.append(CommitSet(commit, how))
        return tuple(done)

    async def redo(self, *, force: bool = False) -> WayBack:
        """Do again what the last undo took back."""
        with self._running.held(_AT_WORK):
            if not self.undone:
                raise YbsError(
                    "There is nothing to redo: only what was undone or rewound can be redone."
                )
            return await self._do_again(self.undone[-1], force=force)

    async def _do_again(self, last: Undone, *, force: bool) -> WayBack:
        files = None
        commits: list[CommitSet] = []
        if last.checkpoints:
            checkpoints = self._recorder.checkpoints
            if last.overwritten:
                work = partial(checkpoints.undo, (last.overwritten,), force=force)
            else:
                work = partial(checkpoints.redo, last.checkpoints, only=last.paths, force=force)
            files = await self._recorder.restored(work, self._emit)
            if not files.is_done:
                return WayBack(files=files)
            from ybs.git.moves import bring_back  # with the first redo

            for commit in reversed(last.commits):
                how = await self._recorder.committer.set_back(bring_back, commit)
                commits.append(CommitSet(commit, how))
            self._emit(FilesRestored(checkpoints=last.checkpoints, is_redo=True))
        self.undone.pop()
        if tuple(self._conversation.messages) != last.messages:
            self._replace(last.messages)
        return WayBack(files=files, was_cut=True, turns=1, commits=tuple(commits))

    def restore(self, window: "Window") -> int:
        """Bring back what compactions elided, if the window has room; return how many messages there are now. Raises YbsError."""
        self._running.check()
        whole = self._journal.replay.restorable()
        if whole is None:
            raise YbsError("There was no compaction to undo.")
        if (tokens := window.size_of(self._conversation.system, whole)) > window.room:
            raise YbsError(
                f"The whole conversation takes about {tokens:,} tokens, and the context window has room for {window.room:,}.",
                remedies=(Remedy("enlarge_window"),),
            )
        self._replace(whole)
        return len(whole)

    def _replace(self, messages: Sequence[Message]) -> None:
        self._conversation.replace(messages)
        self._emit(Replaced(messages=tuple(self._conversation.messages)))
        self._rewritten()

    def _cut(self, place: int) -> None:
        self._conversation.replace(tuple(self._conversation.messages[:place]))
        self._emit(Rewound(keeps=len(self._conversation.messages)))
        self._rewritten()
