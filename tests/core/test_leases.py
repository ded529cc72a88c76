"""Things that are held by several: one of each while anybody holds it, ended once, by the last one, in its own event loop."""

import asyncio
import gc
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ybs.core.leases import Lease, Leases


class Thing:
    """Something that can be ended once."""

    is_ended = False

    def end(self) -> None:
        assert not self.is_ended
        self.is_ended = True


@pytest.mark.integration
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5), st.booleans())))
def test_there_is_one_of_each_while_it_is_held_and_it_is_ended_by_the_last(steps):
    async def play() -> None:
        leases, held, made = Leases(), list[tuple[str, Lease[Thing]]](), list[Thing]()

        def make() -> Thing:
            made.append(Thing())
            return made[-1]

        for key, place, takes in steps:
            if takes:
                held.append((key, leases.take(key, make)))
            elif held:
                _, lease = held.pop(place % len(held))
                if lease.release():
                    lease.thing.end()
                assert not lease.release(), "a second time changes nothing"
            things = {key: lease.thing for key, lease in held}
            assert all(lease.thing is things[key] for key, lease in held)
            assert {each for each in made if not each.is_ended} == set(things.values())
            assert leases.count == len(things)

    asyncio.run(play())


async def test_one_that_is_over_is_followed_by_another_and_both_are_ended() -> None:
    leases = Leases()
    first = leases.take("key", Thing)
    second = leases.take("key", Thing, lambda _thing: True)
    third = leases.take("key", Thing)
    assert first.thing is not second.thing is third.thing
    assert first.release()
    assert leases.take("key", Thing).thing is third.thing, "the old one's end leaves the new one"


@pytest.mark.integration
def test_what_was_of_an_event_loop_that_has_ended_is_neither_used_again_nor_kept() -> None:
    leases = Leases()

    async def take() -> Lease[Thing]:
        return leases.take("key", Thing)

    async def later(first: Lease[Thing]) -> Lease[Thing]:
        assert first.is_stale
        assert not first.release(), "its loop can end nothing any more"
        lease = leases.take("key", Thing)
        assert not lease.is_stale
        return lease

    first = asyncio.run(take())
    old = weakref.ref(first.thing)
    second = asyncio.run(later(first))
    assert second.thing is not first.thing
    del first
    gc.collect()
    assert old() is None
    assert leases.count == 1
