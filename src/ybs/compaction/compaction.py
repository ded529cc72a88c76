"""Compaction: before a request would not fit, older parts of the conversation are set aside.

First old tool outputs, without a model; then older turns, for which a summary stands. The person's own words stay.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, TypeAlias

from ybs.core.conversation import Conversation
from ybs.core.errors import ContextTooLong, StopTurn
from ybs.core.events import (
    Compacted,
    CompactionReason,
    Emit,
    Event,
    Noticed,
    RequestRetried,
    RequestStarted,
)
from ybs.core.messages import AssistantMessage, Message, Usage, UserMessage
from ybs.core.ports import Guard, Model, Request, ToolSpec, Turn
from ybs.core.remedies import Remedy
from ybs.core.wrapper import ModelWrapper

if TYPE_CHECKING:
    from ybs.compaction.layout import TooLarge

#: A compaction that frees less than this share of the request is a poor one; so many in a row end the turn.
_POOR_SHARE, _MOST_POOR = 0.1, 3
#: What a provider refuses is larger than its window, so what it takes is taken to be this share of it.
_LEARNED = 0.9
_MOST_REFUSALS = 3
#: What has more than this share of the room is to blame where not all fits.
_CULPRIT = 0.4

THRASHING = (
    "Compaction no longer helps: three times in a row it freed less than a tenth of the window."
)
TOO_LARGE = "{what} {tokens:,} tokens, and the model's window has room for {room:,} with the tools and the answer."
_BEGIN_ANEW, _LARGER = Remedy("begin_anew"), Remedy("enlarge_window")


#: Is told before a compaction, with its focus, and returns why there is to be none ("": there may be one).
BeforeCompaction: TypeAlias = Callable[[CompactionReason, str], Awaitable[str]]


class Compaction(Guard):
    """Keeps the conversation within the window. It stands behind all guards that say something.

    `room` is what a request may have (the window less the answer), `size` counts a request. `keep_output` writes
    a text to a file that tools may read and returns its path ("" where nothing may be written). `model` summarizes,
    `limits` is asked before each further request for a summary, `mask` takes the secrets out of a message, `rules`
    gives the rules that are read anew from disk, and `before` may forbid a compaction.
    """

    def __init__(  # noqa: PLR0913 - each is a port of its own
        self,
        *,
        threshold: float,
        room: Callable[[], int],
        size: Callable[[Request], int],
        specs: Callable[[], Sequence[ToolSpec]],
        keep_output: Callable[[str], str] = lambda _text: "",
        model: Model | None = None,
        limits: Guard | None = None,
        mask: Callable[[Message], Message] = lambda message: message,
        rules: Callable[[], str] = lambda: "",
        before: "BeforeCompaction | None" = None,
    ) -> None:
        self.threshold = threshold
        #: Who summarizes. None: an extract is made without a model.
        self.model = model
        #: Is asked before each further request for a summary; its StopTurn ends the turn (the cost limit).
        self.limits = limits
        self._before = before
        #: What summaries outside of turns have used.
        self.usage = Usage()
        self._given_room, self._size, self._specs = room, size, specs
        self._keep_output = keep_output
        #: Takes the secrets out of a message: texts are cut here, and a part of one is not known for what it is.
        self.mask = mask
        #: Gives the rules that are read anew from disk at a compaction.
        self.rules = rules
        self._turn: Turn | None = None
        self._name = ""
        self._learned: dict[tuple[str, int], int] = {}
        self._poor = 0
        #: What the session gave as room at the last step.
        self._last_room = 0
        #: The last answer at the time of the last compaction, in a tuple; empty before the first.
        self._left: tuple[AssistantMessage | None, ...] = ()

    @property
    def room(self) -> int:
        """What a request may have: what the session says, or less where the provider refused that much."""
        room = self._given_room()
        return min(room, self._learned.get((self._name, room), room))

    async def before_step(self, turn: Turn) -> None:
        """Compact where the next request would be too large. Raises StopTurn where nothing helps."""
        self._turn = turn
        conversation = turn.conversation
        size = self._size_of(conversation)
        room, given = self.room, self._given_room()
        if size <= self.threshold * room:
            self._last_room = given
            return
        done = None
        if size > room or not self._is_unanswered(conversation):
            reason: CompactionReason = "smaller" if given < self._last_room else "full"
            done = await self.compact(conversation, turn.emit, reason=reason, turn=turn)
        self._last_room = given
        after = size if done is None else done.tokens_after
        if after > room:
            raise self._too_large(after, room, None)
        if done is None:
            return
        is_poor = done.tokens_before - after < done.tokens_before * _POOR_SHARE
        self._poor = self._poor + 1 if is_poor else 0
        if self._poor >= _MOST_POOR:
            self._poor = 0
            raise StopTurn("limit", THRASHING, remedies=(_BEGIN_ANEW, _LARGER))

    def guarding(self, model: Model, conversation: Conversation, emit: Emit) -> Model:
        """Wrap a model: what its provider refuses as too long is compacted and sent again."""
        self._name = model.name

        async def make_smaller(request: Request) -> Request | None:
            turn = self._turn if self._turn and self._turn.conversation is conversation else None
            self._learn(request)
            done = await self.compact(conversation, emit, reason="refused", turn=turn)
            return done and Request(conversation.system, conversation.messages, request.tools)

        return _GuardedModel(model, make_smaller, self._forget)

    def _learn(self, request: Request) -> None:
        """Remember that a request of this size was refused: the provider's truth beats the estimate."""
        key = (self._name, self._given_room())
        self._learned[key] = min(self.room, int(self._size(request) * _LEARNED))

    def _forget(self) -> None:
        """Forget what was learned: nothing helped, so the size was not what the provider minded."""
        self._learned.pop((self._name, self._given_room()), None)

    def _size_of(self, conversation: Conversation) -> int:
        return self._size(Request(conversation.system, conversation.messages, self._specs()))

    def _is_unanswered(self, conversation: Conversation) -> bool:
        """Return whether no model has answered since the last compaction."""
        return bool(self._left) and self._left[0] is _last_answer(conversation.messages)

    async def compact(
        self,
        conversation: Conversation,
        emit: Emit,
        *,
        reason: CompactionReason,
        focus: str = "",
        turn: Turn | None = None,
    ) -> Compacted | None:
        """Compact now. None where there is nothing to gain; raises StopTurn where what must stay is too large."""
        from ybs.compaction.compacting import (  # not needed before the window is full
            Compacting,
            Means,
        )
        from ybs.compaction.layout import TooLarge

        if self._before is not None and (why := await self._before(reason, focus)):
            emit(Noticed(level="warning", text=f"The conversation was not compacted: {why}"))
            return None
        room = self.room
        means = Means(
            room=room,
            full=int(self.threshold * room),
            size=self._size,
            specs=self._specs(),
            keep_output=self._keep_output,
            mask=self.mask,
            rules=self.rules,
            model=self.model,
            spent=lambda usage: self._spent(usage, turn),
        )
        task = _task_of(conversation, turn) or (
            _newest_words(conversation) if reason == "refused" else None
        )
        compacting = Compacting(conversation, task, means, emit)
        try:
            done = await compacting.run(reason, focus)
        except TooLarge as large:
            if reason == "refused" and max(large.task, large.newest) <= room * _CULPRIT:
                return None  # the provider's own words say more
            raise self._too_large(0, room, large) from large
        if done is not None:
            conversation.replace(done.messages)
            self._left = (_last_answer(conversation.messages),)
            emit(done)
        return done

    def take_usage(self) -> Usage:
        """Return what was spent outside of turns since it was last asked for."""
        usage, self.usage = self.usage, Usage()
        return usage

    async def _spent(self, usage: Usage, turn: Turn | None) -> None:
        """Count what a summary has used, and let the limits speak."""
        if turn is None:
            self.usage += usage
            return
        turn.usage += usage
        if self.limits is not None:
            await self.limits.before_step(turn)

    def _too_large(self, size: int, room: int, large: "TooLarge | None") -> StopTurn:
        """Return what ends a turn in which not all fits."""
        what, tokens = "The conversation has", size
        advice = _BEGIN_ANEW
        if large is not None and large.task > room * _CULPRIT:
            what, tokens = "Your message has", large.task
            advice = Remedy("do", "send it in parts, or attach less")
        elif large is not None and large.newest > room * _CULPRIT:
            what, tokens = "The newest step has", large.newest
            advice = Remedy("do", "ask the model to work in smaller pieces")
        elif large is not None:
            what, tokens = "Even the shortest form of the conversation has", large.least
        text = TOO_LARGE.format(what=what, tokens=tokens, room=room)
        return StopTurn("limit", text, remedies=(advice, _LARGER))


#: What is told before anything of an answer has come.
_NOT_YET = (Noticed, RequestRetried, RequestStarted)


class _GuardedModel(ModelWrapper):
    """A Model whose refusals are answered with a smaller request, as long as nothing has come back."""

    def __init__(
        self,
        model: Model,
        make_smaller: Callable[[Request], Awaitable[Request | None]],
        give_up: Callable[[], None],
    ) -> None:
        super().__init__(model)
        self._make_smaller, self._give_up = make_smaller, give_up

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Stream the answer; at most three times to a smaller request."""
        for attempt in range(_MOST_REFUSALS + 1):
            has_begun = False
            try:
                async with aclosing(self._model.stream(request)) as events:
                    async for event in events:
                        has_begun = has_begun or not isinstance(event, _NOT_YET)
                        yield event
                return
            except ContextTooLong:
                if has_begun:
                    raise
                smaller = await self._smaller(request, attempt)
                if smaller is None:
                    raise
                request = smaller

    async def _smaller(self, request: Request, attempt: int) -> Request | None:
        smaller = None
        try:
            if attempt < _MOST_REFUSALS:
                smaller = await self._make_smaller(request)
        finally:
            if smaller is None:
                self._give_up()
        return smaller


def _last_answer(messages: Sequence[Message]) -> AssistantMessage | None:
    return next((m for m in reversed(messages) if isinstance(m, AssistantMessage)), None)


def _newest_words(conversation: Conversation) -> UserMessage | None:
    said = (m for m in reversed(conversation.messages) if isinstance(m, UserMessage))
    return next((m for m in said if m.origin == "person"), None)


def _task_of(conversation: Conversation, turn: Turn | None) -> UserMessage | None:
    """Return the words that the running turn began with; they must stay the same object."""
    if turn is None or turn.conversation is not conversation:
        return None
    first = turn.messages[0] if turn.messages else None
    if isinstance(first, UserMessage) and first.origin != "summary":
        return first
    return None
