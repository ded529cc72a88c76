"""300 turns in a window of 16,384 tokens: which of the person's facts are lost, and what compaction costs."""

import asyncio
import re
import time
from itertools import product
from pathlib import Path
from random import Random

from lab import Lab, Row, median
from long_talk import FACTS, FACTS_AT, FILLERS, Told, play

ROOM = 12_288  # 16,384 less an answer of 4,096
SUMMARIES = (None, "Goal: go on with the work in hand.")
_SENTENCE = re.compile(r"(?<=[.!?] )[A-Z][^.!?\n|]{25,130}[.!?]")


def measure(_lab: Lab, rounds: int) -> list[Row]:
    """Play every kind of talk with every kind of fact, with a model that summarises badly and without one."""
    FILLERS["documents"] = documents()
    rows: list[Row] = []
    all_told: list[Told] = []
    seconds: list[float] = []
    for filler in FILLERS:
        began = time.process_time()
        told = [
            asyncio.run(play(filler, facts, seed=seed, room=ROOM, summary=summary))
            for facts, summary, seed in product(FACTS, SUMMARIES, range(max(1, rounds // 3)))
        ]
        seconds.append((time.process_time() - began) / len(told))
        all_told += told
        lost = sum(len(one.lost) for one in told)
        count = len(FACTS_AT) * len(told)
        limit = None if filler == "documents" else 0  # whose words say as much as the facts
        rows.append(Row(f"facts lost among {filler} words", lost, "", limit, f"of {count}"))
    events = [done for told in all_told for done in told.compactions]
    return [
        *rows,
        Row("largest request / room", max(t.largest for t in all_told) / ROOM, "x", 1),
        Row("turns that did not end well", sum(len(t.problems) for t in all_told), "", 0),
        Row(
            "compactions without an answer between", sum(t.is_back_to_back for t in all_told), "", 0
        ),
        Row("compactions in a session", median(len(t.compactions) for t in all_told), ""),
        Row(
            "what is left / what was", median(d.tokens_after / d.tokens_before for d in events), "x"
        ),
        Row(
            "CPU of a session, the agent's loop and scripts included", median(seconds) * 1000, "ms"
        ),
    ]


def documents():
    """Make talk of the sentences in this project's documents: every one says something of its own."""
    texts = sorted((Path(__file__).parent.parent / "docs").rglob("*.md"))
    sentences = [s for path in texts for s in _SENTENCE.findall(path.read_text(encoding="utf-8"))]

    def say(_turn: int, random: Random) -> str:
        return random.choice(sentences)

    return say
