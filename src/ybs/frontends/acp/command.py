"""`ybs acp`: serves an editor on standard input and output, until it goes."""

import asyncio
import logging
import sys
import traceback
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final, TextIO

from ybs.core.threads import in_thread
from ybs.frontends.acp.handshake import Handshake
from ybs.frontends.acp.pipe import EditorPipe
from ybs.frontends.headless.output import tell
from ybs.frontends.headless.run import INTERRUPTED, SIGNALS
from ybs.frontends.stdio import claim_stdio
from ybs.session.options import Options

WAITING: Final = (
    "ybs: waiting for an editor on standard input. An editor that has `ybs acp` in its settings starts it by itself "
    "(`ybs setup editor` prints these settings); Ctrl-C ends it."
)
WITHOUT_SDK: Final = "ybs: `ybs acp` needs the package agent-client-protocol; install it with: pip install 'ybs[acp]'"
#: A log of more bytes begins anew.
_MOST_LOG_BYTES: Final = 1_000_000


def serve(options: Options) -> int:
    """Serve an editor; return the exit code. 1: the SDK is missing; 130 and the like: it was interrupted."""
    if find_spec("acp") is None:
        tell(WITHOUT_SDK)
        return 1
    if sys.stdin.isatty():
        tell(WAITING)
    begin_log(options)
    return asyncio.run(_Run(options).go())


class _Run:
    """One run, with the signals that may end it."""

    def __init__(self, options: Options) -> None:
        self._options, self._signal_code = options, 0

    async def go(self) -> int:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        for number, code in SIGNALS.items():
            loop.add_signal_handler(number, self._stop, code, task)
        try:
            await served(self._options, *claim_stdio())
        except asyncio.CancelledError:
            return self._signal_code or INTERRUPTED
        return self._signal_code

    def _stop(self, code: int, task: "asyncio.Task[Any] | None") -> None:
        if not self._signal_code and task is not None:
            task.cancel()
        self._signal_code = self._signal_code or code


async def served(options: Options, read_from: int, write_to: TextIO) -> None:
    """Serve the editor that is read from and written to, until it goes."""
    handshake = Handshake(options)
    pipe = EditorPipe(read_from, write_to, handshake)
    try:
        if not await pipe.opened():
            return
        acp = await in_thread(lambda: import_module("acp"))
        agents = await in_thread(lambda: import_module("ybs.frontends.acp.agent"))
        agent = agents.EditorAgent(options, handshake)
        try:  # the SDK has resume, fork and close behind this switch
            await acp.run_agent(agent, pipe, use_unstable_protocol=True)
        finally:
            await agent.aclose()
    finally:
        await pipe.close()


def begin_log(options: Options) -> None:
    """Have what goes wrong written into `acp.log` in the state folder; in an incognito run nothing is."""
    file, handler = options.host.state_folder / "acp.log", logging.NullHandler()
    if not options.overrides.get("incognito.enabled"):
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            is_full = file.exists() and file.stat().st_size > _MOST_LOG_BYTES
            handler = logging.FileHandler(file, "w" if is_full else "a", "utf-8", delay=True)
        except OSError:
            pass  # ybs works without
    handler.setFormatter(_Plain("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.getLogger().addHandler(handler)


class _Plain(logging.Formatter):
    """Says of an error where it happened and of which kind it is: its words may hold what the editor sent."""

    def formatException(self, ei: Any) -> str:
        return "".join(traceback.format_tb(ei[2])) + str(getattr(ei[0], "__qualname__", ei[0]))
