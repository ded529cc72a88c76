"""Calls that nobody was asked about because they seem to read."""

from typing import Any

import pytest

from rows import every_row
from tools.conftest import MakeBench
from tools.odd import FINE, Odd, Print, box
from ybs.core.messages import ToolCall
from ybs.core.ports import Answer, Effect, Question, ToolOutput
from ybs.security.policy.policy import Subject


class Runner(Odd):
    """A tool of somebody else that runs commands and has no way to be kept from writing."""

    effect: Effect = "execute"

    def subject(self, arguments: Any) -> Subject:
        return Subject(command="ls")


@pytest.mark.integration
async def test_a_command_that_may_only_read_runs_once_where_there_is_nothing_to_hold_it(
    make_bench: MakeBench,
):
    bench = make_bench(mode="ask")
    bench.gate.policy.find_sandbox = lambda: "full"
    answered = await bench.call("run_shell", command="ls nowhere")
    assert answered.result.is_error
    assert not answered.result.is_refused
    assert answered.display["stderr"].count("nowhere") == 1


@every_row("is_allowed", [True, False])
async def test_a_command_of_another_tool_than_run_shell_is_asked_about(is_allowed: bool):
    asked: list[Question] = []

    async def act(_print: Print) -> ToolOutput:
        return FINE

    async def confirm(question: Question) -> Answer:
        asked.append(question)
        return Answer(is_allowed=is_allowed, reason="no")

    toolbox = box(Runner(act))
    gate = toolbox._gate  # pyright: ignore[reportPrivateUsage]
    gate.confirm, gate.policy.find_sandbox = confirm, lambda: "full"
    result = await toolbox.run(ToolCall(id="7", name="odd"), lambda _: None)
    assert [question.reason for question in asked] == ["odd runs a command"]
    assert result.is_refused is not is_allowed
    assert result.output == ("fine" if is_allowed else "Refused: no")
