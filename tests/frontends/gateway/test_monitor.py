"""The numbers, the probes and the log of a gateway: by hand, and of one that runs, with a real database and without."""

import asyncio
import json
import logging
import socket
import sys
from collections.abc import Generator
from http.client import HTTPConnection
from pathlib import Path
from threading import Event, Thread

import pytest

from chat_faults import GatewayProcess, gateway, machines
from postgres import programs
from ybs.core.envelope import Envelope
from ybs.core.events import AssistantSaid, RequestStarted, TurnFinished
from ybs.core.events import Event as SessionEvent
from ybs.core.messages import Usage
from ybs.frontends.gateway.monitor import Figures, JsonLines, Monitor
from ybs.frontends.gateway.store import GatewayStore, channel_states, inbox, ledger, sqlite_engine

pytestmark = [pytest.mark.integration, pytest.mark.timeout(60)]
USAGE = Usage(input_tokens=100, cached_tokens=60, output_tokens=7, cost_usd=0.25)


def asked(port: int, path: str) -> tuple[int, str]:
    """Return what an address of the monitor answers."""
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def values(text: str) -> dict[str, float]:
    """Return the samples of a page of numbers."""
    lines = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {name.replace("{}", ""): float(value) for name, _, value in lines}


class Watched:
    """A monitor of a database of its own."""

    def __init__(self, folder: Path) -> None:
        self.path, self.figures = folder / "gateway.db", Figures()
        self.store = GatewayStore(sqlite_engine(self.path))
        bound = socket.create_server(("127.0.0.1", 0))
        self.port: int = bound.getsockname()[1]
        engine = sqlite_engine(self.path)
        self.monitor = Monitor(bound, engine, self.figures, ("telegram", 'a"b\\c\nd'))

    def values(self) -> dict[str, float]:
        status, text = asked(self.port, "/metrics")
        assert status == 200
        return values(text)

    def tell(self, *events: SessionEvent, agent: str = "main") -> None:
        for event in events:
            self.figures(Envelope("s", agent, event))


@pytest.fixture
def watched(tmp_path: Path) -> Generator[Watched]:
    made = Watched(tmp_path / "state")
    with made.monitor:
        yield made
    made.store.close()


@pytest.fixture
def loop() -> Generator[asyncio.AbstractEventLoop]:
    """Hand out an event loop that runs in a thread."""
    made = asyncio.new_event_loop()
    thread = Thread(target=made.run_forever)
    thread.start()
    yield made
    made.call_soon_threadsafe(made.stop)
    thread.join()
    made.close()


async def test_turns_and_messages_are_counted_by_their_state_with_the_longest_wait(
    watched: Watched,
):
    now = 1_000_000.0  # long ago
    for number, (state, tries) in enumerate(
        [("new", 0), ("waiting", 0), ("waiting", 0), ("waiting", 1), ("done", 1)]
    ):
        row = {"id": str(number), "key": "k", "body": b"secret words", "at": now + number}
        await watched.store.change(inbox.insert().values(**row, state=state, tries=tries))
    for number, state in enumerate(("pending", "attempting", "failed", "delivered", "delivered")):
        row = {"id": str(number), "chat": "4711", "place": b"", "body": b"secret words", "at": now}
        await watched.store.change(ledger.insert().values(**row, state=state))
    found = watched.values()
    assert [found[f'ybs_turns{{state="{s}"}}'] for s in ("new", "waiting", "running")] == [1, 2, 1]
    states = ("pending", "attempting", "failed")
    assert [found[f'ybs_deliveries{{state="{s}"}}'] for s in states] == [1, 1, 1]
    assert found["ybs_deliveries_posted_total"] == 5
    assert found["ybs_turn_wait_seconds"] > 1e9
    assert found["ybs_delivery_wait_seconds"] > 1e9


def test_what_models_took_and_cost_is_counted_by_model_and_agents_are_kept_apart(watched: Watched):
    watched.tell(RequestStarted(model="m"))
    watched.tell(RequestStarted(model="n"), AssistantSaid(content="x", model="n"), agent="sub")
    watched.tell(AssistantSaid(content="secret words", model="m", usage=USAGE))
    watched.tell(TurnFinished(reason="done", duration_seconds=2.5, usage=USAGE))
    watched.tell(TurnFinished(reason="error"), agent="sub")
    found = watched.values()
    assert found['ybs_model_requests_total{model="m"}'] == 1
    assert 0 < found['ybs_model_seconds_total{model="m"}'] < 30
    assert found['ybs_model_tokens_total{model="m",kind="cached"}'] == 60
    assert found['ybs_model_usd_total{model="m"}'] == 0.25
    assert found['ybs_turns_ended_total{reason="done"}'] == 1
    assert 'ybs_turns_ended_total{reason="error"}' not in found
    assert found["ybs_turn_seconds_total"] == 2.5
    assert "secret" not in asked(watched.port, "/metrics")[1]


async def test_one_that_serves_is_ready_when_all_of_its_channels_are_connected(
    watched: Watched, loop: asyncio.AbstractEventLoop
):
    assert asked(watched.port, "/readyz") == (503, "starting\n")
    leads = False
    watched.figures.serve(loop, lambda: leads)
    assert asked(watched.port, "/readyz") == (200, "working\n")
    assert watched.values()["ybs_lease"] == 0
    leads = True
    assert "telegram is not connected" in asked(watched.port, "/readyz")[1]
    for name in ("telegram", 'a"b\\c\nd'):
        row = channel_states.insert().values(name=name, state="connected", at=0)
        await watched.store.change(row)
    assert asked(watched.port, "/readyz") == (200, "leading\n")
    found = watched.values()
    assert (found["ybs_lease"], found['ybs_channel_up{channel="telegram"}']) == (1, 1)
    assert found[r'ybs_channel_up{channel="a\"b\\c\nd"}'] == 1
    await watched.store.do(lambda connection: channel_states.drop(connection))
    assert asked(watched.port, "/readyz") == (503, "the database does not answer\n")
    assert watched.values()["ybs_database_up"] == 0
    assert asked(watched.port, "/")[0] == 404


def test_one_whose_event_loop_stands_still_does_not_live(
    watched: Watched, loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch
):
    assert asked(watched.port, "/healthz") == (200, "starting\n")
    watched.figures.serve(loop, lambda: True)
    assert asked(watched.port, "/healthz") == (200, "leading\n")
    monkeypatch.setattr("ybs.frontends.gateway.monitor._SILENT_SECONDS", 0.2)
    go_on = Event()
    loop.call_soon_threadsafe(go_on.wait)
    assert asked(watched.port, "/healthz")[0] == 503
    go_on.set()
    assert asked(watched.port, "/healthz")[0] == 200


def test_a_line_of_the_log_is_json_and_has_no_words_of_an_error():
    error = ValueError("secret words")
    what, extra = (type(error), error, None), {"reason": "done", "usd": None}
    logger = logging.getLogger("x")
    record = logger.makeRecord("x", logging.ERROR, "f", 1, "it\nfailed", (), what, extra=extra)
    line = JsonLines().format(record)
    said = json.loads(line)
    assert "\n" not in line
    assert "secret" not in line
    assert said["error"] == "ValueError"
    assert (said["level"], said["message"], said["reason"]) == ("error", "it\nfailed", "done")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


async def start(process: GatewayProcess) -> int:
    """Start a gateway with a monitor and a log in JSON; return the monitor's port."""
    port = free_port()
    words = ("gateway", "start", "--metrics", str(port), "--log-format", "json")
    with (process.home / "stdout").open("ab") as out, (process.home / "stderr").open("ab") as err:
        process.process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "ybs", *words, env=process.environ, stdout=out, stderr=err
        )
    return port


async def answers(port: int, path: str, wanted: str, seconds: float = 40) -> None:
    """Wait until an address answers this."""
    said = ""
    try:
        async with asyncio.timeout(seconds):
            while wanted not in said:
                await asyncio.sleep(0.1)
                try:
                    said = (await asyncio.to_thread(asked, port, path))[1]
                except OSError:
                    said = "nothing"
    except TimeoutError:
        raise AssertionError(f"{path} says {said!r} and not {wanted!r}") from None


@pytest.mark.slow
async def test_a_gateway_that_runs_says_what_it_does():
    async with gateway() as process:
        port = await start(process)
        await answers(port, "/readyz", "leading")
        process.platform.say("hi there")
        await process.platform.until(lambda: "hello" in process.platform.texts(), 30)
        await answers(port, "/metrics", 'ybs_turns_ended_total{reason="done"} 1')
        found = values(asked(port, "/metrics")[1])
        assert found['ybs_model_requests_total{model="m"}'] == 1
        assert found['ybs_turns{state="waiting"}'] == 0
        lines = (process.home / "stdout").read_text().splitlines()
        ends = [each for each in map(json.loads, lines) if each["message"] == "a turn ended"]
        assert [each["reason"] for each in ends] == ["done"]
        assert not any(word in "".join(lines) for word in ("hi there", "hello"))
        assert (process.home / ".local/state/ybs/gateway/log").read_text().splitlines() == lines


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.skipif(programs() is None, reason="PostgreSQL is not installed")
async def test_one_that_works_leads_when_the_leader_is_gone():
    async with machines() as two:
        first = await start(two.all[0])
        await answers(first, "/readyz", "leading")
        second = await start(two.all[1])
        await answers(second, "/readyz", "working")
        assert asked(second, "/healthz") == (200, "working\n")
        assert values(asked(second, "/metrics")[1])["ybs_lease"] == 0
        await two.all[0].kill()
        await answers(second, "/readyz", "leading")
        assert values(asked(second, "/metrics")[1])["ybs_lease"] == 1
