"""Calls that nobody was asked about because they seem to read."""

from typing import Any

import pytest

from rows import every_row
from tools.odd import FINE, Odd, Print, box
from ybs.core.errors import Refused, ToolError
from ybs.core.hooks import CallHook, CallToJudge, CallVerdict
from ybs.core.messages import ToolCall, ToolResult
from ybs.core.ports import Answer, Effect, Question, ToolOutput
from ybs.security.policy.case import Subject


class Runner(Odd):
    """A tool of somebody else that runs commands and has no way to be kept from writing."""

    effect: Effect = "execute"

    def subject(self, arguments: Any) -> Subject:
        return Subject(command="ls")


@pytest.mark.integration
async def test_a_command_that_may_only_read_runs_once_where_there_is_nothing_to_hold_it(make_bench):
    bench = make_bench(mode="ask")
    bench.gate.policy.find_sandbox = lambda: "full"
    answered = await bench.call("run_shell", command="ls nowhere")
    assert answered.result.is_error
    assert not answered.result.is_refused
    assert answered.display["stderr"].count("nowhere") == 1


class Unheld(Runner):
    """It stands in the place of run_shell, and cannot be kept from writing either."""

    name = "run_shell"


@every_row(
    ("kind", "is_allowed", "reason", "output"),
    [
        (Runner, True, "odd runs a command", "fine"),
        (Runner, False, "odd runs a command", "Refused: no"),
        (Unheld, True, "the tool cannot be kept from writing", "fine"),
        (Unheld, False, "the tool cannot be kept from writing", "nothing was changed"),
    ],
)
async def test_a_command_that_cannot_be_held_to_reading_is_asked_about(
    kind: type[Runner], is_allowed: bool, reason: str, output: str
):
    asked: list[Question] = []

    async def act(_print: Print) -> ToolOutput:
        return FINE

    async def confirm(question: Question) -> Answer:
        asked.append(question)
        return Answer(is_allowed=is_allowed, reason="no")

    toolbox = box(kind(act))
    gate = toolbox._gate  # pyright: ignore[reportPrivateUsage]
    gate.confirm, gate.policy.find_sandbox = confirm, lambda: "full"
    result = await toolbox.run(ToolCall(id="7", name=kind.name), lambda _: None)
    assert [question.reason for question in asked] == [reason]
    assert result.is_refused is not is_allowed
    assert output in result.output


class Watcher(CallHook):
    """It lets everything pass and keeps the results that it was shown."""

    def __init__(self) -> None:
        self.shown: list[ToolResult] = []

    async def judge(self, case: CallToJudge) -> CallVerdict:
        return CallVerdict()

    async def look_at(self, call: ToolCall, result: ToolResult) -> ToolResult:
        self.shown.append(result)
        return result


@every_row(("error", "is_shown"), [(Refused("not there"), False), (ToolError("broke"), True)])
async def test_a_hook_is_shown_what_failed_and_not_what_was_refused(error, is_shown):
    async def act(_print: Print) -> ToolOutput:
        raise error

    watcher = Watcher()
    result = await box(Odd(act), hooks=[watcher]).run(ToolCall(id="7", name="odd"), lambda _: None)
    assert result.is_refused is not is_shown
    assert [each.output for each in watcher.shown] == ([str(error)] if is_shown else [])
