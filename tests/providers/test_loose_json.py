from rows import every_row
from ybs.providers.wire.loose_json import as_count, as_list, as_object, as_text, at, count_at


@every_row("value", [None, 1, True, "x", [1]])
def test_what_is_no_object_is_an_empty_one(value):
    assert as_object(value) == {}


@every_row("value", [None, 1, "x", {"a": 1}])
def test_what_is_no_list_is_an_empty_one(value):
    assert as_list(value) == []


@every_row(
    ("value", "text"),
    [
        ("a", "a"),
        (["a", {"text": "b"}, {"text": ["c"]}], "abc"),
        (None, ""),
        (3, ""),
        ({"x": 1}, ""),
    ],
)
def test_text_is_found_in_parts(value, text):
    assert as_text(value) == text


@every_row(
    ("value", "count"),
    [(3, 3), (3.0, 3), (-1, 0), (True, None), ("3", None), (None, None), (float("inf"), None)],
)
def test_counts_are_whole_and_not_negative(value, count):
    assert as_count(value) == count


def test_paths_lead_through_objects_and_lists():
    value = {"a": [{"b": 1}], "c": {"0": 2}}
    assert [at(value, p) for p in ("a.0.b", "a.1.b", "a.x", "c.0", "z.y")] == [
        1,
        None,
        None,
        2,
        None,
    ]


def test_the_first_count_found_is_taken():
    assert count_at({"a": None, "b": {"c": 4}}, "a", "b.c") == 4
    assert count_at({}, "a") is None
