"""A change to a file as the person reads it before and after it is made."""

from pathlib import Path

from rows import every_row
from ybs.core.ports import Preview
from ybs.tools.editing.changes import FileEdit, text_diff
from ybs.tools.editing.diff import Diff


@every_row(
    "before, replacements, overlooked, title",
    [
        (None, 0, (), "Create a.py (+1 -0)"),
        (b"", 0, (), "Overwrite a.py (+1 -0)"),
        (b"y\n", 0, (), "Overwrite a.py (+1 -1)"),
        (b"y\n", 1, (), "Edit a.py (+1 -1)"),
        (
            b"y\n",
            2,
            ("indentation", "blank lines"),
            "Edit a.py (+1 -1) (fuzzy: indentation, blank lines)",
        ),
    ],
)
def test_a_preview_says_what_happens_to_the_file(before, replacements, overlooked, title):
    diff = text_diff(before, b"x\n", "a.py")
    edit = FileEdit(
        path=Path("/p/a.py"),
        shown="a.py",
        before=before,
        after=b"x\n",
        diff=diff,
        replacements=replacements,
        overlooked=overlooked,
    )
    assert edit.preview == Preview(title=title, body=diff.text, is_diff=True, paths=("/p/a.py",))


@every_row(
    "before, after, text",
    [
        (b"a", b"\0ab", "Binary file f: 1 -> 3 bytes"),
        (None, b"\0" * 1000, "Binary file f: 0 -> 1,000 bytes"),
        (b"\0", b"", "Binary file f: 1 -> 0 bytes"),
    ],
)
def test_a_binary_file_has_sizes_and_no_lines(before: bytes | None, after: bytes, text: str):
    assert text_diff(before, after, "f") == Diff(text, 0, 0)


def test_a_text_in_the_place_of_a_binary_file_is_shown():
    assert text_diff(b"\0ab", b"run\n", "f").text.endswith("+run")
    assert text_diff(b"\0ab", b"run\n", "f").counts == "+1 -0"


def test_a_file_that_is_made_or_emptied_is_compared_with_nothing():
    assert text_diff(None, b"a\n", "f") == text_diff(b"", b"a\n", "f")
    assert text_diff(None, b"a\n", "f").counts == "+1 -0"
    assert text_diff(b"a\n", b"", "f").counts == "+0 -1"


@every_row(
    ("before", "after", "note"),
    [
        (b"a\n", b"\xef\xbb\xbfa\n", "utf-8 -> utf-8 with a byte order mark"),
        (b"\xef\xbb\xbfa\n", b"a\n", "utf-8 with a byte order mark -> utf-8"),
        (b"a\n", "\ufeffa\n".encode("utf-16-le"), "utf-8 -> utf-16-le with a byte order mark"),
        (b"gr\xfcn\n", "grün\n".encode(), "latin-1 -> utf-8"),
        (b"a\nb\n", b"a\r\nb\r\n", "utf-8 -> utf-8, Windows line ends"),
        (b"a\nb\n", b"a\r\nb\n", "utf-8 -> utf-8, some Windows line ends"),
        (b"\xef\xbb\xbf", b"", "other bytes for the same text: 3 -> 0"),
        (None, b"\xef\xbb\xbfa\n", "utf-8 -> utf-8 with a byte order mark"),
    ],
)
def test_a_change_of_bytes_alone_says_what_changes(before: bytes | None, after: bytes, note: str):
    assert text_diff(before, after, "run").text.endswith(f"\n\\ {note}")


@every_row(("before", "after"), [(b"a\n", b"a\n"), (None, b""), (b"a\n", b"")])
def test_a_note_stands_only_where_bytes_differ(before: bytes | None, after: bytes):
    assert "->" not in text_diff(before, after, "run").text
