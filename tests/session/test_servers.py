"""Servers in the sandbox: started in the background, reached by later commands, forwarded to this machine, and by nobody else."""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec import Raw, json

from hosts import this_host
from processes import comes
from ybs.agent.environment import ToolEnvironment
from ybs.agent.toolbox import make_toolbox
from ybs.commands.open import SlashCommands
from ybs.core.messages import ToolCall, ToolResult
from ybs.security.sandbox.launch import Access
from ybs.session.options import Options
from ybs.session.reply import Reply
from ybs.session.session import Session
from ybs.session.settings import environment_of, load_settings

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(60),
    pytest.mark.skipif(sys.platform != "linux", reason="NOT TESTED: needs Linux"),
]
PORT = 3456
#: A server that bash alone cannot be: the system's Python, which the sandbox shows.
SERVER = f"""\
import socket
with socket.create_server(("127.0.0.1", {PORT})) as server:
    print("listening", flush=True)
    while True:
        taken, _ = server.accept()
        with taken:
            taken.sendall(b"hello from the sandbox\\n")
"""
ASK = f"bash -c 'exec 3<>/dev/tcp/127.0.0.1/{PORT} && cat <&3'"


def serving(project: Path) -> str:
    (project / "serve.py").write_text(SERVER)
    python = next((each for each in ("/usr/bin/python3", "/usr/local/bin/python3") if Path(each).exists()), sys.executable)  # fmt: skip
    return f"{python} -I serve.py"


@asynccontextmanager
async def tools_in(project: Path, mode: str = "bypass") -> AsyncGenerator[ToolEnvironment]:
    options = Options(host=this_host(), folder=project, overrides={"safety.mode": mode})
    environment = environment_of(options, load_settings(options))
    if environment.sandbox.backend.name != "bubblewrap":
        pytest.skip(f"NOT TESTED: {environment.sandbox.backend.why}")
    try:
        yield environment
    finally:
        await environment.aclose()


async def run(environment: ToolEnvironment, command: str, **more: object) -> ToolResult:
    arguments = Raw(json.encode({"command": command, **more}))
    call = ToolCall(id="1", name="run_shell", arguments=arguments)
    return await make_toolbox(environment).run(call, lambda _: None)


async def reached(environment: ToolEnvironment, command: str = ASK) -> str:
    """Run a command until the server answers: it may need a moment to begin."""
    said = ""
    for _ in range(50):
        said = (await run(environment, command)).output
        if "hello" in said:
            break
        await asyncio.sleep(0.1)
    return said


@pytest.mark.parametrize("how", ["background", "ampersand"])
async def test_a_server_in_the_background_is_reached_by_the_next_command(project, how):
    async with tools_in(project) as environment:
        if how == "background":
            started = await run(environment, serving(project), background=True)
        else:
            started = await run(environment, f"{serving(project)} > log 2>&1 &")
        assert not started.is_error, started.output
        assert environment.has_jobs(), started.output
        assert "hello from the sandbox" in await reached(environment)
        assert environment.sandbox.shared_network.listening() == [PORT]
    assert not environment.has_jobs()


async def test_a_command_that_ends_in_an_ampersand_ends_as_what_it_started(project: Path) -> None:
    async with tools_in(project) as environment:
        ended = await run(environment, "(exit 3) &")
        assert "exit code 3" in ended.output
        assert ended.is_error
        assert not environment.has_jobs()


async def test_from_there_nothing_of_the_machine_can_be_reached(project: Path) -> None:
    async def greet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"outside")
        writer.close()

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with tools_in(project) as environment:
            await run(environment, "sleep 30", background=True)
            assert environment.sandbox.shared_network.prefix("")
            tried = await run(environment, f"bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}'")
            assert "Connection refused" in tried.output
            told = await run(environment, "bash -c 'exec 3<>/dev/tcp/192.0.2.1/80'")
            assert "Network is unreachable" in told.output
            facts = await run(
                environment,
                "tail -n +3 /proc/net/dev | cut -d: -f1; grep -E '^(CapEff|Seccomp):' /proc/self/status; "
                "ls /proc/self/fd | wc -l; unshare -n true; nsenter --net=/proc/1/ns/net true; "
                "unshare --user true; echo end",
            )
            lines = [line.strip() for line in facts.output.splitlines()]
            assert lines[:2] == ["lo", "CapEff:\t0000000000000000"]
            assert lines[2] == "Seccomp:\t2"
            assert lines[3] == "4"  # the three, and that of ls
            assert facts.output.count("peration not permitted") >= 2, facts.output


async def test_what_runs_unasked_reaches_no_server_that_could_write_for_it(project: Path) -> None:
    async with tools_in(project, "ask") as environment:
        backend = environment.sandbox.backend
        environment.sandbox.expect_job()
        alone = backend.launch(("true",), project, {}, Access(read_only=True))
        shared = backend.launch(("true",), project, {})
        open_to_all = backend.launch(("true",), project, {}, Access(network=True))
        for launch in (alone, shared, open_to_all):
            for descriptor in launch.descriptors:
                os.close(descriptor)
        assert "--unshare-net" in alone.argv
        assert "nsenter" in shared.argv[0]
        assert "--unshare-net" not in shared.argv
        assert "nsenter" not in open_to_all.argv[0]
        assert "--unshare-net" not in open_to_all.argv


async def test_a_session_without_jobs_starts_nothing_for_it(project: Path) -> None:
    async with tools_in(project) as environment:
        await run(environment, "true")
        launch = environment.sandbox.backend.launch(("true",), project, {})
        for descriptor in launch.descriptors:
            os.close(descriptor)
        assert "--unshare-net" in launch.argv
        assert not environment.sandbox.shared_network.is_wanted


async def said(session: Session, line: str) -> Reply:
    reply = await session.handle(line)
    assert isinstance(reply, Reply)
    return reply


def taken_from(port: int) -> str:
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        return connection.makefile().readline()


async def test_a_port_is_forwarded_after_a_question_until_the_session_ends(project: Path) -> None:
    options = Options(host=this_host(), folder=project, overrides={"safety.mode": "bypass", "llm.provider": "ollama", "llm.model": "x"}, commands=SlashCommands())  # fmt: skip
    session = Session(options)
    environment = session.environment
    if environment.sandbox.backend.name != "bubblewrap":
        pytest.skip(f"NOT TESTED: {environment.sandbox.backend.why}")
    async with session:
        assert "Nothing listens" in (await said(session, "/ports")).text
        assert (await said(session, f"/ports {PORT} open")).is_error
        begun = await run(environment, serving(project), background=True)
        assert "is reached from outside only after /ports" in begun.summary
        assert "hello" in await reached(environment)
        again = await run(environment, "sleep 30", background=True)
        assert again.summary.endswith(
            f"; port {PORT} is reached from outside only after /ports {PORT}"
        )
        assert f"[For the user: port {PORT} is reached" in again.output
        listed = await said(session, "/ports")
        assert listed.tables[0].rows[0].cells == (str(PORT), "")
        menu = (await said(session, f"/ports {PORT}")).menu
        assert menu is not None
        await said(session, menu.items[0].line)
        assert environment.sandbox.shared_network.forwards == {}
        await said(session, menu.items[1].line)
        outside = environment.sandbox.shared_network.forwards[PORT]
        assert await asyncio.to_thread(taken_from, outside) == "hello from the sandbox\n"
        # A second one takes another port where the first is taken, and is refused where nothing listens.
        assert (await said(session, "/ports 1 open")).is_error
        for line in ("/ports 0", "/ports x", f"/ports {PORT} maybe"):
            assert (await said(session, line)).text.startswith("Usage: /ports")
        await said(session, f"/ports {PORT} close")
        assert (await said(session, f"/ports {PORT} close")).is_error
        with pytest.raises(OSError):
            await asyncio.to_thread(taken_from, outside)
        await said(session, f"/ports {PORT} open")
        # The same one again, though connections to it have just ended.
        assert environment.sandbox.shared_network.forwards[PORT] == outside

    def is_closed() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", outside)) != 0

    assert await comes(is_closed)
