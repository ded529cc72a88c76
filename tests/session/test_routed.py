"""A session whose model is routed: real servers of several wires, what is picked, what fails, what is kept."""

import json
from pathlib import Path
from typing import Any
from weakref import finalize

import pytest
from msgspec import Raw

from replies import shown
from scripted import AnthropicServer, HttpError, OpenAIServer, ScriptedServer
from ybs.agent.model_choice import routed_for_sub_agent
from ybs.commands.open import SlashCommands
from ybs.core.errors import ConfigError
from ybs.core.events import AssistantSaid, Noticed, RequestStarted
from ybs.core.messages import ToolCall
from ybs.frontends.subcommands.doctor import look_at_model
from ybs.router.classifier import Features
from ybs.router.database import Database
from ybs.router.model import RoutedModel
from ybs.router.routing import Routing, database_file
from ybs.router.store import DecisionStore
from ybs.session.reply import Reply
from ybs.session.session import Session
from ybs.testing import RecordedEvents, call

pytestmark = pytest.mark.integration


def arms(first: ScriptedServer, second: ScriptedServer, **router: Any) -> dict[str, Any]:
    """Return the settings of two arms on two servers: `dear/big` and `cheap/small`."""
    return {
        "providers": {
            "dear": {"endpoint": first.url, "wire": first.wire.name},
            "cheap": {"endpoint": second.url, "wire": second.wire.name},
        },
        "models": {
            "dear/big": {"input_price": 5, "output_price": 25, "window": 60_000},
            "cheap/small": {"input_price": 0.1, "output_price": 0.4, "window": 60_000},
        },
        "router": {"arms": ["dear/big", "cheap/small"], "seed": 7, **router},
    }


def open_routed(
    project: Path, settings: dict[str, Any], **more: Any
) -> tuple[Session, RecordedEvents]:
    """Open a session with these settings whose model the router picks."""
    file = project.parent / "router-settings.json"
    file.write_text(json.dumps(settings))
    options = {"model": "auto", "sandbox": False, "config_file": file, "commands": SlashCommands()}
    session = Session.open(project, **{**options, **more})
    events = RecordedEvents()
    session.subscribe(events)
    return session, events


def routing_of(session: Session) -> Routing:
    model = session.agent.model
    assert isinstance(model, RoutedModel)
    return model.routing


def session_store(session: Session) -> DecisionStore:
    """Return the decisions that the session's file has. Its copy is closed with the last look at it."""
    database = Database.open(database_file(session.host), may_write=False)
    store = DecisionStore(database, session.loaded.profile)
    finalize(store, database.close)
    return store


def written(session: Session, kind: str) -> list[dict[str, Any]]:
    """Return the lines of this kind of the session's transcript."""
    lines = map(json.loads, Path(session.journal.path).read_text("utf-8").splitlines())
    return [line for line in lines if line["type"] == kind]


async def reply_to(session: Session, line: str) -> Reply:
    reply = await session.handle(line)
    assert isinstance(reply, Reply)
    return reply


def picked(events: RecordedEvents) -> list[str]:
    """Return the models that were named as picked."""
    return [each.model for each in events.of(RequestStarted) if each.decision]


async def test_hard_work_goes_to_the_better_model_and_a_question_to_the_cheap_one(project: Path):
    async with AnthropicServer(["fixed"]) as dear, OpenAIServer(["explained"]) as cheap:
        session, events = open_routed(project, arms(dear, cheap))
        async with session:
            assert (await session.send("Fix the crash in parser.py")).text == "fixed"
            assert (await session.send("What does this project do?")).text == "explained"
        assert picked(events) == ["big", "small"]
        assert "best for fix by the catalogue" in events.of(RequestStarted)[1].reason


@pytest.mark.parametrize("kind", [OpenAIServer, AnthropicServer])
async def test_where_an_arm_is_down_the_next_one_answers_and_the_person_is_told(
    project: Path, kind: type[ScriptedServer]
):
    down = HttpError(status=503, message="overloaded")
    async with kind([down]) as dear, OpenAIServer(["one", "two"]) as cheap:
        session, events = open_routed(project, arms(dear, cheap))
        async with session:
            assert (await session.send("Fix the crash in parser.py")).text == "one"
            assert (session.status().provider, session.status().model) == ("cheap", "small")
            assert (await session.send("Fix the other crash in lexer.py")).text == "two"
            made, settled = session_store(session).counts()
        assert picked(events) == ["big", "small", "small"]
        assert [each.model for each in events.of(AssistantSaid)] == ["small", "small"]
        (told,) = [each.text for each in events.of(Noticed)]
        assert told.startswith("dear/big: dear at 127.0.0.1")
        assert len(dear.requests) == 1, "it rests"
        assert (made, settled) == (3, 1), "the first choice teaches nothing"


async def test_who_is_asked_to_wait_longer_than_a_minute_rests_as_long(project: Path):
    slow = HttpError(status=429, message="slow down", headers={"retry-after": "90"})
    async with OpenAIServer([slow]) as dear, OpenAIServer(["one", slow]) as cheap:
        session, _ = open_routed(project, arms(dear, cheap))
        async with session:
            assert (await session.send("Fix the crash")).text == "one"
            rest = routing_of(session).breaker.rest_of("dear/big")
            assert 60 < rest <= 90
            outcome = await session.send("Fix the next crash")
            assert outcome.finished.reason == "error"
            assert outcome.finished.is_temporary


async def test_a_session_switches_to_the_router_and_back_in_mid_conversation(project: Path):
    async with AnthropicServer(["one"]) as dear, OpenAIServer(["zero", "two"]) as cheap:
        session, events = open_routed(project, arms(dear, cheap), model="small", provider="cheap")
        async with session:
            assert (await session.send("Hello")).text == "zero"
            reply = await session.handle("/model auto")
            assert isinstance(reply, Reply)
            assert "picks" in reply.text
            assert (await session.send("Fix the crash")).text == "one"
            assert len(dear.requests[0].body["messages"]) == 3
            await session.handle("/provider cheap small")
            assert session.status().model == "small"
            assert (await session.send("Fix the next crash")).text == "two"
            assert picked(events) == ["big"]
            assert session_store(session).counts() == (1, 1), "what was open is settled"


async def test_a_resumed_session_is_routed_again_and_shows_what_was_picked(project: Path):
    async with AnthropicServer(["one", "two"]) as dear, OpenAIServer([]) as cheap:
        settings = arms(dear, cheap, policy="heuristic")
        session, _ = open_routed(project, settings)
        async with session:
            await session.send("Fix the crash")
            name = session.journal.name
            (told,) = written(session, "request_start")
        assert told["model"] == "big"
        assert told["decision"]
        assert "best for fix" in told["reason"]
        again, events = open_routed(project, settings, resume=name)
        async with again:
            assert (await again.send("Fix the other crash")).text == "two"
        assert picked(events) == ["big"]
        assert len(dear.requests[-1].body["messages"]) == 3


async def test_incognito_routes_by_what_is_known_and_leaves_no_trace(project: Path):
    async with AnthropicServer(["one", "two"]) as dear, OpenAIServer([]) as cheap:
        settings = arms(dear, cheap, policy="heuristic")
        session, _ = open_routed(project, settings)
        async with session:
            await session.send("Fix the crash")
        file = database_file(session.host)
        before = (file.read_bytes(), sorted(file.parent.rglob("*")))
        secret, events = open_routed(project, settings, incognito=True)
        async with secret:
            assert (await secret.send("Fix the other crash")).text == "two"
            await secret.handle("/good")
        assert picked(events) == ["big"]
        assert (file.read_bytes(), sorted(file.parent.rglob("*"))) == before


async def test_a_pool_that_is_spent_is_left_out_and_never_overdrawn(project: Path):
    limits = {"dear": {"requests_per_minute": 1}}
    async with AnthropicServer(["one"]) as dear, OpenAIServer(["two", "three"]) as cheap:
        session, events = open_routed(project, arms(dear, cheap, pools=limits))
        async with session:
            texts = [(await session.send("Fix the crash")).text for _ in range(3)]
        assert texts == ["one", "two", "three"]
        assert picked(events) == ["big", "small", "small"]


async def test_without_two_models_the_router_says_how_to_name_them(project: Path):
    async with OpenAIServer([]) as server:
        settings = arms(server, server)
        settings["router"]["arms"] = ["dear/big"]
        with pytest.raises(ConfigError, match="needs two models"):
            open_routed(project, settings)


async def test_an_arm_without_a_key_is_left_out_with_a_word(project: Path):
    async with OpenAIServer(["one"]) as cheap:
        settings = arms(cheap, cheap)
        settings["router"]["arms"] = ["openai/gpt-5.1", "cheap/small"]
        session, events = open_routed(project, settings)
        async with session:
            assert (await session.send("Fix the crash")).text == "one"
        told = [each.text for each in events.of(Noticed)]
        assert any("openai/gpt-5.1" in each and "key" in each for each in told)


async def test_a_small_model_gets_the_short_prompt_when_it_is_its_turn(project: Path):
    async with AnthropicServer(["fixed"]) as dear, OpenAIServer(["explained"]) as cheap:
        settings = arms(dear, cheap)
        settings["models"]["cheap/small"]["window"] = 12_000
        session, events = open_routed(project, settings)
        async with session:
            await session.send("Fix the crash in parser.py")
            await session.send("What does this project do?")
        assert picked(events) == ["big", "small"]
        long, short = dear.requests[0].body, cheap.requests[0].body
        assert len(short["tools"]) < len(long["tools"])
        assert len(short["messages"][0]["content"]) < len(str(long["system"]))


async def test_a_setting_turns_the_router_on_and_an_option_that_names_a_model_goes_before_it(
    project: Path,
):
    async with AnthropicServer([]) as dear, OpenAIServer([]) as cheap:
        settings = arms(dear, cheap, enabled=True)
        session, _ = open_routed(project, settings, model=None)
        async with session:
            assert routing_of(session).arms.keys() == {"dear/big", "cheap/small"}
        session, _ = open_routed(project, settings, model="small", provider="cheap")
        async with session:
            assert not isinstance(session.agent.model, RoutedModel)
        settings["router"]["arms"] = ["dear/big"]
        settings["llm"] = {"provider": "dear", "model": "big"}
        session, _ = open_routed(project, settings, model=None)
        async with session:
            assert not isinstance(session.agent.model, RoutedModel)


def writing(content: str) -> ToolCall:
    given = json.dumps({"path": "README.md", "content": content}).encode()
    return ToolCall(id="", name="write_file", arguments=Raw(given))


WRITES, REPAIRS = writing("one\n"), writing("right\n")


@pytest.mark.parametrize("worth", [1.0, 0.0])
async def test_where_a_check_fails_a_stronger_model_goes_on_if_it_is_worth_its_price(
    project: Path, worth: float
):
    cascade = {"check": "grep -q right README.md", "usd_per_success": worth}
    script = [REPAIRS, "Repaired."] if worth else []
    async with AnthropicServer(script) as dear, OpenAIServer([WRITES, "Done."]) as cheap:
        settings = arms(dear, cheap, policy="heuristic", cascade=cascade)
        session, events = open_routed(project, settings, mode="bypass")
        async with session:
            outcome = await session.send("Update the README")
            store = session_store(session)
            first = routing_of(session).last
            made = store.counts()
        assert first is not None
        assert outcome.text == ("Repaired." if worth else "Done.")
        assert picked(events) == ["small", "big"][: len(made) if worth else 1]
        assert made == ((2, 2) if worth else (1, 1))
        results = [(row.arm, row.reward) for row in store.settled_since(0)]
        assert results == [("cheap/small", 0.0), ("dear/big", 1.0)][: made[0]]
        told = [each.text for each in events.of(Noticed) if "stronger" in each.text]
        assert bool(told) is not bool(worth)


async def test_what_the_person_says_counts_and_is_seen_by_router_and_good(project: Path):
    async with AnthropicServer(["one"]) as dear, OpenAIServer([]) as cheap:
        session, _ = open_routed(project, arms(dear, cheap))
        async with session:
            assert "no answer yet" in shown(await reply_to(session, "/bad"))
            await session.send("Fix the crash")
            assert "was good" in shown(await reply_to(session, "/good"))
            text = shown(await reply_to(session, "/router"))
        assert "dear/big" in text
        assert "your word: 1.00, weight 1" in text
        ((arm, reward),) = [(r.arm, r.reward) for r in session_store(session).settled_since(0)]
        assert (arm, reward) == ("dear/big", 1.0)


async def test_sub_agents_share_what_the_router_knows_and_pick_for_themselves(project: Path):
    async with AnthropicServer(["fixed"]) as dear, OpenAIServer(["explained"]) as cheap:
        session, events = open_routed(project, arms(dear, cheap))
        async with session:
            await session.send("Fix the crash")
            main = session.agent.model
            model = routed_for_sub_agent(session.loaded, "dear", main, is_persons=False)
            await model.begin(Features.of("What does this project do?"))
            assert model.name == "small"
            assert main.name == "big"
            await model.aclose()
            assert model.routing is routing_of(session)
            assert await routing_of(session).explain() is not None
        assert picked(events) == ["big"]
        del cheap


async def test_a_model_that_sorts_requests_decides_and_reads_no_secrets(project: Path):
    key = "sk-ant-api03-" + "aB3dE6gH9" * 10
    async with (
        AnthropicServer(["one"]) as dear,
        OpenAIServer(["two"]) as cheap,
        OpenAIServer(["fix", HttpError(status=500, message="broken"), "other"]) as judge,
    ):
        settings = arms(dear, cheap, classifier="judge/tiny", policy="heuristic")
        settings["providers"]["judge"] = {"endpoint": judge.url, "wire": judge.wire.name}
        session, events = open_routed(project, settings)
        async with session:
            assert (await session.send(f"What does {key} do?")).text == "one"
            assert (await session.send("What does this project do?")).text == "two"
            assert len(judge.requests) == 2
            line = "MIIEow" * 10
            frame = "-----BEGIN " + "PRIVATE KEY-----"
            refused = await session.send(f"Look at this:\n{frame}\n***\n{line}\n{line}\n")
            assert refused.unsent
        assert picked(events) == ["big", "small"]
        assert [each.reason.split()[2] for each in events.of(RequestStarted) if each.decision] == [
            "fix",
            "explain",
        ]
        said = json.dumps([each.body for each in (*judge.requests, *dear.requests)])
        assert key not in said
        assert line not in said


async def test_what_came_of_a_sub_agents_task_counts_for_the_model_that_did_it(project: Path):
    task = {"task": "What does this project do?", "kind": "explore"}
    async with (
        AnthropicServer([call("delegate", tasks=[task]), "fixed"]) as dear,
        OpenAIServer([call("nonsense"), "explained"]) as cheap,
    ):
        session, events = open_routed(project, arms(dear, cheap, policy="heuristic"))
        async with session:
            assert (await session.send("Fix the crash in parser.py")).text == "fixed"
            (settled,) = session_store(session).settled_since(0)
            told = session_store(session).find(settled.id)
        assert (settled.arm, settled.reward) == ("cheap/small", 0.0)
        assert told is not None
        assert [each.name for each in told.signals] == ["invalid calls"]
    assert {each.agent for each in events.envelopes} == {"main", "explore-1"}


async def test_a_sub_agent_gets_the_model_that_is_named_and_not_the_routed_one(project: Path):
    task = {"task": "Look", "kind": "explore", "model": "dear/big"}
    async with (
        AnthropicServer([call("delegate", tasks=[task]), HttpError(status=401), "fixed"]) as dear,
        OpenAIServer(["another one looked"]) as cheap,
    ):
        session, _ = open_routed(project, arms(dear, cheap, policy="heuristic"))
        async with session:
            assert (await session.send("Fix the crash in parser.py")).text == "fixed"
            assert session_store(session).counts()[0] == 1, "nothing was chosen for it"
        assert cheap.requests == []


async def test_the_doctor_names_what_the_router_picks_from(project: Path):
    async with OpenAIServer([]) as server:
        session, _ = open_routed(project, arms(server, server))
        async with session:
            (finding,) = look_at_model(session.loaded, None)
            assert (finding.state, finding.detail) == (
                "ok",
                "the router picks from dear/big, cheap/small",
            )
