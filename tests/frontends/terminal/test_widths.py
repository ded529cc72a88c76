"""No line that ybs folds is wider than the screen, whatever characters are in it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from paper import Page, changed, ran, started

from ybs.core.events import (
    AssistantSaid,
    Noticed,
    TextStreamed,
    ThinkingStreamed,
    ToolPrinted,
    TurnFinished,
)
from ybs.frontends.terminal.words import cells

pytestmark = pytest.mark.integration

HOSTILE = st.text(
    alphabet="ab \t\n漢字🎉\u200b\u0301\u202e\u200d👩\ufe0f\u05d0\u0645e\u0e33|-`*#1.>[]\x1b\r\x07\x9b",
    max_size=200,
)


@settings(max_examples=15)
@given(HOSTILE, st.sampled_from([16, 40, 80]))
def test_every_drawn_line_fits(text: str, width: int) -> None:
    page = Page(width=width)
    display = {"stdout": text * 3, "stderr": text, "exit_code": 1}
    done = ran(display=display, summary=text, changes=(changed("", text),))
    page.live.begin()
    page.draw(ThinkingStreamed(text=text))
    lines = page.passing(width - 1)
    page.draw(TextStreamed(text=text))
    lines += page.passing(width - 1)
    page.draw(AssistantSaid(content=text), started(command=text))
    page.draw(ToolPrinted(id="1", text=text))
    page.clock.now += 2
    lines += page.passing(width - 1)
    page.draw(done, replace(done, success=False), replace(done, is_refused=True, output=text))
    page.draw(replace(done, name=text), Noticed(level="warning", text=text))
    page.draw(TurnFinished(reason="error", message=text))
    page.renderer.say(text)
    while page.renderer.unfold():
        pass
    lines += page.text.split("\n")
    assert [line for line in lines if cells(line) > width] == []


def test_words_of_thousands_of_letters_are_folded_everywhere() -> None:
    for word in ("x" * 5_000, "漢" * 5_000, "e\u0301" * 5_000, "👩\u200d" * 2_000):
        page = Page(width=40)
        page.draw(Noticed(level="info", text=word), AssistantSaid(content=word))
        page.draw(ran(success=False, display={"stdout": word, "exit_code": 1}))
        assert max(map(cells, page.text.split("\n"))) <= 40
