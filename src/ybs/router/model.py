"""RoutedModel: a Model that picks a Model for each turn, and another one where that cannot answer."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from math import isinf
from typing import Final

import msgspec
from msgspec import Struct

from ybs.core.errors import AuthError, ConfigError, ModelError, YbsError
from ybs.core.events import (
    AssistantSaid,
    Event,
    Noticed,
    PromptRead,
    RequestRetried,
    RequestStarted,
    TextStreamed,
)
from ybs.core.messages import Usage
from ybs.core.ports import Request
from ybs.providers.http.failures import NotServed
from ybs.providers.registry import ProviderModel
from ybs.router.bandit import Arm
from ybs.router.classifier import BYTES, Features, features_of, names_in, pictures_in, size_of
from ybs.router.pools import Shortage
from ybs.router.routing import CACHE_SECONDS, Answered, Routing
from ybs.router.selection import Decision

#: A pool all of whose places are taken is looked at again after this time.
_LOOK_SECONDS: Final = 1.0


class _Passed(Exception):
    """An arm could not answer, or not to the end, or its pool is empty, so that another one may be asked."""

    def __init__(self, cause: ModelError | Shortage) -> None:
        super().__init__()
        self.cause = cause

    @property
    def why(self) -> str:
        """What the person is told of it."""
        return self.cause.reason if isinstance(self.cause, Shortage) else str(self.cause)


class _Turn(Struct):
    """What holds for one turn: the choice, whether it was told, which arms were given up in it, and which work beside it."""

    features: Features
    decision: Decision | None = None
    is_told: bool = False
    given_up: frozenset[str] = frozenset()
    beside: frozenset[str] = frozenset()


class RoutedModel(ProviderModel):
    """Answers with the model that the router picks. `begin` picks it for a turn; who does not call it has the first request do so.

    Between turns, requests such as that for a summary go to the arm of the last one. Its name and window are those of the
    arm in use. Several may share one routing: each agent has one. One with a `turn` is for that alone, and asks no other arm where its own cannot answer.
    """

    def __init__(
        self, routing: Routing, *, closes_routing: bool = True, turn: _Turn | None = None
    ) -> None:
        self.routing, self._closes_routing = routing, closes_routing
        self.arm: Arm
        self._model: ProviderModel
        self.arm, self._model = _first(routing)
        self._turn = turn
        self._has_begun = self._keeps_arm = turn is not None
        self._turns = 0
        #: How much the provider of the arm may have in its prompt cache, and since when.
        self._cached_tokens, self._cached_at = 0, 0.0

    @property
    def name(self) -> str:
        """The name of the model in use."""
        return self._model.name

    @property
    def provider(self) -> str:
        """The provider of the model in use."""
        return self.arm.provider

    @property
    def window(self) -> int:
        """The window of the model in use."""
        return self._model.window

    @property
    def max_tokens(self) -> int:
        """The longest answer of the model in use."""
        return self._model.max_tokens

    @property
    def last_size(self) -> int:
        """About how many tokens the last request had, with its answer."""
        return self._cached_tokens

    @property
    def decision(self) -> Decision | None:
        """The choice that holds for the running turn."""
        return self._turn.decision if self._turn is not None else None

    async def warm_up(self) -> None:
        """Warm the model in use up."""
        await self._model.warm_up()

    async def detect_window(self) -> int:
        """Ask the server of the model in use for its window; the others' are asked when they are picked."""
        return await self._model.detect_window()

    async def list_models(self) -> list[str]:
        """Return the names of the arms."""
        return [arm.name for arm in self.routing.arms.values()]

    async def aclose(self) -> None:
        """Close all models, unless the routing is another agent's."""
        if self._closes_routing:
            await self.routing.aclose()

    def for_another_agent(self) -> "RoutedModel":
        """Return a model for another agent, which picks for itself and shares what this one's router knows."""
        return RoutedModel(self.routing, closes_routing=False)

    async def for_attempt(self, features: Features, beside: frozenset[str]) -> "RoutedModel | None":
        """Return a model that has the best arm which is not one of those that work `beside` it, and keeps that; None where there is none."""
        turn = _Turn(features=features, beside=beside)
        model = RoutedModel(self.routing, closes_routing=False, turn=turn)
        try:
            return model if await model._choose(turn) else None
        except ModelError:
            return None

    async def begin(self, features: Features) -> None:
        """Pick the model for a turn with these features. Raises ModelError where none can be used."""
        self._has_begun = True
        self._turns += 1
        self._turn = turn = _Turn(features=features)
        await self._choose(turn)

    def end(self) -> Decision | None:
        """End the turn, and return the choice that held at its end."""
        decision, self._turn = self.decision, None
        return decision

    async def escalate(self, excluded: frozenset[str]) -> bool:
        """Go on with another arm than these, where one is suitable; return whether there is."""
        turn = self._turn or _Turn(features=Features())
        before = self.arm.name
        decision = await self.routing.choose(
            turn.features, current=before, excluded=turn.given_up | excluded
        )
        if decision.arm is None:
            return False
        try:
            self._take(turn, decision)
        except (ConfigError, AuthError):
            await self.routing.void(decision.id, "it could not be made")
            return False
        return self.arm.name != before

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Answer a request with the arm of the turn, or the next best where that cannot. See `core.ports.Model`.

        An answer that breaks off begins anew.
        """
        if not self._has_begun:
            await self.begin(features_of(request, self._turns))
        await self._fit(request)
        waits = Waits()
        while True:
            for event in self._tell():
                yield event
            try:
                async with aclosing(self._ask(request)) as events:
                    async for event in events:
                        yield event
                return
            except _Passed as passed:
                retry = waits.next(await self._after(request, passed), passed.why)
                if retry is None:
                    raise self._final(passed) from passed
            if retry.wait_seconds:
                yield retry
                await self.routing.clocks.sleep(retry.wait_seconds)

    # Choosing

    async def _choose(self, turn: _Turn, excluded: frozenset[str] = frozenset()) -> bool:
        """Pick an arm for a turn; return whether there was one. Raises ModelError where there never is."""
        routing = self.routing
        decision = await routing.choose(
            turn.features,
            current=self.arm.name if self._is_warm else "",
            cached_tokens=self._cached_tokens,
            excluded=turn.given_up | excluded,
            beside=turn.beside,
        )
        if decision.arm is None and not (turn.given_up or turn.beside or excluded):
            left = "; ".join(f"{each.arm} {each.left_out}" for each in decision.considered)
            if all("pool" not in each.left_out for each in decision.considered):
                raise ModelError(f"No model of the router can take this request: {left}.")
        if decision.arm is None:
            return False  # all pools are empty: who asks waits for room
        try:
            self._take(turn, decision)
        except (ConfigError, AuthError) as error:
            await routing.void(decision.id, "it could not be made")
            routing.fail(routing.arms[decision.arm], error)
            routing.warnings.append(f"{decision.arm} cannot be used: {str(error).splitlines()[0]}")
            turn.given_up |= {decision.arm}
            if len(turn.given_up) < len(routing.arms):
                return await self._choose(turn, excluded)
            raise ModelError(str(error), remedies=error.remedies) from error
        if self._model.window == self.routing.arms[self.arm.name].window:
            await self._model.detect_window()
        return True

    def _take(self, turn: _Turn, decision: Decision) -> None:
        arm = self.routing.arms[decision.arm or ""]
        model = self.routing.model_of(arm)
        if arm.name != self.arm.name:
            self._cached_tokens = 0
        self.arm, self._model = arm, model
        turn.decision, turn.is_told = decision, False

    @property
    def _is_warm(self) -> bool:
        """Whether the provider may still have the last request in its cache."""
        return (
            bool(self._cached_tokens)
            and self.routing.clocks.steady() - self._cached_at < CACHE_SECONDS
        )

    async def _fit(self, request: Request) -> None:
        """Pick again where the request turns out to be more than the arm can take: pictures, or its size."""
        turn = self._turn
        if turn is None or self._keeps_arm:
            return
        tokens, pictures = size_of(request), pictures_in(request)
        arm = self.arm
        if (pictures and not arm.sees_images) or tokens > self.window:
            features = msgspec.structs.replace(
                turn.features, tokens=tokens, image_count=pictures, tools=names_in(request)
            )
            turn.features = features
            before = turn.decision
            decision = await self.routing.choose(features, current=arm.name)
            if decision.arm is None or decision.arm == arm.name:
                return  # the provider says what is wrong
            if before is not None:
                await self.routing.void(before.id, "the request did not fit")
            self._take(turn, decision)

    def _tell(self) -> Iterator[Event]:
        """Name the arm and the reason, once for each choice, and what the person should know of the router."""
        for text in self.routing.warnings:
            yield Noticed(level="warning", text=text)
        self.routing.warnings.clear()
        turn = self._turn
        if turn is not None and turn.decision is not None and not turn.is_told:
            turn.is_told = True
            yield RequestStarted(
                model=self.name, decision=turn.decision.id, reason=turn.decision.reason
            )

    # Asking

    async def _ask(self, request: Request) -> AsyncGenerator[Event, None]:
        """Ask the arm in use. Raises _Passed or _NoRoom where another one may be asked."""
        routing, arm, model = self.routing, self.arm, self._model
        tokens = size_of(request)
        lease = await routing.reserve(arm, tokens)
        if isinstance(lease, Shortage):
            raise _Passed(lease)
        seen, began, seconds = _Seen(), routing.clocks.steady(), 0.0
        try:
            async with aclosing(model.stream(request)) as events:
                async for event in events:
                    seen.add(event)
                    yield event
            routing.breaker.succeed(arm.name)
            seconds = routing.clocks.steady() - began
        except ModelError as error:
            if not may_pass(error):
                raise
            routing.fail(arm, error)
            raise _Passed(error) from error
        finally:
            usage = seen.used(tokens)
            self._cached_tokens = usage.input_tokens + usage.output_tokens
            self._cached_at = routing.clocks.steady()
            kind = self.decision.kind if self.decision is not None else ""
            await routing.settle(lease, usage, Answered(arm=arm, kind=kind, seconds=seconds))

    async def _after(self, request: Request, passed: "_Passed") -> float:
        """Go on with the next best arm; return how long to wait before it is asked."""
        turn = self._turn or _Turn(features=features_of(request, self._turns))
        if isinstance(passed.cause, Shortage):
            return await self._after_shortage(turn, passed.cause)
        return await self._after_failure(turn, passed.cause)

    async def _after_failure(self, turn: _Turn, error: ModelError) -> float:
        """Let the arm rest and go on with another; return how long that one rests, where all of them do."""
        if turn.decision is not None:
            await self.routing.void(turn.decision.id, "it failed on the way")
        if self._keeps_arm:
            turn.decision = None
            raise error
        failed = self.arm
        self.routing.warnings.append(f"{failed.name}: {first_line(error)}")
        if isinstance(error, AuthError | NotServed):
            turn.given_up |= {failed.name}
            if len(turn.given_up) >= len(self.routing.arms):
                raise error
        if not await self._choose(turn):
            return _LOOK_SECONDS
        return self.routing.breaker.rest_of(self.arm.name)

    async def _after_shortage(self, turn: _Turn, shortage: Shortage) -> float:
        """Go on with an arm whose pool has room; return how long to wait where none has."""
        before = turn.decision
        if not self._keeps_arm and await self._choose(turn):
            if before is not None:
                await self.routing.void(before.id, "its pool was empty")
            return 0.0
        return _LOOK_SECONDS if isinf(shortage.wait_seconds) else shortage.wait_seconds or 0.01

    def _final(self, passed: "_Passed") -> ModelError:
        """Return the error that the turn ends with."""
        if isinstance(passed.cause, ModelError):
            return passed.cause
        pool = self.routing.roster.pools[self.arm.name]
        return ModelError(
            f"The pool {pool} of the router has no room for this request: {passed.why}. "
            "Other models have none either. Raise its limit in router.pools, or choose a model yourself."
        )


def _first(routing: Routing) -> tuple[Arm, ProviderModel]:
    """Return the first arm whose model can be made. Raises ConfigError where there is none."""
    problem: YbsError = ConfigError("The router has no models.")
    for arm in routing.arms.values():
        try:
            return arm, routing.model_of(arm)
        except (ConfigError, AuthError) as error:
            problem = error
            routing.warnings.append(f"{arm.name} cannot be used: {str(error).splitlines()[0]}")
    raise ConfigError(str(problem), remedies=problem.remedies)


#: What may come before anything of an answer is shown.
_NOT_YET: Final = (Noticed, PromptRead, RequestRetried, RequestStarted)
#: For room in a pool, and for models that rest, a request waits no longer than this in all, in seconds.
MOST_WAIT_SECONDS: Final = 60.0


class Waits:
    """Counts how long a request has waited."""

    def __init__(self) -> None:
        self._waited, self._count = 0.0, 0

    def next(self, seconds: float, why: str) -> RequestRetried | None:
        """Return what to tell of the next try; None where it would wait too long."""
        if self._waited + seconds > MOST_WAIT_SECONDS:
            return None
        self._waited, self._count = self._waited + seconds, self._count + (seconds > 0)
        return RequestRetried(attempt=self._count, wait_seconds=seconds, message=why)


class _Seen:
    """What of an answer has come."""

    def __init__(self) -> None:
        self.has_output = False
        self._usage, self._written = Usage(), 0

    def add(self, event: Event) -> None:
        """Take an event of the answer."""
        self.has_output = self.has_output or not isinstance(event, _NOT_YET)
        if isinstance(event, TextStreamed):
            self._written += len(event.text)
        elif isinstance(event, AssistantSaid):
            self._usage = event.usage

    def used(self, asked: int) -> Usage:
        """Return what the request has used: of one that was cut off, what the provider counts most likely."""
        if self._usage != Usage() or not self.has_output:
            return self._usage
        return Usage(input_tokens=asked, output_tokens=self._written // BYTES)


def may_pass(error: ModelError) -> bool:
    """Return whether another arm may do better: an outage, a limit, a refused key; not a request that is wrong."""
    return error.temporary or isinstance(error, NotServed | AuthError)


def first_line(error: YbsError) -> str:
    """Return the first line of what an error says, as a sentence."""
    text = str(error).split("\n", 1)[0].strip()[:200]
    return text if text.endswith((".", "!", "?")) else f"{text}."
