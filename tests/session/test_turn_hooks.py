"""Turn hooks that are handed in: in which order they run, and that one that fails keeps none from its end."""

from collections.abc import Callable

import pytest

from ybs.agent.hooks import TurnHook
from ybs.core.errors import YbsError
from ybs.core.events import Emit
from ybs.session.session import Session
from ybs.testing import RecordedEvents

Open = Callable[..., tuple[Session, RecordedEvents]]


class Noting(TurnHook):
    """Notes when it runs in a log that it shares, and fails where it is told to."""

    def __init__(self, number: str, log: list[str], fails_at: str = "") -> None:
        self._number, self._log, self._fails_at = number, log, fails_at

    def _note(self, place: str) -> None:
        self._log.append(f"{place} {self._number}")
        if self._fails_at == place:
            raise YbsError(f"{self._number} fails {place} the turn")

    async def before_turn(self, emit: Emit) -> None:
        self._note("before")

    async def after_turn(self) -> None:
        self._note("after")


@pytest.mark.integration
async def test_the_first_hook_is_the_outermost(playing):
    log: list[str] = []
    async with playing(["done"], hooks=[Noting("one", log), Noting("two", log)]) as (session, _, _):
        assert (await session.send("go")).text == "done"
    assert log == ["before one", "before two", "after two", "after one"]


@pytest.mark.parametrize("failing", ["one", "two"])
@pytest.mark.parametrize("place", ["before", "after"])
async def test_every_hook_ends_a_turn_also_where_another_one_fails(playing, failing, place):
    log: list[str] = []
    hooks = [Noting(number, log, place if number == failing else "") for number in ("one", "two")]
    async with playing(["done", "done"], hooks=hooks) as (session, _, _):
        with pytest.raises(YbsError, match=f"{failing} fails {place} the turn"):
            await session.send("go")
        assert not session.is_busy
    assert log[-2:] == ["after two", "after one"]
    assert (
        log[:-2]
        == ["before one", "before two"][: 1 if (failing, place) == ("one", "before") else 2]
    )
