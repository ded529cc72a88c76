"""What the commit of a turn says: what changed in which files, in a title that fits."""

from collections.abc import Mapping

from rows import every_row
from ybs.checkpoints.states import ABSENT, Change, State, digest_of
from ybs.session.commit_message import message_of
from ybs.session.definitions import changed_definitions

Sides = tuple[str | None, str | None]
PARSE = "import re\n\n\ndef parse(text):\n    return text\n"
PARSED = PARSE.replace("return text", "return text.strip()")
CART = "class Cart:\n    def add(self, item):\n        self.items.append(item)\n\n    def total(self):\n        return 0\n"


def message(files: Mapping[str, Sides], columns: int = 66) -> str:
    contents: dict[str, bytes] = {}

    def state(text: str | None) -> State:
        if text is None:
            return ABSENT
        data = text.encode()
        contents[digest_of(data)] = data
        return State(kind="file", mode=0o644, size=len(data), digest=digest_of(data))

    changes = [
        Change(path=path, before=state(old), after=state(new)) for path, (old, new) in files.items()
    ]
    return message_of(changes, contents.get, columns)


@every_row(
    "files, title",
    [
        ({"src/x.py": (PARSE, PARSED)}, "Change parse() in src/x.py"),
        ({"src/x.py": (PARSE, PARSED), "tests/test_x.py": ("a", "b")}, "Change parse() in src/x.py and its test"),
        ({"src/x.py": (None, PARSE)}, "Add src/x.py"),
        ({"src/x.py": (PARSE, None)}, "Remove src/x.py"),
        ({"a.py": (PARSE, None), "lib/b.py": (None, PARSE)}, "Rename a.py to lib/b.py"),
        ({"x.py": (PARSE, PARSE + "\n\ndef dump():\n    pass\n")}, "Add dump() to x.py"),
        ({"x.py": (PARSE + "\n\ndef dump():\n    pass\n", PARSE)}, "Remove dump() from x.py"),
        ({"x.py": (PARSE, PARSE.replace("import re", "import os"))}, "Change x.py"),
        ({"README.md": ("one\n", "two\n")}, "Change README.md"),
        ({"a.txt": ("1", "2"), "b.txt": ("1", "2")}, "Change a.txt and b.txt"),
        ({"a.txt": (None, "2"), "b.txt": ("1", "2")}, "Add a.txt, change b.txt"),
        ({f"src/m/{n}.py": (None, str(n)) for n in range(5)}, "Add 5 files in src/m"),
        ({"a/x.c": ("1", "2"), "b/y.c": (None, "1"), "c/z.c": ("3", None), "d": ("1", "2")}, "Change 4 files: a, b, c, d"),
        ({"very/long/folder/" * 4 + "x.py": (PARSE, PARSED)}, "Change parse() in x.py"),
        ({"x" * 90 + ".py": (PARSE, PARSED)}, "Change 1 file"),
    ],
)  # fmt: skip
def test_the_title_says_what_changed(files: dict[str, Sides], title: str):
    assert message(files).partition("\n")[0] == title


def test_the_body_has_a_line_for_each_file_where_there_are_several():
    files: dict[str, Sides] = {"x.py": (PARSE, PARSED), "new.txt": (None, "1")}
    assert message(files).split("\n") == [
        "Change parse() in x.py, add new.txt",
        "",
        "- Change parse() in x.py",
        "- Add new.txt",
    ]
    many: dict[str, Sides] = {f"f{n}": (None, str(n)) for n in range(30)}
    assert message(many).endswith("\n- and 10 more")


def test_modes_links_and_folders_are_told():
    plain = State(kind="file", mode=0o644, size=1, digest="d")
    link = State(kind="link", target="a")
    folder = State(kind="folder", mode=0o755)

    def title(before: State, after: State) -> str:
        return message_of([Change(path="a", before=before, after=after)], lambda _: None, 72)

    runs = State(kind="file", mode=0o755, size=1, digest="d")
    assert title(plain, runs) == "Make a executable"
    assert title(runs, plain) == "Change the mode of a"
    assert title(plain, link) == "Replace a"
    assert title(folder, plain) == "Add a"
    assert title(plain, folder) == "Remove a"
    assert message_of([], lambda _: None, 72) == "Change files"


@every_row(
    "old, new, found",
    [
        (CART, CART.replace("return 0", "return 1"), [("total()", "changed")]),
        (CART, CART.replace("    def total(self):\n        return 0\n", ""), [("total()", "removed")]),
        (CART, CART + "    limit = 3\n", [("Cart", "changed")]),
        ("func (c *Cart) Add(x int) {\n\treturn\n}\n", "func (c *Cart) Add(x int) {\n\tpanic(1)\n}\n", [("Add()", "changed")]),
        ("export async function load() {\n  a();\n}\n", "export async function load() {\n  b();\n}\n", [("load()", "changed")]),
        ("pub(crate) fn run() {\n    1\n}\n", "pub(crate) fn run() {\n    2\n}\n", [("run()", "changed")]),
        ("def f():\n    pass\n\nx = 1\n", "def f():\n    pass\n\nx = 2\n", []),
        ("a\n", "a\n\n\n", []),
        ("x\n" * 6_000, "y\n" * 6_000, []),
    ],
)  # fmt: skip
def test_definitions_that_changed_are_found(old: str, new: str, found: list[tuple[str, str]]):
    assert changed_definitions(old, new) == found
