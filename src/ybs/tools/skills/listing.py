"""What a model is told of its skills: names and descriptions, within a budget whatever their number."""

import re
from collections.abc import Sequence
from typing import Final

from ybs.tools.skills.skill import Skill

#: About 700 tokens.
MOST_CHARS: Final = 2_800
_SHORTEST = 24  # a shorter piece of a description says nothing
_MOST_FOUND = 5


def listing(skills: Sequence[Skill], most_chars: int = MOST_CHARS) -> str:
    """Return a line for each skill. Long descriptions are cut first, then all are left out, then names."""
    room = most_chars - sum(len(skill.name) + 5 for skill in skills)
    sizes = [len(skill.description) for skill in skills]
    longest = _fair_share(sizes, room)
    if longest >= min(_SHORTEST, max(sizes, default=0)):
        return "\n".join(
            f"- {skill.name}: {shortened(skill.description, longest)}" for skill in skills
        )
    names = ", ".join(skill.name for skill in skills)
    if len(names) <= most_chars:
        return names
    return names[:most_chars].rpartition(", ")[0] + ", … (call it with words to find others)"


def _fair_share(sizes: Sequence[int], room: int) -> int:
    """Return the longest that any may be, so that all fit: what short ones leave, long ones have."""
    left = len(sizes)
    for size in sorted(sizes):
        if size * left > room:
            return room // left
        room -= size
        left -= 1
    return max(sizes, default=0)


def shortened(text: str, most_chars: int) -> str:
    """Return a text of at most so many characters, cut after a word."""
    if len(text) <= most_chars:
        return text
    return text[: most_chars - 1].rpartition(" ")[0].rstrip(",;:. ") + "…"


def fitting(words: str, skills: Sequence[Skill]) -> list[Skill]:
    """Return the skills whose names or descriptions have the most of the words, the best first."""
    wanted = _words(words)

    def rank(skill: Skill) -> int:
        return 10 * len(wanted & _words(skill.name)) + len(wanted & _words(skill.description))

    ranked = sorted(skills, key=rank, reverse=True)
    return [skill for skill in ranked[:_MOST_FOUND] if rank(skill)]


def _words(text: str) -> set[str]:
    return {word.removesuffix("s") for word in re.findall(r"[a-z0-9]{2,}", text.lower())}
