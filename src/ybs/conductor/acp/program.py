"""The program of another agent: started in the sandbox with its login and the network, and its messages as the SDK wants them.

It sees the project, or the copy that it works in, the system's programs, a home folder of its own in each project, the files that hold its login,
and the variables that the settings name; of the rest of the person's files nothing.
"""

import asyncio
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Any, Final

from ybs.agent.environment import ToolEnvironment
from ybs.conductor.acp.presets import command_of
from ybs.config.sections import AcpAgent
from ybs.config.tree import is_object
from ybs.core.decoding import object_in
from ybs.security.loop_process import LoopProcess
from ybs.security.own_programs import IN_PROJECT, entering
from ybs.security.sandbox.launch import Access, Launch, Starter
from ybs.security.sandbox.resident import Resident, may_open
from ybs.tools.mcp.launching import needed_by
from ybs.tools.shell.orphans import CommandMark
from ybs.tools.shell.peer import Peer
from ybs.trust.decision import home_mark

#: A turn has no more messages than this; each costs ybs a fraction of a millisecond.
MOST_MESSAGES: Final = 200_000
#: So long may one take to end by itself that was told to stop, in seconds.
_STOPPING_SECONDS: Final = 0.2


def launched(
    name: str, agent: AcpAgent, own: ToolEnvironment, *, is_held: bool
) -> tuple[Launch, CommandMark]:
    """Return what starts an agent in the folder of its environment, in the sandbox where it `is_held`, and the mark of its processes.

    Raises ConfigError where it is not installed, Refused where there is no sandbox, and OSError.
    """
    host, roots = own.host, own.roots
    command = command_of(agent, host)
    key = f"acp-{re.sub(r'[^A-Za-z0-9_-]', '_', name)}"
    start = own.workspace.own_programs.start(IN_PROJECT, in_sandbox=is_held)
    declared = {**_seen(start.environ, agent.environment), **agent.env}
    if not is_held:
        folder, access = start.folder, Access(declared=declared)
        launch = Starter().start(entering(str(folder), command), folder, start.environ, access)
        return own.workspace.shells.marked(launch)
    project = own.original or own  # a copy has no home of its own
    # Of what may be read in a copy the links lead into the project. The rest was allowed to ybs's tools, which read it on the agent's behalf.
    linked = [each for each in roots.reading if each.is_relative_to(project.folder)]
    shown = [*needed_by(command, host, roots.folder), *linked]
    resident = Resident(
        key=f"{key}-{home_mark(host, project.folder)}",
        command=command,
        project="read" if agent.read_only else "write",
        network=True,
        shown=tuple(path for path in shown if may_open(host, path)),
        lent=tuple(host.expand(each, host.home) for each in agent.login),
        declared=declared,
        start=start,
    )
    return own.workspace.shells.marked(own.sandbox.start_resident(resident))


def _seen(environ: Mapping[str, str], patterns: tuple[str, ...]) -> dict[str, str]:
    return {
        name: value
        for name, value in environ.items()
        if any(fnmatchcase(name, pattern) for pattern in patterns)
    }


class AcpTransport(Peer):
    """The agent's messages. Satisfies `acp.Transport`: nothing that the agent sends makes the SDK raise, or write to the terminal."""

    _process: LoopProcess | None

    async def open(self) -> None:
        """Start the agent. Raises what `start` raises."""
        process = await self.begin()
        self._received = asyncio.Queue[dict[str, Any] | None](1)
        self._count = 0
        self._tasks.append(asyncio.create_task(self._pass_in(process)))

    async def _pass_in(self, process: LoopProcess) -> None:
        await self.read(process, self._pass_on)
        self.ended.set()
        await self._received.put(None)

    async def _pass_on(self, line: bytes) -> bool:
        message = _message_in(line)
        if message is None:
            self.note_noise(line)
            return True
        self._count += 1
        if self._count > MOST_MESSAGES:
            self.problem = f"it sent more than {MOST_MESSAGES:,} messages"
            return False
        await self._received.put(message)
        return True

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message; None where no more comes."""
        await asyncio.sleep(0)  # the SDK makes a task of each message, which has its turn first
        return await self._received.get()

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message. What cannot be sent any more is left: whoever waits for an answer hears that the agent ended."""
        if self._process is not None:
            with suppress(ConnectionError, RuntimeError):
                self.write(self._process, json.dumps(message).encode())

    async def close(self) -> None:
        """Leave the program: `stop` ends it."""

    async def stop(self, *, is_hurried: bool) -> None:
        """End the program and all that it started."""
        await self.end(_STOPPING_SECONDS if is_hurried else None)


def _message_in(line: bytes) -> dict[str, Any] | None:
    """Return the message of JSON-RPC in a line, in the form that the SDK takes as given; None where there is none."""
    if (message := object_in(line)) is None:
        return None
    method, number = message.get("method"), message.get("id")
    if method is None and not (
        isinstance(number, int) and ("result" in message or "error" in message)
    ):
        return None
    if not isinstance(method, str | None) or not isinstance(number, int | str | None):
        return None
    if "error" in message and not is_object(message["error"]):
        message["error"] = {}
    return message
