from pathlib import Path

import pytest

from ybs.config.document import SettingsDocument, Unusable, dotted, lines_of, open_document, visible


def document_of(tmp_path: Path, text: str | bytes) -> SettingsDocument:
    file = tmp_path / "some.json"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    file.chmod(0o644)
    document = open_document(file, "own")
    assert document is not None
    return document


def test_a_missing_file_is_no_document(tmp_path: Path):
    assert open_document(tmp_path / "none.json", "own") is None


@pytest.mark.integration
@pytest.mark.parametrize(
    ("text", "words", "line"),
    [
        ('{"a": {\n"b": 1,}}', "not valid JSON: trailing comma in object", 2),
        ('{"é": 1,\n"b": NaN,\n"c": 2}', "not valid JSON: invalid character", 2),
        ('{"a": 1,\n"b": 2', "not valid JSON: Input data was truncated", 2),
        ('{"a":\n"\\ud800"}', "not valid JSON", 2),
        ("[1]", "not a JSON object", 1),
        ("{}}", "not valid JSON: trailing characters", 1),
        ('{"a":' * 5000, "nested too deep", 1),
        ('{"a": ' + "[" * 100 + "]" * 100 + "}", "nested too deep", 1),
    ],
)
def test_a_text_that_cannot_be_used_names_its_line(
    tmp_path: Path, text: str, words: str, line: int
):
    with pytest.raises(Unusable, match=words) as caught:
        document_of(tmp_path, text)
    assert caught.value.line == line


@pytest.mark.parametrize("text", ["", " \n", "{}"])
def test_an_empty_file_sets_nothing(tmp_path: Path, text: str):
    document = document_of(tmp_path, text)
    assert document.tree == {}
    assert document.all_warnings() == []


def test_a_byte_order_mark_is_skipped_and_said(tmp_path: Path):
    document = document_of(tmp_path, b'\xef\xbb\xbf{"a": 1}')
    assert document.tree == {"a": 1}
    assert document.all_warnings() == [
        f"{tmp_path}/some.json:1: begins with a byte order mark, which is ignored"
    ]


@pytest.mark.parametrize("text", [b'x "a": "b"', b"}", b"[1]"])
def test_behind_a_byte_order_mark_what_is_no_json_is_told_as_elsewhere(tmp_path: Path, text: bytes):
    with pytest.raises(Unusable):
        document_of(tmp_path, b"\xef\xbb\xbf" + text)


def test_of_two_equal_names_the_last_one_holds(tmp_path: Path):
    document = document_of(tmp_path, '{"a": {"b": 1, "b" : 2}}')
    assert document.tree == {"a": {"b": 2}}


def test_every_key_has_its_line():
    text = '{\n"a": {\n\n"b.\\"c": [1,\n {"d": "x, ]"}, "y",\n[]]},\n"e":\n"f"}'
    assert lines_of(text) == {
        ("a",): 2,
        ("a", 'b."c'): 4,
        ("a", 'b."c', 0): 4,
        ("a", 'b."c', 1): 5,
        ("a", 'b."c', 1, "d"): 5,
        ("a", 'b."c', 2): 5,
        ("a", 'b."c', 3): 6,
        ("e",): 7,
    }


def test_a_warning_names_the_line_of_the_nearest_known_key():
    document = SettingsDocument("f.json", '{\n"a": {\n"b": 1}}')
    document.warn(("a", "b"), "bad")
    document.warn(("a", "missing"), "bad")
    document.warn(("x",), "bad")
    assert document.all_warnings() == [
        "f.json:3: a.b: bad",
        "f.json:2: a.missing: bad",
        "f.json:1: x: bad",
    ]


def test_a_source_without_text_has_no_lines():
    assert SettingsDocument("YBS_MODEL").place(("a",)) == "YBS_MODEL"
    assert SettingsDocument("f.json", "{").place(("a",)) == "f.json:1"


def test_many_warnings_are_counted():
    document = SettingsDocument("f.json")
    for _ in range(30):
        document.warn(("a",), "bad")
    assert len(document.all_warnings()) == 21
    assert document.all_warnings()[-1] == "f.json: and 10 more problems"


def test_a_list_of_keys_is_never_left_out_and_is_cut():
    document = SettingsDocument("f.json")
    for _ in range(30):
        document.warn(("a",), "bad")
    document.warn_of_all([(f"k{number}",) for number in range(15)], "ignored")
    assert document.all_warnings()[-2].startswith("f.json: ignored: k0, k1, ")
    assert document.all_warnings()[-2].endswith("k11 and 3 more")


def test_nothing_that_a_terminal_acts_on_is_shown():
    assert visible("a\x1b[2J\n\u202eb\ud800") == r"a\x1b[2J\n\u202eb\ud800"
    assert visible("x" * 600) == "x" * 497 + "..."
    assert visible("a" + "\u2800 " * 300 + "b") == "a <600 spaces> b"
    assert dotted(("tools", "external", 1, "na\x07me")) == r"tools.external[1].na\x07me"
    assert dotted((0, "a")) == "[0].a"
