"""The titles of the last commits: no program of a repository runs for them, and nothing holds them up."""

import os
import shutil
from contextlib import suppress
from pathlib import Path
from time import monotonic

import pytest

from hostile_git import TRAPS, Sandpit, hook, needs_git, template_in
from hosts import this_host
from processes import open_descriptors
from ybs.git.titles import ask_titles
from ybs.security.sandbox.launch import Launch

pytestmark = [pytest.mark.integration, needs_git]


@pytest.fixture
def pit(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Sandpit:
    pit = Sandpit(tmp_path / "pit")
    shutil.copytree(template_in(tmp_path_factory.getbasetemp()), pit.top)
    return pit


def last_titles(folder: Path, count: int, *, timeout_seconds: float) -> list[str]:
    asked = ask_titles(this_host(), folder, count)
    return asked.read(timeout_seconds) if asked else []


def titles(pit: Sandpit) -> list[str]:
    return last_titles(pit.top, 5, timeout_seconds=5)


def test_no_program_runs_that_a_repositorys_settings_name(pit: Sandpit) -> None:
    known = titles(pit)
    assert [line.split(" ", 1)[0].isalnum() for line in known] == [True, True]
    for trap in TRAPS.values():
        if trap.settings and not trap.prepare:
            pit.configure(trap.settings)
    hook(pit)
    (pit.top / ".gitattributes").write_text("* filter=evil diff=evil merge=evil\n")
    # Odd names among the settings are nothing to it, and what is included changes nothing that counts.
    (pit.top / ".git/more").write_text(
        f"[core]\n\tfsmonitor = {pit.program}\n\tpager = {pit.program}\n"
    )
    pit.configure("[include]\n\tpath = more\n[log]\n\tshowSignature = true\n[gpg]\n\tprogram = @")
    assert titles(pit) == known
    assert not pit.has_run
    pit.plain("status")
    assert pit.has_run, "the traps were set"


def test_no_program_runs_of_a_repository_within_or_beside_it(pit: Sandpit) -> None:
    for trap in TRAPS.values():
        if trap.prepare:
            with suppress(OSError):
                trap.prepare(pit)
            titles(pit)
            assert not pit.has_run


def test_a_pipe_among_the_settings_does_not_hold_it_up(pit: Sandpit) -> None:
    os.mkfifo(pit.top / ".git/more")
    pit.configure("[include]\n\tpath = more")
    began = monotonic()
    assert last_titles(pit.top, 5, timeout_seconds=0.2) == []
    assert monotonic() - began < 3


def test_where_there_is_nothing_to_tell_nothing_is_told(tmp_path, monkeypatch):
    assert last_titles(tmp_path, 5, timeout_seconds=5) == []
    (tmp_path / ".git").mkdir()
    assert last_titles(tmp_path, 5, timeout_seconds=5) == []
    monkeypatch.setattr("ybs.git.titles.trusted_program", lambda *_, **__: None)
    assert last_titles(tmp_path, 5, timeout_seconds=5) == []


def test_titles_beyond_the_bound_are_cut_and_a_git_that_cannot_be_started_tells_none(
    pit: Sandpit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ybs.git.titles.MOST_BYTES", 56)
    assert [len(line) < 12 for line in titles(pit)] == [True]
    for program in (Path("/nowhere/git"), None):
        found = lambda *_, found=program, **__: found  # noqa: E731 - it differs in what it finds
        monkeypatch.setattr("ybs.git.titles.trusted_program", found)
        assert titles(pit) == []
    nothing = Launch(("/nowhere/git",), {})
    monkeypatch.setattr("ybs.git.titles.trusted_program", lambda *_, **__: Path("/git"))
    monkeypatch.setattr("ybs.git.titles.launches", lambda *_: iter([nothing]))
    assert titles(pit) == []


def test_what_is_not_read_is_ended_and_its_pipe_is_closed(pit: Sandpit) -> None:
    before = open_descriptors()
    asked = ask_titles(this_host(), pit.top, 5)
    assert asked is not None
    asked.close()
    asked.close()
    assert open_descriptors() == before
