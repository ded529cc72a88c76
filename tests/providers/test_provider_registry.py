import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from rows import every_row
from scripted import AnthropicServer, GoogleServer, MistralServer, OllamaServer, OpenAIServer
from ybs.commands.advice import told
from ybs.config.host import Host
from ybs.config.installed import EntryPoint
from ybs.config.key_store import keep_key
from ybs.config.presets import BUILT_IN, PRESETS
from ybs.config.provider_change import ADDRESS_ALONE
from ybs.config.schema import (
    AgentLimits,
    Config,
    ContextSettings,
    Endpoint,
    LlmSettings,
    LocalSettings,
)
from ybs.core.errors import AuthError, ConfigError
from ybs.core.messages import UserMessage
from ybs.core.ports import Request
from ybs.core.remedies import Remedy
from ybs.providers import registry
from ybs.providers.builtin import WIRES
from ybs.providers.registry import (
    Provider,
    chosen_provider,
    create_model,
    find_provider,
    key_left_behind,
    open_model,
    provider_names,
)
from ybs.providers.wire.quirks import Quirks
from ybs.providers.wires import adapter_of, clean_endpoint

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
KEY = "sk-" + "c3" * 16


def config(**llm) -> Config:
    return Config(llm=LlmSettings(**llm))


def headers_of(model) -> dict:
    return model._client._headers


def test_the_names_are_listed_with_the_persons_own_at_the_end():
    assert provider_names() == [*BUILT_IN, *PRESETS]
    own = Config(
        providers={"mine": Endpoint(endpoint="http://h"), "openai": Endpoint(endpoint="http://h")}
    )
    assert provider_names(own)[-1] == "mine"
    assert provider_names(own).count("openai") == 1


def test_an_unknown_name_gets_the_nearest_ones():
    with pytest.raises(
        ConfigError,
        match=r"no provider 'olama'\. Did you mean ollama\?\nThe providers are: ollama, ",
    ):
        find_provider("olama", Config())
    with pytest.raises(ConfigError, match=r"no provider 'zzz'\.\n"):
        find_provider("zzz", Config())


@every_row("name", ["ollama", "openai", "google", "mistral"])
def test_built_in_providers_are_found(name: str):
    provider = find_provider(name, Config())
    assert provider.name == name
    assert provider.model
    assert KEY not in repr(Provider(name="x", wire="openai", endpoint="http://h", api_key=KEY))


@pytest.mark.integration
def test_finding_a_built_in_one_reads_no_entry_points_and_imports_no_http_library():
    code = (
        "import asyncio, msgspec, pathlib, sys; before = set(sys.modules)\n"
        "from ybs.config.schema import Config, LlmSettings\n"
        "from ybs.providers.registry import create_model\n"
        "from ybs.config.host import Host\n"
        "create_model(Host.of({}), Config(llm=LlmSettings(provider='ollama')))\n"
        "print({'httpx2', 'httpcore2', 'importlib.metadata', 'difflib', 'json', 'dataclasses',"
        " 'inspect', 'email', 'random', 'ybs.providers.wire.openai'} & (set(sys.modules) - before))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"


def test_an_installed_provider_is_found_by_its_entry_point(monkeypatch: pytest.MonkeyPatch):
    given = Provider(name="third", wire="openai", endpoint="http://127.0.0.1:1", model="m")
    monkeypatch.setattr(registry, "third", given, raising=False)
    monkeypatch.setattr(registry, "wrong_one", 5, raising=False)

    def installed() -> list[EntryPoint]:
        return [
            EntryPoint(package="p", group=group, name=name, value=f"ybs.providers.registry:{place}")
            for group, name, place in (
                ("ybs.tools", "third", "Provider"),
                ("ybs.providers", "third", "third"),
                ("ybs.providers", "wrong", "wrong_one"),
            )
        ]

    monkeypatch.setattr("ybs.config.installed.installed", installed)
    assert find_provider("third", Config()) is given
    with pytest.raises(
        ConfigError, match=r"wrong_one\): it is not a ybs\.providers\.registry\.Provider"
    ):
        find_provider("wrong", Config())


def test_the_built_in_tables_and_the_entry_points_of_pyproject_agree():
    """Those of the installed package are as old as its installation."""
    declared = tomllib.loads(PYPROJECT.read_text())["project"]["entry-points"]
    providers = {name: f"ybs.providers.{place}" for name, place in BUILT_IN.items()}
    assert declared["ybs.providers"] == providers
    wires = {name: f"ybs.providers.{place}" for name, place in WIRES.items()}
    assert declared["ybs.wires"] == wires


def test_each_wire_format_has_the_name_that_it_is_found_by():
    assert {name: adapter_of(name).name for name in WIRES} == {name: name for name in WIRES}
    with pytest.raises(ConfigError, match=r"no wire format 'soap'\. The wire formats are: openai,"):
        adapter_of("soap")


# Addresses


@every_row(
    ("given", "wire", "clean"),
    [
        ("http://127.0.0.1:8080", "openai", "http://127.0.0.1:8080/v1"),
        ("http://127.0.0.1:8080/", "openai", "http://127.0.0.1:8080/v1"),
        ("http://127.0.0.1:8080/v1", "openai", "http://127.0.0.1:8080/v1"),
        ("http://127.0.0.1:8080/v1/", "openai", "http://127.0.0.1:8080/v1"),
        ("http://127.0.0.1:8080/v1/chat/completions", "openai", "http://127.0.0.1:8080/v1"),
        ("https://x.example/v1beta/openai/", "openai", "https://x.example/v1beta/openai"),
        ("https://x.example/v1?a=1", "openai", "https://x.example/v1"),
        ("https://x.example/v1/responses", "openai-responses", "https://x.example/v1"),
        ("https://x.example", "google", "https://x.example/v1beta"),
        ("https://x.example/v1beta/models", "google", "https://x.example/v1beta"),
        ("https://x.example/v1/models/g:generateContent", "google", "https://x.example/v1"),
        ("https://x.example/gemini", "google", "https://x.example/gemini/v1beta"),
        ("http://localhost:11434/", "ollama", "http://localhost:11434"),
        ("http://localhost:11434/v1", "ollama", "http://localhost:11434"),
        ("http://localhost:11434/api/chat", "ollama", "http://localhost:11434"),
        ("http://localhost:11434/api", "ollama", "http://localhost:11434"),
        ("https://api.anthropic.com/v1/messages", "anthropic", "https://api.anthropic.com"),
        ("https://api.anthropic.com/v1", "anthropic", "https://api.anthropic.com"),
    ],
)
def test_addresses_are_brought_into_form(given, wire, clean):
    assert clean_endpoint(given, wire) == clean


def test_what_is_no_address_is_refused():
    with pytest.raises(ConfigError, match="is not a valid address"):
        create_model(Host.of({}), config(provider="openai", endpoint="localhost:8080"))


# Models


def test_nothing_chosen_is_said_with_the_choices():
    with pytest.raises(
        ConfigError, match=r"No provider is chosen. The providers are: ollama"
    ) as none:
        create_model(Host.of({}), Config())
    assert none.value.remedies == (Remedy("choose_provider"),)


def test_a_provider_with_its_defaults():
    model = create_model(Host.of({}), config(provider="ollama"))
    assert (model.provider, model.endpoint) == ("ollama", "http://localhost:11434")
    assert model.name == find_provider("ollama", Config()).model
    assert model.window == 32_768
    assert "authorization" not in headers_of(model)


def test_the_key_comes_from_the_environment_and_goes_to_its_provider():
    model = create_model(Host.of({"OPENAI_API_KEY": f" {KEY}\n"}), config(provider="openai"))
    assert headers_of(model)["authorization"] == f"Bearer {KEY}"
    google = create_model(
        Host.of({"GOOGLE_API_KEY": KEY, "OPENAI_API_KEY": "x"}), config(provider="google")
    )
    assert headers_of(google)["x-goog-api-key"] == KEY


def test_a_missing_key_says_which_variable_to_set():
    with pytest.raises(AuthError, match=r"openai needs a key, and none is set\.") as caught:
        create_model(Host.of({}), config(provider="openai"))
    assert told(caught.value).partition("\n")[2].startswith("Set OPENAI_API_KEY to a valid key")


def test_an_address_alone_is_an_openai_server_and_needs_no_key():
    model = create_model(Host.of({}), config(endpoint="http://127.0.0.1:8080", model="m"))
    assert (model.provider, model.endpoint) == ("openai", "http://127.0.0.1:8080/v1")
    assert model.quirks == Quirks()
    far = create_model(
        Host.of({}), config(provider="openai", endpoint="https://x.example/v1", model="m")
    )
    assert "authorization" not in headers_of(far)


def test_a_key_goes_to_an_address_that_the_person_gave():
    given = config(provider="openai", endpoint="https://x.example/v1", model="m")
    model = create_model(Host.of({"OPENAI_API_KEY": KEY}), given)
    assert headers_of(model)["authorization"] == f"Bearer {KEY}"


@every_row(
    "address", ["http://10.1.2.3:8080/v1", "http://other.example", "HTTP://api.openai.com/v1"]
)
def test_a_key_of_a_variable_is_not_sent_in_clear_text_to_another_host(address: str):
    environ = {"OPENAI_API_KEY": KEY}
    named = config(provider="openai", endpoint=address, model="m")
    with pytest.raises(ConfigError, match="OPENAI_API_KEY unencrypted to ") as caught:
        create_model(Host.of(environ), named)
    assert KEY not in str(caught.value)
    alone = create_model(Host.of(environ), config(endpoint=address, model="m"))
    assert "authorization" not in headers_of(alone)
    own_key = config(endpoint=address, model="m", api_key="mine")
    assert headers_of(create_model(Host.of(environ), own_key))["authorization"] == "Bearer mine"
    assert "authorization" not in headers_of(
        create_model(Host.of({}), config(endpoint=address, model="m"))
    )


@every_row("address", ["http://127.0.0.1:8080/v1", "https://llm.example/v1"])
def test_a_key_of_a_variable_goes_to_an_address_that_was_named_with_its_provider(address: str):
    host = Host.of({"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY})
    both = create_model(host, config(provider="openai", endpoint=address, model="m"))
    assert headers_of(both)["authorization"] == f"Bearer {KEY}"
    given = {"endpoint": address, "model": "m", "api_key": ADDRESS_ALONE}
    for alone in (
        config(endpoint=address, model="m"),
        config(**given, provider="openai"),
        config(**given, provider="anthropic"),
    ):
        assert KEY not in headers_of(create_model(host, alone)).values()
    own = config(endpoint="https://api.openai.com/v1", model="m")
    assert headers_of(create_model(host, own))["authorization"] == f"Bearer {KEY}"


def test_a_key_that_was_saved_for_an_address_goes_before_a_variable_of_the_maker(tmp_path: Path):
    address, saved = "https://llm.example/v1", "s" * 24
    host = Host.of({"HOME": str(tmp_path), "OPENAI_API_KEY": KEY})
    keep_key(host, "openai", "llm.example", saved)
    keep_key(host, "openai", "api.openai.com", saved)
    for given in ({"provider": "openai"}, {}):
        model = create_model(host, config(**given, endpoint=address, model="m"))
        assert headers_of(model)["authorization"] == f"Bearer {saved}"
    model = create_model(host, config(provider="openai", model="m"))
    assert headers_of(model)["authorization"] == f"Bearer {KEY}"


def test_key_and_headers_of_an_own_provider_stay_with_its_address():
    own = Endpoint(
        endpoint="https://a.example/v1",
        model="m",
        api_key=KEY,
        api_key_env="MY_KEY",
        headers={"X-Team": "a"},
    )
    moved = Config(
        providers={"mine": own}, llm=LlmSettings(provider="mine", endpoint="https://b.example/v1")
    )
    headers = headers_of(create_model(Host.of({"MY_KEY": KEY}), moved))
    assert "x-team" not in headers
    assert "authorization" not in headers
    same = Config(
        providers={"mine": own}, llm=LlmSettings(provider="mine", endpoint="https://a.example/v1/")
    )
    assert headers_of(create_model(Host.of({}), same))["authorization"] == f"Bearer {KEY}"


def test_the_settings_of_one_provider_are_not_used_for_another():
    given = config(provider="openai", endpoint="https://x.example/v1", api_key=KEY, model="gpt-x")
    model = create_model(Host.of({}), given, provider="ollama")
    assert model.endpoint == "http://localhost:11434"
    assert model.name != "gpt-x"
    assert "authorization" not in headers_of(model)
    same = create_model(Host.of({}), given, model="other")
    assert (same.name, headers_of(same)["authorization"]) == ("other", f"Bearer {KEY}")


def test_the_own_address_given_again_changes_nothing():
    given = config(provider="openai", endpoint="https://api.openai.com", model="gpt-4.1")
    model = create_model(Host.of({"OPENAI_API_KEY": KEY}), given)
    assert model._adapter.name == "openai-responses"
    assert model._terms.price is not None


def test_ollama_at_another_address_keeps_its_quirks():
    model = create_model(Host.of({}), config(provider="ollama", endpoint="http://nas:11434"))
    assert model.quirks.reasoning_sent_as == "thinking"


@every_row("key", ["sk-“quoted”", "two words", "a\x1bb"])
def test_a_key_that_cannot_be_one_is_refused_without_showing_it(key: str):
    with pytest.raises(AuthError, match="characters that a key cannot have") as caught:
        create_model(Host.of({"OPENAI_API_KEY": key}), config(provider="openai"))
    assert key not in str(caught.value)


def test_no_model_chosen_is_said():
    own = Config(
        providers={"mine": Endpoint(endpoint="http://h")}, llm=LlmSettings(provider="mine")
    )
    with pytest.raises(ConfigError, match="No model is chosen for mine"):
        create_model(Host.of({}), own)


def test_an_own_provider_with_everything():
    own = Endpoint(
        endpoint="http://10.0.0.5:9000",
        wire="openai",
        api_key_env="MY_KEY",
        model="llama-3-70b",
        window=16_000,
        headers={"X-Team": "a"},
        quirks={"sends_stream_options": False},
    )
    model = create_model(Host.of({"MY_KEY": KEY}), Config(providers={"mine": own}), provider="mine")
    assert (model.name, model.window, model.provider) == ("llama-3-70b", 16_000, "mine")
    assert model.quirks == Quirks(sends_stream_options=False)
    assert headers_of(model)["x-team"] == "a"
    assert headers_of(model)["authorization"] == f"Bearer {KEY}"
    assert model._terms.price is not None  # a machine of one's own costs nothing
    assert model._terms.price.input == 0


def test_an_own_provider_goes_before_a_built_in_one_and_has_no_price_elsewhere():
    own = Config(
        providers={"openai": Endpoint(endpoint="https://proxy.example/v1", model="gpt-4.1")}
    )
    model = create_model(Host.of({"OPENAI_API_KEY": KEY}), own, provider="openai")
    assert model.endpoint == "https://proxy.example/v1"
    assert model._terms.price is None
    assert "authorization" not in headers_of(model)


def test_an_own_ollama_has_the_quirks_of_ollama():
    own = Config(providers={"box": Endpoint(endpoint="http://box:11434", wire="ollama", model="q")})
    assert find_provider("box", own).quirks.reasoning_sent_as == "thinking"


def test_a_wrong_quirk_names_the_setting():
    own = Config(providers={"mine": Endpoint(endpoint="http://h", quirks={"nope": 1})})
    with pytest.raises(ConfigError, match=r"providers\.mine\.quirks"):
        find_provider("mine", own)


@every_row("headers", [{"a b": "x"}, {"a": "x\r\ny: z"}, {"": "x"}, {"ä": "x"}])
def test_a_header_that_cannot_be_one_is_refused(headers: dict):
    own = Config(providers={"mine": Endpoint(endpoint="http://h", model="m", headers=headers)})
    with pytest.raises(ConfigError, match=r"providers\.mine\.headers"):
        create_model(Host.of({}), own, provider="mine")


@every_row(
    ("provider", "model", "limit", "window"),
    [
        ("ollama", "qwen3:14b", None, 32_768),
        ("ollama", "qwen3:14b", 40_000, 40_000),  # asked for, and the model can
        ("ollama", "qwen3:14b", 100_000, 40_960),
        ("ollama", "unknown", 100_000, 100_000),
        ("ollama", "qwen3:14b", 4_096, 4_096),
        ("openai", "gpt-4.1", None, 1_047_576),
        ("openai", "gpt-4.1", 50_000, 50_000),
        ("openai", "gpt-4o", 500_000, 128_000),
    ],
)
def test_the_window_is_the_smaller_of_the_models_and_the_persons(provider, model, limit, window):
    given = Config(
        context=ContextSettings(max_tokens=limit), llm=LlmSettings(provider=provider, model=model)
    )
    assert create_model(Host.of({"OPENAI_API_KEY": KEY}), given).window == window


def test_an_own_window_is_bounded_by_the_persons_limit():
    own = Endpoint(endpoint="http://h", model="m", window=16_000)
    given = Config(providers={"mine": own}, context=ContextSettings(max_tokens=8_000))
    assert create_model(Host.of({}), given, provider="mine").window == 8_000


def test_settings_reach_the_model():
    given = Config(
        llm=LlmSettings(provider="ollama", temperature=0.5, max_tokens=100, timeout_seconds=7),
        agent=AgentLimits(retry_attempts=1, retry_backoff_base_ms=5),
    )
    model = create_model(Host.of({}), given)
    assert (model._options.temperature, model.max_tokens) == (0.5, 100)
    assert (model._retry.attempts, model._retry.base_ms) == (1, 5)
    assert model._client._patience.later == 7


def test_a_temperature_is_not_sent_to_a_model_that_takes_none():
    given = config(provider="openai", model="gpt-6-sol", temperature=0.5)
    assert not create_model(Host.of({"OPENAI_API_KEY": KEY}), given).quirks.accepts_temperature


def test_a_provider_may_make_its_model_itself(monkeypatch: pytest.MonkeyPatch):
    own = Provider(
        name="managed",
        wire="openai",
        endpoint="http://127.0.0.1:1",
        model="m",
        make=lambda host, config, model: open_model(host, own, config, model="made"),
    )
    monkeypatch.setattr(registry, "_installed_provider", lambda name, config: own)
    assert create_model(Host.of({}), Config(), provider="managed").name == "made"
    given = config(provider="managed", endpoint="http://127.0.0.1:9", model="mine")
    at_an_address = create_model(Host.of({}), given)
    assert (at_an_address.name, at_an_address.endpoint) == ("mine", "http://127.0.0.1:9/v1")


def test_a_password_in_an_address_is_not_shown():
    own = Endpoint(endpoint="http://me:secret@h:1/v1", model="m")
    model = create_model(Host.of({}), Config(providers={"mine": own}), provider="mine")
    assert model._client.site.name == "mine at h:1"


@every_row(
    ("host", "endpoint"),
    [
        ("", "http://localhost:11434"),
        ("gpu.example.org", "http://gpu.example.org:11434"),
        ("192.168.1.5:9999", "http://192.168.1.5:9999"),
        ("https://gpu.example.org", "https://gpu.example.org:443"),
        ("http://gpu", "http://gpu:80"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        (":11777", "http://127.0.0.1:11777"),
        (' "127.0.0.1:11777/" ', "http://127.0.0.1:11777"),
    ],
)
def test_ollama_is_where_the_environment_says(host: str, endpoint: str):
    environ = {"OLLAMA_HOST": host}
    assert chosen_provider(Host.of(environ), Config(), "ollama").endpoint == endpoint


def test_an_address_of_the_settings_goes_before_that_of_the_environment():
    config = Config(llm=LlmSettings(provider="ollama", endpoint="http://127.0.0.1:1"))
    for host in ("127.0.0.1:2", "not an address"):
        assert (
            chosen_provider(Host.of({"OLLAMA_HOST": host}), config, None).endpoint
            == "http://127.0.0.1:1"
        )
    own = Config(providers={"ollama": Endpoint(endpoint="http://127.0.0.1:3", wire="ollama")})
    assert (
        chosen_provider(Host.of({"OLLAMA_HOST": "h"}), own, "ollama").endpoint
        == "http://127.0.0.1:3"
    )


def test_an_address_in_the_environment_that_cannot_be_read_is_an_error_and_no_other_is_taken():
    with pytest.raises(ConfigError, match="The variable OLLAMA_HOST is not an address: 'a b'"):
        chosen_provider(Host.of({"OLLAMA_HOST": "a b"}), Config(), "ollama")


async def test_the_key_of_ollamas_cloud_goes_to_no_port_of_this_machine():
    secret = "k" * 24
    async with OllamaServer(["one"]) as server:
        host = Host.of({"OLLAMA_HOST": server.url, "OLLAMA_API_KEY": secret})
        model = create_model(host, Config(), provider="ollama", model="m")
        said = [event async for event in model.stream(Request("", (UserMessage.of("hi"),)))]
        await model.aclose()
    assert said
    assert server.requests
    assert secret not in str([each.headers for each in server.requests])


def test_no_key_goes_in_clear_text_to_an_address_of_the_environment():
    environ = {"OLLAMA_HOST": "gpu.example.org", "OLLAMA_API_KEY": "k"}
    with pytest.raises(ConfigError, match="OLLAMA_API_KEY unencrypted"):
        create_model(Host.of(environ), Config(), provider="ollama")


@pytest.mark.parametrize(
    ("name", "variable", "kind", "key"),
    [
        ("openai", "OPENAI_BASE_URL", OpenAIServer, "OPENAI_API_KEY"),
        ("openai", "OPENAI_API_BASE", OpenAIServer, "OPENAI_API_KEY"),
        ("anthropic", "ANTHROPIC_BASE_URL", AnthropicServer, "ANTHROPIC_API_KEY"),
        ("google", "GOOGLE_GEMINI_BASE_URL", GoogleServer, "GEMINI_API_KEY"),
        ("mistral", "MISTRAL_BASE_URL", MistralServer, "MISTRAL_API_KEY"),
    ],
)
async def test_the_variables_that_people_have_say_where_requests_and_the_key_go(
    name: str, variable: str, kind: Any, key: str
):
    secret = "k" * 24
    async with kind(["one"]) as server:
        host = Host.of({variable: f" {server.url}/ ", key: secret})
        model = create_model(host, Config(), provider=name, model="m")
        said = [event async for event in model.stream(Request("", (UserMessage.of("hi"),)))]
        await model.aclose()
    assert said
    (asked,) = server.requests
    assert secret in " ".join(asked.headers.values())


async def test_the_key_of_the_settings_does_not_follow_a_variable_that_says_an_address():
    key, other = "k" * 24, "v" * 24
    settings = Config(llm=LlmSettings(provider="openai", model="m", api_key=key))
    async with OpenAIServer(["one", "two", "three"]) as server:
        named = replace(settings, llm=replace(settings.llm, endpoint=server.url))
        for config, more in ((settings, {}), (settings, {"OPENAI_API_KEY": other}), (named, {})):
            host = Host.of({"OPENAI_BASE_URL": server.url, **more})
            model = create_model(host, config)
            async for _ in model.stream(Request("", (UserMessage.of("hi"),))):
                pass
            await model.aclose()
            assert ("127.0.0.1" in key_left_behind(host, config)) is (config is settings)
    sent = [each.headers.get("authorization") for each in server.requests]
    assert sent == [None, f"Bearer {other}", f"Bearer {key}"]
    usual = Host.of({"OPENAI_BASE_URL": "https://api.openai.com/v1"})
    assert chosen_provider(usual, settings).api_key == key
    assert not key_left_behind(usual, settings)


def test_the_usual_address_in_a_variable_changes_nothing():
    usual = chosen_provider(Host.of({}), Config(), "openai")
    for address in ("https://api.openai.com/v1", "https://api.openai.com/v1/", "  "):
        host = Host.of({"OPENAI_BASE_URL": address})
        assert chosen_provider(host, Config(), "openai") == usual


def test_an_address_of_the_environment_is_treated_as_one_of_the_settings():
    other, key = "http://proxy.example.org/v1", "k" * 24
    with pytest.raises(ConfigError, match="OPENAI_API_KEY unencrypted"):
        create_model(
            Host.of({"OPENAI_BASE_URL": other, "OPENAI_API_KEY": key}), Config(), provider="openai"
        )
    with pytest.raises(ConfigError, match="The variable ANTHROPIC_BASE_URL is not an address"):
        chosen_provider(Host.of({"ANTHROPIC_BASE_URL": "a b"}), Config(), "anthropic")
    own = Config(llm=LlmSettings(provider="openai", endpoint="https://mine.example.org/v1"))
    found = chosen_provider(Host.of({"OPENAI_BASE_URL": other}), own)
    assert found.endpoint == "https://mine.example.org/v1"


async def test_how_long_a_model_is_kept_reaches_ollama():
    asked: list[object] = []
    async with OllamaServer(["one", "two"]) as server:
        for minutes in (None, 2):
            config = Config(
                llm=LlmSettings(provider="ollama", endpoint=server.url, model="m"),
                local=LocalSettings(keep_minutes=minutes),
            )
            model = create_model(Host.of({}), config)
            [_ async for _ in model.stream(Request("", (UserMessage.of("hi"),)))]
            await model.aclose()
        asked = [each.body.get("keep_alive") for each in server.requests]
    assert asked == [None, "120s"]
