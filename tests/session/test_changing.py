"""What happens beside a turn or a new session: the numbers move, nothing is lost, and nobody comes in between."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from opened import events_to
from scripted import OpenAIServer
from ybs.agent import secrets
from ybs.commands.open import SlashCommands
from ybs.commands.usage import measure
from ybs.core.errors import ProviderDown, YbsError
from ybs.core.events import Event, TextStreamed, ToolFinished, TurnFinished
from ybs.core.messages import UserMessage
from ybs.providers.http import client as http
from ybs.providers.remote import RemoteModel
from ybs.session.reply import Reply
from ybs.session.session import Session
from ybs.session.status import Status
from ybs.testing import RecordedEvents, call
from ybs.transcripts.facts import MOST_WORDS

Open = Callable[..., tuple[Session, RecordedEvents]]


@pytest.mark.integration
async def test_a_thread_and_the_loop_share_one_vault(
    open_session: Open, monkeypatch: pytest.MonkeyPatch
):
    entered, second = threading.Event(), threading.Event()
    begin = secrets.Secrets.__init__

    def slow(self: secrets.Secrets, *arguments: Any) -> None:
        begin(self, *arguments)
        (second if entered.is_set() else entered).set()
        second.wait(0.05)

    monkeypatch.setattr(secrets.Secrets, "__init__", slow)
    async with OpenAIServer([]) as server:
        session, _ = open_session(server)
        thread = asyncio.ensure_future(asyncio.to_thread(lambda: session.environment.secrets))
        await asyncio.to_thread(entered.wait, 5)
        vault = session.environment.secrets
        assert vault is await thread
        assert not second.is_set()
        await session.close()


@pytest.mark.integration
async def test_tokens_and_cost_grow_with_each_step_and_count_once(open_session: Open):
    script = [call("list_files", pattern="*"), call("list_files", pattern="*.x"), "done"]
    async with OpenAIServer([*script, "again"]) as server:
        session, _ = open_session(server)
        seen: list[Status] = []
        ends: list[Status] = []

        def look(event: Event) -> None:
            if isinstance(event, ToolFinished):
                seen.append(session.status())
            elif isinstance(event, TurnFinished):
                ends.append(session.status())

        session.subscribe(events_to(look))
        await session.send("go")
        first, second = (status.usage.input_tokens for status in seen)
        assert 0 < first < second < session.usage.input_tokens
        assert ends[0].usage == session.usage == session.status().usage
        await session.send("more")
        assert ends[1].usage == session.usage == session.status().usage
        await session.close()


async def test_the_estimate_follows_the_conversation(open_session: Open):
    async with OpenAIServer(["one"]) as server:
        session, _ = open_session(server)
        await session.send("first " * 20)
        for change in ("append", "cut", "clear"):
            if change == "append":
                session.conversation.append(UserMessage.of("more " * 50))
            else:
                await session.history.rewind(1 if change == "cut" else 0)
            assert session.estimated_tokens() == measure(session).tokens, change
        await session.close()


@pytest.mark.integration
async def test_a_turn_is_remembered_by_its_first_words_alone(open_session: Open):
    async with OpenAIServer(["one"]) as server:
        session, _ = open_session(server)
        await session.send("word " * 10_000)
        assert session.turns[0].words == ("word " * 10_000)[:MOST_WORDS]
        await session.close()


@pytest.mark.integration
async def test_a_mode_chosen_while_a_new_session_opens_holds_and_no_turn_comes_between(
    open_session: Open, monkeypatch: pytest.MonkeyPatch
):
    opening, go = asyncio.Event(), asyncio.Event()

    async def slow(_model: RemoteModel) -> int:
        opening.set()
        await go.wait()
        return 0

    monkeypatch.setattr(RemoteModel, "detect_window", slow)
    async with OpenAIServer(["one"]) as server:
        session, _ = open_session(server)
        begun = asyncio.ensure_future(session.start_anew(is_incognito=True))
        await opening.wait()
        session.mode = "plan"
        with pytest.raises(YbsError, match="being opened"):
            await session.send("between")
        go.set()
        await begun
        assert session.mode == "plan"
        assert (await session.send("after")).finished.reason == "done"
        assert [words for _, words in session.history.prompts()] == ["after"]
        await session.close()


@pytest.mark.integration
async def test_words_at_a_limit_are_given_back_and_go_with_the_conversation(open_session: Open):
    async with OpenAIServer(["one", "two"]) as server:
        session, _ = open_session(server, overrides={"agent.max_iterations": 1})

        def speak(event: Event) -> None:
            if isinstance(event, TextStreamed) and not session.unread_count:
                session.steer("and this")

        session.subscribe(events_to(speak))
        assert (await session.send("go")).finished.reason == "limit"
        assert (session.unread_count, session.unread()) == (1, ("and this",))
        assert [words for _, words in session.history.prompts()] == ["go"]
        await session.send("again")
        session.history.clear()
        assert session.unread() == ()
        await session.close()


@pytest.mark.integration
async def test_new_words_begin_the_search_for_loops_anew(open_session: Open):
    script = [*[call("list_files", pattern="*")] * 8, "done"]
    async with OpenAIServer(script) as server:
        session, events = open_session(server)

        def speak(event: Event) -> None:
            if isinstance(event, ToolFinished) and len(events.of(ToolFinished)) == 6:
                session.steer("look once more")

        session.subscribe(events_to(speak))
        assert (await session.send("go")).finished.reason == "done"
        await session.close()


async def test_incognito_on_this_machine_asks_no_other_for_its_models(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
):
    file = home / ".config/ybs/config.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    corp = {"kind": "openai", "wire": "openai", "endpoint": "https://models.corp.example/v1"}
    file.write_bytes(msgspec.json.encode({"providers": {"corp": {**corp, "api_key": "k"}}}))
    file.chmod(0o600)
    asked: list[Any] = []

    async def refuse(_client: object, *arguments: Any, **_options: Any) -> None:
        asked.append(arguments)
        raise ProviderDown("no")

    monkeypatch.setattr(http.HttpClient, "fetch", refuse)
    async with OpenAIServer([]) as server:
        only_here = {"incognito.enabled": True, "incognito.local_only": True}
        session = Session.open(
            project,
            commands=SlashCommands(),
            provider="openai",
            endpoint=server.url,
            model="m",
            overrides=only_here,
        )
        reply = await session.handle("/provider corp")
        assert isinstance(reply, Reply)
        assert reply.is_error
        assert "corp does not run on this machine" in reply.text
        assert asked == []
        await session.close()
