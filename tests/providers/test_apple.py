"""Apple Foundation Models, by a double of their package."""

import asyncio
import sys
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import apple_double as double
import msgspec
import pytest
from apple_double import Script, package

from hosts import this_host
from rows import every_row
from ybs.config.schema import Config, LlmSettings
from ybs.core.errors import ConfigError, ContextTooLong, ProviderDown, RateLimited
from ybs.core.events import AssistantSaid, TextStreamed
from ybs.core.messages import AssistantMessage, Text, Usage, UserMessage
from ybs.core.ports import Request, ToolSpec
from ybs.providers import apple
from ybs.providers.http.failures import NotServed
from ybs.providers.reachable import look
from ybs.providers.registry import create_model

LOOK = ToolSpec(name="look", description="Look.", parameters=msgspec.Raw(b'{"type":"object"}'))
REQUEST = Request("Be brief.", [UserMessage.of("hi")])
Play = Callable[..., tuple[Any, Script]]


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Play:
    """Give a function that makes the model on a Mac whose package plays snapshots."""

    def make(
        *snapshots: str | Exception, reason: int | None = None, **llm: Any
    ) -> tuple[Any, Script]:
        script = Script(*snapshots, reason=reason)
        monkeypatch.setattr(apple, "platform", lambda: "darwin")
        monkeypatch.setitem(sys.modules, "apple_fm_sdk", package(script))
        config = Config(llm=LlmSettings(provider="apple", **llm))
        return create_model(this_host(), config), script

    return make


async def events_of(model: Any, request: Request = REQUEST) -> list[Any]:
    async with aclosing(model.stream(request)) as events:
        return [each async for each in events]


async def test_what_each_snapshot_adds_is_streamed(play: Play) -> None:
    model, script = play("It", "It works", "It works.", temperature=0.5)
    said = AssistantMessage(
        content=(Text(text="It works."),), model="foundation", usage=Usage(cost_usd=0.0)
    )
    assert await events_of(model) == [
        *(TextStreamed(text=each) for each in ("It", " works", ".")),
        AssistantSaid.of(said),
    ]
    (asked,) = script.asked
    options = double.GenerationOptions(temperature=0.5, maximum_response_tokens=1024)
    assert asked == ("Be brief.", "hi", options)
    assert (model.name, model.window, await model.list_models()) == (
        "foundation",
        4096,
        ["foundation"],
    )


async def test_the_first_release_takes_no_options_and_does_not_tell_its_window(play, monkeypatch):
    model, script = play("Yes.")
    monkeypatch.delattr(sys.modules["apple_fm_sdk"], "GenerationOptions")
    (kind,) = sys.modules["apple_fm_sdk"].SystemLanguageModel.__bases__
    monkeypatch.delattr(kind, "context_size")
    assert (await events_of(model))[-1].message.text == "Yes."
    assert (script.asked[0][2], model.window) == (None, 4096)


async def test_a_snapshot_that_changes_what_was_shown_is_in_the_whole_message(play: Play) -> None:
    model, _ = play("It", "That is it.")
    *shown, said = await events_of(model)
    assert shown == [TextStreamed(text="It")]
    assert said.message.text == "That is it."


async def test_tools_are_called_in_the_text(play: Play) -> None:
    model, script = play('{"name": "look",', '{"name": "look", "arguments": {"at": "a"}}')
    said = (await events_of(model, Request("Be brief.", [UserMessage.of("hi")], [LOOK])))[-1]
    assert [(call.name, bytes(call.arguments)) for call in said.message.calls] == [
        ("look", b'{"at":"a"}')
    ]
    assert "look" in (script.asked[0][0] or "")
    done = Request("", [UserMessage.of("hi"), said.message, UserMessage.of("go on")], [LOOK])
    await events_of(model, done)
    assert "## assistant" in script.asked[1][1]


@every_row(
    ("error", "kind", "words"),
    [
        (
            double.ExceededContextWindowSizeError("4097"),
            ContextTooLong,
            "too long for Apple's model",
        ),
        (double.RateLimitedError("slow"), RateLimited, "no more requests for now: slow"),
        (double.GuardrailViolationError("no"), NotServed, "guardrails refuse this request: no"),
        (double.FoundationModelsError("x\x1b[2J"), ProviderDown, "gave no whole answer: x [2J"),
    ],
)
async def test_its_errors_are_those_of_ybs(play, error, kind, words):
    model, _ = play("It", error)
    with pytest.raises(kind) as caught:
        await events_of(model)
    assert words in str(caught.value)


@every_row(("reason", "words"), [(0, "switched off"), (1, "this Mac cannot"), (2, "downloaded"), (255, "does not say")])  # fmt: skip
async def test_a_model_that_is_not_available_says_why(play: Play, reason: int, words: str) -> None:
    model, script = play("never", reason=reason)
    with pytest.raises(NotServed, match=words):
        await events_of(model)
    with pytest.raises(NotServed, match=words):
        await model.list_models()
    assert script.asked == []


async def test_a_cancel_ends_at_once_and_the_rest_is_not_heard(play: Play) -> None:
    model, script = play("It", "It works", "It works.")
    script.goes_on.clear()
    asking = asyncio.create_task(events_of(model))
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.wait((asking,))
    assert asking.cancelled()
    assert not script.has_ended.is_set()  # the SDK still blocks its own thread
    script.goes_on.set()
    assert await asyncio.to_thread(script.has_ended.wait, 9)


async def test_silence_has_a_limit(play: Play) -> None:
    model, script = play("It", timeout_seconds=0.01)
    script.goes_on.clear()
    with pytest.raises(ProviderDown, match=r"nothing came for 0\.01 s"):
        await events_of(model)
    script.goes_on.set()
    assert await asyncio.to_thread(script.has_ended.wait, 9)


async def test_elsewhere_and_without_the_package_it_says_so(monkeypatch):
    config = Config(llm=LlmSettings(provider="apple"))
    monkeypatch.setattr(apple, "platform", lambda: "linux")
    with pytest.raises(ConfigError, match="run on macOS only"):
        create_model(this_host(), config)
    monkeypatch.setattr(apple, "platform", lambda: "darwin")
    monkeypatch.setitem(sys.modules, "apple_fm_sdk", None)
    with pytest.raises(ConfigError, match="apple-fm-sdk cannot be used") as caught:
        create_model(this_host(), config)
    assert "pip install apple-fm-sdk" in caught.value.remedies[0].value


async def test_it_has_one_model_and_is_found_where_it_is(play, monkeypatch):
    play("x")
    monkeypatch.setattr(apple, "find_spec", lambda _name: object())
    assert (await look(this_host(), "apple", Config())).state == "installed"
    with pytest.raises(ConfigError, match="apple has one model, foundation"):
        create_model(this_host(), Config(llm=LlmSettings(provider="apple", model="other")))
    monkeypatch.setattr(apple, "platform", lambda: "linux")
    assert (await look(this_host(), "apple", Config())).state == "absent"
