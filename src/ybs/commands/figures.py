"""Numbers in few characters, and numbers as people type them."""

from collections.abc import Callable

from ybs.core.messages import Usage
from ybs.session.reply import Cell, CellKind

_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400


def amount(tokens: int) -> str:
    """Write a number of tokens in at most four characters: 812, 9.2k, 120k, 1.2M."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if tokens >= 0.9995 * size:  # 999,500 is 1.0M, not 1000k
            value = tokens / size
            return f"{value:.1f}{unit}" if value < 9.95 else f"{value:.0f}{unit}"
    return str(tokens)


def money(usd: float) -> str:
    """Write an amount in US dollars; small ones with more digits."""
    if usd <= 0:
        return "$0"
    if usd < 0.0001:
        return "<$.0001"
    return f"${usd:.4f}" if usd < 0.1 else f"${usd:.2f}"


def cost(usage: Usage) -> str:
    """Return what was spent: "unknown" where no price is known, nothing where it was free or nothing was used."""
    if usage.cost_usd is None:
        return "cost unknown" if usage.is_used else ""
    known = money(usage.cost_usd) if usage.cost_usd else ""
    return f"{known or '$0'} + unknown" if usage.cost_is_partial else known


def percent(part: int, whole: int) -> str:
    """Write a share in percent."""
    return f"{100 * part / whole:.0f}%" if whole else "0%"


def time(seconds: float) -> str:
    """Write a time in at most four characters."""
    if seconds < 99.5:
        return f"{seconds:.1f}s" if seconds < 9.95 else f"{seconds:.0f}s"
    minutes = seconds / 60
    return f"{minutes:.0f}m" if minutes < 99.5 else f"{minutes / 60:.0f}h"


def number_in(text: str) -> int:
    """Read a number as people type one, from 1 to 9999; 0 for anything else."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 5 else 0


def age(seconds: float) -> str:
    """Return how long ago something was."""
    for size, unit in ((_DAY, "days"), (_HOUR, "h"), (_MINUTE, "min")):
        if (count := int(seconds // size)) >= 1:
            return f"{count} {'day' if unit == 'days' and count == 1 else unit} ago"
    return "just now"


def cell_text(kind: CellKind, cell: Cell) -> str:
    """Write a cell of a table of this kind."""
    if cell is None or isinstance(cell, str):
        return cell or ""
    forms: dict[str, Callable[[float], str]] = {
        "estimate": lambda value: f"~{value:,}",
        "share": lambda value: f"{value:.0%}",
        "tokens": lambda value: amount(int(value)),
        "usd": money,
        "seconds": time,
    }
    return forms[kind](cell) if kind in forms else f"{cell:,}"
