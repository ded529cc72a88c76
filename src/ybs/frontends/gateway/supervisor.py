"""Keeps one channel running: looks whether it lives, and begins again where it does not. What one channel meets holds no other."""

import asyncio
import logging
import random
import time
from collections.abc import Callable
from typing import Final, Literal, TypeAlias

from ybs.core.errors import YbsError
from ybs.frontends.gateway.channel import (
    BadSettingsError,
    Channel,
    ChannelError,
    RivalError,
    Take,
    WaitError,
)

#: `refused`: the settings are not right; `rival`: another process receives the events of the account.
State: TypeAlias = Literal["starting", "connected", "waiting", "rival", "refused"]

#: How often a channel is asked for a sign of life, how long that may take, and how many times it may fail.
PROBE_SECONDS, PROBE_TIMEOUT, PROBE_FAILURES = 90.0, 20.0, 2
_FIRST_WAIT, _LONGEST_WAIT = 1.0, 60.0
#: After so long without trouble the waits begin with the shortest again.
_STEADY_SECONDS: Final = 60.0
#: Wrong settings are tried again so seldom: somebody has to change them, and then starts anew.
_REFUSED_SECONDS: Final = 600.0
#: A rival may be what a process that was killed a moment ago has left: it is said when it is met again.
_RIVALS_UNSAID: Final = 1
_log = logging.getLogger("ybs.gateway.supervisor")


class Supervisor:
    """Runs a channel until cancelled. `say` is told each new state: its word, and a sentence about it where something is wrong."""

    def __init__(
        self,
        name: str,
        channel: Channel,
        take: Take,
        say: Callable[[str, str], None],
        *,
        probe_seconds: float = PROBE_SECONDS,
        first_wait: float = _FIRST_WAIT,
    ) -> None:
        self._name, self._channel, self._take, self._say = name, channel, take, say
        self._probe_seconds, self._first_wait = probe_seconds, first_wait
        self._told: tuple[State, str] = "starting", ""
        self._failures = self._rivals = 0
        self._connected_at = 0.0

    @property
    def state(self) -> State:
        """Where the channel stands."""
        return self._told[0]

    async def run(self) -> None:
        """Keep the channel running."""
        self._say(*self._told)
        while True:
            self._connected_at = 0.0
            try:
                await self._once()
                error: Exception = ChannelError("The channel ended by itself.")
            except Exception as raised:  # a channel may be anybody's
                error = raised
            if self._connected_at and time.monotonic() - self._connected_at > _STEADY_SECONDS:
                self._failures = self._rivals = 0
            self._failures += 1
            await asyncio.sleep(self._wait_after(error))

    async def _once(self) -> None:
        """Run the channel until it fails, or shows no sign of life."""
        running = asyncio.ensure_future(self._channel.run(self._take, self._connected))
        probing = asyncio.create_task(self._probe())
        try:
            await asyncio.wait((running, probing), return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                running.result()
            else:
                raise ChannelError("The platform shows no sign of life.")
        finally:
            for task in (running, probing):
                task.cancel()
            await asyncio.gather(running, probing, return_exceptions=True)

    async def _probe(self) -> None:
        """Return when the platform has not answered a few times in a row."""
        failures = 0
        while failures < PROBE_FAILURES:
            await asyncio.sleep(self._probe_seconds)
            try:
                async with asyncio.timeout(PROBE_TIMEOUT):
                    await self._channel.probe()
                failures = 0
            except WaitError:  # it lives
                failures = 0
            except (YbsError, TimeoutError):
                failures += 1

    def _connected(self) -> None:
        self._connected_at = time.monotonic()
        if not self._rivals:
            self._tell("connected", "")

    def _wait_after(self, error: Exception) -> float:
        """Say what went wrong, and return how many seconds later to begin again."""
        longest = min(self._first_wait * 2 ** (self._failures - 1), _LONGEST_WAIT)
        spread = 0.5 + random.random() / 2  # noqa: S311 - so that not all channels begin in one moment
        wait = longest * spread
        match error:
            case BadSettingsError():
                self._tell("refused", str(error))
                return _REFUSED_SECONDS
            case RivalError():
                self._rivals += 1
                if self._rivals > _RIVALS_UNSAID:
                    self._tell("rival", str(error))
            case WaitError():
                self._tell("waiting", str(error))
                return max(wait, error.seconds)
            case YbsError():
                self._tell("waiting", str(error))
            case _:
                _log.error("the channel %s failed", self._name, exc_info=error)
                self._tell("waiting", f"The channel failed: {type(error).__name__}.")
        return wait

    def _tell(self, state: State, sentence: str) -> None:
        if (state, sentence) != self._told:
            self._told = state, sentence
            self._say(state, sentence)
