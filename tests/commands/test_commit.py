"""/commit: the person's commit, and the message that the model proposes."""

import shutil
from pathlib import Path

import pytest

from hostile_git import Sandpit, needs_git, template_in
from rows import every_row
from ybs.commands.git import proposed_message
from ybs.commands.open import SlashCommands
from ybs.core.errors import ModelError
from ybs.core.events import FilesChanged
from ybs.core.messages import Usage
from ybs.session.reply import Reply
from ybs.session.session import Session
from ybs.testing import ScriptedModel

DIFF = "--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-one\n+two\n--- a/b.py\n+++ /dev/null\n"


@every_row(
    ("said", "title"),
    [
        ("Fix the parser", "Fix the parser"),
        ('"Fix the parser."', "Fix the parser"),
        ("Sure! Here is it:\n\n```\nFix the parser\n```", "Fix the parser"),
        ("**Commit message:** Fix the parser\n\nmore", "Fix the parser"),
        ("Commit title: `Fix the parser`", "Fix the parser"),
        ("Fix \x1b[31mthe parser\u202e", "Fix [31mthe parser"),
        ("", "Change a.py, b.py"),
        ("I'm sorry, but I cannot do that.", "Change a.py, b.py"),
        ("<tool_call>{}</tool_call>", "Change a.py, b.py"),
        ("!!! ??? ...", "Change a.py, b.py"),
        ("word", "Change a.py, b.py"),
        ("the same again " * 50, "Change a.py, b.py"),
        (ModelError("no"), "Change a.py, b.py"),
    ],
)
async def test_a_message_is_one_line_whatever_the_model_says(said: str, title: str):
    model = ScriptedModel([said])
    assert await proposed_message(model, DIFF) == title
    assert not model.requests[0].tools


async def test_a_diff_is_cut_for_a_small_window_and_what_it_cost_is_told():
    model = ScriptedModel(["Fix the parser"], window=2_048)
    costs: list[Usage] = []
    await proposed_message(model, DIFF * 10_000, costs.append)
    assert len(model.requests[0].messages[0].text) < 2_200  # type: ignore[union-attr]
    assert len(costs) == 1


@pytest.fixture
def pit(tmp_path_factory: pytest.TempPathFactory, project: Path) -> Sandpit:
    template = template_in(tmp_path_factory.getbasetemp())
    shutil.copytree(template, project, dirs_exist_ok=True)
    pit = Sandpit(project.parent / "pit")
    pit.top = project
    return pit


def opened(pit: Sandpit) -> Session:
    return Session.open(
        pit.top,
        commands=SlashCommands(),
        provider="openai",
        endpoint="http://127.0.0.1:9",
        model="m",
        sandbox=False,
    )


async def reply_to(session: Session, line: str) -> Reply:
    reply = await session.handle(line)
    assert isinstance(reply, Reply)
    return reply


@needs_git
@pytest.mark.slow
async def test_what_is_staged_or_else_what_changed_is_committed(pit, monkeypatch):
    session = opened(pit)
    asked: list[str] = []

    async def propose(_model: object, diff: str, _spent: object) -> str:
        asked.append(diff)
        return "Say it in a word"

    monkeypatch.setattr("ybs.commands.git.proposed_message", propose)
    assert (await reply_to(session, "/commit")).text == "There is nothing to commit."
    assert (await reply_to(session, "/commit x")).is_error
    for name in ("a.txt", "mine.txt", "made.txt"):
        (pit.top / name).write_text("one\ntwo\n")
    session.emit(FilesChanged(checkpoint="1", paths=("made.txt",)))
    reply = await reply_to(session, "/commit")
    assert reply.terminal.draft == "/commit Say it in a word"
    assert "  a.txt  +1 -0\n  made.txt  new" in reply.text
    assert "mine.txt" not in reply.text
    assert asked[0].count("+++ ") == 2
    assert pit.plain("log", "--format=%s").stdout == "second\nfirst\n"
    pit.plain("add", "mine.txt")
    reply = await reply_to(session, "/commit What is staged")
    assert reply.text.startswith("Committed as ")
    assert reply.text.endswith(" on main.\n  mine.txt  new +2 -0")
    pit.configure("[commit]\n\tgpgSign = true")
    assert "is not signed" in (await reply_to(session, "/commit The rest")).text
    assert pit.plain("status", "--porcelain").stdout == ""
    assert pit.plain("log", "-2", "--format=%s").stdout == "The rest\nWhat is staged\n"
    (pit.top / ".git/MERGE_HEAD").write_text("x")
    assert (await reply_to(session, "/commit x")).text.startswith("A merge is in progress.")
    (pit.top / ".git/MERGE_HEAD").unlink()
    shutil.rmtree(pit.top / ".git")
    reply = await reply_to(session, "/commit x")
    assert reply.is_error
    assert "it is not in a repository" in reply.text
    await session.close()
