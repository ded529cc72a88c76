"""Monitor a gateway: numbers for Prometheus, liveness and readiness, and its log as lines of JSON.

No words of chats stand in it, and no ids of people or chats.
"""

import asyncio
import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import socket
from threading import Event, Thread
from traceback import extract_tb
from typing import Any, Final, Literal, Self, TypeAlias

from sqlalchemy import Connection, Engine, func, select
from sqlalchemy.exc import DBAPIError

from ybs.core.envelope import Envelope
from ybs.core.events import AssistantSaid, RequestStarted, TurnFinished
from ybs.core.version import VERSION
from ybs.frontends.gateway.store import channel_states, inbox, ledger

_Labels: TypeAlias = tuple[tuple[str, str], ...]
#: A name, what it means, and its values by their labels.
_Metric: TypeAlias = tuple[str, str, Iterable[tuple[_Labels, float]]]
#: A client that says nothing is waited for so long, and so is the gateway's event loop, in seconds.
_SILENT_SECONDS: Final = 5.0
#: What a record of the log may say beside its message.
_FIELDS: Final = ("reason", "steps", "seconds", "input_tokens", "output_tokens", "usd")
_log = logging.getLogger("ybs.gateway.monitor")


class Figures:
    """Where the gateway stands, and what its sessions have done and used since it began: a sink of their events, which also logs each turn's end."""

    def __init__(self) -> None:
        self._leads: Callable[[], bool] = lambda: True
        self._loop: asyncio.AbstractEventLoop | None = None
        self.turns, self.turn_seconds = Counter[str](), 0.0
        self.requests, self.seconds = Counter[str](), Counter[str]()
        self.tokens, self.usd = Counter[tuple[str, str]](), Counter[str]()
        self._began = dict[tuple[str, str], float]()

    @property
    def state(self) -> Literal["starting", "working", "leading"]:
        """Whether it runs yet, runs turns, or has the channels as well."""
        return "starting" if self._loop is None else "leading" if self._leads() else "working"

    def serve(self, loop: asyncio.AbstractEventLoop, leads: Callable[[], bool]) -> None:
        """Note that this gateway runs in an event loop; `leads` says whether it has the channels."""
        self._leads, self._loop = leads, loop

    def is_stuck(self) -> bool:
        """Return whether the event loop does not go on; it is given some seconds."""
        goes_on = Event()
        try:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(goes_on.set)
        except RuntimeError:  # it is closed
            return True
        return self._loop is not None and not goes_on.wait(_SILENT_SECONDS)

    def __call__(self, envelope: Envelope) -> None:
        """Take an event."""
        agent = envelope.session, envelope.agent
        match envelope.event:
            case RequestStarted():
                self._began[agent] = time.monotonic()
            case AssistantSaid(model=model, usage=usage):
                self.requests[model] += 1
                now = time.monotonic()
                self.seconds[model] += now - self._began.pop(agent, now)  # pyright: ignore[reportArgumentType] - typeshed's Counter counts whole numbers alone
                self.tokens[model, "input"] += usage.input_tokens
                self.tokens[model, "cached"] += usage.cached_tokens
                self.tokens[model, "output"] += usage.output_tokens
                self.usd[model] += usage.cost_usd or 0.0  # pyright: ignore[reportArgumentType] - as above
            case TurnFinished() as end:
                self._began.pop(agent, None)
                if envelope.is_main:
                    self._ended(end)
            case _:
                pass

    def _ended(self, end: TurnFinished) -> None:
        self.turns[end.reason] += 1
        self.turn_seconds += end.duration_seconds
        values = (end.reason, end.steps, round(end.duration_seconds, 3))
        values += (end.usage.input_tokens, end.usage.output_tokens, end.usage.cost_usd)
        _log.info("a turn ended", extra=dict(zip(_FIELDS, values, strict=True)))


class Monitor:
    """Serves /metrics, /healthz and /readyz at a bound socket inside its `with`, in threads of its own: also while the gateway waits for its database.

    `engine` is asked for what waits; `channels` are the names of those that have to be connected.
    """

    def __init__(
        self, bound: socket, engine: Engine, figures: Figures, channels: Iterable[str]
    ) -> None:
        self._engine, self._figures, self._channels = engine, figures, tuple(channels)
        monitor = self

        class Handler(BaseHTTPRequestHandler):
            timeout = _SILENT_SECONDS

            def do_GET(self) -> None:
                code, text = monitor.answer(self.path)
                self.send_response(code)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: object) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] - it logs nothing
                pass

        self._server = ThreadingHTTPServer(("", 0), Handler, bind_and_activate=False)
        self._server.socket.close()
        self._server.socket = bound

    def __enter__(self) -> Self:
        Thread(target=self._server.serve_forever, name="ybs-monitor", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._engine.dispose()

    def answer(self, path: str) -> tuple[int, str]:
        """Return the status and the text of an address."""
        match path:
            case "/metrics":
                return 200, self._metrics()
            case "/healthz":
                why = "the event loop does not go on" if self._figures.is_stuck() else ""
            case "/readyz":
                why = self._not_ready()
            case _:
                return HTTPStatus.NOT_FOUND, "/metrics, /healthz, /readyz\n"
        return HTTPStatus.SERVICE_UNAVAILABLE if why else 200, f"{why or self._figures.state}\n"

    def _not_ready(self) -> str:
        if self._figures.state == "starting":
            return "starting"
        try:
            with self._engine.connect() as connection:
                if self._figures.state == "working":
                    connection.execute(select(1))
                    return ""
                up = _connected(connection)
        except DBAPIError:
            return "the database does not answer"
        return "; ".join(f"{each} is not connected" for each in self._channels if each not in up)

    def _metrics(self) -> str:
        """Return all numbers in the text format of Prometheus."""
        lines: list[str] = []
        for name, text, rows in (*self._of_all(), *_of_process(self._figures)):
            kind = "counter" if name.endswith("_total") else "gauge"
            lines += [f"# HELP ybs_{name} {text}", f"# TYPE ybs_{name} {kind}"]
            for labels, value in rows:
                named = ",".join(f'{key}="{_escaped(word)}"' for key, word in labels)
                lines.append(f"ybs_{name}{{{named}}} {value:.15g}")
        return "\n".join([*lines, ""])

    def _of_all(self) -> list[_Metric]:
        """Return what the database says, of all gateways that share it; where it does not answer, that alone."""
        up = set[str]()
        try:
            with self._engine.connect() as connection:
                found = _waiting(connection)
                if self._figures.state == "leading":
                    up = _connected(connection)
        except DBAPIError:
            found = []
        return [
            ("database_up", "1 where the database answers.", [((), bool(found))]),
            ("channel_up", "1 where this gateway is connected.", _by("channel", {each: each in up for each in self._channels})),
            *found,
        ]  # fmt: skip


def _of_process(figures: Figures) -> list[_Metric]:
    tokens = sorted(figures.tokens.items())
    return [
        ("info", "The version.", [((("version", VERSION),), 1)]),
        ("lease", "1 where this gateway has the channels.", [((), figures.state == "leading")]),
        ("turns_ended_total", "Turns that ended here.", _by("reason", figures.turns)),
        ("turn_seconds_total", "What they took.", [((), figures.turn_seconds)]),
        ("model_requests_total", "Answers of models.", _by("model", figures.requests)),
        ("model_seconds_total", "What they took.", _by("model", figures.seconds)),
        ("model_tokens_total", "Tokens; input includes cached.",
         [((("model", model), ("kind", kind)), count) for (model, kind), count in tokens]),
        ("model_usd_total", "Their cost, where it is known.", _by("model", figures.usd)),
        ("cpu_seconds_total", "CPU time of this process.", [((), time.process_time())]),
    ]  # fmt: skip


def _by(label: str, counts: Mapping[str, float]) -> list[tuple[_Labels, float]]:
    return [(((label, key),), value) for key, value in sorted(counts.items())]


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _connected(connection: Connection) -> set[str]:
    states = select(channel_states.c.name).where(channel_states.c.state == "connected")
    return {*connection.scalars(states)}


def _waiting(connection: Connection) -> list[_Metric]:
    """Count what is not done, by its state; indexes hold it, however much is done."""
    now, has_begun = time.time(), inbox.c.tries > 0
    rows = select(inbox.c.state, has_begun, func.count(), func.min(inbox.c.at))
    rows = rows.where(inbox.c.state.in_(("new", "waiting"))).group_by(inbox.c.state, has_begun)
    turns: dict[str, float] = dict.fromkeys(("new", "waiting", "running"), 0)
    waits = 0.0
    for state, begun, count, at in connection.execute(rows):
        turns["running" if begun else state] += count
        waits = waits if begun else max(now - at, waits)
    posts = select(ledger.c.state, func.count(), func.min(ledger.c.at)).group_by(ledger.c.state)
    posts = posts.where(ledger.c.state.in_(("pending", "attempting", "failed")))
    messages: dict[str, float] = dict.fromkeys(("pending", "attempting", "failed"), 0)
    late = 0.0
    for state, count, at in connection.execute(posts):
        messages[state] = count
        late = late if state == "failed" else max(now - at, late)
    posted = connection.scalar(select(func.max(ledger.c.number))) or 0
    return [
        ("turns", "Turns that are not done.", _by("state", turns)),
        ("turn_wait_seconds", "How long the first turn that has not begun waits.", [((), waits)]),
        ("deliveries", "Messages that were not delivered.", _by("state", messages)),
        ("delivery_wait_seconds", "How long the first of them waits.", [((), late)]),
        ("deliveries_posted_total", "Messages ever posted.", [((), posted)]),
    ]


class JsonLines(logging.Formatter):
    """Writes a record of the log as a line of JSON. Of an error it has the kind and the places in the code: its words may be anybody's."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        said: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        said |= {each: getattr(record, each) for each in _FIELDS if hasattr(record, each)}
        if record.exc_info and record.exc_info[0] is not None:
            said["error"] = record.exc_info[0].__name__
            frames = extract_tb(record.exc_info[2])
            said["at"] = [f"{each.name}:{each.lineno}" for each in frames]
        return json.dumps(said)
