"""Share things between sessions: one for each key, for as long as anybody holds it."""

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

_T = TypeVar("_T")


class Lease(Generic[_T]):
    """A hold on a thing that may be shared. Whoever releases the last one ends the thing."""

    def __init__(self, thing: _T, loop: "AbstractEventLoop", leave: Callable[[], bool]) -> None:
        self.thing = thing
        self._loop, self._leave = loop, leave
        self._is_held = True

    @property
    def is_stale(self) -> bool:
        """Whether the thing belongs to another event loop than the running one, and is of no use here."""
        from asyncio import get_running_loop  # loaded where a loop runs

        return self._loop is not get_running_loop()

    def release(self) -> bool:
        """Hold it no longer. Return whether it is to be ended now: nobody else holds it, and its event loop still lives."""
        if not self._is_held:
            return False
        self._is_held = False
        return self._leave() and not self._loop.is_closed()


class _Held:
    def __init__(self, thing: Any) -> None:
        self.thing, self.holders = thing, 0


class Leases:
    """The things that are held, by their keys. Nothing is shared between event loops."""

    def __init__(self) -> None:
        self._held: dict[tuple[AbstractEventLoop, Hashable], _Held] = {}

    @property
    def count(self) -> int:
        """How many things there are."""
        return len(self._held)

    def take(
        self,
        key: Hashable,
        make: Callable[[], _T],
        is_over: Callable[[_T], bool] = lambda _thing: False,
    ) -> Lease[_T]:
        """Hold the thing with this key; it is made where there is none, or the one that there is `is_over`."""
        from asyncio import get_running_loop  # loaded where a loop runs

        for place in tuple(self._held):
            if place[0].is_closed():  # its holders can release nothing any more
                self._held.pop(place, None)
        place = (loop := get_running_loop(), key)
        held = self._held.get(place)
        if held is None or is_over(held.thing):
            held = self._held[place] = _Held(make())
        held.holders += 1

        def leave() -> bool:
            held.holders -= 1
            if not held.holders and self._held.get(place) is held:
                del self._held[place]
            return not held.holders

        return Lease(held.thing, loop, leave)
