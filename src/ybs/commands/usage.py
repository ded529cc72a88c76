"""The commands /context and /cost: where the tokens go, and what the turns have cost."""

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final, assert_never

from msgspec import Struct

from ybs.agent.map_guard import TITLE
from ybs.commands.figures import amount, percent
from ybs.context.prompt import FACTS, Section, framed_of
from ybs.core.cutting import first_words
from ybs.core.messages import AssistantMessage, Message, Origin, ToolResult, Usage, UserMessage
from ybs.session.reply import Cell, Column, Reply, Row, Table
from ybs.session.session import Session

if TYPE_CHECKING:
    from ybs.providers.tokens import Meter, TokenCounter
    from ybs.session.session import Session
    from ybs.session.tally import TurnUse

#: The row of the repo map.
MAP: Final = "repo map"
#: The rows of what ybs itself says of the place, and where it has it from.
_FACT_ROWS: Final = {
    "system": ("machine", "ybs, the model and this machine"),
    "project": ("project", "the project's own files"),
    "commits": ("commits", "git, the last five"),
    "commands": ("commands", "ybs"),
}
#: Who speaks in the messages, in the order of the rows.
VOICES: Final = ("yours", "attached", "commands", "model", "results", "reminders", "summary")
_VOICE_OF: Final[dict[Origin, str]] = {
    "person": "yours",
    "shell": "commands",
    "guard": "reminders",
    "context": "reminders",
    "summary": "summary",
}


class UsageShare(Struct, frozen=True):
    """One part of what is sent; `parts` is what it is made of, `note` says where it comes from."""

    name: str
    tokens: int
    note: str = ""
    parts: "tuple[UsageShare, ...]" = ()


class ContextUse(Struct, frozen=True, kw_only=True):
    """What fills the window: the size of the next request as it stands, and what it is made of.

    The shares are estimates and add up to `tokens`. `is_counted`: the provider itself has counted all but its
    own last answer. `cached` and `fresh` are of the last request, as the provider counted. `basis` says in words what the number rests on.
    """

    tokens: int
    window: int
    shares: tuple[UsageShare, ...]
    cached: int
    fresh: int
    is_counted: bool
    basis: str


def measure(session: "Session") -> ContextUse:
    """Measure a session's next request and its shares."""
    counter, request = session.agent.window.counter, session.next_request()
    tokens, is_counted = counter.tokens(request), counter.is_counted(request)
    voices = _voices(counter.meter, request.messages)
    map_size = voices.pop(MAP)
    names = [name for name in VOICES if voices[name]]
    context, meter = session.context, counter.meter
    papers = context.documents
    facts = [each for each in context.sections if each.name in FACTS]
    framed = [meter.system(framed_of(paper)) for paper in papers]
    known = [meter.system(fact.text) for fact in facts]
    system = max(meter.system(request.system) - sum(framed) - sum(known), 0.0)
    tools = meter.tools(request.tools)
    sizes = [system, *known, tools, map_size, *framed, *(voices[n] for n in names)]
    parts = iter(_split(tokens, sizes))
    own = [_system_share(next(parts), [(fact.name, next(parts)) for fact in facts])]
    own += [UsageShare(name, next(parts)) for name in ("tools", MAP)]
    written = tuple(UsageShare(paper.name, next(parts), _note_on(paper)) for paper in papers)
    said = tuple(UsageShare(name, next(parts)) for name in names)
    last = _last_usage(request.messages)
    return ContextUse(
        tokens=tokens,
        window=session.agent.model.window,
        shares=(
            *own[:2],
            UsageShare("documents", sum(each.tokens for each in written), parts=written),
            own[2],
            UsageShare("messages", sum(each.tokens for each in said), parts=said),
        ),
        cached=last.cached_tokens,
        fresh=max(0, last.input_tokens - last.cached_tokens),
        is_counted=is_counted,
        basis=_basis(counter, is_counted=is_counted),
    )


def _system_share(rules: int, facts: Sequence[tuple[str, int]]) -> UsageShare:
    """Return the share of the system prompt without its documents: the rules, and what is known of the place."""
    rows = [(*_FACT_ROWS[name], tokens) for name, tokens in facts]
    parts = [UsageShare(name, tokens, note) for name, note, tokens in rows]
    if parts:
        parts.insert(0, UsageShare("rules", rules, "how to work, folder, day"))
    whole = rules + sum(tokens for _, tokens in facts)
    return UsageShare("system", whole, parts=tuple(parts))


def _note_on(paper: Section) -> str:
    return f"{paper.source}{' (cut)' if paper.is_cut else ''}".strip()


def _basis(counter: "TokenCounter", *, is_counted: bool) -> str:
    if is_counted:
        return "the total is counted"
    answers = counter.correction.answers
    if not answers:
        return "so is the total"
    return f"corrected by {answers} answer{'s' if answers > 1 else ''}"


def _voices(meter: "Meter", messages: Sequence[Message]) -> dict[str, float]:
    """Measure what each voice has in the messages."""
    sizes: dict[str, float] = dict.fromkeys((*VOICES, MAP), 0.0)
    for message in messages:
        whole = meter.message(message)
        match message:
            case UserMessage():
                behind = sum(meter.parts(message)[1:]) if len(message.content) > 1 else 0.0
                # Behind a summary stand the person's own words, as they were said.
                sizes["yours" if message.origin == "summary" else "attached"] += behind
                voice = MAP if message.words.startswith(TITLE) else _VOICE_OF[message.origin]
                sizes[voice] += whole - behind
            case AssistantMessage():
                sizes["model"] += whole
            case ToolResult():
                sizes["results"] += whole
            case _:
                assert_never(message)
    return sizes


def _split(total: int, sizes: Sequence[float]) -> list[int]:
    """Split a whole number into whole parts of these sizes, none of them lost to rounding."""
    whole = sum(sizes)
    ends = [round(end / whole * total) if whole else 0 for end in accumulate(sizes, initial=0.0)]
    return [end - start for start, end in pairwise(ends)]


def _last_usage(messages: Sequence[Message]) -> Usage:
    answers = (each for each in reversed(messages) if isinstance(each, AssistantMessage))
    last = next(answers, None)
    return Usage() if last is None else last.usage


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


def _rows_of(share: UsageShare, total: int, level: int = 0) -> Iterator[Row]:
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
        return ["Unknown costs are not in the sum."]
    return [] if any(costs) else ["These models are free, so the bars show tokens."]
