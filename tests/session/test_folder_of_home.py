"""ybs in the home folder, and at the top of the file system: it says what works there, and reading does."""

from pathlib import Path

import pytest

from rows import every_row
from ybs.core.messages import ToolResult
from ybs.session.session import Session
from ybs.testing import ScriptedModel, call

pytestmark = pytest.mark.integration


@every_row(
    ("is_top", "words"),
    [
        (False, "This is your home folder: "),
        (True, "This is a folder that holds your home folder: "),
    ],
)
async def test_it_is_said_once_what_works_and_files_are_read(home: Path, is_top: bool, words: str):
    (home / "note.txt").write_text("seven\n")
    folder = Path("/") if is_top else home
    script = [
        call("read_file", path=str(home / "note.txt")),
        call("run_shell", command="cat note.txt"),
        "done",
    ]
    async with Session.open(folder, model=ScriptedModel(script), mode="bypass") as session:
        (warning,) = [each for each in session.warnings if each.startswith("This is")]
        assert warning.startswith(words)
        await session.send("what does it say?")
    read, ran = [each for each in session.conversation.messages if isinstance(each, ToolResult)]
    assert "seven" in read.output
    assert ran.is_refused


async def test_in_a_project_and_without_the_sandbox_nothing_is_said(home: Path, project: Path):
    for folder, options in ((project, {}), (home, {"sandbox": False})):
        async with Session.open(folder, model=ScriptedModel(["x"]), **options) as session:
            assert not [each for each in session.warnings if each.startswith("This is")]
