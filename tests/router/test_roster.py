"""The roster: which models the router may pick from, what is known of them, and which pool each draws on."""

from typing import Any

import pytest

from hosts import this_host
from rows import every_row
from ybs.config.layers import Loaded
from ybs.config.schema import Config, IncognitoSettings, LlmSettings
from ybs.config.sections import Endpoint, ModelEntry, PoolLimits, RouterSettings
from ybs.core.errors import ConfigError
from ybs.router.roster import Roster, checked_roster, roster_of

HERE, AWAY = "http://127.0.0.1:9/v1", "https://models.example.com/v1"


def config_of(*arms: str, **more: Any) -> Config:
    router = RouterSettings(arms=arms, pools=more.pop("pools", {}))
    providers = {"here": Endpoint(endpoint=HERE, model="qwen3:4b"), "away": Endpoint(endpoint=AWAY)}
    return Config(router=router, providers=providers, **more)


def loaded_of(config: Config) -> Loaded:
    return Loaded(host=this_host(), config=config, origins={})


def roster(*arms: str, **more: Any) -> Roster:
    return roster_of(loaded_of(config_of(*arms, **more)))


def test_what_is_known_of_a_model_comes_from_the_person_and_the_catalog():
    stated = {"away/m": ModelEntry(window=9_000, input_price=1, output_price=2, sees_images=False)}
    mine, dear, here = roster("away/m", "openai/gpt-5.1", "here", models=stated).arms
    assert (mine.window, mine.input_usd_per_million, mine.sees_images) == (9_000, 1, False)
    assert (dear.window, dear.output_usd_per_million, dear.is_local) == (400_000, 10, False)
    assert (here.name, here.is_local, here.cost_usd(10**6, 0, 10**6)) == ("here/qwen3:4b", True, 0)
    assert dear.prior_of("fix") > mine.prior_of("fix") > here.prior_of("fix")
    assert here.prior_of("explain") > here.prior_of("fix")


@every_row(
    "config, expected",
    [
        (Config(llm=LlmSettings(provider="openai", model="gpt-5")), ["openai/gpt-5"]),
        (
            Config(
                llm=LlmSettings(provider="openai", model="auto", fallback=("openai/gpt-5-mini",))
            ),
            ["openai/gpt-5-mini"],
        ),
        (config_of(), ["here/qwen3:4b"]),
    ],
)
def test_without_names_the_models_of_the_settings_are_taken(config: Config, expected: list[str]):
    found = [arm.name for arm in roster_of(loaded_of(config)).arms]
    assert set(expected) <= set(found)


def test_entries_that_cannot_be_used_are_left_out_and_named():
    found = roster("here", "away", "nobody/x", "here/qwen3:4b")
    assert [arm.name for arm in found.arms] == ["here/qwen3:4b"]
    assert "away/: it has no model of its own; write away/MODEL" in found.problems[0]
    assert "There is no provider 'nobody'" in found.problems[1]


def test_providers_that_share_a_pool_draw_on_it_and_a_budget_needs_prices():
    pools = {
        "shared": PoolLimits(providers=("here", "away"), usd_per_day=1.0),
        "openai": PoolLimits(),
    }
    found = roster("here", "away/m", "openai/gpt-5", "google/gemini-2.5-pro", pools=pools)
    assert list(found.pools.values()) == ["shared", "shared", "openai", "google"]
    (problem,) = found.problems
    assert "the price of away/m is not known" in problem


def test_the_version_changes_with_what_the_catalog_says_and_with_the_server():
    entry = {"away/m": ModelEntry(window=9_000)}
    (first,) = roster("away/m").arms
    (again,) = roster("away/m").arms
    (other,) = roster("away/m", models=entry).arms
    assert first.version == again.version != other.version


def test_one_model_is_nothing_to_pick_from():
    with pytest.raises(ConfigError, match="needs two models") as caught:
        checked_roster(loaded_of(config_of("here", "nobody/x")))
    assert "nobody" in str(caught.value)
    assert caught.value.remedies


def test_where_only_models_on_this_machine_are_allowed_the_others_are_left_out():
    private = IncognitoSettings(enabled=True, local_only=True)
    found = checked_roster(loaded_of(config_of("here", "away/m", incognito=private)))
    assert [arm.name for arm in found.arms] == ["here/qwen3:4b"]
    with pytest.raises(ConfigError, match="None of the router's models runs on this machine"):
        checked_roster(loaded_of(config_of("away/m", "away/n", incognito=private)))


def test_arms_are_found_by_either_name_and_taken_out():
    found = roster("here", "away/m")
    assert found.of_model("m") == found.of_model("away/m") == found.arms[1]
    assert found.of_model("x") is None
    assert [arm.name for arm in found.without(["away/m"]).arms] == ["here/qwen3:4b"]
    with pytest.raises(ConfigError, match="further away"):
        found.without(["away/m", "here/qwen3:4b"])
