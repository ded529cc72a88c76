"""The commands /router, /good and /bad: how the router stands, and the person's word on the last answer."""

from typing import TYPE_CHECKING

from ybs.core.messages import UserMessage
from ybs.session.reply import Reply, Table
from ybs.session.session import Session

if TYPE_CHECKING:
    from ybs.router.overview import ArmState
    from ybs.router.routing import Routing
    from ybs.router.store import Told

#: So many attempts are made where no number is given, and no more than that.
USUAL, MOST = 3, 8
BEST_USAGE = (
    f"Usage: /best [N] TASK   have N models (2 to {MOST}, else {USUAL}) do TASK side by side; "
    "the check in router.cascade.check chooses whose work is taken over"
)
NO_CHECK = (
    "/best needs a check that decides which attempt is best. Set router.cascade.check in your own settings to a "
    "command that fails where the work is not right, such as `make test`."
)
NOT_ROUTED = "No router picks the model of this session. `/model auto` has it picked for each turn."


async def show_router(session: Session, _argument: str) -> Reply:
    """Show the arms, what their pools have left, and the last decision with its reason."""
    routing = routing_of(session)
    if routing is None:
        return Reply(text=NOT_ROUTED)
    from ybs.router.overview import overview  # few route

    found = await overview(routing)
    kind = found.last.made.kind if found.last else "other"
    rows = [("model", f"chance ({kind})", "results", "price", "")]
    rows += [_row(arm, kind) for arm in found.arms]
    pools = [
        (pool.pool, f"{pool.spent_usd:.4f} USD today", f"of {pool.budget_usd:g} USD")
        for pool in found.pools
        if pool.budget_usd is not None
    ]
    notes = [
        f"{found.decisions} decisions, {found.settled} of them with an outcome ({found.policy})"
    ]
    notes += lines_of(found.last) if found.last else []
    tables = [Table.of(rows), *([Table.of(pools)] if pools else [])]
    return Reply(tables=tuple(tables), notes=tuple(notes))


async def say_good(session: Session, _argument: str) -> Reply:
    """Tell the router that the last answer was good."""
    return await _judge(session, is_good=True)


async def say_bad(session: Session, _argument: str) -> Reply:
    """Tell the router that the last answer was bad."""
    return await _judge(session, is_good=False)


async def make_attempts(session: Session, argument: str) -> Reply:
    """Have several models do a task side by side, and the check of the settings choose whose work is taken over."""
    first, _, rest = argument.partition(" ")
    is_count = first.isascii() and first.isdigit()
    count, words = (int(first[:3]), rest.strip()) if is_count else (USUAL, argument)
    if not words or not 2 <= count <= MOST:
        return Reply.error(BEST_USAGE)
    if not session.config.router.cascade.check:
        return Reply.error(NO_CHECK)
    from ybs.tools.builtin.delegate import PersonsTask  # few ask for attempts

    session.parts.main.delegating.order(words, PersonsTask(task=words, best_of=count))
    return Reply(shared=UserMessage.of(words))


async def _judge(session: Session, *, is_good: bool) -> Reply:
    routing = routing_of(session)
    if routing is None:
        return Reply.error(NOT_ROUTED)
    if session.environment.incognito.is_on:
        return Reply.error("Nothing is learned in incognito.")
    decision = await routing.judge(is_good=is_good)
    if not decision:
        return Reply.error("There is no answer yet that this could be about.")
    word = "good" if is_good else "bad"
    return Reply(text=f"Noted: decision {decision} was {word}. The router learns from it.")


def routing_of(session: Session) -> "Routing | None":
    """Return what picks the model of the session; None where nothing does."""
    from ybs.router.model import RoutedModel  # few route

    model = session.agent.model
    return model.routing if isinstance(model, RoutedModel) else None


def lines_of(told: "Told") -> list[str]:
    """Say in lines what was decided, why, and what came of it."""
    made = told.made
    lines = [f"decision {made.id}: {made.arm} for {made.kind}; {made.reason}"]
    # Of one that was left out its name says why.
    lines += [f"  {n}" if ": " in n else f"  {n}  {value:.2f}" for n, value in made.considered]
    if told.reward is not None and told.weight:
        lines.append(f"outcome: {told.reward:.2f}, weight {told.weight:g}")
    lines += [f"  {each.name}: {each.reward:.2f}, weight {each.weight:g}" for each in told.signals]
    return lines


def _row(arm: "ArmState", kind: str) -> tuple[str, ...]:
    chance = next(each for each in arm.chances if each.kind == kind)
    price = "unknown"
    if arm.input_price is not None and arm.output_price is not None:
        price = f"{arm.input_price:g} / {arm.output_price:g} USD"
    state = f"rests {arm.rests_seconds:.0f} s" if arm.rests_seconds else arm.shortage
    return (
        arm.arm,
        f"{chance.mean:.0%} ({chance.low:.0%} to {chance.high:.0%})",
        f"{chance.results:.1f}",
        price,
        state,
    )
