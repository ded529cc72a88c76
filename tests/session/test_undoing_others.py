"""What the person does meanwhile is not the turn's: what changed between two looks around a command is, and no more."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from hostile_git import Sandpit, needs_git, template_in
from hosts import this_host
from opened import Open, events_to
from rows import every_row
from scripted import OpenAIServer
from session.trees import tree
from ybs.checkpoints import keeping, scan
from ybs.checkpoints.scan import Scanner
from ybs.checkpoints.states import KeptTurn
from ybs.core.events import Event, FilesChanged, Noticed, ToolFinished, ToolPrinted, TurnFinished
from ybs.security.paths.roots import Roots
from ybs.session.undoing import Checkpoints
from ybs.testing import call
from ybs.tools.builtin import run_shell


class Play:
    """A turn that is looked at before and after each change, and jobs in the background."""

    def __init__(self, project: Path, *writes: str) -> None:
        self.project = project
        self.jobs: list[str] = []
        self.checkpoints = Checkpoints(
            Roots(this_host(), project),
            "session-1",
            may_write=True,
            has_jobs=lambda: bool(self.jobs),
        )
        self.write(*writes)
        self.checkpoints.begin()

    async def command(self, *writes: str) -> None:
        """Run a command that writes into these files: `a=1`, or `a` to delete it."""
        await self.checkpoints.before_change("execute", ())
        self.write(*writes)
        await self.checkpoints.after_change()

    async def tool(self, path: str, text: str) -> None:
        """Let a tool write a file that it names."""
        await self.checkpoints.before_change("write", (f"{self.project}/{path}",))
        self.write(f"{path}={text}")
        await self.checkpoints.after_change()

    def write(self, *writes: str) -> None:
        """Write or delete files as anybody does."""
        for each in writes:
            name, has_text, text = each.partition("=")
            path = self.project / name
            if has_text:
                path.parent.mkdir(exist_ok=True)
                path.write_text(text)
            else:
                path.unlink()

    async def end(self) -> KeptTurn:
        """End the turn; begin the next."""
        kept = await self.checkpoints.end()
        self.checkpoints.begin()
        return kept or KeptTurn(name="")

    def texts(self) -> dict[str, str]:
        """Return what is in the files."""
        return {n: c.decode() for n, (kind, _, c) in tree(self.project).items() if kind == "file"}


@pytest.fixture
def play(project: Path) -> Play:
    return Play(project)


@pytest.mark.integration
async def test_what_is_saved_between_commands_and_tools_is_not_the_turns(project: Path):
    play = Play(project, "mine=1", "gone=1", "edited=1")
    await play.command("a=1")
    play.write("mine=2", "gone", "new/mine=2")
    await play.tool("edited", "2")
    play.write("mine=3")
    await play.command("b=1")
    play.write("mine=4", "last=4")
    kept = await play.end()
    assert (kept.paths, kept.shared) == (("a", "b", "edited"), ())
    assert (await play.checkpoints.undo([kept.name])).paths == ("a", "b", "edited")
    assert play.texts() == {"edited": "1", "mine": "4", "new/mine": "2", "last": "4"}


@pytest.mark.integration
async def test_the_look_before_a_question_forgets_nobodys_change(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(scan, "UNSETTLED_NS", -(10**12))  # what a look has read is not read again
    play = Play(project, "a=1", "b=1")
    await play.tool("b", "2")
    play.write("a=mine")
    assert play.checkpoints.first_lost([f"{project}/a", f"{project}"]) == ("", "")
    await play.command("a=2")
    kept = await play.end()
    assert (kept.paths, kept.shared) == (("a", "b"), ("a",))


@pytest.mark.integration
@every_row("acts", [["command"], ["tool"], ["command", "tool"], ["tool", "command"]])
async def test_a_path_of_both_is_a_conflict_and_is_named(
    acts: list[str], tmp_path_factory: pytest.TempPathFactory
):
    play = Play(tmp_path_factory.mktemp("project"), "a=0", "b=0")
    for act in acts:
        await (play.command(f"a={act}") if act == "command" else play.tool("a", act))
        if act is acts[0]:
            play.write("a=mine")
    await play.command("b=1")
    kept = await play.end()
    assert (kept.paths, kept.shared) == (("a", "b"), ("a",))
    undone = await play.checkpoints.undo([kept.name])
    assert (undone.conflicts, undone.is_done) == (("a",), False)
    assert play.texts() == {"a": "mine" if len(acts) == 1 else acts[-1], "b": "1"}
    assert (await play.checkpoints.undo([kept.name], force=True)).is_done
    assert play.texts() == {"a": "0", "b": "0"}
    assert (await play.checkpoints.redo([kept.name])).is_done
    assert play.texts() == {"a": acts[-1], "b": "1"}
    play.checkpoints.close()


@pytest.mark.integration
async def test_undo_gives_back_what_the_person_had_saved_before_a_command_of_the_turn(
    project: Path,
):
    play = Play(project, "a=0", "b=0", "temporary=0")
    await play.command("c=1", "temporary")
    play.write("a=mine", "b=mine")
    await play.command("a=1")
    await play.tool("b", "1")
    await play.command("temporary=0")
    play.write("temporary=mine")
    await play.command("temporary=1")
    kept = await play.end()
    assert (kept.paths, kept.shared) == (("a", "b", "c", "temporary"), ("a", "b", "temporary"))
    assert (await play.checkpoints.undo([kept.name])).is_done
    assert play.texts() == {"a": "mine", "b": "mine", "temporary": "mine"}


@pytest.mark.integration
async def test_while_a_job_runs_all_that_changes_counts(play: Play):
    play.jobs.append("job-1")
    await play.command("a=1")
    play.write("by the job=1")
    play.jobs.clear()
    await play.command("b=1")  # this look is the first without the job
    play.write("mine=1")
    kept = await play.end()
    assert (kept.paths, kept.shared) == (("a", "b", "by the job"), ())
    play.jobs.append("job-2")
    await play.command("a=2")
    await play.tool("b", "2")
    play.write("by the job=2", "b=3")
    kept = await play.end()
    assert (kept.paths, kept.shared) == (("a", "b", "by the job"), ())
    assert (await play.checkpoints.undo([kept.name])).is_done
    assert play.texts() == {"a": "1", "b": "1", "by the job": "1", "mine": "1"}


@pytest.mark.integration
async def test_where_looks_are_slow_there_is_one_before_the_commands_and_one_after_the_turn(
    play: Play, monkeypatch: pytest.MonkeyPatch
):
    looks: list[bool] = []
    scan = Scanner.scan

    def counted(scanner: Scanner, *given: Any) -> None:
        looks.append(True)
        scan(scanner, *given)

    monkeypatch.setattr(Scanner, "scan", counted)
    await play.command("a=1")
    await play.command("a=2")
    assert len(looks) == 4
    monkeypatch.setattr(keeping, "SLOW_SECONDS", 0.0)
    await play.command("a=3")
    assert len(looks) == 6
    looks.clear()
    for number in range(4, 7):
        await play.command(f"a={number}")
    play.write("mine=1")
    kept = await play.end()
    assert (kept.paths, len(looks)) == (("a", "mine"), 2)
    assert play.checkpoints.notice == ""


async def test_a_look_after_a_command_that_is_too_much_is_made_up_for_after_the_turn(
    play: Play, monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as patch:
        await play.checkpoints.before_change("execute", ())
        play.write("a=1")
        patch.setattr("ybs.checkpoints.scan.MOST_PATHS", 0)
        await play.checkpoints.after_change()
    await play.command("b=1")
    kept = await play.end()
    assert (kept.paths, play.checkpoints.notice) == (("a", "b"), "")


@pytest.mark.integration
async def test_in_a_project_too_large_to_be_looked_at_all_of_a_tools_file_is_the_turns(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("ybs.checkpoints.scan.MOST_PATHS", 0)
    play = Play(project, "a=0", "b=0", "c=0")
    for _ in range(3):  # after two times no look is tried any more
        await play.tool("a", "1")
        await play.tool("b", "1")
        await play.command("a=2", "b=2", "c=2")
        await play.tool("a", "3")
        await play.tool("c", "3")
        await play.command("a=4")
        kept = await play.end()
        assert (kept.paths, kept.shared) == (("a", "b", "c"), ())
        assert (await play.checkpoints.undo([kept.name])).is_done
        assert play.texts() == {"a": "0", "b": "0", "c": "2"}
        play.write("c=0")
        play.checkpoints.begin()


@pytest.mark.integration
async def test_a_turn_in_which_old_contents_are_let_go_of_is_kept_too(
    play: Play, monkeypatch: pytest.MonkeyPatch
):
    await play.command("a=1")
    assert (await play.end()).paths == ("a",)
    monkeypatch.setattr(keeping, "MOST_PACK_BYTES", 0)
    await play.command("a=2")
    await play.command("b=1")
    kept = await play.end()
    assert (kept.paths, play.checkpoints.notice) == (("a", "b"), "")
    assert (await play.checkpoints.undo([kept.name])).is_done
    assert play.texts() == {"a": "1"}


async def test_where_the_last_look_is_too_much_a_tools_file_is_the_turns_as_it_stands(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    play = Play(project, "a=0")
    await play.tool("a", "1")
    monkeypatch.setattr("ybs.checkpoints.scan.MOST_PATHS", 2)
    await play.command("a=2", "b=2", "c=2")
    kept = await play.end()
    assert (kept.paths, kept.shared) == (("a",), ())
    assert "too much" in play.checkpoints.notice
    assert (await play.checkpoints.undo([kept.name])).is_done
    assert play.texts() == {"a": "0", "b": "2", "c": "2"}


async def test_nothing_is_looked_at_where_nothing_was_kept_before(project: Path):
    quiet = Checkpoints(Roots(this_host(), project), "session-1", may_write=False)
    quiet.begin()
    await quiet.before_change("execute", ())
    await quiet.after_change()
    assert await quiet.end() is None


@pytest.mark.integration
@needs_git
async def test_the_persons_files_are_neither_committed_nor_undone(
    open_session: Open, project: Path, tmp_path_factory: pytest.TempPathFactory
):
    pit = Sandpit(project.parent / "pit")
    shutil.copytree(template_in(tmp_path_factory.getbasetemp()), project, dirs_exist_ok=True)
    pit.top = project
    commands = ("echo 1 > new.txt", "echo 1 >> a.txt; echo 1 > typed.txt")
    calls = [[call("run_shell", command=each)] for each in commands]
    saved = [("mine.txt", "b.txt"), ("new.txt", "last.txt")]

    def save(event: Event) -> None:
        if isinstance(event, ToolFinished):
            for name in saved.pop(0):
                (project / name).write_text("mine\n")

    async with OpenAIServer([*(each[0] for each in calls), "done"]) as server:
        session, events = open_session(server, mode="bypass", overrides={"git.auto_commit": True})
        session.subscribe(events_to(save))
        async with session:
            await session.handle("!echo 1 > typed.txt")
            (told,) = events.of(FilesChanged)
            assert told.paths == ("a.txt", "new.txt", "typed.txt")
            shown = pit.plain("show", "--name-only", "--format=%s", "HEAD").stdout.split("\n")
            assert "a.txt" in shown
            assert not {"mine.txt", "last.txt", "b.txt", "new.txt", "typed.txt"} & set(shown)
            notices = "\n".join(event.text for event in events.of(Noticed))
            assert "because somebody else changed them as well: new.txt" in notices
            way = await session.history.undo()
            assert way.files is not None
            assert way.files.conflicts == ("new.txt",)
            (project / "new.txt").write_text("1\n")
            way = await session.history.undo()
            assert way.files is not None
            assert way.files.paths == ("a.txt", "new.txt", "typed.txt")
    assert {(project / name).read_text() for name in ("mine.txt", "b.txt", "last.txt")} == {
        "mine\n"
    }


@pytest.mark.integration
async def test_a_stopped_command_is_looked_at_and_what_comes_later_is_not_the_turns(
    open_session: Open, project: Path
):
    script = [call("run_shell", command="echo 1 > a.txt; echo x; sleep 9"), "done"]
    async with OpenAIServer(script) as server:
        session, events = open_session(server, mode="bypass")

        def see(event: Event) -> None:
            if isinstance(event, ToolPrinted):
                session.cancel()
            elif isinstance(event, TurnFinished):
                (project / "mine.txt").write_text("mine")

        session.subscribe(events_to(see))
        async with session:
            await session.send("do it")
            assert [event.paths for event in events.of(FilesChanged)] == [("a.txt",)]


@pytest.mark.integration
async def test_what_a_job_changes_is_the_turns_and_nobody_can_tell_the_rest_apart(
    open_session: Open, project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(run_shell, "FIRST_SECONDS", 0.0)
    job = "until [ -e mine.txt ]; do sleep 0.01; done; echo 1 > late.txt"
    script = [
        call("run_shell", command=job, background=True),
        call("shell_job", action="read", wait=9),
        call("run_shell", command="echo 1 > a.txt"),
        "done",
    ]
    saved = ["mine.txt", "between.txt", "no_turns.txt"]

    def save(event: Event) -> None:
        if isinstance(event, ToolFinished):
            (project / saved.pop(0)).write_text("mine")

    async with OpenAIServer(script) as server:
        session, events = open_session(server, mode="bypass", overrides={"git.auto_commit": True})
        session.subscribe(events_to(save))
        async with session:
            await session.send("do it")
            (told,) = events.of(FilesChanged)
            assert told.paths == ("a.txt", "between.txt", "late.txt", "mine.txt")
