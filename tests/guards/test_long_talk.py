"""What the person said stays: 300 turns in a window of 16,384 tokens, with facts at turns 5, 100 and 200."""

import pytest
from long_talk import FACTS, FILLERS, Told, play

from rows import every_row


def check(told: Told, room: int) -> None:
    assert told.problems == []
    assert told.largest <= room
    assert not told.is_back_to_back
    assert len(told.compactions) > 5


@pytest.mark.integration
async def test_facts_of_early_turns_stand_in_the_last_prompt():
    told = await play("varied", "plain", room=12_288)
    check(told, 12_288)
    assert told.lost == []


@pytest.mark.slow
@every_row("filler", FILLERS)
async def test_facts_survive_any_talk_and_any_summary(filler: str):
    # Each kind of facts meets each summary, with two of the fillers.
    summaries = (None, "Goal: go on with the work in hand.", "")
    for at, facts in enumerate(FACTS, [*FILLERS].index(filler)):
        told = await play(filler, facts, room=12_288, summary=summaries[at % 3])
        check(told, 12_288)
        assert told.lost == [], facts
