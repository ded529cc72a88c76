import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from rows import every_row
from ybs.repo_map import index, store
from ybs.repo_map.index import Index

FILES = {"one.py": "def alpha(): pass", "two.py": "alpha beta", "three.py": "gamma"}


@pytest.fixture
def cache(project: Path, tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (project / name).write_text(text)
    return tmp_path / "maps" / "one.index"


def look(cache: Path | None, project: Path) -> Index:
    made = Index(project, cache)
    try:
        made.refresh([path.name for path in project.iterdir()])
    except BaseException:
        made.close()
        raise
    return made


def is_right(made: Index) -> bool:
    alpha, beta = (
        sorted(made.paths[file] for file in made.postings(term)[0]) for term in ("alpha", "beta")
    )
    return (alpha, beta) == (["one.py", "two.py"], ["two.py"]) and made.defining("alpha") == [0]


def damage(cache: Path, statement: str) -> None:
    with closing(sqlite3.connect(cache)) as at:
        at.execute(statement)
        at.commit()


def cut(cache: Path) -> None:
    cache.write_bytes(cache.read_bytes()[:5_000])


def scramble(cache: Path) -> None:
    data = bytearray(cache.read_bytes())
    for place in range(4_096, len(data), 7):
        data[place] ^= 0x5A
    cache.write_bytes(data)


def make_foreign(cache: Path) -> None:
    cache.unlink()
    damage(cache, "CREATE TABLE meta(other)")


DAMAGES: list[Callable[[Path], object]] = [
    lambda cache: cache.write_bytes(b""),
    lambda cache: cache.write_bytes(b"no database at all" * 1_000),
    cut,
    scramble,
    make_foreign,
    lambda cache: damage(cache, "DROP TABLE postings"),
    lambda cache: damage(cache, "DROP TABLE meta"),
    lambda cache: damage(cache, "DROP TABLE tags"),
    lambda cache: damage(cache, "DELETE FROM meta"),
    lambda cache: damage(cache, "UPDATE meta SET value='x' WHERE key='generation'"),
    lambda cache: damage(cache, "UPDATE documents SET path=NULL"),
    lambda cache: damage(cache, "UPDATE fresh SET weights=x'c1'"),
    lambda cache: damage(cache, "UPDATE fresh SET weights=7"),
    lambda cache: damage(cache, "INSERT INTO postings VALUES('alpha', 1, x'0102')"),
    lambda cache: damage(cache, "INSERT INTO postings VALUES('alpha', 1, 'text')"),
    lambda cache: damage(cache, "INSERT INTO postings VALUES('alpha', 1, NULL)"),
]


@pytest.mark.integration
@pytest.mark.parametrize("harm", DAMAGES)
def test_a_damaged_store_is_thrown_away_and_made_anew(cache, project, harm):
    look(cache, project).close()
    harm(cache)
    with look(cache, project) as made:
        assert is_right(made)
        made.tags(0)
        made.set("history", b"1")
    with look(cache, project) as made:
        assert is_right(made)


@pytest.mark.integration
@every_row(
    "statement",
    [
        "CREATE VIEW seen AS SELECT 1",
        "CREATE TRIGGER acts AFTER INSERT ON meta BEGIN SELECT 1; END",
    ],
)
def test_a_store_that_runs_something_by_itself_is_none_of_ours(cache, project, statement):
    look(cache, project).close()
    damage(cache, statement)
    with look(cache, project) as made:
        assert is_right(made)
    with closing(sqlite3.connect(cache)) as at:
        kinds = {row[0] for row in at.execute("SELECT type FROM sqlite_master")}
    assert kinds == {"table", "index"}


def test_a_store_that_is_damaged_while_it_is_open_is_noticed_by_the_question(
    cache: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "FEW", 0)
    with look(cache, project) as made:
        damage(cache, "UPDATE postings SET data=x'01'")
        assert is_right(made)
    with look(cache, project) as made:
        assert is_right(made)


def a_file_above(cache: Path) -> None:
    cache.parent.write_text("a file")


def a_link_above(cache: Path) -> None:
    (cache.parent.parent / "else").mkdir()
    cache.parent.symlink_to(cache.parent.parent / "else")


def a_link(cache: Path) -> None:
    cache.parent.mkdir(0o700)
    (cache.parent.parent / "else").write_bytes(b"")
    cache.symlink_to(cache.parent.parent / "else")


def a_folder(cache: Path) -> None:
    cache.mkdir(0o700, parents=True)


def open_to_others(cache: Path) -> None:
    cache.parent.mkdir()
    cache.parent.chmod(0o777)


@every_row("trouble", [a_file_above, a_link_above, a_link, a_folder, open_to_others])
def test_where_a_store_cannot_be_the_index_works_in_memory(trouble, tmp_path_factory):
    top = tmp_path_factory.mktemp("trouble")
    project = top / "project"
    project.mkdir()
    for name, text in FILES.items():
        (project / name).write_text(text)
    cache = top / "maps" / "one.index"
    trouble(cache)
    with look(cache, project) as made:
        assert is_right(made)
        made.set("history", b"1")
        assert made.get("history") == b"1"
    left = [path for path in top.rglob("*") if path.is_file() and project not in path.parents]
    assert sum(path.stat().st_size for path in left) <= len("a file"), "nothing was written"


def test_a_store_is_for_its_owner_alone(cache: Path, project: Path) -> None:
    look(cache, project).close()
    assert cache.stat().st_mode & 0o777 == 0o600
    assert cache.parent.stat().st_mode & 0o777 == 0o700
    cache.chmod(0o644)
    look(cache, project).close()
    assert cache.stat().st_mode & 0o777 == 0o600


@pytest.mark.integration
@pytest.mark.parametrize("pragma", ["query_only=1", "max_page_count=1"])
def test_what_cannot_be_written_is_known_in_memory(cache, project, monkeypatch, pragma):
    look(cache, project).close()
    begin = store.MapStore.begin

    def begin_in_trouble(self: store.MapStore) -> bool:
        self._at.execute(f"PRAGMA {pragma}")  # a read-only file, a full disk
        return begin(self)

    monkeypatch.setattr(store.MapStore, "begin", begin_in_trouble)
    for number in range(70):
        (project / f"more{number}.py").write_text(f"delta word{number} " * 50)
    (project / "two.py").write_text("alpha beta epsilon")
    with look(cache, project) as made:
        assert len(made.postings("delta")[0]) == 70
        assert len(made.postings("epsilon")[0]) == 1
        assert made.paths[made.defining("alpha")[0]] == "one.py"
        made.set("history", b"1")
        made.refresh(["one.py", "two.py"])
        assert is_right(made)
    assert cache.exists(), "what is only full or read-only is not thrown away"


@pytest.mark.integration
@pytest.mark.parametrize("lock", ["IMMEDIATE", "EXCLUSIVE"])
@pytest.mark.parametrize("is_new", [False, True])
def test_nobody_waits_long_for_another_process(
    cache: Path, project: Path, monkeypatch: pytest.MonkeyPatch, lock: str, *, is_new: bool
) -> None:
    monkeypatch.setattr(store, "WAIT_SECONDS", 0.01)
    if is_new:
        cache.parent.mkdir(0o700)
    else:
        look(cache, project).close()
        (project / "two.py").write_text("alpha beta epsilon")
    with closing(sqlite3.connect(cache, isolation_level=None)) as other:
        cache.chmod(0o600)
        other.execute(f"BEGIN {lock}")
        began = time.monotonic()
        with look(cache, project) as made:
            assert is_right(made)
            made.set("history", b"1")
        assert (
            time.monotonic() - began < 4
        )  # as long as sqlite3 waits unless it is told otherwise, or less
    with look(cache, project) as made:
        assert is_right(made)


def test_two_processes_see_what_the_other_one_read(cache: Path, project: Path) -> None:
    with look(cache, project) as one, look(cache, project) as other:
        (project / "two.py").write_text("alpha beta epsilon")
        one.refresh(FILES)
        other.refresh(FILES)
        (project / "three.py").write_text("alpha")
        other.refresh(FILES)
        one.refresh(FILES)
        for made in (one, other):
            files, weights = made.postings("alpha")
            assert (sorted(files), len(weights)) == ([0, 1, 2], 3)
            assert made.postings("gamma") == ([], [])


def test_what_another_process_merged_counts_once(cache, project, monkeypatch):
    with look(cache, project) as one:
        monkeypatch.setattr(index, "FEW", 0)
        (project / "two.py").write_text("alpha beta epsilon")
        look(cache, project).close()  # what was fresh is in a segment now
        assert is_right(one)


def test_what_two_processes_read_at_the_same_moment_is_written_once(cache, project, monkeypatch):
    begin, others = store.MapStore.begin, [1]

    def begin_late(self: store.MapStore) -> bool:
        if others:
            others.pop()
            look(cache, project).close()  # another process is quicker
        return begin(self)

    monkeypatch.setattr(store.MapStore, "begin", begin_late)
    with look(cache, project) as made:
        assert is_right(made)
    with closing(sqlite3.connect(cache)) as at:
        assert at.execute("SELECT count(*) FROM documents").fetchone() == (3,)


def test_an_update_that_is_broken_off_leaves_the_store_as_it_was(cache, project, monkeypatch):
    look(cache, project).close()
    (project / "two.py").write_text("epsilon")

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(store.MapStore, "add_fresh", stop)
        with pytest.raises(KeyboardInterrupt):
            look(cache, project)
    (project / "two.py").write_text(FILES["two.py"])
    with look(cache, project) as made:
        assert is_right(made)


def test_a_commit_that_fails_leaves_no_lock_behind(cache, project, monkeypatch):
    look(cache, project).close()
    (project / "two.py").write_text("alpha beta epsilon")

    def fail(self: store.MapStore) -> None:
        del self
        full = sqlite3.OperationalError("database or disk is full")
        full.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise full

    with monkeypatch.context() as patch:
        patch.setattr(store.MapStore, "commit", fail)
        made = look(cache, project)
    with made, look(cache, project) as other:
        assert is_right(made)
        assert is_right(other)
        assert len(other.postings("epsilon")[0]) == 1
    with closing(sqlite3.connect(cache)) as at:
        assert at.execute("SELECT count(*) FROM documents WHERE live=1").fetchone() == (3,)
        assert at.execute("SELECT count(*) FROM documents").fetchone() == (4,)


def test_a_store_that_is_no_good_however_often_it_is_made_is_given_up(cache, project, monkeypatch):
    def fail(self: store.MapStore) -> int:
        raise sqlite3.DatabaseError(f"malformed: {self}")

    monkeypatch.setattr(store.MapStore, "generation", fail)
    with look(cache, project) as made:
        assert is_right(made)
        made.refresh(FILES)
        assert is_right(made)


@pytest.mark.integration
def test_a_question_while_another_process_writes_is_answered_with_what_is_there(
    cache: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "WAIT_SECONDS", 0.01)
    with look(cache, project) as made:
        made.set("history", b"1")
    monkeypatch.setattr(index, "FEW", 0)
    with look(cache, project) as made, closing(sqlite3.connect(cache)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert made.postings("nothing") == ([], [])
        assert made.get("history") is None
        assert made.tags(0) == made.tags(0)
        other.rollback()
        assert made.get("history") == b"1"
        assert is_right(made)
