"""Keys that were saved: where they lie, and who gets them."""

import json
import os
import stat
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from hosts import this_host
from rows import every_row
from ybs.config import key_store, private_file
from ybs.config.host import Host
from ybs.config.key_store import (
    forget_key,
    has_key,
    keep_key,
    key_file,
    keys_in_file,
    place_of,
    stored_key,
    tokens_in,
)
from ybs.config.schema import Config, LlmSettings
from ybs.core.errors import AuthError
from ybs.providers.http.client import HttpClient
from ybs.providers.registry import chosen_provider, client_of, create_model
from ybs.security.firewall.masking import Firewall

KEY = "sk-" + "k" * 30


@pytest.fixture(autouse=True)
def _no_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    monkeypatch.setattr(key_store, "fetched", [])


def test_a_key_is_saved_for_its_owner_alone_and_given_to_its_provider_and_host_alone() -> None:
    assert keep_key(this_host(), "openai", "api.openai.com", KEY) == str(key_file(this_host()))
    assert stat.S_IMODE(key_file(this_host()).stat().st_mode) == 0o600
    assert stored_key(this_host(), "openai", "api.openai.com") == KEY
    assert stored_key(this_host(), "openai", "elsewhere.example") is None
    assert stored_key(this_host(), "mistral", "api.openai.com") is None
    assert has_key(this_host(), "openai", "api.openai.com")
    assert keys_in_file(this_host()) == [KEY]


def test_other_keys_stay_where_one_is_saved() -> None:
    keep_key(this_host(), "openai", "a", KEY)
    keep_key(this_host(), "openai", "b", "other")
    keep_key(this_host(), "openai", "a", "newer")
    assert (stored_key(this_host(), "openai", "a"), stored_key(this_host(), "openai", "b")) == (
        "newer",
        "other",
    )


def test_a_file_that_others_can_write_or_that_is_damaged_is_not_used() -> None:
    keep_key(this_host(), "openai", "a", KEY)
    key_file(this_host()).chmod(0o666)
    assert stored_key(this_host(), "openai", "a") is None
    key_file(this_host()).chmod(0o600)
    key_file(this_host()).write_text("{")
    assert stored_key(this_host(), "openai", "a") is None


def test_the_keyring_holds_the_key_where_it_works_and_the_file_where_it_does_not(monkeypatch):
    held: dict[tuple[str, str], str] = {}
    ring = SimpleNamespace(
        set_password=lambda service, name, key: held.__setitem__((service, name), key),
        get_password=lambda service, name: held.get((service, name)),
    )
    monkeypatch.setitem(sys.modules, "keyring", ring)
    assert "keyring" in keep_key(this_host(), "openai", "a", KEY)
    assert KEY not in key_file(this_host()).read_text()
    assert stored_key(this_host(), "openai", "a") == KEY
    assert keys_in_file(this_host()) == []
    assert key_store.fetched == [KEY]

    def locked(*_: str) -> None:
        raise RuntimeError("locked")

    ring.set_password = ring.get_password = locked
    assert stored_key(this_host(), "openai", "a") is None
    assert keep_key(this_host(), "openai", "a", KEY) == str(key_file(this_host()))
    assert stored_key(this_host(), "openai", "a") == KEY


async def test_a_session_uses_the_saved_key_and_never_at_another_address(home: Path) -> None:
    clean = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}

    async def key_at(endpoint: str | None) -> str | None:
        config = Config(llm=LlmSettings(provider="openai", model="m", endpoint=endpoint))
        model = create_model(Host.of(clean), config)
        try:
            return vars(vars(model)["_client"])["_headers"].get("authorization")
        finally:
            await model.aclose()

    with pytest.raises(AuthError):
        await key_at(None)
    keep_key(this_host(), "openai", "api.openai.com", KEY)
    assert await key_at(None) == f"Bearer {KEY}"
    assert await key_at("https://other.example/v1") is None
    keep_key(this_host(), "openai", "lan.example", KEY)
    assert await key_at("http://lan.example/v1") is None, "in clear text"
    assert await key_at("https://lan.example/v1") == f"Bearer {KEY}"


def test_a_key_is_forgotten_in_the_file_and_in_the_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    keep_key(this_host(), "openai", "a", KEY)
    keep_key(this_host(), "openai", "b", "other")
    assert forget_key(this_host(), "openai", "a")
    assert not forget_key(this_host(), "openai", "a")
    assert keys_in_file(this_host()) == ["other"]
    held: dict[tuple[str, str], str] = {}
    ring = SimpleNamespace(
        set_password=lambda service, name, key: held.__setitem__((service, name), key),
        get_password=lambda service, name: held.get((service, name)),
        delete_password=lambda service, name: held.pop((service, name)),
    )
    monkeypatch.setitem(sys.modules, "keyring", ring)
    keep_key(this_host(), "mcp:demo", "https://h", "{}")
    assert keys_in_file(this_host()) == ["other"]
    assert forget_key(this_host(), "mcp:demo", "https://h")
    assert (held, has_key(this_host(), "mcp:demo", "https://h")) == ({}, False)
    keep_key(this_host(), "mcp:demo", "https://h", "{}")
    monkeypatch.setitem(sys.modules, "keyring", None)
    assert forget_key(this_host(), "mcp:demo", "https://h")  # the keyring is gone


def test_of_a_login_the_tokens_are_the_secrets() -> None:
    login = (
        '{"tokens": {"access_token": "aaa", "refresh_token": "rrr", "scope": "s"}, "client": {}}'
    )
    assert tokens_in(login) == ["aaa", "rrr"]
    assert tokens_in('{"tokens": {"access_token": "aaa"}}') == ["aaa"]
    assert tokens_in("{") == []
    keep_key(this_host(), "mcp:demo", "https://h", login)
    assert keys_in_file(this_host()) == ["aaa", "rrr"]


@every_row(
    "address, place",
    [
        ("https://api.openai.com/v1", "api.openai.com"),
        ("HTTPS://me:words@API.OpenAI.com.:443/v1", "api.openai.com"),
        ("https://api.openai.com:8443/v1", "api.openai.com:8443"),
        ("http://api.openai.com/v1", "http://api.openai.com"),
        ("http://127.0.0.1:8080/v1", "http://127.0.0.1:8080"),
        ("http://127.0.0.1:8081/v1", "http://127.0.0.1:8081"),
        ("http://127.0.0.1:80/v1", "http://127.0.0.1"),
        ("http://[::1]:8080/v1", "http://[::1]:8080"),
    ],
)
def test_a_key_belongs_to_an_origin(address: str, place: str) -> None:
    assert place_of(address) == place


@every_row("address", ["ftp://a", "a", "", "http://", "http://a:x"])
def test_what_is_not_an_http_address_has_no_origin(address: str) -> None:
    with pytest.raises(ValueError, match=r"http address|[Pp]ort"):
        place_of(address)


@every_row(
    "address, is_sent",
    [
        ("http://127.0.0.1:8080/v1", True),
        ("http://127.0.0.1:8080/other", True),
        ("http://127.0.0.1:8081/v1", False),
        ("https://127.0.0.1:8080/v1", False),
        ("http://localhost:8080/v1", False),
    ],
)
def test_another_port_or_scheme_does_not_get_the_key(address: str, is_sent: bool) -> None:
    keep_key(this_host(), "openai", place_of("http://127.0.0.1:8080/v1"), KEY)
    config = Config(llm=LlmSettings(provider="openai", endpoint=address))
    client = client_of(this_host(), chosen_provider(this_host(), config), config)
    assert (client.account == HttpClient(client.site, secret=KEY).account) is is_sent


async def test_a_key_of_the_keyring_is_masked_from_when_it_is_fetched(monkeypatch) -> None:
    held = {
        "openai@api.openai.com": "gateway-key-of-monday",
        "mcp:x@h": '{"tokens": {"access_token": "login-of-tuesday"}}',
    }
    ring = SimpleNamespace(get_password=lambda _, name: held.get(name))
    monkeypatch.setitem(sys.modules, "keyring", ring)
    names = ("openai@api.openai.com", "mcp:x@h", "gone@h")
    private_file.replace(key_file(this_host()), json.dumps(dict.fromkeys(names, "")).encode())
    firewall = Firewall(own=())
    text = "use gateway-key-of-monday and login-of-tuesday"
    assert firewall.mask(text, "notes") == text
    config = Config(llm=LlmSettings(provider="openai", model="m"))
    await create_model(Host.of({"HOME": str(this_host().home)}), config).aclose()
    stored_key(this_host(), "mcp:x", "h")
    stored_key(this_host(), "gone", "h")
    assert not {"monday", "tuesday"} & set(firewall.mask(text, "notes").replace("-", " ").split())
