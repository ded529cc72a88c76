"""/memorize and /memories: keeping, finding, showing and forgetting, without asking the model."""

import os
from hashlib import sha256
from pathlib import Path

import pytest

from replies import shown as text_of
from ybs.commands.open import SlashCommands
from ybs.session.reply import Menu, Reply
from ybs.session.session import Session


def quiet(project: Path, *, incognito: bool = False) -> Session:
    """Open a session that sends nothing."""
    return Session.open(
        project,
        commands=SlashCommands(),
        provider="openai",
        endpoint="http://127.0.0.1:9",
        model="m",
        sandbox=False,
        incognito=incognito,
    )


async def said(session: Session, line: str) -> Reply:
    reply = await session.handle(line)
    assert isinstance(reply, Reply)
    return reply


async def error(session: Session, line: str) -> str:
    reply = await said(session, line)
    assert reply.is_error, text_of(reply)
    return text_of(reply)


async def menu(session: Session, line: str) -> Menu:
    reply = await said(session, line)
    assert reply.menu is not None, text_of(reply)
    return reply.menu


@pytest.fixture
def own(home: Path) -> Path:
    return home / ".config" / "ybs" / "memories"


def names_below(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*.md"))


def text_below(folder: Path) -> str:
    return "".join(path.read_text() + path.name for path in folder.rglob("*.md"))


@pytest.mark.integration
async def test_what_is_kept_is_listed_found_shown_and_forgotten(project: Path, own: Path):
    async with quiet(project) as session:
        assert "There are no notes yet. Save one with /memorize" in text_of(
            await said(session, "/memories")
        )
        kept = await said(session, "/memorize Use tabs in Makefiles.")
        assert kept.text.startswith("Saved for this project: ~/.config/ybs/memories/project-")
        assert kept.text.endswith("_use_tabs_in_makefiles.md")
        kept = await said(
            session, "/memorize everywhere: The tests need a database.\nIts port is 5433."
        )
        assert kept.text.startswith("Saved for all projects: ~/.config/ybs/memories/20")
        listed = await menu(session, "/memories")
        assert {item.label for item in listed.items} == {
            "Use tabs in Makefiles.",
            "The tests need a database. Its port is 5433.",
        }
        found = await menu(session, "/memories testing ports")
        assert [item.label[:9] for item in found.items] == ["The tests"]
        assert found.items[0].detail.endswith(", all projects")
        shown = text_of(await said(session, "/memories 1"))  # of what was found
        assert shown.startswith("The tests need a database.\nIts port is 5433.\n\n20")
        assert ", all projects: ~/.config/ybs/memories/20" in shown
        assert shown.endswith("\n/memories forget 1 deletes it.")
        assert text_of(await said(session, found.items[0].line)) == shown
        forgotten = text_of(await said(session, "/memories forget 1"))
        assert forgotten.startswith("Forgotten:\nThe tests need a database.\nIts port is 5433.\n")
        assert "/memories undo restores it" in forgotten
        assert len(names_below(own)) == 1
        assert "Restored: The tests need" in text_of(await said(session, "/memories undo"))
        assert len(names_below(own)) == 2
        # The numbers are those of the list again, not of what was found.
        assert text_of(await said(session, "/memories FORGET use_tabs_in_makefiles")).count("tabs")
        assert [item.label[:9] for item in (await menu(session, "/memories")).items] == [
            "The tests"
        ]


@pytest.mark.integration
async def test_what_makes_no_sense_is_an_error(project: Path, own: Path):
    async with quiet(project) as session:
        usage = await error(session, "/memorize")
        assert usage.startswith("Usage: /memorize TEXT")
        assert "ask the model to memorize it" in usage
        assert await error(session, "/memorize Everywhere: ") == usage
        assert "at most 4,096 bytes" in await error(session, f"/memorize {'x' * 5_000}")
        assert "Usage: /memories forget" in await error(session, "/memories forget")
        for line in ("/memories forget 3", "/memories 3", "/memories forget ../../x"):
            assert "There is no note" in await error(session, line), line
        assert "No note was deleted" in await error(session, "/memories undo")
        assert names_below(own) == []
        await said(session, "/memorize Port 5433 is taken")
        assert "kept already" in await error(session, "/memorize everywhere: port 5433 is taken")
        assert (await menu(session, "/memories 5433")).items[0].label[:9] == "Port 5433"
        assert text_of(await said(session, "/memories zebra")) == "No note matches “zebra”."


@pytest.mark.integration
async def test_incognito_keeps_nothing_and_still_reads(project: Path, own: Path):
    async with quiet(project) as session:
        await said(session, "/memorize one")
        await said(session, "/incognito")
        assert "an incognito session saves nothing" in await error(session, "/memorize two")
        assert [item.label for item in (await menu(session, "/memories")).items] == ["one"]
        assert len(names_below(own)) == 1


async def test_a_secret_is_left_out_and_that_is_said(project: Path, own: Path):
    secret = "ghp_" + sha256(b"a token that opens nothing").hexdigest()[:36]
    async with quiet(project) as session:
        kept = await said(session, f"/memorize the token is {secret}")
        assert kept.text.endswith("\nA secret in it was removed.")
        assert secret not in kept.text
    assert secret not in text_below(own)


@pytest.fixture
def odd_files(project: Path, own: Path) -> None:
    """Make files with names and texts that try something."""
    brought = project / ".ybs" / "memories"
    for folder in (own, brought):
        folder.mkdir(parents=True, mode=0o700)
    for number in range(5):
        (own / f"bad\x1b[{number}J.md").write_bytes(b"\xff")
    (own / "2026-01-01_00-00-00_good.md").write_text("a\x1b[2J\u202eb\n")
    for day, name in enumerate(("forget 1", "1", "\x1b[2J"), 10):
        (brought / f"{name}.md").write_text(f"run {name.split()[0]}\n")
        os.utime(brought / f"{name}.md", (day * 10**8, day * 10**8))


@pytest.mark.integration
@pytest.mark.usefixtures("odd_files")
async def test_nothing_in_a_name_or_a_text_does_anything(project: Path, own: Path):
    async with quiet(project) as session:
        reply = await said(session, "/memories")
        assert "\x1b" not in text_of(reply)
        assert text_of(reply).count("it is not UTF-8 text") == 3
        assert text_of(reply).endswith("2 other files too.")
        assert reply.menu is not None
        labels = [item.label for item in reply.menu.items]
        assert labels == ["ab", "run", "run 1", "run forget"]
        assert reply.menu.items[1].detail.endswith(", a file of the project")
        for number, label in enumerate(labels, 1):
            for line in (f"/memories {number}", reply.menu.items[number - 1].line):
                assert line.isprintable()
                shown = text_of(await said(session, line))
                assert shown.startswith(f"{label}\n\n"), line
                assert ("deletes it" in shown) == (number == 1), line
        for number in (2, 3, 4):
            assert "delete it there" in await error(session, f"/memories forget {number}")
        assert len(names_below(own)) == 6


@pytest.fixture
def linked(own: Path, tmp_path: Path) -> None:
    """Put a link in the place of the folder."""
    own.parent.mkdir(parents=True)
    own.symlink_to(tmp_path)


@pytest.mark.integration
@pytest.mark.usefixtures("linked")
async def test_a_folder_that_cannot_be_read_is_said(project: Path):
    async with quiet(project) as session:
        for line in ("/memories", "/memories words", "/memorize one", "/memories forget 1"):
            assert "is a symbolic link" in await error(session, line), line
