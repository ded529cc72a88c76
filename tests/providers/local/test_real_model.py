"""The starter model itself: real tool calls, whole tasks through the real command. Run by `make test-real`."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from msgspec.structs import replace

from hosts import this_host
from ybs.config.schema import Config
from ybs.core.events import AssistantSaid
from ybs.core.messages import UserMessage
from ybs.core.ports import Request
from ybs.providers.local import models, server
from ybs.providers.local.model import LlamaCppModel, notes_of
from ybs.providers.local.template import _FAMILIES, ChatTemplate, templates_of
from ybs.session.options import Options
from ybs.session.session import Session

#: Looked for now, before a test gets a HOME of its own.
STARTER = models.starter_path(this_host())
IS_THERE = models.starter_installed(this_host()) and find_spec("xllamacpp") is not None
SAMPLE = Path(__file__).parents[3] / "examples" / "shop"
YBS = str(Path(sys.executable).with_name("ybs"))
TEST = "python3 -m unittest -q"

pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        not IS_THERE,
        reason="the starter model is not installed: `ybs models download starter` fetches it",
    ),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Make a YBS_HOME for these tests, with the installed model and one server for all of them."""
    home = tmp_path_factory.mktemp("ybs")
    (home / "cache").mkdir()
    (home / "cache" / "models").symlink_to(STARTER.parent)
    yield home
    subprocess.run(
        [YBS, "models", "stop"],
        env={**os.environ, "YBS_HOME": str(home)},
        capture_output=True,
        check=True,
    )


@pytest.fixture(autouse=True)
def shared_server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every test use that server."""
    monkeypatch.setenv("YBS_HOME", str(folder))


@pytest.fixture
def shop(project: Path) -> Path:
    """Make the sample project the one that the test stands in."""
    shutil.copytree(SAMPLE, project, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__py*"))
    return project


def opened(folder: Path) -> Session:
    return Session(Options(host=this_host(), folder=folder, overrides={"llm.provider": "llamacpp"}))


def wanted(model: Path, window: int | None) -> server.Wanted:
    head = notes_of(this_host(), model).head
    first = next(templates_of(model, head), ChatTemplate("own"))
    return server.Wanted(
        model=str(model), alias="x", shape=head.shape, template=first.text, window=window
    )


async def start(model: Path | None = None, *, window: int | None = None) -> server.RunningServer:
    job = wanted(model or models.starter_path(this_host()), window)
    return await server.ensure(
        this_host(), job, server.ServerLease(this_host()), told=lambda _: None
    )


def ask(path: str, body: Any) -> Any:
    """Ask the server something that is not a chat."""
    running = server.running(this_host())
    assert running is not None
    connection = server.SocketConnection(running.socket, timeout=60)
    headers = {"Authorization": f"Bearer {running.key}", "Content-Type": "application/json"}
    try:
        connection.request("POST", path, msgspec.json.encode(body), headers)
        response = connection.getresponse()
        assert response.status == 200
        return msgspec.json.decode(response.read())
    finally:
        connection.close()


class Wish(NamedTuple):
    """A request, the tools that fit, and a word that must stand in the call's arguments."""

    words: str
    tools: tuple[str, ...]
    argument: str = ""


WISHES = (
    Wish("Read the file README.md.", ("read_file",), "README.md"),
    Wish("Show me what is in src/app.py", ("read_file",), "src/app.py"),
    Wish("Open pyproject.toml and tell me the project's name.", ("read_file",), "pyproject"),
    Wish("Read lines 10 to 20 of cart.py.", ("read_file",), "10"),
    Wish("List all Python files in this project.", ("list_files",), ".py"),
    Wish("Which files are in the folder src?", ("list_files",), "src"),
    Wish("Find every place where BULK_COUNT is used.", ("search_files",), "BULK_COUNT"),
    Wish("Search the code for the word TODO.", ("search_files",), "TODO"),
    Wish(f"Run the tests with {TEST}.", ("run_shell",), TEST),
    Wish("Run `git status`.", ("run_shell",), "git status"),
    Wish("What is the date according to the shell? Use date.", ("run_shell",), "date"),
    Wish("Make a folder called build.", ("run_shell",), "build"),
    Wish("Run `python3 --version`.", ("run_shell",), "--version"),
    Wish("Create a file notes.txt with the text hello world.", ("write_file",), "hello world"),
    Wish("Write a Python script hello.py that prints hello.", ("write_file",), "hello.py"),
    Wish("Delete the file old.txt.", ("delete_file",), "old.txt"),
    Wish("In cart.py replace PIECES = 10 with PIECES = 20.", ("edit_file", "read_file"), "cart.py"),
    Wish("Where is the class Cart defined?", ("search_files",), "Cart"),
    Wish("The tests fail. Find the cause and fix it.", ("run_shell", "read_file", "list_files")),
    Wish("Say in one sentence what a linked list is.", ()),
    Wish("Good morning!", ()),
)


async def test_most_requests_get_the_right_tool_with_the_right_argument(shop: Path):
    """This model misses some. What matters: calls are real calls, and a worse template is noticed."""
    here = opened(shop)
    system = await here.context.prompt()
    missed: list[str] = []
    for wish in WISHES:
        request = Request(system, (UserMessage.of(wish.words),), here.agent.toolbox.specs())
        said = [event async for event in here.agent.model.stream(request)][-1]
        assert isinstance(said, AssistantSaid)
        calls = said.message.calls
        assert not any(call.invalid for call in calls)
        is_right = [c.name for c in calls if c.name in wish.tools] and wish.argument in bytes(
            calls[0].arguments
        ).decode()
        if not (is_right if wish.tools else not calls):
            missed.append(f"{wish.words} -> {[c.name for c in calls]} {said.content}")
    await here.close()
    print(f"{len(WISHES) - len(missed)} of {len(WISHES)} right; missed: {missed}")  # noqa: T201 - the measure
    assert len(missed) <= 6


async def test_the_prompt_with_all_tools_has_at_most_900_tokens(shop: Path):
    here = opened(shop)
    tools = [
        {"type": "function", "function": msgspec.json.decode(msgspec.json.encode(spec))}
        for spec in here.agent.toolbox.specs()
    ]
    await start()
    system = await here.context.prompt()
    await here.close()
    messages = [{"role": "system", "content": system}, {"role": "user", "content": ""}]
    prompt = ask("/apply-template", {"messages": messages, "tools": tools})["prompt"]
    assert len(ask("/tokenize", {"content": prompt})["tokens"]) <= 900


async def test_calls_results_and_their_errors_are_rendered_in_order(shop: Path):
    await start()
    calls = [
        {
            "id": number,
            "type": "function",
            "function": {"name": name, "arguments": '{"path": "a\\"b"}'},
        }
        for number, name in (("1", "read_file"), ("2", "delete_file"))
    ]
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": "Yes.", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "1", "content": "one line"},
        {"role": "tool", "tool_call_id": "2", "content": "Error: refused"},
        {"role": "assistant", "content": "It was refused."},
        {"role": "user", "content": "Thanks."},  # llama.cpp leaves an answer at the end open
    ]
    prompt = ask("/apply-template", {"messages": messages})["prompt"]
    places = [
        prompt.index(piece)
        for piece in (
            "<|im_start|>system\nBe brief.",
            "<|im_start|>user\nLook.<|im_end|>",
            '<|im_start|>assistant\nYes.\n```json\n{"name": "read_file", "arguments": {"path": "a\\"b"}}\n```\n```json\n'
            '{"name": "delete_file"',
            "Result of read_file:\none line\n",
            "Result of delete_file:\nError: refused\n",
            "It was refused.<|im_end|>",
        )
    ]
    assert places == sorted(places)


class Task(NamedTuple):
    """A whole task: what is asked, and how to see that it was done."""

    words: str
    is_done: Callable[[Path, str], bool]


def mended(folder: Path, _said: str) -> bool:
    is_untouched = (folder / "test_cart.py").read_bytes() == (SAMPLE / "test_cart.py").read_bytes()
    command = [sys.executable, *TEST.split()[1:]]
    return is_untouched and not subprocess.run(command, cwd=folder, capture_output=True).returncode


TASKS = {
    "fix": Task(
        f"The tests fail, `{TEST}` runs them. "
        "Find the cause, fix it with one edit and run the tests again.",
        mended,
    ),
    "read": Task("What does README.md say? Answer in a sentence.", lambda _, said: "cart" in said),
    "write": Task(
        "Create a file notes.txt with the text hello world.",
        lambda folder, _: (folder / "notes.txt").read_text().strip() == "hello world",
    ),
    "edit": Task(
        "In settings.py change PORT from 8080 to 9090.",
        lambda folder, _: "9090" in (folder / "settings.py").read_text(),
    ),
    "list": Task("List the Python files of this project.", lambda _, said: "test_cart.py" in said),
    "shell": Task(
        "Run `python3 --version` and tell me what it prints.", lambda _, said: "Python 3" in said
    ),
    "search": Task(
        "Find where PORT is set, with search_files.", lambda _, said: "settings" in said
    ),
    "delete": Task("Delete the file old.txt.", lambda folder, _: not (folder / "old.txt").exists()),
}


@pytest.mark.parametrize("name", TASKS)
def test_a_whole_task_is_done_by_the_real_command(shop: Path, name: str):
    (shop / "settings.py").write_text("HOST = 'localhost'\nPORT = 8080\n")
    (shop / "old.txt").write_text("old\n")
    ended = subprocess.run(
        [
            *(YBS, "--provider", "llamacpp", "--mode", "accept-edits", "--max-turns", "10"),
            *("--allow", "run_shell:python3 *", "--allow", "delete_file", "--allow", "write_file"),
            *("--print", TASKS[name].words),
        ],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert ended.returncode == 0, ended.stderr
    assert TASKS[name].is_done(shop, ended.stdout), ended.stdout


async def test_nobody_gets_an_answer_without_the_key(shop: Path):
    running = await start()
    connection = server.SocketConnection(running.socket, timeout=10)
    connection.request("GET", "/props")
    assert connection.getresponse().status == 401
    connection.close()


async def test_the_server_ends_cleanly_when_told(folder, tmp_path, monkeypatch):
    (tmp_path / "cache").symlink_to(folder / "cache")
    monkeypatch.setenv("YBS_HOME", str(tmp_path))
    running = await start()
    os.kill(running.pid, signal.SIGTERM)
    assert await asyncio.to_thread(os.waitpid, running.pid, 0) == (running.pid, 0)
    assert not server.state_file(this_host()).exists()


async def test_a_file_that_is_no_model_is_named_with_the_log(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("YBS_HOME", str(tmp_path))
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"hello")
    with pytest.raises(server.ProviderDown, match=r"llama\.log:[\s\S]*invalid magic"):
        await start(broken, window=512)


async def test_a_model_that_nobody_measured_is_tried_once_and_the_template_that_it_answers_is_kept(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The starter under a strange name: its own template makes no real calls, and the general one does."""
    monkeypatch.setenv("YBS_HOME", str(tmp_path))
    models.models_folder(this_host()).mkdir(parents=True)
    stranger = models.models_folder(this_host()) / "stranger.gguf"
    stranger.symlink_to(STARTER)
    local = LlamaCppModel(this_host(), Config(), "stranger")
    try:
        [_ async for _ in local.stream(Request("Be brief.", (UserMessage.of("Say hi."),)))]
        assert notes_of(this_host(), stranger).template == "calls in chatml"
    finally:
        await local.aclose()
        await server.stop(this_host())


@pytest.fixture
def lease() -> Iterator[server.ServerLease]:
    """Return what says that this test uses the server, until it ends: the next one wants another model."""
    lease = server.ServerLease(this_host())
    yield lease
    lease.release()


@pytest.mark.parametrize("family", _FAMILIES)
async def test_the_template_of_every_family_is_one_that_llama_cpp_reads_calls_with(
    folder: Path, lease: server.ServerLease, family: str
):
    head = notes_of(this_host(), STARTER).head
    template = replace(head, template=_FAMILIES[family].sign)
    (found,) = templates_of(Path("x.gguf"), template)
    job = server.Wanted(
        model=str(STARTER), alias="x", shape=head.shape, template=found.text, window=1024
    )
    await server.ensure(this_host(), job, lease, told=lambda _: None)
    running = server.running(this_host())
    assert running is not None
    connection = server.SocketConnection(running.socket, timeout=60)
    connection.request("GET", "/props", headers={"Authorization": f"Bearer {running.key}"})
    caps = msgspec.json.decode(connection.getresponse().read())["chat_template_caps"]
    connection.close()
    assert caps["supports_tools"]
    assert caps["supports_tool_calls"]
    call = {"id": "1", "type": "function", "function": {"name": "t", "arguments": '{"a": 1}'}}
    messages = [
        {"role": "system", "content": "THE RULES"},
        {"role": "user", "content": "THE WISH"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "THE RESULT"},
    ]
    tools = [
        {
            "type": "function",
            "function": {"name": "t", "description": "d", "parameters": {"properties": {}}},
        }
    ]
    prompt = ask("/apply-template", {"messages": messages, "tools": tools})["prompt"]
    pieces = (
        "THE RULES",
        "- t: d",
        "THE WISH",
        '{"name": "t", "arguments": {"a": 1}}',
        "THE RESULT",
    )
    places = [prompt.index(piece) for piece in pieces]
    assert places == sorted(places)
    assert _FAMILIES[family].sign in prompt
