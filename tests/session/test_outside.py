"""Reading outside of the project: the person is asked, for one call or for the folder, and nobody writes there."""

from pathlib import Path
from typing import Any

import pytest

from opened import Open
from scripted import OpenAIServer
from ybs.core.events import ConfirmationAnswered, ConfirmationAsked, ToolFinished
from ybs.core.ports import Answer, Question
from ybs.frontends.headless.advice import refuse
from ybs.session.session import Session
from ybs.testing import RecordedEvents, answer, call

pytestmark = pytest.mark.integration

YES, ALWAYS = Answer(is_allowed=True), Answer(is_allowed=True, is_for_session=True)
NO = Answer(is_allowed=False, reason="not that one")


class Asked:
    """A person who answers each question in turn."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self.questions: list[Question] = []

    async def __call__(self, question: Question) -> Answer:
        self.questions.append(question)
        return self._answers.pop(0)


@pytest.fixture
def other(tmp_path: Path) -> Path:
    folder = tmp_path / "other"
    (folder / "inner").mkdir(parents=True)
    (folder / "notes.txt").write_text("plums\n")
    (folder / "inner" / "more.txt").write_text("pears\n")
    return folder


async def turn(
    open_session: Open, asked: Any, *calls: Any, **options: Any
) -> tuple[Session, RecordedEvents, list[ToolFinished]]:
    async with OpenAIServer([*calls, "done"]) as server:
        session, events = open_session(server, confirm=asked, **options)
        async with session:
            await session.send("go")
    return session, events, events.of(ToolFinished)


async def test_a_read_outside_is_asked_about_once_and_yes_is_for_this_call(open_session, other):
    read = call("read_file", path=str(other / "notes.txt"))
    asked = Asked(YES, NO)
    _, events, (first, second) = await turn(open_session, asked, read, read)
    assert (first.success, "plums" in first.output) == (True, True)
    assert (second.is_refused, second.output) == (True, "Refused: not that one")
    question = asked.questions[0]
    assert question.preview.title == "Read outside of the folders that ybs works in"
    assert question.preview.body == str(other / "notes.txt")
    assert question.grant == f"reading in {other}"
    assert not question.can_be_kept
    assert len(events.of(ConfirmationAsked)) == len(events.of(ConfirmationAnswered)) == 2


@pytest.mark.integration
async def test_always_is_for_the_folder_and_what_is_below_it_in_this_session(open_session, other):
    calls = [
        call("read_file", path=str(other / "notes.txt")),
        call("read_file", path=str(other / "inner" / "more.txt")),
        call("list_files", path=str(other), pattern="**"),
        call("search_files", path=str(other), pattern="pears"),
        call("read_file", path=str(other.parent / "elsewhere.txt")),
    ]
    (other.parent / "elsewhere.txt").write_text("figs\n")
    asked = Asked(ALWAYS, NO)
    session, _, done = await turn(open_session, asked, *calls)
    assert [each.success for each in done] == [True, True, True, True, False]
    assert "inner/more.txt" in done[2].output
    assert "pears" in done[3].output
    assert len(asked.questions) == 2
    assert session.environment.roots.reading == (other,)


async def test_several_reads_at_once_are_asked_about_one_after_the_other(open_session, other):
    (other / "second.txt").write_text("figs\n")
    both = answer(
        call("read_file", path=str(other / "notes.txt")),
        call("read_file", path=str(other / "second.txt")),
    )
    asked = Asked(ALWAYS)
    _, _, done = await turn(open_session, asked, both)
    assert [each.success for each in done] == [True, True]
    assert len(asked.questions) == 1


async def test_a_whole_folder_can_be_listed_with_one_yes_and_is_closed_again(open_session, other):
    calls = [
        call("list_files", path=str(other), pattern="*"),
        call("read_file", path=str(other / "notes.txt")),
    ]
    _, _, (listed, read) = await turn(open_session, Asked(YES, NO), *calls)
    assert "notes.txt" in listed.output
    assert read.is_refused


async def test_a_yes_to_the_names_in_a_folder_opens_no_file_to_a_call_of_the_same_message(
    open_session: Open, other: Path
) -> None:
    both = answer(
        call("list_files", path=str(other), pattern="*"),
        call("read_file", path=str(other / "notes.txt")),
    )
    asked = Asked(YES, NO)
    _, _, done = await turn(open_session, asked, both)
    assert sorted(each.is_refused for each in done) == [False, True]
    assert not any("plums" in each.output for each in done)
    assert len(asked.questions) == 2


@pytest.mark.parametrize("name", ["write_file", "edit_file", "delete_file", "run_shell"])
async def test_writing_and_running_outside_stay_refused_also_where_reading_is_allowed(
    open_session: Open, other: Path, name: str
):
    path = str(other / "notes.txt")
    arguments = {
        "write_file": {"path": path, "content": "x"},
        "edit_file": {"path": path, "old_text": "plums", "new_text": "x"},
        "delete_file": {"path": path},
        "run_shell": {"command": "ls", "working_dir": str(other)},
    }[name]
    asked = Asked(ALWAYS)
    calls = [call("read_file", path=path), call(name, **arguments)]
    _, _, (read, changed) = await turn(open_session, asked, *calls)
    assert read.success
    assert changed.is_refused
    assert "outside the folders that ybs may work in" in changed.output
    assert len(asked.questions) == 1
    assert (other / "notes.txt").read_text() == "plums\n"


async def test_credentials_stay_refused_and_nobody_is_asked(open_session: Open, home: Path):
    (home / ".ssh").mkdir()
    (home / ".ssh" / "id_x").write_text("x")
    (home / "notes.txt").write_text("plums\n")
    asked = Asked(YES)
    calls = [
        call("read_file", path=str(home / "notes.txt")),
        call("read_file", path=str(home / ".ssh" / "id_x")),
    ]
    _, _, (notes, key) = await turn(open_session, asked, *calls)
    assert notes.success
    assert key.is_refused
    assert "blocked" in key.output
    assert len(asked.questions) == 1
    assert asked.questions[0].grant == ""
    assert asked.questions[0].withheld == "it would allow reading too much"


async def test_all_of_the_folder_around_the_home_folder_is_not_offered(
    open_session: Open, home: Path
):
    (home.parent / "notes.txt").write_text("plums\n")
    asked = Asked(YES)
    await turn(open_session, asked, call("read_file", path=str(home.parent / "notes.txt")))
    assert asked.questions[0].withheld == "it would allow reading too much"


@pytest.mark.integration
async def test_what_is_blocked_in_a_folder_that_may_be_read_stays_closed(open_session, home):
    folder = home / "work"
    (folder / "secret").mkdir(parents=True)
    (folder / "a.txt").write_text("plums\n")
    (folder / "secret" / "b.txt").write_text("pears\n")
    calls = [
        call("read_file", path=str(folder / "a.txt")),
        call("read_file", path=str(folder / "secret" / "b.txt")),
        call("search_files", path=str(folder), pattern="pears"),
    ]
    blocked = {"safety.sandbox_blocked_paths": [str(folder / "secret")]}
    _, _, (a, b, found) = await turn(open_session, Asked(ALWAYS), *calls, overrides=blocked)
    assert (a.success, b.is_refused) == (True, True)
    assert "pears" not in found.output


@pytest.mark.parametrize("mode", ["deny", "bypass"])
async def test_a_mode_that_never_asks_refuses_and_names_the_folder(open_session, other, mode):
    read = call("read_file", path=str(other / "notes.txt"))
    asked = Asked()
    _, _, (done,) = await turn(open_session, asked, read, mode=mode)
    assert done.is_refused
    assert [(each.kind, each.value) for each in done.remedies] == [("add_folder", str(other))]


async def test_where_nobody_is_there_it_stays_refused_and_names_the_folder(open_session, other):
    read = call("read_file", path=str(other / "notes.txt"))
    _, _, (done,) = await turn(open_session, refuse, read)
    assert done.is_refused
    assert "outside the folders that ybs may work in" in done.output
    assert [each.kind for each in done.remedies] == ["add_folder"]


async def test_a_dry_run_asks_nobody(open_session: Open, other: Path):
    read = call("read_file", path=str(other / "notes.txt"))
    _, _, (done,) = await turn(open_session, Asked(), read, dry_run=True)
    assert "outside the folders" in done.output
