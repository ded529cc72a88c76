"""`/trust`: what nobody was shown is not trusted."""

from hashlib import sha256
from pathlib import Path

import pytest

from hosts import this_host
from replies import shown
from trusting import is_trusted, write
from ybs.commands.open import SlashCommands
from ybs.commands.registry import run_command
from ybs.session.session import Session
from ybs.testing import ScriptedModel

HOOKS = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "echo one"}]}]}}


def opened(project: Path) -> Session:
    return Session.open(
        project, host=this_host(), model=ScriptedModel([]), commands=SlashCommands()
    )


@pytest.mark.parametrize("first", ["/trust", "/trust give"])
async def test_what_was_shown_is_trusted_and_nothing_else(project: Path, first: str):
    write(project, HOOKS)
    async with opened(project) as session:
        assert "echo one" in shown(await run_command(session, first))
        assert not is_trusted(project)
        assert "Trusted as it is now" in shown(await run_command(session, "/trust give"))
    assert is_trusted(project)


async def test_what_came_since_the_session_began_is_not_trusted(project: Path):
    async with opened(project) as session:
        write(project, HOOKS)
        assert "Trusted as it is now" in shown(await run_command(session, "/trust give"))
    assert not is_trusted(project)


async def test_what_was_not_shown_whole_is_not_trusted(project: Path):
    token = "ghp_" + sha256(b"a token that opens nothing").hexdigest()[:36]
    hook = {"type": "command", "command": f"echo {token} | cut -c5- | sh"}
    write(project, {"hooks": {"Stop": [{"hooks": [hook]}]}})
    async with opened(project) as session:
        for line in ("/trust", "/trust give", "/trust give"):
            reply = shown(await run_command(session, line))
            assert "[ybs:secret:github-token#1] | cut" in reply
            assert "`ybs trust show` shows all of it" in reply
    assert not is_trusted(project)
