"""Plans: what a model proposes in the mode `plan`, and what the person has agreed to."""

import re
from typing import Final

from ybs.core.lazy import lazy

_HEADING = lazy(
    r"^[ \t]*(?:#{1,6}[ \t]*)?[*_]{0,2}(?:(?:the|my|proposed|implementation|revised|updated) )?plan\b[^\n.?!]{0,40}$",
    re.IGNORECASE | re.MULTILINE,
)
_STEP = lazy(r"^[ \t]*(?:#{1,6}[ \t]*)?(?:\*\*)?(?:step[ \t]+)?\d{1,2}[.):]", re.I | re.M)
_LEAST_STEPS: Final = 2


def plan_in(text: str) -> str:
    """Return the part of an answer that stands under the last heading `Plan`; empty where there is none."""
    headings = list(_HEADING().finditer(text))
    if not headings:
        return ""
    plan = text[headings[-1].start() :].strip()
    return plan if "\n" in plan else ""


def proposed_plan(text: str) -> str:
    """Return the plan in an answer that was given in the mode `plan`.

    Models that write no heading are understood by their numbered steps, unless the answer ends in a question.
    """
    if plan := plan_in(text):
        return plan
    is_question = text.rstrip().endswith("?")
    return "" if is_question or len(_STEP().findall(text)) < _LEAST_STEPS else text.strip()
