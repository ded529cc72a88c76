"""A window that nobody names is assumed, and that is said once; an unknown price is unknown."""

from typing import Any

import msgspec

from hosts import this_host
from rows import every_row
from scripted import OpenAIServer
from scripted.response import Response
from ybs.agent.window import Window
from ybs.config.schema import Config, ContextSettings, Endpoint, LlmSettings
from ybs.config.sections import ModelEntry
from ybs.core.events import Noticed
from ybs.core.messages import Usage, UserMessage
from ybs.core.ports import Request
from ybs.core.remedies import Remedy
from ybs.providers.registry import create_model, find_provider, price_at
from ybs.testing import answer

JSON = "application/json"
REQUEST = Request("Be brief.", [UserMessage.of("hi")])


def made(endpoint: str, model: str = "odd", **more: Any) -> Any:
    entry = {"window": more.pop("window")} if "window" in more else {}
    config = Config(
        providers={"own": Endpoint(endpoint=endpoint, **entry)},
        llm=LlmSettings(provider="own", model=model),
        **more,
    )
    return create_model(this_host(), config)


async def notes_of(window: Window, model: Any) -> list[Noticed]:
    events = [event async for event in window.watching(model).stream(REQUEST)]
    return [event for event in events if isinstance(event, Noticed)]


async def test_it_is_said_once_the_server_was_asked_and_never_again():
    async with OpenAIServer(["a", "b", "c", "d"]) as server:
        model = made(server.url)
        window = Window("own", model, tuple)
        assert await notes_of(window, model) == []  # in time for nothing yet
        await window.ask()
        (note,) = await notes_of(window, model)
        assert "window of odd is not known, so 32,768 tokens are assumed" in note.text
        assert note.remedies == (Remedy("set_number", "models.odd.window"),)
        assert await notes_of(window, model) == []
        rebuilt = Window("own", model, tuple)
        await rebuilt.ask()
        assert await notes_of(rebuilt, model) == []
        await model.aclose()


async def test_headless_it_is_said_when_a_request_takes_much_of_it():
    much = answer("a", usage=Usage(input_tokens=20_000, output_tokens=1))
    async with OpenAIServer([much, "b"]) as server:
        model = made(server.url)
        window = Window("own", model, tuple)
        assert await notes_of(window, model) == []
        assert len(await notes_of(window, model)) == 1
        await model.aclose()


@every_row(
    ("model", "more"),
    [
        ("qwen3:8b", {}),
        ("odd", {"window": 9000}),
        ("odd", {"models": {"odd": ModelEntry(window=9000)}}),
        ("odd", {"context": ContextSettings(max_tokens=9000)}),
    ],
)
def test_what_the_person_or_the_catalog_knows_is_not_assumed(model: str, more: dict[str, Any]):
    made_model = made("http://127.0.0.1:9/v1", model, **dict(more))
    assert not made_model.assumes_window
    assert made_model.assumption() is None


@every_row(
    ("path", "told", "window"),
    [
        ("/v1/models", {"data": [{"id": "odd", "max_model_len": 8192}]}, 8192),
        ("/v1/models", {"data": [{"id": "odd", "context_length": 8192}]}, 8192),
        ("/props", {"default_generation_settings": {"n_ctx": 4096}}, 4096),
        ("/api/v0/models", {"data": [{"id": "odd", "loaded_context_length": 6000, "max_context_length": 90_000}]}, 6000),
    ],
)  # fmt: skip
async def test_a_server_that_tells_is_believed(path: str, told: dict[str, Any], window: int):
    class Telling(OpenAIServer):
        def _facts(self, request: Any) -> Response:
            known = request.path == path
            body = msgspec.json.encode(told if known else {"error": {"message": "no"}})
            return Response(
                status=200 if known else 404, headers={"content-type": JSON}, chunks=(body,)
            )

    async with Telling() as server:
        model = made(server.url)
        assert await model.detect_window() == window
        assert not model.assumes_window
        await model.aclose()


@every_row(
    ("endpoint", "model", "is_known"),
    [
        ("http://127.0.0.1:4000/v1", "qwen3:8b", True),
        ("http://127.0.0.1:4000/v1", "gpt-4.1", False),  # a gateway: nobody has that at home
        ("http://192.168.1.5/v1", "anthropic/claude-sonnet-5", False),
        ("https://models.example/v1", "qwen3:8b", False),
    ],
)
def test_what_is_sold_by_its_maker_alone_is_not_free_at_home(
    endpoint: str, model: str, is_known: bool
):
    config = Config(providers={"own": Endpoint(endpoint=endpoint)})
    assert (price_at(find_provider("own", config), model) is not None) is is_known
