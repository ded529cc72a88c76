"""Other agents as sub-agents: real programs that speak the protocol, in the real sandbox and in copies of a real project."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from msgspec.structs import replace

from conductor.acp.scenes import Scene
from conductor_cast import delegated, results
from hosts import this_host
from rows import every_row
from ybs.config.layers import Loaded
from ybs.config.schema import IncognitoSettings, NeverIncognito
from ybs.core.events import (
    ConfirmationAsked,
    TextStreamed,
    ThinkingStreamed,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    UserSaid,
)
from ybs.core.ports import Answer, Question
from ybs.testing import RecordedEvents
from ybs.tools.builtin.delegate import Task
from ybs.trust.decision import revoke

pytestmark = [pytest.mark.integration, pytest.mark.timeout(60)]


@pytest.fixture
def scene(project: Path) -> Scene:
    (project / "a").write_text("old\n")
    return Scene(project)


async def test_it_changes_a_copy_whose_changes_are_merged(scene: Scene) -> None:
    said = await scene.play(["put", "a", "new\n"], ["put", "b", "more\n"], ["say", "It is done."])
    assert said.startswith("[other-1: done; "), said
    assert "It is done." in said
    assert (scene.project / "a").read_text() == "new\n"
    assert (scene.project / "b").read_text() == "more\n"


async def test_gemini_reads_a_file_that_is_missing_as_empty(scene: Scene) -> None:
    await scene.play(["read", "gone"], agent={"preset": "gemini"})
    assert scene.said == "read '';"


async def test_what_it_changed_unasked_is_asked_about_as_the_mode_says(scene: Scene) -> None:
    scene.answer = lambda question: Answer(is_allowed="Merge b" not in question.preview.title)
    said = await scene.play(
        ["put", "a", "new\n"], ["put", "b", "x\n"], ["put", "c", "x\n"], mode="ask"
    )
    assert [each.preview.title for each in scene.asked] == [
        "Merge b from sub-agent other-1",
        "Merge c from sub-agent other-1",
    ]
    assert {each.agent for each in scene.asked} == {"other-1"}
    assert sorted(path.name for path in scene.project.iterdir()) == ["a", "c"]
    assert "The person refused." in said


async def test_one_that_reads_only_can_change_nothing(scene: Scene) -> None:
    await scene.play(
        ["put", "a", "new\n"],
        ["write", "a", "new\n"],
        ["ask", "edit", "Edit a", None, "a"],
        ["ask", "execute", "ls", {"command": "ls"}],
        ["peek", "a"],
        agent={"read_only": True},
        mode="bypass",
    )
    told = scene.said.split(";")
    assert told[0] == "Read-only file system"
    assert told[1].startswith("no: You work read-only")
    assert told[2:] == ["no", "yes", "old\n", ""], "the sandbox keeps a command from writing"
    assert (scene.project / "a").read_text() == "old\n"
    assert not scene.asked


async def test_its_requests_are_judged_by_the_policy_and_asked_with_its_name(scene: Scene) -> None:
    scene.answer = lambda question: Answer(is_allowed="make" in question.preview.body)
    await scene.play(
        ["ask", "execute", "Build", {"command": ["bash", "-lc", "make all"]}],
        ["ask", "execute", "Push", {"command": "git push"}],
        ["ask", "execute", "Look", {"command": "cat a"}],
        ["ask", "execute", "Count", {"command": "wc -l a"}],
        ["ask", None, "Delete all"],
        ["ask", "fetch", "Fetch https://example.org"],
        ["ask", "read", "Read a", None, "a"],
        mode="ask",
        deny=["run_shell(cat *)"],
        allow=["run_shell(wc *)"],
    )
    assert scene.said == "yes;no;no;yes;no;no;yes;", "never `always`"
    titles = [each.preview.title for each in scene.asked]
    assert titles == [*["Run a shell command"] * 2, "Call agent_request", "Call web_fetch"]
    assert scene.asked[0].preview.body == "make all"
    assert scene.asked[0].reason.startswith("another agent runs it")
    says = [each.reason.partition("it says of it: ")[2] for each in scene.asked]
    assert says == ["'Build'", "'Push'", "'Delete all'", "'Fetch https://example.org'"]
    assert {each.agent for each in scene.asked} == {"other-1"}
    assert len(scene.told(ConfirmationAsked)) == 4


async def test_in_auto_only_what_destroys_is_asked_about(scene: Scene) -> None:
    scene.answer = lambda _: Answer(is_allowed=False)
    await scene.play(
        ["ask", "execute", "Test", {"command": "make test"}],
        ["ask", "execute", "Clean", {"command": "rm -rf /home"}],
        ["ask", "edit", "Edit", None, "../../elsewhere"],
        ["ask_always"],
    )
    assert scene.said == "yes;no;no;cancelled;"
    assert [each.preview.body for each in scene.asked] == ["rm -rf /home"]


async def test_a_grant_of_the_person_holds_for_it_and_a_change_is_shown(scene: Scene) -> None:
    scene.answer = lambda _: Answer(is_allowed=True, is_for_session=True)
    await scene.play(
        ["ask_edit", "b", None, "1\n"],
        ["write", "b", "1\n"],
        ["write", "b", "2\n"],
        ["write", "c", "3\n"],
        mode="ask",
    )
    assert scene.said == "yes;written;written;written;"
    (asked,) = scene.asked
    assert (asked.preview.title, asked.call.name, asked.grant) == (
        "Create b (+1 -0)",
        "write_file",
        "write_file(**)",
    )
    assert "+1" in asked.preview.body
    assert (scene.project / "b").read_text() == "2\n"
    assert (scene.project / "c").read_text() == "3\n"


async def test_what_was_allowed_is_written_once_without_another_question(scene: Scene) -> None:
    await scene.play(
        ["ask_edit", "b", None, "1\n"], ["write", "b", "1\n"], ["write", "b", "2\n"], mode="ask"
    )
    assert scene.said == "yes;written;written;"
    told = [(each.title, each.paths) for each in scene.told(ToolStarted)]
    assert told == [("Edit", ("b",)), ("Write b", ("b",)), ("Write b", ("b",))]
    changes = [change for each in scene.told(ToolFinished) for change in each.changes]
    assert [(each.path, each.before, each.after) for each in changes] == [
        ("b", None, "1\n"),
        ("b", "1\n", "2\n"),
    ], "what was written through ybs is told once"
    titles = [each.preview.title for each in scene.asked]
    assert titles == ["Create b (+1 -0)", "Overwrite b (+1 -1)"]


@pytest.mark.parametrize(
    ("shown", "done"),
    [
        (["ask_diffs", "delete", "x", ["a", "old\n", "evil\n"]], ["put", "a", "evil\n"]),
        (["ask_diffs", "delete", "x", ["a", "old\n", "evil\n"]], ["write", "a", "evil\n"]),
        (["ask_edit", "b", None, "1\n"], ["write", "b", "evil\n"]),
        (["ask_edit", "b", None, "1\n"], ["put", "b", "evil\n"]),
        (["ask_edit", "a", "old\n", "new\n"], ["write", "a", "evil\n"]),
        (["ask_edit", "a", "old\n", "new\n"], ["put", "a", "evil\n"]),
        (["ask", "delete", "Delete", None, "a"], ["put", "a", "evil\n"]),
        (["ask", "delete", "Delete", None, "a"], ["write", "a", "evil\n"]),
        (["ask", "move", "Move", None, "a"], ["put", "a", "evil\n"]),
        (["ask", "edit", "Edit", None, "a"], ["put", "a", "evil\n"]),
        (["ask", "edit", "Edit", None, "a"], ["write", "a", "evil\n"]),
    ],
)
async def test_a_yes_to_what_was_shown_is_none_to_something_else(
    scene: Scene, shown: list[Any], done: list[Any]
) -> None:
    scene.answer = lambda question: Answer(is_allowed="evil" not in question.preview.body)
    await scene.play(shown, done, mode="ask", overrides={"safety.ask_before_edits": True})
    assert "evil" in scene.asked[-1].preview.body
    assert "evil" not in "".join(path.read_text() for path in scene.project.iterdir())


async def test_what_was_shown_is_merged_without_another_question(scene: Scene) -> None:
    (scene.project / "a").write_text("one\ntwo\nthree\n")
    await scene.play(
        ["ask_edit", "a", "two", "2"],
        ["put", "a", "one\n2\nthree\n"],
        ["ask_edit", "a", "three\n", "3\n"],
        ["write", "a", "one\n2\n3\n"],
        mode="ask",
        overrides={"safety.ask_before_edits": True},
    )
    assert (scene.project / "a").read_text() == "one\n2\n3\n"
    assert [each.preview.title for each in scene.asked] == ["Edit a (+1 -1)"] * 2


@pytest.mark.parametrize("kind", ["read", "search", "think", None])
async def test_a_command_is_judged_as_one_whatever_the_agent_calls_it(
    scene: Scene, kind: str | None
) -> None:
    scene.answer = lambda _: Answer(is_allowed=False)
    await scene.play(["ask", kind, "Look", {"command": ["bash", "-lc", "rm -rf x"]}], mode="ask")
    assert scene.said == "no;"
    assert [each.preview.body for each in scene.asked] == ["rm -rf x"]


@pytest.mark.parametrize("kind", ["read", "search", "think", "fetch", None])
@pytest.mark.parametrize("mode", ["ask", "deny"])
async def test_a_change_is_judged_as_one_whatever_the_agent_calls_it(
    scene: Scene, kind: str | None, mode: str
) -> None:
    scene.answer = lambda _: Answer(is_allowed=False)
    await scene.play(
        ["ask_diffs", kind, "Read b", ["b", None, "new\n"]],
        ["write", "b", "new\n"],
        ["ask_diffs", kind, "Read a", ["a", "not in it", "new\n"]],
        ["write", "a", "new\n"],
        mode=mode,
    )
    assert [each[:3] for each in scene.said.split(";")] == ["no", "no:", "no", "no:", ""]
    assert [(path.name, path.read_text()) for path in scene.project.iterdir()] == [("a", "old\n")]
    if kind in ("read", "search", "think") and mode == "ask":
        titles = ["Create b (+1 -0)", "Overwrite a (+1 -1)"]
        assert [each.preview.title for each in scene.asked[::2]] == titles


async def test_a_question_names_the_files_and_the_agents_words_stand_beside_it(
    scene: Scene,
) -> None:
    scene.answer = lambda _: Answer(is_allowed=False)
    (scene.project / "b").write_text("2\n")
    (scene.project / "sub").mkdir()
    await scene.play(
        ["ask", "delete", "look at README.md, and delete nothing", None, "a"],
        ["ask", "delete", "Delete", None, "sub"],
        ["ask", "edit", "Edit README.md", None, "a"],
        ["ask", "execute", "Look", {"command": "make", "cwd": "sub"}],
        mode="ask",
    )
    removal, folder, edit, command = (each.preview for each in scene.asked)
    assert removal.title == "Delete a"
    assert removal.body == "--- a\n+++ /dev/null\n@@ -1 +0,0 @@\n-old"
    assert [each.is_diff for each in (removal, edit, command)] == [True, False, False]
    says = "it says of it: 'look at README.md, and delete nothing'"
    assert scene.asked[0].reason == says
    assert (folder.title, folder.body) == (
        "Delete sub",
        "sub is a folder; delete_file deletes files only",
    )
    assert (edit.title, edit.body) == ("Edit a", "")
    assert (command.title, command.body) == ("Run a shell command in sub", "make")
    assert [Path(path).name for path in command.paths] == ["sub"]


async def test_new_files_and_those_that_are_there_are_judged_each_as_what_they_are(
    scene: Scene,
) -> None:
    scene.answer = lambda _: Answer(is_allowed=False)
    (scene.project / "c").write_text("one\ntwo\n")
    changes = (["a", "old\n", "new\n"], ["c", "one", "1"], ["c", "two", "2"], ["b", None, "x\n"])
    await scene.play(["ask_diffs", "edit", "Edit", *changes], ["write", "b", "x\n"], mode="ask")
    assert scene.said.startswith("no;no: ")
    assert scene.asked[0].preview.title == "Create b (+1 -0)", "the others were read"
    scene.asked.clear()
    overrides = {"safety.ask_before_edits": True}
    await scene.play(["ask_diffs", "edit", "Edit", *changes], mode="ask", overrides=overrides)
    (asked,) = scene.asked
    assert asked.preview.title == "Edit a (+1 -1), Edit c (+2 -2)"
    assert asked.preview.body.endswith("-one\n-two\n+1\n+2")
    assert asked.preview.is_diff


async def test_what_is_agreed_to_is_what_was_shown_whatever_the_file_holds_by_then(
    scene: Scene,
) -> None:
    def answer(question: Question) -> Answer:
        if question.preview.title.startswith("Edit"):
            (copied,) = this_host().copies_folder.glob("*/*/project/a")
            copied.write_text("evil\nold\n")
        return Answer(is_allowed="evil" not in question.preview.body)

    scene.answer = answer
    await scene.play(
        ["ask_edit", "a", "old", "new"],
        ["put", "a", "evil\nnew\n"],
        mode="ask",
        overrides={"safety.ask_before_edits": True},
    )
    assert len(scene.asked) == 2
    assert (scene.project / "a").read_text() == "old\n"


async def test_files_that_it_reads_through_ybs_pass_roots_and_firewall(
    scene: Scene, tmp_path: Path
) -> None:
    key = "sk-ant-" + "api03-" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9" * 3
    (scene.project / "keys").write_text(f"key = {key}\n")
    (scene.project / "lines").write_text("".join(f"{n}\n" for n in range(5)))
    (tmp_path / "outside").write_text("theirs")
    scene.answer = lambda _: Answer(is_allowed=False)
    said = await scene.play(
        ["read", "lines", 2, 2],
        ["read", str(tmp_path / "outside")],
        ["read", "gone"],
        ["read", "hidden"],
        ["read", "x\0y"],
        ["write", "x\0y", "text"],
        ["write", str(tmp_path / "outside"), "x"],
        ["copy", "keys", "keys"],
        overrides={"safety.sandbox_blocked_paths": ["hidden"]},
    )
    assert "read '1\\n2\\n';" in said
    assert "theirs" not in said
    assert "gone does not exist" in said
    assert said.count("no: the path has a null character in it;") == 2
    assert "hidden is in a blocked path" in said
    assert (tmp_path / "outside").read_text() == "theirs"
    assert key not in said
    assert "[ybs:secret:" in said
    assert (scene.project / "keys").read_text() == f"key = {key}\nmore\n"
    assert [each.preview.title for each in scene.asked] == [
        "Read outside of the folders that ybs works in"
    ]


async def test_it_sees_its_login_its_variables_and_nothing_else_of_the_person(
    scene: Scene, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("diary", ".other/login.json"):
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_text(f"this is {name}")
    monkeypatch.setenv("OTHER_KEY", "for it")
    monkeypatch.setenv("SECOND_KEY", "not for it")
    said = await scene.play(
        ["peek", "~/.other/login.json"],
        ["peek", str(home / "diary")],
        ["put", str(home / ".other/login.json"), "refreshed"],
        ["env", "OTHER_KEY"],
        ["env", "SECOND_KEY"],
        ["about"],
        ["terminal"],
        agent={"login": ["~/.other/login.json"], "environment": ["OTHER_*"]},
    )
    assert "this is .other/login.json;" in said
    assert "this is diary" not in said
    assert "No such file or directory;" in said
    assert "for itunset[true, true, false]Method not found" in said
    assert (home / ".other/login.json").read_text() == "refreshed"


async def test_folders_that_the_session_may_read_are_read_through_ybs_and_seen_by_no_other_agent(
    scene: Scene, home: Path
) -> None:
    for name in ("notes", "added"):
        (home / name).mkdir()
        (home / name / "diary").write_text(f"my {name}")
    (scene.project / ".gitignore").write_text("node_modules\n")
    (scene.project / "node_modules").mkdir()
    (scene.project / "node_modules/lib").write_text("of the project")
    diary = str(home / "notes/diary")
    steps = [
        ["peek", diary],
        ["peek", str(home / "added/diary")],
        ["peek", "node_modules/lib"],
        ["read", diary],
    ]
    async with scene.open(*steps, add_dirs=(home / "added",)) as session:
        session.environment.roots.add_reading(str(home / "notes"))
        await session.send("go")
    said = results(scene.events)[0].output
    assert "my added" not in said
    assert said.count("No such file or directory;") == 2
    assert "of the project;" in said
    assert said.count("my notes") == 1
    assert "read 'my notes';" in said


async def test_it_finds_in_its_home_what_was_left_in_this_project_alone_and_until_a_revoke(
    scene: Scene, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()

    async def found(project: Path, *, read_only: bool = True) -> bool:
        here = Scene(project)
        steps = ["peek", "~/left"], ["put", "~/left", "code"]
        await here.play(*steps, agent={"read_only": read_only})
        return "code" in here.said

    assert not await found(scene.project, read_only=False), "which works in a copy"
    assert [await found(each) for each in (other, scene.project)] == [False, True]
    homes = this_host().residents_folder
    assert len([*homes.iterdir()]) == 2
    revoke(this_host(), other)
    (left,) = homes.iterdir()
    revoke(this_host(), scene.project)
    assert not left.exists()


async def test_its_events_are_those_of_a_sub_agent(scene: Scene) -> None:
    said = await scene.play(
        ["think", "hm"],
        ["say", "First."],
        ["call", "execute", "List files", {"command": "ls"}],
        ["cost", 500, 0.25],
        ["tokens", 1_000, 200],
        ["say", "Last."],
    )
    assert said.startswith("[other-1: done; 1 step, 1,200 tokens, "), said
    assert "$0.2500]" in said
    assert said.endswith("Last."), "the last answer alone"
    assert scene.told(UserSaid)[0].content == "do it"
    assert [each.text for each in scene.told(ThinkingStreamed)] == ["hm"]
    assert "".join(each.text for each in scene.told(TextStreamed)) == "First.Last."
    (started,), (finished,) = scene.told(ToolStarted), scene.told(ToolFinished)
    assert started.name == finished.name == "run_shell"
    assert json.loads(bytes(started.arguments)) == {"command": "ls"}
    assert (started.effect, started.title) == ("execute", "List files")
    assert (finished.id, finished.success, finished.output) == (started.id, True, "out")
    assert scene.told(TurnFinished)[0].usage.cost_usd == 0.25
    assert {each.started_by for each in scene.events.envelopes if each.agent == "other-1"} == {
        results(scene.events)[0].id
    }


async def test_a_task_says_what_its_part_is_and_names_its_copy(scene: Scene) -> None:
    task = delegated({"task": f"read {scene.project}/a", "kind": "other", "context": "c1"})
    said = await scene.play(["words"], task=task)
    assert "You are a sub-agent" in said
    assert f"read {scene.project}/a" in said, "told of the copy, and moved back in its result"
    assert "<context>\nc1\n</context>" in said


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        ([["say", "so far"], ["die", 3]], "it ended with exit code 3: fatal: the engine is broken"),
        ([["end", "refusal"]], "it refused the task"),
        ([["end", "max_tokens"]], "its answer was cut off at its model's limit"),
        ([["version"]], "it speaks version 7 of the protocol, and ybs version 1"),
        ([["login"]], "is not logged in: Authentication required"),
        ([["raw", "no message", 300], ["hang"]], "it wrote too much that is not a message"),
        ([["long_line"], ["hang"]], "it sent a message of more than 16 MB"),
        ([["deep_line"], ["hang"]], "it sent a message of more than 500,000 objects"),
        ([["flood"]], "it said more than 5,000,000 characters"),
        ([["cost", 1, 3.0], ["hang"]], "it cost more than the $2.00 that it may"),
        ([["cost", 200_000, 0.0], ["hang"]], "it used more than the 100,000 tokens that it may"),
        (
            [["call", "read", str(n), {}] for n in range(9)] + [["hang"]],
            "it used more than the 8 steps",
        ),
    ],
)
async def test_one_that_goes_wrong_is_a_report_with_the_reason(
    scene: Scene, steps: list[Any], why: str
) -> None:
    task = {"task": "do it", "kind": "other", "steps": 8, "tokens": 100_000, "cost_usd": 2.0}
    said = await scene.play(*steps, task=delegated(task))
    assert said.startswith("[other-1: not done: "), said
    (end,) = scene.told(TurnFinished)
    assert why in f"{end.message}; is not logged in: {end.message}"
    assert why in said.partition("\n")[0], said


async def test_one_that_hangs_ends_with_its_time(scene: Scene) -> None:
    task = delegated({"task": "do it", "kind": "other", "seconds": 6.0})
    said = await scene.play(["say", "so far"], ["block"], task=task)
    assert "it did not come to its end within the 6 s that it has" in said
    assert "so far" in said


async def test_one_that_is_silent_at_its_start_is_not_waited_for(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ybs.conductor.acp.client.START_SECONDS", 2.0)
    assert "it did not answer for 2 s at its start" in await scene.play(["silent"])


async def test_nonsense_between_its_messages_is_passed_over(
    scene: Scene, capfd: pytest.CaptureFixture[str]
) -> None:
    update = {"sessionId": "s", "update": {"sessionUpdate": "tool_call_update"}}
    odd = {"sessionUpdate": "tool_call", "toolCallId": "\0", "title": "\0", "kind": "edit"}
    odd["rawInput"] = {"path": "\0/x", "file_path": 5, "command": [[]]}
    nonsense = [
        {"jsonrpc": "2.0", "method": "session/update", "params": update},
        {"jsonrpc": "2.0", "method": "session/update", "params": [1]},
        {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": odd}},
        {"jsonrpc": "2.0", "method": "session/update"},
        {"jsonrpc": "2.0", "method": "made/up", "params": {}},
        {"jsonrpc": "2.0", "id": 99, "method": "made/up", "params": {}},
        {"jsonrpc": "2.0", "id": 98, "method": "fs/read_text_file", "params": {"path": []}},
        {"jsonrpc": "2.0", "id": 97, "method": 5, "params": {}},
        {"jsonrpc": "2.0", "id": 1234, "result": {}},
        {"jsonrpc": "2.0", "id": 2, "error": []},
        {"jsonrpc": "2.0", "id": [], "result": {}},
        [1, 2],
        "text",
    ]
    lines = [["raw", json.dumps(each)] for each in nonsense if each != nonsense[9]]
    said = await scene.play(
        *lines, ["raw", "\x1b[2Jnot json"], ["raw", "[" * 5000], ["say", "fine"]
    )
    assert "done; " in said, said
    assert said.endswith("fine")
    assert capfd.readouterr() == ("", ""), "the SDK writes nothing to the terminal"


async def test_a_crowd_of_requests_ends_it(scene: Scene) -> None:
    waiting = asyncio.Event()

    async def confirm(question: Question) -> Answer:
        await waiting.wait()
        return Answer(is_allowed=True)

    scene.confirm = confirm
    said = await scene.play(["crowd"], mode="ask")
    assert "it asked for more than 100 things at once" in said


async def test_a_cancelled_turn_ends_its_processes_at_once(scene: Scene) -> None:
    session = scene.open(["child", "pid"], ["say", "busy"], ["block"], agent={"sandbox": False})
    async with session:
        turn = asyncio.create_task(session.send("go"))
        await _until(lambda: bool(scene.told(TextStreamed)))
        pid = _number_in_copy()
        began = asyncio.get_running_loop().time()
        session.cancel()
        end = await turn
        assert asyncio.get_running_loop().time() - began < 3
        assert end.finished.reason == "interrupted"
        assert _is_gone(pid)
    assert not (scene.project / "pid").exists(), "nothing is merged of one that was stopped"


async def test_stopping_one_leaves_the_turn_and_what_it_said(scene: Scene) -> None:
    async with scene.open(["say", "half"], ["hang"]) as session:
        turn = asyncio.create_task(session.send("go"))
        await _until(lambda: bool(scene.told(TextStreamed)))
        conductor = session.parts.main.delegating.conductor
        assert conductor is not None
        conductor.stop("other-1")
        end = await turn
    assert end.finished.reason == "done"
    assert "[other-1: not done: it was stopped; " in results(scene.events)[0].output


async def _until(is_there: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not is_there():  # noqa: ASYNC110 - of events of another process
            await asyncio.sleep(0.02)


def _number_in_copy() -> int:
    (file,) = this_host().copies_folder.glob("*/*/project/pid")
    return int(file.read_text())


def _is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"trust": False}, "it works only in a project that the person trusts"),
        (
            {"agent": {"command": ["no-such-agent"]}},
            "the program no-such-agent is not on your PATH",
        ),
    ],
)
async def test_where_it_may_not_work_it_is_not_started(
    scene: Scene, options: dict[str, Any], why: str
) -> None:
    said = await scene.play(["put", "a", "new"], **options)
    assert why in said
    assert (scene.project / "a").read_text() == "old\n"


@pytest.mark.parametrize(
    "private", [NeverIncognito(local_only=True), IncognitoSettings(enabled=True)]
)
async def test_where_words_may_go_to_no_model_elsewhere_it_is_neither_offered_nor_started(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, private: IncognitoSettings
) -> None:
    def held(loaded: Loaded) -> Loaded:
        return replace(loaded, config=replace(loaded.config, incognito=private))

    monkeypatch.setattr("ybs.session.parts.check_place", lambda *_: None)  # of the scripted model
    async with scene.open(["put", "a", "new"], held=held) as session:
        assert "other" not in session.parts.main.delegating.own_kinds
        await session.send("go")
    assert "so it is not used in incognito" in results(scene.events)[0].output
    assert (scene.project / "a").read_text() == "old\n"


async def test_in_a_dry_run_it_is_not_started(scene: Scene) -> None:
    async with scene.open(["put", "a", "new"], dry_run=True) as session:
        told = await session.parts.main.delegating.delegate(
            [Task(task="do it", kind="other")], "call"
        )
    assert "this is a dry run" in told.output


async def test_without_the_extra_it_says_how_to_get_it(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ybs.conductor.acp.presets.find_spec", lambda _: None)
    said = await scene.play(["say", "hi"])
    assert "it needs the package agent-client-protocol: `pip install 'ybs[acp]'`" in said


@pytest.mark.parametrize(
    ("steps", "model", "said"),
    [
        (["model"], "", "its own"),
        (["model"], "big-1", "llm big-1"),
        (["model"], "Big", "llm big-1"),
        (["model"], "huge", "it has no model huge, but: small-1, big-1"),
        (["say", "x"], "big-1", "it does not let its model be chosen, so big-1 cannot be used"),
    ],
)
async def test_its_model_is_the_one_that_the_settings_name(
    scene: Scene, steps: list[str], model: str, said: str
) -> None:
    assert said in await scene.play(steps, agent={"model": model})


async def test_a_task_for_it_names_no_model_tools_or_attempts(scene: Scene) -> None:
    task = {"task": "do it", "kind": "other"}
    for more in ({"model": "x"}, {"tools": ["read_file"]}, {"best_of": 2}):
        scene.events = RecordedEvents()
        said = await scene.play(["say", "hi"], task=delegated({**task, **more}))
        assert "Leave `" in said


async def test_where_there_is_no_room_for_a_copy_it_does_not_work_in_the_project(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ybs.conductor.contents.MOST_COPIED_BYTES", 1)
    said = await scene.play(["put", "a", "new"])
    assert "It cannot have a copy of the project to work in" in said
    assert (scene.project / "a").read_text() == "old\n"


async def test_a_preset_logs_in_with_the_key_that_is_there(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = (["login"], ["env", "OPENAI_API_KEY"])
    said = await scene.play(*steps, agent={"preset": "codex"})
    assert "is not logged in: Authentication required" in said
    assert "run `codex login` in a terminal, or set OPENAI_API_KEY" in said
    monkeypatch.setenv("OPENAI_API_KEY", "a key of the test")
    scene.events = RecordedEvents()
    said = await scene.play(*steps, agent={"preset": "codex"})
    assert scene.said == "logged ina key of the test"
    assert said.endswith("logged in[ybs:secret:own-secret#1]"), (
        "the main agent's model reads no key"
    )


async def test_a_hook_of_the_person_can_refuse_and_cannot_change_what_it_asks_for(
    scene: Scene, tmp_path: Path
) -> None:
    hook = tmp_path / "hook.py"
    hook.write_text(
        "import json, sys\n"
        "call = json.load(sys.stdin)\n"
        "command = call['tool_input'].get('command', '')\n"
        "if 'no' in command: print('not this', file=sys.stderr); sys.exit(2)\n"
        "out = {'hookEventName': 'PreToolUse', 'updatedInput': {'command': 'true'}}\n"
        "if 'other' in command: print(json.dumps({'hookSpecificOutput': out}))\n"
    )
    hooks = [{"type": "command", "command": f"{sys.executable} {hook}"}]
    await scene.play(
        ["ask", "execute", "1", {"command": "make no"}],
        ["ask", "execute", "2", {"command": "make other"}],
        ["ask", "execute", "3", {"command": "make it"}],
        overrides={"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": hooks}]}},
    )
    assert scene.said == "no;no;yes;"


@pytest.mark.parametrize("is_hook", [True, False])
async def test_hooks_and_rules_mean_each_of_several_files_by_its_place_in_the_project(
    scene: Scene, *, is_hook: bool
) -> None:
    (scene.project / "infra").mkdir()
    (scene.project / "infra/b").write_text("old\n")
    command = """grep -q '"file_path":"[^"]*/infra/b"' && exit 2 || exit 0"""
    hooks = [{"type": "command", "command": command, "if": f"Edit(/{scene.project}/infra)"}]
    overrides = {"hooks": {"PreToolUse": [{"matcher": "Edit", "hooks": hooks}]}}
    changes = (["a", "old\n", "new\n"], ["infra/../infra/b", "old\n", "new\n"])
    await scene.play(
        ["ask_diffs", "edit", "Edit", *changes],
        ["ask_diffs", "edit", "Edit", changes[0]],
        ["ask", "read", "Read b", None, "infra/b"],
        overrides=overrides if is_hook else {},
        deny=[] if is_hook else [f"*({scene.project}/infra)"],
    )
    assert scene.said == f"no;yes;{'yes' if is_hook else 'no'};"


@pytest.mark.parametrize("event", ["PreToolUse", "PermissionRequest"])
async def test_a_hooks_yes_counts_where_it_is_one_for_each_of_several_files(
    scene: Scene, event: str
) -> None:
    (scene.project / "b").write_text("old\n")
    scene.answer = lambda _: Answer(is_allowed=False)
    yes = {"permissionDecision": "allow", "decision": {"behavior": "allow"}}
    said = json.dumps({"hookSpecificOutput": {"hookEventName": event, **yes}})
    command = f"""grep -q '"file_path":"[^"]*/a"' && echo '{said}' || exit 0"""
    hooks = [{"type": "command", "command": command}]
    first, second = ["a", "old\n", "new\n"], ["b", "old\n", "new\n"]
    await scene.play(
        ["ask_diffs", "edit", "Edit", first],
        ["ask_diffs", "edit", "Edit", first, second],
        mode="ask",
        overrides={
            "safety.ask_before_edits": True,
            "hooks": {event: [{"matcher": "Edit", "hooks": hooks}]},
        },
    )
    assert scene.said == "yes;no;"


async def test_two_work_side_by_side_and_one_that_reads_in_the_background(scene: Scene) -> None:
    both = delegated({"task": "one", "kind": "other"}, {"task": "two", "kind": "other"})
    await scene.play(["put", "new", "same\n"], ["say", "done"], task=both)
    assert (scene.project / "new").read_text() == "same\n"
    assert {each.agent for each in scene.events.envelopes} == {"main", "other-1", "other-2"}
    scene.events = RecordedEvents()
    task = delegated({"task": "look", "kind": "other", "background": True})
    await scene.play(["say", "seen"], task=task, agent={"read_only": True}, is_one_shot=True)
    assert any("[other-1: done; " in each.content for each in scene.events.of(UserSaid))


async def test_the_session_goes_on_with_what_it_cost(scene: Scene) -> None:
    async with scene.open(["cost", 10, 0.5], ["say", "x"]) as session:
        outcome = await session.send("go")
    assert outcome.others.cost_usd == 0.5


def test_the_sdk_is_loaded_when_another_agent_begins_and_not_before() -> None:
    code = (
        "import sys, ybs.conductor.conductor, ybs.conductor.kind_files\n"
        "print(sorted({'acp', 'pydantic', 'mcp'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@every_row("path, done", [(".envrc", "write"), ("ci/hooks/pre-commit", "put")])
async def test_of_a_file_that_runs_later_the_person_is_asked_once(
    tmp_path: Path, path: str, done: str
) -> None:
    project = Path(mkdtemp(dir=tmp_path))
    subprocess.run(["git", "init", "-q", project], check=True)  # noqa: ASYNC221
    subprocess.run(["git", "-C", project, "config", "core.hooksPath", "ci/hooks"], check=True)  # noqa: ASYNC221
    scene = Scene(project)
    (project / "ci/hooks").mkdir(parents=True)
    await scene.play(["ask_edit", path, None, "1\n"], [done, path, "1\n"])
    assert (project / path).read_text() == "1\n"
    (asked,) = [each for each in scene.asked if each.preview.paths]
    assert asked.preview.title == f"Create {path} (+1 -0)"
    assert "by themselves" in asked.warnings[0]
