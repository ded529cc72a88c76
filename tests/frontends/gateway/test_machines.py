"""Gateways of several machines that share a real PostgreSQL database: one leads, all work, and none does what another one does."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from time import monotonic

import pytest

from chat_clock import Clock, needs_clock
from chat_faults import CHATS, Machines, Run, machines
from postgres import programs
from ybs.frontends.gateway.lease import LOST

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.skipif(programs() is None, reason="PostgreSQL is not installed"),
]


@pytest.fixture
async def two() -> AsyncGenerator[Machines]:
    async with machines() as made:
        yield made


def asked_in(two: Machines, *, after: int = 0) -> set[int]:
    """Return the chats in which a question was asked since so many messages."""
    return {sent.chat for sent in two.platform.sent[after:] if sent.buttons}


async def serve(two: Machines) -> None:
    """Start one that leads, and then the others, and bind the chats to the project."""
    if two.all[0].process is None:
        await two.all[0].start()
        await two.led()
    await two.start()
    for chat in CHATS:
        two.platform.say("/project shop", chat=chat, person=chat)
    await two.until(lambda: len(two.platform.sent) >= len(CHATS), restarts=True)
    counted = "SELECT count(*) FROM workers"
    await two.until(lambda: two.server.ask(counted) == str(len(two.all)), restarts=True)


async def ask_in_all(two: Machines) -> dict[int, list[int]]:
    """Have a turn ask something in each chat; return which chats each worker has, the leader's first."""
    before = len(two.platform.sent)
    for chat in CHATS:
        two.platform.say(f"task {chat}", chat=chat, person=chat)
    await two.until(lambda: asked_in(two, after=before) == {*CHATS}, restarts=True)
    found = dict[int, list[int]]()
    for line in two.server.ask("SELECT worker, key FROM chats ORDER BY worker, key").splitlines():
        worker, _, key = line.partition("|")
        found.setdefault(int(worker), []).append(int(key.split(":")[3]))
    return found


async def answered(
    two: Machines,
    chats: list[int],
    *,
    after: int = 0,
    restarts: bool = False,
    last: Mapping[int, int] | None = None,
) -> None:
    """Say yes to what is asked in chats, and anew where it is asked anew, until all is done; `restarts` one that has ended meanwhile.

    `last` are tasks by their chat that have another number than it.
    """
    pressed = set[str]()

    def are_done() -> bool:
        for sent in [e for e in two.platform.sent[after:] if e.chat in chats and e.buttons]:
            row = next(each for each in sent.buttons[0] if each["text"] == "Yes")
            if row["callback_data"] not in pressed:
                pressed.add(row["callback_data"])
                two.platform.press(
                    "Yes", chat=sent.chat, person=sent.chat, token=row["callback_data"]
                )
        return all(says(two, chat, f"done {(last or {}).get(chat, chat)}.") for chat in chats)

    await two.until(are_done, 60, restarts=restarts)


def says(two: Machines, chat: int, words: str) -> bool:
    return any(words in each for each in two.platform.texts(chat))


def effects(two: Machines) -> list[str]:
    file = two.shop / "effects"
    return sorted(file.read_text().split()) if file.exists() else []


@contextmanager
def busyness() -> Generator[list[float]]:
    """Hand out how many processes each processor has, on average, those that wait for a disk too, as the one number of a list; 1 on a machine that has nothing else to do."""
    taken, ended = [1.0], Event()

    def look() -> None:
        seen = list[int]()
        while not ended.wait(0.02):
            counted = Path("/proc/stat").read_text().partition("\nprocs_")[2].splitlines()
            running, blocked = (int(line.split()[-1]) for line in counted[:2])
            seen.append(running - 1 + blocked)  # but for this thread
            taken[0] = max(1.0, sum(seen) / len(seen) / (os.cpu_count() or 1))

    thread = Thread(target=look)
    thread.start()
    try:
        yield taken
    finally:
        ended.set()
        thread.join()


async def test_turns_run_on_both_and_what_is_said_in_chats_reaches_them(two: Machines):
    await serve(two)
    of = await ask_in_all(two)
    leader, worker = of.values()
    assert len(leader) == len(worker) == 3
    there = worker[0]  # its turn runs on the machine that has no channels
    two.platform.say("/stop", chat=there, person=there)
    await two.until(lambda: says(two, there, "Stopped."))
    two.platform.say("/mode plan", chat=there, person=there)
    await two.until(lambda: says(two, there, "plan"))
    id = two.server.ask(f"SELECT id FROM questions WHERE chat LIKE '%\n{worker[1]}'")
    two.platform.say(f"/approve {id} yes", chat=worker[1], person=worker[1])
    await answered(two, [*leader, worker[2]])
    await two.until(lambda: says(two, worker[1], f"done {worker[1]}."))
    assert effects(two) == sorted(str(chat) for chat in CHATS if chat != there)
    assert two.server.ask("SELECT count(*) FROM questions") == "0"


@pytest.mark.parametrize("killed", [0, 1])
async def test_the_turns_of_one_that_is_killed_go_on_elsewhere(two: Machines, killed: int):
    await serve(two)
    lost = [*(await ask_in_all(two)).values()][killed]
    count = len(two.platform.sent)
    with busyness() as busy:
        await two.all[killed].kill()  # and with its connection its lease ends
        began = monotonic()
        await two.until(lambda: asked_in(two, after=count) >= {*lost})
        took = monotonic() - began
    assert took <= 2 * busy[0], (took, busy)
    await answered(two, [*CHATS])
    assert effects(two) == sorted(map(str, CHATS))


@needs_clock
async def test_clocks_that_differ_by_minutes_decide_nothing(
    two: Machines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    right, wrong = two.all
    await right.start()
    await two.led()
    with monkeypatch.context() as patch:
        Clock(tmp_path / "clock", patch, hours=-0.2)
        await wrong.start()
    await serve(two)
    assert len(await ask_in_all(two)) == 2
    await asyncio.sleep(5)  # longer than any lease without a sign of life
    assert two.server.ask("SELECT count(*) FROM workers") == "2"
    for dead in (right, wrong):
        lost = two.server.ask("SELECT min(number) FROM workers")
        count = len(two.platform.sent)
        await dead.kill()
        await two.until(lambda count=count: asked_in(two, after=count))
        assert lost not in two.server.ask("SELECT number FROM workers").split()
        await two.start()
        await two.until(lambda: two.server.ask("SELECT count(*) FROM workers") == "2")
    await answered(two, [*CHATS])
    assert effects(two) == sorted(map(str, CHATS))


async def test_one_that_was_taken_for_dead_ends_before_it_does_anything_else(two: Machines):
    await serve(two)
    chats = [*(await ask_in_all(two)).values()][1]
    two.server.ask("DELETE FROM workers WHERE number = (SELECT max(number) FROM workers)")
    count = len(two.platform.sent)
    assert await two.all[1].ended(20)
    assert two.all[1].process is not None
    assert two.all[1].process.returncode == LOST
    await two.until(lambda: asked_in(two, after=count) >= {*chats})
    assert effects(two) == []
    await answered(two, [*CHATS])
    assert effects(two) == sorted(map(str, CHATS))


async def test_a_database_that_goes_away_for_ten_seconds_loses_nothing(two: Machines):
    await serve(two)
    await ask_in_all(two)
    two.server.end(kill=True)
    for each in two.all:
        assert await each.ended(20)
    two.platform.say("task 7", chat=1, person=1)
    await two.start()  # as what started them would; they wait
    await asyncio.sleep(10)
    count = len(two.platform.sent)
    two.server.start()
    await two.until(lambda: asked_in(two, after=count) == {*CHATS})
    await answered(two, [*CHATS], after=count, restarts=True, last={1: 7})
    assert effects(two) == sorted(map(str, (*CHATS, 7)))
    done = [each for each in two.platform.texts(1) if each.startswith("done ")]
    assert done == ["done 1.", "done 7."]
    assert "cannot be reached" in (two.all[1].home / "stderr").read_text()


async def test_turns_of_an_old_version_end_there_or_are_taken_up_by_the_new_one():
    async with machines(3) as three:
        leader, old, new = three.all
        await leader.start()
        await three.led()
        await new.start("newer")
        await serve(three)
        of = await ask_in_all(three)
        lost, kept = of.values()  # the newer one has no chats
        assert old.process is not None
        old.process.send_signal(signal.SIGSTOP)  # so that it is the newer one that leads next
        count = len(three.platform.sent)
        await leader.kill()
        await three.until(lambda: asked_in(three, after=count) >= {*lost})
        old.process.send_signal(signal.SIGCONT)
        await answered(three, [*CHATS])
        assert effects(three) == sorted(map(str, CHATS))
        of_old = f"SELECT count(*) FROM chats WHERE worker = {[*of][1]}"
        await three.until(lambda: three.server.ask(of_old) == "0")
        three.platform.say("task 7", chat=kept[0], person=kept[0])
        count = len(three.platform.sent)
        await three.until(lambda: asked_in(three, after=count) >= {kept[0]})
        assert three.server.ask(of_old) == "0"


@pytest.mark.timeout(300)
async def test_kills_on_two_machines_lose_nothing_and_run_nothing_twice(two: Machines):
    assert await Run(two, seed=7).play(3) == []


def test_an_address_that_is_none_is_refused_in_words(tmp_path: Path) -> None:
    from ybs.core.errors import ConfigError
    from ybs.frontends.gateway.store import shared_engine

    for address in ("nonsense", "mysql://a@b/c", "sqlite:///x"):
        with pytest.raises(ConfigError, match=r"gateway\.database"):
            shared_engine(address)
