"""The journal: what a session's file gives back is what the session had, whatever happened to it."""

import asyncio
import errno
import os
from collections.abc import Callable
from pathlib import Path
from zlib import crc32

import msgspec
import pytest

from hosts import this_host
from opened import events_to
from scripted import HttpError, OpenAIServer
from ybs import Session
from ybs.core.errors import YbsError
from ybs.core.events import Noticed, StateChanged, SystemPrompted, Titled, ToolPrinted
from ybs.core.messages import ToolResult, UserMessage
from ybs.core.open_question import OpenQuestion
from ybs.testing import RecordedEvents, call
from ybs.transcripts.store import SessionStore

Open = Callable[..., tuple[Session, RecordedEvents]]


def saved() -> list[Path]:
    """Return the files of all sessions."""
    return sorted(this_host().sessions_folder.glob("*.jsonl"))


def lines_of(path: Path) -> list[dict[str, object]]:
    return [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]


@pytest.mark.integration
async def test_what_a_file_gives_back_is_what_the_session_had(project: Path, open_session: Open):
    (project / "a.txt").write_text("one\n")
    script = [
        [call("read_file", path="a.txt"), call("read_file", path="missing.txt")],
        "It says one.",
        call("write_file", path="b.txt", content="two\n"),
        HttpError(status=401, message="no"),
        call("run_shell", command="echo on; sleep 60"),
        "after the stop",
    ]
    async with OpenAIServer(script) as server:
        session, events = open_session(server, mode="bypass")
        runs = asyncio.Event()
        session.subscribe(events_to(lambda e: runs.set() if isinstance(e, ToolPrinted) else None))
        async with session:
            await session.send("What does a.txt say?")
            await session.send("write b")
            turn = asyncio.create_task(session.send("run it"))
            await runs.wait()
            session.cancel()
            await turn
            await session.send("and now?")
            had = list(session.conversation.messages)
            assert session.journal.replay.messages == had
            usage, name = session.usage, session.journal.name
    (path,) = saved()
    assert path.stem == name
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    read = SessionStore(path.parent).read(name)
    assert (read.replay.messages, read.replay.usage) == (had, usage)
    assert [type(event) for event in events.events if isinstance(event, Titled)] == [Titled]
    kinds = [line["type"] for line in lines_of(path)]
    assert kinds[:3] == ["session_start", "system", "user"]
    assert kinds[-2:] == ["title", "session_end"]
    assert not {kind for kind in kinds if str(kind).endswith(("_delta", "_output"))}


@pytest.mark.integration
async def test_a_session_goes_on_with_the_very_same_messages(project: Path, open_session: Open):
    (project / "a.txt").write_text("one\n")
    async with OpenAIServer([call("read_file", path="a.txt"), "one", "two", "three"]) as server:
        session, _ = open_session(server, mode="bypass")
        async with session:
            await session.send("read it")
            name, spent = session.journal.name, session.usage
        again, _ = open_session(server, resume="")
        async with again:
            assert (again.journal.name, again.usage, again.mode) == (name, spent, "ask")
            await again.send("more")
        fork, _ = open_session(server, resume=name, fork=True)
        async with fork:
            assert fork.journal.name != name
            await fork.send("still more")
        bodies = [request.body["messages"] for request in server.requests]
    assert bodies[2][1:5] == [*bodies[1][1:], {"role": "assistant", "content": "one"}]
    assert bodies[3][1:7] == [*bodies[2][1:], {"role": "assistant", "content": "two"}]
    assert len(saved()) == 2


@pytest.mark.integration
async def test_calls_that_a_kill_left_open_are_answered_before_anyone_speaks(open_session: Open):
    async with OpenAIServer([call("list_files", path="."), "seen", "gone on"]) as server:
        session, _ = open_session(server, mode="bypass")
        async with session:
            await session.send("look")
        (path,) = saved()
        data = path.read_bytes().splitlines(keepends=True)
        asked = next(n for n, line in enumerate(data) if b'"type":"tool_call","id"' in line[:120])
        path.write_bytes(
            b"".join(data[: asked + 1]) + b'{"timestamp":"2026-'
        )  # as a kill leaves it
        again, _ = open_session(server, resume="")
        async with again:
            assert again.journal.damaged == 1
            outcome = await again.send("go on")
            had = list(again.conversation.messages)
    assert outcome.text == "gone on"
    assert [type(message) for message in had[-3:-1]] == [ToolResult, UserMessage]
    assert "Cancelled before it finished" in server.requests[-1].body["messages"][-2]["content"]
    assert SessionStore(path.parent).read(path.stem).replay.messages == had


@pytest.mark.integration
async def test_what_a_kill_in_the_midst_of_a_write_left_is_removed(project, open_session):
    async with OpenAIServer(
        [call("write_file", path="a.txt", content="new\n"), "seen", "on"]
    ) as server:
        session, _ = open_session(server, mode="bypass")
        async with session:
            await session.send("write")
        (path,) = saved()
        data = path.read_bytes().splitlines(keepends=True)
        asked = next(n for n, line in enumerate(data) if b'"type":"tool_call","id"' in line[:120])
        path.write_bytes(b"".join(data[: asked + 1]))
        (project / ".ybs-0f52ba8a.tmp").write_text("somebody else's")
        stray = project / f".ybs-{crc32(b'a.txt'):08x}.tmp"
        stray.write_text("new\n")
        again, _ = open_session(server, resume="")
        async with again:
            await again.send("go on")
    left = {
        name for name in (".ybs-0f52ba8a.tmp", stray.name, "a.txt") if (project / name).exists()
    }
    assert left == {".ybs-0f52ba8a.tmp", "a.txt"}


async def test_a_disk_that_is_full_for_a_while_costs_nothing_but_a_warning(
    open_session: Open, monkeypatch: pytest.MonkeyPatch
):
    async with OpenAIServer(["one", "two", "three"]) as server:
        session, events = open_session(server)
        async with session:
            await session.send("first")
            write = os.write

            def refuse(handle: int, data: bytes) -> int:
                if b'"timestamp"' in bytes(data):
                    raise OSError(errno.ENOSPC, "No space left on device")
                return write(handle, data)

            monkeypatch.setattr(os, "write", refuse)
            assert (await session.send("second")).text == "two"
            monkeypatch.setattr(os, "write", write)
            await session.send("third")
            had = list(session.conversation.messages)
    told = [e.text for e in events.of(Noticed) if "not being saved" in e.text]
    assert told == ["This session is not being saved: No space left on device"]
    (path,) = saved()
    read = SessionStore(path.parent).read(path.stem)
    assert (read.replay.messages, read.damaged) == (had, 0)


async def test_a_folder_that_cannot_be_written_stops_no_chat(open_session: Open, tmp_path: Path):
    file = tmp_path / "taken"
    file.write_text("no folder")
    async with OpenAIServer(["hello"]) as server:
        session, events = open_session(
            server, overrides={"session.storage_path": str(file / "sessions")}
        )
        async with session:
            assert (await session.send("hi")).text == "hello"
    assert len([e for e in events.of(Noticed) if "not being saved" in e.text]) == 1


async def test_f05_a_session_that_is_open_elsewhere_is_not_written(open_session: Open):
    async with OpenAIServer(["one"]) as server:
        session, _ = open_session(server)
        async with session:
            await session.send("first")
            with pytest.raises(YbsError, match="in use"):
                open_session(server, resume=session.journal.name)


@pytest.mark.integration
async def test_f04_a_file_that_was_edited_gives_no_permission(project: Path, open_session: Open):
    async with OpenAIServer(["one", call("write_file", path="x", content="y"), "end"]) as server:
        session, _ = open_session(server)
        async with session:
            await session.send("first")
        (path,) = saved()
        head, *rest = path.read_bytes().splitlines(keepends=True)
        first = msgspec.json.decode(head)
        first["config"] |= {"mode": "bypass", "allow": "write_file", "sandbox": "off"}
        path.write_bytes(msgspec.json.encode(first) + b"\n" + b"".join(rest))
        again, events = open_session(server, resume="")
        async with again:
            outcome = await again.send("write it")
    assert (outcome.refusals, again.mode, (project / "x").exists()) == (1, "ask", False)
    assert "ybs" in events.of(SystemPrompted)[0].content


@pytest.mark.integration
async def test_f06_secrets_are_masked_and_their_placeholders_stay_theirs(open_session: Open):
    first, second = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8", "ghp_" + "z9Y8x7W6v5" * 3 + "U4t3S2"
    async with OpenAIServer(["noted", "noted too"]) as server:
        session, _ = open_session(server)
        async with session:
            await session.send(f"my token is {first}")
        again, _ = open_session(server, resume="")
        async with again:
            await again.send(f"another one is {second}")
        sent = str(server.requests[-1].body)
    (path,) = saved()
    data = path.read_text()
    assert [text for text in (first, second) if text in data or text in sent] == []
    assert [number for number in ("#1]", "#2]") if number not in sent] == []


@pytest.mark.integration
async def test_incognito_and_no_saving_write_no_file_and_can_still_be_taken_back(open_session):
    async with OpenAIServer(["one", "two", "three", "four"]) as server:
        for options in ({"incognito": True}, {"overrides": {"session.auto_save": False}}):
            session, _ = open_session(server, **options)
            async with session:
                await session.send("first")
                await session.send("second")
                await session.history.undo()
                assert [words for _, words in session.history.prompts()] == ["first"]
    assert saved() == []


async def test_a_secret_in_a_title_is_masked_wherever_the_title_is_shown(open_session: Open):
    token = "ghp" + "_" + "x7Rt2mQp" * 4 + "Kd4w"
    async with OpenAIServer([]) as server:
        session, _ = open_session(server)
        async with session:
            session.emit(Titled(title=f"with {token}"))
            assert session.journal.replay.title == "with [ybs:secret:github-token#1]"


async def test_what_is_asked_shows_all_that_a_shell_would_run(open_session: Open):
    text = "DB_PASSWORD=Zk3q9x7Lm2" + "&&./b7 make"
    question = OpenQuestion(id="1", name="run_shell", title="Run", preview=text)
    async with OpenAIServer([]) as server:
        session, _ = open_session(server)
        async with session:
            masked = session.journal.masked(StateChanged(questions=(question,), waiting=(text,)))
            others = session.journal.masked(StateChanged(title=text, jobs=(text,)))
    assert masked.questions[0].preview == text
    assert masked.waiting == ("DB_PASSWORD=[ybs:secret:assigned-secret#1] make",)
    assert (others.title, *others.jobs) == masked.waiting * 2  # whichever part of it has words
