"""The hooks around a call: each runs in turn within a time limit, and none can stop the call or another hook.

Those that judge calls do so as one. A judge only ever sees a call that its toolbox has prepared: repaired, and looked at by its tool. Other arguments
make it a new call, which is prepared as the model's was, so that a guard reads of both the same names, files and command line.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial

from msgspec.structs import replace

from ybs.core.errors import ToolError
from ybs.core.hooks import CallHook, CallJudge, CallToJudge, CallVerdict
from ybs.core.messages import ToolCall, ToolResult
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


class Judges:
    """Asks one judge after the other. Raises ToolError where one fails: then nothing is run."""

    def __init__(self, judges: Sequence[CallJudge]) -> None:
        self._judges = judges

    async def judge(
        self,
        case: CallToJudge,
        prepared: Callable[[ToolCall], Awaitable[CallToJudge]] | None = None,
    ) -> CallVerdict:
        """Ask each about the call as the one before leaves it; it stays as it is where nobody can have another one `prepared`.

        Whoever had somebody else's arguments taken is asked once more, about those. A refusal ends it all; `ask` beats `allow`.
        """
        said = CallVerdict()
        for judge in self._judges:
            said = _together(said, verdict := await _asked(judge, case))
            if said.refusal:
                break
            if prepared is None or verdict.arguments is None:
                continue
            case = await prepared(replace(case.call, arguments=verdict.arguments, invalid=""))
            if verdict.by_others:
                said = _together(said, await _asked(judge, replace(case, is_changed=True)))
            if said.refusal:
                break
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


async def _asked(judge: CallJudge, case: CallToJudge) -> CallVerdict:
    return await awaited(partial(judge.judge, case), "a hook", None)


def _together(said: CallVerdict, then: CallVerdict) -> CallVerdict:
    if then.refusal:
        return then
    stronger = then if then.wish and said.wish != "ask" else said
    note = "\n".join(filter(None, (said.note, then.note)))
    return CallVerdict(wish=stronger.wish, reason=stronger.reason, note=note)
