"""Runs ybs and kills the process at a named point: `python -m chat_kills POINT COUNT WORDS...` dies when the point is passed COUNT times.

The point `-` kills nothing, nor does `newer`, which makes it a gateway of a later version.
"""

import os
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

GATEWAY = "ybs.frontends.gateway"
#: A point: the module, what is called there, and whether the process dies before or after that.
POINTS: dict[str, tuple[str, str, str]] = {
    "received": (f"{GATEWAY}.gateway", "Gateway.take", "before"),
    "kept": (f"{GATEWAY}.gateway", "Gateway.take", "after"),
    "admitted": (f"{GATEWAY}.people", "People.admit", "after"),
    "decided": (f"{GATEWAY}.turns", "Turns.enqueue", "before"),
    "waiting": (f"{GATEWAY}.turns", "Engine.enqueue", "before"),
    "enqueued": (f"{GATEWAY}.turns", "Engine.enqueue", "after"),
    "taken": (f"{GATEWAY}.turns", "Turns.run", "before"),
    "beginning": (f"{GATEWAY}.chats", "Beginning.before_turn", "before"),
    "begun": (f"{GATEWAY}.chats", "Beginning.before_turn", "after"),
    "answered": (f"{GATEWAY}.outbox", "Outbox.post", "before"),
    "posted": (f"{GATEWAY}.outbox", "Outbox.post", "after"),
    "sending": (f"{GATEWAY}.telegram", "Telegram.send", "before"),
    "sent": (f"{GATEWAY}.telegram", "Telegram.send", "after"),
    "edited": (f"{GATEWAY}.telegram", "Telegram.edit", "after"),
    "writing": (f"{GATEWAY}.store", "Store.do", "before"),
    "written": (f"{GATEWAY}.store", "Store.do", "after"),
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


def set_trap(point: str, count: int) -> None:
    """Have the process die where a point is passed for the `count`-th time."""
    module, path, when = POINTS[point]
    owner = getattr(import_module(module), path.partition(".")[0])
    name = path.partition(".")[2]
    real: Callable[..., Any] = getattr(owner, name)
    left = [count]

    def passed() -> None:
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)

    async def trapped(*arguments: Any, **options: Any) -> Any:
        if when == "before":
            passed()
        result = await real(*arguments, **options)
        if when == "after":
            passed()
        return result

    def told(session: Any, event: Any, **options: Any) -> None:
        real(session, event, **options)
        if type(event).__name__ == when:
            passed()

    setattr(owner, name, trapped if when in ("before", "after") else told)


if __name__ == "__main__":
    if sys.argv[1] == "newer":
        lease: Any = import_module(f"{GATEWAY}.lease")
        lease.PROTOCOL += 1  # as of another version
    elif sys.argv[1] != "-":
        set_trap(sys.argv[1], int(sys.argv[2]))
    from ybs.cli import main

    sys.exit(main(sys.argv[3:]))
