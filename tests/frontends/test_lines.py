"""Lines of the protocol: however they are cut on the way, and however long."""

from rows import every_row
from ybs.frontends.json_rpc import LineReader


@every_row(
    ("pieces", "lines"),
    [
        ([b"one\ntwo\nth", b"ree", b"\n"], [b"one", b"two", b"three"]),
        ([b"", b"\n", b"\n\n"], [b"", b"", b""]),
        ([b"12345678\n123456789\n1\n"], [b"12345678", None, b"1"]),
        ([b"1234", b"56789", b"0", b"\nok\n"], [None, b"ok"]),
        ([b"no end"], []),
    ],
)
def test_lines_are_put_together_and_one_that_is_too_long_is_dropped(pieces, lines):
    cut = LineReader(most_bytes=8)
    assert [line for piece in pieces for line in cut.feed(piece)] == lines


def test_nothing_is_kept_of_a_line_that_is_too_long() -> None:
    cut = LineReader(most_bytes=8)
    for _ in range(1_000):
        assert list(cut.feed(b"x" * 100)) == []
    assert vars(cut)["_pieces"] == []
