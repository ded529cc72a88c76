"""The routed model: what it does where arms fail, where pools are empty, and what it counts."""

from contextlib import aclosing
from typing import Any

import pytest
from msgspec.structs import replace

from hosts import this_host
from ybs.config.layers import Loaded
from ybs.config.schema import Config, IncognitoSettings
from ybs.config.sections import Endpoint, ModelEntry, PoolLimits, RouterSettings
from ybs.core.errors import AuthError, ContextTooLong, ModelError, ProviderDown, RateLimited
from ybs.core.events import AssistantSaid, Event, Noticed, RequestRetried, RequestStarted
from ybs.core.messages import Image, Usage, UserMessage
from ybs.core.ports import Request
from ybs.providers.http.failures import NotServed
from ybs.providers.registry import InProcessModel
from ybs.router.classifier import Features, features_of
from ybs.router.model import MOST_WAIT_SECONDS, RoutedModel
from ybs.router.overview import overview
from ybs.router.pools import DAY, Estimate, Reservation
from ybs.router.roster import roster_of
from ybs.router.routing import Clocks, Routing
from ybs.testing import Failing, ScriptedAnswer, ScriptedModel

ASK = Request("", [UserMessage.of("Fix the crash")])
DOWN = ProviderDown("Nobody answers.")


class Bench:
    """Two arms, `a/x` (better and dearer) and `b/y`, as scripted models, and a clock that waiting moves."""

    def __init__(self, first: list[Any], second: list[Any], **pools: PoolLimits) -> None:
        self.time = 20_000 * DAY
        self.waited: list[float] = []
        prices = {"a/x": (5.0, 25.0), "b/y": (0.1, 0.4)}
        entries = {
            name: ModelEntry(window=50_000, input_price=read, output_price=written)
            for name, (read, written) in prices.items()
        }
        providers = {name: Endpoint(endpoint="http://127.0.0.1:9") for name in "ab"}
        router = RouterSettings(arms=tuple(prices), policy="heuristic", pools=pools)
        config = Config(router=router, providers=providers, models=entries)

        async def sleep(seconds: float) -> None:
            self.waited.append(seconds)
            self.time += seconds

        clocks = Clocks(now=lambda: self.time, steady=lambda: self.time, sleep=sleep)
        self.routing = Routing(
            this_host(),
            config,
            roster_of(Loaded(host=this_host(), config=config, origins={})),
            clocks=clocks,
        )
        self.models = [
            ScriptedModel(script, name=name, window=50_000)
            for script, name in ((first, "x"), (second, "y"))
        ]
        self.routing.models |= {
            name: InProcessModel(model, 1_000)
            for name, model in zip(prices, self.models, strict=True)
        }
        self.model = RoutedModel(self.routing)
        self.events: list[Event] = []

    async def ask(self, request: Request = ASK) -> str:
        """Take a turn with one request, and return who answered what."""
        self.events.clear()
        try:
            await self.model.begin(features_of(request))
            async with aclosing(self.model.stream(request)) as events:
                async for event in events:
                    self.events.append(event)
        finally:
            self.model.end()
        last = self.events[-1]
        assert isinstance(last, AssistantSaid)
        return f"{last.model}: {last.content}"

    def of(self, kind: type[Any]) -> list[Any]:
        return [each for each in self.events if isinstance(each, kind)]


@pytest.mark.parametrize(
    "error",
    [
        DOWN,
        RateLimited("Slow.", retry_after_seconds=300),
        NotServed("No credit."),
        AuthError("No."),
    ],
)
async def test_an_arm_that_fails_on_the_way_rests_and_the_next_one_answers(error: ModelError):
    bench = Bench([error], ["one", "two"])
    assert await bench.ask() == "y: one"
    assert [each.model for each in bench.of(RequestStarted)] == ["x", "y"]
    assert [each.text for each in bench.of(Noticed)] == [f"a/x: {error}"]
    assert bench.routing.breaker.rest_of("a/x") >= (300 if isinstance(error, RateLimited) else 5)
    assert await bench.ask() == "y: two"
    assert bench.waited == []
    await bench.model.aclose()


async def test_where_all_rest_the_one_that_rests_shortest_is_waited_for():
    bench = Bench([DOWN, "back"], [DOWN])
    assert await bench.ask() == "x: back"
    (retried,) = bench.of(RequestRetried)
    assert (retried.attempt, retried.wait_seconds) == (1, 5.0)
    assert bench.waited == [5.0]


async def test_an_answer_that_breaks_off_is_begun_anew_by_another_arm_or_after_a_rest():
    broken = Failing("half an ans", DOWN)
    bench = Bench([broken], ["whole"])
    assert await bench.ask() == "y: whole"
    assert [each.model for each in bench.of(RequestStarted)] == ["x", "y"]
    alone = Bench([broken, "whole"], [DOWN])
    assert await alone.ask() == "x: whole"
    assert alone.waited == [5.0]
    refused = Bench([Failing("half", ContextTooLong("Too long."))], [])
    with pytest.raises(ContextTooLong):
        await refused.ask()


async def test_nobody_is_waited_for_longer_than_a_minute():
    slow = RateLimited("Slow.", retry_after_seconds=MOST_WAIT_SECONDS + 1)
    bench = Bench([slow], [slow])
    with pytest.raises(RateLimited):
        await bench.ask()
    assert bench.waited == []


async def test_what_is_wrong_with_the_request_is_for_the_person():
    bench = Bench([ContextTooLong("Too long.")], [])
    with pytest.raises(ContextTooLong):
        await bench.ask()
    assert bench.routing.breaker.rest_of("a/x") == 0


async def test_where_no_key_is_taken_anywhere_the_last_error_is_told():
    bench = Bench([AuthError("One.")], [AuthError("Two.")])
    with pytest.raises(AuthError, match=r"Two\."):
        await bench.ask()


async def test_a_pool_without_room_is_waited_for_where_no_other_has_any():
    limits = PoolLimits(providers=("a", "b"), requests_per_minute=1)
    bench = Bench(["one", "two"], [], shared=limits)
    assert await bench.ask() == "x: one"
    bench.time += 20
    assert await bench.ask() == "x: two"
    assert bench.waited == [40]
    assert bench.of(RequestRetried)[0].message == "1 request in a minute is the limit"


async def test_a_budget_that_is_spent_ends_the_turn_with_what_to_do():
    limits = PoolLimits(providers=("a", "b"), usd_per_day=0.0001)
    bench = Bench([], [], shared=limits)
    with pytest.raises(ModelError, match=r"The pool shared .* has no room .* router\.pools"):
        await bench.ask()
    assert bench.models[0].requests == bench.models[1].requests == []


async def test_what_was_used_takes_the_place_of_what_was_reserved():
    used = Usage(input_tokens=1_000, output_tokens=100)
    bench = Bench([ScriptedAnswer(usage=used), DOWN], ["two"], a=PoolLimits(usd_per_day=1.0))
    async with aclosing(bench.model.stream(ASK)) as events:
        _ = [event async for event in events]
    found = await overview(bench.routing)
    spent = {pool.pool: pool.spent_usd for pool in found.pools}
    assert spent["a"] == pytest.approx((1_000 * 5 + 100 * 25) / 1e6)
    (use,) = found.spending
    assert (use.arm, use.requests, use.tokens) == ("a/x", 1, 1_100)


async def test_in_a_private_session_no_choice_leaves_this_machine_also_for_another_agent():
    bench = Bench(["one", "two"], [])
    config = replace(
        bench.routing.config,
        incognito=IncognitoSettings(enabled=True, local_only=True),
        providers={
            "a": Endpoint(endpoint="http://127.0.0.1:9"),
            "b": Endpoint(endpoint="https://models.invalid"),
        },
    )
    routing = Routing(
        this_host(), config, roster_of(Loaded(host=this_host(), config=config, origins={}))
    )
    for model in (RoutedModel(routing), RoutedModel(routing).for_another_agent()):
        await model.begin(Features.of("What does this project do?"))
        assert model.arm.name == "a/x"
    assert routing.last is not None
    assert [each.left_out for each in routing.last.considered] == [
        "",
        "does not run on this machine",
    ]
    await routing.aclose()
    await bench.model.aclose()


async def test_a_model_that_writes_little_is_cheaper_than_its_price_says():
    used = [Usage(input_tokens=10, output_tokens=tokens) for tokens in (10, 2_000)]
    bench = Bench([ScriptedAnswer(usage=used[0])], [ScriptedAnswer(usage=used[1])])
    before = (await bench.routing.choose(features_of(ASK))).considered
    for name in ("a/x", "b/y"):  # each answers once
        model = await bench.model.for_attempt(features_of(ASK), frozenset({"a/x", "b/y"} - {name}))
        assert model is not None
        async with aclosing(model.stream(ASK)) as events:
            async for _ in events:
                bench.time += 2
    after = (await bench.routing.choose(features_of(ASK))).considered
    assert before[0].penalty > before[1].penalty
    assert after[0].penalty < after[1].penalty


async def test_who_is_cut_off_gives_the_place_back_and_pays_for_what_came():
    bench = Bench(["a long answer " * 50], [], a=PoolLimits(concurrency=1))
    async with aclosing(bench.model.stream(ASK)) as events:
        async for event in events:
            if not isinstance(event, RequestStarted):
                break
    lease = await bench.routing.reserve(bench.model.arm, 10)
    assert isinstance(lease, Reservation)
    found = await overview(bench.routing)
    assert found.spending[0].requests == 2
    assert found.spending[0].tokens > bench.routing.estimate(bench.model.arm, 10).tokens


async def test_a_request_that_turns_out_to_have_a_picture_goes_to_who_sees_it():
    bench = Bench([], ["seen"])
    arms = bench.routing.arms
    arms["a/x"] = replace(arms["a/x"], sees_images=False)
    await bench.model.begin(Features.of("Fix the crash"))
    assert bench.model.arm.name == "a/x"
    picture = UserMessage.of("Fix this", Image(media_type="image/png", data=b"x" * 100))
    assert await bench.ask(Request("", [picture])) == "y: seen"


@pytest.mark.integration
async def test_the_same_seed_and_requests_lead_to_the_same_choices():
    async def chosen() -> list[str]:
        bench = Bench([], [])
        routing = Routing(
            this_host(),
            Config(router=RouterSettings(seed=3), providers=bench.routing.config.providers),
            bench.routing.roster,
        )
        for arm in bench.routing.arms.values():
            routing.learner.learn("fix", arm, 0.5)
        kinds = ["Fix the crash", "What is this?", "Write a test for it"] * 4
        decisions = [await routing.choose(Features.of(words)) for words in kinds]
        await routing.aclose()
        return [decision.arm or "" for decision in decisions]

    first, again = await chosen(), await chosen()
    assert first == again
    assert len(set(first)) == 2


def test_an_estimate_is_of_the_longest_answer():
    bench = Bench([], [])
    arm = bench.routing.arms["a/x"]
    assert bench.routing.estimate(arm, 2_000) == Estimate(
        tokens=3_000, usd=(2_000 * 5 + 1_000 * 25) / 1e6
    )
