"""ask_user and todo in whole sessions: who is told of them, what is asked, and what of the steps stays."""

import json
from pathlib import Path
from typing import Any

import pytest

from hosts import this_host
from ybs.commands.open import SlashCommands
from ybs.commands.registry import run_command
from ybs.config.key_store import keep_key
from ybs.core.events import ConfirmationAnswered, ConfirmationAsked
from ybs.core.messages import ToolResult
from ybs.core.ports import Answer, Question
from ybs.session.session import Session
from ybs.testing import ScriptedModel, call

STEPS = "[x] read\n[>] change"


def opened(project: Path, *answers: Any, window: int = 200_000, **options: Any) -> tuple[Session, ScriptedModel]:  # fmt: skip
    model = ScriptedModel(list(answers), window=window)
    session = Session.open(project, host=this_host(), model=model, commands=SlashCommands(), **options)  # fmt: skip
    return session, model


def heard_by(model: ScriptedModel) -> str:
    """Return the result that the model read last."""
    result = model.requests[-1].messages[-1]
    assert isinstance(result, ToolResult)
    return result.output


@pytest.mark.parametrize(("window", "told"), [(200_000, ["ask_user", "todo"]), (32_768, [])])
async def test_a_model_with_a_large_window_is_told_of_them(project: Path, window: int, told: list[str]):  # fmt: skip
    session, model = opened(project, "Yes.", window=window)
    async with session:
        await session.send("hello")
    names = [each.name for each in model.requests[0].tools]
    assert sorted(name for name in names if name in ("ask_user", "todo")) == told


async def test_the_persons_answer_is_what_the_model_reads(project: Path):
    asked: list[Question] = []

    async def confirm(question: Question) -> Answer:
        asked.append(question)
        return Answer(is_allowed=True, reason="Postgres")

    question = call("ask_user", question="Which database?", options=["SQLite", "Postgres"])
    session, model = opened(project, question, "Done.", mode="plan", confirm=confirm)
    waits: list[bool] = []  # a window title and a clock go by these events
    session.subscribe(
        lambda each: (
            waits.append(isinstance(each.event, ConfirmationAsked))
            if isinstance(each.event, ConfirmationAsked | ConfirmationAnswered)
            else None
        )
    )
    async with session:
        outcome = await session.send("hello")
    assert waits == [True, False]
    assert [each.choices for each in asked] == [("SQLite", "Postgres")]
    assert heard_by(model) == "The person answers: Postgres"
    assert outcome.refusals == 0


async def test_every_frontend_is_asked_the_same(project: Path, monkeypatch: pytest.MonkeyPatch):
    own, guessed = "Zk3q9x7L" + "m2Vw4", "left7pad" + "9x2q"
    monkeypatch.setenv("DEPLOY_TOKEN", own)
    (project / ".env.example").write_text(f"A_TOKEN={guessed}\n")
    asked, listed = list[str](), list[str]()

    async def confirm(question: Question) -> Answer:
        asked.append(question.preview.body)
        listed.extend(each.preview for each in session.state.questions)
        return Answer(is_allowed=False)

    read = call("read_file", path=".env.example")
    run = call("run_shell", command=f"mkdir x && sh {guessed} {own}")
    session, model = opened(project, read, run, "Done.", confirm=confirm)
    async with session:
        await session.send("hello")
    assert guessed not in str(model.requests[1].messages)
    assert f"sh {guessed} [ybs:secret:own-secret#1]" in asked[0]
    assert asked == listed


@pytest.mark.integration
async def test_a_question_shows_what_a_trusted_project_calls_a_secret_and_hides_the_persons(
    project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    run, own = "; touch ~/made #", "Zk3q9x7L" + "m2Vw4"
    reach, editors_own, login = "make-everything-9x", "bin/make-everything-7y", "make-all-5z"
    keep_key(this_host(), "mcp:docs", "h", json.dumps({"tokens": {"access_token": login}}))
    monkeypatch.setenv("DEPLOY_TOKEN", own)
    server = {"command": "true", "disabled": True, "env": {"DOCS_TOKEN": run}}
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": {"docs": server}}))
    provider = {"endpoint": "http://127.0.0.1:9/v1", "api_key": reach}
    settings = {
        "providers": {"theirs": provider},
        "profiles": {"work": {"llm": {"api_key": reach}}},
    }
    (project / ".ybs.json").write_text(json.dumps(settings))
    editors = {"e": {"command": "true", "disabled": True, "env": {"SOME_TOKEN": editors_own}}}
    asked = list[str]()

    async def confirm(question: Question) -> Answer:
        asked.append(question.preview.body)
        return Answer(is_allowed=False)

    command = f"git log {own} {reach} {editors_own} {login} {run}"
    read = call("run_shell", command=command)
    session, model = opened(
        project, read, "Done.", confirm=confirm, trust=True, mcp_servers=editors
    )
    async with session:
        await session.send("hello")
    assert asked == [command.replace(own, "[ybs:secret:own-secret#1]")]
    sent = str(model.requests[1].messages)
    assert not any(each in sent for each in (own, run, reach, editors_own, login))


async def test_the_question_about_a_deletion_hides_what_that_about_an_edit_does(project: Path):
    password, asked = "Tr0ub4dor-x9" + "Zq7kk", list[str]()

    async def confirm(question: Question) -> Answer:
        asked.append(question.preview.body)
        return Answer(is_allowed=False)

    (project / "app.ini").write_text(f"mode=a\nDB_PASSWORD={password}\n")
    delete = call("delete_file", path="app.ini")
    session, _ = opened(project, delete, "Done.", confirm=confirm)
    async with session:
        await session.send("clean up")
    (body,) = asked
    assert "\n-mode=a\n-DB_PASSWORD=[ybs:secret:" in body
    assert password not in body


async def test_where_nobody_is_there_the_model_is_told_so(project: Path):
    session, model = opened(project, call("ask_user", question="Which?"), "Done.")
    async with session:
        outcome = await session.send("hello")
    assert heard_by(model).startswith("Nobody is there to answer.")
    assert (outcome.finished.reason, outcome.refusals) == ("done", 0)


@pytest.mark.integration
async def test_the_steps_are_kept_with_the_session(project: Path):
    session, _ = opened(project, call("todo", steps=f"- {STEPS}"), "Done.", "Go on.")
    async with session:
        assert (await run_command(session, "/todo")).text.startswith("The model has noted no steps")
        await session.send("hello")
        assert (await run_command(session, "/todo")).text == STEPS
        name = session.journal.name
    session, _ = opened(project, "Yes.")
    async with session:
        await session.resume(name)
        assert session.context.steps == STEPS
        await session.start_anew(is_incognito=False)
        assert session.context.steps == ""


@pytest.mark.integration
async def test_a_compaction_says_them_anew(project: Path):
    said = [f"answer {n} " + "word " * 200 for n in range(6)]
    steps, thought = call("todo", steps=STEPS), call("set_thought", text="mend it")
    session, model = opened(project, steps, thought, "done", *said, "a summary of it all", "Yes.")
    async with session:
        for n in range(7):
            await session.send(f"prompt {n}")
        assert await session.compact() is not None
        await session.send("what next?")
        name = session.journal.name
        texts = [str(each) for each in model.requests[-1].messages]
        assert any("Your steps:\\n[x] read\\n[>] change\\nYour goal: mend it" in each for each in texts)  # fmt: skip
        assert not any("todo" in each for each in texts)
    session, _ = opened(project)
    async with session:
        await session.resume(name)
        assert (session.context.steps, session.context.thought) == (STEPS, "mend it")
