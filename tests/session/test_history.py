"""The ways back, over compactions, in other folders, and in copies."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scripted import OpenAIServer
from ybs.commands.open import SlashCommands
from ybs.core.errors import YbsError
from ybs.core.events import Noticed
from ybs.core.remedies import Remedy
from ybs.session.history import NAMING_THEIR_CHANGES
from ybs.session.session import Session
from ybs.testing import RecordedEvents, call
from ybs.tools.registry import NAMES

Open = Callable[..., tuple[Session, RecordedEvents]]


def writes(path: str, *, answer: str = "done") -> list[Any]:
    return [call("write_file", path=path, content=f"{path}\n"), answer]


def test_undo_has_a_built_in_tool_that_names_its_changes_among_those_that_do():
    unnamed = {"run_shell", "shell_job", "git", "memorize", "update_identity"}
    assert {*NAMES} - unnamed == NAMING_THEIR_CHANGES, "a new tool belongs to one of the two"


async def test_an_undo_after_a_list_of_steps_speaks_of_no_files_that_it_may_have_missed(
    open_session: Open,
):
    async with OpenAIServer([call("todo", steps="[ ] read"), "done"]) as server:
        session, _ = open_session(server, mode="bypass")
        async with session:
            await session.send("go")
            way = await session.history.undo()
    assert not way.ran_commands


@pytest.mark.integration
async def test_each_undo_goes_one_turn_further_back_also_over_a_compaction(
    open_session: Open, project: Path
):
    script = [*writes("a"), *writes("b"), "talk " * 800, "talk", "what was done"]
    async with OpenAIServer(script) as server:
        session, _ = open_session(server, mode="bypass")
        async with session:
            for words in ("first", "second", "third", "fourth"):
                await session.send(words)
            assert await session.compact() is not None
            left: list[list[str]] = []
            while session.history.turns:
                await session.history.undo()
                left.append([name for name in "ab" if (project / name).exists()])
            assert left[-2:] == [["a"], []]
            with pytest.raises(YbsError, match=r"nothing to undo: .* compacted") as caught:
                await session.history.undo()
            assert caught.value.remedies == (Remedy("restore_conversation"),)


@pytest.mark.integration
async def test_what_is_kept_for_another_folder_is_not_taken_back_here(
    open_session: Open, project: Path, tmp_path: Path
):
    async with OpenAIServer(writes("a")) as server:
        session, _ = open_session(server, mode="bypass")
        async with session:
            await session.send("write it")
            name = session.journal.name
        other = tmp_path / "other"
        other.mkdir()
        (other / "a").write_text("a\n")
        options = {"provider": "openai", "endpoint": server.url, "model": "m", "resume": name}
        async with Session.open(other, commands=SlashCommands(), **options) as again:
            with pytest.raises(YbsError, match="no longer exists") as caught:
                await again.history.undo()
            assert caught.value.remedies == (Remedy("rewind_conversation"),)
            assert len(again.conversation.messages) == 4
            assert (await again.history.rewind(0, "conversation")).was_cut
    assert (other / "a").exists()
    assert (project / "a").exists()


@pytest.mark.integration
async def test_a_copy_knows_what_was_undone_in_files_alone(open_session: Open):
    async with OpenAIServer([*writes("a"), "talk"]) as server:
        session, _ = open_session(server, mode="bypass")
        async with session:
            await session.send("first")
            await session.send("second")
            await session.history.rewind(0, "files")
            await session.history.rewind(4, "conversation")
            store = session.journal.store()
            copy = store.read(store.fork(store.read(session.journal.name)))
            assert copy.replay.checkpoints == session.journal.replay.checkpoints == []
            assert copy.replay.past_turns.open == list(session.history.turns)


@pytest.mark.integration
async def test_an_undo_that_completes_a_repository_names_it(open_session: Open, project: Path):
    (project / "docs").mkdir()
    (project / "docs" / "HEAD").write_text("ref: refs/heads/main\n")
    async with OpenAIServer([call("delete_file", path="docs/HEAD"), "done"]) as server:
        session, events = open_session(server, mode="bypass")
        async with session:
            await session.send("first")
            for name in ("objects", "refs"):
                (project / "docs" / name).mkdir()
            await session.history.undo()
    assert (project / "docs" / "HEAD").exists()
    told = [each.text for each in events.of(Noticed)]
    assert any(
        "An undo or redo made or changed git repositories here: new: docs." in e for e in told
    )


@pytest.mark.integration
async def test_a_copy_knows_what_turns_changed_whose_words_are_gone(
    open_session: Open, project: Path
):
    async with OpenAIServer([*writes("a", answer="talk " * 800), "b", "sum"]) as server:
        session, _ = open_session(server, mode="bypass")
        async with session:
            await session.send("first")
            await session.send("second")
            assert await session.compact() is not None
            session.history.clear()
            await session.handle("/fork")
            assert [turn.place for turn in session.history.turns] == [-1]
            await session.history.undo()
    assert not (project / "a").exists()


@pytest.mark.integration
async def test_a_session_of_the_same_second_can_be_taken_up_in_incognito(open_session: Open):
    async with OpenAIServer(["a", "b"]) as server:
        session, _ = open_session(server)
        async with session:
            await session.send("one")
            name = session.journal.name
            await session.handle("/incognito")
            await session.send("two")
            session.journal.name = name  # as in the same second
            await session.resume(name)
            assert [words for _, words in session.history.prompts()] == ["one"]


async def test_a_session_that_is_saved_once_has_all_its_turns(open_session: Open):
    async with OpenAIServer(["a", "b", "c"]) as server:
        session, _ = open_session(server, overrides={"session.auto_save": False})
        async with session:
            for words in ("one", "two", "three"):
                await session.send(words)
            await session.handle("/save")
            turns = [(turn.message.words, turn.place) for turn in session.history.turns]
        again, _ = open_session(server, resume="")
        async with again:
            assert [(turn.message.words, turn.place) for turn in again.history.turns] == turns


async def test_a_name_that_was_given_before_the_first_words_outlives_a_kill(open_session: Open):
    async with OpenAIServer(["a"]) as server:
        session, _ = open_session(server)
        async with session:
            await session.handle("/rename My name")
            await session.send("one two three")
            assert session.journal.store().read(session.journal.name).replay.title == "My name"


@pytest.mark.integration
async def test_an_undo_brings_back_files_whose_names_mean_something_to_a_shell(
    open_session: Open, project: Path
):
    names = ("~notes.txt", "$slug.tsx", "plain.txt", "a\nb", "sub/~x")
    (project / "sub").mkdir()
    for name in names:
        (project / name).write_text("precious\n")
    calls: list[Any] = []
    for path in ("./~notes.txt", "./$slug.tsx", "plain.txt", r"a\x0ab", "sub/~x"):
        calls.append(call("write_file", path=path, content="new\n"))
        calls.append(call("delete_file", path=path))
    async with OpenAIServer([*calls, "done"]) as server:
        session, events = open_session(server, mode="bypass")
        async with session:
            await session.send("go")
            assert not any((project / name).exists() for name in names)
            await session.history.undo()
    assert {(project / name).read_text() for name in names} == {"precious\n"}
    assert events.of(Noticed) == []
