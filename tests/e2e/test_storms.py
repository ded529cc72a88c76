"""More than anybody would do to a terminal: storms of sizes, text, output and keys; nothing is lost and nothing hangs."""

import os
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest
from lab import Lab, Row
from terminal_memory import measure
from typist import PROMPT, Typist, paced

from hostile_git import lay_out
from hostile_text import ACTING, HOSTILE, OWN, acting_in, sound
from screen import YBS, Screen, Tmux
from scripted import ServerProcess
from scripted.faults import HttpError
from serving import serving
from ybs.testing.script import (
    answer,
    broken_call,
    call,
    thought,
)

pytestmark = pytest.mark.slow
LINES = 300
SENTENCE = "the cart and its coupons are added up once more, "
MANY = 1_000_000


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Give the test a pile of what has to be closed after it."""
    with ExitStack() as stack:
        yield stack


def typing(stack: ExitStack, project: Path, *words: str) -> Typist:
    """Start ybs on a terminal that nobody draws: for more text than an emulator can take."""
    argv = [YBS, "-m", "scripted", *words]
    typist = stack.enter_context(Typist(argv, project, dict(os.environ)))
    typist.waits_for(PROMPT)
    typist.rest(0.5)
    return typist


def read_until(typist: Typist, end: bytes, mark: bytes, seconds: float) -> set[bytes]:
    """Read until the end comes; return the marks that were seen on the way."""
    ends_at, last = time.monotonic() + seconds, b""
    seen: set[bytes] = set()
    while end not in last:
        assert time.monotonic() < ends_at, typist.seen[-2000:]
        last = last[-200:] + typist.read(1)
        seen.update(re.findall(mark, last))
    return seen


def test_sixty_resizes_lose_and_double_no_line(stack: ExitStack, project: Path) -> None:
    url = stack.enter_context(paced(f"lines-150-{LINES}"))
    command = (YBS, "--endpoint", url, "-m", "scripted", "--no-sandbox")
    screen = stack.enter_context(Tmux(*command, columns=200, rows=50))
    screen.sees(r"› *\n")
    screen.keys("go\r")
    screen.sees("line 0001 ok")
    storm(screen)
    assert " out " not in screen.text, "the answer ended before the storm"
    screen.sees(r" out ")
    text = screen.text
    lines = [f"line {number:04d} ok" for number in range(LINES)]
    assert [line for line in lines if text.count(line) != 1] == [], text
    assert text.count("› go\n") == 1
    screen.keys("still here")
    screen.sees("› still here")


def test_sixty_resizes_while_a_question_waits(stack: ExitStack, project: Path) -> None:
    content = "".join(f"row {number:02d} ok\n" for number in range(30))
    server = stack.enter_context(
        serving([call("write_file", path="made", content=content), "Yes."])
    )
    command = (YBS, "--endpoint", server.url, "-m", "scripted", "--no-sandbox", "go")
    screen = stack.enter_context(Tmux(*command, columns=200, rows=50))
    screen.sees(r"\[y\] yes")
    storm(screen)
    text = screen.sees(r"\[y\] yes(.|\n)*───")
    assert [row for row in content.split("\n")[:-1] if text.count(row) != 1] == [], text
    for _ in range(20):  # as long as the question is drawn anew, keys may come too early for it
        screen.keys("y")
        time.sleep(0.5)
        if "[y] yes   [n] no" not in screen.text:
            break
    screen.sees(r"Yes\.(.|\n)* out ")
    assert (project / "made").read_text() == content
    assert screen.text.count("[y] yes\n") == 1, screen.text


def storm(screen: Tmux) -> None:
    """Resize from 200 x 50 down to 20 x 5 and back, a little faster than a hand does."""
    for step in range(60):
        part = abs(30 - step) / 30
        screen.resize(20 + round(180 * part), 5 + round(45 * part))
        assert screen.text
    screen.resize(200, 50)


@pytest.mark.scale
def test_an_answer_of_ten_megabytes(stack: ExitStack, project: Path, tmp_path: Path) -> None:
    marks = [f"MARK{number:05d}" for number in range(10_000)]
    text = "".join(f"{mark} {SENTENCE * 20}\n\n" for mark in marks)
    script = [answer(text, chunk_size=400)] * 2
    server = stack.enter_context(ServerProcess("openai", script, tmp_path))
    typist = typing(stack, project, *large(server.url, tmp_path))
    typist.type("tell me all\r")
    seen = read_until(typist, b" out ", rb"MARK\d{5}", 90)
    assert [mark for mark in marks if mark.encode() not in seen] == []
    assert typist.memory_mb("VmHWM") < 150
    assert paragraphs_until_stopped(typist) < len(marks) / 10


def paragraphs_until_stopped(typist: Typist) -> int:
    """Have another answer begin; return how many paragraphs of it are still shown after Esc."""
    typist.type("again\r")
    typist.waits_for(b"MARK")
    typist.rest(0.5)
    before = last_mark(typist)
    typist.type("\x1b")
    typist.waits_for(b"interrupted", 60)
    return last_mark(typist) - before


def last_mark(typist: Typist) -> int:
    return int(re.findall(rb"MARK(\d{5})", typist.seen)[-1])


def large(url: str, folder: Path) -> tuple[str, ...]:
    """Configure a provider that may say ten megabytes; write the options that choose it."""
    provider = {"endpoint": url, "window": 8_000_000}
    config = {"llm": {"max_tokens": 400_000}, "providers": {"large": provider}}
    (folder / "large.json").write_bytes(msgspec.json.encode(config))
    return ("-c", str(folder / "large.json"), "-p", "large")


@pytest.mark.parametrize("is_typed", [True, False], ids=["typed", "called"])
def test_a_million_lines_of_output(is_typed: bool, stack: ExitStack, project: Path) -> None:
    script = ["Seen."] if is_typed else [call("run_shell", command=f"seq {MANY}"), "Seen."]
    server = stack.enter_context(serving(script))
    typist = typing(
        stack, project, "--endpoint", server.url, "--no-sandbox", "--allow", "run_shell(seq *)"
    )
    before_mb = typist.memory_mb()
    typist.type(f"!seq {MANY}\r" if is_typed else "count\r")
    read_until(typist, b" out ", b"Seen", 60)
    seen = typist.seen.decode(errors="replace")
    assert typist.memory_mb("VmHWM") - before_mb < 30
    assert str(MANY) in seen
    body = str(server.requests[-1].body)
    assert "1\\n2\\n3" in body.replace("\\\\n", "\\n")
    assert f"{MANY - 1}" in body
    assert "Seen." in seen


def test_a_thousand_keys_at_once_keep_their_order(stack: ExitStack, project: Path) -> None:
    server = stack.enter_context(serving(["ok"]))
    screen = stack.enter_context(Screen("--endpoint", server.url, "-m", "scripted"))
    screen.sees(r"› *\n")
    words = " ".join(f"{number:04d}" for number in range(200))[:1000]
    screen.keys(words)
    screen.sees(words[-4:])
    screen.keys("\r")
    screen.sees("ok\n(.|\n)* out ")
    assert server.requests[0].body["messages"][-1]["content"].endswith(words)


def test_two_hundred_lines_wait_in_their_order(stack: ExitStack, project: Path) -> None:
    os.mkfifo(project / "gate")
    server = stack.enter_context(serving([call("run_shell", command="cat gate"), *["ok"] * 201]))
    words = ("--no-sandbox", "--allow", "run_shell(cat *)")
    screen = stack.enter_context(Screen("--endpoint", server.url, "-m", "scripted", *words, "go"))
    screen.sees("shell +cat gate")
    lines = [f"line {number:03d}" for number in range(200)]
    screen.keys("".join(f"{line}\t" for line in lines))
    screen.sees(lines[-1])
    (project / "gate").write_text("open")
    screen.sees(f"› {lines[-1]}\n+ +ok\n(.|\n)* out ", 60)
    messages = server.requests[-1].body["messages"]
    said = [str(m["content"]) for m in messages if m["role"] == "user"]
    assert [text[-8:] for text in said[1:]] == lines


def test_what_is_hostile_acts_nowhere(stack: ExitStack, project: Path) -> None:
    hostile = sound(HOSTILE).replace("\0", "")  # which no command and no path can have
    lay_out(project, f"ref: refs/heads/b{ACTING['title']}\n")
    script: list[Any] = [
        answer(thought(hostile), hostile, call(hostile, path=hostile), broken_call(hostile, hostile)),
        answer(thought(hostile), call("write_file", path="made", content=hostile)),
        answer(call("run_shell", command=f"echo {hostile}")),
        "one",
        HttpError(status=400, message=hostile, kind=hostile),
        HttpError(status=401, body=hostile),
    ]  # fmt: skip
    server = stack.enter_context(serving(script))
    words = ("--endpoint", server.url, "-m", f"m{hostile}", "--no-sandbox")
    screen = stack.enter_context(
        Screen(*words, columns=100, rows=40, environ={"YBS_UI__NOTIFY": "off"})
    )
    screen.sees(r"› *\n")
    screen.keys(f"\x1b[200~{hostile}\x1b[201~")
    screen.sees("73137")
    screen.keys("\r")
    for tool in ("write_file", "run_shell"):
        screen.sees(rf"{tool} wants(.|\n)*\[y\] yes")
        screen.stays()
        screen.keys("n")
    screen.sees(r" one\n(.|\n)* out ")
    screen.keys("go on\r")
    screen.sees(r"› go on\n+✗(.|\n)*› *\n")
    screen.keys("go on\r")
    screen.sees(r"› go on\n+✗(.|\n)*› go on\n+✗(.|\n)*› *\n")
    screen.keys("\x04")
    assert acting_in(screen.raw, OWN) == []
    assert screen.raw.count("73137") > 50


@pytest.mark.scale
def test_a_working_hour_of_200_turns_stays_flat() -> None:
    assert not missed() or not missed()  # the machine may be slower in the second half of one hour


def missed() -> list[Row]:
    """Return what was above its limit."""
    with Lab() as lab:
        return [row for row in measure(lab, 1) if row.limit is not None and row.value > row.limit]
