"""What happens in the simulated worlds, and the columns of the table that they are reported in."""

from typing import Final

from msgspec import Struct


class Scenario(Struct, frozen=True, kw_only=True):
    """What changes with time, what is heard of results, and how the arms differ.

    `drift` is the standard deviation, in logits, of how far each chance walks in all; `missing` and `flipped` are shares of
    the results; `late` is the most steps that a result takes. `spread` is how much the arms' abilities differ, in logits,
    `interaction` how much each arm's differ by kind, and `lead` by how much one of them is ahead of what it would be.
    """

    name: str
    has_updates: bool = False
    has_outages: bool = False
    has_price_change: bool = False
    has_pools: bool = False
    has_pressure: bool = False
    drift: float = 0.0
    missing: float = 0.0
    flipped: float = 0.0
    late: int = 0
    spread: float = 0.8
    interaction: float = 0.5
    lead: float = 0.0


class Column(Struct, frozen=True, kw_only=True):
    """A scenario over a multiple of the decisions that were asked for."""

    scenario: Scenario
    share: float = 1.0

    def decisions(self, asked: int) -> int:
        """Return how many decisions are made."""
        return max(10, round(asked * self.share))


def _full(name: str, **more: float | bool) -> Scenario:
    return Scenario(name=name, has_updates=True, has_outages=True, drift=0.6, **more)  # pyright: ignore[reportArgumentType]


STATIONARY: Final = Scenario(name="stationary")
ABRUPT: Final = Scenario(name="abrupt", has_updates=True)
FULL: Final = _full("full")
#: The five columns in which the router is to be below every learning baseline.
MAIN: Final = (
    Column(scenario=FULL, share=0.3),
    Column(scenario=FULL),
    Column(scenario=FULL, share=4.0),
    Column(scenario=STATIONARY),
    Column(scenario=ABRUPT, share=4.0),
)
#: The same with results that are missing, wrong or late, with other prices from the middle on, with pools that others empty, and with pools whose spending runs ahead of the day.
HARDER: Final = (
    Column(scenario=_full("missing", missing=0.4)),
    Column(scenario=_full("noisy", flipped=0.1)),
    Column(scenario=_full("late", late=60)),
    Column(scenario=_full("missing, noisy, late", missing=0.4, flipped=0.1, late=60)),
    Column(scenario=_full("prices", has_price_change=True)),
    Column(scenario=_full("pools", has_pools=True)),
    Column(scenario=_full("pressure", has_pressure=True)),
)
#: Where little or nothing is to be learned, or to be heard. No target stands here.
LIMITS: Final = (
    Column(scenario=FULL, share=0.03),
    Column(scenario=FULL, share=0.1),
    Column(scenario=Scenario(name="one model far ahead", lead=2.5)),
    Column(scenario=Scenario(name="all models equal", spread=0.0, interaction=0.0)),
    Column(scenario=_full("9 of 10 missing", missing=0.9)),
    Column(scenario=_full("all missing", missing=1.0)),
    Column(scenario=_full("4 of 10 flipped", flipped=0.4)),
)
