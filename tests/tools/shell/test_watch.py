"""The watch: when ybs is gone, however that happened, the groups on its list end, and no other ones."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from processes import ends, is_alive, open_descriptors
from ybs.tools.shell.watch import Watch

Start = Callable[..., int]


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[subprocess.Popen[bytes]] = []

    def one(**environ: str) -> int:
        started.append(subprocess.Popen(["sleep", "60"], env=environ, start_new_session=True))
        return started[-1].pid

    yield one
    for process in started:
        process.kill()
        process.wait()


def die(watch: Watch) -> None:
    """Do to the pipe what the system does when ybs ends."""
    assert watch._pipe is not None
    os.close(watch._pipe)
    assert watch._process is not None
    watch._process.wait()


@pytest.mark.integration
async def test_only_groups_that_still_run_are_ended(start: Start):
    watch = Watch("a-mark-that-nothing-has")
    groups = [start() for _ in range(5)]
    for group in groups[:4]:
        watch.begin(group)
    for group in (groups[0], groups[2]):
        watch.end(group)
    die(watch)
    assert await ends(groups[1])
    assert await ends(groups[3])
    assert all(is_alive(groups[place]) for place in (0, 2, 4))


@pytest.mark.integration
def test_a_folder_is_removed_after_an_end_that_ybs_did_not_see(tmp_path: Path):
    watch = Watch("a-mark-that-nothing-has")
    folder = tmp_path / "with a space"
    (folder / "temporary" / "deep").mkdir(parents=True)
    (folder / "link").symlink_to(tmp_path)
    watch.clear(str(folder))
    die(watch)
    assert not folder.exists()
    assert tmp_path.is_dir()


@pytest.mark.integration
def test_a_folder_is_left_alone_where_ybs_closes_by_itself(tmp_path: Path):
    watch = Watch("a-mark-that-nothing-has")
    watch.clear(str(tmp_path))
    watch.close()
    assert tmp_path.is_dir()


@pytest.mark.integration
def test_a_folder_that_cannot_be_told_in_a_line_is_left_alone(tmp_path: Path):
    folder, other = tmp_path / "two\nlines", tmp_path / "two"
    folder.mkdir()
    other.mkdir()
    watch = Watch("a-mark-that-nothing-has")
    watch.clear(str(folder))
    die(watch)
    assert folder.is_dir()
    assert other.is_dir()


@pytest.mark.integration
def test_a_session_that_closes_ends_nothing(start: Start):
    watch = Watch("a-mark-that-nothing-has")
    group = start()
    watch.begin(group)
    watch.close()
    watch.close()
    watch.begin(group)
    assert is_alive(group)


@pytest.mark.integration
def test_no_signal_for_ybs_reaches_it_and_nothing_waits_for_it():
    before = open_descriptors()
    watch = Watch("a-mark-that-nothing-has")
    assert watch._process is not None
    assert watch._pipe is not None
    assert os.getsid(watch._process.pid) == watch._process.pid
    assert not os.get_blocking(watch._pipe)
    watch.close()
    assert watch._process.returncode == 0
    assert open_descriptors() == before


@pytest.mark.integration
def test_a_watch_that_was_killed_is_no_trouble(start: Start):
    watch = Watch("a-mark-that-nothing-has")
    assert watch._process is not None
    watch._process.kill()
    watch._process.wait()
    watch.begin(start())
    watch.close()


def test_a_watch_that_cannot_start_is_done_without(monkeypatch: pytest.MonkeyPatch):
    def broken(*arguments: object, **options: object) -> None:
        raise OSError

    before = open_descriptors()
    monkeypatch.setattr("subprocess.Popen", broken)
    watch = Watch("x")
    watch.begin(1)
    watch.close()
    assert open_descriptors() == before


@pytest.mark.integration
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="marks need /proc")
async def test_what_carries_the_sessions_mark_is_ended_too(start: Start):
    pid = start(X="mark-7f3a.1;")
    watch = Watch("mark-7f3a")
    die(watch)
    assert await ends(pid)
