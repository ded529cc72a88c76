"""update_identity: what is asked, and what is kept."""

from typing import Any

import msgspec
import pytest
from msgspec import Raw

from hosts import this_host
from ybs.config.schema import Mode, SafetySettings
from ybs.core.errors import ToolError
from ybs.core.messages import ToolCall, ToolResult
from ybs.core.ports import Answer, Question
from ybs.core.schema import schema_of
from ybs.security.paths.roots import Roots
from ybs.security.policy.confirm import Gate
from ybs.security.policy.policy import Policy
from ybs.testing import RecordedHook
from ybs.tools.builtin.memorize import MemorizeArguments, UpdateIdentity
from ybs.tools.toolbox import LocalToolbox
from ybs.tools.workspace import Workspace


class Kept:
    """A toolbox with this tool alone; the person says yes, for the session."""

    def __init__(self, project: Any, mode: Mode, *, draft: Any = str) -> None:
        self.lines: list[str] = []
        self.asked: list[Question] = []
        self.hook = RecordedHook()
        tool = UpdateIdentity(Workspace(Roots(this_host(), project)), self._append, draft)
        gate = Gate(Policy(SafetySettings(mode=mode)), self._confirm)
        self.toolbox = LocalToolbox([tool], gate, hooks=[self.hook])

    async def call(self, text: str) -> ToolResult:
        arguments = Raw(msgspec.json.encode({"text": text}))
        call = ToolCall(id="1", name="update_identity", arguments=arguments)
        return await self.toolbox.run(call, lambda _: None)

    def _append(self, text: str) -> str:
        self.lines.append(text)
        return text.strip()

    async def _confirm(self, question: Question) -> Answer:
        self.asked.append(question)
        return Answer(is_allowed=True, is_for_session=True)


async def test_the_person_is_asked_in_every_mode_that_asks_about_ybss_own_files(project: Any):
    modes: dict[Mode, tuple[int, int]] = {  # mode: questions, lines
        "ask": (2, 2),
        "accept-edits": (2, 2),  # those of the project, which this is not
        "auto": (2, 2),
        "bypass": (0, 2),
        "plan": (0, 0),
        "deny": (0, 0),
    }
    seen: dict[Mode, tuple[int, int]] = {}
    for mode in modes:
        kept = Kept(project, mode)
        first, _ = await kept.call(" I test first. "), await kept.call("I am calm.")
        seen[mode] = (len(kept.asked), len(kept.lines))
        assert first.is_refused == (mode in ("plan", "deny"))
        assert kept.hook.before == []  # no undo covers it, so nothing of the project is kept for it
        bodies = [question.preview.body for question in kept.asked]
        assert bodies == ["+ I test first. ", "+I am calm."][: len(bodies)]
        for question in kept.asked:
            assert question.grant == "", "no answer covers a line that nobody has seen"
            assert question.warnings == ()
    assert seen == modes


async def test_words_that_look_like_commands_are_only_words(project: Any):
    kept = Kept(project, "auto")
    result = await kept.call("rm -rf / is what I never run.")
    assert not result.is_error
    assert result.output == "Added to IDENTITY.md: rm -rf / is what I never run."


async def test_nobody_is_asked_for_what_could_not_be_kept(project: Any):
    def full(_: str) -> str:
        raise ToolError("IDENTITY.md is full")

    kept = Kept(project, "ask", draft=full)
    result = await kept.call("x")
    assert (result.is_error, result.output) == (True, "IDENTITY.md is full")
    assert kept.asked == []


def test_its_spec_is_short():
    tool = UpdateIdentity.__new__(UpdateIdentity)
    assert len(tool.description) <= 45
    assert tool.short_description == tool.description
    schema = '{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}'
    assert bytes(schema_of(MemorizeArguments)).decode() == schema
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({}, MemorizeArguments)
