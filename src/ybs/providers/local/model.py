"""LlamaCppModel: a Model that starts its own server, or finds the one that runs, at the first request."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Final, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ybs.config import private_file
from ybs.config.host import Host
from ybs.config.schema import Config
from ybs.core.decoding import from_json
from ybs.core.errors import ConfigError, ModelError, ProviderDown, YbsError
from ybs.core.events import Event, Noticed, PromptRead, RequestRetried
from ybs.core.ports import Request
from ybs.providers.local import hardware, models, prefix_slot, server
from ybs.providers.local.choice import CPU_WINDOW
from ybs.providers.local.facts import FACTS, STARTER_NAME
from ybs.providers.local.process import held
from ybs.providers.local.template import (
    ChatTemplate,
    ModelHead,
    is_measured,
    makes_calls,
    read_head,
    templates_of,
)
from ybs.providers.registry import open_model
from ybs.providers.remote import RemoteModel

MOST_NOTES = 100
NO_CALLS: Final = "none"


class ModelNotes(Struct, frozen=True, kw_only=True):
    """What is known of the file that had this size and was changed at this time.

    `template` names the chat template that the model answers with real tool calls: empty where none was tried yet, `NO_CALLS` where
    it did so with none.
    """

    size: int
    changed_ns: int
    head: ModelHead
    template: str = ""


def notes_of(host: Host, path: Path) -> ModelNotes:
    """Return the facts of a model file, read now unless known. Raises ConfigError if it cannot be read."""
    try:
        facts = path.stat()
    except OSError as error:
        raise ConfigError(f"The model file {path} cannot be read: {error.strerror}") from error
    known = _all(host).get(str(path))
    if known and (known.size, known.changed_ns) == (facts.st_size, facts.st_mtime_ns):
        return known
    notes = ModelNotes(size=facts.st_size, changed_ns=facts.st_mtime_ns, head=read_head(path))
    keep(host, path, notes)
    return notes


def keep(host: Host, path: Path, notes: ModelNotes) -> None:
    """Write the notes of a file down. What cannot be written is found out again another time."""
    kept = {name: each for name, each in _all(host).items() if name != str(path)}
    newest = dict([*kept.items(), (str(path), notes)][-MOST_NOTES:])
    try:
        private_file.replace(_file(host), msgspec.json.encode(newest))
    except (OSError, YbsError):
        return


def _file(host: Host) -> Path:
    return host.state_folder / "models.json"


def _all(host: Host) -> dict[str, ModelNotes]:
    try:
        return from_json(private_file.read(_file(host)) or b"{}", dict[str, ModelNotes])
    except (OSError, YbsError, msgspec.DecodeError):
        return {}


#: A start that takes longer is announced, then reported this often, in seconds.
ANNOUNCED_AFTER: Final = 0.5
REPORTED_EVERY: Final = 30.0
#: A server that nobody has used for so long ends.
KEPT_MINUTES: Final = 15.0
#: A model that is tried has said its call by then, or says too much.
TRIAL_TOKENS: Final = 96
_TRIAL_WORDS: Final = (
    "trying whether {name} answers with real tool calls; this is done once for each model"
)
WAITING: Final = "waiting for another ybs, which is starting the local model"
#: Takes seconds of waiting, warnings, and notices.
_Told: TypeAlias = "asyncio.Queue[float | str | Noticed]"
_IN_ONE_PIECE: Final = "The local model's answer broke off, so it is asked for again in one piece."


class LlamaCppModel:
    """A model in a server of its own. Satisfies `core.ports.Model`."""

    provider: Final = "llamacpp"

    def __init__(self, host: Host, config: Config, name: str) -> None:
        """Choose the file. Raises ConfigError when it is not there."""
        self._path = models.find_model(host, name, STARTER_NAME)
        self._host, self._name = host, name
        self._threads = hardware.asked_threads(host.environ)
        # A small model keeps to its task only without chance; whoever sets a temperature wants it.
        llm = (
            config.llm
            if config.llm.temperature is not None
            else replace(config.llm, temperature=0.0)
        )
        self._config = replace(config, llm=llm)
        self._lease = server.ServerLease(host)
        self._server: server.RunningServer | None = None
        self._inner: RemoteModel | None = None
        self._streams = self._has_calls = True
        self._has_crashed = self._is_fresh = False

    @property
    def name(self) -> str:
        """The model's name."""
        return self._name

    @property
    def window(self) -> int:
        """The window that the server has; before it is started the one that it will have on most machines."""
        if self._server is not None:
            return self._server.window
        return self._config.context.max_tokens or CPU_WINDOW

    @property
    def max_tokens(self) -> int:
        """The longest answer, in tokens: a quarter of the window at most."""
        return min(self._config.llm.max_tokens, self.window // 4)

    @property
    def endpoint(self) -> str:
        """Where the server answers, once it runs."""
        return self._server.socket if self._server else "(starts when needed)"

    async def warm_up(self) -> None:
        """Do nothing: a gigabyte is read into memory only when a question needs it."""

    async def detect_window(self) -> int:
        """Return the window; it is known without asking."""
        return self.window

    async def list_models(self) -> list[str]:
        """List the starter model and the files beside it."""
        starter = models.starter_path(self._host)
        names = [each.name for each in models.list_models(self._host) if each.path != starter]
        return [STARTER_NAME, *names]

    async def aclose(self) -> None:
        """Close connections. The server stays for the next run and ends by itself when unused."""
        self._lease.release()
        if self._inner is not None:
            await self._inner.aclose()

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Answer a request, after starting the server if need be; once more if it died meanwhile.

        A server that died while it answered is started with less memory. Where it lives and its stream broke off, the
        answer is asked for in one piece.
        """
        has_output = False
        try:
            async with aclosing(self._answer(request, is_new=not await self._is_up())) as events:
                async for event in events:
                    has_output = has_output or not isinstance(event, Noticed | PromptRead)
                    yield event
            return
        except ProviderDown:
            may_help = await self._find_out_why()
            if has_output or not may_help:
                raise
        if not self._has_crashed:
            self._streams = False
            yield Noticed(level="warning", text=_IN_ONE_PIECE)
        async with aclosing(self._answer(request, is_new=True)) as events:
            async for event in events:
                yield event

    async def _answer(self, request: Request, *, is_new: bool) -> AsyncGenerator[Event, None]:
        if is_new:
            async with aclosing(self._start(request)) as starting:
                async for event in starting:
                    yield event
        assert self._inner is not None  # noqa: S101 - set by _start
        server.mark_used(self._host)
        async with aclosing(self._inner.stream(request)) as events:
            async for event in events:
                if not isinstance(event, RequestRetried):
                    yield event
        server.mark_used(self._host)

    async def _find_out_why(self) -> bool:
        """Look at a server that failed to answer; return whether another try may help."""
        if self._server is None:  # it did not start
            return False
        self._has_crashed = not await asyncio.to_thread(server.is_healthy, self._server)
        return self._has_crashed or self._streams

    async def _is_up(self) -> bool:
        return self._server is not None and await server.find_running(self._host) == self._server

    async def _start(self, request: Request) -> AsyncGenerator[Event, None]:
        told: _Told = asyncio.Queue()
        crashed = self._server if self._has_crashed else None
        self._server, self._has_crashed = None, False
        start = asyncio.create_task(self._ensure(request, told, crashed))
        try:
            async with aclosing(_reports(start, told)) as events:
                async for event in events:
                    yield event
            await start
        finally:
            if not start.done():
                start.cancel()
                await asyncio.wait((start,))

    async def _ensure(
        self, request: Request, told: _Told, crashed: server.RunningServer | None
    ) -> None:
        """Have a server that knows how the prompts of this request's kind begin.

        One run at a time: what others would say meanwhile would spoil a trial, or be kept with the beginning.
        """

        def tell(words: str) -> None:
            told.put_nowait(Noticed(level="info", text=words))

        lock = self._host.state_folder / "llama.start.lock"
        async with held(lock, lambda: tell(WAITING)):
            await self._ensure_template(told, crashed)
            is_fresh, self._is_fresh = self._is_fresh, False
            if is_fresh and self._server is not None and self._inner is not None:
                may_write = not self._config.incognito.enabled
                await prefix_slot.prepare(
                    self._host, self._server, self._inner, request, tell, may_write=may_write
                )

    async def _ensure_template(self, told: _Told, crashed: server.RunningServer | None) -> None:
        """Have a server, with a chat template that the model answers with real tool calls; each model is tried once."""
        notes = await asyncio.to_thread(notes_of, self._host, self._path)
        if not await self._serve_known(notes, told, crashed):
            await self._try_templates(notes, told, crashed)

    async def _serve_known(
        self, notes: ModelNotes, told: _Told, crashed: server.RunningServer | None
    ) -> bool:
        """Have a server with the template that the model is known to answer; return whether there is one."""
        found = list(templates_of(self._path, notes.head))
        known = found[0].name if is_measured(self._path) else notes.template
        if not known:
            return False
        chosen = [each for each in found if each.name == known]
        self._has_calls = notes.template != NO_CALLS
        await self._serve(notes, chosen[0] if chosen else ChatTemplate("own"), told, crashed)
        return True

    async def _try_templates(
        self, notes: ModelNotes, told: _Told, crashed: server.RunningServer | None
    ) -> None:
        """Have a server with the first template that the model answers with a real call, and keep which one that is."""
        self._has_calls = True
        for template in templates_of(self._path, notes.head):
            await self._serve(notes, template, told, crashed)
            if self._server is not None and self._server.template != template.text:
                return  # another run uses it with a template of its own: a trial says nothing about this one
            told.put_nowait(Noticed(level="info", text=_TRIAL_WORDS.format(name=self._name)))
            if await self._makes_calls():
                break
        else:
            template, self._has_calls = ChatTemplate(NO_CALLS), False
            await self._serve(notes, template, told, crashed)
        await asyncio.to_thread(
            keep, self._host, self._path, replace(notes, template=template.name)
        )

    async def _serve(
        self,
        notes: ModelNotes,
        template: ChatTemplate,
        told: _Told,
        crashed: server.RunningServer | None,
    ) -> None:
        wanted = server.Wanted(
            model=str(self._path),
            alias=self._name,
            shape=notes.head.shape,
            template=template.text,
            window=self._config.context.max_tokens,
            threads=self._threads,
            program=self._config.local.server,
            idle_seconds=(self._config.local.keep_minutes or KEPT_MINUTES) * 60,
        )
        before = await server.find_running(self._host)
        self._server = await server.ensure(
            self._host, wanted, self._lease, told=told.put_nowait, crashed=crashed
        )
        self._is_fresh = self._is_fresh or self._server != before
        if self._inner is not None:
            await self._inner.aclose()
        self._inner = self._open(self._config)

    def _open(self, config: Config) -> RemoteModel:
        assert self._server is not None  # noqa: S101 - set by _serve
        quirks = replace(FACTS.quirks, streams=self._streams, takes_tools=self._has_calls)
        at = replace(
            FACTS,
            endpoint="http://localhost/v1",
            unix_socket=Path(self._server.socket),
            api_key=self._server.key,
            window=self._server.window,
            quirks=quirks,
            make=None,
        )
        return open_model(self._host, at, config, model=self._name)

    async def _makes_calls(self) -> bool:
        assert self._server is not None  # noqa: S101 - set by _serve
        short = replace(self._config.llm, max_tokens=TRIAL_TOKENS)
        model = self._open(replace(self._config, llm=short))
        try:
            return await makes_calls(model)
        except ModelError:  # a server that died says nothing about the model
            if not await asyncio.to_thread(server.is_healthy, self._server):
                raise
            return False
        finally:
            await model.aclose()


async def _reports(start: "asyncio.Task[None]", told: _Told) -> AsyncGenerator[Event, None]:
    """Say how long the start takes, for as long as it does, and what else the person should know of it."""
    due = ANNOUNCED_AFTER
    while not (start.done() and told.empty()):
        wait = asyncio.ensure_future(told.get())
        await asyncio.wait((start, wait), return_when=asyncio.FIRST_COMPLETED)
        if not wait.done():
            wait.cancel()
            return
        match wait.result():
            case Noticed() as notice:
                yield notice
            case str() as words:
                yield Noticed(level="warning", text=words)
            case seconds if seconds >= due:
                due = seconds + REPORTED_EVERY
                yield Noticed(level="info", text=f"starting the local model ({seconds:.0f} s)")
            case _:
                pass
