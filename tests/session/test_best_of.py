"""Best of n: several models do a task side by side in copies of the project, and a check chooses whose work is taken over."""

import json
from pathlib import Path
from typing import Any

import pytest

from replies import shown
from scripted import AnthropicServer, HttpError, OllamaServer, OpenAIServer, ScriptedServer
from session.test_routed import open_routed, reply_to, session_store
from ybs.core.envelope import Envelope
from ybs.core.events import Noticed, ToolStarted, UserSaid
from ybs.session.reply import Outcome
from ybs.session.session import Session
from ybs.testing import call

pytestmark = [pytest.mark.integration, pytest.mark.timeout(30)]
CHECK = "grep -q right README.md"
GO = "/best {count} Make the README right"


def write(content: str, path: str = "README.md") -> Any:
    return call("write_file", path=path, content=content)


def settings(*servers: ScriptedServer, **router: Any) -> dict[str, Any]:
    """Return the settings of an arm on each of the servers, `s0/m0` being the dearest; the session's own model is at none of them."""
    names = [f"s{n}/m{n}" for n in range(len(servers))]
    price = dict(zip(names, (9.0, 3.0, 1.0), strict=False))
    return {
        "providers": {
            f"s{n}": {"endpoint": server.url, "wire": server.wire.name}
            for n, server in enumerate(servers)
        },
        "models": {
            name: {"input_price": price[name], "output_price": price[name], "window": 60_000}
            for name in names
        },
        "router": {"arms": names, "policy": "heuristic", "cascade": {"check": CHECK}, **router},
    }


def with_main(given: dict[str, Any], server: ScriptedServer) -> dict[str, Any]:
    """Add the provider of the session's own model."""
    given["providers"]["main"] = {"endpoint": server.url, "wire": server.wire.name}
    return given


async def attempted(session: Session, count: int = 3) -> str:
    """Ask for attempts, and return what the main agent was told of them."""
    outcome = await session.handle(GO.format(count=count))
    assert isinstance(outcome, Outcome)
    outcome.check()
    return "".join(
        m.words for m in session.conversation.messages if getattr(m, "origin", "") == "context"
    )


def rewards(session: Session) -> dict[str, float]:
    """Return what the check said of each model."""
    rows = session_store(session).settled_since(0)
    return {row.arm: row.reward for row in rows if row.weight > 0.9}


async def test_the_attempt_that_passes_is_taken_over_and_each_model_is_credited_for_its_own(
    project: Path,
):
    (project / "README.md").write_text("old\n")
    down = HttpError(status=503, message="overloaded")
    async with (
        AnthropicServer([write("wrong\n"), "Done."]) as wrong,
        OpenAIServer([down]) as failing,
        OllamaServer([write("right\n"), "Done."]) as right,
        OpenAIServer(["I said so."]) as main,
    ):
        given = with_main(settings(wrong, failing, right), main)
        session, events = open_routed(
            project, given, provider="main", model="scripted", mode="bypass"
        )
        async with session:
            told = await attempted(session)
            assert (project / "README.md").read_text() == "right\n"
            assert rewards(session) == {"s0/m0": 0.0, "s2/m2": 1.0}
            assert session_store(session).counts() == (3, 3), "the one that failed teaches nothing"
            await session.handle("/undo")
            assert (project / "README.md").read_text() == "old\n"
    notes = [each.text for each in events.of(Noticed)]
    assert (
        "general-1 (s2/m2) passed the check with 2 changed lines; its work is taken over." in notes
    )
    assert "general-3 (s0/m0) failed the check with 2 changed lines." in notes
    assert any("general-2 (s1/m1) ended: " in each and "overloaded" in each for each in notes)
    assert "its work is in the project now" in told
    assert len(failing.requests) == 1, "nobody waits for it, and no other model does its attempt"
    assert next(each.content for each in events.of(UserSaid)) == "Make the README right"


async def test_of_two_that_pass_the_smaller_change_wins_and_where_none_does_nothing_changes(
    project: Path,
):
    (project / "README.md").write_text("old\n")
    long, short, no = write("right\n" * 9), write("right\n"), write("no\n")
    async with (
        AnthropicServer([long, "1", no, "1"]) as first,
        OpenAIServer([short, "2", no, "2"]) as second,
        OpenAIServer(["so", "so"]) as main,
    ):
        given = with_main(settings(first, second), main)
        session, events = open_routed(
            project, given, provider="main", model="scripted", mode="bypass"
        )
        async with session:
            assert "2 of 3 attempts are made" in await attempted(session)
            assert (project / "README.md").read_text() == "right\n"
            assert rewards(session) == {"s0/m0": 1.0, "s1/m1": 1.0}
            (project / "README.md").write_text("new\n")
            assert "the project is unchanged" in " ".join((await attempted(session)).split())
            assert (project / "README.md").read_text() == "new\n"
        notes = [each.text for each in events.of(Noticed)]
        assert "None of 2 attempts passed the check; the project is unchanged." in notes


@pytest.mark.parametrize(
    ("changed", "asked"),
    [
        ({"router": {"pools": {"one": {"providers": ["s0", "s1"], "concurrency": 1}}}}, 1),
        ({"agent": {"max_cost_usd": 0.05}}, 1),
        ({"agent": {"max_cost_usd": 0.000001}}, 0),
    ],
    ids=["the pool has room for one", "the money is enough for one", "there is no money"],
)
async def test_fewer_attempts_are_made_where_pools_or_money_are_short(project, changed, asked):
    async with (
        AnthropicServer(["1"]) as first,
        OpenAIServer(["2"]) as second,
        OpenAIServer(["so"]) as main,
    ):
        given = with_main(settings(first, second), main)
        given = given | changed | {"router": given["router"] | changed.get("router", {})}
        session, events = open_routed(
            project, given, provider="main", model="scripted", mode="bypass"
        )
        async with session:
            told = await attempted(session)
            assert ("1 of 3 attempts are made" in told) is bool(asked)
        assert len(first.requests) + len(second.requests) == asked
        notes = [each.text for each in events.of(Noticed)]
        assert any("1 of 3 attempts are made" in each for each in notes) is bool(asked)
        assert any("No attempts were made" in each for each in notes) is not bool(asked)


async def test_without_a_check_nothing_is_begun_and_the_person_is_told_what_to_set(project: Path):
    async with OpenAIServer([]) as first, OpenAIServer([]) as second:
        session, _ = open_routed(project, settings(first, second, cascade={}))
        async with session:
            reply = await reply_to(session, GO.format(count=3))
            assert reply.is_error
            assert "router.cascade.check" in shown(reply)
            for words in ("", "3", "1 Make it", "9 Make it", "9" * 5_000):
                assert "Usage: /best" in shown(await reply_to(session, f"/best {words}"))


async def test_stopping_the_turn_stops_all_attempts_and_their_models_learn_nothing_of_it(project):
    (project / "README.md").write_text("old\n")
    async with (
        AnthropicServer([write("right\n"), "Done."]) as first,
        OpenAIServer(["Hello.", write("right\n"), "Done."]) as second,
    ):
        session, _ = open_routed(project, settings(first, second), mode="bypass")
        begun: set[str] = set()

        def stop(envelope: Envelope) -> None:
            if isinstance(envelope.event, ToolStarted):
                begun.add(envelope.agent)
            if len(begun) == 2:
                session.cancel()

        async with session:
            await session.send("What is this?")
            session.subscribe(stop)
            outcome = await session.handle(GO.format(count=2))
            assert isinstance(outcome, Outcome)
            assert outcome.finished.reason == "interrupted"
            counts = session_store(session).counts()
        assert counts[0] == 4
        assert rewards(session) == {}
    assert (project / "README.md").read_text() == "old\n"
    said = [json.dumps(each.body) for each in first.requests]
    assert "What is this?" in said[0], "an attempt knows what was said before"


async def test_what_the_person_says_of_such_a_turn_is_about_the_model_whose_work_it_was(project):
    (project / "README.md").write_text("old\n")
    async with (
        AnthropicServer([write("right\n"), "Done."]) as first,
        OpenAIServer([write("no\n"), "Done.", "It is right now."]) as second,
    ):
        session, _ = open_routed(project, settings(first, second), mode="bypass")
        async with session:
            await attempted(session, 2)
            await session.handle("/bad")
        store = session_store(session)
        rows = store.settled_since(0)
    named = {
        (row.arm, *(each.name for each in told.signals))
        for row in rows
        if (told := store.find(row.id))
    }
    assert named == {("s0/m0", "check", "your word"), ("s1/m1", "check"), ("s1/m1",)}
