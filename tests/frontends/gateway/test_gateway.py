"""`ybs gateway` as a process, with a scripted model, a platform on loopback, and people who write."""

import json
import re
import signal

import pytest

from chat_faults import GatewayProcess, Run, gateway

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


async def started(process: GatewayProcess) -> None:
    """Start it, and wait until it reads what people write."""
    await process.start()
    polls = process.platform.polls
    await process.platform.until(lambda: process.platform.polls > polls, 30)


async def test_a_stranger_is_paired_asks_approves_and_is_answered():
    async with gateway(owners=()) as process:
        platform = process.platform
        await started(process)
        platform.say("hello", chat=7, person=7, name="Eve\x1b[31m")
        await platform.until(lambda: platform.texts(7), 10)
        assert platform.texts(7) == ["This assistant is private; its owner can let you in."]
        (waiting,) = json.loads(await process.run("pair", "--format", "json"))
        assert set(waiting) == {"code", "channel", "who"}
        assert (waiting["channel"], "\x1b" in waiting["who"]) == ("telegram", False)
        assert waiting["code"] not in (process.home / ".local/state/ybs/gateway/log").read_text()
        assert "as the owner" in await process.run("pair", waiting["code"])
        await platform.until(lambda: len(platform.texts(7)) == 2, 10)
        platform.say("task 1", chat=7, person=7)
        await platform.until(lambda: process.shows("Yes"), 20)
        assert any("echo 1 &gt;&gt; effects" in each for each in platform.texts(7))
        platform.press("Yes", chat=7, person=7)
        await platform.until(lambda: any("done 1." in each for each in platform.texts(7)), 20)
        assert json.loads(await process.run("status", "--format", "json"))["running"] is True
        (chat,) = (process.home / "ybs-chats").iterdir()
        assert (chat / "effects").read_text() == "1\n"


async def test_stop_ends_a_turn_and_a_restart_does_not_bring_it_back():
    async with gateway() as process:
        platform = process.platform
        await started(process)
        platform.say("task 1")
        await platform.until(lambda: process.shows("Yes"), 20)
        platform.say("/stop")
        await platform.until(lambda: "Stopped." in platform.texts(), 20)
        await process.kill()
        await started(process)
        platform.say("/status")
        await platform.until(lambda: re.search(r"ode\b.*ask", platform.texts()[-1], re.S), 20)
        assert not list((process.home / "ybs-chats").glob("*/effects"))


async def test_a_gateway_that_is_ended_goes_on_with_its_turns_when_it_is_started_again():
    async with gateway() as process:
        platform = process.platform
        await started(process)
        platform.say("task 1")
        await platform.until(lambda: process.shows("Yes"), 20)
        process.end()
        assert await process.ended(20)
        count = len(platform.sent)
        await started(process)
        await platform.until(lambda: process.shows("Yes", after=count), 30)
        platform.press("Yes")
        await platform.until(lambda: any("done 1." in each for each in platform.texts()), 20)
        assert not any("Stopped" in each for each in platform.texts())


async def test_two_gateways_do_not_run_side_by_side():
    async with gateway() as process:
        await started(process)
        assert "runs already" in await process.run("start")


async def test_a_crash_says_where_and_the_next_one_goes_on():
    async with gateway() as process:
        await started(process)
        process.platform.say("good morning")
        await process.platform.until(lambda: process.platform.texts(), 20)
        assert process.process is not None
        process.process.send_signal(signal.SIGSEGV)
        assert await process.ended(10)
        said = (process.home / "stderr").read_text()
        assert "Fatal Python error: Segmentation fault" in said
        assert "morning" not in said
        await started(process)
        process.platform.say("good evening")
        await process.platform.until(lambda: process.platform.texts().count("hello") == 2, 20)


@pytest.mark.timeout(300)
async def test_kills_lose_nothing_double_nothing_and_run_nothing_twice():
    async with gateway() as process:
        assert await Run(process, seed=5).play(4) == []
