"""Commands about what was used: /context shows where the tokens go, /cost what the turns have cost."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from ybs.commands.context_use import ContextUse, Share, measure
from ybs.commands.figures import amount, percent
from ybs.core.messages import Usage
from ybs.core.wording import first_words
from ybs.session.reply import Cell, Column, Reply, Row, Table
from ybs.session.session import Session

if TYPE_CHECKING:
    from ybs.session.tally import TurnUse

#: So many turns are shown one by one; those before them are summed up.
MOST_TURNS = 20
#: In characters; a head that fits the narrowest terminal has its numbers whole.
_LONGEST_HEAD, _GOAL = 38, 72
_SHARES: Final = (Column(), Column("estimate"), Column("share"), Column("note"))
_PRICED: Final = (
    Column("count"),
    Column("share"),
    Column("usd", "cost"),
    Column("tokens", "in"),
    Column("tokens", "cache"),
    Column("tokens", "out"),
    Column("seconds", "time"),
    Column("words"),
)


async def show_context(session: Session, _argument: str) -> Reply:
    """Show what fills the model's window."""
    await session.prepare()
    use = measure(session)
    rows = [row for share in use.shares for row in _rows_of(share, use.tokens)]
    notes = [f"last request: {amount(use.cached)} cached, {amount(use.fresh)} fresh"]
    notes = [*notes * bool(use.cached), f"~ estimated; {use.basis}"]
    if thought := session.context.thought:
        notes.append(f"goal: {first_words(thought, _GOAL)}")
    return Reply(text=_head(use), tables=(Table(_SHARES, tuple(rows)),), notes=tuple(notes))


def _head(use: ContextUse) -> str:
    about = "" if use.is_counted else "~"
    share = percent(use.tokens, use.window)
    head = f"context {about}{use.tokens:,} of {use.window:,} tokens ({share})"
    if len(head) <= _LONGEST_HEAD:
        return head
    return f"context {about}{amount(use.tokens)} of {amount(use.window)} tokens ({share})"


def _rows_of(share: Share, total: int, level: int = 0) -> Iterator[Row]:
    """Yield the row of a share and those of what it is made of; what is empty is left out."""
    if share.tokens:
        part = share.tokens / total if total else 0.0
        yield Row((share.name, share.tokens, part, share.note), level)
        for each in share.parts:
            yield from _rows_of(each, total, level + 1)


async def show_cost(session: Session, _argument: str) -> Reply:
    """Show what the session has used, turn by turn."""
    if not session.turns:
        return Reply(text="No tokens were used yet.")
    is_priced = any(turn.usage.cost_usd for turn in session.turns)
    earlier, latest = session.turns[:-MOST_TURNS], session.turns[-MOST_TURNS:]
    most = max(_spent(turn.usage, is_priced=is_priced) for turn in latest) or 1.0
    rows = [_sum_row(earlier, f"turns 1 to {len(earlier)}", is_priced=is_priced)] * bool(earlier)
    model = earlier[-1].model if earlier else ""
    for number, turn in enumerate(latest, len(earlier) + 1):
        if turn.model != model:
            model = turn.model
            rows.append(Row((model,)))
        share = _spent(turn.usage, is_priced=is_priced) / most
        cells = _cells(turn.usage, turn.seconds, is_priced=is_priced)
        rows.append(Row((number, share, *cells, turn.words)))
    rows.append(_sum_row(session.turns, "the session", is_priced=is_priced))
    columns = _PRICED if is_priced else tuple(each for each in _PRICED if each.kind != "usd")
    return Reply(tables=(Table(columns, tuple(rows)),), notes=tuple(_price_note(session.turns)))


def _sum_row(turns: "Sequence[TurnUse]", words: str, *, is_priced: bool) -> Row:
    usage = sum((turn.usage for turn in turns), Usage())
    cells = _cells(usage, sum(turn.seconds for turn in turns), is_priced=is_priced)
    return Row((None, None, *cells, words))


def _spent(usage: Usage, *, is_priced: bool) -> float:
    """Return what a share is of: money, or tokens where no price is known."""
    if is_priced:
        return usage.cost_usd or 0.0
    return float(usage.input_tokens + usage.output_tokens)


def _cells(usage: Usage, seconds: float, *, is_priced: bool) -> tuple[Cell, ...]:
    counts = (usage.input_tokens, usage.cached_tokens, usage.output_tokens, seconds)
    cost = usage.cost_usd if usage.cost_usd is not None else "unknown" * usage.is_used
    return (cost, *counts) if is_priced else counts


def _price_note(turns: "Sequence[TurnUse]") -> list[str]:
    costs = [turn.usage.cost_usd for turn in turns if turn.usage.is_used]
    if all(cost is None for cost in costs):
        return ["The price of this model is not known, so the bars show tokens."]
    if None in costs or any(turn.usage.cost_is_partial for turn in turns):
        return ["What is unknown is not in the sum."]
    return [] if any(costs) else ["These models are free, so the bars show tokens."]
