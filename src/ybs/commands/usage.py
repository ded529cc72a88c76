"""Commands about what was used: /context draws where the tokens go, /cost what the turns have cost."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ybs.core.messages import Usage
from ybs.session.figures import amount, bar, first_words, money, percent, time
from ybs.session.reply import Reply
from ybs.session.session import Session

if TYPE_CHECKING:
    from ybs.session.context_use import ContextUse, Share
    from ybs.session.tally import TurnUse

#: So many turns are drawn one by one; those before them are summed up.
MOST_TURNS = 20
_COST_BAR = 5
#: Lines that stay whole in a terminal of 40 columns; tables have one row for a turn from the other width on.
_NARROW, _WIDE = 38, 60


async def show_context(session: Session, _argument: str) -> Reply:
    """Draw what fills the model's window."""
    from ybs.session.context_use import measure

    await session.prepare()
    lines = _context_lines(measure(session), session.view.columns)
    if thought := session.rooms.surroundings.thought:
        lines.append(f"goal: {first_words(thought, session.view.columns - 8)}")
    return Reply(text="\n".join(lines))


def _context_lines(use: "ContextUse", columns: int) -> list[str]:
    about = "" if use.is_counted else "~"
    share = percent(use.tokens, use.window)
    head = f"context {about}{use.tokens:,} of {use.window:,} tokens ({share})"
    if len(head) > _NARROW:
        head = f"context {about}{amount(use.tokens)} of {amount(use.window)} tokens ({share})"
    shares = [each for share in use.shares for each in _flat(share)]
    widest = max((len(name) for name, _ in shares), default=0)
    rows = [_share_row(name, share, use.tokens, widest, columns) for name, share in shares]
    last = f"last request: {amount(use.cached)} cached, {amount(use.fresh)} fresh"
    return [head, *rows, *([last] if use.cached else []), f"~ estimated; {use.basis}"]


def _flat(share: "Share", margin: str = "") -> "Iterator[tuple[str, Share]]":
    """Yield a share and what it is made of, by the names of their rows; what is empty is left out."""
    if share.tokens:
        yield margin + share.name, share
        for part in share.parts:
            yield from _flat(part, margin + "  ")


def _share_row(name: str, share: "Share", total: int, widest: int, columns: int) -> str:
    drawn = bar(share.tokens / total if total else 0, _NARROW - widest - 13)
    row = f" {name:<{widest}} {f'~{share.tokens:,}':>10} {drawn}".rstrip()
    if not share.note or columns < _WIDE:
        return row
    return f"{row:<{_NARROW}} {first_words(share.note, columns - _NARROW - 2)}"


async def show_cost(session: Session, _argument: str) -> Reply:
    """Draw what the session has used, turn by turn."""
    if not session.turns:
        return Reply(text="Nothing was used yet.")
    table = _Table(session.turns, columns=session.view.columns)
    earlier, latest = session.turns[:-MOST_TURNS], session.turns[-MOST_TURNS:]
    lines = [table.head()]
    if earlier:
        lines += table.sum_row(earlier, f"turns 1 to {len(earlier)}")
    model = earlier[-1].model if earlier else ""
    for number, turn in enumerate(latest, len(earlier) + 1):
        if turn.model != model:
            model = turn.model
            lines.append(f"    {first_words(model, _NARROW - 4)}")
        lines += table.row(number, turn)
    lines += table.sum_row(session.turns, "the session")
    return Reply(text="\n".join([*lines, *_price_note(session.turns)]))


class _Table:
    """Rows of numbers with the turn's first words behind them or, where there is no room, above them."""

    def __init__(self, turns: "Sequence[TurnUse]", *, columns: int) -> None:
        self._is_priced = any(turn.usage.cost_usd for turn in turns)
        self._is_narrow = columns < _WIDE
        self._room = _NARROW - 4 if self._is_narrow else min(columns - 42, 2 * _NARROW)
        self._most = max(self._spent(turn.usage) for turn in turns[-MOST_TURNS:]) or 1.0

    def head(self) -> str:
        """Name the columns."""
        heads = ("in", "cache", "out", "time")
        return self._numbers("", "", ("cost", *heads) if self._is_priced else heads)

    def row(self, number: int, turn: "TurnUse") -> list[str]:
        """Draw a turn."""
        drawn = bar(self._spent(turn.usage) / self._most, _COST_BAR)
        cells = self._cells(turn.usage, turn.seconds)
        return self._drawn(str(number), drawn, cells, first_words(turn.words, self._room))

    def sum_row(self, turns: "Sequence[TurnUse]", words: str) -> list[str]:
        """Draw the sum of some turns."""
        usage = sum((turn.usage for turn in turns), Usage())
        cells = self._cells(usage, sum(turn.seconds for turn in turns))
        return self._drawn("", "", cells, words)

    def _drawn(self, number: str, drawn: str, cells: Sequence[str], words: str) -> list[str]:
        if self._is_narrow:
            return [f"{number:>3} {words}".rstrip(), self._numbers("", drawn, cells)]
        return [f"{self._numbers(number, drawn, cells)}  {words}".rstrip()]

    def _numbers(self, number: str, drawn: str, cells: Sequence[str]) -> str:
        widths = (7, 5, 5, 5, 4)[-len(cells) :]
        columns = " ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
        margin = "" if self._is_narrow else f"{number:>3} "
        return f"{margin}{drawn:<{_COST_BAR}} {columns}"

    def _spent(self, usage: Usage) -> float:
        """Return what a bar stands for: money, or tokens where no price is known."""
        if self._is_priced:
            return usage.cost_usd or 0.0
        return float(usage.input_tokens + usage.output_tokens)

    def _cells(self, usage: Usage, seconds: float) -> tuple[str, ...]:
        cost = money(usage.cost_usd) if usage.cost_usd is not None else "?" * _is_used(usage)
        counts = (usage.input_tokens, usage.cached_tokens, usage.output_tokens)
        cells = (*(amount(count) for count in counts), time(seconds))
        return (cost, *cells) if self._is_priced else cells


def _is_used(usage: Usage) -> bool:
    return usage.input_tokens + usage.output_tokens > 0


def _price_note(turns: "Sequence[TurnUse]") -> list[str]:
    costs = [turn.usage.cost_usd for turn in turns if _is_used(turn.usage)]
    if all(cost is None for cost in costs):
        return ["No price is known: this is in tokens."]
    if None in costs:
        return ["?: no price known, not in the sum."]
    return [] if any(costs) else ["It costs nothing. Bars are tokens."]
