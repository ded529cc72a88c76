"""Keys that terminals tell apart when asked to."""

import asyncio
import io
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pyte
import pytest
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import DummyInput, create_pipe_input
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.output.vt100 import Vt100_Output

from rows import every_row
from screen import YBS
from ybs.frontends.terminal.prompt.extended_keys import (
    ASK,
    TAKE_BACK,
    ExtendedKeys,
    KeyParser,
    knows_extended_keys,
    read_extended,
)

ALT = Keys.Escape
#: What terminals send, and the keys that it is.
SENT = {
    # a new line, in Kitty's form, xterm's, that of old terminals, with Num Lock, on the number block
    "\x1b[13;2u": [Keys.ControlJ],
    "\x1b[13;5u": [Keys.ControlJ],
    "\x1b[13;3u": [Keys.ControlJ],
    "\x1b[27;2;13~": [Keys.ControlJ],
    "\x1b[27;5;13~": [Keys.ControlJ],
    "\x1b[13;130u": [Keys.ControlJ],
    "\x1b[57414;2u": [Keys.ControlJ],
    "\x1b\r": [Keys.ControlJ],
    # no new line
    "\r": [Keys.ControlM],
    "\x1b[57414u": [Keys.ControlM],
    "\x1b[13;65u": [Keys.ControlM],
    # what Kitty's form says in another way than of old
    "\x1b[27u": [Keys.Escape],
    "\x1b[27;129u": [Keys.Escape],
    "\x1b[9;2u": [Keys.BackTab],
    "\x1b[27;2;9~": [Keys.BackTab],
    "\x1b[9u": [Keys.ControlI],
    "\x1b[99;5u": [Keys.ControlC],
    "\x1b[27;5;99~": [Keys.ControlC],
    "\x1b[67;6u": [Keys.ControlC],
    "\x1b[99:67;6u": [Keys.ControlC],
    "\x1b[100;69u": [Keys.ControlD],
    "\x1b[98;3u": [ALT, "b"],
    "\x1b[98;33u": [ALT, "b"],
    "\x1b[97;7u": [ALT, Keys.ControlA],
    "\x1b[127u": [Keys.ControlH],
    "\x1b[127;5u": [ALT, Keys.ControlH],
    "\x1b[127;3u": [ALT, Keys.ControlH],
    "\x1b[27;5;8~": [ALT, Keys.ControlH],
    "\x1b[32;5u": [Keys.ControlAt],
    "\x1b[32;2u": [" "],
    "\x1b[45:95;6u": [Keys.ControlUnderscore],
    "\x1b[27;6;95~": [Keys.ControlUnderscore],
    "\x1b[47;5u": [Keys.ControlUnderscore],
    "\x1b[93;5u": [Keys.ControlSquareClose],
    "\x1b[46;3u": [ALT, "."],
    # Ctrl-C, Alt-B and a letter on a Cyrillic keyboard
    "\x1b[1089::99;5u": [Keys.ControlC],
    "\x1b[1080::98;3u": [ALT, "b"],
    "\x1b[1092:1060:97;2u": ["Ф"],
    # text
    "\x1b[97;65u": ["a"],
    "\x1b[97;2u": ["A"],
    "\x1b[57400u": ["1"],
    "\x1b[228u": ["ä"],
    # arrows of the number block, and of old
    "\x1b[57419u": [Keys.Up],
    "\x1b[A": [Keys.Up],
    "\x1b[1;5C": [Keys.ControlRight],
    # nothing that we have a word for
    "\x1b[57358u": [Keys.Ignore],
    "\x1b[97;9u": [Keys.Ignore],
    "\x1b[44;5u": [Keys.Ignore],
    "\x1b[9999999u": [Keys.Ignore],
    "\x1b[3u": [Keys.Ignore],
}


def read(*pieces: str) -> list[KeyPress]:
    found: list[KeyPress] = []
    parser = KeyParser(found.append)
    for piece in pieces:
        parser.feed(piece)
    parser.flush()
    return found


def test_every_form_of_a_key_is_that_key() -> None:
    wrong = {
        sent: [press.key for press in read(sent)]
        for sent, keys in SENT.items()
        if [press.key for press in read(sent)] != keys
    }
    assert wrong == {}


def test_a_key_that_arrives_in_pieces_and_beside_others_is_that_key() -> None:
    plain = {sent: keys for sent, keys in SENT.items() if ":" not in sent}
    wrong = [sent for sent, keys in plain.items() if [p.key for p in read(*sent)] != keys]
    assert wrong == []
    beside = [press.key for press in read("".join(f"x{sent}y" for sent in SENT))]
    assert beside == [key for keys in SENT.values() for key in ("x", *keys, "y")]


def test_a_character_brings_itself_and_not_its_sequence() -> None:
    assert [press.data for press in read("\x1b[97;65u\x1b[98;3u")][0::2] == ["a", "b"]


def test_a_paste_in_any_pieces_is_one_paste_and_its_sequences_are_no_keys() -> None:
    text = "one\x1b[13;2u\x1b[99;5u\x1b[20\r\n" + "x" * 50
    sent = f"a\x1b[200~{text}\x1b[201~b\r"
    for seed in range(40):
        cuts = sorted(random.Random(seed).choices(range(len(sent)), k=seed))
        pieces = [sent[a:b] for a, b in zip([0, *cuts], [*cuts, len(sent)], strict=True)]
        keys = [(press.key, press.data) for press in read(*pieces)]
        paste = (Keys.BracketedPaste, text)
        assert keys == [("a", "a"), paste, ("b", "b"), (Keys.ControlM, "\r")], seed


def test_the_end_of_a_paste_within_it_is_a_part_of_it() -> None:
    sent = "\x1b[200~one\x1b[201~!!rm\r\x1b[201~ two\x1b[201~\r"
    left = [0]
    for size in range(1, len(sent) + 1):
        found: list[KeyPress] = []
        parser = KeyParser(found.append, lambda: left[0])
        for start in range(0, len(sent), size):
            left[0] = max(0, len(sent) - start - size)
            parser.feed(sent[start : start + size])
        keys = [(press.key, press.data) for press in found]
        assert keys == [(Keys.BracketedPaste, "one!!rm\r two"), (Keys.ControlM, "\r")], size


async def test_what_comes_right_behind_a_paste_belongs_to_it() -> None:
    found: list[KeyPress] = []
    parser = KeyParser(found.append, settles_seconds=0.1)
    pieces = (
        "\x1b[200~one\x1b[201~\x15\r!!touch ra",  # nothing is pending: more pieces come later
        "n\r\x1b[201~ two",
        "\x1b[13u\x1b[5;7R\x1b[A\x1b[",  # Enter, an answer of the terminal, a key, and the beginning of
        "200~three\x1b[201~",
        "\r",
        "\x03",
    )
    for piece in pieces:
        parser.feed(piece)
        await asyncio.sleep(0.02)
    keys = [(press.key, press.data) for press in found]
    assert keys == [
        (Keys.BracketedPaste, "one"),
        (Keys.BracketedPaste, "\x15\r!!touch ra"),
        (Keys.BracketedPaste, "n\r two"),
        (Keys.CPRResponse, "\x1b[5;7R"),
        (Keys.BracketedPaste, "three"),
        (Keys.ControlM, "\r"),
        (Keys.ControlC, "\x03"),
    ]
    await asyncio.sleep(0.2)
    found.clear()
    parser.feed("x\r")
    assert [press.key for press in found] == ["x", Keys.ControlM]


async def test_the_time_behind_a_paste_begins_anew_after_work_that_took_long() -> None:
    found: list[KeyPress] = []
    parser = KeyParser(found.append, settles_seconds=0.1)
    parser.feed("\x1b[200~one\x1b[201~")
    time.sleep(0.2)  # noqa: ASYNC251 - the work on a long paste
    await asyncio.sleep(0.05)
    parser.feed("x\r")
    assert [press.key for press in found] == [Keys.BracketedPaste, Keys.BracketedPaste]
    parser.reset()
    parser.feed("x")
    assert found[-1].key == "x"


def test_a_paste_of_megabytes_is_read_within_the_time_limit() -> None:
    text = "x" * 1023 + "\n"
    pieces = ["\x1b[200~", *[text] * 5000, "\x1b[201~"]
    found: list[KeyPress] = []
    parser = KeyParser(found.append)
    for piece in pieces:
        parser.feed(piece)
    assert [len(press.data) for press in found] == [5000 * 1024]
    assert parser._pieces == []  # what was joined is let go


def test_an_input_learns_the_keys_and_what_is_no_terminal_is_let_be() -> None:
    with create_pipe_input() as pipe:
        read_extended(pipe)
        pipe.send_text("\x1b[13;2u")
        assert [press.key for press in pipe.read_keys()] == [Keys.ControlJ]
    read_extended(DummyInput())


@every_row(
    ("environ", "is_asked"),
    [
        ({"TERM": "xterm-256color"}, True),
        ({"TERM": "xterm-kitty"}, True),
        ({"TERM": "tmux-256color"}, True),
        ({"TERM": "screen-256color", "TMUX": "/tmp/tmux-0/default,1,0"}, True),
        ({"TERM": "screen-256color"}, False),
        ({"TERM": "linux"}, False),
        ({"TERM": "dumb"}, False),
        ({"TERM": "vt100"}, False),
        ({}, False),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "Apple_Terminal"}, False),
    ],
)
def test_only_terminals_that_may_know_it_are_asked(
    environ: dict[str, str], *, is_asked: bool
) -> None:
    file = io.StringIO()
    output = Vt100_Output(file, lambda: Size(24, 80), term="xterm", enable_cpr=False)
    keys = ExtendedKeys(output, environ)
    with keys:
        with keys.away():
            file.write("editor")
        file.write("back")
    assert knows_extended_keys(environ) == is_asked
    whole = f"{ASK}{TAKE_BACK}editor{ASK}back{TAKE_BACK}"
    assert file.getvalue() == (whole if is_asked else "editorback")


def test_it_is_taken_back_after_a_crash_too() -> None:
    file = io.StringIO()
    output = Vt100_Output(file, lambda: Size(24, 80), term="xterm", enable_cpr=False)
    with pytest.raises(ZeroDivisionError), ExtendedKeys(output, {"TERM": "xterm"}):
        raise ZeroDivisionError
    assert file.getvalue() == ASK + TAKE_BACK


@every_row("misread", [False, True])
def test_a_terminal_that_does_not_know_the_question_shows_nothing_of_it(*, misread: bool) -> None:
    """pyte leaves out the sign `>` and `<`: it reads a colour. Others read `CSI u` as a jump of the cursor."""
    screen = pyte.Screen(20, 3)
    stream = pyte.Stream(screen)
    stream.feed("one\r\ntwo\x1b[1;1H\x1b7\x1b[2;4H")
    for sequence in (ASK, TAKE_BACK):
        jumping = sequence.replace("\x1b[>5u", "\x1b[1;1H").replace("\x1b[<u", "\x1b[1;1H")
        stream.feed(jumping.replace("\x1b[>", "\x1b[") if misread else sequence)
        stream.feed("x")
    assert screen.display[:2] == ["one".ljust(20), "twoxx".ljust(20)]
    assert not screen.buffer[1][3].underscore
    assert not screen.buffer[1][4].bold


@pytest.mark.slow
def test_in_tmux_shift_enter_is_a_new_line_and_a_large_paste_is_folded(tmp_path: Path) -> None:
    tmux = ["tmux", "-L", f"ybs-{os.getpid()}", "-f", "/dev/null"]

    def run(*words: str) -> str:
        return subprocess.run([*tmux, *words], check=True, capture_output=True, text=True).stdout

    def sees(text: str) -> None:
        ends_at = time.monotonic() + 8
        while text not in (shown := run("capture-pane", "-p")):
            assert time.monotonic() < ends_at, shown
            time.sleep(0.05)

    file = tmp_path / "large"
    file.write_text(("x" * 79 + "\n") * 60_000)
    environ = {"HOME": str(tmp_path), "OPENAI_API_KEY": "x"}
    given = [f"-e{name}={value}" for name, value in environ.items()]
    start = [YBS, "--provider", "openai", "--model", "m", "--endpoint", "http://127.0.0.1:9/v1"]
    subprocess.run(
        [*tmux, "new-session", "-d", "-x", "80", "-y", "24", *given, "sleep 60"], check=True
    )
    try:
        run("set", "-g", "extended-keys", "on")
        run("respawn-pane", "-k", *given, *start)
        sees("›")
        run("send-keys", "one", "S-Enter", "two", "C-Enter")
        sees("› one\n  two\n")
        run("load-buffer", str(file))
        run("paste-buffer", "-p")
        sees("  [pasted 60,000 lines #1]")
        run("send-keys", "M-Enter", "last")
        sees("#1]\n  last")
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)


@pytest.mark.slow
def test_no_character_and_no_modifier_makes_what_is_no_key() -> None:
    """Every code point whose capital is longer, ends of ranges, and codes beyond Unicode, with all modifiers."""
    edges = [*range(0x300), 0x1C3, 0xD7FF, 0xD800, 0xDFFF, 0xE000, 0xF8FF, 0xF900, 0x10FFFF]
    longer = [code for code in range(sys.maxunicode + 1) if len(chr(code).upper()) != 1]
    pressed: list[KeyPress] = []
    parser = KeyParser(pressed.append)
    wrong: list[str] = []
    for code in [*edges, *longer, 0x110000, 9_999_999]:
        for modifiers in ("", ";0", ";2", ";3", ";4", ";5", ";6", ";8", ";33", ";130", ";9999"):
            pressed.clear()
            sequence = f"\x1b[{code}{modifiers}u"
            try:
                parser.feed(sequence)
                parser.flush()
            except (AssertionError, ValueError, TypeError) as error:
                wrong.append(f"{sequence!r}: {error!r}")
                parser = KeyParser(pressed.append)
                continue
            keys = [press for press in pressed if not isinstance(press.key, Keys)]
            wrong += [f"{sequence!r}: {press}" for press in keys if not is_typed(press.key)]
    assert wrong == []


def is_typed(key: str) -> bool:
    return len(key) == 1 and not 0xD800 <= ord(key) < 0xE000 and not 0x7F <= ord(key) < 0xA0
