"""How prompts begin is read once by a server, and kept for the servers after it."""

import asyncio
import os
from pathlib import Path

import pytest

from hosts import this_host
from ybs.config.schema import Config, IncognitoSettings
from ybs.core.events import AssistantSaid, Event, Noticed
from ybs.core.messages import UserMessage
from ybs.core.ports import Request
from ybs.providers.local import STARTER_NAME, prefix_slot, server
from ybs.providers.local import process as lock
from ybs.providers.local.model import WAITING, LlamaCppModel
from ybs.providers.local.prefix_slot import KEPT, MOST_CHARS, READING

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("starter", "fake_server")]


async def is_read_anew(
    system: str = "rules", words: str = "secret words", config: Config | None = None
) -> bool:
    """Ask something of a server that is started for it and ended afterwards; return whether it had to read the beginning."""
    local = LlamaCppModel(this_host(), config or Config(), STARTER_NAME)
    events = [event async for event in local.stream(Request(system, (UserMessage.of(words),)))]
    await local.aclose()
    await server.stop(this_host())
    assert isinstance(events[-1], AssistantSaid)
    return Noticed(level="info", text=READING) in events


def kept() -> list[Path]:
    return sorted(server.slots_folder(this_host()).glob("*"))


async def test_a_second_server_takes_back_what_the_first_one_has_read():
    assert await is_read_anew(words="one")
    assert not await is_read_anew(words="two")
    (file,) = kept()
    assert file.read_text() == "<system>rules<user>"  # nothing of what the person said


async def test_what_another_run_says_meanwhile_is_not_kept(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FAKE_SERVE", "reads slowly")
    monkeypatch.setattr(lock, "TOLD_AFTER", 0)

    async def ask() -> list[Event]:
        local = LlamaCppModel(this_host(), Config(), STARTER_NAME)
        request = Request("rules", (UserMessage.of("secret words"),))
        try:
            return [event async for event in local.stream(request)]
        finally:
            await local.aclose()

    events = await asyncio.gather(ask(), ask(), ask())
    assert sum(Noticed(level="info", text=WAITING) in each for each in events) == 2
    (file,) = kept()
    assert file.read_text() == "<system>rules<user>"


async def test_another_beginning_is_read_for_itself():
    assert await is_read_anew("rules")
    assert await is_read_anew("other rules")
    assert not await is_read_anew("rules")
    assert len(kept()) == 2


async def test_a_file_that_the_server_refuses_is_written_anew():
    assert await is_read_anew()
    (file,) = kept()
    file.write_text("damaged")
    assert await is_read_anew()
    assert not await is_read_anew()


async def test_a_beginning_that_only_this_session_has_is_not_kept():
    assert not await is_read_anew("Folder: /a" + "x" * MOST_CHARS)
    assert kept() == []


async def test_in_incognito_a_beginning_is_taken_back_and_none_is_kept():
    incognito = Config(incognito=IncognitoSettings(enabled=True))
    assert not await is_read_anew(config=incognito)
    assert kept() == []
    assert await is_read_anew()
    (file,) = kept()
    os.utime(file, (1, 1))
    assert not await is_read_anew(config=incognito)
    assert file.stat().st_mtime == 1


def test_the_oldest_files_go(tmp_path: Path):
    for number in range(KEPT + 2):
        file = tmp_path / f"{number}.slot"
        file.touch()
        os.utime(file, (number, number))
    prefix_slot._forget_oldest(tmp_path)
    assert sorted(path.stem for path in tmp_path.iterdir()) == [str(n + 2) for n in range(KEPT)]
