"""Unified diffs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rows import every_row
from ybs.tools.editing import diff
from ybs.tools.editing.diff import Diff, change_of, diff_of, diff_of_change


def test_equal_texts_have_no_difference():
    assert diff_of("a\n", "a\n", "f") == Diff("", 0, 0)


def test_a_file_that_is_made_or_emptied_is_compared_with_nothing():
    assert diff_of("", "a\n", "f").text.splitlines()[:2] == ["--- /dev/null", "+++ f"]
    assert diff_of("a\n", "", "f").text.splitlines()[:2] == ["--- f", "+++ /dev/null"]


def test_a_missing_end_of_line_is_said():
    shown = diff_of("a\nb", "a\nb\n", "f")
    assert shown.text == "--- f\n+++ f\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b"
    assert shown.counts == "+1 -1"


def test_distant_changes_are_hunks_of_their_own():
    before = "".join(f"{n}\n" for n in range(100))
    after = before.replace("\n10\n", "\nten\n").replace("\n90\n", "\nninety\nmore\n")
    shown = diff_of(before, after, "f")
    assert [line for line in shown.text.splitlines() if line.startswith("@@")] == [
        "@@ -8,7 +8,7 @@",
        "@@ -88,7 +88,8 @@",
    ]
    assert shown.counts == "+3 -2"


def test_a_huge_change_is_one_block(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(diff, "_MOST_LINES", 2)
    shown = diff_of("a\nb\nc\nd\n", "a\nx\nc\ny\nd\n", "f")
    assert shown.text.splitlines()[2:] == [
        "@@ -1,4 +1,5 @@",
        " a",
        "-b",
        "-c",
        "+x",
        "+c",
        "+y",
        " d",
    ]


@given(st.lists(st.sampled_from("abc"), max_size=20), st.lists(st.sampled_from("abc"), max_size=20))
def test_what_is_kept_added_and_removed_gives_both_texts(old: list[str], new: list[str]):
    before, after = ("".join(f"{line}\n" for line in lines) for lines in (old, new))
    shown = diff_of(before, after, "f")
    changed = [line for line in shown.text.splitlines()[2:] if not line.startswith("@@")]
    kept = sum(line.startswith(" ") for line in changed)
    assert shown.removed - shown.added == len(old) - len(new)
    assert kept + shown.removed <= len(old)
    assert bool(changed) == (old != new)
    # applying it as `patch` would gives the new text
    assert patched(old, shown.text.splitlines()[2:]) == new


@every_row(
    "old, new",
    [
        ("ax" * 9 + "yx", "bx" * 9 + "zx"),  # every second line from the end is alike
        ("a" + "x" * 20 + "yxxx", "b" + "x" * 24),
        ("b" + "x" * 24, "a" + "x" * 20 + "yxxx"),
        ("xxxy" + "x" * 20 + "a", "x" * 24 + "b"),
        ("x" * 24 + "b", "xxxy" + "x" * 20 + "a"),
    ],
)
def test_lines_that_are_all_alike_hide_no_change(old: str, new: str):
    shown = diff_of(*_texts(old, new), "f")
    assert patched([*old], shown.text.splitlines()[2:]) == [*new]


@every_row(
    "old, new, shown",
    [
        ("xaxb", "xb", "@@ -1,4 +1,2 @@| x|-a|-x| b"),
        ("xb", "xaxb", "@@ -1,2 +1,4 @@| x|+a|+x| b"),
        ("xaxbcd", "xbcd", "@@ -1,6 +1,4 @@| x|-a|-x| b| c| d"),
        ("xbcd", "xaxbcd", "@@ -1,4 +1,6 @@| x|+a|+x| b| c| d"),
        ("abcdexaxbcdef", "abcdexbcdef", "@@ -4,8 +4,6 @@| d| e| x|-a|-x| b| c| d"),
        ("axb", "ayb", "@@ -1,3 +1,3 @@| a|-x|+y| b"),
        ("axpb", "aypb", "@@ -1,4 +1,4 @@| a|-x|+y| p| b"),
    ],
)
def test_what_only_goes_or_only_comes_is_shown_in_one_piece(old: str, new: str, shown: str):
    text = diff_of(*_texts(old, new), "f").text
    assert text.splitlines()[2:] == shown.split("|")


@every_row("most, is_one_block", [(2, True), (3, False)])
def test_a_change_of_more_lines_than_the_limit_is_one_block(monkeypatch, most, is_one_block):
    monkeypatch.setattr(diff, "_MOST_LINES", most)
    shown = diff_of("a\nb\nc\nd\n", "a\nx\nc\ny\nd\n", "f").text.splitlines()
    assert (" c" not in shown) == is_one_block


@given(st.text("abc\n\r", max_size=60), st.text("abc\n\r", max_size=60))
def test_a_change_of_a_long_file_keeps_the_lines_that_show_the_same_difference(before, after):
    whole = change_of("f", before, after, diff_of(before, after, "f"))
    assert (whole.before, whole.after, whole.first_line) == (before, after, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(diff, "MOST_WHOLE", 0)
        part = change_of("f", before, after, diff_of(before, after, "f"))
        patch.setattr(diff, "MOST_KEPT", 0)
        none = change_of("f", before, after, diff_of(before, after, "f"))
    head = "".join(f"{line}\n" for line in before.split("\n")[: part.first_line - 1])
    assert part.before is not None
    assert part.after is not None
    assert before.startswith(head + part.before)
    assert after.startswith(head + part.after)
    assert before[len(head + part.before) :] == after[len(head + part.after) :]
    assert (part.added, part.removed) == (whole.added, whole.removed)
    if before and after:  # of an empty file the heading says that there is none
        assert diff_of_change(part) == diff_of_change(whole) == diff_of(before, after, "f").text
    assert (none.before, none.after) == ("", "")
    assert (none.added, none.removed) == (whole.added, whole.removed)


@pytest.mark.integration
def test_what_is_kept_of_a_change_is_bounded():
    lines = [f"{number}\n" for number in range(50_000)]
    before, after = "".join(lines), "".join([*lines[:25_000], "new\n", *lines[25_000:]])
    change = change_of("f", before, after, diff_of(before, after, "f"))
    assert (change.first_line, change.added, change.removed) == (24_998, 1, 0)
    assert change.after == "24997\n24998\n24999\nnew\n25000\n25001\n25002\n"
    assert "@@ -24998,6 +24998,7 @@" in diff_of_change(change)
    made = change_of("f", None, before, diff_of("", before, "f"))
    assert (made.before, made.after, made.added) == (None, "", 50_000)
    assert diff_of_change(made) == "f: the change is too long to be kept"


def _texts(old: str, new: str) -> tuple[str, str]:
    """Return each letter as a line."""
    return "\n".join((*old, "")), "\n".join((*new, ""))


def patched(old: list[str], lines: list[str]) -> list[str]:
    result: list[str] = []
    place = 0
    for line in lines:
        if line.startswith("@@"):
            start, _, length = line.split()[1][1:].partition(",")
            first = int(start) - (length != "0")
            result += old[place:first]
            place = first
        elif line.startswith(" "):
            assert old[place] == line[1:]
            result.append(old[place])
            place += 1
        elif line.startswith("-"):
            assert old[place] == line[1:]
            place += 1
        else:
            result.append(line[1:])
    return result + old[place:]
