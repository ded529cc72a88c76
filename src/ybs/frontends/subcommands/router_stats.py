"""`ybs router stats`, `explain` and `reset`: what the router has learned and spent, why it chose, and how it forgets."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from ybs.commands.router import lines_of
from ybs.config.layers import Loaded
from ybs.core.errors import YbsError
from ybs.core.wording import plural
from ybs.frontends.headless.output import tell, warn, write, write_json
from ybs.router.overview import Chance, Overview, overview
from ybs.router.roster import roster_of
from ybs.router.routing import Routing
from ybs.security.unicode import printable
from ybs.session.settings import load_settings

if TYPE_CHECKING:
    from argparse import Namespace

    from ybs.session.options import Options

_BAR: Final = 30


def router(arguments: "Namespace", options: "Options") -> int:
    """Do what the action says, and return the exit code. Raises YbsError."""
    loaded, is_json = load_settings(options), arguments.format == "json"
    warn(loaded.warnings)
    match arguments.action:
        case "explain":
            return explain(loaded, arguments.decision or "", is_json=is_json)
        case "reset":
            return reset(loaded, is_json=is_json)
        case _:
            return show_stats(loaded, is_json=is_json)


def show_stats(loaded: Loaded, *, is_json: bool) -> int:
    """Print what is believed of each model and what was spent. Raises YbsError."""
    found = asyncio.run(_looked_at(loaded))
    for warning in found.warnings:
        tell(warning)
    if is_json:
        write_json(found)
        return 0
    for line in stats_lines(found):
        write(printable(line))
    return 0


def explain(loaded: Loaded, decision: str, *, is_json: bool) -> int:
    """Print what is known of a decision by the beginning of its id; of the newest without one. Raises YbsError."""

    async def find() -> int:
        routing = _routing(loaded)
        try:
            told = await routing.explain(decision)
        finally:
            await routing.aclose()
        if told is None:
            named = f"whose id begins with {decision!r}" if decision else "yet"
            raise YbsError(
                f"There is no decision {named} in this profile. `ybs router stats` counts them."
            )
        if is_json:
            write_json(told)
            return 0
        for line in lines_of(told):
            write(printable(line))
        return 0

    return asyncio.run(find())


def reset(loaded: Loaded, *, is_json: bool) -> int:
    """Forget all decisions of the profile. What the pools have spent stays. Raises YbsError."""

    async def forget() -> int:
        routing = _routing(loaded)
        try:
            _, store = await routing.opened()
            return await asyncio.to_thread(store.reset)
        finally:
            await routing.aclose()

    count = asyncio.run(forget())
    if is_json:
        write_json({"forgotten": count, "profile": loaded.profile})
    else:
        where = f" of profile {loaded.profile}" if loaded.profile else ""
        write(f"Forgot {count} decisions{where}. What was spent is still counted.")
    return 0


def stats_lines(found: Overview) -> list[str]:
    """Return the beliefs and the spending as lines with bars."""
    lines = [
        f"{found.decisions} decisions, {found.settled} with an outcome; policy {found.policy}",
        "",
    ]
    for arm in found.arms:
        seen = [each for each in arm.chances if each.results > 0] or list(arm.chances[-1:])
        lines.append(arm.arm)
        lines += [f"  {each.kind:<8}  {_interval(each)}" for each in seen]
    lines += ["", *_spending(found)]
    return lines


def _interval(chance: Chance) -> str:
    """Draw where a chance most likely lies."""
    low, mean, high = (round(each * (_BAR - 1)) for each in (chance.low, chance.mean, chance.high))
    bar = "".join(
        "●" if place == mean else "─" if low <= place <= high else "·" for place in range(_BAR)
    )
    words = f"{chance.mean:4.0%} ({chance.low:.0%} to {chance.high:.0%})"
    return f"{bar}  {words}, {chance.results:.1f} results"


def _spending(found: Overview) -> Sequence[str]:
    by_day: dict[int, float] = {}
    requests: dict[int, int] = {}
    for use in found.spending:
        by_day[use.day] = by_day.get(use.day, 0.0) + use.usd
        requests[use.day] = requests.get(use.day, 0) + use.requests
    if not by_day:
        return ["Nothing was sent yet."]
    most = max(by_day.values()) or 1.0
    lines = [
        f"{_date_of(day)}  {'█' * round(usd / most * _BAR):<{_BAR}}  {usd:.4f} USD, {plural(requests[day], 'request')}"
        for day, usd in by_day.items()
    ]
    lines += [
        f"pool {pool.pool}: {pool.spent_usd:.4f} of {pool.budget_usd:g} USD today"
        for pool in found.pools
        if pool.budget_usd is not None
    ]
    return lines


def _date_of(day: int) -> str:
    """Return a day, counted from 1970, as it is written."""
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=day)).date().isoformat()


async def _looked_at(loaded: Loaded) -> Overview:
    routing = _routing(loaded)
    try:
        return await overview(routing)
    finally:
        await routing.aclose()


def _routing(loaded: Loaded) -> Routing:
    roster = roster_of(loaded)
    return Routing(loaded.host, loaded.config, roster, profile=loaded.profile)
