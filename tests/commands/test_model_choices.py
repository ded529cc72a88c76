"""What is found for a first start, in which order, and what each of it writes."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from hosts import this_host
from ybs.commands.model_choices import (
    file_choices,
    key_choices,
    memory_bytes,
    served_choices,
    whose,
)
from ybs.config.host import Host
from ybs.providers.nearby import OLLAMA, NearModel, NearServer

GB = 1_000_000_000
MODELS = {"small:3b": 2 * GB, "huge:200b": 140 * GB, "fit:14b": 9 * GB, "far:120b-cloud": 400}


def ollama(endpoint: str = OLLAMA) -> NearServer:
    models = tuple(NearModel(name=name, size_bytes=size) for name, size in MODELS.items())
    return NearServer(
        title="ollama", provider="ollama", wire="ollama", endpoint=endpoint, models=models
    )


def studio() -> NearServer:
    models = (NearModel(name="one"), NearModel(name="two"))
    endpoint = "http://127.0.0.1:1234/v1"
    return NearServer(
        title="LM Studio", provider="lmstudio", wire="openai", endpoint=endpoint, models=models
    )


def test_what_fits_into_memory_comes_first_and_each_server_is_seen() -> None:
    choices = served_choices(this_host(), [ollama(), studio()], 32 * GB)
    names = ["fit:14b", "one", "small:3b", "huge:200b", "far:120b-cloud", "two"]
    assert [choice.model for choice in choices] == names
    assert [choice.model for choice in choices if choice.is_large] == ["huge:200b"]
    assert [choice.model for choice in choices if choice.is_far] == ["far:120b-cloud"]
    assert [choice.place for choice in choices][:2] == ["ollama", "LM Studio"]
    assert served_choices(this_host(), [ollama()], None)[0].model == "huge:200b"


def test_a_choice_says_whose_server_it_is() -> None:
    (choice, *_) = served_choices(this_host(), [replace(studio(), owner="mallory")], None)
    assert choice.owner == "mallory"
    assert (whose(choice.owner), whose("")) == ("another user's (mallory)", "running here")


def test_a_choice_holds_all_that_is_to_be_written() -> None:
    at_home, moved = (
        served_choices(this_host(), [ollama()], None)[0],
        served_choices(this_host(), [ollama("http://[::1]:9")], None)[0],
    )
    assert at_home.settings == {"llm.provider": "ollama", "llm.model": "huge:200b"}
    assert moved.settings == {**at_home.settings, "llm.endpoint": "http://[::1]:9"}
    assert served_choices(this_host(), [studio()], None)[0].settings == {
        "llm.provider": "lmstudio",
        "llm.model": "one",
        "providers.lmstudio.endpoint": "http://127.0.0.1:1234/v1",
    }


def test_a_choice_on_this_machine_stays_there_whatever_the_environment_says(monkeypatch):
    monkeypatch.setenv("OLLAMA_HOST", "gpu.example.org")
    (first, *_) = served_choices(this_host(), [ollama()], None)
    assert first.settings["llm.endpoint"] == "http://localhost:11434"
    assert not first.is_far


def test_what_is_passed_on_is_no_model_of_this_machine() -> None:
    names = [
        choice.model for choice in served_choices(this_host(), [ollama()], None, only_here=True)
    ]
    assert sorted(names) == ["fit:14b", "huge:200b", "small:3b"]


def test_a_key_is_named_by_its_variable_and_never_shown() -> None:
    environ = {"GOOGLE_API_KEY": "AIza-secret", "OPENAI_API_KEY": " ", "X_API_KEY": "y"}
    (choice,) = key_choices(Host.of(environ))
    assert (choice.place, choice.variable) == ("google", "GOOGLE_API_KEY")
    assert choice.settings["llm.provider"] == "google"
    assert choice.model == choice.settings["llm.model"] != ""
    assert "secret" not in repr(choice)


def test_model_files_are_found_where_they_are(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not list(file_choices(this_host()))
    folder = home / ".cache" / "ybs" / "models"
    folder.mkdir(parents=True)
    (folder / "own.gguf").write_bytes(b"x" * 1_000_000)
    monkeypatch.setattr("ybs.providers.local.models.starter_installed", lambda _host: True)
    starter, own = file_choices(this_host())
    assert (starter.kind, own.kind, own.size_bytes) == ("starter", "file", 1_000_000)
    assert own.settings == {"llm.provider": "llamacpp", "llm.model": "own"}


def test_the_memory_of_this_machine_is_known_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (memory_bytes() or GB) > 1_000_000

    def unknown(_name: str) -> int:
        raise ValueError

    monkeypatch.setattr("os.sysconf", unknown)
    assert memory_bytes() is None
