"""Questions of servers, with forms that are not well-formed among them."""

from typing import Any

from rows import every_row
from ybs.core.ports import Answer, Question
from ybs.tools.mcp.eliciting import asked


async def _yes(_: Question) -> Answer:
    return Answer(is_allowed=True, reason="yes")


@every_row(
    "schema, answer",
    [
        ({"properties": {"a": {"type": "boolean"}}, "required": ["a"]}, {"a": True}),
        ({"properties": {"a": {"oneOf": [{"const": "yes"}, 1]}}}, {"a": "yes"}),
        ({"properties": {"a": {"enum": 5}}}, {"a": "yes"}),
        ({"properties": [1]}, None),
        ({"properties": {"a": 5}}, None),
        ({"properties": {"a": {}}, "required": 3}, None),
    ],
)
async def test_a_form_is_filled_in_or_declined_whatever_it_is(
    schema: dict[str, Any], answer: dict[str, Any] | None
):
    assert await asked("demo", "Well?", schema, _yes) == answer
