"""Fixtures of the providers' tests."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from raw_http import Reply, Scripted


@pytest.fixture
async def serve() -> AsyncIterator[Callable[..., Awaitable[Scripted]]]:
    """Give a function that starts a server with replies."""
    started: list[Scripted] = []

    async def start(*replies: Reply) -> Scripted:
        server = Scripted(replies)
        await server.start()
        started.append(server)
        return server

    yield start
    for server in started:
        await server.stop()
