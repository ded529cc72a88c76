import os
import time
from pathlib import Path

from ybs.repo_map import store
from ybs.repo_map.index import Index
from ybs.repo_map.store import cache_file, mark_used, prune

DAY_SECONDS = 86_400


def made(folder: Path, number: int, *, days: float) -> Path:
    path = folder / f"{number:032x}.index"
    path.write_bytes(b"")
    seconds = time.time() - days * DAY_SECONDS
    os.utime(path, (seconds, seconds))
    return path


def test_a_project_has_one_file_by_whatever_way_it_is_reached(tmp_path: Path) -> None:
    for name in ("one", "two", "maps"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to("one")
    maps = tmp_path / "maps"
    assert cache_file(tmp_path / "one", maps) == cache_file(tmp_path / "link", maps)
    assert cache_file(tmp_path / "one", maps) != cache_file(tmp_path / "two", maps)
    strange = cache_file(Path("/a\udcff\n"), maps)
    assert strange.parent == maps
    assert strange.name.isascii()


def test_caches_that_nobody_uses_are_deleted_and_nothing_else(tmp_path: Path) -> None:
    used = [made(tmp_path, number, days=number / 10) for number in range(store.MOST_FILES + 5)]
    old = made(tmp_path, 999, days=61)
    old.with_name(old.name + "-journal").write_bytes(b"")
    others = [tmp_path / name for name in ("notes.index", "a" * 32, "-journal")]
    for path in others:
        path.write_bytes(b"")
        os.utime(path, (0, 0))
    (tmp_path / ("f" * 32 + ".index")).mkdir()
    spare = used[-1]
    prune(tmp_path, spare)
    assert not old.exists()
    assert not old.with_name(old.name + "-journal").exists()
    assert all(path.exists() for path in others)
    assert [path for path in used if path.exists()] == [*used[: store.MOST_FILES - 2], spare]


def test_caches_that_fill_the_disk_are_deleted(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "MOST_BYTES", 100)
    paths = [made(tmp_path, number, days=number) for number in range(3)]
    for path in paths:
        looks = path.stat()
        path.write_bytes(b"x" * 45)
        os.utime(path, ns=(looks.st_mtime_ns, looks.st_mtime_ns))
    prune(tmp_path, tmp_path / "mine")
    assert [path.exists() for path in paths] == [True, True, False]


def test_a_folder_that_is_not_there_is_no_trouble(tmp_path: Path) -> None:
    prune(tmp_path / "gone", tmp_path / "gone" / "x")
    mark_used(tmp_path / "gone" / "x")


def test_a_cache_counts_as_used_when_it_is_opened(tmp_path: Path, project: Path) -> None:
    maps = tmp_path / "maps"
    mine = cache_file(project, maps)
    (project / "a.py").write_text("x")
    os.utime(project / "a.py", (1_000, 1_000))
    with Index(project, mine) as first:
        first.refresh(["a.py"])
    old = made(maps, 1, days=61)
    os.utime(mine, (0, 0))
    with Index(project, mine) as again:
        again.refresh(["a.py"])
    assert time.time() - mine.stat().st_mtime < DAY_SECONDS
    assert old.exists(), "a start that writes nothing looks at nothing else"
    (project / "a.py").write_text("xy")
    with Index(project, mine) as again:
        again.refresh(["a.py"])
    assert not old.exists()
