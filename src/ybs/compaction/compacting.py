"""One compaction, from what fills the window to what stands in its place."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from ybs.compaction.eliding import one_line
from ybs.compaction.extract import references
from ybs.compaction.layout import (
    TARGET,
    TARGET_OF_FULL,
    Bounds,
    CompactionPlan,
    Layout,
    TooLarge,
    present,
)
from ybs.compaction.scale import Scale
from ybs.compaction.summary import Made, Task, summarise
from ybs.core.conversation import Conversation
from ybs.core.events import Compacted, CompactionReason, Emit, Noticed
from ybs.core.messages import Message, Text, ToolResult, Usage, UserMessage
from ybs.core.ports import Model, Request, ToolSpec

#: Asked for by the person, a compaction goes further: to this share of what the messages have, at most to the other.
_ASKED_SHARE, _MOST_ASKED_SHARE = 0.3, 0.7
#: What frees less than this share is not worth a new history; nor, with the other, is asking a model for it.
_LEAST_GAIN, _LEAST_GAIN_OF_SUMMARY = 0.02, 0.05
#: The share of the summary's tokens for the lists of files and names.
_LISTS = 0.25

HEADER = (
    "Summary of the earlier conversation, made to save room. It is reference, not an instruction: "
    "what it tells of is done or known.\n\n"
)
WORDS_FOLLOW = (
    "\n\nEarlier messages of the person, word for word, oldest first. They were answered; "
    "what they want kept in mind still holds:"
)


class Means(Struct, frozen=True, kw_only=True):
    """What a compaction works with: `room` is what a request may have, `full` what it has where compaction begins.

    `spent` is told what a request for a summary has used.
    """

    room: int
    full: int
    size: Callable[[Request], int]
    specs: Sequence[ToolSpec]
    keep_output: Callable[[str], str]
    mask: Callable[[Message], Message]
    rules: Callable[[], str]
    model: Model | None
    spent: Callable[[Usage], Awaitable[None]]


class Compacting:
    """Works on a copy; the conversation is the caller's to change."""

    def __init__(
        self, conversation: Conversation, task: UserMessage | None, means: Means, emit: Emit
    ) -> None:
        self._conversation, self._means, self._emit = conversation, means, emit
        self._found = tuple(conversation.messages)
        # Texts are cut: of a part of a secret nobody could tell any more that it is one. The task stays whole.
        self._messages = tuple(m if m is task else means.mask(m) for m in self._found)
        self._scale = Scale(means.size, conversation.system, means.specs)
        self._before = self._scale.request(self._messages)
        self._task = task

    async def run(self, reason: CompactionReason, focus: str) -> Compacted | None:
        """Make the new history. None where there is nothing to gain. Raises TooLarge."""
        bounds = self._bounds(reason)
        plan = CompactionPlan(self._messages, self._task, self._scale, bounds)
        eased = plan.eased()
        light = present(eased)
        light_size = self._scale.request(light)
        layout = None
        if reason == "asked" or light_size > bounds.target:
            layout = await self._laid_out(plan, eased, light_size, reason, has_focus=bool(focus))
        if layout is None or not layout.older:
            if focus:
                text = (
                    "Setting old tool outputs aside was enough: there is no summary to keep it in."
                )
                self._emit(Noticed(level="info", text=text))
            new = light if layout is None else layout.messages("")
            return await self._finished(plan, new, reason)
        made, new = await self._with_summary(layout, focus)
        done = await self._finished(plan, new, reason)
        count = len(layout.older)
        return done and replace(done, summarised=count, is_by_model=made.is_by_model)

    def _bounds(self, reason: CompactionReason) -> Bounds:
        fixed, room = self._scale.fixed, self._means.room
        free, full = max(0, room - fixed), max(0, self._means.full - fixed)
        target = fixed + int(min(free * TARGET, full * TARGET_OF_FULL))
        if reason != "asked":
            return Bounds(target, room)
        said = self._before - fixed
        return Bounds(
            min(target, fixed + int(said * _ASKED_SHARE)),
            min(room, fixed + int(said * _MOST_ASKED_SHARE)),
        )

    async def _laid_out(
        self,
        plan: CompactionPlan,
        eased: list[Message | None],
        light_size: int,
        reason: CompactionReason,
        *,
        has_focus: bool,
    ) -> Layout | None:
        """Choose what stays; None where what was shortened has to do. A focus asks for a summary that has it."""
        plan.rules = await asyncio.to_thread(self._means.rules)
        try:
            layout = plan.laid_out(eased)
        except TooLarge:
            if reason == "asked" or light_size <= self._means.room:
                return None
            raise
        if light_size > self._means.room or has_focus:
            return layout
        expected = self._scale.request(layout.messages("word " * (layout.summary_tokens // 2)))
        return layout if expected < light_size * (1 - _LEAST_GAIN_OF_SUMMARY) else None

    async def _with_summary(self, layout: Layout, focus: str) -> tuple[Made, list[Message]]:
        previous = _previous(layout.older)
        frame = self._scale.text(HEADER + WORDS_FOLLOW)
        tokens = max(40, layout.summary_tokens - frame)
        lists = references(
            layout.older, (previous, *layout.words.left_out), int(tokens * _LISTS * 3)
        )
        task = Task(
            messages=layout.older,
            previous=previous,
            left_out=frozenset(layout.words.left_out),
            focus=focus,
            tokens=max(30, tokens - (self._scale.text(lists) if lists else 0)),
            room=self._means.room,
            chars_per_token=self._chars_per_token(layout.older),
        )
        model = self._means.model
        if model is not None:
            text = (
                f"Compacting: {one_line(model.name, 60)} is summarising the earlier conversation."
            )
            self._emit(Noticed(level="info", text=text))
        made = await summarise(task, model, self._means.spent)
        if made.problem:
            why = one_line(made.problem, 200)
            text = f"The model's summary is not usable ({why}), so ybs made an extract instead."
            self._emit(Noticed(level="warning", text=text))
        return made, layout.messages(self._fitting(made.text, lists, layout))

    def _chars_per_token(self, messages: Sequence[Message]) -> float:
        """Measure it on what was said: code and some scripts have fewer characters for each token."""
        said = (m.output if isinstance(m, ToolResult) else m.text for m in reversed(messages))
        sample = "\n".join(text[:500] for text in islice(said, 20))
        return min(4.0, max(0.5, len(sample) / self._scale.text(sample)))

    def _fitting(self, text: str, lists: str, layout: Layout) -> str:
        """Put the text of the summary together, as long as the layout has room for."""
        while True:
            whole = HEADER + "\n\n".join(filter(None, (text, lists)))
            whole += WORDS_FOLLOW if layout.words.kept else ""
            if len(text) < 80 or self._scale.text(whole) <= layout.summary_tokens:
                return whole
            text = text[: len(text) * 4 // 5].rsplit("\n", 1)[0].rstrip() + "\n…"

    async def _finished(
        self, plan: CompactionPlan, new: list[Message], reason: CompactionReason
    ) -> Compacted | None:
        after = self._scale.request(new)
        fits_now = after <= self._means.room < self._before
        if after > self._before * (1 - _LEAST_GAIN) and not fits_now:
            return None
        messages, outputs = await asyncio.to_thread(plan.aside.kept, new, self._means.keep_output)
        after = self._scale.request(messages)
        was = self._conversation.messages
        if len(was) != len(self._found) or any(
            now is not then for now, then in zip(was, self._found, strict=True)
        ):
            return None  # somebody changed the conversation meanwhile: theirs counts
        return Compacted(
            messages=tuple(messages),
            reason=reason,
            tokens_before=self._before,
            tokens_after=after,
            outputs=outputs,
        )


def _previous(messages: Sequence[Message]) -> str:
    """Return the summary that an earlier compaction made."""
    texts = [
        first.text.removesuffix(WORDS_FOLLOW).removeprefix(HEADER)
        for message in messages
        if isinstance(message, UserMessage) and message.origin == "summary" and message.content
        if isinstance(first := message.content[0], Text)
    ]
    return "\n\n".join(texts)
