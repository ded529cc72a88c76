"""An address that was given and cannot be read is never replaced by a weaker one: words would go elsewhere."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hosts import this_host
from rows import every_row
from ybs.config.host import Host
from ybs.config.layers import Loaded
from ybs.config.report import check, show
from ybs.core.errors import ConfigError
from ybs.providers.registry import create_model, find_provider
from ybs.trust.settings import load

Write = Callable[[str, str], Path]
KEY = "sk-" + "e5" * 12
CLOUD = {"provider": "openai", "model": "m"}


def model_of(loaded: Loaded, provider: str | None = None) -> Any:
    return create_model(Host.of({"OPENAI_API_KEY": KEY}), loaded.config, provider=provider)


@every_row("endpoint", ["${NOT_SET}", 8080, "", ["http://127.0.0.1:1"], False])
def test_an_address_that_cannot_be_read_is_an_error_when_a_model_is_made(project, write, endpoint):
    write("system", json.dumps({"llm": {"endpoint": "https://cloud.example/v1"}}))
    file = write("user", json.dumps({"llm": {**CLOUD, "endpoint": endpoint}}))
    loaded = load(this_host(), folder=project)
    assert loaded.warnings[0].startswith(f"{file}:1: llm.endpoint: ")
    with pytest.raises(ConfigError, match=r"config\.json:1: llm\.endpoint: .*nothing was sent"):
        model_of(loaded)
    assert model_of(loaded, "ollama").endpoint == "http://localhost:11434"


@every_row("llm", [{"provider": "${NOT_SET}"}, {"provider": ""}, 5])
def test_a_provider_that_cannot_be_read_is_an_error(project: Path, write: Write, llm: Any):
    write("system", json.dumps({"llm": CLOUD}))
    write("user", json.dumps({"llm": llm}))
    with pytest.raises(ConfigError, match=r"config\.json:1: llm"):
        model_of(load(this_host(), folder=project))


def test_an_address_of_a_profile_that_cannot_be_read_is_an_error(project: Path, write: Write):
    profiles = {"private": {"llm": {"endpoint": "${NOT_SET}"}}}
    write("user", json.dumps({"llm": CLOUD, "profiles": profiles}))
    with pytest.raises(
        ConfigError, match=r"profiles\.private\.llm\.endpoint: the variable NOT_SET"
    ):
        model_of(load(this_host(), folder=project, profile="private"))
    assert model_of(load(this_host(), folder=project)).endpoint == "https://api.openai.com/v1"


@pytest.mark.parametrize("openai", [{"endpoint": "${NOT_SET}", "model": "m"}, 5])
def test_a_provider_of_ones_own_without_a_readable_address_is_not_replaced_by_a_built_in_one(
    project: Path, write: Write, openai: Any
):
    write("user", json.dumps({"llm": CLOUD, "providers": {"openai": openai}}))
    loaded = load(this_host(), folder=project)
    with pytest.raises(ConfigError, match=r"providers\.openai"):
        model_of(loaded)
    with pytest.raises(ConfigError, match=r"providers\.openai"):
        find_provider("openai", loaded.config)


def test_a_usable_value_of_a_stronger_layer_mends_it(project: Path, write: Write):
    write("user", json.dumps({"llm": {**CLOUD, "endpoint": "${NOT_SET}"}}))
    local = "http://127.0.0.1:8080/v1"
    by_option = load(this_host(), folder=project, overrides={"llm.endpoint": local})
    by_variable = load(Host.of({**os.environ, "YBS_ENDPOINT": local}), folder=project)
    write("home", json.dumps({"llm": {"endpoint": local}}))
    by_file = load(this_host(), folder=project)
    for loaded in (by_option, by_variable, by_file):
        assert model_of(loaded).endpoint == local
    other = load(this_host(), folder=project, overrides={"llm.provider": "ollama"})
    assert model_of(other).endpoint == "http://localhost:11434"


def test_a_null_of_a_stronger_layer_takes_it_back(project: Path, write: Write):
    write("user", json.dumps({"llm": {**CLOUD, "endpoint": "${NOT_SET}"}}))
    write("home", json.dumps({"llm": {"endpoint": None}}))
    assert model_of(load(this_host(), folder=project)).endpoint == "https://api.openai.com/v1"


def test_it_is_told_once_and_shown(project: Path, write: Write):
    write("user", '{"llm": {"endpoint": "${A}", "provider": "${B}"}}')
    loaded = load(this_host(), folder=project)
    assert len(check(loaded)) == 2
    shown = {row.key: row.value for row in show(loaded)}
    assert "the variable A is not set" in shown["llm.endpoint"]
