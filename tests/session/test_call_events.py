"""What the events of a call tell a frontend that only listens: effect, title and files at first, typed changes in the end."""

from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from secrets_corpus.drawing import draw
from secrets_corpus.shapes import private_key

from hosts import this_host
from opened import Open
from scripted import OpenAIServer
from ybs.core.changes import FileChange
from ybs.core.events import (
    ConfirmationAsked,
    Event,
    StateChanged,
    ToolFinished,
    ToolPrinted,
    ToolStarted,
)
from ybs.core.messages import ToolResult
from ybs.testing import ScriptedConfirm, call
from ybs.tools.editing.diff import diff_of_change


def lines_of(name: str) -> list[dict[str, Any]]:
    path = this_host().sessions_folder / f"{name}.jsonl"
    return [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]


@pytest.mark.integration
async def test_a_listener_knows_what_a_call_is_about_before_the_question_and_the_output(
    project: Path, open_session: Open
):
    (project / "a.py").write_text("x = 1\n")
    script = [
        call("edit_file", path="a.py", old_text="x = 1", new_text="x = 2"),
        call("run_shell", command="echo hi"),
        "Done.",
    ]
    heard: list[Event] = []
    async with OpenAIServer(script) as server:
        session, _ = open_session(server, mode="ask", confirm=ScriptedConfirm([True, True]))
        session.subscribe(lambda envelope: heard.append(envelope.event), follows=True)
        async with session:
            await session.send("go")
            name = session.journal.name
    known: dict[str, ToolStarted] = {}
    for event in heard:
        match event:
            case ToolStarted():
                known[event.id] = event
            case ConfirmationAsked() | ToolPrinted() | ToolFinished():
                assert event.id in known
            case StateChanged(questions=(question,)):
                assert question.title.startswith(known[list(known)[-1]].title[:4])
            case _:
                pass
    said = [(each.effect, each.title, each.paths) for each in known.values()]
    assert said == [("edit", "Edit a.py", ("a.py",)), ("execute", "Run echo hi", ())]
    stored = [line for line in lines_of(name) if line["type"] == "tool_call"]
    assert [line["title"] for line in stored] == ["Edit a.py", "Run echo hi"]


@pytest.mark.integration
async def test_files_that_were_written_edited_and_deleted_are_told_as_they_were_and_are(
    project: Path, open_session: Open
):
    script = [
        call("write_file", path="new/a.py", content="x = 1\ny = 2\n"),
        call("edit_file", path="new/a.py", old_text="x = 1", new_text="x = 3"),
        call("write_file", path="new/a.py", content="x = 3\ny = 2\n"),  # as it is
        call("edit_file", path="new/a.py", old_text="nowhere", new_text="z"),
        call("delete_file", path="new/a.py"),
        "Done.",
    ]
    first, second = "x = 1\ny = 2\n", "x = 3\ny = 2\n"
    made = FileChange(path="new/a.py", before=None, after=first, added=2)
    edited = FileChange(path="new/a.py", before=first, after=second, added=1, removed=1)
    deleted = FileChange(path="new/a.py", before=second, after=None, removed=2)
    async with OpenAIServer(script) as server:
        session, events = open_session(server, mode="bypass")
        async with session:
            await session.send("go")
            had, name = list(session.conversation.messages), session.journal.name
    told = [each.changes for each in events.of(ToolFinished)]
    assert told == [(made,), (edited,), (), (), (deleted,)]
    stored = [line.get("changes", []) for line in lines_of(name) if line["type"] == "tool_result"]
    assert stored[0] == [{"path": "new/a.py", "before": None, "after": first, "added": 2}]
    assert b"@@" not in (this_host().sessions_folder / f"{name}.jsonl").read_bytes()
    async with OpenAIServer([]) as server:
        resumed, _ = open_session(server, resume=name)
        async with resumed:
            assert list(resumed.conversation.messages) == had


@pytest.mark.integration
async def test_the_texts_of_changes_hold_no_secret_and_are_not_told_of_as_sent_to_a_model(
    project: Path, open_session: Open
):
    random = Random(5)
    token, key = draw("ghp_[A-Za-z0-9]{36}", random), private_key(random)
    (project / "a.env").write_text(f"A={token}\nB=1\n")
    (project / "id").write_text(f"{key}\nname = 1\n")
    script = [
        call("edit_file", path="a.env", old_text="B=1", new_text="B=2"),
        call("edit_file", path="id", old_text="name = 1", new_text="name = 2"),
        "Done.",
    ]
    async with OpenAIServer(script) as server:
        session, events = open_session(server, mode="bypass")
        async with session:
            await session.send("go")
            name, kept = session.journal.name, repr(session.conversation.messages)
    written = (this_host().sessions_folder / f"{name}.jsonl").read_text()
    for text in (written, kept, repr(events.envelopes), repr(server.requests)):
        assert token not in text
        assert not any(line in text for line in key.splitlines()[1:-1])
    (first,), (second,) = (each.changes for each in events.of(ToolFinished))
    assert first.before == "A=[ybs:secret:github-token#1]\nB=1\n"
    assert first.after == "A=[ybs:secret:github-token#1]\nB=2\n"
    assert (second.before, second.after, second.added) == ("", "", 1)
    assert second.omitted == "a private key stands in the file"


@pytest.mark.integration
async def test_a_transcript_stays_small_where_a_long_file_is_edited(
    project: Path, open_session: Open
):
    lines = [f"number_{number} = {number}\n" for number in range(20_000)]
    (project / "long.py").write_text("".join(lines))
    old, new = "number_9000 = 9000\n", "number_9000 = 1\n"
    script = [call("edit_file", path="long.py", old_text=old, new_text=new), "Done."]
    async with OpenAIServer(script) as server:
        session, events = open_session(server, mode="bypass")
        async with session:
            await session.send("go")
            name = session.journal.name
    (change,) = events.of(ToolFinished)[0].changes
    assert (change.first_line, change.added, change.removed) == (8_998, 1, 1)
    assert change.before == "".join(lines[8_997:9_004])
    assert "@@ -8998,7 +8998,7 @@" in diff_of_change(change)
    assert (this_host().sessions_folder / f"{name}.jsonl").stat().st_size < 30_000


@pytest.mark.integration
async def test_what_a_compaction_leaves_is_stored_without_the_changes_that_stand_above_it(
    project: Path, open_session: Open
):
    script = [call("write_file", path="a.py", content="x = 1\n"), "Done.", "Goal: x.\nState: done."]
    async with OpenAIServer(script) as server:
        session, events = open_session(server, mode="bypass")
        async with session:
            await session.send("go " + "word " * 4_000)
            assert any(
                m.changes for m in session.conversation.messages if isinstance(m, ToolResult)
            )
            await session.compact()
            had = session.conversation.messages
            assert not any(m.changes for m in had if isinstance(m, ToolResult))
            assert session.journal.replay.messages == list(had)
    assert events.of(ToolFinished)[0].changes
