"""What bounds a session of the server, kept over a kill."""

import os
from pathlib import Path
from typing import Any

import pytest
from msgspec import json
from msgspec.structs import replace

from hosts import this_host
from ybs.config.host import Host
from ybs.config.schema import SafetySettings
from ybs.core.events import StateChanged
from ybs.frontends.serve import bounds as bounds_module
from ybs.frontends.serve.bounds import (
    bounded,
    bounds_of,
    hold,
    settings_of,
    strictest,
    tightened,
)
from ybs.frontends.serve.protocol import Opening
from ybs.frontends.serve.sessions import opened_again
from ybs.providers.registry import chosen_provider, client_of
from ybs.security.policy.rules import PolicyRule
from ybs.session.bounds import in_force
from ybs.session.options import Options
from ybs.session.session import Session
from ybs.session.settings import load_settings
from ybs.testing import ScriptedModel


def options_of(project: Path, **overrides: Any) -> Options:
    given = {"host": this_host(), "model": ScriptedModel([]), "overrides": overrides}
    return Options.of(project, given)


@pytest.fixture
async def kept(project: Path) -> dict[str, Any]:
    """Return the bounds of a session that variables had made strict."""
    strict = {"safety.mode": "plan", "safety.deny": ["run_shell"], "agent.max_cost_usd": 1.0}
    async with Session(options_of(project, **strict, **{"safety.allow": ["git"]})) as session:
        return bounds_of(session)


@pytest.fixture
def loose(project: Path) -> Options:
    """Return options of somebody whose settings allow more."""
    options = options_of(project)
    file = options.host.config_folder / "config.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    safety = {"mode": "auto", "allow": ["git", "run_shell(make *)"], "ask": ["git"]}
    file.write_bytes(json.encode({"safety": safety, "agent": {"max_cost_usd": 5.0}}))
    return options


async def held(options: Options, kept: dict[str, Any]) -> SafetySettings:
    """Return what is in force in a session that is held to bounds."""
    async with Session(bounded(options, kept)) as session:
        hold(session, kept)
        return in_force(session.environment)


async def test_a_session_goes_on_with_nothing_looser(loose: Options, kept: dict[str, Any]):
    assert load_settings(loose).config.safety.mode == "auto"
    safety = await held(loose, kept)
    assert (safety.mode, safety.deny) == ("plan", ("run_shell",))
    assert (safety.allow, safety.ask) == (("git",), ("git",))
    assert load_settings(bounded(loose, kept)).config.agent.max_cost_usd == 1.0


async def test_an_option_is_no_looser_but_may_say_where_words_go(
    project: Path, tmp_path: Path, kept: dict[str, Any]
):
    loose = {"safety.mode": "auto", "llm.provider": "ollama", "agent.max_cost_usd": 5.0}
    options = replace(
        options_of(project, **loose),
        sandbox=False,
        allow=("run_shell(touch *)",),
        add_dirs=(tmp_path, project / "in"),
    )
    (project / "in").mkdir()
    kept["folders"].append(str((project / "in").resolve()))
    safety = await held(options, kept)
    assert (safety.mode, safety.deny, safety.allow) == ("plan", ("run_shell",), ())
    assert safety.sandbox_enabled
    options = bounded(options, kept)
    config = load_settings(options).config
    assert (config.llm.provider, config.agent.max_cost_usd) == ("ollama", 1.0)
    assert options.add_dirs == (project / "in",)


def test_an_address_that_was_named_alone_is_opened_alone_again():
    """Named with a provider now it would get the key in that one's variable."""
    alone = Opening(folder="/p", endpoint="http://127.0.0.1:1/v1", model="a")
    before = StateChanged(mode="ask", provider="openai", model="a")
    again = opened_again(alone, before, replace(before, model="b"))
    assert again == replace(alone, model="b")
    both = replace(alone, provider="openai")
    assert opened_again(both, before, replace(before, model="b")) == replace(both, model="b")
    other = opened_again(both, before, replace(before, provider="ollama", model="q"))
    assert (other.provider, other.model, other.endpoint) == ("ollama", "q", None)


@pytest.mark.parametrize("said", [{}, {"llm.provider": "openai"}])
async def test_the_key_of_a_variable_goes_after_a_kill_where_it_went_before(
    project: Path, said: dict[str, Any]
):
    """Over an address that the client's variables named alone, and a provider that has changed in the settings since."""
    file = this_host().config_folder / "config.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    environ, address = {"OPENAI_API_KEY": "k" * 24}, "https://x.example.org/v1"

    def options(**more: str) -> Options:
        host = Host.of({**os.environ, **environ, **more})
        return Options.of(project, {"host": host, "overrides": said if not more else {}})

    def sent(options: Options) -> tuple[str, str]:
        config = load_settings(options).config
        headers = client_of(options.host, chosen_provider(options.host, config), config)._headers
        return chosen_provider(options.host, config).endpoint, headers.get("authorization", "")

    for alone in (True, False):
        file.write_bytes(json.encode({"llm": {"provider": "openai", "model": "m"}}))
        named = {"YBS_ENDPOINT": address} | ({} if alone else {"YBS_PROVIDER": "openai"})
        before = sent(options(**named))
        assert before == (address, "" if alone else f"Bearer {environ['OPENAI_API_KEY']}")
        async with Session(options(**named)) as session:
            kept = bounds_of(session)
        file.write_bytes(json.encode({"llm": {"provider": "mistral", "model": "m"}}))
        place, key = sent(bounded(options(), kept))
        if said:  # an option says it: OpenAI's own address
            assert place.startswith("https://api.openai.com/")
        else:
            assert (place, key) == before


async def test_what_was_changed_in_a_session_bounds_it_and_can_be_changed_again(project: Path):
    options = replace(
        options_of(project, **{"safety.sandbox_network": True}),
        sandbox=False,
        allow=("run_shell(touch *)",),
    )
    async with Session(options) as session:
        environment = session.environment
        environment.policy.rules.remove(PolicyRule("allow", "run_shell(touch *)", "start"))
        environment.policy.rules.add(PolicyRule("deny", "read_file(a)", "session"))
        environment.policy.asks_before_edits = True
        environment.sandbox.switch(is_off=False)
        environment.sandbox.open_network(is_open=False)
        kept = bounds_of(session)
    async with Session(bounded(options, kept)) as session:
        hold(session, kept)
        safety = in_force(session.environment)
        assert (safety.allow, safety.deny) == ((), ("read_file(a)",))
        assert safety.ask_before_edits
        assert safety.sandbox_enabled
        assert not safety.sandbox_network
        session.environment.policy.asks_before_edits = False
        session.environment.policy.rules.remove(PolicyRule("deny", "read_file(a)", "session"))
        safety = in_force(session.environment)
        assert not safety.ask_before_edits
        assert safety.deny == ()


async def test_words_of_others_in_a_clients_prompt_are_not_forgotten(project: Path):
    options = options_of(project)
    async with Session(options) as session:
        session.parts.composer.note_given_back("see @~/diary.txt", is_own=False)
        kept = bounds_of(session)
    async with Session(bounded(options, kept)) as session:
        hold(session, kept)
        assert session.kept("see @~/diary.txt") == ""
        assert session.parts.composer.has_given_back


async def test_settings_that_became_stricter_hold_behind_an_option(loose: Options):
    options = replace(loose, overrides={"safety.mode": "bypass"})
    then = settings_of(options)
    async with Session(options) as session:
        kept = bounds_of(session)
    assert tightened(kept, then, settings_of(options))["safety.mode"] == "bypass"
    file = options.host.config_folder / "config.json"
    file.write_bytes(json.encode({"safety": {"mode": "plan"}}))
    assert (await held(options, tightened(kept, then, settings_of(options)))).mode == "plan"


def test_of_two_safety_settings_each_is_the_strictest():
    lax = SafetySettings(
        mode="bypass", allow=("git",), require_confirmation=(), safe_commands=("rm", "ls")
    )
    one = strictest(SafetySettings(), lax)
    assert one == replace(SafetySettings(), safe_commands=("ls",))
    assert strictest(one, replace(lax, mode="plan", deny=("git",))) == replace(
        one, mode="plan", deny=("git",)
    )
    names = {f"safety.{name}" for name in SafetySettings.__struct_fields__}
    assert names == {key for key in bounds_module._RULES if key.startswith("safety.")}
