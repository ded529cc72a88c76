"""Where a model runs, and what its server is called: never by the name of a company that is not asked."""

from typing import Any

import pytest

from hosts import this_host
from rows import every_row
from ybs.config.host import Host
from ybs.config.schema import Config, Endpoint, LlmSettings
from ybs.core.errors import ConfigError
from ybs.providers.registry import create_model, runs_here, shown_name


def config_of(endpoint: str | None = None, provider: str | None = None, **own: str) -> Config:
    servers = {name: Endpoint(endpoint=address) for name, address in own.items()}
    return Config(llm=LlmSettings(provider=provider, endpoint=endpoint), providers=servers)


@every_row(
    ("provider", "config"),
    [
        ("llamacpp", config_of()),
        ("ollama", config_of()),
        ("openai", config_of("http://localhost:8080/v1")),
        ("openai", config_of("http://127.9.9.9:1", "openai")),
        ("mine", config_of(mine="http://[::1]:8080/v1")),
        ("mine", config_of("http://gpu.lan/v1", "openai", mine="http://127.0.0.1/v1")),
    ],
)
def test_what_answers_on_this_machine_runs_here(provider: str, config: Config):
    assert runs_here(this_host(), provider, "qwen3:14b", config)


@every_row(
    ("provider", "config"),
    [
        ("openai", config_of()),
        ("anthropic", config_of("http://127.0.0.1:1")),  # the address is that of openai
        ("ollama", config_of("http://192.168.1.5:11434", "ollama")),
        ("llamacpp", config_of("http://gpu.lan:8080", "llamacpp")),
        ("mine", config_of(mine="http://127.0.0.1.example.org/v1")),
        ("mine", config_of(mine="http://127.0.0.1@example.org/v1")),
    ],
)
def test_another_machine_is_not_here_even_in_the_same_house(provider: str, config: Config):
    assert not runs_here(this_host(), provider, "m", config)


@every_row("model", ["gpt-oss:120b-cloud", "glm-4.6:cloud", "Big:CLOUD"])
def test_a_model_that_ollama_passes_on_is_not_here(model: str):
    assert not runs_here(this_host(), "ollama", model, config_of())


@every_row("model", ["cloudy:7b", "nimbus-cloudlet:1b", "m"])
def test_a_name_with_a_cloud_in_it_is_here(model: str):
    assert runs_here(this_host(), "ollama", model, config_of())


@every_row("wrong", ["nowhere", "\x1b"])
def test_a_provider_that_is_none_is_an_error(wrong: Any):
    with pytest.raises(ConfigError):
        runs_here(this_host(), wrong, "m", config_of())


EMPTY = Host.of({"HOME": "/nonexistent"})
LOCAL = "http://127.0.0.1:8080/v1"


@every_row(
    ("name", "config", "shown"),
    [
        ("openai", Config(llm=LlmSettings(endpoint=LOCAL)), "127.0.0.1:8080"),
        ("openai", Config(llm=LlmSettings(provider="openai", endpoint=LOCAL)), "127.0.0.1:8080"),
        ("openai", Config(providers={"openai": Endpoint(endpoint=LOCAL)}), "127.0.0.1:8080"),
        ("openai", Config(llm=LlmSettings(endpoint="https://u:p@far.example/v1")), "far.example"),
        ("openai", Config(llm=LlmSettings(endpoint="https://api.openai.com/v1")), "openai"),
        ("openai", Config(llm=LlmSettings(provider="openai")), "openai"),
        ("openai", Config(), "openai"),
        ("openai", Config(llm=LlmSettings(provider="ollama", endpoint=LOCAL)), "openai"),
        ("ollama", Config(llm=LlmSettings(provider="ollama", endpoint=LOCAL)), "ollama"),
        ("shed", Config(providers={"shed": Endpoint(endpoint=LOCAL)}), "shed"),
        ("in-process", Config(llm=LlmSettings(endpoint=LOCAL)), "in-process"),
    ],
)
def test_a_server_is_called_by_its_name_or_by_its_address(name: str, config: Config, shown: str):
    assert shown_name(name, config) == shown


def test_errors_call_it_by_its_address_too():
    given = Config(llm=LlmSettings(endpoint=LOCAL, model="m"))
    assert create_model(EMPTY, given)._client.site.name == "127.0.0.1:8080"
    theirs = Config(llm=LlmSettings(provider="openai", api_key="sk-x", model="m"))
    assert create_model(EMPTY, theirs)._client.site.name == "openai at api.openai.com"
