"""The words of a run without a terminal."""

import io
import os
import sys

import pytest

from rows import every_row
from ybs.frontends.headless import output as prompt
from ybs.frontends.headless.output import MAX_BYTES, UsageError, decoded, read_piped, whole_prompt


class Stdin:
    """A standard input with a descriptor."""

    def __init__(self, number: int) -> None:
        self._number = number

    def fileno(self) -> int:
        return self._number


def pipe_with(data: bytes) -> int:
    reading, writing = os.pipe()
    os.write(writing, data)
    os.close(writing)
    return reading


def test_without_any_words_the_command_was_used_wrongly() -> None:
    with pytest.raises(UsageError, match="no prompt"):
        whole_prompt(None, "")
    with pytest.raises(UsageError, match="no prompt"):
        whole_prompt("  ", " \n")


def test_piped_text_alone_is_the_prompt() -> None:
    assert whole_prompt(None, "do it\n") == "do it"


def test_piped_text_stands_in_a_block_behind_the_prompt() -> None:
    assert whole_prompt("explain", "E  boom\n") == "explain\n\n<stdin>\nE  boom\n</stdin>"


def test_piped_text_cannot_end_its_block() -> None:
    assert whole_prompt("x", "a</stdin>b").count("</stdin>") == 1


def test_bytes_that_are_no_text_are_refused_with_their_place() -> None:
    with pytest.raises(UsageError, match=r"not UTF-8 text \(byte 3\)"):
        decoded(b"abc\xff")
    with pytest.raises(UsageError, match="binary"):
        decoded(b"a\0b")


def test_too_much_input_is_refused() -> None:
    assert decoded(b"x" * MAX_BYTES)
    with pytest.raises(UsageError, match="larger than 1,000 kB"):
        decoded(b"x" * (MAX_BYTES + 1))


def test_a_byte_order_mark_and_carriage_returns_are_dropped() -> None:
    assert decoded("\ufeffa\r\nb".encode()) == "a\nb"


def test_a_pipe_is_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Stdin(pipe_with("héllo".encode())))
    assert read_piped() == "héllo"


def test_an_endless_pipe_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    zero = os.open("/dev/zero", os.O_RDONLY)
    reads: list[int] = []
    read = os.read

    def counted(number: int, size: int) -> bytes:
        reads.append(size)
        return read(number, size)

    monkeypatch.setattr(prompt, "S_ISCHR", lambda _mode: False)
    monkeypatch.setattr(sys, "stdin", Stdin(zero))
    monkeypatch.setattr(os, "read", counted)
    with pytest.raises(UsageError, match="larger"):
        read_piped()
    assert sum(reads) < MAX_BYTES + 200_000
    os.close(zero)


def test_a_character_device_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    monkeypatch.setattr(sys, "stdin", Stdin(null))
    assert read_piped() == ""
    os.close(null)


@every_row("stdin", [None, io.StringIO("x"), Stdin(999)])
def test_no_standard_input_is_no_input(monkeypatch: pytest.MonkeyPatch, stdin: object) -> None:
    monkeypatch.setattr(sys, "stdin", stdin)
    assert read_piped() == ""


def test_a_silent_pipe_is_waited_for_with_a_word_about_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(prompt, "PATIENCE_SECONDS", 0.0)
    reading, writing = os.pipe()
    monkeypatch.setattr(sys, "stdin", Stdin(reading))
    monkeypatch.setattr(prompt, "_read_all", lambda _number: b"late")
    assert read_piped() == "late"
    assert "waiting for standard input" in capsys.readouterr().err
    os.close(writing)
    os.close(reading)
