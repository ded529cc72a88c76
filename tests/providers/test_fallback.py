"""The fallback chain: which failures pass a request on, to whom, for how long, and what the person is told."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import pytest
from msgspec.structs import replace

from rows import every_row
from scripted import AnthropicServer, HttpError, OpenAIServer
from ybs.config.host import Host
from ybs.config.layers import Loaded
from ybs.config.schema import AgentLimits, Config, Endpoint, IncognitoSettings, LlmSettings
from ybs.core.errors import (
    AuthError,
    ConfigError,
    ContextTooLong,
    ModelError,
    ProviderDown,
    RateLimited,
)
from ybs.core.events import (
    AssistantSaid,
    Event,
    Noticed,
    RequestRetried,
    RequestStarted,
    TextStreamed,
)
from ybs.core.messages import UserMessage
from ybs.core.ports import Request
from ybs.providers.fallback import (
    COOL_DOWN_SECONDS,
    FallbackModel,
    _Link,
    complaint_about,
    with_fallbacks,
)
from ybs.providers.http.failures import BadRequest, NotServed, Unavailable
from ybs.providers.registry import InProcessModel, create_model
from ybs.testing import Failing, ScriptedModel

ASK = Request("", [UserMessage.of("hi")])
LOCAL = "http://127.0.0.1:9"


class Chain:
    """A chain of scripted models that share no address, and a clock that is moved by hand."""

    def __init__(self, *scripts: list[Any], places: str = "abc") -> None:
        self.time = 100.0
        self.models = [
            ScriptedModel(script, name=name, window=window)
            for script, name, window in zip(
                scripts, ("one", "two", "three"), (9_000, 5_000, 7_000), strict=False
            )
        ]
        held = [InProcessModel(model, 1_000) for model in self.models]
        others = [
            _Link(each.name, place, lambda each=each: each)
            for each, place in zip(held[1:], places[1:], strict=False)
        ]
        self.model = FallbackModel(held[0], "one", places[0], others, now=lambda: self.time)
        self.events: list[Event] = []

    async def ask(self) -> str:
        self.events.clear()
        async with aclosing(self.model.stream(ASK)) as events:
            async for event in events:
                self.events.append(event)
        last = self.events[-1]
        assert isinstance(last, AssistantSaid)
        return f"{last.model}: {last.content}"

    @property
    def told(self) -> list[str]:
        return [each.text for each in self.events if isinstance(each, Noticed)]

    @property
    def started(self) -> list[str]:
        return [each.model for each in self.events if isinstance(each, RequestStarted)]


@every_row(
    "error",
    [
        ProviderDown("Nobody answers."),
        RateLimited("Slow down."),
        Unavailable("Overloaded."),
        NotServed("No credit."),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_what_another_provider_may_do_better_is_passed_on_in_one_line(error: ModelError):
    chain = Chain([error], ["hello"])
    assert await chain.ask() == "two: hello"
    assert chain.told == [f"{error} two is asked instead."]
    assert chain.started == ["two"]
    assert chain.model.name == "one"


@every_row(
    "error",
    [
        AuthError("The key was refused."),
        BadRequest("No.", said="No."),
        ContextTooLong("Too long."),
        ModelError("A web page."),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_what_is_for_the_person_is_not_passed_on(error: ModelError):
    chain = Chain([error], ["never"])
    with pytest.raises(type(error), match=str(error)):
        await chain.ask()
    assert not chain.models[1].requests
    assert not chain.told


async def test_a_certificate_that_does_not_fit_is_not_passed_on():
    error = ProviderDown("TLS.")
    error.temporary = False
    chain = Chain([error], ["never"])
    with pytest.raises(ProviderDown):
        await chain.ask()


async def test_an_answer_that_breaks_off_is_begun_anew_by_the_next():
    chain = Chain([Failing("half", ProviderDown("Broke off."))], ["whole"])
    assert await chain.ask() == "two: whole"
    pieces = [each.text for each in chain.events if isinstance(each, TextStreamed)]
    assert pieces == ["half", "whole"]
    assert (chain.told, chain.started) == (["Broke off. two is asked instead."], ["two"])


class Retrying(ScriptedModel):
    """A model that says that it tries again before it answers."""

    def __init__(self, *pauses: RequestRetried) -> None:
        super().__init__(["late"], name="one", window=9_000)
        self.pauses = pauses

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        for pause in self.pauses:
            yield pause
        async with aclosing(super().stream(request)) as events:
            async for event in events:
                yield event


def pause(seconds: float, kind: Any) -> RequestRetried:
    return RequestRetried(attempt=1, wait_seconds=seconds, message="Slow down.", pause=kind)


@every_row(
    ("pauses", "answer"),
    [
        ([pause(1, "asked")], "two: soon"),
        ([pause(0.9, "backoff")], "one: late"),
        ([pause(0.9, "backoff"), pause(1.2, "backoff")], "two: soon"),
        ([pause(1, "loading")] * 9, "one: late"),
    ],
    ids=["asked", "short", "long", "loading"],
)
async def test_no_long_pause_is_made_while_another_model_stands_ready(
    pauses: list[RequestRetried], answer: str
):
    chain = Chain([], ["soon"])
    model = InProcessModel(Retrying(*pauses), 1_000)
    chain.model = FallbackModel(model, "one", "a", chain.model._links[1:], now=lambda: chain.time)
    assert await chain.ask() == answer
    assert len(chain.told) == (answer == "two: soon")


async def test_a_pause_is_made_where_the_other_model_rests():
    chain = Chain([], [RateLimited("Slow.", retry_after_seconds=99)])
    model = InProcessModel(Retrying(pause(30, "asked")), 1_000)
    chain.model = FallbackModel(model, "one", "a", chain.model._links[1:], now=lambda: chain.time)
    chain.model._links[1].rests_until = chain.time + 50
    assert await chain.ask() == "one: late"


async def test_a_server_that_asks_for_a_pause_passes_on_at_once_and_rests_so_long():
    script = [HttpError(status=429, headers={"Retry-After": "50"}), "rested"]
    async with OpenAIServer(script) as busy, OpenAIServer(["here", "here too"]) as other:
        config = Config(
            llm=LlmSettings(provider="busy", fallback=("other/b",)),
            providers={
                "busy": Endpoint(wire="openai", endpoint=busy.url, model="a"),
                "other": Endpoint(wire="openai", endpoint=other.url),
            },
        )
        host = Host.of({})
        model = with_fallbacks(host, config, "busy", create_model(host, config, provider="busy"))
        async with aclosing(model.stream(ASK)) as events:
            seen = [event async for event in events]
        assert isinstance(seen[-1], AssistantSaid)
        assert (seen[-1].content, seen[-1].model) == ("here", "b")
        assert not [each for each in seen if isinstance(each, RequestRetried)]
        await model.aclose()
        assert len(busy.requests) == 1


async def test_a_model_that_failed_rests_and_is_then_asked_first_again():
    chain = Chain([ProviderDown("Down."), ProviderDown("Down."), "back"], ["1", "2", "3"])
    assert chain.model.window == 9_000
    assert await chain.ask() == "two: 1"
    assert (chain.model.window, chain.model.max_tokens) == (5_000, 1_000)
    assert await chain.ask() == "two: 2"
    assert (len(chain.models[0].requests), chain.told, chain.started) == (1, [], ["two"])
    chain.time += COOL_DOWN_SECONDS + 1
    assert await chain.ask() == "two: 3"  # it was asked, in vain, which is not worth a line
    assert (len(chain.models[0].requests), chain.told) == (2, [])
    chain.time += COOL_DOWN_SECONDS + 1
    assert await chain.ask() == "one: back"
    assert (chain.told, chain.started) == (["one answers again."], [])
    assert chain.model.window == 9_000


async def test_a_server_that_asks_for_a_longer_rest_gets_it():
    chain = Chain([RateLimited("Slow.", retry_after_seconds=300), "back"], ["1", "2"])
    await chain.ask()
    chain.time += 299
    assert await chain.ask() == "two: 2"
    chain.time += 2
    assert await chain.ask() == "one: back"


async def test_models_at_an_address_where_nobody_answers_rest_together():
    chain = Chain([ProviderDown("Nobody.")], [], ["hello"], places="aab")
    assert await chain.ask() == "three: hello"
    assert not chain.models[1].requests


async def test_a_busy_model_does_not_keep_its_neighbour_from_answering():
    chain = Chain([Unavailable("Overloaded.")], ["hello"], ["never"], places="aab")
    assert await chain.ask() == "two: hello"


async def test_where_all_fail_the_last_one_says_why_and_those_that_rest_are_tried():
    down = ProviderDown("Down.")
    chain = Chain([down, "back"], [ProviderDown("Two down.")] * 2)
    with pytest.raises(ProviderDown, match=r"Two down\."):
        await chain.ask()
    assert await chain.ask() == "one: back"


async def test_a_fallback_that_cannot_be_made_is_named_and_passed_over():
    def no_key() -> Any:
        raise AuthError("b needs a key, and none is set.")

    first = InProcessModel(ScriptedModel([ProviderDown("Down.")] * 2), 1)
    third = InProcessModel(ScriptedModel(["hello"], name="c"), 1)
    model = FallbackModel(
        first, "a", "a", [_Link("b", "b", no_key), _Link("c", "c", lambda: third)]
    )
    async with aclosing(model.stream(ASK)) as events:
        told = [event.text async for event in events if isinstance(event, Noticed)]
    assert told == [
        "b cannot take over: b needs a key, and none is set.",
        "b needs a key, and none is set. c is asked instead.",
    ]
    alone = FallbackModel(first, "a", "a", [_Link("b", "b", no_key)])
    with pytest.raises(ProviderDown, match=r"Down\."):
        async with aclosing(alone.stream(ASK)) as events:
            [event async for event in events]


def config_of(provider: str, *fallback: str, **more: Any) -> Config:
    return Config(
        llm=LlmSettings(provider=provider, model="m", fallback=fallback, **more),
        providers={
            "here": Endpoint(endpoint=LOCAL, model="h"),
            "house": Endpoint(endpoint="http://192.168.1.5:80", model="h"),
            "away": Endpoint(endpoint="https://models.example/v1", model="a"),
            "bare": Endpoint(endpoint="https://models.example/v1"),
        },
    )


@every_row(
    "provider, entry, is_left_out",
    [
        ("away", "here", False),
        ("away", "house", False),
        ("house", "here", False),
        ("here", "house", True),
        ("here", "away", True),
        ("house", "away", True),
        ("here", "ollama/gpt-oss:120b-cloud", True),
        ("away", "bare", True),  # it has no model
        ("away", "nobody", True),
    ],
)
def test_a_conversation_goes_no_further_away_unless_the_settings_say_so(
    provider: str, entry: str, is_left_out: bool
):
    name, _, model = entry.partition("/")
    config = config_of(provider, entry)
    words = complaint_about(Host.of({}), config, provider, "m", (name, model))
    assert bool(words) is is_left_out
    far = config_of(provider, entry, fallback_elsewhere=True)
    words = complaint_about(Host.of({}), far, provider, "m", (name, model))
    assert bool(words) is (name in ("bare", "nobody"))


def test_incognito_with_local_models_only_has_local_fallbacks_only():
    config = config_of("away", "here", "house", fallback_elsewhere=True)
    private = Config(
        llm=config.llm,
        providers=config.providers,
        incognito=IncognitoSettings(enabled=True, local_only=True),
    )
    left = [
        complaint_about(Host.of({}), private, "away", "m", (name, "")) for name in ("here", "house")
    ]
    assert [bool(each) for each in left] == [False, True]


def test_an_entry_that_names_a_provider_alone_is_judged_by_the_model_that_it_means():
    """Ollama passes such a model on to its cloud, so that the conversation would leave the machine."""
    home = Endpoint(endpoint="http://127.0.0.1:11434/v1", model="gpt-oss:120b-cloud")
    settings = Config(
        llm=LlmSettings(provider="mine", model="qwen3:8b", fallback=["home"]),
        providers={"mine": Endpoint(endpoint=LOCAL), "home": home},
    )
    host = Host.of({})
    for incognito in (IncognitoSettings(), IncognitoSettings(enabled=True, local_only=True)):
        config = replace(settings, incognito=incognito)
        words = [
            complaint_about(host, config, "mine", "qwen3:8b", ("home", model))
            for model in ("", "gpt-oss:120b-cloud")
        ]
        assert words[0] == words[1]
        assert "is left out" in words[0]
        first = create_model(host, config)
        assert with_fallbacks(host, config, "mine", first) is first
    local = replace(
        settings, providers={**settings.providers, "home": Endpoint(endpoint=LOCAL, model="m")}
    )
    assert complaint_about(host, local, "mine", "qwen3:8b", ("home", "")) == ""


async def test_a_chain_over_the_wire_goes_from_one_format_to_another():
    from ybs.agent.model_choice import next_model, open_model

    busy = HttpError(status=529, message="overloaded")
    async with AnthropicServer([busy]) as first, OpenAIServer(["hello"]) as second:
        config = Config(
            llm=LlmSettings(provider="first", model="a", fallback=("first/a", "second")),
            agent=AgentLimits(retry_attempts=0),
            providers={
                "first": Endpoint(endpoint=first.url, wire="anthropic"),
                "second": Endpoint(endpoint=second.url, model="b"),
            },
        )
        loaded = Loaded(host=Host.of({}), config=config, origins={})
        _, model = open_model(loaded)
        async with aclosing(model.stream(ASK)) as events:
            *_, last = [event async for event in events]
        assert isinstance(last, AssistantSaid)
        assert (last.model, last.content) == ("b", "hello")
        await model.aclose()
        alone = next_model(loaded, None, provider="second", model="b")
        assert isinstance(alone, FallbackModel)  # `first` may take over for it
        await alone.aclose()
    assert not isinstance(create_model(Host.of({}), config), FallbackModel)


def test_the_first_model_may_be_missing_and_then_a_start_fails_as_ever():
    from ybs.agent.model_choice import open_model

    config = Config(llm=LlmSettings(provider="nobody", fallback=("ollama",)))
    with pytest.raises(ConfigError):
        open_model(Loaded(host=Host.of({}), config=config, origins={}))
