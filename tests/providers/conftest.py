"""Fixtures of the providers' tests."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from msgspec.structs import replace
from raw_http import Reply, Scripted

from ybs.providers.http.client import HttpClient, Patience
from ybs.providers.http.failures import Site
from ybs.providers.remote import RemoteModel, Retry
from ybs.providers.wire.adapter import RequestOptions
from ybs.providers.wire.openai import OpenAIAdapter


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


@pytest.fixture
async def model_of():
    """Give a function that makes a model of a server; its pauses are noted in `waits`, not waited."""
    made: list[RemoteModel] = []

    def make(server, *, adapter=None, retry=None, terms=None, patience=None, **options):
        site = Site(provider="p", endpoint=server.url, host="h:1", model="m")
        client = HttpClient(site, patience=patience or Patience(first=5, later=5))
        waits: list[float] = []

        async def sleep(seconds: float) -> None:
            waits.append(seconds)

        given = RequestOptions(**{"model": "m", **options})
        adapter = adapter or OpenAIAdapter()
        kept = replace(retry or Retry(attempts=2), sleep=sleep)
        made.append(RemoteModel(adapter, client, given, terms, retry=kept))
        made[-1].waits = waits
        return made[-1]

    yield make
    for model in made:
        await model.aclose()
