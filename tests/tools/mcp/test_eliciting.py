"""Questions of servers, with forms that are not well-formed among them."""

from pathlib import Path

from hosts import this_host
from rows import every_row
from ybs.core.ports import Answer, Question
from ybs.frontends.terminal.questions.confirm import wish
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
async def test_a_form_is_filled_in_or_declined_whatever_it_is(schema, answer):
    assert await asked("demo", "Well?", schema, _yes) == answer


async def test_a_long_form_is_asked_whole_and_headed_with_the_servers_name(tmp_path: Path):
    questions: list[Question] = []

    async def answer(question: Question) -> Answer:
        questions.append(question)
        return Answer(is_allowed=True, reason="x")

    fields = {f"f{n}": {"type": "string"} for n in range(30)}
    assert await asked("my tracker", "Well?", {"properties": fields}, answer) == dict.fromkeys(
        fields, "x"
    )
    assert len(questions) == 30
    heading = wish(questions[0], str(tmp_path), "", this_host())
    assert heading == "the MCP server my tracker asks"
