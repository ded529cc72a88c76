"""Runs ybs and kills the process at a named point: `python -m chat_kills WORDS...`.

The file `trap` in its home has the point, and how many times it is passed until then; on SIGCONT the file is read again. The point `-`
kills nothing, nor does `newer`, which makes it a gateway of a later version.
"""

import os
import select
import signal
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

GATEWAY = "ybs.frontends.gateway"
#: A point: the module, what is called there, and whether the process dies before or after that.
POINTS: dict[str, tuple[str, str, str]] = {
    "received": (f"{GATEWAY}.gateway", "Gateway.take", "before"),
    "kept": (f"{GATEWAY}.gateway", "Gateway.take", "after"),
    "admitted": (f"{GATEWAY}.people", "People.admit", "after"),
    "decided": (f"{GATEWAY}.turns", "Turns.enqueue", "before"),
    "enqueued": (f"{GATEWAY}.turns", "Turns.enqueue", "after"),
    "taken": (f"{GATEWAY}.turns", "Turns.run", "before"),
    "beginning": (f"{GATEWAY}.chats", "_Beginning.before_turn", "before"),
    "noted": (f"{GATEWAY}.chats", "Chats.began", "after"),
    "begun": (f"{GATEWAY}.chats", "_Beginning.before_turn", "after"),
    "answered": (f"{GATEWAY}.outbox", "Outbox.post", "before"),
    "posted": (f"{GATEWAY}.outbox", "Outbox.post", "after"),
    "sending": (f"{GATEWAY}.telegram", "Telegram.send", "before"),
    "sent": (f"{GATEWAY}.telegram", "Telegram.send", "after"),
    "edited": (f"{GATEWAY}.telegram", "Telegram.edit", "after"),
    "writing": (f"{GATEWAY}.store", "GatewayStore.do", "before"),
    "written": (f"{GATEWAY}.store", "GatewayStore.do", "after"),
    **{
        kind: ("ybs.session.session", "Session.emit", kind)
        for kind in (
            "SessionStarted",
            "UserSaid",
            "RequestStarted",
            "AssistantSaid",
            "ConfirmationAsked",
            "ConfirmationAnswered",
            "ToolStarted",
            "ToolFinished",
            "TurnFinished",
        )
    },
}


_left: dict[str, int] = {}  # how many times each point may still be passed
_wrapped = set[str]()


def set_trap(point: str, count: int) -> None:
    """Have the process die where a point is passed for the `count`-th time from now on, and nowhere else."""
    _left.clear()
    if point in POINTS:
        _left[point] = count
        _wrap(point)


def _passed(point: str) -> None:
    if point in _left:
        _left[point] -= 1
        if not _left[point]:
            os.kill(os.getpid(), signal.SIGKILL)


def _wrap(point: str) -> None:
    module, path, when = POINTS[point]
    owner = getattr(import_module(module), path.partition(".")[0])
    name = path.partition(".")[2]
    real: Callable[..., Any] = getattr(owner, name)
    if point in _wrapped:
        return
    _wrapped.add(point)

    async def trapped(*arguments: Any, **options: Any) -> Any:
        if when == "before":
            _passed(point)
        result = await real(*arguments, **options)
        if when == "after":
            _passed(point)
        return result

    def told(session: Any, event: Any, **options: Any) -> None:
        real(session, event, **options)
        if type(event).__name__ == when:
            _passed(point)

    setattr(owner, name, trapped if when in ("before", "after") else told)


def _read_trap(*_: Any) -> None:
    point, count = (Path.home() / "trap").read_text().split()
    set_trap(point, int(count))


def _sleep(seconds: float) -> None:
    """Sleep by `select`: under libfaketime `time.sleep` ends at once, or raises EINVAL, as on no system."""
    select.select((), (), (), seconds)


if __name__ == "__main__":
    if "FAKETIME_TIMESTAMP_FILE" in os.environ:
        time.sleep = _sleep
    for each in POINTS:
        _wrap(each)  # before anything holds on to what is called there
    signal.signal(signal.SIGCONT, _read_trap)
    _read_trap()
    if (Path.home() / "trap").read_text().startswith("newer"):
        lease: Any = import_module(f"{GATEWAY}.lease")
        lease.PROTOCOL += 1  # as of another version
    from ybs.cli import main

    sys.exit(main(sys.argv[1:]))
