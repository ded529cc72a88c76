"""The first choice."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ybs.core.errors import ConfigError, ProviderDown
from ybs.ui import setup
from ybs.ui.setup import find_offers, set_up

KEYS = {"OPENAI_API_KEY": "sk-" + "x" * 20}


def reader(*lines: str) -> Callable[[str], str]:
    left = list(lines)

    def read(_question: str) -> str:
        if not left:
            raise EOFError
        return left.pop(0)

    return read


def written(home: Path) -> Any:
    return msgspec.json.decode((home / ".config" / "ybs" / "config.json").read_bytes())


def number_of(words: str, environ: dict[str, str] | None = None) -> str:
    texts = [offer.text for offer in find_offers(environ or {})]
    return str(next(number for number, text in enumerate(texts, 1) if words in text))


def test_a_provider_is_offered_when_its_key_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert not any("key found" in offer.text for offer in find_offers({}))
    assert set_up(reader("q"), KEYS) is False
    shown = capsys.readouterr().out
    assert "openai (key found in OPENAI_API_KEY)" in shown
    assert KEYS["OPENAI_API_KEY"] not in shown


def test_a_choice_is_written_down(home: Path) -> None:
    assert set_up(reader(number_of("openai (", KEYS), "gpt-x"), KEYS)
    assert written(home) == {"llm": {"provider": "openai", "model": "gpt-x"}}


def test_an_address_of_the_old_provider_is_forgotten(home: Path) -> None:
    assert set_up(reader(number_of("another server"), "http://localhost:8080/v1", "m"), {})
    assert written(home)["llm"]["endpoint"] == "http://localhost:8080/v1"
    assert set_up(reader(number_of("openai (", KEYS), ""), KEYS)
    assert "endpoint" not in written(home)["llm"]
    assert written(home)["llm"]["model"]


def test_the_models_of_ollama_are_listed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "models_of", lambda _name: ["a:1b", "b:2b"])
    assert set_up(reader(number_of("Ollama"), "9", "2"), {})
    assert written(home)["llm"] == {"provider": "ollama", "model": "b:2b"}
    assert set_up(reader(number_of("Ollama"), "a:1b"), {})
    assert written(home)["llm"]["model"] == "a:1b"
    assert set_up(reader(number_of("Ollama"), ""), {})
    assert written(home)["llm"]["model"] == "a:1b"


def test_an_ollama_that_does_not_answer_leads_back_to_the_choice(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def down(_name: str) -> list[str]:
        raise ProviderDown("ollama at localhost:11434 does not answer")

    monkeypatch.setattr(setup, "models_of", down)
    assert set_up(reader(number_of("Ollama"), "q"), {}) is False
    assert "does not answer" in capsys.readouterr().out


def test_an_ollama_without_models_leads_back_to_the_choice(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(setup, "models_of", lambda _name: [])
    assert set_up(reader(number_of("Ollama"), "q"), {}) is False
    assert "ollama pull" in capsys.readouterr().out


def test_the_starter_model_is_fetched_after_a_yes(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def install(progress: Callable[[int, int, str], None]) -> Path:
        progress(50, 100, "fetching")
        progress(50, 100, "fetching")
        progress(100, 100, "checking the hash")
        return home / "starter.gguf"

    monkeypatch.setattr("ybs.providers.llama_cpp.fetch.install_starter", install)
    number = number_of("starter model")
    assert set_up(reader(number, "n", "q"), {}) is False
    assert not (home / ".config").exists()
    assert set_up(reader(number, "y"), {})
    assert written(home)["llm"]["provider"] == "llamacpp"
    shown = capsys.readouterr().out
    assert shown.count("fetching: 50%") == 1
    assert "checking the hash" in shown


@pytest.mark.parametrize("words", [["0", "q"], ["99", "x", "", "quit"], []])
def test_nonsense_chooses_nothing(words: list[str], home: Path) -> None:
    assert set_up(reader(*words), {}) is False
    assert not (home / ".config").exists()


def test_an_address_must_be_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert set_up(reader(number_of("another server"), "localhost", "q"), {}) is False
    assert "begins with http" in capsys.readouterr().out


def test_a_file_that_cannot_be_written_is_an_error(home: Path) -> None:
    file = home / ".config" / "ybs" / "config.json"
    file.parent.mkdir(parents=True)
    file.write_text("{broken")
    with pytest.raises(ConfigError, match="mend it first"):
        set_up(reader(number_of("another server"), "http://localhost:1", "m"), {})
