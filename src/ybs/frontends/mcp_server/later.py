"""What commands leave behind that runs or is read later is named to the person, as in a session."""

from collections.abc import Sequence

from ybs.agent.environment import ToolEnvironment
from ybs.agent.later_watch import LaterWatch
from ybs.core.events import Emit
from ybs.core.hooks import CallHook
from ybs.core.messages import ToolCall
from ybs.core.ports import Effect


class LaterNotices(CallHook):
    """Looks before and after each command; what it finds goes to `emit`."""

    name = "looking for files that run later"
    loss = "the person is not told which files it leaves that run later"

    def __init__(self, environment: ToolEnvironment, emit: Emit) -> None:
        self._watch = LaterWatch(environment.sandbox, environment.roots, environment.has_jobs)
        self._emit = emit

    async def before_change(self, call: ToolCall, effect: Effect, paths: Sequence[str]) -> None:
        """Look at what is there before a command."""
        del call, paths
        if effect == "execute":
            await self._watch.before(self._emit)

    async def after_change(self, call: ToolCall, effect: Effect, paths: Sequence[str]) -> None:
        """Name what a command has left."""
        del call, paths
        if effect == "execute":
            await self._watch.after(self._emit)
