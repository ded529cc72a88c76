"""Incognito from within a session: a new one begins, the old one stays what it was, and nothing comes along."""

from collections.abc import Callable
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

import pytest

from opened import events_to
from replies import shown
from scripted import OpenAIServer
from ybs.commands.open import SlashCommands
from ybs.core.errors import ConfigError, YbsError
from ybs.core.events import RequestStarted, SessionEnded, SessionStarted
from ybs.session.reply import Reply
from ybs.session.session import Session
from ybs.testing import RecordedEvents

Open = Callable[..., tuple[Session, RecordedEvents]]


async def say(session: Session, line: str) -> Reply:
    reply = await session.handle(line)
    assert isinstance(reply, Reply)
    return reply


async def test_the_option_begins_one(open_session: Open):
    async with OpenAIServer(["ok"]) as server:
        session, events = open_session(server, incognito=True)
        async with session:
            await session.send("go")
            assert session.status().incognito
            assert ", incognito\n" in shown(await say(session, "/status"))
        started = next(event for event in events.events if isinstance(event, SessionStarted))
    assert started.config["incognito"] == "on"
    assert not session.environment.workspace.shells.keeps_outputs


@pytest.mark.integration
async def test_slash_incognito_leaves_the_conversation_behind(open_session: Open):
    async with OpenAIServer(["one", "two"]) as server:
        session, events = open_session(server, mode="plan")
        async with session:
            await session.send("first words")
            reply = await say(session, "/incognito")
            assert not session.conversation.messages
            assert session.usage.input_tokens == 0
            await session.send("other words")
        sent = str(server.requests[1].body)
    assert not reply.is_error
    assert "nothing of it will be saved" in shown(reply)
    assert "other words" in sent
    assert "first words" not in sent
    status = session.status()
    assert (status.incognito, status.model, status.mode) == (True, "scripted", "plan")
    kept = (SessionStarted, SessionEnded)
    ends = [event for event in events.events if isinstance(event, kept)]
    assert [type(event) for event in ends] == [SessionStarted, SessionEnded] * 2
    states = [event.config["incognito"] for event in ends if isinstance(event, SessionStarted)]
    assert states == ["off", "on"]
    assert isinstance(ends[1], SessionEnded)
    # Three: the mode plan is explained to the model.
    assert (ends[1].reason, ends[1].message_count) == ("new_session", 3)


@pytest.mark.integration
async def test_two_unsaved_sessions_of_one_second_have_different_names(
    open_session: Open, monkeypatch: pytest.MonkeyPatch
):
    class Stopped(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> "Stopped":
            return cls(2026, 1, 2, 3, 4, 5, tzinfo=tz)

    monkeypatch.setattr("ybs.session.journal.datetime", Stopped)
    names: list[str] = []
    async with OpenAIServer(["ok", "ok"]) as server:
        for _ in range(2):
            session, _ = open_session(server, incognito=True)
            async with session:
                await session.send("go")
                names.append(session.journal.name)
    assert len(set(names)) == 2, names


@pytest.mark.integration
async def test_grants_questions_and_jobs_do_not_come_along(open_session: Open, project: Path):
    async with OpenAIServer([]) as server:
        session, _ = open_session(server)
        async with session:
            session.environment.policy.grant("run_shell(make)")
            old, asked = session.environment, session.confirm
            await old.workspace.shells.jobs.start(
                "sleep 60", project, most_chars=100, live=_silent()
            )
            reply = await say(session, "/incognito")
            assert tuple(sorted(session.environment.policy.rules.grants)) == ()
            assert session.confirm is asked
            assert old.workspace.shells.running_jobs == ()
    assert shown(reply).endswith("The background jobs were stopped.")


def _silent() -> Any:
    from ybs.tools.shell.output import OutputWindow

    return OutputWindow(lambda _text: None)


async def test_it_is_never_left_by_saying_it_twice(open_session: Open):
    async with OpenAIServer([]) as server:
        session, _ = open_session(server)
        async with session:
            await say(session, "/incognito")
            assert "/incognito off" in (await say(session, "/INCOGNITO on")).text
            assert session.status().incognito
            assert "No longer incognito" in (await say(session, "/incognito off")).text
            assert not session.status().incognito
            assert session.environment.workspace.shells.keeps_outputs
            assert "is not incognito" in (await say(session, "/incognito off")).text
            assert (await say(session, "/incognito maybe")).is_error


async def test_it_waits_for_the_turn(open_session: Open):
    async with OpenAIServer(["ok"]) as server:
        session, _ = open_session(server)
        async with session:
            refused: list[str] = []

            def try_it(event: object) -> None:
                if not isinstance(event, RequestStarted):
                    return
                with pytest.raises(YbsError, match="ybs is still working"):
                    session.start_anew(is_incognito=True).send(None)
                refused.append("yes")

            session.subscribe(events_to(try_it))
            await session.send("go")
            assert refused
            assert not session.status().incognito


FAR = {"provider": "openai", "endpoint": "http://gpu.lan:1/v1", "model": "big"}
LOCAL_ONLY = {"overrides": {"incognito.local_only": True}}


def test_a_model_elsewhere_is_refused_at_the_start(project: Path):
    with pytest.raises(ConfigError, match=r"incognito\.local_only"):
        Session.open(project, commands=SlashCommands(), **FAR, **LOCAL_ONLY, incognito=True)


async def test_a_model_elsewhere_keeps_its_session_and_refuses_incognito(project: Path):
    async with Session.open(project, commands=SlashCommands(), **FAR, **LOCAL_ONLY) as session:
        environment = session.environment
        reply = await say(session, "/incognito")
        assert reply.is_error
        assert "incognito.local_only" in shown(reply)
        assert session.environment is environment


@pytest.mark.integration
async def test_no_switch_leads_out_of_this_machine(open_session: Open):
    async with OpenAIServer([]) as server:
        session, _ = open_session(server, **LOCAL_ONLY, incognito=True)
        async with session:
            for line in ("/provider ollama big:cloud", "/provider mistral large"):
                before = session.agent.model
                assert (await say(session, line)).is_error
                assert session.agent.model is before
            assert not (await say(session, "/provider ollama small")).is_error


async def test_an_answer_about_trust_is_not_written_down(open_session: Open, project: Path):
    (project / ".ybs.json").write_text('{"hooks": {"start": ["./x"]}}')
    async with OpenAIServer([]) as server:
        session, _ = open_session(server, incognito=True)
        async with session:
            reply = await say(session, "/trust give")
    assert reply.is_error
    assert "an incognito session saves nothing" in shown(reply)
    assert not list(Path.home().rglob("*"))
