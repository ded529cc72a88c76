"""A prompt on the command line that would be a command in a chat."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import pytest

from rows import every_row
from scripted import OpenAIServer
from serving import serving
from ybs import cli

YBS = str(Path(sys.executable).with_name("ybs"))


@pytest.fixture
def server(project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    with Path(os.devnull).open() as nothing, serving(["an answer"]) as running:
        monkeypatch.setattr(sys, "stdin", nothing)
        assert isinstance(running, OpenAIServer)
        yield running


def run(server: OpenAIServer, *words: str) -> int:
    return cli.main(["--endpoint", server.url, "-m", "scripted", "--no-sandbox", *words])


def test_a_command_that_shows_something_is_run_and_no_model_asked(server, capsys):
    assert run(server, "--print", " /help ") == 0
    out, err = capsys.readouterr()
    assert "/undo [N] [force]" in out
    assert err == ""
    assert server.requests == []


@pytest.mark.integration
def test_its_answer_is_the_result_in_json(server, capsys):
    assert run(server, "--print", "--output-format", "json", "/status") == 0
    result = msgspec.json.decode(capsys.readouterr().out)
    assert (result["type"], result["exit_code"], result["is_error"]) == ("result", 0, False)
    assert "scripted" in result["result"]
    (table,) = result["tables"]
    assert table["rows"][0] == {"cells": ["model", f"{urlsplit(server.url).netloc} scripted"]}
    assert (result["notes"], result["menu"]) == ([], None)
    assert run(server, "--print", "--output-format", "json", "/sessions everywhere") == 1
    result = msgspec.json.decode(capsys.readouterr().out)
    assert (result["is_error"], result["message"]) == (
        True,
        "Usage: /sessions, /sessions all, or /sessions NUMBER",
    )
    assert server.requests == []


def test_an_error_before_the_command_has_its_own_code(server, capsys):
    assert run(server, "--provider", "olama", "--print", "/status") == 3
    assert "Did you mean ollama?" in capsys.readouterr().err


@every_row(
    ("prompt", "said"),
    [
        ("!touch made", "COMMAND | ybs --print"),
        ("  !! touch made", "COMMAND | ybs --print"),
        ("/undo", "/undo is a command of a chat"),
        ("/export a.md", "/export is a command of a chat"),
        ("/mode bypass", "/mode is a command of a chat"),
        ("/hepl", "Unknown command: /hepl. Did you mean /help?"),
    ],
)
def test_what_runs_or_changes_something_is_refused_and_not_sent(
    prompt: str, said: str, server: OpenAIServer, capsys: pytest.CaptureFixture[str], project: Path
) -> None:
    assert run(server, "--print", prompt) == 2
    out, err = capsys.readouterr()
    assert said in err
    assert "`ybs -- PROMPT` sends it to the model as it stands." in err
    assert out == ""
    assert server.requests == []
    assert list(project.iterdir()) == []


def test_behind_two_dashes_it_is_sent_as_it_stands(server: OpenAIServer) -> None:
    assert run(server, "--print", "--", "!ls") == 0
    assert server.requests[0].body["messages"][-1]["content"] == "!ls"


def test_a_path_at_the_start_is_no_command(server: OpenAIServer) -> None:
    assert run(server, "--print", "/etc/hosts is a file of what?") == 0
    assert len(server.requests) == 1


@pytest.mark.integration
@pytest.mark.parametrize("words", [["-P", "go"], ["config"], ["tool", "call", "list_files", "{}"]])
def test_a_folder_that_is_gone_is_said_in_a_sentence(words: list[str], tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = 'rmdir "$1" && shift && exec "$@"'
    command = ["sh", "-c", script, "sh", str(gone), YBS, *words]
    done = subprocess.run(
        command, cwd=gone, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("ybs: The folder that ybs was started in cannot be used")
    assert done.stderr.count("\n") == 1
