"""What is offered at the first start, and in which order."""

from pathlib import Path

import pytest

from ybs.providers.nearby import OLLAMA, NearModel, NearServer
from ybs.ui.offers import PAGE, Offer, file_offers, key_offers, local_offers, memory_bytes, order

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
    offers = local_offers([ollama(), studio()], 32 * GB)
    names = ["fit:14b", "one", "small:3b", "huge:200b", "far:120b-cloud", "two"]
    assert [offer.name for offer in offers] == names
    details = {offer.name: offer.detail for offer in offers}
    assert details["fit:14b"] == "ollama, running here, 9.0 GB"
    assert details["huge:200b"] == "ollama, 140.0 GB, too large here"
    assert details["far:120b-cloud"] == "ollama, sent on to its cloud"
    assert details["one"] == "LM Studio, running here"
    assert local_offers([ollama()], None)[0].name == "huge:200b"


def test_an_offer_holds_all_that_is_to_be_written() -> None:
    at_home, moved = (
        local_offers([ollama()], None)[0],
        local_offers([ollama("http://[::1]:9")], None)[0],
    )
    assert at_home.settings == {"llm.provider": "ollama", "llm.model": "huge:200b"}
    assert moved.settings == {**at_home.settings, "llm.endpoint": "http://[::1]:9"}
    assert local_offers([studio()], None)[0].settings == {
        "llm.provider": "lmstudio",
        "llm.model": "one",
        "providers.lmstudio.endpoint": "http://127.0.0.1:1234/v1",
    }


def test_what_is_passed_on_is_no_model_of_this_machine() -> None:
    names = [offer.name for offer in local_offers([ollama()], None, only_here=True)]
    assert sorted(names) == ["fit:14b", "huge:200b", "small:3b"]


def test_many_local_models_leave_room_for_the_rest() -> None:
    local = [Offer(name=f"m{n}") for n in range(20)]
    others = [Offer(name="key"), Offer(name="another")]
    names = [offer.name for offer in order(local, others)]
    assert names[:PAGE] == [*(f"m{n}" for n in range(PAGE - 2)), "key", "another"]
    assert sorted(names) == sorted(each.name for each in [*local, *others])
    crowded = order(local, [Offer(name=f"k{n}") for n in range(PAGE)])
    assert [offer.name for offer in crowded[:4]] == ["m0", "m1", "m2", "m3"]


def test_a_key_is_named_by_its_variable_and_never_shown() -> None:
    environ = {"GOOGLE_API_KEY": "AIza-secret", "OPENAI_API_KEY": " ", "X_API_KEY": "y"}
    (offer,) = key_offers(environ)
    assert offer.detail == "google, key found in GOOGLE_API_KEY"
    assert offer.settings is not None
    assert offer.settings["llm.provider"] == "google"
    assert offer.name == offer.settings["llm.model"] != ""
    assert "secret" not in repr(offer)


def test_model_files_are_offered_where_they_are(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not list(file_offers())
    folder = home / ".cache" / "ybs" / "models"
    folder.mkdir(parents=True)
    (folder / "own.gguf").write_bytes(b"x" * 1_000_000)
    monkeypatch.setattr("ybs.providers.llama_cpp.models.starter_installed", lambda: True)
    starter, own = file_offers()
    assert starter.detail == "the starter model, on this machine"
    assert own.settings == {"llm.provider": "llamacpp", "llm.model": "own"}
    assert own.detail == "a file on this machine, 1.0 MB"


def test_the_memory_of_this_machine_is_known_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (memory_bytes() or GB) > 1_000_000

    def unknown(_name: str) -> int:
        raise ValueError

    monkeypatch.setattr("os.sysconf", unknown)
    assert memory_bytes() is None
