"""The fallback chain: a Model that holds Models. Where the first cannot answer, the next one is asked.

It passes on what another provider could do better: nobody answers, too many requests, a failing server, no credit left, a
missing model. A refused key, a bad request and a conversation that is too long are for the person, and end the turn as ever.
"""

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from time import monotonic
from typing import Final

from ybs.config.host import Host
from ybs.config.schema import Config
from ybs.core.errors import ConfigError, ModelError, ProviderDown, RateLimited, YbsError
from ybs.core.events import Event, Noticed, PromptRead, RequestRetried, RequestStarted
from ybs.core.ports import Request
from ybs.providers.http.failures import NotServed, Unavailable
from ybs.providers.registry import (
    ProviderModel,
    chosen_provider,
    create_model,
    distance,
    model_of,
)

#: A model that failed is not asked for so long, in seconds, or as long as its server asks for.
COOL_DOWN_SECONDS: Final = 60.0
#: While another model stands ready, a request pauses no longer than this in all, in seconds, and never because a server asks for it.
LONGEST_PAUSE_SECONDS: Final = 2.0
_LONGEST_REASON: Final = 200
#: What may come before anything of an answer is shown.
_NOT_YET: Final = (Noticed, PromptRead, RequestRetried, RequestStarted)


class _Link:
    """A model of the chain, made when it is needed. `place` is its address, which several may share."""

    def __init__(self, title: str, place: str, make: Callable[[], ProviderModel]) -> None:
        self.title, self.place, self._make = title, place, make
        self.model: ProviderModel | None = None
        self.rests_until = 0.0
        self.failure = ""

    async def open(self) -> ProviderModel:
        """Return the model. Raises ConfigError, and AuthError where a key is missing."""
        if self.model is None:
            self.model = self._make()
            await self.model.detect_window()
        return self.model


class _Passed(Exception):
    """A model could not answer and has shown nothing, so that another one may be asked."""

    def __init__(self, error: ModelError, *, was_asked: bool) -> None:
        super().__init__()
        self.error, self.was_asked = error, was_asked


class _Pauses:
    """How long one model has made a request wait; `has_other`: another one stands ready."""

    def __init__(self, *, has_other: bool) -> None:
        self._has_other, self._seconds = has_other, 0.0

    def add(self, event: RequestRetried) -> None:
        """Take a pause. Raises RateLimited where the other model is to be asked; one that is being loaded is waited for."""
        self._seconds += 0.0 if event.pause == "loading" else event.wait_seconds
        is_long = event.pause == "asked" or self._seconds > LONGEST_PAUSE_SECONDS
        if is_long and self._has_other:
            raise RateLimited(event.message, retry_after_seconds=event.wait_seconds)


class FallbackModel(ProviderModel):
    """Asks `first`, and where that cannot answer the others in their order. It has the name of `first`.

    An answer that breaks off is passed on too, and begins anew. A model that failed rests (`COOL_DOWN_SECONDS`); where all
    that do not rest have failed too, it is asked all the same.
    """

    def __init__(
        self,
        first: ProviderModel,
        title: str,
        place: str,
        others: Sequence[_Link],
        *,
        now: Callable[[], float] = monotonic,
    ) -> None:
        self._first, self._now = first, now
        link = _Link(title, place, lambda: first)
        link.model = first
        self._links = [link, *others]
        self._last = link  # the one that the person knows to be asked

    @property
    def name(self) -> str:
        """The name of the first model; each answer names the one that gave it."""
        return self._first.name

    @property
    def window(self) -> int:
        """The window of the model that would be asked now."""
        return self._next.window

    @property
    def max_tokens(self) -> int:
        """The longest answer of the model that would be asked now."""
        return self._next.max_tokens

    @property
    def _next(self) -> ProviderModel:
        return self._order()[0].model or self._first

    async def warm_up(self) -> None:
        """Warm the first model up."""
        await self._first.warm_up()

    async def detect_window(self) -> int:
        """Ask the first model's server for its window; the others' are asked when they are needed."""
        return await self._first.detect_window()

    async def list_models(self) -> list[str]:
        """Return the models of the first model's provider. Raises ModelError."""
        return await self._first.list_models()

    async def aclose(self) -> None:
        """Close all models."""
        for link in self._links:
            if link.model is not None:
                await link.model.aclose()

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Answer a request with the first model that can. See `core.ports.Model`."""
        failure: ModelError | None = None
        before: _Link | None = None
        left = self._order()
        while left:
            link = left[0]
            try:
                is_last = not any(each.rests_until <= self._now() for each in left[1:])
                async with aclosing(self._ask(link, before, request, is_last=is_last)) as events:
                    async for event in events:
                        yield event
                return
            except _Passed as passed:
                if failure is None or passed.was_asked:
                    failure = passed.error
                if not passed.was_asked:
                    text = f"{link.title} cannot take over: {link.failure}"
                    yield Noticed(level="warning", text=text)
            before = link
            left = [each for each in self._order() if each in left[1:]]
        if failure is not None:
            raise failure

    async def _ask(
        self, link: _Link, before: _Link | None, request: Request, *, is_last: bool
    ) -> AsyncGenerator[Event, None]:
        """Ask one model. Raises _Passed where another one may be asked; `is_last`: none stands ready."""
        model = await self._open(link)
        for event in self._announce(link, model, before):
            yield event
        has_output, pauses = False, _Pauses(has_other=not is_last)
        try:
            async with aclosing(model.stream(request)) as events:
                async for event in events:
                    if isinstance(event, RequestRetried):
                        pauses.add(event)
                    if not (has_output or isinstance(event, _NOT_YET)):
                        has_output = True
                        for notice in self._return_to(link):
                            yield notice
                    yield event
        except ModelError as error:
            if not _may_pass(error):
                raise
            self._rest(link, error)
            raise _Passed(error, was_asked=True) from error

    async def _open(self, link: _Link) -> ProviderModel:
        try:
            return await link.open()
        except YbsError as error:
            self._rest(link, error)
            passed = ModelError(str(error), remedies=error.remedies)
            raise _Passed(passed, was_asked=False) from error

    def _order(self) -> list[_Link]:
        """Return all links in the order in which they are asked: those that rest come last."""
        now = self._now()
        return sorted(self._links, key=lambda link: link.rests_until > now)

    def _rest(self, link: _Link, error: YbsError) -> None:
        """Have a model rest, and where nobody answers at its address all that are there."""
        asked = getattr(error, "retry_after_seconds", None) or 0.0
        link.failure = _reason(error)
        is_silent = isinstance(error, ProviderDown) and not isinstance(error, Unavailable)
        for each in self._links:
            if each is link or (is_silent and each.place == link.place):
                each.rests_until = self._now() + max(COOL_DOWN_SECONDS, asked)

    def _announce(self, link: _Link, model: ProviderModel, before: _Link | None) -> Iterator[Event]:
        """Name the model that is asked, and why it is that one the first time."""
        first = self._links[0]
        if before is not None or link is not first:
            yield RequestStarted(model=model.name)
        if link is not self._last and link is not first:
            self._last = link
            text = f"{(before or first).failure} {link.title} is asked instead."
            yield Noticed(level="warning", text=text)

    def _return_to(self, link: _Link) -> Iterator[Event]:
        """Say that the first model answers again, where another one did before."""
        if link is not self._last:
            self._last = link
            yield Noticed(level="info", text=f"{link.title} answers again.")


def _may_pass(error: ModelError) -> bool:
    """Return whether another provider may do better."""
    return error.temporary or isinstance(error, NotServed)


def with_fallbacks(
    host: Host, config: Config, provider: str, model: ProviderModel
) -> ProviderModel:
    """Return the model with those of `llm.fallback` behind it; as it is where none of them may take its place."""
    links = [
        _link(host, config, name, wanted)
        for name, wanted in entries(config)
        if (name, wanted) != (provider, model.name)
        and not complaint_about(host, config, provider, model.name, (name, wanted))
    ]
    if not links:
        return model
    place = chosen_provider(host, config, provider).endpoint
    return FallbackModel(model, f"{model.name} ({provider})", place, links)


def entries(config: Config) -> list[tuple[str, str]]:
    """Return provider and model of each entry of `llm.fallback`; the model is empty for the provider's own."""
    split = (entry.partition("/") for entry in config.llm.fallback)
    return list(dict.fromkeys((provider, model) for provider, _, model in split))


def complaint_about(
    host: Host, config: Config, provider: str, model: str, entry: tuple[str, str]
) -> str:
    """Return why an entry of `llm.fallback` takes no part behind a model; nothing where it does.

    A conversation with a model on this machine goes to no other one unless `llm.fallback_elsewhere` says so.
    """
    name, wanted = entry
    try:
        far = distance(host, name, wanted, config)
        own = distance(host, provider, model, config)
        has_model = bool(model_of(chosen_provider(host, config, name), config, wanted))
    except ConfigError as error:
        return str(error)
    if not has_model:
        return f"{name} has no model of its own: write {name}/MODEL"
    if config.incognito.only_here and far:
        return (
            f"{name} is left out, because incognito.local_only allows only models on this machine"
        )
    if far > own and not config.llm.fallback_elsewhere:
        where = "on this machine" if own == 0 else "in this network"
        return (
            f"{name} is left out, because {provider} answers {where} and {name} does not. "
            "Set llm.fallback_elsewhere to true if the conversation may go there"
        )
    return ""


def _link(host: Host, config: Config, provider: str, model: str) -> _Link:
    found = chosen_provider(host, config, provider)
    return _Link(
        f"{model_of(found, config, model)} ({provider})",
        found.endpoint,
        lambda: create_model(host, config, provider=provider, model=model or None, is_persons=True),
    )


def _reason(error: YbsError) -> str:
    """Return the beginning of what an error says, as a sentence."""
    text = str(error).split("\n", 1)[0].strip()
    if len(text) > _LONGEST_REASON:
        return f"{text[:_LONGEST_REASON]} …"
    return text if text.endswith((".", "!", "?")) else f"{text}."
