"""Keeps one channel running: looks whether it lives, and begins again where it does not. What one channel meets holds no other."""

import asyncio
import logging
import random
from collections.abc import Callable
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from ybs.core.errors import YbsError
from ybs.core.time_limits import time_limit
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

#: How long a sign of life may take, and how many times in a row it may fail.
PROBE_TIMEOUT, PROBE_FAILURES = 20.0, 2
_LONGEST_WAIT: Final = 60.0
#: Wrong settings are tried again so seldom: somebody has to change them, and then starts anew.
_REFUSED_SECONDS: Final = 600.0
#: A rival may be what a process that was killed a moment ago has left: it is said when it is met again.
_RIVALS_UNSAID: Final = 1
_log = logging.getLogger("ybs.gateway.supervisor")


class Timing(Struct, frozen=True):
    """Times in seconds.

    `probe` is how often a sign of life is asked for. `first_wait` goes before a channel begins again, and each next wait is twice as
    long. After `steady` without trouble the waits begin with the shortest again.
    """

    probe: float = 90.0
    first_wait: float = 1.0
    steady: float = 60.0


_USUAL: Final = Timing()


class Supervisor:
    """Runs a channel until cancelled. `say` is told each new state: its word, and a sentence about it where something is wrong."""

    def __init__(
        self,
        name: str,
        channel: Channel,
        take: Take,
        say: Callable[[str, str], None],
        timing: Timing = _USUAL,
    ) -> None:
        self._name, self._channel, self._take, self._say = name, channel, take, say
        self._timing = timing
        self._told: tuple[State, str] = "starting", ""
        self._failures = self._rivals = 0
        self._steady: asyncio.TimerHandle | None = None

    @property
    def state(self) -> State:
        """Where the channel stands."""
        return self._told[0]

    async def run(self) -> None:
        """Keep the channel running."""
        self._say(*self._told)
        while True:
            try:
                await self._once()
                error: Exception = ChannelError("The channel ended by itself.")
            except Exception as raised:  # a channel may be anybody's
                error = raised
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
            if self._steady is not None:
                self._steady.cancel()
            for task in (running, probing):
                task.cancel()
            await asyncio.gather(running, probing, return_exceptions=True)

    async def _probe(self) -> None:
        """Return when the platform has not answered a few times in a row."""
        failures = 0
        while failures < PROBE_FAILURES:
            await asyncio.sleep(self._timing.probe)
            try:
                async with time_limit(PROBE_TIMEOUT):
                    await self._channel.probe()
                failures = 0
            except WaitError:  # it lives
                failures = 0
            except (YbsError, TimeoutError):
                failures += 1

    def _connected(self) -> None:
        loop = asyncio.get_running_loop()
        self._steady = loop.call_later(self._timing.steady, self._calmed)
        if self._rivals <= _RIVALS_UNSAID:
            self._tell("connected", "")

    def _calmed(self) -> None:
        """Forget the trouble: the channel has run for a while."""
        self._failures = self._rivals = 0
        self._tell("connected", "")

    def _wait_after(self, error: Exception) -> float:
        """Say what went wrong, and return how many seconds later to begin again."""
        longest = min(self._timing.first_wait * 2 ** (self._failures - 1), _LONGEST_WAIT)
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
