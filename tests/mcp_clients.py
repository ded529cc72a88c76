"""The SDK's own client at the server of `ybs mcp serve`, in memory or as a process. Importing it costs a second of CPU."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError as MCPError

from hosts import this_host
from ybs.core.events import Event
from ybs.frontends.mcp_server.command import served
from ybs.session.options import Options


class Person:
    """Answers the questions that the client shows: with a word, an action such as `decline`, an `error`, or never (`wait`).

    `asked` are the forms; `is_asked` is set by the first one.
    """

    def __init__(self, *answers: str) -> None:
        self.answers, self.asked = list(answers), list[types.ElicitRequestFormParams]()
        self.is_asked = asyncio.Event()

    async def __call__(self, context: Any, params: Any) -> types.ElicitResult | types.ErrorData:
        self.asked.append(params)
        self.is_asked.set()
        said = self.answers.pop(0)
        if said == "wait":
            await asyncio.Event().wait()
        if said == "error":
            return types.ErrorData(code=types.INTERNAL_ERROR, message="no form here")
        if said in ("decline", "cancel"):
            return types.ElicitResult(action=said)
        return types.ElicitResult(action="accept", content={"answer": said})

    @property
    def choices(self) -> list[list[str]]:
        """What could be answered to each."""
        return [each.requested_schema["properties"]["answer"]["enum"] for each in self.asked]


@asynccontextmanager
async def in_memory(
    folder: Path,
    generation: str,
    *,
    person: Person | None = None,
    names: Sequence[str] = (),
    told: list[Event] | None = None,
    **options: Any,
) -> AsyncGenerator[Client]:
    """Connect a client to a server in this process; `generation` is `legacy` or `auto`."""
    events = [] if told is None else told
    made = Options.of(folder, {"host": this_host(), **options})
    async with (
        served(made, names, events.append) as server,
        Client(server, mode=generation, elicitation_callback=person) as client,
    ):
        yield client


@asynccontextmanager
async def as_process(
    folder: Path, generation: str, *words: str, person: Person | None = None, **more: Any
) -> AsyncGenerator[Client]:
    """Connect a client to a process of `ybs mcp serve`."""
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "ybs", "mcp", "serve", *words], cwd=folder
    )
    with (folder.parent / "errors").open("w") as errors:
        transport = stdio_client(command, errlog=errors)
        async with Client(
            transport, mode=generation, elicitation_callback=person, **more
        ) as client:
            yield client


def text_of(result: types.CallToolResult) -> str:
    """Return the text of a result."""
    return "\n".join(each.text for each in result.content if isinstance(each, types.TextContent))
