from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rows import every_row
from ybs.providers.wire.framing import DONE, BrokenFrame, FrameReader


def read(*chunks: bytes) -> list[dict]:
    reader = FrameReader()
    frames = [frame for chunk in chunks for frame in reader.feed(chunk)]
    return frames + list(reader.close())


@every_row(
    "body",
    [
        b'data: {"a": "\xc3\xbc"}\n\ndata: {"a": 2}\n\n',  # as it should be
        b'data:{"a": "\xc3\xbc"}\n\ndata:{"a": 2}\n\n',  # no space
        b'data: {"a": "\xc3\xbc"}\r\n\r\ndata: {"a": 2}\r\n\r\n',
        b'data: {"a": "\xc3\xbc"}\ndata: {"a": 2}\n',  # no empty line between
        b'data: {"a": "\xc3\xbc"}\n\ndata: {"a": 2}',  # no end
        b': keep-alive\n\ndata: null\n\nevent: x\nid: 1\nretry: 5\ndata: {"a": "\xc3\xbc"}\n\n:\n\ndata: {"a": 2}\n\n',
        b'data: {"a":\ndata: "\xc3\xbc"}\n\ndata: {"a": 2}\n\n',  # one frame over two data lines
        b'{"a": "\xc3\xbc"}\n{"a": 2}\n',  # JSON lines
        b'{"a": "\xc3\xbc"}{"a": 2}\n',  # two on one line
        b'{"a": "\xc3\xbc"} {"a": 2} \n',
        b'{\n  "a": "\xc3\xbc"\n}\n{"a": 2}',  # spread over lines
        b'[{"a": "\xc3\xbc"},\n{"a": 2}]\n',  # a list
        b'\xef\xbb\xbf{"a": "\xc3\xbc"}\n\n{"a": 2}\n',  # a byte order mark
    ],
)
def test_every_way_of_framing_gives_the_same_frames(body: bytes):
    assert read(body) == [{"a": "ü"}, {"a": 2}]


@given(st.lists(st.integers(0, 60), max_size=10))
def test_chunks_may_be_cut_anywhere(cuts):
    body = 'data: {"text": "größer 😀"}\n\ndata: {"n": 1}\n\ndata: [DONE]\n\n'.encode()
    points = sorted({0, *cuts, len(body)})
    chunks = [body[a:b] for a, b in pairwise(points)]
    assert read(*chunks) == [{"text": "größer 😀"}, {"n": 1}, {}]


def test_done_is_told_apart_from_an_empty_frame():
    done, empty = read(b"data: [DONE]\n\n")[0], read(b"data: {}\n\n")[0]
    assert done is DONE
    assert empty is not DONE


@every_row(
    "body",
    [
        b'data: {"a": 1\n\n',
        b'data: {"a": 1',
        b'{"a": "\xc3',
        b'data: {"a": "\xc3"}\n\n',
        b"data: oops\n\n",
        b"<!doctype html>\n<html>{}</html>",
        b"[1, 2]\n\n",
        b'"text"\n\n',
        b"[" * 100_000 + b"]\n\n",
    ],
)
def test_what_is_no_object_is_an_error(body: bytes):
    with pytest.raises(BrokenFrame):
        read(body)


def test_the_error_has_the_beginning_of_what_came():
    with pytest.raises(BrokenFrame) as caught:
        read(b"data: " + b"x" * 5000 + b"\n\n")
    assert caught.value.sample == b"x" * 600


def test_half_a_surrogate_is_replaced_not_refused():
    assert read(b'data: {"a": "\\ud83d!", "b": ["\\ude00"]}\n\n') == [
        {"a": "\ufffd!", "b": ["\ufffd"]}
    ]


def test_the_halves_of_a_character_in_two_frames_come_together():
    first, other = (
        b'data: {"a": {"b": "x\\ud83d"}, "c": "\\ud83d"}\n\n',
        b'data: {"a": {"b": "\\ude00y"}}\n\n',
    )
    assert read(first + other) == [{"a": {"b": "x"}, "c": ""}, {"a": {"b": "\U0001f600y"}}]


def test_a_half_whose_other_half_never_comes_is_left_out():
    body = b'data: {"a": "x\\ud83d"}\n\ndata: {"a": "y"}\n\ndata: {"a": "\\ude00"}\n\n'
    assert read(body)[0] == {"a": "x"}
    assert "y" in read(body)[1]["a"]


@every_row("ends", [b"\r", b"\r\n", b"\n"], ids=["cr", "crlf", "lf"])
def test_lines_may_end_as_they_like_and_begin_with_a_mark(ends: bytes):
    lines = [
        b"\xef\xbb\xbfevent: x",
        b'data: {"a": 1}',
        b"",
        b'data: {"b":',
        b"data: 2}",
        b"",
        b"data: [DONE]",
        b"",
        b"",
    ]
    body = ends.join(lines)
    for at in range(len(body)):
        reader = FrameReader()
        found = [*reader.feed(body[:at]), *reader.feed(body[at:]), *reader.close()]
        assert found == [{"a": 1}, {"b": 2}, DONE], at
    reader = FrameReader()
    found = [frame for at in range(len(body)) for frame in reader.feed(body[at : at + 1])]
    assert [*found, *reader.close()] == [{"a": 1}, {"b": 2}, DONE]


def test_a_byte_order_mark_before_data_is_no_part_of_it():
    assert read(b'\xef\xbb\xbfdata: {"a": 1}\n\n') == [{"a": 1}]


def test_a_frame_without_end_is_bounded():
    reader = FrameReader()
    with pytest.raises(BrokenFrame) as caught:
        [list(reader.feed(b"x" * 1_000_000)) for _ in range(20)]
    assert b"16 MB" in caught.value.sample


def test_an_empty_body_has_no_frames():
    assert read(b"") == read(b"\n\n\n") == []
