"""From a name to a file in its place."""

from pathlib import Path

import pytest
from local.loopback_hub import MODEL, SHA256, gives, open_hub, says

from hosts import this_host
from rows import every_row
from ybs.core.errors import ConfigError, ProviderDown
from ybs.providers.local import STARTER_NAME, hub, models
from ybs.providers.local.hardware import Gpu, Machine

HUB = "https://hub.example"
SMALL = Machine(cores=2, memory_bytes=8 * 10**9, free_bytes=6 * 10**9)
LARGE = Machine(
    cores=16,
    memory_bytes=64 * 10**9,
    free_bytes=58 * 10**9,
    gpus=(Gpu(maker="nvidia", name="RTX 3090", total_bytes=24 * 10**9, free_bytes=23 * 10**9),) * 2,
)
CODER = "Qwen/Qwen2.5-Coder-{}-Instruct-GGUF/resolve/main/qwen2.5-coder-{}-instruct-{}.gguf"


@every_row(
    ("name", "machine", "path"),
    [
        ("", SMALL, CODER.format("1.5B", "1.5b", "q4_k_m")),
        ("", LARGE, "unsloth/Qwen3-Coder-30B-A3B-Instruct-GGUF/resolve/main/Qwen3-Coder-30B-A3B-Instruct-Q8_0.gguf"),
        ("qwen2.5-coder-7b", LARGE, CODER.format("7B", "7b", "q8_0")),
        ("Qwen2.5-Coder-7B", SMALL, CODER.format("7B", "7b", "q4_k_m")),
        ("qwen2.5-coder-7b:q6_k", SMALL, CODER.format("7B", "7b", "q6_k")),
        ("me/mine-GGUF/My-Model.Q4.gguf", SMALL, "me/mine-GGUF/resolve/main/My-Model.Q4.gguf"),
    ],
)  # fmt: skip
def test_a_name_leads_to_a_file_of_the_hub(name: str, machine: Machine, path: str):
    found = hub.find_source(this_host(), name, HUB, machine)
    assert found.url == f"{HUB}/{path}"
    assert found.path == models.models_folder(this_host()) / path.rpartition("/")[2]


def test_the_choice_is_explained():
    assert "all layers on RTX 3090" in hub.find_source(this_host(), "", HUB, LARGE).reason
    assert "on the CPU" in hub.find_source(this_host(), "", HUB, SMALL).reason


def test_a_mirror_has_a_pattern_of_its_own():
    name = "a/b/c.gguf"
    assert (
        hub.find_source(this_host(), name, "https://m.example/{file}", SMALL).url
        == "https://m.example/c.gguf"
    )
    both = "http://m.example/x/{repository}/y/{file}"
    assert hub.find_source(this_host(), name, both, SMALL).url == "http://m.example/x/a/b/y/c.gguf"
    assert (
        hub.find_source(this_host(), name, f"{HUB}/", SMALL).url == f"{HUB}/a/b/resolve/main/c.gguf"
    )


def test_an_address_and_a_checksum_may_be_given():
    found = hub.find_source(this_host(), f"http://127.0.0.1:1/x/y.gguf?a=b#{SHA256}", HUB, SMALL)
    assert (found.url, found.file, found.name) == ("http://127.0.0.1:1/x/y.gguf?a=b", "y.gguf", "y")
    assert found.sha256 == SHA256


def test_the_starter_model_is_known_by_its_checksum_and_its_own_name():
    found = hub.find_source(this_host(), "qwen2.5-coder-1.5b:q4_k_m", HUB, SMALL)
    assert (found.sha256, found.name) == (models.STARTER_SHA256, STARTER_NAME)
    assert found.path == models.starter_path(this_host())


@every_row(
    ("name", "words"),
    [
        ("qwen9", "no model 'qwen9' in the catalogue: qwen3-coder-30b"),
        ("a/b", "no model 'a/b'"),
        ("a/b/c/d.gguf", "no model"),
        ("a/b/model.bin", "is not the name of a GGUF file"),
        ("a/b/.gguf", "is not the name"),
        ("https://hub.example/", "is not the name"),
        ("https://hub.example/..%2f..%2fx.gguf", "is not the name"),
        ("file:///x.gguf", "not a valid address"),
        ("a/b/m-00001-of-00003.gguf", "one part of a model of several files"),
        ("a/b/c.gguf#abc", "not a SHA-256"),
    ],
)
def test_what_is_no_model_is_refused(name: str, words: str):
    with pytest.raises(ConfigError, match=words):
        hub.find_source(this_host(), name, HUB, SMALL)


def test_a_machine_for_which_there_is_none_is_told_so():
    with pytest.raises(ConfigError, match="fits this machine: 1 core"):
        hub.find_source(this_host(), "", HUB, Machine(cores=1, free_bytes=10**8))


def test_what_fits_is_listed_with_the_best_choice_first():
    names = [candidate.full_name for candidate, _ in hub.fitting(LARGE)]
    assert names[0] == "qwen3-coder-30b:q8_0"
    assert sorted(names[1:]) == sorted(
        f"qwen2.5-coder-{size}b:q4_k_m" for size in ("0.5", "1.5", "7", "14")
    )
    assert [c.full_name for c, _ in hub.fitting(Machine(cores=1, free_bytes=10**8))] == []


async def test_a_model_is_installed_under_its_name():
    with open_hub(gives(X_Linked_Etag=SHA256)) as server:
        source = hub.find_source(this_host(), "a/b/c.gguf", server.url, SMALL)
        found = await hub.install(source, lambda *_: None)
    assert found.is_checked
    assert server.asked[0][0] == "/a/b/resolve/main/c.gguf"
    assert [(file.name, file.size_bytes) for file in models.list_models(this_host())] == [
        ("c", len(MODEL))
    ]
    assert Path(models.find_model(this_host(), "c", STARTER_NAME)) == found.path


async def test_a_name_that_the_hub_does_not_have_says_what_to_check():
    with open_hub(says(404)) as server, pytest.raises(ProviderDown) as caught:
        await hub.install(
            hub.find_source(this_host(), "a/b/c.gguf", server.url, SMALL), lambda *_: None
        )
    assert caught.value.remedies[0].value == "check the name of the model"
