"""LlamaCppModel: a Model that starts its own server, or finds the one that runs, at the first request."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Final

from msgspec.structs import replace

from ybs.config.schema import Config
from ybs.core.errors import ProviderDown
from ybs.core.events import Event, Noticed, RequestRetried
from ybs.core.ports import Request
from ybs.providers.local import hardware, models, server
from ybs.providers.local.facts import FACTS, STARTER_NAME
from ybs.providers.registry import open_model
from ybs.providers.remote import RemoteModel

WINDOW: Final = 8192
#: A start that takes longer is announced, then reported this often, in seconds.
ANNOUNCED_AFTER: Final = 0.5
REPORTED_EVERY: Final = 5.0


class LlamaCppModel:
    """A model in a server of its own. Satisfies `core.ports.Model`."""

    provider: Final = "llamacpp"

    def __init__(self, config: Config, name: str, environ: Mapping[str, str]) -> None:
        """Choose the file. Raises ConfigError when it is not there."""
        self._path = models.find_model(name, STARTER_NAME)
        self._name, self._environ = name, environ
        self._window = config.context.max_tokens or WINDOW
        # A small model keeps to its task only without chance; whoever sets a temperature wants it.
        llm = (
            config.llm
            if config.llm.temperature is not None
            else replace(config.llm, temperature=0.0)
        )
        self._config = replace(config, llm=llm)
        self._server: server.Running | None = None
        self._inner: RemoteModel | None = None

    @property
    def name(self) -> str:
        """The model's name."""
        return self._name

    @property
    def window(self) -> int:
        """The window that the server is started with."""
        return self._window

    @property
    def max_tokens(self) -> int:
        """The longest answer, in tokens: a quarter of the window at most."""
        return min(self._config.llm.max_tokens, self._window // 4)

    @property
    def endpoint(self) -> str:
        """Where the server answers, once it runs."""
        return self._server.endpoint if self._server else "(starts when needed)"

    async def warm_up(self) -> None:
        """Do nothing: a gigabyte is read into memory only when a question needs it."""

    async def detect_window(self) -> int:
        """Return the window; it is known without asking."""
        return self._window

    async def list_models(self) -> list[str]:
        """List the starter model and the files beside it."""
        names = [file.name for file in models.list_models() if file.path != models.starter_path()]
        return [STARTER_NAME, *names]

    async def aclose(self) -> None:
        """Close connections. The server stays for the next run and ends by itself when unused."""
        if self._inner is not None:
            await self._inner.aclose()

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Answer a request, after starting the server if need be; once more if it died meanwhile."""
        if not self._is_up():
            async with aclosing(self._start()) as starting:
                async for event in starting:
                    yield event
        has_output = False
        try:
            async with aclosing(self._ask(request)) as events:
                async for event in events:
                    has_output = True
                    yield event
            return
        except ProviderDown:
            if has_output or await self._is_healthy():
                raise
        async with aclosing(self._start()) as starting, aclosing(self._ask(request)) as events:
            async for event in starting:
                yield event
            async for event in events:
                yield event

    async def _ask(self, request: Request) -> AsyncGenerator[Event, None]:
        assert self._inner is not None  # noqa: S101 - set by _start
        server.mark_used()
        async with aclosing(self._inner.stream(request)) as events:
            async for event in events:
                if not isinstance(event, RequestRetried):
                    yield event
        server.mark_used()

    def _is_up(self) -> bool:
        return self._server is not None and server.running() == self._server

    async def _is_healthy(self) -> bool:
        found = self._server
        return found is not None and await asyncio.to_thread(server.is_healthy, found)

    async def _start(self) -> AsyncGenerator[Event, None]:
        waits: asyncio.Queue[float] = asyncio.Queue()
        start = asyncio.create_task(
            server.ensure(
                self._path,
                alias=self._name,
                window=self._window,
                threads=hardware.threads(self._environ),
                waiting=waits.put_nowait,
            )
        )
        try:
            async with aclosing(_reports(start, waits)) as events:
                async for event in events:
                    yield event
            self._server = await start
        finally:
            if not start.done():
                start.cancel()
                await asyncio.wait((start,))
        if self._inner is not None:
            await self._inner.aclose()
        at = replace(
            FACTS,
            endpoint=self._server.endpoint,
            api_key=self._server.key,
            window=self._window,
            make=None,
        )
        self._inner = open_model(at, self._config, model=self._name, environ=self._environ)


async def _reports(
    start: "asyncio.Task[server.Running]", waits: "asyncio.Queue[float]"
) -> AsyncGenerator[Event, None]:
    """Say how long the start takes, for as long as it does."""
    due = ANNOUNCED_AFTER
    while not start.done():
        wait = asyncio.ensure_future(waits.get())
        await asyncio.wait((start, wait), return_when=asyncio.FIRST_COMPLETED)
        if not wait.done():
            wait.cancel()
            return
        if wait.result() >= due:
            due = wait.result() + REPORTED_EVERY
            yield Noticed(level="info", text=f"starting the local model ({wait.result():.0f} s)")
