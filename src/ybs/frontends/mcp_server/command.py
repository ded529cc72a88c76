"""`ybs mcp serve`: makes the tools of the folder, and serves them until the client goes."""

import asyncio
import logging
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from mcp.server import Server

from ybs.agent.environment import ToolEnvironment
from ybs.agent.prompt_context import PromptContext
from ybs.agent.user_hooks.definitions import read
from ybs.agent.user_hooks.hooks import SessionFacts, UserHooks
from ybs.config.installed import installed
from ybs.core.events import Emit, Event, Noticed
from ybs.core.ports import Tool
from ybs.core.remedies import Remedy
from ybs.frontends.headless.advice import advised
from ybs.frontends.headless.output import noticed, tell, warn
from ybs.frontends.headless.prompt import UsageError
from ybs.frontends.headless.run import INTERRUPTED, SIGNALS
from ybs.frontends.mcp_server.later import LaterNotices
from ybs.frontends.mcp_server.server import ToolServer, confirm
from ybs.frontends.mcp_server.stdio import streams
from ybs.frontends.mcp_server.tools import served_toolbox
from ybs.frontends.stdio import claim_stdio
from ybs.session.options import Options
from ybs.session.plugins import with_plugins
from ybs.session.questions import Questions
from ybs.session.settings import environment_of, ready_settings
from ybs.tools.external.catalogue import DESCRIBE_SECONDS

WAITING = (
    "ybs: waiting for an MCP client on standard input. An agent that has `ybs mcp serve` in its settings starts it "
    "by itself; Ctrl-C ends it."
)


def serve(options: Options, tools: str) -> int:
    """Serve the tools of the folder, those named in `tools` alone where there are any; return the exit code.

    Raises ConfigError for settings that make no sense. 2: there is no tool of a name; 130 and the like: it was interrupted.
    """
    # Python would write what the SDK logs to the terminal, past the gate; what clients send stands in it.
    logging.getLogger("mcp").addHandler(logging.NullHandler())
    if sys.stdin.isatty():
        tell(WAITING)
    names = [name for each in tools.split(",") if (name := each.strip())]
    return asyncio.run(Run(options, names).go())


class Run:
    """One run of the server, with the signals that may end it."""

    def __init__(self, options: Options, names: Sequence[str]) -> None:
        self._options, self._names = options, names
        self._signal_code = 0
        self._is_ending = False
        self._told = set[str]()

    async def go(self) -> int:
        """Serve until the client goes or a signal comes; return the exit code."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        for number, code in SIGNALS.items():
            loop.add_signal_handler(number, self._stop, code, task)
        try:
            async with served(self._options, self._names, self._tell) as server:
                try:
                    async with streams(*claim_stdio()) as (incoming, outgoing):
                        await server.run(incoming, outgoing, server.create_initialization_options())
                        self._is_ending = True
                finally:
                    self._is_ending = True
        except UsageError as error:
            tell(f"ybs: {error}")
            return 2
        except asyncio.CancelledError:
            return self._signal_code or INTERRUPTED
        return self._signal_code

    def _stop(self, code: int, task: "asyncio.Task[int] | None") -> None:
        if not (self._signal_code or self._is_ending or task is None):
            task.cancel()
        self._signal_code = self._signal_code or code

    def _tell(self, event: Event) -> None:
        """Write what the person should know to standard error, once: some clients read little of that."""
        if isinstance(event, Noticed) and event.text not in self._told:
            self._told.add(event.text)
            tell(f"ybs: {noticed(event)}")


@asynccontextmanager
async def served(options: Options, names: Sequence[str], emit: Emit) -> AsyncGenerator[Server[Any]]:
    """Make the server of the tools of a folder; when this ends, so does all that they have started. Raises UsageError."""
    options = with_plugins(options, installed())
    ask = partial(Questions().ask, confirm=confirm)
    environment = environment_of(options, ready_settings(options), ask)
    context = PromptContext(environment)
    hooks = _user_hooks(environment, options, emit)
    try:
        foreign = await _foreign(environment, options)
        around = (LaterNotices(environment, emit), *options.hooks, *hooks)
        own = served_toolbox(environment, context, foreign, names, around)
        _warn(environment)
        await own.open(emit)
        toolbox = environment.secrets.guarded(own)
        yield ToolServer(environment, toolbox, emit, hooks).server
    finally:
        for each in hooks:
            await each.aclose("other")
        await context.aclose()
        await environment.aclose()


async def _foreign(environment: ToolEnvironment, options: Options) -> Sequence[Tool]:
    """Return the tools of packages beside ybs, and the person's programs that are tools."""
    if not environment.has_external_tools():
        return options.tools
    catalogue = environment.external_tools
    try:
        await catalogue.load(DESCRIBE_SECONDS)
    finally:
        await catalogue.aclose()
    return (*options.tools, *catalogue.usable)


def _user_hooks(environment: ToolEnvironment, options: Options, emit: Emit) -> Sequence[UserHooks]:
    """Return the person's hooks, which judge the calls of other agents too."""
    section = environment.config.hooks
    if not section or options.dry_run:
        return ()
    found = read(section)
    warn(found.problems)
    facts = SessionFacts(name="mcp", source="startup")
    return [UserHooks(found.hooks, environment, emit, lambda: facts)]


def _warn(environment: ToolEnvironment) -> None:
    warn(environment.loaded.warnings)
    review = environment.loaded.review
    if review is not None and review.needs_question:
        tell(f"ybs: {advised('', (Remedy('trust_project'),))}.")
