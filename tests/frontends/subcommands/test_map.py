"""`ybs map`, and the part of it that a session starts as a process."""

import os
import resource
import sys
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import msgspec
import pytest

from rows import every_row
from ybs import cli
from ybs.frontends.subcommands import map
from ybs.repo_map.protocol import MapAnswer, MapQuery, MapReady, MapRequest

Capture = pytest.CaptureFixture[str]
TIDE = "def tide_of_the_day(moon):\n    return moon * 2\n"


@pytest.fixture
def harbour(project: Path) -> Path:
    """Fill the project with a few files, some of which no map may show."""
    for name, text in {
        "src/tide.py": TIDE,
        "src/ship.py": "class Ship:\n    def sail(self, wind):\n        return wind\n",
        "src/app.py": "from ship import Ship\n",
        "README.md": "# Harbour\n",
        ".gitignore": "built/\n",
        "built/tide_built.py": TIDE,
        "hidden/tide_blocked.py": TIDE,
        "tide_credentials/.env": TIDE,
        "tide.pem": TIDE,
    }.items():
        path = project / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    outside = project.parent / "outside.py"
    outside.write_text(TIDE)
    (project / "tide_link.py").symlink_to(outside)
    return project


@pytest.fixture
def settings(home: Path) -> Path:
    """Block a folder of the project in the person's own settings."""
    path = home / ".config" / "ybs" / "config.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"safety": {"sandbox_blocked_paths": ["./hidden"]}}')
    return path


def mapped(capsys: Capture, *words: str) -> dict[str, Any]:
    assert cli.main(["map", "--format", "json", *words]) == 0
    return msgspec.json.decode(capsys.readouterr().out)


@pytest.mark.integration
def test_the_files_that_a_query_is_about_come_first_and_what_is_hidden_does_not_come(
    harbour: Path, settings: Path, capsys: Capture
) -> None:
    found = mapped(capsys, "--query", "the tide of the day")
    assert set(found) == {"text", "files", "tokens"}
    assert found["files"][0] == "src/tide.py"
    assert "src/ship.py" in found["files"]
    assert "tide_of_the_day" in found["text"]
    for hidden in ("tide_built", "tide_blocked", "tide_link", "outside", ".env", ".pem"):
        assert hidden not in str(found)


@pytest.mark.integration
def test_the_budget_holds_and_without_a_query_there_is_an_overview(harbour, capsys):
    for number in range(300):
        (harbour / f"part_{number}.py").write_text(f"def part_{number}():\n    pass\n")
    for tokens in (1, 20, 200):
        found = mapped(capsys, "--tokens", str(tokens))
        assert found["tokens"] <= tokens
    assert found["tokens"] > 150
    assert found["files"]
    assert cli.main(["map", "--tokens", "1"]) == 0
    assert capsys.readouterr() == ("", "ybs: no file fits into 1 token; allow more with --tokens\n")
    assert cli.main(["map"]) == 0
    assert len(capsys.readouterr().out) > len(found["text"])


@pytest.mark.integration
def test_the_query_is_read_from_standard_input_and_the_folder_may_be_named(
    harbour: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = tmp_path / "asked"
    asked.write_text("sail the ship\n")
    with asked.open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        assert mapped(capsys, "--query", "-")["files"][0] == "src/ship.py"
    assert mapped(capsys, "src", "--query", "tide")["files"][0] == "tide.py"


@pytest.mark.integration
def test_memory_is_bounded_while_strangers_texts_are_read_and_not_after(
    harbour: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounds: list[int] = []

    def look(roots: Any) -> list[str]:
        bounds.append(resource.getrlimit(resource.RLIMIT_AS)[0])
        return files_of(roots)

    files_of, before = map.files_of, resource.getrlimit(resource.RLIMIT_AS)
    monkeypatch.setattr(map, "files_of", look)
    assert mapped(capsys)["files"]
    assert bounds == [map.MOST_BYTES_BY_HAND]
    assert resource.getrlimit(resource.RLIMIT_AS) == before


@pytest.mark.integration
def test_what_cannot_be_mapped_is_told(project: Path, capsys: Capture) -> None:
    assert cli.main(["map"]) == 0
    assert capsys.readouterr() == ("", "ybs: there are no files to map\n")
    assert mapped(capsys) == {"text": "", "files": [], "tokens": 0}
    assert cli.main(["map", "nowhere"]) == 2
    assert "nowhere: there is no such folder" in capsys.readouterr().err
    assert cli.main(["map", "--tokens", "0"]) == 2
    assert cli.main(["map", "a", "b"]) == 2


def test_no_model_and_no_broken_settings_stop_it(harbour, home, capsys):
    own = home / ".config" / "ybs" / "config.json"
    own.parent.mkdir(parents=True)
    own.write_text('{"llm": {"provider": "none"}, "context": {"repo_map_tokens": "many"}, ')
    assert cli.main(["map", "--format", "json", "--query", "sail"]) == 0
    printed = capsys.readouterr()
    assert msgspec.json.decode(printed.out)["files"][0] == "src/ship.py"
    assert "IGNORED" in printed.err


@pytest.mark.integration
@every_row("words, is_kept", [([], True), (["--no-cache"], False), (["--incognito"], False)])
def test_the_index_is_kept_unless_that_is_not_wanted(words, is_kept, harbour, home, capsys):
    os.environ["YBS_HOME"] = str(home / f"own{len(words)}{''.join(words)}")
    try:
        assert mapped(capsys, *words)["files"]
        kept = list((home / os.environ["YBS_HOME"]).glob("cache/maps/*"))
    finally:
        del os.environ["YBS_HOME"]
    assert bool(kept) == is_kept


@pytest.mark.integration
def test_names_that_act_on_a_terminal_are_written_so_that_they_do_not(project, capsys):
    names = ["tide\x1b[31m.py", "tide\nline.py", os.fsdecode(b"tide\xff.py"), "tide\u202e.py"]
    for name in names:
        (project / name).write_text(TIDE)
    found = mapped(capsys, "--query", "tide")
    assert len(found["files"]) == 4
    shown = found["text"] + "".join(found["files"])
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "tide\\xff.py" in found["files"]
    assert cli.main(["map"]) == 0
    assert "\x1b" not in capsys.readouterr().out


class Session(SimpleQueue[bytes]):
    """What sessions say to their process: two questions, and the end; before the first question a file changes."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.put(msgspec.json.encode(MapRequest.of(folder)))

    def get(self, *_: Any, **__: Any) -> bytes:
        if self.empty():
            (self.folder / "src" / "moon.py").write_text("def lighthouse(): pass\n")
            for words in (MapQuery(query="lighthouse", tokens=100),) * 2:
                self.put(msgspec.json.encode(words))
            self.put(b"null")
        return super().get()


@pytest.mark.integration
@every_row("fresh_seconds, is_seen", [(-1, True), (900, False)])
def test_a_question_that_comes_late_is_answered_with_what_changed_meanwhile(
    fresh_seconds: float,
    is_seen: bool,
    harbour: Path,
    capsysbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (harbour / "src" / "moon.py").unlink(missing_ok=True)
    monkeypatch.setattr(map, "FRESH_SECONDS", fresh_seconds)
    map.talk(Session(harbour))
    ready, answer, later = capsysbinary.readouterr().out.splitlines()
    assert msgspec.json.decode(ready, type=MapReady).sources == 4
    found = msgspec.json.decode(answer, type=MapAnswer)
    assert (found.files[0] == "src/moon.py") == is_seen
    assert found.sources == 4 + is_seen
    assert msgspec.json.decode(later, type=MapAnswer).sources == 5, "who asks next waited meanwhile"
    assert found.tokens <= 100
