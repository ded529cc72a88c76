"""/sandbox: shown and changed for one session."""

from pathlib import Path

import pytest

from replies import shown
from ybs.session.reply import Reply
from ybs.session.session import Session

pytestmark = pytest.mark.timeout(60)


async def said(session: Session, line: str) -> Reply:
    reply = await session.handle(line)
    assert isinstance(reply, Reply)
    return reply


def needs_sandbox(session: Session) -> None:
    if session.environment.sandbox.state != "full":
        pytest.skip(f"NOT TESTED: {session.environment.sandbox.backend.why}")


async def test_it_shows_what_stands_around_commands(project: Path, playing) -> None:
    async with playing([], sandbox=True) as (session, _, _):
        needs_sandbox(session)
        text = shown(await said(session, "/sandbox"))
    assert "on (bubblewrap)" in text
    assert "closed" in text
    assert str(project) in text


async def test_the_network_is_opened_and_closed(playing) -> None:
    async with playing([], sandbox=True) as (session, _, _):
        needs_sandbox(session)
        sandbox = session.environment.sandbox
        assert "could be sent away" in (await said(session, "/sandbox network on")).text
        assert not sandbox.closes_network
        assert session.status().sandbox == "sandbox, network"
        await said(session, "/sandbox network off")
        assert sandbox.closes_network
        assert session.status().sandbox == "sandbox"


@pytest.mark.integration
async def test_commands_may_write_in_a_folder_that_was_opened(tmp_path, playing):
    more = tmp_path / "more"
    more.mkdir()
    async with playing(["seen", "seen"], sandbox=True) as (session, _, _):
        needs_sandbox(session)
        await session.handle(f"!touch {more}/before")
        assert not (await said(session, f"/add-dir {more}")).is_error
        await session.handle(f"!touch {more}/after")
        assert [each.name for each in more.iterdir()] == ["after"]


async def test_ybs_own_git_is_held_from_the_moment_on_that_the_sandbox_is_on(playing) -> None:
    async with playing([], sandbox=False) as (session, _, _):
        workspace = session.environment.workspace
        place = ("/somewhere/else", workspace.roots.folder)
        assert workspace.git_sandbox.shows(*place)
        await said(session, "/sandbox on")
        assert not workspace.git_sandbox.shows(*place)
        assert not workspace.apart().git_sandbox.shows(*place)
        await said(session, "/sandbox off now")
        assert workspace.git_sandbox.shows(*place)


@pytest.mark.integration
async def test_it_is_turned_off_after_a_question_and_on_again(tmp_path, playing):
    async with playing(["seen", "seen"], sandbox=True) as (session, _, _):
        needs_sandbox(session)
        menu = (await said(session, "/sandbox off")).menu
        assert menu is not None
        assert session.status().sandbox == "sandbox"
        await said(session, menu.items[0].line)
        assert session.status().sandbox == "sandbox"
        await said(session, menu.items[1].line)
        assert session.status().sandbox == "no sandbox"
        assert "you turned it off" in shown(await said(session, "/sandbox"))
        await session.handle(f"!touch {tmp_path}/bare")
        assert (tmp_path / "bare").exists()
        await said(session, "/sandbox on")
        assert session.status().sandbox == "sandbox"
        await session.handle(f"!touch {tmp_path}/not")
        assert not (tmp_path / "not").exists()


async def test_what_makes_no_sense_is_answered_with_the_usage(playing) -> None:
    async with playing([], sandbox=True) as (session, _, _):
        needs_sandbox(session)
        for line in ("/sandbox maybe", "/sandbox network", "/sandbox write .", "/sandbox on now"):
            reply = await said(session, line)
            assert reply.is_error
            assert reply.text.startswith("Usage: /sandbox")
