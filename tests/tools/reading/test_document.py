"""A text file as it is on disk: nothing is lost on the way in and out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rows import every_row
from ybs.core.errors import ToolError
from ybs.tools.reading.document import TextFile, is_binary, text_of_part

CHINESE = "这是一个测试文件,用来检查编码。\nint main() { return 0; } // 返回值\n"
JAPANESE = "これは日本語のテストです。\n漢字とカタカナ。\n# コメント\n"
KOREAN = "한국어 시험 문장입니다. 안녕하세요\n# 주석입니다\n"
TEXTS = [
    ("gb18030", CHINESE, "gb18030"),
    ("gbk", "# 参数\n", "gb18030"),
    ("euc-jp", JAPANESE, "euc-jp"),
    ("shift_jis", JAPANESE, "cp932"),
    ("shift_jis", "# テスト\n", "cp932"),
    ("euc-kr", KOREAN, "cp949"),
    ("big5", "這是一個測試文件,用來檢查編碼。\n# 註解\n", "big5"),
    ("latin-1", "ÄÖÜ ÄÖ GRÖßE STRAßE\n", "latin-1"),
    ("latin-1", "grün\nüber die Straße\n", "latin-1"),
    ("latin-1", "määrä pää tää ää öö\n", "latin-1"),
    ("latin-1", "pää tää\n", "latin-1"),
    ("latin-1", "élève français ça été où naïve\n", "latin-1"),
    ("latin-1", "på svenska är rätt åäö\n", "latin-1"),
    ("cp1252", "“quoted” – it’s 5 € café\n", "cp1252"),
    ("utf-16-le", "hello\nworld ünïcode\n", "utf-16-le"),
    ("utf-16-be", "hello\r\nworld\r\n", "utf-16-be"),
    ("utf-16-le", "int x = 1; // 测试测试\n" * 5, "utf-16-le"),
    ("utf-16-le", "value = 1  # 一个\u3000\n" * 5, "utf-16-le"),
    ("utf-32", "hello\n", "utf-32-le"),
    ("utf-32-be", "\ufeffhello\n", "utf-32-be"),
    ("utf-8-sig", "grün\n", "utf-8"),
]


@every_row(("encoding", "text", "found"), TEXTS)
def test_the_encoding_is_found_and_kept(encoding: str, text: str, found: str):
    data = text.encode(encoding)
    document = TextFile(data)
    assert not is_binary(data)
    assert document.encoding == found
    assert document.raw == text.removeprefix("\ufeff")
    assert document.encoded(document.raw, "a") == data


@every_row(("encoding", "text", "name"), TEXTS)
def test_an_edit_in_any_encoding_changes_its_own_bytes_only(encoding: str, text: str, name: str):
    document = TextFile(text.encode(encoding))
    start = document.text.index("\n")
    raw = document.replaced([(start, start, " // new")])
    expected = text.replace("\r\n", "\n")
    place = expected.index("\n")
    expected = expected[:place] + " // new" + expected[place:]
    expected = expected.replace("\n", "\r\n") if "\r" in text else expected
    assert document.encoded(raw, "a") == expected.encode(encoding)


@given(st.binary(max_size=300))
def test_any_bytes_are_read_and_written_unchanged(data: bytes):
    document = TextFile(data)
    assert document.encoded(document.raw, "a") == data


@given(
    st.lists(st.sampled_from([b"\xff", b"\xfe", b"\0", b"a", b"\n", b"\xe4", b"\xb5\xc4", b"\x83"]))
)
def test_bytes_that_look_like_marks_and_wide_characters_are_unchanged(parts: list[bytes]):
    data = b"".join(parts)
    document = TextFile(data)
    assert document.encoded(document.raw, "a") == data


@given(
    st.lists(st.sampled_from(["a", "\n", "\r\n", "\r", "é", "日"]), max_size=30),
    st.data(),
    st.sampled_from(["", "x", "y\nz", "\n"]),
)
def test_an_edit_changes_its_span_only(parts: list[str], data: st.DataObject, new: str):
    raw = "".join(parts)
    document = TextFile(raw.encode())
    start = data.draw(st.integers(0, len(document.text)))
    stop = data.draw(st.integers(start, len(document.text)))
    after = document.replaced([(start, stop, new)])
    before = _kept(raw, start, "\r\n")
    behind = _kept(raw[::-1], len(document.text) - stop, "\n\r")
    assert after.startswith(raw[:before])
    assert after.endswith(raw[len(raw) - behind :])


def _kept(raw: str, count: int, pair: str) -> int:
    """Return how many characters on disk the first `count` of the text are; a line end counts once."""
    place = 0
    for _ in range(count):
        place += 2 if raw.startswith(pair, place) else 1
    return place


def test_wide_text_is_known_by_its_beginning_wherever_that_ends():
    text = "a " + "\U0001f601b " * 4000
    for shift in range(4):
        assert TextFile(("x" * shift + text).encode("utf-16-le")).encoding == "utf-16-le"
    data = ("x " * 3000).encode("utf-16-le") + b"\0\xdc" + ("y " * 3000).encode("utf-16-le")
    assert is_binary(data[6000:])  # half a character within
    assert TextFile(data[6000:]).encoding == "latin-1"


def test_stray_bytes_leave_a_text_in_utf_8_what_it_is():
    data = "café, naïve, 日本\n".encode() + b"bad \xff\n"
    document = TextFile(data)
    assert document.encoding == "utf-8"
    assert document.encoded(document.raw, "a") == data


def test_text_that_the_encoding_has_not_is_refused():
    document = TextFile("grün\n".encode("latin-1"))
    with pytest.raises(ToolError, match="latin-1, which has no '日'; nothing was written"):
        document.encoded("日", "a")
    assert not document.keeps("日")


def test_what_would_be_read_as_something_else_is_not_kept():
    assert not TextFile(b"caf\xe9\n").keeps("Ã¼ Ã¼\n")  # as bytes that is UTF-8


@every_row(
    "data", [b"\0", b"ab\0c" * 500, b"\x01\0\x02\0" * 9, bytes(range(256)), b"\0\xd8" * 9 + b" \0"]
)
def test_other_zeros_make_a_file_binary(data: bytes):
    assert is_binary(data)


def test_a_part_of_a_file_in_another_encoding_never_fails():
    beginning = CHINESE.encode("gb18030") * 9
    assert text_of_part(b"\xff\xff\n", beginning)
    assert text_of_part(beginning[:50], beginning) == CHINESE.encode("gb18030")[:50].decode(
        "gb18030", "replace"
    )
