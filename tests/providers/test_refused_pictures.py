"""Pictures that a server refuses: the request goes again without, whatever the server says, and no later one has them."""

from contextlib import aclosing
from typing import Any

import msgspec
import pytest
from raw_http import chunk, http, sse

from rows import every_row
from ybs.core.errors import AuthError, ContextTooLong, ModelError, RateLimited
from ybs.core.events import Event, Noticed
from ybs.core.messages import AssistantMessage, Image, ToolCall, ToolResult, UserMessage
from ybs.core.ports import Request
from ybs.providers.wire.ollama import OllamaAdapter
from ybs.providers.wire.pictures import RefusedPictures

HELLO = http(sse(chunk({"content": "Hello"}), chunk({}, "stop")))
ONE, TWO, THREE = (Image(media_type="image/png", data=data) for data in (b"1", b"2", b"3"))


def refusal(status: str, words: str) -> bytes:
    body = msgspec.json.encode({"error": {"message": words}})
    return http(body, status=status, type="application/json")


def asking(*images: Image) -> Request:
    return Request("", [UserMessage.of("look", *images)])


def pictures_sent(server: Any) -> list[int]:
    return [str(asked.body).count("base64,") for asked in server.asked]


async def told(model: Any, request: Request) -> list[str]:
    async with aclosing(model.stream(request)) as events:
        return [event.text async for event in events if isinstance(event, Noticed)]


async def failed(model: Any, request: Request) -> ModelError:
    events: list[Event] = []
    with pytest.raises(ModelError) as caught:
        async with aclosing(model.stream(request)) as stream:
            events.extend([event async for event in stream])
    return caught.value


@every_row(
    ("status", "words"),
    [
        ("400 Bad", "messages[3]: unknown variant `image_url`, expected `text`"),  # jcode#848
        ("400 Bad", "Could not process image"),  # claude-code#56016
        ("400 Bad", "Invalid request."),  # kimi-code#3087
        ("400 Bad", "messages.11.content.8: Image format image/png not supported"),
        ("400 Bad", "validating responses image content: image media type not supported"),
        ("404 Not Found", "No endpoints found that can take this"),
        ("413 Too Large", "<html><title>413 Request Entity Too Large</title></html>"),
        ("415 Unsupported", ""),
        ("422 Unprocessable", "body.messages.0.content: input should be a valid string"),
        ("500 Error", "image input is not supported - hint: you may need the mmproj"),
    ],
)
async def test_whatever_a_server_says_the_request_goes_again_without_it(
    status: str, words: str, serve, model_of
):
    server = await serve(refusal(status, words), HELLO)
    model = model_of(server)
    notices = await told(model, asking(ONE))
    assert len(notices) == 1
    assert await told(model, asking(ONE)) == []
    assert pictures_sent(server) == [1, 0, 0]
    assert "left out" in str(server.asked[-1].body)
    assert model.waits == []


async def test_a_server_that_fails_without_a_word_of_pictures_is_asked_once_more_first(
    serve, model_of
):
    broken = refusal("500 Error", "internal error")
    server = await serve(broken, HELLO, broken, broken, HELLO)
    model = model_of(server)
    assert await told(model, asking(ONE)) == []
    assert len(await told(model, asking(ONE, TWO))) == 1
    assert pictures_sent(server) == [1, 1, 2, 2, 1]  # the one that it took before stays


@every_row(
    ("status", "words", "kind"),
    [
        ("401 Unauthorized", "the key cannot be used for images", AuthError),
        ("429 Too Many", "too many images", RateLimited),
        ("400 Bad", "the prompt is too long: 9000 tokens", ContextTooLong),
        ("413 Too Large", "prompt has too many tokens", ContextTooLong),
        ("402 Payment", "insufficient balance", ModelError),
    ],
)
async def test_what_is_clearly_about_something_else_is_told(status, words, kind, serve, model_of):
    server = await serve(refusal(status, words))
    model = model_of(server)
    assert isinstance(await failed(model, asking(ONE)), kind)
    assert set(pictures_sent(server)) == {1}


async def test_a_picture_that_was_not_the_reason_is_sent_again_the_next_time(serve, model_of):
    server = await serve(*[refusal("404 Not Found", "no such model")] * 2, HELLO)
    model = model_of(server)
    assert "no such model" in str(await failed(model, asking(ONE)))
    assert await told(model, asking(ONE)) == []
    assert pictures_sent(server) == [1, 0, 1]


async def test_without_a_picture_a_refusal_is_told_at_once(serve, model_of):
    server = await serve(refusal("400 Bad", "Could not process image"))
    await failed(model_of(server), asking())
    assert len(server.asked) == 1


async def test_only_the_picture_that_is_new_is_suspected(serve, model_of):
    server = await serve(HELLO, refusal("400 Bad", "Could not process image"), HELLO)
    model = model_of(server)
    await told(model, asking(ONE))
    assert len(await told(model, asking(ONE, TWO))) == 1
    await told(model, asking(ONE, TWO, THREE))
    assert pictures_sent(server) == [1, 2, 1, 2]
    assert model.quirks.sees_images


async def test_where_two_are_refused_and_none_was_ever_taken_none_is_sent(serve, model_of):
    no = refusal("400 Bad", "nope")
    server = await serve(no, HELLO, no, HELLO)
    model = model_of(server)
    await told(model, asking(ONE))
    await told(model, asking(ONE, TWO))
    await told(model, asking(ONE, TWO, THREE))
    assert pictures_sent(server) == [1, 0, 1, 0, 0]
    assert not model.quirks.sees_images


async def test_a_picture_of_a_tool_is_left_out_of_its_result(serve, model_of):
    request = Request(
        "",
        [
            UserMessage.of("look"),
            AssistantMessage(content=(ToolCall(id="c", name="read_file"),)),
            ToolResult(call_id="c", name="read_file", output="p.png", images=(ONE,)),
        ],
    )
    answer = '{"message":{"content":"hi"},"done":true}\n'
    server = await serve(refusal("400 Bad", "Invalid request."), http(answer))
    assert len(await told(model_of(server, adapter=OllamaAdapter()), request)) == 1
    first, again = (asked.body["messages"] for asked in server.asked)
    assert "images" in first[-1]
    assert again[-1]["role"] == "tool"
    assert again[-1]["content"] == (
        "p.png\n[A picture (image/png) was left out: the server refused it.]"
    )


def test_a_request_without_refused_pictures_stays_the_same_object():
    pictures = RefusedPictures()
    request = asking(ONE)
    assert pictures.without(request) is request
    assert pictures.suspect(request)
    assert pictures.settle(request, is_good=True)
    first, again = pictures.without(request), pictures.without(request)
    assert first.messages[0] is again.messages[0]


def test_pictures_that_a_conversation_took_stay_taken_while_it_grows():
    pictures = RefusedPictures()
    said = [UserMessage.of("look", ONE)]
    pictures.settle(Request("", said), is_good=True)
    said = [*said, UserMessage.of("and", TWO)]
    pictures.settle(Request("", said), is_good=True)
    later = Request("", [*said, UserMessage.of("now", THREE)])
    assert pictures.suspect(later)
    assert [*pictures.without(later).messages[:2]] == said
    assert pictures.without(later).messages[2] != later.messages[2]
