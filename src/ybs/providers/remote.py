"""RemoteModel: an adapter, an HTTP client and the facts of one model, joined into a Model."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing, suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Raw, Struct
from msgspec.structs import replace

from ybs.config.addresses import is_local
from ybs.core.errors import ModelError
from ybs.core.events import AssistantSaid, Event, Noticed, RequestRetried
from ybs.core.memo import Memo
from ybs.core.messages import AssistantMessage, Usage
from ybs.core.ports import Request
from ybs.core.remedies import Remedy
from ybs.core.time_limits import time_limit
from ybs.providers.catalog import (
    FREE,
    GUIDED_BILLIONS,
    LOCAL_WINDOW,
    ModelFacts,
    Price,
    billions_of,
    facts_of,
    over,
)
from ybs.providers.facts import find_facts, find_models, fitted, fitting_temperature, guided
from ybs.providers.http import failures
from ybs.providers.http.client import HttpClient, encode_json, host_of
from ybs.providers.http.failures import (
    BadRequest,
    Unavailable,
    asked_seconds,
    may_be_a_picture,
    names_a_picture,
)
from ybs.providers.text_calls import TextCalls
from ybs.providers.wire.adapter import Adapter, RequestOptions
from ybs.providers.wire.assemble import Assembly
from ybs.providers.wire.framing import DONE
from ybs.providers.wire.pictures import RefusedPictures, pictures_in
from ybs.providers.wire.quirks import Quirks, learn, learn_schema

if TYPE_CHECKING:
    from ybs.providers.wire.needed_window import NeededWindow

#: What a server says after its last word is waited for so long, in seconds (its connection can be kept then).
_AFTER_END: Final = 0.25
#: After a finish reason usage may follow, and some servers never close.
_AFTER_STOP: Final = 5.0
#: A local server that loads a model is asked this often, for this long, in seconds.
_LOADING_PAUSE: Final = 1.0
_LOADING_SECONDS: Final = 600.0
_MOST_LESSONS: Final = 8
#: A server that is asked about its model has so long, in seconds.
_FACTS_SECONDS: Final = 2.0
#: Wire formats whose thinking is sealed for one account at one address: it goes nowhere else.
_SEALING: Final = ("openai-responses",)
#: A server that is faster than what is done with its words never makes anybody wait: after so long, in seconds, the
#: rest of the program has a turn, such as the keyboard.
_TURN_SECONDS: Final = 0.008


class Retry(Struct, frozen=True, kw_only=True):
    """When a failed request is sent again. `attempts` counts the repetitions.

    Nothing is tried for longer than `most_seconds` without a piece of an answer.
    """

    attempts: int = 6
    base_ms: int = 1000
    most_seconds: float = 65.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    now: Callable[[], float] = monotonic

    def wait_seconds(
        self, error: ModelError, attempt: int, *, chance: float, failing_seconds: float = 0.0
    ) -> float | None:
        """Return the pause before repetition `attempt` (from 1), or None where there is none.

        Exponential, of which a half is jitter: `chance` is a random number from 0 to 1. What the server asks for is kept, and
        where that would be too long, after `failing_seconds` already, the error is told instead.
        """
        if not error.temporary or attempt > self.attempts:
            return None
        wait = asked_seconds(error)
        if wait is None:
            wait = self.base_ms / 1000 * 2 ** (attempt - 1) * (1 + chance) / 2
        return wait if failing_seconds + wait <= self.most_seconds else None


class Terms(Struct, frozen=True, kw_only=True):
    """On which terms a provider gives a model. None: not known, or no limit.

    `window_limit` is what the person allows at most, whatever a server says of its window. `stated` is what the person
    says of the model: it goes before what the server tells. `asks`: something is missing that a server elsewhere may tell.
    `assumes_window`: nobody has said how large the window is, so that it is a guess.
    """

    price: Price | None = None
    max_output: int | None = None
    window_limit: int | None = None
    stated: ModelFacts = ModelFacts()
    asks: bool = False
    assumes_window: bool = False


class RemoteModel:
    """A model behind a server. Satisfies `core.ports.Model`."""

    def __init__(
        self,
        adapter: Adapter,
        client: HttpClient,
        options: RequestOptions,
        terms: Terms | None = None,
        *,
        retry: Retry | None = None,
    ) -> None:
        self._adapter, self._client, self._options = adapter, client, options
        self._terms = terms or Terms()
        self._retry = retry or Retry()
        self._written: Memo[Any, Raw] = Memo()
        self._calls = TextCalls()
        self._pictures = RefusedPictures()
        self._needed: NeededWindow | None = None
        self._told = ModelFacts()
        self._has_asked = self._has_told = False

    @property
    def name(self) -> str:
        """The model's name."""
        return self._options.model

    @property
    def provider(self) -> str:
        """The provider's name."""
        return self._client.site.provider

    @property
    def endpoint(self) -> str:
        """The address that requests go to."""
        return self._client.site.endpoint

    @property
    def window(self) -> int:
        """The tokens that a request and its answer may have together."""
        return self._options.window

    @property
    def assumes_window(self) -> bool:
        """Whether nobody has said how large the window is: neither the person, nor the server, nor the catalog."""
        return self._terms.assumes_window

    def assumption(self) -> Noticed | None:
        """Return, once, what the person should know of a window that is assumed; else nothing."""
        if self._has_told or not self.assumes_window:
            return None
        self._has_told = True
        text = f"The context window of {self.name} is not known, so {self.window:,} tokens are assumed."
        remedy = Remedy("set_number", f"models.{self.name}.window")
        return Noticed(level="info", text=text, remedies=(remedy,))

    @property
    def billions(self) -> float | None:
        """The model's parameters in billions, as far as its name or its server has told them."""
        return billions_of(self.name) or self._told.billions

    @property
    def may_tell_more(self) -> bool:
        """Whether a server as llama.cpp's may tell the size, or take a grammar for one of the smallest models, and was not asked yet."""
        size = self.billions
        is_open = size is None or (size <= GUIDED_BILLIONS and not self.quirks.takes_grammar)
        return is_open and not self._has_asked and self._adapter.name == "openai"

    @property
    def max_tokens(self) -> int:
        """The longest answer, in tokens: a quarter of the window at most."""
        most = self._terms.max_output or self._options.max_tokens
        return max(1, min(self._options.max_tokens, most, self.window // 4))

    @property
    def quirks(self) -> Quirks:
        """The server's quirks, as declared and as learned since."""
        return self._options.quirks

    async def warm_up(self) -> None:
        """Do ahead what the first request needs. Never fails."""
        await self._client.warm_up()

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def ask_server(self) -> None:
        """Ask a server on this machine which model it has, and how large that is. Never fails."""
        self._has_asked = True
        await self._ask()

    async def detect_window(self) -> int:
        """Ask the server what it tells of the model, use that and return the window. Failures leave all as it was.

        A server elsewhere is asked only where the window or the price is not known.
        """
        if is_local(host_of(self.endpoint)) or self._terms.asks:
            await self._ask()
        return self.window

    async def _ask(self) -> None:
        most, adapter = self._terms.window_limit or LOCAL_WINDOW, self._adapter
        with suppress(TimeoutError):
            async with time_limit(_FACTS_SECONDS):
                self._take(
                    await find_facts(self._client, adapter.name, adapter.listing, self.name, most)
                )

    def _take(self, told: ModelFacts) -> None:
        """Use what the server tells, where the person does not say otherwise."""
        terms = self._terms
        facts, limit = over(terms.stated, told), terms.window_limit
        self._told = over(told, self._told)
        window = self.window
        if facts.window is not None:
            window = min(facts.window, limit) if limit else facts.window
        self._terms = replace(
            terms,
            price=facts.price or terms.price,
            max_output=facts.max_output or terms.max_output,
            asks=False,
            assumes_window=terms.assumes_window and facts.window is None,
        )
        self._options = replace(
            self._options,
            window=window,
            temperature=fitting_temperature(
                self._options.temperature, self.billions, over(facts, facts_of(self.name))
            ),
            effort=None if facts.thinks is False else self._options.effort,
            quirks=guided(fitted(self.quirks, facts), facts, self.billions),
        )

    async def list_models(self) -> list[str]:
        """Return the names of the models that the server offers. Raises ModelError."""
        return await find_models(self._client, self._adapter.listing)

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Send a request, again where that may help, and yield what comes. See `core.ports.Model`.

        An answer that breaks off is asked for anew, from its beginning: no call in it was run, and none of its text is sent back.
        """
        tries = _Tries(self.quirks, self._retry.now)
        while True:
            try:
                async with aclosing(self._answer(self._pictures.without(request))) as events:
                    async for event in events:
                        if tries.succeed():
                            for notice in self._learned(request, tries):
                                yield notice
                        yield event
                self._note_habit()
                return
            except ModelError as error:
                retried = self._next_try(request, error, tries)
            if retried is not None:
                yield retried
                await self._retry.sleep(retried.wait_seconds)

    def _answer(self, request: Request) -> AsyncGenerator[Event, None]:
        """Send a request once. Where the model writes its calls as text, they are read out of it."""
        is_near = is_local(host_of(self.endpoint))
        if not request.tools or (self.quirks.takes_tools and not is_near):
            return self._exchange(request)
        if self.quirks.takes_tools:
            return self._calls.noticed(self._exchange(request), request)
        written = self._calls.written(request, self.window)
        return self._calls.read(self._exchange(written), request)

    def _note_habit(self) -> None:
        """Ask for calls as text from now on where the model keeps writing them so."""
        if self._calls.is_preferred and self.quirks.takes_tools:
            self._options = replace(self._options, quirks=replace(self.quirks, takes_tools=False))

    def _options_for(self, request: Request) -> RequestOptions:
        """Return the headers of this one request."""
        quirks = self.quirks
        most, window = self.max_tokens, self._options.window
        if quirks.takes_window:
            from ybs.providers.wire.needed_window import NeededWindow  # for Ollama alone

            self._needed = self._needed or NeededWindow()
            window = self._needed.fit(request, max_tokens=most, most=window)
        takes_schema = quirks.answer_schema == "with_tools" or (
            quirks.answer_schema == "alone" and not request.tools
        )
        return replace(
            self._options,
            max_tokens=most,
            window=window,
            stream=quirks.streams,
            answer_schema=request.answer_schema if takes_schema else None,
            grammar=request.grammar if quirks.takes_grammar and not request.tools else "",
            account=self._client.account if self._adapter.name in _SEALING else "",
        )

    async def _exchange(self, request: Request) -> AsyncGenerator[Event, None]:
        """Send a request as it is and yield what comes of it."""
        options = self._options_for(request)
        draft = Assembly(
            self.name,
            self._adapter.name,
            quirks=self.quirks,
            messages=request.messages,
            max_tokens=options.max_tokens,
            account=options.account,
        )
        batches = self._client.batches(
            self._adapter.path(options),
            self._body_of(request, options),
            framing=self._adapter.framing,
            linger=lambda: _linger_seconds(draft),
            progress=lambda: draft.progress,
        )
        ends_at = monotonic() + _TURN_SECONDS
        decode = self._adapter.decode
        async with aclosing(batches):
            async for batch in batches:
                for frame in batch:
                    if frame is DONE:
                        draft.end()
                    for event in decode(frame, draft):
                        yield event
                    if monotonic() >= ends_at:
                        await asyncio.sleep(0)
                        ends_at = monotonic() + _TURN_SECONDS
        for event in draft.close_text():
            yield event
        yield AssistantSaid.of(self._finish(draft))

    def body(self, request: Request) -> dict[str, Any]:
        """Return the body that a request is sent with as things are now."""
        if request.tools and not self.quirks.takes_tools:
            request = TextCalls().written(request, self.window)
        return self._adapter.encode(request, self._options)

    def _body_of(self, request: Request, options: RequestOptions) -> dict[str, Any]:
        """Make the body, with every message in JSON already: none is written twice."""
        body = self._adapter.encode(request, options)
        field = self._adapter.messages_field
        if messages := body.get(field):
            body[field] = self._written.each(messages, _raw_json)
        return body

    def _finish(self, draft: Assembly) -> AssistantMessage:
        """Return the whole message with its cost. Raises ProviderDown for one that broke off."""
        if draft.stop_reason is None and not draft.has_ended:
            is_good = draft.has_whole_calls() and not draft.is_empty
            if not (self.quirks.ends_without_finish and is_good):
                raise failures.broke_off(self._client.site)
        message = draft.message()
        price = self._terms.price
        if price is None or (message.usage == Usage() and price != FREE):
            return message
        usage = replace(message.usage, cost_usd=price.cost_of(message.usage))
        return replace(message, usage=usage)

    def _next_try(
        self, request: Request, error: ModelError, tries: "_Tries"
    ) -> RequestRetried | None:
        """Return the event to emit before a retry, None for an immediate one; raise the error if it is final."""
        has_output = tries.fail()
        if not has_output and self._learn(request, error, tries):
            return None
        if isinstance(error, Unavailable) and error.is_loading:
            tries.loading_seconds += _LOADING_PAUSE
            wait = _LOADING_PAUSE if tries.loading_seconds <= _LOADING_SECONDS else None
        else:
            tries.repeated += 1
            failing = tries.failing_seconds
            wait = self._retry.wait_seconds(
                error, tries.repeated, chance=_chance(), failing_seconds=failing
            )
        if wait is None:  # what was learned did not help, so it was not a lesson
            self._pictures.settle(request, is_good=False)
            if tries.notices:
                self._options = replace(self._options, quirks=tries.quirks)
            raise error
        return RequestRetried(
            attempt=tries.repeated + round(tries.loading_seconds / _LOADING_PAUSE),
            wait_seconds=wait,
            message=str(error),
            pause=_pause_of(error),
        )

    def _learn(self, request: Request, error: ModelError, tries: "_Tries") -> bool:
        """Take from a refusal how the server wants to be asked; return whether it is to be asked again so."""
        has_pictures = self.quirks.sees_images and bool(pictures_in(request.messages))
        is_known = isinstance(error, BadRequest) and self._learn_quirk(request, error, tries)
        if is_known or not has_pictures:
            return is_known
        if not may_be_a_picture(error, is_repeated=tries.repeated > 0):
            return False
        if not self._pictures.suspect(request):
            return False
        tries.refusal = error.server_words
        return True

    def _learn_quirk(self, request: Request, error: BadRequest, tries: "_Tries") -> bool:
        """Take from the words of a refusal what is known of servers that say so; return whether that is new."""
        if tries.lessons == _MOST_LESSONS:
            return False
        has_tools, has_images = bool(request.tools), bool(pictures_in(request.messages))
        learned = learn_schema(self.quirks, error.said, has_tools=has_tools)
        lesson = (
            (learned, "")
            if learned and request.answer_schema is not None
            else learn(self.quirks, error.said, has_images=has_images, has_tools=has_tools)
        )
        if lesson is None or (
            has_images
            and names_a_picture(error)
            and lesson[0].sees_images == self.quirks.sees_images
        ):
            return False
        tries.lessons += 1
        self._options = replace(self._options, quirks=lesson[0])
        tries.notices.append(lesson[1].format(model=self.name))
        return True

    def _learned(self, request: Request, tries: "_Tries") -> Iterator[Event]:
        """Keep what made the server answer, and yield what the person should know of it."""
        told, tries.notices = [text for text in tries.notices if text], []
        if self._pictures.settle(request, is_good=True):
            if self._pictures.are_all:
                self._options = replace(
                    self._options, quirks=replace(self.quirks, sees_images=False)
                )
            why = f": {tries.refusal}" if tries.refusal else ""
            told.append(
                f"{self.name} answers only without the picture, so that is left out from now on{why}"
            )
        for text in told:
            yield Noticed(level="warning", text=text)


class _Tries:
    """What one request has cost so far, and what it taught: that is told when an answer shows that it was true."""

    def __init__(self, quirks: Quirks, now: Callable[[], float]) -> None:
        self.quirks, self._now = quirks, now
        self.repeated = self.lessons = 0
        self.loading_seconds = 0.0
        self.notices: list[str] = []
        self.refusal = ""
        self._has_output = False
        self._failing_since: float | None = None

    @property
    def failing_seconds(self) -> float:
        """How long ago the first failure was since a piece of an answer came."""
        return 0.0 if self._failing_since is None else self._now() - self._failing_since

    def succeed(self) -> bool:
        """Note a piece of an answer; return whether it is the first."""
        is_first = not self._has_output
        self._has_output, self._failing_since = True, None
        return is_first

    def fail(self) -> bool:
        """Note a failure; return whether anything of the answer had come."""
        had_output, self._has_output = self._has_output, False
        if self._failing_since is None:
            self._failing_since = self._now()
        return had_output


def _pause_of(error: ModelError) -> Literal["backoff", "asked", "loading"]:
    if isinstance(error, Unavailable) and error.is_loading:
        return "loading"
    return "backoff" if asked_seconds(error) is None else "asked"


def _raw_json(message: Any) -> Raw:
    return Raw(encode_json(message))


def _chance() -> float:
    from random import random  # needed after a failure only

    return random()  # noqa: S311 - jitter


def _linger_seconds(draft: Assembly) -> float | None:
    if draft.has_ended:
        return _AFTER_END
    return None if draft.stop_reason is None else _AFTER_STOP
