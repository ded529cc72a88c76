"""The matcher finds the one place that is meant, or none."""

from collections.abc import Callable

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from rows import every_row
from timing import takes_at_most
from ybs.tools.editing.matcher import EditMatch, Refusal, find

BLOCK = """def total(items):
    # add the prices of all items up
    price = 0
    for item in items:
        price += item.price

    return price
"""
FILE = f"import math\n\n\n{BLOCK}\n\ndef other():\n    return math.pi\n"


def edited(text: str, old: str, new: str, *, replace_all: bool = False) -> str:
    """Return the text after the edit, which must be possible."""
    match = find(text, old, new, replace_all=replace_all)
    assert isinstance(match, EditMatch), match
    for place in reversed(match.places):
        text = text[: place.start] + place.new + text[place.stop :]
    return text


def refused(text: str, old: str, new: str, *, replace_all: bool = False) -> Refusal:
    """Return why the edit is refused."""
    found = find(text, old, new, replace_all=replace_all)
    assert isinstance(found, Refusal), found
    return found


def how(text: str, old: str, new: str) -> tuple[str, ...]:
    """Return what was overlooked."""
    match = find(text, old, new)
    assert isinstance(match, EditMatch), match
    return match.how


NEW = BLOCK.replace("price = 0\n", "price = 0.0\n    tax = 1\n")
WANTED = FILE.replace(BLOCK, NEW)


def by_line(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: "\n".join(
        change(line) if line.strip() else line for line in text.split("\n")
    )


SLIPS: list[tuple[str, Callable[[str], str]]] = [
    ("trailing spaces", lambda text: text.replace("items:\n", "items:  \n")),
    ("indentation", by_line(lambda line: "  " + line)),
    ("indentation", lambda text: text.replace("    ", "\t")),
    ("indentation", lambda text: text.replace("    ", "  ")),
    ("line numbers", by_line(lambda line: f"{NEW.find(line) + 4}\t{line}")),
    ("escapes", lambda text: text.replace("\n", "\\n")),
    ("blank lines", lambda text: text.replace("\n\n", "\n")),
    ("blank lines", lambda text: "\n\n\n\n" + text),
]


@every_row(("kind", "slip"), SLIPS)
def test_a_slip_in_both_texts_is_undone(kind: str, slip: Callable[[str], str]):
    assert edited(FILE, slip(BLOCK), slip(NEW)) == WANTED
    assert any(kind in one for one in how(FILE, slip(BLOCK), slip(NEW)))


def test_line_ends_of_the_model_do_not_matter():
    assert edited(FILE, BLOCK.replace("\n", "\r\n"), NEW.replace("\n", "\r\n")) == WANTED


def test_kept_lines_stay_as_the_file_spells_them():
    text = "say(\u201chello\u201d)  \nwait(1)\nend the day\n"
    old, new = 'say("hello")\nwait(1)\nend the day', 'say("hello")\nwait(2)\nend the day'
    assert edited(text, old, new) == text.replace("1", "2")
    assert how(text, old, new) == ("trailing spaces", "punctuation")


def test_curly_quotes_do_not_get_into_a_line_of_plain_ones():
    text = 'print("first")\nprint("second")\n'
    assert edited(text, "print(\u201cfirst\u201d)", "print(\u201cother\u201d)") == text.replace(
        "first", "other"
    )


def test_new_lines_take_the_tabs_of_the_file():
    text = "func f() {\n\tif ready {\n\t\tstart()\n\t}\n}\n"
    old = "    if ready {\n        start()\n    }\n"
    new = "    if ready {\n        start()\n        for {\n            wait()\n        }\n    }\n"
    assert "\t\tfor {\n\t\t\twait()\n\t\t}\n\t}\n}" in edited(text, old, new)


def test_an_indentation_that_was_dropped_in_the_first_line_comes_back():
    text = "class A:\n    def one(self):\n        return 1   \n"
    old, new = "def one(self):\n        return 1", "def one(self):\n        return 2"
    assert (
        edited(text, old + "\n", new + "\n") == "class A:\n    def one(self):\n        return 2\n"
    )
    assert edited(text, "def one(self):", "    def two(self):") == text.replace("one", "two")


def test_lines_are_not_joined_when_the_new_text_lacks_its_line_end():
    assert edited("a\nb\nc\n", "b\n", "x") == "a\nx\nc\n"


@every_row("shift", ["", "  "])
def test_lines_are_deleted_whole(shift: str):
    text = "first line\n\tsecond line\nthird line\n"
    assert edited(text, f"{shift}\tsecond line\n", "") == "first line\nthird line\n"


def test_blank_lines_around_new_ones_are_as_many_as_the_file_has():
    text = "first = one()\n\n\nsecond = two()\n"
    old, new = "first = one()\n\nsecond = two()", "first = one()\n\nmore = 3\n\nsecond = two()"
    assert edited(text, old, new) == "first = one()\n\n\nmore = 3\n\n\nsecond = two()\n"
    assert refused(text, "first = one()\nsecond = two()", "first = one()\nm\nsecond = two()")


def test_parts_left_out_stay():
    old = "def total(items):\n    ...\n        price += item.price\n"
    new = "def total(goods):\n    ...\n        price += item.cost\n"
    wanted = FILE.replace("total(items)", "total(goods)").replace("item.price", "item.cost")
    assert edited(FILE, old, new) == wanted
    assert refused(FILE, old, new.replace("    ...\n", "")).reason == "absent"


def test_one_other_word_in_a_comment_is_overlooked_and_not_written():
    old, new = (text.replace("all items", "some items") for text in (BLOCK, NEW))
    assert edited(FILE, old, new) == WANTED
    assert refused(FILE, old, old.replace("some items up", "some items in")).reason == "absent"
    twin = f"{FILE}\n\n{BLOCK.replace('all items', 'many items')}"
    assert refused(twin, old, new).reason == "ambiguous"


@every_row(
    ("code", "told"), [("price = 0", "price = 1"), ("item.price", "item.cost"), ("+=", "-=")]
)
def test_code_that_differs_is_never_overlooked(code: str, told: str):
    assert refused(FILE, BLOCK.replace(code, told), "x = 1\n").reason == "absent"
    in_string = f'a = 1\nb = 2\nc = names["{told}"]\nd = 4\n'
    assert refused(in_string, in_string.replace(told, "other"), "x = 1\n").reason == "absent"


def test_a_path_with_a_star_opens_no_comment():
    text = "# all of the files\nfiles: dist/*\nname: first one here\nwith: second\npassword: last\n"
    told = text.replace("password", "passwords")
    assert refused(text, told, told + "more: 1\n").reason == "absent"


def test_what_occurs_twice_is_refused_with_its_lines():
    assert refused(FILE * 2, BLOCK, NEW).lines == (4, 18)
    assert refused("aaa", "aa", "b").reason == "ambiguous"
    loose = by_line(lambda line: line + " ")
    assert refused(FILE + loose(BLOCK), BLOCK.replace(":\n", ":  \n"), NEW).lines == (4, 15)
    assert edited(FILE * 2, BLOCK, NEW, replace_all=True) == WANTED * 2
    assert edited(FILE * 2, loose(BLOCK), NEW, replace_all=True) == WANTED * 2


def test_replace_all_wants_every_place_of_one_kind():
    text = "  run(first)\n\trun(first)  \n"
    found = refused(text, "  run(first) \n", "  run(last)\n", replace_all=True)
    assert found.reason == "absent"


def test_a_change_that_was_made_already_is_not_made_again():
    assert refused(WANTED, BLOCK, NEW).reason == "applied"
    old, new = "import math\n", "import math\nimport random\n"
    assert refused(new + "x\n", old, new).reason == "applied"
    assert refused(new + "x\n", "import math  \n", new).reason == "applied"


def test_an_edit_that_changes_nothing_is_refused():
    shifted = by_line(lambda line: " " + line)
    assert refused(FILE, BLOCK, BLOCK).reason == "unchanged"
    assert refused(FILE, shifted(BLOCK), shifted(BLOCK)).reason == "unchanged"


def test_short_texts_match_only_exactly():
    assert refused("if x {\n\t}\n", "  }", "}").reason == "absent"


def test_an_absent_text_shows_the_nearest_lines():
    old = BLOCK.replace("price = 0", "price = Decimal(0)")
    assert refused(FILE, old, NEW).nearest.startswith("4\tdef total(items):\n5\t    # add")


def test_lines_indented_unlike_each_other_are_refused():
    old = BLOCK.replace("    price = 0", " price = 0")
    assert refused(FILE, old, NEW).reason == "absent"


def test_places_do_not_overlap():
    assert edited("aaaa", "aa", "b", replace_all=True) == "bb"


@pytest.mark.integration
@every_row("line", ["same line here\n", "x = {number}\n"])
def test_long_files_are_searched_in_time(line: str):
    text = "".join(line.format(number=number) for number in range(50_000))
    old = "".join(line.format(number=number) + " " for number in range(20_000, 20_400))
    with takes_at_most(4):  # quadratic search would take minutes
        find(text, old, old + "more\n")
        find(text, old + "absent line\n", "more\n")


LINES = st.lists(
    st.sampled_from(
        ["alpha = 1", "    beta(alpha)", "", "gamma();  ", "\tdelta: \u201cx\u201d", "}"]
    ),
    min_size=1,
    max_size=8,
).map("\n".join)


@pytest.mark.integration
@given(LINES, st.integers(0, 40), st.integers(1, 30), LINES)
def test_an_exact_edit_is_what_replacing_makes_of_it(text: str, start: int, size: int, new: str):
    old = text[start % max(1, len(text)) :][:size].rstrip("\n")
    new = new.lstrip() or "new"
    assume(old)
    match = find(text, old, new)
    if text.count(old) == 1 and isinstance(match, EditMatch):
        assert edited(text, old, new) == text.replace(old, new)


@pytest.mark.integration
@given(LINES, LINES, st.sampled_from([slip for _, slip in SLIPS[:6]]))
def test_a_slip_leads_to_the_same_file_or_to_none(above, below, slip):
    text = f"{above}\n{BLOCK}{below}\n"
    assert edited(text, slip(BLOCK), slip(NEW)) == f"{above}\n{NEW}{below}\n"


@pytest.mark.integration
@given(LINES, LINES, LINES)
@example("alpha = 1\n}\nalpha = 1", "alpha = 1", "}")
def test_nothing_outside_the_place_changes(text: str, old: str, new: str):
    match = find(text, old or "x", new)
    if isinstance(match, EditMatch):
        stops = [0, *(place.stop for place in match.places)]
        assert all(stop <= place.start for stop, place in zip(stops, match.places, strict=False))
        assert match.places[-1].stop <= len(text)
    elif match.reason == "ambiguous":
        assert len(match.lines) > 1


def test_blank_lines_before_the_first_line_of_a_file_are_not_looked_for_in_it() -> None:
    text = "a = 1\nfoo(bar, baz)\n"
    assert edited(text, f"\n{text}", "\nb = 1\nfoo(bar, baz)\n") == "b = 1\nfoo(bar, baz)\n"
    assert edited(f"x = 0\n{text}", f"\n{text}", "\nb = 1\nfoo(bar, baz)\n").startswith("x = 0\n")
