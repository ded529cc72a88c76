"""What the commit of a turn says: what became of which files, in a title that fits."""

from rows import every_row
from ybs.checkpoints.states import ABSENT, Change, State
from ybs.session.undoing import commit_message

OLD, NEW, FOLDER = (
    State(kind="file", mode=0o644, size=1, digest="1"),
    State(kind="file", mode=0o644, size=1, digest="2"),
    State(kind="folder", mode=0o755),
)
KINDS = {"+": (ABSENT, NEW), "-": (OLD, ABSENT), "~": (OLD, NEW), "/": (ABSENT, FOLDER)}


def message(acts: str) -> str:
    sides = ((KINDS[act[0]], act[1:]) for act in acts.split())
    changes = [Change(path=path, before=old, after=new) for (old, new), path in sides]
    return commit_message(changes, 66)


@every_row(
    "acts, title",
    [
        ("~src/x.py", "Change src/x.py"),
        ("+src/x.py /src", "Add src/x.py"),
        ("-src/x.py", "Remove src/x.py"),
        ("~a.txt ~b.txt", "Change a.txt and b.txt"),
        ("+a.txt ~b.txt", "Change a.txt and b.txt"),
        (" ".join(f"+src/long/m{n}.py" for n in range(5)), "Add 5 files in src/long"),
        (" ".join(f"~folder-{n}/x.c" for n in range(9)), "Change 9 files"),
        ("~" + "x" * 90, "Change 1 file"),
        ("/src", "Change files"),
    ],
)
def test_the_title_says_what_changed(acts: str, title: str):
    assert message(acts).partition("\n")[0] == title


def test_the_body_has_a_line_for_each_file_where_there_are_several():
    assert message("~x.py +new.txt").split("\n")[1:] == ["", "- Change x.py", "- Add new.txt"]
    assert message(" ".join(f"+f{n}" for n in range(30))).endswith("\n- and 10 more")
