"""Undo covers ignored files, and names what it cannot bring back."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from hosts import this_host
from opened import Open
from scripted import OpenAIServer
from session.test_undoing import Play
from session.trees import tree
from ybs.agent import project_walk
from ybs.checkpoints import scan, states
from ybs.checkpoints.store import checkpoints_folder
from ybs.core.ports import Answer, Effect, Question
from ybs.security.paths.roots import Roots
from ybs.session.options import Options
from ybs.session.settings import environment_of, load_settings
from ybs.session.undoing import Checkpoints
from ybs.testing import call


@pytest.fixture
def play(project: Path) -> Play:
    return Play(project)


@pytest.mark.integration
async def test_ignored_files_are_undone_too_but_those_in_bulk_folders_stay(play: Play):
    (play.project / ".gitignore").write_text("*.log\nbuild/\nlocal/\n")
    log, built, local = (play.project / name for name in ("a.log", "build/x", "local/db"))
    log.write_text("1")
    for path in (built, local):
        path.parent.mkdir()
        path.write_text("1")
    before = tree(play.project)

    def act() -> None:
        log.unlink()
        local.write_text("2")
        built.write_text("2")
        (play.project / "new.log").write_text("2")
        (play.project / "d").mkdir()
        (play.project / "d" / "c").write_text("new")

    kept = await play.turn(act)
    assert kept is not None
    assert kept.paths == ("a.log", "d/c", "local/db", "new.log")
    (play.project / "d" / "mine.log").write_text("mine")
    undone = await play.checkpoints.undo([kept.name])
    assert (undone.is_done, undone.stayed) == (True, ("d",))
    assert undone.paths == ("a.log", "d/c", "local/db", "new.log")
    after = {"d": ("folder", 0o755, b""), "d/mine.log": ("file", 0o644, b"mine")}
    assert tree(play.project) == before | after | {"build/x": ("file", 0o644, b"2")}


async def test_what_is_in_a_bulk_folder_is_not_taken_for_new_where_git_ignores_it_no_more(play):
    (play.project / ".gitignore").write_text("out/\n")
    (play.project / "out").mkdir()
    (play.project / "out" / "x").write_text("kept")
    kept = await play.turn(lambda: (play.project / ".gitignore").write_text("b\n"))
    assert kept is not None
    assert kept.paths == (".gitignore",)


async def test_a_bulk_folder_that_is_gone_is_named_and_one_that_is_new_is_not(play: Play):
    (play.project / ".gitignore").write_text("node_modules\n.venv\n/tmp\n")
    (play.project / "web" / "node_modules" / "a").mkdir(parents=True)
    (play.project / "tmp" / "cache").mkdir(parents=True)
    (play.project / "tmp" / "cache" / "CACHEDIR.TAG").write_text("")

    def act() -> None:
        shutil.rmtree(play.project / "web")
        shutil.rmtree(play.project / "tmp" / "cache")
        (play.project / ".venv").mkdir()

    kept = await play.turn(act)
    assert kept is not None
    assert kept.unkept == ("tmp/cache", "web/node_modules")
    undone = await play.checkpoints.undo([kept.name])
    assert (undone.paths, (*undone.unkept,)) == (("web",), ("tmp/cache", "web/node_modules"))
    assert await play.turn(lambda: (play.project / "node_modules").mkdir()) is None


@pytest.mark.integration
async def test_a_bulk_folder_in_which_something_changed_at_any_depth_is_named(play: Play):
    (play.project / ".gitignore").write_text("node_modules\n.pytest_cache\nbuild\ndist\n.venv\n")
    for name in ("web/node_modules/left-pad", "a/node_modules/b/c", ".pytest_cache", "build"):
        (play.project / name).mkdir(parents=True)
        (play.project / name / "x").write_text("1")
    (play.project / "dist").symlink_to(play.project.parent)

    def act() -> None:
        (play.project / "a.py").write_text("1")
        (play.project / "web/node_modules/left-pad/x").unlink()
        (play.project / "a/node_modules/b/c/x").write_text("2")
        (play.project / ".pytest_cache/x").write_text("")
        (play.project / ".venv").mkdir()
        (play.project.parent / "elsewhere").write_text("")

    undone = await play.checkpoints.undo([await play.name(act)])
    assert (undone.paths, (*undone.unkept,)) == (("a.py",), ())
    folders = ".venv/, a/node_modules/, web/node_modules/"
    assert undone.beyond == (f"something changed in {folders}, where undo keeps no copies",)
    other = await play.checkpoints.undo([await play.name(lambda: (play.project / "b").mkdir())])
    assert other.beyond == ()


@pytest.mark.integration
async def test_an_ignored_file_that_goes_on_changing_is_left_and_stops_nothing(play: Play):
    (play.project / ".gitignore").write_text("*.log\n")
    log, source = play.project / "server.log", play.project / "a.py"
    log.write_text("1\n")
    source.write_text("1\n")

    def act() -> None:
        log.write_text("1\n2\n")
        source.write_text("2\n")

    name = await play.name(act)
    log.write_text("1\n2\n3\n")
    undone = await play.checkpoints.undo([name])
    assert (undone.is_done, undone.paths, undone.left) == (True, ("a.py",), ("server.log",))
    assert (log.read_text(), source.read_text()) == ("1\n2\n3\n", "1\n")
    forced = await play.checkpoints.undo([name], force=True)
    assert (forced.paths, log.read_text()) == (("server.log",), "1\n")
    edited = await play.name(lambda: log.write_text("by a tool"), "server.log")
    log.write_text("by a person")
    assert (await play.checkpoints.undo([edited])).conflicts == ("server.log",)


@pytest.fixture
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "MOST_IGNORED_BYTES", 10)
    for module in (scan, project_walk):
        monkeypatch.setattr(module, "MOST_IGNORED", 4)


def _overwrite(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            path.write_text("other")  # the rules of git too: then other folders are ignored


@pytest.mark.integration
@pytest.mark.usefixtures("little_room")
async def test_of_many_ignored_files_the_first_are_kept_and_the_others_named(play: Play):
    (play.project / ".gitignore").write_text("*.log\n")
    for number in range(6):
        (play.project / f"{number}.log").write_text("1" if number else "1" * 11)
    kept = await play.turn(lambda: _overwrite(play.project))
    assert kept is not None
    assert kept.unkept == ("0.log", "1.log", "2.log", "3.log", "4.log", "5.log")
    (play.project / ".gitignore").write_text("*.log\n")
    for number in range(6):
        (play.project / f"{number}.log").write_text("1")
    kept = await play.turn(lambda: _overwrite(play.project))
    assert kept is not None
    assert kept.unkept == ("4.log", "5.log")
    undone = await play.checkpoints.undo([kept.name])
    assert undone.paths == (".gitignore", "0.log", "1.log", "2.log", "3.log")
    assert undone.unkept == dict.fromkeys(("4.log", "5.log"), states.WHY_NO_ROOM)


@pytest.mark.integration
@pytest.mark.usefixtures("little_room")
async def test_a_folder_for_which_there_is_no_room_is_named_and_takes_none_from_others(play: Play):
    (play.project / ".gitignore").write_text("assets/\nvar/\n")
    database = play.project / "var/prod.sqlite3"
    for name in ("assets/1", "assets/2", "assets/3", "var/prod.sqlite3"):
        (play.project / name).parent.mkdir(exist_ok=True)
        (play.project / name).write_text("the")
    kept = await play.turn(lambda: _overwrite(play.project))
    assert kept is not None
    assert kept.paths == (".gitignore", "var/prod.sqlite3")
    undone = await play.checkpoints.undo([kept.name])
    assert database.read_text() == "the"
    assert undone.beyond == ("something changed in assets/, where undo keeps no copies",)
    kept = await play.turn(lambda: shutil.rmtree(play.project / "assets"))
    assert kept is not None
    undone = await play.checkpoints.undo([kept.name])
    assert undone.unkept == {"assets": states.WHY_NO_ROOM}


@pytest.mark.integration
@pytest.mark.usefixtures("little_room")
async def test_ignored_folders_beyond_the_room_are_named_too(play: Play):
    (play.project / ".gitignore").write_text("/data*\n")
    for number in range(6):
        (play.project / f"data{number}").mkdir()
        (play.project / f"data{number}" / "x").write_text("1")
    kept = await play.name(lambda: _overwrite(play.project))
    undone = await play.checkpoints.undo([kept])
    assert undone.paths == (".gitignore",)
    folders = "data0/, data1/, data2/, data3/, data4/ and 1 more"
    assert undone.beyond == (f"something changed in {folders}, where undo keeps no copies",)


async def test_a_turn_whose_commands_nobody_could_look_at_says_so_when_it_is_undone(
    play: Play, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(scan, "MOST_PATHS", 0)
    (play.project / "a").write_text("1")
    kept = await play.turn(lambda: (play.project / "a").write_text("2"))
    assert kept is not None
    assert kept.paths == ()
    (reason,) = (await play.checkpoints.undo([kept.name])).beyond
    assert "more than 0 files" in reason


@pytest.mark.integration
async def test_auto_asks_before_what_undo_cannot_bring_back_and_undoes_the_rest(
    project: Path, open_session: Open
):
    (project / ".gitignore").write_text("*.log\nnode_modules/\n")
    (project / "app.log").write_text("precious\n")
    (project / "node_modules").mkdir()
    (project / "node_modules" / "x.js").write_text("x")
    asked: list[Question] = []

    async def refuse(question: Question) -> Answer:
        asked.append(question)
        return Answer(is_allowed=False)

    commands = ("rm app.log", "rm node_modules/x.js")
    script = [*(call("run_shell", command=each) for each in commands), "done"]
    async with OpenAIServer(script) as server:
        session, _ = open_session(server, mode="auto")
        session.confirm = refuse
        async with session:
            await session.send("clean up")
            assert not (project / "app.log").exists()
            (question,) = asked
            assert "undo cannot bring back node_modules/x.js" in question.warnings[0]
            assert not question.grant
            way = await session.history.undo()
    assert way.files is not None
    assert way.files.paths == ("app.log",)
    assert (project / "app.log").read_text() == "precious\n"


async def _asked(project: Path, open_session: Open, script: list[Any], **options: Any) -> list[str]:
    """Play a session in `auto` in which the person refuses; return what they were asked about, each with its first warning."""
    asked: list[Question] = []

    async def refuse(question: Question) -> Answer:
        asked.append(question)
        return Answer(is_allowed=False)

    async with OpenAIServer([*script, "done"]) as server:
        session, _ = open_session(server, mode="auto", **options)
        session.confirm = refuse
        async with session:
            await session.send("clean up")
    return [question.warnings[0] for question in asked]


@pytest.mark.integration
async def test_auto_asks_before_a_loss_where_undo_keeps_nothing(
    project: Path, open_session: Open, monkeypatch: pytest.MonkeyPatch
):
    script = [
        call("run_shell", command="rm notes.txt"),
        call("run_shell", command="echo overwritten > thesis.txt"),
        call("run_shell", command="echo new > new.txt"),
    ]
    for name in ("notes.txt", "thesis.txt"):
        (project / name).write_text("weeks of work")
    monkeypatch.setattr(scan, "MOST_PATHS", 1)
    assert await _asked(project, open_session, script) == [
        "undo cannot bring back notes.txt: there are more than 1 files and folders",
        "undo cannot bring back thesis.txt: there are more than 1 files and folders",
    ]
    monkeypatch.undo()
    (project / "new.txt").unlink()
    assert await _asked(project, open_session, script, overrides={"incognito.enabled": True}) == [
        "undo cannot bring back notes.txt: incognito mode keeps no copies for undo",
        "undo cannot bring back thesis.txt: incognito mode keeps no copies for undo",
    ]
    assert await _asked(project, open_session, script) == []


@pytest.mark.integration
async def test_auto_asks_before_the_tool_deletes_what_undo_cannot_bring_back(
    project: Path, open_session: Open
):
    (project / ".gitignore").write_text("build/\n")
    (project / "build").mkdir()
    for name in ("big.bin", "build/x", "a.txt"):
        (project / name).write_text("x")
    os.truncate(project / "big.bin", states.MOST_FILE_BYTES + 1)
    script = [call("delete_file", path=name) for name in ("big.bin", "build/x", "a.txt")]
    asked = await _asked(project, open_session, script)
    assert asked == ["undo cannot bring back big.bin: it is over 10 MB"]
    assert (project / "big.bin").exists()
    assert not (project / "build/x").exists()
    (project / "a.txt").write_text("x")
    script = [call("delete_file", path="a.txt")]
    assert await _asked(project, open_session, script, overrides={"incognito.enabled": True}) == [
        "undo cannot bring back a.txt: incognito mode keeps no copies for undo"
    ]


def test_a_tool_without_a_session_asks_by_the_same_rules(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    (project / ".gitignore").write_text("build/\n")
    (project / "build").mkdir()
    for name in ("big.bin", "build/x", "a.txt"):
        (project / name).write_text("x")
    os.truncate(project / "big.bin", states.MOST_FILE_BYTES + 1)
    options = Options(host=this_host(), folder=project)
    first_lost = environment_of(options, load_settings(options)).workspace.first_lost
    big, built, a = (f"{project}/{name}" for name in ("big.bin", "build/x", "a.txt"))
    assert first_lost([a, big]) == (big, f"it {states.WHY_LARGE}")
    assert first_lost([a, built]) == (built, f"build {states.WHY_BULK}")
    assert first_lost([built], is_named=True) == ("", "")
    os.mkfifo(project / "pipe")
    assert first_lost([f"{project}/pipe", a]) == ("", "")
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    assert first_lost([a]) == (a, f"it {states.WHY_SPECIAL}")
    assert not checkpoints_folder(this_host()).exists(), "nothing is kept"


async def test_an_undo_says_of_which_added_folder_it_only_looks_at_the_project(project: Path):
    roots = Roots(this_host(), project, ("./", ".."))
    checkpoints = Checkpoints(roots, "session-1", may_write=True)
    kept: list[str] = []
    effects: list[Effect] = ["execute", "write"]
    for effect in effects:
        checkpoints.begin()
        await checkpoints.before_change(effect, [f"{project}/a.txt"])
        (project / "a.txt").write_text(effect)
        turn = await checkpoints.end()
        assert turn is not None
        kept.append(turn.name)
    assert (await checkpoints.undo(kept[1:])).beyond == ()
    (reason,) = (await checkpoints.undo(kept[:1])).beyond
    assert reason == f"of {project.parent} undo only looks at the project's folder"
    checkpoints.close()
