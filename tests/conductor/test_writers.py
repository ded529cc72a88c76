"""Sub-agents that write at the same time: what the person is asked and told, and what happens where there is no room for copies."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from conductor_cast import Cast, delegated, opened, results
from session.trees import tree
from ybs.checkpoints.store import NoRoom
from ybs.conductor import contents as copying
from ybs.conductor.origin import ParentProject
from ybs.conductor.overlay import Conflicts, Overlay
from ybs.conductor.workplaces import Isolation
from ybs.core.events import Noticed
from ybs.core.ports import Answer, Preview, Question, ToolOutput
from ybs.session.session import Session
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


async def test_an_error_in_one_merge_takes_nothing_from_the_others_and_keeps_the_copy(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = ParentProject.states

    def full(origin: ParentProject, paths: Sequence[str]) -> Any:
        if "a" in paths:
            raise NoRoom("a copy of the files cannot be kept: No space left on device")
        return real(origin, paths)

    monkeypatch.setattr(ParentProject, "states", full)
    cast = Cast([BOTH, "done"], one=[write("a", "1\n"), "first"], two=[write("b", "2\n"), "second"])
    session, events = opened(project, cast.model, mode="bypass")
    async with session:
        await session.send("go")
        output = results(events)[0].output
        kept = re.search(r"No space left on device\); its copy .* stays in (\S+) until", output)
        assert kept is not None, output
        assert (Path(kept[1]) / "a").read_text() == "1\n"
        assert session.environment.roots.resolve(f"{kept[1]}/a").is_file(), "tools may read it"
        conductor = session.parts.main.delegating.conductor
        assert conductor is not None
        assert sorted(each.is_done for each in conductor.reports) == [False, True]
    assert "first" in output
    assert "second" in output
    assert tree(project).keys() == {"b"}


async def test_an_error_while_a_copy_is_opened_is_the_result_of_that_one_alone(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Isolation.open

    async def broken(isolation: Isolation, agent: str, **options: Any) -> Overlay:
        if agent == "general-1":
            raise KeyError("x")
        return await real(isolation, agent, **options)

    monkeypatch.setattr(Isolation, "open", broken)
    cast = Cast([BOTH, "done"], one=[write("a", "1\n"), "1"], two=[write("b", "2\n"), "2"])
    session, events = opened(project, cast.model, mode="bypass")
    async with session:
        await session.send("go")
    assert "[general-1: not done: internal error (KeyError: 'x');" in results(events)[0].output
    assert tree(project).keys() == {"b"}


async def test_a_conflict_that_there_is_no_room_for_is_told_without_its_difference(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "a").write_text("old\n")

    def full(*_: object) -> str:
        raise NoRoom("no room")

    monkeypatch.setattr(Conflicts, "_compared", full)
    monkeypatch.setattr(Conflicts, "_put_away", full)
    cast = Cast([BOTH, "done"], one=[write("a", "mine\n"), "1"], two=[write("a", "its\n"), "2"])
    session, events = opened(project, cast.model, mode="bypass")
    async with session:
        await session.send("go")
        output = results(events)[0].output
        kept = output.partition("version: ")[2].partition("\n")[0]
        sides = {(project / "a").read_text(), session.environment.roots.resolve(kept).read_text()}
    assert sides == {"mine\n", "its\n"}


def with_hook(command: str, matcher: str) -> dict[str, Any]:
    hook = {"matcher": matcher, "hooks": [{"type": "command", "command": command}]}
    return {"hooks": {"PreToolUse": [hook]}}


def guarding(folder: Path) -> str:
    """Return a hook that keeps files of a folder from being named, by their whole paths."""
    named = f'grep -q \'"file_path":"{folder}/\''
    return f'{named} && {{ echo "not {folder.name}" >&2; exit 2; }} || exit 0'


@pytest.mark.parametrize("matcher", ["Write", "Edit"])
async def test_a_hook_that_protects_a_path_holds_at_the_merge(project: Path, matcher: str) -> None:
    (project / "prod").mkdir()
    (project / "prod/x").write_text("old")
    change = call("run_shell", command="echo NEW > prod/x")
    cast = Cast([BOTH, "done"], one=[change, write("b", "1"), "1"], two=["2"])
    overrides = with_hook(guarding(project / "prod"), matcher)
    session, events = opened(project, cast.model, mode="bypass", overrides=overrides)
    async with session:
        await session.send("go")
    assert (project / "prod/x").read_text() == "old"
    assert (project / "b").read_text() == "1"
    assert "prod/x: Refused by a hook: not prod." in results(events)[0].output


@pytest.mark.parametrize(
    ("tool", "matcher", "more"),
    [
        ("read_file", "Read", {}),
        ("write_file", "Write", {"content": "NEW"}),
        ("delete_file", "Edit", {}),
    ],
)
async def test_a_hook_that_protects_a_path_is_told_that_one_in_a_copy_too(
    project: Path, tool: str, matcher: str, more: dict[str, str]
) -> None:
    (project / "prod").mkdir()
    (project / "prod/x").write_text("old")

    async def whole(request: Any) -> Any:
        (folder,) = set(re.findall(r"/[^\s\"`]*/ybs-copies/\w+/\w+/project", repr(request)))
        return call(tool, path=f"{folder}/prod/x", **more)

    steps = [call(tool, path="prod/x", **more), whole, "1"]
    cast = Cast([BOTH, "done"], one=steps, two=["2"])
    overrides = with_hook(guarding(project / "prod"), matcher)
    session, events = opened(project, cast.model, mode="bypass", overrides=overrides)
    async with session:
        await session.send("go")
    said = [each.output for each in results(events, tool)]
    assert said == ["Refused by a hook: not prod"] * 2
    assert (project / "prod/x").read_text() == "old"


async def test_a_hook_in_a_copy_is_told_of_both_folders_and_changes_a_call_there(project: Path, tmp_path: Path) -> None:  # fmt: skip
    seen = tmp_path / "seen"
    facts = "print(f['cwd'], f['tool_input']['file_path'], f['ybs_copy'], os.environ['CLAUDE_PROJECT_DIR'])"
    given = """print(json.dumps({"hookSpecificOutput": {"updatedInput": {**f["tool_input"], "content": "2"}}}))"""
    (tmp_path / "hook.py").write_text(f"import json, os, sys; f = json.load(sys.stdin); sys.stdout = open({str(seen)!r}, 'a'); {facts}; sys.stdout = sys.__stdout__; {given}")  # fmt: skip
    cast = Cast([BOTH, "done"], one=[write("a", "1"), "1"], two=["2"])
    overrides = with_hook(f"{sys.executable} -I {tmp_path}/hook.py", "Write")
    session, _ = opened(project, cast.model, mode="bypass", overrides=overrides)
    async with session:
        await session.send("go")
    assert (project / "a").read_text() == "2"
    cwd, path, copy, top = seen.read_text().splitlines()[0].split()
    assert (cwd, path, top) == (str(project), f"{project}/a", str(project))
    assert copy.endswith(f"/{project.name}")
    assert copy != str(project)


async def test_a_hook_that_answers_for_the_person_is_told_the_path_in_the_project(project: Path) -> None:  # fmt: skip
    (project / "prod").mkdir()
    hook = {"hooks": [{"type": "command", "command": guarding(project / "prod")}]}
    cast = Cast([BOTH, "done"], one=[write("prod/x", "NEW"), "1"], two=["2"])

    async def confirm(question: Question) -> Answer:
        return Answer(is_allowed=True)

    overrides = {"hooks": {"PermissionRequest": [hook]}}
    session, events = opened(project, cast.model, mode="ask", confirm=confirm, overrides=overrides)
    async with session:
        await session.send("go")
    assert "a hook says: not prod" in results(events, "write_file")[0].output
    assert not (project / "prod/x").exists()


async def test_a_hook_that_says_to_ask_has_the_person_asked_at_the_merge(project: Path) -> None:
    asked: list[Question] = []

    async def confirm(question: Question) -> Answer:
        asked.append(question)
        return Answer(is_allowed=False)

    said = '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask"}}'
    command = f"grep -q '\"file_path\":\"{project}/a\"' && echo '{said}' || exit 0"
    cast = Cast([BOTH, "done"], one=[write("a", "1"), "1"], two=["2"])
    session, _ = opened(
        project, cast.model, mode="auto", confirm=confirm, overrides=with_hook(command, "Write")
    )
    async with session:
        await session.send("go")
    assert [each.call.name for each in asked] == ["write_file"]
    assert tree(project) == {}


async def test_a_hook_that_ends_the_turn_ends_it_in_a_copy_too(project: Path) -> None:
    overrides = with_hook("""echo '{"continue": false, "stopReason": "enough"}'""", "Write")
    cast = Cast([BOTH, "on"], one=[write("a", "1"), "went on"], two=["2"])
    session, _ = opened(project, cast.model, mode="bypass", overrides=overrides)
    async with session:
        outcome = await session.send("go")
    assert outcome.finished.message == "A hook ended the turn: enough"
    assert len(cast.requests["one"]) == 1
    assert tree(project) == {}


class Stamp:
    """A tool of a program's own, which knows the project and no copy of it."""

    name, description, effect, longest_seconds = "stamp", "Writes a stamp.", "write", 10
    parameters = Raw(b'{"type":"object","properties":{}}')

    def preview(self, arguments: object) -> Preview:
        return Preview(title="stamp")

    async def run(self, arguments: object, live: object) -> ToolOutput:
        return ToolOutput(output="ok")


async def test_tools_of_a_program_are_not_there_in_copies(project: Path) -> None:
    cast = Cast(
        [BOTH, delegated({"task": "three", "kind": "general"}), "done"],
        one=["1"],
        two=["2"],
        three=["3"],
    )
    session, _ = opened(project, cast.model, mode="bypass", tools=(Stamp(),))
    async with session:
        await session.send("go")
    offered = {
        key: "stamp" in [tool.name for tool in cast.requests[key][0].tools] for key in cast.requests
    }
    assert offered == {"main": True, "one": False, "two": False, "three": True}


async def test_one_that_is_stopped_while_it_waits_for_a_place_ends_at_once(project: Path) -> None:
    session: Session

    async def stop(_: object) -> str:
        conductor = session.parts.main.delegating.conductor
        assert conductor is not None
        assert conductor.stop("general-2") == 1
        await session.prepare()
        return "1"

    cast = Cast([BOTH, "done"], one=[stop], two=["2"])
    session, events = opened(
        project, cast.model, mode="bypass", overrides={"agents.max_parallel": 1}
    )
    async with session:
        await session.send("go")
    assert cast.requests["two"] == []
    assert "[general-2: not done: it was stopped before it began;" in results(events)[0].output


async def test_of_one_that_is_stopped_what_its_commands_changed_is_said_too(project: Path) -> None:
    session: Session

    async def stop(_: object) -> str:
        conductor = session.parts.main.delegating.conductor
        assert conductor is not None
        conductor.stop("general-1")
        await session.prepare()
        return "never said"

    cast = Cast([BOTH, "done"], one=[call("run_shell", command="echo 1 > a"), stop], two=["2"])
    session, events = opened(project, cast.model, mode="bypass")
    async with session:
        await session.send("go")
    first, second = results(events)[0].output.split("[general-2")
    assert "Its changes were not merged." in first
    assert "not merged" not in second
    assert tree(project) == {}
