"""ask_user: the person answers, says nothing, or is not there."""

from pathlib import Path

import pytest

from hosts import this_host
from rows import every_row
from ybs.core.errors import ToolError
from ybs.core.ports import Answer
from ybs.security.paths.roots import Roots
from ybs.session.questions import BY_MESSAGE
from ybs.testing import ScriptedConfirm
from ybs.tools.builtin.ask_user import AS_TEXT, NO_ANSWER, NOBODY, AskUser, AskUserArguments
from ybs.tools.workspace import Workspace


def asking(project: Path, confirm: ScriptedConfirm) -> AskUser:
    return AskUser(Workspace(Roots(this_host(), project)), lambda: confirm, "helper")


@every_row(
    "answer, output",
    [
        (Answer(is_allowed=True, reason="SQLite"), "The person answers: SQLite"),
        (Answer(is_allowed=True), NO_ANSWER),
        (Answer(is_allowed=False, reason="the person said no"), NO_ANSWER),
        (Answer(is_allowed=False, reason="nobody", is_unattended=True), NOBODY),
        (BY_MESSAGE, AS_TEXT),
    ],
)
async def test_the_model_reads_what_came_of_it(answer: Answer, output: str, project: Path):
    confirm = ScriptedConfirm([answer])
    tool = asking(project, confirm)
    result = await tool.run(
        AskUserArguments(question=" Which? ", options=("SQLite", " ", "Postgres")), print
    )
    assert (result.output, result.is_error) == (output, False)
    (question,) = confirm.questions
    assert question.choices == ("SQLite", "Postgres")
    assert (question.preview.body, question.agent) == ("Which?", "helper")


@every_row(
    "arguments, why",
    [
        (AskUserArguments(question=" "), "is empty"),
        (AskUserArguments(question="x" * 5_000), "at most 4,000 characters"),
        (AskUserArguments(question="x", options=("a",) * 7), "and 6 options"),
    ],
)
def test_what_nobody_could_answer_is_refused(arguments: AskUserArguments, why: str, project: Path):
    with pytest.raises(ToolError, match=why):
        asking(project, ScriptedConfirm([])).preview(arguments)
