"""The hooks around a call: each runs in turn within a time limit, and none can stop the call or another hook."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from ybs.core.errors import ToolError
from ybs.core.hooks import CallHook
from ybs.core.messages import ToolCall
from ybs.core.ports import Effect
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
