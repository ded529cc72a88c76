"""Reasoning effort: one vocabulary of levels and budgets, for formats that take the one or the other."""

from typing import Final

from ybs.config.schema import Effort
from ybs.providers.wire.adapter import RequestOptions

#: The levels from the least to the most, and the tokens of thinking that each stands for where a format takes a budget.
BUDGETS: Final[dict[str, int]] = {
    "none": 0,
    "minimal": 1_024,
    "low": 4_096,
    "medium": 12_288,
    "high": 24_576,
    "xhigh": 32_768,
    "max": 65_536,
}
LEVELS: Final = tuple(BUDGETS)
#: What gpt-oss takes, which always thinks: https://docs.ollama.com/capabilities/thinking
OSS_LEVELS: Final = ("low", "medium", "high")


def level_of(effort: Effort, taken: tuple[str, ...] = ()) -> str:
    """Return the level, of those that are `taken` (none: all) the nearest; of a budget the lowest that has room for it."""
    level: str
    if isinstance(effort, int):
        level = next((name for name, tokens in BUDGETS.items() if tokens >= effort), "max")
    else:
        level = effort
    return nearest(level, taken)


def nearest(level: str, taken: tuple[str, ...]) -> str:
    """Return the level, or of those that are `taken` (none: all) the nearest to it."""
    known = [name for name in LEVELS if name in taken]
    if not known or level in known:
        return level
    place = LEVELS.index(level)
    # Nobody who wants thinking gets none, nor the other way round, as long as there is a choice.
    return min(known, key=lambda name: ((name == "none") != (level == "none"), abs(LEVELS.index(name) - place)))  # fmt: skip


def budget_of(effort: Effort, *, most: int) -> int:
    """Return the tokens that may be thought, `most` at the most; 0 for none."""
    return min(BUDGETS[effort] if isinstance(effort, str) else effort, most)


def asked_level(options: RequestOptions) -> str:
    """Return the level to ask for; empty where none is asked for, or the model takes none."""
    quirks = options.quirks
    if options.effort is None or quirks.effort_form == "no":
        return ""
    return level_of(options.effort, quirks.efforts)
