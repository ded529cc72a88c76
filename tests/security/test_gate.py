"""The output gate, and that no door writes in another way."""

import ast
import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rows import every_row
from ybs.security import gate
from ybs.security.gate import ask_line, drawn, put, put_json, put_over, put_utf8, safe_json

SOURCE = Path(__file__).parent.parent.parent / "src" / "ybs"
DOORS = [
    SOURCE / "cli" / "__init__.py",
    SOURCE / "repo_map" / "worker.py",
    *(
        path
        for room in ("frontends", "commands", "session")
        for path in (SOURCE / room).rglob("*.py")
    ),
]
#: What is more than reading a property of a stream, and where it may stand: the number of places.
ALLOWED = {
    ("cli/__init__.py", "sys.stdout.write"): 1,  # the version
    ("frontends/terminal/terminal.py", "self._output.write_raw"): 1,  # of what `drawn` returned
    (
        "frontends/terminal/output.py",
        "output.write_raw",
    ): 3,  # of what `is_known` knows, line ends, and a constant
    ("frontends/terminal/output.py", "self.write_raw"): 1,  # a constant
    ("frontends/terminal/output.py", "super().write"): 1,  # of what has passed the gate
    (
        "frontends/terminal/prompt/extended_keys.py",
        "self._output.write_raw",
    ): 1,  # one of two constants
    # To a pipe, to the program's terminal, and from there to the person's: their own program, which only they start.
    ("frontends/terminal/own_shell.py", "os.write"): 3,
    ("frontends/subcommands/firewall.py", "sys.stdin.buffer"): 1,
    ("repo_map/worker.py", "os.write"): 1,  # to a process of ybs's own
    ("frontends/serve/client.py", "self._writer.write"): 1,  # to the server, as JSON
    ("frontends/serve/connection.py", "self._writer.write"): 1,  # to a client, as JSON
    ("frontends/gateway/monitor.py", "self.wfile.write"): 1,  # to a client, as text for Prometheus
    ("frontends/gateway/files.py", "file.write"): 1,  # a file that came with a message
    ("commands/learn.py", "file.write"): 1,  # the file of a command
    ("frontends/acp/command.py", "writer.write"): 1,  # to an agent, as JSON
    ("frontends/acp/command.py", "self._writer.write"): 1,  # to an editor, as JSON
    ("session/unsaved.py", "editor.write"): 1,  # a file, by way of the editor
    ("frontends/web/board.py", "input"): 1,  # tokens, of a count
    # A flag of the command line.
    ("cli/__init__.py", "arguments.write"): 1,
    ("frontends/subcommands/learn.py", "arguments.write"): 1,
    (
        "frontends/subcommands/sandbox.py",
        "terminal.write",
    ): 1,  # the output of a command that the person typed
}
STREAMS = {"stdout", "stderr"}
WRITING = {"write", "writelines", "write_raw", "buffer", "__stdout__", "__stderr__"}
NAMES = {"print", "input", "Console", "print_formatted_text", "print_container"}
PROPERTIES = {"encoding", "isatty", "fileno", "flush"}
#: Functions that take a stream: those of the gate, and those that ask it something.
TAKERS = {"put", "put_over", "put_json", "put_utf8", "signs_for", "from_pty", "is_terminal"}


def writers_of(source: str) -> Iterator[str]:
    """Yield every expression of a module that may write to a stream past the gate."""
    nodes = list(ast.walk(ast.parse(source)))
    parents = {}
    if "sys.std" in source:
        parents = {child: node for node in nodes for child in ast.iter_child_nodes(node)}
    for node in nodes:
        if isinstance(node, ast.Name) and node.id in NAMES:
            yield node.id
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names if alias.name in NAMES)
        elif isinstance(node, ast.Attribute) and node.attr in WRITING:
            yield ast.unparse(node)
        elif (
            isinstance(node, ast.Attribute)
            and node.attr in STREAMS
            and ast.unparse(node.value) == "sys"
        ):
            parent = parents[node]
            is_property = isinstance(parent, ast.Attribute) and parent.attr in PROPERTIES | WRITING
            is_given = (
                isinstance(parent, ast.Call)
                and ast.unparse(parent.func).rpartition(".")[2] in TAKERS
            )
            if not (is_property or is_given):
                yield ast.unparse(parent)


@pytest.mark.integration
def test_no_door_writes_past_the_gate():
    found: dict[tuple[str, str], int] = {}
    for path in DOORS:
        for writer in writers_of(path.read_text("utf-8")):
            place = (str(path.relative_to(SOURCE)), writer)
            if place == ("frontends/terminal/drawing/markdown.py", "Console"):
                continue
            found[place] = found.get(place, 0) + 1
    assert found == ALLOWED


def test_markdown_is_drawn_into_a_string():
    text = (SOURCE / "frontends" / "terminal" / "drawing" / "markdown.py").read_text("utf-8")
    assert text.count("= Console(\n        file=file,") == text.count("Console(") == 1
    assert "file = StringIO()" in text
    assert "self.hyperlinks = False" in text


def test_what_the_terminal_writes_raw_has_passed_the_gate():
    text = (SOURCE / "frontends" / "terminal" / "terminal.py").read_text("utf-8")
    assert text.count("write_raw(self._fit(") == text.count("write_raw(") == 1
    assert "fit_encoding(drawn(text)" in text
    assert "GatedOutput.from_pty(" in text
    assert "Vt100_Output" not in text


@every_row(
    "source",
    [
        "print('x')",
        "show = print",
        "sys.stdout.write('x')",
        "sys.stderr.buffer.write(b'x')",
        "out = sys.stdout",
        "os.write(1, b'x')",
        "sys.__stdout__.write('x')",
        "from rich import print",
        "traceback.print_exc(file=sys.stderr)",
        "answer = input(model_name)",
    ],
)
def test_the_check_sees_every_way_around(source: str):
    assert list(writers_of(source))


class Stream(io.TextIOWrapper):
    """A stream whose bytes can be looked at."""

    def __init__(self, encoding: str = "utf-8") -> None:
        self.bytes = io.BytesIO()
        super().__init__(self.bytes, encoding=encoding)


def test_text_is_written_safe_and_in_the_streams_encoding():
    stream = Stream()
    put("a\x1b]52;c;x\x07\udc80 ü", stream)
    assert stream.bytes.getvalue().decode() == "a␛]52;c;x␇<U+DC80> ü\n"
    stream = Stream()
    put("a\x1b[2J", stream, end="", is_dim=True)
    assert stream.bytes.getvalue().decode() == "\x1b[2ma␛[2J\x1b[22m"
    stream = Stream("ascii")
    put("ü\x1b", stream, end="")
    assert stream.bytes.getvalue() == b"??"
    bare = io.StringIO()  # has no encoding
    put("ü", bare)
    assert bare.getvalue() == "ü\n"


def test_a_line_that_is_written_over_stays_one_line():
    stream = Stream()
    put_over("fetching\n\x1b[2Jmodel", stream)
    assert stream.bytes.getvalue() == "\r\x1b[Kfetching ␛[2Jmodel".encode()
    stream = Stream()
    put_over("50%", stream, columns=5)
    assert stream.bytes.getvalue() == b"\r50%  "


def test_pipes_get_utf8_whatever_the_terminal_speaks():
    stream = Stream("ascii")
    put_utf8("ü\x9b\n", stream)
    put_json('"ü\x9b"\n'.encode(), stream)
    assert stream.bytes.getvalue().decode() == 'ü\\x9b\n"ü\\u009b"\n'


def test_a_question_on_a_plain_terminal_is_safe(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("q\n"))
    assert ask_line("Model [\x1b[2J]: ") == "q"
    assert capsys.readouterr().out == "Model [␛[2J]: "


def test_clean_json_is_the_same_object():
    for data in (b'{"a": "b"}', '{"a": "ü"}'.encode(), '{"a": "ü 👩‍👩‍👧"}'.encode()):
        assert safe_json(data) == data
    assert safe_json(data := b'{"a": 1}') is data


@pytest.mark.integration
@given(
    st.recursive(
        st.text(max_size=9),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    )
)
def test_json_keeps_its_meaning_and_holds_no_control(value: object):
    line = msgspec.json.encode(value)
    for data in (line, msgspec.json.format(line, indent=2)):
        safe = safe_json(data).decode()
        assert json.loads(safe) == value
        assert not {character for character in safe if ord(character) < 32 and character != "\n"}
        assert not {character for character in safe if 0x7F <= ord(character) < 0xA0}


@every_row(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("\x1b[1;36mown\x1b[0m\x1b[m", "\x1b[1;36mown\x1b[0m\x1b[m"),
        ("\x1b[1mown\x1b[22m \x1b[2J", "\x1b[1mown\x1b[22m ␛[2J"),
        ("\x1b[8mconcealed\x1b[28m", "concealed\x1b[28m"),
        ("\x1b[0;8mconcealed", "concealed"),
        ("a\x1b[3Ab\rc\x1b]0;t\x07", "a␛[3Ab␍c␛]0;t␇"),
        ("\x1b[2mمی\u200c\x1b[22mخواهم", "\x1b[2mمی\u200c\x1b[22mخواهم"),
    ],
)
def test_of_what_is_drawn_only_ybs_own_attributes_act(text: str, shown: str):
    assert drawn(text) == shown


def test_an_error_that_nothing_caught_acts_on_no_terminal(capsys):
    gate.put_crash(RuntimeError, RuntimeError("\x1b]52;c;ZXZpbA==\x07 and \x1b[2J"), None)
    said = capsys.readouterr().err
    assert "RuntimeError: " in said
    assert "\x1b" not in said
    assert "\x07" not in said


def test_a_crash_with_nowhere_to_write_is_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    stream.close()
    monkeypatch.setattr(sys, "stderr", stream)
    gate.put_crash(ValueError, ValueError("x"), None)


@pytest.mark.integration
def test_the_command_itself_shows_a_crash_through_the_gate() -> None:
    code = (
        "import sys\nfrom ybs import cli\n"
        "def crash(words): raise RuntimeError('\\x1b[2J')\n"
        "cli.answer = crash\nsys.argv = ['ybs', 'x']\ncli.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "RuntimeError" in done.stderr
    assert "\x1b" not in done.stderr
