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
        b': keep-alive\n\nevent: x\nid: 1\nretry: 5\ndata: {"a": "\xc3\xbc"}\n\n:\n\ndata: {"a": 2}\n\n',
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
    assert read(b'data: {"a": "\\ud83d"}\n\n') == [{"a": "?"}]


def test_a_frame_without_end_is_bounded():
    reader = FrameReader()
    with pytest.raises(BrokenFrame) as caught:
        [list(reader.feed(b"x" * 1_000_000)) for _ in range(20)]
    assert b"16 MB" in caught.value.sample


def test_an_empty_body_has_no_frames():
    assert read(b"") == read(b"\n\n\n") == []
