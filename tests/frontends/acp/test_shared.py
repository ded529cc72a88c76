"""`ybs acp` on the sessions of a running server: editors, terminals and programs hold the same ones."""

import asyncio
import json
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from screen import Screen
from served import YBS, Serving, asked, served, short_home
from ybs.testing import call

pytestmark = [pytest.mark.integration, pytest.mark.timeout(60)]


@pytest.fixture
def own() -> Iterator[Path]:
    """Make a home folder for the server: that of the tests is handed on."""
    with short_home() as folder:
        yield folder


@asynccontextmanager
async def editing(
    serving: Serving, clients: Any, editor: Any, *words: str, offers: Any = None
) -> AsyncIterator[Process]:
    """Run `ybs acp` under an editor; both ends of its pipes are checked when it goes."""
    import acp

    config = serving.home / ".config" / "ybs" / "config.json"
    config.parent.mkdir(parents=True, exist_ok=True)
    model = {"provider": "openai", "model": "m", "endpoint": serving.model.url}
    config.write_text(json.dumps({"llm": model, "safety": {"sandbox_enabled": False}}))
    process = await asyncio.create_subprocess_exec(
        YBS,
        "acp",
        *words,
        cwd=serving.project,
        env=serving.environ,
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        limit=50_000_000,
    )
    connection = acp.connect_to_agent(
        editor,
        process.stdin,
        process.stdout,
        use_unstable_protocol=True,
        observers=[editor.messages.append],
    )
    editor.agent = connection
    try:
        await connection.initialize(protocol_version=1, client_capabilities=offers)
        yield process
    finally:
        await connection.close()
        assert process.stdin
        process.stdin.close()
        async with asyncio.timeout(20):
            await process.wait()
    clients.check(editor.messages)


async def told(editor: Any, text: str, kind: str = "agent_message_chunk") -> None:
    """Wait until an editor was told these words."""
    async with asyncio.timeout(20):
        while text not in "".join(each.content.text for each in editor.of(kind)):  # noqa: ASYNC110 - an editor's SDK tells it
            await asyncio.sleep(0.02)


async def test_an_editor_a_terminal_and_a_program_hold_one_session(clients, own, project):
    for name in ("a", "b"):
        (project / name).write_text("text")
    first, second = call("delete_file", path="a"), call("delete_file", path="b")
    script = (first, "The first is gone.", second, "The second is gone.")
    async with served(own, project, *script) as serving:
        program, editor = await serving.client(), clients.Editor(None)
        async with editing(serving, clients, editor):
            session = await editor.new(project)
            turn = asyncio.create_task(editor.say(session, "from the editor"))
            await asyncio.wait_for(editor.has_asked.wait(), 20)
            await program.call("subscribe", session=session)
            question = (await asked(program))["id"]
            with Screen("attach", environ={"HOME": str(own), "OPENAI_API_KEY": "k"}) as screen:
                await asyncio.to_thread(screen.sees, r"› from the editor\n[\s\S]*\[y\] yes")
                await asyncio.sleep(0.5)  # keys that come before a question can be read are none
                screen.keys("y")
                assert (await turn).stop_reason == "end_turn"
                given = {"session": session, "question": question, "is_allowed": False}
                assert await program.call("answer", **given) == {"done": False}
                await asyncio.to_thread(screen.sees, r"The first is gone\.[\s\S]*› *\n")
                editor.choice = "Yes"
                screen.keys("from the terminal\r")
                await told(editor, "from the terminal", "user_message_chunk")
                await asyncio.to_thread(screen.sees, r"The second is gone\.[\s\S]*› *\n")
                await told(editor, "The second is gone.")
                screen.keys("/mode plan\r")
                await asyncio.to_thread(screen.sees, "Mode: plan")
                await told(editor, "Mode: plan")
                screen.keys("\x04")
                await asyncio.to_thread(screen.sees, "Come back with")
        assert len(editor.asked) == 2
        assert editor.of("current_mode_update")[-1].current_mode_id == "plan"
        texts = [each.content.text for each in editor.of("user_message_chunk")]
        assert texts == ["from the terminal", "/mode plan"]
        assert not any(map(os.path.exists, (project / "a", project / "b")))
        assert [each["doing"] for each in await program.call("list")] == ["done"]
        await program.close()


async def test_a_question_that_an_editor_cannot_show_is_left_to_others_and_it_says_so(
    clients: Any, own: Path, project: Path
):
    which = call("ask_user", question="Which?", options=["red", "blue"])
    async with served(own, project, which, "As you say.") as serving:
        program, editor = await serving.client(), clients.Editor()
        async with editing(serving, clients, editor):
            session = await editor.new(project)
            await program.call("subscribe", session=session)
            turn = asyncio.create_task(editor.say(session, "go"))
            await told(editor, "The model asks: Which?")
            await told(editor, "answered on another screen")
            given = {"session": session, "question": (await asked(program))["id"]}
            answer = {**given, "is_allowed": True, "reason": "blue"}
            assert await program.call("answer", **answer) == {"done": True}
            assert (await turn).stop_reason == "end_turn"
        assert editor.asked == []
        await program.close()


async def test_an_editor_that_dies_leaves_its_turn_at_work_and_another_loads_it(
    clients: Any, own: Path, project: Path
):
    (project / "a").write_text("text")
    script = (call("delete_file", path="a"), "It is gone.", "And more.")
    async with served(own, project, *script) as serving:
        program, editor, other = await serving.client(), clients.Editor(None), clients.Editor()
        async with editing(serving, clients, editor) as process:
            session = await editor.new(project)
            turn = asyncio.create_task(editor.say(session, "delete it"))
            await asyncio.wait_for(editor.has_asked.wait(), 20)
            process.kill()
            await asyncio.wait((turn,))
            assert turn.exception()
        await program.call("subscribe", session=session)
        await asked(program)  # the question waits for somebody
        import acp

        async with editing(serving, clients, other):
            listed = (await other.agent.list_sessions(cwd=str(project))).sessions
            assert [each.session_id for each in listed] == [session]
            elsewhere = {"cwd": "/", "session_id": session, "mcp_servers": []}
            with pytest.raises(acp.RequestError, match="is open in"):
                await other.agent.load_session(**elsewhere)
            server = acp.schema.McpServerStdio(name="tools", command="x", args=[], env=[])
            here = {"cwd": str(project), "session_id": session, "mcp_servers": [server]}
            await other.agent.load_session(**here)
            await told(other, "It is gone.")
            await told(other, "without what the editor brings: tools")
            assert (await other.say(session, "more")).stop_reason == "end_turn"
        assert other.of("user_message_chunk")[0].content.text == "delete it"
        assert other.call("Delete a")["status"] == "completed"
        assert other.text.count("It is gone.") == other.text.count("And more.") == 1
        await program.close()


async def test_an_open_session_is_loaded_by_no_editor_whose_options_it_does_not_have(
    clients: Any, own: Path, project: Path
):
    async with served(own, project, "hello") as serving:
        program, editor = await serving.client(), clients.Editor()
        session = (await program.call("open", **serving.opening, mode="auto"))["session"]
        await program.call("send", session=session, text="hello")
        (entry,) = await program.call("list")
        import acp

        here = {"cwd": str(project), "session_id": entry["name"], "mcp_servers": []}
        options = ("--mode", "plan", "--deny", "run_shell", "--incognito")
        async with editing(serving, clients, editor, *options):
            for load in (editor.agent.load_session, editor.agent.resume_session):
                with pytest.raises(acp.RequestError, match="mode, incognito, deny cannot be given"):
                    await load(**here)
        (entry,) = await program.call("list")
        assert (entry["mode"], entry["clients"]) == ("auto", 0)
        async with editing(serving, clients, editor, "--mode", "auto"):  # it has that
            assert (await editor.agent.load_session(**here)).modes.current_mode_id == "auto"
        await program.close()


async def test_what_is_not_saved_in_the_editor_is_what_a_turn_of_the_terminal_reads(
    clients: Any, own: Path, project: Path
):
    (project / "a").write_text("saved")
    read = call("read_file", path="a")
    async with served(own, project, "Yes.", read, "Read.", read, "Again.") as serving:
        program = await serving.client()
        opened = await program.call("open", **serving.opening)
        await program.call("send", session=opened["session"], text="begin")
        name = (await program.call("list"))[0]["name"]
        editor = clients.Editor(a="in the buffer")
        async with editing(serving, clients, editor, offers=clients.ALL):
            await editor.agent.resume_session(cwd=str(project), session_id=name, mcp_servers=[])
            await program.call("send", session=name, text="what does it say?")
        await program.call("send", session=name, text="and now?")
        bodies = [json.dumps(each.body) for each in serving.model.requests]
        assert "in the buffer" in bodies[2]
        assert "saved" in bodies[4].rpartition("in the buffer")[2]
        await program.close()


async def test_an_editor_whose_server_is_killed_says_so_and_the_next_one_goes_on_alone(
    clients: Any, own: Path, project: Path
):
    async with served(own, project, "One.", "Two.") as serving:
        editor, other = clients.Editor(), clients.Editor()
        async with editing(serving, clients, editor) as process:
            session = await editor.new(project)
            await editor.say(session, "first")
            await serving.kill()
            assert await asyncio.wait_for(process.wait(), 20) == 1
            assert process.stderr
            assert await process.stderr.read() == b"ybs: The server has stopped.\n"
        async with editing(serving, clients, other) as process:
            where = {"cwd": str(project), "session_id": session, "mcp_servers": []}
            await other.agent.load_session(**where)
            assert (await other.say(session, "second")).stop_reason == "end_turn"
        assert process.returncode == 0
        assert (other.text[:4], other.text[-4:]) == ("One.", "Two.")


async def test_an_editor_may_start_the_server_and_nothing_is_left_of_a_session_without_words(
    clients: Any, own: Path, project: Path
):
    async with served(own, project, "Here.") as serving:
        await serving.end()
        editor, acp = clients.Editor(), clients.acp
        async with editing(serving, clients, editor, "--serve"):
            await editor.new(project)
            session = await editor.new(project)
            program = await serving.client()
            assert [each["doing"] for each in await program.call("list")] == ["new", "new"]
            assert (await editor.say(session, "hi")).stop_reason == "end_turn"
            await program.call("close", session=session)
            await told(editor, "It was closed.")
            here = {"cwd": str(project), "session_id": session, "mcp_servers": []}
            with pytest.raises(acp.RequestError, match="is open here"):
                await editor.say(session, "more")
            await editor.agent.resume_session(**here)
            assert len(await program.call("list")) == 2
            await editor.agent.close_session(session_id=session)
            assert len(await program.call("list")) == 1
        async with asyncio.timeout(20):
            while await program.call("list"):  # noqa: ASYNC110 - the other one, once the editor has gone
                await asyncio.sleep(0.02)
        listed = await program.call("list", saved=True)
        assert [each["name"] for each in listed] == [session]
        bare = await serving.bare()
        os.kill((await bare.ask("hello", version=1))["result"]["pid"], signal.SIGTERM)
        await bare.close()
        await program.close()


async def test_a_server_of_another_version_is_left_alone(clients: Any, own: Path, project: Path):
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        error = {"code": -32001, "message": "The server speaks another version."}
        writer.write(json.dumps({"jsonrpc": "2.0", "id": 1, "error": error}).encode() + b"\n")
        writer.close()
        await writer.wait_closed()

    async with served(own, project, "Alone.") as serving:
        await serving.end()
        async with await asyncio.start_unix_server(refuse, serving.socket):
            editor = clients.Editor()
            async with editing(serving, clients, editor) as process:
                session = await editor.new(project)
                assert (await editor.say(session, "hi")).stop_reason == "end_turn"
            assert process.stderr
            assert b"another version. The editor has" in await process.stderr.read()
