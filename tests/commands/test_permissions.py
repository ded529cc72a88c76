"""The command /permissions: what is listed, added and taken back."""

from pathlib import Path
from typing import Any

import pytest
from msgspec import json

from hosts import this_host
from opened import Open
from scripted import OpenAIServer
from ybs.core.ports import Answer, Question
from ybs.session.reply import Reply
from ybs.session.session import Session
from ybs.testing import call


async def said(session: Session, words: str = "") -> Reply:
    reply = await session.handle(f"/permissions {words}")
    assert isinstance(reply, Reply)
    return reply


async def rows(session: Session) -> list[tuple[Any, ...]]:
    table = (await said(session)).tables[0]
    return [row.cells for row in table.rows]


@pytest.mark.integration
async def test_always_in_this_project_is_listed_and_counts_in_the_next_session(
    open_session: Open, project: Path
):
    asked: list[Question] = []

    async def confirm(question: Question) -> Answer:
        asked.append(question)
        return Answer(is_allowed=True, is_for_project=True)

    (project / "test_app.py").write_text("print('fine')\n")
    run = call("run_shell", command="python3 test_app.py")
    async with OpenAIServer([run, "done", run, "done"]) as server:
        for _ in range(2):
            session, _ = open_session(server, confirm=confirm)
            async with session:
                await session.send("go")
                listed = await rows(session)
    assert len(asked) == 1
    assert listed == [("1", "allowed", "run_shell(python3 test_app.py *)", "this project, kept")]


async def test_rules_are_added_for_the_session_the_project_and_all_projects(open_session: Open):
    async with OpenAIServer([]) as server:
        session, _ = open_session(server, allow=["read_file"])
        async with session:
            reply = await said(session, "allow run_shell(make *)")
            assert reply.text == (
                "Allowed without a question from now on: run_shell(make *) (this session)"
            )
            await said(session, "deny project run_shell(curl *)")
            await said(session, "allow user run_shell(go test *)")
            assert await rows(session) == [
                ("1", "allowed", "run_shell(make *)", "this session"),
                ("2", "refused", "run_shell(curl *)", "this project, kept"),
                ("3", "allowed", "read_file", "command line"),
                ("4", "allowed", "run_shell(go test *)", "~/.config/ybs/config.json:4"),
            ]
        later, _ = open_session(server)
        async with later:
            assert [row[2] for row in await rows(later)] == [
                "run_shell(curl *)",
                "run_shell(go test *)",
            ]
    written = json.decode(this_host().user_config_file.read_bytes())
    assert written["safety"] == {"allow": ["run_shell(go test *)"]}


async def test_each_rule_can_be_taken_back_where_it_is_kept(open_session: Open):
    async with OpenAIServer([]) as server:
        session, _ = open_session(server, allow=["read_file"])
        async with session:
            await said(session, "allow run_shell(make *)")
            await said(session, "allow project run_shell(a)")
            await said(session, "deny user run_shell(b)")
            for text in ("run_shell(make *)", "run_shell(a)", "read_file", "run_shell(b)"):
                assert (await said(session, "remove 1")).text.startswith(f"Removed: {text} (")
            assert (await said(session)).text.startswith("No rules: the mode ask alone")
        later, _ = open_session(server)
        async with later:
            assert (await said(later)).text.startswith("No rules")


async def test_a_rule_of_another_file_is_removed_there(playing, tmp_path: Path):
    file = tmp_path / "more.json"
    file.write_text('{"safety": {"deny": ["run_shell(curl *)"]}}')
    async with playing([], config_file=file) as (session, _, _):
        reply = await said(session, "remove 1")
        assert reply.is_error
        assert "more.json" in reply.text
        assert len(await rows(session)) == 1


async def test_what_is_not_understood_shows_the_usage(playing):
    async with playing([]) as (session, _, _):
        for words in ("allow", "allow project", "remove", "remove x", "forbid x", "list all"):
            reply = await said(session, words)
            assert reply.is_error
            assert reply.text.startswith("Usage:\n/permissions allow RULE")
        assert (await said(session, "remove 7")).text == (
            "There is no rule 7; /permissions lists them."
        )
        assert (await said(session, "allow run_shell(")).is_error


async def test_an_incognito_session_keeps_nothing(playing):
    async with playing([], incognito=True) as (session, _, _):
        for where in ("project", "user"):
            reply = await said(session, f"allow {where} run_shell(a)")
            assert reply.is_error
            assert "incognito" in reply.text
    assert not this_host().user_config_file.exists()


async def test_a_rule_about_no_tool_is_not_added(playing, home: Path):
    async with playing([]) as (session, _, _):
        for words in ("deny run_shel", "deny user run_shel", "allow project wirte_file(a*)"):
            reply = await said(session, words)
            assert reply.is_error
            assert "The rule was not added: there is no tool" in reply.text
        assert await rows(session) == []
    assert not (home / ".config/ybs/config.json").exists()


async def test_a_rule_about_an_external_tool_is_added(playing, home: Path):
    tool = home / ".config/ybs/tools/look-up.sh"
    tool.parent.mkdir(parents=True)
    tool.write_text('#!/bin/sh\necho \'{"name": "lookup_word"}\'\n')
    async with playing([]) as (session, _, _):
        for name in ("look_up", "look-up", "lookup_word", "mcp__a__b"):
            reply = await said(session, f"deny project {name}")
            assert not reply.is_error, reply.text
