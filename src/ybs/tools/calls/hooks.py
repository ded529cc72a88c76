"""The hooks around a call: each runs in turn within a time limit, and none can stop the call or another hook. Those that judge calls do so as one."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from msgspec.structs import replace

from ybs.core.errors import ToolError
from ybs.core.hooks import UNSEEN, CallHook, CallJudge, CallVerdict
from ybs.core.messages import ToolCall, ToolResult
from ybs.core.ports import Effect, Preview
from ybs.tools.calls.supervise import awaited

#: How long one hook may take.
HOOK_SECONDS = 60.0


async def before_change(
    hooks: Sequence[CallHook], call: ToolCall, effect: Effect, paths: Sequence[str]
) -> tuple[str, ...]:
    """Run the hooks before a change; return a note for each that failed."""
    notes: list[str] = []
    for hook in hooks:
        run = hook.before_change
        try:
            await awaited(lambda run=run: run(call, effect, paths), hook.name, HOOK_SECONDS)
        except ToolError as error:
            notes.append(f"{hook.loss}: {error}")
    return tuple(notes)


async def after_change(
    hooks: Sequence[CallHook], call: ToolCall, effect: Effect, paths: Sequence[str]
) -> None:
    """Run the hooks after a change, the last one first. That is done to its end, also where it is cancelled meanwhile."""

    async def run_all() -> None:
        for hook in reversed(hooks):
            run = hook.after_change
            with suppress(ToolError):  # what runs at the end of the turn makes up for it
                await awaited(lambda run=run: run(call, effect, paths), hook.name, HOOK_SECONDS)

    if not hooks:
        return
    running = asyncio.ensure_future(run_all())
    try:
        await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait((running,))
        raise


class Judges:
    """Asks one judge after the other. Raises ToolError where one fails: then nothing is run."""

    def __init__(self, judges: Sequence[CallJudge]) -> None:
        self._judges = judges

    async def judge(self, call: ToolCall, preview: Preview = UNSEEN) -> CallVerdict:
        """Ask each about the call as the one before leaves it. A refusal ends that; `ask` beats `allow`."""
        said = CallVerdict()
        for judge in self._judges:
            asked = partial(judge.judge, call, preview)
            next_said = await awaited(asked, "a hook", None)
            if next_said.refusal:
                return next_said
            if next_said.arguments is not None:
                call, preview = replace(call, arguments=next_said.arguments, invalid=""), UNSEEN
            stronger = next_said if next_said.wish and said.wish != "ask" else said
            said = CallVerdict(
                arguments=said.arguments if next_said.arguments is None else next_said.arguments,
                wish=stronger.wish,
                reason=stronger.reason,
                note="\n".join(filter(None, (said.note, next_said.note))),
            )
        return said

    async def look_at(self, call: ToolCall, result: ToolResult) -> ToolResult:
        """Return the result of a call that was run with what they add to it."""
        if not result.is_refused:
            for judge in self._judges:
                run = judge.look_at
                result = await awaited(
                    lambda run=run, result=result: run(call, result), "a hook", None
                )
        return result
