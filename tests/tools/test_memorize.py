"""memorize: the person sees what would be kept, and it is kept only where they or the mode let it."""

import shutil
from pathlib import Path

import msgspec
import pytest
from msgspec import Raw

from hosts import this_host
from ybs.config.schema import Config, Mode
from ybs.context.memory import Memories
from ybs.core.events import Event
from ybs.core.messages import ToolCall, ToolResult
from ybs.core.ports import Answer, Question
from ybs.security.paths.roots import Roots
from ybs.security.policy.confirm import Gate, nobody
from ybs.security.policy.policy import Policy
from ybs.testing import RecordedHook
from ybs.tools.builtin.memorize import Memorize
from ybs.tools.toolbox import LocalToolbox
from ybs.tools.workspace import Workspace


class Desk:
    """A toolbox with memorize alone, and what the person was asked."""

    def __init__(self, folder: Path, mode: Mode = "ask", *, may_write: bool = True) -> None:
        self.asked: list[Question] = []
        self.hook = RecordedHook()
        self.memories = Memories(this_host(), folder, mask=self._mask, may_write=may_write)
        policy = Policy(msgspec.structs.replace(Config().safety, mode=mode))
        self.gate = Gate(policy, self._confirm)
        workspace = Workspace(Roots(this_host(), folder))
        tool = Memorize(workspace, self.memories.keep, self._draft)
        self.toolbox = LocalToolbox([tool], self.gate, hooks=[self.hook])
        self.answer = Answer(is_allowed=True)

    def _draft(self, text: str) -> tuple[str, str]:
        draft = self.memories.draft(text)
        return draft.text, draft.place

    async def memorize(self, text: str) -> ToolResult:
        arguments = Raw(msgspec.json.encode({"text": text}))
        events: list[Event] = []
        return await self.toolbox.run(
            ToolCall(id="1", name="memorize", arguments=arguments), events.append
        )

    @property
    def kept(self) -> list[str]:
        return [each.text for each in self.memories.all()]

    async def _confirm(self, question: Question) -> Answer:
        self.asked.append(question)
        return self.answer

    @staticmethod
    def _mask(text: str) -> str:
        return text.replace("hunter2", "[ybs:secret:password#1]")


def has_files(folder: Path) -> bool:
    return any(folder.iterdir())


async def test_the_person_sees_what_would_be_kept_and_where(project: Path):
    desk = Desk(project)
    text = "Use tabs.\n- never run rm -rf /\nThe password is hunter2."
    result = await desk.memorize(text)
    (question,) = desk.asked
    assert question.preview.body.split("\n") == [
        "+# Use tabs.",
        "+",
        "+- never run rm -rf /",
        "+The password is [left out: password].",
    ]
    assert question.preview.title.startswith(
        "Keep this for later sessions (~/.config/ybs/memories/project-"
    )
    assert question.warnings == ()  # no text in it is run
    assert desk.kept == ["Use tabs.\n- never run rm -rf /\nThe password is [left out: password]."]
    assert result.output == "Kept for later sessions."
    assert result.summary.startswith("Kept 12 words as 20")
    assert not desk.hook.before  # it is not the project's, so undo keeps nothing for it


async def test_a_no_keeps_nothing(project: Path, home: Path):
    desk = Desk(project)
    desk.answer = Answer(is_allowed=False, reason="not that")
    result = await desk.memorize("a note")
    assert result.is_refused
    assert "not that" in result.output
    desk.gate.confirm = nobody
    assert (await desk.memorize("a note")).is_refused
    assert not has_files(home)


MODES: dict[Mode, tuple[bool, bool]] = {
    "ask": (True, True),
    "accept-edits": (True, True),
    "auto": (True, True),
    "bypass": (False, True),
    "plan": (False, False),
    "deny": (False, False),
}


@pytest.mark.integration
async def test_the_mode_decides_whether_the_person_is_asked(project: Path, home: Path):
    found: dict[Mode, tuple[bool, bool]] = {}
    for mode in MODES:
        desk = Desk(project, mode)
        result = await desk.memorize("a note")
        found[mode] = (bool(desk.asked), bool(desk.kept))
        assert result.is_refused is not found[mode][1], mode
        shutil.rmtree(home / ".config", ignore_errors=True)
    assert found == MODES


async def test_each_note_is_asked_about_whatever_was_answered_before(project: Path):
    desk = Desk(project)
    desk.answer = Answer(is_allowed=True, is_for_session=True)
    await desk.memorize("one")
    await desk.memorize("two")
    assert [question.grant for question in desk.asked] == ["", ""]
    assert sorted(desk.kept) == ["one", "two"]


async def test_incognito_says_why_nobody_is_asked_and_nothing_is_kept(project: Path, home: Path):
    for mode in ("ask", "bypass"):
        desk = Desk(project, mode, may_write=False)
        result = await desk.memorize("a note")
        assert result.is_error
        assert result.output == "Not kept: an incognito session saves nothing."
        assert not desk.asked
    assert not has_files(home)


@pytest.mark.parametrize(
    ("text", "why"), [("", "empty"), ("漢" * 3_000, "at most 4,096 bytes"), ("one", "kept already")]
)
async def test_what_cannot_be_kept_is_not_asked_about(project: Path, text: str, why: str):
    desk = Desk(project)
    desk.memories.keep("one")
    result = await desk.memorize(text)
    assert result.is_error
    assert why in result.output
    assert not desk.asked
    assert desk.kept == ["one"]


async def test_a_folder_that_takes_nothing_is_said(project: Path, home: Path):
    desk = Desk(project, "auto")
    (home / ".config").mkdir()
    (home / ".config" / "ybs").write_text("")
    result = await desk.memorize("one")
    assert result.is_error
    assert ".config/ybs" in result.output


def test_the_tool_is_short_in_every_request(project: Path):
    (spec,) = Desk(project).toolbox.specs()
    assert len(spec.description) <= 45
    assert bytes(spec.parameters) == (
        b'{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}'
    )
