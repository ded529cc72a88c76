"""Lines that scroll away are written together, each once, in their order."""

import pytest
from prompt_toolkit.formatted_text import ANSI, to_formatted_text
from stage import staged

from fake_session import FakeSession, says
from ybs.frontends.terminal.prompt.input import fragments


@pytest.mark.integration
async def test_a_fast_stream_draws_the_prompt_seldom_and_loses_nothing() -> None:
    text = "\n\n".join(f"paragraph {number}" for number in range(200))
    async with staged(FakeSession(says(text, size=20)), prompt="go") as stage:
        await stage.sees("1.2k in")
    lines = [line.strip() for line in stage.screen.split("\n")]
    found = [line for line in lines if line.startswith("paragraph")]
    assert found == [f"paragraph {number}" for number in range(200)]
    assert stage.raw.count("ctx 3%") < 40


@pytest.mark.integration
async def test_lines_that_were_not_drawn_yet_are_written_at_the_end() -> None:
    async with staged(FakeSession()) as stage:
        stage.terminal.renderer.say("one")
        stage.terminal.renderer.say("two")
        stage.terminal.leave()
    assert "\none\n\ntwo\n" in stage.screen + "\n"


@pytest.mark.slow
async def test_lines_show_without_a_key_and_without_work() -> None:
    async with staged(FakeSession()) as stage:
        stage.terminal.renderer.say("one")
        await stage.sees("one")
        stage.terminal.renderer.say("two")
        await stage.sees("two")


def test_attributes_mean_what_they_mean_to_prompt_toolkit() -> None:
    text = (
        "\x1b[2ma b\x1b[22m c\x1b[1;36mx\x1b[39my\x1b[0mz\x1b[100m\x1b[36m>\x1b[39m\x1b[49m q"
        "\x1b[m\x1b[4;91mu\x1b[24m\n\x1b[7mr\x1b[27m\x1b[9ms\x1b[29m\x1b[3mi\x1b[23m\x1b[44mg\x1b[97mw"
    )
    expected = [
        (set(style.replace("bg:ansidefault", "").replace("ansidefault", "").split()), letter)
        for style, letter, *_ in to_formatted_text(ANSI(text))
    ]
    found = [(set(style.split()), letter) for style, run, *_ in fragments(text) for letter in run]
    assert found == expected
    assert len(fragments(text)) < 20
