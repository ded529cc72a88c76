"""Tools made of typed functions."""

import json
from typing import Annotated, Any

import msgspec
import pytest

from ybs import tool
from ybs.core.errors import ToolError
from ybs.tools.function import FunctionTool


@tool
def count(text: Annotated[str, "what is counted"], letters: list[str] = [], most: int = 10) -> dict[str, int]:  # noqa: B006 - as people write it  # fmt: skip
    """Count letters.

    Only those given.
    """
    return {each: min(text.count(each), most) for each in letters}


async def ran(made: FunctionTool, **arguments: Any) -> str:
    return (await made.run(arguments, lambda _: None)).output


async def test_the_types_are_the_schema_and_the_words_the_description():
    assert (count.name, count.description) == ("count", "Count letters.\n\nOnly those given.")
    assert msgspec.json.decode(count.parameters) == {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "what is counted"},
            "letters": {"type": "array", "items": {"type": "string"}, "default": []},
            "most": {"type": "integer", "default": 10},
        },
        "required": ["text"],
        "additionalProperties": False,
    }
    assert await ran(count, text="banana", letters=["a", "n"]) == '{"a":3,"n":2}'
    assert count("aab", ["a"]) == {"a": 2}


async def test_a_coroutine_and_another_name():
    @tool(name="wait", effect="read")
    async def _wait(seconds: float) -> None:
        """Wait."""
        assert seconds == 0.5

    assert (_wait.name, _wait.effect) == ("wait", "read")
    assert await ran(_wait, seconds=0.5) == ""


async def test_what_goes_wrong_is_an_error_that_the_model_reads():
    @tool
    def fail(why: str) -> str:
        """Fail."""
        raise LookupError(why)

    with pytest.raises(ToolError, match="fail failed: LookupError: no such thing"):
        await ran(fail, why="no such thing")
    assert json.loads(msgspec.json.encode(fail.answer(b'{"why": "x"}'))) == {
        "success": False,
        "error": "LookupError: x",
    }
    assert fail.answer(b"{}")["success"] is False


def test_a_function_without_types_is_no_tool():
    def bare(word):  # pyright: ignore[reportMissingParameterType]
        return word

    def several(*words: str) -> str:
        return " ".join(words)

    with pytest.raises(TypeError, match="its argument word has no type"):
        tool(bare)
    with pytest.raises(TypeError, match="cannot be passed by name"):
        tool(several)
