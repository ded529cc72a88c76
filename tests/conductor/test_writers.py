"""Sub-agents that write at the same time: what the person is asked and told, and what happens where there is no room for copies."""

from pathlib import Path
from typing import Any

import pytest

from conductor_cast import Cast, delegated, opened, results
from session.trees import tree
from ybs.conductor import copying
from ybs.core.events import Noticed
from ybs.core.ports import Answer, Question
from ybs.testing import call

pytestmark = pytest.mark.integration
BOTH = delegated({"task": "one", "kind": "general"}, {"task": "two", "kind": "general"})


def write(path: str, content: str) -> Any:
    return call("write_file", path=path, content=content)


async def test_a_conflict_reaches_the_model_and_the_person(project: Path) -> None:
    (project / "a").write_text("old\n")
    cast = Cast([BOTH, "done"], one=[write("a", "mine\n"), "1"], two=[write("a", "its\n"), "2"])
    session, events = opened(project, cast.model, mode="bypass")
    async with session:
        await session.send("go")
        output = results(events)[0].output
        assert "both changed the same lines. The sub-agent's version: /" in output
        kept = output.partition("version: ")[2].partition("\n")[0]
        sides = {(project / "a").read_text(), session.environment.roots.resolve(kept).read_text()}
        assert sides == {"mine\n", "its\n"}
    told = [each.event.text for each in events.envelopes if isinstance(each.event, Noticed)]
    assert [text.partition(": ")[2] for text in told if text.startswith("general-")] == [
        "not merged into the project: a"
    ]


async def test_where_there_is_no_room_for_copies_they_work_one_after_the_other(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "a").write_text("old\n")
    monkeypatch.setattr(copying, "MOST_COPIED_BYTES", 1)
    cast = Cast([BOTH, "done"], one=[write("b", "1\n"), "1"], two=[write("c", "2\n"), "2"])
    session, events = opened(project, cast.model, mode="bypass")
    async with session:
        await session.send("go")
    assert tree(project).keys() == {"a", "b", "c"}
    assert results(events)[0].output.count("holds 4 bytes, and a copy of it may have 1") == 2


async def test_questions_come_one_at_a_time_with_the_name_of_each(project: Path) -> None:
    asked: list[Question] = []
    open_questions: list[Question] = []

    async def confirm(question: Question) -> Answer:
        assert not open_questions
        open_questions.append(question)
        asked.append(question)
        await session.prepare()
        open_questions.pop()
        return Answer(is_allowed=True)

    cast = Cast([BOTH, "done"], one=[write("a", "1\n"), "1"], two=[write("b", "2\n"), "2"])
    session, _ = opened(project, cast.model, mode="ask", confirm=confirm)
    async with session:
        await session.send("go")
    assert {each.agent for each in asked} == {"general-1", "general-2"}
    assert len(asked) == 2, "what was confirmed in a copy is not asked about again"
    assert tree(project).keys() == {"a", "b"}
