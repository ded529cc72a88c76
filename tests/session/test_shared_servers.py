"""Programs of MCP servers that the sessions of one project in a process share: one each, as long as anybody needs it."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from hosts import this_host
from mcp_servers import entry_of
from rows import every_row
from ybs.core.events import Noticed
from ybs.core.messages import ToolResult
from ybs.core.ports import Answer, Question
from ybs.session.hub import Hub, Shared
from ybs.testing import RecordedEvents, ScriptedModel, call

pytestmark = pytest.mark.integration
#: It says who it is, and keeps count of its calls.
COUNTING = """
calls = []
def call(name, given):
    calls.append(name)
    if given.get("text") == "die":
        os._exit(3)
    return text(f"{os.getpid()} {len(calls)}")
"""


async def yes(question: Question) -> Answer:
    del question
    return Answer(is_allowed=True)


def configure(**entries: Any) -> None:
    file = this_host().user_config_file
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"mcpServers": entries}))


def ask(text: str = "hello", server: str = "demo") -> Any:
    return call(f"mcp__{server}__echo", text=text)


def opened(hub: Hub, folder: Path, *script: Any, **options: Any) -> Shared:
    model = ScriptedModel([step for each in script for step in (each, "done")])
    return hub.open(folder, **{"model": model, "sandbox": False, "confirm": yes, **options})


async def said(shared: Shared) -> str:
    """Take a turn, and return what the server answered."""
    await shared.session.send("go")
    results = [
        each for each in shared.session.conversation.messages if isinstance(each, ToolResult)
    ]
    return results[-1].output


def is_running(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    return True


@every_row("sandbox", [False, True])
async def test_sessions_of_a_project_have_one_program_until_the_last_of_them_ends(
    project: Path, home: Path, sandbox: bool
):
    configure(demo=entry_of(home, COUNTING))
    async with Hub() as hub:
        sessions = [opened(hub, project, ask(), ask(), sandbox=sandbox) for _ in range(3)]
        answers = [(await said(each)).split() for each in sessions]
        assert len({pid for pid, _ in answers}) == 1
        assert [count for _, count in answers] == ["1", "2", "3"]
        await hub.close(sessions[0].session.id)  # the one that started it
        assert (await said(sessions[1])).split() == [answers[0][0], "4"]
        await hub.close(sessions[1].session.id)
        assert (await said(sessions[2])).split() == [answers[0][0], "5"]
    if not sandbox:  # in a sandbox the number is another one
        assert not is_running(answers[0][0])


@every_row(
    ("entry", "options"),
    [({"shared": False}, {}), ({"elicitation": True}, {}), ({"env": {"A": "${WHO}"}}, {})],
    ids=["not shared", "asks", "same variables"],
)
async def test_what_is_shared_is_what_is_the_same(project, home, entry, options):
    configure(demo=entry_of(home, COUNTING, **entry))
    os.environ["WHO"] = "me"
    try:
        async with Hub() as hub:
            one, other = (opened(hub, project, ask(), **options) for _ in range(2))
            pids = {(await said(each)).split()[0] for each in (one, other)}
    finally:
        del os.environ["WHO"]
    assert len(pids) == (1 if "env" in entry else 2)


async def test_other_folders_and_other_walls_have_programs_of_their_own(project, home, tmp_path):
    configure(demo=entry_of(home, COUNTING))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    async with Hub() as hub:
        sessions = [
            opened(hub, project, ask()),
            opened(hub, project, ask(), add_dirs=(elsewhere,)),
            opened(hub, elsewhere, ask()),
        ]
        assert len({(await said(each)).split()[0] for each in sessions}) == 3


async def test_one_that_is_lost_is_started_once_for_all(project: Path, home: Path):
    configure(demo=entry_of(home, COUNTING))
    async with Hub() as hub:
        one, other = (
            opened(hub, project, ask(), ask("die"), ask()),
            opened(hub, project, ask(), ask()),
        )
        before = {(await said(each)).split()[0] for each in (one, other)}
        assert "was lost" in await said(one)
        await asyncio.sleep(1.5)
        after = {(await said(each)).split()[0] for each in (one, other)}
        assert (len(before), len(after)) == (1, 1)
        assert before != after


async def test_why_one_does_not_start_is_said_to_each(project: Path, home: Path):
    configure(demo=entry_of(home, "sys.exit('no database')"))
    async with Hub() as hub:
        sessions = [opened(hub, project, "hello") for _ in range(2)]
        heard = [RecordedEvents() for _ in sessions]
        for shared, events in zip(sessions, heard, strict=True):
            shared.session.subscribe(events)
            await shared.session.send("go")
        for events in heard:
            assert "no database" in " ".join(each.text for each in events.of(Noticed))


async def test_one_that_is_given_up_while_it_starts_leaves_the_others_waiting(project, home):
    configure(demo=entry_of(home, "time.sleep(0.5)" + COUNTING))
    async with Hub() as hub:
        one, other = opened(hub, project, "hello"), opened(hub, project, ask())
        one.session.environment.mcp.start()
        turn = asyncio.create_task(said(other))
        await asyncio.sleep(0.2)
        await hub.close(one.session.id)
        assert (await turn).split()[1] == "1"


def resident_bytes() -> int:
    """Return what this process holds in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.slow
@pytest.mark.scale
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="counted by /proc")
async def test_fifty_sessions_have_three_programs_and_little_memory(project: Path, home: Path):
    entries: dict[str, Any] = {}
    for name in ("a", "b", "c"):
        folder = home / name
        folder.mkdir()
        entries[name] = entry_of(folder, COUNTING)
    configure(**entries)
    everywhere = [ask(server=name) for name in entries]
    async with Hub() as hub:
        first = opened(hub, project, *everywhere)
        await first.session.send("go")  # what all of them share is loaded
        before, sessions = resident_bytes(), [opened(hub, project, *everywhere) for _ in range(49)]
        pids: set[str] = set()
        for shared in sessions:
            for _ in everywhere:
                pids.add((await said(shared)).split()[0])
        assert len(pids) == len(entries)
        assert (resident_bytes() - before) / len(sessions) < 3_000_000
