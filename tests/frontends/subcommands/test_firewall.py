"""`ybs firewall scan`."""

import io
import json
import sys
from argparse import Namespace
from pathlib import Path
from random import Random

import pytest
from secrets_corpus.drawing import draw
from secrets_corpus.shapes import private_key

from hosts import this_host
from ybs.frontends.subcommands import firewall
from ybs.frontends.subcommands.firewall import scan
from ybs.session.options import Options

TOKEN = draw("ghp_[A-Za-z0-9]{36}", Random(3))


def run(*files: object, form: str = "json") -> int:
    return scan(
        Namespace(files=[str(file) for file in files], format=form),
        Options(host=this_host(), folder=Path()),
    )


def rows(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return json.loads(capsys.readouterr().out)


def test_secrets_are_listed_with_their_places(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"ä = 1\nkey: 'ü {TOKEN}' # {TOKEN}\n"
    Path("a.py").write_text(text, "utf-8")
    assert run("a.py") == 1
    found = rows(capsys)
    assert [(row["file"], row["line"], row["kind"]) for row in found] == [
        ("a.py", 2, "github-token")
    ] * 2
    line = text.splitlines()[1]
    assert {line[int(str(row["start"])) : int(str(row["end"]))] for row in found} == {TOKEN}


def test_people_get_lines_and_no_values(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.py").write_text(f"\nx = {TOKEN}")
    assert run("a.py", form="text") == 1
    assert capsys.readouterr().out == "a.py:2:5: github-token\n"


def test_a_clean_folder_is_0(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.py").write_text("x = 1\n")
    Path("empty").touch()
    assert run() == 0
    assert rows(capsys) == []
    assert run(form="text") == 0
    assert capsys.readouterr().out == "No secrets were found.\n"


def test_standard_input_is_a_dash(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TOKEN.encode())))
    assert run("-") == 1
    assert rows(capsys) == [{"file": "-", "line": 1, "kind": "github-token", "start": 0, "end": 40}]


def test_a_folder_is_walked_without_what_git_leaves_out(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("src/a.py", "built/b.py", ".git/config", ".env"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(TOKEN)
    Path(".gitignore").write_text("built/\n")
    Path("image.bin").write_bytes(b"\0\1\2" + TOKEN.encode() + b"x" * 900)
    assert run(".") == 1
    assert sorted(str(row["file"]) for row in rows(capsys)) == [".env", "src/a.py"]


def test_utf_16_is_text(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.txt").write_bytes(f"first\nsecond {TOKEN}\n".encode("utf-16"))
    assert run("a.txt") == 1
    assert [row["line"] for row in rows(capsys)] == [2]


def test_a_file_larger_than_a_part_is_read_with_overlap(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(firewall, "PART_BYTES", 1_000)
    monkeypatch.setattr(firewall, "OVERLAP_BYTES", 200)
    lines = [f"{number} " + "." * 60 for number in range(60)]
    for number in (0, 13, 14, 15, 16, 30, 59):
        lines[number] += f" {TOKEN}"
    Path("big.txt").write_text("\n".join(lines))
    assert run("big.txt") == 1
    found = rows(capsys)
    assert [row["line"] for row in found] == [1, 14, 15, 16, 17, 31, 60]
    assert {
        lines[int(str(row["line"])) - 1][int(str(row["start"])) : int(str(row["end"]))]
        for row in found
    } == {TOKEN}


def test_a_long_line_is_read_in_parts(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(firewall, "PART_BYTES", 1_000)
    monkeypatch.setattr(firewall, "OVERLAP_BYTES", 200)
    text = "first\n" + f"{'ä ' * 300} {TOKEN} " * 5
    Path("min.js").write_text(text, "utf-8")
    assert run("min.js") == 1
    found = rows(capsys)
    assert [row["line"] for row in found] == [2] * 5
    line = text.splitlines()[1]
    assert {line[int(str(row["start"])) : int(str(row["end"]))] for row in found} == {TOKEN}


def test_a_private_key_is_one_finding_at_its_first_line(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = private_key(Random(1))
    Path("id").write_text(f"x\n  {key}\n")
    assert run("id") == 1
    assert rows(capsys) == [
        {"file": "id", "line": 2, "kind": "private-key", "start": 2, "end": 2 + len(key)}
    ]


def test_what_cannot_be_read_is_2(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("a.py").write_text(TOKEN)
    assert run("a.py", "nothing-here", "/dev/null") == 2
    captured = capsys.readouterr()
    assert len(json.loads(captured.out)) == 1
    assert "nothing-here: there is no such file" in captured.err
    assert "/dev/null: it is not a regular file" in captured.err

    def refuse(self: Path, mode: str) -> None:
        raise PermissionError(f"{self} {mode}")

    monkeypatch.setattr(Path, "open", refuse)
    assert run("a.py") == 2
    assert run(".") == 0
    assert "a.py: the file cannot be read" in capsys.readouterr().err
