"""Parts of lines in other punctuation, and changes that are there already or are none."""

from rows import every_row
from ybs.tools.editing.matcher import EditMatch, find

CURLY = "say(\u201chello there\u201d); say(\u201cgood morning\u201d); x\n"
PLAIN = 'say("hello there"); say("good morning"); it\'s\n'
CALLS = "first_call()\nsecond_call()\n\nother_call()\nthird_call()\n"


def edited(text: str, old: str, new: str) -> str:
    """Return the text after the edit, or why there is none."""
    found = find(text, old, new)
    if not isinstance(found, EditMatch):
        return found.reason
    (place,) = found.places
    return text[: place.start] + place.new + text[place.stop :]


@every_row(
    ("text", "old", "new", "wanted"),
    [
        (CURLY, 'say("good morning")', 'say("good evening")', CURLY.replace("morning", "evening")),
        (CURLY, 'say("hello there");', 'call("hello there");', "call" + CURLY[3:]),
        (CURLY, '"good morning"); x', '"good night"); x', CURLY.replace("morning", "night")),
        (
            CURLY,
            'say("hello there")',
            "say(hello_there)",
            CURLY.replace("\u201chello there\u201d", "hello_there"),
        ),
        (
            PLAIN,
            "say(\u201cgood morning\u201d); it\u2019s",
            "say(\u201cgood night\u201d); it\u2019s \u201cx\u201d",
            PLAIN.replace("morning", "night").replace("it's", 'it\'s "x"'),
        ),
        (CURLY * 2, 'say("good morning")', "x", "ambiguous"),
        (f"{CURLY}a\n{CURLY}", 'say("good morning")', "x", "ambiguous"),
        (CURLY, '"); s', "x", "absent"),
        (CURLY, 'say("bad morning")', "x", "absent"),
        (PLAIN, "say(bad morning)", "x", "absent"),
    ],
)
def test_a_part_of_a_line_keeps_the_files_signs(text: str, old: str, new: str, wanted: str):
    assert edited(text, old, new) == wanted


@every_row(
    ("text", "old", "new", "wanted"),
    [
        (CALLS, "first_call()  \nsecond_call()", "other_call()\nthird_call()", "applied"),
        (CALLS, "other_call()  \nthird_call()", "first_call()\nsecond_call()", "applied"),
        (
            CALLS,
            "first_call()  \nsecond_call()",
            "third_call()",
            CALLS.replace("first_call()\nsecond_call()", "third_call()"),
        ),
        (CALLS, "gone_call()", "third_call()", "applied"),
        (CALLS * 2, "gone_call()", "third_call()", "absent"),
        (CALLS * 2, "gone_call()", "other_call()\nthird_call()", "applied"),
        (CALLS, "gone_call()", "third_", "absent"),
        (CALLS, "gone_call()", "ond_call()\n\nother", "applied"),
        (CALLS, "1: first_call()", "first_call()", "unchanged"),
        (CALLS, "1: gone_call()", "gone_call()", "absent"),
        (CALLS, "first_call()\\nsecond_call()", "first_call()\nsecond_call()", "unchanged"),
        (CALLS, "first_call()\\nthird_call()", "first_call()\nthird_call()", "absent"),
        (
            CALLS,
            "first_call() \nsecond_call()",
            "first_call()\nsecond_call()\n\nother_call()",
            "applied",
        ),
        (CALLS, "second_call() \n", "first_call()\nsecond_call()\n", "applied"),
    ],
)
def test_a_change_that_is_there_or_is_none_is_told_so(text: str, old: str, new: str, wanted: str):
    assert edited(text, old, new) == wanted


def test_the_nearest_lines_of_a_numbered_text_are_shown():
    found = find(CALLS, "3: second_call()\n4: gone_call()\n5: third_call()", "x")
    assert not isinstance(found, EditMatch)
    assert found.nearest.startswith("2\tsecond_call()")
