"""A question outside of a chat."""

import asyncio
import os
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from ybs.core.messages import ToolCall
from ybs.core.ports import Preview, Question
from ybs.frontends.terminal.questions.late import ask
from ybs.session.questions import NO_REASON

CALL = ToolCall(id="1", name="write_file", arguments=Raw(b'{"path":"a"}'))
QUESTION = Question(
    call=CALL,
    effect="write",
    preview=Preview(title="Create a (+1 -0)", body="+x\x1b[2J"),
    warnings=("odd \x07",),
)


@pytest.fixture
def keyboard(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Put a pipe in the place of standard input; return the end that is written to."""
    reading, writing = os.pipe()
    with os.fdopen(reading) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        monkeypatch.setattr("ybs.frontends.terminal.plain.line_input.GUARD_SECONDS", 0.0)
        yield writing


@pytest.mark.integration
@pytest.mark.parametrize(
    ("typed", "is_allowed", "reason"),
    [
        (b"yes\n", True, ""),
        (b"y\n", True, ""),
        (b"always\n", False, NO_REASON),
        (b"\n", False, NO_REASON),
        (b"no because it is late\n", False, "it is late"),
        (b"", False, NO_REASON),
    ],
)
async def test_only_a_clear_yes_is_one(
    typed: bytes,
    is_allowed: bool,
    reason: str,
    keyboard: int,
    project: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:
    os.write(keyboard, b"yes\n")  # typed before the question: no answer
    asking = asyncio.ensure_future(ask(QUESTION, ""))
    await asyncio.sleep(0)  # now it is asked
    os.write(keyboard, typed)
    os.close(keyboard)
    answer = await asking
    assert (answer.is_allowed, answer.reason, answer.is_for_session) == (is_allowed, reason, False)
    out, err = capsys.readouterr()
    assert out == "", "standard output is for the result"
    assert "write_file wants to create a (+1 -0)" in err
    assert "+x␛[2J" in err
    assert "Warning: odd ␇" in err
    assert err.endswith("Answer yes, no or no because ...: ")


async def test_a_command_is_asked_about_with_what_is_around_it(
    keyboard: int, project: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    os.close(keyboard)
    command = replace(QUESTION.call, name="run_shell")
    await ask(replace(QUESTION, call=command, effect="execute"), "reduced sandbox")
    assert ", reduced sandbox:\n" in capsys.readouterr().err


@pytest.mark.integration
async def test_the_models_own_question_takes_a_number(
    keyboard: int, project: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    asking = asyncio.ensure_future(ask(replace(QUESTION, choices=("a", "b")), ""))
    await asyncio.sleep(0)  # now it is asked
    os.write(keyboard, b"2\n")
    os.close(keyboard)
    answer = await asking
    assert (answer.is_allowed, answer.reason) == (True, "b")
    assert "the model asks:" in (shown := capsys.readouterr().err)
    assert "1: a\n2: b\n" in shown


async def test_no_line_of_what_is_asked_about_passes_for_one_of_ybs(
    keyboard: int, capsys: pytest.CaptureFixture[str]
) -> None:
    os.close(keyboard)
    await ask(
        replace(QUESTION, preview=Preview(title="x", body="rm a\nWarning: none\nAnswer yes:")), ""
    )
    assert "\n> rm a\n> Warning: none\n> Answer yes:\nWarning: odd" in capsys.readouterr().err
