"""Answers of which a part is bad: the rest is used. Failures that users of other clients reported are among them."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mcp_http import Answer, Request, connected, protocol, served
from mcp_running import running
from mcp_servers import PROGRAM
from ybs.core.errors import ToolError
from ybs.tools.mcp.listed import listed
from ybs.tools.mcp.repair import messages_of, without_halves

pytestmark = pytest.mark.integration
OBJECT = {"type": "object"}
GREETING: dict[str, Any] = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}, "prompts": {}, "resources": {}},
    "serverInfo": {"name": "t", "version": "1"},
}
TOOLS = {"tools": [{"name": "echo", "inputSchema": OBJECT}]}


@asynccontextmanager
async def answering(folder: Path, **results: Any) -> AsyncGenerator[Any]:
    """Connect to a program that answers with these results, by methods with `_` for `/`; a text is the rest of a raw message."""
    known: dict[str, Any] = {"initialize": GREETING, "tools_list": TOOLS, **results}
    (folder / "results.json").write_text(json.dumps(known))
    more = (
        f"RESULTS = json.load(open({str(folder / 'results.json')!r}))\n"
        "def answer(method, params): return RESULTS.get(method.replace('/', '_'))\n"
        "def send(id=None, result=None, error=None):\n"
        " said = json.dumps({'error': error} if result is None else {'result': result})[1:-1]\n"
        " said = result if isinstance(result, str) else said\n"
        ' sys.stdout.write(\'{"jsonrpc": "2.0", "id": %d, %s}\\n\' % (id, said)); sys.stdout.flush()\n'
    )
    assert "# more" in PROGRAM
    async with running(folder, more, seconds=5.0) as (link, _):
        yield link


async def called(folder: Path, result: Any, tools: Any = TOOLS) -> str:
    async with answering(folder, tools_list=tools, tools_call=result) as link:
        await link.offer()
        return (await link.call("echo", {}, _nothing)).output


def _nothing(_: str) -> None:
    pass


def text(words: Any, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


async def test_a_page_with_bad_tools_keeps_the_others_and_names_the_bad_ones(tmp_path: Path):
    tools = [
        {"name": "good", "inputSchema": OBJECT},
        {"name": "no_schema"},
        {"name": "null_schema", "inputSchema": None},
        {"name": "scalar", "inputSchema": {"type": "string"}},
        {"name": "no_type", "inputSchema": {"properties": {"a": {"type": "string"}}}},
        {"name": "nulls", "inputSchema": OBJECT, "annotations": None, "title": None, "icons": None},
        {"name": "hints", "inputSchema": OBJECT, "annotations": {"readOnlyHint": "perhaps"}},
        {"name": "output", "inputSchema": OBJECT, "outputSchema": {"type": "array"}},
        {"name": "described", "inputSchema": OBJECT, "description": ["a"]},
        {"inputSchema": OBJECT},
        "just_a_name",
        {"name": "last", "inputSchema": OBJECT},
    ]
    async with answering(tmp_path, tools_list={"tools": tools, "nextCursor": None}) as link:
        offer, problems = await link.offer()
        names = [each.name for each in offer.tools]
        assert names == ["good", "no_type", "nulls", "hints", "output", "described", "last"]
        assert [each.partition(": ")[0] for each in problems] == [
            "no_schema",
            "null_schema",
            "scalar",
            "(no name)",
            "just_a_name",
            "its resources",
            "its prompts",
        ]
        assert problems[0] == "no_schema: inputSchema: Field required"
        assert (await link.offer())[1] == problems  # not twice as many


async def test_a_list_that_fails_takes_nothing_from_the_others(tmp_path: Path):
    """Servers announce resources or prompts that they do not have."""
    async with answering(tmp_path, prompts_list={"prompts": [{"name": "a"}]}) as link:
        offer, problems = await link.offer()
        assert ([each.name for each in offer.tools], len(offer.prompts)) == (["echo"], 1)
        assert problems == ["its resources: The server failed: unknown"]


async def test_prompts_and_resources_are_taken_singly(tmp_path: Path):
    prompts = [{"name": "a", "arguments": "x"}, {"name": 5}, {"name": "b", "description": None}]
    resources = [
        {"uri": "a://1", "name": "one"},
        {"name": "no address"},
        {"uri": "a://2", "name": "two", "size": "big"},
    ]
    got = {
        "messages": [
            {"role": "system", "content": [text("one"), {"type": "video"}]},
            {"role": "user", "content": "two"},
        ]
    }
    read = {"contents": [{"text": "here"}, {"uri": "a://1", "json": {"n": 1}}]}
    async with answering(
        tmp_path,
        prompts_list={"prompts": prompts},
        resources_list={"resources": resources},
        prompts_get=got,
        resources_read=read,
    ) as link:
        offer, problems = await link.offer()
        assert [each.name for each in offer.prompts] == ["a", "b"]
        assert [each.uri for each in offer.resources] == ["a://1", "a://2"]
        assert [each.partition(": ")[0] for each in problems] == ["no address", "(no name)"]
        assert await link.prompt("a", {}) == (
            'one\n[content of the kind video, which is not one of MCP\'s: {"type": "video"}]\ntwo'
        )
        assert (await link.read("a://1")).output.startswith("here\n[content of the kind")


RESULTS: list[tuple[Any, str]] = [
    ({"content": [text("a"), {"type": "json", "json": {"n": 1}}, text("b")]}, 'a\n[content of the kind json, which is not one of MCP\'s: {"type": "json", "json": {"n": 1}}]\nb'),
    ({"content": [text("a", annotations={"priority": "high"}), text("b", annotations=None)]}, "a\nb"),
    ({"content": [text({"n": 1}), text(5)]}, '{"n": 1}\n5'),
    ({"content": [{"text": "no kind"}]}, "no kind"),
    ({"content": "only words"}, "only words"),
    ({"content": text("one block")}, "one block"),
    ({"content": ["words", None, 3]}, "words\nnull\n3"),
    ({"content": None, "structuredContent": {"n": 1}}, '{"n":1}'),
    ({"structuredContent": {"n": 1}}, '{"n":1}'),
    ({"content": [], "structuredContent": [1, 2]}, "[1, 2]"),
    ({"content": [text("a")], "structuredContent": [1, 2], "isError": None}, "a"),
    ({"content": [{"type": "image", "data": 5}]}, '[content of the kind image, which is not valid: {"type": "image", "data": 5}]'),
    ('"result": ["bare", "list"]', "bare\nlist"),
    ('"result": "bare words"', "bare words"),
    ('"result": null', ""),
    ('"result": {"content": [{"type": "text", "text": "half \\ud83d one"}]}', "half \ufffd one"),
    ('"result": {"content": [{"type": "text", "text": "n", "x": NaN}]}', "n"),
]  # fmt: skip


async def test_what_a_tool_gives_is_passed_on_but_for_its_bad_parts(tmp_path: Path):
    wrong: list[str] = []
    for at, (result, output) in enumerate(RESULTS):
        (folder := tmp_path / str(at)).mkdir()
        if (got := await called(folder, result)) != output:
            wrong.append(f"{result}: {got!r}")
    assert wrong == []


async def test_a_result_that_does_not_fit_its_output_schema_is_still_a_result(tmp_path: Path):
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    tools = {"tools": [{"name": "echo", "inputSchema": OBJECT, "outputSchema": schema}]}
    for at, result in enumerate(
        ({"content": [text("a")]}, {"content": [text("a")], "structuredContent": {"n": "x"}})
    ):
        (folder := tmp_path / str(at)).mkdir()
        assert await called(folder, result, tools) == "a"


async def test_the_servers_own_error_is_told(tmp_path: Path):
    for at, (error, words) in enumerate(
        [
            ({"code": -32000, "message": "no such account; use id 5"}, "no such account; use id 5"),
            ({"code": -32001, "message": "Request timed out upstream."}, "Request timed out upstream"),
            ({"code": -32099, "message": "quota"}, "quota"),
            ({"code": -32700, "message": "Failed to parse SQL"}, "Failed to parse SQL"),
            ({"code": -32603, "message": "Internal error", "data": "disk full"}, "Internal error: disk full"),
            ({"code": "E1", "message": "as text"}, "as text"),
            ("only words", "only words"),
            ({"detail": "no message"}, "no message"),
        ]
    ):  # fmt: skip
        (folder := tmp_path / str(at)).mkdir()
        async with answering(folder, tools_call=f'"error": {json.dumps(error)}') as link:
            with pytest.raises(ToolError, match=f"The server failed: .*{words}"):
                await link.call("echo", {}, _nothing)


async def test_an_error_for_the_only_request_is_its_answer(tmp_path: Path):
    """python-sdk servers answer what they cannot read with an id of null."""
    more = 'def call(name, given): sys.stdout.write(\'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"not read"}}\\n\'); sys.stdout.flush(); time.sleep(1)\n'
    async with running(tmp_path, more, seconds=5.0) as (link, _):
        await link.offer()
        async with asyncio.timeout(3):
            with pytest.raises(ToolError, match="The server failed: not read"):
                await link.call("echo", {}, _nothing)


async def test_a_server_that_introduces_itself_badly_is_used(tmp_path: Path):
    greetings: list[dict[str, Any]] = [
            {**GREETING, "serverInfo": None},
            {**GREETING, "serverInfo": {"name": "t"}, "instructions": None},
            {**GREETING, "capabilities": {"tools": True, "logging": None, "prompts": {"listChanged": "yes?"}}},
    ]  # fmt: skip
    for at, greeting in enumerate(greetings):
        (folder := tmp_path / str(at)).mkdir()
        async with answering(folder, initialize=greeting) as link:
            assert [each.name for each in (await link.offer())[0].tools] == ["echo"]


async def test_a_bom_before_the_first_message_is_passed_over(tmp_path: Path):
    async with running(tmp_path, "sys.stdout.write('\\ufeff'); sys.stdout.flush()\n") as (link, _):
        assert [each.name for each in (await link.offer())[0].tools] == ["echo"]


async def test_answers_at_an_address_are_repaired_too(tmp_path: Path):
    wrong: list[str] = []
    for at, (result, output) in enumerate(ADDRESSED):
        for is_stream in (False, True):
            folder = tmp_path / f"{at}{is_stream}"
            folder.mkdir()
            app = protocol(partial(_answered, result, is_stream))
            async with served(app) as url, connected(folder, url) as held:
                if (got := await held.call("echo")) != output:
                    wrong.append(f"{result}: {got}")
    assert wrong == []


ADDRESSED = [
    (r'{"content": [{"type": "text", "text": "a \ud83d b \ud83d\ude00 \\ud83d"}]}', "a \ufffd b \U0001f600 \\ud83d"),
    (r'{"content": [{"type": "chart"}, {"type": "text", "text": "b"}]}', '[content of the kind chart, which is not one of MCP\'s: {"type": "chart"}]\nb'),
]  # fmt: skip


def _answered(result: str, is_stream: bool, request: Request) -> Any:
    if b"tools/call" not in request.body:
        return None
    body = f'{{"jsonrpc": "2.0", "id": {request.json["id"]}, "result": {result}}}'
    if is_stream:
        text = f"\ufeffevent: message\ndata: {body}\n\n"
        return Answer(200, text.encode(), "text/event-stream")
    return Answer(200, body.encode())


async def test_a_bare_result_at_an_address_is_a_result(tmp_path: Path):
    app = protocol(partial(_answered, '["bare", "list"]', False))
    async with served(app) as url, connected(tmp_path, url) as held:
        assert await held.call("echo") == "bare\nlist"


def test_what_is_not_a_message_is_none():
    for line in (
        b"",
        b"{",
        b"{}",
        b"5",
        b'"x"',
        b"[]",
        b"[1]",
        b'{"id": 1}',
        b'{"method": 5}',
        b"[" * 100_000,
    ):
        assert messages_of(line) == [], line


def test_messages_of_other_hands_are_read():
    (one,) = messages_of(b'\xef\xbb\xbf{"id": 1.0, "result": {"a": 1}}')
    assert (one.model_dump()["id"], one.model_dump()["result"]) == (1, {"a": 1})
    assert (
        len(messages_of('[{"jsonrpc": "2.0", "method": "a"}, {"id": "x", "method": "b"}, 5]')) == 2
    )


def test_halves_of_characters_are_replaced_and_whole_ones_kept():
    assert without_halves({"a": "\ud83d", "\udc00": ["é😀"]}) == {"a": "\ufffd", "\ufffd": ["é😀"]}


def test_choices_at_the_root_of_a_schema_become_properties():
    schema = {
        "anyOf": [
            {"type": "object", "properties": {"a": {"type": "string"}, "kind": {"const": 1}}, "required": ["kind", "a"]},
            {"$ref": "#/$defs/b"},
        ],
        "$defs": {"b": {"properties": {"b": OBJECT, "kind": {"const": 2}}, "required": ["kind"]}},
    }  # fmt: skip
    assert json.loads(bytes(listed("x", "", schema, is_reading=False).parameters)) == {
        "$defs": schema["$defs"],
        "properties": {
            "a": {"type": "string"},
            "kind": {"anyOf": [{"const": 1}, {"const": 2}]},
            "b": OBJECT,
        },
        "required": ["kind"],
        "type": "object",
    }
