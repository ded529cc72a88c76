"""`ybs gateway start` as it is installed, on each platform: who writes is let in, asks, approves and is answered, also over kills."""

import asyncio
import json
import os
import random
import re
import signal
import sys
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from channel_contract import Sent
from chat_faults import MARK, reply
from discord_platform import DiscordPlatform
from matrix_platform import MatrixPlatform
from scripted import OpenAIServer
from slack_platform import SlackPlatform
from whatsapp_platform import WhatsAppPlatform

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

PLATFORMS = (DiscordPlatform, MatrixPlatform, SlackPlatform, WhatsAppPlatform)
Platform = DiscordPlatform | MatrixPlatform | SlackPlatform | WhatsAppPlatform
SECRETS = ("token", "app_token", "app_secret", "verify_token")
YBS = (sys.executable, "-m", "ybs", "gateway")


class Running:
    """The gateway as a process, on a platform and with a scripted model; tokens come by variables."""

    def __init__(self, home: Path, platform: Platform, model: OpenAIServer) -> None:
        self.home, self.platform = home, platform
        self.process: asyncio.subprocess.Process | None = None
        entry = platform.settings()
        secrets = {key: entry.pop(key) for key in SECRETS if key in entry}
        entry |= {f"{key}_env": key.upper() for key in secrets}
        self.environ = {**os.environ, "HOME": str(home), "OPENAI_API_KEY": "k"}
        self.environ |= {key.upper(): value for key, value in secrets.items()}
        settings = {
            "llm": {"provider": "openai", "model": "m", "endpoint": model.url},
            "gateway": {"channels": {platform.kind: entry}, "per_minute": 10_000},
        }
        file = home / ".config" / "ybs" / "config.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(settings))

    async def start(self) -> None:
        """Start it, and wait until the channel is connected."""
        before = self.platform.connections
        with (self.home / "stderr").open("ab") as said:
            self.process = await asyncio.create_subprocess_exec(
                *YBS, "start", env=self.environ, stdout=said, stderr=said
            )
        await self.platform.until(lambda: self.platform.connections > before, 60)

    async def run(self, *words: str) -> str:
        """Run another command of the gateway and return what it prints."""
        process = await asyncio.create_subprocess_exec(
            *YBS,
            *words,
            env=self.environ,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        return (await process.communicate())[0].decode()

    async def end(self, number: signal.Signals) -> None:
        """End it, where it still runs."""
        if self.process is not None:
            with suppress(ProcessLookupError):
                self.process.send_signal(number)
            await self.process.wait()

    def answers(self, number: int) -> list[Sent]:
        """Return the messages that say that a task is done."""
        return [s for s in self.platform.sent if re.search(rf"\bdone {number}\.", s.text)]


@pytest.fixture(params=PLATFORMS, ids=lambda kind: kind.kind)
async def gateway(request: pytest.FixtureRequest) -> AsyncGenerator[Running]:
    """A gateway that has not been started."""
    platform = request.param()
    with TemporaryDirectory(prefix="ybs-") as home:
        async with OpenAIServer([reply], is_repeated=True) as model:
            await platform.start()
            made = Running(Path(home), platform, model)
            try:
                yield made
            finally:
                await made.end(signal.SIGKILL)
                await platform.stop()


@asynccontextmanager
async def approving(platform: Platform) -> AsyncGenerator[None]:
    """Say yes to each question, once."""

    async def press() -> None:
        pressed = set[str]()
        while True:
            for sent in platform.sent:
                tokens = {token for label, token in sent.buttons if label == "Yes"} - pressed
                if tokens:
                    pressed |= tokens
                    await platform.press("Yes")
            await asyncio.sleep(0.05)

    task = asyncio.create_task(press())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def paired(gateway: Running) -> None:
    """Have the person let in as the owner."""
    await gateway.platform.say("hello")
    await gateway.platform.until(lambda: gateway.platform.sent, 20)
    (waiting,) = json.loads(await gateway.run("pair", "--format", "json"))
    assert "as the owner" in await gateway.run("pair", waiting["code"])


async def test_a_stranger_is_paired_asks_approves_and_is_answered(gateway):
    platform = gateway.platform
    await gateway.start()
    await platform.say("hello")
    await platform.until(lambda: platform.sent, 20)
    assert platform.sent[0].text.startswith("This assistant is private")
    (waiting,) = json.loads(await gateway.run("pair", "--format", "json"))
    assert waiting["channel"] == platform.kind
    assert "as the owner" in await gateway.run("pair", waiting["code"])
    await platform.say("task 1")
    await platform.until(lambda: any(each.buttons for each in platform.sent), 20)
    question = next(each for each in platform.sent if each.buttons)
    assert "echo 1" in question.text
    await platform.press("Yes")
    await platform.until(lambda: gateway.answers(1), 20)
    (chat,) = (gateway.home / "ybs-chats").iterdir()
    assert (chat / "effects").read_text() == "1\n"
    if platform.kind != "whatsapp":  # which edits nothing
        await platform.until(lambda: not any(each.buttons for each in platform.sent), 20)
    log = (gateway.home / ".local/state/ybs/gateway/log").read_text()
    log += (gateway.home / "stderr").read_text()
    names = [key.upper() for key in SECRETS]
    secrets = [gateway.environ[key] for key in names if key in gateway.environ]
    assert not [each for each in (*secrets, waiting["code"], "task 1") if each in log]


async def test_kills_lose_nothing_double_nothing_and_run_nothing_twice(gateway):
    platform, chance = gateway.platform, random.Random(7)
    await gateway.start()
    await paired(gateway)
    async with approving(platform):
        for number in (1, 2):
            await platform.say(f"task {number}")
            await asyncio.sleep(chance.random())
        await gateway.end(signal.SIGKILL)
        await platform.say("task 3")  # while nobody runs
        await gateway.start()
        await platform.until(lambda: all(map(gateway.answers, (1, 2, 3))), 60)
    for number in (1, 2, 3):
        assert len([each for each in gateway.answers(number) if MARK not in each.text]) <= 1
    (chat,) = (gateway.home / "ybs-chats").iterdir()
    effects = Counter((chat / "effects").read_text().split())
    assert not [number for number, times in effects.items() if times > 1]


async def test_a_missing_variable_is_named_and_a_wrong_token_is_said_once(gateway):
    del gateway.environ["TOKEN"]
    assert "the variable TOKEN is not set" in await gateway.run("start")
    gateway.environ["TOKEN"] = str(gateway.platform.settings(wrong=True)["token"])
    process = await asyncio.create_subprocess_exec(
        *YBS, "start", env=gateway.environ, stderr=asyncio.subprocess.PIPE
    )
    try:
        assert process.stderr is not None
        said = ""
        async with asyncio.timeout(30):
            while f"{gateway.platform.kind}: " not in said:
                said += (await process.stderr.readline()).decode()
        assert gateway.environ["TOKEN"] not in said
    finally:
        process.terminate()
        rest = (await process.communicate())[1].decode()
    assert rest == ""
