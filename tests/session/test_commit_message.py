"""What the commit of a turn says: what changed in which files, in a title that fits."""

from collections.abc import Mapping

from rows import every_row
from ybs.checkpoints.states import ABSENT, Change, State, digest_of
from ybs.session.commit_message import message_of

Sides = tuple[str | None, str | None]
PARSE = "import re\n\n\ndef parse(text):\n    return text\n"
PARSED = PARSE.replace("return text", "return text.strip()")


def message(files: Mapping[str, Sides], columns: int = 66) -> str:
    def state(text: str | None) -> State:
        if text is None:
            return ABSENT
        data = text.encode()
        return State(kind="file", mode=0o644, size=len(data), digest=digest_of(data))

    changes = [
        Change(path=path, before=state(old), after=state(new)) for path, (old, new) in files.items()
    ]
    return message_of(changes, columns)


@every_row(
    "files, title",
    [
        ({"src/x.py": (PARSE, PARSED)}, "Change src/x.py"),
        ({"src/x.py": (None, PARSE)}, "Add src/x.py"),
        ({"src/x.py": (PARSE, None)}, "Remove src/x.py"),
        ({"a.py": (PARSE, None), "lib/b.py": (None, PARSE)}, "Rename a.py to lib/b.py"),
        ({"README.md": ("one\n", "two\n")}, "Change README.md"),
        ({"a.txt": ("1", "2"), "b.txt": ("1", "2")}, "Change a.txt and b.txt"),
        ({"a.txt": (None, "2"), "b.txt": ("1", "2")}, "Add a.txt, change b.txt"),
        ({f"src/m/{n}.py": (None, str(n)) for n in range(5)}, "Add 5 files in src/m"),
        ({"a/x.c": ("1", "2"), "b/y.c": (None, "1"), "c/z.c": ("3", None), "d": ("1", "2")}, "Change 4 files: a, b, c, d"),
        ({"very/long/folder/" * 4 + "x.py": (PARSE, PARSED)}, "Change x.py"),
        ({"x" * 90 + ".py": (PARSE, PARSED)}, "Change 1 file"),
    ],
)  # fmt: skip
def test_the_title_says_what_changed(files: dict[str, Sides], title: str):
    assert message(files).partition("\n")[0] == title


def test_the_body_has_a_line_for_each_file_where_there_are_several():
    files: dict[str, Sides] = {"x.py": (PARSE, PARSED), "new.txt": (None, "1")}
    assert message(files).split("\n") == [
        "Change x.py, add new.txt",
        "",
        "- Change x.py",
        "- Add new.txt",
    ]
    many: dict[str, Sides] = {f"f{n}": (None, str(n)) for n in range(30)}
    assert message(many).endswith("\n- and 10 more")


def test_modes_links_and_folders_are_told():
    plain = State(kind="file", mode=0o644, size=1, digest="d")
    link = State(kind="link", target="a")
    folder = State(kind="folder", mode=0o755)

    def title(before: State, after: State) -> str:
        return message_of([Change(path="a", before=before, after=after)], 72)

    runs = State(kind="file", mode=0o755, size=1, digest="d")
    assert title(plain, runs) == "Make a executable"
    assert title(runs, plain) == "Change the mode of a"
    assert title(plain, link) == "Replace a"
    assert title(folder, plain) == "Add a"
    assert title(plain, folder) == "Remove a"
    assert message_of([], 72) == "Change files"
