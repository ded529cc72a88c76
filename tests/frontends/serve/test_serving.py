"""`ybs serve` as a process of its own: several clients of one session, and the server killed in the midst of its work."""

import asyncio
import json
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from served import YBS, Bare, Serving, asked, example, served, short_home, until, until_there
from ybs.core.open_question import OpenQuestion
from ybs.core.ports import Answer, Question
from ybs.frontends.serve.client import own_environ
from ybs.frontends.serve.protocol import METHODS, NOTIFICATIONS, Answering, protocol_schema
from ybs.testing import call

pytestmark = pytest.mark.integration
DELETE = call("delete_file", path="a")


@pytest.fixture
def own() -> Iterator[Path]:
    """Make a home folder for the server: that of the tests is handed on."""
    with short_home() as folder:
        yield folder


async def opened(client: Any, serving: Serving, **more: Any) -> str:
    """Open a session, subscribe to it and return its id."""
    session = (await client.call("open", **{**serving.opening, **more}))["session"]
    await client.call("subscribe", session=session)
    return session


async def test_two_programs_see_one_session_and_either_answers_its_question(
    own: Path, project: Path
):
    (project / "a").write_text("text")
    async with served(own, project, DELETE, "it is gone") as serving:
        first, second = await serving.client(), await serving.client()
        session = await opened(first, serving)
        turn = asyncio.create_task(first.call("send", session=session, text="delete it"))
        question = await asked(first)
        assert [each["doing"] for each in await second.call("list")] == ["asks"]
        await second.call("subscribe", session=session)
        assert (await until(second, "user"))["content"] == "delete it"  # what was before
        assert await asked(second) == question
        assert (question["name"], question["title"]) == ("delete_file", "Delete a")
        given = {"session": session, "question": question["id"], "is_allowed": True}
        assert await second.call("answer", **given) == {"done": True}
        assert await first.call("answer", **given) == {"done": False}
        assert (await turn)["outcome"]["text"] == "it is gone"
        assert not (project / "a").exists()
        await until(second, "turn_end", reason="done")
        assert [each["doing"] for each in await second.call("list")] == ["done"]
        await first.close()
        await second.close()


async def test_words_steer_and_lines_wait_and_go_back_and_each_request_hears_what_came_of_its_line(
    own: Path, project: Path
):
    (project / "a").write_text("text")
    async with served(own, project, DELETE, "one", "two") as serving:
        client = await serving.client()
        session = await opened(client, serving)

        def send(text: str, **more: Any) -> "asyncio.Task[Any]":
            return asyncio.create_task(client.call("send", session=session, text=text, **more))

        turn = send("delete it")
        question = (await asked(client))["id"]
        steered, queued, back = send("gently"), send("and then", waits=True), send("x", waits=True)
        await until(client, "state", waiting=["gently", "and then", "x"])
        assert await client.call("take_back", session=session) == {"done": True, "text": "x"}
        assert await back == {"was_returned": True}
        await client.call("answer", session=session, question=question, is_allowed=False)
        assert await steered == {"was_read": True}
        assert (await turn)["outcome"]["text"] == "one"
        assert (await queued)["outcome"]["text"] == "two"
        helped = (await send("/status"))["reply"]
        assert any("m" in str(table) for table in helped["tables"])
        with pytest.raises(example.Failed, match=r"No session called"):
            await client.call("send", session="nothing", text="x")
        await client.close()


async def test_a_stopped_turn_gives_lines_back_and_the_session_goes_on(own: Path, project: Path):
    (project / "a").write_text("text")
    async with served(own, project, DELETE, "done") as serving:
        client = await serving.client()
        session = await opened(client, serving)
        turn = asyncio.create_task(client.call("send", session=session, text="delete it"))
        await asked(client)
        waiting = asyncio.create_task(
            client.call("send", session=session, text="later", waits=True)
        )
        await until(client, "state", waiting=["later"])
        assert await client.call("cancel", session=session) == {"done": True}
        assert (await turn)["outcome"]["finished"]["reason"] == "interrupted"
        assert await waiting == {"was_returned": True}
        assert await client.call("cancel", session=session) == {"done": False}
        assert await client.call("steer", session=session, text="x") == {"done": False}
        sent = await client.call("send", session=session, text="again")
        assert sent["outcome"]["text"] == "done"
        await client.close()


async def test_a_client_that_never_reads_holds_nobody_up_and_is_dropped_with_a_word(
    own: Path, project: Path
):
    async with served(own, project, "hello") as serving:
        client, lazy = await serving.client(), await serving.bare(greets=True)
        session = await opened(client, serving)
        params = {"session": session, "lines": True}
        subscribe = {"jsonrpc": "2.0", "method": "subscribe", "params": params}
        await lazy.send(json.dumps(subscribe).encode() + b"\n")
        for _ in range(12):  # each is told twice: as a line, and as what is worked on
            await client.call("send", session=session, text="/nothing " + "x" * 1_000_000)
        sent = await client.call("send", session=session, text="hi")
        assert sent["outcome"]["text"] == "hello"
        last: Any = None
        while (message := await lazy.read()) is not None:
            last = message
        assert last["method"] == "ended"
        assert "waited to be read" in last["params"]["message"]
        again = await serving.bare(greets=True)
        after = last["params"]["number"]
        told = await again.ask("subscribe", session=session, after=after)
        assert (await again.read())["params"]["number"] > after
        assert told["result"]["number"] > after
        for each in (client, lazy, again):
            await each.close()


async def test_a_turn_goes_on_after_the_server_was_killed_in_it(own: Path, project: Path):
    begun = call("run_shell", command="echo 1 >> made; sleep 30")
    async with served(own, project, begun, "all done") as serving:
        client = await serving.client()
        session = await opened(client, serving, mode="bypass")
        sending = asyncio.create_task(client.call("send", session=session, text="make it"))
        await until(client, "tool_call", name="run_shell")
        await until_there(project / "made")
        name = (await client.call("list"))[0]["name"]
        await _killed(serving, client, sending)
        await serving.start()
        client = await serving.client()
        facts = (await client.call("list"))[0]
        assert (facts["name"], facts["mode"]) == (name, "bypass")
        await client.call("subscribe", session=name)
        assert "run_shell" in (await until(client, "user", origin="guard"))["content"]
        await until(client, "turn_end", reason="done")
        assert (project / "made").read_text() == "1\n"
        assert (await client.call("close", session=name)) == {"done": True}
        assert json.loads((serving.state / "open.json").read_text()) == {}
        await client.close()


async def test_trust_in_one_run_ends_with_the_server_that_was_killed_in_it(
    own: Path, project: Path
):
    """The files that it was about may be others when the next server goes on."""

    def hook(word: str) -> None:
        entry = {"type": "command", "command": f"echo {word} >> hooked"}
        (project / ".ybs.json").write_text(
            json.dumps({"hooks": {"PostToolUse": [{"hooks": [entry]}]}})
        )

    hook("old")
    begun = call("run_shell", command="echo 1 >> made; sleep 30")
    reading = call("read_file", path="made")
    async with served(own, project, reading, begun, reading, "all done") as serving:
        (project / "made").write_text("")
        client = await serving.client()
        session = await opened(client, serving, mode="bypass", trust=True)
        sending = asyncio.create_task(client.call("send", session=session, text="make it"))
        await until(client, "tool_call", name="run_shell")
        assert (project / "hooked").read_text() == "old\n"
        name = (await client.call("list"))[0]["name"]
        await _killed(serving, client, sending)
        hook("new")
        await serving.start()
        client = await serving.client()
        await client.call("subscribe", session=name)
        await until(client, "turn_end", reason="done")
        assert (project / "hooked").read_text() == "old\n"
        await client.close()


async def _killed(serving: Serving, client: Any, sending: "asyncio.Task[Any]") -> None:
    """Kill the server; whoever waits for an answer is told."""
    await serving.kill()
    await client.close()
    await asyncio.wait((sending,))
    assert isinstance(sending.exception(), example.Failed)


async def test_a_question_is_asked_again_after_the_server_was_killed_at_it(
    own: Path, project: Path
):
    (project / "a").write_text("text")
    async with served(own, project, DELETE, "it is gone") as serving:
        client = await serving.client()
        session = await opened(client, serving)
        sending = asyncio.create_task(client.call("send", session=session, text="delete it"))
        await asked(client)
        await _killed(serving, client, sending)
        await serving.start()
        client = await serving.client()
        name = (await client.call("list"))[0]["name"]
        shared = await client.call("resume", **serving.opening, name=name)
        await client.call("subscribe", session=shared["session"])
        question = await asked(client)
        assert question["title"] == "Delete a"
        given = {"session": name, "question": question["id"], "is_allowed": True}
        assert await client.call("answer", **given) == {"done": True}
        await until(client, "turn_end", reason="done")
        assert not (project / "a").exists()
        await client.close()


async def test_an_idle_session_keeps_its_bounds_over_kills_until_it_is_closed(
    own: Path, project: Path
):
    async with served(own, project, "hello") as serving:
        client = await serving.client()
        session = await opened(client, serving, mode="bypass")
        deny = {"session": session, "text": "/permissions deny run_shell(touch *)"}
        assert not (await client.call("send", **deny))["reply"].get("is_error")
        assert await client.call("set_mode", session=session, mode="plan")
        await client.call("send", session=session, text="hi")
        name = (await client.call("list"))[0]["name"]
        for _ in range(2):
            await serving.kill()
            await client.close()
            await serving.start()
            client = await serving.client()
            assert await client.call("list") == []
        resuming = {**serving.opening, "name": name}
        for method in ("fork", "resume", "fork"):
            again = await client.call(method, **resuming)
            assert again["mode"] == "plan"
            listed = await client.call("send", session=again["session"], text="/permissions")
            assert "run_shell(touch *)" in json.dumps(listed)
        await client.call("close", session=name)
        assert name not in json.loads((serving.state / "open.json").read_text())
        await client.close()


async def test_what_a_command_made_stricter_holds_after_a_kill_whatever_the_client_asks_for(
    own: Path, project: Path
):
    async with served(own, project, "hello") as serving:
        client = await serving.client()
        more = {"mode": "auto", "allow": ["run_shell(touch *)"]}
        session = await opened(client, serving, **more)
        await client.call("send", session=session, text="hi")
        name = (await client.call("list"))[0]["name"]
        for text in ("/permissions remove 1", "/mode ask edits", "/sandbox on"):
            await client.call("send", session=session, text=text)
        await serving.kill()
        await client.close()
        await serving.start()
        client = await serving.client()
        again = await client.call("resume", **{**serving.opening, **more, "name": name})
        status = await client.call("status", session=again["session"])
        assert (status["mode"], status["asks_before_edits"]) == ("ask", True)
        said = await client.call("send", session=again["session"], text="/permissions")
        assert "touch" not in json.dumps(said)
        said = await client.call("send", session=again["session"], text="/sandbox")
        assert "off: you" not in json.dumps(said)
        await client.close()


@pytest.mark.slow
async def test_a_turn_that_kills_the_server_again_and_again_is_left_alone(own: Path, project: Path):
    (project / "a").write_text("text")
    async with served(own, project, *([DELETE] * 5)) as serving:
        client = await serving.client()
        session = await opened(client, serving)
        sending = asyncio.create_task(client.call("send", session=session, text="delete it"))
        await asked(client)
        doing: list[str] = []
        for _ in range(4):
            await _killed(serving, client, sending)
            await serving.start()
            client = await serving.client()
            doing += [each["doing"] for each in await client.call("list")]
        assert doing == ["working"] * 3
        await client.close()


@pytest.mark.slow
async def test_a_hundred_sessions_at_once(own: Path, project: Path):
    count = 100
    async with served(own, project, *(["answered"] * count)) as serving:
        assert serving.process is not None
        client = await serving.client()
        first = await opened(client, serving)
        await client.call("send", session=first, text="hi")
        before = _rss(serving.process.pid)
        sessions = [await opened(client, serving) for _ in range(count - 1)]
        per_session = (_rss(serving.process.pid) - before) / len(sessions)
        sent = await asyncio.gather(
            *(client.call("send", session=each, text="hi") for each in sessions)
        )
        assert {each["outcome"]["text"] for each in sent} == {"answered"}
        assert len({each["name"] for each in await client.call("list")}) == count
        assert per_session < 3_000_000, per_session
        assert await serving.end() == 143
        await client.close()


def _folder_of(pid: int) -> Path:
    return Path(f"/proc/{pid}/cwd").readlink()


def _rss(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_question_and_its_answer_are_told_whole():
    for_hooks = "is_unshown"  # which are asked before, in the process of the session
    asked_of = {*Question.__struct_fields__} - {"call", "preview", "remedies", for_hooks}
    assert asked_of <= {*OpenQuestion.__struct_fields__}
    assert {*Answer.__struct_fields__} - {"is_unattended"} <= {*Answering.__struct_fields__}


# Who may speak, and what is not understood


async def test_what_is_no_greeting_ends_the_connection(own: Path, project: Path):
    http = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: https://example.org\r\n\r\n"
    hello = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "hello", "params": {"version": 1}})
    async with served(own, project) as serving:
        early = b'{"jsonrpc":"2.0","id":1,"method":"list"}\n'
        for words in (http, early, b"nonsense\n", b"[]\n", b"\xff\n", b"x" * 70_000):
            bare = await serving.bare()
            await bare.send(words + (b"" if len(words) > 60_000 else hello.encode() + b"\n"))
            assert (await bare.read())["error"]["code"] < -31_000
            assert await bare.read() is None
            await bare.close()
        bare = await serving.bare()
        refused = await bare.ask("hello", version=99)
        assert refused["error"]["code"] == -32001
        assert refused["error"]["data"] == {"versions": [1]}
        await bare.close()


async def test_nonsense_is_answered_and_the_connection_goes_on(own: Path, project: Path):
    async with served(own, project) as serving:
        bare = await serving.bare(greets=True)
        head = b'{"jsonrpc":"2.0","id":7,"method":'
        assert await bare.code(b"{\n") == -32700
        assert await bare.code(b"\xff\xfe\n") == -32700
        assert await bare.code(b"[" * 100_000 + b"\n") == -32600
        assert await bare.code(b"[1]\n") == -32600
        assert await bare.code(b'{"id":1,"method":"list"}\n') == -32600
        assert await bare.code(head + b'"shout"}\n') == -32601
        assert await bare.code(head + b'"hello","params":{"version":1}}\n') == -32600
        assert await bare.code(head + b'"open","params":{}}\n') == -32602
        assert await bare.code(head + b'"list","params":{"more":1}}\n') == -32602
        assert await bare.code(head + b'"list","params":[]}\n') == -32602
        assert await bare.code(b"x" * 16_100_000 + b"\n") == -32600
        for bad in ("relative", "/nonexistent/folder", "/etc/passwd"):
            assert (await bare.ask("open", folder=bad))["error"]["code"] == -32000
        assert (await bare.ask("close", session="../x"))["error"]["code"] == -32000
        for byte in head + b'"list"}':  # half a line is no line
            await bare.send(bytes((byte,)))
        await bare.send(b"\n" + head[:5])
        answered = await bare.read()
        assert (answered["id"], answered["result"]) == (7, [])
        await bare.close()


async def test_a_flood_of_requests_is_answered_in_order_at_the_clients_own_pace(
    own: Path, project: Path
):
    async with served(own, project) as serving:
        bare = await serving.bare(greets=True)
        count = 20_000
        flood = b"".join(b'{"jsonrpc":"2.0","id":%d,"method":"list"}\n' % n for n in range(count))
        sending = asyncio.create_task(bare.send(flood))
        assert [(await bare.read())["id"] for _ in range(count)] == list(range(count))
        await sending
        await bare.close()
        await (await serving.client()).close()


async def test_too_many_lines_of_one_client_are_refused(own: Path, project: Path):
    (project / "a").write_text("text")
    async with served(own, project, DELETE) as serving:
        client = await serving.client()
        session = await opened(client, serving)
        sending = asyncio.create_task(client.call("send", session=session, text="delete it"))
        await asked(client)
        lines = [
            asyncio.create_task(client.call("send", session=session, text="x", waits=True))
            for _ in range(1_000)
        ]
        with pytest.raises(example.Failed, match="too many"):
            await lines[-1]
        await client.call("cancel", session=session)
        await asyncio.gather(sending, *lines[:-1])
        await client.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
async def test_another_user_is_not_served(own: Path, project: Path):
    other = (
        "import os, socket, sys; os.setgroups([]); os.setuid(65534); link = socket.socket(socket.AF_UNIX); "
        "link.connect(sys.argv[1]); link.sendall(sys.argv[2].encode()); print(link.recv(100))"
    )
    hello = '{"jsonrpc":"2.0","id":1,"method":"hello","params":{"version":1}}\n'
    async with served(own, project) as serving:
        assert serving.socket.stat().st_mode & 0o777 == 0o600
        assert serving.state.stat().st_mode & 0o777 == 0o700
        folder = os.open(serving.state, os.O_PATH)  # the folders above are not in its way
        os.set_inheritable(folder, True)
        path = f"/proc/self/fd/{folder}/{serving.socket.name}"
        assert b"PermissionError" in await _python(other, folder, path, hello)
        serving.state.chmod(0o777)  # should the file system not keep them out, the server does
        serving.socket.chmod(0o777)
        said = await _python(other, folder, path, hello)
        os.close(folder)
        assert b"result" not in said
        assert b"Reset" in said or b"b''" in said or b"BrokenPipe" in said, said


async def _python(code: str, folder: int, *words: str) -> bytes:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", "-c", code, *words),
        stdout=-1,
        stderr=asyncio.subprocess.STDOUT,
        pass_fds=(folder,),
    )
    return (await asyncio.wait_for(process.communicate(), 20))[0]


async def test_a_port_and_a_socket_elsewhere_need_the_token(own: Path, project: Path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    place = own / "run" / "s.sock"
    words = ("--tcp", str(port), "--socket", str(place))
    async with served(own, project, words=words) as serving:
        serving.socket = place
        token = (serving.state / "token").read_text()
        assert (serving.state / "token").stat().st_mode & 0o777 == 0o600
        for given in ("", "wrong", token[:-1]):
            with pytest.raises(example.Failed, match="token"):
                await serving.client(given)
        await (await serving.client(token)).close()
        for given, is_right in ((token, True), ("é", False)):
            bare = Bare(*await asyncio.open_connection("127.0.0.1", port))
            said = await bare.ask("hello", version=1, token=given)
            assert ("result" in said) is is_right
            await bare.close()


@pytest.mark.parametrize("words", [(), ("--network",)], ids=["plain", "network"])
async def test_no_command_of_a_model_reaches_the_socket(
    words: tuple[str, ...], own: Path, project: Path
):
    code = (
        "import socket, sys; print('begun'); link = socket.socket(socket.AF_UNIX); "
        "link.connect(sys.argv[1]); print('connected')"
    )
    async with served(own, project) as serving:
        process = await asyncio.create_subprocess_exec(
            *(YBS, "sandbox", "exec", *words, "--"),
            *("/usr/bin/python3", "-c", code, str(serving.socket)),
            env=serving.environ,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said = (await asyncio.wait_for(process.communicate(), 30))[0]
        if b"begun" not in said:
            pytest.skip("NOT TESTED: there is no sandbox on this machine")
        assert b"connected" not in said
        assert b"Error" in said


async def test_a_socket_in_a_folder_that_is_open_to_others_is_refused(own: Path, project: Path):
    (own / "open").mkdir(mode=0o755)
    env = {**os.environ, "HOME": str(own)}
    for words, why in (
        (("--socket", str(own / "open" / "s")), b"open to others"),
        (("--tcp", "nowhere"), b"--tcp takes"),
        (("--tcp", "127.0.0.1:99999"), b"--tcp takes"),
    ):
        process = await asyncio.create_subprocess_exec(
            YBS, "serve", *words, env=env, stderr=asyncio.subprocess.PIPE
        )
        said = (await asyncio.wait_for(process.communicate(), 20))[1]
        assert why in said, said
        assert process.returncode in (1, 3)


# Its own life


async def test_one_server_runs_at_a_place_and_a_new_one_takes_it_after_a_kill(
    own: Path, project: Path
):
    async with served(own, project) as serving:
        second = Serving(own, project, serving.model)
        with pytest.raises(AssertionError, match="runs at"):
            await second.start()
        await serving.kill()
        await serving.start()
        await (await serving.client()).close()
        assert await serving.end() == 143
        assert not serving.socket.exists()


async def test_it_ends_when_nobody_uses_it_and_not_while_a_question_waits(own: Path, project: Path):
    (own / ".ybs.json").write_text('{"serve": {"keep_minutes": 0.01}}')
    (project / "a").write_text("text")
    async with served(own, project, DELETE, "done") as serving:
        assert serving.process is not None
        client = await serving.client()
        session = await opened(client, serving)
        sending = asyncio.create_task(client.call("send", session=session, text="delete it"))
        question = (await asked(client))["id"]
        await client.close()
        await asyncio.gather(sending, return_exceptions=True)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(serving.process.wait(), 1.5)
        client = await serving.client()
        await client.call("answer", session=session, question=question, is_allowed=True)
        await client.close()
        assert await asyncio.wait_for(serving.process.wait(), 10) == 0


async def test_each_session_has_the_variables_of_its_client_and_none_of_them_is_written_down(
    own: Path, project: Path
):
    keys = ["".join(("sk-", name, "-", "k" * 30)) for name in ("first", "second")]
    async with served(own, project, "one", "two") as serving:
        assert serving.process is not None
        assert _folder_of(serving.process.pid) == Path("/")
        client = await serving.client()
        for key in keys:
            session = await opened(
                client, serving, environ={**serving.environ, "OPENAI_API_KEY": key}
            )
            await client.call("send", session=session, text="hi")
        sent = [each.headers["authorization"] for each in serving.model.requests]
        assert sent == [f"Bearer {key}" for key in keys]
        kept = (serving.state / "open.json").read_text()
        assert len(json.loads(kept)) == 2
        assert not any(key in kept for key in keys)
        await client.close()


def test_a_server_that_is_started_has_no_variable_of_the_project():
    kept = {"HOME": "/home/ada", "PATH": "/usr/bin", "LC_ALL": "C", "https_proxy": "http://p"}
    keys = {"OPENAI_API_KEY": "k", "XDG_STATE_HOME": "/s"}
    others = {"VIRTUAL_ENV": "/proj/.venv", "DATABASE_URL": "x", "PYTHONPATH": "/proj", "PWD": "/"}
    assert own_environ({**kept, **keys, **others}) == {**kept, **keys}


async def test_an_incognito_session_is_not_written_down(own: Path, project: Path):
    async with served(own, project, "done") as serving:
        client = await serving.client()
        session = await opened(client, serving, incognito=True)
        await client.call("send", session=session, text="hi")
        assert json.loads((serving.state / "open.json").read_text()) == {}
        await client.close()


async def test_saved_sessions_go_on_and_are_forked(own: Path, project: Path):
    async with served(own, project, "one", "two", "three") as serving:
        client = await serving.client()
        session = await opened(client, serving)
        await client.call("send", session=session, text="first words")
        name = (await client.call("list"))[0]["name"]
        forked = await client.call("fork", **serving.opening, name=name)
        assert forked["name"] != name
        await client.call("close", session=session)
        listed = await client.call("list", saved=True, folder=str(project))
        assert [(each["name"], each["doing"]) for each in listed] == [
            (forked["name"], "done"),
            (name, "saved"),
        ]
        assert {each["folder"] for each in listed} == {str(project)}
        again = await client.call("resume", **serving.opening, name=name)
        told = await client.call("subscribe", session=again["session"])
        assert "Resumed" in told["earlier"]["text"]
        assert [
            each["content"] for each in told["earlier"]["events"] if each["type"] == "user"
        ] == ["first words"]
        shared = await client.call("resume", **serving.opening, name=name)
        assert shared["session"] == again["session"]
        for each in (again, forked):
            assert await client.call("set_mode", session=each["session"], mode="plan")
            assert (await client.call("status", session=each["session"]))["mode"] == "plan"
            assert (await client.call("send", session=each["session"], text="more"))["outcome"]
        await client.close()


async def test_every_message_is_as_the_schema_says(own: Path, project: Path):
    (project / "a").write_text("text")
    schema = protocol_schema()
    judges = {
        f"{name}.{part}": Draft202012Validator(
            {"$defs": schema["$defs"], **schema["methods"][name][part]}
        )
        for name in METHODS
        for part in ("params", "result")
    }
    judges |= {
        name: Draft202012Validator(
            {"$defs": schema["$defs"], **schema["notifications"][name]["params"]}
        )
        for name in NOTIFICATIONS
    }
    checked: set[str] = set()

    def check(name: str, value: Any) -> Any:
        judge: Any = judges[name]
        problems = list(judge.iter_errors(value))
        assert not problems, (name, value, problems)
        checked.add(name)
        return value

    async with served(own, project, DELETE, "gone", "again") as serving:
        client = await serving.client()

        async def ask(name: str, /, **params: Any) -> Any:
            check(f"{name}.params", params)
            return check(f"{name}.result", await client.call(name, **params))

        check("hello.params", {"version": 1})
        bare = await serving.bare()
        check("hello.result", (await bare.ask("hello", version=1))["result"])
        await bare.close()
        session = (await ask("open", **serving.opening))["session"]
        here = {"session": session}
        await ask("subscribe", **here, lines=True)
        turn = asyncio.create_task(ask("send", **here, text="delete it"))
        question = await asked(client)
        assert await ask("kept", **here, text="a draft") == {"text": "a draft"}
        await ask("steer", **here, text="gently")
        await ask("take_back", **here)
        await ask("answer", **here, question=question["id"], is_allowed=True)
        await turn
        for line in ("/help", "/sessions", "/mode", "/diff", "/model", "/nothing", "!!ls"):
            await ask("send", **here, text=line)
        for name in ("status", "commands", "cancel"):
            await ask(name, **here)
        await ask("set_mode", **here, mode="plan")
        await ask("list", saved=True)
        name = (await ask("list"))[0]["name"]
        await ask("fork", **serving.opening, name=name)
        await ask("unsubscribe", **here)
        await ask("subscribe", **here)
        await ask("close", **here)
        await ask("resume", **serving.opening, name=name)
        await client.close()
        async for method, params in client.told():
            check(method, params)
        bare = await serving.bare(greets=True)
        check("acp.params", serving.opening)
        check("acp.result", (await bare.ask("acp", **serving.opening))["result"])
        answer = await bare.ask("initialize", protocolVersion=1)  # another protocol now
        assert answer["result"]["agentInfo"]["name"] == "ybs"
        await bare.close()
    assert checked == set(judges)
