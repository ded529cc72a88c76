"""`ybs sessions`: what was said before, listed, shown, exported, searched and deleted."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hosts import this_host
from ybs import cli
from ybs.core.events import (
    AssistantSaid,
    Compacted,
    Event,
    SessionEnded,
    SessionStarted,
    Titled,
    ToolFinished,
    UserSaid,
)
from ybs.core.messages import AssistantMessage, UserMessage
from ybs.transcripts.log import Log

TOKEN = "ghp_" + "A7b3C9d2E5f8G1h4J6k0L2m5N8p1Q4r7S9t3"
HOSTILE = "Fix \x1b[2J\u202e it"
Keep = Callable[..., str]


@pytest.fixture
def keep(project: Path) -> Keep:
    """Return a function that writes a session down and gives its name; each is older than the one before."""
    count = iter(range(1, 100))

    def kept(title: str, *said: Event, folder: Path = project, open_: bool = False) -> str:
        number = next(count)
        name = f"session-20260101-{number:06}"
        this_host().sessions_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        log = Log(this_host().sessions_folder / f"{name}.jsonl")
        config = {"provider": "openai", "model": "m"}
        log.add(SessionStarted(session=name, folder=str(folder), config=config))
        for event in said:
            log.add(event)
        log.add(Titled(title=title))
        log.add(SessionEnded(reason="user_exit", message_count=len(said)))
        if not open_:
            log.close()
            moment = 1_767_225_600 - 3600 * number
            os.utime(log.path, (moment, moment))
        kept_open.append(log)
        return name

    kept_open: list[Log] = []
    return kept


def talk(*words: str) -> Sequence[Event]:
    """Return an exchange: what the person said, and the model."""
    return [
        UserSaid(content=text) if place % 2 == 0 else AssistantSaid(content=text, model="m")
        for place, text in enumerate(words)
    ]


def ran(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> tuple[str, str]:
    assert cli.main(["sessions", *words]) == code, capsys.readouterr()
    out, err = capsys.readouterr()
    return out, err


def ran_json(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> Any:
    return msgspec.json.decode(ran(capsys, *words, "--format", "json", code=code)[0])


@pytest.mark.integration
def test_the_sessions_of_this_folder_are_listed_newest_first(
    keep: Keep, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "There are no saved sessions" in ran(capsys)[0]
    assert ran_json(capsys) == []
    first, second = keep(HOSTILE, *talk("a", "b")), keep("Second", *talk("c"))
    other = keep("Elsewhere", *talk("d"), folder=tmp_path)
    keep("Nothing was said in it")
    lines = ran(capsys)[0].splitlines()
    assert [line.split()[0] for line in lines] == ["1", "2"]
    assert "Fix ␛[2J" in lines[0]
    assert "2 messages" in lines[0]
    assert "1 message " in lines[1]
    assert "\x1b" not in lines[0]
    assert "\u202e" not in lines[0]
    assert [each["session"] for each in ran_json(capsys, "list")] == [first, second]
    found = ran_json(capsys, "list", "--all")
    numbered = [(each["number"], each["session"]) for each in found]
    assert numbered == [(1, first), (2, second), (4, other)], "an empty one keeps its number"
    assert (found[0]["model"], found[0]["folder"], found[0]["messages"]) == (
        "m",
        str(Path.cwd()),
        2,
    )
    assert str(tmp_path) in ran(capsys, "list", "--all")[0]


def test_on_a_narrow_terminal_a_line_is_what_people_look_for(
    keep: Keep, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    keep("A title that is rather long for so narrow a terminal", *talk("a", "b"))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "40")
    (line,) = ran(capsys)[0].splitlines()
    assert len(line) <= 40
    assert line.startswith("  1  A title")
    assert line.endswith("2 messages")
    monkeypatch.setattr("ybs.transcripts.reading.Saved.is_open", True, raising=False)
    for width in ("40", "80"):
        monkeypatch.setenv("COLUMNS", width)
        (line,) = ran(capsys)[0].splitlines()
        assert len(line) <= int(width)
        assert line.startswith("  1  A title")
        assert line.endswith("open")


@pytest.mark.integration
def test_a_number_means_what_the_list_showed(
    keep: Keep, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep("Elsewhere", *talk("far away"), folder=tmp_path)
    keep("Here", *talk("close by"))
    assert "close by" in ran(capsys, "show", "1")[0]
    assert "far away" in ran(capsys, "show", "2")[0]  # of --all: this folder's come first
    assert "far away" in ran(capsys, "show", "elsewhere")[0]
    _, err = ran(capsys, "show", "Heer", code=1)
    assert "there is no session 'Heer'; similar names: session-" in err
    assert "List them with `ybs sessions`" in ran(capsys, "show", "9", code=1)[1]
    for name in ("../x", "a/b", "\x1b"):
        assert "\x1b" not in ran(capsys, "show", name, code=1)[1]


def test_a_conversation_is_shown_with_what_was_set_aside_and_nothing_that_acts_or_is_secret(
    keep: Keep, capsys: pytest.CaptureFixture[str]
) -> None:
    summed = UserMessage.of("all of that", origin="summary")
    answer = AssistantMessage(content=(), model="m")
    compacted = Compacted(
        messages=(summed, answer), reason="asked", tokens_before=9, tokens_after=1
    )
    said = [*talk(f"first \x1b]0;x\x07 {TOKEN}", "ok"), compacted, *talk("later", "fine")]
    name = keep("A talk", *said)
    out, _ = ran(capsys, "show", name)
    assert out.startswith("# A talk\n\nopenai m, in `")
    assert [line for line in out.splitlines() if line.startswith("##")] == ["## You", "## m"] * 2
    assert "[ybs:secret:github-token#1]" in out
    shown = ran_json(capsys, "show", "A talk")
    assert [event["type"] for event in shown["events"]] == [
        *("session_start", "user", "assistant", "compaction", "user", "assistant"),
        *("title", "session_end"),
    ]
    assert (shown["title"], shown["damaged"]) == ("A talk", 0)
    for text in (out, str(shown)):
        assert TOKEN not in text
        assert "\x1b" not in text.replace("\\x1b", "")


def test_a_damaged_session_is_shown_as_far_as_it_can_be_read(
    keep: Keep, capsys: pytest.CaptureFixture[str]
) -> None:
    name = keep("Torn", *talk("one", "two"))
    path = this_host().sessions_folder / f"{name}.jsonl"
    path.write_bytes(path.read_bytes() + b'{"type":"user","cont')
    out, err = ran(capsys, "show", name)
    assert "two" in out
    assert err == f"ybs: 1 line of {name} cannot be read; the rest is whole\n"


def test_a_session_without_its_first_line_is_shown_without_a_folder(
    keep: Keep, capsys: pytest.CaptureFixture[str]
) -> None:
    name = keep("Headless", *talk("one", "two"))
    path = this_host().sessions_folder / f"{name}.jsonl"
    path.write_bytes(path.read_bytes().partition(b"\n")[2])
    out, _ = ran(capsys, "show", name)
    assert out.splitlines()[2].startswith("An unknown model, 20")


@pytest.mark.integration
def test_an_export_is_markdown_or_lines_that_can_be_loaded_again(
    keep: Keep, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = ToolFinished(id="c", name="x", success=True, output=f"token {TOKEN}")
    name = keep("Exported", *talk("one", "two"), result)
    assert ran(capsys, "export", name)[0].startswith("# Exported\n")
    lines = ran(capsys, "export", name, "--format", "json")[0].splitlines()
    first = msgspec.json.decode(lines[0])
    assert (first["type"], first["event"], first["parent"]) == ("session_start", 1, 0)
    assert first["timestamp"].endswith("Z")
    assert ran(capsys, "export", "1", "all.jsonl")[0].endswith(f"{project / 'all.jsonl'}\n")
    assert (project / "all.jsonl").read_text().splitlines() == lines
    assert (project / "all.jsonl").stat().st_mode & 0o777 == 0o600
    assert TOKEN not in "".join(lines)
    ran(capsys, "export", "1", "all.md")
    assert (project / "all.md").read_text().startswith("# Exported\n")
    assert "exists already" in ran(capsys, "export", "1", "all.md", code=1)[1]
    assert "blocked" in ran(capsys, "export", "1", "~/.ssh/x.md", code=1)[1]


def test_a_search_looks_in_all_folders_and_says_where(
    keep: Keep, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = keep(HOSTILE, *talk("where is the Frobnicator \x1b[2J?", "in a.py"), folder=tmp_path)
    out, _ = ran(capsys, "search", "frobnicator", "WHERE")
    assert f"({name}, " in out
    assert "where is the Frobnicator" in out
    assert "\x1b" not in out
    (hit,) = ran_json(capsys, "search", "frobnicator")
    assert (hit["session"], hit["line"]) == (name, 2)
    assert "no saved session contains that" in ran(capsys, "search", "nothing such", code=1)[1]
    assert ran_json(capsys, "search", "nothing such", code=1) == []


def test_a_search_tells_a_title_once(keep: Keep, capsys: pytest.CaptureFixture[str]) -> None:
    other = (Titled(title="A frobnicator"), Titled(title="The Frobnicator"))
    keep("The Frobnicator", *other, *talk("words", "an answer"))
    out, _ = ran(capsys, "search", "frobnicator")
    assert out.count("\n") == 1
    assert out.lower().count("frobnicator") == 1
    keep("Where is the widget?", *other[:1], *talk("Where is the widget?", "The widget is in b.py"))
    out, _ = ran(capsys, "search", "widget")
    assert [line.strip() for line in out.splitlines()][1:] == ["The widget is in b.py"]
    assert out.startswith("Where is the widget?  (session-")
    assert len(ran_json(capsys, "search", "frobnicator")) == 2


def test_a_deletion_is_asked_about_and_leaves_what_is_open(
    keep: Keep, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [keep("One"), keep("Two"), keep("Open", open_=True)]

    def left() -> list[str]:
        return sorted(path.stem for path in this_host().sessions_folder.glob("*.jsonl"))

    assert "--yes" in ran(capsys, "delete", "One", code=5)[1]
    asked: list[str] = []
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    answers = ["y", "n"]

    def ask(text: str) -> str:
        asked.append(text)
        return answers.pop()

    monkeypatch.setattr("ybs.frontends.headless.output.ask_line", ask)
    assert "Nothing was deleted." in ran(capsys, "delete", "One", "Two", code=5)[1]
    assert asked == ["Delete 2 sessions? This cannot be undone. [y/N] "]
    assert left() == names
    assert ran(capsys, "delete", "One", names[0])[0].endswith("Deleted 1 session.\n")
    assert left() == names[1:]
    out, err = ran(capsys, "delete", "Open", "Two", "--yes", "--format", "json", code=1)
    assert msgspec.json.decode(out) == {"deleted": [names[1]]}
    assert "in use by another ybs" in err
    assert left() == names[2:]
