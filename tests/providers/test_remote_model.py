import asyncio
from contextlib import aclosing
from itertools import count

import msgspec
import pytest
from raw_http import chunk, http, sse, unending

from rows import every_row
from ybs.commands.advice import told
from ybs.core.agent import Agent
from ybs.core.conversation import Conversation
from ybs.core.errors import AuthError, ContextTooLong, ModelError, ProviderDown, RateLimited
from ybs.core.events import AssistantSaid, Noticed, RequestRetried, TextStreamed, ToolCallStreamed
from ybs.core.messages import Image, Text, ToolResult, Usage, UserMessage
from ybs.core.ports import Request, ToolSpec
from ybs.providers.catalog import FREE, Price
from ybs.providers.http.failures import Unavailable
from ybs.providers.remote import RemoteModel, Retry, Terms
from ybs.providers.wire.anthropic import AnthropicAdapter
from ybs.providers.wire.ollama import PROVIDER as OLLAMA
from ybs.providers.wire.ollama import OllamaAdapter
from ybs.providers.wire.quirks import Quirks
from ybs.testing.toolbox import ScriptedToolbox

HELLO = http(
    sse(
        chunk({"role": "assistant", "content": None}),
        chunk({"content": "Hel"}),
        chunk({"content": "lo"}),
        chunk({}, "stop"),
        {"choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 100}},
    )
)
BUSY = http("", status="503 Service Unavailable")
LOADING = http('{"error":{"message":"Loading model","code":503}}', status="503 Service Unavailable")
LOOK = ToolSpec(name="look", description="", parameters=msgspec.Raw(b"{}"))
REQUEST = Request("", [UserMessage.of("hi")])


def said(text: str) -> AssistantSaid:
    return AssistantSaid(content=text, model="m")


async def events_of(model: RemoteModel, request: Request = REQUEST) -> list:
    async with aclosing(model.stream(request)) as events:
        return [event async for event in events]


async def error_of(model: RemoteModel, request: Request = REQUEST) -> tuple[list, ModelError]:
    seen = []
    with pytest.raises(ModelError) as caught:  # noqa: PT012 - what came before the error counts too
        async with aclosing(model.stream(request)) as events:
            async for event in events:
                seen.append(event)  # noqa: PERF401 - likewise
    return seen, caught.value


async def test_an_answer_is_streamed_and_then_said_whole(serve, model_of):
    model = model_of(await serve(HELLO), terms=Terms(price=Price(1, 10, 0.5)))
    assert await events_of(model) == [
        TextStreamed(text="Hel"),
        TextStreamed(text="lo"),
        AssistantSaid(
            content="Hello",
            model="m",
            usage=Usage(input_tokens=1000, output_tokens=100, cost_usd=0.002),
        ),
    ]


async def test_an_answer_that_comes_faster_than_it_is_read_lets_the_rest_have_its_turn(
    serve, model_of, monkeypatch: pytest.MonkeyPatch
):
    words = [chunk({"content": "x"})] * 200
    model = model_of(await serve(http(sse(*words, chunk({}, "stop")))))
    clock = count(step=0.001)  # each look at it is a millisecond later
    monkeypatch.setattr("ybs.providers.remote.monotonic", lambda: next(clock))
    seen: list[int] = []

    async def watch() -> None:
        while True:
            turns.append(len(seen))
            await asyncio.sleep(0)

    turns: list[int] = []
    watching = asyncio.create_task(watch())
    async with aclosing(model.stream(REQUEST)) as events:
        async for _ in events:
            seen.append(1)  # noqa: PERF401 - it is watched as it grows
    watching.cancel()
    assert 15 <= len(set(turns)) <= 50


async def test_an_unknown_price_is_no_cost_and_a_local_one_is_zero(serve, model_of):
    server = await serve(HELLO)
    assert (await events_of(model_of(server)))[-1].usage.cost_usd is None
    free = model_of(server, terms=Terms(price=FREE))
    assert (await events_of(free))[-1].usage.cost_usd == 0.0


async def test_without_counts_the_cost_is_unknown_unless_it_is_free(serve, model_of):
    server = await serve(http(sse(chunk({"content": "x"}, "stop"))))
    model = model_of(server, terms=Terms(price=Price(1, 1, 1)))
    assert (await events_of(model))[-1].usage == Usage()
    free = model_of(server, terms=Terms(price=FREE))
    assert (await events_of(free))[-1].usage == Usage(cost_usd=0.0)


async def test_the_output_shrinks_in_small_windows(serve, model_of):
    server = await serve(HELLO)
    small = model_of(server, window=4096, max_tokens=4096)
    bounded = model_of(server, window=100_000, max_tokens=4096, terms=Terms(max_output=500))
    tiny = model_of(server, window=2)
    assert [m.max_tokens for m in (small, bounded, tiny)] == [1024, 500, 1]
    await events_of(small)
    assert server.asked[0].body["max_tokens"] == 1024


def test_a_model_tells_what_it_is(model_of):
    class Nowhere:
        url = "http://127.0.0.1:1/v1"

    model = model_of(Nowhere, window=5000, quirks=Quirks(streams=False))
    assert (model.name, model.window, model.provider) == ("m", 5000, "p")
    assert (model.endpoint, model.quirks.streams) == ("http://127.0.0.1:1/v1", False)


# Sending again


async def test_a_busy_server_is_asked_again_and_each_time_is_told(serve, model_of):
    server = await serve(BUSY, BUSY, HELLO)
    model = model_of(server)
    first, second, *rest = await events_of(model)
    assert isinstance(first, RequestRetried)
    assert (first.attempt, second.attempt) == (1, 2)
    assert "cannot answer now (503)" in first.message
    assert [first.wait_seconds, second.wait_seconds] == model.waits
    assert rest[-1].content == "Hello"


async def test_it_is_asked_as_often_as_configured_and_no_more(serve, model_of):
    server = await serve(BUSY)
    events, error = await error_of(model_of(server, retry=Retry(attempts=2)))
    assert len(events) == 2
    assert len(server.asked) == 3
    assert isinstance(error, Unavailable)
    _, error = await error_of(model_of(server, retry=Retry(attempts=0)))
    assert len(server.asked) == 4


async def test_nobody_there_is_asked_again_too(unused_tcp_port, model_of):
    class Nowhere:
        url = f"http://127.0.0.1:{unused_tcp_port}"

    events, error = await error_of(model_of(Nowhere))
    assert [type(event) for event in events] == [RequestRetried] * 2
    assert "connection refused" in str(error)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("401 No", AuthError),
        ("404 No", ModelError),
        ("400 No", ModelError),
        ("413 No", ContextTooLong),
    ],
)
async def test_what_will_not_pass_is_not_sent_again(serve, model_of, status, kind):
    server = await serve(http("", status=status))
    events, error = await error_of(model_of(server))
    assert (events, len(server.asked)) == ([], 1)
    assert isinstance(error, kind)


async def test_an_empty_account_is_not_asked_again(serve, model_of):
    body = '{"error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}'
    server = await serve(http(body, status="429 Too Many"))
    events, _ = await error_of(model_of(server))
    assert (events, len(server.asked)) == ([], 1)


async def test_the_pause_that_the_server_asks_for_is_kept(serve, model_of):
    slow = http("", status="429 Too Many", retry_after="7")
    model = model_of(await serve(slow, BUSY, HELLO))
    await events_of(model)
    assert model.waits[0] == 7


async def test_too_long_a_pause_is_told_instead(serve, model_of):
    server = await serve(http("", status="429 Too Many", retry_after="3600"))
    events, error = await error_of(model_of(server))
    assert (events, len(server.asked)) == ([], 1)
    assert isinstance(error, RateLimited)
    assert error.retry_after_seconds == 3600
    assert "in 60 min" in told(error)


async def test_an_error_in_the_stream_before_output_is_tried_again(serve, model_of):
    overloaded = http('data: {"error": {"type": "overloaded_error", "message": "x"}}\n\n')
    server = await serve(overloaded, HELLO)
    events = await events_of(model_of(server))
    assert isinstance(events[0], RequestRetried)
    assert events[-1].content == "Hello"


async def test_a_server_that_loads_its_model_is_waited_for_longer(serve, model_of):
    server = await serve(*[LOADING] * 9, HELLO)
    model = model_of(server, retry=Retry(attempts=1))
    events = await events_of(model)
    assert [e.attempt for e in events if isinstance(e, RequestRetried)] == list(range(1, 10))
    assert model.waits == [1.0] * 9


@pytest.mark.integration
async def test_loading_without_end_is_given_up(serve, model_of):
    model = model_of(await serve(LOADING))
    events, error = await error_of(model)
    assert isinstance(error, Unavailable)
    assert sum(model.waits) == len(events) == 600


@every_row(
    ("attempt", "chance", "wait"),
    [(1, 1.0, 1.0), (2, 1.0, 2.0), (3, 0.5, 3.0), (4, 1.0, None), (3, 0.0, 2.0)],
)
def test_pauses_grow_and_a_half_is_jitter(attempt: int, chance: float, wait: float | None):
    retry = Retry(attempts=3, base_ms=1000)
    assert retry.wait_seconds(ProviderDown("x"), attempt, chance=chance) == wait


def test_pauses_have_an_end():
    retry = Retry(attempts=20, base_ms=10_000, most_seconds=65)
    assert retry.wait_seconds(ProviderDown("x"), 3, chance=1.0, failing_seconds=25) == 40
    assert retry.wait_seconds(ProviderDown("x"), 3, chance=1.0, failing_seconds=26) is None
    assert retry.wait_seconds(RateLimited("x", retry_after_seconds=60), 1, chance=1.0) == 60
    assert retry.wait_seconds(RateLimited("x", retry_after_seconds=66), 1, chance=1.0) is None
    assert retry.wait_seconds(AuthError("x"), 1, chance=1.0) is None


# Learning from refusals


async def test_streaming_refused_falls_back_to_one_piece_for_the_session(serve, model_of):
    refusal = http('{"error":{"message":"stream=true is not supported"}}', status="400 Bad")
    whole = http(
        '{"choices":[{"message":{"content":"Hello"},"finish_reason":"stop"}]}',
        type="application/json",
    )
    server = await serve(refusal, whole)
    model = model_of(server)
    told = "m does not stream here, so each answer arrives in one piece."
    assert await events_of(model) == [
        Noticed(level="warning", text=told),
        TextStreamed(text="Hello"),
        said("Hello"),
    ]
    await events_of(model)
    assert [asked.body["stream"] for asked in server.asked] == [True, False, False]
    assert model.waits[1:] == []


async def test_a_whole_answer_to_a_streamed_request_is_taken(serve, model_of):
    call = '{"id":"c","function":{"name":"read","arguments":"{}"}}'
    body = '{"choices":[{"message":{"content":"Hi","tool_calls":[%s]},"finish_reason":"stop"}]}'
    server = await serve(http(body.replace("%s", call), type="application/json"))
    text, streamed, whole = await events_of(model_of(server))
    assert text == TextStreamed(text="Hi")
    assert streamed == ToolCallStreamed(id="c", name="read", text="{}")
    assert whole.stop_reason == "tool_calls"


async def test_fields_that_a_server_does_not_know_are_left_out(serve, model_of):
    server = await serve(
        http('{"error":"Unknown field: stream_options"}', status="400 Bad"),
        http('{"error":"use max_completion_tokens instead"}', status="400 Bad"),
        http('{"error":"temperature is not supported"}', status="400 Bad"),
        HELLO,
    )
    await events_of(model_of(server, temperature=0.5))
    last = server.asked[-1].body
    assert last.keys() == {"model", "messages", "max_completion_tokens", "stream"}
    assert len(server.asked) == 4


async def test_a_model_that_sees_nothing_gets_words_and_the_person_is_told(serve, model_of):
    server = await serve(http('{"error":"image input is not supported"}', status="400 Bad"), HELLO)
    picture = Image(media_type="image/png", data=b"x")
    request = Request("", [UserMessage.of("see", picture)])
    events = await events_of(model_of(server), request)
    assert events[0] == Noticed(
        level="warning", text="m does not accept pictures, so they are left out."
    )
    assert "left out" in server.asked[-1].body["messages"][0]["content"]
    result = ToolResult(call_id="c", name="x", output="", images=(picture,))
    other = model_of(await serve(http('{"error":"image: not supported"}', status="400 Bad"), HELLO))
    assert isinstance((await events_of(other, Request("", [result])))[0], Noticed)


async def test_a_refusal_that_teaches_nothing_is_an_error(serve, model_of):
    server = await serve(http('{"error":"stream: not supported"}', status="400 Bad"))
    model = model_of(server)
    before = model.quirks
    _, error = await error_of(model)
    assert len(server.asked) == 2
    assert "refused the request (400): stream" in str(error)
    assert model.quirks == before  # the repeat failed too, so it was not a lesson


# Ends


@pytest.mark.parametrize(
    "body",
    [
        sse(chunk({"content": "Hello"}, "stop"), done=False),
        sse(chunk({"content": "Hello"})),  # [DONE] without a reason
        sse(chunk({"content": "Hello"}), chunk({}, "stop"), {"choices": []}),
    ],
)
async def test_either_a_reason_or_done_ends_an_answer(serve, model_of, body: bytes):
    assert (await events_of(model_of(await serve(unending(body)))))[-1] == said("Hello")


async def test_an_end_without_either_is_an_answer_that_broke_off(serve, model_of):
    server = await serve(unending(sse(chunk({"content": "Hel"}), done=False)))
    events, error = await error_of(model_of(server, retry=Retry(attempts=0)))
    assert events == [TextStreamed(text="Hel")]
    assert "the answer broke off" in str(error)
    loose = model_of(server, quirks=Quirks(ends_without_finish=True))
    assert (await events_of(loose))[-1] == said("Hel")


async def test_half_a_call_is_no_end_even_for_a_loose_server(serve, model_of):
    half = {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "x", "arguments": '{"a'}}]}
    server = await serve(unending(sse(chunk(half), done=False)))
    _, error = await error_of(model_of(server, quirks=Quirks(ends_without_finish=True)))
    assert "the answer broke off" in str(error)


async def test_a_server_that_never_closes_is_left_after_its_last_word(serve, model_of, monkeypatch):
    async def never_close(writer: asyncio.StreamWriter) -> None:
        writer.write(unending(sse(chunk({"content": "Hello"}, "stop"))))
        await asyncio.Event().wait()

    monkeypatch.setattr("ybs.providers.remote._AFTER_END", 0.01)
    assert (await events_of(model_of(await serve(never_close))))[-1] == said("Hello")


async def test_a_server_that_says_no_last_word_is_left_after_its_reason(
    serve, model_of, monkeypatch
):
    async def never_close(writer: asyncio.StreamWriter) -> None:
        writer.write(unending(sse(chunk({"content": "Hello"}, "stop"), done=False)))
        await asyncio.Event().wait()

    monkeypatch.setattr("ybs.providers.remote._AFTER_STOP", 0.01)
    assert (await events_of(model_of(await serve(never_close))))[-1] == said("Hello")


async def test_an_empty_message_is_an_answer(serve, model_of):
    server = await serve(http(sse(chunk({"content": ""}, "stop"))))
    assert await events_of(model_of(server)) == [said("")]


async def test_a_model_that_never_stops_is_stopped_and_its_server_too(serve, model_of):
    async def babble(writer: asyncio.StreamWriter) -> None:
        writer.write(unending(b""))
        piece = sse(*[chunk({"content": "bla " * 500})] * 50, done=False)
        while not server.gone.is_set():
            writer.write(piece)
            await writer.drain()

    server = await serve(babble)
    _, error = await error_of(model_of(server, max_tokens=10))
    assert "m did not stop" in str(error)
    await asyncio.wait_for(server.gone.wait(), 5)


async def test_fifty_calls_at_once_come_through(serve, model_of):
    calls = [
        {"index": n, "id": "", "function": {"name": "read", "arguments": f'{{"n":{n}}}'}}
        for n in range(50)
    ]
    server = await serve(http(sse(chunk({"tool_calls": calls}, "tool_calls"))))
    message = (await events_of(model_of(server)))[-1].message
    assert [msgspec.json.decode(c.arguments)["n"] for c in message.calls] == list(range(50))


async def test_closing_the_stream_stops_the_server(serve, model_of):
    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(unending(sse(chunk({"content": "a"}), done=False)))
        await server.gone.wait()

    server = await serve(endless)
    async with aclosing(model_of(server).stream(REQUEST)) as events:
        assert await anext(events) == TextStreamed(text="a")
    await asyncio.wait_for(server.gone.wait(), 5)


async def test_a_session_lives_after_a_stream_that_broke(serve, model_of):
    server = await serve(unending(sse(chunk({"content": "Hel"}), done=False)), HELLO)
    seen = []
    model = model_of(server, retry=Retry(attempts=0))
    agent = Agent(model, ScriptedToolbox(), seen.append, Conversation())
    broken = await agent.run(UserMessage.of("one"))
    assert (broken.reason, broken.is_temporary) == ("error", True)
    whole = await agent.run(UserMessage.of("two"))
    assert whole.reason == "done"
    texts = [m.text for m in agent.conversation.messages]
    assert texts == ["one", "Hel", "two", "Hello"]


# Ollama, and asking the server about itself


async def test_an_ollama_answer(serve, model_of):
    lines = (
        '{"message":{"content":"Hel"},"done":false}\n{"message":{"content":"lo"},"done":false}\n'
        '{"message":{"content":""},"done":true,"done_reason":"stop","prompt_eval_count":5,"eval_count":2}\n'
    )
    server = await serve(http(lines, type="application/x-ndjson"))
    model = model_of(server, adapter=OllamaAdapter(), window=8192)
    last = (await events_of(model))[-1]
    assert (last.message.content, last.usage.output_tokens) == ((Text(text="Hello"),), 2)
    assert server.asked[0].path == "/api/chat"
    assert server.asked[0].body["options"]["num_ctx"] == 8192


async def test_as_large_a_window_is_asked_for_as_is_needed_and_never_a_smaller_one_again(
    serve, model_of
):
    done = '{"message":{"content":"Hello"},"done":true,"done_reason":"stop"}\n'
    server = await serve(*[http(done, type="application/x-ndjson")] * 5)
    quirks = OLLAMA.quirks
    model = model_of(server, adapter=OllamaAdapter(), window=65_536, quirks=quirks)
    for size in (10, 20_000, 50_000, 10, 900_000):
        request = Request("", (UserMessage.of("x" * size),))
        [_ async for _ in model.stream(request)]
    asked = [each.body["options"]["num_ctx"] for each in server.asked]
    assert asked == [8192, 16_384, 32_768, 32_768, 65_536]
    assert model.window == 65_536
    assert [each.body["truncate"] for each in server.asked] == [False] * 5


async def test_a_request_that_ollama_refuses_for_its_length_is_one_for_the_window(serve, model_of):
    """The words of Ollama 0.33 to a request with `truncate: false`."""
    inner = (
        '{"error":{"code":400,"message":"request (8889 tokens) exceeds the available context size (4096 tokens), '
        'try increasing it","type":"exceed_context_size_error","n_prompt_tokens":8889,"n_ctx":4096}}'
    )
    server = await serve(
        http(msgspec.json.encode({"error": inner}).decode(), status="400 Bad Request")
    )
    _, error = await error_of(model_of(server, adapter=OllamaAdapter()))
    assert isinstance(error, ContextTooLong)


async def test_an_ollama_stream_without_its_last_line_broke_off(serve, model_of):
    server = await serve(unending('{"message":{"content":"Hel"},"done":false}\n'))
    model = model_of(server, adapter=OllamaAdapter(), retry=Retry(attempts=0))
    events, error = await error_of(model)
    assert events == [TextStreamed(text="Hel")]
    assert "broke off" in str(error)


@pytest.mark.integration
@pytest.mark.parametrize(
    ("answer", "window"),
    [
        ('{"model_info":{"qwen3.context_length":16384}}', 16_384),
        ('{"model_info":{"qwen3.context_length":262144}}', 32_768),  # memory is taken for all of it
        ('{"parameters":"stop x\\nnum_ctx    65536","model_info":{"a.context_length":9}}', 65_536),
        ('{"model_info":{}}', 5000),
        ('{"parameters":"num_ctx 0\\nnum_ctx ²\\nnum_ctx 1' + "0" * 5000 + '"}', 5000),
        ('{"model_info":{"a.context_length":"x"}}', 5000),
        ("<html>", 5000),
    ],
)
async def test_ollama_tells_its_window(serve, model_of, answer: str, window: int):
    server = await serve(http(answer, type="application/json"))
    model = model_of(server, adapter=OllamaAdapter(), window=5000)
    assert await model.detect_window() == model.window == window
    assert (server.asked[0].path, server.asked[0].body) == ("/api/show", {"model": "m"})


@pytest.mark.parametrize(("asked", "window"), [(100_000, 100_000), (300_000, 262_144)])
async def test_the_persons_window_goes_before_the_usual_one_of_ollama(
    serve, model_of, asked: int, window: int
):
    answer = '{"model_info":{"qwen3.context_length":262144}}'
    server = await serve(http(answer, type="application/json"))
    model = model_of(server, adapter=OllamaAdapter(), terms=Terms(window_limit=asked))
    assert await model.detect_window() == window


@pytest.mark.integration
async def test_llama_cpp_tells_its_window_and_a_limit_holds(serve, model_of):
    server = await serve(
        http('{"default_generation_settings":{"n_ctx":16384}}', type="application/json")
    )
    server.url += "/v1"
    model = model_of(server)
    assert await model.detect_window() == 16_384
    assert server.asked[0].path == "/props"
    limited = model_of(server, terms=Terms(window_limit=8000))
    assert await limited.detect_window() == 8000


async def test_models_are_listed_in_every_format(serve, model_of):
    openai = await serve(
        http('{"data":[{"id":"b"},{"id":"models/a"},{}]}', type="application/json")
    )
    ollama = await serve(http('{"models":[{"name":"q:1"}]}', type="application/json"))
    assert await model_of(openai).list_models() == ["a", "b"]
    assert await model_of(ollama, adapter=OllamaAdapter()).list_models() == ["q:1"]
    assert (openai.asked[0].path, ollama.asked[0].path) == ("/models", "/api/tags")


async def test_models_of_anthropic_are_listed(serve, model_of):
    server = await serve(http('{"data":[{"id":"claude-x"}]}', type="application/json"))
    assert await model_of(server, adapter=AnthropicAdapter()).list_models() == ["claude-x"]
    assert server.asked[0].path == "/v1/models?limit=1000"


async def test_warming_up_connects_before_the_first_request(serve, model_of):
    server = await serve(HELLO)
    model = model_of(server)
    await model.warm_up()
    await events_of(model)
    assert server.connections == 1


@every_row(
    ("status", "message"),
    [
        ("404 Not Found", "No endpoints found that support tool use."),
        ("500 Internal Server Error", "tools param requires --jinja flag"),
        ("422 Unprocessable Entity", "Function calling is not supported for this model"),
    ],
)
async def test_tools_are_given_up_whatever_the_status(status: str, message: str, serve, model_of):
    server = await serve(
        http(msgspec.json.encode({"error": {"message": message}}), status=status), HELLO
    )
    model = model_of(server)
    tools = ScriptedToolbox({"look": "x"}).specs()
    events = await events_of(model, Request("", [UserMessage.of("hi")], tools))
    assert [each.text for each in events if isinstance(each, Noticed)] == [
        "m does not accept tools here, so it writes its calls as text."
    ]
    assert model.waits == []
    assert isinstance(events[-1], AssistantSaid)


async def test_without_tools_in_the_request_such_a_refusal_is_told(serve, model_of):
    refusal = {"error": {"message": "m does not support tools"}}
    server = await serve(http(msgspec.json.encode(refusal), status="400 Bad Request"))
    _, error = await error_of(model_of(server))
    assert "does not support tools" in str(error)


@every_row(
    "quirks, tools, sent",
    [
        (Quirks(takes_grammar=True, takes_tools=False), (LOOK,), "root"),
        (Quirks(takes_grammar=True), (LOOK,), None),
        (Quirks(takes_tools=False), (LOOK,), None),
    ],
)
async def test_a_grammar_is_sent_without_tools_and_where_the_server_takes_one(
    serve, model_of, quirks: Quirks, tools, sent: str | None
):
    server = await serve(HELLO)
    request = Request("", [UserMessage.of("hi")], tools, grammar="root")
    await events_of(model_of(server, quirks=quirks), request)
    assert server.asked[0].body.get("grammar") == sent
