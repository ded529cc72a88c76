import os
from pathlib import Path

import pytest

from ybs.repo_map import index
from ybs.repo_map.facts import FactReader, TermFacts
from ybs.repo_map.index import Index
from ybs.repo_map.reading import Tree
from ybs.repo_map.tags import Tag, Tags

LONG_AGO_NS = 1_600_000_000_123_456_789


class Work:
    """A project whose index is opened anew for each question, as each process does."""

    def __init__(self, folder: Path, cache: Path | None, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.cache = folder, cache
        self.opened: list[str] = []
        self.learned: list[str] = []
        opens, learns = Tree.read, FactReader.read

        def read(tree: Tree, path: str) -> bytes:
            self.opened.append(path)
            return opens(tree, path)

        def learn(
            reader: FactReader, path: str, data: bytes = b"", language: str = ""
        ) -> TermFacts:
            self.learned.append(path)
            return learns(reader, path, data, language)

        monkeypatch.setattr(Tree, "read", read)
        monkeypatch.setattr(FactReader, "read", learn)

    def write(self, **files: str) -> None:
        """Write files (`a__b` is `a/b.py`) that were changed long ago, each time a second later."""
        for name, text in files.items():
            path = self.folder / (name.replace("__", "/") + ".py")
            path.parent.mkdir(exist_ok=True, parents=True)
            path.write_text(text)
            self.age(path)

    def age(self, path: Path) -> None:
        self.seconds = getattr(self, "seconds", 0) + 1
        time_ns = LONG_AGO_NS + self.seconds * 1_000_000_000
        os.utime(path, ns=(time_ns, time_ns), follow_symlinks=False)

    def names(self) -> list[str]:
        paths = [one for one in self.folder.rglob("*") if one.is_symlink() or not one.is_dir()]
        return [str(path.relative_to(self.folder)) for path in paths]

    def open(self) -> Index:
        self.opened, self.learned = [], []
        made = Index(self.folder, self.cache)
        made.refresh(self.names())
        return made

    def having(self, term: str) -> dict[str, float]:
        with self.open() as made:
            files, weights = made.postings(term)
            assert len(files) == len(set(files)), "a file counts once"
            return {made.paths[file]: weight for file, weight in zip(files, weights, strict=True)}


@pytest.fixture
def work(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Work:
    return Work(project, tmp_path / "maps" / "one.index", monkeypatch)


def test_words_definitions_and_lengths_are_found(work: Work) -> None:
    work.write(wire="def parse_header(line): pass", other="parse_header(1)\nparse_header(2)")
    with work.open() as made:
        assert made.paths == ["other.py", "wire.py"]
        assert made.defining("parse_header") == [1]
        assert made.postings("pars")[0] == [0, 1]
        assert made.postings("nothing") == ([], [])
        assert list(made.lengths) == [2, 4]
        assert made.language(0) == "python"
        assert made.data(0).startswith(b"parse_header")


@pytest.mark.parametrize("few", [0, 64])
def test_only_what_changed_is_read_again(work, monkeypatch, few):
    monkeypatch.setattr(index, "FEW", few)  # with 0 each change is a segment of its own
    work.write(one="alpha", two="beta", three="gamma")
    assert set(work.having("alpha")) == {"one.py"}
    assert len(work.opened) == 3
    assert set(work.having("beta")) == {"two.py"}
    assert work.opened == []
    work.write(two="alpha delta")
    assert set(work.having("alpha")) == {"one.py", "two.py"}
    assert work.opened == ["two.py"]
    assert work.having("beta") == {}
    assert set(work.having("gamma")) == {"three.py"}


def test_a_content_that_comes_back_is_known(work: Work) -> None:
    work.write(one="alpha", two="beta")
    work.having("alpha")
    work.write(one="gamma")
    assert set(work.having("gamma")) == {"one.py"}
    work.write(one="alpha")
    assert set(work.having("alpha")) == {"one.py"}
    assert (work.opened, work.learned) == (["one.py"], [])
    assert work.having("gamma") == {}
    work.age(work.folder / "two.py")
    assert set(work.having("beta")) == {"two.py"}
    assert (work.opened, work.learned) == (["two.py"], [])


def test_files_that_are_gone_or_have_another_name_are_not_found_by_the_old_one(work: Work) -> None:
    work.write(one="alpha", two="alpha")
    work.having("alpha")
    (work.folder / "one.py").unlink()
    (work.folder / "two.py").rename(work.folder / "three.py")
    assert set(work.having("alpha")) == {"three.py"}
    assert work.having("two") == {}


def test_a_change_right_after_a_look_is_noticed_though_size_and_time_are_the_same(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    work.write(one="alpha")
    looks = (work.folder / "one.py").stat()
    monkeypatch.setattr(index.time, "time_ns", lambda: looks.st_mtime_ns + 1_000)
    work.having("alpha")
    (work.folder / "one.py").write_text("gamma")
    os.utime(work.folder / "one.py", ns=(looks.st_mtime_ns, looks.st_mtime_ns))
    assert set(work.having("gamma")) == {"one.py"}


@pytest.mark.integration
def test_many_changes_one_by_one_become_segments_and_segments_become_one(work, monkeypatch):
    monkeypatch.setattr(index, "FEW", 3)
    monkeypatch.setattr(index, "MOST_SEGMENTS", 2)
    monkeypatch.setattr(index, "MOST_WAITING", 4)
    work.write(**{f"file{number}": f"common word{number}" for number in range(8)})
    for turn in range(14):
        work.write(**{f"file{turn % 8}": f"common turn{turn}"})
        assert len(work.having("common")) == 8
        assert set(work.having(f"turn{turn}")) == {f"file{turn % 8}.py"}
    assert work.having("turn3") == {}
    with work.open() as made:
        store = made._store
        assert store
        assert store.segments() <= 3
        assert store.count_waiting() <= 8 + 4 + 1
        assert len(store.fresh()) <= 3


@pytest.mark.integration
def test_all_kinds_of_files_can_be_in_a_project(work: Work) -> None:
    folder = work.folder
    work.write(plain="alpha")
    (folder / "new\nline.py").write_text("alpha")
    Path(os.fsdecode(os.fsencode(folder) + b"/latin-\xe4.py")).write_text("alpha")
    (folder / "large.py").write_bytes(b"alpha\n" * 200_000)
    (folder / "binary.bin").write_bytes(b"alpha\0")
    (folder / "link.py").symlink_to("plain.py")
    (folder / "loop").symlink_to(".")
    (folder / ".env").write_text("alpha")
    os.mkfifo(folder / "pipe.py")
    for _ in range(2):
        assert set(work.having("alpha")) == {"plain.py", "new\nline.py", "latin-\udce4.py"}
        assert set(work.having("larg")) == {"large.py"}
        assert set(work.having("pip")) == {"pipe.py"}
        assert work.learned == [] or len(work.learned) == 9
    with work.open() as made:
        assert made.tags(made.paths.index("large.py")) == Tags()


def test_an_empty_project_and_paths_that_lead_outside_are_harmless(work: Work) -> None:
    (work.folder.parent / "outside.py").write_text("alpha")
    with work.open() as made:
        assert (made.paths, made.lengths, made.postings("alpha")) == ([], [], ([], []))
        made.refresh(["../outside.py", "/etc/passwd", "gone.py", "", "a\0b"])
        assert made.paths == []


def test_more_files_than_can_be_read_at_once_are_found_by_their_paths_and_read_later(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "MOST_READ", 4)
    work.write(**{f"file{number}": f"common word{number}" for number in range(10)})
    assert len(work.having("common")) == 4
    assert len(work.opened) == 4
    assert len(work.having("fil")) == 10
    assert len(work.having("common")) == 10
    work.having("common")
    assert work.opened == []


def test_postings_are_written_in_parts_when_there_are_many(work, monkeypatch):
    monkeypatch.setattr(index, "FEW", 0)
    monkeypatch.setattr(index, "MOST_POSTINGS", 5)
    work.write(**{f"file{number}": f"common word{number}" for number in range(10)})
    assert len(work.having("common")) == 10
    assert len(work.having("common")) == 10


@pytest.mark.integration
def test_without_a_cache_nothing_is_written(work: Work) -> None:
    cache, work.cache = work.cache, None
    work.write(one="def alpha(): pass")
    with work.open() as made:
        made.set("history", b"1")
        assert made.get("history") == b"1"
        assert made.defining("alpha") == [0]
        made.tags(0)
        work.write(one="beta", two="beta")
        made.refresh(work.names())
        assert made.postings("beta")[0] == [0, 1]
        assert made.defining("alpha") == []
    assert cache
    assert not cache.parent.exists()


def test_values_of_other_rooms_are_kept(work: Work) -> None:
    with work.open() as made:
        assert made.get("stamp") is None
        made.set("history", b"\0\xff")
        assert made.get("history") == b"\0\xff"
    with work.open() as made:
        assert made.get("history") == b"\0\xff"
        made.set("history", b"2")
    with work.open() as made:
        assert made.get("history") == b"2"


def test_a_content_is_parsed_once(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[bytes] = []
    found = Tags(definitions=(Tag("alpha", "function", 1, 1, "def alpha()"),), references={"b": 2})

    def parse(data: bytes, language: str) -> Tags:
        assert language == "python"
        parsed.append(data)
        return found

    monkeypatch.setattr(index, "tags_of", parse)
    work.write(one="def alpha(): b()", two="def alpha(): b()", three="def alpha(): c()")
    (work.folder / "read.me").write_text("def alpha(): b()")
    for _ in range(2):
        with work.open() as made:
            results = [made.tags(file) for file in range(4)]
        assert results == [found, Tags(), found, found]
    assert len(parsed) == 2
    work.write(one="x = 1")
    with work.open() as made:
        made.tags(0)
    assert len(parsed) == 3


def test_what_may_be_a_key_or_a_password_is_in_no_tag_and_in_no_file(work, monkeypatch):
    key = "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc"
    at = "postgres://u:" + "hunter2" + "@host/db"
    monkeypatch.setattr(
        index,
        "tags_of",
        lambda data, language: Tags(
            definitions=(
                Tag("login", "function", 1, 1, "def login(password='hunter2', n=1)"),
                Tag("call", "function", 2, 2, f"def call(n={key})"),
                Tag("plain", "function", 3, 3, "def plain(n=1)"),
                Tag(key, "constant", 4, 4, f"{key} = 1"),
                Tag("DB_PASSWORD", "constant", 5, 5, "export DB_PASSWORD=hunter2"),
                Tag("token", "constant", 6, 6, "token=hunter2"),
                Tag("TOKEN", "constant", 7, 7, 'TOKEN="hunter2"'),
                Tag("SECRET", "constant", 8, 8, "declare -x SECRET=$1"),
                Tag("enter", "function", 9, 9, "def enter(password=None, n=1)"),
                Tag("db", "function", 10, 10, f"def db(at='{at}', n=1)"),
                Tag("sesame", "function", 11, 11, "def sesame(my_pass='hunter2')"),
            ),
            references={key: 1, "open": 1},
        ),
    )
    work.write(one=f"def login(password='hunter2'): pass\n{key} = 1\ndef {key}(): pass")
    (work.folder / ".env").write_text("DATABASE_PASSWORD=swordfish")
    for _ in range(2):
        with work.open() as made:
            tags = made.tags(made.paths.index("one.py"))
        lines = [one.signature for one in tags.definitions]
        assert lines == [
            "def login(password=...",
            "def call(n=...",
            "def plain(n=1)",
            "export DB_PASSWORD=...",
            "token=...",
            "TOKEN=...",
            "declare -x SECRET=$1",
            "def enter(password=None, n=1)",
            "def db(at='postgres://u:...",
            "def sesame(my_pass=...",
        ]
        assert tags.references == {"open": 1}
    assert work.cache
    kept = work.cache.read_bytes().lower()
    assert b"4ec39" not in kept
    assert b"swordfish" not in kept
    assert b"'hunter2" not in kept


def test_a_store_by_other_rules_begins_anew(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    work.write(one="alpha")
    work.having("alpha")
    monkeypatch.setattr(index, "stamp", lambda: "other rules")
    assert set(work.having("alpha")) == {"one.py"}
    assert work.learned == ["one.py"]
    work.having("alpha")
    assert work.learned == []


def test_a_file_whose_name_looks_like_a_key_is_left_out(work: Work) -> None:
    key = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vX7zA9cE1gI3kM5"
    names = ("20240115123456789_create_users", "a_long_name_of_many_words_in_it", "Base64Encoder2")
    work.write(**{key: "def thing(): pass", f"{key}__other": "def other(): pass"})
    work.write(**dict.fromkeys(names, "def thing(): pass"))
    with work.open() as made:
        assert made.paths == sorted(f"{name}.py" for name in names)
        assert made.defining("thing") == [0, 1, 2]
    assert work.cache is not None
    assert key.encode() not in b"".join(
        each.read_bytes() for each in work.cache.parent.iterdir() if each.is_file()
    )
