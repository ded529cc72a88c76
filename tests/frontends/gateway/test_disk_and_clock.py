"""A full disk and clocks that jump, with SQLite and with PostgreSQL: nothing is lost or done twice, and what is wrong is said in words."""

import asyncio
import os
import random
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from chat_clock import Clock, needs_clock
from chat_faults import CHATS, GatewayProcess, gateway, reply
from chat_platform import ChatPlatform, Sent
from postgres import postgres, programs
from scripted import Entry, OpenAIServer
from scripted.http import RecordedRequest
from ybs.frontends.gateway.lease import LOST

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]
needs_postgres = pytest.mark.skipif(programs() is None, reason="PostgreSQL is not installed")
needs_disk = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")


class Talk:
    """Persons who give tasks, say yes to what is asked, and look what became of it."""

    def __init__(self, process: GatewayProcess) -> None:
        self.process, self.platform = process, process.platform

    async def begin(self) -> None:
        await self.process.start()
        for chat in (1, 2):
            self.platform.say("/project shop", chat=chat, person=chat)
        await self.platform.until(lambda: len(self.platform.sent) == 2, 40)

    async def asked(self, number: int) -> None:
        """Give a task, and wait until its command is asked for."""
        count = len(self.platform.sent)
        self.platform.say(f"task {number}")
        await self.platform.until(lambda: self.process.shows("Yes", after=count), 40)

    async def done(self, number: int, chat: int = 1) -> None:
        await self.platform.until(lambda: f"done {number}." in self.platform.texts(chat), 40)

    async def task(self, number: int) -> None:
        await self.asked(number)
        self.platform.press("Yes")
        await self.done(number)

    async def settled(self, *numbers: int) -> None:
        """Say yes to all that is asked, until these tasks are done."""
        pressed = set[str]()
        wanted = {f"done {number}." for number in numbers}
        while not wanted <= self.answers().keys():  # the test's time is bounded
            for sent in list(self.platform.sent):
                for each in (each for row in sent.buttons for each in row):
                    if each["text"] == "Yes" and each["callback_data"] not in pressed:
                        pressed.add(each["callback_data"])
                        chat, token = sent.chat, each["callback_data"]
                        self.platform.press("Yes", chat=chat, person=chat, token=token)
            await asyncio.sleep(0.1)

    def effects(self) -> list[str]:
        return (self.process.shop / "effects").read_text().split()

    def answers(self) -> Counter[str]:
        """Count the answers without a mark; one that was still growing when the process died is none."""
        texts = (each.text for each in self.platform.sent)
        return Counter(each for each in texts if re.fullmatch(r"done \d+\.", each))


class SmallDisk:
    """A disk of its own at a folder."""

    def __init__(self, folder: Path) -> None:
        self._filling = folder / "filling"
        self.is_full = False

    def fill(self) -> None:
        with self._filling.open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(b"\0" * 512)
        self.is_full = True

    def free(self) -> None:
        self._filling.unlink()
        self.is_full = False


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Generator[SmallDisk]:
    """Mount one, empty, of so many megabytes."""
    options = f"size={megabytes}m,mode=0700,uid={folder.stat().st_uid},gid={folder.stat().st_gid}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=True)
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


async def until(is_so: Callable[[], bool], seconds: float = 40) -> None:
    """Wait until something is so that nobody tells."""
    async with asyncio.timeout(seconds):
        while not is_so():  # noqa: ASYNC110 - files
            await asyncio.sleep(0.05)


def said_by(process: GatewayProcess) -> str:
    """Return what the gateway has said."""
    return (process.home / "stderr").read_text()


def asks(process: GatewayProcess) -> list[Sent]:
    """Return the messages that had a button for yes."""
    return [each for each in process.platform.sent if "Run a shell command?" in each.text]


class FullWhenAsked:
    """A model that fills the disk before it says that a task is done."""

    def __init__(self, number: int) -> None:
        self.disk: SmallDisk | None = None
        self._last = f"done {number}."

    def __call__(self, request: RecordedRequest) -> Entry:
        """Answer."""
        said = reply(request)
        if said == self._last and self.disk is not None:
            self.disk.fill()
            self.disk = None
        return said


@needs_disk
async def test_a_full_disk_loses_nothing(tmp_path: Path):
    fills = FullWhenAsked(1)
    model = OpenAIServer([fills], is_repeated=True)
    async with ChatPlatform() as platform, model:
        process = GatewayProcess(tmp_path / "home", platform, model, CHATS)
        settings = process.home / ".config" / "ybs" / "config.json"
        text = settings.read_text()
        with small_disk(process.home, 16) as disk:
            settings.parent.mkdir(parents=True)
            settings.write_text(text)
            fills.disk, talk = disk, Talk(process)
            try:
                await talk.begin()
                await talk.asked(1)
                platform.press("Yes")  # and with the answer of the model the disk is full
                await until(lambda: disk.is_full)
                platform.say("task 2", chat=2, person=2)
                await until(lambda: "disk is full" in said_by(process))
                assert not talk.answers()
                disk.free()
                await talk.done(1)
                await platform.until(lambda: len(asks(process)) == 2, 40)
                platform.press("Yes", chat=2, person=2)
                await talk.done(2, chat=2)
            finally:
                await process.kill()
            assert "Traceback" not in said_by(process)
    assert talk.effects() == ["1", "2"]
    assert [*talk.answers().values()] == [1, 1]


@needs_disk
@needs_postgres
async def test_a_full_disk_of_the_database_loses_nothing(tmp_path: Path):
    model = OpenAIServer([reply], is_repeated=True)
    with TemporaryDirectory(prefix="ybs-") as short, ExitStack() as stack:
        os.chmod(short, 0o711)  # noqa: PTH101 - the database is another user's
        folder = Path(short) / "database"
        folder.mkdir()
        disk = stack.enter_context(small_disk(folder, 96))
        server = stack.enter_context(postgres(folder))
        async with ChatPlatform() as platform, model:
            process = GatewayProcess(tmp_path / "home", platform, model, CHATS, server.url)
            talk = Talk(process)
            try:
                await talk.begin()
                await talk.asked(1)
                disk.fill()
                platform.press("Yes")
                platform.say(f"task 2 {random.randbytes(1_900).hex()}", chat=2, person=2)
                await until(lambda: "No space left on device" in said_by(process))
                disk.free()
                if await process.ended(2):  # a transcript could not be kept, so nothing was done
                    assert process.process is not None
                    assert process.process.returncode == LOST
                    await process.start()  # as what started it would
                await talk.settled(1, 2)
            finally:
                await process.kill()
            assert "Traceback" not in said_by(process)
    assert sorted(talk.effects()) == ["1", "2"]
    assert [*talk.answers().values()] == [1, 1]


@needs_clock
async def test_a_clock_that_jumps_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async with gateway() as process:
        clock, talk = Clock(tmp_path / "clock", monkeypatch), Talk(process)
        await talk.begin()
        await talk.asked(1)
        await clock.set(-2)
        process.platform.press("Yes")
        await talk.done(1)
        await talk.asked(2)
        await clock.set(+30)  # more than `gateway.idle_hours`
        process.platform.press("Yes")
        await talk.done(2)
        await process.kill()
        await process.start("answered", 3)  # the question, its end, and the answer
        process.platform.say("task 3")
        await process.platform.until(lambda: len(asks(process)) == 3, 40)
        process.platform.press("Yes")
        assert await process.ended(40)
        await clock.set(40 * 24)
        await process.start()
        await talk.done(3)
        await clock.set(0)
        await talk.task(4)
        assert talk.effects() == ["1", "2", "3", "4"]
        assert [*talk.answers().values()] == [1, 1, 1, 1]
