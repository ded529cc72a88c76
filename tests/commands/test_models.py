"""/model, /provider and /mode: what is reachable is offered, and nobody beyond this machine is asked unbidden."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from replies import shown
from scripted import HttpError, OllamaServer, OpenAIServer
from ybs.commands import offers
from ybs.commands.open import SlashCommands
from ybs.commands.table import COMMANDS
from ybs.config.presets import PRESETS
from ybs.core.errors import ProviderDown
from ybs.core.messages import ToolCall
from ybs.core.ports import Preview
from ybs.providers import reachable as reach
from ybs.security.policy.case import Subject
from ybs.security.policy.policy import Ask
from ybs.session.reply import Menu, Reply
from ybs.session.session import Session
from ybs.testing import RecordedEvents

Open = Callable[..., tuple[Session, RecordedEvents]]
FAR = "https://models.example.com/v1"
DEAD = "http://127.0.0.1:9/v1"


@pytest.fixture(autouse=True)
def only_own_providers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what happens to run on this machine out of the lists."""

    def names(config: Any = None) -> list[str]:
        return ["openai", "anthropic", "llamacpp", *config.providers]

    monkeypatch.setattr(offers, "provider_names", names)


def own(home: Path, **providers: dict[str, Any]) -> None:
    file = home / ".ybs.json"
    file.write_bytes(msgspec.json.encode({"providers": providers}))
    file.chmod(0o600)


async def said(session: Session, line: str) -> Reply:
    reply = await session.handle(line)
    assert isinstance(reply, Reply)
    return reply


def menu_of(reply: Reply) -> Menu:
    assert not reply.is_error, reply.text
    assert reply.menu is not None
    return reply.menu


async def test_an_unknown_provider_or_number_changes_nothing(open_session: Open):
    async with OpenAIServer([]) as server:
        session, _ = open_session(server)
        async with session:
            for line in ("/provider opnai", "/provider apple", "/provider \x1b", "/mode 9"):
                reply = await said(session, line)
                assert reply.is_error, line
            assert "openai" in shown(await said(session, "/provider opnai"))
            await said(session, "/mode")
            assert (await said(session, "/mode 99")).is_error
            assert session.mode == "ask"
            assert session.status().provider == "openai"


async def test_the_mode_menu_has_edits_ask_for_the_session(open_session: Open, project: Path):
    def asked(session: Session) -> bool:
        policy = session.environment.policy
        subject = Subject(paths=("a.py",), is_seen=True)
        call = ToolCall(id="1", name="edit_file", arguments=msgspec.Raw(b'{"path": "a.py"}'))
        return isinstance(policy.decide(call, "edit", Preview(title="edit"), subject), Ask)

    async with OpenAIServer([]) as server:
        session, _ = open_session(server)
        async with session:
            assert not asked(session)
            items = menu_of(await said(session, "/mode")).items
            assert [item.label for item in items if item.is_current] == ["ask"]
            assert "/mode ask edits" in [item.line for item in items]
            assert "asks before each edit" in shown(await said(session, "/mode ask edits"))
            assert asked(session)
            assert session.mode == "ask"
            items = menu_of(await said(session, "/mode")).items
            assert [item.label for item in items if item.is_current] == ["ask edits"]
            assert session.status().shown_mode == "ask edits"
            assert "ask edits" in COMMANDS["mode"].choices(session), "the Tab key offers it"
            await said(session, "/mode accept-edits")
            assert not asked(session)
            assert session.status().shown_mode == "accept-edits"
            await said(session, "/mode ask")
            assert not asked(session), "the word alone ends it"


async def test_models_of_the_provider_and_of_other_servers_here_are_offered(
    open_session: Open, home: Path
):
    async with (
        OpenAIServer([], models=("scripted", "gpt-5", "text-embedding-3")) as server,
        OllamaServer([], models=("small",)) as other,
    ):
        near = {"endpoint": other.url, "wire": "ollama"}
        own(home, near=near, far={"endpoint": FAR, "model": "big"}, dead={"endpoint": DEAD})
        session, _ = open_session(server)
        async with session:
            reply = await said(session, "/model")
            menu = menu_of(reply)
            lines = [item.line for item in menu.items]
            assert lines == [
                *("/model scripted", "/model gpt-5"),
                *("/provider near small", "/provider far big"),
            ]
            assert [item.is_current for item in menu.items] == [True, False, False, False]
            assert [item.detail for item in menu.items][1:3] == ["400k window", "running here"]
            assert "\n* 1  scripted" in shown(reply)
            assert "\n  3  near small  running here\n" in shown(reply)
            chosen = await said(session, "/model 3")
            assert chosen.text == "Now using near small."
            assert session.status().model == "small"
        assert not server.requests + other.requests


@pytest.mark.integration
async def test_a_silent_provider_is_not_waited_for(
    open_session: Open, monkeypatch: pytest.MonkeyPatch
):
    async def never(_self: object) -> list[str]:
        await asyncio.Event().wait()
        return []

    monkeypatch.setattr("ybs.providers.remote.RemoteModel.list_models", never)
    monkeypatch.setattr(reach, "LIST_SECONDS", 0.01)
    async with OpenAIServer([]) as server:
        session, _ = open_session(server)
        async with session:
            here = urlsplit(server.url).netloc
            reply = await said(session, "/model")
            assert [item.line for item in menu_of(reply).items] == ["/model scripted"]
            assert f"{here} did not list its models in time." in shown(reply)
            assert shown(await said(session, "/model other")) == f"Now using {here} other."


async def test_where_a_maker_does_not_answer_its_known_models_are_offered(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    async def fail(_self: object) -> list[str]:
        raise ProviderDown("nobody answers\x1b there.\nMore.")

    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-" + "x" * 20)
    monkeypatch.setattr("ybs.providers.remote.RemoteModel.list_models", fail)
    session = Session.open(
        project,
        commands=SlashCommands(),
        provider="anthropic",
        model="claude-opus-5",
        sandbox=False,
    )
    async with session:
        reply = await said(session, "/model")
        labels = [item.label for item in menu_of(reply).items]
    assert labels[0] == "claude-opus-5"
    assert "claude-haiku-4-5" in labels
    assert "claude" not in labels, "a family is not a model"
    assert labels.count("claude-opus-5") == 1
    assert "nobody answers␛ there; these are the ones ybs knows of." in shown(reply)


@pytest.mark.integration
async def test_a_name_that_is_not_listed_is_taken_and_doubted(open_session: Open):
    async with OpenAIServer([], models=("scripted", "qwen3:14b", "gpt-5-2025")) as server:
        session, _ = open_session(server)
        async with session:
            here = urlsplit(server.url).netloc
            text = shown(await said(session, "/model scriptd"))
            assert text.startswith(f"Now using {here} scriptd.\n{here} does not list that model.")
            assert "Did you mean scripted?" in text
            assert "/model lists" in shown(await said(session, "/model zzz"))
            for name in ("scripted", "qwen3", "gpt-5"):
                assert shown(await said(session, f"/model {name}")) == f"Now using {here} {name}."


async def test_providers_are_shown_with_what_they_lack_and_only_this_machine_is_asked(
    open_session: Open, home: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FAR_KEY", "x" * 20)
    far = {"endpoint": FAR, "api_key_env": "FAR_KEY"}
    own(home, far=far, bare={"endpoint": FAR}, dead={"endpoint": DEAD}, odd={"endpoint": "nowhere"})
    async with OpenAIServer([]) as server:
        session, _ = open_session(server)
        async with session:
            reply = await said(session, "/provider")
            items = {item.label: item for item in menu_of(reply).items}
            assert {name: item.detail for name, item in items.items()} == {
                "openai": f"in use, running here, at 127.0.0.1:{urlsplit(server.url).port}",
                "anthropic": "no key: set ANTHROPIC_API_KEY",
                "llamacpp": "no model yet: `ybs models download starter`",
                "far": "key found",
                "bare": "at models.example.com",
                "dead": "not running at http://127.0.0.1:9/v1",
                "odd": "'nowhere' is not a valid address: it does not begin with http:// or https:// and the name of a server. Write it like http://127.0.0.1:8080/v1",
            }
            assert items["far"].line == "/provider far"
            assert [item.label for item in items.values() if item.is_current] == ["openai"]
            listed = await said(session, "/provider LIST")
            assert (shown(listed), listed.is_listed) == (shown(reply), True)
        assert not server.requests + server.other_requests


async def test_a_provider_without_a_model_of_its_own_offers_those_it_has(
    open_session: Open, home: Path
):
    async with OpenAIServer([], models=("a-1", "b-2")) as server, OpenAIServer([]) as mine:
        own(home, near={"endpoint": server.url}, dead={"endpoint": DEAD})
        session, _ = open_session(mine)
        async with session:
            menu = menu_of(await said(session, "/provider near"))
            assert [item.line for item in menu.items] == [
                "/provider near a-1",
                "/provider near b-2",
            ]
            assert session.status().provider == "openai"
            assert shown(await said(session, "/provider 2")) == "Now using near b-2."
            dead = await said(session, "/provider dead")
            assert dead.is_error
            assert "/provider dead MODEL" in dead.text


async def test_incognito_on_this_machine_offers_only_what_runs_here(project: Path, home: Path):
    async with OllamaServer([], models=("small", "big:cloud")) as server:
        own(
            home,
            far={"endpoint": FAR, "model": "big"},
            near={"endpoint": server.url, "wire": "ollama"},
        )
        session = Session.open(
            project,
            commands=SlashCommands(),
            provider="ollama",
            endpoint=server.url,
            model="small",
            sandbox=False,
            overrides={"incognito.enabled": True, "incognito.local_only": True},
        )
        async with session:
            lines = [item.line for item in menu_of(await said(session, "/model")).items]
    assert lines == ["/model small", "/provider near small"]


async def test_a_server_that_fails_has_no_models(open_session: Open, home: Path):
    async with OpenAIServer([]) as server, OllamaServer([HttpError(status=500)]) as other:
        own(home, near={"endpoint": f"{other.url}/wrong"})
        session, _ = open_session(server)
        async with session:
            lines = [item.line for item in menu_of(await said(session, "/model")).items]
            assert lines == ["/model scripted"]


async def test_modes_are_offered_with_what_they_mean(open_session: Open):
    async with OpenAIServer([]) as server:
        session, _ = open_session(server)
        async with session:
            menu = menu_of(await said(session, "/mode"))
            assert [item.label for item in menu.items if item.is_current] == ["ask"]
            assert all(item.detail for item in menu.items)
            await said(session, "/mode 5")
            assert session.mode == "deny"


@pytest.mark.integration
async def test_a_model_that_is_called_a_number_is_taken_by_its_name(open_session: Open):
    names = [*map(str, range(10, 18)), "2"]
    async with OpenAIServer([], models=names) as server:
        session, _ = open_session(server)
        async with session:
            items = menu_of(await said(session, "/model")).items
            taken: list[str] = []
            for item in items:
                assert not (await said(session, item.line)).is_error, item.line
                taken.append(f"/model {session.status().model}")
            assert taken == [item.line for item in items]
            await said(session, "/model 3")
            assert session.status().model == "11"  # the third item, and no more than that


async def test_another_users_server_is_named_so(open_session: Open, home: Path, monkeypatch):
    monkeypatch.setattr("ybs.providers.nearby.other_user_at", lambda *_: "mallory")
    async with OpenAIServer([]) as server, OllamaServer([], models=("small",)) as other:
        own(home, near={"endpoint": other.url, "wire": "ollama"})
        session, _ = open_session(server)
        async with session:
            details = [
                item.detail
                for line in ("/model", "/provider")
                for item in menu_of(await said(session, line)).items
                if "near" in item.line
            ]
    assert details == ["another user's (mallory)"] * 2


@pytest.mark.parametrize("owner", ["mallory", ""])
@pytest.mark.parametrize("name", ["vllm", "work"])
async def test_a_provider_named_without_a_model_says_whose_its_server_is(
    open_session: Open, home: Path, monkeypatch, owner: str, name: str
):
    """Another user's is sent no key for its list, and Enter does not take it."""
    key = "k-" + "x" * 20
    monkeypatch.setenv("VLLM_API_KEY", key)
    monkeypatch.setattr("ybs.providers.nearby.other_user_at", lambda *_: owner)
    async with OpenAIServer([]) as server, OpenAIServer([]) as other:
        preset = msgspec.structs.replace(PRESETS["vllm"], endpoint=other.url)
        monkeypatch.setitem(PRESETS, "vllm", preset)
        own(home, work={"endpoint": other.url, "api_key_env": "VLLM_API_KEY"})
        session, _ = open_session(server)
        async with session:
            used = session.agent.provider
            items = menu_of(await said(session, f"/provider {name}")).items
            sent = [str(dict(each.headers)) for each in other.other_requests]
            marked = next((each for each in items if each.is_current), items[0])
            await said(session, marked.line)
            assert (session.agent.provider == used) is bool(owner)
            reply = await said(session, items[-1].line)
    assert sent
    assert any(key in each for each in sent) is not bool(owner)
    assert items[-1].detail == (f"another user's ({owner})" if owner else "running here")
    assert ("another user's (mallory): your words go there" in reply.text) is bool(owner)
