"""Byte order marks, and how much of a file tells what is in it."""

PROBE_BYTES = 8192
#: The longer marks come first: UTF-32's begins as UTF-16's.
MARKS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\0\0", "utf-32-le"),
    (b"\0\0\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
