"""What the model reads of a command that the person typed."""

import re

import pytest

from ybs.core.messages import UserMessage
from ybs.session.injection import injection, spoken, to_type


def numbers(first: int, last: int) -> str:
    return "".join(f"{number}\n" for number in range(first, last))


def test_of_output_that_was_cut_before_all_that_is_missing_is_told() -> None:
    said = f"{numbers(1, 2001)}[... 9,500 bytes (1,900 lines) left out ...]\n{numbers(3901, 6001)}"
    text = spoken({"stdout": said, "exit_code": 0, "timed_out": False}, 10_000)
    (note,) = re.findall(r"\[\.\.\. ([\d,]+) bytes \(([\d,]+) lines\) left out \.\.\.\]", text)
    size, lines = (int(each.replace(",", "")) for each in note)
    kept = [line for line in text.splitlines() if line.isdigit()]
    assert kept[0] == "1"
    assert kept[-1] == "6000"
    assert lines == 6000 - len(kept)
    assert size == len(numbers(1, 6001)) - sum(len(line) + 1 for line in kept)
    assert len(text) < 10_100


def test_of_output_that_is_whole_the_middle_is_cut_once() -> None:
    text = spoken({"stdout": numbers(1, 4001), "exit_code": 0, "timed_out": False}, 10_000)
    assert text.count("left out") == 1
    short = spoken({"stdout": "a\n", "stderr": "b", "exit_code": 1, "timed_out": False}, 10_000)
    assert short == "Exit code: 1\n\nOutput:\na\n\nStderr:\nb"


@pytest.mark.parametrize(
    ("command", "line"), [("make", "!make"), ("!pip install x", "! !pip install x"), ("", "!")]
)
def test_a_command_of_the_sandbox_comes_back_as_one_whatever_it_begins_with(
    command: str, line: str
) -> None:
    message = UserMessage.of(injection(command, "Exit code: 0"), origin="shell")
    assert to_type(message) == line
