"""Editors that go by the kinds of the answers: none of their keys gives more than the title of the request says.

Neovim's two clients and Emacs's show no names of answers, or bind a key to the last answer of a kind.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ybs.testing import ScriptedModel, call
from ybs.tools.builtin.ask_user import AS_TEXT

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(60),
    pytest.mark.skipif(sys.platform != "linux", reason="NOT TESTED: needs Linux"),
]
Pick = Callable[[list[Any]], Any]


def last_of(kind: str) -> Pick:
    """avante.nvim's Yes, All and No, and the keys in CodeCompanion's window of a change: a later answer of a kind replaces the one before."""
    return lambda options: {each.kind: each for each in options}.get(kind, options[-1])


def second(options: list[Any]) -> Any:
    """Enter in CodeCompanion's dialog, which calls each answer by its kind."""
    return options[1]


def longest(options: list[Any]) -> Any:
    """`y` in older versions of agent-shell: the buttons are sorted by their length, and the last one has the key."""
    return max((each for each in options if each.kind == "allow_once"), key=lambda o: len(o.name))


PICKS = (last_of("allow_once"), last_of("allow_always"), second, longest)
YES, ALL = PICKS[:2]


@pytest.fixture
def editor_of(clients: Any) -> Callable[[Pick], Any]:
    class ByKind(clients.Editor):
        def __init__(self, pick: Pick) -> None:
            super().__init__()
            self.pick = pick

        async def request_permission(
            self, session_id: str, tool_call: Any, options: list[Any], **more: Any
        ) -> Any:
            kinds = [each.kind for each in options]
            assert len(kinds) == len({*kinds})
            assert "allow_always" not in kinds[:2]  # which is marked, in some
            self.choice = self.pick(options).name
            return await super().request_permission(session_id, tool_call, options, **more)

    return ByKind


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, check=True, stdout=subprocess.PIPE)
    return done.stdout.decode()


def routes_here() -> list[str]:
    lines = Path("/proc/net/route").read_text().splitlines()[1:]
    return [line.strip() for line in lines]


def titles(editor: Any) -> list[str]:
    return [asked.title for asked, _ in editor.asked]


@pytest.mark.parametrize("pick", PICKS)
@pytest.mark.parametrize("more", [{}, {"network": True}])
async def test_no_key_runs_a_command_outside_the_sandbox_that_did_not_ask_for_it(
    clients: Any, editor_of: Any, project: Path, home: Path, pick: Pick, more: dict[str, Any]
):
    command = "npm ci --offline; touch ~/owned; touch here"
    editor = editor_of(pick)
    script = [call("run_shell", command=command, **more), "Done."]
    async with clients.edited(project, *script, editor=editor, sandbox=True, mode="ask"):
        await editor.say(await editor.new(project), "install the dependencies")
    how = " with the network open" if more else ""
    assert titles(editor) == [f"Run a shell command{how}: `{command}`"]
    assert not (home / "owned").exists()
    assert (project / "here").exists() == (pick is not second)


@pytest.mark.parametrize("pick", [YES, longest])
async def test_the_network_is_given_where_the_call_asked_for_it_and_the_title_says_so(
    clients: Any, editor_of: Any, project: Path, pick: Pick
):
    """Also where a command is known to be of no use without: it fails, and the model is told how to ask."""
    command = "cat /proc/net/route; false && curl https://x.invalid"
    model = ScriptedModel(
        [call("run_shell", command=command), call("run_shell", command=command, network=True), "1"]
    )
    editor = editor_of(pick)
    async with clients.edited(project, editor=editor, model=model, sandbox=True, mode="ask"):
        await editor.say(await editor.new(project), "go")
    first, then = titles(editor)
    assert first == f"Run a shell command: `{command}`"
    assert then == f"Run a shell command with the network open: `{command}`"
    without, with_network = (request.messages[-1].output for request in model.requests[1:])
    assert "with network: true the person is asked for it" in without
    routes = routes_here()
    assert [line for line in routes if line in without] == []
    assert [line for line in routes if line in with_network] == routes


@pytest.mark.parametrize("pick", [YES, longest])
async def test_the_way_out_is_a_request_of_its_own_whose_title_says_so(
    clients: Any, editor_of: Any, project: Path, home: Path, pick: Pick
):
    command = "touch ~/owned && echo done"
    script = [
        call("run_shell", command=command),
        call("run_shell", command=command, outside=True),
        "Done.",
    ]
    editor = editor_of(pick)
    async with clients.edited(project, *script, editor=editor, sandbox=True, mode="ask"):
        await editor.say(await editor.new(project), "go")
    assert titles(editor) == [
        f"Run a shell command: `{command}`",
        f"Run a shell command outside the sandbox: `{command}`",
    ]
    assert editor.asked[1][1] == ["Yes, outside the sandbox, once", "No"]
    assert (home / "owned").exists()


async def test_what_cannot_work_inside_is_asked_about_as_what_it_is(
    clients: Any, editor_of: Any, project: Path
):
    long = project / ("x" * 200)
    long.mkdir()
    git(project, "init", "-q")
    git(project, "config", "user.name", "a")
    git(project, "config", "user.email", "a@b")
    commit = "git commit -q --allow-empty -m `echo first`"
    script = [call("run_shell", command=commit, working_dir=long.name), "Done."]
    editor = editor_of(YES)
    async with clients.edited(project, *script, editor=editor, sandbox=True, mode="ask"):
        await editor.say(await editor.new(project), "commit it")
    (title,) = titles(editor)
    assert title == f"Run a shell command outside the sandbox in {long.name}: `` {commit} ``"
    assert editor.asked[0][1] == ["Yes, outside the sandbox, once", "No"]
    told = editor.asked[0][0].content[0].content.text
    assert "it runs outside the sandbox: as in your own shell, with your keys" in told
    assert git(project, "log", "--format=%s") == "first\n"


async def test_all_holds_for_the_session_and_not_for_the_project(
    clients: Any, editor_of: Any, project: Path
):
    for asked in (1, 2):
        writes = [call("write_file", path=f"{name}{asked}", content="x") for name in "ab"]
        editor = editor_of(ALL)
        async with clients.edited(project, *writes, "Done.", editor=editor, mode="ask"):
            await editor.say(await editor.new(project), "write")
        assert [names for _, names in editor.asked] == [
            ["Yes", "No", "Always in this session: write_file(**), the project's files"]
        ]
    assert all(map(os.path.exists, (project / name for name in ("a1", "b1", "a2", "b2"))))


@pytest.mark.parametrize("options", [["red", "blue"], ["yes", "no"], []])
async def test_no_permission_answers_a_question_of_the_models_own(
    clients: Any, editor_of: Any, project: Path, options: list[str]
):
    """A client may say yes by itself, or pick any: the model asks in words, and the person answers by a message."""
    model = ScriptedModel([call("ask_user", question="Which?", options=options), "1. red", "Red."])
    editor = editor_of(YES)
    async with clients.edited(project, editor=editor, model=model):
        session = await editor.new(project)
        await editor.say(session, "go")
        await editor.say(session, "1")
    assert editor.asked == []
    assert model.requests[1].messages[-1].output == AS_TEXT
    assert model.requests[2].messages[-1].text == "1"
