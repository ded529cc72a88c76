"""Several judges of calls as one."""

from collections.abc import Sequence

from msgspec.structs import replace

from ybs.core.hooks import CallJudge, CallVerdict
from ybs.core.messages import ToolCall, ToolResult
from ybs.tools.calls.supervise import awaited


class Judges:
    """Asks one judge after the other. Raises ToolError where one fails: then nothing is run."""

    def __init__(self, judges: Sequence[CallJudge]) -> None:
        self._judges = judges

    async def judge(self, call: ToolCall) -> CallVerdict:
        """Ask each about the call as the one before leaves it. A refusal ends that; `ask` beats `allow`."""
        said = CallVerdict()
        for judge in self._judges:
            run = judge.judge
            next_said = await awaited(lambda run=run, call=call: run(call), "a hook", None)
            if next_said.refusal:
                return next_said
            if next_said.arguments is not None:
                call = replace(call, arguments=next_said.arguments, invalid="")
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
