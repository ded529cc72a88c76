"""What may act on the terminal: the bell, notifications of our own, the clipboard, and nothing else."""

import errno
from io import BytesIO, TextIOWrapper
from typing import Any

import pytest
from prompt_toolkit.data_structures import Size
from prompt_toolkit.output import DummyOutput

from ybs.frontends.terminal.clipboard import osc52
from ybs.frontends.terminal.output import (
    BELL,
    DONE,
    WAITS,
    GatedOutput,
    act,
    call,
    is_known,
    passed_on,
)

PLACES: tuple[dict[str, str], ...] = ({}, {"TMUX": "/t,1,0"}, {"STY": "1.pts"})


def test_what_ybs_itself_makes_is_known_bare_and_in_every_envelope() -> None:
    for environ in PLACES:
        for words in (WAITS, DONE):
            assert all(map(is_known, call("desktop", words, environ)))
            assert all(map(is_known, call("desktop", words, {**environ, "VTE_VERSION": "7600"})))
        assert is_known(osc52("ü\x1b]0;x\x07\n" * 900, environ))
    assert is_known(BELL)


def test_nothing_else_that_acts_is_written() -> None:
    bad = (
        "",
        "text",
        "\x07\x07",
        "\x1b[2J",
        "\x1b]0;title\x07",
        "\x1b]2;title\x07",
        "\x1b]2;ti\x1b[2Jtle\x1b\\",
        "\x1b[21;2t",
        "\x1b]9;ybs waits\x1b[2J\x07",
        "\x1b]9;from a model: `rm`\x07",
        "\x1b]777;notify;other;ybs is done\x07",
        "\x1b]52;c;?\x07",
        "\x1b]52;c;YQ==\x1b[2J\x07",
        "\x1b]52;p;YQ==\x07",
        "\x1b]52;c;YQ==\x07\x1b[2J",
        "\x1bPtmux;\x1b\x1b[2J\x1b\\",
        "\x1bPtmux;\x1b]52;c;YQ==\x07\x1b\\",
        "\x1bP\x1b[2J\x1b\\",
        "\x1bPx\x1b\\y\x1bPz\x1b\\",
    )
    known = [sequence for sequence in bad if is_known(sequence)]
    assert known == []
    with pytest.raises(ValueError, match="not a sequence"):
        act(DummyOutput(), "\x1b[2J")


def test_an_envelope_holds_the_whole_sequence() -> None:
    sequence = "\x1b]52;c;" + "QUJD" * 400 + "\x07"
    assert passed_on(sequence, {}) == sequence
    inner = passed_on(sequence, {"TMUX": "x"}).removeprefix("\x1bPtmux;").removesuffix("\x1b\\")
    assert inner.replace("\x1b\x1b", "\x1b") == sequence
    pieces = passed_on(sequence, {"STY": "x"}).split("\x1b\\")
    assert "".join(piece.removeprefix("\x1bP") for piece in pieces) == sequence
    assert max(map(len, pieces)) < 768


def test_a_person_is_called_as_the_setting_says() -> None:
    assert call("off", WAITS, {"TMUX": "x"}) == ()
    assert call("bell", WAITS, {"TMUX": "x"}) == ("\a",)
    assert call("desktop", WAITS, {"TERM": "xterm-kitty"}) == ("\x1b]9;ybs waits for you\x07",)
    assert call("desktop", WAITS, {"TMUX": "x"})[1:] == ("\a",)
    for environ in ({"VTE_VERSION": "7600"}, {"TERM": "rxvt-unicode"}, {"TERM": "foot"}):
        assert call("desktop", DONE, environ) == ("\x1b]777;notify;ybs;ybs is done\x07",)


class Broken(BytesIO):
    """What takes nothing any more."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def write(self, _data: Any) -> int:
        raise OSError(self.number, "broken")


def test_a_terminal_that_is_gone_ends_nothing_by_itself_and_a_full_disk_is_told() -> None:
    for number in (errno.EIO, errno.ENOSPC):
        file: Any = TextIOWrapper(Broken(number))
        output = GatedOutput(file, lambda: Size(rows=5, columns=20))
        output.write("x")
        if number == errno.EIO:
            output.flush()
        else:
            with pytest.raises(OSError, match="broken"):
                output.flush()


def test_the_screen_is_never_erased_in_one_from_where_the_cursor_stands() -> None:
    file = TextIOWrapper(BytesIO(), encoding="utf-8", write_through=True)
    output = GatedOutput(file, lambda: Size(rows=5, columns=20), term="xterm")
    output.erase_down()
    output.flush()
    assert file.buffer.getvalue().startswith(b"\x1b[K\x1b7\x1b[B\x1b[J")  # type: ignore[attr-defined]
