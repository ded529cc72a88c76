"""/init has the model write AGENTS.md, and never over anything."""

from collections.abc import Callable
from pathlib import Path

import pytest

from rows import every_row
from scripted import OpenAIServer
from ybs.core.ports import Answer, Question
from ybs.session.reply import Outcome, Reply
from ybs.session.session import Session
from ybs.testing import RecordedEvents, call

pytestmark = pytest.mark.integration
Open = Callable[..., tuple[Session, RecordedEvents]]


@every_row("name", ["AGENTS.md", "CLAUDE.md", "agents.md", "Claude.md"])
async def test_nothing_is_asked_of_the_model_where_the_project_has_one(open_session, project, name):
    (project / name).symlink_to("gone")
    try:
        async with OpenAIServer([]) as server:
            session, _ = open_session(server)
            async with session:
                reply = await session.handle("/init")
            assert not server.requests
        assert isinstance(reply, Reply)
        assert reply.text.startswith(f"{name} exists already, and /init does not overwrite it.")
    finally:
        (project / name).unlink()


async def test_the_model_writes_it_and_the_person_sees_it_before_and_it_counts_from_then_on(
    open_session: Open, project: Path
):
    async def person(question: Question) -> Answer:
        asked.append(question)
        assert not (project / "AGENTS.md").exists()
        return Answer(is_allowed=True)

    asked = list[Question]()
    text = "# Shop\n\nRun `make test`.\n"
    async with OpenAIServer(
        [call("write_file", path="AGENTS.md", content=text), "done", "yes"]
    ) as server:
        session, _ = open_session(server, overrides={"context.repo_map_tokens": 0})
        session.confirm = person
        async with session:
            outcome = await session.handle("/init mention the linter")
            assert isinstance(outcome, Outcome)
            assert (project / "AGENTS.md").read_text() == text
            assert "Run `make test`." in asked[0].preview.body
            assert "Run `make test`." in session.context.rules()  # said again after a compaction
            await session.send("go on")
        words = str(server.requests[0].body["messages"][1:])
        assert "Write AGENTS.md for this project" in words
        assert "mention the linter" in words
        assert "Run `make test`." in str(server.requests[-1].body["messages"])
