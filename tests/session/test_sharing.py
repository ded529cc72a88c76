"""What the sessions of one host share beside servers: connections and the map's process; and what none sees of another."""

import asyncio
import gc
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from hosts import this_host
from processes import comes, is_alive, open_descriptors
from rows import every_row
from scripted import OpenAIServer, RecordedRequest
from ybs.repo_map.mapper import Mapper
from ybs.session.hub import Hub, Shared
from ybs.testing import call

pytestmark = pytest.mark.integration


class Counted(OpenAIServer):
    """It counts connections: all that came, and those that are open."""

    connections = 0

    @property
    def open_now(self) -> int:
        return len(self._connections)

    def _accept(self, *given: Any) -> None:
        self.connections += 1
        super()._accept(*given)


def opened(hub: Hub, project: Path, server: OpenAIServer, **options: Any) -> Shared:
    model = {"provider": "openai", "model": "m", "endpoint": server.url}
    return hub.open(project, **{**model, "sandbox": False, "mode": "bypass", **options})


async def test_sessions_of_a_host_share_a_connection_until_the_last_one_ends(project: Path):
    before = open_descriptors()
    async with Counted(["hello"], is_repeated=True) as server, Hub() as hub:
        sessions = [opened(hub, project, server) for _ in range(5)]
        await asyncio.gather(*(each.session.parts.main.agent.model.warm_up() for each in sessions))
        for each in sessions:
            assert (await each.session.send("hi")).finished.reason == "done"
        assert server.connections == 1
        for each in sessions[1:]:
            await hub.close(each.session.id)
            assert server.open_now == 1
        assert (await sessions[0].session.send("hi")).finished.reason == "done"
        assert server.connections == 1
        host = sessions[0].session.host
        await hub.close(sessions[0].session.id)
        assert host.shared.count == 0
        assert await comes(lambda: server.open_now == 0)
    assert await comes(lambda: open_descriptors() == before)


async def test_turns_at_the_same_time_have_a_connection_each_and_one_that_stops_ends_its_own(
    project: Path,
):
    script = ["one", "two"]
    async with Counted(script, is_repeated=True) as server, Hub() as hub:
        one, other = opened(hub, project, server), opened(hub, project, server)
        ends = await asyncio.gather(one.session.send("hi"), other.session.send("hi"))
        assert [each.finished.reason for each in ends] == ["done", "done"]
        assert server.connections == 2
        await hub.close(one.session.id)
        assert (await other.session.send("again")).finished.reason == "done"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@every_row("closes", [True, False])
def test_an_event_loop_that_has_ended_hands_no_connection_to_the_next(closes: bool, project: Path):
    host, left = this_host(), []

    async def run() -> None:
        async with Counted(["hello"], is_repeated=True) as server:
            hub = Hub(host=host)
            shared = opened(hub, project, server)
            assert (await shared.session.send("hi")).finished.reason == "done"
            assert server.connections == 1
            left.append(shared)
            if closes or len(left) > 1:
                await hub.aclose()

    for _ in range(2):
        asyncio.run(run())
    assert host.shared.count == 0
    left.clear()
    gc.collect()  # what was not closed is told here, and not in a later test


def checking(keys: list[str], tokens: list[str], wrong: list[str]) -> Any:
    """Return what answers three sessions, and notes which of them came with another's key, or with a secret."""

    def answered(request: RecordedRequest) -> Any:
        said = json.dumps(request.body)
        (number,) = (each for each in range(3) if f"I am number {each}." in said)
        if request.headers.get("authorization") != f"Bearer {keys[number]}":
            wrong.append(f"number {number} came with another key")
        wrong.extend(f"{number} said {each}" for each in (*tokens, *keys) if each in said)
        if request.body["messages"][-1]["role"] == "tool":
            return "done"
        return call("read_file", path=f"{number}.txt")

    return answered


@given(
    order=st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=2, max_size=6),
    seed=st.integers(0, 10_000),
)
@settings(
    max_examples=5,
    phases=[Phase.generate],
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
async def test_keys_secrets_and_words_of_a_session_are_in_no_other(order, seed, project, home):
    """Three sessions with keys and secrets of their own take turns on one connection, and some at once."""
    random = Random(seed)
    letters = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"
    keys, tokens = (
        [prefix + "".join(random.choices(letters, k=36)) for _ in range(3)]
        for prefix in ("sk-own-", "ghp_")
    )

    wrong: list[str] = []
    answered = checking(keys, tokens, wrong)
    files = [home / f"{number}.json" for number in range(3)]
    for number, token in enumerate(tokens):
        (project / f"{number}.txt").write_text(f"number {number} has {token}\n")
    async with Counted([answered], is_repeated=True) as server, Hub() as hub:
        for file, key in zip(files, keys, strict=True):
            llm = {"provider": "openai", "model": "m", "endpoint": server.url, "api_key": key}
            file.write_text(json.dumps({"llm": llm}))
        plain: Any = dict.fromkeys(("provider", "model", "endpoint"))
        sessions = [opened(hub, project, server, **plain, config_file=file) for file in files]
        running = []
        for number, at_once in order:
            session = sessions[number].session
            if not at_once or any(place == number for place, _ in running):
                await asyncio.gather(*(turn for _, turn in running))
                running.clear()
            turn = asyncio.ensure_future(session.send(f"I am number {number}."))
            running.append((number, turn))
        ends = await asyncio.gather(*(turn for _, turn in running))
        assert wrong == []
        assert {each.finished.reason for each in ends} <= {"done"}
        for number, shared in enumerate(sessions):
            firewall = shared.session.environment.secrets.firewall
            known = repr(vars(firewall.vault))
            assert keys[number] in known
            assert (tokens[number] in known) == any(place == number for place, _ in order)
            others = [
                each
                for place in range(3)
                if place != number
                for each in (keys[place], tokens[place])
            ]
            assert not [each for each in others if each in known]
    assert server.connections <= 3


async def mapped(session: Any, words: str) -> Any:
    answer = await session.context.mapper.ask(words, wait_seconds=50)
    assert answer is not None, session.context.mapper.problem
    return answer


@pytest.mark.timeout(60)
async def test_sessions_of_a_project_have_one_process_that_maps_it_and_no_others_answers(project):
    for number in range(12):
        (project / f"part_{number}.py").write_text(f"def find_{number}(): pass\n")
    async with OpenAIServer() as server, Hub() as hub:
        sessions = [opened(hub, project, server).session for _ in range(3)]
        hidden = opened(hub, project, server, incognito=True).session
        overrides = {"safety.sandbox_blocked_paths": ["part_3.py"]}
        blocked = opened(hub, project, server, overrides=overrides).session
        for each in (*sessions, hidden, blocked):
            each.context.look_around()
        (pid,) = sessions[0].context.mapper.pids
        assert {each.context.mapper.pids for each in sessions} == {frozenset({pid})}
        apart = hidden.context.mapper.pids | blocked.context.mapper.pids
        assert len(apart | {pid}) == 3
        await mapped(sessions[0], "find_5")
        assert await comes(lambda: sessions[1].context.mapper.is_ready), (
            "it was prepared for others too"
        )
        words = ["find_3", "find_7", "find_11"]
        pairs = zip(sessions, words, strict=True)
        together = await asyncio.gather(*(mapped(each, word) for each, word in pairs))
        assert await comes(lambda: not sessions[0].context.mapper.pids), "nobody is to ask any more"
        assert [each.files[0] for each in together] == ["part_3.py", "part_7.py", "part_11.py"]
        shared = sessions[0].context.mapper
        alone = Mapper(shared.job, shared.tokens, environ=sessions[0].host.environ)
        assert await alone.ask(words[2], wait_seconds=50) == together[2]
        await alone.aclose()
        assert "part_3.py" not in (await mapped(blocked, "find_3")).files
        await hub.close(sessions[0].id)
        sessions[1].context.look_around()
        (later,) = sessions[1].context.mapper.pids - {pid}
        await hub.close(sessions[1].id)
        assert is_alive(later)
        await hub.close(sessions[2].id)
        assert not is_alive(later)
