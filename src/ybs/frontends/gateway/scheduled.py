"""Commands of the person's that run by the clock, as they agreed to: the gateway runs them, and answers in their chat and in a file.

A run is written down before it begins and after it has ended. One that a kill cut short is told and not begun again, since it may have
changed something; of those that were missed the newest is made up for.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from ybs.commands.open import open_session
from ybs.config import private_file
from ybs.core.errors import YbsError
from ybs.frontends.gateway.unattended import unattended
from ybs.learning.schedule import Scheduled, keep, scheduled_in
from ybs.session.options import Options
from ybs.session.reply import Reply
from ybs.trust.place import lies_there

_LOOK_SECONDS: Final = 20.0
_CUT_SHORT: Final = "This run was cut short, since the gateway ended. It is not begun again."
_REPLACED: Final = "Not run: what lies at {folder} now is not the folder that you agreed to. `ybs learn schedule N --gateway` agrees anew."
_log = logging.getLogger("ybs.gateway.scheduled")


class ScheduledRuns:
    """Runs what is due. `tell` takes the id of a run and what came of it."""

    def __init__(self, options: Options, tell: Callable[[str, str], Awaitable[None]]) -> None:
        self._options, self._tell = options, tell
        self._folder = options.host.state_folder / "scheduled"

    async def run(self) -> None:
        """Look for ever what is due; two runs of one command never overlap."""
        running = dict[str, asyncio.Task[None]]()
        try:
            for each in await asyncio.to_thread(scheduled_in, self._folder):
                if each.begun > each.ended:
                    await self._end(each, _CUT_SHORT)
            while True:
                running = {name: task for name, task in running.items() if not task.done()}
                for each in await asyncio.to_thread(scheduled_in, self._folder):
                    at = each.due(datetime.now().astimezone())
                    if at and each.name not in running:
                        running[each.name] = asyncio.create_task(self._do(each, at))
                await asyncio.sleep(_LOOK_SECONDS)
        finally:
            for task in running.values():
                task.cancel()

    async def _do(self, each: Scheduled, at: float) -> None:
        each = replace(each, begun=at)
        try:
            keep(self._folder, each)
            await self._end(each, await self._answer(each))
        except (YbsError, OSError) as error:
            _log.warning("a scheduled run failed: %s", type(error).__name__)

    async def _answer(self, each: Scheduled) -> str:
        folder = self._options.host.expand(each.folder, self._options.host.home)
        if not lies_there(self._options.host, each.place, folder):
            return _REPLACED.format(folder=each.folder)
        options = unattended(self._options, folder, mode=each.mode, allow=each.allow)
        try:
            async with await asyncio.to_thread(open_session, options) as session:
                result = await session.handle(f"/{each.name}")
        except YbsError as error:
            return f"That did not work: {error}"
        if isinstance(result, Reply):
            return result.text
        return (
            result.text or result.finished.message or f"The turn ended: {result.finished.reason}."
        )

    async def _end(self, each: Scheduled, text: str) -> None:
        when = datetime.fromtimestamp(each.begun).strftime("%Y-%m-%d %H:%M")
        private_file.replace(self._folder / f"{each.name}.md", text.encode())
        await self._tell(f"{each.name}:{each.begun:.0f}", f"**/{each.name}**, {when}\n\n{text}")
        keep(self._folder, replace(each, ended=each.begun))
