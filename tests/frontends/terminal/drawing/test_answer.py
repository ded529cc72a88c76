"""What the model says and thinks, while it streams and afterwards."""

import pytest
from msgspec import Raw
from paper import Page

from rows import every_row
from ybs.core.events import (
    AssistantSaid,
    Noticed,
    RequestStarted,
    TextStreamed,
    ThinkingStreamed,
    ToolCallStreamed,
)
from ybs.core.messages import ToolCall
from ybs.frontends.terminal.drawing.blocks import Block
from ybs.guards.recovery import CUT_OFF


def test_each_block_is_drawn_once_when_it_is_complete() -> None:
    page = Page()
    page.draw(TextStreamed(text="one **b"))
    assert page.text == ""
    assert page.live.blocks.open == Block(text="one **b")
    page.draw(TextStreamed(text="old**\n\ntw"))
    assert page.text == "  one bold\n"
    page.draw(TextStreamed(text="o"), AssistantSaid(content="one **bold**\n\ntwo"))
    assert page.text == "  one bold\n\n  two\n"
    assert page.live.blocks.open is None


def test_an_answer_that_was_not_streamed_is_drawn_whole() -> None:
    assert Page().draw(AssistantSaid(content="at once")) == "  at once\n"


def test_without_streaming_the_answer_comes_at_its_end() -> None:
    page = Page(stream_responses=False)
    page.draw(TextStreamed(text="one\n\ntw"))
    assert page.text == ""
    assert page.live.blocks.open is None
    assert page.draw(AssistantSaid(content="one\n\ntwo")) == "  one\n\n  two\n"


def test_an_answer_that_ended_early_says_so_once() -> None:
    call = ToolCall(id="1", name="read_file", arguments=Raw(b"{}"))
    cut_in_a_call = AssistantSaid(content="", parts=(call,), stop_reason="length")
    assert Page().draw(cut_in_a_call).count("llm.max_tokens") == 1
    page = Page()
    page.draw(AssistantSaid(content="x", stop_reason="length"))
    page.draw(Noticed(level="warning", text=CUT_OFF))  # as the guard tells it of every other one
    assert page.text.count("llm.max_tokens") == 1


def test_text_that_streams_looks_like_text_that_is_finished() -> None:
    page = Page(width=40)
    page.live.begin()
    text = "Some words that go on **boldly** over a line and `more` of it."
    page.draw(TextStreamed(text=text))
    streamed = [line.rstrip() for line in page.passing(39)[:-2]]
    page.draw(AssistantSaid(content=text))
    assert page.text.rstrip("\n").split("\n") == streamed


@pytest.mark.integration
@every_row(
    ("text", "seen"),
    [
        ("goes on **bo", "goes on bo"),
        ("goes on **bold*", "goes on bold"),
        ("goes on **", "goes on"),
        ("calls `main", "calls main"),
        ("a title\n-", "a title"),
        ("2 ** 3", "2 ** 3"),
        ("```py\nx = '**a", "  x = '**a"),
    ],
)
def test_marks_that_are_still_open_are_not_shown_while_text_streams(text: str, seen: str) -> None:
    page = Page()
    page.draw(TextStreamed(text=text))
    assert page.passing()[0].rstrip() == "  " + seen


def test_streaming_text_is_not_drawn_anew_at_every_frame() -> None:
    page = Page()
    page.draw(TextStreamed(text="one"))
    assert page.passing()[0] == "  one"
    page.draw(TextStreamed(text=" two"))
    assert page.passing()[0] == "  one"
    page.clock.now += 0.13
    assert page.passing()[0] == "  one two"


def test_a_long_open_block_takes_half_of_the_room() -> None:
    page = Page()
    page.draw(TextStreamed(text="```\n" + "\n".join(f"line {number}" for number in range(400))))
    lines = page.passing()
    assert lines[-2:] == ["    line 399", ""]
    assert len(lines) == 11


def test_thinking_passes_by_and_leaves_one_short_line() -> None:
    page = Page()
    page.draw(ThinkingStreamed(text="First I look at the cart. " * 8))
    page.live.begin()
    page.draw(ThinkingStreamed(text="Then I think."))
    page.clock.now += 2
    assert page.passing()[1].endswith("Then I think.")
    page.draw(AssistantSaid(content="done"))
    first, blank, said, _ = page.text.split("\n")
    assert first.startswith("  thought for 2.0 s: First I look at the cart.")
    assert first.endswith("…")
    assert len(first) <= 60
    assert (blank, said) == ("", "  done")


def test_a_call_being_written_shows_its_growth() -> None:
    page = Page()
    page.live.begin()
    page.draw(ToolCallStreamed(id="1", name="write_file", text="x" * 1500))
    assert page.passing() == ["⠋ preparing a call of write  ~375 tokens"]


def test_many_passing_lines_are_cut_at_the_top() -> None:
    page = Page()
    page.live.begin()
    page.draw(TextStreamed(text="\n".join(f"- line {number}" for number in range(40))))
    lines = page.passing()
    assert lines[-3:-1] == ["  - line 39", ""]
    assert len(lines) == 12
    assert page.live.lines(60, 0) == []


def test_the_view_is_asked_at_the_beginning_of_an_answer() -> None:
    page = Page()
    page.draw(TextStreamed(text="one\n\nt"))
    page.view.streams = False
    page.draw(TextStreamed(text="wo"), AssistantSaid(content="one\n\ntwo"))
    assert page.text == "  one\n\n  two\n"
    page.draw(TextStreamed(text="three\n\nf"))
    page.view.streams = True
    page.draw(TextStreamed(text="our"), AssistantSaid(content="three\n\nfour"))
    assert page.text == "  one\n\n  two\n\n  three\n\n  four\n"


def test_an_answer_that_broke_off_without_an_end_is_drawn_before_the_next() -> None:
    page = Page()
    page.live.begin()
    page.draw(TextStreamed(text="half"))
    page.live.end()
    page.draw(RequestStarted(model="m", step=1), AssistantSaid(content="whole"))
    assert page.text == "  half\n\n  whole\n"


@pytest.mark.integration
def test_the_pieces_of_long_code_follow_each_other_without_a_gap() -> None:
    page = Page()
    code = "\n".join(f"x{number} = {number}" for number in range(200))
    page.draw(TextStreamed(text=f"see\n```py\n{code}"))
    assert "x100 = 100\n" in page.text, "it is drawn as it comes"
    page.draw(AssistantSaid(content=""))
    expected = "\n".join(f"    {line}" for line in code.split("\n"))
    assert page.text == f"  see\n\n{expected}\n"


@pytest.mark.integration
def test_long_thinking_shows_its_end_and_costs_little() -> None:
    page = Page()
    page.live.begin()
    for number in range(5_000):
        page.draw(ThinkingStreamed(text=f"thought number {number} and so on. "))
    assert len(page.live.thinking) < 2_000
    assert "4999 and so on." in " ".join(" ".join(page.passing()).split())


THOUGHT = "The user greets.\n\nI greet back."


def _streamed(page: Page, text: str, size: int = 5) -> None:
    for at in range(0, len(text), size):
        page.draw(TextStreamed(text=text[at : at + size]))


def test_thinking_without_an_opening_tag_is_taken_back_while_it_can_be() -> None:
    page = Page()
    _streamed(page, "I greet back, in one line.\n</think>\n\nHello **you**.")
    assert page.text.startswith("  thought: I greet back, in one line.\n")
    page.draw(AssistantSaid(content="Hello **you**."))
    assert page.text.split("\n")[1:] == ["", "  Hello you.", ""]


def test_thinking_that_was_drawn_as_the_answer_is_called_so_and_the_next_is_not_drawn() -> None:
    page = Page()
    _streamed(page, f"{THOUGHT}\n</think>\n\nHello.")
    page.draw(AssistantSaid(content="Hello."))
    assert (
        page.text == "  The user greets.\n\n  that was thinking; the answer follows\n\n  Hello.\n"
    )
    before = len(page.text)
    page.draw(RequestStarted(model="m"))
    _streamed(page, f"{THOUGHT}\n</think>\n\nAgain.", size=1)
    page.draw(AssistantSaid(content="Again."))
    assert page.text[before:] == "\n  thought: The user greets. I greet back.\n\n  Again.\n"


def test_an_answer_that_thinks_nothing_after_one_that_did_is_drawn_once() -> None:
    page = Page()
    _streamed(page, "I greet.\n</think>\n\nHello.")
    page.draw(AssistantSaid(content="Hello."))
    before = len(page.text)
    for said in ("No thought.", "None here either."):
        page.draw(RequestStarted(model="m"))
        _streamed(page, said)
        page.draw(AssistantSaid(content=said))
    assert page.text[before:] == "\n  No thought.\n\n  None here either.\n"
    assert page.live.thinking == ""


def test_talk_about_such_a_tag_is_an_answer() -> None:
    page = Page()
    text = "Use `</think>` there.\n\nIt ends with </think> in the text.\n\n```\n</think>\n```"
    _streamed(page, text)
    page.draw(AssistantSaid(content=text))
    assert "thought" not in page.text
    assert page.text.count("</think>") == 3
