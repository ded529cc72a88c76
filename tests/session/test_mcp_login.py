"""A login at an MCP server in a chat: what the person is told, and that nobody else sees the token."""

import asyncio
import json

import pytest

from hosts import this_host
from mcp_http import served
from mcp_login import Provider, browse
from ybs.cli import main
from ybs.commands.advice import advised
from ybs.commands.open import SlashCommands
from ybs.core.events import Noticed, ToolFinished
from ybs.core.ports import Answer, Question
from ybs.session.reply import Reply
from ybs.session.session import Session
from ybs.testing import RecordedEvents, ScriptedModel, call

pytestmark = pytest.mark.integration


async def agree(_question: Question) -> Answer:
    return Answer(is_allowed=True)


async def said(session: Session, line: str) -> str:
    reply = await session.handle(line)
    assert isinstance(reply, Reply)
    return reply.text


async def test_a_login_in_a_chat_and_a_token_that_the_server_repeats(project, capsys):
    provider = Provider()
    host = this_host()
    host.user_config_file.parent.mkdir(parents=True)
    script = ["Hello.", call("mcp__demo__echo", show="headers"), "Done."]
    model, events = ScriptedModel(script), RecordedEvents()
    opened: list[asyncio.Future[str]] = []

    async with served(provider.app) as url:
        host.user_config_file.write_text(json.dumps({"mcpServers": {"demo": {"url": url}}}))
        session = Session.open(
            project, host=host, model=model, commands=SlashCommands(), confirm=agree
        )
        session.subscribe(events)

        def open_what_is_shown(envelope: object) -> None:
            event = getattr(envelope, "event", None)
            if isinstance(event, Noticed) and event.text.startswith("Open this address"):
                opened.append(asyncio.ensure_future(browse(event.text.splitlines()[1])))

        session.subscribe(open_what_is_shown)
        async with session:
            await session.send("Hello?")
            news = [advised(each.text, each.remedies) for each in events.of(Noticed)]
            assert news == [
                "The MCP server demo does not run: it wants you to log in first.\nLog in: /mcp login demo"
            ]
            assert await said(session, "/mcp login demo") == "You are logged in to demo."
            assert "You can close this page" in await opened[0]
            assert "running" in str(await session.handle("/mcp demo"))
            await session.send("Show the headers.")
            (finished,) = events.of(ToolFinished)
            assert finished.output == "You sent Bearer [ybs:secret:own-secret#1]."
            assert await said(session, "/mcp logout demo") == (
                "The login at demo is forgotten here; the server itself is not told."
            )
            assert await said(session, "/mcp logout demo") == "You were not logged in to demo."
        assert main(["mcp", "logout", "demo"]) == 1
        assert "You were not logged in to demo." in capsys.readouterr().err
    kept = [path.read_bytes() for path in host.state_folder.rglob("*") if path.is_file()]
    assert not any(b"access-token" in data or b"refresh-token" in data for data in kept)
