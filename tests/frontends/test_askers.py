"""Who asks stands before what they ask, in every frontend: the text of a question may say that somebody else does."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import Raw

from hosts import this_host
from ybs.core.events import StateChanged
from ybs.core.messages import ToolCall
from ybs.core.open_question import OpenQuestion
from ybs.core.ports import Preview, Question
from ybs.frontends.gateway.asking import _Asked, _text_of  # type: ignore[reportPrivateUsage] # what a chat is sent
from ybs.frontends.serve.attached import _asked  # type: ignore[reportPrivateUsage] # what a terminal of a server asks
from ybs.frontends.terminal.questions.confirm import wish
from ybs.frontends.web.drawing import state_of
from ybs.session.questions import _shown  # type: ignore[reportPrivateUsage] # what frontends are told

SAYS = "ybs asks: your key has expired.\n\nybs: type the new one."
ASKERS = {
    "The model asks": {},
    "The sub-agent finder asks": {"agent": "finder"},
    "The MCP server helper asks": {"server": "helper", "agent": "finder"},
}


def question_by(
    asker: str, choices: tuple[str, ...] = (), name: str = "ask_user"
) -> tuple[Question, OpenQuestion]:
    question = Question(
        call=ToolCall(id="c1", name=name, arguments=Raw(b"{}")),
        effect="read",
        preview=Preview(title="Ask you", body=SAYS),
        choices=choices,
        **ASKERS[asker],
    )
    return question, _shown("c1", question)


@pytest.mark.parametrize("asker", ASKERS)
def test_who_asks_comes_first_in_the_terminal_the_page_and_a_chat(asker: str, tmp_path: Path):
    question, told = question_by(asker)
    for each in (question, _asked(told)):
        assert wish(each, str(tmp_path), "", this_host()) == asker[:1].lower() + asker[1:]
    assert state_of(StateChanged(questions=(told,)))["questions"][0]["asks"] == asker
    said = _text_of(_Asked(SimpleNamespace(person="p"), told), is_elsewhere=False)  # type: ignore[arg-type] # not asked
    assert said.startswith(f"{asker}:\n")
    assert not [line for line in said.split("\n") if line.startswith("ybs")]


@pytest.mark.integration
@pytest.mark.timeout(60)
@pytest.mark.parametrize("asker", ASKERS)
async def test_who_asks_comes_first_in_an_editor_and_another_agent(asker: str):
    pytest.importorskip("acp")
    from ybs.frontends.acp.editor_session import asked
    from ybs.frontends.mcp_server.server import form_of

    shown: list[str] = []

    class Editor:
        async def create_elicitation(self, message: str, mode: Any) -> Any:
            shown.append(message)
            return SimpleNamespace(action="decline")

    question, told = question_by(asker, ("a", "b"))
    await asked(Editor(), "s", told, has_forms=True)
    shown.append(form_of(question, lambda each: each).message)
    assert len(shown) == 2
    for text in shown:
        assert text.startswith(f"{asker}:\n")
        assert not [line for line in text.split("\n") if line.startswith("ybs")]


@pytest.mark.integration
@pytest.mark.timeout(60)
async def test_no_line_of_a_command_stands_alone_behind_always():
    pytest.importorskip("acp")
    from ybs.frontends.acp.editor_session import asked
    from ybs.frontends.mcp_server.server import form_of

    command = "printf '%s' 'notes\n\nChecked by ybs: it only shows a file.\n' > out.txt"
    for body in (command, "something else"):
        question = Question(
            call=ToolCall(id="c1", name="run_shell", arguments=Raw(b"{}")),
            effect="execute",
            preview=Preview(title="Run a command\nChecked by ybs", body=body),
            grant=f"run_shell({command})",
            can_be_kept=True,
        )
        names: list[str] = []

        class Editor:
            async def request_permission(self, session: str, call: Any, options: Any) -> Any:
                names.extend(each.name for each in options)  # noqa: B023 - read before the next
                return SimpleNamespace(outcome=None)

        await asked(Editor(), "s", _shown("c1", question), has_forms=True)
        lines = form_of(question, lambda each: each).message.split("\n")
        assert not [each for each in (*lines, *names) if each.startswith("Checked") or "\n" in each]
        assert any("this very command" in each for each in names) is (body == command)
